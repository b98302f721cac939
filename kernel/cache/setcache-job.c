// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios of dm-setcache that need more than one.
 *
 * A job is for: reads that fill, hits in several pieces, a mixture, writes to
 * both devices, writes whose first or last block is to be read first, and FUA
 * writes that need a commit. It takes the announcement over, for a fill goes on
 * when the reader has long got his data. It goes in steps: each sends bios, and
 * when all of them have ended, a worker begins the next one.
 *
 * A fill is written from pages of our own. No read waits for its fill, however
 * slow the SSD: one thread sends all fills, and it alone waits where the SSD
 * takes no more. When much is to be filled already, reads that miss go past the
 * cache (-plan).
 *
 * Memory. Bios and jobs come from mempools, pages are tried for and done
 * without. Who waits for a job's memory is on a workqueue of its own, for the
 * jobs that give it back need the other one.
 */
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/cgroup.h>
#include <linux/highmem.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "setcache-io.h"

/* Memory that a request can do without. */
#define SC_GFP_TRY	(GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN)

/* What a block of a job is. */
enum sc_kind {
	SC_KIND_HIT,		/* in its slot, written or read there */
	SC_KIND_NEW,		/* in a fresh slot; of a read: by our pages */
	SC_KIND_RMW,		/* in a fresh slot, and only a part is given */
	SC_KIND_ORIGIN,		/* on the origin */
	SC_KIND_AWAY,		/* in a slot, dirty, and to be on the origin */
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
 * @css: the cgroup that is charged with a fill, may be NULL
 * @ioprio: its priority
 * @write_hint: the bio's
 * @through: as the bio's
 * @dirty: a write that touches what was dirty, and stays it
 * @away: a write with blocks that are to be on the origin, durably
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
 *
 * One step at a time is at work on a job; what the ends of its bios set is
 * looked at by the next step.
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
	bool away;
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

size_t sc_job_size(u32 assoc)
{
	return struct_size_t(struct sc_job, pieces, assoc);
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
		sc_count(job->sc, SC_STAT_ORIGIN_ERRORS, 1);
	}
	atomic_dec(&job->sc->origin_ios);
	bio_put(bio);
	sc_job_put(job);
}

static void sc_job_submit(struct sc_job *job, struct bio *bio, bool ssd)
{
	struct setcache *sc = job->sc;

	bio->bi_private = job;
	bio->bi_end_io = ssd ? sc_job_ssd_end : sc_job_origin_end;
	if (!ssd)
		atomic_inc(&sc->origin_ios);
	sc_count_io(sc, ssd, bio_op(bio) == REQ_OP_READ, bio_sectors(bio));
	atomic_inc(&job->pending);
	if (job->bio) {
		/* It is charged as the one that device-mapper was given. */
		dm_submit_bio_remap(job->bio, bio);
		return;
	}
	bio_associate_blkg_from_css(bio, job->css);
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
	else if (job->away)
		bio->bi_opf |= REQ_FUA;
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
	u64 block = (job->iter.bi_sector >> index->block_shift) + i;
	struct sc_span span = {
		.bdev = ssd ? sc->ssd->bdev : sc->origin->bdev,
		.opf = opf,
		.sector = ssd ? sc_slot_sector(index, job->op.set,
					       job->pieces[i].slot) :
				block << index->block_shift,
		.pages = job->pages,
		.at = sc_job_offset(job, i),
		.stop = sc_job_offset(job, end),
	};
	struct bio *bio;

	while ((bio = sc_next_bio(&sc->bs, &span))) {
		bio->bi_ioprio = job->ioprio;
		bio->bi_write_hint = job->write_hint;
		sc_job_submit(job, bio, ssd);
	}
}

/* Return whether any block of a job is of a kind. */
static bool sc_job_has(const struct sc_job *job, enum sc_kind kind)
{
	u32 i;

	for (i = 0; i < job->count; i++)
		if (job->pieces[i].kind == kind)
			return true;
	return false;
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
static void sc_job_around(struct sc_job *job, blk_status_t error)
{
	struct sc_io *io = job->io;
	struct bio *bio = job->bio;

	sc_job_free(job);
	io->end(io, bio, error, true);
}

/* The same, for the SSD has failed it. */
static void sc_job_retry(struct sc_job *job)
{
	sc_drop(job->sc, &job->op, true);
	sc_job_around(job, BLK_STS_IOERR);
}

static void sc_job_end(struct sc_job *job, blk_status_t error)
{
	struct sc_io *io = job->io;
	struct bio *bio = job->bio;

	sc_job_free(job);
	io->end(io, bio, error, false);
}

/*---------------------------------------------------------------------------*/

/* What a read has brought is on the SSD. */
static void sc_fill_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->ssd_error)
		sc_drop(sc, &job->op, true);
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
	sc_count(sc, SC_STAT_INSERTED, fresh);
	sc_count(sc, SC_STAT_FILL, (u64)fresh * sc->index.geo.block);
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

/* Whether a read has asked the origin for more than its reader did. */
static bool sc_read_more(const struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	sector_t from, to;
	u32 i;

	for (i = 0; i < job->count; i++) {
		sc_part(index, &job->iter, i, &from, &to);
		if (job->pieces[i].kind == SC_KIND_NEW &&
		    to - from != index->geo.block)
			return true;
	}
	return false;
}

/* All that a read asked for is there. */
static void sc_read_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->origin_error) {
		blk_status_t error = job->origin_error;
		bool more = sc_read_more(job);

		if (job->pages)
			sc_job_give_back(job, SC_KIND_NEW);
		/* What is bad may be beside what the reader wants. */
		if (more)
			sc_job_around(job, error);
		else
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
	job->css = bio_blkcg_css(job->bio);
	if (job->css)
		css_get(job->css);
	job->io->end(job->io, job->bio, BLK_STS_OK, false);
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
	u32 i, end;

	if (sc_job_has(job, SC_KIND_NEW) && !sc_job_pages(job, SC_KIND_NEW))
		sc_job_give_back(job, SC_KIND_NEW);
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
		sc_count(job->sc, SC_STAT_FILL_EXTRA,
			 (end - i) * index->geo.block - (to - from));
		sc_job_ours(job, i, end, false, opf);
	}
	sc_job_put(job);
}

/*---------------------------------------------------------------------------*/

/* Records of a FUA write are stable, or not. */
static void sc_fua_done(struct sc_waiter *waiter)
{
	struct sc_job *job = container_of(waiter, struct sc_job, waiter);

	sc_job_end(job, waiter->error);
}

/* The SSD does not say any more that it has what the origin has, or it does. */
static void sc_away_done(struct sc_waiter *waiter)
{
	struct sc_job *job = container_of(waiter, struct sc_job, waiter);

	sc_discarded(job->sc, &job->op, !waiter->error, true);
	sc_job_end(job, waiter->error);
}

/* The origin has, durably, what was dirty on the SSD: its records are to go. */
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

static void sc_write_done(struct sc_job *job)
{
	struct setcache *sc = job->sc;

	if (job->origin_error) {
		blk_status_t error = job->origin_error;

		sc_drop(sc, &job->op, job->ssd_error != BLK_STS_OK);
		sc_job_end(job, error);
		return;
	}
	/* If the origin has it, the SSD's record may say otherwise. */
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

/* Blocks that are written in part are not cached, but written to the origin. */
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

/* The rest of the blocks that are written in part has been read. */
static void sc_rmw_done(struct sc_job *job)
{
	struct sc_index *index = &job->sc->index;
	sector_t from, to;
	u32 i;

	if (job->origin_error) {
		/* Then the part goes there, and fails or not. */
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

static void sc_write_start(struct sc_job *job)
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

/* Make a job of a bio whose slots are known. False: no memory. */
bool sc_job_start(struct sc_io *io, struct bio *bio, gfp_t gfp)
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
	job->ioprio = bio->bi_ioprio;
	job->write_hint = bio->bi_write_hint;
	job->through = io->through && !sc_is_read(io);
	job->away = io->away;
	atomic_set(&job->pending, 1);
	INIT_WORK(&job->work, sc_job_work);
	job->count = io->op.last - io->op.first + 1;
	atomic_inc(&sc->nr_jobs);

	spin_lock_irqsave(&bucket->lock, flags);
	job->op = io->op;
	list_replace(&io->op.link, &job->op.link);
	for (i = 0; i < job->count; i++) {
		struct sc_piece *piece = &job->pieces[i];
		enum sc_slot_state state;

		piece->slot = sc_find(index, io->op.set, io->op.first + i);
		piece->kind = SC_KIND_ORIGIN;
		if (piece->slot == SC_NIL)
			continue;
		state = sc_state(index, io->op.set, piece->slot);
		if (state == SC_SLOT_CLEAN && (io->retried || sc_is_lost(sc)))
			continue;
		if (sc_is_away(io, i, piece->slot)) {
			piece->kind = SC_KIND_AWAY;
			continue;
		}
		job->dirty |= sc_is_dirty(state);
		piece->kind = SC_KIND_HIT;
		if (state != SC_SLOT_FILLING)
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
