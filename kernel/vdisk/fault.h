/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults of a disk that is on: who may see them (fault.c), and what they do
 * (disk.c).
 */
#ifndef ISOBLK_VDISK_FAULT_H
#define ISOBLK_VDISK_FAULT_H

#include <linux/spinlock.h>
#include <linux/types.h>

/* As many as fit a page of text. */
#define VDISK_MAX_BAD_RANGES	64

/* What the host finds. */
enum vdisk_state {
	VDISK_STATE_OK,
	VDISK_STATE_LOST,
	VDISK_STATE_CUT,
};

/* What happens at a write that was chosen. */
enum vdisk_trip {
	VDISK_TRIP_ERROR,	/* it fails */
	VDISK_TRIP_ERRORS,	/* it fails, and all that follow */
	VDISK_TRIP_LOST,	/* the disk is lost */
	VDISK_TRIP_CUT,		/* its power is cut */
	VDISK_TRIP_CUT_ALL,	/* that of all disks is */
	VDISK_NR_TRIPS,
	VDISK_NO_TRIP = VDISK_NR_TRIPS,
};

/**
 * struct vdisk_bad_range - a part of the medium that fails
 * @start: first byte
 * @end: behind the last one
 * @read: fails reads
 * @write: fails writes
 */
struct vdisk_bad_range {
	u64 start;
	u64 end;
	bool read;
	bool write;
};

/**
 * struct vdisk_medium - where, and when, the medium is bad
 * @lock: never taken in an interrupt
 * @count: ranges; may be looked at without the lock
 * @ranges: in the order in which they were given
 * @trip: happens at a write; VDISK_NO_TRIP may be seen without the lock
 * @writes_left: until then, that one counted; 0: it has
 */
struct vdisk_medium {
	spinlock_t lock;	/* protects the rest */
	u32 count;
	struct vdisk_bad_range ranges[VDISK_MAX_BAD_RANGES];
	enum vdisk_trip trip;
	u64 writes_left;
};

struct vdisk_cmd;

void vdisk_medium_init(struct vdisk_medium *medium);
bool vdisk_medium_bad(struct vdisk_medium *medium, const struct vdisk_cmd *cmd);
enum vdisk_trip vdisk_medium_trip(struct vdisk_medium *medium,
				  const struct vdisk_cmd *cmd);

#endif /* ISOBLK_VDISK_FAULT_H */
