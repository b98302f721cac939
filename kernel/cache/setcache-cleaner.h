/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A round of the cleaner, for those parts that make it: -clean, -round, -copy.
 * All of it is of the cleaner's thread, unless a field says otherwise.
 */
#ifndef SETCACHE_CLEANER_H
#define SETCACHE_CLEANER_H

#include "setcache.h"

/* Pages that a round of cleaning takes. */
#define SC_ROUND_PAGES		512

/* A dirty block of a set. */
struct sc_dirty {
	u32 id;		/* which block */
	u16 age;	/* its age, by its stamp */
	u16 slot;	/* its slot */
	bool chosen;	/* wanted for its own sake, not only as a neighbour */
};

/* Adjoining blocks of a set that are being cleaned. */
struct sc_run {
	struct sc_op op;		/* announcement; by the bucket's lock */
	u64 block;			/* the first block, on the origin */
	u32 count;			/* number of blocks */
	u32 page;			/* its first page, of the round's */
	u32 first;			/* its first slot, of the round's */
	u16 *slots;			/* slots of the blocks, from there on */
	bool error;			/* a bio failed; set in interrupts */
	struct sc_cleaner *cleaner;	/* the cleaner, for the end of bios */
};

/* Memory of the cleaner. */
struct sc_cleaner {
	struct setcache *sc;			/* the cache; constant */

	/* What a round has taken, and memory for that. */
	struct page *pages[SC_ROUND_PAGES];	/* data of the blocks */
	u32 nr_pages;				/* how many are taken */
	struct sc_run runs[SC_ROUND_PAGES];	/* runs of blocks */
	u32 nr_runs;				/* how many are taken */
	struct sc_run *order[SC_ROUND_PAGES];	/* runs, by their place */
	u16 *slots;				/* slots of the blocks */
	unsigned long *bad;			/* a bit each: its I/O failed */
	u32 nr_slots;				/* how many are taken */
	u32 max_slots;				/* how many there may be */
	struct sc_dirty *dirty;			/* dirty blocks of one set */

	/* Where the next round begins. */
	struct {
		u32 next;	/* the set that is next */
		u32 over;	/* first set to look at for one over its mark */
	} hand;
	unsigned long rest;	/* jiffies: no round before */

	/* Blocks that could not be cleaned. */
	struct {
		unsigned long *sets;	/* a bit a set that may have some */
		unsigned long retry;	/* jiffies: tried again; anyone's */
	} stuck;

	/* A block that was written when it was to be cleaned, or meanwhile. */
	struct {
		bool any;		/* there is one */
		u32 set;		/* its set */
		u32 id;			/* its id */
		struct completion held;	/* the round has it now */
	} hot;

	/* Bios under way. */
	struct {
		spinlock_t lock;	/* protects count; in interrupts */
		u32 count;		/* number of bios */
		wait_queue_head_t wait;	/* woken when one has ended */
	} flight;
};

/* setcache-round.c */
bool sc_round_full(const struct sc_cleaner *cleaner);
void sc_note_hot(struct sc_cleaner *cleaner, u32 set, u32 id);
void sc_take_hot(struct sc_cleaner *cleaner);
void sc_fill_over(struct sc_cleaner *cleaner);
void sc_fill_next(struct sc_cleaner *cleaner, bool aged_only);

/* setcache-copy.c */
bool sc_run_bad(const struct sc_run *run, u32 i);
bool sc_gives_up(const struct setcache *sc);
void sc_copy_round(struct sc_cleaner *cleaner);

#endif /* SETCACHE_CLEANER_H */
