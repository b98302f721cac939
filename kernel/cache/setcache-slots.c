// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots of dm-setcache after a request: their states, and the next requests.
 *
 * A slot becomes dirty when its data have been written and not before, for only
 * then may its record say so. A dirty slot stays dirty. A block that has failed
 * is dropped unless it is dirty. When a request gives up its blocks, each
 * waiting op is passed to -io (@wake), which knows what it waits for.
 */
#include <linux/sched.h>

#include "setcache.h"
#include "setcache-commit.h"
#include "setcache-slots.h"
#include "setcache-trial.h"

/* Return whether a set exceeds its high mark of dirty slots. */
bool sc_set_is_over(const struct setcache *sc, u32 set)
{
	return sc->index.sets[set].nr_dirty * 100 >
	       sc_get_option(sc, SC_OPT_SET_HIGH) * sc->index.geo.assoc;
}

/* Wake the cleaner if a set, or all sets, exceed their high mark. */
void sc_check_dirty(struct setcache *sc, u32 set)
{
	if (sc_set_is_over(sc, set) &&
	    !test_and_set_bit(set, sc->cleaning.over_sets))
		sc_clean_kick(sc);
	if (!READ_ONCE(sc->cleaning.over_all) &&
	    sc_option_slots(sc, SC_OPT_DIRTY_HIGH) <
		    atomic_long_read(&sc->index.nr_dirty))
		sc_clean_start_all_over(sc);
}

/* Make a slot dirty after its data have been written. */
static void sc_make_dirty(struct setcache *sc, u32 set, u16 slot)
{
	sc_set_slot_state(&sc->index, set, slot, SC_SLOT_DIRTY);
	sc_add_stat(sc, SC_STAT_DIRTIED, 1);
	sc_mark_record(sc, set, slot);
	sc_check_dirty(sc, set);
}

/*
 * Change the states of an op's slots after their blocks have been
 * written.
 */
void sc_end_write(struct setcache *sc, const struct sc_op *op, bool through)
{
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_get_bucket(index, op->set);
	enum sc_slot_state state;
	unsigned long flags;
	u16 slot;
	u32 id;

	spin_lock_irqsave(&bucket->lock, flags);
	for (id = op->first_id; id <= op->last_id; id++) {
		slot = sc_find_slot(index, op->set, id);
		if (slot == SC_NIL)
			continue;
		state = sc_get_slot_state(index, op->set, slot);
		if (sc_is_dirty(state))
			continue;
		if (!through)
			sc_make_dirty(sc, op->set, slot);
		else if (sc_is_lost(sc))
			sc_remove_block(index, op->set, slot);
		else
			sc_set_slot_state(index, op->set, slot, SC_SLOT_CLEAN);
	}
	spin_unlock_irqrestore(&bucket->lock, flags);
}

/*
 * Drop those blocks of the caller's op that are not dirty. If the SSD has
 * failed one of them, their slots become suspect. But a block that other ops
 * read stays: its slot must not get another block before they have read it. A
 * reader that has failed does not look there again.
 */
void sc_drop_blocks(struct setcache *sc, const struct sc_op *op, bool failed)
{
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_get_bucket(index, op->set);
	unsigned long flags;
	u16 slot;
	u32 id;

	spin_lock_irqsave(&bucket->lock, flags);
	for (id = op->first_id; id <= op->last_id; id++) {
		slot = sc_find_slot(index, op->set, id);
		if (slot == SC_NIL ||
		    sc_is_dirty(sc_get_slot_state(index, op->set, slot)))
			continue;
		if (op->class == SC_CLASS_SHARED &&
		    sc_block_is_busy(index, op->set, id, op))
			continue;
		if (failed)
			sc_suspect_slot(sc, op->set, slot);
		else
			sc_remove_block(index, op->set, slot);
		sc_add_stat(sc, SC_STAT_INVALIDATED, 1);
	}
	spin_unlock_irqrestore(&bucket->lock, flags);
}

/*
 * Free the slots of discarded blocks if the commit of their records has
 * succeeded; else they are dirty again. If the SSD has failed one of them, they
 * become suspect.
 */
void sc_end_discard(struct setcache *sc, const struct sc_op *op, bool recorded,
		    bool failed)
{
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_get_bucket(index, op->set);
	u16 slot;
	u32 id;

	spin_lock_irq(&bucket->lock);
	for (id = op->first_id; id <= op->last_id; id++) {
		slot = sc_find_slot(index, op->set, id);
		if (slot == SC_NIL || sc_get_slot_state(index, op->set, slot) !=
					      SC_SLOT_DISCARDED)
			continue;
		if (recorded && failed) {
			sc_suspect_slot(sc, op->set, slot);
		} else if (recorded) {
			sc_remove_block(index, op->set, slot);
		} else {
			sc_set_slot_state(index, op->set, slot, SC_SLOT_DIRTY);
			sc_mark_record(sc, op->set, slot);
		}
	}
	spin_unlock_irq(&bucket->lock);
}

/*---------------------------------------------------------------------------*/

/* Give back an op's blocks, and wake the ops that wait for them. */
void sc_release_op(struct setcache *sc, struct sc_op *op)
{
	struct sc_bucket *bucket = sc_get_bucket(&sc->index, op->set);
	struct sc_op *other, *next;
	unsigned long flags;

	spin_lock_irqsave(&bucket->lock, flags);
	list_del(&op->link);
	list_for_each_entry_safe(other, next, &bucket->waiting, link)
		sc->wake(sc, bucket, other);
	/* sc_change_mode() reads the active list under this lock. */
	if (waitqueue_active(&sc->mode_change.wait))
		wake_up(&sc->mode_change.wait);
	spin_unlock_irqrestore(&bucket->lock, flags);
}

/* Return whether an active op of a bucket uses another mode. */
static bool sc_has_other_mode(struct sc_bucket *bucket, u8 mode)
{
	const struct sc_op *op;
	bool mixed = false;

	spin_lock_irq(&bucket->lock);
	list_for_each_entry(op, &bucket->active, link)
		mixed |= op->mode != mode && op->mode != SC_MODE_NONE;
	spin_unlock_irq(&bucket->lock);
	return mixed;
}

/*
 * Change the mode, and wait for all requests that use the old mode. When this
 * has returned 0, their effects, such as dirty blocks, are visible.
 */
int sc_change_mode(struct setcache *sc, u8 mode)
{
	struct sc_index *index = &sc->index;
	u32 i;
	int r = 0;

	mutex_lock(&sc->mode_change.lock);
	WRITE_ONCE(sc->mode, mode);
	for (i = 0; i <= index->bucket_mask && !r; i++)
		r = wait_event_killable(sc->mode_change.wait,
					!sc_has_other_mode(&index->buckets[i],
							   mode));
	mutex_unlock(&sc->mode_change.lock);
	return r;
}
