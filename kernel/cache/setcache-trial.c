// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trials: dm-setcache tests slots whose sectors on the SSD may be bad.
 *
 * A slot that is not dirty, or no longer, becomes suspect when the SSD fails a
 * request that used it. A suspect slot has no block, and gets none. The request
 * may have used many slots, so each is tested by itself: zeros are written
 * there, and read back. A slot that passes is free: another slot was bad, or
 * the fault is over. A slot that fails is retired: its record says so, no block
 * gets there in this life or the next, and only isoblk cache check --repair
 * revives it. So a bad sector costs its slot, once.
 *
 * I/O errors of data do not mean that the SSD is lost, however many there are.
 * But after SC_PROBE_ERRORS within a minute or two the superblock is written as
 * a probe. That write fails on an SSD that is gone without reporting so, and on
 * no other SSD.
 */
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/mm.h>

#include "setcache.h"
#include "setcache-commit.h"
#include "setcache-loss.h"
#include "setcache-trial.h"

/* Errors of data after which the superblock is written as a probe. */
#define SC_PROBE_ERRORS	100

/*
 * Interval for halving the count of errors, in jiffies.
 */
#define SC_HALVE_JIFFIES	(60 * HZ)

/* Count an error of data. Return whether SC_PROBE_ERRORS are reached. */
static bool sc_has_probe_errors(struct setcache *sc)
{
	unsigned long flags, halvings;
	bool many;

	spin_lock_irqsave(&sc->errors.lock, flags);
	halvings = (jiffies - sc->errors.halved_at) / SC_HALVE_JIFFIES;
	sc->errors.halved_at += halvings * SC_HALVE_JIFFIES;
	sc->errors.nr_errors =
		halvings < 32 ? sc->errors.nr_errors >> halvings : 0;
	many = ++sc->errors.nr_errors >= SC_PROBE_ERRORS;
	if (many)
		sc->errors.nr_errors = 0;
	spin_unlock_irqrestore(&sc->errors.lock, flags);
	return many;
}

/* Account for an I/O error of data on the SSD. */
void sc_account_ssd_error(struct setcache *sc, blk_status_t error)
{
	sc_add_stat(sc, SC_STAT_SSD_ERRORS, 1);
	DMWARN_LIMIT("%s: I/O error on the SSD", sc_device_name(sc));
	if (error == BLK_STS_OFFLINE) {
		sc_lose_ssd(sc);
	} else if (sc_has_probe_errors(sc)) {
		WRITE_ONCE(sc->errors.probe, true);
		queue_work(sc->wq.commit, &sc->commits.work);
	}
}

/* Make a slot suspect that has failed and is not dirty. It loses its block. */
void sc_suspect_slot(struct setcache *sc, u32 set, u16 slot)
{
	sc_remove_block(&sc->index, set, slot);
	if (sc_is_lost(sc))
		return;
	sc_withdraw_slot(&sc->index, set, slot, SC_SLOT_SUSPECT);
	set_bit(set, sc->trials.sets);
	sc_trial_kick(sc);
}

/* Queue the trial of suspect slots. */
void sc_trial_kick(struct setcache *sc)
{
	queue_work(sc->wq.common, &sc->trials.work);
}

/* Read or write a whole slot, with the same page for each part of it. */
static int sc_trial_io(struct setcache *sc, blk_opf_t opf, sector_t sector,
		       struct page *page)
{
	u32 piece, bytes = sc->index.geo.block_sectors << SECTOR_SHIFT;
	struct bio *bio;
	int r;

	bio = bio_alloc_bioset(sc->ssd->bdev, DIV_ROUND_UP(bytes, PAGE_SIZE),
			       opf, GFP_NOIO, &sc->bs);
	bio->bi_iter.bi_sector = sector;
	for (; bytes; bytes -= piece) {
		piece = min_t(u32, bytes, PAGE_SIZE);
		__bio_add_page(bio, page, piece, 0);
	}
	r = submit_bio_wait(bio);
	if (bio->bi_status == BLK_STS_OFFLINE)
		sc_lose_ssd(sc);
	bio_put(bio);
	return r;
}

/* Test a slot. It becomes free or retired. */
static void sc_trial_test_slot(struct setcache *sc, u32 set, u16 slot,
			       struct page *page)
{
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_get_bucket(index, set);
	sector_t sector = sc_slot_sector(index, set, slot);
	int r;

	r = sc_trial_io(sc, REQ_OP_WRITE, sector, ZERO_PAGE(0));
	if (!r)
		r = sc_trial_io(sc, REQ_OP_READ, sector, page);
	spin_lock_irq(&bucket->lock);
	sc_restore_slot(index, set, slot);
	if (r && !sc_is_lost(sc)) {
		sc_withdraw_slot(index, set, slot, SC_SLOT_RETIRED);
		sc_mark_retired_record(sc, set, slot);
		DMWARN_LIMIT("%s: slot %llu is retired", sc_device_name(sc),
			     sc_slot_number(index, set, slot));
	}
	spin_unlock_irq(&bucket->lock);
}

/*
 * Test all suspect slots; only this ends that state. There may be
 * thousands, and a failing SSD is slow: a suspend does not wait for all of
 * them.
 */
void sc_trial_work(struct work_struct *work)
{
	struct setcache *sc = container_of(work, struct setcache, trials.work);
	struct page *page = alloc_page(GFP_NOIO | __GFP_NOFAIL);
	struct sc_index *index = &sc->index;
	unsigned long set;
	u16 slot;

	for_each_set_bit(set, sc->trials.sets, index->geo.nr_sets) {
		clear_bit(set, sc->trials.sets);
		smp_mb__after_atomic(); /* clear before the states are read */
		for (slot = 0; slot < index->geo.assoc; slot++) {
			if (sc_get_slot_state(index, set, slot) !=
			    SC_SLOT_SUSPECT)
				continue;
			if (READ_ONCE(sc->stopping)) {
				set_bit(set, sc->trials.sets);
				goto out;
			}
			sc_trial_test_slot(sc, set, slot, page);
		}
		cond_resched();
	}
out:
	__free_page(page);
}
