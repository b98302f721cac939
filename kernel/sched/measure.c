// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the device does: how fast it is, how long requests take at best, and by
 * that how much it is given at once and how far groups may be apart.
 */
#include <linux/module.h>

#include "core.h"
#include "trace.h"

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

/* The window to begin with: so much work, or so many requests. */
#define FIRST_WORK		256ULL
#define FIRST_REQUESTS		4

/* A device that answers so soon does not work on what it is given; it has done it. */
#define NO_QUEUE_NS		(4 * NSEC_PER_USEC)

/* How long a group that streams keeps its turn, as times that a request takes. */
#define STREAM_LATENCIES	20

/*
 * A processor that a host takes away stands still for longer than it is late in the
 * mean, for most of the time it runs: by about so much.
 */
#define STOP_LATES		2

/* A kind of requests that has the device for itself may want more at once than all did. */
#define ALONE_WINDOWS		4

/* Of the window, what is on top of it and may be free before a completion has it used. */
#define GATHER_FRACTION		8

/* Below so many requests in the device there is no order in which to serve. */
#define LEAST_REQUESTS		2

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

/**
 * iso_work_in() - how much the device does in a span of time, units
 * @d: disk
 * @ns: length
 */
u64 iso_work_in(const struct iso_disk *d, u64 ns)
{
	return mul_div(READ_ONCE(d->rate), ns, NSEC_PER_SEC);
}
EXPORT_SYMBOL_GPL(iso_work_in);

/**
 * iso_set_window() - give the device as much as the user wrote, or has been found
 * @d: its disk lock is held
 *
 * Less if somebody's latency asks for it. What is found has on top what may gather.
 */
void iso_set_window(struct iso_disk *d)
{
	u64 size = d->window_mode > 0 ? d->window_mode * d->unit : S32_MAX;
	u64 gather = 0;

	/* What answers at once has no queue to be kept short. */
	if (!d->window_mode && !d->paper && !d->no_queue) {
		size = window_now(&d->window) *
			(iso_is_alone(d) ? ALONE_WINDOWS : 1) +
			d->beside + iso_work_in(d, READ_ONCE(d->late_ns));
		gather = d->rotational ? 0 : size / GATHER_FRACTION;
		size += gather;
	}
	WRITE_ONCE(d->free_size, size);
	if (unlikely(d->squeeze.window)) {
		size = min(size, d->squeeze.window);
		gather = 0;
	}
	WRITE_ONCE(d->gather, gather);
	iso_room_resize(&d->room, size);
}

/**
 * iso_measure_restart() - forget how much the device may have at once
 * @d: its disk lock is held
 */
void iso_measure_restart(struct iso_disk *d)
{
	lockdep_assert_held(&d->disk.lock);

	window_init(&d->window, max(FIRST_WORK * d->unit,
				    FIRST_REQUESTS * d->mean_work));
	iso_set_window(d);
}

/**
 * iso_first_request() - the disk is used for the first time
 * @d: disk
 * @work: of a request
 */
void iso_first_request(struct iso_disk *d, u64 work)
{
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (!d->room.size) {
		WRITE_ONCE(d->mean_work, work);
		WRITE_ONCE(d->ease, LEAST_REQUESTS * work << VTIME_SHIFT);
		WRITE_ONCE(d->slack, d->ease);
		WRITE_ONCE(d->stream_slack, d->ease);
		iso_measure_restart(d);
	}
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

static void count_kind(struct iso_disk *d, enum isoblk_op kind,
		       unsigned int sectors)
{
	this_cpu_inc(d->done->sums.nr[kind]);
	this_cpu_add(d->done->sums.sectors[kind], sectors);
}

/**
 * iso_account() - a request has completed
 * @d: disk
 * @gq: its group's
 * @rq: request
 * @sectors: that it had when it went to the device
 * @work: of it
 * @now: ns
 */
void iso_account(struct iso_disk *d, struct iso_gq *gq,
		 const struct request *rq, unsigned int sectors, u64 work,
		 u64 now)
{
	unsigned int c = min(fls(sectors), ISO_SIZES - 1);
	unsigned int dir = op_is_write(rq->cmd_flags);
	u64 took;
	u32 base;

	if (!rq->io_start_time_ns || now <= rq->io_start_time_ns)
		return;
	took = min_t(u64, now - rq->io_start_time_ns, U32_MAX - 1);
	if (took < READ_ONCE(d->base[0][dir][c]))
		WRITE_ONCE(d->base[0][dir][c], took);
	base = min(READ_ONCE(d->base[0][dir][c]), READ_ONCE(d->base[1][dir][c]));

	/* Alone, a group has nobody to be held back. */
	if (READ_ONCE(d->nr_groups) > 1) {
		atomic64_add(took * work, &gq->area);
		atomic64_add((base + READ_ONCE(d->late_ns)) * work,
			     &gq->base_area);
	}
	this_cpu_inc(d->done->nr);
	this_cpu_add(d->done->work, work);
	this_cpu_add(d->done->area, took * work);
	this_cpu_add(d->done->base_area, base * work);
	if (READ_ONCE(d->account) == ISO_TIME)
		count_kind(d, isoblk_rq_op(rq), sectors);
}

static void sum_up_kinds(struct price_sums *sum, const struct price_sums *of)
{
	enum price_kind kind;

	for (kind = 0; kind < PRICE_KINDS; kind++) {
		sum->nr[kind] += READ_ONCE(of->nr[kind]);
		sum->sectors[kind] += READ_ONCE(of->sectors[kind]);
	}
}

static struct iso_done sum_up(const struct iso_disk *d)
{
	const struct iso_done *done;
	struct iso_done sum = {};
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		done = per_cpu_ptr(d->done, cpu);
		sum.nr += READ_ONCE(done->nr);
		sum.work += READ_ONCE(done->work);
		sum.area += READ_ONCE(done->area);
		sum.base_area += READ_ONCE(done->base_area);
		if (d->account == ISO_TIME)
			sum_up_kinds(&sum.sums, &done->sums);
	}
	return sum;
}

/**
 * iso_done_work() - work that has completed so far
 * @d: disk
 */
u64 iso_done_work(const struct iso_disk *d)
{
	return sum_up(d).work;
}
EXPORT_SYMBOL_GPL(iso_done_work);

static void note_rate(struct iso_disk *d, u64 rate)
{
	unsigned int i;

	d->rates[d->rate_at++ % ARRAY_SIZE(d->rates)] = rate;
	for (i = 0; i < ARRAY_SIZE(d->rates); i++)
		rate = max(rate, d->rates[i]);
	/* What is buffered is done later. */
	if (d->prices.known)
		rate = min(rate, d->prices.wanted);
	WRITE_ONCE(d->rate, rate);
}

/*
 * A request that is larger than most needs its place beside the window: else it waits
 * until the device is nearly empty, and the small ones until it has ended.
 */
static void note_largest(struct iso_disk *d)
{
	u64 largest = max(READ_ONCE(d->largest_now),
			  d->largest - d->largest / LARGEST_EPOCHS);

	/* In this order: iso_goes_first() looks at both. */
	WRITE_ONCE(d->largest, largest);
	WRITE_ONCE(d->largest_now, 0);
	d->beside = largest - min(largest, d->mean_work);
}

static void renew_base(struct iso_disk *d, u64 now)
{
	if (now - d->base_ns < BASE_NS)
		return;
	memcpy(d->base[1], d->base[0], sizeof(d->base[0]));
	memset(d->base[0], 0xff, sizeof(d->base[0]));
	d->base_ns = now;
}

static void save_idle(struct iso_disk *d, u64 span)
{
	s64 idle = atomic64_add_return(div_u64(span * READ_ONCE(d->idle_loss), 1000),
				       &d->idle_ns);

	if (idle > (s64)IDLE_MOST_NS)
		atomic64_sub(idle - IDLE_MOST_NS, &d->idle_ns);
}

/* How far groups may be ahead. */
static u64 round_of(struct iso_disk *d)
{
	u64 stop_ns = STOP_LATES * READ_ONCE(d->late_ns);

	if (d->policy->round)
		return d->policy->round(d) + iso_work_in(d, stop_ns);
	return iso_work_in(d, (u64)READ_ONCE(d->hold_us) * NSEC_PER_USEC +
			   stop_ns);
}

/* How long it takes until enough has completed, if @nr have in @span. */
static u64 more_time(u64 nr, u64 span)
{
	u64 more = EPOCH_LEAST_NS;

	if (nr && nr < EPOCH_REQUESTS)
		more = div64_u64(span * (EPOCH_REQUESTS - nr), nr);
	return min(more, EPOCH_MOST_NS - min(span, EPOCH_MOST_NS - 1));
}

/**
 * iso_measure() - end the epoch if it is long enough
 * @d: its disk lock is held
 * @now: ns
 */
void iso_measure(struct iso_disk *d, u64 now)
{
	u64 span = now - d->epoch_ns, work, nr, area, base;
	struct iso_done sum = sum_up(d);
	u64 late = READ_ONCE(d->late_ns), on_top;
	struct window_epoch e;

	lockdep_assert_held(&d->disk.lock);

	nr = sum.nr - d->seen.nr;
	if (!nr || (nr < EPOCH_REQUESTS && span < EPOCH_MOST_NS)) {
		WRITE_ONCE(d->look_ns, now + more_time(nr, span));
		return;
	}
	work = sum.work - d->seen.work;
	area = sum.area - d->seen.area;

	WRITE_ONCE(d->mean_work, max(div64_u64(work, nr), 1ULL));
	e.rate = mul_div(work, NSEC_PER_SEC, span);
	e.limited = READ_ONCE(d->limited);
	d->full |= e.limited;
	/* What is done before it is seen, and the largest, are on top of the window. */
	on_top = mul_div(e.rate, late, NSEC_PER_SEC);
	e.peak = READ_ONCE(d->peak);
	e.peak -= min(e.peak, on_top + d->beside);
	e.least = LEAST_REQUESTS * d->mean_work;
	/* Little's law: so much there would be, had all taken the least time. */
	e.busy = div64_u64(sum.base_area - d->seen.base_area, span);
	base = div64_u64(sum.base_area - d->seen.base_area, max(work, 1ULL));
	WRITE_ONCE(d->busy_with, (d->busy_with * 7 + e.busy * ISO_BUSY_ONE /
				  d->mean_work) / 8);
	note_largest(d);
	d->seen = sum;
	WRITE_ONCE(d->limited, false);
	WRITE_ONCE(d->peak, 0);
	d->epoch_ns = now;
	WRITE_ONCE(d->look_ns, now +
		   clamp(EPOCH_LATENCIES * div64_u64(area, max(work, 1ULL)),
			 EPOCH_LEAST_NS, EPOCH_MOST_NS));

	note_rate(d, e.rate);
	renew_base(d, now);
	save_idle(d, span);
	d->no_queue = base < NO_QUEUE_NS;
	/* A window that still grows says nothing of the device. */
	if (e.limited)
		WRITE_ONCE(d->wanted, d->window.phase != WINDOW_GROW);
	iso_update_prices(d, &sum, now);
	WRITE_ONCE(d->stream_slack, e.busy * STREAM_LATENCIES << VTIME_SHIFT);
	e.busy += on_top;
	/* One trial at a time. */
	if (iso_is_alone(d))
		window_stop(&d->window);
	else if (!d->window_mode && !d->paper && likely(!d->squeeze.window))
		window_epoch(&d->window, &e);
	if (unlikely(!list_empty(&d->targets)))
		iso_latency_look(d, &e, span, now);
	iso_set_window(d);
	trace_isoblk_epoch(d, &e);
	WRITE_ONCE(d->ease, LEAST_REQUESTS * d->mean_work << VTIME_SHIFT);
	vclock_set(&d->clock, sum.work, e.rate, now);
	WRITE_ONCE(d->slack, max(round_of(d) << VTIME_SHIFT, d->ease));
	WRITE_ONCE(d->stream_slack, max(d->stream_slack, d->slack));
	WRITE_ONCE(d->credit, max(iso_work_in(d, CREDIT_NS) << VTIME_SHIFT,
				  CREDIT_SLACKS * d->slack));
	WRITE_ONCE(d->debt_max, iso_work_in(d, ISO_DEBT_NS) << VTIME_SHIFT);

	if (now - d->scan_ns >= SCAN_NS || d->nr_scans < FIRST_SCANS ||
	    d->trial) {
		/* Who is late there has been kept from a CPU, not from the device. */
		if (d->no_queue)
			iso_hold_nobody(d);
		else if (!d->paper)
			iso_scan(d, now);
		d->scan_ns = now;
		isoblk_gate_tick(&d->disk);
	}
	iso_look_at_swappers(d);
	iso_update_horizon(d, now);
}
