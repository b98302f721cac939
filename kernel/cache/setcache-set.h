/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets of dm-setcache: which block is in which slot, and which ops use it.
 *
 * A block has a number on the origin, and a set with an id in it. Functions
 * that take an id or a slot need the lock of the set's bucket.
 */
#ifndef SETCACHE_SET_H
#define SETCACHE_SET_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "setcache-format.h"

/* Sectors of a block: a power of two. */
#define SC_BLOCK_SECTORS_MIN		1
#define SC_BLOCK_SECTORS_MAX		128

/* Slots of a set: a power of two. A slot's number has 16 bits. */
#define SC_ASSOC_MIN		16
#define SC_ASSOC_MAX		4096
#define SC_NIL			0xffff

/*
 * A block's id in its set: the round of the disk over the sets, and the block's
 * index in the stripe. A tag is the id and the slot's state.
 */
#define SC_ID_BITS		28
#define SC_ID_MASK		((u32)GENMASK(SC_ID_BITS - 1, 0))

/*
 * States of a slot. From SC_SLOT_DIRTY to SC_SLOT_STUCK, the record on the SSD
 * may say dirty.
 *
 *	free -> filling -> clean <-> dirty -> cleaning -> cleaned -> clean
 *	                                  <-          <-
 *	                       stuck <-> dirty, ... -> discarded -> free
 *	filling, clean, discarded -> suspect -> free or retired
 *
 * A write makes a block dirty again that is cleaning, cleaned or stuck. A
 * suspect or retired slot has no block, like a free slot, so its loss loses no
 * data.
 */
enum sc_slot_state {
	SC_SLOT_FREE,		/* has no block */
	SC_SLOT_FILLING,	/* its block is being written to it */
	SC_SLOT_CLEAN,		/* equals the origin */
	SC_SLOT_DIRTY,		/* newer than the origin */
	SC_SLOT_CLEANING,	/* dirty, being written to the origin */
	SC_SLOT_CLEANED,	/* written there; record to be freed */
	SC_SLOT_DISCARDED,	/* was dirty; record to be freed */
	SC_SLOT_STUCK,		/* dirty, and cleaning it has failed */
	SC_SLOT_SUSPECT,	/* I/O there has failed; to be tested */
	SC_SLOT_RETIRED,	/* its sectors are bad, or hold records */
};

/* Classes of ops; sc_op_conflicts() tells which may use the same blocks at a time. */
enum sc_class {
	/* Reads that change nothing. */
	SC_CLASS_SHARED,
	/* Writes, and reads that fill. */
	SC_CLASS_EXCLUSIVE,
	/* The cleaner at dirty blocks, which stay where they are. */
	SC_CLASS_CLEANER,
	/* The cleaner at dirty blocks, with writes excluded. */
	SC_CLASS_HOLDER,
	/* Removal of dirty blocks: discards, and writes that the SSD fails. */
	SC_CLASS_REMOVAL,
};

/* An op: the announcement that a request, or the cleaner, uses blocks of a set. */
struct sc_op {
	struct list_head link;	/* entry in a list of the bucket; its lock */
	u32 set;		/* the set */
	u32 first_id;		/* id of the first block */
	u32 last_id;		/* id of the last block */
	enum sc_class class;	/* which ops it conflicts with */
	u8 mode;		/* enum sc_mode; under the bucket's lock */
};

/* A bucket: sets that share a lock. */
struct sc_bucket {
	/*
	 * Protects the sets, their slots, and the lists. Taken in interrupts;
	 * deferred.lock nests inside.
	 */
	spinlock_t lock;
	struct list_head active;	/* ops that use their blocks */
	/* Ops that wait, oldest first: bios, and SC_CLASS_HOLDER. */
	struct list_head waiting;
} ____cacheline_aligned_in_smp;

/* A set; protected by its bucket's lock. */
struct sc_set {
	u16 clock;	/* number of uses, for stamps */
	u16 nr_used;	/* slots that are not free */
	u16 nr_dirty;	/* dirty slots; also read without the lock */
	u16 first_free;	/* first free slot, or SC_NIL */
	u32 dirty_since_s; /* time of its first dirty block, in seconds (jiffies / HZ) */
};

/* All sets and slots of a cache. */
struct sc_index {
	/* These are constant. */
	struct sc_geometry geo;	/* the geometry */
	u32 block_shift;	/* log2 of a block's sectors */
	u32 assoc_shift;	/* log2 of a set's slots */
	u64 nr_blocks;		/* whole blocks of the origin: only these are cached */
	u64 nr_slots;		/* number of slots, of all sets */
	u32 bucket_mask;	/* number of buckets, less one */

	/* Arrays indexed by slot; under the lock of the set's bucket. */
	u32 *tags;		/* state and id */
	u16 *stamps;		/* time of use; of a free slot, the previous free slot */
	u16 *nexts;		/* next slot of the chain; of a free slot, the next free slot */
	u16 *heads;		/* first slot of a chain, one chain per two slots */

	/* Arrays indexed by set, and by bucket. */
	struct sc_set *sets;		/* the sets */
	struct sc_bucket *buckets;	/* the buckets */

	/* Counts of slots, over all sets; atomic. */
	atomic_long_t nr_used;		/* slots with a block */
	atomic_long_t nr_dirty;		/* slots with a dirty block */
	atomic_long_t nr_stuck;		/* dirty slots that are stuck */
	atomic_long_t nr_retired;	/* slots that are retired */
};

/* Start and end of a cache; no op is active. */
int sc_index_init(struct sc_index *index);
void sc_index_exit(struct sc_index *index);
void sc_index_clear(struct sc_index *index);

/* Conflicts of ops. */
bool sc_op_conflicts(const struct sc_op *op, const struct sc_op *next);
bool sc_op_is_blocked(struct sc_bucket *bucket, const struct sc_op *op,
		      const struct list_head *waiting_until);
bool sc_op_shorten(struct sc_bucket *bucket, struct sc_op *op);
bool sc_block_is_busy(struct sc_index *index, u32 set, u32 id,
		      const struct sc_op *but);

/* Blocks and slots. */
u16 sc_find_slot(const struct sc_index *index, u32 set, u32 id);
void sc_insert_block(struct sc_index *index, u32 set, u16 slot, u32 id,
		     enum sc_slot_state state);
void sc_remove_block(struct sc_index *index, u32 set, u16 slot);
void sc_withdraw_slot(struct sc_index *index, u32 set, u16 slot,
		      enum sc_slot_state state);
void sc_restore_slot(struct sc_index *index, u32 set, u16 slot);
void sc_set_slot_state(struct sc_index *index, u32 set, u16 slot,
		       enum sc_slot_state state);

/* Arithmetic; any context, and no lock. */
void sc_locate_block(const struct sc_index *index, u64 block, u32 *set,
		     u32 *id);
u64 sc_id_to_block(const struct sc_index *index, u32 set, u32 id);

/* Return the number of a set's slot among all slots of the cache. */
static inline u64 sc_slot_number(const struct sc_index *index, u32 set,
				 u16 slot)
{
	return ((u64)set << index->assoc_shift) + slot;
}

static inline enum sc_slot_state sc_get_slot_state(const struct sc_index *index,
						   u32 set, u16 slot)
{
	return index->tags[sc_slot_number(index, set, slot)] >> SC_ID_BITS;
}

/* Return whether a state means that the record on the SSD may say dirty. */
static inline bool sc_is_dirty(enum sc_slot_state state)
{
	return state >= SC_SLOT_DIRTY && state <= SC_SLOT_STUCK;
}

static inline u32 sc_get_slot_id(const struct sc_index *index, u32 set,
				 u16 slot)
{
	return index->tags[sc_slot_number(index, set, slot)] & SC_ID_MASK;
}

static inline struct sc_bucket *sc_get_bucket(const struct sc_index *index,
					      u32 set)
{
	return &index->buckets[set & index->bucket_mask];
}

/* Return the first sector of a slot's data on the SSD. */
static inline sector_t sc_slot_sector(const struct sc_index *index, u32 set,
				      u16 slot)
{
	return index->geo.data_sector +
	       (sc_slot_number(index, set, slot) << index->block_shift);
}

#endif /* SETCACHE_SET_H */
