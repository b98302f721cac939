// SPDX-License-Identifier: GPL-2.0-only
/*
 * The I/O of a round of dm-setcache's cleaner.
 *
 * Its runs are read from the SSD, all at once, and written to the origin in the
 * order of the disk, each as one I/O, at most clean_ios at a time. When an I/O
 * has failed, its blocks are tried one by one: only blocks that cannot be read
 * or written stay dirty, and their neighbours are cleaned.
 */
#include <linux/blkdev.h>
#include <linux/sort.h>

#include "setcache.h"
#include "setcache-bio.h"
#include "setcache-cleaner.h"
#include "setcache-loss.h"

static int sc_by_block(const void *a, const void *b)
{
	u64 x = (*(const struct sc_run * const *)a)->block;
	u64 y = (*(const struct sc_run * const *)b)->block;

	return x < y ? -1 : x > y;
}

static void sc_copy_end(struct bio *bio)
{
	struct sc_run *run = bio->bi_private;
	struct sc_cleaner *cleaner = run->cleaner;
	unsigned long flags;

	if (bio->bi_status) {
		WRITE_ONCE(run->error, true);
		/* An SSD with a bad block that is retried is not lost. */
		if (bio_op(bio) == REQ_OP_READ &&
		    bio->bi_status == BLK_STS_OFFLINE)
			sc_lose(cleaner->sc);
	}
	bio_put(bio);
	/* Wake under the lock: after the last bio the cleaner may be freed. */
	spin_lock_irqsave(&cleaner->flight.lock, flags);
	cleaner->flight.count--;
	wake_up(&cleaner->flight.wait);
	spin_unlock_irqrestore(&cleaner->flight.lock, flags);
}

/* Wait until fewer than @below bios are in flight. */
static void sc_copy_drain(struct sc_cleaner *cleaner, u32 below)
{
	spin_lock_irq(&cleaner->flight.lock);
	wait_event_lock_irq(cleaner->flight.wait, cleaner->flight.count < below,
			    cleaner->flight.lock);
	spin_unlock_irq(&cleaner->flight.lock);
}

/* Read or write blocks @i to @end (exclusive) of a run, adjacent there. */
static void sc_copy_io(struct sc_run *run, u32 i, u32 end, bool write)
{
	struct sc_cleaner *cleaner = run->cleaner;
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	u64 start = (u64)run->page << PAGE_SHIFT;
	struct sc_span span = {
		.bdev = write ? sc->origin->bdev : sc->ssd->bdev,
		.opf = write ? REQ_OP_WRITE : REQ_OP_READ,
		.sector = write ? (run->block + i) << index->block_shift :
				  sc_slot_sector(index, run->op.set,
						 run->slots[i]),
		.pages = cleaner->pages,
		.at = start + ((u64)i * index->geo.block << SECTOR_SHIFT),
		.stop = start + ((u64)end * index->geo.block << SECTOR_SHIFT),
	};
	u32 limit = sc_option(sc, SC_OPT_CLEAN_IOS);
	struct bio *bio;

	while ((bio = sc_next_bio(&sc->bs, &span))) {
		bio->bi_private = run;
		bio->bi_end_io = sc_copy_end;
		if (write)
			sc_copy_drain(cleaner, limit);
		spin_lock_irq(&cleaner->flight.lock);
		cleaner->flight.count++;
		spin_unlock_irq(&cleaner->flight.lock);
		sc_count_io(sc, !write, !write, bio_sectors(bio));
		sc_count(sc, write ? SC_STAT_CLEAN_WRITE : SC_STAT_CLEAN_READ,
			 bio_sectors(bio));
		submit_bio_noacct(bio);
	}
}

/* Return whether block @i of a run could not be read or written. */
bool sc_run_bad(const struct sc_run *run, u32 i)
{
	return test_bit(run->first + i, run->cleaner->bad);
}

/* Return whether retries block by block stop. The blocks stay dirty. */
bool sc_gives_up(const struct setcache *sc)
{
	return sc_is_lost(sc) || READ_ONCE(sc->stopping);
}

/*
 * Retry the blocks of a run one by one, for a bio of it has failed.
 * A disk may take long for each block; a suspend waits for one at
 * most.
 */
static void sc_copy_each(struct sc_run *run, bool write)
{
	u32 i;

	for (i = 0; i < run->count; i++) {
		if (sc_run_bad(run, i))
			continue;
		run->error = sc_gives_up(run->cleaner->sc);
		if (!run->error) {
			sc_copy_io(run, i, i + 1, write);
			sc_copy_drain(run->cleaner, 1);
		}
		if (run->error)
			__set_bit(run->first + i, run->cleaner->bad);
	}
	run->error = false;
}

static void sc_copy_read(struct sc_run *run)
{
	u32 i, end;

	for (i = 0; i < run->count; i = end) {
		for (end = i + 1; end < run->count; end++)
			if (run->slots[end] != run->slots[end - 1] + 1)
				break;
		sc_copy_io(run, i, end, false);
	}
}

static void sc_copy_write(struct sc_run *run)
{
	u32 i, end;

	for (i = 0; i < run->count; i = end + 1) {
		for (end = i; end < run->count; end++)
			if (sc_run_bad(run, end))
				break;
		if (end > i)
			sc_copy_io(run, i, end, true);
	}
}

/* Read all runs of the round, and write the blocks that were read, in order. */
void sc_copy_round(struct sc_cleaner *cleaner)
{
	struct blk_plug plug;
	u32 i;

	bitmap_zero(cleaner->bad, cleaner->max_slots);
	blk_start_plug(&plug);
	for (i = 0; i < cleaner->nr_runs; i++)
		sc_copy_read(&cleaner->runs[i]);
	blk_finish_plug(&plug);
	sc_copy_drain(cleaner, 1);
	for (i = 0; i < cleaner->nr_runs; i++) {
		cleaner->order[i] = &cleaner->runs[i];
		if (cleaner->runs[i].error)
			sc_copy_each(&cleaner->runs[i], false);
	}

	sort(cleaner->order, cleaner->nr_runs, sizeof(*cleaner->order),
	     sc_by_block, NULL);
	for (i = 0; i < cleaner->nr_runs; i++)
		sc_copy_write(cleaner->order[i]);
	sc_copy_drain(cleaner, 1);
	for (i = 0; i < cleaner->nr_runs; i++)
		if (cleaner->order[i]->error)
			sc_copy_each(cleaner->order[i], true);
}
