// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commits of dm-setcache: flushes, FUA writes, discards and the cleaner
 * wait for one. All waiters that arrive during a commit share the next
 * one.
 */
#include <linux/blkdev.h>

#include "setcache.h"
#include "setcache-bio.h"
#include "setcache-commit.h"
#include "setcache-loss.h"

/* Return the record's state for a slot's state. @stop: record clean slots. */
static enum sc_record_state sc_slot_to_record_state(enum sc_slot_state state,
						    bool stop)
{
	switch (state) {
	case SC_SLOT_DIRTY:
	case SC_SLOT_STUCK:
	case SC_SLOT_CLEANING:
		return SC_RECORD_DIRTY;
	case SC_SLOT_CLEAN:
		return stop ? SC_RECORD_CLEAN : SC_RECORD_FREE;
	case SC_SLOT_RETIRED:
		return SC_RECORD_RETIRED;
	default:
		return SC_RECORD_FREE;
	}
}

static void sc_commit_get_slots(void *context, u64 first, u32 count, bool stop,
				u8 *states, u64 *blocks)
{
	struct setcache *sc = context;
	struct sc_index *index = &sc->index;

	while (count) {
		u32 set = first >> index->assoc_shift;
		u16 slot = first & (index->geo.assoc - 1);
		u32 i, n = min(count, index->geo.assoc - slot);
		struct sc_bucket *bucket = sc_get_bucket(index, set);

		spin_lock_irq(&bucket->lock);
		for (i = 0; i < n; i++, slot++) {
			states[i] = sc_slot_to_record_state(sc_get_slot_state(index, set, slot),
							    stop);
			blocks[i] = states[i] == SC_RECORD_CLEAN ||
				    states[i] == SC_RECORD_DIRTY ?
				    sc_id_to_block(index, set,
						   sc_get_slot_id(index, set, slot)) : 0;
		}
		spin_unlock_irq(&bucket->lock);
		first += n;
		states += n;
		blocks += n;
		count -= n;
	}
}

/*
 * Insert the slot of a record that was read, while the cache starts.
 */
static int sc_commit_load_slot(void *context, u64 number,
			       enum sc_record_state state, u64 block, bool keep)
{
	struct setcache *sc = context;
	struct sc_index *index = &sc->index;
	u32 set = number >> index->assoc_shift;
	u16 slot = number & (index->geo.assoc - 1);
	u32 its_set, id;

	if (number >= index->nr_slots)
		return -EUCLEAN;
	/*
	 * A moved block of records uses this slot, whatever the slot's own
	 * record says.
	 */
	if (sc_get_slot_state(index, set, slot) == SC_SLOT_RETIRED)
		return 0;
	if (state == SC_RECORD_RETIRED) {
		sc_withdraw_slot(index, set, slot, SC_SLOT_RETIRED);
		return 0;
	}
	if (block >= index->nr_blocks)
		return -EUCLEAN;
	sc_locate_block(index, block, &its_set, &id);
	if (its_set != set)
		return -EUCLEAN;
	if (state == SC_RECORD_CLEAN && !keep)
		return 0;
	if (sc_find_slot(index, set, id) != SC_NIL)
		return -EUCLEAN;
	sc_insert_block(index, set, slot, id,
			state == SC_RECORD_DIRTY ? SC_SLOT_DIRTY :
						   SC_SLOT_CLEAN);
	sc_touch_slot(index, set, slot, sc->policy, true);
	return 0;
}

/*
 * Find @count adjacent slots of a set that are free or evictable, and retire
 * them.
 */
static bool sc_commit_find_spare_in(struct setcache *sc, u32 set, u32 count,
				    u16 *first)
{
	struct sc_index *index = &sc->index;
	u32 slot, i;

	for (slot = 0; slot < index->geo.assoc; slot += count) {
		for (i = 0; i < count; i++)
			if (sc_get_slot_state(index, set, slot + i) !=
				    SC_SLOT_FREE &&
			    !sc_is_evictable(index, set, slot + i))
				break;
		if (i < count)
			continue;
		for (i = 0; i < count; i++) {
			if (sc_get_slot_state(index, set, slot + i) ==
			    SC_SLOT_CLEAN)
				sc_remove_block(index, set, slot + i);
			sc_withdraw_slot(index, set, slot + i, SC_SLOT_RETIRED);
			sc_mark_retired_record(sc, set, slot + i);
		}
		*first = slot;
		return true;
	}
	return false;
}

/* Find slots for a block of records, in the first set that has enough. */
static bool sc_commit_find_spare(void *context, u32 count, u64 *number)
{
	struct setcache *sc = context;
	struct sc_index *index = &sc->index;
	bool found = false;
	u16 slot;
	u32 set;

	for (set = 0; set < index->geo.nr_sets && !found; set++) {
		struct sc_bucket *bucket = sc_get_bucket(index, set);

		spin_lock_irq(&bucket->lock);
		found = sc_commit_find_spare_in(sc, set, count, &slot);
		spin_unlock_irq(&bucket->lock);
		if (found)
			*number = sc_slot_number(index, set, slot);
		cond_resched();
	}
	return found;
}

const struct sc_md_ops sc_commit_md_ops = {
	.get_slots = sc_commit_get_slots,
	.load_slot = sc_commit_load_slot,
	.find_spare = sc_commit_find_spare,
};

/* Mark a slot's record as to be written. */
void sc_mark_record(struct setcache *sc, u32 set, u16 slot)
{
	sc_mark_retired_record(sc, set, slot);
	sc_set_unsafe_records(sc);
}

/*
 * Mark the record of a retired slot as to be written. No flush depends on it. A
 * table that starts or stops may retire slots, too; it writes all records
 * itself, and no commit must come between.
 */
void sc_mark_retired_record(struct setcache *sc, u32 set, u16 slot)
{
	u32 ms = sc_get_option(sc, SC_OPT_COMMIT_MS);

	sc_add_stat(sc, SC_STAT_RECORD_UPDATES, 1);
	if (!sc_md_mark_changed(sc->md, sc_slot_number(&sc->index, set, slot)))
		sc_add_stat(sc, SC_STAT_RECORD_BATCHED, 1);
	else if (!READ_ONCE(sc->stopping))
		queue_delayed_work(sc->wq.commit, &sc->commits.timer,
				   msecs_to_jiffies(ms));
}

/*---------------------------------------------------------------------------*/

/* Make the data and records of dirty blocks stable. */
static blk_status_t sc_commit_ssd(struct setcache *sc)
{
	struct sc_unsafe unsafe;
	u64 written;
	int r;

	if (sc_is_lost(sc))
		return sc_is_unsafe(sc) ? BLK_STS_IOERR : BLK_STS_OK;

	if (xchg(&sc->errors.probe, false) && sc_md_probe(sc->md)) {
		sc_lose_ssd(sc);
		return sc_is_unsafe(sc) ? BLK_STS_IOERR : BLK_STS_OK;
	}
	unsafe = sc_take_unsafe(sc);
	r = sc_md_commit(sc->md, unsafe.data, &written);
	sc_add_stat(sc, SC_STAT_COMMITS, 1);
	sc_add_stat(sc, SC_STAT_RECORD_BLOCKS, written);
	sc_add_stat(sc, SC_STAT_SSD_WRITE, written * SC_RECORD_BLOCK_SECTORS);
	if (!r)
		return BLK_STS_OK;
	sc_put_unsafe(sc, unsafe);
	sc_add_stat(sc, SC_STAT_SSD_ERRORS, 1);
	DMERR("%s: cannot write records: %d", sc_device_name(sc), r);
	/*
	 * All slots are dirty: no block of records can move before some are clean.
	 */
	if (r == -ENOSPC)
		sc_clean_start_all_over(sc);
	else
		sc_lose_ssd(sc);
	/*
	 * The remaining records are of retired slots, and may be lost: a bad
	 * sector is detected again.
	 */
	return unsafe.data || unsafe.records ? BLK_STS_IOERR : BLK_STS_OK;
}

static void sc_run_commit(struct setcache *sc)
{
	struct sc_waiter *waiter, *next;
	blk_status_t error, origin_error = BLK_STS_OK;
	bool origin = false, owed = false;
	struct sc_flight flight;
	LIST_HEAD(waiters);

	spin_lock_irq(&sc->commits.lock);
	list_splice_init(&sc->commits.waiters, &waiters);
	spin_unlock_irq(&sc->commits.lock);
	list_for_each_entry(waiter, &waiters, link)
		origin |= waiter->flush_origin;

	/* Both devices work in parallel. */
	if (origin) {
		sc_flight_init(&flight);
		sc_flight_flush(&flight, sc->origin->bdev, &sc->bs);
	}
	error = sc_commit_ssd(sc);
	if (origin) {
		origin_error = sc_flight_wait(&flight);
		if (origin_error)
			sc_add_stat(sc, SC_STAT_ORIGIN_ERRORS, 1);
	}

	/* One flush fails for data that were lost with the SSD. */
	if (origin)
		owed = sc_must_report_loss(sc, error != BLK_STS_OK);

	list_for_each_entry_safe(waiter, next, &waiters, link) {
		waiter->error = error;
		if (waiter->flush_origin && owed)
			waiter->error = BLK_STS_IOERR;
		if (waiter->flush_origin && origin_error)
			waiter->error = origin_error;
		waiter->fn(waiter);
	}
}

void sc_commit_work(struct work_struct *work)
{
	sc_run_commit(container_of(work, struct setcache, commits.work));
}

void sc_commit_timer(struct work_struct *work)
{
	sc_run_commit(container_of(to_delayed_work(work), struct setcache,
				   commits.timer));
}

/*
 * Have @fn called after a commit that begins from now on, and if @origin after
 * a flush of the origin, too.
 */
void sc_wait_commit(struct setcache *sc, struct sc_waiter *waiter,
		    void (*fn)(struct sc_waiter *waiter), bool origin)
{
	unsigned long flags;

	waiter->fn = fn;
	waiter->flush_origin = origin;
	spin_lock_irqsave(&sc->commits.lock, flags);
	list_add_tail(&waiter->link, &sc->commits.waiters);
	spin_unlock_irqrestore(&sc->commits.lock, flags);
	queue_work(sc->wq.commit, &sc->commits.work);
}

struct sc_sync {
	struct sc_waiter waiter;
	struct completion done;
};

static void sc_commit_sync_done(struct sc_waiter *waiter)
{
	complete(&container_of(waiter, struct sc_sync, waiter)->done);
}

/* Commit, and wait for it. Return 0 or an error. */
int sc_commit_now(struct setcache *sc)
{
	struct sc_sync sync = {};

	init_completion(&sync.done);
	sc_wait_commit(sc, &sync.waiter, sc_commit_sync_done, false);
	wait_for_completion_io(&sync.done);
	return blk_status_to_errno(sync.waiter.error);
}
