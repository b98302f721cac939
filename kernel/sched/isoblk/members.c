// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active groups, and their shares.
 *
 * A group is active from its first request on, until it has had none for a while. As long as it
 * is it holds its blkg.
 *
 * A group is of the idle class from its first request on, if that is, until its first request of
 * another class. As long as it is it has the least weight among its siblings (share/share.c). It
 * becomes so again only when it becomes active again: a mix of requests does not change the weights
 * with each.
 */
#include "isoblk/fq.h"
#include "isoblk/members.h"
#include "isoblk/swap.h"
#include "share/share.h"
#include "share/stat.h"

/* A group that has had no request for so long is no longer active. */
#define IDLE_NS			(100 * NSEC_PER_MSEC)

/* What a group usually thinks, before it has shown it, as times of idle_us: it is light. */
#define THINK_FIRST_IDLES	2

/* ---- in and out ------------------------------------------------------------ */

/*
 * The disk's virtual time is that of the active group furthest behind, or later. Boosted requests
 * do not move it on: light groups alone would leave it behind all of them, and a group that joined
 * there would be served until it had caught up.
 */
static void iso_catch_up(struct iso_disk *d)
{
	struct iso_group *g;
	u64 least = 0, vtime;
	bool any = false;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->members.list, node) {
		vtime = atomic64_read(&g->vtime);
		if (!any || vtime_before(vtime, least))
			least = vtime;
		any = true;
	}
	if (any)
		iso_advance_vnow(d, least);
}

/**
 * iso_join() - a group becomes active
 * @d: disk
 * @g: has a request, and its bio
 * @idle_class: that is of the idle class
 */
void iso_join(struct iso_disk *d, struct iso_group *g, bool idle_class)
{
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (!g->joined) {
		/* A request of it is here, with its bio, which holds the blkg. */
		blkg_get(pd_to_blkg(&g->group->pd));
		/* The root's requests are the machine's own. */
		WRITE_ONCE(g->group->idle_class, idle_class && g->group->parent);
		isoblk_group_activate(g->group);
		iso_catch_up(d);
		list_add_tail(&g->node, &d->members.list);
		WRITE_ONCE(d->members.nr, d->members.nr + 1);
		d->members.joins++;
		WRITE_ONCE(g->share, 0);
		WRITE_ONCE(g->think_ns, THINK_FIRST_IDLES * NSEC_PER_USEC *
			   (u64)READ_ONCE(d->tunables.idle_us));
		iso_raise_vtime(g, READ_ONCE(d->clock.vnow));
		g->aside = atomic64_read(&g->vtime) - READ_ONCE(d->clock.vnow);
		g->owed = 0;
		/* Its class is set before; pairs with iso_announce(). */
		smp_store_release(&g->joined, true);
		if (!timer_pending(&d->members.tick))
			mod_timer(&d->members.tick,
				  jiffies + ISO_TICK);
	}
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/* Whether a request of @g has a tag; one that was given back to us has no other sign. */
static bool iso_has_any(const struct iso_group *g)
{
	return atomic64_read(&g->has) || isoblk_group_has_tags(g->group);
}

/**
 * iso_take_out() - of a group that is no longer active nothing is kept
 * @d: its disk lock is held
 * @g: its @joined is false; may be freed afterwards
 */
void iso_take_out(struct iso_disk *d, struct iso_group *g)
{
	unsigned int i;

	lockdep_assert_held(&d->disk.lock);

	WRITE_ONCE(g->gated, false);
	iso_swap_end(d, g);
	/* The queues' locks are not ours to take: iso_keep_turn() has the other half. */
	for (i = 0; i < d->disk.nr_hqs; i++)
		cmpxchg(&d->hq[i].turn, iso_gq(g, i), NULL);
	list_del_init(&g->node);
	WRITE_ONCE(d->members.nr, d->members.nr - 1);
	isoblk_group_deactivate(g->group);
	blkg_put(pd_to_blkg(&g->group->pd));
}

/**
 * iso_leave() - a group is no longer active, unless it has a request by now
 * @d: its disk lock is held
 * @g: active; may be freed afterwards, once the caller leaves its RCU section
 */
void iso_leave(struct iso_disk *d, struct iso_group *g)
{
	lockdep_assert_held(&d->disk.lock);

	if (iso_has_any(g))
		return;
	WRITE_ONCE(g->joined, false);
	/*
	 * Our flag before the count; pairs with the insertion of a request. A CPU that
	 * counts one later than we look finds the flag, and waits for the lock.
	 */
	smp_mb();
	if (iso_has_any(g)) {
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
		if (now >= READ_ONCE(g->ended_ns) + IDLE_NS ||
		    !READ_ONCE(blkg->online))
			iso_leave(d, g);
	}
}

/* ---- shares ---------------------------------------------------------------- */

/*
 * Bring a group's share up to date. Return true if its virtual time was lowered by so
 * much that its place is no longer right.
 */
static bool iso_renew_share_locked(struct iso_disk *d, struct iso_group *g)
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
	WRITE_ONCE(g->share, share);
	WRITE_ONCE(g->share_gen, d->disk.weights.gen);
	if (!vtime_before(renewed + READ_ONCE(d->clock.slack), vtime))
		return false;
	iso_reorder(d);
	return true;
}

/**
 * iso_end_idle_class() - a group of the idle class has a request of another
 * @d: disk
 * @g: its blkg is held
 */
void iso_end_idle_class(struct iso_disk *d, struct iso_group *g)
{
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (g->joined && g->group->idle_class) {
		isoblk_group_end_idle_class(g->group);
		/* What waits may be sent, as with iso_weight_changed(). */
		if (iso_renew_share_locked(d, g))
			hrtimer_start(&d->timer, 0, HRTIMER_MODE_REL);
	}
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/**
 * iso_renew_share() - bring a group's share up to date, which it is not
 * @d: disk
 * @g: its blkg is held; a group that is not active keeps the share that it had, or none
 */
void iso_renew_share(struct iso_disk *d, struct iso_group *g)
{
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (g->joined)
		iso_renew_share_locked(d, g);
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/**
 * iso_update_shares() - bring the shares of all groups up to date
 * @d: its disk lock is held
 *
 * A group that is far ahead by a small share is not looked at for long, and would not learn that
 * it has a large one.
 *
 * Return: whether a virtual time was lowered; what waits may be sent then.
 */
bool iso_update_shares(struct iso_disk *d)
{
	struct iso_group *g;
	bool back = false;

	lockdep_assert_held(&d->disk.lock);

	if (d->members.shares_gen == d->disk.weights.gen)
		return false;
	list_for_each_entry(g, &d->members.list, node)
		back |= iso_renew_share_locked(d, g);
	d->members.shares_gen = d->disk.weights.gen;
	return back;
}
