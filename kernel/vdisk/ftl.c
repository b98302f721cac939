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
 * Steady state without writing it. Under uniform random writes a block loses
 * its valid units at a rate that is proportional to what it has, and the block
 * with the fewest is the oldest (to the fluctuations). So the blocks, by age,
 * hold S, S r, S r^2 ... valid units, with r such that the sum is what the disk
 * holds: the victim's share f then obeys f = exp(-(1 - f) a), with a = flash /
 * data, the known result for greedy collection of large blocks (Menon 1995; Bux
 * and Iliadis 2010; Xiang and Kurkoski 2012). Units are put in such blocks at
 * random, and then each die is written at random until it has programmed its
 * whole flash once, for the fluctuations.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bug.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/unaligned.h>
#include <linux/vmalloc.h>

#include "ftl.h"
#include "random.h"

/* Of a block: there is none. So a die has fewer. */
#define FTL_NO_BLOCK	U16_MAX

/* An entry of the map. */
#define FTL_MAP_BYTES	3

/*
 * One victim in so many is chosen by its wear, while wear differs too much:
 * often enough to catch up, and a few per cent of the work at most.
 */
#define FTL_WEAR_EVERY	16

/* Fraction bits of the valid units of a block in the geometric series. */
#define FTL_SERIES_SHIFT	16

enum ftl_state {
	FTL_FREE,
	FTL_OPEN,
	FTL_CLOSED,
	FTL_VICTIM,
};

/**
 * struct ftl_block - a block
 * @valid: units that the map says are here
 * @next: block in the same list, or FTL_NO_BLOCK
 * @prev: likewise
 * @state: enum ftl_state. In the list of free ones; in none; in the list of
 *	   those with so many valid units, if not fast; in none
 * @erases: how often it was
 */
struct ftl_block {
	u16 valid;
	u16 next;
	u16 prev;
	u8 state;
	u32 erases;
};

/**
 * struct ftl_stream - where the next units go
 * @block: open, or FTL_NO_BLOCK
 * @used: its slots that are; all of the last one's, if none is open
 */
struct ftl_stream {
	u16 block;
	u32 used;
};

/**
 * struct ftl_victim - a block that is being emptied
 * @block: it, or FTL_NO_BLOCK
 * @at: slots of it that have been looked at
 * @gain: slots that were not valid when it was chosen
 */
struct ftl_victim {
	u16 block;
	u32 at;
	u32 gain;
};

/**
 * struct ftl_free - free blocks, from the least worn
 * @head: first, or FTL_NO_BLOCK
 * @tail: last, or FTL_NO_BLOCK
 * @count: how many
 */
struct ftl_free {
	u16 head;
	u16 tail;
	u32 count;
};

/**
 * struct ftl_die - a die
 * @map: of its units, FTL_MAP_BYTES each
 * @back: of its slots
 * @blocks: those of FTL_MAIN, then those of FTL_SLC
 * @by_valid: first closed block with so many valid units
 * @least: of all closed blocks, the fewest valid units; more than a block has,
 *	   if none is closed
 * @units: of the host
 * @free: by ftl_pool
 * @host: open block for the host, by ftl_pool
 * @gc: open block for what is moved
 * @victim: by ftl_pool
 * @rows: full rows of @gc that no program has been reported for
 * @debt: slots of the victim that are due, times units of a block
 * @wrote: units of the program that is being put together
 * @worn: most erases of a block
 * @unworn: no closed block has fewer, as far as known
 * @wear_wait: victims until one may be chosen by its wear
 * @last: pool that the host last wrote to
 */
struct ftl_die {
	u8 *map;
	u16 *back;
	struct ftl_block *blocks;
	u16 *by_valid;
	u32 least;
	u32 units;
	struct ftl_free free[FTL_NR_POOLS];
	struct ftl_stream host[FTL_NR_POOLS];
	struct ftl_stream gc;
	struct ftl_victim victim[FTL_NR_POOLS];
	u32 rows;
	s64 debt;
	u32 wrote;
	u32 worn;
	u32 unworn;
	u32 wear_wait;
	enum ftl_pool last;
};

/**
 * struct ftl - all dies
 * @geo: sizes
 * @wear_gap: erases by which blocks may differ; 0 = any
 * @nr_blocks: of a die, by ftl_pool
 * @nr_slots: of a die
 * @counters: what was done
 * @memory: bytes of all that hangs here
 * @maps: of all dies
 * @backs: of all dies
 * @blocks: of all dies
 * @by_valid: of all dies
 * @nr_dies: how many
 * @dies: the dies
 */
struct ftl {
	struct ftl_geometry geo;
	u32 wear_gap;
	u32 nr_blocks[FTL_NR_POOLS];
	u32 nr_slots;
	struct ftl_counters counters;
	u64 memory;
	u8 *maps;
	u16 *backs;
	struct ftl_block *blocks;
	u16 *by_valid;
	u32 nr_dies;
	struct ftl_die dies[] __counted_by(nr_dies);
};

/* The map has a byte behind its last entry. */
static u32 map_get(const struct ftl_die *die, u32 unit)
{
	return get_unaligned_le32(die->map + (size_t)unit * FTL_MAP_BYTES) &
	       FTL_NONE;
}

static void map_set(struct ftl_die *die, u32 unit, u32 slot)
{
	u8 *entry = die->map + (size_t)unit * FTL_MAP_BYTES;

	put_unaligned_le16(slot, entry);
	entry[2] = slot >> 16;
}

/* The unit that is in a slot, FTL_NONE if none is. */
static u32 unit_in(const struct ftl_die *die, u32 slot)
{
	u32 unit;

	for (unit = die->back[slot]; unit < die->units; unit += U16_MAX + 1) {
		if (map_get(die, unit) == slot)
			return unit;
	}
	return FTL_NONE;
}

static bool is_slc(const struct ftl *ftl, u16 block)
{
	return block >= ftl->nr_blocks[FTL_MAIN];
}

static void closed_add(struct ftl_die *die, u16 nr)
{
	struct ftl_block *block = &die->blocks[nr];
	u16 *head = &die->by_valid[block->valid];

	block->prev = FTL_NO_BLOCK;
	block->next = *head;
	if (*head != FTL_NO_BLOCK)
		die->blocks[*head].prev = nr;
	*head = nr;
	die->least = min_t(u32, die->least, block->valid);
}

static void closed_del(struct ftl_die *die, u16 nr)
{
	struct ftl_block *block = &die->blocks[nr];

	if (block->prev != FTL_NO_BLOCK)
		die->blocks[block->prev].next = block->next;
	else
		die->by_valid[block->valid] = block->next;
	if (block->next != FTL_NO_BLOCK)
		die->blocks[block->next].prev = block->prev;
}

/* A block is gone: least goes up to the next, or above all if there is none. */
static void closed_find(const struct ftl *ftl, struct ftl_die *die)
{
	while (die->least <= ftl->geo.block &&
	       die->by_valid[die->least] == FTL_NO_BLOCK)
		die->least++;
}

/* A block comes behind those that are no more worn, most often all. */
static void free_add(struct ftl_die *die, struct ftl_free *free, u16 nr)
{
	struct ftl_block *block = &die->blocks[nr];
	u16 before = free->tail;

	while (before != FTL_NO_BLOCK &&
	       die->blocks[before].erases > block->erases)
		before = die->blocks[before].prev;

	block->state = FTL_FREE;
	block->prev = before;
	if (before != FTL_NO_BLOCK) {
		block->next = die->blocks[before].next;
		die->blocks[before].next = nr;
	} else {
		block->next = free->head;
		free->head = nr;
	}
	if (block->next != FTL_NO_BLOCK)
		die->blocks[block->next].prev = nr;
	else
		free->tail = nr;
	free->count++;
}

/* The caller knows that there is one. */
static u16 free_take(struct ftl_die *die, struct ftl_free *free)
{
	u16 nr = free->head;

	free->head = die->blocks[nr].next;
	if (free->head != FTL_NO_BLOCK)
		die->blocks[free->head].prev = FTL_NO_BLOCK;
	else
		free->tail = FTL_NO_BLOCK;
	free->count--;
	return nr;
}

static bool is_open(const struct ftl_stream *stream)
{
	return stream->block != FTL_NO_BLOCK;
}

static void log_open(struct ftl_die *die, struct ftl_stream *stream,
		     enum ftl_pool pool)
{
	stream->block = free_take(die, &die->free[pool]);
	stream->used = 0;
	die->blocks[stream->block].state = FTL_OPEN;
}

/* Slots of a stream have been used, perhaps the last of its block. */
static void log_use(const struct ftl *ftl, struct ftl_die *die,
		    struct ftl_stream *stream, u32 slots)
{
	stream->used += slots;
	if (stream->used < ftl->geo.block)
		return;
	die->blocks[stream->block].state = FTL_CLOSED;
	if (!is_slc(ftl, stream->block))
		closed_add(die, stream->block);
	stream->block = FTL_NO_BLOCK;
}

/* What was in a slot is no longer valid. */
static void slot_drop(const struct ftl *ftl, struct ftl_die *die, u32 slot)
{
	u16 nr = slot / ftl->geo.block;
	struct ftl_block *block = &die->blocks[nr];

	if (block->state != FTL_CLOSED || is_slc(ftl, nr)) {
		block->valid--;
		return;
	}
	closed_del(die, nr);
	block->valid--;
	closed_add(die, nr);
}

/* Puts a unit into the next slot; there is one, or a free block. */
static void log_put(struct ftl *ftl, struct ftl_die *die,
		    struct ftl_stream *stream, enum ftl_pool pool, u32 unit)
{
	u32 old = map_get(die, unit);
	u32 slot;

	if (!is_open(stream))
		log_open(die, stream, pool);
	if (old != FTL_NONE)
		slot_drop(ftl, die, old);
	slot = stream->block * ftl->geo.block + stream->used;
	map_set(die, unit, slot);
	die->back[slot] = unit;
	die->blocks[stream->block].valid++;
	log_use(ftl, die, stream, 1);
}

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
	return map_get(&ftl->dies[die], unit);
}

/**
 * ftl_is_slc - is a slot in a fast block?
 * @ftl: the layer
 * @slot: not FTL_NONE
 *
 * Return: true if it is.
 */
bool ftl_is_slc(const struct ftl *ftl, u32 slot)
{
	return slot >= ftl->nr_blocks[FTL_MAIN] * ftl->geo.block;
}

static enum ftl_pool host_pool(const struct ftl *ftl, const struct ftl_die *die)
{
	if (!ftl->nr_blocks[FTL_SLC])
		return FTL_MAIN;
	if (is_open(&die->host[FTL_SLC]) || die->free[FTL_SLC].count)
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
	const struct ftl_stream *stream = &d->host[pool];
	struct ftl_room room = { .slc = pool == FTL_SLC };

	if (is_open(stream))
		room.units = ftl->geo.row - stream->used % ftl->geo.row;
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

	if (!d->wrote)
		d->last = host_pool(ftl, d);
	log_put(ftl, d, &d->host[d->last], d->last, unit);
	ftl->counters.host_pages++;
	d->wrote++;
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
	struct ftl_stream *stream = &d->host[d->last];
	u32 odd = stream->used % ftl->geo.page;
	u32 pad = odd ? ftl->geo.page - odd : 0;

	if (pad)
		log_use(ftl, d, stream, pad);
	d->wrote += pad;
	ftl->counters.padded_pages += pad;
	if (!ftl_gc_on(ftl, die))
		d->debt = 0;
	else if (d->last == FTL_MAIN)
		d->debt += (s64)d->wrote * ftl->geo.block;
	d->wrote = 0;
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
	u32 slot = map_get(d, unit);

	if (slot == FTL_NONE)
		return false;
	slot_drop(ftl, d, slot);
	map_set(d, unit, FTL_NONE);
	ftl->counters.trimmed_pages++;
	return true;
}

/**
 * ftl_gc_on - is there garbage to be collected?
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if free blocks are fewer than wanted and there is a block to
 * gain from, or one is half done, or moved units wait for their program.
 */
bool ftl_gc_on(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];

	if (d->rows || d->victim[FTL_MAIN].block != FTL_NO_BLOCK)
		return true;
	return d->free[FTL_MAIN].count < ftl->geo.gc_high &&
	       d->least < ftl->geo.block;
}

/**
 * ftl_gc_first - must collection go before a program of the host?
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if free blocks are at gc_low, or the host has written more than
 * collection has worked for.
 */
bool ftl_gc_first(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];

	return ftl_gc_on(ftl, die) &&
	       (d->debt > 0 || d->free[FTL_MAIN].count <= ftl->geo.gc_low);
}

/**
 * ftl_fold_on - are there fast blocks to be emptied?
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if one is closed, and the others have free blocks for what it
 * holds.
 */
bool ftl_fold_on(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];
	u32 open = is_open(&d->host[FTL_SLC]);

	return ftl->nr_blocks[FTL_SLC] > d->free[FTL_SLC].count + open &&
	       d->free[FTL_MAIN].count > ftl->geo.gc_low;
}

/* The least worn closed block, if blocks differ too much. */
static u16 pick_unworn(const struct ftl *ftl, struct ftl_die *die)
{
	u16 found = FTL_NO_BLOCK;
	u32 nr;

	if (!ftl->wear_gap || die->worn - die->unworn <= ftl->wear_gap)
		return FTL_NO_BLOCK;
	if (die->wear_wait) {
		die->wear_wait--;
		return FTL_NO_BLOCK;
	}
	die->wear_wait = FTL_WEAR_EVERY - 1;
	for (nr = 0; nr < ftl->nr_blocks[FTL_MAIN]; nr++) {
		if (die->blocks[nr].state == FTL_CLOSED &&
		    (found == FTL_NO_BLOCK ||
		     die->blocks[nr].erases < die->blocks[found].erases))
			found = nr;
	}
	if (found == FTL_NO_BLOCK)
		return found;
	die->unworn = die->blocks[found].erases;
	return die->worn - die->unworn > ftl->wear_gap ? found : FTL_NO_BLOCK;
}

/* The closed fast block with the fewest valid units. There are few blocks. */
static u16 pick_slc(const struct ftl *ftl, const struct ftl_die *die)
{
	u32 nr = ftl->nr_blocks[FTL_MAIN];
	u32 end = nr + ftl->nr_blocks[FTL_SLC];
	u16 found = FTL_NO_BLOCK;

	for (; nr < end; nr++) {
		if (die->blocks[nr].state == FTL_CLOSED &&
		    (found == FTL_NO_BLOCK ||
		     die->blocks[nr].valid < die->blocks[found].valid))
			found = nr;
	}
	return found;
}

static bool victim_pick(struct ftl *ftl, struct ftl_die *die,
			enum ftl_pool from)
{
	struct ftl_victim *victim = &die->victim[from];
	u16 nr;

	if (from == FTL_SLC) {
		nr = pick_slc(ftl, die);
	} else {
		nr = pick_unworn(ftl, die);
		if (nr != FTL_NO_BLOCK) {
			ftl->counters.wear_moves++;
		} else {
			if (die->least <= ftl->geo.block)
				nr = die->by_valid[die->least];
		}
	}
	if (nr == FTL_NO_BLOCK)
		return false;

	if (from == FTL_MAIN) {
		closed_del(die, nr);
		closed_find(ftl, die);
	}
	die->blocks[nr].state = FTL_VICTIM;
	victim->block = nr;
	victim->at = 0;
	victim->gain = ftl->geo.block - die->blocks[nr].valid;
	return true;
}

/* Moves what is valid in the victim's next row; how much that was. */
static u32 victim_row(struct ftl *ftl, struct ftl_die *die,
		      struct ftl_victim *victim)
{
	u32 slot = victim->block * ftl->geo.block + victim->at;
	u32 end = slot + ftl->geo.row;
	u32 moved = 0;

	for (; slot < end; slot++) {
		u32 unit = unit_in(die, slot);

		if (unit == FTL_NONE)
			continue;
		log_put(ftl, die, &die->gc, FTL_MAIN, unit);
		if (!(die->gc.used % ftl->geo.row))
			die->rows++;
		moved++;
	}
	victim->at += ftl->geo.row;
	return moved;
}

static void victim_erase(struct ftl *ftl, struct ftl_die *die,
			 enum ftl_pool from)
{
	struct ftl_victim *victim = &die->victim[from];
	struct ftl_block *block = &die->blocks[victim->block];

	block->erases++;
	if (from == FTL_MAIN)
		die->worn = max(die->worn, block->erases);
	free_add(die, &die->free[from], victim->block);
	victim->block = FTL_NO_BLOCK;
	ftl->counters.erases++;
}

/* What was done of the victim in the main pool pays the host's debt. */
static void victim_pay(const struct ftl *ftl, struct ftl_die *die, u32 slots)
{
	s64 most = (s64)ftl->geo.block * ftl->geo.block;

	die->debt -= (s64)slots * die->victim[FTL_MAIN].gain;
	die->debt = max(die->debt, -most);
}

/**
 * ftl_step - do the next of the work that collects garbage
 * @ftl: the layer
 * @die: the die
 * @from: whose blocks are emptied. For FTL_MAIN ftl_gc_on() is true, for
 *	  FTL_SLC ftl_fold_on() and not ftl_gc_on().
 *
 * The map changes at once. The caller makes the die busy with what it is told
 * before it does anything else there.
 *
 * Return: the operation that it was.
 */
struct ftl_step ftl_step(struct ftl *ftl, u32 die, enum ftl_pool from)
{
	struct ftl_die *d = &ftl->dies[die];
	struct ftl_victim *victim = &d->victim[from];
	struct ftl_step step = { .work = FTL_ERASE, .slc = from == FTL_SLC };
	u32 at;

	if (d->rows) {
		d->rows--;
		step.work = FTL_PROGRAM;
		return step;
	}
	/* The caller knows that there is one; if not, an erase does no harm. */
	if (victim->block == FTL_NO_BLOCK &&
	    WARN_ON_ONCE(!victim_pick(ftl, d, from)))
		return step;

	at = victim->at;
	while (d->blocks[victim->block].valid && !step.units)
		step.units = victim_row(ftl, d, victim);
	if (from == FTL_MAIN)
		victim_pay(ftl, d, (step.units ? victim->at : ftl->geo.block) -
				   at);
	if (step.units) {
		step.work = FTL_READ;
		if (from == FTL_SLC)
			ftl->counters.slc_pages += step.units;
		else
			ftl->counters.gc_pages += step.units;
		return step;
	}
	victim_erase(ftl, d, from);
	return step;
}

/**
 * ftl_set_wear_gap - by how many erases may blocks differ?
 * @ftl: the layer
 * @wear_gap: so many; 0 = any
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
	return ftl->memory;
}

/* Free, from the first block on. */
static void die_empty(const struct ftl *ftl, struct ftl_die *die)
{
	u32 nr, pool;

	for (pool = 0; pool < FTL_NR_POOLS; pool++) {
		die->free[pool].head = FTL_NO_BLOCK;
		die->free[pool].tail = FTL_NO_BLOCK;
		die->host[pool].block = FTL_NO_BLOCK;
		die->victim[pool].block = FTL_NO_BLOCK;
	}
	die->gc.block = FTL_NO_BLOCK;
	die->least = ftl->geo.block + 1;
	for (nr = 0; nr <= ftl->geo.block; nr++)
		die->by_valid[nr] = FTL_NO_BLOCK;
	for (nr = 0; nr < ftl->nr_blocks[FTL_MAIN]; nr++)
		free_add(die, &die->free[FTL_MAIN], nr);
	for (; nr < ftl->nr_blocks[FTL_MAIN] + ftl->nr_blocks[FTL_SLC]; nr++)
		free_add(die, &die->free[FTL_SLC], nr);
}

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

static int ftl_alloc(struct ftl *ftl)
{
	u32 dies = ftl->geo.dies;
	u32 units = DIV_ROUND_UP(ftl->geo.units, dies);
	u32 blocks = ftl->nr_blocks[FTL_MAIN] + ftl->nr_blocks[FTL_SLC];
	u64 map = (u64)units * dies * FTL_MAP_BYTES + 1;
	u64 back = (u64)ftl->nr_slots * dies * sizeof(*ftl->backs);
	u32 die;

	/* May be more than the 2 GiB of kvmalloc(). */
	ftl->maps = vmalloc(map);
	ftl->backs = vzalloc(back);
	ftl->blocks = kvcalloc(dies, array_size(blocks, sizeof(*ftl->blocks)),
			       GFP_KERNEL);
	ftl->by_valid = kvcalloc(dies, array_size(ftl->geo.block + 1,
						  sizeof(*ftl->by_valid)),
				 GFP_KERNEL);
	if (!ftl->maps || !ftl->backs || !ftl->blocks || !ftl->by_valid)
		return -ENOMEM;

	ftl->memory = struct_size(ftl, dies, dies) + map + back +
		      (u64)dies * blocks * sizeof(*ftl->blocks) +
		      (u64)dies * (ftl->geo.block + 1) * sizeof(*ftl->by_valid);
	memset(ftl->maps, 0xff, map);
	for (die = 0; die < dies; die++) {
		struct ftl_die *d = &ftl->dies[die];

		d->map = ftl->maps + (size_t)die * units * FTL_MAP_BYTES;
		d->back = ftl->backs + (size_t)die * ftl->nr_slots;
		d->blocks = ftl->blocks + (size_t)die * blocks;
		d->by_valid = ftl->by_valid +
			      (size_t)die * (ftl->geo.block + 1);
		d->units = ftl->geo.units / dies + (die < ftl->geo.units % dies);
		die_empty(ftl, d);
	}
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
	kvfree(ftl->by_valid);
	kvfree(ftl->blocks);
	vfree(ftl->backs);
	vfree(ftl->maps);
	kvfree(ftl);
}

/* Valid units of the blocks of a die by age, as S r^i, r in 2^-32; their sum. */
static u64 series_sum(u32 block, u32 nr_blocks, u64 r)
{
	u64 valid = (u64)block << FTL_SERIES_SHIFT;
	u64 sum = 0;

	while (nr_blocks--) {
		sum += valid >> FTL_SERIES_SHIFT;
		valid = (valid * r) >> 32;
	}
	return sum;
}

/* The greatest r for which a die holds no more units than it has to. */
static u64 series_ratio(u32 block, u32 nr_blocks, u32 live)
{
	u64 low = 0, high = 1ULL << 32;

	while (low < high) {
		u64 r = (low + high + 1) / 2;

		if (series_sum(block, nr_blocks, r) <= live)
			low = r;
		else
			high = r - 1;
	}
	return low;
}

/**
 * struct ftl_dice - random numbers, one after the other
 * @seed: of the sequence
 * @n: how many were taken
 */
struct ftl_dice {
	u64 seed;
	u64 n;
};

static u32 dice_below(struct ftl_dice *dice, u32 below)
{
	return vdisk_random_below(dice->seed, dice->n++, below);
}

/* The units 0 .. count - 1 in random order (Fisher and Yates, inside out). */
static void shuffle(u32 *units, u32 count, struct ftl_dice *dice)
{
	u32 i, j;

	for (i = 0; i < count; i++) {
		j = dice_below(dice, i + 1);
		units[i] = units[j];
		units[j] = i;
	}
}

/* Opens a block, puts valid units into slots of it at random, and closes it. */
static void fill_block(struct ftl *ftl, struct ftl_die *die, const u32 *units,
		       u32 valid, struct ftl_dice *dice)
{
	struct ftl_stream stream;
	u32 left;

	log_open(die, &stream, FTL_MAIN);
	for (left = ftl->geo.block; left; left--) {
		if (valid && dice_below(dice, left) < valid)
			log_put(ftl, die, &stream, FTL_MAIN, units[--valid]);
		else
			log_use(ftl, die, &stream, 1);
	}
}

static void fill_sequential(struct ftl *ftl, struct ftl_die *die, u32 live)
{
	u32 unit;

	for (unit = 0; unit < live; unit++)
		log_put(ftl, die, &die->host[FTL_MAIN], FTL_MAIN, unit);
}

static void fill_random(struct ftl *ftl, u32 nr, u32 live, u32 *units,
			struct ftl_dice *dice)
{
	struct ftl_die *die = &ftl->dies[nr];
	u32 block = ftl->geo.block;
	u32 blocks = ftl->nr_blocks[FTL_MAIN] - ftl->geo.gc_high - 1;
	u64 ratio = series_ratio(block, blocks, live);
	/* What the rounding of each block left. */
	u32 rest = live - series_sum(block, blocks, ratio);
	u64 valid = (u64)block << FTL_SERIES_SHIFT;
	u32 left = live;
	u64 writes;
	u32 i;

	shuffle(units, live, dice);
	for (i = 0; i < blocks && left; i++) {
		u32 now = valid >> FTL_SERIES_SHIFT;
		/* Shared out evenly over the blocks that are left. */
		u32 more = min(DIV_ROUND_UP(rest, blocks - i), block - now);

		now = min(now + more, left);
		rest -= min(more, rest);
		left -= now;
		if (now)
			fill_block(ftl, die, units + left, now, dice);
		valid = (valid * ratio) >> 32;
	}

	writes = ftl->counters.host_pages + ftl->counters.gc_pages +
		 (u64)blocks * block;
	while (live &&
	       ftl->counters.host_pages + ftl->counters.gc_pages < writes) {
		while (ftl_gc_on(ftl, nr))
			ftl_step(ftl, nr, FTL_MAIN);
		log_put(ftl, die, &die->host[FTL_MAIN], FTL_MAIN,
			dice_below(dice, live));
		ftl->counters.host_pages++;
	}
	while (ftl_gc_on(ftl, nr))
		ftl_step(ftl, nr, FTL_MAIN);
	die->debt = 0;
}

/**
 * ftl_precondition - fill an empty disk, at once
 * @ftl: the layer
 * @fill: per cent of the units, from the first on
 * @random: to the steady state of uniform random writes to these units; false =
 *	    written once, in order
 * @seed: of the order
 *
 * The counters start from zero behind it; the wear remains.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int ftl_precondition(struct ftl *ftl, u32 fill, bool random, u64 seed)
{
	u32 live = div_u64((u64)ftl->geo.units * fill, 100);
	u32 most = DIV_ROUND_UP(live, ftl->geo.dies);
	u32 *units = NULL;
	u32 die;

	if (random && most) {
		units = kvmalloc_array(most, sizeof(*units), GFP_KERNEL);
		if (!units)
			return -ENOMEM;
	}
	for (die = 0; die < ftl->geo.dies; die++) {
		struct ftl_dice dice = { .seed = vdisk_random(seed, die) };
		u32 of_die = live / ftl->geo.dies +
			     (die < live % ftl->geo.dies);

		if (random)
			fill_random(ftl, die, of_die, units, &dice);
		else
			fill_sequential(ftl, &ftl->dies[die], of_die);
		cond_resched();
	}
	kvfree(units);
	memset(&ftl->counters, 0, sizeof(ftl->counters));
	return 0;
}
