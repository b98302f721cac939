// SPDX-License-Identifier: GPL-2.0-only
/*
 * isoblk_share: what our elevators have in common.
 *
 * Weights, a cgroup's part of a disk, the gate in front of the tags (gate.c), and the core
 * (core.c) that three of our elevators are made of.
 *
 * This file has the one blkcg policy behind all that (a kernel has room for
 * six, and a stock kernel uses five): the weights, and the share that follows
 * from them.
 *
 * A group's share is the product of weight fractions along its path, each
 * taken among *active* siblings, that is those with requests in themselves or
 * below, now or a tenth of a second ago. The requests of a group that has
 * active children count as one more child, of the default weight. Shares
 * are computed again only when the active set or a weight has changed, when somebody
 * asks.
 *
 * Lifetime. A group that takes part holds its blkg, says the elevator, or each of its
 * requests does, from insertion to the end (its bio may be gone before the request
 * is); and the kernel frees our part only with the blkg, or when the elevator is switched
 * off, with the queue frozen and so without requests. A parent outlives its
 * children: the kernel holds a reference for each.
 *
 * Memory. A group is allocated while its first bio waits, where nobody may sleep, and
 * one that finds no memory is charged to its parent. So each hardware queue's
 * part of it is an allocation of its own, on that queue's node. The largest is then
 * the group's array of pointers to them: a page, if there are 400.
 *
 * An elevator with queues of its own (cfq) uses this file and the gate alone.
 *
 * Locks: disk->lock is taken when a group takes part, leaves, or asks for its share, and
 * inside any lock of an elevator. queue_lock and blkcg->lock, which the kernel holds
 * around the functions of the policy, are outside disk->lock; running a
 * hardware queue may take queue_lock, so it is never done under disk->lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "isoblk_share.h"

/* A group's requests beside its active children's: as one that was not set. */
#define OWN_WEIGHT	ISOBLK_WEIGHT_DFL

struct isoblk_cgroup {
	struct blkcg_policy_data cpd;
	u32 weight;		/* blkcg->lock, read without to show it */
};

static struct isoblk_cgroup *blkcg_to_isoblk(struct blkcg *blkcg)
{
	return container_of(blkcg_to_cpd(blkcg, &isoblk_policy),
			    struct isoblk_cgroup, cpd);
}

static struct isoblk_group *pd_to_group(struct blkg_policy_data *pd)
{
	return pd ? container_of(pd, struct isoblk_group, pd) : NULL;
}

/**
 * isoblk_bio_group() - the group that a bio is charged to
 * @bio: on a disk under one of our elevators; it holds the group
 */
struct isoblk_group *isoblk_bio_group(struct bio *bio)
{
	struct blkcg_gq *blkg = bio->bi_blkg;

	if (!blkg)
		blkg = bio->bi_bdev->bd_queue->root_blkg;
	/*
	 * A cgroup that was on its way out when the elevator came has no part of
	 * ours; its parent has, at the latest the root.
	 */
	while (unlikely(!blkg_to_pd(blkg, &isoblk_policy)))
		blkg = blkg->parent;
	return pd_to_group(blkg_to_pd(blkg, &isoblk_policy));
}
EXPORT_SYMBOL_GPL(isoblk_bio_group);

/* ---- shares ---------------------------------------------------------- */

/* Something in @group becomes active that weighs @weight among its like. */
static void group_join(struct isoblk_group *group, u32 weight)
{
	for (; group; group = group->parent) {
		group->sum += weight;
		if (group->nr_active++)
			break;
		weight = group->weight;
	}
}

static void group_leave(struct isoblk_group *group, u32 weight)
{
	for (; group; group = group->parent) {
		group->sum -= weight;
		if (--group->nr_active)
			break;
		weight = group->weight;
	}
}

/* Bring the shares of @group and of its ancestors up to date. */
static void update_share(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;
	u64 gen = disk->weights_gen;
	struct isoblk_group *top;

	lockdep_assert_held(&disk->lock);

	/* From above: a share is a part of the parent's. */
	while (group->share_gen != gen) {
		top = group;
		while (top->parent && top->parent->share_gen != gen)
			top = top->parent;
		top->subtree_share = ISOBLK_SHARE_ONE;
		if (top->parent)
			top->subtree_share =
				div_u64((u64)top->parent->subtree_share *
					top->weight, top->parent->sum);
		top->share_gen = gen;
	}
	WRITE_ONCE(group->share, max_t(u32, 1,
				       div_u64((u64)group->subtree_share *
					       OWN_WEIGHT, group->sum)));
}

/* From now on the requests of @group have a share. */
static void take_part(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;

	lockdep_assert_held(&disk->lock);

	group_join(group, OWN_WEIGHT);
	list_add_tail(&group->active_node, &disk->active);
	WRITE_ONCE(disk->nr_active, disk->nr_active + 1);
	group->was_active = true;
	WRITE_ONCE(disk->weights_gen, disk->weights_gen + 1);
}

static void leave(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;

	lockdep_assert_held(&disk->lock);

	list_del_init(&group->active_node);
	WRITE_ONCE(disk->nr_active, disk->nr_active - 1);
	group_leave(group, OWN_WEIGHT);
	WRITE_ONCE(disk->weights_gen, disk->weights_gen + 1);
}

/**
 * isoblk_join() - a group has requests, says an elevator with its own queues
 * @group: has none so far; its disk's lock is held
 */
void isoblk_join(struct isoblk_group *group)
{
	take_part(group);
	group->active = true;
	isoblk_gate_update(group->disk);
}
EXPORT_SYMBOL_GPL(isoblk_join);

/**
 * isoblk_leave() - a group that joined has no more requests
 * @group: its disk's lock is held
 */
void isoblk_leave(struct isoblk_group *group)
{
	group->active = false;
	leave(group);
	isoblk_gate_update(group->disk);
}
EXPORT_SYMBOL_GPL(isoblk_leave);

/**
 * isoblk_group_share() - what part of the device is a group's
 * @group: has joined; its disk's lock is held
 *
 * Return: of ISOBLK_SHARE_ONE, 1 at least.
 */
u32 isoblk_group_share(struct isoblk_group *group)
{
	update_share(group);
	return group->share;
}
EXPORT_SYMBOL_GPL(isoblk_group_share);

/**
 * isoblk_group_holds() - whether a request of a group has a tag
 * @group: the group
 */
bool isoblk_group_holds(const struct isoblk_group *group)
{
	unsigned int i;

	for (i = 0; i < group->disk->nr_hqs; i++)
		if (atomic_read(&group->gq[i]->held))
			return true;
	return false;
}
EXPORT_SYMBOL_GPL(isoblk_group_holds);

/* @dev_weight: of this device, 0: none; @weight: of the cgroup otherwise */
static void group_set_weight(struct isoblk_group *group, u32 dev_weight,
			     u32 weight)
{
	struct isoblk_disk *disk = group->disk;
	unsigned long flags;

	spin_lock_irqsave(&disk->lock, flags);
	group->dev_weight = dev_weight;
	if (dev_weight)
		weight = dev_weight;
	if (group->parent && group->nr_active)
		group->parent->sum += weight - group->weight;
	group->weight = weight;
	WRITE_ONCE(disk->weights_gen, disk->weights_gen + 1);
	spin_unlock_irqrestore(&disk->lock, flags);
}

/* ---- figures --------------------------------------------------------- */

/**
 * isoblk_group_bytes() - what a group was charged
 * @group: the group
 * @op: kind of request
 */
u64 isoblk_group_bytes(const struct isoblk_group *group, enum isoblk_op op)
{
	u64 bytes = atomic64_read(&group->late_bytes[op]);
	unsigned int i;

	for (i = 0; i < group->disk->nr_hqs; i++)
		bytes += READ_ONCE(group->gq[i]->bytes[op]);
	return bytes;
}

/**
 * isoblk_group_ios() - how many requests a group was charged
 * @group: the group
 * @op: kind of request
 */
u64 isoblk_group_ios(const struct isoblk_group *group, enum isoblk_op op)
{
	u64 ios = atomic64_read(&group->late_ios[op]);
	unsigned int i;

	for (i = 0; i < group->disk->nr_hqs; i++)
		ios += READ_ONCE(group->gq[i]->ios[op]);
	return ios;
}

static void isoblk_pd_stat(struct blkg_policy_data *pd, struct seq_file *s)
{
	struct isoblk_group *group = pd_to_group(pd);
	u64 used = 0;
	int op;

	for (op = 0; op < ISOBLK_NR_OPS; op++)
		used += isoblk_group_bytes(group, op);
	seq_printf(s, " isoblk.used=%llu", used);
	group->disk->ops->stat(group, s);
}

/* cgroup v1 has no io.stat: the same in the form of its own files. */
static u64 prfill_legacy(struct seq_file *sf, struct blkg_policy_data *pd,
			 int ios)
{
	static const char *const name[ISOBLK_NR_OPS] = {
		[ISOBLK_READ] = "Read",
		[ISOBLK_WRITE] = "Write",
		[ISOBLK_DISCARD] = "Discard",
	};
	struct isoblk_group *group = pd_to_group(pd);
	struct gendisk *disk = group->disk->q->disk;
	u64 value, total = 0;
	int op;

	for (op = 0; op < ISOBLK_NR_OPS; op++) {
		value = ios ? isoblk_group_ios(group, op) :
			isoblk_group_bytes(group, op);
		seq_printf(sf, "%d:%d %s %llu\n", disk->major,
			   disk->first_minor, name[op], value);
		total += value;
	}
	seq_printf(sf, "%d:%d Total %llu\n", disk->major, disk->first_minor,
		   total);
	return total;
}

static int isoblk_stat_show(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), prfill_legacy,
			  &isoblk_policy, seq_cft(sf)->private, true);
	return 0;
}

/* ---- weights --------------------------------------------------------- */

static u64 prfill_weight(struct seq_file *sf, struct blkg_policy_data *pd,
			 int off)
{
	struct isoblk_group *group = pd_to_group(pd);
	struct gendisk *disk = group->disk->q->disk;

	if (group->dev_weight)
		seq_printf(sf, "%d:%d %u\n", disk->major, disk->first_minor,
			   group->dev_weight);
	return 0;
}

static int isoblk_weight_show(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf));

	seq_printf(sf, "default %u\n",
		   READ_ONCE(blkcg_to_isoblk(blkcg)->weight));
	blkcg_print_blkgs(sf, blkcg, prfill_weight, &isoblk_policy, 0, false);
	return 0;
}

static int parse_weight(const char *text, u32 *weight)
{
	int ret = kstrtou32(text, 10, weight);

	if (ret)
		return ret;
	if (*weight < ISOBLK_WEIGHT_MIN || *weight > ISOBLK_WEIGHT_MAX)
		return -ERANGE;
	return 0;
}

/* group_set_weight() while the disk is in use. */
static void change_weight(struct isoblk_group *group, u32 dev_weight,
			  u32 weight)
{
	const struct isoblk_ops *ops = group->disk->ops;

	group_set_weight(group, dev_weight, weight);
	if (ops->weight_changed)
		ops->weight_changed(group);
}

static void set_default_weight(struct blkcg *blkcg, u32 weight)
{
	struct isoblk_group *group;
	struct blkcg_gq *blkg;

	spin_lock_irq(&blkcg->lock);
	WRITE_ONCE(blkcg_to_isoblk(blkcg)->weight, weight);
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
		group = pd_to_group(blkg_to_pd(blkg, &isoblk_policy));
		if (group)
			change_weight(group, group->dev_weight, weight);
	}
	spin_unlock_irq(&blkcg->lock);
}

/**
 * isoblk_set_on_disk() - "MAJ:MIN TEXT" was written to a file of a cgroup
 * @blkcg: cgroup
 * @buf: what was written, without white space around it
 * @set: sets what TEXT says on the group of @blkcg on that disk
 *
 * Return: 0 or a negative errno.
 */
int isoblk_set_on_disk(struct blkcg *blkcg, char *buf,
		       int (*set)(struct isoblk_group *group, char *text))
{
	struct blkg_conf_ctx ctx;
	int ret;

	ret = isoblk_conf_prep(blkcg, &isoblk_policy, &ctx, buf);
	if (ret)
		return ret;
	ret = set(pd_to_group(blkg_to_pd(ctx.blkg, &isoblk_policy)),
		  strim(ctx.body));
	isoblk_conf_finish(&ctx);
	return ret;
}

/* A weight of a disk, or "default" to follow the cgroup's again. */
static int set_device_weight(struct isoblk_group *group, char *text)
{
	struct blkcg *blkcg = group->pd.blkg->blkcg;
	u32 weight = 0;
	int ret = 0;

	if (strcmp(text, "default"))
		ret = parse_weight(text, &weight);
	if (ret)
		return ret;
	spin_lock(&blkcg->lock);
	change_weight(group, weight, blkcg_to_isoblk(blkcg)->weight);
	spin_unlock(&blkcg->lock);
	return 0;
}

/* "WEIGHT" and "default WEIGHT" are for all devices without their own. */
static ssize_t isoblk_weight_write(struct kernfs_open_file *of, char *buf,
				   size_t nbytes, loff_t off)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	const char *text;
	u32 weight;
	int ret;

	buf = strim(buf);
	if (strchr(buf, ':')) {
		ret = isoblk_set_on_disk(blkcg, buf, set_device_weight);
		return ret ?: nbytes;
	}

	text = buf;
	if (str_has_prefix(buf, "default") && isspace(buf[strlen("default")]))
		text = skip_spaces(buf + strlen("default"));
	ret = parse_weight(text, &weight);
	if (ret)
		return ret;
	set_default_weight(blkcg, weight);
	return nbytes;
}

static struct cftype isoblk_files[] = {
	{
		.name = "isoblk.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = isoblk_weight_show,
		.write = isoblk_weight_write,
	},
	{
		.name = "isoblk.latency",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = isoblk_target_show,
		.write = isoblk_target_write,
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
		.name = "isoblk.latency",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = isoblk_target_show,
		.write = isoblk_target_write,
	},
	{
		.name = "isoblk.latency_stat",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = isoblk_target_stat_show,
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

static void free_group(struct isoblk_group *group)
{
	unsigned int i;

	for (i = 0; i < group->nr_gqs; i++)
		kfree(group->gq[i]);
	kfree(group);
}

/* Without the hardware queues' parts. */
static struct isoblk_group *alloc_group(struct isoblk_disk *disk, gfp_t gfp,
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

static struct isoblk_gq *alloc_gq(struct isoblk_group *group,
				  struct isoblk_hq *hq, gfp_t gfp)
{
	struct isoblk_gq *gq;

	gq = kzalloc_node(sizeof(*gq) + group->disk->ops->own_gq_size, gfp,
			  hq->node);
	if (!gq)
		return NULL;
	init_waitqueue_head(&gq->gate);
	INIT_LIST_HEAD(&gq->gate_node);
	bio_list_init(&gq->bios);
	gq->group = group;
	gq->hq = hq;
	return gq;
}

static struct blkg_policy_data *
isoblk_pd_alloc(struct gendisk *gendisk, struct blkcg *blkcg, gfp_t gfp)
{
	/* The policy is in use on a disk only under one of our elevators. */
	struct isoblk_disk *disk = gendisk->queue->elevator->elevator_data;
	struct isoblk_group *group;
	struct isoblk_gq *gq;

	group = alloc_group(disk, gfp, gendisk->node_id);
	if (!group)
		return NULL;
	while (group->nr_gqs < disk->nr_hqs) {
		gq = alloc_gq(group, disk->hq[group->nr_gqs], gfp);
		if (!gq) {
			free_group(group);
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
		pd_to_group(pd)->parent =
			pd_to_group(blkg_to_pd(blkg->parent, &isoblk_policy));
}

/* Under blkcg->lock, and in the cgroup's list: no new default is missed. */
static void isoblk_pd_online(struct blkg_policy_data *pd)
{
	struct isoblk_group *group = pd_to_group(pd);

	group_set_weight(group, 0, blkcg_to_isoblk(pd->blkg->blkcg)->weight);
}

/* The disk is still there, and nobody finds the group any longer. */
static void isoblk_pd_offline(struct blkg_policy_data *pd)
{
	struct isoblk_group *group = pd_to_group(pd);

	if (group->disk->ops->set_target)
		group->disk->ops->set_target(group, 0);
}

static void isoblk_pd_free(struct blkg_policy_data *pd)
{
	struct isoblk_group *group = pd_to_group(pd);
	unsigned long flags;

	/*
	 * The disk is there for one that was active: it is freed with its blkg,
	 * or when the elevator goes. One that the kernel allocated and had no use
	 * for may come here later.
	 */
	if (group->was_active) {
		spin_lock_irqsave(&group->disk->lock, flags);
		group->disk->ops->group_exit(group);
		if (group->active)
			leave(group);
		spin_unlock_irqrestore(&group->disk->lock, flags);
	}
	free_group(group);
}

struct blkcg_policy isoblk_policy = {
	.dfl_cftypes	= isoblk_files,
	.legacy_cftypes	= isoblk_legacy_files,
	.cpd_alloc_fn	= isoblk_cpd_alloc,
	.cpd_free_fn	= isoblk_cpd_free,
	.pd_alloc_fn	= isoblk_pd_alloc,
	.pd_init_fn	= isoblk_pd_init,
	.pd_online_fn	= isoblk_pd_online,
	.pd_offline_fn	= isoblk_pd_offline,
	.pd_free_fn	= isoblk_pd_free,
	.pd_stat_fn	= isoblk_pd_stat,
};

#ifdef CONFIG_BLK_DEBUG_FS
/**
 * isoblk_show_begin() - a file in debugfs is read
 * @q: disk's queue
 * @show: of the file
 *
 * Return: data of the elevator that is there, which stays until isoblk_show_end(); or NULL
 * if it has no such file, for it is another by now.
 */
void *isoblk_show_begin(struct request_queue *q,
			int (*show)(void *data, struct seq_file *m))
{
	const struct blk_mq_debugfs_attr *attr = NULL;

	isoblk_show_lock(q);
	if (q->elevator)
		attr = q->elevator->type->queue_debugfs_attrs;
	for (; attr && attr->name; attr++)
		if (attr->show == show)
			return q->elevator->elevator_data;
	isoblk_show_end(q);
	return NULL;
}
EXPORT_SYMBOL_GPL(isoblk_show_begin);
#endif

static int __init isoblk_share_init(void)
{
	int ret = isoblk_outlet_init();

	if (ret)
		return ret;
	ret = blkcg_policy_register(&isoblk_policy);
	if (ret)
		isoblk_outlet_exit();
	if (ret == -ENOSPC)
		pr_err("no free policy slot: the kernel has %d, unload bfq to free one\n",
		       BLKCG_MAX_POLS);
	return ret;
}

static void __exit isoblk_share_exit(void)
{
	blkcg_policy_unregister(&isoblk_policy);
	isoblk_outlet_exit();
}

module_init(isoblk_share_init);
module_exit(isoblk_share_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Weights, groups and the admission gate of isoblk's elevators");
