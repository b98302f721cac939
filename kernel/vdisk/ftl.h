/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flash translation layer of the model "flash": where the data are, and
 * what garbage collection has to do. It knows no time. See ftl.c.
 *
 * Everything is counted in units of 4 KiB, the grain of the map:
 *
 *	page	what a plane reads or programs
 *	row	a page of every plane; what a die reads or programs
 *	block	a block of every plane; what a die erases
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

/* The number of a slot that is none. An entry of the map has 24 bits. */
#define FTL_NONE	0xffffffU

/* The sizes of a disk. */
struct ftl_geometry {
	u32 dies;	/* number of dies */
	u32 units;	/* units of the whole disk, as the host sees it */
	u32 page;	/* units of a page */
	u32 row;	/* units of a row */
	u32 block;	/* units of a block, at most U16_MAX */
	u32 spare;	/* flash beyond @units, per mille of it */
	u32 slc;	/* units written in the fast mode, beyond all other */
	u32 gc_low;	/* free blocks at which garbage collection goes first */
	u32 gc_high;	/* free blocks below which there is any */
};

/* The two kinds of blocks. */
enum ftl_pool {
	FTL_MAIN,	/* ordinary ones */
	FTL_SLC,	/* fast ones */
	FTL_NR_POOLS,
};

/* What was done since the disk was made, over all dies. */
struct ftl_counters {
	u64 host_pages;		/* units that the host wrote to flash */
	u64 gc_pages;		/* units moved by garbage collection */
	u64 slc_pages;		/* units moved from the fast blocks to others */
	u64 padded_pages;	/* units left empty by programs of part rows */
	u64 trimmed_pages;	/* units that were unmapped */
	u64 erases;		/* blocks that were erased */
	u64 wear_moves;		/* blocks emptied for wear levelling alone */
};

/* Where the next program of the host goes. */
struct ftl_room {
	u32 units;	/* most units it may have; 0 = none until an erase */
	bool slc;	/* whether it goes into the fast blocks */
};

/* What a die is to do. */
enum ftl_work {
	FTL_READ,	/* read a row of the victim */
	FTL_PROGRAM,	/* program a row of what was moved */
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
bool ftl_is_slc(const struct ftl *ftl, u32 slot);
struct ftl_room ftl_host_room(const struct ftl *ftl, u32 die);
void ftl_host_write(struct ftl *ftl, u32 die, u32 unit);
void ftl_host_end(struct ftl *ftl, u32 die);
bool ftl_trim(struct ftl *ftl, u32 die, u32 unit);

bool ftl_gc_on(const struct ftl *ftl, u32 die);
bool ftl_gc_first(const struct ftl *ftl, u32 die);
bool ftl_fold_on(const struct ftl *ftl, u32 die);
struct ftl_step ftl_step(struct ftl *ftl, u32 die, enum ftl_pool from);

void ftl_set_wear_gap(struct ftl *ftl, u32 wear_gap);
const struct ftl_counters *ftl_counters(const struct ftl *ftl);
void ftl_wear(const struct ftl *ftl, u32 *min, u32 *max);
u64 ftl_flash_units(const struct ftl *ftl);
u64 ftl_memory(const struct ftl *ftl);

#endif /* ISOBLK_VDISK_FTL_H */
