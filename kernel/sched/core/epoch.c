// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of an epoch: how fast the device was, how long requests took at best, and by
 * that how much it is given at once and how far groups may be apart. All parts that learn
 * from the device are told from here, one after the other.
 */
#include "core/charge.h"
#include "core/epoch.h"
#include "core/hold.h"
#include "core/horizon.h"
#include "core/latency.h"
#include "core/measure.h"
#include "core/size.h"
#include "core/swap.h"
#include "core/trace.h"
#include "core/vtime.h"
#include "muldiv.h"
#include "share/gate.h"

/*
 * An epoch is three times as long as a request takes and has so many requests, so
 * that what it did at its edges does not count; but no longer than this.
 */
#define EPOCH_LATENCIES		3
#define EPOCH_REQUESTS		64
#define EPOCH_LEAST_NS		(500 * NSEC_PER_USEC)
#define EPOCH_MOST_NS		(100 * NSEC_PER_MSEC)

/* Groups are looked at this often, and at first after each epoch. */
#define SCAN_NS			(5 * NSEC_PER_MSEC)
#define FIRST_SCANS		10

/*
 * The least time in the device is kept for between one and two of these: in a
 * shorter one a device that is always busy shows none that was short.
 */
#define BASE_NS			(20 * NSEC_PER_SEC)

/* A device that answers so soon does not work on what it is given; it has done it. */
#define NO_QUEUE_NS		(4 * NSEC_PER_USEC)

/* How long a group that streams keeps its turn, as times that a request takes. */
#define STREAM_LATENCIES	20

/*
 * A processor that a host takes away stands still for longer than it is late in the
 * mean, for most of the time it runs: by about so much.
 */
#define STOP_LATES		2

/*
 * Who is behind because it sends too little at a time is behind by no more time of the device,
 * for it could not use it; but by more than others may be ahead.
 */
#define CREDIT_NS		(200 * NSEC_PER_MSEC)
#define CREDIT_SLACKS		2

/* The largest request is forgotten at this pace: so seldom one may come and count. */
#define LARGEST_EPOCHS		16

/* Waiting that was not used up is not saved beyond this. */
#define IDLE_MOST_NS		(5 * NSEC_PER_MSEC)

static void note_rate(struct iso_disk *d, u64 rate)
{
	struct iso_device *dev = &d->device;
	unsigned int i;

	dev->rates[dev->rate_at++ % ISO_RATES] = rate;
	for (i = 0; i < ISO_RATES; i++)
		rate = max(rate, dev->rates[i]);
	/* What is buffered is done later. */
	if (d->pricing.prices.known)
		rate = min(rate, d->pricing.prices.wanted);
	WRITE_ONCE(dev->rate, rate);
}

/*
 * A request that is larger than most needs its place beside the window: else it waits
 * until the device is nearly empty, and the small ones until it has ended.
 */
static void note_largest(struct iso_disk *d)
{
	struct iso_device *dev = &d->device;
	u64 largest = max(READ_ONCE(d->epoch.largest),
			  dev->largest - dev->largest / LARGEST_EPOCHS);

	/* In this order: iso_goes_first() looks at both. */
	WRITE_ONCE(dev->largest, largest);
	WRITE_ONCE(d->epoch.largest, 0);
	dev->beside = largest - min(largest, dev->mean_work);
}

static void renew_base(struct iso_disk *d, u64 now)
{
	struct iso_device *dev = &d->device;

	if (now - dev->base_ns < BASE_NS)
		return;
	memcpy(dev->base[1], dev->base[0], sizeof(dev->base[0]));
	memset(dev->base[0], 0xff, sizeof(dev->base[0]));
	dev->base_ns = now;
	iso_hold_unlearn(d);
}

static void save_idle(struct iso_disk *d, u64 span)
{
	u64 more = div_u64(span * READ_ONCE(d->tunables.idle_loss), 1000);
	s64 idle = atomic64_add_return(more, &d->wait.spare_ns);

	if (idle > (s64)IDLE_MOST_NS)
		atomic64_sub(idle - IDLE_MOST_NS, &d->wait.spare_ns);
}

/* How far groups may be ahead. */
static u64 round_of(struct iso_disk *d)
{
	u64 hold_ns = (u64)READ_ONCE(d->tunables.hold_us) * NSEC_PER_USEC;
	u64 stop_ns = STOP_LATES * READ_ONCE(d->late.ns);

	return iso_work_in(d, hold_ns + stop_ns);
}

/* How long it takes until enough has completed, if @nr have in @span. */
static u64 more_time(u64 nr, u64 span)
{
	u64 more = EPOCH_LEAST_NS;

	if (nr && nr < EPOCH_REQUESTS)
		more = div64_u64(span * (EPOCH_REQUESTS - nr), nr);
	return min(more, EPOCH_MOST_NS - min(span, EPOCH_MOST_NS - 1));
}

/*
 * What was seen in an epoch of @span, at whose end @sum has completed, when processors
 * were @late.
 */
static struct window_epoch see(struct iso_disk *d, const struct iso_done *sum,
			       u64 span, u64 late)
{
	const struct iso_done *seen = &d->epoch.seen;
	u64 work = sum->work - seen->work, nr = sum->nr - seen->nr;
	struct iso_device *dev = &d->device;
	struct window_epoch e;
	u64 on_top;

	WRITE_ONCE(dev->mean_work, max(div64_u64(work, nr), 1ULL));
	e.rate = mul_div(work, NSEC_PER_SEC, span);
	e.limited = READ_ONCE(d->epoch.limited);
	d->epoch.was_limited = e.limited;
	/* What is done before it is seen, and the largest, are on top of the window. */
	on_top = mul_div(e.rate, late, NSEC_PER_SEC);
	e.peak = READ_ONCE(d->epoch.peak);
	e.peak -= min(e.peak, on_top + dev->beside);
	e.least = ISO_LEAST_REQUESTS * dev->mean_work;
	/* Little's law: so much there would be, had all taken the least time. */
	e.busy = div64_u64(sum->base_area - seen->base_area, span);
	WRITE_ONCE(dev->busy_with,
		   (dev->busy_with * 7 +
		    e.busy * ISO_BUSY_ONE / dev->mean_work) / 8);
	return e;
}

/* The device takes so long for a request, and would at best. */
static void begin_epoch(struct iso_disk *d, const struct iso_done *sum, u64 now)
{
	const struct iso_done *seen = &d->epoch.seen;
	u64 work = max(sum->work - seen->work, 1ULL);
	u64 latency = div64_u64(sum->area - seen->area, work);
	u64 base = div64_u64(sum->base_area - seen->base_area, work);

	d->device.no_queue = base < NO_QUEUE_NS;
	d->epoch.seen = *sum;
	WRITE_ONCE(d->epoch.limited, false);
	WRITE_ONCE(d->epoch.peak, 0);
	d->epoch.begun_ns = now;
	WRITE_ONCE(d->epoch.look_ns,
		   now + clamp(EPOCH_LATENCIES * latency, EPOCH_LEAST_NS,
			       EPOCH_MOST_NS));
}

/* How far groups may be apart, by what the device does. */
static void set_slacks(struct iso_disk *d)
{
	struct iso_clock *c = &d->clock;

	WRITE_ONCE(c->slack, max(round_of(d) << VTIME_SHIFT, c->ease));
	WRITE_ONCE(c->stream_slack, max(c->stream_slack, c->slack));
	WRITE_ONCE(c->credit, max(iso_work_in(d, CREDIT_NS) << VTIME_SHIFT,
				  CREDIT_SLACKS * c->slack));
	WRITE_ONCE(c->debt_max, iso_work_in(d, ISO_DEBT_NS) << VTIME_SHIFT);
}

static void look_at_groups(struct iso_disk *d, u64 now)
{
	if (now - d->hold.scan_ns < SCAN_NS &&
	    d->hold.nr_scans >= FIRST_SCANS && !d->hold.trial)
		return;
	/* Who is late there has been kept from a CPU, not from the device. */
	if (d->device.no_queue)
		iso_hold_nobody(d);
	else
		iso_scan(d, now);
	d->hold.scan_ns = now;
	isoblk_gate_tick(&d->disk);
}

/**
 * iso_end_epoch() - end the epoch if it is long enough
 * @d: its disk lock is held
 * @now: ns
 */
void iso_end_epoch(struct iso_disk *d, u64 now)
{
	u64 span = now - d->epoch.begun_ns, nr, stream;
	u64 late = READ_ONCE(d->late.ns);
	struct iso_done sum = iso_sum_up(d);
	struct window_epoch e;

	lockdep_assert_held(&d->disk.lock);

	nr = sum.nr - d->epoch.seen.nr;
	if (!nr || (nr < EPOCH_REQUESTS && span < EPOCH_MOST_NS)) {
		WRITE_ONCE(d->epoch.look_ns, now + more_time(nr, span));
		return;
	}
	e = see(d, &sum, span, late);
	note_largest(d);
	begin_epoch(d, &sum, now);

	note_rate(d, e.rate);
	renew_base(d, now);
	save_idle(d, span);
	d->pricing.full |= e.limited;
	/* A window that still grows says nothing of the device. */
	if (e.limited)
		WRITE_ONCE(d->pricing.wanted, d->window.phase != WINDOW_GROW);
	iso_update_prices(d, &sum, now);
	stream = e.busy * STREAM_LATENCIES << VTIME_SHIFT;
	WRITE_ONCE(d->clock.stream_slack, stream);
	e.busy += mul_div(e.rate, late, NSEC_PER_SEC);
	/* One trial at a time. */
	if (iso_is_alone(d))
		window_stop(&d->window);
	else if (!d->tunables.window && likely(!d->squeeze.window))
		window_epoch(&d->window, &e);
	if (unlikely(!list_empty(&d->latency.list)))
		iso_latency_look(d, &e, span, now);
	iso_set_window(d);
	trace_isoblk_epoch(d, &e);
	WRITE_ONCE(d->clock.ease,
		   ISO_LEAST_REQUESTS * d->device.mean_work << VTIME_SHIFT);
	vclock_set(&d->clock.half, sum.work, e.rate, now);
	set_slacks(d);
	look_at_groups(d, now);
	iso_look_at_swappers(d);
	iso_update_horizon(d, now);
}
