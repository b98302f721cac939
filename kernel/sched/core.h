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

/* Sizes of requests that are told apart, by the highest bit of their sectors. */
#define ISO_SIZES		24

/* Requests of a group in one word: those that wait below, in the device above. */
#define ISO_WAITS		1ULL
#define ISO_IN_DEVICE		BIT_ULL(32)

/* One request, in @busy_with. */
#define ISO_BUSY_ONE		16

/* What a request is charged at most; it has so many bits in the request. */
#define ISO_WORK_MOST		GENMASK(26, 0)

/* So many requests a hardware queue has in the device, whatever the window. */
#define ISO_LEAST_IN_DEVICE	2

/* Classes of requests that a policy may tell apart: read, write, discard, other. */
#define ISO_CLASSES		4

/* Time of the device for which metadata may be ahead of its share: @debt_max. */
#define ISO_DEBT_NS		(20 * NSEC_PER_MSEC)

struct iso_disk;
struct iso_group;
struct iso_hq;

/* What a request is charged: what it moves, that it is one, the device's time for it. */
enum iso_account { ISO_BYTES, ISO_IOS, ISO_TIME };

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

/**
 * struct iso_round - what a policy sizes the next round by: paper.c
 * @used: units charged since the last
 * @elapsed_ns: time since then
 * @left: units that groups have left, in all
 */
struct iso_round {
	u64 used;
	u64 elapsed_ns;
	s64 left;
};

/**
 * struct iso_policy - what an elevator does its own way; all may be NULL or 0
 * @left_name: of what a group may still send, in io.stat
 * @nr_classes: that requests are of, at most ISO_CLASSES; each has tokens
 * @class: of an operation
 * @batch: requests of a class in a row, while others wait
 * @round: how far ahead groups may be, units; else @hold_us of time. Disk lock
 * @refill: units that the groups get together, in paper mode; disk lock
 * @tick: every ISOBLK_TICK while groups take part; disk lock
 * @account: what is charged to begin with
 */
struct iso_policy {
	const char *left_name;
	unsigned int nr_classes;
	unsigned int (*class)(blk_opf_t opf);
	const unsigned int *batch;
	u64 (*round)(struct iso_disk *d);
	u64 (*refill)(struct iso_disk *d, const struct iso_round *r);
	void (*tick)(struct iso_disk *d, u64 now);
	enum iso_account account;
};

/**
 * struct iso_gq - one group on one hardware queue: isoblk_gq_own()
 * @node: in hq->tree while @nr is not 0; hq->lock
 * @fresh_node: in hq->fresh if it is to go before the others; hq->lock
 * @group: constant
 * @common: what the gate and the weights know of it; constant
 * @hq: constant
 * @key: group's time by which it is in the tree, may be another by now; hq->lock
 * @end: where the request ended that was taken last, a sector; hq->lock
 * @fifo: requests that wait, by class; hq->lock
 * @nr: how many; hq->lock, read without
 * @merged_none: bios in a row that were merged with none; a hint
 * @wait_ns: from insertion to the device, in all; hq->lock, read without
 * @wait_area: work x time from insertion to the device; hq->lock, read without
 * @area: of what has completed, work x time in the device; any context
 * @base_area: the same, had each taken the least time; any context
 */
struct iso_gq {
	struct rb_node node;
	struct list_head fresh_node;
	struct iso_group *group;
	struct isoblk_gq *common;
	struct iso_hq *hq;
	u64 key;
	sector_t end;
	struct list_head fifo[ISO_CLASSES];
	unsigned int nr;
	unsigned int merged_none;
	u64 wait_ns;
	u64 wait_area;
	atomic64_t area;
	atomic64_t base_area;
};

/**
 * struct iso_sums - @area, @wait_area and @base_area of a group, and the disk's area
 */
struct iso_sums {
	u64 area;
	u64 wait;
	u64 base;
	u64 all;
};

/**
 * struct iso_target - what came of a group's latency target: latency.c
 * @node: in disk->targets while there is one; disk lock
 * @nr: requests of it that have ended since there is one; any context
 * @missed: those that were late; any context
 * @seen_nr: @nr when counting began for the next verdict; disk lock
 * @seen_missed: likewise @missed; disk lock
 * @vtime: the group's when its use was last looked at; disk lock
 * @judged_ns: when a request of it ended last that was looked at; disk lock
 * @met: the last verdict; disk lock, read without
 * @unreachable: missed also when others do next to nothing; disk lock, read without
 */
struct iso_target {
	struct list_head node;
	atomic64_t nr;
	atomic64_t missed;
	u64 seen_nr;
	u64 seen_missed;
	u64 vtime;
	u64 judged_ns;
	bool met;
	bool unreachable;
};

/**
 * struct iso_group - a cgroup on a disk: isoblk_group_own()
 * @group: constant
 * @node: in disk->groups while @joined; disk lock
 * @holder: in disk->holders while @held_for or @gated; disk lock
 * @swapper: in disk->swappers while @swaps; disk lock
 * @joined: takes part; disk lock, a hint without
 * @held_for: others are held back for it; disk lock, read without
 * @gated: bios of it wait for tags; disk lock, read without
 * @swaps: it is in debt for what was swapped out; disk lock, a hint without
 * @share: of ISOBLK_SHARE_ONE; disk lock, read without
 * @share_gen: the weights that @share is of; disk lock, a hint without
 * @vtime: what it was charged over its share; any context
 * @lifted: how far @vtime was moved on because it had not sent enough; any context
 * @light_from: what is taken from what it was served, to compare it with the disk's @clock:
 *	so it saves nothing up; any context
 * @trial_lifted: @lifted when a trial began, or it joined; disk lock
 * @has: its requests, see ISO_WAITS; any context
 * @target_ns: by when a request is to have ended, 0: no target; disk lock, read
 *	without
 * @ended_ns: when the last of them left the device; any context
 * @think_ns: how long it usually has none before the next comes; any context
 * @seen: sums at the last scan; disk lock
 * @recent: of the last scans, each weighing three quarters of the next; disk lock
 * @gain: of holding others back for it, of ISO_GAIN_ONE; disk lock
 * @refill_vtime: @vtime at the last refill; disk lock
 * @owes: time by which it was served before others while its kind of requests had the
 *	device, until prices are found; disk lock
 * @owes_for: that kind; disk lock
 * @served_alone: kinds of requests with which it was served while they had the device,
 *	until prices are found; disk lock
 * @sent_before: how many of that kind it had sent when that began; disk lock
 * @debt: time by which these had it for longer than others', still to be paid; disk lock
 * @paid_at: iso_served() when it last paid of that; disk lock
 * @target: what came of @target_ns; see there
 */
struct iso_group {
	struct isoblk_group *group;
	struct list_head node;
	struct list_head holder;
	struct list_head swapper;
	bool joined;
	bool held_for;
	bool gated;
	bool swaps;
	u32 share;
	u64 share_gen;
	atomic64_t vtime;
	atomic64_t lifted;
	u64 trial_lifted;
	u64 light_from;
	atomic64_t has;
	u64 target_ns;
	u64 ended_ns;
	u64 think_ns;
	struct iso_sums seen;
	struct iso_sums recent;
	u32 gain;
	u64 refill_vtime;
	u64 owes;
	enum price_kind owes_for;
	unsigned long served_alone;
	u64 sent_before;
	u64 debt;
	u64 paid_at;
	struct iso_target target;
};

static inline struct iso_gq *iso_gq(const struct iso_group *g, unsigned int i)
{
	return isoblk_gq_own(g->group->gq[i]);
}

/**
 * struct iso_done - what has completed on a CPU so far; that CPU's
 * @nr: requests
 * @work: of all
 * @area: work x time in the device
 * @base_area: the same, had each taken the least time
 * @sums: of all by kind, where time is charged
 */
struct iso_done {
	u64 nr;
	u64 work;
	u64 area;
	u64 base_area;
	struct price_sums sums;
};

/**
 * struct iso_choice - who is next
 * @gq: may send its first request of @class, and has room for it; NULL: nobody may
 * @class: of that request
 * @work: of it
 * @tag: time of @gq, or of whoever would be next
 * @first: the time that is furthest behind
 * @lacks: so much work there is no room for, and some may gather; else 0
 */
struct iso_choice {
	struct iso_gq *gq;
	unsigned int class;
	u64 work;
	u64 tag;
	u64 first;
	u64 lacks;
};

/**
 * struct iso_hq - one hardware queue
 * @lock: guards what waits here; outside the disk lock, never in interrupts. Nobody waits
 *	for it
 * @disk: constant
 * @hctx: constant once the hardware queues are set up
 * @index: constant
 * @tree: of struct iso_gq, who is furthest behind first; @lock
 * @fresh: those that go before; @lock
 * @urgent: requests that go before all; @lock
 * @stale: places in @tree are to be renewed; any context
 * @turn: whose turn it is; @lock
 * @turns: turns given so far, in paper mode; @lock
 * @class: of requests, that is sent now; @lock
 * @batch: how many of it in a row; @lock
 * @next: who is next, as was last found; @lock
 * @nr: requests that wait; @lock, a hint without
 * @blocked: nothing may go for now; set under @lock, cleared in any context
 * @wait_tag: the time of the group that would be next, if @blocked; @lock, a hint
 *	without
 * @lacks: work that waits for room, if @blocked and some may gather, else 0; @lock,
 *	read without
 * @arrived: requests that whoever has @lock next takes in; any context
 * @at_work: somebody has @lock, and looks at @arrived; @lock, a hint without
 * @missed: somebody came for a request while another had @lock; any context
 * @probe: goes off late if processors do: late.c
 * @probe_ns: when it is set again; @lock
 * @now: when something was inserted or completed here last; any context
 * @in_device: requests that no longer wait; any context
 */
struct iso_hq {
	/* Guards what waits here: see above. */
	spinlock_t lock;
	struct iso_disk *disk;
	struct blk_mq_hw_ctx *hctx;
	unsigned int index;
	struct rb_root_cached tree;
	struct list_head fresh;
	struct list_head urgent;
	bool stale;
	struct iso_gq *turn;
	u64 turns;
	unsigned int class;
	unsigned int batch;
	struct iso_choice next;
	unsigned int nr;
	bool blocked;
	u64 wait_tag;
	u64 lacks;
	struct llist_head arrived ____cacheline_aligned_in_smp;
	bool at_work;
	bool missed;
	struct hrtimer probe;
	u64 probe_ns;
	u64 now ____cacheline_aligned_in_smp;
	atomic_t in_device;
};

/**
 * struct iso_disk - a disk: elevator_data
 * @disk: weights and the gate; its lock is "the disk lock" here. First.
 * @policy: what the elevator does its own way; constant
 * @hq: by index; constant
 * @done: what has completed; see there
 * @tags: that the device takes from a hardware queue; constant
 * @rotational: it turns; constant
 * @groups: that take part; disk lock
 * @nr_groups: how many; disk lock, a hint without
 * @shares_gen: the weights that all shares are of, or newer ones; disk lock
 * @holders: for whom others are held back; disk lock
 * @swappers: in debt for what was swapped out; disk lock
 * @window: how much the device has at once; disk lock
 * @window_mode: what the user wrote: 0 automatic, -1 off, else work; disk lock
 * @measuring: a CPU sees to the end of the epoch; any context
 * @epoch_ns: when the epoch began; disk lock
 * @look_ns: when it may be long enough; disk lock, a hint without
 * @scan_ns: when groups were looked at last; disk lock
 * @nr_scans: how often; disk lock
 * @seen: sums at the beginning of the epoch; disk lock
 * @rates: units a second in the last epochs; disk lock
 * @rate_at: where the next is put; disk lock
 * @rate: the highest of @rates, or what @prices say; disk lock, read without
 * @no_queue: it answers at once; disk lock
 * @base: least time in the device by direction and size, of this span of time and
 *	the last, ns; written without a lock, where a lost update is the next one's
 * @base_ns: when this span began; disk lock
 * @late_ns: what processors are late by, from a request's beginning to the next one's; any
 *	context
 * @late_mean: of the last probes; any context
 * @late_least: of all, or what is always to be expected; any context
 * @probes: how many have been, up to as many as the mean is of; any context
 * @trial: nobody is held back, to see what comes of it; disk lock, read without
 * @trial_seen: sums when it began; disk lock
 * @own_queue_ns: for how long requests queued in the device in the last; disk lock
 * @trial_ns: when it began; disk lock
 * @hold_left: scans until the next; disk lock
 * @hold_len: scans from one to the next; disk lock
 * @hold_changed: @holders has, since this scan began; disk lock
 * @peak: the most work that the device had in this epoch; any context
 * @largest_now: the largest request in this epoch, units; any context
 * @largest: of late; disk lock, read without
 * @beside: what the device may have beside the window for its sake; disk lock
 * @limited: the window was full in this epoch; any context
 * @mean_work: of a request; disk lock, read without
 * @busy_with: so many requests at once keep the device busy, smoothed, of
 *	ISO_BUSY_ONE; disk lock, read without
 * @hold_us: how much work, as time of the device, a group may be ahead; disk lock
 * @idle_us: somebody who is expected back is waited for so long; any context
 * @idle_loss: permille of time that may be lost by that; disk lock
 * @merge_kb: beside others a request grows to this; any context
 * @write_cost: percent of its size that a write is charged, where bytes are; any context
 * @account: what requests are charged; disk lock, read without
 * @unit: units of work that a sector is, as far as all are alike; disk lock, read without
 * @prices: what requests cost the device; disk lock
 * @priced: sums when its epoch began; disk lock
 * @priced_ns: when that was; disk lock
 * @wanted: in this epoch somebody had to wait; any context
 * @full: and for room; disk lock
 * @starved: the kind that was to have the device for itself had nothing to send; any
 *	context
 * @debts: some groups have a debt; disk lock
 * @alone_since: when the kind that has the device for itself began to; disk lock, read
 *	without
 * @passed: work of other kinds that has been sent since; any context
 * @alone_ns: for how long each had it, until prices are found; disk lock
 * @level: the time of all groups when a kind last began to have it; disk lock
 * @refill_ns: in paper mode a refill comes at the latest after this; any context
 * @refilled_ns: when the last was; disk lock
 * @grant: what it gave to a share of the whole disk, units; disk lock
 * @charged: since the last; any context
 * @found_ns: when idle groups were last looked for; disk lock
 * @timer: ends such a wait
 * @targets: groups that have a latency target; disk lock
 * @counting: requests are counted for a verdict; disk lock
 * @settle_ns: before this they are not, for there was a change; disk lock
 * @least_ns: since when others do next to nothing, 0: they do more; disk lock
 * @retry_ns: before this others are left alone, for it was in vain; disk lock
 * @pace_at: when the others' next request may go, if they have a pace; any context
 * @pace_timer: tells whoever waits for that
 * @tick: looks for idle groups
 * @price: of reads, writes and discards; disk lock, read without
 * @alone: the kind of requests that has the device for itself, or PRICE_KINDS; disk lock,
 *	read without; reset by whoever finds that there are none
 * @nr_classes: of @policy, where each request finds it; constant
 * @paper: budgets, as the papers have them: paper.c; disk lock, read without
 * @vnow: the time of whoever was furthest behind when somebody was served last; in paper
 *	mode that at which budgets end; any context
 * @floor: @vnow, or in a trial what that was before; any context
 * @behind: time of who is furthest behind of those for whom others are held
 *	back, or far ahead of all; any context
 * @slack: so far others may be ahead of that, @hold_us as virtual time; any context
 * @stream_slack: the same of a group that streams; any context
 * @ease: two requests, as virtual time; any context
 * @clock: half of all that was done; disk lock, read without
 * @credit: how far somebody may be behind who has requests in the device; disk lock, read
 *	without
 * @debt_max: of a group that is further ahead metadata is ordinary; any context
 * @squeeze: what others are left with for the sake of targets; disk lock, its pace and
 *	window read without
 * @target_slack: so far a group with a target may be ahead and go first; disk lock,
 *	read without
 * @free_size: what @room would have without targets; disk lock, read without
 * @gather: so much of @room may be free before a completion has somebody use it; disk
 *	lock, read without
 * @idle_ns: time that may be lost by waiting; any context
 * @idle_since: since when somebody is waited for, 0: nobody is; any context
 * @nr_first: requests in the device that went before all others, if it turns; any
 *	context
 * @nr_blocked: hardware queues that are
 * @room: the window: work that the device may have at once; disk lock to resize
 * @tokens: requests of each class that it may have, if the policy tells them apart;
 *	likewise
 */
struct iso_disk {
	struct isoblk_disk disk;
	const struct iso_policy *policy;
	struct iso_hq *hq;
	struct iso_done __percpu *done;
	unsigned int tags;
	bool rotational;

	struct list_head groups;
	unsigned int nr_groups;
	u64 shares_gen;
	struct list_head holders;
	struct list_head swappers;
	struct window window;
	s64 window_mode;
	atomic_t measuring;
	u64 epoch_ns;
	u64 look_ns;
	u64 scan_ns;
	unsigned int nr_scans;
	struct iso_done seen;
	u64 rates[32];
	unsigned int rate_at;
	u64 rate;
	bool no_queue;
	u32 base[2][2][ISO_SIZES];
	u64 base_ns;
	u64 late_ns;
	u64 late_mean;
	u64 late_least;
	unsigned int probes;
	bool trial;
	struct iso_done trial_seen;
	u64 own_queue_ns;
	u64 trial_ns;
	unsigned int hold_left;
	unsigned int hold_len;
	bool hold_changed;
	u64 peak;
	u64 largest_now;
	u64 largest;
	u64 beside;
	bool limited;
	u64 mean_work;
	u64 busy_with;
	unsigned int hold_us;
	unsigned int idle_us;
	unsigned int idle_loss;
	unsigned int merge_kb;
	unsigned int write_cost;
	enum iso_account account;
	unsigned int unit;
	struct prices prices;
	struct iso_done priced;
	u64 priced_ns;
	bool wanted;
	bool full;
	bool starved;
	bool debts;
	u64 alone_since;
	atomic64_t passed;
	u64 alone_ns[PRICE_KINDS];
	u64 level;
	u64 refill_ns;
	u64 refilled_ns;
	u64 grant;
	atomic64_t charged;
	u64 found_ns;
	struct hrtimer timer;
	struct timer_list tick;
	struct list_head targets;
	bool counting;
	u64 settle_ns;
	u64 least_ns;
	u64 retry_ns;
	atomic64_t pace_at;
	struct hrtimer pace_timer;

	struct price price[PRICE_KINDS] ____cacheline_aligned_in_smp;
	enum price_kind alone;
	unsigned int nr_classes;
	bool paper;
	u64 vnow;
	u64 floor;
	u64 behind;
	u64 slack;
	u64 stream_slack;
	u64 ease;
	struct vclock clock;
	u64 credit;
	u64 debt_max;
	struct squeeze squeeze;
	u64 target_slack;
	u64 free_size;
	u64 gather;
	atomic64_t idle_ns;
	u64 idle_since;
	atomic_t nr_first;
	atomic_t nr_blocked;
	struct iso_room room ____cacheline_aligned_in_smp;
	struct iso_room tokens[ISO_CLASSES];
};

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
	const struct price *p = &d->price[op];
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
	return vtime_before(READ_ONCE(d->vnow) + slack,
			    atomic64_read(&g->vtime));
}

/* @g was served so far ahead of its time that its metadata is ordinary. */
static inline bool iso_indebted(const struct iso_disk *d,
				const struct iso_group *g)
{
	return iso_is_ahead(d, g, READ_ONCE(d->debt_max));
}

static inline bool iso_has_target(const struct iso_group *g)
{
	return READ_ONCE(g->target_ns);
}

/* Requests of one kind have the device for themselves: price.c. */
static inline bool iso_is_alone(const struct iso_disk *d)
{
	return READ_ONCE(d->alone) < PRICE_KINDS;
}

/* The disk's time is @vnow; in a trial until that ends. */
static inline void iso_set_vnow(struct iso_disk *d, u64 vnow)
{
	WRITE_ONCE(d->vnow, vnow);
	if (!READ_ONCE(d->trial))
		WRITE_ONCE(d->floor, vnow);
}

/* A group whose time is @tag is further ahead of the horizon than @slack. */
static inline bool iso_is_beyond(const struct iso_disk *d, u64 tag, u64 slack)
{
	return vtime_before(READ_ONCE(d->behind) + slack, tag);
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
