// SPDX-License-Identifier: GPL-2.0-only
/*
 * How far groups may lead groups that have no waiting requests.
 *
 * The order of deadlines divides what waits. A device that takes all that there is leaves nothing
 * waiting, and then serves in its own order: by the number of requests, not by weight. The same
 * holds of a tenant that waits for each answer before it sends again. So no group is sent in
 * order whose lead over one of these is more than the slack: the horizon. It counts groups all of
 * whose requests are in flight, and groups without any that are expected back within idle_us.
 *
 * That may cost speed, so it does not hold while less cost is in flight than the floor (floor.c).
 *
 * Hardware queues decide alone. A hardware queue that may not send publishes the key of its next
 * request, and no other queue gets further ahead of that key than the slack, whatever the floor:
 * that costs no speed, for a request is there to be sent.
 *
 * No disk is idle while requests wait and room is free. A hardware queue that may send nothing
 * sets @blocked and its key, passes a full barrier, and decides once more (iso_next_in_order()).
 * It is run again
 *
 *  - by a completion, while a request is in flight: of the two one sees what the other wrote
 *    (iso_leave_device());
 *  - by the timer, while a group without requests is expected, with the same pairing
 *    (iso_run_blocked_at());
 *  - else by another queue. With nothing in flight it waits for the key of another queue, which is
 *    blocked as well. That key may be old: the group whose it was may have sent from elsewhere
 *    since. So the queue that blocks runs the other. That one finds its true key; it sends a
 *    request, or waits for an earlier key in turn. As long as nothing is sent virtual times stand,
 *    so the chain ends, at the earliest queue of all, and that sends one. Of two queues that block
 *    at once one sees the other's @blocked, by the same barrier.
 */
#include <linux/time64.h>

#include "isoblk/fq.h"
#include "isoblk/run.h"
#include "isoblk/throttle.h"

/* A group that comes back so soon has come back at once. */
#define THINK_MIN_NS		(2 * NSEC_PER_USEC)

/* Least time between two searches for the horizon, ns a group: bounds their part of CPU time. */
#define FIND_GROUP_NS		200

/**
 * iso_find_gated() - see of which groups bios wait at the gate
 * @d: its disk lock is held
 *
 * Such a group has more to send than is ever seen of it here.
 */
void iso_find_gated(struct iso_disk *d)
{
	struct iso_group *g;
	unsigned int i;
	bool gated;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->members.list, node) {
		gated = false;
		for (i = 0; !gated && i < d->disk.nr_hqs; i++)
			gated = READ_ONCE(d->disk.hq[i]->gate.nr_groups) &&
				READ_ONCE(g->group->gq[i]->gate.nr_bios);
		if (READ_ONCE(g->gated) != gated)
			WRITE_ONCE(g->gated, gated);
	}
}

/* Whether a bio of @g comes from the gate. */
static bool iso_has_bio_in_transit(const struct iso_disk *d, const struct iso_group *g)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		if (READ_ONCE(d->disk.hq[i]->gate.nr_in_transit) &&
		    READ_ONCE(g->group->gq[i]->gate.nr_in_transit))
			return true;
	return false;
}

/**
 * iso_expected() - how much longer a group without requests is expected back
 * @d: disk
 * @g: group
 * @now: ns
 *
 * Return: ns, 0: it is not.
 */
u64 iso_expected(const struct iso_disk *d, const struct iso_group *g, u64 now)
{
	u64 most = (u64)READ_ONCE(d->tunables.idle_us) * NSEC_PER_USEC;
	u64 since = now - min(READ_ONCE(g->ended_ns), now);
	u64 think = READ_ONCE(g->think_ns), patience;

	if (READ_ONCE(g->gated) && iso_has_bio_in_transit(d, g))
		patience = most;
	else
		patience = think > most ? 0 : min(2 * think + THINK_MIN_NS, most);
	return patience - min(since, patience);
}

/**
 * iso_expect() - wait for a group that is expected
 * @d: disk
 * @wait: for how long, ns
 *
 * A timer that is queued goes off soon enough: waits are short. One that is going off may have
 * looked at the queue already, so it does not count.
 */
void iso_expect(struct iso_disk *d, u64 wait)
{
	if (!hrtimer_is_queued(&d->timer))
		hrtimer_start(&d->timer, ns_to_ktime(wait), HRTIMER_MODE_REL);
}

/**
 * struct horizon - why the horizon is where it is
 */
struct horizon {
	u64 at;			/* virtual time */
	bool any;		/* @at is one of a group or a queue */
	struct iso_hq *hq;	/* queue that is blocked with that key; NULL: it is a group's */
	u64 wait;		/* ns for which that group is expected; 0: it has requests */
};

static void iso_find_groups_horizon(struct iso_disk *d, u64 now, struct horizon *h)
{
	struct iso_group *g;
	u64 v, has, wait;

	list_for_each_entry(g, &d->members.list, node) {
		has = atomic64_read(&g->has);
		if (iso_waits(has))
			continue;
		wait = has ? 0 : iso_expected(d, g, now);
		if (!has && !wait)
			continue;
		v = atomic64_read(&g->vtime);
		/* Its bios wait for tags of requests in flight: its lag is less by a request. */
		if (READ_ONCE(g->gated))
			v += iso_step(g, READ_ONCE(d->device.mean_cost));
		if (!h->any || vtime_before(v, h->at))
			*h = (struct horizon){ .at = v, .any = true, .wait = wait };
	}
}

static void iso_find_queues_horizon(struct iso_disk *d, const struct iso_hq *but,
				    struct horizon *h)
{
	struct iso_hq *hq;
	unsigned int i;
	u64 v;

	for (i = 0; i < d->disk.nr_hqs; i++) {
		hq = &d->hq[i];
		if (hq == but || !READ_ONCE(hq->blocked))
			continue;
		v = READ_ONCE(hq->wait_key);
		if (!h->any || vtime_before(v, h->at))
			*h = (struct horizon){ .at = v, .any = true, .hq = hq };
	}
}

static struct horizon iso_find_horizon(struct iso_disk *d, const struct iso_hq *but, u64 now)
{
	struct horizon h = {};

	lockdep_assert_held(&d->disk.lock);

	iso_find_groups_horizon(d, now, &h);
	if (d->disk.nr_hqs > 1)
		iso_find_queues_horizon(d, but, &h);
	/* No virtual time is as far ahead. */
	if (!h.any)
		h.at = READ_ONCE(d->clock.vnow) + S64_MAX / 2;
	WRITE_ONCE(d->clock.behind, h.at);
	WRITE_ONCE(d->found_ns, now);
	return h;
}

/**
 * iso_update_horizon() - find the horizon anew
 * @d: its disk lock is held
 * @now: ns
 */
void iso_update_horizon(struct iso_disk *d, u64 now)
{
	iso_find_horizon(d, NULL, now);
}

static bool iso_is_beyond(const struct iso_disk *d, u64 vtime)
{
	return vtime_before(READ_ONCE(d->clock.behind) +
			    READ_ONCE(d->clock.slack), vtime);
}

/* Less cost is in flight than the floor. */
static bool iso_is_spared(struct iso_disk *d)
{
	u64 floor = READ_ONCE(d->floor_now);

	if (!floor)
		return false;
	if (floor != FLOOR_OPEN && iso_room_used(&d->room) >= (s64)floor)
		return false;
	if (!READ_ONCE(d->epoch.spared))
		WRITE_ONCE(d->epoch.spared, true);
	return true;
}

/* The horizon was found so shortly before that a look at many groups would take too long. */
static bool iso_horizon_is_fresh(const struct iso_disk *d, u64 now)
{
	u64 found = READ_ONCE(d->found_ns);

	return now - min(found, now) <
		(u64)READ_ONCE(d->members.nr) * FIND_GROUP_NS;
}

/**
 * iso_throttle() - whether a group must wait for other groups
 * @d: disk
 * @hq: where it is next in order; its lock is held, @next.ask is set
 * @g: group
 *
 * The horizon is looked for only when the group is beyond the one last found.
 *
 * Return: ISO_THROTTLED, ISO_PACED, or ISO_IN_ORDER.
 */
enum iso_why iso_throttle(struct iso_disk *d, struct iso_hq *hq, struct iso_group *g)
{
	u64 vtime = atomic64_read(&g->vtime), now = READ_ONCE(hq->now);
	unsigned long flags;
	struct horizon h;

	if (likely(!iso_is_beyond(d, vtime)))
		return ISO_IN_ORDER;
	if (d->disk.nr_hqs == 1) {
		if (iso_is_spared(d))
			return ISO_IN_ORDER;
		if (atomic_read(&hq->in_flight) && iso_horizon_is_fresh(d, now))
			goto throttled;
	}
	spin_lock_irqsave(&d->disk.lock, flags);
	h = iso_find_horizon(d, hq, now);
	spin_unlock_irqrestore(&d->disk.lock, flags);
	if (!iso_is_beyond(d, vtime))
		return ISO_IN_ORDER;
	if (h.hq) {
		if (READ_ONCE(hq->blocked) && !atomic_read(&hq->in_flight) &&
		    iso_is_idle(d))
			hq->next.ask = h.hq;
		return ISO_PACED;
	}
	if (d->disk.nr_hqs > 1 && iso_is_spared(d))
		return ISO_IN_ORDER;
	if (h.wait)
		iso_expect(d, h.wait);
throttled:
	if (!READ_ONCE(d->epoch.throttled_since))
		cmpxchg(&d->epoch.throttled_since, 0, now);
	return ISO_THROTTLED;
}

/**
 * iso_end_throttling() - a request is sent in order
 * @d: disk
 * @now: ns
 */
void iso_end_throttling(struct iso_disk *d, u64 now)
{
	u64 since;

	if (likely(!READ_ONCE(d->epoch.throttled_since)))
		return;
	since = xchg(&d->epoch.throttled_since, 0);
	if (since && now > since)
		atomic64_add(now - since, &d->epoch.throttled_ns);
}

/*
 * In the open spans of a floor's trial groups are served by no share. The spans in between are to
 * show what throttling costs when it has gone on for long, not while groups make up for that. So
 * leads and lags are set aside before an open span and put back behind it. Groups owe the service
 * that they got in open spans, and pay after the trial. Light groups owe nothing: they get all that
 * they ask for in both kinds of spans.
 */

/**
 * iso_set_aside() - an open span begins
 * @d: its disk lock is held
 */
void iso_set_aside(struct iso_disk *d)
{
	u64 vnow = READ_ONCE(d->clock.vnow);
	struct iso_group *g;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->members.list, node)
		g->aside = atomic64_read(&g->vtime) - vnow;
}

/**
 * iso_put_back() - an open span is over
 * @d: its disk lock is held
 */
void iso_put_back(struct iso_disk *d)
{
	u64 vnow = READ_ONCE(d->clock.vnow);
	struct iso_group *g;
	s64 by;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->members.list, node) {
		if (iso_is_light(d, g))
			continue;
		by = atomic64_read(&g->vtime) - (vnow + g->aside);
		atomic64_sub(by, &g->vtime);
		g->owed += by;
	}
	iso_reorder(d);
}

/**
 * iso_pay_back() - a trial is over
 * @d: its disk lock is held
 */
void iso_pay_back(struct iso_disk *d)
{
	u64 vnow = READ_ONCE(d->clock.vnow), credit = READ_ONCE(d->clock.credit);
	s64 least = S64_MAX;
	struct iso_group *g;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->members.list, node)
		if (!iso_is_light(d, g))
			least = min(least, g->owed);
	list_for_each_entry(g, &d->members.list, node) {
		if (!iso_is_light(d, g)) {
			atomic64_add(g->owed - least, &g->vtime);
			iso_lower_vtime(g, vnow + credit);
		}
		g->owed = 0;
	}
	iso_reorder(d);
}
