// SPDX-License-Identifier: GPL-2.0-only
/*
 * A flash translation layer: a page map, a log a die, greedy collection.
 *
 * Unit u of the disk lives on die u % dies, for ever. So each die is a log of
 * its own, and garbage collection never crosses the bus to another. A disk that
 * places a write on whichever die is free is faster under a load that favours
 * some addresses; under one that does not, the buffer evens it out.
 *
 * Memory. A unit costs 3 bytes of map (a slot of its die, 24 bits), and every
 * slot 2 bytes of the way back: the low 16 bits of the unit that was written
 * there. Which one it was, and whether it still is there, the map says: of the
 * units u, u + 2^16, u + 2^17 ... of the die, the one whose entry is this slot.
 * There is at most one, since a slot is written once between two erases, and a
 * block is erased when nothing points to it any more. So there is no bitmap of
 * what is valid. With spare at 28 % that is 5.6 bytes a unit, and some tenths
 * for the blocks.
 *
 * Writes of the host and of garbage collection go to different open blocks, as
 * what survived a collection is colder than what has just been written
 * (Desnoyers, "Analytic models of SSD write performance", ACM TOS 2014, and
 * others before). Collection takes the closed block with the fewest valid
 * units; closed blocks hang in lists by that number, so finding it costs no
 * search.
 *
 * What collection works with is exactly the spare: the blocks that are open or
 * kept free come on top. In a disk of full size they are nothing. In a small
 * one they would be much of the spare, and it would not behave as the large one
 * that it stands for.
 *
 * Pace. Below gc_high free blocks there is a debt: each unit that the host
 * writes while a victim is worked on asks for as much of the victim as
 * makes it empty just when the host has filled what it gives. At gc_low,
 * collection goes first whatever the debt. So gc_high just above gc_low makes
 * collection come in storms, a block at a time, and a wide gap spreads it. The
 * host never gets the last free block: a victim's units fit into the open block
 * and one more, so collection always gets on.
 *
 * Units moved are counted as being in the controller's memory until a row of
 * them is full. Only then a program is due.
 *
 * Wear levelling. The least worn free block is opened first. And when blocks
 * differ by more than wear_gap erases, now and then the victim is the least
 * worn block, whatever it holds: data that nobody rewrites must not keep a
 * block young for ever.
 *
 * Fast blocks (SLC) are blocks on top of all others. The host writes to them
 * while one is free, past them when not; they are emptied like victims when the
 * caller finds the disk idle.
 *
 * Where things are:
 *
 *	this file	what the model asks, and how the dies are made
 *	ftl_map.h	the map and the way back
 *	ftl_log.c	the blocks of a die, and the logs written into them
 *	ftl_gc.c	garbage collection and wear levelling
 *	ftl_fill.c	what is on the disk before the first command
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
 * ftl_lookup - where a unit is
 * @ftl: the layer
 * @die: the unit's
 * @unit: the unit, on the die
 *
 * Return: a slot, FTL_NONE if it was never written, or trimmed.
 */
u32 ftl_lookup(const struct ftl *ftl, u32 die, u32 unit)
{
	return ftl_map_get(&ftl->dies[die].map, unit);
}

/**
 * ftl_is_slc - is a slot in a fast block?
 * @ftl: the layer
 * @slot: a slot, not FTL_NONE
 *
 * Return: true if it is.
 */
bool ftl_is_slc(const struct ftl *ftl, u32 slot)
{
	return slot >= ftl->nr_blocks[FTL_MAIN] * ftl->geo.block;
}

/* Return which blocks the host writes to next. */
static enum ftl_pool host_pool(const struct ftl *ftl, const struct ftl_die *die)
{
	if (!ftl->nr_blocks[FTL_SLC])
		return FTL_MAIN;
	if (ftl_log_is_open(&die->host.log[FTL_SLC]) ||
	    die->free[FTL_SLC].count)
		return FTL_SLC;
	return FTL_MAIN;
}

/**
 * ftl_host_room - where can the host write, and how much?
 * @ftl: the layer
 * @die: the die
 *
 * Return: see struct ftl_room. It does not shrink until ftl_host_write().
 */
struct ftl_room ftl_host_room(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];
	enum ftl_pool pool = host_pool(ftl, d);
	const struct ftl_log *log = &d->host.log[pool];
	struct ftl_room room = { .slc = pool == FTL_SLC };

	if (ftl_log_is_open(log))
		room.units = ftl->geo.row - log->used % ftl->geo.row;
	else if (pool == FTL_SLC || d->free[FTL_MAIN].count > 1)
		room.units = ftl->geo.row;
	return room;
}

/**
 * ftl_host_write - the host writes a unit
 * @ftl: the layer
 * @die: the unit's
 * @unit: the unit, on the die
 *
 * No more often than ftl_host_room() said, then ftl_host_end().
 */
void ftl_host_write(struct ftl *ftl, u32 die, u32 unit)
{
	struct ftl_die *d = &ftl->dies[die];

	if (!d->host.wrote)
		d->host.last = host_pool(ftl, d);
	ftl_log_put(ftl, d, &d->host.log[d->host.last], d->host.last, unit);
	ftl->counters.host_pages++;
	d->host.wrote++;
}

/**
 * ftl_host_end - what the host has written goes into one program
 * @ftl: the layer
 * @die: the die
 *
 * What is left of the page stays empty.
 */
void ftl_host_end(struct ftl *ftl, u32 die)
{
	struct ftl_die *d = &ftl->dies[die];
	struct ftl_log *log = &d->host.log[d->host.last];
	u32 odd = log->used % ftl->geo.page;
	u32 pad = odd ? ftl->geo.page - odd : 0;

	if (pad)
		ftl_log_use(ftl, d, log, pad);
	d->host.wrote += pad;
	ftl->counters.padded_pages += pad;
	if (!ftl_gc_on(ftl, die))
		d->host.debt = 0;
	else if (d->host.last == FTL_MAIN)
		d->host.debt += (s64)d->host.wrote * ftl->geo.block;
	d->host.wrote = 0;
}

/**
 * ftl_trim - a unit holds no data any more
 * @ftl: the layer
 * @die: the unit's
 * @unit: the unit, on the die
 *
 * Return: true if it had.
 */
bool ftl_trim(struct ftl *ftl, u32 die, u32 unit)
{
	struct ftl_die *d = &ftl->dies[die];
	u32 slot = ftl_map_get(&d->map, unit);

	if (slot == FTL_NONE)
		return false;
	ftl_slot_drop(ftl, d, slot);
	ftl_map_set(&d->map, unit, FTL_NONE);
	ftl->counters.trimmed_pages++;
	return true;
}

/**
 * ftl_set_wear_gap - by how many erases may blocks differ?
 * @ftl: the layer
 * @wear_gap: number of erases; 0 = any
 */
void ftl_set_wear_gap(struct ftl *ftl, u32 wear_gap)
{
	ftl->wear_gap = wear_gap;
}

/**
 * ftl_counters - what was done since the disk was made
 * @ftl: the layer
 *
 * Return: the counters, which go on.
 */
const struct ftl_counters *ftl_counters(const struct ftl *ftl)
{
	return &ftl->counters;
}

/**
 * ftl_wear - how often blocks were erased, but for the fast ones
 * @ftl: the layer
 * @min: the least of a block
 * @max: the most of a block
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
 * ftl_flash_units - how much the spare and the data have, in the end
 * @ftl: the layer
 *
 * Blocks are whole, so it is not exactly what was asked for.
 *
 * Return: units of all dies, without the blocks that are open or kept free, and
 * without the fast ones.
 */
u64 ftl_flash_units(const struct ftl *ftl)
{
	return (u64)ftl->geo.dies * ftl->geo.block *
	       (ftl->nr_blocks[FTL_MAIN] - ftl->geo.gc_high - 1);
}

/**
 * ftl_memory - what it takes
 * @ftl: the layer
 *
 * Return: bytes.
 */
u64 ftl_memory(const struct ftl *ftl)
{
	return ftl->memory.bytes;
}

/* Say how many blocks a die has. */
static int ftl_size(struct ftl *ftl)
{
	const struct ftl_geometry *geo = &ftl->geo;
	u32 units = DIV_ROUND_UP(geo->units, geo->dies);
	u64 wanted = div_u64((u64)units * (1000 + geo->spare), 1000);
	u64 blocks[FTL_NR_POOLS];
	u64 slots;

	/* One more than the data need, or there would be nothing to gain. */
	blocks[FTL_MAIN] = max_t(u64, DIV_ROUND_CLOSEST_ULL(wanted, geo->block),
				 DIV_ROUND_UP(units, geo->block) + 1);
	blocks[FTL_MAIN] += geo->gc_high + 1;
	blocks[FTL_SLC] = DIV_ROUND_UP(DIV_ROUND_UP(geo->slc, geo->dies),
				       geo->block);
	slots = (blocks[FTL_MAIN] + blocks[FTL_SLC]) * geo->block;
	if (blocks[FTL_MAIN] + blocks[FTL_SLC] >= FTL_NO_BLOCK ||
	    slots >= FTL_NONE) {
		pr_err("flash: a die would have %llu blocks of %u units, limits are %u blocks and %u units: more dies, or other blocks\n",
		       blocks[FTL_MAIN] + blocks[FTL_SLC], geo->block,
		       FTL_NO_BLOCK - 1, FTL_NONE - 1);
		return -EINVAL;
	}
	ftl->nr_blocks[FTL_MAIN] = blocks[FTL_MAIN];
	ftl->nr_blocks[FTL_SLC] = blocks[FTL_SLC];
	ftl->nr_slots = slots;
	return 0;
}

/* Make the dies, all empty. The caller frees them, even if that failed. */
static int ftl_alloc(struct ftl *ftl)
{
	struct ftl_memory *memory = &ftl->memory;
	u32 dies = ftl->geo.dies;
	u32 units = DIV_ROUND_UP(ftl->geo.units, dies);
	u32 blocks = ftl->nr_blocks[FTL_MAIN] + ftl->nr_blocks[FTL_SLC];
	u32 lists = ftl->geo.block + 1;
	/* A byte more than the entries have: see ftl_map_get(). */
	u64 map = (u64)units * dies * FTL_MAP_BYTES + 1;
	u64 back = (u64)ftl->nr_slots * dies * sizeof(*memory->backs);
	u32 nr;

	/* May be more than the 2 GiB of kvmalloc(). */
	memory->maps = vmalloc(map);
	memory->backs = vzalloc(back);
	memory->blocks = kvcalloc(dies,
				  array_size(blocks, sizeof(*memory->blocks)),
				  GFP_KERNEL);
	memory->by_valid = kvcalloc(dies,
				    array_size(lists,
					       sizeof(*memory->by_valid)),
				    GFP_KERNEL);
	if (!memory->maps || !memory->backs || !memory->blocks ||
	    !memory->by_valid)
		return -ENOMEM;

	memory->bytes = struct_size(ftl, dies, dies) + map + back +
			(u64)dies * blocks * sizeof(*memory->blocks) +
			(u64)dies * lists * sizeof(*memory->by_valid);
	for (nr = 0; nr < dies; nr++) {
		struct ftl_die *die = &ftl->dies[nr];

		die->map.slots = memory->maps +
				 (size_t)nr * units * FTL_MAP_BYTES;
		die->map.back = memory->backs + (size_t)nr * ftl->nr_slots;
		die->map.units = ftl->geo.units / dies +
				 (nr < ftl->geo.units % dies);
		die->blocks = memory->blocks + (size_t)nr * blocks;
		die->closed.by_valid = memory->by_valid + (size_t)nr * lists;
		memset(die->map.slots, 0xff, (size_t)units * FTL_MAP_BYTES);
		ftl_die_empty(ftl, die);
		cond_resched();
	}
	memory->maps[map - 1] = 0xff;
	return 0;
}

/**
 * ftl_create - an empty disk
 * @geometry: sizes
 * @wear_gap: erases by which blocks may differ; 0 = any
 *
 * Context: may sleep.
 * Return: the layer; ERR_PTR(-EINVAL) if a die cannot have that many blocks,
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

	err = ftl_size(ftl);
	if (!err)
		err = ftl_alloc(ftl);
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
	vfree(ftl->memory.backs);
	vfree(ftl->memory.maps);
	kvfree(ftl);
}
