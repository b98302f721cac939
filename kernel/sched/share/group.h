/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cgroup on a disk, and on each of its hardware queues. policy.c makes them.
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

/* As io.weight has them, so that one number means the same to both. */
#define ISOBLK_WEIGHT_MIN	1
#define ISOBLK_WEIGHT_MAX	10000
#define ISOBLK_WEIGHT_DFL	100

/* The whole device, as a fraction; a share below 1e-9 would be rounded away. */
#define ISOBLK_SHARE_SHIFT	30
#define ISOBLK_SHARE_ONE	((u32)BIT(ISOBLK_SHARE_SHIFT))

/* What a flush or a request without data costs, as one of 4 KiB: sectors. */
#define ISOBLK_NO_DATA_COST	8

enum isoblk_op {
	ISOBLK_READ,
	ISOBLK_WRITE,
	ISOBLK_DISCARD,
	ISOBLK_NR_OPS,
};

/* Classes of ioprio, in the order in which a group's requests are sent. */
enum isoblk_class {
	ISOBLK_CLASS_RT,
	ISOBLK_CLASS_BE,		/* and requests without a class */
	ISOBLK_CLASS_IDLE,
	ISOBLK_NR_CLASSES,
};

/* One in so many requests is of the class whose turn it is: no class starves another. */
#define ISOBLK_CLASS_TURN	32

struct isoblk_disk;
struct isoblk_group;
struct isoblk_hq;

/**
 * struct isoblk_gq_gate - what of a group waits at the gate of a hardware queue: gate.c
 *
 * Under hq->gate.lock; the numbers are read without.
 */
struct isoblk_gq_gate {
	struct list_head sleepers;	/* struct isoblk_sleeper, first come first served */
	unsigned int nr_entering;		/* sleepers admitted that have not run since */
	unsigned int nr_run;		/* sleepers admitted that have run */
	struct list_head node;		/* in hq->gate.list while bios or tasks wait */
	unsigned int nr_waiting;	/* sleepers, and one more if there are bios */
	struct bio_list bios[ISOBLK_NR_CLASSES]; /* until held is below the quota */
	unsigned int nr_bios;		/* number of @bios */
	unsigned int nr_admitted;		/* how many left @bios so far */
	unsigned int nr_in_transit;		/* bios let through that have not yet come */
	u64 waited_at;			/* when @wait_ns was brought up to date, jiffies */
	u64 wait_ns;			/* time that bios waited, in all */
};

/**
 * struct isoblk_gq - one group on one hardware queue; isoblk_gq_own() follows
 *
 * What is written at dispatch lies apart from what every insertion and end writes.
 */
struct isoblk_gq {
	struct isoblk_group *group;	/* constant */
	struct isoblk_hq *hq;		/* constant */
	/* Charged to the group here; the elevator's lock of @hq, read without. */
	u64 bytes[ISOBLK_NR_OPS];
	u64 ios[ISOBLK_NR_OPS];		/* requests, likewise */

	/*
	 * Requests inserted and not yet freed, each with a tag; any context. If hardware
	 * queues share their tags, those of all of them, in the first gq.
	 */
	atomic_t allocated ____cacheline_aligned_in_smp;
	int peak_allocated;			/* most of them since tags were lent; any context */
	struct isoblk_gq_gate gate;
};

/**
 * struct isoblk_subtree - a group and all below it, in the division by weight; disk->lock
 */
struct isoblk_subtree {
	u32 sum;			/* weights of active children, and of the group itself */
	unsigned int nr_other;		/* number of these that are not of the idle class */
	u32 share;			/* part of the device, of ISOBLK_SHARE_ONE */
	u64 gen;			/* disk->weights.gen that @share is of */
};

/**
 * struct isoblk_bypassed - what is charged at completion, for what went past dispatch
 */
struct isoblk_bypassed {
	atomic64_t bytes[ISOBLK_NR_OPS]; /* any context */
	atomic64_t ios[ISOBLK_NR_OPS];	/* requests; any context */
};

/**
 * struct isoblk_group - a cgroup on a disk; isoblk_group_own() follows
 */
struct isoblk_group {
	struct blkg_policy_data pd;	/* first: the kernel frees the group by this address */
	struct isoblk_disk *disk;	/* constant */
	struct isoblk_group *parent;	/* NULL for the root; constant, the kernel holds it */
	u32 weight;			/* what counts: the disk's or the cgroup's; disk->lock */
	u32 dev_weight;			/* set for this disk, 0: none; disk->lock, read without */
	bool active;			/* its own requests take part; disk->lock, hint without */
	bool was_active;		/* it has been; disk->lock, last read when it is freed */
	struct isoblk_subtree subtree;
	bool idle_class;		/* of all since it is active; disk->lock, a hint without */
	bool indebted;			/* only what it swaps out is urgent; any context */
	u32 share;			/* of its own requests; disk->lock, read without */
	struct list_head active_node;	/* in disk->weights.active; disk->lock */
	struct isoblk_bypassed bypassed;
	unsigned int nr_gqs;		/* length of @gq, when the disk may be gone; constant */
	struct isoblk_gq **gq;		/* by hardware queue, allocated one by one; constant */
	struct rcu_head rcu;		/* after the kernel gave it back: who reads its files */
};

static inline enum isoblk_op isoblk_rq_op(const struct request *rq)
{
	if (op_is_discard(rq->cmd_flags))
		return ISOBLK_DISCARD;
	return op_is_write(rq->cmd_flags) ? ISOBLK_WRITE : ISOBLK_READ;
}

/* The class of a request or bio, whose level within it is ignored. */
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

/* The class at which the search for the next request begins, if @nr were sent so far. */
static inline unsigned int isoblk_first_class(unsigned int nr)
{
	return nr % ISOBLK_CLASS_TURN ? ISOBLK_CLASS_RT :
		nr / ISOBLK_CLASS_TURN % ISOBLK_NR_CLASSES;
}

static inline unsigned int isoblk_next_class(unsigned int class)
{
	return (class + 1) % ISOBLK_NR_CLASSES;
}

/* What an elevator has of its own in a group: ops->own_size bytes. */
static inline void *isoblk_group_own(struct isoblk_group *group)
{
	return group + 1;
}

/* And in a group on a hardware queue: ops->own_gq_size bytes. */
static inline void *isoblk_gq_own(struct isoblk_gq *gq)
{
	return gq + 1;
}

#endif /* ISOBLK_GROUP_H */
