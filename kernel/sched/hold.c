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
 *
 * A group that has no request is waited for if it usually comes back at once,
 * for twice its usual think time; all such waits together may take @idle_loss of
 * the time, unless they are shorter than what the device has queued by itself.
 */
#include "core.h"

/* Others are held back if they lose less than so many units for one gained. */
#define ISO_GAIN_ONE		256U
#define GAIN_ENOUGH		(ISO_GAIN_ONE / 16)
#define GAIN_BEGIN		(ISO_GAIN_ONE / 10)
#define GAIN_MOST		BIT(30)

/* A group that has had no request for so long has left. */
#define LEFT_NS			(100 * NSEC_PER_MSEC)

/* A trial ends when so many requests have completed, or at the latest: */
#define TRIAL_REQUESTS		64U
#define TRIAL_GROUP_REQUESTS	8U
#define TRIAL_MOST_NS		(200 * NSEC_PER_MSEC)

/* Scans from one trial to the next: after a change, and if nothing changes. */
#define HOLD_LEAST		4U
#define HOLD_MOST		256U

/* Whoever comes back so soon has come back at once. */
#define THINK_SOON_NS		(2 * NSEC_PER_USEC)

/* ---- the horizon ------------------------------------------------------ */

/**
 * iso_patience() - how long to wait for a group that has no request
 * @d: disk
 * @g: group
 */
u64 iso_patience(const struct iso_disk *d, const struct iso_group *g)
{
	u64 most = (u64)READ_ONCE(d->tunables.idle_us) * NSEC_PER_USEC;
	u64 think = READ_ONCE(g->think_ns);

	return think > most ? 0 : min(2 * think + THINK_SOON_NS, most);
}

/**
 * iso_end_wait() - nobody is waited for any longer
 * @d: disk
 * @now: ns
 */
void iso_end_wait(struct iso_disk *d, u64 now)
{
	u64 since = xchg(&d->wait.since, 0);

	if (since && now > since)
		atomic64_sub(now - since, &d->wait.spare_ns);
}

/* Whether a bio of @g comes from the gate. */
static bool on_its_way(const struct iso_disk *d, const struct iso_group *g)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		if (READ_ONCE(g->group->gq[i]->passing))
			return true;
	return false;
}

/* How much longer @g is waited for, 0: it is not. */
static u64 still_waited_for(const struct iso_disk *d, const struct iso_group *g,
			    u64 now)
{
	u64 since = now - min(READ_ONCE(g->ended_ns), now);
	u64 patience = g->gated && on_its_way(d, g) ?
		(u64)READ_ONCE(d->tunables.idle_us) * NSEC_PER_USEC :
		iso_patience(d, g);

	if (since >= patience ||
	    (patience > d->hold.own_queue_ns &&
	     atomic64_read(&d->wait.spare_ns) < 0))
		return 0;
	return patience - since;
}

/**
 * struct horizon - why the horizon is where it is
 * @group: that is furthest behind of those for whom others are held back, or NULL
 * @wait: for how long it has yet to come, 0: it has requests; ns
 */
struct horizon {
	struct iso_group *group;
	u64 wait;
};

static struct horizon find_horizon(struct iso_disk *d, u64 now)
{
	struct horizon h = {};
	struct iso_group *g;
	u64 least = 0, longer, has, v;
	bool any = false, few_tags = !READ_ONCE(d->disk.gate_spare);
	unsigned int i;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->hold.list, hold.node) {
		has = atomic64_read(&g->has);
		if ((d->hold.trial || !g->held_for) &&
		    (!g->gated || (few_tags && iso_waits(has))))
			continue;
		longer = 0;
		if (!has) {
			longer = still_waited_for(d, g, now);
			if (!longer)
				continue;
		}
		v = atomic64_read(&g->vtime);
		/*
		 * A light one of many has one tag, so nothing waits while that is
		 * in the device: by less than a request it is not behind.
		 */
		if (g->gated)
			v += vtime_step(d->device.mean_work, max(g->share, 1U));
		if (!any || vtime_before(v, least)) {
			any = true;
			least = v;
			h = (struct horizon){ .group = g, .wait = longer };
		}
	}
	/* Hardware queues keep pace by those that have to wait. */
	for (i = 0; d->disk.nr_hqs > 1 && i < d->disk.nr_hqs; i++) {
		if (!READ_ONCE(d->hq[i].blocked))
			continue;
		v = READ_ONCE(d->hq[i].wait_tag);
		if (!any || vtime_before(v, least)) {
			any = true;
			least = v;
			h = (struct horizon){};
		}
	}
	/* No time is as far ahead. */
	if (!any)
		least = READ_ONCE(d->clock.vnow) + S64_MAX / 2;
	WRITE_ONCE(d->clock.behind, least);
	return h;
}

/**
 * iso_update_horizon() - find the horizon anew
 * @d: its disk lock is held
 * @now: ns
 */
void iso_update_horizon(struct iso_disk *d, u64 now)
{
	find_horizon(d, now);
}

/**
 * iso_beyond_horizon() - whether a group must wait for others
 * @d: disk
 * @hq: where it is; its lock is held
 * @tag: the group's time
 * @slack: how far it may be ahead
 * @late: who it must wait for, if that waits in @hq as well, or else NULL
 *
 * The horizon is looked for only when somebody is beyond the one last found.
 */
bool iso_beyond_horizon(struct iso_disk *d, struct iso_hq *hq, u64 tag,
			u64 slack, struct iso_gq **late)
{
	u64 now = READ_ONCE(hq->now), own_queue_ns;
	unsigned long flags;
	struct horizon h;

	*late = NULL;
	if (likely(!iso_is_beyond(d, tag, slack)))
		return false;
	spin_lock_irqsave(&d->disk.lock, flags);
	h = find_horizon(d, now);
	/* What waits here keeps its group, under the lock of the hardware queue. */
	if (h.group && iso_gq(h.group, hq->index)->nr)
		*late = iso_gq(h.group, hq->index);
	own_queue_ns = d->hold.own_queue_ns;
	spin_unlock_irqrestore(&d->disk.lock, flags);
	if (!iso_is_beyond(d, tag, slack))
		return false;
	if (!READ_ONCE(d->pricing.wanted))
		WRITE_ONCE(d->pricing.wanted, true);
	if (h.wait) {
		if (h.wait > own_queue_ns)
			cmpxchg(&d->wait.since, 0, now);
		/* One that is under way ends soon enough: waits are short. */
		if (!hrtimer_active(&d->timer))
			hrtimer_start(&d->timer, ns_to_ktime(h.wait),
				      HRTIMER_MODE_REL);
	}
	return true;
}

/* ---- for whom ----------------------------------------------------------- */

static u32 gain_of(const struct iso_sums *s)
{
	u64 took = s->area + s->wait, more;

	if (!s->base || !s->all || took <= s->base)
		return 0;
	more = mul_div(took - s->base, ISO_GAIN_ONE, s->base);
	return min(mul_div(more, s->area, s->all), GAIN_MOST);
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
		if (READ_ONCE(g->group->gq[i]->nr_bios))
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
