/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the metadata share among themselves: -metadata, -records,
 * -super and -place. Others go by setcache-metadata.h.
 *
 * All of it is used by one thread at a time, that of a commit, or the one that
 * starts or stops the cache, unless a field says otherwise. Functions may
 * sleep.
 */
#ifndef SETCACHE_MD_H
#define SETCACHE_MD_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/blk_types.h>
#include <linux/types.h>
#include <linux/uuid.h>

#include "setcache-format.h"
#include "setcache-metadata.h"

/* Blocks of records that are written with one flush before them. */
#define SC_BATCH	256

/* Longest reason why an SSD was refused, with two identities. */
#define SC_MAX_REASON	384

#define SC_MD_WRITE	(REQ_OP_WRITE | REQ_SYNC | REQ_META)

/* A block of records that has been moved. */
struct sc_move {
	u32 block;	/* number of the block */
	u32 place;	/* where it is instead, as in struct sc_disk_move */
};

/* The metadata of a cache. */
struct sc_md {
	/* These are constant. */
	struct block_device *bdev;	/* the SSD */
	struct bio_set *bs;		/* memory for bios */
	struct sc_geometry geo;		/* the geometry */
	const struct sc_md_ops *ops;	/* what is asked of the cache */
	void *context;			/* the argument of these */
	u64 blocks;			/* number of blocks of records */
	u64 slots;			/* number of records */

	/* What has to be written: a bit a block. */
	unsigned long *changed;		/* blocks that are to be; atomic */
	unsigned long *writing;		/* blocks that are being; atomic */
	atomic_long_t nr_changed;	/* bits in changed, or a few more */
	bool failed;			/* the last commit left some writing */

	/* What the superblock says. */
	struct {
		u64 seq;	/* its number */
		u64 commits;	/* number of commits so far */
		uuid_t uuid;	/* the name of this cache */
		u32 seed;	/* checksum of the name */
		char identity[SC_IDENTITY_SIZE];	/* name of the origin */
		bool due;	/* all copies are to be written */
		bool may_be_clean;	/* it says clean, or may */
	} super;

	/* Blocks of records that have been moved, in their order. */
	struct {
		struct sc_move list[SC_MAX_MOVED];	/* where they are */
		u32 nr;					/* how many are */
	} moved;

	/* Blocks that are read or written together. */
	struct {
		struct page *pages[SC_BATCH];	/* the blocks */
		u64 index[SC_BATCH];		/* their numbers */
		/* A bit each: no place could be found for it. */
		DECLARE_BITMAP(homeless, SC_BATCH);
		u8 states[SC_RECORDS];	/* states of one block's records */
		u64 where[SC_RECORDS];	/* blocks of the same */
	} batch;

	char reason[SC_MAX_REASON];	/* why the SSD was refused */
};

/* setcache-records.c */
int sc_md_write_all(struct sc_md *md, bool stop);
void sc_md_written(struct sc_md *md);

/* setcache-super.c */
void sc_super_seed(struct sc_md *md);
int sc_super_write(struct sc_md *md, enum sc_super_state state,
		   const struct sc_seen *seen, u64 dirty);
int sc_super_write_everywhere(struct sc_md *md);
int sc_super_read(struct sc_md *md, u32 *hidden);
bool sc_super_is_empty(const struct sc_md *md);
int sc_super_open(struct sc_md *md, u32 hidden, const char *identity,
		  struct sc_super *super, const char **error);

/* setcache-place.c */
int sc_md_flush(struct sc_md *md);
int sc_md_page(struct sc_md *md, blk_opf_t opf, sector_t sector, u32 i);
int sc_md_batch(struct sc_md *md, blk_opf_t opf, u32 count);
u32 sc_md_run(const struct sc_md *md, u32 first, u32 count);
sector_t sc_record_sector(const struct sc_md *md, u64 block);
u32 sc_place_slots(const struct sc_md *md);
u64 sc_place_slot(const struct sc_md *md, u32 place);
bool sc_md_set_moved(struct sc_md *md, u64 block, u64 place);

#endif /* SETCACHE_MD_H */
