// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs of dm-setcache that read, and the fills that follow them.
 *
 * A fill is written from the cache's own pages. No read waits for its own fill,
 * however slow the SSD is: one thread sends all fills, and only that thread
 * waits while the SSD accepts no more. When too many pages wait to be filled,
 * reads that miss bypass the cache (-plan).
 */
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/cgroup.h>

#include "setcache.h"
#include "setcache-fill.h"
#include "setcache-slots.h"
#include "setcache-step.h"

/* End a fill: its blocks are on the SSD, or have failed there. */
static void sc_fill_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->ssd_error)
		sc_drop_blocks(sc, &job->op, true);
	else
		sc_end_write(sc, &job->op, true);
	atomic_sub(job->own.nr, &sc->fills.nr_pages);
	sc_job_free(job);
}

/* Write the blocks that a read has brought to the SSD. */
static void sc_fill_start(struct sc_job *job)
{
	struct setcache *sc = job->sc;
	u32 i, end, fresh = 0;

	job->next_step = sc_fill_done;
	atomic_set(&job->pending, 1);
	for (i = 0; i < job->nr_blocks; i = end) {
		end = sc_job_run_end(job, i, true);
		if (job->pieces[i].kind != SC_KIND_NEW)
			continue;
		fresh += end - i;
		sc_job_send_own(job, i, end, true, REQ_OP_WRITE);
	}
	sc_add_stat(sc, SC_STAT_INSERTED, fresh);
	sc_add_stat(sc, SC_STAT_FILL, (u64)fresh * sc->index.geo.block_sectors);
	sc_job_put(job);
}

/* Send the fills of reads that have ended. */
void sc_fill_work(struct work_struct *work)
{
	struct setcache *sc = container_of(work, struct setcache, fills.work);
	struct sc_job *job, *next;
	struct blk_plug plug;
	LIST_HEAD(list);

	spin_lock_irq(&sc->fills.lock);
	list_splice_init(&sc->fills.list, &list);
	spin_unlock_irq(&sc->fills.lock);

	blk_start_plug(&plug);
	list_for_each_entry_safe(job, next, &list, fill)
		sc_fill_start(job);
	blk_finish_plug(&plug);
}

/*---------------------------------------------------------------------------*/

/* Return whether a read has read more from the origin than its bio covers. */
static bool sc_read_has_extra(const struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	sector_t from, to;
	u32 i;

	for (i = 0; i < job->nr_blocks; i++) {
		sc_block_part(index, &job->iter, i, &from, &to);
		if (job->pieces[i].kind == SC_KIND_NEW &&
		    to - from != index->geo.block_sectors)
			return true;
	}
	return false;
}

/*
 * Go on with a read whose bios have ended: end it, and queue its fill if it has
 * one.
 */
static void sc_read_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->origin_error) {
		blk_status_t error = job->origin_error;
		bool more = sc_read_has_extra(job);

		if (job->own.pages)
			sc_job_free_slots(job, SC_KIND_NEW);
		/* The bad sector may lie outside of the reader's bio. */
		if (more)
			sc_job_end_or_retry(job, error);
		else
			sc_job_end(job, error);
		return;
	}
	if (job->ssd_error) {
		sc_job_retry(job);
		return;
	}
	if (!job->own.pages) {
		sc_job_end(job, BLK_STS_OK);
		return;
	}
	atomic_add(job->own.nr, &sc->fills.nr_pages);
	sc_job_copy_pages(job, SC_KIND_NEW, false);
	job->css = bio_blkcg_css(job->bio);
	if (job->css)
		css_get(job->css);
	job->io->end_job(job->io, job->bio, BLK_STS_OK, false);
	job->bio = NULL;
	job->io = NULL;

	spin_lock_irq(&sc->fills.lock);
	list_add_tail(&job->fill, &sc->fills.list);
	spin_unlock_irq(&sc->fills.lock);
	queue_work(sc->wq.job, &sc->fills.work);
}

/* Begin a read from both devices; blocks to be filled go to our own pages. */
void sc_read_start(struct sc_job *job)
{
	blk_opf_t opf = REQ_OP_READ | (job->opf & (REQ_SYNC | REQ_META |
						   REQ_PRIO | REQ_RAHEAD));
	struct sc_index *index = &job->sc->index;
	sector_t from, to, unused;
	u32 i, end;

	if (sc_job_has_kind(job, SC_KIND_NEW) &&
	    !sc_job_alloc_pages(job, SC_KIND_NEW))
		sc_job_free_slots(job, SC_KIND_NEW);
	job->next_step = sc_read_done;
	for (i = 0; i < job->nr_blocks; i = end) {
		u8 kind = job->pieces[i].kind;

		end = sc_job_run_end(job, i, kind == SC_KIND_HIT);
		if (kind != SC_KIND_NEW) {
			sc_job_send_user(job, i, end, kind == SC_KIND_HIT);
			continue;
		}
		sc_block_part(index, &job->iter, i, &from, &unused);
		sc_block_part(index, &job->iter, end - 1, &unused, &to);
		sc_add_stat(job->sc, SC_STAT_FILL_EXTRA,
			    (end - i) * index->geo.block_sectors - (to - from));
		sc_job_send_own(job, i, end, false, opf);
	}
	sc_job_put(job);
}
