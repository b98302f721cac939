/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The format of dm-setcache's metadata on the SSD: three copies of a superblock,
 * and a record for each slot. README.md has the format, byte for byte.
 */
#ifndef SETCACHE_FORMAT_H
#define SETCACHE_FORMAT_H

#include <linux/bits.h>
#include <linux/blk_types.h>
#include <linux/build_bug.h>
#include <linux/types.h>

#define SC_RECORD_BYTES		16
#define SC_RECORD_BLOCK_BYTES		4096
#define SC_RECORDS_PER_BLOCK		(SC_RECORD_BLOCK_BYTES / SC_RECORD_BYTES)

/* In sectors. */
#define SC_RECORD_BLOCK_SECTORS	(SC_RECORD_BLOCK_BYTES >> SECTOR_SHIFT)
#define SC_RECORD_START_SECTOR		(2 * SC_RECORD_BLOCK_SECTORS)
#define SC_DATA_ALIGN_SECTORS		128

/* Bytes of an origin's identity, with the zero behind it. */
#define SC_IDENTITY_BYTES	128

/* Moved blocks of records that a superblock has room for. */
#define SC_MOVED_MAX		450

#define SC_MAGIC		"isoblk setcache"
#define SC_VERSION		2

/* Copies of the superblock; all but the last are written in turn. */
#define SC_NR_TURN_COPIES		2
#define SC_NR_COPIES		3

/* A record has its state above its block. */
#define SC_STATE_SHIFT		60
#define SC_BLOCK_MASK		GENMASK_ULL(SC_STATE_SHIFT - 1, 0)

/* States of a slot in its record. */
enum sc_record_state {
	SC_RECORD_FREE,
	SC_RECORD_CLEAN,
	SC_RECORD_DIRTY,
	SC_RECORD_RETIRED,
	SC_NR_RECORD_STATES,
};

/* States of the cache in its superblock. */
enum sc_super_state {
	SC_SUPER_IN_USE,
	SC_SUPER_CLEAN,
};

/* A moved block of records: its number, and its place in units of 4096 bytes. */
struct sc_disk_move {
	__le32 block;
	__le32 place;
} __packed;

/* A superblock. Its checksum covers 4096 bytes; the rest of these is zeros. */
struct sc_disk_super {
	u8 magic[16];
	__le32 version;
	__le32 csum;
	__le64 seq;
	u8 uuid[16];
	__le32 block;
	__le32 assoc;
	__le64 sets;
	__le64 origin;
	__le64 ssd;
	__le64 data;
	__le32 state;
	__le32 stamp;
	__le64 commits;
	__le64 dirty;
	u8 identity[SC_IDENTITY_BYTES];
	u8 boot[16];
	__le64 diskseq;
	__le64 sectors;
	__le32 nr_moved;
	struct sc_disk_move moved[SC_MOVED_MAX];
	u8 zero[SC_RECORD_BLOCK_BYTES - 276 - SC_MOVED_MAX * 8];
} __packed;

/* The record of a slot. */
struct sc_record {
	__le64 where;
	__le32 seq;
	__le32 csum;
} __packed;

static_assert(sizeof(struct sc_disk_super) == SC_RECORD_BLOCK_BYTES);
static_assert(sizeof(struct sc_record) == SC_RECORD_BYTES);

/* Geometry, constant over a cache's life: sizes in sectors, and numbers. */
struct sc_geometry {
	u32 block_sectors; /* size of a block */
	u32 assoc;	/* number of slots of a set */
	u64 nr_sets;	/* number of sets */
	u64 origin_sectors; /* size of the origin */
	u64 ssd_sectors; /* size of the SSD */
	u64 data_sector; /* first sector of the data on the SSD */
};

sector_t sc_super_sector(const struct sc_geometry *geo, u32 copy);

/**
 * sc_geometry_fit_sets() - compute the number of sets that fit on the SSD
 * @geo: the geometry; sets and data are computed, the rest is given
 *
 * Return: 0, or -ENOSPC if not even one set fits.
 */
int sc_geometry_fit_sets(struct sc_geometry *geo);

void sc_record_encode(struct sc_record *record, u32 seed, u64 slot,
		      enum sc_record_state state, u64 block, u32 seq);
bool sc_record_decode(const struct sc_record *record, u32 seed, u64 slot,
		      enum sc_record_state *state, u64 *block);

#endif /* SETCACHE_FORMAT_H */
