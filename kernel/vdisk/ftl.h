/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flash translation layer of the model "flash": the map of data, and the
 * operations of garbage collection. It has no notion of time. See ftl.c.
 *
 * All sizes are in units of 4 KiB, the granularity of the map:
 *
 *	page	read or programmed by one plane
 *	row	a page of every plane; read or programmed by a die
 *	block	a block of every plane; erased by a die
 *	slot	a place for a unit on a die: block * units a block + position
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FTL_H
#define ISOBLK_VDISK_FTL_H

#include <linux/types.h>

#include "flash.h"

#define FTL_UNIT_SHIFT	12
#define FTL_UNIT_BYTES	4096U

/* No slot. An entry of the map has 24 bits. */
#define FTL_NONE	0xffffffU

/* The sizes of a disk. */
struct ftl_geometry {
	u32 dies;	/* number of dies */
	u32 units;	/* units of the whole disk, as the host sees it */
	u32 page_units;	/* units of a page */
	u32 row_units;	/* units of a row */
	u32 block_units; /* units of a block, at most U16_MAX */
	u32 spare_per_mille; /* flash beyond @units, per mille of @units */
	u32 slc_units;	/* units of fast blocks, in addition to all others */
	u32 gc_low;	/* free blocks at which collection precedes programs */
	u32 gc_high;	/* free blocks below which collection runs */
};

/* The two kinds of blocks. */
enum ftl_pool {
	FTL_MAIN,	/* ordinary blocks */
	FTL_SLC,	/* fast blocks */
	FTL_NR_POOLS,
};

/* Counters since the disk was created, over all dies. */
struct ftl_counters {
	u64 host_pages;		/* units that the host wrote to flash */
	u64 gc_pages;		/* units moved by garbage collection */
	u64 slc_pages;		/* units moved from the fast blocks to others */
	u64 padded_pages;	/* units left empty by programs of part rows */
	u64 trimmed_pages;	/* units that were unmapped */
	u64 erases;		/* blocks that were erased */
	u64 wear_moves;		/* blocks emptied only for wear levelling */
};

/* Room for the next program of the host. */
struct ftl_room {
	u32 units;	/* maximum of its units; 0 = none until an erase */
	bool slc;	/* whether it goes to fast blocks */
};

/* Operations of garbage collection. */
enum ftl_work {
	FTL_READ,	/* read a row of the victim */
	FTL_PROGRAM,	/* program a row of moved units */
	FTL_ERASE,	/* erase the victim */
};

/* An operation of a die for garbage collection. */
struct ftl_step {
	enum ftl_work work;	/* kind of the operation */
	u32 units;		/* number of units that are read */
	u32 slot;		/* first slot of the row that is read */
};

struct ftl;

struct ftl *ftl_create(const struct ftl_geometry *geometry, u32 wear_gap);
void ftl_destroy(struct ftl *ftl);
int ftl_precondition(struct ftl *ftl, u32 fill, bool random, u64 seed);

u32 ftl_lookup(const struct ftl *ftl, u32 die, u32 unit);
bool ftl_slot_is_slc(const struct ftl *ftl, u32 slot);
struct ftl_room ftl_get_host_room(const struct ftl *ftl, u32 die);
void ftl_host_write(struct ftl *ftl, u32 die, u32 unit);
void ftl_host_end_program(struct ftl *ftl, u32 die);
bool ftl_trim(struct ftl *ftl, u32 die, u32 unit);

bool ftl_gc_has_work(const struct ftl *ftl, u32 die);
bool ftl_gc_is_urgent(const struct ftl *ftl, u32 die);
bool ftl_may_fold(const struct ftl *ftl, u32 die);
struct ftl_step ftl_step(struct ftl *ftl, u32 die, enum ftl_pool from);

void ftl_set_wear_gap(struct ftl *ftl, u32 wear_gap);
const struct ftl_counters *ftl_counters(const struct ftl *ftl);
void ftl_wear(const struct ftl *ftl, u32 *min, u32 *max);
u64 ftl_get_flash_units(const struct ftl *ftl);
u64 ftl_memory(const struct ftl *ftl);

#endif /* ISOBLK_VDISK_FTL_H */
