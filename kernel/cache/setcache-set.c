// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sets of dm-setcache: which block is in which slot, and which ops use it.
 *
 * A block can be in one set only, so a set is a cache of its own. Its slots are
 * found by a hash: chains that begin in @heads, one chain per two slots. The hash
 * is the block's index in the stripe, so that the blocks of a stripe spread
 * evenly and a chain is about two long. Free slots are on a separate list, doubly
 * linked through @stamps and @nexts, which free slots do not need otherwise.
 *
 * An op announces the blocks that a request will use, as a range of ids (a
 * request is never longer than a stripe), and waits for conflicting ops. So
 * each block's slot is looked up once: the result of a lookup under the lock
 * stays valid until the request ends. Cleaning is the exception: it runs
 * alongside reads and writes, and checks the slots again at its end.
 */
#include <linux/array_size.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "setcache-set.h"

/* Upper limit of locks: about as many as requests are in flight, or more. */
#define SC_BUCKETS_MAX	1024

/*
 * Compute the fields that follow from the geometry. Return 0, or -EFBIG if
 * their types cannot hold the values.
 */
static int sc_index_compute_sizes(struct sc_index *index)
{
	const struct sc_geometry *geo = &index->geo;
	u64 stripes;

	index->block_shift = ilog2(geo->block_sectors);
	index->assoc_shift = ilog2(geo->assoc);
	index->nr_slots = geo->nr_sets * geo->assoc;
	index->nr_blocks = geo->origin_sectors >> index->block_shift;
	/* The origin's length in stripes, then in rounds over all sets. */
	stripes = DIV_ROUND_UP_ULL(geo->origin_sectors,
				   (u64)geo->block_sectors * geo->assoc);
	stripes = DIV64_U64_ROUND_UP(stripes, geo->nr_sets);
	if (stripes > BIT(SC_ID_BITS) >> index->assoc_shift ||
	    index->nr_slots > U32_MAX)
		return -EFBIG;
	return 0;
}

int sc_index_init(struct sc_index *index)
{
	const struct sc_geometry *geo = &index->geo;
	u32 i, buckets;
	int r = sc_index_compute_sizes(index);

	if (r)
		return r;
	buckets = min_t(u64, roundup_pow_of_two(geo->nr_sets), SC_BUCKETS_MAX);
	index->bucket_mask = buckets - 1;
	index->tags = vmalloc_array(index->nr_slots, sizeof(*index->tags));
	index->stamps = vmalloc_array(index->nr_slots, sizeof(*index->stamps));
	index->nexts = vmalloc_array(index->nr_slots, sizeof(*index->nexts));
	index->heads =
		vmalloc_array(index->nr_slots / 2, sizeof(*index->heads));
	index->sets = vmalloc_array(geo->nr_sets, sizeof(*index->sets));
	index->buckets = vmalloc_array(buckets, sizeof(*index->buckets));
	if (!index->tags || !index->stamps || !index->nexts ||
	    !index->heads || !index->sets || !index->buckets) {
		sc_index_exit(index);
		return -ENOMEM;
	}
	for (i = 0; i < buckets; i++) {
		spin_lock_init(&index->buckets[i].lock);
		INIT_LIST_HEAD(&index->buckets[i].active);
		INIT_LIST_HEAD(&index->buckets[i].waiting);
	}
	sc_index_clear(index);
	return 0;
}

void sc_index_exit(struct sc_index *index)
{
	vfree(index->buckets);
	vfree(index->sets);
	vfree(index->heads);
	vfree(index->nexts);
	vfree(index->stamps);
	vfree(index->tags);
	index->tags = NULL;
}

/* Add a slot to the head of its set's list of free slots. */
static void sc_free_list_add(struct sc_index *index, u32 set, u16 slot)
{
	u64 base = sc_slot_number(index, set, 0);
	struct sc_set *s = &index->sets[set];

	index->stamps[base + slot] = SC_NIL;
	index->nexts[base + slot] = s->first_free;
	if (s->first_free != SC_NIL)
		index->stamps[base + s->first_free] = slot;
	s->first_free = slot;
}

/* Remove a slot from its set's list of free slots. */
static void sc_free_list_del(struct sc_index *index, u32 set, u16 slot)
{
	u64 base = sc_slot_number(index, set, 0);
	u16 before = index->stamps[base + slot];
	u16 behind = index->nexts[base + slot];

	if (before == SC_NIL)
		index->sets[set].first_free = behind;
	else
		index->nexts[base + before] = behind;
	if (behind != SC_NIL)
		index->stamps[base + behind] = before;
	index->stamps[base + slot] = index->sets[set].clock;
}

/* Empty the cache. No op is active. */
void sc_index_clear(struct sc_index *index)
{
	u32 set, slot;

	memset(index->tags, 0, index->nr_slots * sizeof(*index->tags));
	memset(index->heads, 0xff, index->nr_slots / 2 * sizeof(*index->heads));
	memset(index->sets, 0, index->geo.nr_sets * sizeof(*index->sets));
	for (set = 0; set < index->geo.nr_sets; set++) {
		index->sets[set].first_free = SC_NIL;
		/* In this order slot 0 becomes the head of the list. */
		for (slot = index->geo.assoc; slot--;)
			sc_free_list_add(index, set, slot);
		cond_resched();
	}
	atomic_long_set(&index->nr_used, 0);
	atomic_long_set(&index->nr_dirty, 0);
	atomic_long_set(&index->nr_retired, 0);
	atomic_long_set(&index->nr_stuck, 0);
}

/*
 * Return whether @next must wait while @op is active. A write may begin during
 * cleaning, which detects it by the slots' states, unless the cleaner excludes
 * writes. The cleaner may not begin during a write: the write has already
 * changed the state, and its data are in flight.
 */
bool sc_op_conflicts(const struct sc_op *op, const struct sc_op *next)
{
	if (op->set != next->set || op->first_id > next->last_id ||
	    next->first_id > op->last_id)
		return false;
	if (op->class == SC_CLASS_CLEANER)
		return next->class != SC_CLASS_SHARED &&
		       next->class != SC_CLASS_EXCLUSIVE;
	if (op->class == SC_CLASS_HOLDER)
		return next->class != SC_CLASS_SHARED;
	return op->class != SC_CLASS_SHARED ||
	       next->class == SC_CLASS_EXCLUSIVE ||
	       next->class == SC_CLASS_REMOVAL;
}

/*
 * Return whether an op has to wait: for an active op, or for a waiting op
 * that came earlier. Earlier ops are before @waiting_until, or all if it is
 * NULL.
 */
bool sc_op_is_blocked(struct sc_bucket *bucket, const struct sc_op *op,
		      const struct list_head *waiting_until)
{
	const struct sc_op *other;

	list_for_each_entry(other, &bucket->active, link)
		if (sc_op_conflicts(other, op))
			return true;
	list_for_each_entry(other, &bucket->waiting, link) {
		if (&other->link == waiting_until)
			break;
		if (sc_op_conflicts(other, op))
			return true;
	}
	return false;
}

/*
 * Cut an op before the first block for which it would have to wait. Return
 * whether a block is left.
 */
bool sc_op_shorten(struct sc_bucket *bucket, struct sc_op *op)
{
	const struct list_head *lists[] = { &bucket->active, &bucket->waiting };
	const struct sc_op *other;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_entry(other, lists[i], link) {
			if (!sc_op_conflicts(other, op))
				continue;
			if (other->first_id <= op->first_id)
				return false;
			op->last_id = other->first_id - 1;
		}
	}
	return true;
}

/* Return whether an active op other than @but covers a block. */
bool sc_block_is_busy(struct sc_index *index, u32 set, u32 id,
		      const struct sc_op *but)
{
	const struct sc_op *op;

	list_for_each_entry(op, &sc_get_bucket(index, set)->active, link)
		if (op != but && op->set == set && op->first_id <= id &&
		    id <= op->last_id)
			return true;
	return false;
}

/* Compute the set of a block, and its id in the set. */
void sc_locate_block(const struct sc_index *index, u64 block, u32 *set, u32 *id)
{
	u64 round, rest;

	round = div64_u64_rem(block >> index->assoc_shift, index->geo.nr_sets,
			      &rest);
	*set = rest;
	*id = (round << index->assoc_shift) |
	      (block & (index->geo.assoc - 1));
}

/* Return the block that has an id in a set. */
u64 sc_id_to_block(const struct sc_index *index, u32 set, u32 id)
{
	u64 stripe = (u64)(id >> index->assoc_shift) * index->geo.nr_sets + set;

	return (stripe << index->assoc_shift) | (id & (index->geo.assoc - 1));
}

/* Return the head of the chain of an id. */
static u16 *sc_chain_head(const struct sc_index *index, u32 set, u32 id)
{
	return &index->heads[(sc_slot_number(index, set, 0) >> 1) +
			     (id & (index->geo.assoc / 2 - 1))];
}

/* Return the slot of a block, or SC_NIL. */
u16 sc_find_slot(const struct sc_index *index, u32 set, u32 id)
{
	u64 base = sc_slot_number(index, set, 0);
	u16 slot = *sc_chain_head(index, set, id);

	while (slot != SC_NIL && (index->tags[base + slot] & SC_ID_MASK) != id)
		slot = index->nexts[base + slot];
	return slot;
}

/* Put a block into a free slot. */
void sc_insert_block(struct sc_index *index, u32 set, u16 slot, u32 id,
		     enum sc_slot_state state)
{
	u64 base = sc_slot_number(index, set, 0);
	u16 *head = sc_chain_head(index, set, id);

	sc_free_list_del(index, set, slot);
	index->nexts[base + slot] = *head;
	*head = slot;
	index->tags[base + slot] = id;
	index->sets[set].nr_used++;
	atomic_long_inc(&index->nr_used);
	sc_set_slot_state(index, set, slot, state);
}

/* Remove a block from its slot, and free the slot. */
void sc_remove_block(struct sc_index *index, u32 set, u16 slot)
{
	u64 base = sc_slot_number(index, set, 0);
	u16 *at = sc_chain_head(index, set, sc_get_slot_id(index, set, slot));

	while (*at != slot) {
		if (WARN_ON_ONCE(*at == SC_NIL))
			return;
		at = &index->nexts[base + *at];
	}
	*at = index->nexts[base + slot];
	sc_set_slot_state(index, set, slot, SC_SLOT_FREE);
	index->tags[base + slot] = 0;
	index->sets[set].nr_used--;
	atomic_long_dec(&index->nr_used);
	sc_free_list_add(index, set, slot);
}

/* Make a free slot suspect or retired. */
void sc_withdraw_slot(struct sc_index *index, u32 set, u16 slot,
		      enum sc_slot_state state)
{
	sc_free_list_del(index, set, slot);
	sc_set_slot_state(index, set, slot, state);
	index->sets[set].nr_used++;
	if (state == SC_SLOT_RETIRED)
		atomic_long_inc(&index->nr_retired);
}

/* Free a slot that was suspect. */
void sc_restore_slot(struct sc_index *index, u32 set, u16 slot)
{
	sc_set_slot_state(index, set, slot, SC_SLOT_FREE);
	index->sets[set].nr_used--;
	sc_free_list_add(index, set, slot);
}

/* Change the state of a slot, and the counters that depend on it. */
void sc_set_slot_state(struct sc_index *index, u32 set, u16 slot,
		       enum sc_slot_state state)
{
	u32 *tag = &index->tags[sc_slot_number(index, set, slot)];
	enum sc_slot_state old = *tag >> SC_ID_BITS;
	bool was = sc_is_dirty(old);
	bool is = sc_is_dirty(state);

	if (old == SC_SLOT_STUCK)
		atomic_long_dec(&index->nr_stuck);
	if (state == SC_SLOT_STUCK)
		atomic_long_inc(&index->nr_stuck);
	*tag = (*tag & SC_ID_MASK) | (u32)state << SC_ID_BITS;
	if (is && !was) {
		if (!index->sets[set].nr_dirty++)
			index->sets[set].dirty_since_s = jiffies / HZ;
		atomic_long_inc(&index->nr_dirty);
	} else if (was && !is) {
		index->sets[set].nr_dirty--;
		atomic_long_dec(&index->nr_dirty);
	}
}
