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
#define SC_MAX_BUCKETS	1024

/*
 * Compute the fields that follow from the geometry. Return 0, or -EFBIG if
 * their types cannot hold the values.
 */
static int sc_index_size(struct sc_index *index)
{
	const struct sc_geometry *geo = &index->geo;
	u64 stripes;

	index->block_shift = ilog2(geo->block);
	index->assoc_shift = ilog2(geo->assoc);
	index->slots = geo->sets * geo->assoc;
	index->blocks = geo->origin >> index->block_shift;
	/* The origin's length in stripes, then in rounds over all sets. */
	stripes = DIV_ROUND_UP_ULL(geo->origin, (u64)geo->block * geo->assoc);
	stripes = DIV64_U64_ROUND_UP(stripes, geo->sets);
	if (stripes > BIT(SC_ID_BITS) >> index->assoc_shift ||
	    index->slots > U32_MAX)
		return -EFBIG;
	return 0;
}

int sc_index_init(struct sc_index *index)
{
	const struct sc_geometry *geo = &index->geo;
	u32 i, buckets;
	int r = sc_index_size(index);

	if (r)
		return r;
	buckets = min_t(u64, roundup_pow_of_two(geo->sets), SC_MAX_BUCKETS);
	index->bucket_mask = buckets - 1;
	index->tags = vmalloc_array(index->slots, sizeof(*index->tags));
	index->stamps = vmalloc_array(index->slots, sizeof(*index->stamps));
	index->nexts = vmalloc_array(index->slots, sizeof(*index->nexts));
	index->heads = vmalloc_array(index->slots / 2, sizeof(*index->heads));
	index->sets = vmalloc_array(geo->sets, sizeof(*index->sets));
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
static void sc_free_add(struct sc_index *index, u32 set, u16 slot)
{
	u64 base = sc_slot(index, set, 0);
	struct sc_set *s = &index->sets[set];

	index->stamps[base + slot] = SC_NIL;
	index->nexts[base + slot] = s->free;
	if (s->free != SC_NIL)
		index->stamps[base + s->free] = slot;
	s->free = slot;
}

/* Remove a slot from its set's list of free slots. */
static void sc_free_del(struct sc_index *index, u32 set, u16 slot)
{
	u64 base = sc_slot(index, set, 0);
	u16 before = index->stamps[base + slot];
	u16 behind = index->nexts[base + slot];

	if (before == SC_NIL)
		index->sets[set].free = behind;
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

	memset(index->tags, 0, index->slots * sizeof(*index->tags));
	memset(index->heads, 0xff, index->slots / 2 * sizeof(*index->heads));
	memset(index->sets, 0, index->geo.sets * sizeof(*index->sets));
	for (set = 0; set < index->geo.sets; set++) {
		index->sets[set].free = SC_NIL;
		/* In this order slot 0 becomes the head of the list. */
		for (slot = index->geo.assoc; slot--;)
			sc_free_add(index, set, slot);
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
bool sc_conflict(const struct sc_op *op, const struct sc_op *next)
{
	if (op->set != next->set || op->first > next->last ||
	    next->first > op->last)
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
bool sc_busy(struct sc_bucket *bucket, const struct sc_op *op,
	     const struct list_head *waiting_until)
{
	const struct sc_op *other;

	list_for_each_entry(other, &bucket->active, link)
		if (sc_conflict(other, op))
			return true;
	list_for_each_entry(other, &bucket->waiting, link) {
		if (&other->link == waiting_until)
			break;
		if (sc_conflict(other, op))
			return true;
	}
	return false;
}

/*
 * Cut an op before the first block for which it would have to wait. Return
 * whether a block is left.
 */
bool sc_cut(struct sc_bucket *bucket, struct sc_op *op)
{
	const struct list_head *lists[] = { &bucket->active, &bucket->waiting };
	const struct sc_op *other;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_entry(other, lists[i], link) {
			if (!sc_conflict(other, op))
				continue;
			if (other->first <= op->first)
				return false;
			op->last = other->first - 1;
		}
	}
	return true;
}

/* Return whether an active op other than @but covers a block. */
bool sc_slot_busy(struct sc_index *index, u32 set, u32 id,
		  const struct sc_op *but)
{
	const struct sc_op *op;

	list_for_each_entry(op, &sc_bucket(index, set)->active, link)
		if (op != but && op->set == set && op->first <= id &&
		    id <= op->last)
			return true;
	return false;
}

/* Compute the set of a block, and its id in the set. */
void sc_locate(const struct sc_index *index, u64 block, u32 *set, u32 *id)
{
	u64 round, rest;

	round = div64_u64_rem(block >> index->assoc_shift, index->geo.sets,
			      &rest);
	*set = rest;
	*id = (round << index->assoc_shift) |
	      (block & (index->geo.assoc - 1));
}

/* Return the block that has an id in a set. */
u64 sc_block_of(const struct sc_index *index, u32 set, u32 id)
{
	u64 stripe = (u64)(id >> index->assoc_shift) * index->geo.sets + set;

	return (stripe << index->assoc_shift) | (id & (index->geo.assoc - 1));
}

/* Return the head of the chain of an id. */
static u16 *sc_head(const struct sc_index *index, u32 set, u32 id)
{
	return &index->heads[(sc_slot(index, set, 0) >> 1) +
			     (id & (index->geo.assoc / 2 - 1))];
}

/* Return the slot of a block, or SC_NIL. */
u16 sc_find(const struct sc_index *index, u32 set, u32 id)
{
	u64 base = sc_slot(index, set, 0);
	u16 slot = *sc_head(index, set, id);

	while (slot != SC_NIL && (index->tags[base + slot] & SC_ID_MASK) != id)
		slot = index->nexts[base + slot];
	return slot;
}

/* Put a block into a free slot. */
void sc_insert(struct sc_index *index, u32 set, u16 slot, u32 id,
	       enum sc_slot_state state)
{
	u64 base = sc_slot(index, set, 0);
	u16 *head = sc_head(index, set, id);

	sc_free_del(index, set, slot);
	index->nexts[base + slot] = *head;
	*head = slot;
	index->tags[base + slot] = id;
	index->sets[set].used++;
	atomic_long_inc(&index->nr_used);
	sc_set_state(index, set, slot, state);
}

/* Remove a block from its slot, and free the slot. */
void sc_remove(struct sc_index *index, u32 set, u16 slot)
{
	u64 base = sc_slot(index, set, 0);
	u16 *at = sc_head(index, set, sc_id(index, set, slot));

	while (*at != slot) {
		if (WARN_ON_ONCE(*at == SC_NIL))
			return;
		at = &index->nexts[base + *at];
	}
	*at = index->nexts[base + slot];
	sc_set_state(index, set, slot, SC_SLOT_FREE);
	index->tags[base + slot] = 0;
	index->sets[set].used--;
	atomic_long_dec(&index->nr_used);
	sc_free_add(index, set, slot);
}

/* Make a free slot suspect or retired. */
void sc_withdraw(struct sc_index *index, u32 set, u16 slot,
		 enum sc_slot_state state)
{
	sc_free_del(index, set, slot);
	sc_set_state(index, set, slot, state);
	index->sets[set].used++;
	if (state == SC_SLOT_RETIRED)
		atomic_long_inc(&index->nr_retired);
}

/* Free a slot that was suspect. */
void sc_restore(struct sc_index *index, u32 set, u16 slot)
{
	sc_set_state(index, set, slot, SC_SLOT_FREE);
	index->sets[set].used--;
	sc_free_add(index, set, slot);
}

/* Change the state of a slot, and the counters that depend on it. */
void sc_set_state(struct sc_index *index, u32 set, u16 slot,
		  enum sc_slot_state state)
{
	u32 *tag = &index->tags[sc_slot(index, set, slot)];
	enum sc_slot_state old = *tag >> SC_ID_BITS;
	bool was = sc_is_dirty(old);
	bool is = sc_is_dirty(state);

	if (old == SC_SLOT_STUCK)
		atomic_long_dec(&index->nr_stuck);
	if (state == SC_SLOT_STUCK)
		atomic_long_inc(&index->nr_stuck);
	*tag = (*tag & SC_ID_MASK) | (u32)state << SC_ID_BITS;
	if (is && !was) {
		if (!index->sets[set].dirty++)
			index->sets[set].since = jiffies / HZ;
		atomic_long_inc(&index->nr_dirty);
	} else if (was && !is) {
		index->sets[set].dirty--;
		atomic_long_dec(&index->nr_dirty);
	}
}
