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
 * struct vdisk_medium - where the medium is bad
 * @lock: never taken in an interrupt
 * @count: ranges; may be looked at without the lock
 * @ranges: in the order in which they were given
 */
struct vdisk_medium {
	spinlock_t lock;	/* protects the rest */
	u32 count;
	struct vdisk_bad_range ranges[VDISK_MAX_BAD_RANGES];
};

struct vdisk_cmd;

void vdisk_medium_init(struct vdisk_medium *medium);
bool vdisk_medium_bad(struct vdisk_medium *medium, const struct vdisk_cmd *cmd);

#endif /* ISOBLK_VDISK_FAULT_H */
