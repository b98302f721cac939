/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cache of the model "disk": one half for read data, the other for data to
 * be written (hdd_cache.c).
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_HDD_CACHE_H
#define ISOBLK_VDISK_HDD_CACHE_H

#include <linux/rbtree.h>
#include <linux/types.h>

#include "hdd.h"
#include "model.h"

struct hdd;

/* Segments of the read cache; real disks have 16 to 64. */
#define HDD_SEGMENTS_MAX	32

/* A segment: a range of sectors in the read cache. */
struct hdd_segment {
	u64 lba;	/* first sector */
	u64 end;	/* sector behind the last; @lba if it is empty */
	u64 last_use;	/* value of uses at its last use */
};

/* The read cache. */
struct hdd_read_cache {
	u32 nr_segments; /* number of segments; 0 = no read cache; constant */
	struct hdd_segment segments[HDD_SEGMENTS_MAX]; /* segments */
	u64 segment_sectors_max; /* maximum of sectors of a segment; constant */
	u64 readahead_sectors; /* sectors to be read ahead; constant */
	u64 nr_uses;	/* number of uses of all segments */
	u64 nr_hits;	/* reads that hit the cache, or joined read-ahead */
	u64 nr_misses;	/* other reads */
};

/* A piece: a range of sectors to be written. */
struct hdd_piece {
	union {
		struct rb_node node;	/* node in the tree, by @lba */
		struct hdd_piece *free; /* next unused piece */
	};
	u64 lba;			/* first sector */
	u64 end;			/* sector behind the last */
	struct vdisk_hdd_place place;	/* place of the first */
};

/* The write cache. */
struct hdd_write_cache {
	struct rb_root pieces;	/* pieces by sector; none adjoin or overlap */
	struct hdd_piece *free;	/* first unused piece */
	u32 nr_free;		/* unused pieces, less 1 per write on the link */
	u64 dirty_sectors;	/* sectors in pieces, being written, or on the link */
	u64 dirty_sectors_max;	/* maximum of @dirty_sectors; 0 = writes bypass the cache */
	struct vdisk_list waiting; /* writes without room, in order */
	struct hdd_piece *all_pieces; /* all pieces */
};

int hdd_cache_init(struct hdd *hdd, const struct vdisk_params *params);
void hdd_cache_destroy(struct hdd *hdd);

/* The read cache. */
void hdd_segment_trim(struct hdd_read_cache *cache,
		      struct hdd_segment *segment);
void hdd_segment_add(struct hdd *hdd, u64 lba, u64 end);
bool hdd_cache_has_read(struct hdd *hdd, struct vdisk_hdd_cmd *cmd);

/* The write cache. */
struct hdd_piece *hdd_piece_find(struct hdd_write_cache *cache, u64 lba);
struct hdd_piece *hdd_piece_next(struct hdd_piece *piece);
struct hdd_piece *hdd_piece_prev(struct hdd_piece *piece);
void hdd_piece_free(struct hdd_write_cache *cache, struct hdd_piece *piece);
void hdd_piece_add(struct hdd *hdd, u64 lba, u64 end);
bool hdd_cache_has_write(struct hdd *hdd, const struct vdisk_hdd_cmd *cmd);
bool hdd_cache_admit(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at);
void hdd_cache_admit_waiting(struct hdd *hdd, u64 at);

#endif /* ISOBLK_VDISK_HDD_CACHE_H */
