/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arm of the model "disk": its current task, and the next (hdd_arm.c).
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_HDD_ARM_H
#define ISOBLK_VDISK_HDD_ARM_H

#include <linux/types.h>

#include "hdd.h"
#include "hdd_cache.h"
#include "model.h"

struct hdd;

/* Tasks of the arm. */
enum hdd_task {
	HDD_IDLE,	/* no task */
	HDD_COMMAND,	/* reads or writes for a command */
	HDD_AHEAD,	/* reads ahead */
	HDD_DESTAGE,	/* writes from the cache */
};

/* A pass of the arm: to a range of sectors, and over it; if idle, the last pass. */
struct hdd_pass {
	u64 from;	/* first sector */
	u64 to;		/* sector behind the last */
	u64 begin_ns;	/* time at which the arm started to move */
	u64 pass_ns;	/* time at which @from comes under the head */
	u64 end_ns;	/* time at which the pass ends; VDISK_NEVER_NS if idle */
};

/* Counters of the arm. */
struct hdd_arm_counters {
	u64 busy_ns;	/* time of all passes that have ended, ns */
	u64 nr_destages; /* number of writes from the cache */
	u64 nr_aged;	/* commands that were chosen for their age */
	u64 ahead_sectors; /* sectors read ahead */
	u64 seek_ns;	/* time of moves, ns */
	u64 wait_ns;	/* time of waits for the first sector, ns */
	u64 nr_moves;	/* number of moves that were not along a stream */
};

/* The arm. */
struct hdd_arm {
	enum hdd_task task;	/* current task */
	struct vdisk_cmd *command; /* command of the task, or NULL */
	struct vdisk_hdd_place place; /* track of its last position; no angle */
	struct hdd_pass pass;	/* current pass, or the last */
	struct hdd_segment *stream; /* segment of the last read, or NULL */
	u64 ahead_end_lba;	/* sector up to which @stream is read ahead */
	struct vdisk_list pending; /* commands that wait for it, oldest first */
	bool destage_next;	/* whether a write from the cache is next */
	u64 seed;		/* seed of the jitter of seeks; constant */
	struct hdd_arm_counters counters; /* counters */
};

void hdd_arm_queue(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at);
bool hdd_arm_join(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at);
void hdd_arm_interrupt(struct hdd *hdd, u64 at);
void hdd_arm_extend_ahead(struct hdd *hdd, u64 lba);
void hdd_arm_end_pass(struct hdd *hdd, u64 at);
void hdd_arm_start_next(struct hdd *hdd, u64 at);

#endif /* ISOBLK_VDISK_HDD_ARM_H */
