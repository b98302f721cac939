// SPDX-License-Identifier: GPL-2.0-only
/*
 * fifo: an elevator that sends requests in the order in which they came.
 *
 * It is the smallest that works, to begin from. It has one list for the whole
 * disk, knows no cgroups, and merges nothing. docs/guides/own-scheduler.md
 * shows how it is built and compared with others.
 */
#define pr_fmt(fmt) "fifo: " fmt
#define ISOBLK_ELEVATOR

#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat.h"

/**
 * struct fifo - what waits for one disk
 * @lock: protects @requests.
 * @requests: requests that were not sent yet, the oldest first.
 */
struct fifo {
	spinlock_t lock;
	struct list_head requests;
};

/* Set up for a disk. The queue is frozen: nothing comes meanwhile. */
static int fifo_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct fifo *fifo = kzalloc_node(sizeof(*fifo), GFP_KERNEL, q->node);

	if (!fifo)
		return -ENOMEM;
	spin_lock_init(&fifo->lock);
	INIT_LIST_HEAD(&fifo->requests);
	eq->elevator_data = fifo;
	q->elevator = eq;
	return 0;
}

/* Take note of a new nr_requests, on which nothing here depends. */
static void fifo_depth(struct request_queue *q)
{
}

ISOBLK_ELEVATOR_HOOKS(fifo, fifo_init, fifo_depth)

/* Free what fifo_init() made. All requests are gone. */
static void fifo_exit_sched(struct elevator_queue *eq)
{
	kfree(eq->elevator_data);
}

/* Append new requests, or put first what the kernel wants first. */
static void fifo_insert_requests(struct blk_mq_hw_ctx *hctx,
				 struct list_head *list, blk_insert_t flags)
{
	struct fifo *fifo = hctx->queue->elevator->elevator_data;

	spin_lock(&fifo->lock);
	if (flags & BLK_MQ_INSERT_AT_HEAD)
		list_splice_init(list, &fifo->requests);
	else
		list_splice_tail_init(list, &fifo->requests);
	spin_unlock(&fifo->lock);
}

/* Give the kernel the next request to send, or NULL. */
static struct request *fifo_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct fifo *fifo = hctx->queue->elevator->elevator_data;
	struct request *rq;

	spin_lock(&fifo->lock);
	rq = list_first_entry_or_null(&fifo->requests, struct request,
				      queuelist);
	if (rq)
		list_del_init(&rq->queuelist);
	spin_unlock(&fifo->lock);
	return rq;
}

/* Say whether it is worth asking for a request. A stale answer does no harm. */
static bool fifo_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct fifo *fifo = hctx->queue->elevator->elevator_data;

	return !list_empty_careful(&fifo->requests);
}

/* A request has ended. The kernel wants this hook; nothing is to be done. */
static void fifo_finish_request(struct request *rq)
{
}

static struct elevator_type fifo = {
	.ops = {
		.init_sched		= fifo_init_sched,
		.exit_sched		= fifo_exit_sched,
		.depth_updated		= fifo_depth_updated,
		.insert_requests	= fifo_insert_requests,
		.dispatch_request	= fifo_dispatch_request,
		.has_work		= fifo_has_work,
		.finish_request		= fifo_finish_request,
	},
	.elevator_name = "fifo",
	.elevator_owner = THIS_MODULE,
};

static int __init fifo_module_init(void)
{
	return elv_register(&fifo);
}

static void __exit fifo_module_exit(void)
{
	elv_unregister(&fifo);
}

module_init(fifo_module_init);
module_exit(fifo_module_exit);

MODULE_DESCRIPTION("An elevator to begin from: first in, first out");
MODULE_LICENSE("GPL");
