/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk under one of our elevators, its hardware queues, and what an elevator does its
 * own way. disk.c has their life.
 *
 * Lock order, outermost first:
 *
 *	q->elevator_lock	an elevator comes or goes; debugfs
 *	q->queue_lock		groups come and go
 *	blkcg->lock		weights
 *	iso_hq.lock		the core's order on a hardware queue; cfq has none
 *	disk->lock		shares
 *	hq->gate.lock		what waits at the gate; never of two hardware queues at once
 *	outlet.lock		bios on their way
 *	the kernel's own	workqueues, run queues of the scheduler, timers
 *
 * disk->lock and all below it are taken with interrupts off. A hardware queue is run with
 * none of them held, for that may take queue_lock.
 */
#ifndef ISOBLK_DISK_H
#define ISOBLK_DISK_H

#include <linux/kstrtox.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>

#include "share/group.h"

/* How often an elevator has its say, if it has one. */
#define ISOBLK_TICK		msecs_to_jiffies(5)

struct isoblk_resubmit;

/**
 * struct isoblk_ops - what an elevator does its own way
 */
struct isoblk_ops {
	/* At the gate all active groups are alike. */
	bool has_equal_quotas;
	/* The sender sleeps there, for nobody else can send its requests. */
	bool sender_sleeps;
	/* Bytes of its own in each group, see isoblk_group_own(). */
	size_t own_size;
	/* Bytes on each hardware queue as well, see isoblk_gq_own(). */
	size_t own_gq_size;
	/* These bytes are there, and zero; the group is not yet in use. */
	void (*group_init)(struct isoblk_group *group);
	/* A group that has taken part is about to be freed; disk->lock. */
	void (*group_exit)(struct isoblk_group *group);
	/* The group sends @rq, a flush, which has a tag but no bio yet; or NULL. */
	void (*flush_allocated)(struct isoblk_group *group, struct request *rq);
	/* A group's weight is another now; interrupts are off; or NULL. */
	void (*weight_changed)(struct isoblk_group *group);
	/* Writes what follows isoblk.used in io.stat; any context. */
	void (*stat)(struct isoblk_group *group, struct seq_file *s);
};

/**
 * struct isoblk_hq_gate - groups that wait at the gate of a hardware queue: gate.c
 */
struct isoblk_hq_gate {
	/* Guards @list and what is in it; taken in interrupts. */
	spinlock_t lock;
	struct list_head list;		/* isoblk_gq.gate.node of groups with waiters; @lock */
	unsigned int nr_groups;		/* length of @list; @lock, read without */
	unsigned int nr_in_transit;		/* sum of gq->gate.passing; @lock, read without */
	unsigned int nr_entering;		/* sum of gq->gate.entering; @lock, read without */
	unsigned int nr_rescues;		/* wake-ups missed: sleep.c; @lock, read without */
};

/**
 * struct isoblk_hq - a hardware queue
 *
 * What is constant lies apart from what every insertion and end writes.
 */
struct isoblk_hq {
	struct isoblk_disk *disk;	/* constant */
	struct blk_mq_hw_ctx *hctx;	/* constant */
	unsigned int index;		/* constant */
	int node;			/* where memory for it is to be; constant */
	void *own;			/* the elevator's own; constant */

	/* Requests inserted and not yet freed, as a gq's if tags are shared; any context. */
	atomic_t allocated ____cacheline_aligned_in_smp;
	unsigned int lendable;		/* tags that nobody uses; disk->lock, read without */
	struct isoblk_hq_gate gate;
	struct isoblk_resubmit *resubmit;	/* of bios that are let through; constant */
};

/**
 * struct isoblk_weights - who takes part in the division by weight: share.c; disk->lock
 */
struct isoblk_weights {
	struct list_head active;	/* struct isoblk_group that do */
	unsigned int nr_active;		/* length of @active; read without */
	u64 gen;			/* changes with @active and with a weight; a hint without */
};

/**
 * struct isoblk_disk_gate - how a disk's tags are divided: quota.h
 */
struct isoblk_disk_gate {
	bool enabled;			/* the gate is in use; any context */
	/*
	 * Tags divided by share, on top of one a group, or with has_equal_quotas each group's of
	 * them; disk->lock, read without.
	 */
	unsigned int spare;
	/*
	 * The group whose turn it is, with has_equal_quotas; may be freed: only compared.
	 * disk->lock, read without.
	 */
	const struct isoblk_group *served;
	bool had_waiters;		/* a bio or task has waited since tags were lent; any context */
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

	/* Guards shares; for its place see above. */
	spinlock_t lock;
	struct isoblk_weights weights;
	unsigned int tags;		/* of a hardware queue; any context */
	bool shared_tags;		/* hardware queues have one set of tags; constant */
	struct isoblk_disk_gate gate;
};

/* Where the tags of @gq's requests are counted. */
static inline struct isoblk_gq *isoblk_tags_gq(struct isoblk_gq *gq)
{
	return gq->group->disk->shared_tags ? gq->group->gq[0] : gq;
}

/**
 * isoblk_store_uint() - an attribute's store of a number within limits
 * @page: text
 * @count: its length
 * @value: where to
 * @low: least
 * @high: most
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

/* An attribute's store of a switch: @page, of length @count, to @value. */
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
