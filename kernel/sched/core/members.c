// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who takes part, and with what share.
 *
 * A group takes part from its first request on, until it has had none for a while. As long
 * as it does it holds its blkg, and is in the list that others look through.
 */
#include "core/charge.h"
#include "core/clock.h"
#include "core/members.h"
#include "core/swap.h"
#include "core/tree.h"
#include "core/vtime.h"
#include "share/share.h"
#include "share/stat.h"

/* A group that has had no request for so long has left. */
#define LEFT_NS			(100 * NSEC_PER_MSEC)

/* ---- in and out ------------------------------------------------------------ */

/**
 * iso_join() - a group takes part
 * @d: disk
 * @g: has a request, and its bio
 */
void iso_join(struct iso_disk *d, struct iso_group *g)
{
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (!g->joined) {
		/* A request of it is here, with its bio, which holds the blkg. */
		blkg_get(pd_to_blkg(&g->group->pd));
		isoblk_join(g->group);
		list_add_tail(&g->node, &d->members.list);
		WRITE_ONCE(d->members.nr, d->members.nr + 1);
		WRITE_ONCE(g->share, 0);
		g->hold.recent = (struct trade_sums){};
		g->hold.side = (struct trade_side){ .plain = TRADE_ONE };
		iso_forget_debts(g);
		g->hold.trial_lifted = atomic64_read(&g->lifted);
		WRITE_ONCE(g->hold.trial_credit, 0);
		g->hold.trial_most = 0;
		g->hold.trial_served = iso_served(g);
		g->hold.served_ns = 0;
		WRITE_ONCE(g->joined, true);
		if (!timer_pending(&d->members.tick))
			mod_timer(&d->members.tick,
				  jiffies + ISO_TICK);
	}
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/* Whether a request of @g has a tag; one that was given back to us has no other sign. */
static bool has_any(const struct iso_group *g)
{
	return atomic64_read(&g->has) || isoblk_group_holds(g->group);
}

/**
 * iso_take_out() - of a group that takes part no longer nothing is kept
 * @d: its disk lock is held
 * @g: its @joined is false; may be freed afterwards
 */
void iso_take_out(struct iso_disk *d, struct iso_group *g)
{
	lockdep_assert_held(&d->disk.lock);

	WRITE_ONCE(g->held_for, false);
	WRITE_ONCE(g->gated, false);
	iso_swap_end(d, g);
	list_del_init(&g->hold.node);
	list_del_init(&g->node);
	WRITE_ONCE(d->members.nr, d->members.nr - 1);
	isoblk_leave(g->group);
	blkg_put(pd_to_blkg(&g->group->pd));
}

/**
 * iso_leave() - a group takes part no longer, unless it has a request by now
 * @d: its disk lock is held
 * @g: takes part; may be freed afterwards, once the caller leaves its RCU section
 */
void iso_leave(struct iso_disk *d, struct iso_group *g)
{
	lockdep_assert_held(&d->disk.lock);

	if (has_any(g))
		return;
	WRITE_ONCE(g->joined, false);
	/*
	 * Our flag before their count; pairs with the insertion of a request. Who
	 * counts one later than we look finds the flag, and waits for the lock.
	 */
	smp_mb();
	if (has_any(g)) {
		WRITE_ONCE(g->joined, true);
		return;
	}
	iso_take_out(d, g);
}

/**
 * iso_find_idle() - groups without requests for long, or whose cgroup is gone, leave
 * @d: its disk lock is held
 * @now: ns
 */
void iso_find_idle(struct iso_disk *d, u64 now)
{
	struct iso_group *g, *next;
	struct blkcg_gq *blkg;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry_safe(g, next, &d->members.list, node) {
		blkg = pd_to_blkg(&g->group->pd);
		if (now >= READ_ONCE(g->ended_ns) + LEFT_NS ||
		    !READ_ONCE(blkg->online))
			iso_leave(d, g);
	}
}

/* ---- shares ---------------------------------------------------------------- */

/*
 * Bring a group's share up to date. Return true if its time was set back by so much that
 * its place is no longer right.
 */
static bool renew_share(struct iso_disk *d, struct iso_group *g)
{
	u64 vtime = atomic64_read(&g->vtime), renewed;
	u32 share;

	lockdep_assert_held(&d->disk.lock);

	if (g->share_gen == d->disk.weights.gen)
		return false;
	share = isoblk_group_share(g->group);
	renewed = vtime_rescale(vtime, READ_ONCE(d->clock.vnow), g->share,
				share);
	atomic64_add(renewed - vtime, &g->vtime);
	WRITE_ONCE(g->light_from, g->light_from + renewed - vtime);
	WRITE_ONCE(g->share, share);
	WRITE_ONCE(g->share_gen, d->disk.weights.gen);
	if (!vtime_before(renewed + READ_ONCE(d->clock.slack), vtime))
		return false;
	iso_reorder(d);
	return true;
}

/**
 * iso_renew_share() - bring a group's share up to date, which it is not
 * @d: disk
 * @g: its blkg is held; who takes no part keeps the share that it had, or none
 */
void iso_renew_share(struct iso_disk *d, struct iso_group *g)
{
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (g->joined)
		renew_share(d, g);
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/**
 * iso_update_shares() - bring the shares of all groups up to date
 * @d: its disk lock is held
 *
 * Who is far ahead by a small share is not asked for long, and would not learn that it has a
 * large one.
 *
 * Return: whether somebody's time was set back; whoever waits may try again then.
 */
bool iso_update_shares(struct iso_disk *d)
{
	struct iso_group *g;
	bool back = false;

	lockdep_assert_held(&d->disk.lock);

	if (d->members.shares_gen == d->disk.weights.gen)
		return false;
	list_for_each_entry(g, &d->members.list, node)
		back |= renew_share(d, g);
	d->members.shares_gen = d->disk.weights.gen;
	return back;
}
