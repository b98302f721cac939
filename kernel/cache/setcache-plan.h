/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bio in dm-setcache, and its plan.
 */
#ifndef SETCACHE_PLAN_H
#define SETCACHE_PLAN_H

#include <linux/minmax.h>

#include "setcache-commit.h"

/* Pages for the cache's own copy of a request; a larger request does not fill. */
#define SC_JOB_PAGES_MAX		1024

/* Which device ends a bio. */
enum sc_end_device {
	SC_END_NONE,		/* none: sc_end_bio() does */
	SC_END_SSD,		/* the SSD: the bio was remapped to it */
	SC_END_ORIGIN,		/* the origin: the bio was remapped to it */
};

/* What the worker does with a bio. */
enum sc_todo {
	SC_TODO_BEGIN,		/* start from the beginning */
	SC_TODO_PLAN,		/* plan it: it has waited for its blocks */
	SC_TODO_JOB,		/* start its job: there was no memory */
};

/* How a bio is served, once its slots are known. */
enum sc_plan {
	SC_PLAN_SSD,		/* by the SSD, in one piece */
	SC_PLAN_ORIGIN,		/* by the origin */
	SC_PLAN_JOB,		/* by a job of several bios */
	SC_PLAN_COMMIT,		/* a discard, after a commit */
	SC_PLAN_FAIL,		/* not: a dirty block is on a lost SSD */
};

/*
 * Per-bio data. One thread or interrupt at a time uses it; while the bio waits
 * for its blocks, the holder of their bucket's lock.
 */
struct sc_io {
	struct sc_op op;	/* announcement of its blocks */
	struct setcache *sc;	/* the cache; constant */
	struct bvec_iter iter;	/* its sectors, relative to the target */
	blk_opf_t opf;		/* the bio's operation and flags */

	/* How it goes on. */
	enum sc_end_device end_device;	/* which device ends it */
	enum sc_todo todo;		/* task for the worker */
	struct list_head defer;		/* entry in deferred.list; under its lock */
	struct sc_waiter waiter;	/* waiter of a flush or a discard */
	/*
	 * Called by its job, which has given the blocks back.
	 * @retry: a device has failed it, and it may be retried at the origin.
	 */
	void (*end_job)(struct sc_io *io, struct bio *bio, blk_status_t error,
			bool retry);

	/* Set by planning, and by its course. */
	u16 slot;	/* slot of its first block, for SC_PLAN_SSD */
	bool bypass;	/* part of a sequential stream */
	bool fill;	/* a read that may fill */
	bool write_through; /* a write to both devices */
	bool changes_slots; /* its slots change state when it ends */
	bool retried;	/* a second attempt, at the origin */
	bool diverted;	/* a write of dirty blocks to the origin */
	bool at_origin;	/* counted in the cache's origin_ios */
};

static inline bool sc_is_read(const struct sc_io *io)
{
	return (io->opf & REQ_OP_MASK) == REQ_OP_READ;
}

/* Return the part of block @i of a range that the bio covers, in sectors. */
static inline void sc_block_part(const struct sc_index *index,
				 const struct bvec_iter *iter, u32 i,
				 sector_t *from, sector_t *to)
{
	sector_t start = iter->bi_sector;
	u64 block = (start >> index->block_shift) + i;

	*from = max_t(sector_t, start, block << index->block_shift);
	*to = min_t(sector_t, start + (iter->bi_size >> SECTOR_SHIFT),
		    (block + 1) << index->block_shift);
}

/* The lock of the bucket is held, and the blocks are announced. */
enum sc_class sc_classify_bio(struct sc_io *io);
enum sc_plan sc_plan_blocks(struct sc_io *io);
bool sc_is_diverted(const struct sc_io *io, u32 i, u16 slot);

#endif /* SETCACHE_PLAN_H */
