/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The metadata of dm-setcache, as the cache sees them.
 *
 * They know the format, which records have to be written, and in what order
 * with flushes. What a record is to say, they ask.
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

/* What was seen of the origin when the cache was stopped. */
struct sc_seen {
	u32 stamp;	/* checksum of a sample of its sectors */
	/* The load of the module that saw it; null if the rest is not known. */
	uuid_t boot;
	u64 diskseq;	/* number of its disk, which no other one has */
	u64 sectors;	/* sectors written and discarded there so far */
};

/* What a superblock says, beside what is kept of it in struct sc_md. */
struct sc_super {
	bool clean;		/* the cache was stopped in order */
	struct sc_seen seen;	/* the origin then */
	u64 dirty;		/* number of dirty blocks then */
	bool fresh;		/* the SSD has just been formatted */
};

/**
 * struct sc_md_ops - what the metadata ask of the cache
 * @say: state and block of slots from @slot on, @count of them, for records.
 *	 @stop: clean ones are to be recorded, too. May be called at any time.
 * @load: a record read; @keep: clean ones count. An error ends the loading.
 *	  Slots where blocks of records have been moved to come first, and are
 *	  retired.
 * @spare: slots, from @slot on, @count of them, that hold nothing, and nothing
 *	   from then on: a block of records is going there. False if there are
 *	   none.
 */
struct sc_md_ops {
	void (*say)(void *context, u64 slot, u32 count, bool stop,
		    u8 *states, u64 *blocks);
	int (*load)(void *context, u64 slot, enum sc_record_state state,
		    u64 block, bool keep);
	bool (*spare)(void *context, u32 count, u64 *slot);
};

/**
 * sc_md_create() - the metadata of a cache; no I/O yet
 * @bdev: the SSD
 * @bs: for bios
 * @geo: its geometry; copied
 * @ops: what is asked
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
 * @format: an SSD with zeros where superblocks belong may be formatted
 * @identity: of the origin, or ""
 * @super: what was found
 * @error: says what is wrong
 *
 * Once open, it has to be the same cache the next time.
 *
 * Context: sleeps.
 * Return: 0, -EINVAL for a superblock of something else, or an I/O error.
 */
int sc_md_open(struct sc_md *md, bool format, const char *identity,
	       struct sc_super *super, const char **error);

/**
 * sc_md_load() - read all records and pass on those that are not free
 * @md: the metadata, open
 * @keep: clean ones count
 * @error: says what is wrong
 *
 * Context: sleeps.
 * Return: 0, -EILSEQ for a damaged record, an error of @load, or of I/O.
 */
int sc_md_load(struct sc_md *md, bool keep, const char **error);

/**
 * sc_md_start() - say on the SSD, durably, that it is in use
 * @md: the metadata
 *
 * Context: sleeps.
 */
int sc_md_start(struct sc_md *md);

/**
 * sc_md_ask() - is the SSD there?
 * @md: the metadata, started
 *
 * Context: as sc_md_commit().
 * Return: 0 if the superblock could be written.
 */
int sc_md_ask(struct sc_md *md);

/**
 * sc_md_uuid() - of the cache, which is open
 * @md: the metadata
 */
const uuid_t *sc_md_uuid(const struct sc_md *md);

/**
 * sc_md_may_be_clean() - the SSD may call itself clean
 * @md: the metadata
 *
 * So it does from sc_md_stop() to sc_md_start(), and if either has failed it is
 * not known.
 */
bool sc_md_may_be_clean(struct sc_md *md);

/**
 * sc_md_stop() - write all records, with the clean ones, and say clean
 * @md: the metadata
 * @seen: of the origin
 * @dirty: dirty blocks
 * @pending: how many blocks of records waited to be written
 *
 * Context: sleeps. Nobody changes the cache.
 */
int sc_md_stop(struct sc_md *md, const struct sc_seen *seen, u64 dirty,
	       u64 *pending);

/**
 * sc_md_changed() - the record of a slot has to be written
 * @md: the metadata
 * @slot: the slot
 *
 * Context: any. The caller holds the lock under which @say reads the slot.
 * Return: whether none of its block had to be before.
 */
bool sc_md_changed(struct sc_md *md, u64 slot);

/**
 * sc_md_stable() - the SSD says of a slot what memory does
 * @md: the metadata
 * @slot: the slot
 *
 * Context: as sc_md_changed().
 */
bool sc_md_stable(struct sc_md *md, u64 slot);

/**
 * sc_md_pending() - any record has to be written
 * @md: the metadata
 */
bool sc_md_pending(struct sc_md *md);

/**
 * sc_md_commit() - make data and records stable
 * @md: the metadata
 * @flush: flush the SSD even if there are no records
 * @written: how many blocks of records were
 *
 * Data written before this is called are stable when it returns, and so are
 * the records of slots changed before. A block of records that cannot be
 * written is moved. After an error the records remain to be written; after
 * -ENOSPC only those of such blocks: sc_md_stable() tells.
 *
 * Context: sleeps; one at a time.
 * Return: 0, -ENOSPC if there is no place for a block of records now, -ENODEV
 * or another error if the SSD is no good any more.
 */
int sc_md_commit(struct sc_md *md, bool flush, u64 *written);

#endif /* SETCACHE_METADATA_H */
