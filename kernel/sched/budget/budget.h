/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets: the common code of the schedulers of P2 (feedbac) and P3 (kyber-fair). budget.c opens
 * with the design.
 */
#ifndef ISOBLK_BUDGET_H
#define ISOBLK_BUDGET_H

#include <linux/list.h>
#include <linux/timer.h>

#include "share/disk.h"

/* Largest number of classes: read, write, discard, other. */
#define BUDGET_NR_CLASSES	4

struct budget_disk;

/**
 * struct budget_round - input for the size of the next round
 */
struct budget_round {
	u64 used;		/* sectors sent since the last refill */
	u64 elapsed_ns;		/* time since the last refill, ns */
	s64 left;		/* budgets of all active groups, sectors */
};

/**
 * struct budget_policy - operations and constants of a scheduler
 */
struct budget_policy {
	const char *left_name;	/* name of a budget in io.stat */
	unsigned int nr_classes; /* at most BUDGET_NR_CLASSES */
	/* Class of an operation; NULL: there is one class. */
	unsigned int (*class)(blk_opf_t opf);
	/* Number of requests of a class in a row while other classes wait. */
	const unsigned int *batch;
	/* Size of a round: the sectors that active groups get in all; disk lock. */
	u64 (*round)(struct budget_disk *bd, const struct budget_round *r);
	/* Longest time between refills in paper mode, ns. */
	u64 (*period_ns)(const struct budget_disk *bd);
	/* Called every ISOBLK_TICK while there are members; disk lock; may be NULL. */
	void (*tick)(struct budget_disk *bd, u64 now);
};

/**
 * struct budget_group - a cgroup on a disk: isoblk_group_own(); disk lock, or as noted
 */
struct budget_group {
	struct isoblk_group *group;	/* constant */
	s64 left;			/* budget, sectors; below 0: debt */
	u64 used;			/* sectors sent since the last refill */
	u32 fraction;			/* part of a sector kept over, of ISOBLK_SHARE_ONE */
	unsigned int waiting;		/* number of waiting requests; read without */
	unsigned int in_flight;		/* number of requests in flight */
	unsigned int idle_ticks;	/* ticks since the group last had a request */
	u64 wait_ns;			/* time from allocation to dispatch of all requests, ns */
	struct list_head member_node;	/* in disk->members from its first request on */
	struct list_head turn_node;	/* in disk->turns while requests wait */
	struct list_head fifo[BUDGET_NR_CLASSES]; /* waiting requests, by class */
};

/**
 * struct budget_disk - first member of a scheduler's disk; disk lock, or as noted
 */
struct budget_disk {
	struct isoblk_disk disk;	/* weights, the gate, and the disk lock */
	const struct budget_policy *policy; /* constant */
	struct list_head members;	/* struct budget_group, active or lately active */
	struct list_head turns;		/* struct budget_group with waiting requests, next first */
	struct list_head urgent;	/* requests that precede all others */
	unsigned int waiting;		/* number of waiting requests; read without */
	bool blocked;			/* no request may be sent until an event; read without */
	bool lacks_token;		/* a group with a budget has no token */
	unsigned int class;		/* class of the request sent last */
	unsigned int batch;		/* requests of that class sent in a row */
	unsigned int depth[BUDGET_NR_CLASSES]; /* tokens, by class; 0: unlimited */
	unsigned int in_flight[BUDGET_NR_CLASSES]; /* tokens in use, by class */
	bool paper_mode;		/* refills as in the papers; sysfs, any context */
	u64 refilled_ns;		/* time of the last refill, ns */
	u64 granted_sectors;		/* round of the last refill, sectors */
	u64 done_sectors;		/* sectors completed so far */
	struct timer_list tick;		/* runs while there are members */
};

int budget_init(struct budget_disk *bd, struct request_queue *q,
		struct elevator_queue *eq, const struct budget_policy *policy);
void budget_exit(struct budget_disk *bd, struct elevator_queue *eq);
bool budget_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs);
void budget_prepare_request(struct request *rq);
void budget_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			    blk_insert_t flags);
struct request *budget_dispatch_request(struct blk_mq_hw_ctx *hctx);
bool budget_has_work(struct blk_mq_hw_ctx *hctx);
void budget_completed_request(struct request *rq, u64 now);
void budget_requeue_request(struct request *rq);
void budget_finish_request(struct request *rq);
ssize_t budget_paper_mode_show(struct elevator_queue *e, char *page);
ssize_t budget_paper_mode_store(struct elevator_queue *e, const char *page,
				size_t count);
int budget_debugfs_groups(void *data, struct seq_file *m);

#endif /* ISOBLK_BUDGET_H */
