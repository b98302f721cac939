/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contents of a disk, for the files of the store: blocks, and writes that
 * are not yet stable. The design is in store.c.
 */
#ifndef ISOBLK_VDISK_STORE_WRITE_H
#define ISOBLK_VDISK_STORE_WRITE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/blk_types.h>
#include <linux/gfp_types.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct request;

/* Allocations do not wait, and a failure causes no warning. */
#define STORE_GFP		(GFP_NOWAIT | __GFP_NOWARN)

/* A block has the size of a page of most machines. A u8 has a bit for each sector. */
#define STORE_BLOCK_SHIFT		12
#define STORE_BLOCK_BYTES		BIT(STORE_BLOCK_SHIFT)
#define STORE_BLOCK_SECTORS		(STORE_BLOCK_BYTES >> SECTOR_SHIFT)
#define STORE_MASK_ALL		((u8)GENMASK(STORE_BLOCK_SECTORS - 1, 0))

/* Effect of a cut on a write. Only two or more logical blocks can tear. */
enum store_fate {
	STORE_LOST,	/* no part of it is kept */
	STORE_KEPT,	/* all of it is kept */
	STORE_TORN,	/* a part at its front is kept */
	STORE_NR_FATES,
};

/* 4 KiB of the disk. */
struct vdisk_block {
	unsigned long index;	/* position on the disk, in blocks; constant */
	void *data;		/* contents, NULL for zeros */
	struct hlist_head slots; /* slots of unstable writes, newest first */
	u32 nr_slots;		/* number of slots for this block */
};

/* A slot: a block of a write. */
struct vdisk_slot {
	struct vdisk_slot *next; /* next slot of the write; constant */
	struct vdisk_write *write; /* write that it is part of; constant */
	struct vdisk_block *block; /* block that it is for; constant */
	struct hlist_node chain; /* entry in the block's slots, unless stable */
	void *data;		/* new contents, then the block's old contents */
	u8 mask;		/* sectors that a cut may restore; a bit each */
};

/* A write or trim that is unstable. */
struct vdisk_write {
	struct list_head link;	/* entry in a list of the store */
	struct vdisk_slot *slots; /* its blocks, in order; constant */
	u32 nr_slots;		/* number of slots; constant */
	u64 pos;		/* first byte; constant */
	u32 bytes;		/* length, bytes; constant */
	u64 seq;		/* position in the order of submission */
	u64 end_seq;		/* position in the order of ending */
	u64 kept_end;		/* byte of the disk up to which a cut keeps it */
	bool power_cut;		/* whether the power was cut before it ended */
	u8 refs;		/* references: 1, and 2 during a cut */
};

/* The volatile cache: writes that have ended, and that a cut may lose. */
struct store_cache {
	struct list_head writes; /* writes, in the order in which they ended */
	u64 nr_writes;		/* number of writes */
	u64 nr_slots;		/* number of slots of these writes */
};

/* A lack of memory for writes. */
struct store_shortage {
	bool lasts;		/* whether the last allocation failed */
	unsigned long since_jiffies; /* time of the first failure in a row, jiffies */
};

/* Counters since the disk was created. */
struct store_counters {
	u64 nr_submitted;	/* writes submitted */
	u64 nr_ended;		/* writes ended */
	u64 nr_cuts;		/* power cuts */
	u64 fates[STORE_NR_FATES]; /* unstable writes at cuts, by store_fate */
};

/* Contents of a disk. The lock of @blocks protects all fields that are not constant. */
struct vdisk_store {
	u64 block_size;		/* logical block, bytes; constant */
	bool volatile_cache;	/* whether ended writes are unstable; constant */
	u64 seed;		/* seed of cuts; constant */

	struct xarray blocks;	/* struct vdisk_block, by index */
	bool powered_off;	/* whether the power is off */
	struct list_head in_flight; /* writes in flight */
	struct list_head cutting; /* writes that a cut has yet to process */
	struct store_cache cache; /* writes that have ended and are unstable */
	struct store_shortage shortage; /* failures to allocate memory */
	struct store_counters counters; /* counters */
	atomic_long_t nr_blocks; /* contents in memory, in blocks; atomic */
};

/* Return the contents of sector @i of a block. */
static inline void *store_sector(void *data, int i)
{
	return data + (i << SECTOR_SHIFT);
}

/* store_block.c */
bool store_may_grow(void);
void *store_data_alloc(struct vdisk_store *store, gfp_t gfp);
void store_data_free(struct vdisk_store *store, void *data);
void store_exchange_sectors(struct vdisk_block *block, struct vdisk_slot *slot,
			    u8 mask, void **spare);
u8 store_mask_before(const struct vdisk_block *block, u64 byte);
struct vdisk_block *store_block_get(struct vdisk_store *store,
				    unsigned long index);
struct vdisk_block *store_block_find(struct vdisk_store *store,
				     unsigned long index, unsigned long last);
void store_block_put(struct vdisk_store *store, struct vdisk_block *block);

/* store_write.c */
struct vdisk_write *store_write_alloc(struct vdisk_store *store,
				      struct request *rq);
void store_write_fill(struct vdisk_store *store, struct vdisk_write *write,
		      struct request *rq);
void store_write_free(struct vdisk_store *store, struct vdisk_write *write);
void store_write_put(struct vdisk_store *store, struct vdisk_write *write);
void store_writes_free(struct vdisk_store *store, struct list_head *writes);
void store_make_stable(struct vdisk_store *store, struct vdisk_write *write);
void store_make_first_stable(struct vdisk_store *store,
			     struct list_head *freed);

#endif /* ISOBLK_VDISK_STORE_WRITE_H */
