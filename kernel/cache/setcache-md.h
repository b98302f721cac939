/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Definitions that the parts of the metadata share: -metadata, -records, -super
 * and -place. Other parts use setcache-metadata.h.
 *
 * One thread at a time uses all of it, that of a commit or the one that
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

/* Blocks of records that are written after one flush. */
#define SC_BATCH_BLOCKS	256

/* Bytes of the longest reason for refusing an SSD, with two identities. */
#define SC_REASON_BYTES	384

#define SC_MD_WRITE_OPF	(REQ_OP_WRITE | REQ_SYNC | REQ_META)

/* A block of records that has been moved. */
struct sc_move {
	u32 block;	/* number of the block */
	u32 place;	/* its new location, as in struct sc_disk_move */
};

/* The metadata of a cache. */
struct sc_md {
	/* These are constant. */
	struct block_device *bdev;	/* the SSD */
	struct bio_set *bs;		/* memory for bios */
	struct sc_geometry geo;		/* the geometry */
	const struct sc_md_ops *ops;	/* the cache's callbacks */
	void *context;			/* argument of ops */
	u64 nr_blocks;			/* number of blocks of records */
	u64 nr_slots;			/* number of records */

	/* Blocks of records to be written: a bit per block. */
	unsigned long *changed;		/* not yet in a commit; atomic */
	unsigned long *writing;		/* in a commit, not yet stable; atomic */
	atomic_long_t nr_changed;	/* bits in changed, about */
	bool commit_failed;		/* the last commit left bits in writing */

	/* Contents of the superblock. */
	struct {
		u64 seq;	/* its sequence number */
		u64 commits;	/* number of commits so far */
		uuid_t uuid;	/* UUID of this cache */
		u32 seed;	/* checksum of the UUID */
		char identity[SC_IDENTITY_BYTES];	/* the origin's, or "" */
		bool must_write; /* all copies have to be written */
		bool may_be_clean;	/* the SSD says clean, or may */
	} super;

	/* Moved blocks of records, sorted by block. */
	struct {
		struct sc_move list[SC_MOVED_MAX];	/* moved blocks */
		u32 nr;					/* entries in use */
	} moved;

	/* Blocks of records that are read or written together. */
	struct {
		struct page *pages[SC_BATCH_BLOCKS]; /* the blocks */
		u64 index[SC_BATCH_BLOCKS];	/* numbers of the blocks */
		/* A bit per block: no place was found for it. */
		DECLARE_BITMAP(unplaced, SC_BATCH_BLOCKS);
		u8 states[SC_RECORDS_PER_BLOCK]; /* states of one block's records */
		u64 where[SC_RECORDS_PER_BLOCK]; /* the origin's blocks in these records */
	} batch;

	char reason[SC_REASON_BYTES];	/* why the SSD was refused */
};

/* setcache-records.c */
int sc_md_write_all(struct sc_md *md, bool stop);
void sc_md_clear_marks(struct sc_md *md);

/* setcache-super.c */
void sc_super_set_seed(struct sc_md *md);
int sc_super_write(struct sc_md *md, enum sc_super_state state,
		   const struct sc_origin_state *origin, u64 dirty);
int sc_super_write_everywhere(struct sc_md *md);
int sc_super_read(struct sc_md *md, u32 *hidden);
bool sc_super_is_empty(const struct sc_md *md);
int sc_super_open(struct sc_md *md, u32 hidden, const char *identity,
		  struct sc_super *super, const char **error);

/* setcache-place.c */
int sc_md_flush(struct sc_md *md);
int sc_md_rw_page(struct sc_md *md, blk_opf_t opf, sector_t sector, u32 i);
int sc_md_rw_batch(struct sc_md *md, blk_opf_t opf, u32 count);
u32 sc_md_run_end(const struct sc_md *md, u32 first, u32 count);
sector_t sc_place_record_sector(const struct sc_md *md, u64 block);
u32 sc_place_count_slots(const struct sc_md *md);
u64 sc_place_first_slot(const struct sc_md *md, u32 place);
bool sc_md_set_moved(struct sc_md *md, u64 block, u64 place);

#endif /* SETCACHE_MD_H */
