// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations that the steps of a job of dm-setcache consist of: bios to and from
 * both devices, with the sender's pages or the cache's own, and the job's end.
 *
 * Bios and jobs come from mempools; without pages a block is not cached.
 */
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/cgroup.h>
#include <linux/highmem.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "setcache.h"
#include "setcache-bio.h"
#include "setcache-slots.h"
#include "setcache-step.h"
#include "setcache-trial.h"

/* For memory without which a request can go on. */
#define SC_GFP_TRY	(GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN)

/* Call the next step of a job. */
void sc_job_work(struct work_struct *work)
{
	struct sc_job *job = container_of(work, struct sc_job, work);

	job->next_step(job);
}

/*
 * Give back a job's blocks and memory. The caller ends the bio, if it has not.
 */
void sc_job_free(struct sc_job *job)
{
	struct setcache *sc = job->sc;
	u32 i;

	sc_release_op(sc, &job->op);
	for (i = 0; i < job->own.nr; i++)
		if (job->own.pages[i])
			__free_page(job->own.pages[i]);
	kfree(job->own.pages);
	if (job->css)
		css_put(job->css);
	mempool_free(job, &sc->jobs.pool);
	if (atomic_dec_and_test(&sc->jobs.nr_jobs))
		wake_up_all(&sc->jobs.idle);
}

/* End a job, and retry its bio at the origin, or fail it. */
void sc_job_end_or_retry(struct sc_job *job, blk_status_t error)
{
	struct sc_io *io = job->io;
	struct bio *bio = job->bio;

	sc_job_free(job);
	io->end_job(io, bio, error, true);
}

/* End a job that the SSD has failed, and retry its bio at the origin. */
void sc_job_retry(struct sc_job *job)
{
	sc_drop_blocks(job->sc, &job->op, true);
	sc_job_end_or_retry(job, BLK_STS_IOERR);
}

/* End a job and its bio. */
void sc_job_end(struct sc_job *job, blk_status_t error)
{
	struct sc_io *io = job->io;
	struct bio *bio = job->bio;

	sc_job_free(job);
	io->end_job(io, bio, error, false);
}

/*---------------------------------------------------------------------------*/

/*
 * Drop a reference to a step: a bio of it has ended, or all bios are sent. The
 * last one queues the next step.
 */
void sc_job_put(struct sc_job *job)
{
	if (atomic_dec_and_test(&job->pending))
		queue_work(job->sc->wq.job, &job->work);
}

static void sc_job_ssd_end(struct bio *bio)
{
	struct sc_job *job = bio->bi_private;

	if (bio->bi_status) {
		WRITE_ONCE(job->ssd_error, bio->bi_status);
		sc_account_ssd_error(job->sc, bio->bi_status);
	}
	bio_put(bio);
	sc_job_put(job);
}

static void sc_job_origin_end(struct bio *bio)
{
	struct sc_job *job = bio->bi_private;

	if (bio->bi_status) {
		WRITE_ONCE(job->origin_error, bio->bi_status);
		sc_add_stat(job->sc, SC_STAT_ORIGIN_ERRORS, 1);
	}
	atomic_dec(&job->sc->origin_ios);
	bio_put(bio);
	sc_job_put(job);
}

/* Send a bio of a step. */
static void sc_job_submit(struct sc_job *job, struct bio *bio, bool ssd)
{
	struct setcache *sc = job->sc;

	bio->bi_private = job;
	bio->bi_end_io = ssd ? sc_job_ssd_end : sc_job_origin_end;
	if (!ssd)
		atomic_inc(&sc->origin_ios);
	sc_add_io_stat(sc, ssd, bio_op(bio) == REQ_OP_READ, bio_sectors(bio));
	atomic_inc(&job->pending);
	if (job->bio) {
		/* Charge it as the bio that device-mapper was given. */
		dm_submit_bio_remap(job->bio, bio);
		return;
	}
	bio_associate_blkg_from_css(bio, job->css);
	submit_bio_noacct(bio);
}

/*
 * Transfer blocks @i to @end (exclusive) to or from a device, in the sender's
 * pages.
 */
void sc_job_send_user(struct sc_job *job, u32 i, u32 end, bool ssd)
{
	struct setcache *sc = job->sc;
	struct sc_index *index = &sc->index;
	sector_t from, to, unused, sector;
	struct bio *bio;

	sc_block_part(index, &job->iter, i, &from, &unused);
	sc_block_part(index, &job->iter, end - 1, &unused, &to);
	sector = from;
	if (ssd)
		sector = sc_slot_sector(index, job->op.set,
					job->pieces[i].slot) +
			 (from & (index->geo.block_sectors - 1));
	bio = bio_alloc_clone(ssd ? sc->ssd->bdev : sc->origin->bdev, job->bio,
			      GFP_NOIO, &sc->bs);
	bio->bi_iter = job->iter;
	bio_advance(bio, (from - job->iter.bi_sector) << SECTOR_SHIFT);
	bio->bi_iter.bi_size = (to - from) << SECTOR_SHIFT;
	bio->bi_iter.bi_sector = sector;
	if (ssd)
		bio->bi_opf &= ~REQ_FUA;
	else if (job->has_diverted)
		bio->bi_opf |= REQ_FUA;
	sc_job_submit(job, bio, ssd);
}

/* Return the offset of a block in the job's own pages, in bytes. */
static u64 sc_job_offset(const struct sc_job *job, u32 i)
{
	return (u64)(i - job->own.first_block) *
		       job->sc->index.geo.block_sectors
	       << SECTOR_SHIFT;
}

/* Transfer blocks @i to @end (exclusive) to or from a device, in our pages. */
void sc_job_send_own(struct sc_job *job, u32 i, u32 end, bool ssd,
		     blk_opf_t opf)
{
	struct setcache *sc = job->sc;
	struct sc_index *index = &sc->index;
	u64 block = (job->iter.bi_sector >> index->block_shift) + i;
	struct sc_span span = {
		.bdev = ssd ? sc->ssd->bdev : sc->origin->bdev,
		.opf = opf,
		.sector = ssd ? sc_slot_sector(index, job->op.set,
					       job->pieces[i].slot) :
				block << index->block_shift,
		.pages = job->own.pages,
		.at = sc_job_offset(job, i),
		.stop = sc_job_offset(job, end),
	};
	struct bio *bio;

	while ((bio = sc_span_next_bio(&sc->bs, &span))) {
		bio->bi_ioprio = job->ioprio;
		bio->bi_write_hint = job->write_hint;
		sc_job_submit(job, bio, ssd);
	}
}

/*---------------------------------------------------------------------------*/

/* Return whether any block of a job is of a kind. */
bool sc_job_has_kind(const struct sc_job *job, enum sc_kind kind)
{
	u32 i;

	for (i = 0; i < job->nr_blocks; i++)
		if (job->pieces[i].kind == kind)
			return true;
	return false;
}

/*
 * Return the end of the run of blocks from @i on that one bio can carry: blocks
 * of one kind, and if @slots in adjoining slots.
 */
u32 sc_job_run_end(const struct sc_job *job, u32 i, bool slots)
{
	const struct sc_piece *p = job->pieces;
	u32 end;

	for (end = i + 1; end < job->nr_blocks; end++) {
		if (p[end].kind != p[i].kind)
			break;
		if (slots && p[end].slot != p[end - 1].slot + 1)
			break;
	}
	return end;
}

/* Free the new slots of blocks of a kind, which will not be written. */
void sc_job_free_slots(struct sc_job *job, enum sc_kind kind)
{
	struct sc_index *index = &job->sc->index;
	struct sc_bucket *bucket = sc_get_bucket(index, job->op.set);
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&bucket->lock, flags);
	for (i = 0; i < job->nr_blocks; i++) {
		if (job->pieces[i].kind != kind)
			continue;
		sc_remove_block(index, job->op.set, job->pieces[i].slot);
		job->pieces[i].kind = SC_KIND_ORIGIN;
		job->pieces[i].slot = SC_NIL;
	}
	spin_unlock_irqrestore(&bucket->lock, flags);
}

/*
 * Allocate pages for the blocks of a kind. Return whether there was memory for all.
 */
bool sc_job_alloc_pages(struct sc_job *job, enum sc_kind kind)
{
	u32 block = job->sc->index.geo.block_sectors << SECTOR_SHIFT;
	u32 i, first = job->nr_blocks, last = 0;
	u64 at, stop;

	for (i = 0; i < job->nr_blocks; i++) {
		if (job->pieces[i].kind != kind)
			continue;
		first = min(first, i);
		last = i;
	}
	job->own.first_block = first;
	at = DIV_ROUND_UP_ULL((u64)(last - first + 1) * block, PAGE_SIZE);
	if (at > SC_JOB_PAGES_MAX)
		return false;
	job->own.pages = kcalloc(at, sizeof(*job->own.pages), SC_GFP_TRY);
	if (!job->own.pages)
		return false;
	job->own.nr = at;
	for (i = first; i <= last; i++) {
		if (job->pieces[i].kind != kind)
			continue;
		at = sc_job_offset(job, i);
		stop = at + block;
		for (at = round_down(at, PAGE_SIZE); at < stop;
		     at += PAGE_SIZE) {
			struct page **page = &job->own.pages[at >> PAGE_SHIFT];

			if (!*page)
				*page = alloc_page(SC_GFP_TRY);
			if (!*page)
				return false;
		}
	}
	return true;
}

/* Copy a bio's sectors of blocks of a kind to our own pages, or from them. */
void sc_job_copy_pages(struct sc_job *job, enum sc_kind kind, bool to_ours)
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
		sc_block_part(index, &job->iter, i, &from, &to);
		/* Up to the end of the segment, the block, or the page. */
		bytes = min_t(u64, bv.bv_len,
			      (to - iter.bi_sector) << SECTOR_SHIFT);
		if (job->pieces[i].kind == kind) {
			skip = iter.bi_sector & (index->geo.block_sectors - 1);
			at = sc_job_offset(job, i) +
			     ((u64)skip << SECTOR_SHIFT);
			bytes = min_t(u32, bytes,
				      PAGE_SIZE - offset_in_page(at));
			ours = page_address(job->own.pages[at >> PAGE_SHIFT]) +
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
