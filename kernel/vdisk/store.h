/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contents of a disk (store.c): the interface for its block device (disk.c).
 */
#ifndef ISOBLK_VDISK_STORE_H
#define ISOBLK_VDISK_STORE_H

#include <linux/blk_types.h>
#include <linux/types.h>

#include "model.h"

struct request;
struct vdisk_store;
struct vdisk_write;

/* The state of the store when a flush came. */
struct vdisk_mark {
	u64 nr_ended;	/* number of the last write that had ended */
	u64 nr_cuts;	/* power cuts so far */
};

/* Statistics of a store. */
struct vdisk_store_stats {
	u64 bytes;	/* memory of contents, including those kept for a cut */
	u64 unstable;	/* writes that have ended and are not stable */
	u64 lost;	/* writes that cuts lost */
	u64 torn;	/* writes of which cuts kept a part */
	u64 kept;	/* unstable writes that cuts kept */
};

struct vdisk_store *vdisk_store_create(const struct vdisk_params *params);
void vdisk_store_destroy(struct vdisk_store *store);
void vdisk_store_read(struct vdisk_store *store, struct request *rq);
blk_status_t vdisk_store_write(struct vdisk_store *store, struct request *rq,
			       struct vdisk_write **write);
blk_status_t vdisk_store_write_end(struct vdisk_store *store,
				   struct vdisk_write *write, bool fua);
struct vdisk_mark vdisk_store_mark(struct vdisk_store *store);
blk_status_t vdisk_store_flush_end(struct vdisk_store *store,
				   struct vdisk_mark mark);
void vdisk_store_begin_cut(struct vdisk_store *store);
void vdisk_store_apply_cut(struct vdisk_store *store);
void vdisk_store_restore_power(struct vdisk_store *store);
void vdisk_store_get_stats(struct vdisk_store *store,
			   struct vdisk_store_stats *stats);

#endif /* ISOBLK_VDISK_STORE_H */
