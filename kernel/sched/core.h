/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core's parts: a disk, its hardware queues, groups, and a group on a
 * hardware queue. core.c opens with the design.
 */
#ifndef ISOBLK_CORE_H
#define ISOBLK_CORE_H

#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/rbtree.h>

#include "isoblk_share.h"
#include "muldiv.h"
#include "price.h"
#include "squeeze.h"
#include "vtime.h"
#include "window.h"

/* What a request is charged at most; it has so many bits in the request. */
#define ISO_WORK_MOST		GENMASK(26, 0)

/**
 * struct iso_lease - a hardware queue's part of a room
 * @spare: what may be taken from it; below 0: more has been than there is
 */
struct iso_lease {
	atomic64_t spare;
} ____cacheline_aligned_in_smp;

/**
 * struct iso_room - so much that a disk may have at once: room.c
 * @pool: what no hardware queue has for itself
 * @size: how much there is; written by one at a time, read without
 * @nr: hardware queues; constant
 * @lease: by hardware queue; constant
 */
struct iso_room {
	atomic64_t pool;
	u64 size;
	unsigned int nr;
	struct iso_lease *lease;
};

/* Least times in the device are kept for so many sizes: the highest bit of their sectors. */
#define ISO_SIZES		24

/* So many rates are remembered, one an epoch. */
#define ISO_RATES		32

/* Classes of requests that a policy may tell apart: read, write, discard, other. */
#define ISO_CLASSES		4

/* One request, in iso_device.busy_with. */
#define ISO_BUSY_ONE		16

/* So many requests a hardware queue has in the device, whatever the window. */
#define ISO_LEAST_IN_DEVICE	2

/* Time of the device for which metadata may be ahead of its share: iso_clock.debt_max. */
#define ISO_DEBT_NS		(20 * NSEC_PER_MSEC)

struct iso_disk;
struct iso_gq;

/* What a request is charged: what it moves, that it is one, the device's time for it. */
enum iso_account { ISO_BYTES, ISO_IOS, ISO_TIME };

/**
 * struct iso_round - what a policy sizes the next round by: paper.c
 */
struct iso_round {
	u64 used;		/* units charged since the last */
	u64 elapsed_ns;		/* time since then */
	s64 left;		/* units that groups have left, in all */
};

/**
 * struct iso_policy - what an elevator does its own way; all may be NULL or 0
 */
struct iso_policy {
	/* Name in io.stat of what a group may still send. */
	const char *left_name;
	/* Number of classes that requests are of, at most ISO_CLASSES; each has tokens. */
	unsigned int nr_classes;
	/* Class of an operation. */
	unsigned int (*class)(blk_opf_t opf);
	/* Requests of a class in a row, while others wait. */
	const unsigned int *batch;
	/* Units that groups may be ahead; else hold_us of time. Disk lock. */
	u64 (*round)(struct iso_disk *d);
	/* Units that the groups get together, in paper mode; disk lock. */
	u64 (*refill)(struct iso_disk *d, const struct iso_round *r);
	/* Is called every ISOBLK_TICK while groups take part; disk lock. */
	void (*tick)(struct iso_disk *d, u64 now);
	/* What is charged to begin with. */
	enum iso_account account;
};

/**
 * struct iso_done - what has completed on a CPU so far; that CPU's
 */
struct iso_done {
	u64 nr;			/* requests */
	u64 work;		/* of all, units */
	u64 area;		/* work x time in the device */
	u64 base_area;		/* the same, had each taken the least time */
	struct price_sums sums;	/* of all by kind, where time is charged */
};

/**
 * struct iso_choice - who is next
 */
struct iso_choice {
	struct iso_gq *gq;	/* may send, and has room for it; NULL: nobody may */
	unsigned int class;	/* of the request that it may send */
	u64 work;		/* of that request */
	u64 tag;		/* time of @gq, or of whoever would be next */
	u64 first;		/* the time that is furthest behind */
	u64 lacks;		/* work for which there is no room, if some may gather; or 0 */
};

/**
 * struct iso_hq - one hardware queue
 *
 * In three parts that lie apart: what is under @lock; what is written by whoever inserts
 * or comes while another has @lock; and what each completion writes.
 */
struct iso_hq {
	/* Guards what waits here; outside the disk lock, never in interrupts, not waited for. */
	spinlock_t lock;
	struct iso_disk *disk;		/* constant */
	struct blk_mq_hw_ctx *hctx;	/* constant once the hardware queues are set up */
	unsigned int index;		/* constant */
	struct rb_root_cached tree;	/* struct iso_gq, furthest behind first; @lock */
	struct list_head fresh;		/* struct iso_gq that go before those; @lock */
	struct list_head urgent;	/* requests that go before all; @lock */
	bool stale;			/* places in @tree are to be renewed; any context */
	struct iso_gq *turn;		/* whose turn it is; @lock */
	u64 turns;			/* turns given so far, in paper mode; @lock */
	unsigned int class;		/* of requests, that is sent now; @lock */
	unsigned int batch;		/* requests of @class in a row; @lock */
	struct iso_choice next;		/* who is next, as was last found; @lock */
	unsigned int nr;		/* requests that wait; @lock, a hint without */
	bool blocked;			/* nothing may go; set under @lock, cleared without */
	u64 wait_tag;			/* time of who is next, if @blocked; a hint without @lock */
	u64 lacks;			/* as @next.lacks, if @blocked; @lock, read without */

	/* Requests that whoever has @lock next takes in; any context. */
	struct llist_head arrived ____cacheline_aligned_in_smp;
	bool at_work;			/* the owner of @lock looks at @arrived; a hint without */
	bool missed;			/* somebody found @lock taken; any context */
	struct hrtimer probe;		/* goes off late if processors do: late.c */
	u64 probe_ns;			/* when it is set again; @lock */

	/* When something was inserted or completed here last; any context. */
	u64 now ____cacheline_aligned_in_smp;
	atomic_t in_device;		/* requests that no longer wait; any context */
};

/**
 * struct iso_tunables - what the user may write
 */
struct iso_tunables {
	s64 window;		/* 0 automatic, -1 off, else work; disk lock */
	unsigned int hold_us;	/* us of the device that a group may be ahead; disk lock */
	unsigned int idle_us;	/* us that somebody is waited for; any context */
	unsigned int idle_loss;	/* permille of time that may be lost by that; disk lock */
	unsigned int merge_kb;	/* KiB that a request grows to beside others; any context */
	unsigned int write_cost; /* percent of its size, where bytes count; any context */
};

/**
 * struct iso_members - groups that take part: members.c
 */
struct iso_members {
	struct list_head list;	/* struct iso_group; disk lock */
	unsigned int nr;	/* length of @list; disk lock, a hint without */
	u64 shares_gen;		/* weights that all shares are of, or newer ones; disk lock */
	u64 looked_ns;		/* when idle ones were last looked for; disk lock */
	struct timer_list tick;	/* looks for them, and whatever else comes now and then */
};

/**
 * struct iso_epoch - the span of time in which the device is being looked at: epoch.c
 */
struct iso_epoch {
	u64 look_ns;		/* when it may be long enough; disk lock, a hint without */
	u64 peak;		/* most work in the device so far; any context */
	u64 largest;		/* most work of a request so far; any context */
	bool limited;		/* the window was full; any context */
	atomic_t ending;	/* a CPU sees to its end; any context */
	u64 begun_ns;		/* when it began; disk lock */
	struct iso_done seen;	/* sums when it began; disk lock */
};

/**
 * struct iso_device - what has been learned of the device: measure.c, epoch.c
 */
struct iso_device {
	u64 rate;		/* units a second, the best of late; disk lock, read without */
	u64 mean_work;		/* of a request; disk lock, read without */
	u64 busy_with;		/* requests that keep it busy, of ISO_BUSY_ONE; likewise */
	u64 largest;		/* work of a request, of late; likewise */
	u64 beside;		/* room beside the window for the sake of that; disk lock */
	bool no_queue;		/* it answers at once; disk lock */
	unsigned int rate_at;	/* where the next of @rates is put; disk lock */
	u64 rates[ISO_RATES];	/* units a second in the last epochs; disk lock */
	u64 base_ns;		/* when the present span of @base began; disk lock */
	/*
	 * Least time in it by span (this, the last), direction and size, ns; written without
	 * a lock, where a lost update is the next one's.
	 */
	u32 base[2][2][ISO_SIZES];
};

/**
 * struct iso_lateness - how late processors are: late.c; any context
 */
struct iso_lateness {
	u64 ns;			/* from a request's beginning to the next one's */
	u64 mean;		/* of the last probes, ns */
	u64 least;		/* of all probes, or what is always to be expected, ns */
	unsigned int probes;	/* number of them, up to as many as the mean is of */
};

/**
 * struct iso_holding - for whom others are held back: hold.c
 */
struct iso_holding {
	struct list_head list;	/* struct iso_group for whom they are; disk lock */
	u64 scan_ns;		/* when groups were looked at last; disk lock */
	unsigned int nr_scans;	/* how often they were; disk lock */
	bool trial;		/* nobody is held back for a moment; disk lock, read without */
	bool changed;		/* @list has, since this scan began; disk lock */
	unsigned int left;	/* scans until the next trial; disk lock */
	unsigned int length;	/* scans from one trial to the next; disk lock */
	u64 trial_ns;		/* when the trial began; disk lock */
	struct iso_done trial_seen; /* sums at that time; disk lock */
	u64 own_queue_ns;	/* time queued in the device in the last trial; disk lock */
};

/**
 * struct iso_pricing - what requests are charged, and how that is found: charge.c
 */
struct iso_pricing {
	enum iso_account account; /* what is charged; disk lock, read without */
	unsigned int unit;	/* units of work of a sector, if all are alike; likewise */
	bool wanted;		/* in this epoch somebody had to wait; any context */
	bool full;		/* and it was for room; disk lock */
	bool starved;		/* the kind that is alone has nothing to send; any context */
	bool debts;		/* some groups have a debt; disk lock */
	u64 alone_since;	/* when the kind that is alone began, ns; disk lock, read without */
	atomic64_t passed;	/* work of other kinds that was sent since; any context */
	struct prices prices;	/* the loop that finds them; disk lock */
	struct iso_done seen;	/* sums when its epoch began; disk lock */
	u64 begun_ns;		/* when that was; disk lock */
	u64 alone_ns[PRICE_KINDS]; /* time that each kind was alone for; disk lock */
	u64 level;		/* time of all groups when a kind last began; disk lock */
};

/**
 * struct iso_rounds - rounds of budgets, in paper mode: paper.c
 */
struct iso_rounds {
	atomic64_t charged;	/* units since the last refill; any context */
	u64 refill_ns;		/* the longest time to the next; any context */
	u64 refilled_ns;	/* when the last was; disk lock */
	u64 grant;		/* units that it gave to a share of the whole disk; disk lock */
};

/**
 * struct iso_latency - groups with latency targets, and how they fare: latency.c
 */
struct iso_latency {
	struct list_head list;	/* struct iso_group that have one; disk lock */
	bool counting;		/* requests are counted for a verdict; disk lock */
	u64 settle_ns;		/* before this they are not, after a change; disk lock */
	u64 least_ns;		/* since when others do next to nothing, or 0; disk lock */
	u64 retry_ns;		/* before this others are left alone; disk lock */
	atomic64_t pace_at;	/* when the others' next request may go, ns; any context */
	struct hrtimer pace_timer; /* tells whoever waits for that */
};

/**
 * struct iso_tariff - what a request is charged now; disk lock, read without
 */
struct iso_tariff {
	struct price of[PRICE_KINDS]; /* by operation */
	/* Kind that has the device for itself, or PRICE_KINDS; who finds none resets it. */
	enum price_kind alone;
};

/**
 * struct iso_clock - the disk's virtual time, and distances in it; any context
 */
struct iso_clock {
	u64 vnow;		/* of whoever was furthest behind when one was served; or,
				 * in paper mode, where budgets end
				 */
	u64 floor;		/* @vnow, or in a trial what that was before */
	u64 behind;		/* of those for whom others are held back, or far ahead */
	u64 slack;		/* distance that others may be ahead of @behind */
	u64 stream_slack;	/* the same of a group that streams */
	u64 ease;		/* two requests */
	struct vclock half;	/* half of all that was done */
	u64 credit;		/* distance behind of one with requests in the device */
	u64 debt_max;		/* beyond this a group's metadata is ordinary */
	u64 target_slack;	/* distance ahead at which one with a target goes first */
};

/**
 * struct iso_size - what @room is made of: size.c; disk lock, read without
 */
struct iso_size {
	u64 free;		/* room that there would be without targets */
	u64 gather;		/* of it, free before a completion has it used */
};

/**
 * struct iso_wait - waiting for somebody who has no request: horizon.c; any context
 */
struct iso_wait {
	atomic64_t spare_ns;	/* time that may be lost by it */
	u64 since;		/* since when somebody is waited for, 0: nobody is */
};

/**
 * struct iso_disk - a disk: elevator_data
 *
 * What each request reads and is seldom written begins with @tariff, on a cache line of its
 * own, and is followed by what a request may write: @room last, on another. Before them is
 * what is constant, and what is the disk lock's.
 */
struct iso_disk {
	struct isoblk_disk disk;	/* weights and the gate; its lock is "the disk lock" */
	const struct iso_policy *policy; /* what the elevator does its own way; constant */
	struct iso_hq *hq;		/* by index; constant */
	struct iso_done __percpu *done;	/* what has completed */
	unsigned int tags;		/* that the device takes from each @hq; constant */
	bool rotational;		/* it turns; constant */

	struct iso_members members;
	struct iso_tunables tunables;
	struct iso_epoch epoch;
	struct iso_device device;
	struct iso_lateness late;
	struct window window;		/* the loop that finds it; disk lock */
	struct iso_holding hold;
	struct iso_pricing pricing;
	struct iso_rounds rounds;
	struct list_head swappers;	/* in debt for what was swapped out: swap.c; disk lock */
	struct iso_latency latency;
	struct hrtimer timer;		/* ends a wait; runs whoever waits, for who may not */

	struct iso_tariff tariff ____cacheline_aligned_in_smp;
	unsigned int nr_classes;	/* of @policy, where each request finds it; constant */
	bool paper;			/* budgets as in the papers; disk lock, read without */
	struct iso_clock clock;
	struct squeeze squeeze;		/* what targets leave others; disk lock, read without */
	struct iso_size size;
	struct iso_wait wait;
	atomic_t nr_first;		/* in the device before all others, if it turns */
	atomic_t nr_blocked;		/* hardware queues that are; any context */

	/* The window: work that the device may have at once; disk lock to resize. */
	struct iso_room room ____cacheline_aligned_in_smp;
	struct iso_room tokens[ISO_CLASSES]; /* requests of a class, if told apart; likewise */
};

/* Requests of a group in one word: those that wait below, in the device above. */
#define ISO_WAITS		1ULL
#define ISO_IN_DEVICE		BIT_ULL(32)

struct iso_group;

/**
 * struct iso_gq - one group on one hardware queue: isoblk_gq_own()
 */
struct iso_gq {
	struct rb_node node;		/* in hq->tree while @nr is not 0; hq->lock */
	struct list_head fresh_node;	/* in hq->fresh if it goes before others; hq->lock */
	struct iso_group *group;	/* constant */
	struct isoblk_gq *common;	/* what the gate and the weights know of it; constant */
	struct iso_hq *hq;		/* constant */
	u64 key;			/* time by which it is in the tree, maybe stale; hq->lock */
	sector_t end;			/* of the request that was taken last; hq->lock */
	struct list_head fifo[ISO_CLASSES]; /* requests that wait, by class; hq->lock */
	unsigned int nr;		/* length of all of @fifo; hq->lock, read without */
	unsigned int merged_none;	/* bios in a row that were not merged; a hint */
	u64 wait_ns;			/* from insertion to the device; hq->lock, read without */
	u64 wait_area;			/* work x that time; hq->lock, read without */
	atomic64_t area;		/* work x time in the device, completed; any context */
	atomic64_t base_area;		/* the same, had each taken the least; any context */
};

/**
 * struct iso_sums - what a group's requests took
 */
struct iso_sums {
	u64 area;			/* work x time in the device */
	u64 wait;			/* work x time before */
	u64 base;			/* work x the least time in the device */
	u64 all;			/* @area of the whole disk */
};

/**
 * struct iso_held - whether others are held back for a group: hold.c; disk lock
 */
struct iso_held {
	struct list_head node;		/* in disk->hold.list while @held_for or @gated */
	struct iso_sums seen;		/* sums at the last scan */
	struct iso_sums recent;		/* of the last scans, each 3/4 of the next */
	u32 gain;			/* of holding others back, of ISO_GAIN_ONE */
	u64 trial_lifted;		/* iso_group.lifted when a trial began, or it joined */
};

/**
 * struct iso_debts - what a group owes for being served out of order: charge.c; disk lock
 *
 * Two that do not mix: @owes is within one kind of requests, and paid at once when its price
 * is found; @debt is between kinds, and paid bit by bit, maybe when the next time has begun.
 */
struct iso_debts {
	u64 owes;			/* time that it was served before others of its kind */
	enum price_kind owes_for;	/* that kind */
	unsigned long served_alone;	/* kinds with which it was served while they were alone */
	u64 sent_before;		/* requests of that kind when it began to be alone */
	u64 debt;			/* time that its kinds were alone for beyond its share */
	u64 paid_at;			/* iso_served() when it last paid of @debt */
};

/**
 * struct iso_target - what came of a group's latency target: latency.c
 */
struct iso_target {
	struct list_head node;		/* in disk->latency.list while it has one; disk lock */
	atomic64_t nr;			/* requests that have ended since; any context */
	atomic64_t missed;		/* those of them that were late; any context */
	u64 seen_nr;			/* @nr when the next verdict's count began; disk lock */
	u64 seen_missed;		/* @missed at that time; disk lock */
	u64 vtime;			/* of the group, when last looked at; disk lock */
	u64 judged_ns;			/* end of the last request that was judged; disk lock */
	bool met;			/* the last verdict; disk lock, read without */
	bool unreachable;		/* missed also when others do nothing; likewise */
};

/**
 * struct iso_group - a cgroup on a disk: isoblk_group_own()
 *
 * What each request reads or writes comes first, together.
 */
struct iso_group {
	struct isoblk_group *group;	/* constant */
	bool joined;			/* it takes part; disk lock, a hint without */
	bool held_for;			/* others are held back for it; disk lock, read without */
	bool gated;			/* bios of it wait for tags; disk lock, read without */
	bool swaps;			/* it is in debt for swapping; disk lock, a hint without */
	u32 share;			/* of ISOBLK_SHARE_ONE; disk lock, read without */
	u64 share_gen;			/* weights that @share is of; disk lock, a hint without */
	atomic64_t vtime;		/* what it was charged over its share; any context */
	atomic64_t lifted;		/* part of that for what it did not send; any context */
	u64 light_from;			/* iso_served() at 0 of disk->clock.half; any context */
	atomic64_t has;			/* requests of it: ISO_WAITS, ISO_IN_DEVICE; any context */
	u64 target_ns;			/* latency target, 0: none; disk lock, read without */
	u64 ended_ns;			/* when one last left the device; any context */
	u64 think_ns;			/* time from there to the next, usually; any context */

	struct list_head node;		/* in disk->members.list while @joined; disk lock */
	struct list_head swapper;	/* in disk->swappers while @swaps; disk lock */
	struct iso_held hold;
	struct iso_debts debts;
	struct iso_target target;
	u64 refill_vtime;		/* @vtime at the last refill, in paper mode; disk lock */
};

static inline struct iso_gq *iso_gq(const struct iso_group *g, unsigned int i)
{
	return isoblk_gq_own(g->group->gq[i]);
}

static inline enum isoblk_op isoblk_rq_op(const struct request *rq)
{
	if (op_is_discard(rq->cmd_flags))
		return ISOBLK_DISCARD;
	return op_is_write(rq->cmd_flags) ? ISOBLK_WRITE : ISOBLK_READ;
}

/**
 * iso_price_of() - what so much is charged
 * @d: disk
 * @op: operation
 * @sectors: of it; 0: it moves nothing
 */
static inline u64 iso_price_of(const struct iso_disk *d, enum isoblk_op op,
			       u64 sectors)
{
	const struct price *p = &d->tariff.of[op];
	u64 work = READ_ONCE(p->request) +
		(sectors ?: ISOBLK_NO_DATA_COST) * READ_ONCE(p->sector);

	return max(work >> PRICE_SHIFT, 1ULL);
}

/**
 * iso_work_of() - what a request is charged if it is sent now
 * @d: disk
 * @rq: request
 */
static inline u64 iso_work_of(const struct iso_disk *d,
			      const struct request *rq)
{
	return min_t(u64, iso_price_of(d, isoblk_rq_op(rq), blk_rq_sectors(rq)),
		     ISO_WORK_MOST);
}

static inline u32 iso_in_device(u64 has)
{
	return has >> 32;
}

static inline u32 iso_waits(u64 has)
{
	return has;
}

/* @g was served further ahead of its time than @slack. */
static inline bool iso_is_ahead(const struct iso_disk *d,
				const struct iso_group *g, u64 slack)
{
	return vtime_before(READ_ONCE(d->clock.vnow) + slack,
			    atomic64_read(&g->vtime));
}

/* @g was served so far ahead of its time that its metadata is ordinary. */
static inline bool iso_indebted(const struct iso_disk *d,
				const struct iso_group *g)
{
	return iso_is_ahead(d, g, READ_ONCE(d->clock.debt_max));
}

static inline bool iso_has_target(const struct iso_group *g)
{
	return READ_ONCE(g->target_ns);
}

/* Requests of one kind have the device for themselves: price.c. */
static inline bool iso_is_alone(const struct iso_disk *d)
{
	return READ_ONCE(d->tariff.alone) < PRICE_KINDS;
}

/* The disk's time is @vnow; in a trial until that ends. */
static inline void iso_set_vnow(struct iso_disk *d, u64 vnow)
{
	WRITE_ONCE(d->clock.vnow, vnow);
	if (!READ_ONCE(d->hold.trial))
		WRITE_ONCE(d->clock.floor, vnow);
}

/* A group whose time is @tag is further ahead of the horizon than @slack. */
static inline bool iso_is_beyond(const struct iso_disk *d, u64 tag, u64 slack)
{
	return vtime_before(READ_ONCE(d->clock.behind) + slack, tag);
}

/* The group's time is @least or later, so that it has not saved up. */
static inline void iso_lift(struct iso_group *g, u64 least)
{
	u64 at = atomic64_read(&g->vtime);

	while (vtime_before(at, least))
		if (atomic64_try_cmpxchg(&g->vtime, &at, least)) {
			atomic64_add(least - at, &g->lifted);
			break;
		}
}

/* The group's time is @most or earlier. Return by how much it was set back. */
static inline u64 iso_cut(struct iso_group *g, u64 most)
{
	u64 at = atomic64_read(&g->vtime);

	while (vtime_before(most, at))
		if (atomic64_try_cmpxchg(&g->vtime, &at, most))
			return at - most;
	return 0;
}

/* The same, but what it was served still counts as served. */
static inline void iso_set_back(struct iso_group *g, u64 most)
{
	u64 by = iso_cut(g, most);

	if (by)
		atomic64_sub(by, &g->lifted);
}

/* What of a group's time it was served, or paid: only differences say something. */
static inline u64 iso_served(const struct iso_group *g)
{
	return atomic64_read(&g->vtime) - atomic64_read(&g->lifted);
}

/* Others than those with a target may send only so many units a second. */
static inline bool iso_is_paced(const struct iso_disk *d)
{
	return READ_ONCE(d->squeeze.pace);
}

/* What a group of @share may still send until it is @slack ahead of @from, units. */
static inline s64 iso_left(u64 from, u64 slack, u64 vtime, u32 share)
{
	s64 lead = from + slack - vtime;
	u64 work = mul_div(abs(lead), share, ISOBLK_SHARE_ONE);

	work >>= VTIME_SHIFT;
	return lead < 0 ? -(s64)work : work;
}

/* order.c: who is next */

void iso_tree_add(struct iso_hq *hq, struct iso_gq *gq);
bool iso_has_enough(const struct iso_disk *d, const struct iso_group *g);
unsigned int iso_class_in_turn(const struct iso_hq *hq,
			       const struct iso_gq *gq);
struct request *iso_take(struct iso_hq *hq, struct iso_gq *gq,
			 unsigned int class);
bool iso_choose(struct iso_disk *d, struct iso_hq *hq);
bool iso_is_full(struct iso_disk *d, struct iso_hq *hq);
void iso_update_share(struct iso_disk *d, struct iso_group *g);
bool iso_update_shares(struct iso_disk *d);
void iso_reorder(struct iso_disk *d);

/* The class of which @gq, of which something waits, would send next; hq->lock. */
static inline unsigned int iso_next_class(const struct iso_hq *hq,
					  const struct iso_gq *gq)
{
	return hq->disk->nr_classes ? iso_class_in_turn(hq, gq) : 0;
}

/* And that request, tokens or not. */
static inline struct request *iso_first_of(const struct iso_gq *gq)
{
	const struct list_head *fifo = &gq->fifo[iso_next_class(gq->hq, gq)];

	return list_first_entry(fifo, struct request, queuelist);
}

/* first.c: who goes before all others */
bool iso_goes_first(const struct iso_disk *d, struct iso_group *g,
		    const struct request *rq, u64 now);
bool iso_more_go_first(const struct iso_disk *d, const struct iso_gq *gq);
bool iso_may_pass(const struct iso_disk *d, const struct iso_gq *gq);

/* core.c: requests, from insertion to the end, and the disk's life */
void iso_run_blocked(struct iso_disk *d);
void iso_note_time(struct iso_disk *d, u64 now);
int isoblk_core_init(struct iso_disk *d, struct request_queue *q,
		     struct elevator_queue *eq,
		     const struct iso_policy *policy);
void isoblk_core_exit(struct iso_disk *d, struct elevator_queue *eq);
int isoblk_core_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void isoblk_prepare_request(struct request *rq);
bool isoblk_allow_merge(struct request_queue *q, struct request *rq,
			struct bio *bio);
bool isoblk_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs);
void isoblk_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			    blk_insert_t flags);
struct request *isoblk_dispatch_request(struct blk_mq_hw_ctx *hctx);
bool isoblk_has_work(struct blk_mq_hw_ctx *hctx);
void isoblk_completed_request(struct request *rq, u64 now);
void isoblk_requeue_request(struct request *rq);
void isoblk_finish_request(struct request *rq);

/* core-show.c: what every elevator on the core shows, and takes */
ssize_t isoblk_window_show(struct elevator_queue *e, char *page);
ssize_t isoblk_window_store(struct elevator_queue *e, const char *page,
			    size_t count);
ssize_t isoblk_account_show(struct elevator_queue *e, char *page);
ssize_t isoblk_account_store(struct elevator_queue *e, const char *page,
			     size_t count);
ssize_t isoblk_paper_mode_show(struct elevator_queue *e, char *page);
ssize_t isoblk_paper_mode_store(struct elevator_queue *e, const char *page,
				size_t count);
int isoblk_debugfs_window(void *data, struct seq_file *m);
int isoblk_debugfs_groups(void *data, struct seq_file *m);
int isoblk_debugfs_prices(void *data, struct seq_file *m);

#define ISOBLK_CORE_ATTRS						\
	__ATTR(window, 0644, isoblk_window_show, isoblk_window_store),	\
	__ATTR(gate, 0644, isoblk_gate_show, isoblk_gate_store)

#define ISOBLK_CORE_DEBUGFS						\
	{ "window", 0400, isoblk_debugfs_window },			\
	{ "groups", 0400, isoblk_debugfs_groups }

/* A number within limits, in a field of an elevator's own struct. */
#define ISOBLK_UINT(type, name, field, least, most)			\
static ssize_t name##_show(struct elevator_queue *e, char *page)	\
{									\
	struct type *own = e->elevator_data;				\
									\
	return sysfs_emit(page, "%u\n", READ_ONCE(own->field));		\
}									\
									\
static ssize_t name##_store(struct elevator_queue *e, const char *page,	\
			    size_t count)				\
{									\
	struct type *own = e->elevator_data;				\
									\
	return isoblk_store_uint(page, count, &own->field, least, most); \
}

/* hold.c: for whom others are held back, and how far */
void iso_scan(struct iso_disk *d, u64 now);
void iso_find_idle(struct iso_disk *d, u64 now);
void iso_hold_nobody(struct iso_disk *d);
void iso_leave(struct iso_disk *d, struct iso_group *g);
void iso_take_out(struct iso_disk *d, struct iso_group *g);
bool iso_beyond_horizon(struct iso_disk *d, struct iso_hq *hq, u64 tag,
			u64 slack, struct iso_gq **late);
void iso_update_horizon(struct iso_disk *d, u64 now);
u64 iso_patience(const struct iso_disk *d, const struct iso_group *g);
void iso_end_wait(struct iso_disk *d, u64 now);

/* swap.c: what is swapped out */
void iso_swapped_out(struct iso_disk *d, struct iso_hq *hq, struct iso_group *g,
		     u64 from);
void iso_swap_end(struct iso_disk *d, struct iso_group *g);
void iso_look_at_swappers(struct iso_disk *d);

/* room.c: an amount, divided among hardware queues */
int iso_room_init(struct iso_room *r, unsigned int nr, int node);
void iso_room_exit(struct iso_room *r);
bool iso_room_get(struct iso_room *r, unsigned int i, u64 much);
bool iso_room_has(const struct iso_room *r, unsigned int i, u64 much);
void iso_room_force(struct iso_room *r, unsigned int i, u64 much);
void iso_room_put(struct iso_room *r, unsigned int i, u64 much, bool wanted);
s64 iso_room_used(const struct iso_room *r);
void iso_room_resize(struct iso_room *r, u64 size);

/* measure.c: what the device does */

u64 iso_work_in(const struct iso_disk *d, u64 ns);
void iso_first_request(struct iso_disk *d, u64 work);
void iso_account(struct iso_disk *d, struct iso_gq *gq,
		 const struct request *rq, unsigned int sectors, u64 work,
		 u64 now);
void iso_measure(struct iso_disk *d, u64 now);
void iso_set_window(struct iso_disk *d);
void iso_measure_restart(struct iso_disk *d);
u64 iso_done_work(const struct iso_disk *d);

/* charge.c: what a request is charged */
void iso_forget_debts(struct iso_group *g);
void iso_set_account(struct iso_disk *d, enum iso_account account);
void isoblk_change_account(struct iso_disk *d, enum iso_account account);
void iso_update_prices(struct iso_disk *d, const struct iso_done *sum,
		       u64 now);

/* late.c: how late processors are */
void iso_probe(struct iso_hq *hq, u64 now);
void iso_probe_init(struct iso_disk *d, struct iso_hq *hq);

/* latency.c: latency targets, and what others are left with for their sake */
void iso_latency_init(struct iso_disk *d);
void iso_latency_exit(struct iso_disk *d);
void iso_latency_note(struct iso_disk *d, struct iso_group *g,
		      const struct request *rq, u64 now);
void iso_latency_look(struct iso_disk *d, const struct window_epoch *e,
		      u64 span, u64 now);
void iso_latency_stat(struct iso_group *g, struct seq_file *s);
void iso_set_target(struct isoblk_group *group, u32 us);
u32 iso_target_us(struct isoblk_group *group);
bool iso_pace_allows(struct iso_disk *d, u64 now);
void iso_pace_charge(struct iso_disk *d, u64 work, u64 now);

/* paper.c: budgets that come in rounds */
bool iso_refill(struct iso_disk *d, u64 now, bool tick);
void iso_paper_join(struct iso_disk *d, struct iso_group *g);

#endif /* ISOBLK_CORE_H */
