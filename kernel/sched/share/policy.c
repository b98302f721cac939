// SPDX-License-Identifier: GPL-2.0-only
/*
 * isoblk_share: what all our elevators use. Groups, weights, and the admission gate in front of
 * the tags (gate.c).
 *
 * This file has the blkcg policy: its files, and the allocation and end of groups. There is one
 * policy for all elevators, as a kernel has six slots and a stock kernel uses five. share.c
 * defines weights.
 *
 * Lifetime. An active group holds a reference to its blkg, taken by the elevator, or each of its
 * requests does from insertion to completion, as a bio may end before its request. The kernel
 * frees a group with its blkg, or when the elevator is switched off. The queue is then frozen and
 * has no requests. A parent outlives its children: the kernel holds a reference for each.
 *
 * Memory. A group is allocated while its first bio waits, in atomic context. If that fails, the bio
 * is charged to the parent. To keep allocations small, each gq is one of its own, on the node of
 * its hardware queue. The largest is the group with its array of pointers to gqs: a page at 400
 * hardware queues.
 *
 * Locks. disk->lock guards the set of active groups and their shares. The kernel holds queue_lock
 * and blkcg->lock around the functions of the policy. share/disk.h has the order of all locks.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "share/disk.h"
#include "share/layout.h"
#include "share/resubmit.h"
#include "share/policy.h"
#include "share/share.h"
#include "share/stat.h"
#include "share/weight.h"

/**
 * isoblk_blkg_group() - find the group that a cgroup's bios are charged to
 * @blkg: cgroup on a disk
 *
 * A cgroup that was dying when the elevator came has no group, and is charged to its nearest
 * ancestor that has one.
 *
 * Return: NULL if the disk is not under one of our elevators.
 */
struct isoblk_group *isoblk_blkg_group(struct blkcg_gq *blkg)
{
	while (unlikely(blkg && !blkg_to_pd(blkg, &isoblk_policy)))
		blkg = blkg->parent;
	return isoblk_pd_group(blkg_to_pd(blkg, &isoblk_policy));
}

/**
 * isoblk_bio_group() - find the group that a bio is charged to
 * @bio: bio on a disk under one of our elevators; it pins the group
 */
struct isoblk_group *isoblk_bio_group(struct bio *bio)
{
	return isoblk_blkg_group(bio->bi_blkg ?:
				 bio->bi_bdev->bd_queue->root_blkg);
}
EXPORT_SYMBOL_GPL(isoblk_bio_group);

/* ---- files ------------------------------------------------------------ */

/**
 * isoblk_set_device_conf() - apply "MAJ:MIN TEXT", written to a file of a cgroup
 * @blkcg: cgroup
 * @buf: text written, without surrounding white space
 * @set: applies TEXT to the group of @blkcg on that disk
 *
 * Return: 0 or a negative errno.
 */
int isoblk_set_device_conf(struct blkcg *blkcg, char *buf,
			   int (*set)(struct isoblk_group *group, char *text))
{
	struct blkg_conf_ctx ctx;
	int ret;

	ret = isoblk_conf_prep(blkcg, &isoblk_policy, &ctx, buf);
	if (ret)
		return ret;
	ret = set(isoblk_pd_group(blkg_to_pd(ctx.blkg, &isoblk_policy)),
		  strim(ctx.body));
	isoblk_conf_finish(&ctx);
	return ret;
}

static struct cftype isoblk_files[] = {
	{
		.name = "isoblk.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = isoblk_weight_show,
		.write = isoblk_weight_write,
	},
	{ }
};

static struct cftype isoblk_legacy_files[] = {
	{
		.name = "isoblk.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = isoblk_weight_show,
		.write = isoblk_weight_write,
	},
	{
		.name = "isoblk.io_service_bytes",
		.private = false,
		.seq_show = isoblk_stat_show,
	},
	{
		.name = "isoblk.io_serviced",
		.private = true,
		.seq_show = isoblk_stat_show,
	},
	{ }
};

/* ---- the policy ------------------------------------------------------ */

static struct blkcg_policy_data *isoblk_cpd_alloc(gfp_t gfp)
{
	struct isoblk_cgroup *cgroup = kzalloc(sizeof(*cgroup), gfp);

	if (!cgroup)
		return NULL;
	cgroup->weight = ISOBLK_WEIGHT_DFL;
	return &cgroup->cpd;
}

static void isoblk_cpd_free(struct blkcg_policy_data *cpd)
{
	kfree(container_of(cpd, struct isoblk_cgroup, cpd));
}

static void isoblk_free_group(struct isoblk_group *group)
{
	unsigned int i;

	for (i = 0; i < group->nr_gqs; i++)
		kfree(group->gq[i]);
	kfree(group);
}

static void isoblk_free_group_rcu(struct rcu_head *rcu)
{
	isoblk_free_group(container_of(rcu, struct isoblk_group, rcu));
}

/* Allocate a group without its gqs. */
static struct isoblk_group *isoblk_alloc_group(struct isoblk_disk *disk, gfp_t gfp,
					       int node)
{
	size_t own = ALIGN(disk->ops->own_size, sizeof(void *));
	struct isoblk_group *group;

	group = kzalloc_node(size_add(sizeof(*group) + own,
				      array_size(disk->nr_hqs,
						 sizeof(*group->gq))),
			     gfp, node);
	if (!group)
		return NULL;
	group->disk = disk;
	group->gq = isoblk_group_own(group) + own;
	INIT_LIST_HEAD(&group->active_node);
	return group;
}

static struct isoblk_gq *isoblk_alloc_gq(struct isoblk_group *group,
					 struct isoblk_hq *hq, gfp_t gfp)
{
	struct isoblk_gq *gq;
	unsigned int i;

	gq = kzalloc_node(sizeof(*gq) + group->disk->ops->own_gq_size, gfp,
			  hq->node);
	if (!gq)
		return NULL;
	INIT_LIST_HEAD(&gq->gate.sleepers);
	INIT_LIST_HEAD(&gq->gate.node);
	for (i = 0; i < ISOBLK_NR_CLASSES; i++)
		bio_list_init(&gq->gate.bios[i]);
	gq->group = group;
	gq->hq = hq;
	return gq;
}

static struct blkg_policy_data *
isoblk_pd_alloc(struct gendisk *gendisk, struct blkcg *blkcg, gfp_t gfp)
{
	/* The policy is active on a disk only under one of our elevators. */
	struct isoblk_disk *disk = gendisk->queue->elevator->elevator_data;
	struct isoblk_group *group;
	struct isoblk_gq *gq;

	group = isoblk_alloc_group(disk, gfp, gendisk->node_id);
	if (!group)
		return NULL;
	while (group->nr_gqs < disk->nr_hqs) {
		gq = isoblk_alloc_gq(group, disk->hq[group->nr_gqs], gfp);
		if (!gq) {
			isoblk_free_group(group);
			return NULL;
		}
		group->gq[group->nr_gqs++] = gq;
	}
	disk->ops->group_init(group);
	return &group->pd;
}

static void isoblk_pd_init(struct blkg_policy_data *pd)
{
	struct blkcg_gq *blkg = pd_to_blkg(pd);

	if (blkg->parent)
		isoblk_pd_group(pd)->parent =
			isoblk_pd_group(blkg_to_pd(blkg->parent,
						   &isoblk_policy));
}

/* Called under blkcg->lock with the blkg in the cgroup's list: no new default weight is missed. */
static void isoblk_pd_online(struct blkg_policy_data *pd)
{
	struct isoblk_group *group = isoblk_pd_group(pd);

	isoblk_group_set_weight(group, 0,
				isoblk_blkcg_cgroup(pd->blkg->blkcg)->weight);
}

static void isoblk_pd_free(struct blkg_policy_data *pd)
{
	struct isoblk_group *group = isoblk_pd_group(pd);
	unsigned long flags;

	/*
	 * A group that was active is freed with its blkg or when the elevator leaves, so its disk
	 * exists. A group that the kernel allocated and did not use may outlive the disk.
	 */
	if (group->was_active) {
		spin_lock_irqsave(&group->disk->lock, flags);
		group->disk->ops->group_exit(group);
		if (group->active)
			isoblk_group_del_active(group);
		spin_unlock_irqrestore(&group->disk->lock, flags);
	}
	/* Since 7.2 only RCU protects readers of a cgroup's files. */
	call_rcu(&group->rcu, isoblk_free_group_rcu);
}

struct blkcg_policy isoblk_policy = {
	.dfl_cftypes	= isoblk_files,
	.legacy_cftypes	= isoblk_legacy_files,
	.cpd_alloc_fn	= isoblk_cpd_alloc,
	.cpd_free_fn	= isoblk_cpd_free,
	.pd_alloc_fn	= isoblk_pd_alloc,
	.pd_init_fn	= isoblk_pd_init,
	.pd_online_fn	= isoblk_pd_online,
	.pd_free_fn	= isoblk_pd_free,
	.pd_stat_fn	= isoblk_pd_stat,
};

/* Refuse a kernel whose structures differ, or whose BTF cannot be read. */
static int isoblk_check_layout(void)
{
	const char *differs;
	int ret = isoblk_layout_check(&differs);

	if (ret == -ENOENT) {
		pr_info("the kernel has no type data (BTF): its private structures are not checked\n");
		return 0;
	}
	if (ret) {
		pr_err("the kernel's type data (BTF) cannot be read, error %d: its private structures cannot be checked\n",
		       ret);
		return ret;
	}
	if (!differs)
		return 0;
	pr_err("built with another struct %s than this kernel has: its private headers changed\n",
	       differs);
	return -ENOEXEC;
}

static int __init isoblk_share_init(void)
{
	int ret = isoblk_check_layout();

	if (ret)
		return ret;
	ret = isoblk_resubmit_init();
	if (ret)
		return ret;
	ret = blkcg_policy_register(&isoblk_policy);
	if (ret)
		isoblk_resubmit_exit();
	if (ret == -ENOSPC)
		pr_err("no free policy slot: the kernel has %d, unload bfq to free one\n",
		       BLKCG_MAX_POLS);
	return ret;
}

static void __exit isoblk_share_exit(void)
{
	blkcg_policy_unregister(&isoblk_policy);
	/* Pending isoblk_free_group_rcu() callbacks are code of this module. */
	rcu_barrier();
	isoblk_resubmit_exit();
}

module_init(isoblk_share_init);
module_exit(isoblk_share_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Weights, groups and the admission gate of isoblk's elevators");
