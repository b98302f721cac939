/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults of a disk that is on: which commands trigger them (fault.c); disk.c
 * and disk_state.c have their effects.
 */
#ifndef ISOBLK_VDISK_FAULT_H
#define ISOBLK_VDISK_FAULT_H

#include <linux/spinlock.h>
#include <linux/types.h>

/* Bad ranges of a disk: as many as fit in a page of text. */
#define VDISK_BAD_RANGES_MAX	64

/* The state of a disk, as the host sees it. */
enum vdisk_state {
	VDISK_STATE_OK,		/* it works */
	VDISK_STATE_LOST,	/* it is unplugged, and loses nothing */
	VDISK_STATE_CUT,	/* it is without power */
};

/* The fault that a chosen write triggers. */
enum vdisk_fault {
	VDISK_FAULT_ERROR,	/* the write fails */
	VDISK_FAULT_ERRORS,	/* the write and all later ones fail */
	VDISK_FAULT_LOST,	/* the disk is lost */
	VDISK_FAULT_CUT,	/* the power of the disk is cut */
	VDISK_FAULT_CUT_ALL,	/* the power of all disks is cut */
	VDISK_NR_FAULTS,
	VDISK_FAULT_NONE = VDISK_NR_FAULTS,
};

/* A range of the medium that fails. */
struct vdisk_bad_range {
	u64 start;	/* first byte */
	u64 end;	/* byte behind the last */
	bool read;	/* whether reads fail */
	bool write;	/* whether writes fail */
};

/* The medium: its bad ranges, and the fault at a chosen write. */
struct vdisk_medium {
	spinlock_t lock;	/* protects the rest; not taken in interrupts */
	u32 count;		/* ranges in use; also read without the lock */
	/* bad ranges, in the order in which they were set */
	struct vdisk_bad_range ranges[VDISK_BAD_RANGES_MAX];
	enum vdisk_fault fault;	/* the fault; also read without the lock */
	u64 writes_left;	/* writes until the fault; 0 = triggered */
};

struct vdisk_cmd;

void vdisk_medium_init(struct vdisk_medium *medium);
bool vdisk_medium_is_bad(struct vdisk_medium *medium,
			 const struct vdisk_cmd *cmd);
enum vdisk_fault vdisk_medium_take_fault(struct vdisk_medium *medium,
					 const struct vdisk_cmd *cmd);

#endif /* ISOBLK_VDISK_FAULT_H */
