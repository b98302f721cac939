/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cloud volume: token buckets in front of a disk, and a network behind it
 * (volume.c).
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_VOLUME_H
#define ISOBLK_VDISK_VOLUME_H

#include <linux/types.h>

#include "link.h"
#include "model.h"

/* Bytes of one request in the bucket of requests, and of a merged request. */
#define VDISK_VOLUME_IO_BYTES		(256U << 10)

/* A volume. */
struct vdisk_volume {
	struct vdisk_volume_params params; /* parameters */
	u64 seed;		/* seed of the network's spread; constant */
	struct vdisk_link ios_bucket; /* bucket of requests; full at free_ns */
	struct vdisk_link bytes_bucket; /* bucket of bytes; full at free_ns */
	struct vdisk_list waiting; /* commands that wait for tokens */
	u32 nr_waiting;		/* number of commands in @waiting */
	u64 due_ns;		/* time at which the first of @waiting is admitted, ns */
	u64 admitted_ns;	/* time at which the last command was admitted, ns */
	u64 end_pos;		/* byte behind the last admitted command */
	u32 merged_bytes;	/* bytes admitted for that command's token */
	enum vdisk_op last_op;	/* operation of the last admitted command */
};

void vdisk_volume_init(struct vdisk_volume *volume,
		       const struct vdisk_params *params);
void vdisk_volume_change_params(struct vdisk_volume *volume,
				const struct vdisk_params *params, u64 now);
bool vdisk_volume_submit(struct vdisk_volume *volume, struct vdisk_cmd *cmd,
			 u64 now);
struct vdisk_cmd *vdisk_volume_pop(struct vdisk_volume *volume);
u64 vdisk_volume_draw_net_ns(const struct vdisk_volume *volume, u64 seq);

#endif /* ISOBLK_VDISK_VOLUME_H */
