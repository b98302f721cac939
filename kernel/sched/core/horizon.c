// SPDX-License-Identifier: GPL-2.0-only
/*
 * The horizon: how far groups may be ahead of those for whom it is worth waiting (hold.c),
 * and for how long these are waited for.
 *
 * A group that has no request is waited for if it usually comes back at once,
 * for twice its usual think time; all such waits together may take @idle_loss of
 * the time, unless they are shorter than what the device has queued by itself.
 *
 * No disk is idle while requests wait and room is free. A hardware queue that may send
 * nothing sets @blocked and its time, passes a full barrier, and decides once more
 * (next_in_order()). It is run again
 *
 *  - by a completion, while a request is in flight: of the two one sees what the other wrote
 *    (leave_device());
 *  - by the timer, while a group without requests is waited for, with the same pairing
 *    (iso_run_blocked_at());
 *  - else by another queue. It waits for a group that has requests on another queue, or for
 *    the time of another queue, which is blocked as well. That time may be old: the group
 *    whose it was may have sent from elsewhere since. So with nothing in flight the queue
 *    that blocks runs the other (ask()). That one finds its true time; it sends a request, or
 *    waits for an earlier time in turn. As long as nothing is sent times stand, so the chain
 *    ends, at the earliest queue of all, and that sends one. Of two queues that block at
 *    once one sees the other's @blocked, by the same barrier.
 */
#include <linux/time64.h>

#include "core/clock.h"
#include "core/horizon.h"
#include "core/run.h"

/* Whoever comes back so soon has come back at once. */
#define THINK_SOON_NS		(2 * NSEC_PER_USEC)

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
		if (READ_ONCE(d->disk.hq[i]->gate.passing) &&
		    READ_ONCE(g->group->gq[i]->gate.passing))
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
 */
struct horizon {
	struct iso_group *group; /* furthest behind of those others wait for, or NULL */
	u64 wait;		/* ns until it has to have come; 0: it has requests */
};

static struct horizon find_horizon(struct iso_disk *d, u64 now)
{
	struct horizon h = {};
	struct iso_group *g;
	u64 least = 0, longer, has, v;
	bool any = false, few_tags = !READ_ONCE(d->disk.gate.spare);
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

/*
 * The hardware queue to be run instead of @hq, which waits for @h while no request is in
 * flight: where @h's group waits, or what waits is not beyond the horizon; of these the
 * earliest. NULL: there is none, so the timer is what sends the next request.
 */
static struct iso_hq *ask(struct iso_disk *d, const struct iso_hq *hq,
			  const struct horizon *h)
{
	u64 slack = READ_ONCE(d->clock.slack);
	struct iso_hq *other, *first = NULL;
	unsigned int i;

	lockdep_assert_held(&d->disk.lock);

	for (i = 0; i < d->disk.nr_hqs; i++) {
		other = &d->hq[i];
		if (other == hq || !READ_ONCE(other->blocked))
			continue;
		if (iso_is_beyond(d, READ_ONCE(other->wait_tag), slack) &&
		    !(h->group && READ_ONCE(iso_gq(h->group, i)->nr)))
			continue;
		if (!first || vtime_before(READ_ONCE(other->wait_tag),
					   READ_ONCE(first->wait_tag)))
			first = other;
	}
	return first;
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
	if (READ_ONCE(hq->blocked) && !atomic_read(&hq->in_device) &&
	    iso_is_idle(d))
		hq->next.ask = ask(d, hq, &h);
	own_queue_ns = d->hold.own_queue_ns;
	spin_unlock_irqrestore(&d->disk.lock, flags);
	if (!iso_is_beyond(d, tag, slack))
		return false;
	if (!READ_ONCE(d->pricing.wanted))
		WRITE_ONCE(d->pricing.wanted, true);
	if (h.wait) {
		if (h.wait > own_queue_ns)
			cmpxchg(&d->wait.since, 0, now);
		/*
		 * One that is queued ends soon enough: waits are short. One that is going
		 * off may have looked at @hq already, so it does not count.
		 */
		if (!hrtimer_is_queued(&d->timer))
			hrtimer_start(&d->timer, ns_to_ktime(h.wait),
				      HRTIMER_MODE_REL);
	}
	return true;
}
