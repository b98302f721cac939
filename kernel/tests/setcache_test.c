// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of dm-setcache: places of blocks, eviction, conflicts of operations, records, sizes
 * that fit an SSD, and transitions of phases.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

/* The code itself: symbols that its files share are not exported. */
#include "../cache/setcache-state.c"
#include "../cache/setcache-set.c"
#include "../cache/setcache-policy.c"
#include "../cache/setcache-flow.c"
#include "../cache/setcache-place.c"
#include "../cache/setcache-format.c"
#include "../cache/setcache-bio.c"

#define ASSOC	64
#define SETS	7

static struct sc_index *setcache_test_make_index(struct kunit *test, u64 origin)
{
	struct sc_index *index =
		kunit_kzalloc(test, sizeof(*index), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, index);
	index->geo.block_sectors = 8;
	index->geo.assoc = ASSOC;
	index->geo.nr_sets = SETS;
	index->geo.origin_sectors = origin;
	KUNIT_ASSERT_EQ(test, sc_index_init(index), 0);
	return index;
}

static void setcache_block_and_id_are_inverse(struct kunit *test)
{
	struct sc_index *index = setcache_test_make_index(test, 8ULL * ASSOC * SETS * 1000);
	u32 set, id, next_set, next_id;
	u64 block;

	for (block = 0; block < index->nr_blocks; block += 1 + block % 17) {
		sc_locate_block(index, block, &set, &id);
		KUNIT_ASSERT_LT(test, set, SETS);
		KUNIT_ASSERT_LE(test, id, SC_ID_MASK);
		KUNIT_ASSERT_EQ(test, set, (block / ASSOC) % SETS);
		KUNIT_ASSERT_EQ(test, sc_id_to_block(index, set, id), block);
		if (block % ASSOC == ASSOC - 1)
			continue;
		/* Within a stripe consecutive blocks have consecutive ids. */
		sc_locate_block(index, block + 1, &next_set, &next_id);
		KUNIT_ASSERT_EQ(test, next_set, set);
		KUNIT_ASSERT_EQ(test, next_id, id + 1);
	}
	sc_index_exit(index);
}

static void setcache_origin_too_large_for_ids_is_refused(struct kunit *test)
{
	struct sc_index index = {
		.geo = { .block_sectors = 8, .assoc = 4096, .nr_sets = 1 },
	};

	/* 28 bits of id, 12 of which are the offset in the stripe. */
	index.geo.origin_sectors = 8ULL << SC_ID_BITS;
	KUNIT_EXPECT_EQ(test, sc_index_init(&index), 0);
	sc_index_exit(&index);
	index.geo.origin_sectors++;
	KUNIT_EXPECT_EQ(test, sc_index_init(&index), -EFBIG);
}

/* The largest sizes in use: 16 TiB behind 1 TiB, in blocks of each size. */
static void setcache_large_disks_have_no_overflow(struct kunit *test)
{
	const u64 ssd = 1ULL << 31, origin = 1ULL << 35;
	u32 block, assoc, set, id;

	for (block = SC_BLOCK_SECTORS_MIN; block <= SC_BLOCK_SECTORS_MAX;
	     block *= 2) {
		for (assoc = SC_ASSOC_MIN; assoc <= SC_ASSOC_MAX; assoc *= 2) {
			struct sc_index index = {
				.geo = {
					.block_sectors = block, .assoc = assoc,
					.origin_sectors = origin, .ssd_sectors = ssd,
				},
			};
			u64 last = origin / block - 1;

			KUNIT_ASSERT_EQ(test, sc_geometry_fit_sets(&index.geo),
					0);
			KUNIT_ASSERT_EQ(test, sc_index_compute_sizes(&index),
					0);
			KUNIT_EXPECT_EQ(test, index.nr_blocks, last + 1);
			/*
			 * All space but the records is for data; a record takes 16 bytes a block.
			 */
			KUNIT_EXPECT_GT(test, index.nr_slots * (512 * block + 16),
					(ssd - 2048) * 512 - 2ULL * assoc * block * 512);
			sc_locate_block(&index, last, &set, &id);
			KUNIT_EXPECT_LE(test, id, SC_ID_MASK);
			KUNIT_EXPECT_EQ(test, sc_id_to_block(&index, set, id),
					last);
			/* The last sector of the last slot. */
			set = index.geo.nr_sets - 1;
			KUNIT_EXPECT_EQ(test,
					sc_slot_number(&index, set, assoc - 1),
					index.nr_slots - 1);
			KUNIT_EXPECT_LE(test, block +
					sc_slot_sector(&index, set, assoc - 1),
					sc_super_sector(&index.geo, 2));
		}
	}
}

static void setcache_too_many_slots_are_refused(struct kunit *test)
{
	struct sc_index index = {
		.geo = { .block_sectors = 1,
			 .assoc = 16,
			 .nr_sets = 1ULL << 28 },
	};

	index.geo.origin_sectors = 1ULL << 32;
	KUNIT_EXPECT_EQ(test, sc_index_compute_sizes(&index), -EFBIG);
	index.geo.nr_sets--;
	KUNIT_EXPECT_EQ(test, sc_index_compute_sizes(&index), 0);
}

static void setcache_test_expect_fit(struct kunit *test, u32 assoc, u32 block, u64 ssd)
{
	struct sc_geometry geo = { .assoc = assoc,
				   .block_sectors = block,
				   .ssd_sectors = ssd };
	u64 set = (u64)assoc * block, records, data, end;

	if (sc_geometry_fit_sets(&geo)) {
		KUNIT_EXPECT_LT(test, ssd, 2 * set + 1040);
		return;
	}
	records = DIV_ROUND_UP_ULL(geo.nr_sets * assoc, SC_RECORDS_PER_BLOCK);
	KUNIT_EXPECT_EQ(test, geo.data_sector % SC_DATA_ALIGN_SECTORS, 0);
	KUNIT_EXPECT_GE(test, geo.data_sector,
			SC_RECORD_START_SECTOR +
				records * SC_RECORD_BLOCK_SECTORS);
	end = sc_super_sector(&geo, 2);
	KUNIT_EXPECT_LE(test, end + SC_RECORD_BLOCK_SECTORS, ssd);
	KUNIT_EXPECT_GT(test, end + 2 * SC_RECORD_BLOCK_SECTORS, ssd);
	KUNIT_EXPECT_LE(test, geo.data_sector + geo.nr_sets * set, end);
	/* One set more would not fit. */
	records = DIV_ROUND_UP_ULL((geo.nr_sets + 1) * assoc,
				   SC_RECORDS_PER_BLOCK);
	data = round_up(SC_RECORD_START_SECTOR +
				records * SC_RECORD_BLOCK_SECTORS,
			SC_DATA_ALIGN_SECTORS);
	KUNIT_EXPECT_GT(test, data + (geo.nr_sets + 1) * set, end);
}

static void setcache_geometry_uses_all_space(struct kunit *test)
{
	u32 assoc, block, i;

	for (assoc = SC_ASSOC_MIN; assoc <= SC_ASSOC_MAX; assoc *= 4)
		for (block = SC_BLOCK_SECTORS_MIN;
		     block <= SC_BLOCK_SECTORS_MAX; block *= 4)
			for (i = 0; i < 200; i++)
				setcache_test_expect_fit(test, assoc, block,
							 (1ULL << (i % 36)) * 3 + i * 1237);
}

static void setcache_record_damage_is_detected(struct kunit *test)
{
	struct sc_record record, bad;
	enum sc_record_state state;
	u64 block;
	u32 bit;

	sc_record_encode(&record, 4711, 123456789, SC_RECORD_DIRTY,
			 SC_BLOCK_MASK - 5, 17);
	KUNIT_EXPECT_TRUE(test, sc_record_decode(&record, 4711, 123456789,
						 &state, &block));
	KUNIT_EXPECT_EQ(test, (int)state, SC_RECORD_DIRTY);
	KUNIT_EXPECT_EQ(test, block, SC_BLOCK_MASK - 5);
	for (bit = 0; bit < sizeof(bad) * 8; bit++) {
		bad = record;
		((u8 *)&bad)[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_FALSE(test, sc_record_decode(&bad, 4711, 123456789,
							  &state, &block));
	}
	/* A record of another slot, or of another cache. */
	KUNIT_EXPECT_FALSE(test, sc_record_decode(&record, 4711, 123456788,
						  &state, &block));
	KUNIT_EXPECT_FALSE(test, sc_record_decode(&record, 4712, 123456789,
						  &state, &block));
	/* Zeros are not a record. */
	memset(&bad, 0, sizeof(bad));
	KUNIT_EXPECT_FALSE(test, sc_record_decode(&bad, 4711, 0, &state,
						  &block));
}

static void setcache_moved_records_are_found(struct kunit *test)
{
	static const u32 blocks[] = { 7, 3, 1000, 0, 500, 3, 7 };
	struct sc_md *md = kunit_kzalloc(test, sizeof(*md), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, md);
	for (i = 0; i < ARRAY_SIZE(blocks); i++) {
		KUNIT_EXPECT_TRUE(test, sc_md_set_moved(md, blocks[i],
							4000 + i));
		KUNIT_EXPECT_EQ(test, sc_place_record_sector(md, blocks[i]),
				8 * (4000 + i));
	}
	/* A record that was moved twice is at its last location only. */
	KUNIT_EXPECT_EQ(test, md->moved.nr, 5);
	for (i = 1; i < md->moved.nr; i++)
		KUNIT_EXPECT_LT(test, md->moved.list[i - 1].block,
				md->moved.list[i].block);
	KUNIT_EXPECT_EQ(test, sc_place_record_sector(md, 3), 8 * 4005);
	KUNIT_EXPECT_EQ(test, sc_place_record_sector(md, 4),
			SC_RECORD_START_SECTOR + 4 * 8);
	for (i = 2000; md->moved.nr < SC_MOVED_MAX; i++)
		KUNIT_EXPECT_TRUE(test, sc_md_set_moved(md, i, i));
	KUNIT_EXPECT_FALSE(test, sc_md_set_moved(md, 1, 1));
	KUNIT_EXPECT_TRUE(test, sc_md_set_moved(md, 0, 1));
}

static void setcache_ops_wait_by_class(struct kunit *test)
{
	/* By class of the active operation, then of the new one. */
	static const bool waits[5][5] = {
		[SC_CLASS_SHARED] = { [SC_CLASS_EXCLUSIVE] = true,
				      [SC_CLASS_REMOVAL] = true },
		[SC_CLASS_EXCLUSIVE] = { true, true, true, true, true },
		[SC_CLASS_CLEANER] = { [SC_CLASS_CLEANER] = true,
				       [SC_CLASS_HOLDER] = true,
				       [SC_CLASS_REMOVAL] = true },
		[SC_CLASS_HOLDER] = { false, true, true, true, true },
		[SC_CLASS_REMOVAL] = { true, true, true, true, true },
	};
	struct sc_op a = { .set = 3, .first_id = 10, .last_id = 20 };
	struct sc_op b = { .set = 3, .first_id = 20, .last_id = 30 };
	int i, j;

	for (i = 0; i < 5; i++) {
		for (j = 0; j < 5; j++) {
			a.class = i;
			b.class = j;
			b.set = 3;
			b.first_id = 20;
			KUNIT_EXPECT_EQ(test, sc_op_conflicts(&a, &b),
					waits[i][j]);
			/* Operations on other blocks or sets do not conflict. */
			b.first_id = 21;
			KUNIT_EXPECT_FALSE(test, sc_op_conflicts(&a, &b));
			b.first_id = 20;
			b.set = 4;
			KUNIT_EXPECT_FALSE(test, sc_op_conflicts(&a, &b));
		}
	}
}

static void setcache_cleaner_stops_before_other_ops(struct kunit *test)
{
	struct sc_op near = {
		.first_id = 30,
		.last_id = 40,
		.class = SC_CLASS_EXCLUSIVE,
	};
	struct sc_op far = {
		.first_id = 50,
		.last_id = 60,
		.class = SC_CLASS_REMOVAL,
	};
	struct sc_op reader = {
		.first_id = 10,
		.last_id = 20,
		.class = SC_CLASS_SHARED,
	};
	struct sc_op op = { .class = SC_CLASS_CLEANER };
	struct sc_bucket bucket;

	INIT_LIST_HEAD(&bucket.active);
	INIT_LIST_HEAD(&bucket.waiting);
	list_add(&reader.link, &bucket.active);
	list_add(&far.link, &bucket.active);
	list_add(&near.link, &bucket.waiting);
	op.first_id = 10;
	op.last_id = 70;
	KUNIT_EXPECT_TRUE(test, sc_op_shorten(&bucket, &op));
	KUNIT_EXPECT_EQ(test, op.last_id, 29);
	op.first_id = 41;
	op.last_id = 70;
	KUNIT_EXPECT_TRUE(test, sc_op_shorten(&bucket, &op));
	KUNIT_EXPECT_EQ(test, op.last_id, 49);
	op.first_id = 40;
	KUNIT_EXPECT_FALSE(test, sc_op_shorten(&bucket, &op));
	op.first_id = 61;
	op.last_id = 70;
	KUNIT_EXPECT_TRUE(test, sc_op_shorten(&bucket, &op));
	KUNIT_EXPECT_EQ(test, op.last_id, 70);
}

static void setcache_set_matches_a_list(struct kunit *test)
{
	struct sc_index *index = setcache_test_make_index(test, 8ULL * ASSOC * SETS * 50);
	struct rnd_state rnd;
	u32 held[ASSOC];
	u32 round, i, used = 0, dirty = 0, set = 3;

	memset(held, 0xff, sizeof(held));
	prandom_seed_state(&rnd, 1);
	for (round = 0; round < 20000; round++) {
		u32 r = prandom_u32_state(&rnd);
		u16 slot = r % ASSOC;
		u32 id = (r >> 8) % (ASSOC * 50);
		u16 found = sc_find_slot(index, set, id);

		for (i = 0; i < ASSOC && held[i] != id; i++)
			;
		KUNIT_ASSERT_EQ(test, found, i < ASSOC ? i : SC_NIL);
		if (held[slot] != U32_MAX) {
			dirty -= sc_get_slot_state(index, set, slot) >=
				 SC_SLOT_DIRTY;
			sc_remove_block(index, set, slot);
			held[slot] = U32_MAX;
			used--;
		} else if (found == SC_NIL) {
			enum sc_slot_state state = SC_SLOT_CLEAN + r % 2;

			sc_insert_block(index, set, slot, id, state);
			held[slot] = id;
			dirty += state == SC_SLOT_DIRTY;
			used++;
		}
		KUNIT_ASSERT_EQ(test, index->sets[set].nr_used, used);
		KUNIT_ASSERT_EQ(test, index->sets[set].nr_dirty, dirty);
		KUNIT_ASSERT_EQ(test, atomic_long_read(&index->nr_used), used);
		KUNIT_ASSERT_EQ(test, atomic_long_read(&index->nr_dirty),
				dirty);
	}
	sc_index_exit(index);
}

/* Fill a set with ids 0..ASSOC-1, in this order. */
static void setcache_test_fill_set(struct kunit *test, struct sc_index *index, u32 set,
				   enum sc_policy policy)
{
	bool replaced;
	u32 id;

	for (id = 0; id < ASSOC; id++) {
		u16 slot =
			sc_take_slot(index, set, id, SC_NIL, policy, &replaced);

		/* Free slots are taken in order of their position on the SSD. */
		KUNIT_ASSERT_EQ(test, slot, id);
		KUNIT_ASSERT_FALSE(test, replaced);
		sc_set_slot_state(index, set, slot, SC_SLOT_CLEAN);
	}
}

static u32 setcache_test_take_one(struct kunit *test, struct sc_index *index, u32 set, u32 id,
				  enum sc_policy policy)
{
	bool replaced;
	u16 slot = sc_take_slot(index, set, id, SC_NIL, policy, &replaced);

	if (slot == SC_NIL)
		return U32_MAX;
	KUNIT_EXPECT_TRUE(test, replaced);
	KUNIT_EXPECT_EQ(test, (int)sc_get_slot_state(index, set, slot),
			SC_SLOT_FILLING);
	sc_set_slot_state(index, set, slot, SC_SLOT_CLEAN);
	return slot;
}

static void setcache_fifo_and_lru_evict_in_their_order(struct kunit *test)
{
	struct sc_index *index = setcache_test_make_index(test, 8ULL * ASSOC * SETS * 50);
	u32 i, set = 2;

	setcache_test_fill_set(test, index, set, SC_POLICY_FIFO);
	for (i = 0; i < ASSOC / 2; i++)
		sc_touch_slot(index, set, i, SC_POLICY_FIFO, false);
	for (i = 0; i < ASSOC; i++)
		KUNIT_EXPECT_EQ(test,
				setcache_test_take_one(test, index, set, 1000 + i, SC_POLICY_FIFO),
				i);
	sc_index_clear(index);

	setcache_test_fill_set(test, index, set, SC_POLICY_LRU);
	for (i = 0; i < ASSOC / 2; i++)
		sc_touch_slot(index, set, i, SC_POLICY_LRU, false);
	for (i = 0; i < ASSOC; i++)
		KUNIT_EXPECT_EQ(test,
				setcache_test_take_one(test, index, set, 1000 + i, SC_POLICY_LRU),
				(i + ASSOC / 2) % ASSOC);
	sc_index_exit(index);
}

static void setcache_order_survives_a_clock_wrap(struct kunit *test)
{
	struct sc_index *index = setcache_test_make_index(test, 8ULL * ASSOC * SETS * 50);
	u32 i, set = 2;

	setcache_test_fill_set(test, index, set, SC_POLICY_LRU);
	/* One block is used over and over; all others stay older than it. */
	for (i = 0; i < 300000; i++)
		sc_touch_slot(index, set, 5, SC_POLICY_LRU, false);
	for (i = 0; i < ASSOC - 1; i++)
		KUNIT_EXPECT_NE(test,
				setcache_test_take_one(test, index, set, 1000 + i, SC_POLICY_LRU),
				5);
	KUNIT_EXPECT_EQ(test, setcache_test_take_one(test, index, set, 2000, SC_POLICY_LRU), 5);
	sc_index_exit(index);
}

static void setcache_large_set_evicts_old_blocks(struct kunit *test)
{
	struct sc_index *index =
		kunit_kzalloc(test, sizeof(*index), GFP_KERNEL);
	bool replaced;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, index);
	index->geo.block_sectors = 8;
	index->geo.assoc = 1024;
	index->geo.nr_sets = 1;
	index->geo.origin_sectors = 8ULL * 1024 * 50;
	KUNIT_ASSERT_EQ(test, sc_index_init(index), 0);
	for (i = 0; i < 1024; i++) {
		KUNIT_ASSERT_EQ(test,
				sc_take_slot(index, 0, i, SC_NIL, SC_POLICY_LRU,
					     &replaced),
				i);
		sc_set_slot_state(index, 0, i, SC_SLOT_CLEAN);
	}
	/* The first half is used again and again, for several rounds of the clock. */
	for (i = 0; i < 300000; i++)
		sc_touch_slot(index, 0, i % 512, SC_POLICY_LRU, false);
	for (i = 0; i < 256; i++) {
		u16 slot = sc_take_slot(index, 0, 2000 + i, SC_NIL,
					SC_POLICY_LRU, &replaced);

		KUNIT_ASSERT_NE(test, slot, SC_NIL);
		KUNIT_EXPECT_GE(test, slot, 512);
		sc_set_slot_state(index, 0, slot, SC_SLOT_CLEAN);
	}
	sc_index_exit(index);
}

static void setcache_retired_and_suspect_slots_are_never_taken(struct kunit *test)
{
	struct sc_index *index = setcache_test_make_index(test, 8ULL * ASSOC * SETS * 50);
	u32 i, set = 1;
	bool replaced;

	for (i = 0; i < ASSOC; i += 2)
		sc_withdraw_slot(index, set, i,
				 i % 4 ? SC_SLOT_SUSPECT : SC_SLOT_RETIRED);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&index->nr_retired), ASSOC / 4);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&index->nr_used), 0);
	for (i = 0; i < ASSOC / 2; i++)
		KUNIT_EXPECT_EQ(test,
				sc_take_slot(index, set, i, SC_NIL,
					     SC_POLICY_LRU, &replaced) %
					2,
				1);
	KUNIT_EXPECT_EQ(test,
			sc_take_slot(index, set, 1000, SC_NIL, SC_POLICY_LRU,
				     &replaced),
			SC_NIL);
	/* A suspect slot that is restored is taken next. */
	sc_restore_slot(index, set, 2);
	KUNIT_EXPECT_EQ(test,
			sc_take_slot(index, set, 1000, SC_NIL, SC_POLICY_LRU,
				     &replaced),
			2);
	sc_index_exit(index);
}

static void setcache_dirty_and_busy_blocks_are_never_evicted(struct kunit *test)
{
	static const enum sc_policy policies[] = {
		SC_POLICY_FIFO, SC_POLICY_LRU, SC_POLICY_RANDOM,
	};
	struct sc_index *index = setcache_test_make_index(test, 8ULL * ASSOC * SETS * 50);
	struct sc_op op = { .set = 2, .first_id = 10, .last_id = 19 };
	u32 i, p, set = 2;

	for (p = 0; p < ARRAY_SIZE(policies); p++) {
		bool replaced;

		sc_index_clear(index);
		INIT_LIST_HEAD(&sc_get_bucket(index, set)->active);
		setcache_test_fill_set(test, index, set, policies[p]);
		for (i = 0; i < ASSOC; i++)
			if (i % 2)
				sc_set_slot_state(index, set, i,
						  SC_SLOT_DIRTY + i % 3);
		list_add(&op.link, &sc_get_bucket(index, set)->active);
		/* Even slots, without 10, 12 .. 18. */
		for (i = 0; i < ASSOC / 2 - 5; i++) {
			u16 slot = sc_take_slot(index, set, 1000 + i, SC_NIL,
						policies[p], &replaced);

			KUNIT_ASSERT_NE(test, slot, SC_NIL);
			KUNIT_EXPECT_EQ(test, slot % 2, 0);
			KUNIT_EXPECT_FALSE(test, slot >= 10 && slot <= 19);
		}
		KUNIT_EXPECT_EQ(test,
				sc_take_slot(index, set, 2000, SC_NIL,
					     policies[p], &replaced),
				SC_NIL);
	}
	sc_index_exit(index);
}

static void setcache_streams_are_distinguished(struct kunit *test)
{
	struct sc_flows *flows = sc_flows_create();
	sector_t at[16];
	u32 i, step, odd = 0;

	KUNIT_ASSERT_NOT_NULL(test, flows);
	for (i = 0; i < 16; i++)
		at[i] = i * 1000003ULL;
	for (step = 0; step < 100; step++) {
		for (i = 0; i < 16; i++) {
			/* Sixteen streams are few enough for the entries of each hash. */
			odd += sc_flow_add(flows, at[i], 8, jiffies) !=
			       step * 8;
			at[i] += 8;
		}
	}
	KUNIT_EXPECT_EQ(test, odd, 0);
	/* A request that does not continue a stream is not a part of one. */
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, sc_flow_add(flows, at[i] + 8, 8, jiffies),
				0);
	/* A stream that has paused too long is forgotten. */
	KUNIT_EXPECT_EQ(test,
			sc_flow_add(flows, at[0], 8,
				    jiffies + SC_FLOW_LIFE_JIFFIES + HZ),
			0);
	kvfree(flows);
}

/* Transitions as in the table of setcache-state.c; -1: none. */
static void setcache_phases_move_as_the_table_says(struct kunit *test)
{
	static const int table[SC_NR_PHASES][SC_NR_EVENTS] = {
		[SC_PHASE_NEW] = {
			SC_PHASE_NEW, SC_PHASE_LIVE, -1, -1, -1, -1,
		},
		[SC_PHASE_LIVE] = {
			-1, -1, -1, SC_PHASE_STOPPED, SC_PHASE_LOST, -1,
		},
		[SC_PHASE_STOPPED] = {
			SC_PHASE_NEW, -1, SC_PHASE_LIVE, -1, -1, -1,
		},
		[SC_PHASE_LOST] = {
			SC_PHASE_NEW, -1, -1, -1, -1, SC_PHASE_REPORTED,
		},
		[SC_PHASE_REPORTED] = { SC_PHASE_NEW, -1, -1, -1, -1, -1 },
	};
	struct setcache *sc = kunit_kzalloc(test, sizeof(*sc), GFP_KERNEL);
	int phase, event;

	KUNIT_ASSERT_NOT_NULL(test, sc);
	for (phase = 0; phase < SC_NR_PHASES; phase++) {
		for (event = 0; event < SC_NR_EVENTS; event++) {
			int to = table[phase][event];

			sc->state.phase = phase;
			KUNIT_EXPECT_EQ(test, sc_phase_move(sc, event),
					to >= 0);
			KUNIT_EXPECT_EQ(test, sc->state.phase,
					to < 0 ? phase : to);
			KUNIT_EXPECT_EQ(test, sc_is_lost(sc),
					sc->state.phase == SC_PHASE_LOST ||
						sc->state.phase ==
							SC_PHASE_REPORTED);
		}
	}
}

static void setcache_loss_fails_a_flush_once(struct kunit *test)
{
	struct setcache *sc = kunit_kzalloc(test, sizeof(*sc), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sc);
	sc_phase_begin_read(sc);
	sc_phase_end_read(sc);
	KUNIT_EXPECT_EQ(test, sc->state.phase, SC_PHASE_LIVE);
	KUNIT_EXPECT_FALSE(test, sc_must_report_loss(sc, false));

	/* The SSD is lost with acknowledged data, and a flush fails while it is lost. */
	sc_set_unsafe_data(sc);
	KUNIT_EXPECT_TRUE(test, sc_phase_move(sc, SC_EVENT_LOSE));
	KUNIT_EXPECT_FALSE(test, sc_phase_move(sc, SC_EVENT_LOSE));
	KUNIT_EXPECT_TRUE(test, sc_is_unsafe(sc));
	KUNIT_EXPECT_TRUE(test, sc_must_report_loss(sc, true));
	KUNIT_EXPECT_EQ(test, sc->state.phase, SC_PHASE_REPORTED);
	sc_phase_begin_read(sc);
	sc_phase_end_read(sc);
	KUNIT_EXPECT_FALSE(test, sc_is_unsafe(sc));
	KUNIT_EXPECT_FALSE(test, sc_must_report_loss(sc, false));

	/* The SSD is lost with records only, and is back before a flush. */
	sc_set_unsafe_records(sc);
	sc_phase_move(sc, SC_EVENT_LOSE);
	sc_phase_begin_read(sc);
	sc_phase_end_read(sc);
	KUNIT_EXPECT_FALSE(test, sc_is_unsafe(sc));
	KUNIT_EXPECT_TRUE(test, sc_must_report_loss(sc, false));
	KUNIT_EXPECT_FALSE(test, sc_must_report_loss(sc, false));

	/* The SSD is lost with nothing unsafe. */
	sc_phase_move(sc, SC_EVENT_LOSE);
	sc_phase_begin_read(sc);
	sc_phase_end_read(sc);
	KUNIT_EXPECT_FALSE(test, sc_must_report_loss(sc, false));

	/* A stop leaves nothing unsafe. */
	sc_set_unsafe_data(sc);
	sc_phase_end_stop(sc);
	KUNIT_EXPECT_EQ(test, sc->state.phase, SC_PHASE_STOPPED);
	KUNIT_EXPECT_FALSE(test, sc_is_unsafe(sc));
	KUNIT_EXPECT_TRUE(test, sc_phase_move(sc, SC_EVENT_RESUME));
	KUNIT_EXPECT_EQ(test, sc->state.phase, SC_PHASE_LIVE);
}

static void setcache_failed_commit_is_unsafe_again(struct kunit *test)
{
	struct setcache *sc = kunit_kzalloc(test, sizeof(*sc), GFP_KERNEL);
	struct sc_unsafe unsafe;

	KUNIT_ASSERT_NOT_NULL(test, sc);
	sc_set_unsafe_records(sc);
	unsafe = sc_take_unsafe(sc);
	KUNIT_EXPECT_FALSE(test, unsafe.data);
	KUNIT_EXPECT_TRUE(test, unsafe.records);
	KUNIT_EXPECT_FALSE(test, sc_is_unsafe(sc));
	/* Data written during the commit stay unsafe as well. */
	sc_set_unsafe_data(sc);
	sc_put_unsafe(sc, unsafe);
	unsafe = sc_take_unsafe(sc);
	KUNIT_EXPECT_TRUE(test, unsafe.data);
	KUNIT_EXPECT_TRUE(test, unsafe.records);
}

static struct kunit_case setcache_cases[] = {
	KUNIT_CASE(setcache_phases_move_as_the_table_says),
	KUNIT_CASE(setcache_loss_fails_a_flush_once),
	KUNIT_CASE(setcache_failed_commit_is_unsafe_again),
	KUNIT_CASE(setcache_block_and_id_are_inverse),
	KUNIT_CASE(setcache_origin_too_large_for_ids_is_refused),
	KUNIT_CASE(setcache_large_disks_have_no_overflow),
	KUNIT_CASE(setcache_too_many_slots_are_refused),
	KUNIT_CASE(setcache_geometry_uses_all_space),
	KUNIT_CASE(setcache_record_damage_is_detected),
	KUNIT_CASE(setcache_moved_records_are_found),
	KUNIT_CASE(setcache_ops_wait_by_class),
	KUNIT_CASE(setcache_cleaner_stops_before_other_ops),
	KUNIT_CASE(setcache_set_matches_a_list),
	KUNIT_CASE(setcache_fifo_and_lru_evict_in_their_order),
	KUNIT_CASE(setcache_order_survives_a_clock_wrap),
	KUNIT_CASE(setcache_large_set_evicts_old_blocks),
	KUNIT_CASE(setcache_retired_and_suspect_slots_are_never_taken),
	KUNIT_CASE(setcache_dirty_and_busy_blocks_are_never_evicted),
	KUNIT_CASE(setcache_streams_are_distinguished),
	{}
};

static struct kunit_suite setcache_suite = {
	.name = "setcache",
	.test_cases = setcache_cases,
};

kunit_test_suite(setcache_suite);

MODULE_DESCRIPTION("KUnit tests of dm-setcache");
MODULE_LICENSE("GPL");
