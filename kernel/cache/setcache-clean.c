// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cleaner of dm-setcache: one thread, in rounds.
 *
 * A round takes dirty blocks (-round), reads them from the SSD and writes them
 * to the origin (-copy), flushes the origin once, and changes their records in
 * one commit. Only then are the blocks clean.
 *
 * Requests go on during a round. A read of a block that is being cleaned finds it
 * as before. A write makes such a block dirty again when it begins, and the block
 * stays dirty when the round ends: the data that the round wrote to the origin are
 * older. No request writes a block of a round to the origin, and no other round
 * takes the block, until this round has ended. So the origin never goes back.
 *
 * A block that cannot be read or written becomes stuck: it stays dirty, and
 * rounds skip it. Its neighbours are cleaned, and further rounds go on. After
 * SC_RETRY_JIFFIES all stuck blocks are tried again.
 *
 * A block has no owner: the cgroup that dirtied it is not recorded, and a run
 * may have blocks of several cgroups. So cleaning is charged to the root cgroup.
 *
 * Memory for a round is allocated with the cache: the cleaner never waits for
 * memory that only cleaning could free.
 */
#include <linux/blkdev.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "setcache.h"
#include "setcache-clean.h"
#include "setcache-cleaner.h"
#include "setcache-commit.h"
#include "setcache-slots.h"

/* Interval of checks for idle_ms, age_ms and clean_gate, in jiffies. */
#define SC_TICK_JIFFIES	(HZ / 2)

/* Pause after a round in which no block could be cleaned, in jiffies. */
#define SC_REST_JIFFIES	HZ

/*
 * Pause before stuck blocks are tried again, in jiffies: a disk may take
 * seconds to give up a bad sector, and all other requests wait for that.
 */
#define SC_RETRY_JIFFIES	(10 * HZ)

/* Why blocks are cleaned, most urgent first. */
enum sc_reason {
	SC_REASON_SET_HIGH,	/* some sets exceed set_high */
	SC_REASON_DIRTY_HIGH,	/* all sets together exceed dirty_high */
	SC_REASON_ORDER,	/* the mode, or a message, demands it */
	SC_REASON_IDLE,		/* no request for idle_ms */
	SC_REASON_AGE,		/* some blocks may be older than age_ms */
	SC_REASON_NONE,		/* there is no reason */
};

struct sc_cleaner *sc_cleaner_create(struct setcache *sc)
{
	struct sc_cleaner *cleaner = kvzalloc(sizeof(*cleaner), GFP_KERNEL);
	u32 i, a_page;

	if (!cleaner)
		return NULL;
	cleaner->sc = sc;
	cleaner->stuck.retry_at = jiffies;
	cleaner->rest_until = jiffies;
	init_completion(&cleaner->hot.taken);
	spin_lock_init(&cleaner->flight.lock);
	init_waitqueue_head(&cleaner->flight.wait);
	a_page = (PAGE_SIZE >> SECTOR_SHIFT) / sc->index.geo.block_sectors;
	cleaner->nr_slots_max = SC_ROUND_PAGES_MAX * max(1U, a_page);
	cleaner->slots =
		kvmalloc_array(cleaner->nr_slots_max, sizeof(u16), GFP_KERNEL);
	cleaner->dirty = kvmalloc_array(sc->index.geo.assoc,
					sizeof(*cleaner->dirty), GFP_KERNEL);
	cleaner->bad_slots = bitmap_alloc(cleaner->nr_slots_max, GFP_KERNEL);
	cleaner->stuck.sets =
		vzalloc(BITS_TO_LONGS(sc->index.geo.nr_sets) * sizeof(long));
	if (!cleaner->slots || !cleaner->dirty || !cleaner->bad_slots ||
	    !cleaner->stuck.sets)
		goto bad;
	for (i = 0; i < SC_ROUND_PAGES_MAX; i++) {
		cleaner->pages[i] = alloc_page(GFP_KERNEL);
		if (!cleaner->pages[i])
			goto bad;
	}
	return cleaner;
bad:
	sc_cleaner_destroy(cleaner);
	return NULL;
}

void sc_cleaner_destroy(struct sc_cleaner *cleaner)
{
	u32 i;

	if (!cleaner)
		return;
	for (i = 0; i < SC_ROUND_PAGES_MAX; i++)
		if (cleaner->pages[i])
			__free_page(cleaner->pages[i]);
	vfree(cleaner->stuck.sets);
	bitmap_free(cleaner->bad_slots);
	kvfree(cleaner->dirty);
	kvfree(cleaner->slots);
	kvfree(cleaner);
}

/* Begin to clean everything, or stop that. Stuck blocks are tried at once. */
void sc_clean_set_all(struct setcache *sc, bool start)
{
	WRITE_ONCE(sc->cleaning.all, start);
	if (start)
		WRITE_ONCE(sc->cleaning.cleaner->stuck.retry_at, jiffies);
}

/*---------------------------------------------------------------------------*/

/* Return why to clean blocks; sets that exceed their mark count if @sets. */
static enum sc_reason sc_clean_find_reason(struct setcache *sc, bool sets)
{
	u64 dirty = atomic_long_read(&sc->index.nr_dirty);
	u32 idle = sc_get_option(sc, SC_OPT_IDLE_MS);
	u32 gate = sc_get_option(sc, SC_OPT_CLEAN_GATE);

	if (!dirty) {
		WRITE_ONCE(sc->cleaning.all, false);
		WRITE_ONCE(sc->cleaning.over_all, false);
		return SC_REASON_NONE;
	}
	if (dirty == atomic_long_read(&sc->index.nr_stuck))
		return SC_REASON_NONE;
	if (sets &&
	    find_first_bit(sc->cleaning.over_sets, sc->index.geo.nr_sets) <
		    sc->index.geo.nr_sets)
		return SC_REASON_SET_HIGH;
	if (READ_ONCE(sc->cleaning.all) ||
	    !sc_mode_dirties(READ_ONCE(sc->mode)))
		return SC_REASON_ORDER;
	if (gate && atomic_read(&sc->origin_ios) >= gate)
		return SC_REASON_NONE;
	if (READ_ONCE(sc->cleaning.over_all)) {
		if (dirty > sc_option_slots(sc, SC_OPT_DIRTY_LOW))
			return SC_REASON_DIRTY_HIGH;
		WRITE_ONCE(sc->cleaning.over_all, false);
	}
	if (idle && time_after_eq(jiffies, READ_ONCE(sc->last_io_jiffies) +
						   msecs_to_jiffies(idle)))
		return SC_REASON_IDLE;
	return sc_get_option(sc, SC_OPT_AGE_MS) ? SC_REASON_AGE :
						  SC_REASON_NONE;
}

/*
 * Process a run that has been written to the origin, durably if @good. Blocks
 * that were written again during the round stay dirty. Return how many blocks
 * could not be cleaned.
 */
static u32 sc_clean_end_write(struct sc_run *run, bool good)
{
	struct sc_cleaner *cleaner = run->cleaner;
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	u32 i, failed = 0, set = run->op.set;
	struct sc_bucket *bucket = sc_get_bucket(index, set);

	spin_lock_irq(&bucket->lock);
	for (i = 0; i < run->nr_blocks; i++) {
		bool bad = sc_run_block_is_bad(run, i);

		failed += bad || !good;
		if (sc_get_slot_state(index, set, run->slots[i]) !=
		    SC_SLOT_CLEANING) {
			sc_round_note_hot(cleaner, set, run->op.first_id + i);
			continue;
		}
		if (!good || (bad && sc_copy_is_stopping(sc))) {
			sc_set_slot_state(index, set, run->slots[i],
					  SC_SLOT_DIRTY);
		} else if (bad) {
			sc_set_slot_state(index, set, run->slots[i],
					  SC_SLOT_STUCK);
			__set_bit(set, cleaner->stuck.sets);
		} else {
			sc_set_slot_state(index, set, run->slots[i],
					  SC_SLOT_CLEANED);
			sc_mark_record(sc, set, run->slots[i]);
		}
	}
	spin_unlock_irq(&bucket->lock);
	return failed;
}

/*
 * Process a run after the commit of its records. If @good all are on the SSD;
 * else some may be. Return how many blocks are clean now.
 */
static u32 sc_clean_end_commit(struct sc_run *run, bool good)
{
	struct setcache *sc = run->cleaner->sc;
	struct sc_index *index = &sc->index;
	u32 i, count = 0, set = run->op.set;
	struct sc_bucket *bucket = sc_get_bucket(index, set);

	spin_lock_irq(&bucket->lock);
	for (i = 0; i < run->nr_blocks; i++) {
		u16 slot = run->slots[i];

		if (sc_get_slot_state(index, set, slot) != SC_SLOT_CLEANED)
			continue;
		if (good ||
		    sc_md_is_stable(sc->md, sc_slot_number(index, set, slot))) {
			sc_set_slot_state(index, set, slot, SC_SLOT_CLEAN);
			count++;
		} else {
			sc_set_slot_state(index, set, slot, SC_SLOT_DIRTY);
			sc_mark_record(sc, set, slot);
		}
	}
	spin_unlock_irq(&bucket->lock);
	return count;
}

/* Clean the blocks that the round has taken. */
static void sc_clean_run_round(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	struct sc_run *run, *end = cleaner->runs + cleaner->nr_runs;
	u32 cleaned = 0, failed = 0;
	int r;

	sc_copy_round(cleaner);
	r = blkdev_issue_flush(sc->origin->bdev);
	for (run = cleaner->runs; run < end; run++)
		failed += sc_clean_end_write(run, !r);
	r = sc_commit_now(sc);
	for (run = cleaner->runs; run < end; run++) {
		cleaned += sc_clean_end_commit(run, !r);
		sc_release_op(sc, &run->op);
	}
	sc_add_stat(sc, SC_STAT_CLEANED, cleaned);
	sc_add_stat(sc, SC_STAT_CLEAN_ERRORS, failed);
	sc_add_stat(sc, SC_STAT_ROUNDS, 1);
	if (failed) {
		DMWARN_LIMIT("%s: %u dirty blocks cannot be cleaned",
			     sc_device_name(sc), failed);
		WRITE_ONCE(cleaner->stuck.retry_at, jiffies + SC_RETRY_JIFFIES);
	}
	if (!cleaned && (r || failed == cleaner->nr_slots))
		cleaner->rest_until = jiffies + SC_REST_JIFFIES;
}

/* Make stuck blocks dirty, so that rounds try them again. */
static void sc_clean_retry_stuck(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	unsigned long set;
	u16 slot;

	for_each_set_bit(set, cleaner->stuck.sets, index->geo.nr_sets) {
		struct sc_bucket *bucket = sc_get_bucket(index, set);

		spin_lock_irq(&bucket->lock);
		for (slot = 0; slot < index->geo.assoc; slot++)
			if (sc_get_slot_state(index, set, slot) ==
			    SC_SLOT_STUCK)
				sc_set_slot_state(index, set, slot,
						  SC_SLOT_DIRTY);
		sc_check_dirty(sc, set);
		spin_unlock_irq(&bucket->lock);
		__clear_bit(set, cleaner->stuck.sets);
		cond_resched();
	}
}

/*---------------------------------------------------------------------------*/

/*
 * Return the time until the next check, in jiffies; 0 if none is needed before
 * the next sc_clean_kick().
 */
static unsigned long sc_clean_delay(struct setcache *sc)
{
	long stuck = atomic_long_read(&sc->index.nr_stuck);

	if (atomic_long_read(&sc->index.nr_dirty) == stuck)
		return stuck ? SC_RETRY_JIFFIES : 0;
	if (sc_get_option(sc, SC_OPT_IDLE_MS) ||
	    sc_get_option(sc, SC_OPT_AGE_MS) ||
	    (sc_get_option(sc, SC_OPT_CLEAN_GATE) &&
	     READ_ONCE(sc->cleaning.over_all)))
		return SC_TICK_JIFFIES;
	return stuck ? SC_RETRY_JIFFIES : 0;
}

/* Take blocks for a round, if there is a reason. Return the reason. */
static enum sc_reason sc_clean_fill_round(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	enum sc_reason beside, reason = sc_clean_find_reason(sc, true);
	bool hot = cleaner->hot.valid;

	cleaner->nr_pages = 0;
	cleaner->nr_runs = 0;
	cleaner->nr_slots = 0;
	cleaner->hot.valid = false;
	if (reason == SC_REASON_NONE)
		return reason;
	if (hot && !sc_mode_dirties(READ_ONCE(sc->mode)))
		sc_round_take_hot(cleaner);
	if (cleaner->nr_runs)
		return reason;

	beside = reason;
	if (reason == SC_REASON_SET_HIGH) {
		sc_round_fill_over(cleaner);
		beside = sc_clean_find_reason(sc, false);
	}
	/* With room left, sets with ongoing writes do not delay other sets. */
	if (beside != SC_REASON_NONE && !sc_round_is_full(cleaner))
		sc_round_fill_next(cleaner, beside == SC_REASON_AGE);
	return reason;
}

/* Make a round, or schedule the next check. */
void sc_clean_work(struct work_struct *work)
{
	struct setcache *sc = container_of(to_delayed_work(work),
					   struct setcache, cleaning.work);
	struct sc_cleaner *cleaner = sc->cleaning.cleaner;
	enum sc_reason reason;
	unsigned long next;

	if (sc_is_lost(sc) || READ_ONCE(sc->stopping))
		return;
	if (time_before(jiffies, cleaner->rest_until)) {
		queue_delayed_work(sc->wq.clean, &sc->cleaning.work,
				   SC_REST_JIFFIES);
		return;
	}
	if (atomic_long_read(&sc->index.nr_stuck) &&
	    time_after_eq(jiffies, READ_ONCE(cleaner->stuck.retry_at)))
		sc_clean_retry_stuck(cleaner);

	reason = sc_clean_fill_round(cleaner);
	if (cleaner->nr_runs) {
		sc_clean_run_round(cleaner);
		/* There may be more dirty blocks. */
		next = 0;
	} else {
		next = sc_clean_delay(sc);
		/*
		 * There are blocks to be cleaned, but requests use all of
		 * these.
		 */
		if (reason != SC_REASON_NONE && reason != SC_REASON_AGE)
			next = 1;
		if (!next)
			return;
	}
	if (!READ_ONCE(sc->stopping))
		queue_delayed_work(sc->wq.clean, &sc->cleaning.work, next);
}
