// SPDX-License-Identifier: GPL-2.0-only
/*
 * A disk under one of our elevators: from init_sched to exit_sched, the timer in
 * between, and what every elevator shows in sysfs and debugfs.
 *
 * The timer ticks while a group is active. It finds groups that have become
 * idle, has the depth judged, and makes the refill that is due after refill_ns
 * at the latest.
 */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "isoblk_share.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Until a request has been seen: as many sectors as one of 4 KiB. */
#define FIRST_MEAN_SECTORS	8

/* A refill comes at the latest after this, as in P3. */
#define DEFAULT_REFILL_NS	(100ULL * NSEC_PER_MSEC)

/* The first round, before a rate is known: requests a group. */
#define FIRST_REQUESTS		16

/**
 * isoblk_sectors() - what has been charged
 * @disk: disk
 */
u64 isoblk_sectors(const struct isoblk_disk *disk)
{
	u64 sectors = 0;
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++)
		sectors += READ_ONCE(disk->hq[i]->sectors);
	return sectors;
}
EXPORT_SYMBOL_GPL(isoblk_sectors);

/**
 * isoblk_rate_round() - sectors that are used in an interval
 * @disk: its lock is held
 * @interval_ns: length
 *
 * By the rate of the last tick: the time between two refills may be so short
 * that a rate taken from it means nothing. Before one is known a guess.
 */
u64 isoblk_rate_round(const struct isoblk_disk *disk, u64 interval_ns)
{
	if (!disk->rate)
		return disk->mean_sectors * FIRST_REQUESTS * disk->nr_active;
	return mul_u64_u64_div_u64(disk->rate, interval_ns, NSEC_PER_SEC);
}
EXPORT_SYMBOL_GPL(isoblk_rate_round);

/* What is measured over a whole tick; one that comes late tells nothing. */
static void measure_rate(struct isoblk_disk *disk, u64 now)
{
	u64 sectors = isoblk_sectors(disk), span_ns = now - disk->rate_ns;

	if (span_ns < 4 * jiffies_to_nsecs(ISOBLK_TICK) &&
	    sectors != disk->rate_sectors)
		disk->rate = mul_u64_u64_div_u64(sectors - disk->rate_sectors,
						 NSEC_PER_SEC, span_ns);
	disk->rate_ns = now;
	disk->rate_sectors = sectors;
}

static bool any_throttled(const struct isoblk_disk *disk)
{
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++)
		if (READ_ONCE(disk->hq[i]->nr_throttled))
			return true;
	return false;
}

static void isoblk_tick(struct timer_list *t)
{
	struct isoblk_disk *disk = timer_container_of(disk, t, timer);
	u64 now = ktime_get_ns();
	bool refilled = false, again;
	unsigned long flags;

	WRITE_ONCE(disk->used, false);

	spin_lock_irqsave(&disk->lock, flags);
	if (now - disk->scanned_ns >= ISOBLK_IDLE_SCAN) {
		isoblk_find_idle(disk);
		disk->scanned_ns = now;
	}
	isoblk_update_shares(disk);
	measure_rate(disk, now);
	isoblk_measure_busy(disk);
	isoblk_gate_tick(disk);
	if (disk->ops->tick)
		disk->ops->tick(disk, now);
	isoblk_depth_tick(disk, now);
	if (now - disk->refilled_ns >= disk->refill_ns &&
	    (disk->paper_mode || any_throttled(disk))) {
		isoblk_refill(disk, 1);
		refilled = true;
	}
	again = disk->nr_active;
	spin_unlock_irqrestore(&disk->lock, flags);

	isoblk_depth_run(disk);
	if (refilled)
		isoblk_run_throttled(disk, NULL);
	if (again || READ_ONCE(disk->used))
		mod_timer(&disk->timer, jiffies + ISOBLK_TICK);
}

static void free_hqs(struct isoblk_disk *disk)
{
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++) {
		if (!disk->hq[i])
			continue;
		isoblk_outlet_leave(disk->hq[i]->outlet);
		kfree(disk->hq[i]);
	}
	kfree(disk->hq);
}

static struct isoblk_hq *alloc_hq(struct isoblk_disk *disk, unsigned int index)
{
	struct isoblk_hq *hq;
	unsigned int d;

	hq = kzalloc_node(sizeof(*hq), GFP_KERNEL, disk->q->node);
	if (!hq)
		return NULL;
	hq->outlet = isoblk_outlet_alloc(disk);
	if (!hq->outlet) {
		kfree(hq);
		return NULL;
	}
	hq->outlet->index = index;
	spin_lock_init(&hq->lock);
	spin_lock_init(&hq->gate_lock);
	for (d = 0; d < ISOBLK_MAX_DOMAINS; d++) {
		INIT_LIST_HEAD(&hq->fresh[d]);
		INIT_LIST_HEAD(&hq->ready[d]);
	}
	INIT_LIST_HEAD(&hq->throttled);
	INIT_LIST_HEAD(&hq->gate_list);
	hq->disk = disk;
	hq->index = index;
	return hq;
}

/* What the gate and groups need; without free_hqs() to undo if it fails. */
static int init_hqs(struct isoblk_disk *disk, struct request_queue *q,
		    const struct isoblk_ops *ops)
{
	unsigned int i;

	disk->q = q;
	disk->ops = ops;
	disk->nr_hqs = q->nr_hw_queues;
	disk->shared_tags = blk_mq_is_shared_tags(q->tag_set->flags);
	disk->gate_on = true;
	disk->weights_gen = 1;
	spin_lock_init(&disk->lock);
	INIT_LIST_HEAD(&disk->active);

	disk->hq = kcalloc_node(disk->nr_hqs, sizeof(*disk->hq), GFP_KERNEL,
				q->node);
	if (!disk->hq)
		return -ENOMEM;
	for (i = 0; i < disk->nr_hqs; i++) {
		disk->hq[i] = alloc_hq(disk, i);
		if (!disk->hq[i]) {
			free_hqs(disk);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Let cgroups have their parts of @disk; nothing is left to undo if it fails. */
static int join_policy(struct isoblk_disk *disk, struct elevator_queue *eq)
{
	struct request_queue *q = disk->q;
	int ret;

	eq->elevator_data = disk;
	/* The policy finds us by it, from here on. */
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

static void leave_policy(struct isoblk_disk *disk, struct elevator_queue *eq)
{
	isoblk_gate_exit(disk);
	blkcg_deactivate_policy(disk->q->disk, &isoblk_policy);
	isoblk_wbt_on(disk->q, eq);
}

/**
 * isoblk_groups_init() - let cgroups have their parts of a disk
 * @disk: zeroed, part of the elevator's own data
 * @q: frozen
 * @eq: the elevator's; @disk becomes its data
 * @ops: what the elevator does its own way
 *
 * For an elevator that has queues of its own: groups, shares and the gate.
 *
 * Return: 0 or a negative errno; then nothing is left to undo.
 */
int isoblk_groups_init(struct isoblk_disk *disk, struct request_queue *q,
		       struct elevator_queue *eq, const struct isoblk_ops *ops)
{
	int ret = init_hqs(disk, q, ops);

	if (ret)
		return ret;
	ret = join_policy(disk, eq);
	if (ret)
		free_hqs(disk);
	return ret;
}
EXPORT_SYMBOL_GPL(isoblk_groups_init);

/**
 * isoblk_groups_exit() - undo isoblk_groups_init()
 * @disk: no request is in flight, nobody waits
 * @eq: the elevator's
 */
void isoblk_groups_exit(struct isoblk_disk *disk, struct elevator_queue *eq)
{
	leave_policy(disk, eq);
	free_hqs(disk);
}
EXPORT_SYMBOL_GPL(isoblk_groups_exit);

/**
 * isoblk_disk_init() - the common part of an elevator's init_sched
 * @disk: zeroed, part of the elevator's own data
 * @q: frozen
 * @eq: the elevator's; @disk becomes its data
 * @ops: what the elevator does its own way
 *
 * Return: 0 or a negative errno; then nothing is left to undo.
 */
int isoblk_disk_init(struct isoblk_disk *disk, struct request_queue *q,
		     struct elevator_queue *eq, const struct isoblk_ops *ops)
{
	int ret;

	disk->write_cost = 100;
	disk->refill_ns = DEFAULT_REFILL_NS;
	disk->mean_sectors = FIRST_MEAN_SECTORS;
	disk->busy_share = ISOBLK_SHARE_ONE;
	disk->lightest_share = ISOBLK_SHARE_ONE;
	disk->gen = 1;
	disk->refilled_ns = ktime_get_ns();
	disk->scanned_ns = disk->refilled_ns;
	timer_setup(&disk->timer, isoblk_tick, 0);

	ret = init_hqs(disk, q, ops);
	if (ret)
		return ret;
	ret = isoblk_depth_init(disk);
	if (ret)
		goto free_hqs;
	ret = join_policy(disk, eq);
	if (ret)
		goto exit_depth;

	/* One hardware queue after another is not asked: each has its own. */
	blk_queue_flag_clear(QUEUE_FLAG_SQ_SCHED, q);
	blk_stat_enable_accounting(q);
	return 0;

exit_depth:
	isoblk_depth_exit(disk);
free_hqs:
	free_hqs(disk);
	return ret;
}
EXPORT_SYMBOL_GPL(isoblk_disk_init);

/**
 * isoblk_disk_exit() - the common part of an elevator's exit_sched
 * @disk: no request is in flight, nobody waits
 * @eq: the elevator's
 */
void isoblk_disk_exit(struct isoblk_disk *disk, struct elevator_queue *eq)
{
	timer_shutdown_sync(&disk->timer);
	blk_stat_disable_accounting(disk->q);
	leave_policy(disk, eq);
	isoblk_depth_exit(disk);
	free_hqs(disk);
}
EXPORT_SYMBOL_GPL(isoblk_disk_exit);

/**
 * isoblk_set_paper_mode() - as the papers have it, or better
 * @disk: disk
 * @on: wait until all active groups are without budget; the device gets all
 */
void isoblk_set_paper_mode(struct isoblk_disk *disk, bool on)
{
	spin_lock_irq(&disk->lock);
	if (disk->paper_mode != on) {
		WRITE_ONCE(disk->paper_mode, on);
		isoblk_depth_restart(disk);
	}
	spin_unlock_irq(&disk->lock);
	isoblk_depth_run(disk);
	isoblk_run_throttled(disk, NULL);
}
EXPORT_SYMBOL_GPL(isoblk_set_paper_mode);

/**
 * isoblk_init_hctx() - an elevator's init_hctx
 * @hctx: hardware queue
 * @index: of it
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
 * @index: of it
 *
 * What @hctx points to goes with the disk, in exit_sched, which the timer
 * may still use. The kernel forgets the pointer itself, but only for an
 * elevator that has this function: else the next one is given ours to free, when
 * its own init_hctx fails.
 */
void isoblk_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	hctx->sched_data = NULL;
}
EXPORT_SYMBOL_GPL(isoblk_exit_hctx);

/*
 * How many tags a hardware queue has, that which has fewest. Before 6.19 this is
 * asked once a hardware queue, while nr_requests still has the old number: it
 * grows with the last of them, and stays as it was if the kernel has no memory
 * for all. A hardware queue without CPUs keeps the tags that it had.
 */
static unsigned int least_tags(struct request_queue *q)
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
 * @q: frozen, so that nobody asks for a tag
 */
void isoblk_depth_updated(struct request_queue *q)
{
	struct isoblk_disk *disk = q->elevator->elevator_data;

	spin_lock_irq(&disk->lock);
	WRITE_ONCE(disk->tags, least_tags(q));
	isoblk_gate_update(disk);
	spin_unlock_irq(&disk->lock);
}
EXPORT_SYMBOL_GPL(isoblk_depth_updated);

/**
 * isoblk_set_shallow() - say how few tags limit_depth may allow
 * @q: frozen; tags are there, and may be freed as soon as it is not frozen
 * @depth: the least of what limit_depth sets
 *
 * For depth_updated, whenever it comes: tags that the kernel has just made
 * know nothing of what was said to the former ones.
 */
void isoblk_set_shallow(struct request_queue *q, unsigned int depth)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		if (hctx->sched_tags)
			sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags,
							depth);
}
EXPORT_SYMBOL_GPL(isoblk_set_shallow);

/* ---- sysfs ----------------------------------------------------------- */

ssize_t isoblk_depth_show(struct elevator_queue *e, char *page)
{
	struct isoblk_disk *disk = e->elevator_data;
	int mode = READ_ONCE(disk->depth.mode);

	if (mode > 0)
		return sysfs_emit(page, "%d\n", mode);
	return sysfs_emit(page, mode ? "off\n" : "auto\n");
}
EXPORT_SYMBOL_GPL(isoblk_depth_show);

ssize_t isoblk_depth_store(struct elevator_queue *e, const char *page,
			   size_t count)
{
	struct isoblk_disk *disk = e->elevator_data;
	int mode, ret;

	if (sysfs_streq(page, "auto")) {
		mode = 0;
	} else if (sysfs_streq(page, "off")) {
		mode = -1;
	} else {
		ret = kstrtoint(page, 10, &mode);
		if (ret)
			return ret;
		if (mode < 1)
			return -ERANGE;
	}

	spin_lock_irq(&disk->lock);
	disk->depth.mode = mode;
	isoblk_depth_restart(disk);
	spin_unlock_irq(&disk->lock);
	isoblk_depth_run(disk);
	return count;
}
EXPORT_SYMBOL_GPL(isoblk_depth_store);

ssize_t isoblk_depth_loss_show(struct elevator_queue *e, char *page)
{
	struct isoblk_disk *disk = e->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(disk->depth.loss_permille));
}
EXPORT_SYMBOL_GPL(isoblk_depth_loss_show);

ssize_t isoblk_depth_loss_store(struct elevator_queue *e, const char *page,
				size_t count)
{
	struct isoblk_disk *disk = e->elevator_data;

	return isoblk_store_uint(page, count, &disk->depth.loss_permille, 0,
				 1000);
}
EXPORT_SYMBOL_GPL(isoblk_depth_loss_store);

ssize_t isoblk_gate_show(struct elevator_queue *e, char *page)
{
	struct isoblk_disk *disk = e->elevator_data;

	return sysfs_emit(page, "%d\n", READ_ONCE(disk->gate_on));
}
EXPORT_SYMBOL_GPL(isoblk_gate_show);

ssize_t isoblk_gate_store(struct elevator_queue *e, const char *page,
			  size_t count)
{
	struct isoblk_disk *disk = e->elevator_data;
	bool on;
	int ret = kstrtobool(page, &on);

	if (ret)
		return ret;
	WRITE_ONCE(disk->gate_on, on);
	return count;
}
EXPORT_SYMBOL_GPL(isoblk_gate_store);

/* ---- debugfs --------------------------------------------------------- */

int isoblk_debugfs_depth(void *data, struct seq_file *m)
{
	static const char *const probe[] = {
		[ISOBLK_PROBE_NONE] = "none",
		[ISOBLK_PROBE_DOWN] = "down",
		[ISOBLK_PROBE_UP] = "up",
	};
	struct request_queue *q = data;
	struct isoblk_disk *disk = q->elevator->elevator_data;
	struct isoblk_depth *d = &disk->depth;

	spin_lock_irq(&disk->lock);
	if (d->limit == INT_MAX)
		seq_puts(m, "limit none");
	else
		seq_printf(m, "limit %d", d->limit);
	if (d->enough == INT_MAX)
		seq_puts(m, " enough none");
	else
		seq_printf(m, " enough %d", d->enough);
	seq_printf(m, " inflight %d known %d tight %d too_low %d probe %s refills %llu round %llu\n",
		   atomic_read(&d->inflight), d->known, d->tight, d->too_low,
		   probe[d->probe], disk->gen, disk->round);
	spin_unlock_irq(&disk->lock);
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_debugfs_depth);

static void show_group(struct seq_file *m, const struct isoblk_group *group)
{
	const struct blkcg_gq *blkg = group->pd.blkg;
	unsigned int i, held = 0, waiting = 0;
	char path[128];

	for (i = 0; i < group->disk->nr_hqs; i++) {
		held += atomic_read(&group->gq[i].held);
		waiting += isoblk_at_gate(&group->gq[i]);
	}
	cgroup_path(blkg->blkcg->css.cgroup, path, sizeof(path));
	seq_printf(m, "%s weight %u share_ppm %llu %s %lld held %u at_gate %u\n",
		   path, group->weight,
		   (u64)group->share * 1000000 >> ISOBLK_SHARE_SHIFT,
		   group->disk->ops->stat_name, isoblk_group_budget(group),
		   held, waiting);
}

int isoblk_debugfs_groups(void *data, struct seq_file *m)
{
	struct request_queue *q = data;
	struct isoblk_disk *disk = q->elevator->elevator_data;
	struct isoblk_group *group;

	spin_lock_irq(&disk->lock);
	isoblk_update_shares(disk);
	list_for_each_entry(group, &disk->active, active_node)
		show_group(m, group);
	spin_unlock_irq(&disk->lock);
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_debugfs_groups);
