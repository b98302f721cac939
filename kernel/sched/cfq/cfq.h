/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk, a group, a process and a queue under cfq, and the arithmetic of its turns. cfq.c
 * opens with the design.
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
 * struct cfq_icq - a process (io context) on a disk; disk->lock
 */
struct cfq_icq {
	struct io_cq icq;		/* first: the kernel frees it by this address */
	struct hlist_head queues;	/* its synchronous ones, one a group and priority */
	bool exited;			/* nobody will unlink what is linked now */
};

/**
 * struct cfq_slice - a queue's turn; disk->lock
 */
struct cfq_slice {
	u64 left_ns;			/* what was left when the last was taken from it */
	u64 start;			/* when its first request was sent, ns; 0: none yet */
	unsigned int rqs;		/* requests sent in it */
	bool fifo_check;		/* the oldest request has yet to be looked at */
};

/**
 * struct cfq_habits - what a queue's sender usually does; disk->lock
 */
struct cfq_habits {
	u64 done_ns;			/* when a request of it last ended */
	u64 think_ns;			/* mean time from there to the next request */
	sector_t last_end;		/* sector behind the request that came last */
	u32 seeks;			/* a bit each for the last requests: it was far off */
};

/**
 * struct cfq_queue - requests that take their turn together; disk->lock
 */
struct cfq_queue {
	struct cfq_group *group;	/* outlives the queue's requests; constant */
	bool sync;			/* or its group's, for asynchronous requests; constant */
	unsigned int prio;		/* class and level; constant */
	unsigned int refs;		/* one a request, one while linked, one while active */
	struct cfq_icq *icq;		/* process; NULL if asynchronous, or once it is gone */
	struct hlist_node icq_node;	/* in icq->queues */
	struct list_head group_node;	/* in group->queues while linked */

	struct rb_root sorted;		/* waiting requests, by sector */
	struct list_head fifo;		/* the same, by arrival */
	unsigned int queued;		/* number of them */
	unsigned int dispatched;	/* requests with the device */

	bool busy;			/* it has a turn to come, or is active */
	enum cfq_load load;		/* whom it takes turns with, since it became busy */
	struct rb_node node;		/* in its tree, while busy and not active */
	u64 key;			/* place in the tree: when its turn is, ns */
	struct cfq_slice slice;
	struct cfq_habits habits;
};

/**
 * struct cfq_tree - queues that wait for their turn; disk->lock
 */
struct cfq_tree {
	struct rb_root_cached root;	/* struct cfq_queue, by key */
	unsigned int nr;		/* number of them */
};

/**
 * struct cfq_group - what cfq has of its own in a struct isoblk_group; disk->lock
 */
struct cfq_group {
	struct isoblk_group *group;	/* constant */
	struct rb_node node;		/* in disk's groups, while it waits for its turn */
	u64 vdisktime;			/* service so far, over its share */
	struct cfq_tree tree[CFQ_NR_CLASSES][CFQ_NR_LOADS]; /* its queues */
	unsigned int nr_busy;		/* queues in @tree, and the active one if it is its own */
	unsigned int dispatched;	/* requests with the device */
	enum cfq_class class;		/* whose turn it was last */
	enum cfq_load load;		/* likewise, within @class */
	s64 load_left;			/* what is left of that turn, ns */
	struct cfq_queue *async[CFQ_NR_PRIOS]; /* of asynchronous requests; linked */
	struct cfq_queue fallback;	/* of requests for which there was no memory for one */
	struct list_head queues;	/* all linked ones */
	u64 time_ns;			/* service so far; read without the lock */
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
 * struct cfq_turn - the turn of the group in service; disk->lock
 */
struct cfq_turn {
	struct cfq_group *group;	/* not in disk's groups; NULL: none */
	u64 start;			/* when its first request was sent, ns; 0: none yet */
	unsigned int rqs;		/* requests sent in it */
	bool served;			/* one of its requests has ended in it */
};

/**
 * struct cfq_disk - a disk under cfq: elevator_data; all under the one lock of cfq
 */
struct cfq_disk {
	struct isoblk_disk disk;	/* first; its lock is that one */

	struct rb_root_cached groups;	/* those that wait for their turn, by vdisktime */
	u64 vclock;			/* vdisktime of @turn's group at its begin, at least */
	struct cfq_turn turn;
	struct cfq_queue *active;	/* in service, of @turn's group; not in a tree */
	unsigned int nr_busy;		/* queues in all groups */

	unsigned int queued;		/* waiting requests in all queues; read without */
	unsigned int in_device[2];	/* requests with the device, by whether synchronous */
	sector_t position;		/* sector behind the request sent last */
	struct list_head urgent;	/* requests that go before all; read without */
	bool blocked;			/* nothing may go until something happens; read without */
	bool idling;			/* @timer runs, for the next request of @active */
	struct hrtimer timer;		/* ends idling; runs the queue, for who may not */

	bool queueing;			/* the device takes several requests at once; constant */
	bool rotational;		/* it seeks; constant */
	u64 gate_ns;			/* when isoblk_gate_tick() was called last */
	struct cfq_queue *bio_queue;	/* of the bio that looks for a request to merge with */
	struct cfq_tunables tunables;
};

static inline struct cfq_disk *q_to_cfq(const struct request_queue *q)
{
	return q->elevator->elevator_data;
}

static inline struct cfq_icq *to_icq(struct io_cq *icq)
{
	return icq ? container_of(icq, struct cfq_icq, icq) : NULL;
}

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

#endif /* ISOBLK_CFQ_H */
