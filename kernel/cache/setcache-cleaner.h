/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A round of the cleaner, for the parts that execute it: -clean, -round, -copy.
 * Only the cleaner's thread uses it, unless a field says otherwise.
 */
#ifndef SETCACHE_CLEANER_H
#define SETCACHE_CLEANER_H

#include "setcache.h"

/* Pages for the data of a round; also its limit of runs. */
#define SC_ROUND_PAGES_MAX		512

/* A dirty block of a set. */
struct sc_dirty {
	u32 id;		/* the block's id in the set */
	u16 age;	/* its age, in uses of the set */
	u16 slot;	/* its slot */
	bool chosen;	/* selected by age, not only as a neighbour */
};

/* Adjoining blocks of a set that are being cleaned. */
struct sc_run {
	struct sc_op op;		/* announcement; under the bucket's lock */
	u64 block;			/* the first block, on the origin */
	u32 nr_blocks;			/* number of blocks */
	u32 first_page;			/* its first page, index in pages */
	u32 first_slot;			/* its first slot, index in slots */
	u16 *slots;			/* slots of its blocks, at that index */
	bool has_error;			/* a bio failed; set in interrupts */
	struct sc_cleaner *cleaner;	/* the cleaner, for bi_end_io */
};

/* Memory of the cleaner. */
struct sc_cleaner {
	struct setcache *sc;			/* the cache; constant */

	/* Blocks that the round has taken, and memory for these. */
	struct page *pages[SC_ROUND_PAGES_MAX];	/* data of the blocks */
	u32 nr_pages;				/* pages in use */
	struct sc_run runs[SC_ROUND_PAGES_MAX];	/* runs of blocks */
	u32 nr_runs;				/* runs in use */
	struct sc_run *sorted_runs[SC_ROUND_PAGES_MAX]; /* runs, sorted by block */
	u16 *slots;				/* slots of the blocks */
	unsigned long *bad_slots;		/* a bit per slot: I/O failed */
	u32 nr_slots;				/* slots in use */
	u32 nr_slots_max;			/* size of slots and bad */
	struct sc_dirty *dirty;			/* dirty blocks of one set */

	/* Where the next round begins. */
	struct {
		u32 next_set;	/* the next set */
		u32 next_over;	/* the next set to check for its mark */
	} hand;
	unsigned long rest_until; /* no round before this time, in jiffies */

	/* Blocks that could not be cleaned. */
	struct {
		unsigned long *sets;	/* a bit per set that may have some */
		unsigned long retry_at;	/* jiffies of the retry; any context */
	} stuck;

	/* A block that was written just before or during its cleaning. */
	struct {
		bool valid;		/* there is such a block */
		u32 set;		/* its set */
		u32 id;			/* its id */
		struct completion taken; /* the round holds the block */
	} hot;

	/* Bios in flight. */
	struct {
		spinlock_t lock;	/* protects count; taken in interrupts */
		u32 nr_bios;		/* number of bios */
		wait_queue_head_t wait;	/* woken when a bio has ended */
	} flight;
};

/* setcache-round.c */
bool sc_round_is_full(const struct sc_cleaner *cleaner);
void sc_round_note_hot(struct sc_cleaner *cleaner, u32 set, u32 id);
void sc_round_take_hot(struct sc_cleaner *cleaner);
void sc_round_fill_over(struct sc_cleaner *cleaner);
void sc_round_fill_next(struct sc_cleaner *cleaner, bool aged_only);

/* setcache-copy.c */
bool sc_run_block_is_bad(const struct sc_run *run, u32 i);
bool sc_copy_is_stopping(const struct setcache *sc);
void sc_copy_round(struct sc_cleaner *cleaner);

#endif /* SETCACHE_CLEANER_H */
