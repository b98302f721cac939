// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs of dm-setcache that write: in several pieces, to both devices, or with a
 * first or last block whose other sectors are read from the origin first.
 *
 * Dirty blocks that the SSD has failed to write go to the origin, durably. Then
 * their records are removed, and only then does the write end.
 */
#include "setcache.h"
#include "setcache-commit.h"
#include "setcache-slots.h"
#include "setcache-step.h"
#include "setcache-write.h"

/* End a FUA write after the commit of its records. */
static void sc_fua_done(struct sc_waiter *waiter)
{
	struct sc_job *job = container_of(waiter, struct sc_job, waiter);

	sc_job_end(job, waiter->error);
}

/*
 * End a write that has gone to the origin, after the commit that removes the
 * SSD's records.
 */
static void sc_divert_done(struct sc_waiter *waiter)
{
	struct sc_job *job = container_of(waiter, struct sc_job, waiter);

	sc_end_discard(job->sc, &job->op, !waiter->error, true);
	sc_job_end(job, waiter->error);
}

/*
 * Remove the SSD's records of blocks that were dirty there. The origin has
 * these blocks now, durably.
 */
static void sc_divert_remove_records(struct sc_job *job)
{
	struct setcache *sc = job->sc;
	struct sc_bucket *bucket = sc_get_bucket(&sc->index, job->op.set);
	u32 i;

	spin_lock_irq(&bucket->lock);
	for (i = 0; i < job->nr_blocks; i++) {
		if (job->pieces[i].kind != SC_KIND_DIVERTED)
			continue;
		sc_set_slot_state(&sc->index, job->op.set, job->pieces[i].slot,
				  SC_SLOT_DISCARDED);
		sc_mark_record(sc, job->op.set, job->pieces[i].slot);
	}
	spin_unlock_irq(&bucket->lock);
	if (job->keeps_dirty)
		sc_set_unsafe_data(sc);
	sc_wait_commit(sc, &job->waiter, sc_divert_done, false);
}

/* Go on with a write whose bios have ended. */
static void sc_write_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->origin_error) {
		blk_status_t error = job->origin_error;

		sc_drop_blocks(sc, &job->op, job->ssd_error != BLK_STS_OK);
		sc_job_end(job, error);
		return;
	}
	/*
	 * Data that the origin has as well need no retry, unless the block was
	 * dirty: the SSD's record still says dirty.
	 */
	if (job->ssd_error && (!job->write_through || job->keeps_dirty)) {
		sc_job_retry(job);
		return;
	}
	if (job->ssd_error)
		sc_drop_blocks(sc, &job->op, true);
	else
		sc_end_write(sc, &job->op, job->write_through);
	if (job->has_diverted) {
		sc_divert_remove_records(job);
		return;
	}
	if (!job->write_through || job->keeps_dirty) {
		sc_set_unsafe_data(sc);
		if (job->opf & REQ_FUA) {
			sc_wait_commit(sc, &job->waiter, sc_fua_done, false);
			return;
		}
	}
	sc_job_end(job, BLK_STS_OK);
}

/* Send the bios of a write whose pages are complete. */
static void sc_write_send(struct sc_job *job)
{
	u32 i, end;

	job->next_step = sc_write_done;
	atomic_set(&job->pending, 1);
	for (i = 0; i < job->nr_blocks; i = end) {
		u8 kind = job->pieces[i].kind;

		end = sc_job_run_end(job, i, kind < SC_KIND_ORIGIN);
		if (kind == SC_KIND_RMW)
			sc_job_send_own(job, i, end, true,
					REQ_OP_WRITE | (job->opf &
							(REQ_SYNC | REQ_META)));
		else if (kind < SC_KIND_ORIGIN)
			sc_job_send_user(job, i, end, true);
		else if (!job->write_through)
			sc_job_send_user(job, i, end, false);
	}
	if (job->write_through)
		sc_job_send_user(job, 0, job->nr_blocks, false);
	sc_job_put(job);
}

/*---------------------------------------------------------------------------*/

/*
 * Send partly written blocks to the origin and do not cache them.
 */
static void sc_rmw_cancel(struct sc_job *job)
{
	struct setcache *sc = job->sc;
	sector_t from, to;
	u32 i;

	for (i = 0; i < job->nr_blocks; i++) {
		if (job->pieces[i].kind != SC_KIND_RMW)
			continue;
		sc_block_part(&sc->index, &job->iter, i, &from, &to);
		sc_add_stat(sc, SC_STAT_WRITE_NEW, from - to);
		sc_add_stat(sc, SC_STAT_WRITE_BYPASS, to - from);
	}
	sc_job_free_slots(job, SC_KIND_RMW);
}

/*
 * Go on with a write after the missing sectors of its partly written blocks
 * have been read.
 */
static void sc_rmw_done(struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	sector_t from, to;
	u32 i;

	if (job->origin_error) {
		/*
		 * The sectors of the bio go to the origin, which may succeed or
		 * fail.
		 */
		job->origin_error = BLK_STS_OK;
		sc_rmw_cancel(job);
	} else {
		sc_job_copy_pages(job, SC_KIND_RMW, true);
		for (i = 0; i < job->nr_blocks; i++) {
			if (job->pieces[i].kind != SC_KIND_RMW)
				continue;
			sc_block_part(index, &job->iter, i, &from, &to);
			sc_add_stat(job->sc, SC_STAT_RMW_EXTRA,
				    index->geo.block_sectors - (to - from));
		}
	}
	sc_write_send(job);
}

/* Begin a write: read the missing sectors of partly written blocks, if any. */
void sc_write_start(struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	bool rmw = sc_job_has_kind(job, SC_KIND_RMW);
	u32 i;

	if (rmw && !sc_job_alloc_pages(job, SC_KIND_RMW)) {
		sc_rmw_cancel(job);
		rmw = false;
	}
	if (!rmw) {
		sc_write_send(job);
		return;
	}
	job->next_step = sc_rmw_done;
	for (i = 0; i < job->nr_blocks; i++) {
		if (job->pieces[i].kind != SC_KIND_RMW)
			continue;
		sc_add_stat(job->sc, SC_STAT_RMW_READ,
			    index->geo.block_sectors);
		sc_job_send_own(job, i, i + 1, false, REQ_OP_READ | REQ_SYNC);
	}
	sc_job_put(job);
}
