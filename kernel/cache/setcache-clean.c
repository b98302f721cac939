// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cleaner of dm-setcache: one thread, in rounds.
 *
 * A round takes dirty blocks of sets that have too many, or of those that come
 * next: those that would give way first, and with each all dirty neighbours on
 * the disk. It reads them from the SSD, writes them to the origin in the order
 * of the disk, as one I/O where they adjoin, flushes the origin once, and has
 * the records say so in one commit. Only then they are clean.
 *
 * Requests go on meanwhile. Who reads a block that is being cleaned finds it as
 * before. Who writes one makes it dirty again as he begins, and then it stays
 * dirty when the round ends: what the round has written to the origin is older.
 * A round takes no block that is being written: it might read what was there
 * before. Nobody else may write a block of a round to the origin, and no other
 * round takes it, until this one has ended. So the origin never goes back.
 *
 * So a block that is written without a pause is never taken, or never clean. In
 * modes that leave nothing dirty it has to be, some time: then a round waits for
 * its turn at that block like a request, and who writes there waits for the
 * round.
 *
 * What cannot be read, or written, is found out block by block. It becomes
 * stuck, which is dirty, but passed over: those beside it are cleaned, and the
 * next rounds go on without it. After a while all stuck blocks are tried again.
 *
 * A block has no owner: who dirtied it, and who its neighbours in a run, nobody
 * knows. So cleaning is charged to the root cgroup.
 *
 * Memory for a round is there from the beginning: the cleaner never waits for
 * memory that only cleaning could free.
 */
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "setcache.h"

/* Slots that are looked at with interrupts off. */
#define SC_SLOTS_A_LOCK	256

/* Sets that are looked at without finding anything before others may run. */
#define SC_SETS_A_TURN	4096

/* Time-based cleaning looks that often, or when something may be due. */
#define SC_TICK_INTERVAL	(HZ / 2)

/* Cleaning rests so long after a round in which nothing could be cleaned. */
#define SC_REST_INTERVAL	HZ

/*
 * Stuck blocks are tried again after so long: a disk may take seconds to give
 * up a bad place, and all the others wait for that.
 */
#define SC_RETRY_INTERVAL	(10 * HZ)

/**
 * struct sc_dirty - a dirty block of a set
 * @id: which
 * @age: by its stamp
 * @slot: where
 * @chosen: to be cleaned for its own sake, not only as a neighbour
 */
struct sc_dirty {
	u32 id;
	u16 age;
	u16 slot;
	bool chosen;
};

/**
 * struct sc_run - adjoining blocks of a set that are being cleaned
 * @op: announces them
 * @block: the first one, on the origin
 * @count: how many
 * @page: its first page of the cleaner's, where it begins
 * @first: its first slot of the cleaner's
 * @slots: where they are, of the cleaner's slots
 * @error: a bio has failed
 * @cleaner: for the end of bios
 */
struct sc_run {
	struct sc_op op;
	u64 block;
	u32 count;
	u32 page;
	u32 first;
	u16 *slots;
	bool error;
	struct sc_cleaner *cleaner;
};

/* Why something is cleaned, most urgent first. */
enum sc_reason {
	SC_REASON_SET_HIGH,		/* some sets are over their mark */
	SC_REASON_DIRTY_HIGH,	/* all together are */
	SC_REASON_ORDER,		/* the mode, or a message, wants it */
	SC_REASON_IDLE,		/* nobody asks for anything */
	SC_REASON_AGE,		/* some are old */
	SC_REASON_NONE,
};

/**
 * struct sc_cleaner - memory of the cleaner; of its work only
 * @sc: the cache
 * @pages: of a round
 * @nr_pages: taken
 * @runs: of a round
 * @nr_runs: taken
 * @slots: of the runs' blocks
 * @bad: a bit each, those that cannot be read or written
 * @nr_slots: taken
 * @max_slots: that pages have room for
 * @dirty: of one set
 * @hand: the set that is next
 * @hand_over: the set after which one that is over its mark is looked for
 * @order: runs in the order of the disk
 * @stuck: a bit a set that may have stuck blocks
 * @retry: jiffies; when they are tried again. Anyone may say: at once
 * @rest: jiffies; no round before
 * @hot: a block was written when it was to be cleaned, or while it was
 * @hot_set: its set
 * @hot_id: its id
 * @held: the round has it now, and those beside it
 * @lock: protects @in_flight
 * @in_flight: bios
 * @wait: for them
 */
struct sc_cleaner {
	struct setcache *sc;
	struct page *pages[SC_ROUND_PAGES];
	u32 nr_pages;
	struct sc_run runs[SC_ROUND_PAGES];
	u32 nr_runs;
	u16 *slots;
	unsigned long *bad;
	u32 nr_slots;
	u32 max_slots;
	struct sc_dirty *dirty;
	u32 hand;
	u32 hand_over;
	struct sc_run *order[SC_ROUND_PAGES];
	unsigned long *stuck;
	unsigned long retry;
	unsigned long rest;
	bool hot;
	u32 hot_set;
	u32 hot_id;
	struct completion held;
	spinlock_t lock;	/* taken in interrupts */
	u32 in_flight;
	wait_queue_head_t wait;
};

struct sc_cleaner *sc_cleaner_create(struct setcache *sc)
{
	struct sc_cleaner *cleaner = kvzalloc(sizeof(*cleaner), GFP_KERNEL);
	u32 i;

	if (!cleaner)
		return NULL;
	cleaner->sc = sc;
	cleaner->retry = jiffies;
	cleaner->rest = jiffies;
	init_completion(&cleaner->held);
	spin_lock_init(&cleaner->lock);
	init_waitqueue_head(&cleaner->wait);
	cleaner->max_slots =
		SC_ROUND_PAGES *
		max_t(u32, 1,
		      (PAGE_SIZE >> SECTOR_SHIFT) / sc->index.geo.block);
	cleaner->slots = kvmalloc_array(cleaner->max_slots, sizeof(u16),
					GFP_KERNEL);
	cleaner->dirty = kvmalloc_array(sc->index.geo.assoc,
					sizeof(*cleaner->dirty), GFP_KERNEL);
	cleaner->bad = bitmap_alloc(cleaner->max_slots, GFP_KERNEL);
	cleaner->stuck = vzalloc(BITS_TO_LONGS(sc->index.geo.sets) *
				 sizeof(long));
	if (!cleaner->slots || !cleaner->dirty || !cleaner->bad ||
	    !cleaner->stuck)
		goto bad;
	for (i = 0; i < SC_ROUND_PAGES; i++) {
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
	for (i = 0; i < SC_ROUND_PAGES; i++)
		if (cleaner->pages[i])
			__free_page(cleaner->pages[i]);
	vfree(cleaner->stuck);
	bitmap_free(cleaner->bad);
	kvfree(cleaner->dirty);
	kvfree(cleaner->slots);
	kvfree(cleaner);
}

/* Clean everything, or stop that. What is stuck is tried at once. */
void sc_clean_all(struct setcache *sc, bool start)
{
	WRITE_ONCE(sc->clean_all, start);
	if (start)
		WRITE_ONCE(sc->cleaner->retry, jiffies);
}

/*---------------------------------------------------------------------------*/

/* Why anything is cleaned; the urgent ones come with @sets. */
static enum sc_reason sc_reason(struct setcache *sc, bool sets)
{
	u64 dirty = atomic_long_read(&sc->index.nr_dirty);
	u32 idle = sc_option(sc, SC_OPT_IDLE_MS);
	u32 gate = sc_option(sc, SC_OPT_CLEAN_GATE);

	if (!dirty) {
		WRITE_ONCE(sc->clean_all, false);
		WRITE_ONCE(sc->over_global, false);
		return SC_REASON_NONE;
	}
	if (dirty == atomic_long_read(&sc->index.nr_stuck))
		return SC_REASON_NONE;
	if (sets &&
	    find_first_bit(sc->over, sc->index.geo.sets) < sc->index.geo.sets)
		return SC_REASON_SET_HIGH;
	if (READ_ONCE(sc->clean_all) || !sc_mode_dirties(READ_ONCE(sc->mode)))
		return SC_REASON_ORDER;
	if (gate && atomic_read(&sc->origin_ios) >= gate)
		return SC_REASON_NONE;
	if (READ_ONCE(sc->over_global)) {
		if (dirty > sc_slots_of(sc, SC_OPT_DIRTY_LOW))
			return SC_REASON_DIRTY_HIGH;
		WRITE_ONCE(sc->over_global, false);
	}
	if (idle && time_after_eq(jiffies, READ_ONCE(sc->last_io) +
				  msecs_to_jiffies(idle)))
		return SC_REASON_IDLE;
	return sc_option(sc, SC_OPT_AGE_MS) ? SC_REASON_AGE : SC_REASON_NONE;
}

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

static int sc_by_block(const void *a, const void *b)
{
	u64 x = (*(const struct sc_run * const *)a)->block;
	u64 y = (*(const struct sc_run * const *)b)->block;

	return x < y ? -1 : x > y;
}

/* Pages of a run of so many blocks. */
static u32 sc_run_pages(const struct setcache *sc, u32 count)
{
	return DIV_ROUND_UP_ULL((u64)count * sc->index.geo.block,
				PAGE_SIZE >> SECTOR_SHIFT);
}

/* Blocks that there is room for. */
static u32 sc_room(const struct sc_cleaner *cleaner)
{
	u32 pages = SC_ROUND_PAGES - cleaner->nr_pages;

	if (cleaner->nr_runs == SC_ROUND_PAGES)
		return 0;
	return min(pages * (PAGE_SIZE >> SECTOR_SHIFT) /
		   cleaner->sc->index.geo.block,
		   cleaner->max_slots - cleaner->nr_slots);
}

/* The next run of the round; it has no blocks yet. */
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
 * The slot of a block that is dirty, of which nothing else is known; or SC_NIL.
 * The bucket's lock is held.
 */
static u16 sc_dirty_slot(const struct sc_index *index, u32 set, u32 id)
{
	u16 slot = sc_find(index, set, id);

	if (slot != SC_NIL && sc_state(index, set, slot) != SC_SLOT_DIRTY)
		slot = SC_NIL;
	return slot;
}

/*
 * The blocks that a run has announced are being cleaned, as far as they are dirty.
 * The bucket's lock is held.
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

/* A run has begun, and is of the round. */
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

/* A block was written when it was to be cleaned. */
static void sc_note_hot(struct sc_cleaner *cleaner, u32 set, u32 id)
{
	cleaner->hot = true;
	cleaner->hot_set = set;
	cleaner->hot_id = id;
}

/*
 * Take adjoining blocks for the round, as far as they are still dirty, and
 * nobody writes or discards them, and there is room. Says how many are dealt
 * with, taken or not.
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

/* Perhaps the cleaner has the blocks now that it waits for. */
void sc_clean_wake(struct setcache *sc, struct sc_bucket *bucket,
		   struct sc_op *op)
{
	if (sc_busy(bucket, op, &op->link))
		return;
	list_move_tail(&op->link, &bucket->active);
	complete(&sc->cleaner->held);
}

/*
 * Take the block that is hot, and dirty ones beside it, for a round of their
 * own: who waits for some blocks must not have others, for whom he waits may
 * wait for these.
 */
static void sc_take_hot(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	u32 set = cleaner->hot_set, mask = index->geo.assoc - 1;
	struct sc_bucket *bucket = sc_bucket(index, set);
	u32 room = min(sc_room(cleaner), SC_SLOTS_A_LOCK);
	struct sc_run *run = sc_next_run(cleaner, set, SC_CLASS_HOLDER);
	struct sc_op *op = &run->op;

	op->first = cleaner->hot_id;
	op->last = cleaner->hot_id;
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
	/* Requests at work there end, and who comes now is behind us. */
	wait_for_completion(&cleaner->held);

	spin_lock_irq(&bucket->lock);
	sc_begin_run(cleaner, run);
	spin_unlock_irq(&bucket->lock);
	if (run->count)
		sc_count_run(cleaner, run);
	else
		sc_unlock(sc, op);
}

/*
 * Take blocks of a set: @want of those that would give way first, and their
 * neighbours. Says whether there are any, though perhaps no room for them, or
 * somebody at work there.
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

		/* Ids go on from a stripe to the next, the disk does not. */
		for (end = i + 1; end < total &&
		     dirty[end].id == dirty[end - 1].id + 1 &&
		     (dirty[end].id & (index->geo.assoc - 1)); end++)
			chosen |= dirty[end].chosen;
		while (chosen && i < end)
			i += sc_add_run(cleaner, set, &dirty[i], end - i);
	}
	return total;
}

/* How many blocks of a set have to go, to its low mark. */
static u32 sc_set_excess(struct setcache *sc, u32 set)
{
	u32 low = sc->index.geo.assoc * sc_option(sc, SC_OPT_SET_LOW) / 100;
	u32 dirty = READ_ONCE(sc->index.sets[set].dirty);

	return dirty > low ? dirty - low : 0;
}

/*
 * Take blocks of a set that is over its mark. It stays marked until it is found
 * at its low mark, for what is taken may become dirty again meanwhile; but not
 * for what is stuck.
 */
static void sc_fill_set(struct sc_cleaner *cleaner, u32 set)
{
	struct setcache *sc = cleaner->sc;
	u32 excess;

	clear_bit(set, sc->over);
	smp_mb__after_atomic(); /* with sc_check_dirty() */
	excess = sc_set_excess(sc, set);
	if (excess &&
	    sc_take_dirty(cleaner, set,
			  min(excess, sc_option(sc, SC_OPT_CLEAN_SET))))
		set_bit(set, sc->over);
}

static bool sc_round_full(const struct sc_cleaner *cleaner)
{
	return cleaner->nr_pages == SC_ROUND_PAGES ||
	       cleaner->nr_runs == SC_ROUND_PAGES;
}

/* Fill a round from the sets that are over their mark, each once. */
static void sc_fill_over(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	unsigned long sets = sc->index.geo.sets;
	unsigned long set = cleaner->hand_over, first = set;

	for_each_set_bit_from(set, sc->over, sets) {
		cleaner->hand_over = set + 1;
		sc_fill_set(cleaner, set);
		if (sc_round_full(cleaner))
			return;
	}
	for_each_set_bit(set, sc->over, first) {
		cleaner->hand_over = set + 1;
		sc_fill_set(cleaner, set);
		if (sc_round_full(cleaner))
			return;
	}
}

/* Fill a round from the sets that come next. */
static void sc_fill_next(struct sc_cleaner *cleaner, enum sc_reason reason)
{
	struct setcache *sc = cleaner->sc;
	u64 sets = sc->index.geo.sets, i;
	u32 limit = sc_option(sc, SC_OPT_CLEAN_SET);
	u32 age = DIV_ROUND_UP(sc_option(sc, SC_OPT_AGE_MS), MSEC_PER_SEC);

	for (i = 0; i < sets; i++) {
		u32 set = cleaner->hand;
		const struct sc_set *s = &sc->index.sets[set];
		u32 aged = (u32)(jiffies / HZ) - READ_ONCE(s->since);

		/* That of a set over its mark is up to sc_fill_over(). */
		if (READ_ONCE(s->dirty) && !test_bit(set, sc->over) &&
		    (reason != SC_REASON_AGE || aged >= age))
			sc_take_dirty(cleaner, set, limit);
		if (sc_round_full(cleaner))
			return;
		cleaner->hand = set + 1 < sets ? set + 1 : 0;
		if (i % SC_SETS_A_TURN == SC_SETS_A_TURN - 1)
			cond_resched();
	}
}

/*---------------------------------------------------------------------------*/

static void sc_clean_end(struct bio *bio)
{
	struct sc_run *run = bio->bi_private;
	struct sc_cleaner *cleaner = run->cleaner;
	unsigned long flags;

	if (bio->bi_status) {
		WRITE_ONCE(run->error, true);
		/* One bad block, tried again and again, is not a lost SSD. */
		if (bio_op(bio) == REQ_OP_READ &&
		    bio->bi_status == BLK_STS_OFFLINE)
			sc_lose(cleaner->sc);
	}
	bio_put(bio);
	/* With the lock, for the last one to end may be the cleaner's end. */
	spin_lock_irqsave(&cleaner->lock, flags);
	cleaner->in_flight--;
	wake_up(&cleaner->wait);
	spin_unlock_irqrestore(&cleaner->lock, flags);
}

/* Wait until fewer than so many bios are in flight. */
static void sc_clean_drain(struct sc_cleaner *cleaner, u32 below)
{
	spin_lock_irq(&cleaner->lock);
	wait_event_lock_irq(cleaner->wait, cleaner->in_flight < below,
			    cleaner->lock);
	spin_unlock_irq(&cleaner->lock);
}

/* Read or write blocks @i to @end of a run, which adjoin there. */
static void sc_clean_io(struct sc_run *run, u32 i, u32 end, bool write)
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
		bio->bi_end_io = sc_clean_end;
		if (write)
			sc_clean_drain(cleaner, limit);
		spin_lock_irq(&cleaner->lock);
		cleaner->in_flight++;
		spin_unlock_irq(&cleaner->lock);
		sc_count_io(sc, !write, !write, bio_sectors(bio));
		sc_count(sc, write ? SC_STAT_CLEAN_WRITE : SC_STAT_CLEAN_READ,
			 bio_sectors(bio));
		submit_bio_noacct(bio);
	}
}

/* Whether block @i of a run could not be read or written. */
static bool sc_clean_bad(const struct sc_run *run, u32 i)
{
	return test_bit(run->first + i, run->cleaner->bad);
}

/* Blocks are not tried one by one: they remain dirty. */
static bool sc_gives_up(const struct setcache *sc)
{
	return sc_is_lost(sc) || READ_ONCE(sc->stopping);
}

/*
 * A bio of the run has failed: which blocks have, one after the other. A disk may
 * take long for each; who suspends the cache waits for one at most.
 */
static void sc_clean_each(struct sc_run *run, bool write)
{
	u32 i;

	for (i = 0; i < run->count; i++) {
		if (sc_clean_bad(run, i))
			continue;
		run->error = sc_gives_up(run->cleaner->sc);
		if (!run->error) {
			sc_clean_io(run, i, i + 1, write);
			sc_clean_drain(run->cleaner, 1);
		}
		if (run->error)
			__set_bit(run->first + i, run->cleaner->bad);
	}
	run->error = false;
}

static void sc_clean_read(struct sc_run *run)
{
	u32 i, end;

	for (i = 0; i < run->count; i = end) {
		for (end = i + 1; end < run->count; end++)
			if (run->slots[end] != run->slots[end - 1] + 1)
				break;
		sc_clean_io(run, i, end, false);
	}
}

static void sc_clean_write(struct sc_run *run)
{
	u32 i, end;

	for (i = 0; i < run->count; i = end + 1) {
		for (end = i; end < run->count; end++)
			if (sc_clean_bad(run, end))
				break;
		if (end > i)
			sc_clean_io(run, i, end, true);
	}
}

/* Read all runs of the round, and write what could be read, in order. */
static void sc_clean_move(struct sc_cleaner *cleaner)
{
	struct blk_plug plug;
	u32 i;

	bitmap_zero(cleaner->bad, cleaner->max_slots);
	blk_start_plug(&plug);
	for (i = 0; i < cleaner->nr_runs; i++)
		sc_clean_read(&cleaner->runs[i]);
	blk_finish_plug(&plug);
	sc_clean_drain(cleaner, 1);
	for (i = 0; i < cleaner->nr_runs; i++) {
		cleaner->order[i] = &cleaner->runs[i];
		if (cleaner->runs[i].error)
			sc_clean_each(&cleaner->runs[i], false);
	}

	sort(cleaner->order, cleaner->nr_runs, sizeof(*cleaner->order),
	     sc_by_block, NULL);
	for (i = 0; i < cleaner->nr_runs; i++)
		sc_clean_write(cleaner->order[i]);
	sc_clean_drain(cleaner, 1);
	for (i = 0; i < cleaner->nr_runs; i++)
		if (cleaner->order[i]->error)
			sc_clean_each(cleaner->order[i], true);
}

/*
 * A run has been written, durably if @good. What has been written anew meanwhile
 * stays dirty. Says how many could not be cleaned.
 */
static u32 sc_clean_written(struct sc_run *run, bool good)
{
	struct sc_cleaner *cleaner = run->cleaner;
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	u32 i, failed = 0, set = run->op.set;
	struct sc_bucket *bucket = sc_bucket(index, set);

	spin_lock_irq(&bucket->lock);
	for (i = 0; i < run->count; i++) {
		bool bad = sc_clean_bad(run, i);

		failed += bad || !good;
		if (sc_state(index, set, run->slots[i]) != SC_SLOT_CLEANING) {
			sc_note_hot(cleaner, set, run->op.first + i);
			continue;
		}
		if (!good || (bad && sc_gives_up(sc))) {
			sc_set_state(index, set, run->slots[i], SC_SLOT_DIRTY);
		} else if (bad) {
			sc_set_state(index, set, run->slots[i], SC_SLOT_STUCK);
			__set_bit(set, cleaner->stuck);
		} else {
			sc_set_state(index, set, run->slots[i],
				     SC_SLOT_CLEANED);
			sc_mark(sc, set, run->slots[i]);
		}
	}
	spin_unlock_irq(&bucket->lock);
	return failed;
}

/*
 * The records of a run say so, if @good; else some of them may. Says how many are
 * clean now.
 */
static u32 sc_clean_recorded(struct sc_run *run, bool good)
{
	struct setcache *sc = run->cleaner->sc;
	struct sc_index *index = &sc->index;
	u32 i, count = 0, set = run->op.set;
	struct sc_bucket *bucket = sc_bucket(index, set);

	spin_lock_irq(&bucket->lock);
	for (i = 0; i < run->count; i++) {
		u16 slot = run->slots[i];

		if (sc_state(index, set, slot) != SC_SLOT_CLEANED)
			continue;
		if (good || sc_md_stable(sc->md, sc_slot(index, set, slot))) {
			sc_set_state(index, set, slot, SC_SLOT_CLEAN);
			count++;
		} else {
			sc_set_state(index, set, slot, SC_SLOT_DIRTY);
			sc_mark(sc, set, slot);
		}
	}
	spin_unlock_irq(&bucket->lock);
	return count;
}

/* Clean what the round has taken. */
static void sc_clean_round(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	struct sc_run *run, *end = cleaner->runs + cleaner->nr_runs;
	u32 cleaned = 0, failed = 0;
	int r;

	sc_clean_move(cleaner);
	r = blkdev_issue_flush(sc->origin->bdev);
	for (run = cleaner->runs; run < end; run++)
		failed += sc_clean_written(run, !r);
	r = sc_commit_now(sc);
	for (run = cleaner->runs; run < end; run++) {
		cleaned += sc_clean_recorded(run, !r);
		sc_unlock(sc, &run->op);
	}
	sc_count(sc, SC_STAT_CLEANED, cleaned);
	sc_count(sc, SC_STAT_CLEAN_ERRORS, failed);
	sc_count(sc, SC_STAT_ROUNDS, 1);
	if (failed) {
		DMWARN_LIMIT("%s: %u dirty blocks cannot be cleaned",
			     sc_device(sc), failed);
		WRITE_ONCE(cleaner->retry, jiffies + SC_RETRY_INTERVAL);
	}
	if (!cleaned && (r || failed == cleaner->nr_slots))
		cleaner->rest = jiffies + SC_REST_INTERVAL;
}

/* What is stuck gets another chance. */
static void sc_clean_unstick(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	struct sc_index *index = &sc->index;
	unsigned long set;
	u16 slot;

	for_each_set_bit(set, cleaner->stuck, index->geo.sets) {
		struct sc_bucket *bucket = sc_bucket(index, set);

		spin_lock_irq(&bucket->lock);
		for (slot = 0; slot < index->geo.assoc; slot++)
			if (sc_state(index, set, slot) == SC_SLOT_STUCK)
				sc_set_state(index, set, slot, SC_SLOT_DIRTY);
		sc_check_dirty(sc, set);
		spin_unlock_irq(&bucket->lock);
		__clear_bit(set, cleaner->stuck);
		cond_resched();
	}
}

/* When to look again, if nobody asks before. 0: nothing may become due. */
static unsigned long sc_clean_next(struct setcache *sc)
{
	long stuck = atomic_long_read(&sc->index.nr_stuck);

	if (atomic_long_read(&sc->index.nr_dirty) == stuck)
		return stuck ? SC_RETRY_INTERVAL : 0;
	if (sc_option(sc, SC_OPT_IDLE_MS) || sc_option(sc, SC_OPT_AGE_MS) ||
	    (sc_option(sc, SC_OPT_CLEAN_GATE) && READ_ONCE(sc->over_global)))
		return SC_TICK_INTERVAL;
	return stuck ? SC_RETRY_INTERVAL : 0;
}

/* Take blocks for a round, if there is a reason. Says which. */
static enum sc_reason sc_fill_round(struct sc_cleaner *cleaner)
{
	struct setcache *sc = cleaner->sc;
	enum sc_reason beside, reason = sc_reason(sc, true);
	bool hot = cleaner->hot;

	cleaner->nr_pages = 0;
	cleaner->nr_runs = 0;
	cleaner->nr_slots = 0;
	cleaner->hot = false;
	if (reason == SC_REASON_NONE)
		return reason;
	if (hot && !sc_mode_dirties(READ_ONCE(sc->mode)))
		sc_take_hot(cleaner);
	if (cleaner->nr_runs)
		return reason;

	beside = reason;
	if (reason == SC_REASON_SET_HIGH) {
		sc_fill_over(cleaner);
		beside = sc_reason(sc, false);
	}
	/* If there is room, nobody waits for those sets, where writes go on. */
	if (beside != SC_REASON_NONE && !sc_round_full(cleaner))
		sc_fill_next(cleaner, beside);
	return reason;
}

void sc_clean_work(struct work_struct *work)
{
	struct setcache *sc = container_of(to_delayed_work(work),
					   struct setcache, clean_work);
	struct sc_cleaner *cleaner = sc->cleaner;
	enum sc_reason reason;
	unsigned long next;

	if (sc_is_lost(sc) || READ_ONCE(sc->stopping))
		return;
	if (time_before(jiffies, cleaner->rest)) {
		queue_delayed_work(sc->clean_wq, &sc->clean_work,
				   SC_REST_INTERVAL);
		return;
	}
	if (atomic_long_read(&sc->index.nr_stuck) &&
	    time_after_eq(jiffies, READ_ONCE(cleaner->retry)))
		sc_clean_unstick(cleaner);

	reason = sc_fill_round(cleaner);
	if (cleaner->nr_runs) {
		sc_clean_round(cleaner);
		/* Perhaps there is more. */
		next = 0;
	} else {
		next = sc_clean_next(sc);
		/* What there is, is at work elsewhere. */
		if (reason != SC_REASON_NONE && reason != SC_REASON_AGE)
			next = 1;
		if (!next)
			return;
	}
	if (!READ_ONCE(sc->stopping))
		queue_delayed_work(sc->clean_wq, &sc->clean_work, next);
}
