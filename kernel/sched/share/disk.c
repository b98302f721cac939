// SPDX-License-Identifier: GPL-2.0-only
/*
 * A disk under one of our elevators: set-up and teardown, number of tags, sysfs and debugfs.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "share/disk.h"
#include "share/gate.h"
#include "share/resubmit.h"
#include "share/policy.h"
#include "share/quota.h"
#include "share/share.h"

static void isoblk_free_hqs(struct isoblk_disk *disk)
{
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++) {
		if (!disk->hq[i])
			continue;
		isoblk_resubmit_put(disk->hq[i]->resubmit);
		kfree(disk->hq[i]);
	}
	kfree(disk->hq);
}

static struct isoblk_hq *isoblk_alloc_hq(struct isoblk_disk *disk, unsigned int index)
{
	struct isoblk_hq *hq;

	hq = kzalloc_node(sizeof(*hq), GFP_KERNEL, disk->q->node);
	if (!hq)
		return NULL;
	hq->resubmit = isoblk_resubmit_alloc(disk->q->node);
	if (!hq->resubmit) {
		kfree(hq);
		return NULL;
	}
	hq->resubmit->index = index;
	spin_lock_init(&hq->gate.lock);
	INIT_LIST_HEAD(&hq->gate.list);
	hq->disk = disk;
	hq->index = index;
	hq->node = disk->q->node;
	return hq;
}

/* Set up @disk and its hardware queues. On failure there is nothing to undo. */
static int isoblk_init_hqs(struct isoblk_disk *disk, struct request_queue *q,
			   const struct isoblk_ops *ops)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	disk->q = q;
	disk->ops = ops;
	disk->nr_hqs = q->nr_hw_queues;
	disk->shared_tags = blk_mq_is_shared_tags(q->tag_set->flags);
	disk->gate.enabled = true;
	disk->weights.gen = 1;
	spin_lock_init(&disk->lock);
	INIT_LIST_HEAD(&disk->weights.active);

	disk->hq = kcalloc_node(disk->nr_hqs, sizeof(*disk->hq), GFP_KERNEL,
				q->node);
	if (!disk->hq)
		return -ENOMEM;
	for (i = 0; i < disk->nr_hqs; i++) {
		disk->hq[i] = isoblk_alloc_hq(disk, i);
		if (!disk->hq[i]) {
			isoblk_free_hqs(disk);
			return -ENOMEM;
		}
	}
	queue_for_each_hw_ctx(q, hctx, i)
		if (i < disk->nr_hqs)
			disk->hq[i]->node = hctx->numa_node;
	return 0;
}

/* Activate the policy, which allocates a group for each cgroup. On failure nothing to undo. */
static int isoblk_activate_policy(struct isoblk_disk *disk, struct elevator_queue *eq)
{
	struct request_queue *q = disk->q;
	int ret;

	eq->elevator_data = disk;
	/* isoblk_pd_alloc() finds the disk through q->elevator. */
	spin_lock_irq(&q->queue_lock);
	q->elevator = eq;
	spin_unlock_irq(&q->queue_lock);
	ret = blkcg_activate_policy(q->disk, &isoblk_policy);
	if (ret) {
		q->elevator = NULL;
		return ret;
	}
	isoblk_wbt_off(q, eq);
	isoblk_depth_updated(q);
	return 0;
}

static void isoblk_deactivate_policy(struct isoblk_disk *disk, struct elevator_queue *eq)
{
	isoblk_gate_exit(disk);
	blkcg_deactivate_policy(disk->q->disk, &isoblk_policy);
	/* Readers of cgroup files may still use a group, and through it the disk and its ops. */
	synchronize_rcu();
	isoblk_wbt_on(disk->q, eq);
}

/**
 * isoblk_groups_init() - set up a disk, and a group on it for each cgroup
 * @disk: zeroed, first member of the elevator's data
 * @q: the disk's queue, frozen
 * @eq: the elevator's queue; @disk becomes its data
 * @ops: properties and callbacks of the elevator
 *
 * Return: 0 or a negative errno; on failure there is nothing to undo.
 */
int isoblk_groups_init(struct isoblk_disk *disk, struct request_queue *q,
		       struct elevator_queue *eq, const struct isoblk_ops *ops)
{
	int ret = isoblk_init_hqs(disk, q, ops);

	if (ret)
		return ret;
	ret = isoblk_activate_policy(disk, eq);
	if (ret)
		isoblk_free_hqs(disk);
	return ret;
}
EXPORT_SYMBOL_GPL(isoblk_groups_init);

/**
 * isoblk_groups_exit() - undo isoblk_groups_init()
 * @disk: frozen disk, without requests and without sleepers at its gate
 * @eq: the elevator's queue
 */
void isoblk_groups_exit(struct isoblk_disk *disk, struct elevator_queue *eq)
{
	isoblk_deactivate_policy(disk, eq);
	isoblk_free_hqs(disk);
}
EXPORT_SYMBOL_GPL(isoblk_groups_exit);

/**
 * isoblk_init_hctx() - an elevator's init_hctx
 * @hctx: hardware queue
 * @index: index of @hctx
 */
int isoblk_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct isoblk_disk *disk = hctx->queue->elevator->elevator_data;

	disk->hq[index]->hctx = hctx;
	hctx->sched_data = disk->hq[index];
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_init_hctx);

/**
 * isoblk_exit_hctx() - an elevator's exit_hctx
 * @hctx: hardware queue
 * @index: index of @hctx
 *
 * sched_data belongs to the disk and is freed in exit_sched, as a timer may still use it. The
 * kernel clears sched_data only for elevators with exit_hctx. Otherwise the next elevator would
 * free it if its init_hctx fails.
 */
void isoblk_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	hctx->sched_data = NULL;
}
EXPORT_SYMBOL_GPL(isoblk_exit_hctx);

/*
 * The smallest number of tags of a hardware queue. Before 6.19 depth_updated is called for each
 * hardware queue while nr_requests has the old value, so read the tags. The result then grows with
 * the last call, and does not if the kernel has no memory for all hardware queues. Hardware queues
 * without CPUs keep their old tags and do not count.
 */
static unsigned int isoblk_min_tags(struct request_queue *q)
{
	unsigned int least = UINT_MAX;
	struct blk_mq_hw_ctx *hctx;
	struct blk_mq_tags *tags;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i) {
		tags = hctx->sched_tags;
		if (hctx->tags && tags)
			least = min(least, tags->bitmap_tags.sb.depth +
				    tags->nr_reserved_tags);
	}
	return least == UINT_MAX ? q->nr_requests : least;
}

/**
 * isoblk_depth_updated() - an elevator's depth_updated: nr_requests changes
 * @q: frozen queue: no tag is allocated
 */
void isoblk_depth_updated(struct request_queue *q)
{
	struct isoblk_disk *disk = q->elevator->elevator_data;

	spin_lock_irq(&disk->lock);
	WRITE_ONCE(disk->tags, isoblk_min_tags(q));
	isoblk_update_quotas(disk);
	spin_unlock_irq(&disk->lock);
}
EXPORT_SYMBOL_GPL(isoblk_depth_updated);

/**
 * isoblk_set_min_shallow_depth() - set the smallest depth that limit_depth uses
 * @q: frozen queue with its current tags
 * @depth: minimum of data->shallow_depth
 *
 * For each depth_updated: newly allocated tags have the default.
 */
void isoblk_set_min_shallow_depth(struct request_queue *q, unsigned int depth)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		if (hctx->sched_tags)
			sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags,
							depth);
}
EXPORT_SYMBOL_GPL(isoblk_set_min_shallow_depth);

/* ---- sysfs ----------------------------------------------------------- */

ssize_t isoblk_gate_show(struct elevator_queue *e, char *page)
{
	struct isoblk_disk *disk = e->elevator_data;

	return sysfs_emit(page, "%d\n", READ_ONCE(disk->gate.enabled));
}
EXPORT_SYMBOL_GPL(isoblk_gate_show);

ssize_t isoblk_gate_store(struct elevator_queue *e, const char *page,
			  size_t count)
{
	struct isoblk_disk *disk = e->elevator_data;

	return isoblk_store_bool(page, count, &disk->gate.enabled);
}
EXPORT_SYMBOL_GPL(isoblk_gate_store);

/* ---- debugfs --------------------------------------------------------- */

#ifdef CONFIG_BLK_DEBUG_FS
/**
 * isoblk_show_begin() - begin to read a debugfs file of an elevator
 * @q: disk's queue
 * @show: show function of the file
 *
 * Return: the elevator's data, which stays until isoblk_show_end(); NULL if the disk has another
 * elevator by now, without this file.
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

/**
 * isoblk_group_nr_waiting() - number of a group's held bios and sleepers
 * @group: the group
 */
unsigned int isoblk_group_nr_waiting(const struct isoblk_group *group)
{
	unsigned int i, nr = 0;

	for (i = 0; i < group->disk->nr_hqs; i++)
		nr += isoblk_gate_nr_waiting(group->gq[i]);
	return nr;
}
EXPORT_SYMBOL_GPL(isoblk_group_nr_waiting);

/**
 * isoblk_show_group() - print the begin of a group's line: path, weight and share
 * @m: debugfs file
 * @group: group; its disk's lock is held
 */
void isoblk_show_group(struct seq_file *m, struct isoblk_group *group)
{
	char path[128];

	cgroup_path(group->pd.blkg->blkcg->css.cgroup, path, sizeof(path));
	seq_printf(m, "%s weight %u share_ppm %llu", path, group->weight,
		   (u64)isoblk_group_share(group) * 1000000 >>
		   ISOBLK_SHARE_SHIFT);
}
EXPORT_SYMBOL_GPL(isoblk_show_group);

/* debugfs file gate: groups with waiters, bios in transit, admitted tasks, missed wake-ups. */
int isoblk_debugfs_gate(void *data, struct seq_file *m)
{
	struct isoblk_disk *disk = isoblk_show_begin(data, isoblk_debugfs_gate);
	unsigned int i, nr = 0, nr_in_transit = 0, nr_entering = 0, nr_rescues = 0;

	if (!disk)
		return 0;
	for (i = 0; i < disk->nr_hqs; i++) {
		const struct isoblk_hq_gate *gate = &disk->hq[i]->gate;

		nr += READ_ONCE(gate->nr_groups);
		nr_in_transit += READ_ONCE(gate->nr_in_transit);
		nr_entering += READ_ONCE(gate->nr_entering);
		nr_rescues += READ_ONCE(gate->nr_rescues);
	}
	seq_printf(m, "groups %u passing %u entering %u rechecks %u\n", nr,
		   nr_in_transit, nr_entering, nr_rescues);
	isoblk_show_end(data);
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_debugfs_gate);
#endif
