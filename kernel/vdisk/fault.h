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

/* What the host finds of a disk. */
enum vdisk_state {
	VDISK_STATE_OK,		/* it is there */
	VDISK_STATE_LOST,	/* it is unplugged, and loses nothing */
	VDISK_STATE_CUT,	/* it is without power */
};

/* What happens at a write that was chosen. */
enum vdisk_trip {
	VDISK_TRIP_ERROR,	/* it fails */
	VDISK_TRIP_ERRORS,	/* it fails, and all that follow */
	VDISK_TRIP_LOST,	/* the disk is lost */
	VDISK_TRIP_CUT,		/* the power of the disk is cut */
	VDISK_TRIP_CUT_ALL,	/* the power of all disks is cut */
	VDISK_NR_TRIPS,
	VDISK_NO_TRIP = VDISK_NR_TRIPS,
};

/* A part of the medium that fails. */
struct vdisk_bad_range {
	u64 start;	/* first byte */
	u64 end;	/* byte behind the last */
	bool read;	/* whether reads fail */
	bool write;	/* whether writes fail */
};

/* Where the medium is bad, and at which write something happens. */
struct vdisk_medium {
	spinlock_t lock;	/* lock of the rest; not for interrupts */
	u32 count;		/* ranges; may be read without it */
	/* ranges, in the order given */
	struct vdisk_bad_range ranges[VDISK_MAX_BAD_RANGES];
	enum vdisk_trip trip;	/* what happens; likewise */
	u64 writes_left;	/* writes until then; 0 = it has been */
};

struct vdisk_cmd;

void vdisk_medium_init(struct vdisk_medium *medium);
bool vdisk_medium_bad(struct vdisk_medium *medium, const struct vdisk_cmd *cmd);
enum vdisk_trip vdisk_medium_trip(struct vdisk_medium *medium,
				  const struct vdisk_cmd *cmd);

#endif /* ISOBLK_VDISK_FAULT_H */
