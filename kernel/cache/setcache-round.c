// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which dirty blocks a round of dm-setcache's cleaner takes.
 *
 * It takes the oldest blocks of sets that exceed their mark, or of the next
 * sets in turn; and with each block all of its dirty neighbours on the disk, as
 * a run. It takes no block that is being written: it might read the data from
 * before the write.
 *
 * So a block that is written without a pause is never taken, or is dirty again
 * at the end of each round: it is hot. Modes that leave no block dirty have to
 * clean it some time. Then a round waits for its turn at that block like a
 * request, and writes to the block wait for the round.
 */
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "setcache.h"
#include "setcache-cleaner.h"
#include "setcache-round.h"
#include "setcache-slots.h"

/* Slots that are scanned at a time with interrupts off. */
#define SC_SLOTS_A_LOCK	256

/* Sets that are scanned without finding a block before cond_resched(). */
#define SC_SETS_A_TURN	4096

static int sc_by_age(const void *a, const void *b)
{
	return (int)((const struct sc_dirty *)b)->age -
	       (int)((const struct sc_dirty *)a)->age;
}

static int sc_by_id(const void *a, const void *b)
{
	u32 x = ((const struct sc_dirty *)a)->id;
	u32 y = ((const struct sc_dirty *)b)->id;

	return x < y ? -1 : x > y;
}

/* Return how many pages a run of @count blocks takes. */
static u32 sc_run_pages(const struct setcache *sc, u32 count)
{
	return DIV_ROUND_UP_ULL((u64)count * sc->index.geo.block,
				PAGE_SIZE >> SECTOR_SHIFT);
}

/* Return how many blocks a round still has room for. */
static u32 sc_room(const struct sc_cleaner *cleaner)
{
	u32 pages = SC_ROUND_PAGES - cleaner->nr_pages;

	if (cleaner->nr_runs == SC_ROUND_PAGES)
		return 0;
	return min(pages * (PAGE_SIZE >> SECTOR_SHIFT) /
		   cleaner->sc->index.geo.block,
		   cleaner->max_slots - cleaner->nr_slots);
}

/* Return the next run of the round, without blocks. */
static struct sc_run *sc_next_run(struct sc_cleaner *cleaner, u32 set,
				  enum sc_class class)
{
	struct sc_run *run = &cleaner->runs[cleaner->nr_runs];

	memset(run, 0, sizeof(*run));
	run->op.set = set;
	run->op.class = class;
	run->op.mode = SC_MODE_NONE;
	run->first = cleaner->nr_slots;
	run->slots = cleaner->slots + run->first;
	return run;
}

/*
 * Return the slot of a dirty block that is neither being cleaned nor stuck;
 * else SC_NIL. The bucket's lock is held.
 */
static u16 sc_dirty_slot(const struct sc_index *index, u32 set, u32 id)
{
	u16 slot = sc_find(index, set, id);

	if (slot != SC_NIL && sc_state(index, set, slot) != SC_SLOT_DIRTY)
		slot = SC_NIL;
	return slot;
}

/*
 * Begin to clean the blocks that a run has announced, up to the first that is
 * not dirty. The bucket's lock is held.
 */
static void sc_begin_run(struct sc_cleaner *cleaner, struct sc_run *run)
{
	struct sc_index *index = &cleaner->sc->index;
	u32 id, set = run->op.set;

	for (id = run->op.first; id <= run->op.last; id++) {
		u16 slot = sc_dirty_slot(index, set, id);

		if (slot == SC_NIL)
			break;
		run->slots[run->count++] = slot;
		sc_set_state(index, set, slot, SC_SLOT_CLEANING);
	}
	if (run->count)
		run->op.last = run->op.first + run->count - 1;
}

/* Add a run that has begun to the round. */
static void sc_count_run(struct sc_cleaner *cleaner, struct sc_run *run)
{
	run->block = sc_block_of(&cleaner->sc->index, run->op.set,
				 run->op.first);
	run->page = cleaner->nr_pages;
	run->cleaner = cleaner;
	cleaner->nr_pages += sc_run_pages(cleaner->sc, run->count);
	cleaner->nr_slots += run->count;
	cleaner->nr_runs++;
}

/* Record a block that was written just before or during its cleaning. */
void sc_note_hot(struct sc_cleaner *cleaner, u32 set, u32 id)
{
	cleaner->hot.any = true;
	cleaner->hot.set = set;
	cleaner->hot.id = id;
}

/*
 * Take adjoining blocks for the round, as far as they are still dirty, no
 * request writes or discards them, and there is room. Return how many blocks
 * are dealt with, taken or not.
 */
static u32 sc_add_run(struct sc_cleaner *cleaner, u32 set,
		      const struct sc_dirty *dirty, u32 count)
{
	struct sc_index *index = &cleaner->sc->index;
	struct sc_bucket *bucket = sc_bucket(index, set);
	u32 room = sc_room(cleaner);
	struct sc_run *run;

	if (!room)
		return count;
	run = sc_next_run(cleaner, set, SC_CLASS_CLEANER);
	run->op.first = dirty->id;
	run->op.last = dirty->id + min(count, room) - 1;

	spin_lock_irq(&bucket->lock);
	if (sc_dirty_slot(index, set, dirty->id) == SC_NIL) {
		spin_unlock_irq(&bucket->lock);
		return 1;
	}
	if (!sc_cut(bucket, &run->op)) {
		spin_unlock_irq(&bucket->lock);
		sc_note_hot(cleaner, set, dirty->id);
		return 1;
	}
	sc_begin_run(cleaner, run);
	list_add_tail(&run->op.link, &bucket->active);
	spin_unlock_irq(&bucket->lock);
	sc_count_run(cleaner, run);
	return run->count;
}

/*
 * Take blocks of a set: the @want oldest, and their neighbours. Return whether
 * the set has dirty blocks, even if there is no room for them, or requests use
 * them.
 */
static bool sc_take_dirty(struct sc_cleaner *cleaner, u32 set, u32 want)
{
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_bucket(index, set);
	struct sc_dirty *dirty = cleaner->dirty;
	u32 i, end, total = 0;
	u16 slot;

	spin_lock_irq(&bucket->lock);
	for (slot = 0; index->sets[set].dirty && slot < index->geo.assoc;
	     slot++) {
		if (slot && !(slot % SC_SLOTS_A_LOCK)) {
			spin_unlock_irq(&bucket->lock);
			spin_lock_irq(&bucket->lock);
		}
		if (sc_state(index, set, slot) != SC_SLOT_DIRTY)
			continue;
		dirty[total].id = sc_id(index, set, slot);
		dirty[total].age = sc_age(index, set, slot);
		dirty[total].slot = slot;
		dirty[total++].chosen = false;
	}
	spin_unlock_irq(&bucket->lock);

	sort(dirty, total, sizeof(*dirty), sc_by_age, NULL);
	for (i = 0; i < min(want, total); i++)
		dirty[i].chosen = true;
	sort(dirty, total, sizeof(*dirty), sc_by_id, NULL);

	for (i = 0; i < total; i = end) {
		bool chosen = dirty[i].chosen;

		/* Ids of the next stripe continue, but are elsewhere on disk. */
		for (end = i + 1; end < total &&
		     dirty[end].id == dirty[end - 1].id + 1 &&
		     (dirty[end].id & (index->geo.assoc - 1)); end++)
			chosen |= dirty[end].chosen;
		while (chosen && i < end)
			i += sc_add_run(cleaner, set, &dirty[i], end - i);
	}
	return total;
}

/*---------------------------------------------------------------------------*/

/* Let the cleaner go on if no other op holds the blocks that it waits for. */
void sc_clean_wake(struct setcache *sc, struct sc_bucket *bucket,
		   struct sc_op *op)
{
	if (sc_busy(bucket, op, &op->link))
		return;
	list_move_tail(&op->link, &bucket->active);
	complete(&sc->cleaning.cleaner->hot.held);
}

/*
 * Take the hot block, and its dirty neighbours, for a round of their own. While
 * the cleaner waits for blocks it must hold no others: the requests that it
 * waits for may wait for those.
 */
void sc_take_hot(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	u32 set = cleaner->hot.set, mask = index->geo.assoc - 1;
	struct sc_bucket *bucket = sc_bucket(index, set);
	u32 room = min(sc_room(cleaner), SC_SLOTS_A_LOCK);
	struct sc_run *run = sc_next_run(cleaner, set, SC_CLASS_HOLDER);
	struct sc_op *op = &run->op;

	op->first = cleaner->hot.id;
	op->last = cleaner->hot.id;
	spin_lock_irq(&bucket->lock);
	while (op->last - op->first + 1 < room && op->first & mask &&
	       sc_dirty_slot(index, set, op->first - 1) != SC_NIL)
		op->first--;
	while (op->last - op->first + 1 < room && (op->last + 1) & mask &&
	       sc_dirty_slot(index, set, op->last + 1) != SC_NIL)
		op->last++;
	list_add_tail(&op->link, &bucket->waiting);
	sc_clean_wake(sc, bucket, op);
	spin_unlock_irq(&bucket->lock);
	/*
	 * Active requests there will end, and later ones queue behind the cleaner.
	 */
	wait_for_completion(&cleaner->hot.held);

	spin_lock_irq(&bucket->lock);
	sc_begin_run(cleaner, run);
	spin_unlock_irq(&bucket->lock);
	if (run->count)
		sc_count_run(cleaner, run);
	else
		sc_unlock(sc, op);
}

/*---------------------------------------------------------------------------*/

bool sc_round_full(const struct sc_cleaner *cleaner)
{
	return cleaner->nr_pages == SC_ROUND_PAGES ||
	       cleaner->nr_runs == SC_ROUND_PAGES;
}

/* Return how many dirty blocks a set has beyond its low mark. */
static u32 sc_set_excess(struct setcache *sc, u32 set)
{
	u32 low = sc->index.geo.assoc * sc_option(sc, SC_OPT_SET_LOW) / 100;
	u32 dirty = READ_ONCE(sc->index.sets[set].dirty);

	return dirty > low ? dirty - low : 0;
}

/*
 * Take blocks of a set that exceeds its mark. Its bit stays set until the set
 * is found at its low mark, for taken blocks may become dirty again during the
 * round. Stuck blocks do not keep the bit.
 */
static void sc_fill_set(struct sc_cleaner *cleaner, u32 set)
{
	struct setcache *sc = cleaner->sc;
	u32 excess;

	clear_bit(set, sc->cleaning.over);
	smp_mb__after_atomic(); /* with sc_check_dirty() */
	excess = sc_set_excess(sc, set);
	if (excess &&
	    sc_take_dirty(cleaner, set,
			  min(excess, sc_option(sc, SC_OPT_CLEAN_SET))))
		set_bit(set, sc->cleaning.over);
}

/* Fill a round from the sets that exceed their mark, each once. */
void sc_fill_over(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	unsigned long sets = sc->index.geo.sets;
	unsigned long set = cleaner->hand.over, first = set;

	for_each_set_bit_from(set, sc->cleaning.over, sets) {
		cleaner->hand.over = set + 1;
		sc_fill_set(cleaner, set);
		if (sc_round_full(cleaner))
			return;
	}
	for_each_set_bit(set, sc->cleaning.over, first) {
		cleaner->hand.over = set + 1;
		sc_fill_set(cleaner, set);
		if (sc_round_full(cleaner))
			return;
	}
}

/*
 * Fill a round from the next sets in turn; only from sets with old blocks if
 * @aged_only.
 */
void sc_fill_next(struct sc_cleaner *cleaner, bool aged_only)
{
	struct setcache *sc = cleaner->sc;
	u64 sets = sc->index.geo.sets, i;
	u32 limit = sc_option(sc, SC_OPT_CLEAN_SET);
	u32 age = DIV_ROUND_UP(sc_option(sc, SC_OPT_AGE_MS), MSEC_PER_SEC);

	for (i = 0; i < sets; i++) {
		u32 set = cleaner->hand.next;
		const struct sc_set *s = &sc->index.sets[set];
		u32 aged = (u32)(jiffies / HZ) - READ_ONCE(s->since);

		/* sc_fill_over() handles sets that exceed their mark. */
		if (READ_ONCE(s->dirty) && !test_bit(set, sc->cleaning.over) &&
		    (!aged_only || aged >= age))
			sc_take_dirty(cleaner, set, limit);
		if (sc_round_full(cleaner))
			return;
		cleaner->hand.next = set + 1 < sets ? set + 1 : 0;
		if (i % SC_SETS_A_TURN == SC_SETS_A_TURN - 1)
			cond_resched();
	}
}
