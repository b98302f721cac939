// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of a bio through dm-setcache.
 *
 * A bio lies in one set (max_io_len), so one lock tells all about it. Under that
 * lock it announces its blocks, finds or takes slots, and knows what it is: all
 * on the SSD in one piece, all on the origin, or a job of several bios. The
 * first two are sent on as they are, from where they came, without memory or
 * another thread; at their end the states of their slots change, and who waited
 * for their blocks goes on.
 *
 * What is sent for a bio is charged as the bio is: to the same cgroup, with the
 * same priority, from whatever thread, and if it is a fill, even after its end.
 * So schedulers of both devices divide by weight what tenants cause.
 *
 * A job is for: reads that fill, hits in several pieces, a mixture, writes to
 * both devices, writes whose first or last block is to be read first, and FUA
 * writes that need a commit. It takes the announcement over, for a fill goes on
 * when the reader has long got his data.
 *
 * No read waits for its fill, however slow the SSD: one thread sends all fills,
 * and it alone waits where the SSD takes no more. When much is to be filled
 * already, reads that miss go past the cache.
 *
 * Memory. Bios and jobs come from mempools, pages are tried for and done
 * without. Who waits for a job's memory is on a workqueue of its own, for the
 * jobs that give it back need the other one.
 *
 * An error of the SSD is not the reader's business unless the block is dirty.
 * What failed and is not dirty is dropped, and the bio starts anew, this time
 * around the cache. The same is done with writes: what was dropped was not
 * dirty, so the SSD has no record of it (README.md), and the origin may take it.
 */
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/cgroup.h>
#include <linux/highmem.h>
#include <linux/ioprio.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "setcache.h"

/*
 * Pages with data that are to be written to the SSD for reads that have ended:
 * so much memory at most, beside that of the reads under way. An SSD that takes
 * 200 MB/s is busy with it for 80 ms.
 */
#define SC_MAX_FILL	(SZ_16M >> PAGE_SHIFT)

/* Memory that a request can do without. */
#define SC_GFP_TRY	(GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN)

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
 * @how: who ends it
 * @todo: for the worker
 * @mode: the cache's, when it began
 * @slot: of its first block, if all is on the SSD
 * @bypass: of a sequential stream
 * @fill: a read that may fill
 * @through: a write to both devices
 * @settle: its slots change their state when it ends
 * @retried: around the cache, for the SSD has failed
 * @at_origin: counted in the cache's origin_ios
 */
struct sc_io {
	struct sc_op op;
	struct setcache *sc;
	struct list_head defer;
	struct sc_waiter waiter;
	struct bvec_iter iter;
	blk_opf_t opf;
	enum sc_how how;
	enum sc_todo todo;
	u8 mode;
	u16 slot;
	bool bypass;
	bool fill;
	bool through;
	bool settle;
	bool retried;
	bool at_origin;
};

/* What a block of a job is. */
enum sc_kind {
	SC_KIND_HIT,		/* in its slot, written or read there */
	SC_KIND_NEW,		/* in a fresh slot; of a read: by our pages */
	SC_KIND_RMW,		/* in a fresh slot, and only a part is given */
	SC_KIND_ORIGIN,		/* on the origin */
};

struct sc_piece {
	u16 slot;
	u8 kind;
};

/**
 * struct sc_job - a bio that needs more than one
 * @sc: the cache
 * @op: the blocks, taken over from the bio
 * @io: the bio's data; as @bio not to be touched after its end
 * @bio: the bio
 * @iter: where it lies
 * @opf: its operation and flags
 * @css: the cgroup that is charged, may be NULL
 * @ioprio: its priority
 * @write_hint: the bio's
 * @through: as the bio's
 * @dirty: a write that touches what was dirty
 * @pending: bios in flight, and one while they are submitted
 * @ssd_error: of any of them
 * @origin_error: of any of them
 * @next: goes on when all are done, @work: in process context
 * @work: for that
 * @waiter: for a commit
 * @fill: on the cache's fills
 * @pages: ours, for the blocks from @base on, some may be missing
 * @nr_pages: how many @pages has room for
 * @base: first block that has pages
 * @count: blocks
 * @pieces: of each block
 */
struct sc_job {
	struct setcache *sc;
	struct sc_op op;
	struct sc_io *io;
	struct bio *bio;
	struct bvec_iter iter;
	blk_opf_t opf;
	struct cgroup_subsys_state *css;
	unsigned short ioprio;
	enum rw_hint write_hint;
	bool through;
	bool dirty;
	atomic_t pending;
	blk_status_t ssd_error;
	blk_status_t origin_error;
	void (*next)(struct sc_job *job);
	struct work_struct work;
	struct sc_waiter waiter;
	struct list_head fill;
	struct page **pages;
	u32 nr_pages;
	u32 base;
	u32 count;
	struct sc_piece pieces[];
};

size_t sc_per_bio_size(void)
{
	return sizeof(struct sc_io);
}

size_t sc_job_size(u32 assoc)
{
	return struct_size_t(struct sc_job, pieces, assoc);
}

static struct bio *sc_bio_of(struct sc_io *io)
{
	return dm_bio_from_per_bio_data(io, sizeof(*io));
}

static bool sc_is_read(const struct sc_io *io)
{
	return (io->opf & REQ_OP_MASK) == REQ_OP_READ;
}

/* The sectors of block @i of a range that a bio has. */
static void sc_part(const struct sc_index *index, const struct bvec_iter *iter,
		    u32 i, sector_t *from, sector_t *to)
{
	sector_t start = iter->bi_sector;
	u64 block = (start >> index->block_shift) + i;

	*from = max_t(sector_t, start, block << index->block_shift);
	*to = min_t(sector_t, start + (iter->bi_size >> SECTOR_SHIFT),
		    (block + 1) << index->block_shift);
}

/* Its record has to be written. The bucket's lock is held. */
void sc_mark(struct setcache *sc, u32 set, u16 slot)
{
	sc_count(sc, SC_STAT_record_updates, 1);
	if (sc_md_changed(sc->md, sc_slot(&sc->index, set, slot)))
		queue_delayed_work(sc->commit_wq, &sc->commit_timer,
				   msecs_to_jiffies(sc_option(sc, SC_COMMIT_MS)));
	else
		sc_count(sc, SC_STAT_record_batched, 1);
}

/*---------------------------------------------------------------------------*/

/*
 * The SSD is gone. What is clean is dropped, for nobody knows what it will hold
 * when it is back; where somebody is at work it stays, and is not looked at.
 */
void sc_lose(struct setcache *sc)
{
	if (cmpxchg(&sc->lost, false, true))
		return;
	DMERR("%s: the SSD is lost; %ld dirty blocks are out of reach",
	      dm_table_device_name(sc->ti->table),
	      atomic_long_read(&sc->index.nr_dirty));
	queue_work(sc->wq, &sc->lost_work);
}

void sc_lost_work(struct work_struct *work)
{
	struct setcache *sc = container_of(work, struct setcache, lost_work);
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket;
	u32 set;
	u16 slot;

	for (set = 0; set < index->geo.sets; set++) {
		bucket = sc_bucket(index, set);
		spin_lock_irq(&bucket->lock);
		for (slot = 0; slot < index->geo.assoc; slot++)
			if (sc_state(index, set, slot) == SC_CLEAN &&
			    !sc_slot_busy(index, set, sc_id(index, set, slot),
					  NULL))
				sc_remove(index, set, slot);
		spin_unlock_irq(&bucket->lock);
		cond_resched();
	}
}

void sc_ssd_error(struct setcache *sc, blk_status_t error)
{
	sc_count(sc, SC_STAT_ssd_errors, 1);
	DMWARN_LIMIT("%s: I/O error on the SSD",
		     dm_table_device_name(sc->ti->table));
	if (error == BLK_STS_OFFLINE ||
	    atomic_inc_return(&sc->errors) >= SC_MAX_ERRORS)
		sc_lose(sc);
}

/*
 * Drop what is not dirty of some blocks, which are the caller's. But what others
 * read as well has to stay: their data must not be another block's by the time
 * they come. A reader that has failed does not look at it again.
 */
static void sc_drop(struct setcache *sc, const struct sc_op *op)
{
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_bucket(index, op->set);
	unsigned long flags;
	u16 slot;
	u32 id;

	spin_lock_irqsave(&bucket->lock, flags);
	for (id = op->first; id <= op->last; id++) {
		slot = sc_find(index, op->set, id);
		if (slot == SC_NIL || sc_state(index, op->set, slot) >= SC_DIRTY)
			continue;
		if (op->class == SC_SHARED &&
		    sc_slot_busy(index, op->set, id, op))
			continue;
		sc_remove(index, op->set, slot);
		sc_count(sc, SC_STAT_invalidated, 1);
	}
	spin_unlock_irqrestore(&bucket->lock, flags);
}

/* More dirty slots than there should be. The bucket's lock is held. */
void sc_check_dirty(struct setcache *sc, u32 set)
{
	struct sc_index *index = &sc->index;

	if (index->sets[set].dirty * 100 >
	    sc_option(sc, SC_SET_HIGH) * index->geo.assoc &&
	    !test_and_set_bit(set, sc->over))
		sc_clean_kick(sc);
	if (!READ_ONCE(sc->over_global) &&
	    div_u64(index->slots * sc_option(sc, SC_DIRTY_HIGH), 100) <
	    atomic_long_read(&index->nr_dirty)) {
		WRITE_ONCE(sc->over_global, true);
		sc_clean_kick(sc);
	}
}

/* A slot has become dirty. The bucket's lock is held. */
static void sc_dirty(struct setcache *sc, u32 set, u16 slot)
{
	sc_set_state(&sc->index, set, slot, SC_DIRTY);
	sc_count(sc, SC_STAT_dirtied, 1);
	sc_mark(sc, set, slot);
	sc_check_dirty(sc, set);
}

/* Written: the slots of some blocks are what they were to become. */
static void sc_settle(struct setcache *sc, const struct sc_op *op, bool through)
{
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_bucket(index, op->set);
	enum sc_state state;
	unsigned long flags;
	u16 slot;
	u32 id;

	spin_lock_irqsave(&bucket->lock, flags);
	for (id = op->first; id <= op->last; id++) {
		slot = sc_find(index, op->set, id);
		if (slot == SC_NIL)
			continue;
		state = sc_state(index, op->set, slot);
		if (state >= SC_DIRTY)
			continue;
		if (!through)
			sc_dirty(sc, op->set, slot);
		else if (sc->lost)
			sc_remove(index, op->set, slot);
		else
			sc_set_state(index, op->set, slot, SC_CLEAN);
	}
	spin_unlock_irqrestore(&bucket->lock, flags);
}

/* Dirty data were written, and will be acknowledged. */
static void sc_unflushed(struct setcache *sc)
{
	if (!READ_ONCE(sc->unflushed))
		WRITE_ONCE(sc->unflushed, true);
}

/*---------------------------------------------------------------------------*/

/* What a bio may meet, and whether it fills. The bucket's lock is held. */
static enum sc_class sc_classify(struct sc_io *io)
{
	struct sc_index *index = &io->sc->index;
	u64 block = io->iter.bi_sector >> index->block_shift;
	u32 id;

	if ((io->opf & REQ_OP_MASK) == REQ_OP_DISCARD)
		return SC_DISCARD;
	if (!sc_is_read(io))
		return SC_EXCLUSIVE;
	if (!io->fill)
		return SC_SHARED;
	for (id = io->op.first; id <= io->op.last && block < index->blocks;
	     id++, block++) {
		if (sc_find(index, io->op.set, id) != SC_NIL)
			continue;
		io->fill = atomic_read(&io->sc->filling) < SC_MAX_FILL;
		return io->fill ? SC_EXCLUSIVE : SC_SHARED;
	}
	return SC_SHARED;
}

static void sc_defer(struct setcache *sc, struct sc_io *io, enum sc_todo todo)
{
	unsigned long flags;

	io->todo = todo;
	spin_lock_irqsave(&sc->defer_lock, flags);
	list_add_tail(&io->defer, &sc->deferred);
	spin_unlock_irqrestore(&sc->defer_lock, flags);
	queue_work(sc->wq, &sc->defer_work);
}

/* Done with some blocks: who waited for them may have them. */
void sc_unlock(struct setcache *sc, struct sc_op *op)
{
	struct sc_bucket *bucket = sc_bucket(&sc->index, op->set);
	struct sc_op *other, *next;
	unsigned long flags;
	struct sc_io *io;

	spin_lock_irqsave(&bucket->lock, flags);
	list_del(&op->link);
	list_for_each_entry_safe(other, next, &bucket->waiting, link) {
		io = container_of(other, struct sc_io, op);
		other->class = sc_classify(io);
		if (sc_busy(bucket, other, &other->link))
			continue;
		list_move_tail(&other->link, &bucket->active);
		sc_defer(sc, io, SC_TODO_GO);
	}
	spin_unlock_irqrestore(&bucket->lock, flags);
}

/* Slots for a read. The bucket's lock is held, the blocks are announced. */
static enum sc_plan sc_plan_read(struct sc_io *io)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	u32 set = io->op.set, count = io->op.last - io->op.first + 1;
	u64 block = io->iter.bi_sector >> index->block_shift;
	u32 i, hits = 0, fresh = 0;
	u16 slot, last = SC_NIL, taken = SC_NIL;
	bool straight = true, replaced, lost = READ_ONCE(sc->lost);
	bool fill = io->fill && !lost;
	sector_t from, to;

	for (i = 0; i < count; i++) {
		sc_part(index, &io->iter, i, &from, &to);
		slot = sc_find(index, set, io->op.first + i);
		if (slot != SC_NIL && (lost || io->retried)) {
			bool dirty = sc_state(index, set, slot) >= SC_DIRTY;

			if (dirty && lost)
				return SC_PLAN_FAIL;
			/* Clean, it may still be there for others. */
			if (!dirty)
				slot = SC_NIL;
		}
		if (slot != SC_NIL) {
			sc_touch(index, set, slot, READ_ONCE(sc->policy),
				 false);
			straight &= !i || slot == last + 1;
			if (!i)
				io->slot = slot;
			last = slot;
			hits++;
			sc_count(sc, SC_STAT_read_hit, to - from);
			continue;
		}
		last = SC_NIL;
		sc_count(sc, SC_STAT_read_miss, to - from);
		if (fill && block + i < index->blocks) {
			taken = sc_take(index, set, io->op.first + i, taken,
					READ_ONCE(sc->policy), &replaced);
			if (taken != SC_NIL) {
				sc_count(sc, SC_STAT_replaced, replaced);
				fresh++;
				continue;
			}
			sc_count(sc, SC_STAT_no_room, 1);
		}
		taken = SC_NIL;
		sc_count(sc, SC_STAT_read_bypass, to - from);
	}
	if (hits == count && straight)
		return SC_PLAN_SSD;
	return hits + fresh ? SC_PLAN_JOB : SC_PLAN_ORIGIN;
}

/*
 * A block that is in a slot is about to be written. Whether it is written
 * there; else it is dropped. The bucket's lock is held.
 */
static bool sc_overwrite(struct sc_io *io, u16 slot, bool cache)
{
	struct setcache *sc = io->sc;
	enum sc_state state = sc_state(&sc->index, io->op.set, slot);

	switch (state) {
	case SC_CLEANED:
		/* The record is, or is going to be, without it. */
		sc_set_state(&sc->index, io->op.set, slot, SC_DIRTY);
		sc_mark(sc, io->op.set, slot);
		break;
	case SC_CLEANING:
	case SC_STUCK:
		sc_set_state(&sc->index, io->op.set, slot, SC_DIRTY);
		break;
	case SC_DIRTY:
		break;
	default:
		if (!cache) {
			sc_remove(&sc->index, io->op.set, slot);
			sc_count(sc, SC_STAT_invalidated, 1);
			return false;
		}
		io->settle = true;
		break;
	}
	if (state >= SC_DIRTY)
		sc_count(sc, SC_STAT_dirty_hit, 1);
	sc_touch(&sc->index, io->op.set, slot, READ_ONCE(sc->policy), false);
	return true;
}

/* A dirty block is in the range, and there is no SSD. The lock is held. */
static bool sc_out_of_reach(const struct sc_io *io)
{
	const struct sc_index *index = &io->sc->index;
	u16 slot;
	u32 id;

	if (!READ_ONCE(io->sc->lost))
		return false;
	for (id = io->op.first; id <= io->op.last; id++) {
		slot = sc_find(index, io->op.set, id);
		if (slot != SC_NIL &&
		    sc_state(index, io->op.set, slot) >= SC_DIRTY)
			return true;
	}
	return false;
}

/* Slots for a write. The bucket's lock is held, the blocks are announced. */
static enum sc_plan sc_plan_write(struct sc_io *io)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	u32 set = io->op.set, count = io->op.last - io->op.first + 1;
	u64 block = io->iter.bi_sector >> index->block_shift;
	bool back = sc_mode_dirties(io->mode);
	bool cache, straight = true, rmw = false, stable = true, replaced;
	u16 slot, last = SC_NIL, taken = SC_NIL;
	u32 i, cached = 0;

	if (sc_out_of_reach(io))
		return SC_PLAN_FAIL;
	io->through = io->mode == SC_WRITETHROUGH;
	io->settle = false;
	cache = (back || io->through) && !io->bypass && !io->retried &&
		!READ_ONCE(sc->lost);

	for (i = 0; i < count; i++) {
		sector_t from, to, whole = index->geo.block;

		sc_part(index, &io->iter, i, &from, &to);
		slot = sc_find(index, set, io->op.first + i);
		if (slot != SC_NIL && !sc_overwrite(io, slot, cache))
			slot = SC_NIL;
		if (slot != SC_NIL) {
			sc_count(sc, SC_STAT_write_hit, to - from);
			taken = SC_NIL;
		} else if (cache && block + i < index->blocks &&
			   (back || to - from == whole)) {
			taken = sc_take(index, set, io->op.first + i, taken,
					READ_ONCE(sc->policy), &replaced);
			slot = taken;
			if (slot == SC_NIL) {
				sc_count(sc, SC_STAT_no_room, 1);
			} else {
				sc_count(sc, SC_STAT_replaced, replaced);
				sc_count(sc, SC_STAT_write_new, to - from);
				io->settle = true;
				rmw |= to - from != whole;
			}
		}
		if (slot == SC_NIL) {
			sc_count(sc, SC_STAT_write_bypass, to - from);
			taken = SC_NIL;
			straight = false;
			last = SC_NIL;
			continue;
		}
		if (io->through)
			sc_count(sc, SC_STAT_through, to - from);
		stable &= sc_md_stable(sc->md, sc_slot(index, set, slot));
		straight &= !i || slot == last + 1;
		if (!i)
			io->slot = slot;
		last = slot;
		cached++;
	}
	if (!cached)
		return SC_PLAN_ORIGIN;
	if (io->through || !straight || rmw)
		return SC_PLAN_JOB;
	if ((io->opf & REQ_FUA) && (io->settle || !stable))
		return SC_PLAN_JOB;
	return SC_PLAN_SSD;
}

/* Slots for a discard. The bucket's lock is held, the blocks are announced. */
static enum sc_plan sc_plan_discard(struct sc_io *io)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	u32 set = io->op.set, count = io->op.last - io->op.first + 1;
	sector_t from, to;
	bool dirty = false;
	u16 slot;
	u32 i;

	if (sc_out_of_reach(io))
		return SC_PLAN_FAIL;
	for (i = 0; i < count; i++) {
		slot = sc_find(index, set, io->op.first + i);
		if (slot == SC_NIL)
			continue;
		sc_part(index, &io->iter, i, &from, &to);
		if (sc_state(index, set, slot) == SC_CLEAN) {
			sc_remove(index, set, slot);
			sc_count(sc, SC_STAT_invalidated, 1);
		} else if (to - from == index->geo.block) {
			sc_set_state(index, set, slot, SC_DISCARDED);
			sc_mark(sc, set, slot);
			sc_count(sc, SC_STAT_discarded, 1);
			dirty = true;
		}
	}
	return dirty ? SC_PLAN_COMMIT : SC_PLAN_ORIGIN;
}

/*---------------------------------------------------------------------------*/

/* Send a bio on as it is. */
static int sc_remap(struct sc_io *io, struct bio *bio, struct dm_dev *dev,
		    sector_t sector)
{
	struct setcache *sc = io->sc;
	bool read = sc_is_read(io);

	if (bio->bi_bdev != dev->bdev)
		bio_set_dev(bio, dev->bdev);
	bio->bi_iter.bi_sector = sector;
	if (dev == sc->ssd) {
		io->how = SC_HOW_SSD;
		sc_count(sc, read ? SC_STAT_ssd_read : SC_STAT_ssd_write,
			 bio_sectors(bio));
		return DM_MAPIO_REMAPPED;
	}
	io->how = SC_HOW_ORIGIN;
	if (bio_op(bio) == REQ_OP_DISCARD)
		return DM_MAPIO_REMAPPED;
	io->at_origin = true;
	atomic_inc(&sc->origin_ios);
	sc_count(sc, read ? SC_STAT_origin_read : SC_STAT_origin_write,
		 bio_sectors(bio));
	return DM_MAPIO_REMAPPED;
}

/* The end of a bio that we end ourselves; its blocks have been given back. */
static void sc_end(struct sc_io *io, struct bio *bio, blk_status_t error)
{
	io->how = SC_HOW_OURS;
	bio->bi_status = error;
	bio_endio(bio);
}

static bool sc_job_start(struct sc_io *io, struct bio *bio, gfp_t gfp);
static void sc_discard_done(struct sc_waiter *waiter);

/* A discard that has no dirty block any more. */
static int sc_discard(struct sc_io *io, struct bio *bio)
{
	struct setcache *sc = io->sc;

	if (bdev_max_discard_sectors(sc->origin->bdev))
		return sc_remap(io, bio, sc->origin, io->iter.bi_sector);
	sc_unlock(sc, &io->op);
	sc_end(io, bio, BLK_STS_OK);
	return DM_MAPIO_SUBMITTED;
}

/* The blocks are announced; find slots and go. */
static int sc_go(struct sc_io *io, struct bio *bio, bool in_map)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_bucket(index, io->op.set);
	sector_t mask = index->geo.block - 1;
	enum sc_plan plan;
	unsigned long flags;

	spin_lock_irqsave(&bucket->lock, flags);
	if (sc_is_read(io))
		plan = sc_plan_read(io);
	else if (io->op.class == SC_DISCARD)
		plan = sc_plan_discard(io);
	else
		plan = sc_plan_write(io);
	spin_unlock_irqrestore(&bucket->lock, flags);

	switch (plan) {
	case SC_PLAN_SSD:
		return sc_remap(io, bio, sc->ssd,
				sc_slot_sector(index, io->op.set, io->slot) +
				(io->iter.bi_sector & mask));
	case SC_PLAN_ORIGIN:
		if (io->op.class == SC_DISCARD)
			return sc_discard(io, bio);
		return sc_remap(io, bio, sc->origin, io->iter.bi_sector);
	case SC_PLAN_COMMIT:
		io->waiter.fn = sc_discard_done;
		io->waiter.origin = false;
		sc_wait_commit(sc, &io->waiter);
		return DM_MAPIO_SUBMITTED;
	case SC_PLAN_FAIL:
		sc_count(sc, SC_STAT_lost_errors, 1);
		/* Slots that it has taken before it found out. */
		sc_drop(sc, &io->op);
		sc_unlock(sc, &io->op);
		sc_end(io, bio, BLK_STS_IOERR);
		return DM_MAPIO_SUBMITTED;
	case SC_PLAN_JOB:
		break;
	}
	bio_clear_polled(bio);
	/* Here it must not wait for jobs, whose bios may be behind it. */
	if (!sc_job_start(io, bio, in_map ? GFP_NOWAIT : GFP_NOIO))
		sc_defer(sc, io, SC_TODO_JOB);
	return DM_MAPIO_SUBMITTED;
}

/* Announce the blocks of a bio, or wait for them. */
static int sc_begin(struct sc_io *io, struct bio *bio, bool in_map)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	sector_t end = io->iter.bi_sector + (io->iter.bi_size >> SECTOR_SHIFT);
	u64 block = io->iter.bi_sector >> index->block_shift;
	struct sc_bucket *bucket;
	unsigned long flags;
	u32 pages;

	io->mode = READ_ONCE(sc->mode);
	pages = (io->iter.bi_size + 2 * (index->geo.block << SECTOR_SHIFT)) >>
		PAGE_SHIFT;
	io->fill = sc_is_read(io) && !io->retried && !io->bypass &&
		   io->mode != SC_WRITEONLY && !READ_ONCE(sc->lost) &&
		   pages <= SC_MAX_PAGES;
	sc_locate(index, block, &io->op.set, &io->op.first);
	io->op.last = io->op.first +
		      (((end - 1) >> index->block_shift) - block);

	bucket = sc_bucket(index, io->op.set);
	spin_lock_irqsave(&bucket->lock, flags);
	io->op.class = sc_classify(io);
	if (sc_busy(bucket, &io->op, NULL)) {
		/* Who has sent it cannot poll for what others will send. */
		bio_clear_polled(bio);
		list_add_tail(&io->op.link, &bucket->waiting);
		spin_unlock_irqrestore(&bucket->lock, flags);
		sc_count(sc, SC_STAT_waited, 1);
		return DM_MAPIO_SUBMITTED;
	}
	list_add_tail(&io->op.link, &bucket->active);
	spin_unlock_irqrestore(&bucket->lock, flags);
	return sc_go(io, bio, in_map);
}

/* Go on with bios that have waited, or failed on the SSD. */
void sc_defer_work(struct work_struct *work)
{
	struct setcache *sc = container_of(work, struct setcache, defer_work);
	struct sc_io *io, *next;
	struct blk_plug plug;
	LIST_HEAD(list);

	spin_lock_irq(&sc->defer_lock);
	list_splice_init(&sc->deferred, &list);
	spin_unlock_irq(&sc->defer_lock);

	blk_start_plug(&plug);
	list_for_each_entry_safe(io, next, &list, defer) {
		struct bio *bio = sc_bio_of(io);
		int r = DM_MAPIO_SUBMITTED;

		switch (io->todo) {
		case SC_TODO_BEGIN:
			/* Forgets what the first attempt has left in it. */
			bio_set_dev(bio, sc->ssd->bdev);
			r = sc_begin(io, bio, false);
			break;
		case SC_TODO_GO:
			r = sc_go(io, bio, false);
			break;
		case SC_TODO_JOB:
			sc_job_start(io, bio, GFP_NOIO);
			break;
		}
		if (r == DM_MAPIO_REMAPPED)
			submit_bio_noacct(bio);
	}
	blk_finish_plug(&plug);
}

/* The records of discarded blocks are gone, or not. */
static void sc_discard_done(struct sc_waiter *waiter)
{
	struct sc_io *io = container_of(waiter, struct sc_io, waiter);
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_bucket(index, io->op.set);
	struct bio *bio = sc_bio_of(io);
	u16 slot;
	u32 id;

	spin_lock_irq(&bucket->lock);
	for (id = io->op.first; id <= io->op.last; id++) {
		slot = sc_find(index, io->op.set, id);
		if (slot == SC_NIL ||
		    sc_state(index, io->op.set, slot) != SC_DISCARDED)
			continue;
		if (waiter->error) {
			sc_set_state(index, io->op.set, slot, SC_DIRTY);
			sc_mark(sc, io->op.set, slot);
		} else {
			sc_remove(index, io->op.set, slot);
		}
	}
	spin_unlock_irq(&bucket->lock);
	if (waiter->error) {
		sc_unlock(sc, &io->op);
		sc_end(io, bio, waiter->error);
		return;
	}
	if (sc_discard(io, bio) == DM_MAPIO_REMAPPED)
		submit_bio_noacct(bio);
}

static void sc_flush_done(struct sc_waiter *waiter)
{
	struct sc_io *io = container_of(waiter, struct sc_io, waiter);

	sc_end(io, sc_bio_of(io), waiter->error);
}

/* Sequential streams are told apart by direction. */
static bool sc_bypass(struct setcache *sc, const struct bio *bio)
{
	bool write = op_is_write(bio_op(bio));
	u64 limit = sc_option(sc, write ? SC_SEQ_WRITE_KB : SC_SEQ_READ_KB);
	sector_t length;

	if (!limit)
		return false;
	length = sc_flow(sc->flows[write], bio->bi_iter.bi_sector,
			 bio_sectors(bio), jiffies);
	if (length < limit * 2)
		return false;
	sc_count(sc, write ? SC_STAT_seq_write : SC_STAT_seq_read,
		 bio_sectors(bio));
	return true;
}

/*
 * Charge a bio to who sends it, for others may go on with it. That is done for
 * a device: for the SSD, where most are going.
 */
static void sc_charge(struct setcache *sc, struct bio *bio)
{
	bio_set_dev(bio, sc->ssd->bdev);
	if (IOPRIO_PRIO_CLASS(bio->bi_ioprio) == IOPRIO_CLASS_NONE)
		bio->bi_ioprio = get_current_ioprio();
}

int sc_map(struct dm_target *ti, struct bio *bio)
{
	struct sc_io *io = dm_per_bio_data(bio, sizeof(*io));
	struct setcache *sc = ti->private;
	sector_t stripe = (sector_t)sc->index.geo.block * sc->index.geo.assoc;
	sector_t room;

	memset(io, 0, sizeof(*io));
	io->sc = sc;
	/* The line is everybody's: written only when time has gone on. */
	if (time_before(READ_ONCE(sc->last_io), jiffies))
		WRITE_ONCE(sc->last_io, jiffies);

	/* Without data: the core sends them apart. */
	if (bio->bi_opf & REQ_PREFLUSH) {
		sc_count(sc, SC_STAT_flushes, 1);
		io->waiter.fn = sc_flush_done;
		io->waiter.origin = true;
		sc_wait_commit(sc, &io->waiter);
		return DM_MAPIO_SUBMITTED;
	}
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);

	switch (bio_op(bio)) {
	case REQ_OP_READ:
		sc_count(sc, SC_STAT_reads, 1);
		sc_count(sc, SC_STAT_read, bio_sectors(bio));
		io->bypass = sc_bypass(sc, bio);
		break;
	case REQ_OP_WRITE:
		sc_count(sc, SC_STAT_writes, 1);
		sc_count(sc, SC_STAT_write, bio_sectors(bio));
		io->bypass = sc_bypass(sc, bio);
		break;
	case REQ_OP_DISCARD:
		sc_count(sc, SC_STAT_discards, 1);
		/* The core splits reads and writes, but not all discards. */
		room = stripe - (bio->bi_iter.bi_sector & (stripe - 1));
		if (bio_sectors(bio) > room)
			dm_accept_partial_bio(bio, room);
		break;
	default:
		/* None that the target has said it takes. */
		return DM_MAPIO_KILL;
	}
	io->iter = bio->bi_iter;
	io->opf = bio->bi_opf & ~REQ_POLLED;
	sc_charge(sc, bio);
	return sc_begin(io, bio, true);
}

/*
 * The SSD has failed a bio that was sent there. Around the cache, then; unless
 * it has been tried, or a dirty block is there and nowhere else: the second
 * attempt finds out.
 */
static bool sc_retry(struct sc_io *io, struct bio *bio)
{
	if (io->retried)
		return false;
	io->retried = true;
	bio->bi_iter = io->iter;
	bio->bi_opf = io->opf;
	bio->bi_status = BLK_STS_OK;
	/* It may have been one of several of a request. */
	bio->bi_next = NULL;
	/* Or have been split: its parts have ended, new ones count anew. */
	atomic_set(&bio->__bi_remaining, 1);
	/* Nor is its sector that of a whole disk, as clones would believe. */
	bio_clear_flag(bio, BIO_REMAPPED);
	/* What the last device's queue has left there is settled. */
	bio_clear_flag(bio, BIO_QOS_THROTTLED);
	bio_clear_flag(bio, BIO_QOS_MERGED);
	sc_defer(io->sc, io, SC_TODO_BEGIN);
	return true;
}

int sc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct sc_io *io = dm_per_bio_data(bio, sizeof(*io));
	struct setcache *sc = ti->private;

	switch (io->how) {
	case SC_HOW_OURS:
		return DM_ENDIO_DONE;
	case SC_HOW_ORIGIN:
		if (*error)
			sc_count(sc, SC_STAT_origin_errors, 1);
		break;
	case SC_HOW_SSD:
		if (*error) {
			sc_ssd_error(sc, *error);
			sc_drop(sc, &io->op);
			sc_unlock(sc, &io->op);
			return sc_retry(io, bio) ? DM_ENDIO_INCOMPLETE :
						   DM_ENDIO_DONE;
		}
		if (!sc_is_read(io)) {
			if (io->settle)
				sc_settle(sc, &io->op, false);
			sc_unflushed(sc);
		}
		break;
	}
	if (io->at_origin)
		atomic_dec(&sc->origin_ios);
	sc_unlock(sc, &io->op);
	return DM_ENDIO_DONE;
}

/*---------------------------------------------------------------------------*/

static void sc_job_work(struct work_struct *work)
{
	struct sc_job *job = container_of(work, struct sc_job, work);

	job->next(job);
}

/* Give the blocks back, and the job's memory. The bio has ended, or is going to. */
static void sc_job_free(struct sc_job *job)
{
	struct setcache *sc = job->sc;
	u32 i;

	sc_unlock(sc, &job->op);
	for (i = 0; i < job->nr_pages; i++)
		if (job->pages[i])
			__free_page(job->pages[i]);
	kfree(job->pages);
	if (job->css)
		css_put(job->css);
	mempool_free(job, &sc->jobs);
	if (atomic_dec_and_test(&sc->nr_jobs))
		wake_up_all(&sc->idle);
}

/* All bios of a step are done. */
static void sc_job_put(struct sc_job *job)
{
	if (atomic_dec_and_test(&job->pending))
		queue_work(job->sc->job_wq, &job->work);
}

static void sc_job_ssd_end(struct bio *bio)
{
	struct sc_job *job = bio->bi_private;

	if (bio->bi_status) {
		WRITE_ONCE(job->ssd_error, bio->bi_status);
		sc_ssd_error(job->sc, bio->bi_status);
	}
	bio_put(bio);
	sc_job_put(job);
}

static void sc_job_origin_end(struct bio *bio)
{
	struct sc_job *job = bio->bi_private;

	if (bio->bi_status) {
		WRITE_ONCE(job->origin_error, bio->bi_status);
		sc_count(job->sc, SC_STAT_origin_errors, 1);
	}
	atomic_dec(&job->sc->origin_ios);
	bio_put(bio);
	sc_job_put(job);
}

static void sc_job_submit(struct sc_job *job, struct bio *bio, bool ssd)
{
	struct setcache *sc = job->sc;
	bool read = bio_op(bio) == REQ_OP_READ;

	bio->bi_private = job;
	if (ssd) {
		bio->bi_end_io = sc_job_ssd_end;
		sc_count(sc, read ? SC_STAT_ssd_read : SC_STAT_ssd_write,
			 bio_sectors(bio));
	} else {
		bio->bi_end_io = sc_job_origin_end;
		atomic_inc(&sc->origin_ios);
		sc_count(sc, read ? SC_STAT_origin_read : SC_STAT_origin_write,
			 bio_sectors(bio));
	}
	atomic_inc(&job->pending);
	submit_bio_noacct(bio);
}

/* Blocks @i to @end (exclusive) of the user's pages, to or from a device. */
static void sc_job_user(struct sc_job *job, u32 i, u32 end, bool ssd)
{
	struct setcache *sc = job->sc;
	struct sc_index *index = &sc->index;
	sector_t from, to, unused, sector;
	struct bio *bio;

	sc_part(index, &job->iter, i, &from, &unused);
	sc_part(index, &job->iter, end - 1, &unused, &to);
	sector = from;
	if (ssd)
		sector = sc_slot_sector(index, job->op.set,
					job->pieces[i].slot) +
			 (from & (index->geo.block - 1));
	bio = bio_alloc_clone(ssd ? sc->ssd->bdev : sc->origin->bdev, job->bio,
			      GFP_NOIO, &sc->bs);
	bio->bi_iter = job->iter;
	bio_advance(bio, (from - job->iter.bi_sector) << SECTOR_SHIFT);
	bio->bi_iter.bi_size = (to - from) << SECTOR_SHIFT;
	bio->bi_iter.bi_sector = sector;
	if (ssd)
		bio->bi_opf &= ~REQ_FUA;
	sc_job_submit(job, bio, ssd);
}

/* Where a block is in our pages. */
static u64 sc_job_offset(const struct sc_job *job, u32 i)
{
	return (u64)(i - job->base) * job->sc->index.geo.block << SECTOR_SHIFT;
}

/* Blocks @i to @end (exclusive) of our pages, to or from a device. */
static void sc_job_ours(struct sc_job *job, u32 i, u32 end, bool ssd,
			blk_opf_t opf)
{
	struct setcache *sc = job->sc;
	struct sc_index *index = &sc->index;
	u64 at = sc_job_offset(job, i), stop = sc_job_offset(job, end);
	u64 block = (job->iter.bi_sector >> index->block_shift) + i;
	sector_t sector = block << index->block_shift;
	struct bio *bio = NULL;

	if (ssd)
		sector = sc_slot_sector(index, job->op.set,
					job->pieces[i].slot);
	while (at < stop) {
		u32 in_page = offset_in_page(at);
		u32 bytes = min_t(u64, PAGE_SIZE - in_page, stop - at);

		if (!bio) {
			u32 pages = min_t(u64, DIV_ROUND_UP(in_page + stop - at,
							    PAGE_SIZE),
					  BIO_MAX_VECS);

			bio = bio_alloc_bioset(ssd ? sc->ssd->bdev :
					       sc->origin->bdev, pages, opf,
					       GFP_NOIO, &sc->bs);
			bio->bi_iter.bi_sector = sector;
			bio->bi_ioprio = job->ioprio;
			bio->bi_write_hint = job->write_hint;
			bio_associate_blkg_from_css(bio, job->css);
		}
		__bio_add_page(bio, job->pages[at >> PAGE_SHIFT], bytes,
			       in_page);
		at += bytes;
		sector += bytes >> SECTOR_SHIFT;
		if (bio->bi_vcnt == bio->bi_max_vecs || at == stop) {
			sc_job_submit(job, bio, ssd);
			bio = NULL;
		}
	}
}

/* Pages for the blocks of a kind. */
static bool sc_job_pages(struct sc_job *job, enum sc_kind kind)
{
	u32 block = job->sc->index.geo.block << SECTOR_SHIFT;
	u32 i, first = job->count, last = 0;
	u64 at, stop;

	for (i = 0; i < job->count; i++) {
		if (job->pieces[i].kind != kind)
			continue;
		first = min(first, i);
		last = i;
	}
	job->base = first;
	at = DIV_ROUND_UP_ULL((u64)(last - first + 1) * block, PAGE_SIZE);
	if (at > SC_MAX_PAGES)
		return false;
	job->pages = kcalloc(at, sizeof(*job->pages), SC_GFP_TRY);
	if (!job->pages)
		return false;
	job->nr_pages = at;
	for (i = first; i <= last; i++) {
		if (job->pieces[i].kind != kind)
			continue;
		at = sc_job_offset(job, i);
		stop = at + block;
		for (at = round_down(at, PAGE_SIZE); at < stop;
		     at += PAGE_SIZE) {
			struct page **page = &job->pages[at >> PAGE_SHIFT];

			if (!*page)
				*page = alloc_page(SC_GFP_TRY);
			if (!*page)
				return false;
		}
	}
	return true;
}

/* Copy what a bio has of the blocks of a kind to our pages, or from there. */
static void sc_job_copy(struct sc_job *job, enum sc_kind kind, bool to_ours)
{
	struct sc_index *index = &job->sc->index;
	struct bvec_iter iter = job->iter;
	u64 first = iter.bi_sector >> index->block_shift;

	while (iter.bi_size) {
		struct bio_vec bv = bio_iter_iovec(job->bio, iter);
		sector_t from, to;
		u32 i, bytes, skip;
		u64 at;
		void *ours;

		i = (iter.bi_sector >> index->block_shift) - first;
		sc_part(index, &job->iter, i, &from, &to);
		/* Up to the end of the segment, the block, or the page. */
		bytes = min_t(u64, bv.bv_len,
			      (to - iter.bi_sector) << SECTOR_SHIFT);
		if (job->pieces[i].kind == kind) {
			skip = iter.bi_sector & (index->geo.block - 1);
			at = sc_job_offset(job, i) +
			     ((u64)skip << SECTOR_SHIFT);
			bytes = min_t(u32, bytes,
				      PAGE_SIZE - offset_in_page(at));
			ours = page_address(job->pages[at >> PAGE_SHIFT]) +
			       offset_in_page(at);
			bv.bv_len = bytes;
			if (to_ours)
				memcpy_from_bvec(ours, &bv);
			else
				memcpy_to_bvec(&bv, ours);
		}
		bio_advance_iter_single(job->bio, &iter, bytes);
	}
}

/* The end of a run of blocks from @i on that one bio may take. */
static u32 sc_job_run(const struct sc_job *job, u32 i, bool slots)
{
	const struct sc_piece *p = job->pieces;
	u32 end;

	for (end = i + 1; end < job->count; end++) {
		if (p[end].kind != p[i].kind)
			break;
		if (slots && p[end].slot != p[end - 1].slot + 1)
			break;
	}
	return end;
}

/* Fresh slots that are not going to be used. */
static void sc_job_give_back(struct sc_job *job, enum sc_kind kind)
{
	struct sc_index *index = &job->sc->index;
	struct sc_bucket *bucket = sc_bucket(index, job->op.set);
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&bucket->lock, flags);
	for (i = 0; i < job->count; i++) {
		if (job->pieces[i].kind != kind)
			continue;
		sc_remove(index, job->op.set, job->pieces[i].slot);
		job->pieces[i].kind = SC_KIND_ORIGIN;
		job->pieces[i].slot = SC_NIL;
	}
	spin_unlock_irqrestore(&bucket->lock, flags);
}

/* Start the job's bio anew, around the cache; or fail it. */
static void sc_job_retry(struct sc_job *job)
{
	struct sc_io *io = job->io;
	struct bio *bio = job->bio;

	sc_drop(job->sc, &job->op);
	sc_job_free(job);
	if (!sc_retry(io, bio))
		sc_end(io, bio, BLK_STS_IOERR);
}

static void sc_job_end(struct sc_job *job, blk_status_t error)
{
	struct sc_io *io = job->io;
	struct bio *bio = job->bio;

	sc_job_free(job);
	sc_end(io, bio, error);
}

/*---------------------------------------------------------------------------*/

/* What a read has brought is on the SSD. */
static void sc_fill_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->ssd_error)
		sc_drop(sc, &job->op);
	else
		sc_settle(sc, &job->op, true);
	atomic_sub(job->nr_pages, &sc->filling);
	sc_job_free(job);
}

static void sc_fill_start(struct sc_job *job)
{
	struct setcache *sc = job->sc;
	u32 i, end, fresh = 0;

	job->next = sc_fill_done;
	atomic_set(&job->pending, 1);
	for (i = 0; i < job->count; i = end) {
		end = sc_job_run(job, i, true);
		if (job->pieces[i].kind != SC_KIND_NEW)
			continue;
		fresh += end - i;
		sc_job_ours(job, i, end, true, REQ_OP_WRITE);
	}
	sc_count(sc, SC_STAT_inserted, fresh);
	sc_count(sc, SC_STAT_fill, (u64)fresh * sc->index.geo.block);
	sc_job_put(job);
}

/* Send the fills of reads that have ended. */
void sc_fill_work(struct work_struct *work)
{
	struct setcache *sc = container_of(work, struct setcache, fill_work);
	struct sc_job *job, *next;
	struct blk_plug plug;
	LIST_HEAD(list);

	spin_lock_irq(&sc->fill_lock);
	list_splice_init(&sc->fills, &list);
	spin_unlock_irq(&sc->fill_lock);

	blk_start_plug(&plug);
	list_for_each_entry_safe(job, next, &list, fill)
		sc_fill_start(job);
	blk_finish_plug(&plug);
}

/* All that a read asked for is there. */
static void sc_read_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->origin_error) {
		blk_status_t error = job->origin_error;

		if (job->pages)
			sc_job_give_back(job, SC_KIND_NEW);
		sc_job_end(job, error);
		return;
	}
	if (job->ssd_error) {
		sc_job_retry(job);
		return;
	}
	if (!job->pages) {
		sc_job_end(job, BLK_STS_OK);
		return;
	}
	atomic_add(job->nr_pages, &sc->filling);
	sc_job_copy(job, SC_KIND_NEW, false);
	sc_end(job->io, job->bio, BLK_STS_OK);
	job->bio = NULL;
	job->io = NULL;

	spin_lock_irq(&sc->fill_lock);
	list_add_tail(&job->fill, &sc->fills);
	spin_unlock_irq(&sc->fill_lock);
	queue_work(sc->job_wq, &sc->fill_work);
}

static void sc_read_start(struct sc_job *job)
{
	blk_opf_t opf = REQ_OP_READ | (job->opf & (REQ_SYNC | REQ_META |
						   REQ_PRIO | REQ_RAHEAD));
	struct sc_index *index = &job->sc->index;
	sector_t from, to, unused;
	bool fresh = false;
	u32 i, end;

	for (i = 0; i < job->count; i++)
		fresh |= job->pieces[i].kind == SC_KIND_NEW;
	if (fresh && !sc_job_pages(job, SC_KIND_NEW)) {
		sc_job_give_back(job, SC_KIND_NEW);
		fresh = false;
	}
	job->next = sc_read_done;
	for (i = 0; i < job->count; i = end) {
		u8 kind = job->pieces[i].kind;

		end = sc_job_run(job, i, kind == SC_KIND_HIT);
		if (kind != SC_KIND_NEW) {
			sc_job_user(job, i, end, kind == SC_KIND_HIT);
			continue;
		}
		sc_part(index, &job->iter, i, &from, &unused);
		sc_part(index, &job->iter, end - 1, &unused, &to);
		sc_count(job->sc, SC_STAT_fill_extra,
			 (end - i) * index->geo.block - (to - from));
		sc_job_ours(job, i, end, false, opf);
	}
	sc_job_put(job);
}

/* Records of a FUA write are stable, or not. */
static void sc_fua_done(struct sc_waiter *waiter)
{
	struct sc_job *job = container_of(waiter, struct sc_job, waiter);

	sc_job_end(job, waiter->error);
}

static void sc_write_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->origin_error) {
		blk_status_t error = job->origin_error;

		sc_drop(sc, &job->op);
		sc_job_end(job, error);
		return;
	}
	if (job->ssd_error && !job->through) {
		sc_job_retry(job);
		return;
	}
	if (job->ssd_error) {
		sc_drop(sc, &job->op);
		/* The origin has it, but the SSD's record says otherwise. */
		if (job->dirty) {
			sc_job_end(job, BLK_STS_IOERR);
			return;
		}
	} else {
		sc_settle(sc, &job->op, job->through);
	}
	if (!job->through || job->dirty) {
		sc_unflushed(sc);
		if (job->opf & REQ_FUA) {
			job->waiter.fn = sc_fua_done;
			job->waiter.origin = false;
			sc_wait_commit(sc, &job->waiter);
			return;
		}
	}
	sc_job_end(job, BLK_STS_OK);
}

static void sc_write_go(struct sc_job *job)
{
	u32 i, end;

	job->next = sc_write_done;
	atomic_set(&job->pending, 1);
	for (i = 0; i < job->count; i = end) {
		u8 kind = job->pieces[i].kind;

		end = sc_job_run(job, i, kind != SC_KIND_ORIGIN);
		if (kind == SC_KIND_RMW)
			sc_job_ours(job, i, end, true, REQ_OP_WRITE |
				    (job->opf & (REQ_SYNC | REQ_META)));
		else if (kind != SC_KIND_ORIGIN)
			sc_job_user(job, i, end, true);
		else if (!job->through)
			sc_job_user(job, i, end, false);
	}
	if (job->through)
		sc_job_user(job, 0, job->count, false);
	sc_job_put(job);
}

/* The rest of the blocks that are written in part has been read. */
static void sc_rmw_done(struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	sector_t from, to;
	u32 i;

	if (job->origin_error) {
		/* Then the part goes there, and fails or not. */
		job->origin_error = BLK_STS_OK;
		sc_job_give_back(job, SC_KIND_RMW);
	} else {
		sc_job_copy(job, SC_KIND_RMW, true);
		for (i = 0; i < job->count; i++) {
			if (job->pieces[i].kind != SC_KIND_RMW)
				continue;
			sc_part(index, &job->iter, i, &from, &to);
			sc_count(job->sc, SC_STAT_rmw_extra,
				 index->geo.block - (to - from));
		}
	}
	sc_write_go(job);
}

static void sc_write_start(struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	bool rmw = false;
	u32 i;

	for (i = 0; i < job->count; i++)
		rmw |= job->pieces[i].kind == SC_KIND_RMW;
	if (rmw && !sc_job_pages(job, SC_KIND_RMW)) {
		sc_job_give_back(job, SC_KIND_RMW);
		rmw = false;
	}
	if (!rmw) {
		sc_write_go(job);
		return;
	}
	job->next = sc_rmw_done;
	for (i = 0; i < job->count; i++) {
		if (job->pieces[i].kind != SC_KIND_RMW)
			continue;
		sc_count(job->sc, SC_STAT_rmw_read, index->geo.block);
		sc_job_ours(job, i, i + 1, false, REQ_OP_READ | REQ_SYNC);
	}
	sc_job_put(job);
}

/* Make a job of a bio whose slots are known. False: no memory. */
static bool sc_job_start(struct sc_io *io, struct bio *bio, gfp_t gfp)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_bucket(index, io->op.set);
	struct sc_job *job = mempool_alloc(&sc->jobs, gfp);
	unsigned long flags;
	sector_t from, to;
	u32 i;

	if (!job)
		return false;
	memset(job, 0, sizeof(*job));
	job->sc = sc;
	job->io = io;
	job->bio = bio;
	job->iter = io->iter;
	job->opf = io->opf;
	job->css = bio_blkcg_css(bio);
	if (job->css)
		css_get(job->css);
	job->ioprio = bio->bi_ioprio;
	job->write_hint = bio->bi_write_hint;
	job->through = io->through && !sc_is_read(io);
	atomic_set(&job->pending, 1);
	INIT_WORK(&job->work, sc_job_work);
	job->count = io->op.last - io->op.first + 1;
	atomic_inc(&sc->nr_jobs);

	spin_lock_irqsave(&bucket->lock, flags);
	job->op = io->op;
	list_replace(&io->op.link, &job->op.link);
	for (i = 0; i < job->count; i++) {
		struct sc_piece *piece = &job->pieces[i];
		enum sc_state state;

		piece->slot = sc_find(index, io->op.set, io->op.first + i);
		piece->kind = SC_KIND_ORIGIN;
		if (piece->slot == SC_NIL)
			continue;
		state = sc_state(index, io->op.set, piece->slot);
		if (state == SC_CLEAN && (io->retried || READ_ONCE(sc->lost)))
			continue;
		job->dirty |= state >= SC_DIRTY;
		piece->kind = SC_KIND_HIT;
		if (state != SC_FILLING)
			continue;
		piece->kind = SC_KIND_NEW;
		sc_part(index, &io->iter, i, &from, &to);
		if (!sc_is_read(io) && to - from != index->geo.block)
			piece->kind = SC_KIND_RMW;
	}
	spin_unlock_irqrestore(&bucket->lock, flags);

	if (sc_is_read(io))
		sc_read_start(job);
	else
		sc_write_start(job);
	return true;
}
