// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block device of isoblk_vdisk.
 *
 * A request becomes a command of the model, which alone decides when it ends.
 * One timer a device stands at the model's next event. It lets the model run
 * and completes what ended, in the order that the model gives.
 *
 * In User Mode Linux with time travel, time stands still while interrupts are
 * off. So a command arrives at the very instant at which it is queued, and ends
 * are seen at the first tick of UML's clock (256 ns) that is not before them:
 * what happens is a function of the requests alone. The model itself knows no
 * ticks, and makes up for every delay of the timer (model.h), in UML, where the
 * next interrupt is 500 ns away at least, and on a real machine.
 *
 * The clock is read with the lock held. That orders arrivals as the lock does
 * on SMP, and in virtual time makes the reading free: UML charges 256 ns for
 * one with interrupts on.
 *
 * Nothing is stored. Reads return zeros. They are filled in when the request is
 * queued, outside the lock: nobody may look before completion, and no pages are
 * touched in the timer's interrupt.
 *
 * A completion is blk_mq_complete_request() from the timer, one by one, as with
 * a real disk: at once on the CPU that submitted, else there. Ending those of
 * one instant as a batch was tried: 3 % fewer instructions a request at best,
 * and all of them on the timer's CPU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "model.h"
#include "vdisk.h"

/*
 * UML's clock advances by this many ns (its TIMER_MULTIPLIER), and is rounded
 * down. A timer between two ticks fires, finds the clock just before its time,
 * and is put off by the least delay. So timers are set to ticks.
 */
#define VDISK_CLOCK_TICK_NS	(IS_ENABLED(CONFIG_UML) ? 256 : 1)

/*
 * One request. Larger than the block layer asks for by default;
 * queue/max_sectors_kb may be raised up to it.
 */
#define VDISK_MAX_REQUEST	SZ_32M

/* One trim: the largest whose bytes a u32 holds and any block divides. */
#define VDISK_MAX_TRIM		SZ_2G

/**
 * struct vdisk - a disk that is on
 * @params: as it was made; what may change is the model's
 * @tag_set: of its queue
 * @disk: the block layer's side
 * @debugfs: directory with its statistics
 * @lock: protects all below, and the model
 * @model: decides when commands end
 * @timer: stands at @armed_ns
 * @armed_ns: time of the model's next event, VDISK_NEVER if there is none
 * @requests: completed, by vdisk_op
 * @bytes: completed, by vdisk_op
 */
struct vdisk {
	struct vdisk_params params;
	struct blk_mq_tag_set tag_set;
	struct gendisk *disk;
	struct dentry *debugfs;

	spinlock_t lock ____cacheline_aligned_in_smp;
	struct vdisk_model *model;
	struct hrtimer timer;
	u64 armed_ns;
	u64 requests[VDISK_NR_OPS];
	u64 bytes[VDISK_NR_OPS];
};

/* Directory of the module. Set at load, then read only. */
static struct dentry *vdisk_debugfs;

static const char * const vdisk_op_names[] = {
	[VDISK_READ] = "read",
	[VDISK_WRITE] = "write",
	[VDISK_TRIM] = "trim",
};

/* Set the timer, if the model's next event is before what it is set to. */
static void vdisk_arm(struct vdisk *vdisk, u64 next, u64 now)
{
	u64 ticks;

	lockdep_assert_held(&vdisk->lock);

	if (next >= vdisk->armed_ns)
		return;

	vdisk->armed_ns = next;
	/* Now is a tick. An event is never before it: run() did those. */
	ticks = DIV_ROUND_UP_ULL(next - now, VDISK_CLOCK_TICK_NS);
	hrtimer_start(&vdisk->timer,
		      ns_to_ktime(now + ticks * VDISK_CLOCK_TICK_NS),
		      HRTIMER_MODE_ABS_PINNED);
}

/* Let the model run. The commands that ended are on done, and counted. */
static void vdisk_run(struct vdisk *vdisk, u64 now, struct vdisk_list *done)
{
	struct vdisk_cmd *cmd;
	u64 next;

	lockdep_assert_held(&vdisk->lock);

	vdisk_list_init(done);
	next = vdisk->model->ops->run(vdisk->model, now, done);
	for (cmd = done->head; cmd; cmd = cmd->next) {
		vdisk->requests[cmd->op]++;
		vdisk->bytes[cmd->op] += cmd->bytes;
	}
	vdisk_arm(vdisk, next, now);
}

/* Without the lock: a completion may run the submitter's code. */
static void vdisk_complete(struct vdisk_list *done)
{
	struct vdisk_cmd *cmd;

	/* Take it off first: once completed, it may come back at once. */
	while ((cmd = vdisk_list_pop(done)))
		blk_mq_complete_request(blk_mq_rq_from_pdu(cmd));
}

static enum hrtimer_restart vdisk_timer(struct hrtimer *timer)
{
	struct vdisk *vdisk = container_of(timer, struct vdisk, timer);
	struct vdisk_list done;
	unsigned long flags;

	spin_lock_irqsave(&vdisk->lock, flags);
	vdisk->armed_ns = VDISK_NEVER;
	vdisk_run(vdisk, ktime_get_ns(), &done);
	spin_unlock_irqrestore(&vdisk->lock, flags);

	vdisk_complete(&done);
	return HRTIMER_NORESTART;
}

static void vdisk_zero(struct request *rq)
{
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter)
		memzero_bvec(&bvec);
}

static blk_status_t vdisk_queue_rq(struct blk_mq_hw_ctx *hctx,
				   const struct blk_mq_queue_data *bd)
{
	struct vdisk *vdisk = hctx->queue->queuedata;
	struct vdisk_cmd *cmd = blk_mq_rq_to_pdu(bd->rq);
	unsigned long flags;
	u64 now, next;

	switch (req_op(bd->rq)) {
	case REQ_OP_READ:
		cmd->op = VDISK_READ;
		break;
	case REQ_OP_WRITE:
		cmd->op = VDISK_WRITE;
		break;
	case REQ_OP_DISCARD:
		cmd->op = VDISK_TRIM;
		break;
	default:
		return BLK_STS_NOTSUPP;
	}
	cmd->bytes = blk_rq_bytes(bd->rq);
	if (blk_rq_pos(bd->rq) + blk_rq_sectors(bd->rq) >
	    get_capacity(vdisk->disk))
		return BLK_STS_IOERR;

	blk_mq_start_request(bd->rq);
	if (cmd->op == VDISK_READ)
		vdisk_zero(bd->rq);

	spin_lock_irqsave(&vdisk->lock, flags);
	now = ktime_get_ns();
	next = vdisk->model->ops->submit(vdisk->model, cmd, now);
	vdisk_arm(vdisk, next, now);
	spin_unlock_irqrestore(&vdisk->lock, flags);
	return BLK_STS_OK;
}

static void vdisk_complete_rq(struct request *rq)
{
	blk_mq_end_request(rq, BLK_STS_OK);
}

/*
 * Every command ends; how late is for the model to say, and behind a deep queue
 * of slow commands it is later than any timeout.
 */
static enum blk_eh_timer_return vdisk_timeout(struct request *rq)
{
	return BLK_EH_RESET_TIMER;
}

static const struct blk_mq_ops vdisk_mq_ops = {
	.queue_rq = vdisk_queue_rq,
	.complete = vdisk_complete_rq,
	.timeout = vdisk_timeout,
};

static const struct block_device_operations vdisk_fops = {
	.owner = THIS_MODULE,
};

static int stats_show(struct seq_file *m, void *unused)
{
	struct vdisk *vdisk = m->private;
	struct vdisk_stats stats;
	u64 requests[VDISK_NR_OPS];
	u64 bytes[VDISK_NR_OPS];
	int op;

	spin_lock_irq(&vdisk->lock);
	memcpy(requests, vdisk->requests, sizeof(requests));
	memcpy(bytes, vdisk->bytes, sizeof(bytes));
	vdisk->model->ops->stats(vdisk->model, ktime_get_ns(), &stats);
	spin_unlock_irq(&vdisk->lock);

	for (op = 0; op < VDISK_NR_OPS; op++) {
		seq_printf(m, "%s_requests %llu\n", vdisk_op_names[op],
			   requests[op]);
		seq_printf(m, "%s_bytes %llu\n", vdisk_op_names[op],
			   bytes[op]);
	}
	seq_printf(m, "in_service %u\n", stats.in_service);
	seq_printf(m, "waiting %u\n", stats.waiting);
	seq_printf(m, "waiting_max %u\n", stats.waiting_max);
	seq_printf(m, "busy_ns %llu\n", stats.busy_ns);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/*
 * A name that is taken would fail in device_add_disk() too, but with a stack
 * dump from sysfs. A race with somebody who takes it now still ends there.
 */
static bool vdisk_name_taken(struct gendisk *disk, const char *name)
{
	struct device *dev;

	dev = class_find_device_by_name(disk_to_dev(disk)->class, name);
	put_device(dev);
	return dev;
}

static int vdisk_add_disk(struct vdisk *vdisk, const char *name)
{
	struct queue_limits limits = {
		.logical_block_size = vdisk->params.logical_block_size,
		.physical_block_size = VDISK_PHYSICAL_BLOCK,
		.io_min = VDISK_PHYSICAL_BLOCK,
		.max_hw_sectors = VDISK_MAX_REQUEST >> SECTOR_SHIFT,
		/* Only the bytes count: there is nobody who gathers them. */
		.max_segments = USHRT_MAX,
		.max_segment_size = UINT_MAX,
		.max_hw_discard_sectors = VDISK_MAX_TRIM >> SECTOR_SHIFT,
		.discard_granularity = vdisk->params.logical_block_size,
		/* No volatile cache: flushes and FUA end in the block layer. */
	};
	struct gendisk *disk;
	int err;

	disk = blk_mq_alloc_disk(&vdisk->tag_set, &limits, vdisk);
	if (IS_ERR(disk))
		return PTR_ERR(disk);

	vdisk->disk = disk;
	strscpy(disk->disk_name, name);
	disk->fops = &vdisk_fops;
	/* It stores no partition table. Without the scan no request is made. */
	disk->flags |= GENHD_FL_NO_PART;
	set_capacity(disk, vdisk->params.size >> SECTOR_SHIFT);

	err = -EEXIST;
	if (!vdisk_name_taken(disk, name))
		err = device_add_disk(NULL, disk, NULL);
	if (err)
		put_disk(disk);
	return err;
}

/**
 * vdisk_create - make a disk, which is ready for requests
 * @name: of the disk; shorter than DISK_NAME_LEN
 * @params: all in range
 *
 * Context: may sleep.
 * Return: the disk; ERR_PTR(-EEXIST) if the name is taken, or another error.
 */
struct vdisk *vdisk_create(const char *name, const struct vdisk_params *params)
{
	struct vdisk *vdisk;
	int err;

	vdisk = kzalloc(sizeof(*vdisk), GFP_KERNEL);
	if (!vdisk)
		return ERR_PTR(-ENOMEM);

	vdisk->params = *params;
	spin_lock_init(&vdisk->lock);
	hrtimer_setup(&vdisk->timer, vdisk_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED);
	vdisk->armed_ns = VDISK_NEVER;

	/* Both factors are small: BLK_MQ_MAX_DEPTH and nr_cpu_ids. */
	vdisk->model = params->ops->create(params, params->queue_depth *
						   params->hw_queues);
	if (IS_ERR(vdisk->model)) {
		err = PTR_ERR(vdisk->model);
		goto free;
	}

	vdisk->tag_set.ops = &vdisk_mq_ops;
	vdisk->tag_set.nr_hw_queues = params->hw_queues;
	vdisk->tag_set.queue_depth = params->queue_depth;
	vdisk->tag_set.numa_node = NUMA_NO_NODE;
	vdisk->tag_set.cmd_size = sizeof(struct vdisk_cmd);
	vdisk->tag_set.flags = ISOBLK_TAG_SET_FLAGS;
	err = blk_mq_alloc_tag_set(&vdisk->tag_set);
	if (err)
		goto destroy_model;

	/* Short of memory, blk-mq gives fewer tags. That is another device. */
	err = -ENOMEM;
	if (vdisk->tag_set.queue_depth != params->queue_depth)
		goto free_tag_set;

	err = vdisk_add_disk(vdisk, name);
	if (err)
		goto free_tag_set;

	vdisk->debugfs = debugfs_create_dir(name, vdisk_debugfs);
	debugfs_create_file("stats", 0444, vdisk->debugfs, vdisk, &stats_fops);
	return vdisk;

free_tag_set:
	blk_mq_free_tag_set(&vdisk->tag_set);
destroy_model:
	params->ops->destroy(vdisk->model);
free:
	kfree(vdisk);
	return ERR_PTR(err);
}

/**
 * vdisk_destroy - remove a disk
 * @vdisk: the disk
 *
 * Waits until the requests in flight have ended, and fails those that come
 * later.
 *
 * Context: may sleep.
 */
void vdisk_destroy(struct vdisk *vdisk)
{
	del_gendisk(vdisk->disk);
	debugfs_remove(vdisk->debugfs);
	/* The last completion may still be on its way out of the timer. */
	hrtimer_cancel(&vdisk->timer);
	put_disk(vdisk->disk);
	blk_mq_free_tag_set(&vdisk->tag_set);
	vdisk->model->ops->destroy(vdisk->model);
	kfree(vdisk);
}

/**
 * vdisk_change - give a running disk new parameters
 * @vdisk: the disk
 * @params: all in range; those that may not change are as they were
 */
void vdisk_change(struct vdisk *vdisk, const struct vdisk_params *params)
{
	struct vdisk_list done;
	u64 now, next;

	spin_lock_irq(&vdisk->lock);
	now = ktime_get_ns();
	vdisk_run(vdisk, now, &done);
	next = vdisk->model->ops->change(vdisk->model, params, now);
	vdisk_arm(vdisk, next, now);
	spin_unlock_irq(&vdisk->lock);

	vdisk_complete(&done);
}

/**
 * vdisk_init - prepare for the first disk
 *
 * Without debugfs there are no statistics, which is no error.
 */
void vdisk_init(void)
{
	vdisk_debugfs = debugfs_create_dir(KBUILD_MODNAME, NULL);
}

/**
 * vdisk_exit - undo vdisk_init(), after the last disk is gone
 */
void vdisk_exit(void)
{
	debugfs_remove(vdisk_debugfs);
}
