/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bio in dm-setcache, and what is planned for it.
 */
#ifndef SETCACHE_PLAN_H
#define SETCACHE_PLAN_H

#include <linux/minmax.h>

#include "setcache-commit.h"

/* Pages for the cache's own copies of a request; a larger one does not fill. */
#define SC_MAX_PAGES		1024

/* Who tells us when a bio ends. */
enum sc_how {
	SC_HOW_OURS,		/* we do */
	SC_HOW_SSD,		/* it was sent to the SSD */
	SC_HOW_ORIGIN,		/* it was sent to the origin */
};

/* What the worker is to do with a bio. */
enum sc_todo {
	SC_TODO_BEGIN,		/* as if it came now */
	SC_TODO_GO,		/* it has waited for its blocks, and got them */
	SC_TODO_JOB,		/* there was no memory for its job */
};

/* What a bio is, once its slots are known. */
enum sc_plan {
	SC_PLAN_SSD,		/* all on the SSD, in one piece */
	SC_PLAN_ORIGIN,		/* all on the origin */
	SC_PLAN_JOB,		/* several bios */
	SC_PLAN_COMMIT,		/* a discard: commit first */
	SC_PLAN_FAIL,		/* a dirty block is out of reach */
};

/*
 * A bio's own data. One thread or interrupt at a time is at work on a bio;
 * while it waits for its blocks, whoever holds the lock of their bucket.
 */
struct sc_io {
	struct sc_op op;	/* announcement of its blocks */
	struct setcache *sc;	/* the cache; constant */
	struct bvec_iter iter;	/* where it lies, from the target's start */
	blk_opf_t opf;		/* its operation and flags */

	/* Who goes on with it. */
	enum sc_how how;		/* who ends it */
	enum sc_todo todo;		/* order for the worker */
	struct list_head defer;		/* place in a list, by its lock */
	struct sc_waiter waiter;	/* wait of a flush or a discard */
	/*
	 * Called when its job is done with it, and has given its blocks back;
	 * @retry: the SSD has failed it, and it may be tried around the cache.
	 */
	void (*end)(struct sc_io *io, struct bio *bio, blk_status_t error,
		    bool retry);

	/* What it is. */
	u16 slot;	/* slot of its first block, if all is on the SSD */
	bool bypass;	/* it is part of a sequential stream */
	bool fill;	/* it is a read that may fill */
	bool through;	/* it is a write to both devices */
	bool settle;	/* its slots change their state when it ends */
	bool retried;	/* it is a second attempt, around the cache */
	bool away;	/* it is a write of dirty blocks to the origin */
	bool at_origin;	/* it is counted in the cache's origin_ios */
};

static inline bool sc_is_read(const struct sc_io *io)
{
	return (io->opf & REQ_OP_MASK) == REQ_OP_READ;
}

/* Give the sectors of block @i of a range that a bio has. */
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

/* The lock of the bucket is held, and the blocks are announced. */
enum sc_class sc_classify(struct sc_io *io);
enum sc_plan sc_make_plan(struct sc_io *io);
bool sc_is_away(const struct sc_io *io, u32 i, u16 slot);

#endif /* SETCACHE_PLAN_H */
