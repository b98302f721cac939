// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preconditioning: contents of a disk before its first command.
 *
 * Steady state, computed. Under uniform random writes a block loses valid units
 * at a rate proportional to their number, and the block with the fewest is the
 * oldest, up to fluctuations. So the blocks, by age, hold S, S r, S r^2 ...
 * valid units, with r such that the sum is the disk's data. The victim's part f
 * of valid units then obeys f = exp(-(1 - f) a), with a = flash / data, the
 * known result for greedy collection of large blocks (Menon 1995; Bux and
 * Iliadis 2010; Xiang and Kurkoski 2012). Units are assigned to such blocks at
 * random. Then each die is written at random until it has programmed its whole
 * flash once, for the fluctuations.
 */
#include <linux/errno.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ftl.h"
#include "ftl_die.h"
#include "random.h"

/* Fraction bits of the valid units of a block in the geometric series. */
#define FTL_SERIES_SHIFT	16

/* Units that are written before cond_resched(): a ms or less. */
#define FTL_UNITS_PER_RESCHED	4096

/*
 * Return the sum of valid units of a die's blocks: S r^i by age, with r in
 * units of 2^-32.
 */
static u64 ftl_series_sum(u32 block, u32 nr_blocks, u64 r)
{
	u64 valid = (u64)block << FTL_SERIES_SHIFT;
	u64 sum = 0;

	while (nr_blocks--) {
		sum += valid >> FTL_SERIES_SHIFT;
		valid = (valid * r) >> 32;
	}
	return sum;
}

/* Return the greatest r for which a die's blocks hold at most @live units. */
static u64 ftl_series_ratio(u32 block, u32 nr_blocks, u32 live)
{
	u64 low = 0, high = 1ULL << 32;

	while (low < high) {
		u64 r = (low + high + 1) / 2;

		if (ftl_series_sum(block, nr_blocks, r) <= live)
			low = r;
		else
			high = r - 1;
	}
	return low;
}

/* A sequence of random numbers. */
struct ftl_dice {
	u64 seed;	/* seed of the sequence */
	u64 n;		/* numbers taken so far */
};

/*
 * Call cond_resched() every FTL_UNITS_PER_RESCHED units. A die may have 2^24 units:
 * seconds of work, and minutes under a sanitizer.
 */
static void ftl_fill_resched(u32 done)
{
	if (!(done % FTL_UNITS_PER_RESCHED))
		cond_resched();
}

static u32 ftl_dice_below(struct ftl_dice *dice, u32 below)
{
	return vdisk_random_below(dice->seed, dice->n++, below);
}

/* Shuffle the units 0 .. count - 1 (Fisher and Yates, inside out). */
static void ftl_shuffle_units(u32 *units, u32 count, struct ftl_dice *dice)
{
	u32 i, j;

	for (i = 0; i < count; i++) {
		j = ftl_dice_below(dice, i + 1);
		units[i] = units[j];
		units[j] = i;
		ftl_fill_resched(i);
	}
}

/* Open a block, put valid units into slots of it at random, and close it. */
static void ftl_fill_block(struct ftl *ftl, struct ftl_die *die,
			   const u32 *units, u32 valid, struct ftl_dice *dice)
{
	struct ftl_log log;
	u32 left;

	ftl_log_open(die, &log, FTL_MAIN);
	for (left = ftl->geo.block_units; left; left--) {
		if (valid && ftl_dice_below(dice, left) < valid)
			ftl_log_put(ftl, die, &log, FTL_MAIN, units[--valid]);
		else
			ftl_log_use(ftl, die, &log, 1);
	}
	cond_resched();
}

/* Write the first units of a die once, in order. */
static void ftl_fill_sequential(struct ftl *ftl, struct ftl_die *die, u32 live)
{
	u32 unit;

	for (unit = 0; unit < live; unit++) {
		ftl_log_put(ftl, die, &die->host.log[FTL_MAIN], FTL_MAIN, unit);
		ftl_fill_resched(unit);
	}
}

static void ftl_collect_all(struct ftl *ftl, u32 nr)
{
	while (ftl_gc_has_work(ftl, nr))
		ftl_step(ftl, nr, FTL_MAIN);
}

/*
 * Write the first units of a die at random, until the host and the resulting
 * garbage collection have programmed @programs units.
 */
static void ftl_write_random(struct ftl *ftl, u32 nr, u32 live, u64 programs,
			     struct ftl_dice *dice)
{
	const struct ftl_counters *counters = &ftl->counters;
	struct ftl_die *die = &ftl->dies[nr];
	u32 done = 0;

	programs += counters->host_pages + counters->gc_pages;
	while (counters->host_pages + counters->gc_pages < programs) {
		ftl_collect_all(ftl, nr);
		ftl_log_put(ftl, die, &die->host.log[FTL_MAIN], FTL_MAIN,
			    ftl_dice_below(dice, live));
		ftl->counters.host_pages++;
		ftl_fill_resched(done++);
	}
}

/*
 * Bring the first units of a die into the steady state of random writes: assign
 * them to blocks by the series, then write at random.
 */
static void ftl_fill_random(struct ftl *ftl, u32 nr, u32 live, u32 *units,
			    struct ftl_dice *dice)
{
	struct ftl_die *die = &ftl->dies[nr];
	u32 block = ftl->geo.block_units;
	u32 blocks = ftl->nr_blocks[FTL_MAIN] - ftl->geo.gc_high - 1;
	u64 ratio = ftl_series_ratio(block, blocks, live);
	/* Units lost by the rounding of each block. */
	u32 rest = live - ftl_series_sum(block, blocks, ratio);
	u64 valid = (u64)block << FTL_SERIES_SHIFT;
	u32 left = live;
	u32 i;

	ftl_shuffle_units(units, live, dice);
	for (i = 0; i < blocks && left; i++) {
		u32 now = valid >> FTL_SERIES_SHIFT;
		/* Distribute them evenly over the remaining blocks. */
		u32 more = min(DIV_ROUND_UP(rest, blocks - i), block - now);

		now = min(now + more, left);
		rest -= min(more, rest);
		left -= now;
		if (now)
			ftl_fill_block(ftl, die, units + left, now, dice);
		valid = (valid * ratio) >> 32;
	}

	if (live)
		ftl_write_random(ftl, nr, live, (u64)blocks * block, dice);
	ftl_collect_all(ftl, nr);
	die->host.debt = 0;
}

/* Fill the fast blocks with invalid units: all has been overwritten. */
static void ftl_fill_slc(const struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_log log;

	while (die->free[FTL_SLC].count) {
		ftl_log_open(die, &log, FTL_SLC);
		ftl_log_use(ftl, die, &log, ftl->geo.block_units);
	}
}

/**
 * ftl_precondition - fill an empty disk, in no simulated time
 * @ftl: the layer
 * @fill: per cent of the units, from the first on
 * @random: true for the steady state of uniform random writes to these units;
 *	    false to write them once, in order
 * @seed: seed of the order
 *
 * It resets the counters to zero; the wear remains.
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

		if (random) {
			ftl_fill_random(ftl, die, of_die, units, &dice);
			ftl_fill_slc(ftl, &ftl->dies[die]);
		} else {
			ftl_fill_sequential(ftl, &ftl->dies[die], of_die);
		}
	}
	kvfree(units);
	memset(&ftl->counters, 0, sizeof(ftl->counters));
	return 0;
}
