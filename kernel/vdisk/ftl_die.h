/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A die, for the files of the translation layer: its map, its blocks and the
 * logs that are written into them.
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FTL_DIE_H
#define ISOBLK_VDISK_FTL_DIE_H

#include <linux/limits.h>
#include <linux/types.h>

#include "ftl.h"
#include "ftl_map.h"

/* No block. A die has fewer blocks than that. */
#define FTL_NO_BLOCK	U16_MAX

/* States of a block. */
enum ftl_state {
	FTL_FREE,	/* unused; on the list of free blocks */
	FTL_OPEN,	/* the end of a log; on no list */
	FTL_CLOSED,	/* full; on the list of its valid count, if not fast */
	FTL_VICTIM,	/* being emptied; on no list */
};

/* A block. */
struct ftl_block {
	u16 valid;	/* units of which the map points to this block */
	u16 next;	/* next block of its list, or FTL_NO_BLOCK */
	u16 prev;	/* previous block of its list, or FTL_NO_BLOCK */
	u8 state;	/* enum ftl_state */
	u32 erases;	/* number of times that it was erased */
};

/* A log: the block that the next units go to. */
struct ftl_log {
	u16 block;	/* open block, or FTL_NO_BLOCK */
	u32 used_slots;	/* used slots of the open block, or of the last block */
};

/* Free blocks, least worn first. */
struct ftl_free {
	u16 head;	/* first block, or FTL_NO_BLOCK */
	u16 tail;	/* last block, or FTL_NO_BLOCK */
	u32 count;	/* number of blocks */
};

/* Closed blocks, by how many valid units they have. */
struct ftl_closed {
	u16 *by_valid;	/* first block by number of valid units, or FTL_NO_BLOCK */
	u32 valid_min;	/* least number with a block; above all if there is none */
};

/* Writes of the host to a die. */
struct ftl_host {
	struct ftl_log log[FTL_NR_POOLS]; /* its logs, by ftl_pool */
	enum ftl_pool last_pool; /* pool of the last write */
	u32 program_units; /* units of the program that is being assembled */
	s64 debt;	/* slots of the victim due, times units of a block */
};

/* A victim: a block that is being emptied. */
struct ftl_victim {
	u16 block;	/* the block, or FTL_NO_BLOCK */
	u32 nr_done;	/* number of its slots that have been processed */
	u32 nr_invalid;	/* slots that were not valid when it was chosen */
};

/* The state of garbage collection on a die. */
struct ftl_gc {
	struct ftl_log log; /* log of moved units */
	struct ftl_victim victim[FTL_NR_POOLS]; /* victims, by ftl_pool */
	u32 full_rows;	/* full rows of @log that are not programmed */
};

/* Wear of a die's blocks, except fast blocks. */
struct ftl_wear {
	u32 erases_max;	/* maximum of erases of a block */
	u32 erases_min;	/* least erases of a closed block at the last search */
	u32 nr_wait;	/* victims until one may be chosen by its wear */
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
	u16 *reverse_maps;		/* reverse maps */
	struct ftl_block *blocks;	/* blocks */
	u16 *by_valid;			/* heads of lists of closed blocks */
	u64 bytes;			/* size of this memory and of struct ftl */
};

/* All dies. */
struct ftl {
	struct ftl_geometry geo;	/* sizes; constant */
	u32 nr_blocks[FTL_NR_POOLS];	/* blocks of a die; constant */
	u32 nr_slots;			/* slots of a die; constant */
	u32 wear_gap;			/* erases that blocks may differ by; 0 = no limit */
	struct ftl_counters counters;	/* counters, over all dies */
	struct ftl_memory memory;	/* memory of the dies */
	u32 nr_dies;			/* number of dies; constant */
	struct ftl_die dies[] __counted_by(nr_dies); /* the dies */
};

static inline bool ftl_block_is_slc(const struct ftl *ftl, u16 block)
{
	return block >= ftl->nr_blocks[FTL_MAIN];
}

static inline bool ftl_log_is_open(const struct ftl_log *log)
{
	return log->block != FTL_NO_BLOCK;
}

/* ftl_log.c */
void ftl_die_clear(const struct ftl *ftl, struct ftl_die *die);
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
