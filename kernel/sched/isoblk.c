// SPDX-License-Identifier: GPL-2.0-only
/*
 * isoblk: divides a disk by weight in virtual time. It is the core (core.c), with
 * nothing added: what to choose.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "core/elevator.h"
#include "core/show.h"
#include "share/disk.h"
#include "share/sleep.h"

/* Limits of what may be written: beyond, it has no effect or is meant otherwise. */
#define HOLD_US_MOST		10000000
#define IDLE_US_MOST		1000000

static int iso_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct iso_disk *d = kzalloc_node(sizeof(*d), GFP_KERNEL, q->node);
	int ret;

	if (!d)
		return -ENOMEM;
	ret = isoblk_core_init(d, q, eq);
	if (ret)
		kfree(d);
	return ret;
}

ISOBLK_ELEVATOR_HOOKS(iso, iso_init, isoblk_depth_updated)

static void iso_exit_sched(struct elevator_queue *eq)
{
	struct iso_disk *d = eq->elevator_data;

	isoblk_core_exit(d, eq);
	kfree(d);
}

ISOBLK_UINT(iso_disk, hold_us, tunables.hold_us, 1, HOLD_US_MOST)
ISOBLK_UINT(iso_disk, idle_us, tunables.idle_us, 0, IDLE_US_MOST)
ISOBLK_UINT(iso_disk, idle_loss, tunables.idle_loss, 0, 1000)
ISOBLK_UINT(iso_disk, merge_kb, tunables.merge_kb, 4, S32_MAX >> 10)

static struct elv_fs_entry iso_attrs[] = {
	__ATTR(window, 0644, isoblk_window_show, isoblk_window_store),
	__ATTR(gate, 0644, isoblk_gate_show, isoblk_gate_store),
	__ATTR(account, 0644, isoblk_account_show, isoblk_account_store),
	__ATTR(hold_us, 0644, hold_us_show, hold_us_store),
	__ATTR(idle_us, 0644, idle_us_show, idle_us_store),
	__ATTR(idle_loss, 0644, idle_loss_show, idle_loss_store),
	__ATTR(merge_kb, 0644, merge_kb_show, merge_kb_store),
	__ATTR_NULL
};

#ifdef CONFIG_BLK_DEBUG_FS
static const struct blk_mq_debugfs_attr iso_debugfs[] = {
	{ "window", 0400, isoblk_debugfs_window },
	{ "groups", 0400, isoblk_debugfs_groups },
	{ "rescue", 0600, isoblk_debugfs_rescue, isoblk_debugfs_set_rescue },
	{ "gate", 0400, isoblk_debugfs_gate },
	{ "prices", 0400, isoblk_debugfs_prices },
	{ },
};
#endif

static struct elevator_type iso_sched = {
	.ops = {
		.init_sched		= iso_init_sched,
		.exit_sched		= iso_exit_sched,
		.init_hctx		= isoblk_core_init_hctx,
		.depth_updated		= iso_depth_updated,
		.exit_hctx		= isoblk_exit_hctx,
		.limit_depth		= isoblk_limit_depth,
		.allow_merge		= isoblk_allow_merge,
		.bio_merge		= isoblk_bio_merge,
		.prepare_request	= isoblk_prepare_request,
		.insert_requests	= isoblk_insert_requests,
		.dispatch_request	= isoblk_dispatch_request,
		.has_work		= isoblk_has_work,
		.completed_request	= isoblk_completed_request,
		.requeue_request	= isoblk_requeue_request,
		.finish_request		= isoblk_finish_request,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = iso_debugfs,
#endif
	.elevator_attrs = iso_attrs,
	.elevator_name = "isoblk",
	.elevator_owner = THIS_MODULE,
};

static int __init iso_module_init(void)
{
	return elv_register(&iso_sched);
}

static void __exit iso_module_exit(void)
{
	elv_unregister(&iso_sched);
}

module_init(iso_module_init);
module_exit(iso_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Divides a disk by weight in virtual time");
