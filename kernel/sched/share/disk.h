/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk under one of our elevators, its hardware queues, and the elevator's callbacks. disk.c
 * sets them up.
 *
 * Lock order, outermost first:
 *
 *	q->elevator_lock	elevator switch; debugfs
 *	q->queue_lock		creation and end of groups
 *	blkcg->lock		weights
 *	iso_hq.lock		isoblk's order on a hardware queue; cfq has none
 *	disk->lock		shares
 *	hq->gate.lock		waiters at the gate; never of two hardware queues at once
 *	resubmit->lock		admitted bios
 *	the kernel's own	workqueues, run queues of the scheduler, timers
 *
 * disk->lock and all below it are taken with interrupts off. No lock is held while a hardware
 * queue is run, as that may take queue_lock.
 */
#ifndef ISOBLK_DISK_H
#define ISOBLK_DISK_H

#include <linux/kstrtox.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>

#include "share/group.h"

/* Interval at which elevators on budgets call back (budget.h). */
#define ISOBLK_TICK		msecs_to_jiffies(5)

struct isoblk_resubmit;

/**
 * struct isoblk_ops - properties and callbacks of an elevator
 */
struct isoblk_ops {
	/* All active groups have the same quota, and only the served group may borrow. */
	bool has_equal_quotas;
	/* Submitters sleep at the gate: the elevator has a queue for each process. */
	bool sender_sleeps;
	/* Size of isoblk_group_own() in bytes. */
	size_t own_size;
	/* Size of isoblk_gq_own() in bytes. */
	size_t own_gq_size;
	/* A group was allocated, its own parts zeroed; it is not in use yet. */
	void (*group_init)(struct isoblk_group *group);
	/* A group that was active is about to be freed; disk->lock is held. */
	void (*group_exit)(struct isoblk_group *group);
	/* A flush of the group has its tag, and no bio yet. May be NULL. */
	void (*flush_allocated)(struct isoblk_group *group, struct request *rq);
	/* A group's weight has changed; interrupts are off. May be NULL. */
	void (*weight_changed)(struct isoblk_group *group);
	/* Write the elevator's part of io.stat, behind isoblk.used; any context. */
	void (*stat)(struct isoblk_group *group, struct seq_file *s);
};

/**
 * struct isoblk_hq_gate - groups with waiters at the gate of a hardware queue: gate.c
 */
struct isoblk_hq_gate {
	/* Guards this struct and gq->gate of its groups; taken in interrupts. */
	spinlock_t lock;
	struct list_head list;		/* isoblk_gq.gate.node of groups with waiters; @lock */
	unsigned int nr_groups;		/* length of @list; @lock, read without */
	unsigned int nr_in_transit;	/* sum of gq->gate.nr_in_transit; @lock, read without */
	unsigned int nr_entering;	/* sum of gq->gate.nr_entering; @lock, read without */
	unsigned int nr_rescues;	/* missed wake-ups (sleep.c); @lock, read without */
};

/**
 * struct isoblk_hq - a hardware queue
 *
 * Constant fields have another cache line than those written at insertion and completion.
 */
struct isoblk_hq {
	struct isoblk_disk *disk;	/* constant */
	struct blk_mq_hw_ctx *hctx;	/* constant */
	unsigned int index;		/* constant */
	int node;			/* NUMA node for its allocations; constant */
	void *own;			/* the elevator's data; constant */

	/* Allocated tags, sum of gq->allocated; any context. */
	atomic_t allocated ____cacheline_aligned_in_smp;
	unsigned int lendable;		/* tags that may be lent; disk->lock, read without */
	struct isoblk_hq_gate gate;
	struct isoblk_resubmit *resubmit; /* resubmits admitted bios; constant */
};

/**
 * struct isoblk_weights - active groups, which divide the disk: share.c; disk->lock
 */
struct isoblk_weights {
	struct list_head active;	/* isoblk_group.active_node */
	unsigned int nr_active;		/* length of @active; read without */
	u64 gen;			/* counts changes of @active and weights; a hint without */
};

/**
 * struct isoblk_disk_gate - how a disk's tags are divided: quota.h
 */
struct isoblk_disk_gate {
	bool enabled;			/* the gate holds bios: sysfs file gate; any context */
	/*
	 * Tags of a hardware queue that are divided by share, beyond one for each group; with
	 * has_equal_quotas one group's part of them. disk->lock, read without.
	 */
	unsigned int spare;
	/*
	 * Group that may borrow, with has_equal_quotas. It may be freed: only compare the pointer.
	 * disk->lock, read without.
	 */
	const struct isoblk_group *served;
	bool had_waiters;		/* a bio or task waited since the last round; any context */
	unsigned int nr_unvisited;	/* hardware queues left for the next ticks; disk->lock */
};

/**
 * struct isoblk_disk - a disk under one of our elevators: elevator_data
 */
struct isoblk_disk {
	struct request_queue *q;	/* constant */
	const struct isoblk_ops *ops;	/* constant */
	unsigned int nr_hqs;		/* constant */
	struct isoblk_hq **hq;		/* by index; constant once they are set up */

	/* Guards weights and shares. */
	spinlock_t lock;
	struct isoblk_weights weights;
	unsigned int tags;		/* tags of a hardware queue, the fewest; any context */
	bool shared_tags;		/* all hardware queues use one set of tags; constant */
	struct isoblk_disk_gate gate;
};

/* The gq that counts the tags of @gq's requests. */
static inline struct isoblk_gq *isoblk_tags_gq(struct isoblk_gq *gq)
{
	return gq->group->disk->shared_tags ? gq->group->gq[0] : gq;
}

/**
 * isoblk_store_uint() - store a number from a sysfs attribute
 * @page: text
 * @count: length of @page
 * @value: number to set
 * @low: minimum
 * @high: maximum
 */
static inline ssize_t isoblk_store_uint(const char *page, size_t count,
					unsigned int *value, unsigned int low,
					unsigned int high)
{
	unsigned int number;
	int ret = kstrtouint(page, 10, &number);

	if (ret)
		return ret;
	if (number < low || number > high)
		return -ERANGE;
	WRITE_ONCE(*value, number);
	return count;
}

/* Store a switch from a sysfs attribute: @page, of length @count, to @value. */
static inline ssize_t isoblk_store_bool(const char *page, size_t count,
					bool *value)
{
	bool on;
	int ret = kstrtobool(page, &on);

	if (ret)
		return ret;
	WRITE_ONCE(*value, on);
	return count;
}

/* Define show and store of a sysfs attribute for @field of the elevator's struct @type. */
#define ISOBLK_UINT(type, name, field, min, max)			\
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
	return isoblk_store_uint(page, count, &own->field, min, max); \
}

int isoblk_groups_init(struct isoblk_disk *disk, struct request_queue *q,
		       struct elevator_queue *eq, const struct isoblk_ops *ops);
void isoblk_groups_exit(struct isoblk_disk *disk, struct elevator_queue *eq);
int isoblk_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void isoblk_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void isoblk_depth_updated(struct request_queue *q);
void isoblk_set_min_shallow_depth(struct request_queue *q, unsigned int depth);
ssize_t isoblk_gate_show(struct elevator_queue *e, char *page);
ssize_t isoblk_gate_store(struct elevator_queue *e, const char *page,
			  size_t count);
void *isoblk_show_begin(struct request_queue *q,
			int (*show)(void *data, struct seq_file *m));
unsigned int isoblk_group_nr_waiting(const struct isoblk_group *group);
void isoblk_show_group(struct seq_file *m, struct isoblk_group *group);
int isoblk_debugfs_gate(void *data, struct seq_file *m);

#endif /* ISOBLK_DISK_H */
