// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs of dm-setcache that write: in several pieces, to both devices, or with a
 * first or last block of which the rest is to be read from the origin first.
 *
 * What the SSD has refused of dirty blocks goes to the origin, durably; then
 * its records are taken back, and only then the write has ended.
 */
#include "setcache.h"
#include "setcache-commit.h"
#include "setcache-slots.h"
#include "setcache-step.h"
#include "setcache-write.h"

/* End a FUA write when the commit of its records has ended. */
static void sc_fua_done(struct sc_waiter *waiter)
{
	struct sc_job *job = container_of(waiter, struct sc_job, waiter);

	sc_job_end(job, waiter->error);
}

/*
 * End a write that has gone to the origin, when the commit has ended that takes
 * the SSD's records back.
 */
static void sc_away_done(struct sc_waiter *waiter)
{
	struct sc_job *job = container_of(waiter, struct sc_job, waiter);

	sc_discarded(job->sc, &job->op, !waiter->error, true);
	sc_job_end(job, waiter->error);
}

/*
 * Take back the SSD's records of blocks that were dirty there, and which the
 * origin has now, durably.
 */
static void sc_job_away(struct sc_job *job)
{
	struct setcache *sc = job->sc;
	struct sc_bucket *bucket = sc_bucket(&sc->index, job->op.set);
	u32 i;

	spin_lock_irq(&bucket->lock);
	for (i = 0; i < job->count; i++) {
		if (job->pieces[i].kind != SC_KIND_AWAY)
			continue;
		sc_set_state(&sc->index, job->op.set, job->pieces[i].slot,
			     SC_SLOT_DISCARDED);
		sc_mark(sc, job->op.set, job->pieces[i].slot);
	}
	spin_unlock_irq(&bucket->lock);
	if (job->dirty)
		sc_set_unsafe_data(sc);
	sc_wait_commit(sc, &job->waiter, sc_away_done, false);
}

/* Go on with a write whose bios have ended. */
static void sc_write_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->origin_error) {
		blk_status_t error = job->origin_error;

		sc_drop(sc, &job->op, job->ssd_error != BLK_STS_OK);
		sc_job_end(job, error);
		return;
	}
	/*
	 * What the origin has as well need not be tried again, unless it was
	 * dirty: the SSD's record says so still.
	 */
	if (job->ssd_error && (!job->through || job->dirty)) {
		sc_job_retry(job);
		return;
	}
	if (job->ssd_error)
		sc_drop(sc, &job->op, true);
	else
		sc_settle(sc, &job->op, job->through);
	if (job->away) {
		sc_job_away(job);
		return;
	}
	if (!job->through || job->dirty) {
		sc_set_unsafe_data(sc);
		if (job->opf & REQ_FUA) {
			sc_wait_commit(sc, &job->waiter, sc_fua_done, false);
			return;
		}
	}
	sc_job_end(job, BLK_STS_OK);
}

/* Send what a write has, the pages of which are complete. */
static void sc_write_go(struct sc_job *job)
{
	u32 i, end;

	job->next = sc_write_done;
	atomic_set(&job->pending, 1);
	for (i = 0; i < job->count; i = end) {
		u8 kind = job->pieces[i].kind;

		end = sc_job_run(job, i, kind < SC_KIND_ORIGIN);
		if (kind == SC_KIND_RMW)
			sc_job_ours(job, i, end, true, REQ_OP_WRITE |
				    (job->opf & (REQ_SYNC | REQ_META)));
		else if (kind < SC_KIND_ORIGIN)
			sc_job_user(job, i, end, true);
		else if (!job->through)
			sc_job_user(job, i, end, false);
	}
	if (job->through)
		sc_job_user(job, 0, job->count, false);
	sc_job_put(job);
}

/*---------------------------------------------------------------------------*/

/*
 * Write to the origin, and do not cache, the blocks that are written in part.
 */
static void sc_rmw_cancel(struct sc_job *job)
{
	struct setcache *sc = job->sc;
	sector_t from, to;
	u32 i;

	for (i = 0; i < job->count; i++) {
		if (job->pieces[i].kind != SC_KIND_RMW)
			continue;
		sc_part(&sc->index, &job->iter, i, &from, &to);
		sc_count(sc, SC_STAT_WRITE_NEW, from - to);
		sc_count(sc, SC_STAT_WRITE_BYPASS, to - from);
	}
	sc_job_give_back(job, SC_KIND_RMW);
}

/*
 * Go on with a write when the rest of the blocks that are written in part has
 * been read.
 */
static void sc_rmw_done(struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	sector_t from, to;
	u32 i;

	if (job->origin_error) {
		/*
		 * The part that is given goes to the origin, and fails there or
		 * not.
		 */
		job->origin_error = BLK_STS_OK;
		sc_rmw_cancel(job);
	} else {
		sc_job_copy(job, SC_KIND_RMW, true);
		for (i = 0; i < job->count; i++) {
			if (job->pieces[i].kind != SC_KIND_RMW)
				continue;
			sc_part(index, &job->iter, i, &from, &to);
			sc_count(job->sc, SC_STAT_RMW_EXTRA,
				 index->geo.block - (to - from));
		}
	}
	sc_write_go(job);
}

/* Begin a write: read the rest of blocks that are written in part, if any. */
void sc_write_start(struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	bool rmw = sc_job_has(job, SC_KIND_RMW);
	u32 i;

	if (rmw && !sc_job_pages(job, SC_KIND_RMW)) {
		sc_rmw_cancel(job);
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
		sc_count(job->sc, SC_STAT_RMW_READ, index->geo.block);
		sc_job_ours(job, i, i + 1, false, REQ_OP_READ | REQ_SYNC);
	}
	sc_job_put(job);
}
