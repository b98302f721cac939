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
#define SC_SLOTS_PER_LOCK	256

/* Sets that are scanned without finding a block before cond_resched(). */
#define SC_SETS_PER_RESCHED	4096

static int sc_cmp_age(const void *a, const void *b)
{
	return (int)((const struct sc_dirty *)b)->age -
	       (int)((const struct sc_dirty *)a)->age;
}

static int sc_cmp_id(const void *a, const void *b)
{
	u32 x = ((const struct sc_dirty *)a)->id;
	u32 y = ((const struct sc_dirty *)b)->id;

	return x < y ? -1 : x > y;
}

/* Return how many pages a run of @count blocks takes. */
static u32 sc_round_run_pages(const struct setcache *sc, u32 count)
{
	return DIV_ROUND_UP_ULL((u64)count * sc->index.geo.block_sectors,
				PAGE_SIZE >> SECTOR_SHIFT);
}

/* Return how many blocks a round still has room for. */
static u32 sc_round_free_blocks(const struct sc_cleaner *cleaner)
{
	u32 pages = SC_ROUND_PAGES_MAX - cleaner->nr_pages;

	if (cleaner->nr_runs == SC_ROUND_PAGES_MAX)
		return 0;
	return min(pages * (PAGE_SIZE >> SECTOR_SHIFT) /
			   cleaner->sc->index.geo.block_sectors,
		   cleaner->nr_slots_max - cleaner->nr_slots);
}

/* Return the next run of the round, without blocks. */
static struct sc_run *sc_round_next_run(struct sc_cleaner *cleaner, u32 set,
					enum sc_class class)
{
	struct sc_run *run = &cleaner->runs[cleaner->nr_runs];

	memset(run, 0, sizeof(*run));
	run->op.set = set;
	run->op.class = class;
	run->op.mode = SC_MODE_NONE;
	run->first_slot = cleaner->nr_slots;
	run->slots = cleaner->slots + run->first_slot;
	return run;
}

/*
 * Return the slot of a dirty block that is neither being cleaned nor stuck;
 * else SC_NIL. The bucket's lock is held.
 */
static u16 sc_round_find_dirty(const struct sc_index *index, u32 set, u32 id)
{
	u16 slot = sc_find_slot(index, set, id);

	if (slot != SC_NIL &&
	    sc_get_slot_state(index, set, slot) != SC_SLOT_DIRTY)
		slot = SC_NIL;
	return slot;
}

/*
 * Begin to clean the blocks that a run has announced, up to the first that is
 * not dirty. The bucket's lock is held.
 */
static void sc_round_begin_run(struct sc_cleaner *cleaner, struct sc_run *run)
{
	struct sc_index *index = &cleaner->sc->index;
	u32 id, set = run->op.set;

	for (id = run->op.first_id; id <= run->op.last_id; id++) {
		u16 slot = sc_round_find_dirty(index, set, id);

		if (slot == SC_NIL)
			break;
		run->slots[run->nr_blocks++] = slot;
		sc_set_slot_state(index, set, slot, SC_SLOT_CLEANING);
	}
	if (run->nr_blocks)
		run->op.last_id = run->op.first_id + run->nr_blocks - 1;
}

/* Add a run that has begun to the round. */
static void sc_round_count_run(struct sc_cleaner *cleaner, struct sc_run *run)
{
	run->block = sc_id_to_block(&cleaner->sc->index, run->op.set,
				    run->op.first_id);
	run->first_page = cleaner->nr_pages;
	run->cleaner = cleaner;
	cleaner->nr_pages += sc_round_run_pages(cleaner->sc, run->nr_blocks);
	cleaner->nr_slots += run->nr_blocks;
	cleaner->nr_runs++;
}

/* Record a block that was written just before or during its cleaning. */
void sc_round_note_hot(struct sc_cleaner *cleaner, u32 set, u32 id)
{
	cleaner->hot.valid = true;
	cleaner->hot.set = set;
	cleaner->hot.id = id;
}

/*
 * Take adjoining blocks for the round, as far as they are still dirty, no
 * request writes or discards them, and there is room. Return how many blocks
 * are dealt with, taken or not.
 */
static u32 sc_round_add_run(struct sc_cleaner *cleaner, u32 set,
			    const struct sc_dirty *dirty, u32 count)
{
	struct sc_index *index = &cleaner->sc->index;
	struct sc_bucket *bucket = sc_get_bucket(index, set);
	u32 room = sc_round_free_blocks(cleaner);
	struct sc_run *run;

	if (!room)
		return count;
	run = sc_round_next_run(cleaner, set, SC_CLASS_CLEANER);
	run->op.first_id = dirty->id;
	run->op.last_id = dirty->id + min(count, room) - 1;

	spin_lock_irq(&bucket->lock);
	if (sc_round_find_dirty(index, set, dirty->id) == SC_NIL) {
		spin_unlock_irq(&bucket->lock);
		return 1;
	}
	if (!sc_op_shorten(bucket, &run->op)) {
		spin_unlock_irq(&bucket->lock);
		sc_round_note_hot(cleaner, set, dirty->id);
		return 1;
	}
	sc_round_begin_run(cleaner, run);
	list_add_tail(&run->op.link, &bucket->active);
	spin_unlock_irq(&bucket->lock);
	sc_round_count_run(cleaner, run);
	return run->nr_blocks;
}

/*
 * Take blocks of a set: the @want oldest, and their neighbours. Return whether
 * the set has dirty blocks, even if there is no room for them, or requests use
 * them.
 */
static bool sc_round_take_set(struct sc_cleaner *cleaner, u32 set, u32 want)
{
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket = sc_get_bucket(index, set);
	struct sc_dirty *dirty = cleaner->dirty;
	u32 i, end, total = 0;
	u16 slot;

	spin_lock_irq(&bucket->lock);
	for (slot = 0; index->sets[set].nr_dirty && slot < index->geo.assoc;
	     slot++) {
		if (slot && !(slot % SC_SLOTS_PER_LOCK)) {
			spin_unlock_irq(&bucket->lock);
			spin_lock_irq(&bucket->lock);
		}
		if (sc_get_slot_state(index, set, slot) != SC_SLOT_DIRTY)
			continue;
		dirty[total].id = sc_get_slot_id(index, set, slot);
		dirty[total].age = sc_slot_age(index, set, slot);
		dirty[total].slot = slot;
		dirty[total++].chosen = false;
	}
	spin_unlock_irq(&bucket->lock);

	sort(dirty, total, sizeof(*dirty), sc_cmp_age, NULL);
	for (i = 0; i < min(want, total); i++)
		dirty[i].chosen = true;
	sort(dirty, total, sizeof(*dirty), sc_cmp_id, NULL);

	for (i = 0; i < total; i = end) {
		bool chosen = dirty[i].chosen;

		/* Ids of the next stripe continue, but are elsewhere on disk. */
		for (end = i + 1; end < total &&
		     dirty[end].id == dirty[end - 1].id + 1 &&
		     (dirty[end].id & (index->geo.assoc - 1)); end++)
			chosen |= dirty[end].chosen;
		while (chosen && i < end)
			i += sc_round_add_run(cleaner, set, &dirty[i], end - i);
	}
	return total;
}

/*---------------------------------------------------------------------------*/

/* Let the cleaner go on if no other op holds the blocks that it waits for. */
void sc_round_wake_op(struct setcache *sc, struct sc_bucket *bucket,
		      struct sc_op *op)
{
	if (sc_op_is_blocked(bucket, op, &op->link))
		return;
	list_move_tail(&op->link, &bucket->active);
	complete(&sc->cleaning.cleaner->hot.taken);
}

/*
 * Take the hot block, and its dirty neighbours, for a round of their own. While
 * the cleaner waits for blocks it must hold no others: the requests that it
 * waits for may wait for those.
 */
void sc_round_take_hot(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	u32 set = cleaner->hot.set, mask = index->geo.assoc - 1;
	struct sc_bucket *bucket = sc_get_bucket(index, set);
	u32 room = min(sc_round_free_blocks(cleaner), SC_SLOTS_PER_LOCK);
	struct sc_run *run = sc_round_next_run(cleaner, set, SC_CLASS_HOLDER);
	struct sc_op *op = &run->op;

	op->first_id = cleaner->hot.id;
	op->last_id = cleaner->hot.id;
	spin_lock_irq(&bucket->lock);
	while (op->last_id - op->first_id + 1 < room && op->first_id & mask &&
	       sc_round_find_dirty(index, set, op->first_id - 1) != SC_NIL)
		op->first_id--;
	while (op->last_id - op->first_id + 1 < room &&
	       (op->last_id + 1) & mask &&
	       sc_round_find_dirty(index, set, op->last_id + 1) != SC_NIL)
		op->last_id++;
	list_add_tail(&op->link, &bucket->waiting);
	sc_round_wake_op(sc, bucket, op);
	spin_unlock_irq(&bucket->lock);
	/*
	 * Active requests there will end, and later ones queue behind the cleaner.
	 */
	wait_for_completion(&cleaner->hot.taken);

	spin_lock_irq(&bucket->lock);
	sc_round_begin_run(cleaner, run);
	spin_unlock_irq(&bucket->lock);
	if (run->nr_blocks)
		sc_round_count_run(cleaner, run);
	else
		sc_release_op(sc, op);
}

/*---------------------------------------------------------------------------*/

bool sc_round_is_full(const struct sc_cleaner *cleaner)
{
	return cleaner->nr_pages == SC_ROUND_PAGES_MAX ||
	       cleaner->nr_runs == SC_ROUND_PAGES_MAX;
}

/* Return how many dirty blocks a set has beyond its low mark. */
static u32 sc_round_set_excess(struct setcache *sc, u32 set)
{
	u32 low = sc->index.geo.assoc * sc_get_option(sc, SC_OPT_SET_LOW) / 100;
	u32 dirty = READ_ONCE(sc->index.sets[set].nr_dirty);

	return dirty > low ? dirty - low : 0;
}

/*
 * Take blocks of a set that exceeds its mark. Its bit stays set until the set
 * is found at its low mark, for taken blocks may become dirty again during the
 * round. Stuck blocks do not keep the bit.
 */
static void sc_round_fill_set(struct sc_cleaner *cleaner, u32 set)
{
	struct setcache *sc = cleaner->sc;
	u32 excess;

	clear_bit(set, sc->cleaning.over_sets);
	smp_mb__after_atomic(); /* with sc_check_dirty() */
	excess = sc_round_set_excess(sc, set);
	if (excess &&
	    sc_round_take_set(cleaner, set,
			      min(excess, sc_get_option(sc, SC_OPT_CLEAN_SET))))
		set_bit(set, sc->cleaning.over_sets);
}

/* Fill a round from the sets that exceed their mark, each once. */
void sc_round_fill_over(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	unsigned long sets = sc->index.geo.nr_sets;
	unsigned long set = cleaner->hand.next_over, first = set;

	for_each_set_bit_from(set, sc->cleaning.over_sets, sets) {
		cleaner->hand.next_over = set + 1;
		sc_round_fill_set(cleaner, set);
		if (sc_round_is_full(cleaner))
			return;
	}
	for_each_set_bit(set, sc->cleaning.over_sets, first) {
		cleaner->hand.next_over = set + 1;
		sc_round_fill_set(cleaner, set);
		if (sc_round_is_full(cleaner))
			return;
	}
}

/*
 * Fill a round from the next sets in turn; only from sets with old blocks if
 * @aged_only.
 */
void sc_round_fill_next(struct sc_cleaner *cleaner, bool aged_only)
{
	struct setcache *sc = cleaner->sc;
	u64 sets = sc->index.geo.nr_sets, i;
	u32 limit = sc_get_option(sc, SC_OPT_CLEAN_SET);
	u32 age = DIV_ROUND_UP(sc_get_option(sc, SC_OPT_AGE_MS), MSEC_PER_SEC);

	for (i = 0; i < sets; i++) {
		u32 set = cleaner->hand.next_set;
		const struct sc_set *s = &sc->index.sets[set];
		u32 aged = (u32)(jiffies / HZ) - READ_ONCE(s->dirty_since_s);

		/* sc_round_fill_over() handles sets that exceed their mark. */
		if (READ_ONCE(s->nr_dirty) &&
		    !test_bit(set, sc->cleaning.over_sets) &&
		    (!aged_only || aged >= age))
			sc_round_take_set(cleaner, set, limit);
		if (sc_round_is_full(cleaner))
			return;
		cleaner->hand.next_set = set + 1 < sets ? set + 1 : 0;
		if (i % SC_SETS_PER_RESCHED == SC_SETS_PER_RESCHED - 1)
			cond_resched();
	}
}
