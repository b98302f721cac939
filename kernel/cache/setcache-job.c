// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs of dm-setcache: bios that need several bios.
 *
 * A job serves reads that fill, hits in several pieces, mixtures of hits and
 * misses, writes to both devices, writes whose first or last block has to be
 * read first, and FUA writes that need a commit. It takes over the announcement
 * of the bio's blocks, for a fill goes on after the reader has its data. It
 * proceeds in steps (-fill, -write): each sends bios, and when all of these
 * have ended, a worker begins the next step.
 *
 * Jobs have a workqueue of their own: a bio that waits for a job's memory
 * occupies the common one, and the jobs that free it must not queue behind.
 */
#include <linux/overflow.h>
#include <linux/string.h>

#include "setcache.h"
#include "setcache-fill.h"
#include "setcache-job.h"
#include "setcache-step.h"
#include "setcache-write.h"

size_t sc_job_size(u32 assoc)
{
	return struct_size_t(struct sc_job, pieces, assoc);
}

/*
 * Create and start the job of a bio whose slots are known. Return whether there
 * was memory for it.
 */
bool sc_job_start(struct sc_io *io, struct bio *bio, gfp_t gfp)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_get_bucket(index, io->op.set);
	struct sc_job *job = mempool_alloc(&sc->jobs.pool, gfp);
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
	job->ioprio = bio->bi_ioprio;
	job->write_hint = bio->bi_write_hint;
	job->write_through = io->write_through && !sc_is_read(io);
	job->has_diverted = io->diverted;
	atomic_set(&job->pending, 1);
	INIT_WORK(&job->work, sc_job_work);
	job->nr_blocks = io->op.last_id - io->op.first_id + 1;
	atomic_inc(&sc->jobs.nr_jobs);

	spin_lock_irqsave(&bucket->lock, flags);
	job->op = io->op;
	list_replace(&io->op.link, &job->op.link);
	for (i = 0; i < job->nr_blocks; i++) {
		struct sc_piece *piece = &job->pieces[i];
		enum sc_slot_state state;

		piece->slot =
			sc_find_slot(index, io->op.set, io->op.first_id + i);
		piece->kind = SC_KIND_ORIGIN;
		if (piece->slot == SC_NIL)
			continue;
		state = sc_get_slot_state(index, io->op.set, piece->slot);
		if (state == SC_SLOT_CLEAN && (io->retried || sc_is_lost(sc)))
			continue;
		if (sc_is_diverted(io, i, piece->slot)) {
			piece->kind = SC_KIND_DIVERTED;
			continue;
		}
		job->keeps_dirty |= sc_is_dirty(state);
		piece->kind = SC_KIND_HIT;
		if (state != SC_SLOT_FILLING)
			continue;
		piece->kind = SC_KIND_NEW;
		sc_block_part(index, &io->iter, i, &from, &to);
		if (!sc_is_read(io) && to - from != index->geo.block_sectors)
			piece->kind = SC_KIND_RMW;
	}
	spin_unlock_irqrestore(&bucket->lock, flags);

	if (sc_is_read(io))
		sc_read_start(job);
	else
		sc_write_start(job);
	return true;
}
