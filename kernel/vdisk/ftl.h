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

/* Of a slot: there is none. An entry of the map has 24 bits. */
#define FTL_NONE	0xffffffU

/**
 * struct ftl_geometry - sizes
 * @dies: how many
 * @units: of the whole disk, as the host sees it
 * @page: units of a page
 * @row: units of a row
 * @block: units of a block, at most U16_MAX
 * @spare: flash beyond @units, per mille of it
 * @slc: units that are written in the fast mode, beyond all other
 * @gc_low: free blocks at which garbage collection goes first
 * @gc_high: free blocks below which there is any
 */
struct ftl_geometry {
	u32 dies;
	u32 units;
	u32 page;
	u32 row;
	u32 block;
	u32 spare;
	u32 slc;
	u32 gc_low;
	u32 gc_high;
};

/* The two kinds of blocks. */
enum ftl_pool {
	FTL_MAIN,
	FTL_SLC,
	FTL_NR_POOLS,
};

/**
 * struct ftl_counters - what was done, over all dies
 * @host_pages: units that the host wrote to flash
 * @gc_pages: units that garbage collection and wear levelling moved
 * @slc_pages: units moved from the fast blocks into the others
 * @padded_pages: units left empty by programs of less than a row
 * @trimmed_pages: units that were unmapped
 * @erases: blocks
 * @wear_moves: blocks emptied for wear levelling alone
 */
struct ftl_counters {
	u64 host_pages;
	u64 gc_pages;
	u64 slc_pages;
	u64 padded_pages;
	u64 trimmed_pages;
	u64 erases;
	u64 wear_moves;
};

/**
 * struct ftl_room - where the next host program goes
 * @units: at most so many; 0 = nowhere, until a block has been erased
 * @slc: into the fast blocks
 */
struct ftl_room {
	u32 units;
	bool slc;
};

enum ftl_work {
	FTL_READ,
	FTL_PROGRAM,
	FTL_ERASE,
};

/**
 * struct ftl_step - an operation of a die for garbage collection
 * @work: which
 * @units: how many are read
 * @slc: reads a fast block
 */
struct ftl_step {
	enum ftl_work work;
	u32 units;
	bool slc;
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
