/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bio in dm-setcache, for those parts that it goes through: -io, -plan, -job.
 */
#ifndef SETCACHE_IO_H
#define SETCACHE_IO_H

#include "setcache.h"

/* Of a bio: who tells us when it ends. */
enum sc_how {
	SC_HOW_OURS,		/* we do */
	SC_HOW_SSD,		/* sent to the SSD */
	SC_HOW_ORIGIN,		/* sent to the origin */
};

/* What the worker is to do with a bio. */
enum sc_todo {
	SC_TODO_BEGIN,		/* as if it came now */
	SC_TODO_GO,		/* it has waited for its blocks, and got them */
	SC_TODO_JOB,		/* there was no memory for its job */
};

/* What a bio is, once its slots are known. */
enum sc_plan {
	SC_PLAN_SSD,
	SC_PLAN_ORIGIN,
	SC_PLAN_JOB,
	SC_PLAN_COMMIT,		/* discard: commit first */
	SC_PLAN_FAIL,
};

/**
 * struct sc_io - a bio's own data
 * @op: its blocks
 * @sc: the cache
 * @defer: on the cache's deferred
 * @waiter: of a flush or a discard
 * @iter: where it lies, from the target's start
 * @opf: its operation and flags
 * @end: called when its job is done with it, and has given its blocks back; or
 *	 when the SSD has failed it, and it may be tried around the cache
 * @how: who ends it
 * @todo: for the worker
 * @slot: of its first block, if all is on the SSD
 * @bypass: of a sequential stream
 * @fill: a read that may fill
 * @through: a write to both devices
 * @settle: its slots change their state when it ends
 * @retried: around the cache, for the SSD has failed, or what a fill needs
 * @away: a write, the SSD has failed it: dirty blocks go to the origin
 * @at_origin: counted in the cache's origin_ios
 *
 * One thread or interrupt at a time is at work on a bio; while it waits for its
 * blocks, whoever holds the lock of their bucket.
 */
struct sc_io {
	struct sc_op op;
	struct setcache *sc;
	struct list_head defer;
	struct sc_waiter waiter;
	struct bvec_iter iter;
	blk_opf_t opf;
	void (*end)(struct sc_io *io, struct bio *bio, blk_status_t error,
		    bool retry);
	enum sc_how how;
	enum sc_todo todo;
	u16 slot;
	bool bypass;
	bool fill;
	bool through;
	bool settle;
	bool retried;
	bool away;
	bool at_origin;
};

static inline bool sc_is_read(const struct sc_io *io)
{
	return (io->opf & REQ_OP_MASK) == REQ_OP_READ;
}

/* The sectors of block @i of a range that a bio has. */
static inline void sc_part(const struct sc_index *index,
			   const struct bvec_iter *iter, u32 i,
			   sector_t *from, sector_t *to)
{
	sector_t start = iter->bi_sector;
	u64 block = (start >> index->block_shift) + i;

	*from = max_t(sector_t, start, block << index->block_shift);
	*to = min_t(sector_t, start + (iter->bi_size >> SECTOR_SHIFT),
		    (block + 1) << index->block_shift);
}

/* setcache-plan.c. The lock of the bucket is held, and the blocks announced. */
enum sc_class sc_classify(struct sc_io *io);
enum sc_plan sc_make_plan(struct sc_io *io);
bool sc_is_away(const struct sc_io *io, u32 i, u16 slot);

/* setcache-job.c */
bool sc_job_start(struct sc_io *io, struct bio *bio, gfp_t gfp);

#endif /* SETCACHE_IO_H */
