/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk and its hardware queues. isoblk.c opens with the design.
 */
#ifndef ISOBLK_ISO_DISK_H
#define ISOBLK_ISO_DISK_H

#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/rbtree.h>

#include "isoblk/cost.h"
#include "isoblk/floor.h"
#include "isoblk/room.h"
#include "isoblk/vtime.h"
#include "isoblk/window.h"
#include "share/disk.h"

/* Requests that a hardware queue has in flight at least, whatever the window. */
#define ISO_IN_FLIGHT_MIN	2

/* Cost for which metadata may be ahead of its group's share: iso_clock.debt_max. */
#define ISO_DEBT_NS		(20 * NSEC_PER_MSEC)

struct iso_disk;
struct iso_group;
struct iso_gq;

/* Why a request was sent, or none was. */
enum iso_why {
	ISO_URGENT,		/* sent: metadata, journal, swap */
	ISO_BOOSTED,		/* sent: its group was not ahead and had nothing that waited */
	ISO_IN_ORDER,		/* sent: the least virtual deadline */
	ISO_NO_ROOM,		/* blocked: the window is full */
	ISO_NO_TAG,		/* blocked: the device has no tag free */
	ISO_THROTTLED,		/* blocked: too far ahead of a group without waiting requests */
	ISO_PACED,		/* blocked: too far ahead of another hardware queue */
	ISO_TURN,		/* blocked: rotational, another group has its turn */
};

/**
 * struct iso_done - what has completed on a CPU so far; that CPU's
 */
struct iso_done {
	u64 nr;			/* requests */
	u64 cost;		/* cost of these, ns */
	u64 written;		/* part of @cost that was written */
	u64 took_ns;		/* time that they were in flight, in all */
	u64 area;		/* sum of cost x time in flight, in us */
};

/**
 * struct iso_choice - what a hardware queue would send next
 */
struct iso_choice {
	struct iso_gq *gq;	/* may send, and has room for it; NULL: none may */
	enum iso_why why;
	u64 cost;		/* cost of that request */
	u64 key;		/* virtual deadline of @gq, or of the next group if none may send */
	u64 lacks;		/* cost for which there is no room, if some may gather; or 0 */
	struct iso_hq *ask;	/* queue to be run instead, if the disk is idle; or NULL */
};

/**
 * struct iso_hq - one hardware queue
 *
 * In three parts that share no cache line: fields under @lock; fields that insertions write, also
 * while another CPU has @lock; and fields that completions write.
 */
struct iso_hq {
	/* Guards what waits here; outside the disk lock, never in interrupts, not waited for. */
	spinlock_t lock;
	struct iso_disk *disk;		/* constant */
	struct blk_mq_hw_ctx *hctx;	/* constant once the hardware queues are set up */
	unsigned int index;		/* constant */
	struct rb_root_cached tree;	/* struct iso_gq by virtual deadline; @lock */
	struct list_head boosted;	/* struct iso_gq that are sent before those; @lock */
	struct list_head urgent;	/* requests that are sent before all; @lock */
	bool stale;			/* deadlines in @tree may be too late; any context */
	struct iso_gq *turn;		/* rotational: has its turn; @lock, RCU, cleared without */
	struct iso_choice next;		/* as was last found; @lock */
	unsigned int nr;		/* requests that wait; @lock, a hint without */
	bool blocked;			/* nothing may be sent; set under @lock, cleared without */
	u64 wait_key;			/* @next.key, if @blocked; a hint without @lock */
	u64 lacks;			/* @next.lacks, if @blocked; @lock, read without */

	/* Requests that the next owner of @lock takes in; any context. */
	struct llist_head arrived ____cacheline_aligned_in_smp;
	bool at_work;			/* the owner of @lock looks at @arrived; a hint without */
	bool missed;			/* a CPU found @lock taken; any context */

	/* When something was inserted or completed here last; any context. */
	u64 now ____cacheline_aligned_in_smp;
	atomic_t in_flight;		/* requests; any context */
};

/**
 * struct iso_tunables - what the user may write
 */
struct iso_tunables {
	s64 window;		/* 0 automatic, -1 off, else us of the device; disk lock */
	unsigned int hold_us;	/* us of the device by which a group may be ahead; any context */
	unsigned int idle_us;	/* us within which a group is expected back; any context */
	unsigned int max_loss;	/* permille that throttling may cost; any context */
	unsigned int merge_kb;	/* KiB that a request grows to when groups compete; any context */
};

/**
 * struct iso_members - active groups: members.c
 */
struct iso_members {
	struct list_head list;	/* struct iso_group; disk lock */
	unsigned int nr;	/* length of @list; disk lock, a hint without */
	unsigned int joins;	/* how many ever became active; disk lock */
	u64 shares_gen;		/* weights that all shares are of, or newer ones; disk lock */
	struct timer_list tick;	/* looks for idle ones, and at whatever changes seldom */
};

/**
 * struct iso_busy - whether the device does what it can, by a model that is known: epoch.c
 */
struct iso_busy {
	u64 since_ns;		/* when the look that is under way began; disk lock */
	struct iso_done seen;	/* sums when it did; disk lock */
	bool is_written;	/* of the last look: most was written; disk lock */
	bool is_busy;		/* of the last look; disk lock */
};

/**
 * struct iso_epoch - the time in which the device is being looked at: epoch.c
 */
struct iso_epoch {
	u64 look_ns;		/* when it may be long enough; disk lock, a hint without */
	bool limited;		/* a request waited for room; any context */
	bool spared;		/* a request was not throttled, for the floor alone; any context */
	u64 largest;		/* largest cost of a request; any context */
	atomic_t ending;	/* a CPU sees to its end; any context */
	u64 throttled_since;	/* a request is throttled since then, 0: none is; any context */
	atomic64_t throttled_ns; /* time before that, since the epoch began; any context */
	u64 begun_ns;		/* when it began; disk lock */
	struct iso_done seen;	/* sums when it began; disk lock */
	unsigned int joins;	/* iso_members.joins when it began; disk lock */
	unsigned int scale;	/* how much longer than the least it is, for noise; disk lock */
	struct iso_busy busy;
	u64 gate_ns;		/* when isoblk_gate_tick() was called last; disk lock */
};

/**
 * struct iso_device - what is seen of the device; disk lock, read without
 */
struct iso_device {
	u64 rate;		/* cost a second, the highest of the last epochs */
	u64 mean_cost;		/* mean cost of a request */
	u64 largest;		/* largest cost in the last epochs */
};

/**
 * struct iso_clock - the disk's virtual time, and distances in it; any context
 */
struct iso_clock {
	u64 vnow;		/* that of the group sent in order last; see iso_catch_up() */
	u64 behind;		/* the horizon, a virtual time: throttle.c */
	u64 slack;		/* distance that they may be ahead of it */
	u64 credit;		/* largest lag */
	u64 debt_max;		/* a lead beyond this makes a group's metadata ordinary */
};

/**
 * struct iso_rescue - an idle disk on which requests wait, as the tick finds it: isoblk.c
 */
struct iso_rescue {
	bool off;		/* the tick only counts, for tests; any context */
	bool was_stuck;		/* the disk was so at the last look; disk lock */
	u64 done;		/* cost completed by then; disk lock */
	unsigned long nr;	/* times that it was so at two looks; disk lock */
};

/**
 * struct iso_disk - a disk: elevator_data
 *
 * First is what is constant, then what is the disk lock's. Last is what each request reads and is
 * seldom written, from @cost on, and @room, which it may write.
 */
struct iso_disk {
	struct isoblk_disk disk;	/* weights and the gate; its lock is "the disk lock" */
	struct iso_hq *hq;		/* by index; constant */
	struct iso_done __percpu *done;	/* what has completed */
	unsigned int tags;		/* tags that the device takes from each @hq; constant */
	bool rotational;		/* constant */
	enum cost_kind kind;		/* constant */

	struct iso_members members;
	struct iso_tunables tunables;
	struct iso_epoch epoch ____cacheline_aligned_in_smp;
	struct window window;		/* disk lock */
	struct floor floor;		/* disk lock */
	struct list_head swappers;	/* struct iso_group that swap: swap.c; disk lock */
	struct iso_rescue rescue;
	struct hrtimer timer;		/* an expected group has not come; runs what waits */

	struct cost_model cost ____cacheline_aligned_in_smp;
	struct iso_device device;
	struct iso_clock clock;
	u64 floor_now;			/* cost in flight with no throttling; any context */
	u64 gather;			/* room free before it is used again; any context */
	u64 found_ns;			/* when @clock.behind was found last; any context */
	u64 busy_until;			/* rotational: when one completed last; any context */
	atomic_t nr_alone;		/* rotational: boosted requests in flight */
	atomic_t nr_blocked;		/* hardware queues that are; any context */

	/* The window: cost that may be in flight; disk lock to resize. */
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

/* Cost that the device does in @ns. */
static inline u64 iso_cost_in(const struct iso_disk *d, u64 ns)
{
	return mul_div(READ_ONCE(d->device.rate), ns, NSEC_PER_SEC);
}

#endif /* ISOBLK_ISO_DISK_H */
