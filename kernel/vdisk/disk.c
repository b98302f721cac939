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
 * What is stored (store.c), if anything is, has no part in that: data move when
 * a request is queued, outside the lock. Nobody may look before completion, and
 * no pages are touched in the timer's interrupt. Without a store reads are
 * filled with zeros. A write or a flush also has an end for the store, just
 * before the block layer hears of it.
 *
 * A disk that is not there (fault.c) refuses what comes, at once. What it holds
 * goes through the model all the same, for the model's time does not stop, and
 * fails when it ends. To tell, a request remembers how often the disk had gone
 * and come when it was queued: an odd number says that it is gone, another one
 * at the end that it was. The disk may also go by itself, at a write: it is gone
 * when that has been queued, so it is a write in flight.
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
#include <linux/list.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/unaligned.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "fault.h"
#include "model.h"
#include "store.h"
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

/*
 * Pieces of memory that a request may be of: single pages, of which the largest request is
 * that the block layer makes by default. Real disks take 128 to 256, and who makes one as
 * large as a disk says it takes, as blktests does, needs the memory for it.
 */
#define VDISK_MAX_SEGMENTS	320

/* One trim: the largest whose bytes a u32 holds and any block divides. */
#define VDISK_MAX_TRIM		SZ_2G

/**
 * struct vdisk_request - a request
 * @cmd: as the model sees it
 * @status: what is wrong with it, known when it is queued
 * @trip: happens at it
 * @outages: the disk's when it is queued
 * @write: what the store has of a write or trim, NULL if nothing
 * @mark: of a flush, if there is a store
 *
 * Who has the request has all of it, but for what @cmd is to the model.
 */
struct vdisk_request {
	struct vdisk_cmd cmd;
	blk_status_t status;
	enum vdisk_trip trip;
	u32 outages;
	union {
		struct vdisk_write *write;
		struct vdisk_mark mark;
	};
};

/**
 * struct vdisk - a disk that is on
 * @params: as it was made; what may change is the model's
 * @tag_set: of its queue
 * @disk: the block layer's side
 * @debugfs: directory with its statistics
 * @store: contents, NULL if there are none; locked by itself
 * @medium: where it is bad; locked by itself
 * @link: on vdisk_disks; protected by its lock
 * @cut_work: what a power cut leaves of the contents
 * @failed: requests that ended with an error
 * @lock: protects all below, and the model
 * @state: may be read without the lock, as @outages
 * @outages: times that the disk went or came; odd if it is gone
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
	struct vdisk_store *store;
	struct vdisk_medium medium;
	struct list_head link;
	struct work_struct cut_work;
	atomic64_t failed;

	spinlock_t lock ____cacheline_aligned_in_smp;
	enum vdisk_state state;
	u32 outages;
	struct vdisk_model *model;
	struct hrtimer timer;
	u64 armed_ns;
	u64 requests[VDISK_NR_OPS];
	u64 bytes[VDISK_NR_OPS];
};

/* Directory of the module. Set at load, then read only. */
static struct dentry *vdisk_debugfs;

/* All disks that are on. The lock is taken before that of a disk. */
static LIST_HEAD(vdisk_disks);
static DEFINE_SPINLOCK(vdisk_disks_lock);

static const char * const vdisk_op_names[] = {
	[VDISK_READ] = "read",
	[VDISK_WRITE] = "write",
	[VDISK_TRIM] = "trim",
	[VDISK_FLUSH] = "flush",
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
	struct vdisk_request *req;
	struct vdisk_cmd *cmd;

	/* Take it off first: once completed, it may come back at once. */
	while ((cmd = vdisk_list_pop(done))) {
		req = container_of(cmd, struct vdisk_request, cmd);
		blk_mq_complete_request(blk_mq_rq_from_pdu(req));
	}
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

/* Say to the model what a request is. False if it is none for a disk. */
static bool vdisk_set_cmd(struct vdisk_cmd *cmd, struct request *rq)
{
	cmd->fua = false;
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
		/* It has the position of no sector. */
		cmd->pos = 0;
		return true;
	default:
		return false;
	}
}

/* Move the data of a request, whose command is set. */
static blk_status_t vdisk_move(struct vdisk *vdisk, struct request *rq)
{
	struct vdisk_request *req = blk_mq_rq_to_pdu(rq);

	if (!vdisk->store) {
		if (req->cmd.op == VDISK_READ)
			vdisk_zero(rq);
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

/* What a power cut leaves of the contents. */
static void vdisk_cut_work(struct work_struct *work)
{
	struct vdisk *vdisk = container_of(work, struct vdisk, cut_work);

	vdisk_store_cut(vdisk->store);
}

/*
 * The disk is lost or cut, at once, whatever it was; or only if it was there.
 * The work that a cut leaves goes on.
 */
static void vdisk_go(struct vdisk *vdisk, enum vdisk_state state, bool if_ok)
{
	unsigned long flags;

	spin_lock_irqsave(&vdisk->lock, flags);
	if (vdisk->state == state ||
	    (if_ok && vdisk->state != VDISK_STATE_OK))
		goto unlock;

	/* Gone before it loses anything. */
	if (vdisk->state == VDISK_STATE_OK)
		WRITE_ONCE(vdisk->outages, vdisk->outages + 1);
	WRITE_ONCE(vdisk->state, state);
	if (vdisk->store && state == VDISK_STATE_CUT) {
		vdisk_store_stop(vdisk->store);
		schedule_work(&vdisk->cut_work);
	}
unlock:
	spin_unlock_irqrestore(&vdisk->lock, flags);
}

/* What happens at a write that is queued. */
static void vdisk_trip(struct vdisk *vdisk, enum vdisk_trip trip)
{
	unsigned long flags;

	switch (trip) {
	case VDISK_TRIP_LOST:
		vdisk_go(vdisk, VDISK_STATE_LOST, true);
		break;
	case VDISK_TRIP_CUT:
		vdisk_go(vdisk, VDISK_STATE_CUT, true);
		break;
	case VDISK_TRIP_CUT_ALL:
		spin_lock_irqsave(&vdisk_disks_lock, flags);
		list_for_each_entry(vdisk, &vdisk_disks, link)
			vdisk_go(vdisk, VDISK_STATE_CUT, true);
		spin_unlock_irqrestore(&vdisk_disks_lock, flags);
		break;
	default:
		break;
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

	/* Once, even if it finds no memory and is tried again. */
	if (!(bd->rq->rq_flags & RQF_DONTPREP)) {
		bd->rq->rq_flags |= RQF_DONTPREP;
		req->trip = vdisk_medium_trip(&vdisk->medium, cmd);
	}

	req->status = BLK_STS_OK;
	req->write = NULL;
	if (req->trip == VDISK_TRIP_ERROR || req->trip == VDISK_TRIP_ERRORS ||
	    vdisk_medium_bad(&vdisk->medium, cmd))
		req->status = BLK_STS_MEDIUM;
	else
		status = vdisk_move(vdisk, bd->rq);
	if (status)
		goto fail;
	vdisk_trip(vdisk, req->trip);

	blk_mq_start_request(bd->rq);
	spin_lock_irqsave(&vdisk->lock, flags);
	now = ktime_get_ns();
	next = vdisk->model->ops->submit(vdisk->model, cmd, now);
	vdisk_arm(vdisk, next, now);
	spin_unlock_irqrestore(&vdisk->lock, flags);
	return BLK_STS_OK;

fail:
	if (status != BLK_STS_RESOURCE)
		atomic64_inc(&vdisk->failed);
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
		atomic64_inc(&vdisk->failed);
	blk_mq_end_request(rq, status);
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

/* A name for itself (NAA 3): a hash of the one it was given. */
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

static const struct block_device_operations vdisk_fops = {
	.owner = THIS_MODULE,
	.get_unique_id = vdisk_get_unique_id,
};

/* What only some disks have. */
static void stats_show_more(struct seq_file *m, struct vdisk *vdisk,
			    const struct vdisk_counter *counters, u32 count)
{
	struct vdisk_store_stats stored;
	u32 i;

	for (i = 0; i < count; i++)
		seq_printf(m, "%s %llu\n", counters[i].name,
			   counters[i].value);
	if (!vdisk->store)
		return;
	vdisk_store_get_stats(vdisk->store, &stored);
	seq_printf(m, "stored_bytes %llu\n", stored.bytes);
	seq_printf(m, "unstable_writes %llu\n", stored.unstable);
	seq_printf(m, "cut_lost %llu\n", stored.lost);
	seq_printf(m, "cut_torn %llu\n", stored.torn);
	seq_printf(m, "cut_kept %llu\n", stored.kept);
}

static int stats_show(struct seq_file *m, void *unused)
{
	struct vdisk *vdisk = m->private;
	struct vdisk_model *model = vdisk->model;
	struct vdisk_counter *counters;
	struct vdisk_stats stats;
	u64 requests[VDISK_NR_OPS];
	u64 bytes[VDISK_NR_OPS];
	u32 count = 0;
	u64 now;
	int op;

	counters = kvmalloc_array(VDISK_MAX_COUNTERS, sizeof(*counters),
				  GFP_KERNEL);
	if (!counters)
		return -ENOMEM;

	spin_lock_irq(&vdisk->lock);
	memcpy(requests, vdisk->requests, sizeof(requests));
	memcpy(bytes, vdisk->bytes, sizeof(bytes));
	now = ktime_get_ns();
	model->ops->stats(model, now, &stats);
	if (model->ops->counters)
		count = model->ops->counters(model, now, counters,
					     VDISK_MAX_COUNTERS);
	spin_unlock_irq(&vdisk->lock);

	for (op = 0; op < VDISK_NR_OPS; op++) {
		seq_printf(m, "%s_requests %llu\n", vdisk_op_names[op],
			   requests[op]);
		if (op != VDISK_FLUSH)
			seq_printf(m, "%s_bytes %llu\n", vdisk_op_names[op],
				   bytes[op]);
	}
	seq_printf(m, "failed_requests %lld\n",
		   (s64)atomic64_read(&vdisk->failed));
	seq_printf(m, "in_service %u\n", stats.in_service);
	seq_printf(m, "waiting %u\n", stats.waiting);
	seq_printf(m, "waiting_max %u\n", stats.waiting_max);
	seq_printf(m, "busy_ns %llu\n", stats.busy_ns);
	stats_show_more(m, vdisk, counters, count);
	kvfree(counters);
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
		.max_segments = VDISK_MAX_SEGMENTS,
		.max_segment_size = UINT_MAX,
		.max_hw_discard_sectors = VDISK_MAX_TRIM >> SECTOR_SHIFT,
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
	 * It is empty: no partition table. Without the scan no request is made.
	 * Partitions can be added (BLKPG, addpart).
	 */
	set_bit(GD_SUPPRESS_PART_SCAN, &disk->state);
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
	vdisk_medium_init(&vdisk->medium);
	INIT_WORK(&vdisk->cut_work, vdisk_cut_work);

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

	/* Short of memory, blk-mq gives fewer tags. That is another device. */
	err = -ENOMEM;
	if (vdisk->tag_set.queue_depth != params->queue_depth)
		goto free_tag_set;

	err = vdisk_add_disk(vdisk, name);
	if (err)
		goto free_tag_set;

	spin_lock_irq(&vdisk_disks_lock);
	list_add_tail(&vdisk->link, &vdisk_disks);
	spin_unlock_irq(&vdisk_disks_lock);

	vdisk->debugfs = debugfs_create_dir(name, vdisk_debugfs);
	debugfs_create_file("stats", 0444, vdisk->debugfs, vdisk, &stats_fops);
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
 * Waits until the requests in flight have ended, and fails those that come
 * later.
 *
 * Context: may sleep.
 */
void vdisk_destroy(struct vdisk *vdisk)
{
	spin_lock_irq(&vdisk_disks_lock);
	list_del(&vdisk->link);
	spin_unlock_irq(&vdisk_disks_lock);
	del_gendisk(vdisk->disk);
	debugfs_remove(vdisk->debugfs);
	/* The last completion may still be on its way out of the timer. */
	hrtimer_cancel(&vdisk->timer);
	put_disk(vdisk->disk);
	/* No request is there any more that could cut the power. */
	flush_work(&vdisk->cut_work);
	blk_mq_free_tag_set(&vdisk->tag_set);
	vdisk->model->ops->destroy(vdisk->model);
	if (vdisk->store)
		vdisk_store_destroy(vdisk->store);
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
 * vdisk_get_medium - where a disk is bad
 * @vdisk: the disk
 *
 * Return: what vdisk_medium_bad() sees.
 */
struct vdisk_medium *vdisk_get_medium(struct vdisk *vdisk)
{
	return &vdisk->medium;
}

/**
 * vdisk_get_state - is a disk there?
 * @vdisk: the disk
 *
 * Return: its state.
 */
enum vdisk_state vdisk_get_state(const struct vdisk *vdisk)
{
	return READ_ONCE(vdisk->state);
}

/**
 * vdisk_set_state - let a disk go or come
 * @vdisk: the disk
 * @state: what it is from now on
 *
 * Context: may sleep. The caller serializes the calls.
 */
void vdisk_set_state(struct vdisk *vdisk, enum vdisk_state state)
{
	if (state != VDISK_STATE_OK) {
		vdisk_go(vdisk, state, false);
		flush_work(&vdisk->cut_work);
		return;
	}
	if (vdisk_get_state(vdisk) == VDISK_STATE_OK)
		return;

	/* Gone, it does nothing by itself. It is back after all is decided. */
	flush_work(&vdisk->cut_work);
	if (vdisk->store)
		vdisk_store_restore(vdisk->store);
	spin_lock_irq(&vdisk->lock);
	WRITE_ONCE(vdisk->outages, vdisk->outages + 1);
	WRITE_ONCE(vdisk->state, VDISK_STATE_OK);
	spin_unlock_irq(&vdisk->lock);
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
