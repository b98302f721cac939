// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans of dm-setcache: how a bio is served, given its slots.
 *
 * A bio is planned once, under the lock of the bucket, when it has its blocks
 * to itself, or shares them only with ops that change nothing. Each block is
 * looked up, a slot is taken for a block to be cached, a clean block that the
 * write would make stale is dropped, and counters are updated. The slots then
 * keep these blocks until the bio has ended, except for what the cleaner
 * changes (-clean). When the bio ends the states change (-slots).
 */
#include <linux/minmax.h>
#include <linux/sizes.h>

#include "setcache.h"
#include "setcache-commit.h"
#include "setcache-plan.h"

/*
 * Limit for pages that wait to be written to the SSD for reads that have ended;
 * reads in flight come on top. An SSD that takes 200 MB/s needs 80 ms for so
 * many.
 */
#define SC_FILL_PAGES_MAX	(SZ_16M >> PAGE_SHIFT)

/* Return the class of a bio, and set whether it fills. */
enum sc_class sc_classify_bio(struct sc_io *io)
{
	struct sc_index *index = &io->sc->index;
	u64 block = io->iter.bi_sector >> index->block_shift;
	u32 id;

	if ((io->opf & REQ_OP_MASK) == REQ_OP_DISCARD)
		return SC_CLASS_REMOVAL;
	if (!sc_is_read(io))
		return io->retried ? SC_CLASS_REMOVAL : SC_CLASS_EXCLUSIVE;
	if (!io->fill)
		return SC_CLASS_SHARED;
	for (id = io->op.first_id;
	     id <= io->op.last_id && block < index->nr_blocks; id++, block++) {
		if (sc_find_slot(index, io->op.set, id) != SC_NIL)
			continue;
		io->fill = atomic_read(&io->sc->fills.nr_pages) <
			   SC_FILL_PAGES_MAX;
		return io->fill ? SC_CLASS_EXCLUSIVE : SC_CLASS_SHARED;
	}
	return SC_CLASS_SHARED;
}

static enum sc_plan sc_plan_read(struct sc_io *io)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	u32 set = io->op.set, count = io->op.last_id - io->op.first_id + 1;
	u64 block = io->iter.bi_sector >> index->block_shift;
	u32 i, hits = 0, fresh = 0;
	u16 slot, last = SC_NIL, taken = SC_NIL;
	bool straight = true, replaced, lost = sc_is_lost(sc);
	bool fill = io->fill && !lost;
	sector_t from, to;

	for (i = 0; i < count; i++) {
		sc_block_part(index, &io->iter, i, &from, &to);
		slot = sc_find_slot(index, set, io->op.first_id + i);
		if (slot != SC_NIL && (lost || io->retried)) {
			bool dirty = sc_is_dirty(sc_get_slot_state(index, set, slot));

			if (dirty && lost)
				return SC_PLAN_FAIL;
			/* Another reader may still use a clean block. */
			if (!dirty)
				slot = SC_NIL;
		}
		if (slot != SC_NIL) {
			sc_touch_slot(index, set, slot, READ_ONCE(sc->policy),
				      false);
			straight &= !i || slot == last + 1;
			if (!i)
				io->slot = slot;
			last = slot;
			hits++;
			sc_add_stat(sc, SC_STAT_READ_HIT, to - from);
			continue;
		}
		last = SC_NIL;
		sc_add_stat(sc, SC_STAT_READ_MISS, to - from);
		if (fill && block + i < index->nr_blocks) {
			taken = sc_take_slot(index, set, io->op.first_id + i,
					     taken, READ_ONCE(sc->policy),
					     &replaced);
			if (taken != SC_NIL) {
				sc_add_stat(sc, SC_STAT_REPLACED, replaced);
				fresh++;
				continue;
			}
			sc_add_stat(sc, SC_STAT_NO_ROOM, 1);
		}
		taken = SC_NIL;
		sc_add_stat(sc, SC_STAT_READ_BYPASS, to - from);
	}
	if (hits == count && straight)
		return SC_PLAN_SSD;
	return hits + fresh ? SC_PLAN_JOB : SC_PLAN_ORIGIN;
}

/*
 * Prepare the slot of a block for a write. Return whether the write goes to
 * that slot; else the block has been dropped.
 */
static bool sc_plan_overwrite(struct sc_io *io, u16 slot, bool cache)
{
	struct setcache *sc = io->sc;
	enum sc_slot_state state =
		sc_get_slot_state(&sc->index, io->op.set, slot);

	switch (state) {
	case SC_SLOT_CLEANED:
		/* The record says free, or soon will: write it again. */
		sc_set_slot_state(&sc->index, io->op.set, slot, SC_SLOT_DIRTY);
		sc_mark_record(sc, io->op.set, slot);
		break;
	case SC_SLOT_CLEANING:
	case SC_SLOT_STUCK:
		sc_set_slot_state(&sc->index, io->op.set, slot, SC_SLOT_DIRTY);
		break;
	case SC_SLOT_DIRTY:
		break;
	default:
		if (!cache) {
			sc_remove_block(&sc->index, io->op.set, slot);
			sc_add_stat(sc, SC_STAT_INVALIDATED, 1);
			return false;
		}
		io->changes_slots = true;
		break;
	}
	if (sc_is_dirty(state))
		sc_add_stat(sc, SC_STAT_DIRTY_HIT, 1);
	sc_touch_slot(&sc->index, io->op.set, slot, READ_ONCE(sc->policy),
		      false);
	return true;
}

/*
 * Return whether block @i of a bio goes to the origin although it is dirty in a
 * slot: the SSD has failed the bio, and the write covers the whole block.
 */
bool sc_is_diverted(const struct sc_io *io, u32 i, u16 slot)
{
	const struct sc_index *index = &io->sc->index;
	sector_t from, to;

	if (!io->retried || sc_is_read(io) ||
	    !sc_is_dirty(sc_get_slot_state(index, io->op.set, slot)))
		return false;
	sc_block_part(index, &io->iter, i, &from, &to);
	return to - from == index->geo.block_sectors;
}

/* Return whether a bio covers a dirty block and the SSD is lost. */
static bool sc_plan_needs_lost(const struct sc_io *io)
{
	const struct sc_index *index = &io->sc->index;
	u16 slot;
	u32 id;

	if (!sc_is_lost(io->sc))
		return false;
	for (id = io->op.first_id; id <= io->op.last_id; id++) {
		slot = sc_find_slot(index, io->op.set, id);
		if (slot != SC_NIL &&
		    sc_is_dirty(sc_get_slot_state(index, io->op.set, slot)))
			return true;
	}
	return false;
}

static enum sc_plan sc_plan_write(struct sc_io *io)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	u32 set = io->op.set, count = io->op.last_id - io->op.first_id + 1;
	u64 block = io->iter.bi_sector >> index->block_shift;
	bool back = sc_mode_dirties(io->op.mode);
	bool cache, straight = true, rmw = false, stable = true, replaced;
	u16 slot, last = SC_NIL, taken = SC_NIL;
	u32 i, cached = 0;

	if (sc_plan_needs_lost(io))
		return SC_PLAN_FAIL;
	io->write_through = io->op.mode == SC_MODE_WRITETHROUGH;
	io->changes_slots = false;
	cache = (back || io->write_through) && !io->bypass && !io->retried &&
		!sc_is_lost(sc);

	for (i = 0; i < count; i++) {
		sector_t from, to, whole = index->geo.block_sectors;

		sc_block_part(index, &io->iter, i, &from, &to);
		slot = sc_find_slot(index, set, io->op.first_id + i);
		if (slot != SC_NIL && sc_is_diverted(io, i, slot)) {
			io->diverted = true;
			slot = SC_NIL;
		} else if (slot != SC_NIL &&
			   !sc_plan_overwrite(io, slot, cache)) {
			slot = SC_NIL;
		}
		if (slot != SC_NIL) {
			sc_add_stat(sc, SC_STAT_WRITE_HIT, to - from);
			taken = SC_NIL;
		} else if (cache && block + i < index->nr_blocks &&
			   (back || to - from == whole)) {
			taken = sc_take_slot(index, set, io->op.first_id + i,
					     taken, READ_ONCE(sc->policy),
					     &replaced);
			slot = taken;
			if (slot == SC_NIL) {
				sc_add_stat(sc, SC_STAT_NO_ROOM, 1);
			} else {
				sc_add_stat(sc, SC_STAT_REPLACED, replaced);
				sc_add_stat(sc, SC_STAT_WRITE_NEW, to - from);
				io->changes_slots = true;
				rmw |= to - from != whole;
			}
		}
		if (slot == SC_NIL) {
			sc_add_stat(sc, SC_STAT_WRITE_BYPASS, to - from);
			taken = SC_NIL;
			straight = false;
			last = SC_NIL;
			continue;
		}
		if (io->write_through)
			sc_add_stat(sc, SC_STAT_THROUGH, to - from);
		stable &= sc_md_is_stable(sc->md,
					  sc_slot_number(index, set, slot));
		straight &= !i || slot == last + 1;
		if (!i)
			io->slot = slot;
		last = slot;
		cached++;
	}
	if (io->diverted)
		return SC_PLAN_JOB;
	if (!cached)
		return SC_PLAN_ORIGIN;
	if (io->write_through || !straight || rmw)
		return SC_PLAN_JOB;
	if ((io->opf & REQ_FUA) && (io->changes_slots || !stable))
		return SC_PLAN_JOB;
	return SC_PLAN_SSD;
}

static enum sc_plan sc_plan_discard(struct sc_io *io)
{
	struct setcache *sc = io->sc;
	struct sc_index *index = &sc->index;
	u32 set = io->op.set, count = io->op.last_id - io->op.first_id + 1;
	sector_t from, to;
	bool dirty = false;
	u16 slot;
	u32 i;

	if (sc_plan_needs_lost(io))
		return SC_PLAN_FAIL;
	for (i = 0; i < count; i++) {
		slot = sc_find_slot(index, set, io->op.first_id + i);
		if (slot == SC_NIL)
			continue;
		sc_block_part(index, &io->iter, i, &from, &to);
		if (sc_get_slot_state(index, set, slot) == SC_SLOT_CLEAN) {
			sc_remove_block(index, set, slot);
			sc_add_stat(sc, SC_STAT_INVALIDATED, 1);
		} else if (to - from == index->geo.block_sectors) {
			sc_set_slot_state(index, set, slot, SC_SLOT_DISCARDED);
			sc_mark_record(sc, set, slot);
			sc_add_stat(sc, SC_STAT_DISCARDED, 1);
			dirty = true;
		}
	}
	return dirty ? SC_PLAN_COMMIT : SC_PLAN_ORIGIN;
}

/* Take slots for a bio whose blocks are announced. Return its plan. */
enum sc_plan sc_plan_blocks(struct sc_io *io)
{
	/*
	 * The mode is read under the lock, so that sc_change_mode() sees the
	 * ops that use the old mode.
	 */
	io->op.mode = READ_ONCE(io->sc->mode);
	if (sc_is_read(io))
		return sc_plan_read(io);
	if ((io->opf & REQ_OP_MASK) == REQ_OP_DISCARD)
		return sc_plan_discard(io);
	return sc_plan_write(io);
}
