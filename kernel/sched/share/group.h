/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cgroup on a disk, and on each of the disk's hardware queues. policy.c allocates them.
 */
#ifndef ISOBLK_GROUP_H
#define ISOBLK_GROUP_H

#define ISOBLK_ELEVATOR
#include "compat.h"

#include <linux/atomic.h>
#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/list.h>
#include <linux/rcupdate.h>

/* The range and default of io.weight. */
#define ISOBLK_WEIGHT_MIN	1
#define ISOBLK_WEIGHT_MAX	10000
#define ISOBLK_WEIGHT_DFL	100

/* Shares are fixed-point fractions of the device, exact to 1e-9. */
#define ISOBLK_SHARE_SHIFT	30
#define ISOBLK_SHARE_ONE	((u32)BIT(ISOBLK_SHARE_SHIFT))

/* Sectors charged for a flush or another request without data: 4 KiB. */
#define ISOBLK_NO_DATA_COST	8

enum isoblk_op {
	ISOBLK_READ,
	ISOBLK_WRITE,
	ISOBLK_DISCARD,
	ISOBLK_NR_OPS,
};

/* ioprio classes, in the order in which a group's requests are sent. */
enum isoblk_class {
	ISOBLK_CLASS_RT,
	ISOBLK_CLASS_BE,		/* and requests without a class */
	ISOBLK_CLASS_IDLE,
	ISOBLK_NR_CLASSES,
};

/* One in ISOBLK_CLASS_TURN requests goes to the class whose turn it is, so no class starves. */
#define ISOBLK_CLASS_TURN	32

struct isoblk_disk;
struct isoblk_group;
struct isoblk_hq;

/**
 * struct isoblk_gq_gate - held bios and sleepers of a group on a hardware queue: gate.c
 *
 * All under hq->gate.lock; numbers are read without it.
 */
struct isoblk_gq_gate {
	struct list_head sleepers;	/* isoblk_sleeper.node, in order of arrival */
	unsigned int nr_entering;	/* tasks admitted that have not run yet */
	unsigned int nr_run;		/* tasks admitted that have run, in all; wraps */
	struct list_head node;		/* in hq->gate.list while @nr_waiting is not 0 */
	unsigned int nr_waiting;	/* length of @sleepers, plus one if @nr_bios */
	struct bio_list bios[ISOBLK_NR_CLASSES]; /* held bios by class */
	unsigned int nr_bios;		/* number of held bios */
	unsigned int nr_admitted;	/* bios admitted from @bios, in all; picks the class */
	unsigned int nr_in_transit;	/* bios admitted, neither inserted, merged nor ended */
	u64 waited_at;			/* jiffies up to which @wait_ns counts */
	u64 wait_ns;			/* time that bios were held, summed up over bios */
};

/**
 * struct isoblk_gq - one group on one hardware queue; isoblk_gq_own() follows
 *
 * Fields written at dispatch have another cache line than those of insertion and completion.
 */
struct isoblk_gq {
	struct isoblk_group *group;	/* constant */
	struct isoblk_hq *hq;		/* constant */
	/* Bytes and requests charged at dispatch; the elevator's lock of @hq, read without. */
	u64 bytes[ISOBLK_NR_OPS];
	u64 ios[ISOBLK_NR_OPS];

	/*
	 * Allocated tags: requests inserted and not yet freed; any context. With shared tags the
	 * group's first gq counts those of all hardware queues.
	 */
	atomic_t allocated ____cacheline_aligned_in_smp;
	int peak_allocated;		/* maximum of @allocated since the last tick; any context */
	struct isoblk_gq_gate gate;
};

/**
 * struct isoblk_subtree - a group and its descendants, in the division by weight; disk->lock
 */
struct isoblk_subtree {
	u32 sum;			/* weights of active children, and of own requests */
	unsigned int nr_other;		/* those of @sum that are not of the idle class */
	u32 share;			/* fraction of the device; valid if @gen is current */
	u64 gen;			/* disk->weights.gen when @share was computed */
};

/**
 * struct isoblk_bypassed - charges for requests that bypass dispatch, on completion
 */
struct isoblk_bypassed {
	atomic64_t bytes[ISOBLK_NR_OPS]; /* bytes less refunds; any context */
	atomic64_t ios[ISOBLK_NR_OPS];	/* requests less refunds; any context */
};

/**
 * struct isoblk_group - a cgroup on a disk; isoblk_group_own() follows
 */
struct isoblk_group {
	struct blkg_policy_data pd;	/* first: the kernel frees the group by this address */
	struct isoblk_disk *disk;	/* constant */
	struct isoblk_group *parent;	/* NULL: root; constant, pinned by the child's blkg */
	u32 weight;			/* @dev_weight if set, else the cgroup's; disk->lock */
	u32 dev_weight;			/* weight on this disk, 0: none; disk->lock, read without */
	bool active;			/* in weights.active; disk->lock, a hint without */
	bool was_active;		/* @active was set once; disk->lock, read when freed */
	struct isoblk_subtree subtree;
	bool idle_class;		/* no other class while active; disk->lock, or a hint */
	bool indebted;			/* of its bios only swap-out is urgent; any context */
	u32 share;			/* fraction for own requests; disk->lock, read without */
	struct list_head active_node;	/* in disk->weights.active; disk->lock */
	struct isoblk_bypassed bypassed;
	unsigned int nr_gqs;		/* length of @gq, also without the disk; constant */
	struct isoblk_gq **gq;		/* by hardware queue, one allocation each; constant */
	struct rcu_head rcu;		/* frees the group: readers of its files use RCU */
};

static inline enum isoblk_op isoblk_rq_op(const struct request *rq)
{
	if (op_is_discard(rq->cmd_flags))
		return ISOBLK_DISCARD;
	return op_is_write(rq->cmd_flags) ? ISOBLK_WRITE : ISOBLK_READ;
}

/* The class of an ioprio; the level within the class is ignored. */
static inline enum isoblk_class isoblk_class(unsigned short ioprio)
{
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_RT:
		return ISOBLK_CLASS_RT;
	case IOPRIO_CLASS_IDLE:
		return ISOBLK_CLASS_IDLE;
	default:
		return ISOBLK_CLASS_BE;
	}
}

/* The class at which the search for the next request begins, after @nr requests. */
static inline unsigned int isoblk_first_class(unsigned int nr)
{
	return nr % ISOBLK_CLASS_TURN ? ISOBLK_CLASS_RT :
		nr / ISOBLK_CLASS_TURN % ISOBLK_NR_CLASSES;
}

static inline unsigned int isoblk_next_class(unsigned int class)
{
	return (class + 1) % ISOBLK_NR_CLASSES;
}

/* The elevator's own part of a group: ops->own_size bytes. */
static inline void *isoblk_group_own(struct isoblk_group *group)
{
	return group + 1;
}

/* The elevator's own part of a gq: ops->own_gq_size bytes. */
static inline void *isoblk_gq_own(struct isoblk_gq *gq)
{
	return gq + 1;
}

#endif /* ISOBLK_GROUP_H */
