// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which slot of dm-setcache gives way.
 *
 * A slot's stamp is the time of its last use (lru) or of its insertion (fifo)
 * on the clock of its set, which counts uses. The slot that gives way is a
 * clean one of great age: the oldest of a sample, evenly spread over the set,
 * or of the whole set if that is no larger. For this is done with interrupts
 * off, and must not take longer the larger a set is. Which policy is in force
 * shows only in when stamps are made, so it may change at any time.
 *
 * The clock has 16 bits, and goes round. At each tick the stamp of one slot, in
 * turn, is looked at, and one that is very old is made younger, so that none is
 * ever lapped: two slots not used for so long are taken for equally old.
 *
 * A free slot is taken by place: block n of a stripe in slot n, so that what is
 * consecutive on the disk is so on the SSD and one I/O reads it. For the same
 * reason the next block of a request gets the slot behind the last one if that
 * is about as old as the one that just gave way.
 */
#include <linux/random.h>

#include "setcache-policy.h"

/*
 * Slots that are looked at for one to give way. The oldest of 64 is among the
 * oldest tenth of all, but once in 850 times.
 */
#define SC_SAMPLE	64

/*
 * Ages are kept below this. A slot is looked at once in as many ticks as the
 * set has slots, so none gets to 2^16.
 */
#define SC_OLD		(U16_MAX - 2 * SC_MAX_ASSOC)

/* Return a slot's age: uses of the set since its stamp. */
u16 sc_age(const struct sc_index *index, u32 set, u16 slot)
{
	return index->sets[set].clock -
	       index->stamps[sc_slot(index, set, slot)];
}

/* Keep the age of the slot whose turn it is from going beyond SC_OLD. */
static void sc_limit_age(struct sc_index *index, u32 set)
{
	u16 clock = index->sets[set].clock;
	u16 slot = clock & (index->geo.assoc - 1);

	if (sc_state(index, set, slot) != SC_SLOT_FREE &&
	    sc_age(index, set, slot) > SC_OLD)
		index->stamps[sc_slot(index, set, slot)] = clock - SC_OLD;
}

/* Note a use of a slot: the first one, if its block was just inserted. */
void sc_touch(struct sc_index *index, u32 set, u16 slot, enum sc_policy policy,
	      bool inserted)
{
	if (policy != SC_POLICY_LRU && !inserted)
		return;
	index->stamps[sc_slot(index, set, slot)] = ++index->sets[set].clock;
	sc_limit_age(index, set);
}

/* Return whether a slot may give way. */
bool sc_evictable(struct sc_index *index, u32 set, u16 slot)
{
	return sc_state(index, set, slot) == SC_SLOT_CLEAN &&
	       !sc_slot_busy(index, set, sc_id(index, set, slot), NULL);
}

/* Return how far apart the slots of a sample of a set are. */
static u32 sc_stride(const struct sc_index *index)
{
	return max_t(u32, 1, index->geo.assoc / SC_SAMPLE);
}

/* Return a slot of a random sample that may give way, or SC_NIL. */
static u16 sc_random_victim(struct sc_index *index, u32 set)
{
	u32 i, stride = sc_stride(index), mask = index->geo.assoc - 1;
	u32 start = get_random_u32();

	for (i = 0; i <= mask; i += stride)
		if (sc_evictable(index, set, (start + i) & mask))
			return (start + i) & mask;
	return SC_NIL;
}

/* Return the oldest slot of a sample that may give way, or SC_NIL. */
static u16 sc_oldest_victim(struct sc_index *index, u32 set)
{
	u32 stride = sc_stride(index);
	u32 slot = get_random_u32_below(stride);
	u16 age, best = SC_NIL, best_age = 0;

	for (; slot < index->geo.assoc; slot += stride) {
		if (sc_state(index, set, slot) != SC_SLOT_CLEAN)
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
 * Take a slot for a block. @near is that of the block before it, if it was just
 * taken, or SC_NIL. @replaced says whether a clean block had to give way.
 * Return the slot, as SC_SLOT_FILLING, or SC_NIL.
 */
u16 sc_take(struct sc_index *index, u32 set, u32 id, u16 near,
	    enum sc_policy policy, bool *replaced)
{
	u16 mask = index->geo.assoc - 1;
	u16 slot = SC_NIL;

	*replaced = false;
	if (index->sets[set].used < index->geo.assoc) {
		slot = near == SC_NIL ? id & mask : (near + 1) & mask;
		if (sc_state(index, set, slot) != SC_SLOT_FREE)
			slot = index->sets[set].free;
	} else {
		/*
		 * The one just taken is the newest: this is its age before
		 * that.
		 */
		if (near != SC_NIL && near < mask &&
		    policy != SC_POLICY_RANDOM &&
		    sc_evictable(index, set, near + 1) &&
		    sc_age(index, set, near + 1) >= mask)
			slot = near + 1;
		if (slot == SC_NIL)
			slot = policy == SC_POLICY_RANDOM ?
			       sc_random_victim(index, set) :
			       sc_oldest_victim(index, set);
		if (slot != SC_NIL) {
			sc_remove(index, set, slot);
			*replaced = true;
		}
	}
	if (slot == SC_NIL)
		return SC_NIL;
	sc_insert(index, set, slot, id, SC_SLOT_FILLING);
	sc_touch(index, set, slot, policy, true);
	return slot;
}
