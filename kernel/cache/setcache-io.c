// SPDX-License-Identifier: GPL-2.0-only
/*
 * The path of a bio through dm-setcache.
 *
 * A bio lies in one set (max_io_len), so one lock covers it. Under that lock
 * the bio announces its blocks, or waits for the requests that use them. Then a
 * plan (-plan) decides how the bio is served: by one bio to the SSD, by one bio
 * to the origin, or by a job of several bios (-job). The first two are remapped
 * in the submitter's context, without memory or another thread. When such a bio
 * ends, the states of its slots change, and the bios that waited for its blocks
 * go on.
 *
 * All I/O for a bio is charged as the bio is: to the same cgroup, with the same
 * priority, from any thread, and for a fill even after the bio's end. So the
 * schedulers of both devices divide by weight the I/O that tenants cause.
 *
 * An error of the SSD reaches the reader only if the block is dirty. A block
 * that is not dirty is dropped, and the bio is retried at the origin. Writes
 * are retried in the same way: the dropped block was not dirty, so the SSD has
 * no record of it (README.md), and the origin may take the data. A dirty block
 * that is written as a whole may go to the origin, too. When the origin has
 * it, durably, the SSD's record is removed, and only then does the write
 * end.
 */
#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/minmax.h>

#include "setcache.h"
#include "setcache-commit.h"
#include "setcache-flow.h"
#include "setcache-io.h"
#include "setcache-job.h"
#include "setcache-plan.h"
#include "setcache-round.h"
#include "setcache-slots.h"
#include "setcache-trial.h"

size_t sc_per_bio_size(void)
{
	return sizeof(struct sc_io);
}

static struct bio *sc_io_get_bio(struct sc_io *io)
{
	return dm_bio_from_per_bio_data(io, sizeof(*io));
}

static void sc_defer_bio(struct setcache *sc, struct sc_io *io,
			 enum sc_todo todo)
{
	unsigned long flags;

	io->todo = todo;
	spin_lock_irqsave(&sc->deferred.lock, flags);
	list_add_tail(&io->defer, &sc->deferred.list);
	spin_unlock_irqrestore(&sc->deferred.lock, flags);
	queue_work(sc->wq.common, &sc->deferred.work);
}

/*
 * Let a waiting bio, or the cleaner, go on if no other op holds its blocks: an
 * op there has just ended. The lock of the bucket is held.
 */
void sc_wake_op(struct setcache *sc, struct sc_bucket *bucket, struct sc_op *op)
{
	struct sc_io *io = container_of(op, struct sc_io, op);

	if (op->class == SC_CLASS_HOLDER) {
		sc_round_wake_op(sc, bucket, op);
		return;
	}
	op->class = sc_classify_bio(io);
	if (sc_op_is_blocked(bucket, op, &op->link))
		return;
	list_move_tail(&op->link, &bucket->active);
	/* Planning assigns a mode. */
	op->mode = SC_MODE_NONE;
	sc_defer_bio(sc, io, SC_TODO_PLAN);
}

/* End a bio. Its blocks have been given back. */
static void sc_end_bio(struct sc_io *io, struct bio *bio, blk_status_t error)
{
	io->end_device = SC_END_NONE;
	bio->bi_status = error;
	bio_endio(bio);
}

/*
 * Retry a bio at the origin, once: the SSD has failed it, or the origin has
 * failed to read blocks that only a fill needs. Return whether it is
 * retried. If a dirty block is only on the SSD, the second attempt finds
 * that out.
 */
static bool sc_retry_bio(struct sc_io *io, struct bio *bio)
{
	if (io->retried)
		return false;
	io->retried = true;
	bio->bi_iter = io->iter;
	bio->bi_opf = io->opf;
	bio->bi_status = BLK_STS_OK;
	/* The bio may have been merged into a request. */
	bio->bi_next = NULL;
	/* It may have been split: all parts have ended. */
	atomic_set(&bio->__bi_remaining, 1);
	/* Its sector is relative to the target again, not remapped. */
	bio_clear_flag(bio, BIO_REMAPPED);
	/* The previous device's queue has accounted for these. */
	bio_clear_flag(bio, BIO_QOS_THROTTLED);
	bio_clear_flag(bio, BIO_QOS_MERGED);
	sc_defer_bio(io->sc, io, SC_TODO_BEGIN);
	return true;
}

/*
 * Finish a bio whose job has ended: end it, or retry it at the origin if
 * @retry.
 */
static void sc_end_job_bio(struct sc_io *io, struct bio *bio,
			   blk_status_t error, bool retry)
{
	if (!retry || !sc_retry_bio(io, bio))
		sc_end_bio(io, bio, error);
}

/*---------------------------------------------------------------------------*/

/* Remap a whole bio to a device. */
static int sc_remap_bio(struct sc_io *io, struct bio *bio, struct dm_dev *dev,
			sector_t sector)
{
	struct setcache *sc = io->sc;
	bool read = sc_is_read(io);

	if (bio->bi_bdev != dev->bdev)
		bio_set_dev(bio, dev->bdev);
	bio->bi_iter.bi_sector = sector;
	if (dev == sc->ssd) {
		io->end_device = SC_END_SSD;
		sc_add_io_stat(sc, true, read, bio_sectors(bio));
		return DM_MAPIO_REMAPPED;
	}
	io->end_device = SC_END_ORIGIN;
	if (bio_op(bio) == REQ_OP_DISCARD)
		return DM_MAPIO_REMAPPED;
	io->at_origin = true;
	atomic_inc(&sc->origin_ios);
	sc_add_io_stat(sc, false, read, bio_sectors(bio));
	return DM_MAPIO_REMAPPED;
}

/* Go on with a discard that covers no dirty block any more. */
static int sc_end_or_send_discard(struct sc_io *io, struct bio *bio)
{
	struct setcache *sc = io->sc;

	if (bdev_max_discard_sectors(sc->origin->bdev))
		return sc_remap_bio(io, bio, sc->origin, io->iter.bi_sector);
	sc_release_op(sc, &io->op);
	sc_end_bio(io, bio, BLK_STS_OK);
	return DM_MAPIO_SUBMITTED;
}

/* Go on with a discard when the commit of its records has ended. */
static void sc_discard_done(struct sc_waiter *waiter)
{
	struct sc_io *io = container_of(waiter, struct sc_io, waiter);
	struct bio *bio = sc_io_get_bio(io);

	sc_end_discard(io->sc, &io->op, !waiter->error, false);
	if (waiter->error) {
		sc_release_op(io->sc, &io->op);
		sc_end_bio(io, bio, waiter->error);
		return;
	}
	if (sc_end_or_send_discard(io, bio) == DM_MAPIO_REMAPPED)
		dm_submit_bio_remap(bio, NULL);
}

/* Carry out the plan of a bio whose blocks are announced. */
static int sc_follow_plan(struct sc_io *io, struct bio *bio, enum sc_plan plan,
			  bool in_map)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	sector_t mask = index->geo.block_sectors - 1;

	switch (plan) {
	case SC_PLAN_SSD:
		return sc_remap_bio(io, bio, sc->ssd,
				    sc_slot_sector(index, io->op.set,
						   io->slot) +
					    (io->iter.bi_sector & mask));
	case SC_PLAN_ORIGIN:
		if ((io->opf & REQ_OP_MASK) == REQ_OP_DISCARD)
			return sc_end_or_send_discard(io, bio);
		return sc_remap_bio(io, bio, sc->origin, io->iter.bi_sector);
	case SC_PLAN_COMMIT:
		sc_wait_commit(sc, &io->waiter, sc_discard_done, false);
		return DM_MAPIO_SUBMITTED;
	case SC_PLAN_FAIL:
		sc_add_stat(sc, SC_STAT_LOST_ERRORS, 1);
		/* It may have taken slots before it met the dirty block. */
		sc_drop_blocks(sc, &io->op, false);
		sc_release_op(sc, &io->op);
		sc_end_bio(io, bio, BLK_STS_IOERR);
		return DM_MAPIO_SUBMITTED;
	case SC_PLAN_JOB:
		break;
	}
	bio_clear_polled(bio);
	/* Do not wait for jobs in ->map: their bios may be queued behind. */
	if (!sc_job_start(io, bio, in_map ? GFP_NOWAIT : GFP_NOIO))
		sc_defer_bio(sc, io, SC_TODO_JOB);
	return DM_MAPIO_SUBMITTED;
}

/* Go on with a bio that has waited for its blocks. */
static int sc_plan_bio(struct sc_io *io, struct bio *bio)
{
	struct sc_bucket *bucket = sc_get_bucket(&io->sc->index, io->op.set);
	enum sc_plan plan;

	spin_lock_irq(&bucket->lock);
	plan = sc_plan_blocks(io);
	spin_unlock_irq(&bucket->lock);
	return sc_follow_plan(io, bio, plan, false);
}

/*
 * Announce the blocks of a bio, or have it wait for them. If it need not wait,
 * it is planned under the same lock: a hit takes the lock once here and once
 * when it ends.
 */
static int sc_begin_bio(struct sc_io *io, struct bio *bio, bool in_map)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	sector_t end = io->iter.bi_sector + (io->iter.bi_size >> SECTOR_SHIFT);
	u64 block = io->iter.bi_sector >> index->block_shift;
	struct sc_bucket *bucket;
	enum sc_plan plan;
	unsigned long flags;
	u32 pages;

	pages = (io->iter.bi_size +
		 2 * (index->geo.block_sectors << SECTOR_SHIFT)) >>
		PAGE_SHIFT;
	io->fill = sc_is_read(io) && !io->retried && !io->bypass &&
		   READ_ONCE(sc->mode) != SC_MODE_WRITEONLY &&
		   !sc_is_lost(sc) && pages <= SC_JOB_PAGES_MAX;
	sc_locate_block(index, block, &io->op.set, &io->op.first_id);
	io->op.last_id =
		io->op.first_id + (((end - 1) >> index->block_shift) - block);

	bucket = sc_get_bucket(index, io->op.set);
	spin_lock_irqsave(&bucket->lock, flags);
	io->op.class = sc_classify_bio(io);
	if (sc_op_is_blocked(bucket, &io->op, NULL)) {
		/* A worker will send it, so its sender cannot poll. */
		bio_clear_polled(bio);
		list_add_tail(&io->op.link, &bucket->waiting);
		spin_unlock_irqrestore(&bucket->lock, flags);
		sc_add_stat(sc, SC_STAT_WAITED, 1);
		return DM_MAPIO_SUBMITTED;
	}
	list_add_tail(&io->op.link, &bucket->active);
	plan = sc_plan_blocks(io);
	spin_unlock_irqrestore(&bucket->lock, flags);
	return sc_follow_plan(io, bio, plan, in_map);
}

/* Go on with bios that have waited, or that the SSD has failed. */
void sc_defer_work(struct work_struct *work)
{
	struct setcache *sc =
		container_of(work, struct setcache, deferred.work);
	struct sc_io *io, *next;
	struct blk_plug plug;
	LIST_HEAD(list);

	spin_lock_irq(&sc->deferred.lock);
	list_splice_init(&sc->deferred.list, &list);
	spin_unlock_irq(&sc->deferred.lock);

	blk_start_plug(&plug);
	list_for_each_entry_safe(io, next, &list, defer) {
		struct bio *bio = sc_io_get_bio(io);
		int r = DM_MAPIO_SUBMITTED;

		switch (io->todo) {
		case SC_TODO_BEGIN:
			r = sc_begin_bio(io, bio, false);
			break;
		case SC_TODO_PLAN:
			r = sc_plan_bio(io, bio);
			break;
		case SC_TODO_JOB:
			sc_job_start(io, bio, GFP_NOIO);
			break;
		}
		if (r == DM_MAPIO_REMAPPED)
			dm_submit_bio_remap(bio, NULL);
	}
	blk_finish_plug(&plug);
}

static void sc_flush_done(struct sc_waiter *waiter)
{
	struct sc_io *io = container_of(waiter, struct sc_io, waiter);

	sc_end_bio(io, sc_io_get_bio(io), waiter->error);
}

/*
 * Return whether a bio belongs to a sequential stream that bypasses the cache.
 * Streams of reads and of writes are distinguished.
 */
static bool sc_bio_is_bypassed(struct setcache *sc, const struct bio *bio)
{
	bool write = op_is_write(bio_op(bio));
	u64 limit = sc_get_option(sc, write ? SC_OPT_SEQ_WRITE_KB :
					      SC_OPT_SEQ_READ_KB);
	sector_t length;

	if (!limit)
		return false;
	length = sc_flow_add(sc->flows[write], bio->bi_iter.bi_sector,
			     bio_sectors(bio), jiffies);
	if (length < limit * 2)
		return false;
	sc_add_stat(sc, write ? SC_STAT_SEQ_WRITE : SC_STAT_SEQ_READ,
		    bio_sectors(bio));
	return true;
}

/*
 * Record the sender in a bio, for another thread may go on with it: its
 * priority, and for fills its cgroup. A blkg belongs to a device: take the
 * SSD's, where most bios go.
 */
static void sc_charge_bio(struct setcache *sc, struct bio *bio)
{
	bio_set_dev(bio, sc->ssd->bdev);
	if (IOPRIO_PRIO_CLASS(bio->bi_ioprio) == IOPRIO_CLASS_NONE)
		bio->bi_ioprio = get_current_ioprio();
}

int sc_map(struct dm_target *ti, struct bio *bio)
{
	struct sc_io *io = dm_per_bio_data(bio, sizeof(*io));
	struct setcache *sc = ti->private;
	sector_t stripe =
		(sector_t)sc->index.geo.block_sectors * sc->index.geo.assoc;
	sector_t room;

	memset(io, 0, sizeof(*io));
	io->sc = sc;
	io->end_job = sc_end_job_bio;
	/*
	 * All CPUs share this cache line: write it once per tick at most.
	 */
	if (time_before(READ_ONCE(sc->last_io_jiffies), jiffies))
		WRITE_ONCE(sc->last_io_jiffies, jiffies);

	/* A flush has no data: device-mapper's core sends data separately. */
	if (bio->bi_opf & REQ_PREFLUSH) {
		sc_add_stat(sc, SC_STAT_FLUSH_REQUESTS, 1);
		sc_wait_commit(sc, &io->waiter, sc_flush_done, true);
		return DM_MAPIO_SUBMITTED;
	}
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);

	switch (bio_op(bio)) {
	case REQ_OP_READ:
		sc_add_stat(sc, SC_STAT_READ_REQUESTS, 1);
		sc_add_stat(sc, SC_STAT_READ_SECTORS, bio_sectors(bio));
		io->bypass = sc_bio_is_bypassed(sc, bio);
		break;
	case REQ_OP_WRITE:
		sc_add_stat(sc, SC_STAT_WRITE_REQUESTS, 1);
		sc_add_stat(sc, SC_STAT_WRITE_SECTORS, bio_sectors(bio));
		io->bypass = sc_bio_is_bypassed(sc, bio);
		break;
	case REQ_OP_DISCARD:
		sc_add_stat(sc, SC_STAT_DISCARD_REQUESTS, 1);
		/* The core splits reads and writes, but not all discards. */
		room = stripe - (bio->bi_iter.bi_sector & (stripe - 1));
		if (bio_sectors(bio) > room)
			dm_accept_partial_bio(bio, room);
		break;
	default:
		/* The target supports no other operation. */
		return DM_MAPIO_KILL;
	}
	io->iter = bio->bi_iter;
	io->opf = bio->bi_opf & ~REQ_POLLED;
	sc_charge_bio(sc, bio);
	return sc_begin_bio(io, bio, true);
}

/*---------------------------------------------------------------------------*/

int sc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct sc_io *io = dm_per_bio_data(bio, sizeof(*io));
	struct setcache *sc = ti->private;

	switch (io->end_device) {
	case SC_END_NONE:
		return DM_ENDIO_DONE;
	case SC_END_ORIGIN:
		if (*error)
			sc_add_stat(sc, SC_STAT_ORIGIN_ERRORS, 1);
		break;
	case SC_END_SSD:
		if (*error) {
			sc_account_ssd_error(sc, *error);
			sc_drop_blocks(sc, &io->op, true);
			sc_release_op(sc, &io->op);
			return sc_retry_bio(io, bio) ? DM_ENDIO_INCOMPLETE :
						       DM_ENDIO_DONE;
		}
		if (!sc_is_read(io)) {
			if (io->changes_slots)
				sc_end_write(sc, &io->op, false);
			sc_set_unsafe_data(sc);
		}
		break;
	}
	if (io->at_origin)
		atomic_dec(&sc->origin_ios);
	sc_release_op(sc, &io->op);
	return DM_ENDIO_DONE;
}
