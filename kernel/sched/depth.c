// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many requests the device is given at once.
 *
 * A fast device has a deep queue and limited parallelism. Given everything at
 * once it serves in its own order, and whoever sends most gets most; given less
 * than it can work on at a time it is slow. In between lies the depth that
 * keeps it busy and leaves the choice of the next request to us. That depth is a
 * property of device and load, so it is measured, all the time:
 *
 *  - The time in the device of every request is known, and the shortest seen
 *    lately of its class (direction and size) is what one takes that need not
 *    wait. Requests that completed, each with its class's shortest time, added up
 *    and divided by the span, are the servers that were busy: the least depth at
 *    which this load can run at this speed.
 *
 *  - If requests take STRETCHED as long as the shortest, they queue in the
 *    device, and a lower depth is tried: at first that number of busy servers
 *    and a little more, later the middle between what was too low and what is
 *    known to do. It is kept if the device did not become slower by more than
 *    loss_permille. A device whose speed has no knee, as flash with conflicting
 *    dies, so keeps the depth that it needs, whatever the shortest time says.
 *
 *  - From time to time a lower depth is tried anyway, for the shortest times may
 *    all have been of a busy device; and a higher one while the depth limits the
 *    load. It is kept if it is faster.
 *
 * The depth found is used in one of two ways.
 *
 *  - Loose: the device is given all there is. Who is without budget waits for
 *    those who have some, as long as it has half of that many: enough for most of its
 *    speed, for the moment that they take. More would be their share's loss: with
 *    a depth of 32, one cannot have half of a device that is never to have
 *    less than 35. Shares are exact, and dispatch happens in the submitters' contexts.
 *
 *  - Tight: the device is given no more. A request then waits for nobody's but
 *    those in service, and the next place goes to whom it is due: that is for
 *    groups that wait for each single request, and so for latency rather than
 *    for a share. It costs CPU time, for dispatch follows each completion. So it
 *    is done while there are such groups: while requests arrive that are
 *    their group's only one.
 *
 * Until a depth is found, the number of busy servers serves as a guess, loosely;
 * it does after that too, where it is lower, unless tags are short.
 *
 * A probe lasts a few ticks, tightly, and is compared with the sample just before
 * it, by bios and bytes, or if those disagree (the load's mix changed with
 * its shares) by busy servers. It ends early if it is hopeless. While fewer than
 * two groups are active there is nothing to choose and no limit; when the second
 * comes, the depth last found is used at once.
 *
 * The places are counted by one atomic a disk: one cache line that every
 * dispatch and completion touches, as tags shared between hardware queues do.
 * A hardware queue that finds no place sets its bit in starved and looks again;
 * who gives a place back sees the bit, or the other the place.
 */
#include <linux/module.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "isoblk_share.h"
#include "trace.h"

/* Loosely, who is without budget waits while the device has this part to do. */
#define PATIENT_FRACTION	2

/* Requests queue in the device if they take 5/4 of the shortest time. */
#define STRETCHED(lat, busy)	(4 * (lat) > 5 * (busy))

/* What is tried first is above the busy servers by this part of them. */
#define HEADROOM_FRACTION	32

/* Waiting queues are run when this part of the limit is free: the headroom. */
#define BATCH_FRACTION		32

/* Depths closer than this part are the same. */
#define SAME_FRACTION		10

/* A higher depth tried is higher by this, and by more while that helps. */
#define MIN_UP_PERCENT		25
#define MAX_UP_PERCENT		100

/* A lower one, with nothing to say that it does, is lower by this part. */
#define DOWN_FRACTION		8

/* So many completions make a sample; a slow device takes more ticks for it. */
#define MIN_SAMPLE		256

/* A very slow one would take too many: then so few after so long. */
#define FEW_SAMPLE		32
#define FEW_SAMPLE_NS		(50ULL * NSEC_PER_MSEC)

/* A probe that lost this part of what was to be expected need not go on. */
#define HOPELESS_FRACTION	2

/* Ticks after a change until requests of before it are gone. */
#define SETTLE_TICKS		1

/* The timer stood still if this many ticks are missing. */
#define IDLE_TICKS		4

/* The shortest time is that of this window and the last. */
#define WINDOW_NS		(5ULL * NSEC_PER_SEC)

/* Between probes that fail; a device's state, as garbage collection, changes. */
#define MIN_PAUSE_NS		(500ULL * NSEC_PER_MSEC)
#define MAX_PAUSE_NS		(4ULL * NSEC_PER_SEC)

/* What was slower is not tried again for so long without a reason. */
#define SLOWER_NS		(10ULL * NSEC_PER_SEC)

/* Of the speed, for exact shares and short waits. */
#define DEFAULT_LOSS_PERMILLE	30

/* A higher depth is faster if it is by this; less is noise. */
#define MIN_GAIN_PERMILLE	20

/* Requests a tick that are their group's only one, to say that some are so. */
#define MIN_LONE		4

/* Tags are few if the depth takes up more than this part of them. */
#define FEW_TAGS_FRACTION	5

/* Nobody is served by less. */
#define MIN_LIMIT		1

/* ---- places ---------------------------------------------------------- */

/* @hq is to be run when the device has less to do. */
static void note_starved(struct isoblk_depth *d, const struct isoblk_hq *hq)
{
	set_bit(hq->index, d->starved);
	if (!READ_ONCE(d->full))
		WRITE_ONCE(d->full, true);
	/* Our bit before their count; pairs with isoblk_depth_put(). */
	smp_mb__after_atomic();
}

/**
 * isoblk_depth_room() - whether the device may be given a request more
 * @disk: disk
 * @hq: hardware queue that has one; noted down if there is no room
 */
bool isoblk_depth_room(struct isoblk_disk *disk, struct isoblk_hq *hq)
{
	struct isoblk_depth *d = &disk->depth;

	if (atomic_read(&d->inflight) < READ_ONCE(d->limit))
		return true;
	note_starved(d, hq);
	return atomic_read(&d->inflight) < READ_ONCE(d->limit);
}
EXPORT_SYMBOL_GPL(isoblk_depth_room);

/**
 * isoblk_depth_short() - whether the device may be short of work
 * @disk: disk
 * @hq: hardware queue that waits for a refill; noted down if it is not
 * @mine: places that @hq has taken and has no request for as yet
 */
bool isoblk_depth_short(struct isoblk_disk *disk, struct isoblk_hq *hq,
			int mine)
{
	struct isoblk_depth *d = &disk->depth;

	if (atomic_read(&d->inflight) - mine < READ_ONCE(d->enough))
		return true;
	note_starved(d, hq);
	return atomic_read(&d->inflight) - mine < READ_ONCE(d->enough);
}

/**
 * isoblk_depth_get() - take a place in the device
 * @disk: disk
 * @hq: hardware queue; noted down if there is none
 */
bool isoblk_depth_get(struct isoblk_disk *disk, struct isoblk_hq *hq)
{
	struct isoblk_depth *d = &disk->depth;
	int old = atomic_read(&d->inflight);

	do {
		while (old >= READ_ONCE(d->limit)) {
			if (!isoblk_depth_room(disk, hq))
				return false;
			old = atomic_read(&d->inflight);
		}
	} while (!atomic_try_cmpxchg(&d->inflight, &old, old + 1));
	return true;
}

static void run_starved(struct isoblk_disk *disk)
{
	struct isoblk_depth *d = &disk->depth;
	unsigned int i;

	for_each_set_bit(i, d->starved, disk->nr_hqs)
		if (test_and_clear_bit(i, d->starved))
			blk_mq_run_hw_queue(disk->hq[i]->hctx, true);
}

/**
 * isoblk_depth_put() - give a place back
 * @disk: disk; any context
 */
void isoblk_depth_put(struct isoblk_disk *disk)
{
	struct isoblk_depth *d = &disk->depth;
	int left = atomic_dec_return(&d->inflight);

	if (!bitmap_empty(d->starved, disk->nr_hqs) &&
	    left <= READ_ONCE(d->wake))
		run_starved(disk);
}

/* ---- measuring ------------------------------------------------------- */

static unsigned int lat_class(const struct request *rq)
{
	unsigned int size = ilog2(max_t(unsigned int, rq->stats_sectors, 8)) - 3;

	return min(size, ISOBLK_LAT_SIZES - 1U) +
		(op_is_write(req_op(rq)) ? ISOBLK_LAT_SIZES : 0);
}

/**
 * isoblk_depth_account() - a request has been served
 * @disk: disk
 * @rq: ended; interrupt context or with interrupts on
 * @now: ns
 */
void isoblk_depth_account(struct isoblk_disk *disk, const struct request *rq,
			  u64 now)
{
	unsigned int class;
	struct isoblk_lat *lat;
	u64 ns;

	/* Never given to the driver. */
	if (!rq->io_start_time_ns || now <= rq->io_start_time_ns)
		return;
	ns = now - rq->io_start_time_ns;
	class = lat_class(rq);

	/* An interrupt in between may be lost from the sums; they only guide. */
	lat = get_cpu_ptr(disk->depth.lat);
	lat->nr[class]++;
	lat->sum += ns;
	lat->sectors += rq->stats_sectors;
	if (ns < lat->min[class])
		lat->min[class] = ns;
	put_cpu_ptr(disk->depth.lat);
}

static void read_lat(struct isoblk_depth *d, struct isoblk_lat *sum)
{
	struct isoblk_lat *lat;
	unsigned int c, cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		lat = per_cpu_ptr(d->lat, cpu);
		for (c = 0; c < ISOBLK_LAT_CLASSES; c++) {
			sum->nr[c] += READ_ONCE(lat->nr[c]);
			d->base_ns[0][c] = min(d->base_ns[0][c],
					       READ_ONCE(lat->min[c]));
			WRITE_ONCE(lat->min[c], U32_MAX);
		}
		sum->sum += READ_ONCE(lat->sum);
		sum->sectors += READ_ONCE(lat->sectors);
	}
}

/* The sum of shortest times of what completed: ns that servers were busy. */
static u64 busy_ns(const struct isoblk_depth *d, const struct isoblk_sample *s)
{
	u64 ns = 0;
	unsigned int c;

	for (c = 0; c < ISOBLK_LAT_CLASSES; c++)
		if (s->nr[c])
			ns += s->nr[c] * min(d->base_ns[0][c], d->base_ns[1][c]);
	return ns;
}

static u64 nr_completed(const struct isoblk_sample *s)
{
	u64 nr = 0;
	unsigned int c;

	for (c = 0; c < ISOBLK_LAT_CLASSES; c++)
		nr += s->nr[c];
	return nr;
}

/* Busy servers, in 1024ths. */
static u64 busy_servers(const struct isoblk_depth *d,
			const struct isoblk_sample *s)
{
	return div64_u64(busy_ns(d, s) << 10, s->span_ns);
}

/* @a / @a_ns is above @permille of @b / @b_ns. */
static bool above(u64 a, u64 a_ns, u64 b, u64 b_ns, unsigned int permille)
{
	return mul_u64_u64_div_u64(a, b_ns * 1000, a_ns) > b * permille;
}

/*
 * Whether the device was faster in sample @a than at @permille of @b. The
 * load's mix may have changed with its shares: if both bios and bytes say one
 * thing, that is so, else busy servers decide. Not requests: where less is in the
 * device more is merged.
 */
static bool faster(const struct isoblk_depth *d, const struct isoblk_sample *a,
		   const struct isoblk_sample *b, unsigned int permille)
{
	bool bios = above(a->bios, a->span_ns, b->bios, b->span_ns, permille);
	bool bytes = above(a->sectors, a->span_ns, b->sectors, b->span_ns,
			   permille);

	if (bios == bytes)
		return bytes;
	return above(busy_ns(d, a), a->span_ns, busy_ns(d, b), b->span_ns,
		     permille);
}

/* Requests that keep @busy servers busy, which are in 1024ths. */
static int headroom(u64 busy)
{
	return max(DIV_ROUND_UP_ULL(busy + busy / HEADROOM_FRACTION, 1024), 1);
}

/* ---- judging --------------------------------------------------------- */

/* Waiting queues are run by isoblk_depth_run(), without the lock. */
static void set_limits(struct isoblk_disk *disk, int limit, int enough)
{
	struct isoblk_depth *d = &disk->depth;

	lockdep_assert_held(&disk->lock);

	if (limit == d->limit && enough == d->enough)
		return;
	WRITE_ONCE(d->enough, enough);
	WRITE_ONCE(d->wake, limit == INT_MAX ? enough - 1 :
		   limit - max(limit / BATCH_FRACTION, 1));
	WRITE_ONCE(d->limit, limit);
	WRITE_ONCE(d->changed, true);
}

/*
 * Loosely: what the device needs is @depth, or less if fewer servers are busy. But if
 * those who wait have all the tags, that is why.
 */
static void set_loose(struct isoblk_disk *disk, int depth)
{
	if (!disk->tags_short || depth == INT_MAX)
		depth = min(depth, disk->depth.guess);
	set_limits(disk, INT_MAX, depth == INT_MAX ? INT_MAX :
		   max(depth / PATIENT_FRACTION, 1));
}

/* No probe is under way: as the mode and what is known say. */
static void apply(struct isoblk_disk *disk)
{
	struct isoblk_depth *d = &disk->depth;

	if (disk->paper_mode || d->mode < 0)
		set_limits(disk, INT_MAX, INT_MAX);
	else if (d->mode > 0)
		set_limits(disk, d->mode, d->mode);
	else if (disk->nr_active < 2)
		set_limits(disk, INT_MAX, INT_MAX);
	else if (d->known && d->tight)
		set_limits(disk, d->known, d->known);
	else
		set_loose(disk, d->known ?: INT_MAX);
}

static void begin_probe(struct isoblk_disk *disk, enum isoblk_probe probe,
			int limit, const struct isoblk_sample *before)
{
	struct isoblk_depth *d = &disk->depth;

	d->probe = probe;
	d->before = *before;
	d->settle = SETTLE_TICKS;
	set_limits(disk, limit, limit);
}

static void probe_up(struct isoblk_disk *disk,
		     const struct isoblk_sample *before)
{
	struct isoblk_depth *d = &disk->depth;

	begin_probe(disk, ISOBLK_PROBE_UP,
		    d->known + max(d->known * d->up_percent / 100, 1), before);
}

/* The next probe waits, and the one after it longer. */
static void pause_probes(struct isoblk_depth *d, u64 now)
{
	d->next_ns = now + d->pause_ns;
	d->pause_ns = min(2 * d->pause_ns, MAX_PAUSE_NS);
}

static void end_probe(struct isoblk_disk *disk, const struct isoblk_sample *s,
		      u64 now)
{
	struct isoblk_depth *d = &disk->depth;
	bool down = d->probe == ISOBLK_PROBE_DOWN;
	bool good;

	d->probe = ISOBLK_PROBE_NONE;
	if (down)
		good = faster(d, s, &d->before, 1000 - d->tolerance) &&
			faster(d, s, &d->top, 1000 - d->tolerance);
	else
		good = faster(d, s, &d->before, 1000 + MIN_GAIN_PERMILLE);

	if (good && down) {
		d->known = d->limit;
		d->pause_ns = MIN_PAUSE_NS;
		d->down_next = true;
		apply(disk);
	} else if (good) {
		/* Far off: go on at once, in longer steps. */
		d->too_low = d->known;
		d->known = d->limit;
		d->slower = 0;
		d->pause_ns = MIN_PAUSE_NS;
		d->top = *s;
		d->up_percent = min(2 * d->up_percent, MAX_UP_PERCENT);
		probe_up(disk, s);
	} else {
		/* A load that did not use the depth up says nothing of it. */
		if (down && d->full) {
			d->too_low = d->limit;
			d->slower = d->limit;
			d->slower_ns = now;
		}
		if (d->known || !d->too_low)
			pause_probes(d, now);
		d->up_percent = MIN_UP_PERCENT;
		apply(disk);
	}
}

/* A lower depth worth a try, or 0; @busy is in 1024ths. */
static int lower(const struct isoblk_depth *d, u64 busy, u64 in_device)
{
	int most = d->known ?: in_device + 1;
	int try = headroom(busy);

	if (d->too_low && try <= d->too_low)
		try = (d->too_low + most + 1) / 2;
	return try + max(most / SAME_FRACTION, 1) <= most ? try : 0;
}

static void consider_probe(struct isoblk_disk *disk,
			   const struct isoblk_sample *s, u64 now)
{
	struct isoblk_depth *d = &disk->depth;
	int below = d->known - max(d->known / DOWN_FRACTION, 1);
	u64 in_device = div64_u64(s->lat_ns, s->span_ns);
	bool down;
	int try;

	if (now < d->next_ns)
		return;
	try = STRETCHED(s->lat_ns, busy_ns(d, s)) ?
		lower(d, busy_servers(d, s), in_device) : 0;
	if (try) {
		if (!d->top.span_ns)
			d->top = *s;
		d->tolerance = d->loss_permille;
		begin_probe(disk, ISOBLK_PROBE_DOWN, try, s);
		return;
	}

	/* What was too low may do next time, and the best may be out of reach. */
	d->too_low = 0;
	d->top.span_ns = 0;
	if (!d->known || !d->full) {
		pause_probes(d, now);
		return;
	}
	/* Loosely the device has all there is; more cannot be tried. */
	down = d->down_next || !d->tight;
	d->down_next = !down;
	if (!down) {
		probe_up(disk, s);
	} else if (below < MIN_LIMIT || (below <= d->slower &&
					 now - d->slower_ns < SLOWER_NS)) {
		pause_probes(d, now);
	} else {
		d->top = *s;
		d->tolerance = min(d->loss_permille, MIN_GAIN_PERMILLE);
		begin_probe(disk, ISOBLK_PROBE_DOWN, below, s);
	}
}

/* There is no probe under way: what the last sample says without one. */
static void judge(struct isoblk_disk *disk, const struct isoblk_sample *s)
{
	struct isoblk_depth *d = &disk->depth;
	int busy = headroom(busy_servers(d, s));
	bool stretched = STRETCHED(s->lat_ns, busy_ns(d, s));

	if ((!d->known || !d->tight) && stretched)
		d->guess = busy;
	else if (!d->known && d->full && d->guess < INT_MAX / 2)
		d->guess += max(d->guess * MIN_UP_PERCENT / 100, 1);

	/* Loosely it is seen to do more. */
	if (d->known && !d->tight && stretched &&
	    busy > d->known + d->known / SAME_FRACTION)
		d->known = busy;
}

static u64 count_lone(const struct isoblk_disk *disk)
{
	u64 lone = 0;
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++)
		lone += READ_ONCE(disk->hq[i]->lone);
	return lone;
}

/* Whether requests are merged: what waits is larger then, and of fewer tags. */
static bool merging(const struct isoblk_sample *s)
{
	return s->bios > nr_completed(s) + nr_completed(s) / SAME_FRACTION;
}

/*
 * Whether there are groups that wait for each request, or requests that wait in
 * the device hold too many of the tags, where these are not merged; true: that is new.
 */
static bool judge_tight(struct isoblk_disk *disk,
			const struct isoblk_sample *s)
{
	struct isoblk_depth *d = &disk->depth;
	u64 lone = count_lone(disk);
	int depth = d->known ?: d->guess;
	bool tight = lone - d->lone >= MIN_LONE ||
		(disk->tags_short && !merging(s) &&
		 depth > READ_ONCE(disk->tags) / FEW_TAGS_FRACTION);
	bool changed = tight != d->tight;

	d->lone = lone;
	d->tight = tight;
	return changed;
}

/*
 * Whether a probe of a lower depth is so much slower that there is no need for a
 * whole sample, for which the device would do less all the while.
 */
static bool hopeless(const struct isoblk_depth *d,
		     const struct isoblk_sample *s)
{
	const struct isoblk_sample *b = &d->before;

	return d->probe == ISOBLK_PROBE_DOWN && s->span_ns &&
		mul_u64_u64_div_u64(nr_completed(b), s->span_ns,
				    b->span_ns) >= FEW_SAMPLE &&
		!above(nr_completed(s), s->span_ns, nr_completed(b),
		       b->span_ns, 1000 / HOPELESS_FRACTION) &&
		!above(s->sectors, s->span_ns, b->sectors, b->span_ns,
		       1000 / HOPELESS_FRACTION);
}

/* Whether there is enough in a sample to judge by. */
static bool enough_completed(const struct isoblk_sample *s)
{
	u64 nr = nr_completed(s);

	return nr >= MIN_SAMPLE ||
		(nr >= FEW_SAMPLE && s->span_ns >= FEW_SAMPLE_NS);
}

static u64 count_bios(const struct isoblk_disk *disk)
{
	u64 bios = 0;
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++)
		bios += READ_ONCE(disk->hq[i]->bios);
	return bios;
}

/* Take what completed since the last sample; false: too little as yet. */
static bool take_sample(struct isoblk_disk *disk, struct isoblk_sample *s,
			u64 now)
{
	struct isoblk_depth *d = &disk->depth;
	u64 bios = count_bios(disk);
	struct isoblk_lat sum;
	unsigned int c;

	if (now - d->window_ns > WINDOW_NS) {
		memcpy(d->base_ns[1], d->base_ns[0], sizeof(d->base_ns[1]));
		memset(d->base_ns[0], 0xff, sizeof(d->base_ns[0]));
		d->window_ns = now;
	}
	read_lat(d, &sum);
	for (c = 0; c < ISOBLK_LAT_CLASSES; c++)
		s->nr[c] = sum.nr[c] - d->seen.nr[c];
	s->lat_ns = sum.sum - d->seen.sum;
	s->sectors = sum.sectors - d->seen.sectors;
	s->bios = bios - d->seen_bios;
	s->span_ns = now - d->seen_ns;
	if (!s->span_ns || (!enough_completed(s) && !hopeless(d, s)))
		return false;
	d->seen = sum;
	d->seen_bios = bios;
	d->seen_ns = now;
	return true;
}

/**
 * isoblk_depth_tick() - judge the depth
 * @disk: its lock is held
 * @now: ns
 */
void isoblk_depth_tick(struct isoblk_disk *disk, u64 now)
{
	struct isoblk_depth *d = &disk->depth;
	struct isoblk_sample s = {};
	bool idle;

	lockdep_assert_held(&disk->lock);

	if (d->mode || disk->paper_mode)
		return;
	/* After a time without ticks, thus without load, nothing is known. */
	idle = now - d->tick_ns > IDLE_TICKS * jiffies_to_nsecs(ISOBLK_TICK);
	d->tick_ns = now;
	if (idle) {
		take_sample(disk, &s, now);
		d->seen_ns = now;
		d->probe = ISOBLK_PROBE_NONE;
		judge_tight(disk, &s);
		apply(disk);
		return;
	}
	if (!take_sample(disk, &s, now))
		return;

	if (judge_tight(disk, &s) && d->probe == ISOBLK_PROBE_NONE)
		d->settle = SETTLE_TICKS;
	if (disk->nr_active < 2) {
		d->probe = ISOBLK_PROBE_NONE;
		apply(disk);
	} else if (d->settle && !hopeless(d, &s)) {
		d->settle--;
		if (d->probe == ISOBLK_PROBE_NONE)
			apply(disk);
	} else if (d->probe != ISOBLK_PROBE_NONE) {
		end_probe(disk, &s, now);
	} else {
		judge(disk, &s);
		apply(disk);
		consider_probe(disk, &s, now);
	}
	WRITE_ONCE(d->full, false);
	trace_isoblk_depth(disk, d->limit, busy_servers(d, &s) * 1000 >> 10,
			   div64_u64(s.lat_ns, nr_completed(&s)));
}

/**
 * isoblk_depth_restart() - forget what is known, for what was asked has changed
 * @disk: its lock is held; isoblk_depth_run() is to follow
 */
void isoblk_depth_restart(struct isoblk_disk *disk)
{
	struct isoblk_depth *d = &disk->depth;

	lockdep_assert_held(&disk->lock);

	d->known = 0;
	d->guess = INT_MAX;
	d->too_low = 0;
	d->slower = 0;
	d->top.span_ns = 0;
	d->probe = ISOBLK_PROBE_NONE;
	d->next_ns = 0;
	d->pause_ns = MIN_PAUSE_NS;
	apply(disk);
}

/**
 * isoblk_depth_run() - run who waits, after the limits may have changed
 * @disk: its lock is not held, for the kernel takes queue_lock to run a queue
 */
void isoblk_depth_run(struct isoblk_disk *disk)
{
	struct isoblk_depth *d = &disk->depth;

	if (!READ_ONCE(d->changed))
		return;
	WRITE_ONCE(d->changed, false);
	/* The limits before their bits; pairs with note_starved(). */
	smp_mb();
	run_starved(disk);
}

/**
 * isoblk_depth_init() - at first there is no limit
 * @disk: disk
 */
int isoblk_depth_init(struct isoblk_disk *disk)
{
	struct isoblk_depth *d = &disk->depth;
	unsigned int cpu;

	d->starved = bitmap_zalloc(disk->nr_hqs, GFP_KERNEL);
	if (!d->starved)
		return -ENOMEM;
	d->lat = alloc_percpu(struct isoblk_lat);
	if (!d->lat) {
		bitmap_free(d->starved);
		return -ENOMEM;
	}
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(d->lat, cpu)->min, 0xff,
		       sizeof_field(struct isoblk_lat, min));
	memset(d->base_ns, 0xff, sizeof(d->base_ns));
	d->limit = INT_MAX;
	d->enough = INT_MAX;
	d->guess = INT_MAX;
	d->wake = INT_MAX - 1;
	d->loss_permille = DEFAULT_LOSS_PERMILLE;
	d->up_percent = MIN_UP_PERCENT;
	d->pause_ns = MIN_PAUSE_NS;
	d->seen_ns = ktime_get_ns();
	d->window_ns = d->seen_ns;
	return 0;
}

/**
 * isoblk_depth_exit() - free what isoblk_depth_init() allocated
 * @disk: disk
 */
void isoblk_depth_exit(struct isoblk_disk *disk)
{
	free_percpu(disk->depth.lat);
	bitmap_free(disk->depth.starved);
}
