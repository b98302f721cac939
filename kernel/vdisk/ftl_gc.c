// SPDX-License-Identifier: GPL-2.0-only
/*
 * Garbage collection and wear levelling of the translation layer: when they
 * run, which block is the victim, and their operations. ftl.c explains the pace
 * and the choice.
 */
#include <linux/bug.h>
#include <linux/minmax.h>

#include "ftl.h"
#include "ftl_die.h"
#include "ftl_map.h"

/*
 * While wear differs too much, one victim in this many is chosen by its wear:
 * often enough to catch up, and a few per cent of the cost at most.
 */
#define FTL_WEAR_EVERY	16

/**
 * ftl_gc_on - return whether garbage collection has work on a die
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if there are fewer than gc_high free blocks and a block with
 * invalid units, or a victim is partly emptied, or moved units wait for a program.
 */
bool ftl_gc_on(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];

	if (d->gc.rows || d->gc.victim[FTL_MAIN].block != FTL_NO_BLOCK)
		return true;
	return d->free[FTL_MAIN].count < ftl->geo.gc_high &&
	       d->closed.least < ftl->geo.block;
}

/**
 * ftl_gc_first - return whether collection precedes programs of the host
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if free blocks are at gc_low, or the host has written more than
 * collection has paid for.
 */
bool ftl_gc_first(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];

	return ftl_gc_on(ftl, die) &&
	       (d->host.debt > 0 || d->free[FTL_MAIN].count <= ftl->geo.gc_low);
}

/**
 * ftl_fold_on - return whether fast blocks can be emptied
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if a fast block is closed, and ordinary blocks are free for its
 * units.
 */
bool ftl_fold_on(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];
	u32 open = ftl_log_is_open(&d->host.log[FTL_SLC]);

	return ftl->nr_blocks[FTL_SLC] > d->free[FTL_SLC].count + open &&
	       d->free[FTL_MAIN].count > ftl->geo.gc_low;
}

/* Return the least worn closed block if wear differs too much. */
static u16 pick_unworn(const struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_wear *wear = &die->wear;
	u16 found = FTL_NO_BLOCK;
	u32 nr;

	if (!ftl->wear_gap || wear->worn - wear->unworn <= ftl->wear_gap)
		return FTL_NO_BLOCK;
	if (wear->wait) {
		wear->wait--;
		return FTL_NO_BLOCK;
	}
	wear->wait = FTL_WEAR_EVERY - 1;
	for (nr = 0; nr < ftl->nr_blocks[FTL_MAIN]; nr++) {
		if (die->blocks[nr].state == FTL_CLOSED &&
		    (found == FTL_NO_BLOCK ||
		     die->blocks[nr].erases < die->blocks[found].erases))
			found = nr;
	}
	if (found == FTL_NO_BLOCK)
		return found;
	wear->unworn = die->blocks[found].erases;
	return wear->worn - wear->unworn > ftl->wear_gap ? found : FTL_NO_BLOCK;
}

/*
 * Return the closed fast block with the fewest valid units: a search, for there
 * are few.
 */
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

/* Choose a victim. Return false if there is none. */
static bool victim_pick(struct ftl *ftl, struct ftl_die *die,
			enum ftl_pool from)
{
	struct ftl_victim *victim = &die->gc.victim[from];
	u16 nr;

	if (from == FTL_SLC) {
		nr = pick_slc(ftl, die);
	} else {
		nr = pick_unworn(ftl, die);
		if (nr != FTL_NO_BLOCK)
			ftl->counters.wear_moves++;
		else if (die->closed.least <= ftl->geo.block)
			nr = die->closed.by_valid[die->closed.least];
	}
	if (nr == FTL_NO_BLOCK)
		return false;

	if (from == FTL_MAIN)
		ftl_closed_take(ftl, die, nr);
	die->blocks[nr].state = FTL_VICTIM;
	victim->block = nr;
	victim->at = 0;
	victim->gain = ftl->geo.block - die->blocks[nr].valid;
	return true;
}

/* Move the valid units of the victim's next row. Return their number. */
static u32 victim_row(struct ftl *ftl, struct ftl_die *die,
		      struct ftl_victim *victim)
{
	u32 slot = victim->block * ftl->geo.block + victim->at;
	u32 end = slot + ftl->geo.row;
	u32 moved = 0;

	for (; slot < end; slot++) {
		u32 unit = ftl_map_unit(&die->map, slot);

		if (unit == FTL_NONE)
			continue;
		ftl_log_put(ftl, die, &die->gc.log, FTL_MAIN, unit);
		if (!(die->gc.log.used % ftl->geo.row))
			die->gc.rows++;
		moved++;
	}
	victim->at += ftl->geo.row;
	return moved;
}

/* Erase the victim, which has no valid unit any more. */
static void victim_erase(struct ftl *ftl, struct ftl_die *die,
			 enum ftl_pool from)
{
	struct ftl_victim *victim = &die->gc.victim[from];
	struct ftl_block *block = &die->blocks[victim->block];

	block->erases++;
	if (from == FTL_MAIN)
		die->wear.worn = max(die->wear.worn, block->erases);
	ftl_free_add(die, &die->free[from], victim->block);
	victim->block = FTL_NO_BLOCK;
	ftl->counters.erases++;
}

/* Count processed slots of the main victim against the host's debt. */
static void victim_pay(const struct ftl *ftl, struct ftl_die *die, u32 slots)
{
	s64 most = (s64)ftl->geo.block * ftl->geo.block;

	die->host.debt -= (s64)slots * die->gc.victim[FTL_MAIN].gain;
	die->host.debt = max(die->host.debt, -most);
}

/**
 * ftl_step - execute the next operation of garbage collection
 * @ftl: the layer
 * @die: the die
 * @from: pool whose blocks are emptied. For FTL_MAIN ftl_gc_on() is true, for
 *	  FTL_SLC ftl_fold_on() and not ftl_gc_on().
 *
 * The map changes at once. The caller keeps the die busy with the operation
 * before it starts another one there.
 *
 * Return: the operation.
 */
struct ftl_step ftl_step(struct ftl *ftl, u32 die, enum ftl_pool from)
{
	struct ftl_die *d = &ftl->dies[die];
	struct ftl_victim *victim = &d->gc.victim[from];
	struct ftl_step step = { .work = FTL_ERASE };
	u32 at;

	if (d->gc.rows) {
		d->gc.rows--;
		step.work = FTL_PROGRAM;
		return step;
	}
	/* The caller has checked that there is a victim. */
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
		step.slot = victim->block * ftl->geo.block + victim->at -
			    ftl->geo.row;
		if (from == FTL_SLC)
			ftl->counters.slc_pages += step.units;
		else
			ftl->counters.gc_pages += step.units;
		return step;
	}
	victim_erase(ftl, d, from);
	return step;
}
