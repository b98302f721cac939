/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk and its hardware queues, with what each part keeps there. core.c opens with the
 * design.
 */
#ifndef ISOBLK_CORE_DISK_H
#define ISOBLK_CORE_DISK_H

#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/rbtree.h>

#include "core/price.h"
#include "core/room.h"
#include "core/squeeze.h"
#include "core/trade.h"
#include "core/vtime.h"
#include "core/window.h"
#include "share/disk.h"

/* Least times in the device are kept for so many sizes: the highest bit of their sectors. */
#define ISO_SIZES		24

/* So many rates are remembered, one an epoch. */
#define ISO_RATES		32

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
 * struct iso_done - what has completed on a CPU so far; that CPU's
 */
struct iso_done {
	u64 nr;			/* requests */
	u64 work;		/* work of these, units */
	u64 area;		/* work x time in the device */
	u64 base_area;		/* the same, had each taken the least time */
	struct price_sums sums;	/* what they were by kind, where time is charged */
};

/**
 * struct iso_choice - who is next
 */
struct iso_choice {
	struct iso_gq *gq;	/* may send, and has room for it; NULL: nobody may */
	u64 work;		/* work of that request, units */
	u64 tag;		/* time of @gq, or of whoever would be next */
	u64 first;		/* the time that is furthest behind */
	u64 lacks;		/* work for which there is no room, if some may gather; or 0 */
	struct iso_hq *ask;	/* to be run instead, if the disk is idle: horizon.c; or NULL */
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
};

/**
 * struct iso_members - groups that take part: members.c
 */
struct iso_members {
	struct list_head list;	/* struct iso_group; disk lock */
	unsigned int nr;	/* length of @list; disk lock, a hint without */
	u64 shares_gen;		/* weights that all shares are of, or newer ones; disk lock */
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
	bool was_limited;	/* it was in the last one; disk lock */
	atomic_t ending;	/* a CPU sees to its end; any context */
	u64 begun_ns;		/* when it began; disk lock */
	struct iso_done seen;	/* sums when it began; disk lock */
};

/**
 * struct iso_device - what has been learned of the device: measure.c, epoch.c
 */
struct iso_device {
	u64 rate;		/* units a second, the best of late; disk lock, read without */
	u64 mean_work;		/* mean work of a request; disk lock, read without */
	u64 busy_with;		/* requests that keep it busy, of ISO_BUSY_ONE; likewise */
	u64 largest;		/* most work of a request, of late; likewise */
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
	unsigned int nr_falls;	/* how often one of these became clearly less; likewise */
};

/**
 * struct iso_lateness - how late processors are: late.c; any context
 */
struct iso_lateness {
	u64 ns;			/* lateness from a request's begin to the next one's, ns */
	u64 mean;		/* mean lateness of the last probes, ns */
	u64 least;		/* least of all probes, or what is always to be expected, ns */
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
	u64 begun_ns;		/* when the last trial began; disk lock */
	u64 next_ns;		/* no other begins before; disk lock */
	u64 trial_ns;		/* when it began to count; disk lock */
	unsigned int settle;	/* epochs until it counts; disk lock */
	struct iso_done trial_seen; /* sums when it began to; disk lock */
	u64 seen_work;		/* work that had completed at the last scan; disk lock */
	u64 seen_ns;		/* when that was, 0: there was none; disk lock */
	u64 recent_work;	/* work of the last scans, each counts 3/4 of the next; disk lock */
	u64 recent_ns;		/* time of these, likewise; disk lock */
	u64 held_rate;		/* units a second before the trial; disk lock */
	struct trade_trials trials; /* what trials have shown; disk lock */
	unsigned int seen_falls; /* iso_device.nr_falls when the first of these began; disk lock */
	u64 own_queue_ns;	/* time queued in the device in the last trial; disk lock */
};

/**
 * struct iso_pricing - how it is found what requests are to be charged: charge.c
 */
struct iso_pricing {
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
	enum iso_account account; /* what is charged */
	unsigned int unit;	/* units of work of a sector, as far as all are alike */
};

/**
 * struct iso_clock - the disk's virtual time, and distances in it; any context
 */
struct iso_clock {
	/* Time of the group that was furthest behind when one was served. */
	u64 vnow;
	u64 floor;		/* @vnow, or in a trial what that was before */
	u64 behind;		/* least time of those others wait for, or far ahead */
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
	u64 gather;		/* part that is free before a completion has it used */
};

/**
 * struct iso_wait - waiting for somebody who has no request: horizon.c; any context
 */
struct iso_wait {
	atomic64_t spare_ns;	/* time that may be lost by it */
	u64 since;		/* since when somebody is waited for, 0: nobody is */
};

/**
 * struct iso_rescue - an idle disk on which requests wait, as the tick finds it: core.c
 */
struct iso_rescue {
	bool off;		/* the tick only counts, for tests; any context */
	bool was_stuck;		/* the disk was so at the last look; disk lock */
	u64 done;		/* work completed by then, units; disk lock */
	unsigned long nr;	/* times that it was so at two looks; disk lock */
};

/**
 * struct iso_disk - a disk: elevator_data
 *
 * The layout is on purpose. First is what is constant, then what is the disk lock's, where
 * the few that a request looks at are first in their parts: @epoch, which it may write, has
 * a cache line of its own. Last is what each request reads and is seldom written, from
 * @tariff on, and @room, which it may write.
 */
struct iso_disk {
	struct isoblk_disk disk;	/* weights and the gate; its lock is "the disk lock" */
	struct iso_hq *hq;		/* by index; constant */
	struct iso_done __percpu *done;	/* what has completed */
	unsigned int tags;		/* tags that the device takes from each @hq; constant */
	bool rotational;		/* it turns; constant */

	struct iso_members members;
	struct iso_tunables tunables;
	struct iso_epoch epoch ____cacheline_aligned_in_smp;
	struct iso_device device;
	struct iso_lateness late;
	struct window window;		/* the loop that finds it; disk lock */
	struct iso_holding hold;
	struct iso_pricing pricing;
	struct list_head swappers;	/* struct iso_group that swap: swap.c; disk lock */
	struct iso_latency latency;
	struct iso_rescue rescue;
	struct hrtimer timer;		/* ends a wait; runs whoever waits, for who may not */

	struct iso_tariff tariff ____cacheline_aligned_in_smp;
	struct iso_clock clock;
	struct squeeze squeeze;		/* what targets leave others; disk lock, read without */
	struct iso_size size;
	struct iso_wait wait;
	atomic_t nr_first;		/* requests in it that went before all, if it turns */
	atomic_t nr_blocked;		/* hardware queues that are; any context */

	/* The window: work that the device may have at once; disk lock to resize. */
	struct iso_room room ____cacheline_aligned_in_smp;
};

static inline struct iso_disk *q_to_iso(const struct request_queue *q)
{
	return q->elevator->elevator_data;
}

static inline struct iso_hq *hctx_to_hq(const struct blk_mq_hw_ctx *hctx)
{
	const struct isoblk_hq *common = hctx->sched_data;

	return common->own;
}

#endif /* ISOBLK_CORE_DISK_H */
