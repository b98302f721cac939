/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets of dm-setcache: which block is in which slot, and who uses it.
 *
 * Of a block there are its number on the origin, its set, and its id there. For
 * all that takes an id or a slot, the lock of the set's bucket is held.
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

/* Blocks in sectors, powers of two. */
#define SC_MIN_BLOCK		1
#define SC_MAX_BLOCK		128

/* Slots of a set, powers of two. A slot's number has 16 bits. */
#define SC_MIN_ASSOC		16
#define SC_MAX_ASSOC		4096
#define SC_NIL			0xffff

/*
 * A block is known in its set by an id: the round of the disk over the sets,
 * and its place in the set's stripe. A tag is the id and the slot's state.
 */
#define SC_ID_BITS		28
#define SC_ID_MASK		((u32)GENMASK(SC_ID_BITS - 1, 0))

/*
 * A slot. From SC_SLOT_DIRTY to SC_SLOT_STUCK, the record on the SSD may say
 * dirty.
 *
 *	free -> filling -> clean <-> dirty -> cleaning -> cleaned -> clean
 *	                                  <-          <-
 *	                       stuck <-> dirty, ... -> discarded -> free
 *	filling, clean, discarded -> suspect -> free or retired
 *
 * A write makes a block dirty again that is cleaning, cleaned or stuck. A slot
 * that is suspect or retired has no block, like a free one, and nothing can be
 * lost there.
 */
enum sc_slot_state {
	SC_SLOT_FREE,		/* has no block */
	SC_SLOT_FILLING,	/* its block is being written there */
	SC_SLOT_CLEAN,		/* holds what the origin does */
	SC_SLOT_DIRTY,		/* holds what the origin does not */
	SC_SLOT_CLEANING,	/* dirty, and is being written to the origin */
	SC_SLOT_CLEANED,	/* has been, durably; the record is to say so */
	SC_SLOT_DISCARDED,	/* was dirty; the record is to say free */
	SC_SLOT_STUCK,		/* dirty, and cleaning it has failed */
	SC_SLOT_SUSPECT,	/* I/O there has failed, it is to be tried */
	SC_SLOT_RETIRED,	/* its place is bad, or holds records */
};

/* Who may be at the same blocks at the same time: sc_conflict(). */
enum sc_class {
	/* Reads that change nothing. */
	SC_CLASS_SHARED,
	/* Writes, and reads that fill. */
	SC_CLASS_EXCLUSIVE,
	/* The cleaner at dirty blocks, which stay where they are. */
	SC_CLASS_CLEANER,
	/* The same, and nobody writes there until it is done. */
	SC_CLASS_HOLDER,
	/* The end of dirty blocks: discards, and writes the SSD refuses. */
	SC_CLASS_REMOVAL,
};

/* An announcement of who is at work on blocks of a set. */
struct sc_op {
	struct list_head link;	/* place in the bucket's lists; by its lock */
	u32 set;		/* the set */
	u32 first;		/* id of the first block */
	u32 last;		/* id of the last block */
	enum sc_class class;	/* whom it may meet */
	u8 mode;		/* enum sc_mode; by the bucket's lock */
};

/* Some sets that have a lock together. */
struct sc_bucket {
	/*
	 * Protects the sets, their slots, and the lists. Taken in interrupts,
	 * and outside of the lock of the deferred bios.
	 */
	spinlock_t lock;
	struct list_head active;	/* ops at work */
	/* Ops that wait, the oldest first: bios, and SC_CLASS_HOLDER. */
	struct list_head waiting;
} ____cacheline_aligned_in_smp;

/* A set; protected by its bucket's lock. */
struct sc_set {
	u16 clock;	/* number of uses, for stamps */
	u16 used;	/* number of slots that are not free */
	u16 dirty;	/* number of dirty slots; also read without the lock */
	u16 free;	/* first free slot, or SC_NIL */
	u32 since;	/* second (jiffies / HZ) of its first dirty block */
};

/* What is where. */
struct sc_index {
	/* These are constant. */
	struct sc_geometry geo;	/* the geometry */
	u32 block_shift;	/* sectors of a block, as a power of two */
	u32 assoc_shift;	/* slots of a set, as a power of two */
	u64 blocks;		/* whole blocks of the origin: what is cached */
	u64 slots;		/* number of slots */
	u32 bucket_mask;	/* number of buckets, less one */

	/* Arrays by slot; by the lock of the set's bucket. */
	u32 *tags;		/* state and id */
	u16 *stamps;		/* time of use; or the free slot before it */
	u16 *nexts;		/* next slot of the chain; or next free one */
	u16 *heads;		/* first slot of a chain, one for two slots */

	/* Arrays by set, and by bucket. */
	struct sc_set *sets;		/* the sets */
	struct sc_bucket *buckets;	/* the buckets */

	/* Numbers of slots, for all; atomic. */
	atomic_long_t nr_used;		/* slots with a block */
	atomic_long_t nr_dirty;		/* slots with a dirty block */
	atomic_long_t nr_stuck;		/* of these, the stuck ones */
	atomic_long_t nr_retired;	/* slots that are retired */
};

/* The start and the end of a cache; nobody is at work. */
int sc_index_init(struct sc_index *index);
void sc_index_exit(struct sc_index *index);
void sc_index_clear(struct sc_index *index);

/* Who waits for whom. */
bool sc_conflict(const struct sc_op *op, const struct sc_op *next);
bool sc_busy(struct sc_bucket *bucket, const struct sc_op *op,
	     const struct list_head *waiting_until);
bool sc_cut(struct sc_bucket *bucket, struct sc_op *op);
bool sc_slot_busy(struct sc_index *index, u32 set, u32 id,
		  const struct sc_op *but);

/* Blocks and slots. */
u16 sc_find(const struct sc_index *index, u32 set, u32 id);
void sc_insert(struct sc_index *index, u32 set, u16 slot, u32 id,
	       enum sc_slot_state state);
void sc_remove(struct sc_index *index, u32 set, u16 slot);
void sc_withdraw(struct sc_index *index, u32 set, u16 slot,
		 enum sc_slot_state state);
void sc_restore(struct sc_index *index, u32 set, u16 slot);
void sc_set_state(struct sc_index *index, u32 set, u16 slot,
		  enum sc_slot_state state);

/* Arithmetic; any context, and no lock. */
void sc_locate(const struct sc_index *index, u64 block, u32 *set, u32 *id);
u64 sc_block_of(const struct sc_index *index, u32 set, u32 id);

/* Return the number of a slot of a set, among all. */
static inline u64 sc_slot(const struct sc_index *index, u32 set, u16 slot)
{
	return ((u64)set << index->assoc_shift) + slot;
}

static inline enum sc_slot_state sc_state(const struct sc_index *index,
					  u32 set, u16 slot)
{
	return index->tags[sc_slot(index, set, slot)] >> SC_ID_BITS;
}

/* Return whether a state means that the record on the SSD may say dirty. */
static inline bool sc_is_dirty(enum sc_slot_state state)
{
	return state >= SC_SLOT_DIRTY && state <= SC_SLOT_STUCK;
}

static inline u32 sc_id(const struct sc_index *index, u32 set, u16 slot)
{
	return index->tags[sc_slot(index, set, slot)] & SC_ID_MASK;
}

static inline struct sc_bucket *sc_bucket(const struct sc_index *index, u32 set)
{
	return &index->buckets[set & index->bucket_mask];
}

/* Return where the data of a slot are on the SSD. */
static inline sector_t sc_slot_sector(const struct sc_index *index, u32 set,
				      u16 slot)
{
	return index->geo.data + (sc_slot(index, set, slot) <<
				  index->block_shift);
}

#endif /* SETCACHE_SET_H */
