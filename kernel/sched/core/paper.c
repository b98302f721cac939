// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets that come in rounds, as P2 and P3 describe them: paper_mode.
 *
 * A group's budget is what it may be charged until its time is the disk's. A refill
 * moves the disk's time on, and with that gives every group its share of a round and
 * leaves it what it had left: the papers' B(k) = round * w(k) / sum of w + left(k),
 * for all groups at once. It comes when every active group has used its budget up,
 * else at a tick, when the period is over. A group that sent nothing since the last refill is
 * idle: it leaves, and has a round's worth when it comes back. Groups take
 * turns of one request, nobody goes before others, nobody is waited for, and the
 * device is given everything.
 */
#include "core/clock.h"
#include "core/members.h"
#include "core/paper.h"
#include "core/trace.h"

/* Sent something since the last refill, or would. */
static bool active(const struct iso_group *g)
{
	u64 vtime = atomic64_read(&g->vtime);

	return vtime != g->refill_vtime || atomic64_read(&g->has);
}

/* When the budget of @g ends, if it is the first to be used up of those in debt. */
static u64 least_of(u64 least, u64 vtime, bool any)
{
	return any && vtime_before(least, vtime) ? least : vtime;
}

/**
 * iso_refill() - give groups their shares of a round, if it is time
 * @d: in paper mode; its disk lock is held
 * @now: ns
 * @tick: of the timer, which ends a period
 *
 * Return: whether it was.
 */
bool iso_refill(struct iso_disk *d, u64 now, bool tick)
{
	struct iso_round r = {
		.elapsed_ns = now - min(d->rounds.refilled_ns, now),
	};
	bool due = tick && r.elapsed_ns >= READ_ONCE(d->rounds.refill_ns);
	bool any = false;
	u64 vnow = READ_ONCE(d->clock.vnow), least = 0, vtime;
	struct iso_group *g, *next;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->members.list, node) {
		vtime = atomic64_read(&g->vtime);
		if (!active(g))
			continue;
		if (!due && vtime_before(vtime, vnow))
			return false;
		r.left += iso_left(vnow, 0, vtime, max(g->share, 1U));
		least = least_of(least, vtime, any);
		any = true;
	}
	if (!any)
		return false;

	r.used = atomic64_xchg(&d->rounds.charged, 0);
	d->rounds.grant = d->policy->refill(d, &r);
	trace_isoblk_refill(d, &r);
	list_for_each_entry_safe(g, next, &d->members.list, node) {
		if (active(g))
			g->refill_vtime = atomic64_read(&g->vtime);
		else
			iso_leave(d, g);
	}
	vnow += d->rounds.grant << VTIME_SHIFT;
	/* All are in debt beyond a round: somebody may go. */
	if (!vtime_before(least, vnow))
		vnow = least + 1;
	iso_set_vnow(d, vnow);
	d->rounds.refilled_ns = now;
	return true;
}
