// SPDX-License-Identifier: GPL-2.0-only
/*
 * Swap-out, and its charge to the group.
 *
 * Swap-out frees memory that other tasks may wait for: it never waits, neither at the gate nor in
 * order. A group whose pages all wait to be written has nothing to reclaim; its tasks are killed.
 *
 * Swap-out is charged, and the group's reads and writes pay for it. A group of small weight would
 * pay for hours, while it waits for its swap-in: so the debt is capped.
 *
 * Beyond it, or without reads and writes, nothing would throttle a group that allocates more
 * memory than it has. So as long as a group is in debt its tasks, when they have allocated, sleep
 * on the way back to user space, where they hold no lock. The kernel does that by the blkg's
 * delay, as for io.cost. A delay that io.latency has set is left alone.
 */
#include <linux/time64.h>

#include "isoblk/fq.h"
#include "isoblk/swap.h"
#include "muldiv.h"

/* The longest debt, of @debt_max: a second of the device. */
#define SWAP_DEBTS_MAX		50

/* The longest sleep: the task may do work that other tasks wait for. */
#define SWAP_DELAY_MAX_NS	(250 * NSEC_PER_MSEC)

static void iso_cap_debt(const struct iso_disk *d, struct iso_group *g)
{
	iso_lower_vtime(g, READ_ONCE(d->clock.vnow) +
		SWAP_DEBTS_MAX * READ_ONCE(d->clock.debt_max));
}

/* @g is in debt: its tasks are to sleep until the device has done so much. */
static void iso_set_delay(const struct iso_disk *d, struct iso_group *g)
{
	struct blkcg_gq *blkg = pd_to_blkg(&g->group->pd);
	u64 debt_max = READ_ONCE(d->clock.debt_max);
	s64 debt = atomic64_read(&g->vtime) - READ_ONCE(d->clock.vnow) -
		debt_max;
	u64 ns = mul_div(max(debt, 0LL), ISO_DEBT_NS, max(debt_max, 1ULL));

	if (atomic_read(&blkg->use_delay) <= 0)
		isoblk_set_delay(blkg, min(ns, SWAP_DELAY_MAX_NS));
}

static void iso_clear_delay(struct iso_group *g)
{
	struct blkcg_gq *blkg = pd_to_blkg(&g->group->pd);

	if (atomic_read(&blkg->use_delay) < 0)
		isoblk_clear_delay(blkg);
}

/* Whether a group whose virtual time was @from would have been next on @hq in order as well. */
static bool iso_was_next(const struct iso_disk *d, const struct iso_hq *hq, u64 from)
{
	struct rb_node *node = rb_first_cached(&hq->tree);

	if (node && vtime_before(rb_entry(node, struct iso_gq, node)->key, from))
		return false;
	return !vtime_before(READ_ONCE(d->clock.behind) +
			     READ_ONCE(d->clock.slack), from);
}

/**
 * iso_swapped_out() - a group was charged for what is swapped out
 * @d: disk
 * @hq: its lock is held
 * @g: group
 * @from: its virtual time before
 */
void iso_swapped_out(struct iso_disk *d, struct iso_hq *hq, struct iso_group *g,
		     u64 from)
{
	unsigned long flags;

	/* A group that has the disk for itself owes nothing. */
	if (iso_was_next(d, hq, from))
		iso_advance_vnow(d, from);
	if (likely(!iso_indebted(d, g)))
		return;
	iso_cap_debt(d, g);
	if (READ_ONCE(g->swaps))
		return;
	spin_lock_irqsave(&d->disk.lock, flags);
	if (g->joined && !g->swaps) {
		WRITE_ONCE(g->swaps, true);
		list_add(&g->swapper, &d->swappers);
		iso_set_delay(d, g);
	}
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/**
 * iso_swap_end() - a group's tasks sleep no longer for its debt
 * @d: its disk lock is held
 * @g: group
 */
void iso_swap_end(struct iso_disk *d, struct iso_group *g)
{
	lockdep_assert_held(&d->disk.lock);

	if (!g->swaps)
		return;
	WRITE_ONCE(g->swaps, false);
	list_del_init(&g->swapper);
	iso_clear_delay(g);
}

/**
 * iso_look_at_swappers() - how long tasks of groups in debt are to sleep
 * @d: its disk lock is held
 */
void iso_look_at_swappers(struct iso_disk *d)
{
	struct iso_group *g, *next;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry_safe(g, next, &d->swappers, swapper) {
		/* More than it was, if its share is less now. */
		iso_cap_debt(d, g);
		if (iso_indebted(d, g))
			iso_set_delay(d, g);
		else
			iso_swap_end(d, g);
	}
}
