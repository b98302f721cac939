/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk that is on, as the files see it that make it one: its block device
 * (disk.c), whether it is there (disk_state.c) and its figures (disk_stats.c).
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

/* What was completed. The disk's lock protects it. */
struct vdisk_completed {
	u64 requests[VDISK_NR_OPS]; /* number of requests, by vdisk_op */
	u64 bytes[VDISK_NR_OPS]; /* their bytes, by vdisk_op */
};

/* A disk that is on. */
struct vdisk {
	struct vdisk_params params; /* parameters at the start; constant */
	struct blk_mq_tag_set tag_set; /* tags of its queue */
	struct gendisk *disk;	/* the block layer's side; constant */
	struct dentry *debugfs;	/* directory with its figures; constant */
	struct vdisk_store *store; /* contents or NULL; locks itself */
	struct vdisk_medium medium; /* bad places; locks itself */
	struct list_head link;	/* link in the list of disks; under its lock */
	struct work_struct cut_work; /* work that a power cut leaves */
	atomic64_t failed;	/* requests that ended with an error */

	/* The lock protects what follows, and all that the model has. */
	spinlock_t lock ____cacheline_aligned_in_smp;
	enum vdisk_state state;	/* whether it is there; read without the lock */
	u32 outages;		/* times it went or came, odd if gone; same */
	struct vdisk_model *model; /* what decides when commands end */
	struct hrtimer timer;	/* timer, which stands at @armed_ns */
	u64 armed_ns;		/* time of the next event, or VDISK_NEVER */
	struct vdisk_completed completed; /* what was completed */
};

/* disk_state.c */
void vdisk_state_init(struct vdisk *vdisk);
void vdisk_state_add(struct vdisk *vdisk);
void vdisk_state_del(struct vdisk *vdisk);
void vdisk_state_destroy(struct vdisk *vdisk);
void vdisk_trip(struct vdisk *vdisk, enum vdisk_trip trip);

/* disk_stats.c */
void vdisk_stats_init(void);
void vdisk_stats_exit(void);
void vdisk_stats_add(struct vdisk *vdisk, const char *name);
void vdisk_stats_del(struct vdisk *vdisk);

#endif /* ISOBLK_VDISK_DISK_H */
