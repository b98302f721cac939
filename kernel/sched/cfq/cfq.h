/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of cfq share: cfq.c has the requests, tree.c decides whose
 * turn it is. cfq.c opens with the design.
 */
#ifndef ISOBLK_CFQ_H
#define ISOBLK_CFQ_H

#include <linux/hrtimer.h>
#include <linux/ioprio.h>
#include <linux/rbtree.h>

#include "muldiv.h"
#include "share/disk.h"

/* Served in this order. */
enum cfq_class {
	CFQ_RT,
	CFQ_BE,
	CFQ_IDLE,
	CFQ_NR_CLASSES,
};

/* Which queues of a class take turns with each other. */
enum cfq_load {
	CFQ_SYNC_IDLE,		/* worth waiting for, one by one */
	CFQ_SYNC_NOIDLE,	/* waited for together: they seek anyway */
	CFQ_ASYNC,
	CFQ_NR_LOADS,
};

/*
 * A class and its level as one number: RT and BE have levels, 0 first, and IDLE
 * has none.
 */
#define CFQ_PRIO_BE		IOPRIO_NR_LEVELS
#define CFQ_PRIO_IDLE		(2 * IOPRIO_NR_LEVELS)
#define CFQ_NR_PRIOS		(CFQ_PRIO_IDLE + 1)

/* Of most tasks; its slices are the tunables'. */
#define CFQ_LEVEL		IOPRIO_BE_NORM

/* A level more or less is so much of the slice: a fifth. */
#define CFQ_LEVEL_STEP		5

/* Longer service than that is not charged; keeps the arithmetic in 64 bits. */
#define CFQ_MAX_CHARGE_NS	(10ULL * NSEC_PER_SEC)

static_assert(CFQ_MAX_CHARGE_NS >> (64 - ISOBLK_SHARE_SHIFT) == 0);

struct cfq_group;

/**
 * struct cfq_icq - a process (io context) on a disk
 * @icq: first; the kernel allocates and frees it by this address
 * @queues: its synchronous ones, one a group and priority; disk->lock
 * @exited: nobody will unlink what is linked now; disk->lock
 */
struct cfq_icq {
	struct io_cq icq;
	struct hlist_head queues;
	bool exited;
};

/**
 * struct cfq_queue - requests that take their turn together
 * @group: constant; outlives the queue's requests
 * @sync: else it is its group's for asynchronous requests; constant
 * @prio: class and level; constant
 * @refs: one a request, one while linked, one while active
 * @icq: whose it is; NULL for an asynchronous one, or once the process is gone
 * @icq_node: in icq->queues
 * @group_node: in group->queues while linked
 * @sorted: waiting requests, by sector
 * @fifo: the same, by arrival
 * @queued: how many
 * @dispatched: with the device
 * @busy: has a turn to come, or is active
 * @load: whom it takes turns with, as found when it last became busy
 * @node: in its tree, while busy and not active
 * @key: place in the tree: when its turn is, ns
 * @left_ns: of a slice that was taken from it
 * @slice_start: when its first request of this turn was sent, 0: none yet
 * @slice_rqs: requests sent in this turn
 * @fifo_check: the oldest request has not been looked at in this turn
 * @done_ns: when a request of it last ended
 * @think_ns: mean time from there to the next request
 * @last_end: sector behind the request that came last
 * @seeks: a bit a request, the last ones: it was far from the one before
 *
 * All under disk->lock.
 */
struct cfq_queue {
	struct cfq_group *group;
	bool sync;
	unsigned int prio;
	unsigned int refs;
	struct cfq_icq *icq;
	struct hlist_node icq_node;
	struct list_head group_node;

	struct rb_root sorted;
	struct list_head fifo;
	unsigned int queued;
	unsigned int dispatched;

	bool busy;
	enum cfq_load load;
	struct rb_node node;
	u64 key;
	u64 left_ns;

	u64 slice_start;
	unsigned int slice_rqs;
	bool fifo_check;

	u64 done_ns;
	u64 think_ns;
	sector_t last_end;
	u32 seeks;
};

/**
 * struct cfq_tree - queues that wait for their turn
 * @root: by key
 * @nr: how many
 */
struct cfq_tree {
	struct rb_root_cached root;
	unsigned int nr;
};

/**
 * struct cfq_group - what cfq has of its own in a struct isoblk_group
 * @group: constant
 * @node: in disk's groups, while it waits for its turn
 * @vdisktime: service so far, over its share
 * @tree: its queues
 * @nr_busy: queues in @tree, and the active one if it is its own
 * @dispatched: requests with the device
 * @class: whose turn it was last
 * @load: likewise, within @class
 * @load_left: what is left of that turn, ns
 * @async: the queues of asynchronous requests, by priority; linked
 * @fallback: of requests for which no queue could be allocated; never freed
 * @queues: all linked ones
 * @time_ns: service so far; read without
 *
 * All under disk->lock.
 */
struct cfq_group {
	struct isoblk_group *group;
	struct rb_node node;
	u64 vdisktime;
	struct cfq_tree tree[CFQ_NR_CLASSES][CFQ_NR_LOADS];
	unsigned int nr_busy;
	unsigned int dispatched;
	enum cfq_class class;
	enum cfq_load load;
	s64 load_left;
	struct cfq_queue *async[CFQ_NR_PRIOS];
	struct cfq_queue fallback;
	struct list_head queues;
	u64 time_ns;
};

/* Written by sysfs, read without a lock; times in ms, back_seek_max in KiB. */
struct cfq_tunables {
	unsigned int quantum;
	unsigned int fifo_expire_sync;
	unsigned int fifo_expire_async;
	unsigned int back_seek_max;
	unsigned int back_seek_penalty;
	unsigned int slice_sync;
	unsigned int slice_async;
	unsigned int slice_async_rq;
	unsigned int slice_idle;
	unsigned int group_idle;
	unsigned int low_latency;
	unsigned int target_latency;
};

/**
 * struct cfq_disk - a disk under cfq: elevator_data
 * @disk: first; its lock is the one lock of cfq
 * @groups: those that wait for their turn, by vdisktime
 * @vclock: vdisktime that the group in service began its turn with, at least
 * @group: the group in service, not in @groups
 * @group_start: when its first request of this turn was sent, 0: none yet
 * @group_rqs: requests sent in this turn
 * @group_served: one of its requests has ended in this turn
 * @active: the queue in service, of @group; not in a tree
 * @nr_busy: queues in all groups
 * @queued: waiting requests in all queues; read without
 * @in_device: requests with the device, by whether they are synchronous
 * @position: sector behind the request sent last
 * @urgent: requests that go before all; read without
 * @blocked: nothing may be sent until something happens; read without
 * @idling: @timer runs, for the next request of @active
 * @timer: ends idling; also used to run the queue from where that is not allowed
 * @queueing: the device takes several requests at once; constant
 * @rotational: the device seeks; read when the elevator came
 * @gate_ns: when isoblk_gate_tick() was called last
 * @bio_queue: to which the bio belongs that looks for a request to merge with
 * @tunables: see there
 *
 * All under disk->lock.
 */
struct cfq_disk {
	struct isoblk_disk disk;

	struct rb_root_cached groups;
	u64 vclock;
	struct cfq_group *group;
	u64 group_start;
	unsigned int group_rqs;
	bool group_served;

	struct cfq_queue *active;
	unsigned int nr_busy;
	unsigned int queued;
	unsigned int in_device[2];
	sector_t position;
	struct list_head urgent;
	bool blocked;
	bool idling;
	struct hrtimer timer;

	bool queueing;
	bool rotational;
	u64 gate_ns;
	struct cfq_queue *bio_queue;
	struct cfq_tunables tunables;
};

static inline struct cfq_group *cfq_group_of(struct isoblk_group *group)
{
	return isoblk_group_own(group);
}

static inline enum cfq_class cfq_class_of(const struct cfq_queue *queue)
{
	return queue->prio / IOPRIO_NR_LEVELS;
}

/* ---- arithmetic ------------------------------------------------------- */

/* An I/O priority as the kernel has it, as one number of ours. */
static inline unsigned int cfq_prio(unsigned short ioprio)
{
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_RT:
		return IOPRIO_PRIO_LEVEL(ioprio);
	case IOPRIO_CLASS_BE:
		return CFQ_PRIO_BE + IOPRIO_PRIO_LEVEL(ioprio);
	case IOPRIO_CLASS_IDLE:
		return CFQ_PRIO_IDLE;
	default:
		return CFQ_PRIO_BE + CFQ_LEVEL;
	}
}

/* IDLE is as the last level. */
static inline unsigned int cfq_level(unsigned int prio)
{
	return prio == CFQ_PRIO_IDLE ? IOPRIO_NR_LEVELS - 1 :
		prio % IOPRIO_NR_LEVELS;
}

/*
 * The slice of a priority, of the same unit as @base, which is that of level 4:
 * from 1.8 of it at level 0 to 0.4 at level 7.
 */
static inline u64 cfq_scale_slice(u64 base, unsigned int prio)
{
	return div_u64(base * (CFQ_LEVEL_STEP + CFQ_LEVEL - cfq_level(prio)),
		       CFQ_LEVEL_STEP);
}

/*
 * @slice of one among @nr queues that have @mean on average, so that all have
 * theirs within @room, but not below @least.
 */
static inline u64 cfq_fit_slice(u64 slice, unsigned int nr, u64 mean, u64 room,
				u64 least)
{
	u64 wanted = nr * mean;

	if (!wanted || wanted <= room)
		return slice;
	return max(mul_div(slice, room, wanted), min(slice, least));
}

/* Asynchronous requests in one turn. */
static inline unsigned int cfq_async_limit(unsigned int slice_async_rq,
					   unsigned int prio)
{
	return 2 * slice_async_rq * (IOPRIO_NR_LEVELS - cfq_level(prio));
}

/* What @ns of service are to a group with @share, of ISOBLK_SHARE_ONE. */
static inline u64 cfq_vdisktime(u64 ns, u32 share)
{
	return div_u64(min(ns, CFQ_MAX_CHARGE_NS) << ISOBLK_SHARE_SHIFT, share);
}

/* Times that may not be compared as numbers once they have wrapped. */
static inline bool cfq_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* Time since @start; another processor may have read its clock later. */
static inline u64 cfq_since(u64 now, u64 start)
{
	return cfq_before(now, start) ? 0 : now - start;
}

/* tree.c: whose turn it is */
bool cfq_idle_window(const struct cfq_disk *cd, const struct cfq_queue *queue);
u64 cfq_idle_ns(const struct cfq_disk *cd, const struct cfq_queue *queue,
		u64 now);
void cfq_queue_ready(struct cfq_disk *cd, struct cfq_queue *queue, u64 now);
void cfq_queue_put(struct cfq_disk *cd, struct cfq_queue *queue);
void cfq_expire(struct cfq_disk *cd, u64 now, bool taken);
struct cfq_queue *cfq_select(struct cfq_disk *cd, u64 now);
void cfq_stop_idling(struct cfq_disk *cd);
void cfq_run_later(struct cfq_disk *cd);

/* cfq.c */
void cfq_queue_free(struct cfq_queue *queue);

#endif /* ISOBLK_CFQ_H */
