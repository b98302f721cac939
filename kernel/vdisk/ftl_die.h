/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A die as the files of the translation layer see it: its map, its blocks and
 * the logs that are written into them.
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FTL_DIE_H
#define ISOBLK_VDISK_FTL_DIE_H

#include <linux/limits.h>
#include <linux/types.h>

#include "ftl.h"
#include "ftl_map.h"

/* The number of a block that is none. So a die has fewer. */
#define FTL_NO_BLOCK	U16_MAX

/* What a block is used for. */
enum ftl_state {
	FTL_FREE,	/* nothing; on the list of free blocks */
	FTL_OPEN,	/* the end of a log; on no list */
	FTL_CLOSED,	/* full; on the list of its valid count, if not fast */
	FTL_VICTIM,	/* being emptied; on no list */
};

/* A block. */
struct ftl_block {
	u16 valid;	/* units that the map says are here */
	u16 next;	/* next block of the list it is on, or FTL_NO_BLOCK */
	u16 prev;	/* previous block of that list, or FTL_NO_BLOCK */
	u8 state;	/* enum ftl_state */
	u32 erases;	/* number of times that it was erased */
};

/* A log: the block that the next units go to. */
struct ftl_log {
	u16 block;	/* open block, or FTL_NO_BLOCK */
	u32 used;	/* used slots of the open block, or of the last one */
};

/* Free blocks, from the least worn one on. */
struct ftl_free {
	u16 head;	/* first block, or FTL_NO_BLOCK */
	u16 tail;	/* last block, or FTL_NO_BLOCK */
	u32 count;	/* number of blocks */
};

/* Closed blocks, by how many valid units they have. */
struct ftl_closed {
	u16 *by_valid;	/* first block with so many, or FTL_NO_BLOCK */
	u32 least;	/* least such number; above all if there is none */
};

/* What the host writes to a die. */
struct ftl_host {
	struct ftl_log log[FTL_NR_POOLS]; /* its logs, by ftl_pool */
	enum ftl_pool last; /* pool that it last wrote to */
	u32 wrote;	/* units of the program that is being put together */
	s64 debt;	/* slots of the victim due, times units a block */
};

/* A block that is being emptied. */
struct ftl_victim {
	u16 block;	/* the block, or FTL_NO_BLOCK */
	u32 at;		/* number of its slots that have been looked at */
	u32 gain;	/* slots that were not valid when it was chosen */
};

/* What garbage collection does on a die. */
struct ftl_gc {
	struct ftl_log log; /* log of what is moved */
	struct ftl_victim victim[FTL_NR_POOLS]; /* victims, by ftl_pool */
	u32 rows;	/* full rows of @log without a program as yet */
};

/* How worn the blocks of a die are, but for the fast ones. */
struct ftl_wear {
	u32 worn;	/* most erases of a block */
	u32 unworn;	/* no closed block has fewer erases, as far as known */
	u32 wait;	/* victims until one may be chosen by its wear */
};

/* A die. */
struct ftl_die {
	struct ftl_map map;		/* map between units and slots */
	struct ftl_block *blocks;	/* blocks, those of FTL_SLC last */
	struct ftl_free free[FTL_NR_POOLS]; /* free blocks, by ftl_pool */
	struct ftl_closed closed;	/* closed blocks of FTL_MAIN */
	struct ftl_host host;		/* writes of the host */
	struct ftl_gc gc;		/* garbage collection */
	struct ftl_wear wear;		/* wear of the blocks of FTL_MAIN */
};

/* The memory that the dies share, each in parts of equal size. */
struct ftl_memory {
	u8 *maps;			/* maps */
	u16 *backs;			/* ways back */
	struct ftl_block *blocks;	/* blocks */
	u16 *by_valid;			/* heads of lists of closed blocks */
	u64 bytes;			/* size of it and of struct ftl */
};

/* All dies. */
struct ftl {
	struct ftl_geometry geo;	/* sizes; constant */
	u32 nr_blocks[FTL_NR_POOLS];	/* blocks of a die; constant */
	u32 nr_slots;			/* slots of a die; constant */
	u32 wear_gap;			/* erases blocks may differ by; 0 any */
	struct ftl_counters counters;	/* work that was done */
	struct ftl_memory memory;	/* memory of the dies */
	u32 nr_dies;			/* number of dies; constant */
	struct ftl_die dies[] __counted_by(nr_dies); /* the dies */
};

static inline bool ftl_in_slc(const struct ftl *ftl, u16 block)
{
	return block >= ftl->nr_blocks[FTL_MAIN];
}

static inline bool ftl_log_is_open(const struct ftl_log *log)
{
	return log->block != FTL_NO_BLOCK;
}

/* ftl_log.c */
void ftl_die_empty(const struct ftl *ftl, struct ftl_die *die);
void ftl_log_open(struct ftl_die *die, struct ftl_log *log,
		  enum ftl_pool pool);
void ftl_log_use(const struct ftl *ftl, struct ftl_die *die,
		 struct ftl_log *log, u32 slots);
void ftl_log_put(const struct ftl *ftl, struct ftl_die *die,
		 struct ftl_log *log, enum ftl_pool pool, u32 unit);
void ftl_slot_drop(const struct ftl *ftl, struct ftl_die *die, u32 slot);
void ftl_closed_take(const struct ftl *ftl, struct ftl_die *die, u16 nr);
void ftl_free_add(struct ftl_die *die, struct ftl_free *free, u16 nr);

#endif /* ISOBLK_VDISK_FTL_DIE_H */
