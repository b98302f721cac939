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
#define FTL_WEAR_INTERVAL	16

/**
 * ftl_gc_has_work - return whether garbage collection has work on a die
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if there are fewer than gc_high free blocks and a block with
 * invalid units, or a victim is partly emptied, or moved units wait for a program.
 */
bool ftl_gc_has_work(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];

	if (d->gc.full_rows || d->gc.victim[FTL_MAIN].block != FTL_NO_BLOCK)
		return true;
	return d->free[FTL_MAIN].count < ftl->geo.gc_high &&
	       d->closed.valid_min < ftl->geo.block_units;
}

/**
 * ftl_gc_is_urgent - return whether collection precedes programs of the host
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if free blocks are at gc_low, or the host has written more than
 * collection has paid for.
 */
bool ftl_gc_is_urgent(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];

	return ftl_gc_has_work(ftl, die) &&
	       (d->host.debt > 0 || d->free[FTL_MAIN].count <= ftl->geo.gc_low);
}

/**
 * ftl_may_fold - return whether fast blocks can be emptied
 * @ftl: the layer
 * @die: the die
 *
 * Return: true if a fast block is closed, and ordinary blocks are free for its
 * units.
 */
bool ftl_may_fold(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->dies[die];
	u32 open = ftl_log_is_open(&d->host.log[FTL_SLC]);

	return ftl->nr_blocks[FTL_SLC] > d->free[FTL_SLC].count + open &&
	       d->free[FTL_MAIN].count > ftl->geo.gc_low;
}

/* Return the least worn closed block if wear differs too much. */
static u16 ftl_gc_pick_unworn(const struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_wear *wear = &die->wear;
	u16 found = FTL_NO_BLOCK;
	u32 nr;

	if (!ftl->wear_gap ||
	    wear->erases_max - wear->erases_min <= ftl->wear_gap)
		return FTL_NO_BLOCK;
	if (wear->nr_wait) {
		wear->nr_wait--;
		return FTL_NO_BLOCK;
	}
	wear->nr_wait = FTL_WEAR_INTERVAL - 1;
	for (nr = 0; nr < ftl->nr_blocks[FTL_MAIN]; nr++) {
		if (die->blocks[nr].state == FTL_CLOSED &&
		    (found == FTL_NO_BLOCK ||
		     die->blocks[nr].erases < die->blocks[found].erases))
			found = nr;
	}
	if (found == FTL_NO_BLOCK)
		return found;
	wear->erases_min = die->blocks[found].erases;
	return wear->erases_max - wear->erases_min > ftl->wear_gap ?
		       found :
		       FTL_NO_BLOCK;
}

/*
 * Return the closed fast block with the fewest valid units: a search, for there
 * are few.
 */
static u16 ftl_gc_pick_slc(const struct ftl *ftl, const struct ftl_die *die)
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
static bool ftl_victim_pick(struct ftl *ftl, struct ftl_die *die,
			    enum ftl_pool from)
{
	struct ftl_victim *victim = &die->gc.victim[from];
	u16 nr;

	if (from == FTL_SLC) {
		nr = ftl_gc_pick_slc(ftl, die);
	} else {
		nr = ftl_gc_pick_unworn(ftl, die);
		if (nr != FTL_NO_BLOCK)
			ftl->counters.wear_moves++;
		else if (die->closed.valid_min <= ftl->geo.block_units)
			nr = die->closed.by_valid[die->closed.valid_min];
	}
	if (nr == FTL_NO_BLOCK)
		return false;

	if (from == FTL_MAIN)
		ftl_closed_take(ftl, die, nr);
	die->blocks[nr].state = FTL_VICTIM;
	victim->block = nr;
	victim->nr_done = 0;
	victim->nr_invalid = ftl->geo.block_units - die->blocks[nr].valid;
	return true;
}

/* Move the valid units of the victim's next row. Return their number. */
static u32 ftl_victim_move_row(struct ftl *ftl, struct ftl_die *die,
			       struct ftl_victim *victim)
{
	u32 slot = victim->block * ftl->geo.block_units + victim->nr_done;
	u32 end = slot + ftl->geo.row_units;
	u32 moved = 0;

	for (; slot < end; slot++) {
		u32 unit = ftl_map_get_unit(&die->map, slot);

		if (unit == FTL_NONE)
			continue;
		ftl_log_put(ftl, die, &die->gc.log, FTL_MAIN, unit);
		if (!(die->gc.log.used_slots % ftl->geo.row_units))
			die->gc.full_rows++;
		moved++;
	}
	victim->nr_done += ftl->geo.row_units;
	return moved;
}

/* Erase the victim, which has no valid unit any more. */
static void ftl_victim_erase(struct ftl *ftl, struct ftl_die *die,
			     enum ftl_pool from)
{
	struct ftl_victim *victim = &die->gc.victim[from];
	struct ftl_block *block = &die->blocks[victim->block];

	block->erases++;
	if (from == FTL_MAIN)
		die->wear.erases_max = max(die->wear.erases_max, block->erases);
	ftl_free_add(die, &die->free[from], victim->block);
	victim->block = FTL_NO_BLOCK;
	ftl->counters.erases++;
}

/* Count processed slots of the main victim against the host's debt. */
static void ftl_victim_pay_debt(const struct ftl *ftl, struct ftl_die *die,
				u32 slots)
{
	s64 most = (s64)ftl->geo.block_units * ftl->geo.block_units;

	die->host.debt -= (s64)slots * die->gc.victim[FTL_MAIN].nr_invalid;
	die->host.debt = max(die->host.debt, -most);
}

/**
 * ftl_step - execute the next operation of garbage collection
 * @ftl: the layer
 * @die: the die
 * @from: pool whose blocks are emptied. For FTL_MAIN ftl_gc_has_work() is true, for
 *	  FTL_SLC ftl_may_fold() and not ftl_gc_has_work().
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

	if (d->gc.full_rows) {
		d->gc.full_rows--;
		step.work = FTL_PROGRAM;
		return step;
	}
	/* The caller has checked that there is a victim. */
	if (victim->block == FTL_NO_BLOCK &&
	    WARN_ON_ONCE(!ftl_victim_pick(ftl, d, from)))
		return step;

	at = victim->nr_done;
	while (d->blocks[victim->block].valid && !step.units)
		step.units = ftl_victim_move_row(ftl, d, victim);
	if (from == FTL_MAIN)
		ftl_victim_pay_debt(ftl, d,
				    (step.units ? victim->nr_done :
						  ftl->geo.block_units) -
					    at);
	if (step.units) {
		step.work = FTL_READ;
		step.slot = victim->block * ftl->geo.block_units +
			    victim->nr_done - ftl->geo.row_units;
		if (from == FTL_SLC)
			ftl->counters.slc_pages += step.units;
		else
			ftl->counters.gc_pages += step.units;
		return step;
	}
	ftl_victim_erase(ftl, d, from);
	return step;
}
