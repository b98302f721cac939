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

static int sc_cmp_block(const void *a, const void *b)
{
	u64 x = (*(const struct sc_run * const *)a)->block;
	u64 y = (*(const struct sc_run * const *)b)->block;

	return x < y ? -1 : x > y;
}

static void sc_copy_end_io(struct bio *bio)
{
	struct sc_run *run = bio->bi_private;
	struct sc_cleaner *cleaner = run->cleaner;
	unsigned long flags;

	if (bio->bi_status) {
		WRITE_ONCE(run->has_error, true);
		/* An SSD with a bad block that is retried is not lost. */
		if (bio_op(bio) == REQ_OP_READ &&
		    bio->bi_status == BLK_STS_OFFLINE)
			sc_lose_ssd(cleaner->sc);
	}
	bio_put(bio);
	/* Wake under the lock: after the last bio the cleaner may be freed. */
	spin_lock_irqsave(&cleaner->flight.lock, flags);
	cleaner->flight.nr_bios--;
	wake_up(&cleaner->flight.wait);
	spin_unlock_irqrestore(&cleaner->flight.lock, flags);
}

/* Wait until fewer than @below bios are in flight. */
static void sc_copy_drain(struct sc_cleaner *cleaner, u32 below)
{
	spin_lock_irq(&cleaner->flight.lock);
	wait_event_lock_irq(cleaner->flight.wait,
			    cleaner->flight.nr_bios < below,
			    cleaner->flight.lock);
	spin_unlock_irq(&cleaner->flight.lock);
}

/* Read or write blocks @i to @end (exclusive) of a run, adjacent there. */
static void sc_copy_submit(struct sc_run *run, u32 i, u32 end, bool write)
{
	struct sc_cleaner *cleaner = run->cleaner;
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	u64 start = (u64)run->first_page << PAGE_SHIFT;
	struct sc_span span = {
		.bdev = write ? sc->origin->bdev : sc->ssd->bdev,
		.opf = write ? REQ_OP_WRITE : REQ_OP_READ,
		.sector = write ? (run->block + i) << index->block_shift :
				  sc_slot_sector(index, run->op.set,
						 run->slots[i]),
		.pages = cleaner->pages,
		.at = start +
		      ((u64)i * index->geo.block_sectors << SECTOR_SHIFT),
		.stop = start +
			((u64)end * index->geo.block_sectors << SECTOR_SHIFT),
	};
	u32 limit = sc_get_option(sc, SC_OPT_CLEAN_IOS);
	struct bio *bio;

	while ((bio = sc_span_next_bio(&sc->bs, &span))) {
		bio->bi_private = run;
		bio->bi_end_io = sc_copy_end_io;
		if (write)
			sc_copy_drain(cleaner, limit);
		spin_lock_irq(&cleaner->flight.lock);
		cleaner->flight.nr_bios++;
		spin_unlock_irq(&cleaner->flight.lock);
		sc_add_io_stat(sc, !write, !write, bio_sectors(bio));
		sc_add_stat(sc,
			    write ? SC_STAT_CLEAN_WRITE : SC_STAT_CLEAN_READ,
			    bio_sectors(bio));
		submit_bio_noacct(bio);
	}
}

/* Return whether block @i of a run could not be read or written. */
bool sc_run_block_is_bad(const struct sc_run *run, u32 i)
{
	return test_bit(run->first_slot + i, run->cleaner->bad_slots);
}

/* Return whether retries block by block stop. The blocks stay dirty. */
bool sc_copy_is_stopping(const struct setcache *sc)
{
	return sc_is_lost(sc) || READ_ONCE(sc->stopping);
}

/*
 * Retry the blocks of a run one by one, for a bio of it has failed.
 * A disk may take long for each block; a suspend waits for one at
 * most.
 */
static void sc_copy_retry_run(struct sc_run *run, bool write)
{
	u32 i;

	for (i = 0; i < run->nr_blocks; i++) {
		if (sc_run_block_is_bad(run, i))
			continue;
		run->has_error = sc_copy_is_stopping(run->cleaner->sc);
		if (!run->has_error) {
			sc_copy_submit(run, i, i + 1, write);
			sc_copy_drain(run->cleaner, 1);
		}
		if (run->has_error)
			__set_bit(run->first_slot + i, run->cleaner->bad_slots);
	}
	run->has_error = false;
}

static void sc_copy_read_run(struct sc_run *run)
{
	u32 i, end;

	for (i = 0; i < run->nr_blocks; i = end) {
		for (end = i + 1; end < run->nr_blocks; end++)
			if (run->slots[end] != run->slots[end - 1] + 1)
				break;
		sc_copy_submit(run, i, end, false);
	}
}

static void sc_copy_write_run(struct sc_run *run)
{
	u32 i, end;

	for (i = 0; i < run->nr_blocks; i = end + 1) {
		for (end = i; end < run->nr_blocks; end++)
			if (sc_run_block_is_bad(run, end))
				break;
		if (end > i)
			sc_copy_submit(run, i, end, true);
	}
}

/* Read all runs of the round, and write the blocks that were read, in order. */
void sc_copy_round(struct sc_cleaner *cleaner)
{
	struct blk_plug plug;
	u32 i;

	bitmap_zero(cleaner->bad_slots, cleaner->nr_slots_max);
	blk_start_plug(&plug);
	for (i = 0; i < cleaner->nr_runs; i++)
		sc_copy_read_run(&cleaner->runs[i]);
	blk_finish_plug(&plug);
	sc_copy_drain(cleaner, 1);
	for (i = 0; i < cleaner->nr_runs; i++) {
		cleaner->sorted_runs[i] = &cleaner->runs[i];
		if (cleaner->runs[i].has_error)
			sc_copy_retry_run(&cleaner->runs[i], false);
	}

	sort(cleaner->sorted_runs, cleaner->nr_runs,
	     sizeof(*cleaner->sorted_runs), sc_cmp_block, NULL);
	for (i = 0; i < cleaner->nr_runs; i++)
		sc_copy_write_run(cleaner->sorted_runs[i]);
	sc_copy_drain(cleaner, 1);
	for (i = 0; i < cleaner->nr_runs; i++)
		if (cleaner->sorted_runs[i]->has_error)
			sc_copy_retry_run(cleaner->sorted_runs[i], true);
}
