/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk that is on, as its files see it: block device (disk.c), states lost
 * and power cut (disk_state.c), and statistics (disk_stats.c).
 */
#ifndef ISOBLK_VDISK_DISK_H
#define ISOBLK_VDISK_DISK_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "fault.h"
#include "model.h"

struct dentry;
struct vdisk_store;

/* Counters of completed requests. The disk's lock protects them. */
struct vdisk_completed {
	u64 requests[VDISK_NR_OPS]; /* completed requests, by vdisk_op */
	u64 bytes[VDISK_NR_OPS]; /* bytes of these requests, by vdisk_op */
};

/* A disk that is on. */
struct vdisk {
	struct vdisk_params params; /* parameters at the start; constant */
	struct blk_mq_tag_set tag_set; /* tags of its queue */
	struct gendisk *disk;	/* the block device; constant */
	struct dentry *debugfs;	/* directory of its statistics; constant */
	struct vdisk_store *store; /* contents or NULL; has its own lock */
	struct vdisk_medium medium; /* bad ranges; has its own lock */
	struct list_head link;	/* entry in vdisk_disks; under its lock */
	struct work_struct cut_work; /* applies a power cut to the contents */
	atomic64_t nr_failed;	/* requests that ended with an error */

	/* Protects the following fields, and all of the model. */
	spinlock_t lock ____cacheline_aligned_in_smp;
	enum vdisk_state state;	/* ok, lost or cut; read without the lock */
	u32 outages;		/* changes between ok and gone: odd if gone; same */
	struct vdisk_model *model; /* decides when commands end */
	struct hrtimer timer;	/* expires at @armed_ns */
	u64 armed_ns;		/* time of the next event, ns, or VDISK_NEVER_NS */
	struct vdisk_completed completed; /* counters of completed requests */
};

/* disk_state.c */
void vdisk_state_init(struct vdisk *vdisk);
void vdisk_state_add(struct vdisk *vdisk);
void vdisk_state_del(struct vdisk *vdisk);
void vdisk_state_destroy(struct vdisk *vdisk);
void vdisk_apply_fault(struct vdisk *vdisk, enum vdisk_fault fault);

/* disk_stats.c */
void vdisk_stats_init(void);
void vdisk_stats_exit(void);
void vdisk_stats_add(struct vdisk *vdisk, const char *name);
void vdisk_stats_del(struct vdisk *vdisk);

#endif /* ISOBLK_VDISK_DISK_H */
