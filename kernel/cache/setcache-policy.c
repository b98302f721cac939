// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choices of dm-setcache: which slot gives way, and which stream is sequential.
 *
 * Replacement. A slot's stamp is the time of its last use (lru) or of its
 * insertion (fifo) on the clock of its set, which counts uses. The slot that
 * gives way is the clean one of the greatest age. When a clock is full, it and
 * all stamps are halved. Which policy is in force shows only in when stamps
 * are made, so it may change at any time.
 *
 * A free slot is taken by place: block n of a stripe in slot n, so that what is
 * consecutive on the disk is so on the SSD and one I/O reads it. For the same
 * reason the next block of a request gets the slot behind the last one if that
 * is about as old as the one that just gave way.
 *
 * Streams. A flow is known by the sector at which it would go on. A request
 * that begins there is of that flow, and moves it. There are as many flows as
 * the table holds, by hash; where there is no room the one not used for longest
 * is forgotten. Each hash has its lock, and none is held while another is.
 */
#include <linux/hash.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "setcache.h"

/* Flows that are not used for so long are none. */
#define SC_FLOW_LIFE	(10 * HZ)

#define SC_FLOW_BITS	const_ilog2(SC_FLOW_BUCKETS)

/* Uses since a slot's stamp. */
u16 sc_age(const struct sc_index *index, u32 set, u16 slot)
{
	return index->sets[set].clock -
	       index->stamps[sc_slot(index, set, slot)];
}

static void sc_renumber(struct sc_index *index, u32 set)
{
	u16 *stamps = &index->stamps[sc_slot(index, set, 0)];
	u32 i;

	for (i = 0; i < index->geo.assoc; i++)
		stamps[i] >>= 1;
	index->sets[set].clock >>= 1;
}

/* A slot is used; the first time, if it is just inserted. */
void sc_touch(struct sc_index *index, u32 set, u16 slot, enum sc_policy policy,
	      bool inserted)
{
	if (policy != SC_LRU && !inserted)
		return;
	if (index->sets[set].clock == U16_MAX)
		sc_renumber(index, set);
	index->stamps[sc_slot(index, set, slot)] = ++index->sets[set].clock;
}

/* Whether a slot may give way. */
bool sc_evictable(struct sc_index *index, u32 set, u16 slot)
{
	return sc_state(index, set, slot) == SC_CLEAN &&
	       !sc_slot_busy(index, set, sc_id(index, set, slot), NULL);
}

static u16 sc_free_slot(struct sc_index *index, u32 set, u16 want)
{
	u32 i, mask = index->geo.assoc - 1;
	struct sc_set *s = &index->sets[set];
	u16 slot;

	if (sc_state(index, set, want) == SC_FREE)
		return want;
	for (i = 0; i <= mask; i++) {
		slot = (s->hand + i) & mask;
		if (sc_state(index, set, slot) == SC_FREE) {
			s->hand = slot;
			return slot;
		}
	}
	return SC_NIL;
}

static u16 sc_random_victim(struct sc_index *index, u32 set)
{
	u32 i, mask = index->geo.assoc - 1;
	u32 start = get_random_u32();

	for (i = 0; i <= mask; i++)
		if (sc_evictable(index, set, (start + i) & mask))
			return (start + i) & mask;
	return SC_NIL;
}

static u16 sc_oldest_victim(struct sc_index *index, u32 set)
{
	u16 slot, age, best = SC_NIL, best_age = 0;

	for (slot = 0; slot < index->geo.assoc; slot++) {
		if (sc_state(index, set, slot) != SC_CLEAN)
			continue;
		age = sc_age(index, set, slot);
		if (best != SC_NIL && age <= best_age)
			continue;
		if (!sc_evictable(index, set, slot))
			continue;
		best = slot;
		best_age = age;
	}
	return best;
}

/*
 * A slot for a block, in state SC_FILLING, or SC_NIL. @near is the one of the
 * block before it, if that was just taken. Says whether a clean block had to
 * give way.
 */
u16 sc_take(struct sc_index *index, u32 set, u32 id, u16 near,
	    enum sc_policy policy, bool *replaced)
{
	u16 mask = index->geo.assoc - 1;
	u16 slot = SC_NIL;

	*replaced = false;
	if (index->sets[set].used < index->geo.assoc) {
		slot = sc_free_slot(index, set, near == SC_NIL ? id & mask :
				    (near + 1) & mask);
	} else {
		/* The one just taken is the newest: ages before that. */
		if (near != SC_NIL && near < mask && policy != SC_RANDOM &&
		    sc_evictable(index, set, near + 1) &&
		    sc_age(index, set, near + 1) >= mask)
			slot = near + 1;
		if (slot == SC_NIL)
			slot = policy == SC_RANDOM ?
			       sc_random_victim(index, set) :
			       sc_oldest_victim(index, set);
		if (slot != SC_NIL) {
			sc_remove(index, set, slot);
			*replaced = true;
		}
	}
	if (slot == SC_NIL)
		return SC_NIL;
	sc_insert(index, set, slot, id, SC_FILLING);
	sc_touch(index, set, slot, policy, true);
	return slot;
}

/*---------------------------------------------------------------------------*/

struct sc_flows *sc_flows_create(void)
{
	struct sc_flows *flows = kvzalloc(sizeof(*flows), GFP_KERNEL);
	u32 i;

	if (!flows)
		return NULL;
	for (i = 0; i < SC_FLOW_BUCKETS; i++)
		spin_lock_init(&flows->buckets[i].lock);
	return flows;
}

/*
 * The length of the stream that a request belongs to, in sectors, without the
 * request itself.
 */
sector_t sc_flow(struct sc_flows *flows, sector_t sector, u32 count,
		 unsigned long now)
{
	struct sc_flow_bucket *bucket;
	struct sc_flow *flow, *oldest;
	sector_t length = 0;
	unsigned long flags;
	u32 i;

	bucket = &flows->buckets[hash_64(sector, SC_FLOW_BITS)];
	spin_lock_irqsave(&bucket->lock, flags);
	for (i = 0; i < SC_FLOW_WAYS; i++) {
		flow = &bucket->flows[i];
		if (!flow->length || flow->next != sector)
			continue;
		if (time_before_eq(now, flow->used + SC_FLOW_LIFE))
			length = flow->length;
		flow->length = 0;
		break;
	}
	spin_unlock_irqrestore(&bucket->lock, flags);

	bucket = &flows->buckets[hash_64(sector + count, SC_FLOW_BITS)];
	spin_lock_irqsave(&bucket->lock, flags);
	oldest = &bucket->flows[0];
	for (i = 0; i < SC_FLOW_WAYS; i++) {
		flow = &bucket->flows[i];
		if (!flow->length) {
			oldest = flow;
			break;
		}
		if (time_before(flow->used, oldest->used))
			oldest = flow;
	}
	oldest->next = sector + count;
	oldest->length = length + count;
	oldest->used = now;
	spin_unlock_irqrestore(&bucket->lock, flags);
	return length;
}
