/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arm of the model "disk": what it does, and what it does next (hdd_arm.c).
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

/* What the arm does. */
enum hdd_task {
	HDD_IDLE,	/* nothing */
	HDD_COMMAND,	/* reads or writes for a command */
	HDD_AHEAD,	/* reads ahead */
	HDD_DESTAGE,	/* writes from the cache */
};

/* A way of the arm, to some sectors and over them; if it is idle, the last. */
struct hdd_pass {
	u64 from;	/* first sector */
	u64 to;		/* sector behind the last */
	u64 begin_ns;	/* time at which the arm set out */
	u64 pass_ns;	/* time at which @from comes under the head */
	u64 end_ns;	/* time at which all have passed; VDISK_NEVER if idle */
};

/* What the arm has done. */
struct hdd_arm_counters {
	u64 busy_ns;	/* time of all passes that have ended */
	u64 destages;	/* number of writes from the cache */
	u64 aged;	/* times that a command went first because of its age */
	u64 ahead;	/* sectors read ahead */
	u64 seek_ns;	/* time on the way to where it was sent */
	u64 wait_ns;	/* time that it then waited for the sector */
	u64 moves;	/* number of moves that were not along a stream */
};

/* The arm. */
struct hdd_arm {
	enum hdd_task task;	/* what it does */
	struct vdisk_cmd *command; /* command that it does that for, or NULL */
	struct vdisk_hdd_place place; /* track that it comes from; no angle */
	struct hdd_pass pass;	/* way that it is on, or was on last */
	struct hdd_segment *stream; /* what it read into last, or NULL */
	u64 ahead_end;		/* sector up to which it reads on from there */
	struct vdisk_list pending; /* commands that want it, in order */
	bool destage_next;	/* whether a write from the cache is next */
	u64 seed;		/* seed of the jitter of seeks; constant */
	struct hdd_arm_counters did; /* what it has done */
};

void hdd_pend(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at);
bool hdd_join(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at);
void hdd_interrupt(struct hdd *hdd, u64 at);
void hdd_read_on(struct hdd *hdd, u64 lba);
void hdd_arm_done(struct hdd *hdd, u64 at);
void hdd_work(struct hdd *hdd, u64 at);

#endif /* ISOBLK_VDISK_HDD_ARM_H */
