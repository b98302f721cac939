// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replacement in dm-setcache: which slot is evicted.
 *
 * A slot's stamp is the time of its last use (lru) or of its insertion (fifo)
 * on the clock of its set, which counts uses. The victim is a clean slot of
 * great age: the oldest of a sample that is evenly spread over the set, or of
 * the whole set if that is no larger than a sample. The search runs with
 * interrupts off, so its time must not grow with the set. The policy affects
 * only when stamps are made, so it may change at any time.
 *
 * The clock has 16 bits and wraps. At each tick the stamp of one slot, in turn,
 * is checked, and a very old stamp is made younger, so that the clock never
 * laps a stamp: ages beyond SC_AGE_MAX are equal.
 *
 * A free slot is chosen by position: block n of a stripe takes slot n, so that
 * consecutive blocks of the disk are consecutive on the SSD and one I/O reads
 * them. For the same reason the next block of a request takes the slot behind
 * the previous one if that is about as old as the slot just evicted.
 */
#include <linux/random.h>

#include "setcache-policy.h"

/*
 * Slots in a sample for eviction. The oldest of 64 is in the oldest tenth of
 * the set, except once in 850 times.
 */
#define SC_SAMPLE_SLOTS	64

/*
 * Limit of ages. A slot is checked once in as many ticks as the set has slots,
 * so no age reaches 2^16.
 */
#define SC_AGE_MAX		(U16_MAX - 2 * SC_ASSOC_MAX)

/* Return a slot's age: uses of the set since its stamp. */
u16 sc_slot_age(const struct sc_index *index, u32 set, u16 slot)
{
	return index->sets[set].clock -
	       index->stamps[sc_slot_number(index, set, slot)];
}

/* Limit the age of one slot, in turn, to SC_AGE_MAX. */
static void sc_limit_age(struct sc_index *index, u32 set)
{
	u16 clock = index->sets[set].clock;
	u16 slot = clock & (index->geo.assoc - 1);

	if (sc_get_slot_state(index, set, slot) != SC_SLOT_FREE &&
	    sc_slot_age(index, set, slot) > SC_AGE_MAX)
		index->stamps[sc_slot_number(index, set, slot)] =
			clock - SC_AGE_MAX;
}

/* Stamp a slot for a use; @inserted: its block was just inserted. */
void sc_touch_slot(struct sc_index *index, u32 set, u16 slot,
		   enum sc_policy policy, bool inserted)
{
	if (policy != SC_POLICY_LRU && !inserted)
		return;
	index->stamps[sc_slot_number(index, set, slot)] =
		++index->sets[set].clock;
	sc_limit_age(index, set);
}

/* Return whether a slot may be evicted. */
bool sc_is_evictable(struct sc_index *index, u32 set, u16 slot)
{
	return sc_get_slot_state(index, set, slot) == SC_SLOT_CLEAN &&
	       !sc_block_is_busy(index, set, sc_get_slot_id(index, set, slot),
				 NULL);
}

/* Return the distance between the slots of a sample of a set. */
static u32 sc_sample_stride(const struct sc_index *index)
{
	return max_t(u32, 1, index->geo.assoc / SC_SAMPLE_SLOTS);
}

/* Return an evictable slot of a random sample, or SC_NIL. */
static u16 sc_find_random_victim(struct sc_index *index, u32 set)
{
	u32 i, stride = sc_sample_stride(index), mask = index->geo.assoc - 1;
	u32 start = get_random_u32();

	for (i = 0; i <= mask; i += stride)
		if (sc_is_evictable(index, set, (start + i) & mask))
			return (start + i) & mask;
	return SC_NIL;
}

/* Return the oldest evictable slot of a sample, or SC_NIL. */
static u16 sc_find_oldest_victim(struct sc_index *index, u32 set)
{
	u32 stride = sc_sample_stride(index);
	u32 slot = get_random_u32_below(stride);
	u16 age, best = SC_NIL, best_age = 0;

	for (; slot < index->geo.assoc; slot += stride) {
		if (sc_get_slot_state(index, set, slot) != SC_SLOT_CLEAN)
			continue;
		age = sc_slot_age(index, set, slot);
		if (best != SC_NIL && age <= best_age)
			continue;
		if (!sc_is_evictable(index, set, slot))
			continue;
		best = slot;
		best_age = age;
	}
	return best;
}

/*
 * Take a slot for a block. @near is the slot of the preceding block if that was
 * just taken, or SC_NIL. @replaced tells whether a clean block was evicted.
 * Return the slot, in state SC_SLOT_FILLING, or SC_NIL.
 */
u16 sc_take_slot(struct sc_index *index, u32 set, u32 id, u16 near,
		 enum sc_policy policy, bool *replaced)
{
	u16 mask = index->geo.assoc - 1;
	u16 slot = SC_NIL;

	*replaced = false;
	if (index->sets[set].nr_used < index->geo.assoc) {
		slot = near == SC_NIL ? id & mask : (near + 1) & mask;
		if (sc_get_slot_state(index, set, slot) != SC_SLOT_FREE)
			slot = index->sets[set].first_free;
	} else {
		/*
		 * @near has just been stamped: @mask is about its age before
		 * that.
		 */
		if (near != SC_NIL && near < mask &&
		    policy != SC_POLICY_RANDOM &&
		    sc_is_evictable(index, set, near + 1) &&
		    sc_slot_age(index, set, near + 1) >= mask)
			slot = near + 1;
		if (slot == SC_NIL)
			slot = policy == SC_POLICY_RANDOM ?
				       sc_find_random_victim(index, set) :
				       sc_find_oldest_victim(index, set);
		if (slot != SC_NIL) {
			sc_remove_block(index, set, slot);
			*replaced = true;
		}
	}
	if (slot == SC_NIL)
		return SC_NIL;
	sc_insert_block(index, set, slot, id, SC_SLOT_FILLING);
	sc_touch_slot(index, set, slot, policy, true);
	return slot;
}
