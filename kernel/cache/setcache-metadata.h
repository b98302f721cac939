/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The metadata of dm-setcache: the interface of the cache.
 *
 * The metadata know the format, which records have to be written, and the order
 * of writes and flushes. The cache supplies the contents of records.
 */
#ifndef SETCACHE_METADATA_H
#define SETCACHE_METADATA_H

#include <linux/bitops.h>
#include <linux/blk_types.h>
#include <linux/types.h>
#include <linux/uuid.h>

#include "setcache-format.h"

struct bio_set;
struct sc_md;

/* The state of the origin's contents when the cache was stopped. */
struct sc_origin_state {
	u32 stamp;	/* checksum of a sample of its sectors */
	/* The module's load that read the rest; null if the rest is unknown. */
	uuid_t boot_id;
	u64 diskseq;	/* diskseq of its disk */
	u64 written_sectors; /* sectors written and discarded on that disk */
};

/* Contents of a superblock that struct sc_md does not keep. */
struct sc_super {
	bool clean;		/* the cache was stopped in order */
	struct sc_origin_state origin; /* the origin at that stop */
	u64 nr_dirty;		/* number of dirty blocks at that stop */
	bool formatted;		/* the SSD has just been formatted */
};

/**
 * struct sc_md_ops - callbacks of the metadata to the cache
 * @get_slots: report state and block of @count slots from @slot on, for their records.
 *	 @stop: record clean slots, too. May be called at any time.
 * @load_slot: take over a record; @keep: clean blocks count. An error ends loading.
 *	  Slots that hold moved blocks of records come first, and are
 *	  retired.
 * @find_spare: find @count slots, from @slot on, that hold no data, and retire them:
 *	   a block of records will be written there. Returns false if there are
 *	   none.
 */
struct sc_md_ops {
	void (*get_slots)(void *context, u64 slot, u32 count, bool stop,
			  u8 *states, u64 *blocks);
	int (*load_slot)(void *context, u64 slot, enum sc_record_state state,
			 u64 block, bool keep);
	bool (*find_spare)(void *context, u32 count, u64 *slot);
};

/**
 * sc_md_create() - allocate the metadata of a cache, without I/O
 * @bdev: the SSD
 * @bs: memory for bios
 * @geo: the geometry of the cache; copied
 * @ops: callbacks
 * @context: for @ops
 *
 * Return: the metadata or an ERR_PTR.
 */
struct sc_md *sc_md_create(struct block_device *bdev, struct bio_set *bs,
			   const struct sc_geometry *geo,
			   const struct sc_md_ops *ops, void *context);
void sc_md_destroy(struct sc_md *md);

/**
 * sc_md_open() - read the superblock, or format the SSD
 * @md: the metadata
 * @format: format an SSD that has zeros in the places of superblocks
 * @identity: identity of the origin, or ""
 * @super: set to the superblock's contents
 * @error: says what is wrong
 *
 * After the first success only the same cache can be opened again.
 *
 * Context: sleeps.
 * Return: 0, -EINVAL for a superblock of something else, or an I/O error.
 */
int sc_md_open(struct sc_md *md, bool format, const char *identity,
	       struct sc_super *super, const char **error);

/**
 * sc_md_load() - read all records and pass those that are not free to @load_slot
 * @md: the metadata, open
 * @keep: clean ones count
 * @error: says what is wrong
 *
 * Context: sleeps.
 * Return: 0, -EILSEQ for a damaged record, an error of @load_slot, or of I/O.
 */
int sc_md_load(struct sc_md *md, bool keep, const char **error);

/**
 * sc_md_start() - record on the SSD, durably, that it is in use
 * @md: the metadata
 *
 * Context: sleeps.
 */
int sc_md_start(struct sc_md *md);

/**
 * sc_md_probe() - probe the SSD by writing the superblock
 * @md: the metadata, started
 *
 * Context: as sc_md_commit().
 * Return: 0 if the superblock could be written.
 */
int sc_md_probe(struct sc_md *md);

/**
 * sc_md_get_uuid() - return the UUID of an open cache
 * @md: the metadata
 */
const uuid_t *sc_md_get_uuid(const struct sc_md *md);

/**
 * sc_md_may_be_clean() - return whether the SSD may say clean
 * @md: the metadata
 *
 * It says clean from sc_md_stop() to sc_md_start(); if either has failed, its
 * state is unknown.
 */
bool sc_md_may_be_clean(struct sc_md *md);

/**
 * sc_md_stop() - write all records, clean slots included, and the state clean
 * @md: the metadata
 * @origin: state of the origin
 * @dirty: number of dirty blocks
 * @pending: set to the number of blocks of records that waited to be written
 *
 * Context: sleeps. No request changes the cache.
 */
int sc_md_stop(struct sc_md *md, const struct sc_origin_state *origin, u64 dirty,
	       u64 *pending);

/**
 * sc_md_mark_changed() - mark the record of a slot as to be written
 * @md: the metadata
 * @slot: the slot
 *
 * Context: any. The caller holds the lock under which @get_slots reads the slot.
 * Return: whether no record of its block was marked before.
 */
bool sc_md_mark_changed(struct sc_md *md, u64 slot);

/**
 * sc_md_is_stable() - return whether the SSD's record of a slot equals memory
 * @md: the metadata
 * @slot: the slot
 *
 * Context: as sc_md_mark_changed().
 */
bool sc_md_is_stable(struct sc_md *md, u64 slot);

/**
 * sc_md_is_pending() - return whether a record has to be written
 * @md: the metadata
 */
bool sc_md_is_pending(struct sc_md *md);

/**
 * sc_md_commit() - make data and records stable
 * @md: the metadata
 * @flush: flush the SSD even if there are no records
 * @written: set to the number of blocks of records that were written
 *
 * Data that were written before the call are stable when it returns, and so are
 * the records of slots that were changed before it. A block of records that
 * cannot be written is moved. After an error the records remain to be written;
 * after -ENOSPC only those of blocks without a place: sc_md_is_stable() tells.
 *
 * Context: sleeps; one at a time.
 * Return: 0, -ENOSPC if there is no place for a block of records now, -ENODEV
 * or another error if the SSD cannot be used any more.
 */
int sc_md_commit(struct sc_md *md, bool flush, u64 *written);

#endif /* SETCACHE_METADATA_H */
