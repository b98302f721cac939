// SPDX-License-Identifier: GPL-2.0-only
/*
 * Latency targets of groups: io.isoblk.latency.
 *
 * A target is for a group that uses less than its share: it says by when its requests are
 * to have ended, 99 of a hundred. What it waits for are then others, and they do less
 * (squeeze.c) until it is met. A group that is ahead of its time waits for itself; what is
 * late of it meanwhile does not count.
 *
 * Counted is from the insertion of a request to its end, so with what it waits in the
 * elevator and in the device; not at the gate, where a group waits for tags of
 * its own.
 *
 * A group that has a target goes before all others as long as it is not ahead, also with
 * more than one request: the pace of the others is not for it. Verdicts come with the epochs
 * of the window. While others are squeezed, the window loop rests: what it would see is not
 * what the device can do.
 */
#include <linux/module.h>
#include <linux/seq_file.h>

#include "core/clock.h"
#include "core/latency.h"
#include "core/run.h"
#include "core/size.h"
#include "muldiv.h"

/* After a change the device still works on what it took before. */
#define SETTLE_NS		(20 * NSEC_PER_MSEC)

/* A group without requests for so long needs no help; others get some back so often. */
#define QUIET_NS		(1 * NSEC_PER_SEC)
#define QUIET_RELAX_NS		(100 * NSEC_PER_MSEC)

/*
 * If more than half are late when others have done next to nothing for so long, which is
 * enough for a drive to have written what it took before, it is not the others. They are let
 * go, and another attempt is made later.
 */
#define HOPELESS_ONE_IN		2
#define HOPELESS_NS		(3 * NSEC_PER_SEC)
#define RETRY_NS		(30 * NSEC_PER_SEC)

/* Until the next look, which comes sooner, a group may use its share of so much time. */
#define FORGIVE_NS		(100 * NSEC_PER_MSEC)

/* Who was not sent for so long, by little, catches up at once. */
#define PACE_BURST_NS		(1 * NSEC_PER_MSEC)

/* ---- the pace ------------------------------------------------------------ */

static enum hrtimer_restart pace_timer(struct hrtimer *timer)
{
	struct iso_disk *d = container_of(timer, struct iso_disk,
					  latency.pace_timer);

	iso_run_blocked_at(d, ktime_get_ns());
	return HRTIMER_NORESTART;
}

/**
 * iso_pace_allows() - whether the others' next request may go now
 * @d: disk; has a pace
 * @now: ns
 *
 * If not, whoever waits tries again when it may.
 */
bool iso_pace_allows(struct iso_disk *d, u64 now)
{
	u64 at = atomic64_read(&d->latency.pace_at);

	/* Who wants the queue empty does not wait for a pace. */
	if (now >= at || READ_ONCE(d->disk.q->mq_freeze_depth))
		return true;
	/* As in iso_beyond_horizon(). */
	if (!hrtimer_is_queued(&d->latency.pace_timer))
		hrtimer_start(&d->latency.pace_timer, ns_to_ktime(at - now),
			      HRTIMER_MODE_REL);
	return false;
}

/**
 * iso_pace_charge() - a request of the others goes
 * @d: disk
 * @work: of it
 * @now: ns
 */
void iso_pace_charge(struct iso_disk *d, u64 work, u64 now)
{
	u64 pace = READ_ONCE(d->squeeze.pace), next;
	s64 at = atomic64_read(&d->latency.pace_at);

	if (!pace)
		return;
	do {
		next = max_t(u64, at, now - PACE_BURST_NS) +
			mul_div(work, NSEC_PER_SEC, pace);
	} while (!atomic64_try_cmpxchg(&d->latency.pace_at, &at, next));
}

/* ---- the loop ------------------------------------------------------------ */

/**
 * iso_latency_note() - a request of a group with a target has ended
 * @d: disk
 * @g: group
 * @rq: request
 * @now: ns
 */
void iso_latency_note(struct iso_disk *d, struct iso_group *g,
		      const struct request *rq, u64 now)
{
	struct iso_target *t = &g->target;

	if (iso_is_ahead(d, g, max(READ_ONCE(d->clock.slack),
				   READ_ONCE(d->clock.target_slack))))
		return;
	atomic64_inc(&t->nr);
	if (now > rq->start_time_ns + READ_ONCE(g->target_ns))
		atomic64_inc(&t->missed);
}

static void count_anew(struct iso_disk *d)
{
	struct iso_group *g;

	list_for_each_entry(g, &d->latency.list, target.node) {
		g->target.seen_nr = atomic64_read(&g->target.nr);
		g->target.seen_missed = atomic64_read(&g->target.missed);
	}
}

static void let_go(struct iso_disk *d)
{
	struct squeeze *s = &d->squeeze;

	WRITE_ONCE(s->pace, 0);
	WRITE_ONCE(s->window, 0);
	d->latency.least_ns = 0;
}

/*
 * While others are squeezed the disk's time goes as slowly as they do, and who asks for
 * little is soon ahead of it. What a group with a target uses is held against what the
 * disk could do: as long as it is less than its share of that, it stands where the disk
 * does. Of what it was served that much is forgotten, unlike by iso_set_back().
 */
static void forgive(struct iso_disk *d, u64 span)
{
	u64 full = mul_div(d->squeeze.full, span, NSEC_PER_SEC);
	u64 most = full << VTIME_SHIFT, vnow = READ_ONCE(d->clock.vnow);
	struct iso_group *g;

	list_for_each_entry(g, &d->latency.list, target.node) {
		if (vtime_before(atomic64_read(&g->vtime),
				 g->target.vtime + most))
			iso_cut(g, vnow);
		g->target.vtime = atomic64_read(&g->vtime);
	}
}

/* A verdict on @g; adds what it says of all to @missed, of @nr, and @room. */
static void judge(struct iso_disk *d, struct iso_group *g, u64 now, u64 *nr,
		  u64 *missed, bool *room)
{
	struct iso_target *t = &g->target;
	u64 n = atomic64_read(&t->nr) - t->seen_nr;
	u64 late = min_t(u64, atomic64_read(&t->missed) - t->seen_missed, n);

	if (n)
		t->judged_ns = max(t->judged_ns, READ_ONCE(g->ended_ns));
	else if (now > t->judged_ns + QUIET_NS)
		return;
	switch (latency_judge(n, late)) {
	case LATENCY_MISSED:
		WRITE_ONCE(t->met, false);
		if (!*nr || late * *nr > *missed * n) {
			*nr = n;
			*missed = late;
		}
		break;
	case LATENCY_ROOM:
		WRITE_ONCE(t->met, true);
		WRITE_ONCE(t->unreachable, false);
		return;
	case LATENCY_MET:
		WRITE_ONCE(t->met, true);
		WRITE_ONCE(t->unreachable, false);
		t->seen_nr += n;
		t->seen_missed += late;
		break;
	case LATENCY_UNSURE:
		break;
	}
	*room = false;
}

static void tighten(struct iso_disk *d, const struct squeeze_seen *e, u64 nr,
		    u64 missed, u64 now)
{
	struct iso_group *g;

	if (squeeze_is_least(&d->squeeze)) {
		list_for_each_entry(g, &d->latency.list, target.node)
			if (!g->target.met)
				WRITE_ONCE(g->target.unreachable, true);
		d->latency.least_ns = d->latency.least_ns ?: now;
		if (missed * HOPELESS_ONE_IN > nr &&
		    now - d->latency.least_ns > HOPELESS_NS) {
			let_go(d);
			d->latency.retry_ns = now + RETRY_NS;
		}
		return;
	}
	squeeze_tighten(&d->squeeze, nr, missed, e);
}

/* A drive's buffer takes for a moment what the drive cannot do for long. */
static u64 usual_rate(const struct iso_disk *d)
{
	u64 sum = 0, nr = 0;
	unsigned int i;

	for (i = 0; i < ISO_RATES; i++) {
		sum += d->device.rates[i];
		nr += !!d->device.rates[i];
	}
	return div64_u64(sum, max(nr, 1ULL));
}

/**
 * iso_latency_look() - see to the targets; an epoch of the window is over
 * @d: its disk lock is held; has a target
 * @e: what was seen
 * @span: in so much time, ns
 * @now: ns
 */
void iso_latency_look(struct iso_disk *d, const struct window_epoch *e,
		      u64 span, u64 now)
{
	struct squeeze_seen seen = {
		.peak = min(e->peak, d->room.size),
		.least = e->least,
		.rate = usual_rate(d),
	};
	u64 nr = 0, missed = 0;
	struct iso_group *g;
	bool room = true;

	lockdep_assert_held(&d->disk.lock);

	WRITE_ONCE(d->clock.target_slack, d->clock.ease);
	if (d->squeeze.window) {
		/* Requests may be larger by now. */
		WRITE_ONCE(d->squeeze.window,
			   max(d->squeeze.window, e->least));
		forgive(d, span);
		WRITE_ONCE(d->clock.target_slack,
			   max(mul_div(d->squeeze.full, FORGIVE_NS,
				       NSEC_PER_SEC) << VTIME_SHIFT,
			       d->clock.ease));
	}
	if (now < d->latency.settle_ns)
		return;
	if (!d->latency.counting) {
		count_anew(d);
		d->latency.counting = true;
		return;
	}
	list_for_each_entry(g, &d->latency.list, target.node)
		judge(d, g, now, &nr, &missed, &room);
	if (nr) {
		if (now < d->latency.retry_ns) {
			count_anew(d);
			return;
		}
		tighten(d, &seen, nr, missed, now);
	} else if (room) {
		squeeze_relax(&d->squeeze, d->size.free);
		d->latency.least_ns = 0;
	} else {
		return;
	}
	d->latency.counting = false;
	d->latency.settle_ns = now + (nr ? SETTLE_NS : QUIET_RELAX_NS);
}

/* ---- a group's target ------------------------------------------------------ */

/**
 * iso_set_target() - give a group a target
 * @group: its disk has one of the elevators of the core
 * @us: target, 0: none
 */
void iso_set_target(struct isoblk_group *group, u32 us)
{
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	struct iso_group *g = isoblk_group_own(group);
	struct iso_target *t = &g->target;
	unsigned long flags;
	bool paced;

	spin_lock_irqsave(&d->disk.lock, flags);
	WRITE_ONCE(g->target_ns, (u64)us * NSEC_PER_USEC);
	list_del_init(&t->node);
	if (us) {
		list_add_tail(&t->node, &d->latency.list);
		WRITE_ONCE(t->met, true);
		WRITE_ONCE(t->unreachable, false);
		t->judged_ns = ktime_get_ns();
	}
	d->latency.counting = false;
	d->latency.retry_ns = 0;
	paced = d->squeeze.pace;
	if (list_empty(&d->latency.list) && d->squeeze.window) {
		let_go(d);
		iso_set_window(d);
		/* Not by us: the caller may hold queue_lock. */
		if (paced)
			hrtimer_start(&d->latency.pace_timer, 0,
				      HRTIMER_MODE_REL);
	}
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/**
 * iso_target_us() - a group's target, 0: none
 * @group: as in iso_set_target()
 */
u32 iso_target_us(struct isoblk_group *group)
{
	struct iso_group *g = isoblk_group_own(group);

	return div_u64(READ_ONCE(g->target_ns), NSEC_PER_USEC);
}

/**
 * iso_latency_stat() - what io.stat says of a group that has a target
 * @g: group
 * @s: where to
 */
void iso_latency_stat(struct iso_group *g, struct seq_file *s)
{
	struct iso_target *t = &g->target;
	u64 ns = READ_ONCE(g->target_ns);

	if (!ns)
		return;
	seq_printf(s, " isoblk.latency_target_us=%llu isoblk.latency_ios=%llu isoblk.latency_missed=%llu isoblk.latency_met=%d isoblk.latency_unreachable=%d",
		   div_u64(ns, NSEC_PER_USEC), (u64)atomic64_read(&t->nr),
		   (u64)atomic64_read(&t->missed), READ_ONCE(t->met),
		   READ_ONCE(t->unreachable));
}

/**
 * iso_latency_init() - a disk has no targets yet
 * @d: disk
 */
void iso_latency_init(struct iso_disk *d)
{
	INIT_LIST_HEAD(&d->latency.list);
	hrtimer_setup(&d->latency.pace_timer, pace_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL);
}

/**
 * iso_latency_exit() - the elevator goes; groups that have targets still lose them
 * @d: disk; no request is in flight
 */
void iso_latency_exit(struct iso_disk *d)
{
	spin_lock_irq(&d->disk.lock);
	let_go(d);
	spin_unlock_irq(&d->disk.lock);
	hrtimer_cancel(&d->latency.pace_timer);
}
