// SPDX-License-Identifier: GPL-2.0-only
/*
 * refuse: an elevator whose init_hctx always fails, to be chosen after another elevator.
 *
 * After the failure the kernel calls exit_hctx for each hardware queue that has data of an
 * elevator. This elevator never sets any. So data that exist are its predecessor's, and freed: a
 * real elevator would use them, and free them again.
 */
#define pr_fmt(fmt) "refuse: " fmt
#define ISOBLK_ELEVATOR

#include <linux/module.h>

#include "compat.h"

static int refuse_init(struct request_queue *q, struct elevator_queue *eq)
{
	q->elevator = eq;
	return 0;
}

static void refuse_depth(struct request_queue *q)
{
}

ISOBLK_ELEVATOR_HOOKS(refuse, refuse_init, refuse_depth)

static void refuse_exit_sched(struct elevator_queue *eq)
{
	pr_info("exited\n");
}

static int refuse_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	return -ENOMEM;
}

static void refuse_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	WARN(1, "refuse: hardware queue %u has another's data\n", index);
}

/* The kernel requires these operations, but no request ever arrives. */
static void refuse_insert_requests(struct blk_mq_hw_ctx *hctx,
				   struct list_head *list, blk_insert_t flags)
{
}

static struct request *refuse_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	return NULL;
}

static void refuse_finish_request(struct request *rq)
{
}

static struct elevator_type refuse = {
	.ops = {
		.init_sched		= refuse_init_sched,
		.exit_sched		= refuse_exit_sched,
		.depth_updated		= refuse_depth_updated,
		.init_hctx		= refuse_init_hctx,
		.exit_hctx		= refuse_exit_hctx,
		.insert_requests	= refuse_insert_requests,
		.dispatch_request	= refuse_dispatch_request,
		.finish_request		= refuse_finish_request,
	},
	.elevator_name = "refuse",
	.elevator_owner = THIS_MODULE,
};

static int __init refuse_module_init(void)
{
	return elv_register(&refuse);
}

static void __exit refuse_module_exit(void)
{
	elv_unregister(&refuse);
}

module_init(refuse_module_init);
module_exit(refuse_module_exit);

MODULE_DESCRIPTION("An elevator that fails when it is chosen");
MODULE_LICENSE("GPL");
