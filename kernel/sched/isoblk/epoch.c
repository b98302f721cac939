// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of an epoch: how much the device did. Both loops learn from it here, one after the
 * other, and at most one of them has a trial under way.
 */
#include <linux/ktime.h>

#include "isoblk/epoch.h"
#include "isoblk/fq.h"
#include "isoblk/swap.h"
#include "isoblk/throttle.h"
#include "isoblk/trace.h"
#include "share/gate.h"

/*
 * An epoch lasts EPOCH_LATENCIES times as long as a request takes, and has EPOCH_REQUESTS, so that
 * its edges do not matter. It is longer, up to EPOCH_SCALE_MAX times, where trials showed much
 * noise; and where there are writes that no model of this disk limits, for a drive's buffer takes
 * them in at once. It is no longer than EPOCH_NS_MAX.
 */
#define EPOCH_LATENCIES		3
#define EPOCH_REQUESTS		64
#define EPOCH_NS_MIN		NSEC_PER_MSEC
#define EPOCH_WRITES_NS_MIN	(10 * NSEC_PER_MSEC)
#define EPOCH_SCALE_MAX		16
#define EPOCH_NS_MAX		(100 * NSEC_PER_MSEC)

/*
 * A written drive is observed for BUSY_NS, for it stops for milliseconds. If that took
 * BUSY_SPAN_MAX times as long the drive was idle. A drive is no longer busy once it loses
 * BUSY_LOSS x max_loss.
 */
#define BUSY_NS			(200 * NSEC_PER_MSEC)
#define BUSY_SPAN_MAX		2
#define BUSY_LOSS		2

/* A drive is full if by a model of this disk it lost less than max_loss / FULL_LOSS. */
#define FULL_LOSS		4

/* The window to begin with. */
#define WINDOW_FIRST_NS		(250 * NSEC_PER_USEC)
#define WINDOW_FIRST_ROTATIONAL_NS (50 * NSEC_PER_MSEC)

/* Without a window. */
#define WINDOW_OFF		(S64_MAX / 4)

/* In open spans as much is in flight as groups have, up to WINDOW_OPEN windows. */
#define WINDOW_OPEN		4

/* 1 / GATHER_FRACTION of the window is added to it, and may stay free until it is gathered. */
#define GATHER_FRACTION		8

/* The largest lag: as time of the device, and as slacks. */
#define CREDIT_NS		(150 * NSEC_PER_MSEC)
#define CREDIT_SLACKS		8

/* The slack is at least the mean cost of this number of requests. */
#define SLACK_REQUESTS		2

/* The largest request, and the best rate, are forgotten at this pace. */
#define LARGEST_EPOCHS		16
#define RATE_EPOCHS		64

/* How often the gate looks for new room. */
#define GATE_NS			(5 * NSEC_PER_MSEC)

/* What has completed on all CPUs so far. */
static struct iso_done iso_sum_done(const struct iso_disk *d)
{
	const struct iso_done *done;
	struct iso_done sum = {};
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		done = per_cpu_ptr(d->done, cpu);
		sum.nr += READ_ONCE(done->nr);
		sum.cost += READ_ONCE(done->cost);
		sum.written += READ_ONCE(done->written);
		sum.took_ns += READ_ONCE(done->took_ns);
		sum.area += READ_ONCE(done->area);
	}
	return sum;
}

/**
 * iso_done_cost() - cost that has completed so far
 * @d: disk
 */
u64 iso_done_cost(const struct iso_disk *d)
{
	return iso_sum_done(d).cost;
}

/* ---- what was seen ------------------------------------------------------- */

/**
 * struct iso_seen - what was seen in an epoch
 */
struct iso_seen {
	u64 span;		/* its length, ns */
	u64 nr;			/* requests that completed */
	u64 cost;		/* cost of these */
	u64 written;		/* part of @cost that was written */
	u64 latency;		/* mean time in flight, ns */
	u64 in_flight;		/* mean cost in flight */
	u64 rate;		/* cost a second */
	unsigned int throttled;	/* permille of @span in which a request was throttled */
	bool limited;		/* a request waited for room */
};

/*
 * What was seen in the epoch at whose end @sum has completed. What a drive's buffer takes in has
 * yet to be written: of writes no more counts than a known model has the drive do.
 */
static struct iso_seen iso_measure_epoch(const struct iso_disk *d, const struct iso_done *sum,
					 u64 now)
{
	const struct iso_done *from = &d->epoch.seen;
	struct iso_seen seen = {
		.span = now - d->epoch.begun_ns,
		.nr = sum->nr - from->nr,
		.cost = sum->cost - from->cost,
		.written = sum->written - from->written,
		.limited = READ_ONCE(d->epoch.limited),
	};

	if (!seen.nr)
		return seen;
	seen.latency = div64_u64(sum->took_ns - from->took_ns, seen.nr);
	seen.in_flight = mul_div(sum->area - from->area, NSEC_PER_USEC, seen.span);
	seen.rate = mul_div(seen.cost, NSEC_PER_SEC, seen.span);
	if (seen.written && d->cost.source == COST_USER)
		seen.rate = min(seen.rate, (u64)NSEC_PER_SEC);
	return seen;
}

/* A trial is over. */
static void iso_scale_epoch(struct iso_disk *d, const struct trial *t)
{
	if (t->n >= TRIAL_PAIRS_MAX)
		d->epoch.scale = min(2 * d->epoch.scale, EPOCH_SCALE_MAX);
	else if (t->n <= TRIAL_PAIRS_MIN)
		d->epoch.scale = max(d->epoch.scale / 2, 1U);
}

/* ---- window -------------------------------------------------------------- */

/**
 * iso_set_window() - give the device as much as the user wrote, or as has been found
 * @d: its disk lock is held
 *
 * What is found has on top what may gather.
 */
void iso_set_window(struct iso_disk *d)
{
	s64 wanted = d->tunables.window;
	u64 size = wanted > 0 ? wanted * NSEC_PER_USEC : WINDOW_OFF;
	u64 gather = 0;

	if (!wanted) {
		size = window_now(&d->window);
		if (d->floor_now == FLOOR_OPEN && d->floor.phase == FLOOR_TRIAL)
			size *= WINDOW_OPEN;
		gather = d->rotational ? 0 : size / GATHER_FRACTION;
	}
	WRITE_ONCE(d->gather, gather);
	iso_room_resize(&d->room, size + gather);
}

/**
 * iso_restart() - both loops begin anew
 * @d: its disk lock is held, or no CPU knows it yet
 */
void iso_restart(struct iso_disk *d)
{
	struct iso_group *g;

	list_for_each_entry(g, &d->members.list, node)
		g->owed = 0;
	d->epoch.seen = iso_sum_done(d);
	d->epoch.begun_ns = ktime_get_ns();
	d->epoch.limited = false;
	d->epoch.largest = 0;
	d->device.largest = 0;
	d->epoch.scale = 1;
	d->epoch.busy.is_written = true;
	d->epoch.busy.is_busy = true;
	d->epoch.busy.seen = d->epoch.seen;
	d->epoch.busy.since_ns = d->epoch.begun_ns;
	window_init(&d->window, d->rotational ? WINDOW_FIRST_ROTATIONAL_NS :
		    WINDOW_FIRST_NS);
	floor_init(&d->floor);
	WRITE_ONCE(d->floor_now, floor_now(&d->floor));
	WRITE_ONCE(d->device.rate, NSEC_PER_SEC);
	WRITE_ONCE(d->device.mean_cost, 1);
	iso_set_window(d);
	iso_set_slacks(d);
}

/* ---- floor ----------------------------------------------------------------- */

/* Part of @span in which a request was throttled, permille. */
static unsigned int iso_throttled_permille(struct iso_disk *d, u64 span, u64 now)
{
	u64 ns = atomic64_xchg(&d->epoch.throttled_ns, 0);
	u64 since = READ_ONCE(d->epoch.throttled_since);

	if (since && cmpxchg(&d->epoch.throttled_since, since, now) == since)
		ns += now - min(since, now);
	return div64_u64(min(ns, span) * FLOOR_LOSS_ONE, span);
}

/* What a device loses that does @cost in @span, permille. */
static unsigned int iso_loss_by_model(u64 cost, u64 span)
{
	return FLOOR_LOSS_ONE - min(mul_div(cost, FLOOR_LOSS_ONE, span), FLOOR_LOSS_ONE);
}

/*
 * Whether a written drive does what it can but for max_loss, by a model that is of this disk. Until
 * the first look has ended it does. A smaller window that is tried may lose for itself.
 */
static bool iso_device_is_busy(struct iso_disk *d, const struct iso_done *sum,
			       unsigned int max_loss, u64 now)
{
	struct iso_busy *b = &d->epoch.busy;
	u64 cost = sum->cost - b->seen.cost, span = now - b->since_ns;
	unsigned int most = b->is_busy ? BUSY_LOSS * max_loss : max_loss;

	if (span >= BUSY_NS && span < BUSY_SPAN_MAX * BUSY_NS) {
		b->is_written = sum->written - b->seen.written > cost / 2;
		b->is_busy = iso_loss_by_model(cost, span) <= most;
	}
	if (span >= BUSY_NS || (d->window.phase == WINDOW_TRIAL && !d->window.up)) {
		b->seen = *sum;
		b->since_ns = now;
	}
	return d->cost.source == COST_USER && b->is_written && b->is_busy;
}

static bool iso_device_is_full(const struct iso_disk *d, const struct iso_seen *seen,
			       unsigned int max_loss)
{
	return d->cost.source == COST_USER &&
		iso_loss_by_model(seen->rate, NSEC_PER_SEC) <= max_loss / FULL_LOSS;
}

static void iso_update_floor(struct iso_disk *d, const struct iso_done *sum,
			     const struct iso_seen *seen, u64 now)
{
	struct floor *f = &d->floor;
	bool was_open = d->floor_now == FLOOR_OPEN;
	bool was_trial = f->phase == FLOOR_TRIAL;
	struct floor_span s = {
		.rate = seen->rate,
		.in_flight = seen->in_flight,
		.window = d->tunables.window ? d->room.size : d->window.size,
		.least = d->device.mean_cost,
		.throttled = seen->throttled,
		.limited = seen->limited,
		.spared = READ_ONCE(d->epoch.spared),
		.groups = d->members.nr,
		.changed = d->epoch.joins != d->members.joins,
		.may_try = d->window.phase != WINDOW_TRIAL,
		.max_loss = READ_ONCE(d->tunables.max_loss),
	};

	s.busy = iso_device_is_busy(d, sum, s.max_loss, now);
	s.full = iso_device_is_full(d, seen, s.max_loss);
	floor_span(f, &s);
	if (f->widen && !d->tunables.window)
		window_widen(&d->window);
	WRITE_ONCE(d->floor_now, floor_now(f));
	if (was_trial && was_open && d->floor_now != FLOOR_OPEN)
		iso_put_back(d);
	if (was_trial && f->phase != FLOOR_TRIAL) {
		iso_pay_back(d);
		iso_scale_epoch(d, &f->trial);
	}
	if (!was_open && d->floor_now == FLOOR_OPEN)
		iso_set_aside(d);
}

/* ---- epoch ----------------------------------------------------------------- */

static u64 iso_epoch_ns_min(const struct iso_disk *d, const struct iso_seen *seen)
{
	u64 least = EPOCH_NS_MIN;

	if (seen->written && d->cost.source != COST_USER)
		least = EPOCH_WRITES_NS_MIN;
	least = min(least * d->epoch.scale, EPOCH_NS_MAX);
	return clamp(EPOCH_LATENCIES * seen->latency, least, EPOCH_NS_MAX);
}

/* How much longer it takes until enough was seen; 0: it was. */
static u64 iso_epoch_ns_more(const struct iso_disk *d, const struct iso_seen *seen)
{
	u64 most = EPOCH_NS_MAX - min(seen->span, EPOCH_NS_MAX), more = 0;
	u64 least = iso_epoch_ns_min(d, seen);

	if (!seen->nr)
		return EPOCH_NS_MIN;
	if (seen->nr < EPOCH_REQUESTS)
		more = div64_u64(seen->span * (EPOCH_REQUESTS - seen->nr), seen->nr);
	more = max(more, least - min(seen->span, least));
	return min(more, most);
}

static void iso_update_device(struct iso_disk *d, const struct iso_seen *seen)
{
	struct iso_device *dev = &d->device;

	WRITE_ONCE(dev->mean_cost, max(div64_u64(seen->cost, seen->nr), 1ULL));
	WRITE_ONCE(dev->largest, max(READ_ONCE(d->epoch.largest),
				     dev->largest - dev->largest / LARGEST_EPOCHS));
	/* There a cost is time that the device took: it always does a second's a second. */
	if (!d->rotational)
		WRITE_ONCE(dev->rate, max(seen->rate, dev->rate - dev->rate / RATE_EPOCHS));
}

static void iso_update_window(struct iso_disk *d, const struct iso_seen *seen)
{
	bool was_trial = d->window.phase == WINDOW_TRIAL;
	struct window_epoch e = {
		.rate = seen->rate,
		/* A request as large as the largest has room beside another. */
		.least = d->device.mean_cost +
			max(d->device.mean_cost, d->device.largest),
		.limited = seen->limited,
		/* Else the floor limits the device rather than the window. */
		.may_try = d->floor.phase != FLOOR_TRIAL &&
			(d->floor.settled || d->rotational ||
			 seen->throttled < READ_ONCE(d->tunables.max_loss)),
	};

	if (d->tunables.window)
		return;
	window_epoch(&d->window, &e);
	if (was_trial && d->window.phase != WINDOW_TRIAL)
		iso_scale_epoch(d, &d->window.trial);
}

static void iso_begin_epoch(struct iso_disk *d, const struct iso_done *sum,
			    const struct iso_seen *seen, u64 now)
{
	d->epoch.seen = *sum;
	d->epoch.begun_ns = now;
	d->epoch.joins = d->members.joins;
	WRITE_ONCE(d->epoch.limited, false);
	WRITE_ONCE(d->epoch.spared, false);
	WRITE_ONCE(d->epoch.largest, 0);
	WRITE_ONCE(d->epoch.look_ns, now + iso_epoch_ns_min(d, seen));
}

/**
 * iso_set_slacks() - how far groups may be apart, by what the device does
 * @d: its disk lock is held, or no CPU knows it yet
 */
void iso_set_slacks(struct iso_disk *d)
{
	u64 hold_ns = (u64)READ_ONCE(d->tunables.hold_us) * NSEC_PER_USEC;
	u64 slack = max(iso_cost_in(d, hold_ns),
			SLACK_REQUESTS * d->device.mean_cost);

	WRITE_ONCE(d->clock.slack, slack);
	WRITE_ONCE(d->clock.credit, max(iso_cost_in(d, CREDIT_NS),
					CREDIT_SLACKS * slack));
	WRITE_ONCE(d->clock.debt_max, iso_cost_in(d, ISO_DEBT_NS));
}

/**
 * iso_end_epoch() - end the epoch if it is long enough
 * @d: its disk lock is held
 * @now: ns
 */
void iso_end_epoch(struct iso_disk *d, u64 now)
{
	struct iso_done sum = iso_sum_done(d);
	struct iso_seen seen = iso_measure_epoch(d, &sum, now);
	u64 more = iso_epoch_ns_more(d, &seen);

	lockdep_assert_held(&d->disk.lock);

	if (more) {
		WRITE_ONCE(d->epoch.look_ns, now + more);
		return;
	}
	seen.throttled = iso_throttled_permille(d, seen.span, now);
	iso_update_device(d, &seen);
	iso_update_window(d, &seen);
	if (d->rotational)
		WRITE_ONCE(d->floor_now,
			   READ_ONCE(d->tunables.max_loss) ? 0 : FLOOR_OPEN);
	else
		iso_update_floor(d, &sum, &seen, now);
	iso_begin_epoch(d, &sum, &seen, now);
	iso_set_window(d);
	iso_set_slacks(d);
	trace_isoblk_epoch(d, seen.rate, seen.limited);
	if (now - d->epoch.gate_ns >= GATE_NS) {
		iso_find_gated(d);
		isoblk_gate_tick(&d->disk);
		d->epoch.gate_ns = now;
	}
	iso_look_at_swappers(d);
	iso_update_horizon(d, now);
}
