// SPDX-License-Identifier: GPL-2.0-only
/*
 * For whom others are held back, and how far.
 *
 * Start-time order divides what waits. A device that takes all that there is leaves
 * nothing waiting, and then serves in its own order: by the number of requests, not by
 * weight. The same holds of a tenant that waits for each answer before it asks
 * again. So nobody may be more than the slack ahead of those for whom it is worth
 * waiting: the horizon. It needs no measured depth; the device ends up with as
 * much as exact shares allow it.
 *
 * Worth it is a trade. A group that has n of the N units in the device, where
 * each takes rho times the least it could, gains n / N x (rho - 1) units for each
 * that the others lose: rho is 1 where nobody queues, and there others are held
 * back in vain; n / N is small where one of many would slow down all. Which of
 * it is the case cannot be seen while others are held back, for then nobody
 * queues. So now and then, and the more rarely the more often the answer was the
 * same, nobody is held back for a moment: the trial. What a group falls behind
 * by that it makes good later: the times stand.
 *
 * A group whose bios wait for tags (gate.c) has more to send than is ever seen of it
 * here. It is always waited for; but where there is no more than a tag for each group
 * not while a request of it waits in its turn, for who is held back then holds a tag
 * that others wait for.
 */
#include "core/charge.h"
#include "core/clock.h"
#include "core/hold.h"
#include "core/horizon.h"
#include "core/tree.h"
#include "muldiv.h"

/* Others are held back if they lose less than so many units for one gained. */
#define GAIN_ENOUGH		(ISO_GAIN_ONE / 16)
#define GAIN_BEGIN		(ISO_GAIN_ONE / 10)
#define GAIN_MOST		BIT(30)

/* A trial ends when so many requests have completed, or at the latest: */
#define TRIAL_REQUESTS		64U
#define TRIAL_GROUP_REQUESTS	8U
#define TRIAL_MOST_NS		(200 * NSEC_PER_MSEC)

/* Scans from one trial to the next: after a change, and if nothing changes. */
#define HOLD_LEAST		4U
#define HOLD_MOST		256U

static u32 gain_of(const struct iso_sums *s)
{
	u64 took = s->area + s->wait, more;

	if (!s->base || !s->all || took <= s->base)
		return 0;
	more = mul_div(took - s->base, ISO_GAIN_ONE, s->base);
	return min(mul_div(more, s->area, s->all), GAIN_MOST);
}

static void hold_for(struct iso_disk *d, struct iso_group *g, bool on,
		     bool gated)
{
	if (g->held_for != on) {
		WRITE_ONCE(g->held_for, on);
		d->hold.changed = true;
	}
	WRITE_ONCE(g->gated, gated);
	if (list_empty(&g->hold.node) == !(on || gated))
		return;
	if (on || gated)
		list_add_tail(&g->hold.node, &d->hold.list);
	else
		list_del_init(&g->hold.node);
}

/* Whether bios of @g wait at the gate. */
static bool at_gate(const struct iso_disk *d, const struct iso_group *g)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		if (READ_ONCE(g->group->gq[i]->gate.nr_bios))
			return true;
	return false;
}

static struct iso_sums sums_of(const struct iso_disk *d,
			       const struct iso_group *g, u64 all)
{
	struct iso_sums s = { .all = all };
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++) {
		s.area += atomic64_read(&iso_gq(g, i)->area);
		s.wait += READ_ONCE(iso_gq(g, i)->wait_area);
		s.base += atomic64_read(&iso_gq(g, i)->base_area);
	}
	return s;
}

static void smooth(u64 *recent, u64 now, u64 seen)
{
	*recent = *recent - *recent / 4 + (now - seen);
}

static void smooth_sums(struct iso_group *g, const struct iso_sums *s)
{
	smooth(&g->hold.recent.area, s->area, g->hold.seen.area);
	smooth(&g->hold.recent.wait, s->wait, g->hold.seen.wait);
	smooth(&g->hold.recent.base, s->base, g->hold.seen.base);
	smooth(&g->hold.recent.all, s->all, g->hold.seen.all);
	g->hold.seen = *s;
}

/* How much longer than at best requests were in the device, from @from to @to. */
static u64 queued_for(const struct iso_done *from, const struct iso_done *to)
{
	u64 area = to->area - from->area, base = to->base_area - from->base_area;

	if (area <= base || to->work == from->work)
		return 0;
	return div64_u64(area - base, to->work - from->work);
}

/* Whether the trial that is under way has shown enough. */
static bool trial_over(const struct iso_disk *d, u64 now)
{
	return d->epoch.seen.nr - d->hold.trial_seen.nr >=
		max(TRIAL_REQUESTS, TRIAL_GROUP_REQUESTS * d->members.nr) ||
		now - d->hold.trial_ns > TRIAL_MOST_NS;
}

/* All begins anew with the trial: what was seen before was seen while holding. */
static void begin_trial(struct iso_disk *d, u64 all, u64 now)
{
	struct iso_group *g;

	WRITE_ONCE(d->hold.trial, true);
	d->hold.trial_seen = d->epoch.seen;
	d->hold.trial_ns = now;
	list_for_each_entry(g, &d->members.list, node) {
		g->hold.seen = sums_of(d, g, all);
		g->hold.recent = (struct iso_sums){};
		g->hold.trial_lifted = atomic64_read(&g->lifted);
	}
}

/*
 * Those for whom others are held back again are behind by what these were served meanwhile.
 * So is the disk's time, by which all others begin: who only came back in a trial would else
 * have to wait until they have caught up.
 */
static void end_trial(struct iso_disk *d)
{
	struct iso_group *g;

	if (!d->hold.trial)
		return;
	WRITE_ONCE(d->hold.trial, false);
	WRITE_ONCE(d->clock.vnow, READ_ONCE(d->clock.floor));
	list_for_each_entry(g, &d->members.list, node) {
		u64 by = atomic64_read(&g->lifted) - g->hold.trial_lifted;

		atomic64_sub(by, &g->lifted);
		atomic64_sub(by, &g->vtime);
		/* As one that comes back now, or, waited for, is behind: see arrive(). */
		if (by)
			iso_lift(g, d->clock.floor -
				 (g->held_for ? d->clock.credit : 0));
	}
	iso_reorder(d);
}

/**
 * iso_hold_nobody() - begin anew, with nobody for whom others are held back
 * @d: its disk lock is held
 */
void iso_hold_nobody(struct iso_disk *d)
{
	struct iso_group *g;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->members.list, node)
		hold_for(d, g, false, false);
	end_trial(d);
	iso_update_horizon(d, d->hold.scan_ns);
}

/**
 * iso_scan() - look at all groups that take part
 * @d: its disk lock is held
 * @now: ns
 */
void iso_scan(struct iso_disk *d, u64 now)
{
	bool over = d->hold.trial && trial_over(d, now), on;
	u32 least = over ? GAIN_ENOUGH : GAIN_BEGIN;
	u64 all = d->epoch.seen.area;
	struct iso_group *g;
	struct iso_sums s;

	lockdep_assert_held(&d->disk.lock);

	d->hold.scan_ns = now;
	d->hold.nr_scans++;
	/* What is seen while one kind of requests is alone says nothing of all. */
	if ((d->hold.trial && !over) || iso_is_alone(d))
		return;
	d->hold.changed = false;
	list_for_each_entry(g, &d->members.list, node) {
		s = sums_of(d, g, all);
		smooth_sums(g, &s);
		g->hold.gain = gain_of(&g->hold.recent);
		on = over || !g->held_for ? g->hold.gain > least : g->held_for;
		hold_for(d, g, on, at_gate(d, g));
		WRITE_ONCE(g->group->indebted, iso_indebted(d, g));
	}

	if (over) {
		d->hold.own_queue_ns = queued_for(&d->hold.trial_seen,
						  &d->epoch.seen);
		d->hold.own_queue_ns -= min(d->hold.own_queue_ns,
				       READ_ONCE(d->late.ns));
		end_trial(d);
		d->hold.length = d->hold.changed ? HOLD_LEAST :
			clamp(2 * d->hold.length, HOLD_LEAST, HOLD_MOST);
		d->hold.left = d->hold.length;
	} else if (d->hold.changed) {
		d->hold.length = HOLD_LEAST;
		d->hold.left = HOLD_LEAST;
	} else if (!list_empty(&d->hold.list) && d->hold.left-- == 0) {
		begin_trial(d, all, now);
	}
}
