/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets: what the schedulers of P2 (feedbac) and P3 (kyber-fair) have in common. budget.c
 * opens with the design.
 */
#ifndef ISOBLK_BUDGET_H
#define ISOBLK_BUDGET_H

#include <linux/list.h>
#include <linux/timer.h>

#include "share/disk.h"

/* Classes of requests that a scheduler may tell apart: read, write, discard, other. */
#define BUDGET_CLASSES		4

struct budget_disk;

/**
 * struct budget_round - what a scheduler sizes the next round by
 */
struct budget_round {
	u64 used;		/* sectors sent since the last refill */
	u64 elapsed_ns;		/* time since then */
	s64 left;		/* sectors that active groups have left, in all */
};

/**
 * struct budget_policy - what a scheduler does its own way
 */
struct budget_policy {
	const char *left_name;	/* name of a budget in io.stat */
	unsigned int nr_classes; /* at most BUDGET_CLASSES */
	/* Class of an operation; NULL: there is one. */
	unsigned int (*class)(blk_opf_t opf);
	/* Requests of a class in a row, while other classes wait. */
	const unsigned int *batch;
	/* Sectors that active groups get together; disk lock. */
	u64 (*round)(struct budget_disk *bd, const struct budget_round *r);
	/* The longest time between refills, in paper mode. */
	u64 (*period_ns)(const struct budget_disk *bd);
	/* Called every ISOBLK_TICK while groups take part, or NULL; disk lock. */
	void (*tick)(struct budget_disk *bd, u64 now);
};

/**
 * struct budget_group - a cgroup on a disk: isoblk_group_own(); disk lock, unless it says
 * otherwise
 */
struct budget_group {
	struct isoblk_group *group;	/* constant */
	s64 left;			/* sectors it may still send; below 0: it sent more */
	u64 used;			/* sectors sent since the last refill */
	u32 rest;			/* of a sector, still to be given; of ISOBLK_SHARE_ONE */
	unsigned int waiting;		/* requests that wait; read without */
	unsigned int in_device;
	unsigned int idle;		/* ticks since it last had a request */
	u64 wait_ns;			/* time from insertion to the device, in all */
	struct list_head member;	/* in disk->members from its first request on */
	struct list_head turn;		/* in disk->turns while something waits */
	struct list_head fifo[BUDGET_CLASSES]; /* requests that wait, by class */
};

/**
 * struct budget_disk - a disk: first in a scheduler's own; disk lock, unless it says otherwise
 */
struct budget_disk {
	struct isoblk_disk disk;	/* weights, the gate, and the disk lock */
	const struct budget_policy *policy; /* constant */
	struct list_head members;	/* struct budget_group that take part */
	struct list_head turns;		/* those of which something waits, next first */
	struct list_head urgent;	/* requests that go before all others */
	unsigned int waiting;		/* requests that wait; read without */
	bool blocked;			/* nothing may go; read without */
	bool no_token;			/* and that is for want of a token */
	unsigned int class;		/* class that is sent now */
	unsigned int batch;		/* requests of it in a row */
	unsigned int depth[BUDGET_CLASSES]; /* requests of a class in the device at most; 0: any */
	unsigned int in_device[BUDGET_CLASSES];
	bool paper;			/* as the paper has it: sysfs; any context */
	u64 refilled_ns;		/* when the last refill was */
	u64 granted;			/* sectors that it gave */
	u64 done;			/* sectors completed so far */
	struct timer_list tick;
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
