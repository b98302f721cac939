// SPDX-License-Identifier: GPL-2.0-only
/*
 * A flash translation layer: a page map, a log a die, greedy collection.
 *
 * Unit u of the disk stays on die u % dies. So each die is a log of its own,
 * and garbage collection never moves data over the bus to another die. A disk
 * that places a write on any free die is faster under a load that favours some
 * addresses; under other loads the buffer levels the dies.
 *
 * Memory. A unit needs 3 bytes of map (a slot of its die, 24 bits), and every
 * slot 2 bytes of reverse map: the low 16 bits of the unit that was last
 * written there. The map tells which unit that is, and whether it is still
 * valid: of the units u, u + 2^16, u + 2^17 ... of the die, the unit whose
 * entry is this slot. There is at most one, since a slot is written once
 * between two erases, and a block is erased when no entry points to it any
 * more. So no bitmap of valid units is needed. With spare at 28 % that is 5.6
 * bytes per unit, and some tenths for the blocks.
 *
 * Writes of the host and of garbage collection go to different open
 * blocks, for data that survived a collection are colder than new data
 * (Desnoyers, "Analytic models of SSD write performance", ACM TOS 2014,
 * and earlier work). Collection takes the closed block with the fewest
 * valid units; closed blocks are in lists by that number, so finding it
 * needs no search.
 *
 * Collection works with exactly the spare: blocks that are open or kept free
 * come in addition. In a disk of full size these are negligible. In a small
 * disk they would be a large part of the spare, and it would not behave as the
 * large disk that it represents.
 *
 * Pace. Below gc_high free blocks there is a debt: each unit that the host
 * writes while there is a victim demands so much work on the victim that it is
 * empty when the host has filled the gained space. At gc_low, collection
 * precedes programs whatever the debt. So gc_high just above gc_low makes
 * collection come in bursts of a block, and a wide gap spreads it. The host
 * never gets the last free block: a victim's units fit into the open block and
 * one more, so collection can always proceed.
 *
 * Moved units count as being in the controller's memory until they fill a row.
 * Only then a program is due.
 *
 * Wear levelling. The least worn free block is opened first. When blocks differ
 * by more than wear_gap erases, one victim in FTL_WEAR_INTERVAL is the least worn
 * block, whatever it holds: data that are never rewritten must not keep a block
 * young for ever.
 *
 * Fast blocks (SLC) are additional to all others. The host writes to them while
 * one is free, and else to ordinary blocks. They are emptied like victims when
 * the caller finds the disk idle.
 *
 * Where things are:
 *
 *	this file	the interface for the model, creation of the dies
 *	ftl_map.h	the map and the reverse map
 *	ftl_log.c	the blocks of a die, and the logs written into them
 *	ftl_gc.c	garbage collection and wear levelling
 *	ftl_fill.c	contents of the disk before the first command
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ftl.h"
#include "ftl_die.h"
#include "ftl_map.h"

/**
 * ftl_lookup - return the slot of a unit
 * @ftl: the layer
 * @die: the unit's
 * @unit: the unit, on the die
 *
 * Return: a slot, FTL_NONE if it was never written, or trimmed.
 */
u32 ftl_lookup(const struct ftl *ftl, u32 die, u32 unit)
{
	return ftl_map_get_slot(&ftl->dies[die].map, unit);
}

/**
 * ftl_slot_is_slc - return whether a slot is in a fast block
 * @ftl: the layer
 * @slot: a slot, not FTL_NONE
 *
 * Return: true if it is.
 */
bool ftl_slot_is_slc(const struct ftl *ftl, u32 slot)
{
	return slot >= ftl->nr_blocks[FTL_MAIN] * ftl->geo.block_units;
}

/* Return the pool of blocks that the host writes to next. */
static enum ftl_pool ftl_host_pick_pool(const struct ftl *ftl,
					const struct ftl_die *die)
{
	if (!ftl->nr_blocks[FTL_SLC])
		return FTL_MAIN;
	if (ftl_log_is_open(&die->host.log[FTL_SLC]) ||
	    die->free[FTL_SLC].count)
		return FTL_SLC;
	return FTL_MAIN;
}

/**
 * ftl_get_host_room - return the room for the host's next program
 * @ftl: the layer
 * @die: the die
 *
 * Return: see struct ftl_room. It does not shrink until ftl_host_write().
 */
struct ftl_room ftl_get_host_room(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];
	enum ftl_pool pool = ftl_host_pick_pool(ftl, d);
	const struct ftl_log *log = &d->host.log[pool];
	struct ftl_room room = { .slc = pool == FTL_SLC };

	if (ftl_log_is_open(log))
		room.units = ftl->geo.row_units -
			     log->used_slots % ftl->geo.row_units;
	else if (pool == FTL_SLC || d->free[FTL_MAIN].count > 1)
		room.units = ftl->geo.row_units;
	return room;
}

/**
 * ftl_host_write - write a unit for the host
 * @ftl: the layer
 * @die: the unit's
 * @unit: the unit, on the die
 *
 * Call it for at most the units of ftl_get_host_room(), then ftl_host_end_program().
 */
void ftl_host_write(struct ftl *ftl, u32 die, u32 unit)
{
	struct ftl_die *d = &ftl->dies[die];

	if (!d->host.program_units)
		d->host.last_pool = ftl_host_pick_pool(ftl, d);
	ftl_log_put(ftl, d, &d->host.log[d->host.last_pool], d->host.last_pool,
		    unit);
	ftl->counters.host_pages++;
	d->host.program_units++;
}

/**
 * ftl_host_end_program - end a program of the units that the host has written
 * @ftl: the layer
 * @die: the die
 *
 * The rest of the last page stays empty.
 */
void ftl_host_end_program(struct ftl *ftl, u32 die)
{
	struct ftl_die *d = &ftl->dies[die];
	struct ftl_log *log = &d->host.log[d->host.last_pool];
	u32 odd = log->used_slots % ftl->geo.page_units;
	u32 pad = odd ? ftl->geo.page_units - odd : 0;

	if (pad)
		ftl_log_use(ftl, d, log, pad);
	d->host.program_units += pad;
	ftl->counters.padded_pages += pad;
	if (!ftl_gc_has_work(ftl, die))
		d->host.debt = 0;
	else if (d->host.last_pool == FTL_MAIN)
		d->host.debt +=
			(s64)d->host.program_units * ftl->geo.block_units;
	d->host.program_units = 0;
}

/**
 * ftl_trim - unmap a unit
 * @ftl: the layer
 * @die: the unit's
 * @unit: the unit, on the die
 *
 * Return: true if it was mapped.
 */
bool ftl_trim(struct ftl *ftl, u32 die, u32 unit)
{
	struct ftl_die *d = &ftl->dies[die];
	u32 slot = ftl_map_get_slot(&d->map, unit);

	if (slot == FTL_NONE)
		return false;
	ftl_slot_drop(ftl, d, slot);
	ftl_map_set_slot(&d->map, unit, FTL_NONE);
	ftl->counters.trimmed_pages++;
	return true;
}

/**
 * ftl_set_wear_gap - set the permitted difference of blocks' erases
 * @ftl: the layer
 * @wear_gap: number of erases; 0 = no limit
 */
void ftl_set_wear_gap(struct ftl *ftl, u32 wear_gap)
{
	ftl->wear_gap = wear_gap;
}

/**
 * ftl_counters - return the counters since the disk was created
 * @ftl: the layer
 *
 * Return: the live counters.
 */
const struct ftl_counters *ftl_counters(const struct ftl *ftl)
{
	return &ftl->counters;
}

/**
 * ftl_wear - return the erases of blocks, except fast blocks
 * @ftl: the layer
 * @min: set to the minimum of a block
 * @max: set to the maximum of a block
 */
void ftl_wear(const struct ftl *ftl, u32 *min, u32 *max)
{
	u32 die, nr;

	*min = U32_MAX;
	*max = 0;
	for (die = 0; die < ftl->geo.dies; die++) {
		const struct ftl_block *blocks = ftl->dies[die].blocks;

		for (nr = 0; nr < ftl->nr_blocks[FTL_MAIN]; nr++) {
			*min = min(*min, blocks[nr].erases);
			*max = max(*max, blocks[nr].erases);
		}
	}
}

/**
 * ftl_get_flash_units - return the size of data and spare together
 * @ftl: the layer
 *
 * It is rounded to whole blocks.
 *
 * Return: units of all dies, without blocks that are open or kept free, and
 * without fast blocks.
 */
u64 ftl_get_flash_units(const struct ftl *ftl)
{
	return (u64)ftl->geo.dies * ftl->geo.block_units *
	       (ftl->nr_blocks[FTL_MAIN] - ftl->geo.gc_high - 1);
}

/**
 * ftl_memory - return the memory of the layer
 * @ftl: the layer
 *
 * Return: bytes.
 */
u64 ftl_memory(const struct ftl *ftl)
{
	return ftl->memory.bytes;
}

/* Compute the number of blocks of a die. */
static int ftl_compute_blocks(struct ftl *ftl)
{
	const struct ftl_geometry *geo = &ftl->geo;
	u32 units = DIV_ROUND_UP(geo->units, geo->dies);
	u64 wanted = div_u64((u64)units * (1000 + geo->spare_per_mille), 1000);
	u64 blocks[FTL_NR_POOLS];
	u64 slots;

	/* One more than the data need, for collection has to gain space. */
	blocks[FTL_MAIN] =
		max_t(u64, DIV_ROUND_CLOSEST_ULL(wanted, geo->block_units),
		      DIV_ROUND_UP(units, geo->block_units) + 1);
	blocks[FTL_MAIN] += geo->gc_high + 1;
	blocks[FTL_SLC] = DIV_ROUND_UP(DIV_ROUND_UP(geo->slc_units, geo->dies),
				       geo->block_units);
	slots = (blocks[FTL_MAIN] + blocks[FTL_SLC]) * geo->block_units;
	if (blocks[FTL_MAIN] + blocks[FTL_SLC] >= FTL_NO_BLOCK ||
	    slots >= FTL_NONE) {
		pr_err("flash: a die would have %llu blocks of %u units, limits are %u blocks and %u units: more dies, or other blocks\n",
		       blocks[FTL_MAIN] + blocks[FTL_SLC], geo->block_units,
		       FTL_NO_BLOCK - 1, FTL_NONE - 1);
		return -EINVAL;
	}
	ftl->nr_blocks[FTL_MAIN] = blocks[FTL_MAIN];
	ftl->nr_blocks[FTL_SLC] = blocks[FTL_SLC];
	ftl->nr_slots = slots;
	return 0;
}

/* Create empty dies. The caller frees them, even if that failed. */
static int ftl_alloc_dies(struct ftl *ftl)
{
	struct ftl_memory *memory = &ftl->memory;
	u32 dies = ftl->geo.dies;
	u32 units = DIV_ROUND_UP(ftl->geo.units, dies);
	u32 blocks = ftl->nr_blocks[FTL_MAIN] + ftl->nr_blocks[FTL_SLC];
	u32 lists = ftl->geo.block_units + 1;
	/* A byte more than the entries have: see ftl_map_get_slot(). */
	u64 map = (u64)units * dies * FTL_MAP_ENTRY_BYTES + 1;
	u64 back = (u64)ftl->nr_slots * dies * sizeof(*memory->reverse_maps);
	u32 nr;

	/* May be more than the 2 GiB of kvmalloc(). */
	memory->maps = vmalloc(map);
	memory->reverse_maps = vzalloc(back);
	memory->blocks = kvcalloc(dies,
				  array_size(blocks, sizeof(*memory->blocks)),
				  GFP_KERNEL);
	memory->by_valid = kvcalloc(dies,
				    array_size(lists,
					       sizeof(*memory->by_valid)),
				    GFP_KERNEL);
	if (!memory->maps || !memory->reverse_maps || !memory->blocks ||
	    !memory->by_valid)
		return -ENOMEM;

	memory->bytes = struct_size(ftl, dies, dies) + map + back +
			(u64)dies * blocks * sizeof(*memory->blocks) +
			(u64)dies * lists * sizeof(*memory->by_valid);
	for (nr = 0; nr < dies; nr++) {
		struct ftl_die *die = &ftl->dies[nr];

		die->map.slots =
			memory->maps + (size_t)nr * units * FTL_MAP_ENTRY_BYTES;
		die->map.reverse =
			memory->reverse_maps + (size_t)nr * ftl->nr_slots;
		die->map.units = ftl->geo.units / dies +
				 (nr < ftl->geo.units % dies);
		die->blocks = memory->blocks + (size_t)nr * blocks;
		die->closed.by_valid = memory->by_valid + (size_t)nr * lists;
		memset(die->map.slots, 0xff,
		       (size_t)units * FTL_MAP_ENTRY_BYTES);
		ftl_die_clear(ftl, die);
		cond_resched();
	}
	memory->maps[map - 1] = 0xff;
	return 0;
}

/**
 * ftl_create - create the layer of an empty disk
 * @geometry: sizes
 * @wear_gap: erases that blocks may differ by; 0 = no limit
 *
 * Context: may sleep.
 * Return: the layer; ERR_PTR(-EINVAL) if a die would have too many blocks,
 * ERR_PTR(-ENOMEM).
 */
struct ftl *ftl_create(const struct ftl_geometry *geometry, u32 wear_gap)
{
	struct ftl *ftl;
	int err;

	ftl = kvzalloc(struct_size(ftl, dies, geometry->dies), GFP_KERNEL);
	if (!ftl)
		return ERR_PTR(-ENOMEM);
	ftl->nr_dies = geometry->dies;
	ftl->geo = *geometry;
	ftl->wear_gap = wear_gap;

	err = ftl_compute_blocks(ftl);
	if (!err)
		err = ftl_alloc_dies(ftl);
	if (err) {
		ftl_destroy(ftl);
		return ERR_PTR(err);
	}
	return ftl;
}

/**
 * ftl_destroy - undo ftl_create()
 * @ftl: the layer
 */
void ftl_destroy(struct ftl *ftl)
{
	kvfree(ftl->memory.by_valid);
	kvfree(ftl->memory.blocks);
	vfree(ftl->memory.reverse_maps);
	vfree(ftl->memory.maps);
	kvfree(ftl);
}
