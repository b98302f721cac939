/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Structures of cfq for a disk, a group, a process and a queue, and the arithmetic of time slices.
 * cfq.c opens with the design.
 */
#ifndef ISOBLK_CFQ_H
#define ISOBLK_CFQ_H

#include <linux/hrtimer.h>
#include <linux/ioprio.h>
#include <linux/rbtree.h>

#include "muldiv.h"
#include "share/disk.h"

/* Classes of I/O priority, in the order in which they are served. */
enum cfq_class {
	CFQ_RT,
	CFQ_BE,
	CFQ_IDLE,
	CFQ_NR_CLASSES,
};

/* Workloads: the queues of a class in three kinds, which take turns. */
enum cfq_workload {
	CFQ_SYNC_IDLE,		/* the disk idles for each queue */
	CFQ_SYNC_NOIDLE,	/* the disk idles once for all of them: they seek */
	CFQ_ASYNC,
	CFQ_NR_WORKLOADS,
};

/*
 * A priority: the I/O class and its level as one number. RT and BE have levels, 0 is the highest;
 * IDLE has none.
 */
#define CFQ_PRIO_BE		IOPRIO_NR_LEVELS
#define CFQ_PRIO_IDLE		(2 * IOPRIO_NR_LEVELS)
#define CFQ_NR_PRIOS		(CFQ_PRIO_IDLE + 1)

/* The level that most tasks have; slice_sync and slice_async are slices of this level. */
#define CFQ_LEVEL_DEFAULT	IOPRIO_BE_NORM

/* A level changes the slice by 1 / CFQ_SLICE_SCALE of the base slice. */
#define CFQ_SLICE_SCALE		5

/*
 * Longest service charged for one turn; with it shifted by ISOBLK_SHARE_SHIFT the charge fits 64
 * bits.
 */
#define CFQ_CHARGE_MAX_NS	(10ULL * NSEC_PER_SEC)

static_assert(CFQ_CHARGE_MAX_NS >> (64 - ISOBLK_SHARE_SHIFT) == 0);

struct cfq_group;

/**
 * struct cfq_icq - a process (io context) on a disk; disk->lock
 */
struct cfq_icq {
	struct io_cq icq;		/* first: the kernel frees the icq by this address */
	struct hlist_head queues;	/* its synchronous struct cfq_queue, by group, priority */
	bool has_exited;		/* cfq_exit_icq() ran: no queue is linked any more */
};

/**
 * struct cfq_slice - time slice of a queue; disk->lock
 */
struct cfq_slice {
	u64 resid_ns;			/* rest of the last slice if that was preempted, ns */
	u64 start_ns;			/* when its first request was sent, ns; 0: none so far */
	unsigned int rqs;		/* requests sent in the slice */
	bool may_check_fifo;		/* the oldest request is still to be checked */
};

/**
 * struct cfq_habits - pattern of a queue's arrivals; disk->lock
 */
struct cfq_habits {
	u64 last_done_ns;		/* time of the last completion, ns; 0: none so far */
	u64 think_ns;			/* decaying mean time from completion to request, ns */
	sector_t last_end;		/* sector after the request that arrived last */
	u32 seek_history;		/* a bit for each of the last 32 requests: it was a seek */
};

/**
 * struct cfq_queue - requests that share a time slice; disk->lock
 */
struct cfq_queue {
	struct cfq_group *group;	/* constant; outlives the requests of the queue */
	bool sync;			/* of a process, not the group's asynchronous; constant */
	unsigned int prio;		/* class and level; constant */
	unsigned int refs;		/* one a request, one while linked, one while active */
	struct cfq_icq *icq;		/* process; NULL if asynchronous or exited */
	struct hlist_node icq_node;	/* in icq->queues */
	struct list_head group_node;	/* in group->queues while linked */

	struct rb_root sorted;		/* waiting requests, by sector */
	struct list_head fifo;		/* waiting requests, by arrival */
	unsigned int queued;		/* number of waiting requests */
	unsigned int dispatched;	/* number of requests in flight */

	bool busy;			/* in a service tree, or active */
	enum cfq_workload workload;	/* set when it enters a service tree */
	struct rb_node node;		/* in its service tree, while busy and not active */
	u64 key;			/* key in the service tree: time at which it is due, ns */
	struct cfq_slice slice;
	struct cfq_habits habits;
};

/**
 * struct cfq_service_tree - queues that wait for their slice; disk->lock
 */
struct cfq_service_tree {
	struct rb_root_cached root;	/* struct cfq_queue, by key */
	unsigned int nr;		/* number of queues */
};

/**
 * struct cfq_group - cfq's data of a struct isoblk_group; disk->lock
 */
struct cfq_group {
	struct isoblk_group *group;	/* constant */
	struct rb_node node;		/* in disk's groups, while it waits for its turn */
	u64 vdisktime;			/* service over share so far, ns */
	struct cfq_service_tree service_tree[CFQ_NR_CLASSES][CFQ_NR_WORKLOADS]; /* queues */
	unsigned int nr_busy;		/* queues in @service_tree, and active one of this group */
	unsigned int dispatched;	/* number of requests in flight */
	enum cfq_class serving_class;	/* class served last */
	enum cfq_workload serving_workload; /* workload of that class served last */
	s64 workload_left_ns;		/* rest of the turn of @serving_workload, ns */
	struct cfq_queue *async[CFQ_NR_PRIOS]; /* queues of asynchronous requests */
	struct cfq_queue fallback;	/* of requests whose queue could not be allocated */
	struct list_head queues;	/* linked struct cfq_queue */
	u64 time_ns;			/* service so far, ns; read without the lock */
};

/* Tunables: written by sysfs, read without a lock. Times in ms, back_seek_max in KiB. */
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
 * struct cfq_turn - turn of the group in service; disk->lock
 */
struct cfq_turn {
	struct cfq_group *group;	/* in service, so not in disk's groups; NULL: none */
	u64 start_ns;			/* when its first request was sent, ns; 0: none so far */
	unsigned int rqs;		/* requests sent in the turn */
	bool has_completion;		/* a request of the group completed in the turn */
};

/**
 * struct cfq_disk - a disk under cfq: elevator_data; all fields under the disk lock
 */
struct cfq_disk {
	struct isoblk_disk disk;	/* first; has the disk lock */

	struct rb_root_cached groups;	/* struct cfq_group that wait for a turn, by vdisktime */
	u64 min_vdisktime;		/* largest vdisktime at which a turn began, ns */
	struct cfq_turn turn;
	struct cfq_queue *active;	/* in service, of @turn's group, in no tree; NULL: none */
	unsigned int nr_busy;		/* busy queues of all groups */

	unsigned int queued;		/* waiting requests of all queues; read without */
	unsigned int in_flight[2];	/* requests in flight: asynchronous, synchronous */
	sector_t last_position;		/* sector after the request sent last */
	struct list_head urgent;	/* requests that precede all queues; read without */
	bool blocked;			/* no request may be sent until an event; read without */
	bool idling;			/* @timer runs, for the next request of @active */
	struct hrtimer timer;		/* ends idling; runs hardware queues later */

	bool has_queueing;		/* the device takes several requests at a time; constant */
	bool rotational;		/* constant */
	u64 gate_ticked_ns;		/* time of the last isoblk_gate_tick(), ns */
	struct cfq_queue *bio_queue;	/* queue of the bio that cfq_bio_merge() tries to merge */
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

/* The kernel's I/O priority as one of CFQ_NR_PRIOS. */
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
		return CFQ_PRIO_BE + CFQ_LEVEL_DEFAULT;
	}
}

/* IDLE has the lowest level. */
static inline unsigned int cfq_level(unsigned int prio)
{
	return prio == CFQ_PRIO_IDLE ? IOPRIO_NR_LEVELS - 1 :
		prio % IOPRIO_NR_LEVELS;
}

/*
 * Slice of a priority, in the unit of @base, the slice of level 4: from 1.8 times @base at level 0
 * to 0.4 at level 7.
 */
static inline u64 cfq_scale_slice(u64 base, unsigned int prio)
{
	return div_u64(base * (CFQ_SLICE_SCALE + CFQ_LEVEL_DEFAULT - cfq_level(prio)),
		       CFQ_SLICE_SCALE);
}

/*
 * Shorten a slice so that @nr queues with slices of @mean on average fit into @room. The result is
 * not below @least, unless @slice is.
 */
static inline u64 cfq_fit_slice(u64 slice, unsigned int nr, u64 mean, u64 room,
				u64 least)
{
	u64 wanted = nr * mean;

	if (!wanted || wanted <= room)
		return slice;
	return max(mul_div(slice, room, wanted), min(slice, least));
}

/* Asynchronous requests that a slice may send. */
static inline unsigned int cfq_async_limit(unsigned int slice_async_rq,
					   unsigned int prio)
{
	return 2 * slice_async_rq * (IOPRIO_NR_LEVELS - cfq_level(prio));
}

/* vdisktime of @ns of service of a group with @share, of ISOBLK_SHARE_ONE. */
static inline u64 cfq_vdisktime(u64 ns, u32 share)
{
	return div_u64(min(ns, CFQ_CHARGE_MAX_NS) << ISOBLK_SHARE_SHIFT, share);
}

/* Whether @a is before @b. Both may have wrapped, so they are not compared as numbers. */
static inline bool cfq_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* Time since @start; 0 if another CPU read its clock later than @now. */
static inline u64 cfq_since(u64 now, u64 start)
{
	return cfq_before(now, start) ? 0 : now - start;
}

#endif /* ISOBLK_CFQ_H */
