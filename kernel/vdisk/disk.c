// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block device of isoblk_vdisk.
 *
 * A request becomes a command of the model, and only the model decides when it
 * ends. Each device has one timer, set to the model's next event. The timer
 * runs the model and completes the commands that ended, in the model's order.
 *
 * In User Mode Linux with time travel, time stands still while interrupts are
 * off. So a command arrives at the very instant at which it is queued, and its
 * end is seen at the first tick of UML's clock (256 ns) that is not before it:
 * the sequence of events depends on the requests alone. The model has no ticks,
 * and compensates for every delay of the timer (model.h), in UML, where the
 * next interrupt is at least 500 ns away, and on a real machine.
 *
 * The clock is read under the lock. On SMP that makes the order of arrivals the
 * order of the lock, and in virtual time the reading is free: UML charges 256
 * ns for a reading with interrupts on.
 *
 * The contents (store.c), if there are any, do not affect time: data are copied
 * when a request is queued, outside the lock. No reader may expect data before
 * completion, and the timer's interrupt touches no pages. Without a store reads
 * are filled with zeros, unless the sender ignores the data (unseen.h). A write
 * or a flush also ends in the store, just before it is completed to the block
 * layer.
 *
 * A disk that is gone fails new requests at once, and requests in flight at
 * their end (disk_state.c).
 *
 * The timer completes requests by blk_mq_complete_request(), one by one, as a
 * real disk does: at once on the CPU that submitted, else by an interrupt there.
 * Completing the requests of one instant as a batch would save at most 3 % of
 * the instructions per request, and run all completions on the timer's CPU.
 */
#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/math.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "compat.h"
#include "disk.h"
#include "fault.h"
#include "model.h"
#include "store.h"
#include "unseen.h"
#include "vdisk.h"

/*
 * UML's clock advances in steps of this many ns (its TIMER_MULTIPLIER), rounded
 * down. A timer between two ticks would expire, find the clock just before its
 * time, and be delayed by the minimum. So timers are set to ticks.
 */
#define VDISK_CLOCK_TICK_NS	(IS_ENABLED(CONFIG_UML) ? 256 : 1)

/*
 * Bytes of a request. Larger than the block layer's default;
 * queue/max_sectors_kb may be raised up to it.
 */
#define VDISK_REQUEST_BYTES_MAX	SZ_32M

/*
 * Segments of a request: the largest request that the block layer makes by
 * default, in single pages. Real disks take 128 to 256. A test that makes the
 * largest request that the disk accepts, as one of blktests does, needs that
 * much memory.
 */
#define VDISK_SEGMENTS_MAX	320

/* Bytes of a trim: the largest power of 2 that a u32 holds. */
#define VDISK_TRIM_BYTES_MAX		SZ_2G

/*
 * Per-request data. The owner of the request owns all of it, except the model's
 * fields of @cmd.
 */
struct vdisk_request {
	struct vdisk_cmd cmd;	/* command of the model */
	blk_status_t status;	/* error found when it was queued */
	enum vdisk_fault fault;	/* fault that it triggers */
	u32 outages;		/* the disk's outages when it was queued */
	union {
		struct vdisk_write *write; /* the store's write, or NULL */
		struct vdisk_mark mark; /* mark of a flush */
	};
};

/* Set the timer if the model's next event is before its expiry. */
static void vdisk_arm_timer(struct vdisk *vdisk, u64 next, u64 now)
{
	u64 ticks;

	lockdep_assert_held(&vdisk->lock);

	if (next >= vdisk->armed_ns)
		return;

	vdisk->armed_ns = next;
	/* @now is a tick. run() has processed all events before it. */
	ticks = DIV_ROUND_UP_ULL(next - now, VDISK_CLOCK_TICK_NS);
	hrtimer_start(&vdisk->timer,
		      ns_to_ktime(now + ticks * VDISK_CLOCK_TICK_NS),
		      HRTIMER_MODE_ABS_PINNED);
}

/* Run the model. Count the commands that ended, which are added to @done. */
static void vdisk_run_model(struct vdisk *vdisk, u64 now,
			    struct vdisk_list *done)
{
	struct vdisk_cmd *cmd;
	u64 next;

	lockdep_assert_held(&vdisk->lock);

	vdisk_list_init(done);
	next = vdisk->model->ops->run(vdisk->model, now, done);
	for (cmd = done->head; cmd; cmd = cmd->next) {
		vdisk->completed.requests[cmd->op]++;
		vdisk->completed.bytes[cmd->op] += cmd->bytes;
	}
	vdisk_arm_timer(vdisk, next, now);
}

/* Complete commands, without the lock: completion may run the submitter's code. */
static void vdisk_complete_cmds(struct vdisk_list *done)
{
	struct vdisk_request *req;
	struct vdisk_cmd *cmd;

	/* Remove it first: after completion the request may be reused. */
	while ((cmd = vdisk_list_pop(done))) {
		req = container_of(cmd, struct vdisk_request, cmd);
		blk_mq_complete_request(blk_mq_rq_from_pdu(req));
	}
}

static enum hrtimer_restart vdisk_timer_fn(struct hrtimer *timer)
{
	struct vdisk *vdisk = container_of(timer, struct vdisk, timer);
	struct vdisk_list done;
	unsigned long flags;

	spin_lock_irqsave(&vdisk->lock, flags);
	vdisk->armed_ns = VDISK_NEVER_NS;
	vdisk_run_model(vdisk, ktime_get_ns(), &done);
	spin_unlock_irqrestore(&vdisk->lock, flags);

	vdisk_complete_cmds(&done);
	return HRTIMER_NORESTART;
}

/* Fill a read with zeros, except bios whose data the sender ignores. */
static void vdisk_zero_read(struct request *rq)
{
	struct bio *bio;

	__rq_for_each_bio(bio, rq)
		if (!bio_is_unseen(bio))
			zero_fill_bio(bio);
}

/* Set a command from a request. Return false for an unsupported operation. */
static bool vdisk_set_cmd(struct vdisk_cmd *cmd, struct request *rq)
{
	cmd->fua = false;
	cmd->queue = rq->mq_hctx->queue_num;
	cmd->bytes = blk_rq_bytes(rq);
	cmd->pos = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	switch (req_op(rq)) {
	case REQ_OP_READ:
		cmd->op = VDISK_READ;
		return true;
	case REQ_OP_WRITE:
		cmd->op = VDISK_WRITE;
		cmd->fua = rq->cmd_flags & REQ_FUA;
		return true;
	case REQ_OP_DISCARD:
		cmd->op = VDISK_TRIM;
		return true;
	case REQ_OP_FLUSH:
		cmd->op = VDISK_FLUSH;
		/* A flush has no position. */
		cmd->pos = 0;
		return true;
	default:
		return false;
	}
}

/* Copy the data of a request whose command is set. */
static blk_status_t vdisk_copy_data(struct vdisk *vdisk, struct request *rq)
{
	struct vdisk_request *req = blk_mq_rq_to_pdu(rq);

	if (!vdisk->store) {
		if (req->cmd.op == VDISK_READ)
			vdisk_zero_read(rq);
		return BLK_STS_OK;
	}

	switch (req->cmd.op) {
	case VDISK_READ:
		vdisk_store_read(vdisk->store, rq);
		return BLK_STS_OK;
	case VDISK_FLUSH:
		req->mark = vdisk_store_mark(vdisk->store);
		return BLK_STS_OK;
	default:
		return vdisk_store_write(vdisk->store, rq, &req->write);
	}
}

static blk_status_t vdisk_queue_rq(struct blk_mq_hw_ctx *hctx,
				   const struct blk_mq_queue_data *bd)
{
	struct vdisk *vdisk = hctx->queue->queuedata;
	struct vdisk_request *req = blk_mq_rq_to_pdu(bd->rq);
	struct vdisk_cmd *cmd = &req->cmd;
	blk_status_t status = BLK_STS_OK;
	unsigned long flags;
	u64 now, next;

	if (!vdisk_set_cmd(cmd, bd->rq)) {
		status = BLK_STS_NOTSUPP;
		goto fail;
	}
	if ((cmd->pos + cmd->bytes) >> SECTOR_SHIFT > get_capacity(vdisk->disk)) {
		status = BLK_STS_IOERR;
		goto fail;
	}
	req->outages = READ_ONCE(vdisk->outages);
	if (req->outages & 1) {
		status = BLK_STS_OFFLINE;
		goto fail;
	}

	/* Once, even if it is queued again after a lack of memory. */
	if (!(bd->rq->rq_flags & RQF_DONTPREP)) {
		bd->rq->rq_flags |= RQF_DONTPREP;
		req->fault = vdisk_medium_take_fault(&vdisk->medium, cmd);
	}

	req->status = BLK_STS_OK;
	req->write = NULL;
	if (req->fault == VDISK_FAULT_ERROR ||
	    req->fault == VDISK_FAULT_ERRORS ||
	    vdisk_medium_is_bad(&vdisk->medium, cmd))
		req->status = BLK_STS_MEDIUM;
	else
		status = vdisk_copy_data(vdisk, bd->rq);
	if (status)
		goto fail;
	vdisk_apply_fault(vdisk, req->fault);

	blk_mq_start_request(bd->rq);
	spin_lock_irqsave(&vdisk->lock, flags);
	now = ktime_get_ns();
	next = vdisk->model->ops->submit(vdisk->model, cmd, now);
	vdisk_arm_timer(vdisk, next, now);
	spin_unlock_irqrestore(&vdisk->lock, flags);
	return BLK_STS_OK;

fail:
	if (status != BLK_STS_RESOURCE)
		atomic64_inc(&vdisk->nr_failed);
	return status;
}

static void vdisk_complete_rq(struct request *rq)
{
	struct vdisk *vdisk = rq->q->queuedata;
	struct vdisk_request *req = blk_mq_rq_to_pdu(rq);
	blk_status_t status = req->status;

	if (vdisk->store && !status) {
		if (req->cmd.op == VDISK_FLUSH)
			status = vdisk_store_flush_end(vdisk->store,
						       req->mark);
		else if (req->write)
			status = vdisk_store_write_end(vdisk->store,
						       req->write,
						       req->cmd.fua);
	}
	if (req->outages != READ_ONCE(vdisk->outages))
		status = BLK_STS_OFFLINE;
	if (status)
		atomic64_inc(&vdisk->nr_failed);
	blk_mq_end_request(rq, status);
}

/*
 * Every command ends, at a time that the model decides. Behind a deep queue of
 * slow commands this may exceed any timeout.
 */
static enum blk_eh_timer_return vdisk_timeout_rq(struct request *rq)
{
	return BLK_EH_RESET_TIMER;
}

static const struct blk_mq_ops vdisk_mq_ops = {
	.queue_rq = vdisk_queue_rq,
	.complete = vdisk_complete_rq,
	.timeout = vdisk_timeout_rq,
};

/* Set the identity of a disk (NAA 3): a hash of its name. */
static int vdisk_get_unique_id(struct gendisk *disk, u8 id[16],
			       enum blk_unique_id type)
{
	u64 hash = 0xcbf29ce484222325;
	const char *c;

	if (type != BLK_UID_NAA)
		return -EINVAL;
	/* FNV-1a */
	for (c = disk->disk_name; *c; c++)
		hash = (hash ^ (u8)*c) * 0x100000001b3;
	put_unaligned_be64(3ULL << 60 | hash >> 4, id);
	return sizeof(u64);
}

/* Show the id of get_unique_id(), as SCSI and NVMe disks do. */
static ssize_t wwid_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	u8 id[16];
	int n = vdisk_get_unique_id(dev_to_disk(dev), id, BLK_UID_NAA);

	return sysfs_emit(buf, "naa.%*phN\n", n, id);
}

static DEVICE_ATTR_RO(wwid);

static struct attribute *vdisk_attrs[] = {
	&dev_attr_wwid.attr,
	NULL
};

ATTRIBUTE_GROUPS(vdisk);

static const struct block_device_operations vdisk_fops = {
	.owner = THIS_MODULE,
	.get_unique_id = vdisk_get_unique_id,
};

/*
 * Return whether a name is taken. device_add_disk() would fail as well, but
 * with a stack dump from sysfs. A race with a concurrent user of the name still
 * ends there.
 */
static bool vdisk_is_name_taken(struct gendisk *disk, const char *name)
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
		.physical_block_size = VDISK_PHYSICAL_BLOCK_BYTES,
		.io_min = VDISK_PHYSICAL_BLOCK_BYTES,
		.max_hw_sectors = VDISK_REQUEST_BYTES_MAX >> SECTOR_SHIFT,
		.max_segments = VDISK_SEGMENTS_MAX,
		.max_segment_size = UINT_MAX,
		.max_hw_discard_sectors = VDISK_TRIM_BYTES_MAX >> SECTOR_SHIFT,
		.discard_granularity = vdisk->params.logical_block_size,
	};
	struct gendisk *disk;
	int err;

	/* Without a volatile cache flushes and FUA end in the block layer. */
	if (vdisk->params.write_cache)
		limits.features |= BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	if (vdisk->params.ops->rotational)
		limits.features |= BLK_FEAT_ROTATIONAL;

	disk = blk_mq_alloc_disk(&vdisk->tag_set, &limits, vdisk);
	if (IS_ERR(disk))
		return PTR_ERR(disk);

	vdisk->disk = disk;
	strscpy(disk->disk_name, name);
	disk->fops = &vdisk_fops;
	/*
	 * A new disk is empty: without the scan it gets no request. Partitions
	 * can be added (BLKPG, addpart).
	 */
	set_bit(GD_SUPPRESS_PART_SCAN, &disk->state);
	set_capacity(disk, vdisk->params.size >> SECTOR_SHIFT);

	err = -EEXIST;
	if (!vdisk_is_name_taken(disk, name))
		err = device_add_disk(NULL, disk, vdisk_groups);
	if (err)
		put_disk(disk);
	return err;
}

/**
 * vdisk_create - create a disk that is ready for requests
 * @name: its name, shorter than DISK_NAME_LEN
 * @params: parameters, all in range
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
	hrtimer_setup(&vdisk->timer, vdisk_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED);
	vdisk->armed_ns = VDISK_NEVER_NS;
	vdisk_medium_init(&vdisk->medium);
	vdisk_state_init(vdisk);

	if (params->store == VDISK_STORE_MEMORY) {
		vdisk->store = vdisk_store_create(params);
		if (IS_ERR(vdisk->store)) {
			err = PTR_ERR(vdisk->store);
			goto free;
		}
	}

	/* Both factors are small: BLK_MQ_MAX_DEPTH and nr_cpu_ids. */
	vdisk->model = params->ops->create(params, params->queue_depth *
						   params->hw_queues);
	if (IS_ERR(vdisk->model)) {
		err = PTR_ERR(vdisk->model);
		goto destroy_store;
	}

	vdisk->tag_set.ops = &vdisk_mq_ops;
	vdisk->tag_set.nr_hw_queues = params->hw_queues;
	vdisk->tag_set.queue_depth = params->queue_depth;
	vdisk->tag_set.numa_node = NUMA_NO_NODE;
	vdisk->tag_set.cmd_size = sizeof(struct vdisk_request);
	vdisk->tag_set.flags = ISOBLK_TAG_SET_FLAGS;
	err = blk_mq_alloc_tag_set(&vdisk->tag_set);
	if (err)
		goto destroy_model;

	/* Short of memory, blk-mq may reduce the depth: not the same device. */
	err = -ENOMEM;
	if (vdisk->tag_set.queue_depth != params->queue_depth)
		goto free_tag_set;

	err = vdisk_add_disk(vdisk, name);
	if (err)
		goto free_tag_set;

	vdisk_state_add(vdisk);
	vdisk_stats_add(vdisk, name);
	return vdisk;

free_tag_set:
	blk_mq_free_tag_set(&vdisk->tag_set);
destroy_model:
	params->ops->destroy(vdisk->model);
destroy_store:
	if (vdisk->store)
		vdisk_store_destroy(vdisk->store);
free:
	kfree(vdisk);
	return ERR_PTR(err);
}

/**
 * vdisk_destroy - remove a disk
 * @vdisk: the disk
 *
 * Waits until the requests in flight have ended, and fails later
 * ones.
 *
 * Context: may sleep.
 */
void vdisk_destroy(struct vdisk *vdisk)
{
	vdisk_state_del(vdisk);
	del_gendisk(vdisk->disk);
	vdisk_stats_del(vdisk);
	/* The timer may still be completing the last request. */
	hrtimer_cancel(&vdisk->timer);
	put_disk(vdisk->disk);
	vdisk_state_destroy(vdisk);
	blk_mq_free_tag_set(&vdisk->tag_set);
	vdisk->model->ops->destroy(vdisk->model);
	if (vdisk->store)
		vdisk_store_destroy(vdisk->store);
	kfree(vdisk);
}

/**
 * vdisk_change_params - change the parameters of a disk that is on
 * @vdisk: the disk
 * @params: parameters, all in range; constant parameters are unchanged
 */
void vdisk_change_params(struct vdisk *vdisk, const struct vdisk_params *params)
{
	struct vdisk_list done;
	u64 now, next;

	spin_lock_irq(&vdisk->lock);
	now = ktime_get_ns();
	vdisk_run_model(vdisk, now, &done);
	next = vdisk->model->ops->change(vdisk->model, params, now);
	vdisk_arm_timer(vdisk, next, now);
	spin_unlock_irq(&vdisk->lock);

	vdisk_complete_cmds(&done);
}

/**
 * vdisk_get_medium - return the medium of a disk
 * @vdisk: the disk
 *
 * Return: the medium, for vdisk_medium_is_bad().
 */
struct vdisk_medium *vdisk_get_medium(struct vdisk *vdisk)
{
	return &vdisk->medium;
}

/**
 * vdisk_init - prepare for the first disk
 *
 * Without debugfs there are no statistics; that is not an error.
 */
void vdisk_init(void)
{
	vdisk_stats_init();
}

/**
 * vdisk_exit - undo vdisk_init(), after the last disk is gone
 */
void vdisk_exit(void)
{
	vdisk_stats_exit();
}
