// SPDX-License-Identifier: GPL-2.0-only
/*
 * isoblk's arithmetic: the cost model, virtual time, and room.
 *
 * The code under test is compiled into this module, which needs no other one.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include "../sched/isoblk/cost.c"
#include "../sched/isoblk/room.c"
#include "../sched/isoblk/vtime.h"

#define SHARE(part)	((u32)(ISOBLK_SHARE_ONE / (part)))

/* ---- products ------------------------------------------------------------ */

/* A division of more than 64 bits is an exception on some processors. */
static void isoblk_muldiv_saturates(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, mul_div(7, 9, 4), 15);
	KUNIT_EXPECT_EQ(test, mul_div(0, U64_MAX, 1), 0);
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, 3, 4), U64_MAX / 4 * 3 + 2);
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, 3, 3), U64_MAX);
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, U64_MAX, U64_MAX), U64_MAX);
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, 5, 4), U64_MAX);
	KUNIT_EXPECT_EQ(test, mul_div(BIT_ULL(32), BIT_ULL(32), 1), U64_MAX);
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, U64_MAX, 1), U64_MAX);
}

/* ---- virtual time -------------------------------------------------------- */

static void isoblk_vtime_step_is_cost_over_share(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vtime_step(8, ISOBLK_SHARE_ONE), 8);
	KUNIT_EXPECT_EQ(test, vtime_step(8, SHARE(4)), 32);
	KUNIT_EXPECT_EQ(test, vtime_step(0, SHARE(4)), 0);
}

static void isoblk_vtime_step_is_bounded(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vtime_step(COST_MAX, 1), VTIME_STEP_MAX);
	KUNIT_EXPECT_EQ(test, vtime_step(U64_MAX, 1), VTIME_STEP_MAX);
	KUNIT_EXPECT_TRUE(test, vtime_before(0, VTIME_STEP_MAX));
	KUNIT_EXPECT_TRUE(test, vtime_before(U64_MAX - 5,
					     U64_MAX - 5 + VTIME_STEP_MAX));
	/* The longest request of a group with 1/1024 of the disk is charged in full. */
	KUNIT_EXPECT_EQ(test, vtime_step(COST_MAX, SHARE(1024)), COST_MAX << 10);
}

static void isoblk_vtimes_compare_across_the_wrap(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, vtime_before(U64_MAX - 5, 5));
	KUNIT_EXPECT_FALSE(test, vtime_before(5, U64_MAX - 5));
	KUNIT_EXPECT_FALSE(test, vtime_before(7, 7));
	KUNIT_EXPECT_EQ(test, vtime_later(U64_MAX - 5, 5), 5);
	KUNIT_EXPECT_EQ(test, vtime_later(5, U64_MAX - 5), 5);
	KUNIT_EXPECT_EQ(test, vtime_later(3, 4), 4);
}

static void isoblk_vtime_lead_stays_the_same_cost(struct kunit *test)
{
	u64 now = 1000000;

	/* A share of 1/4 becomes 1/8: the lead doubles. */
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + 640, now, SHARE(4), SHARE(8)),
			now + 1280);
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + 640, now, SHARE(8), SHARE(4)),
			now + 320);
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + 640, now, SHARE(8), SHARE(8)),
			now + 640);
	/* Virtual time wraps. */
	KUNIT_EXPECT_EQ(test, vtime_rescale(40, (u64)-600, SHARE(4), SHARE(8)), 680);
	/* The only group so far, from now on alongside a group of far larger weight. */
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + BIT_ULL(57), now, ISOBLK_SHARE_ONE, 1),
			now + VTIME_STEP_MAX);
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + 640, now, SHARE(4), 0),
			now + 640ULL * SHARE(4));
}

static void isoblk_vtime_lag_is_not_rescaled(struct kunit *test)
{
	u64 now = 1000000;

	KUNIT_EXPECT_EQ(test, vtime_rescale(now - 640, now, SHARE(4), SHARE(8)),
			now - 640);
	KUNIT_EXPECT_EQ(test, vtime_rescale(now, now, SHARE(4), SHARE(8)), now);
	/* The lead of a group without a share is kept as well. */
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + 640, now, 0, SHARE(8)),
			now + 640);
}

/* ---- cost ---------------------------------------------------------------- */

/* Sectors of the largest request. */
#define SECTORS_MAX	(U32_MAX >> SECTOR_SHIFT)

#define COST_LINE_MAX	((u64)S64_MAX >> COST_SHIFT)

#define READS		"rbps=1000000000 rseqiops=200000 rrandiops=100000"
#define WRITES		"wbps=500000000 wseqiops=50000 wrandiops=25000"

static const char model_text[] = READS " " WRITES;
static const char other_text[] =
	"  wrandiops=25000\twseqiops=50000  wbps=500000000 " READS "\n";

static int cost_test_parse(struct cost_model *m, const char *text)
{
	char copy[256];

	strscpy(copy, text, sizeof(copy));
	return cost_parse(m, copy);
}

static void cost_test_parse_rates(struct kunit *test, struct cost_model *m, u64 bps, u64 iops)
{
	char text[256];

	scnprintf(text, sizeof(text),
		  "rbps=%llu rseqiops=%llu rrandiops=%llu wbps=%llu wseqiops=%llu wrandiops=%llu",
		  bps, iops, iops, bps, iops, iops);
	KUNIT_ASSERT_EQ(test, cost_parse(m, text), 0);
}

static void isoblk_cost_model_is_parsed_in_any_order(struct kunit *test)
{
	struct cost_model m = {}, n = {};

	KUNIT_ASSERT_EQ(test, cost_test_parse(&m, model_text), 0);
	KUNIT_EXPECT_EQ(test, m.source, COST_USER);
	KUNIT_EXPECT_EQ(test, m.line[COST_RBPS], 1000000000);
	KUNIT_EXPECT_EQ(test, m.line[COST_RSEQIOPS], 200000);
	KUNIT_EXPECT_EQ(test, m.line[COST_RRANDIOPS], 100000);
	KUNIT_EXPECT_EQ(test, m.line[COST_WBPS], 500000000);
	KUNIT_EXPECT_EQ(test, m.line[COST_WSEQIOPS], 50000);
	KUNIT_EXPECT_EQ(test, m.line[COST_WRANDIOPS], 25000);
	KUNIT_ASSERT_EQ(test, cost_test_parse(&n, other_text), 0);
	KUNIT_EXPECT_MEMEQ(test, &m, &n, sizeof(m));
}

static const struct {
	const char *text;
	int error;
} refused[] = {
	{ "", -EINVAL },
	{ "\n", -EINVAL },
	{ "garbage", -EINVAL },
	{ "rbps", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5", -EINVAL },
	{ "rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6 x=7", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6 wbps=4", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 =6", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 WRANDIOPS=6", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6k", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=0x6", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=-6", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops = 6", -EINVAL },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=0", -ERANGE },
	/* One above the largest rate. */
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=9007199254740992", -ERANGE },
	{ "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=18446744073709551616",
	  -ERANGE },
};

static void isoblk_cost_model_refused_changes_nothing(struct kunit *test)
{
	struct cost_model m = {}, was;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, cost_test_parse(&m, model_text), 0);
	was = m;
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		KUNIT_EXPECT_EQ_MSG(test, cost_test_parse(&m, refused[i].text), refused[i].error,
				    "%s", refused[i].text);
		KUNIT_EXPECT_MEMEQ(test, &m, &was, sizeof(m));
	}
}

static void isoblk_cost_model_printed_can_be_parsed(struct kunit *test)
{
	struct cost_model m = {}, n = {};
	char text[256];
	int len;

	KUNIT_ASSERT_EQ(test, cost_test_parse(&m, model_text), 0);
	len = cost_print(&m, text, sizeof(text));
	KUNIT_EXPECT_EQ(test, len, (int)strlen(text));
	KUNIT_EXPECT_EQ(test, strncmp(text, "user ", 5), 0);
	KUNIT_EXPECT_STREQ(test, &text[5], &model_text[0]);
	KUNIT_EXPECT_EQ(test, cost_test_parse(&n, &text[5]), 0);
	KUNIT_EXPECT_MEMEQ(test, &m, &n, sizeof(m));
}

static void isoblk_cost_model_is_printed_by_its_source(struct kunit *test)
{
	struct cost_model m;
	char text[256], all[6 * 32];

	cost_set_auto(&m, COST_FLASH);
	cost_print(&m, text, sizeof(text));
	KUNIT_EXPECT_EQ(test, strncmp(text, "auto rbps=2300000000 ", 21), 0);
	cost_set_bytes(&m);
	KUNIT_EXPECT_EQ(test, cost_print(&m, text, sizeof(text)), 5);
	KUNIT_EXPECT_STREQ(test, &text[0], "bytes");
	/* The longest line fits a page; a longer one is cut. */
	cost_test_parse_rates(test, &m, COST_LINE_MAX, COST_LINE_MAX);
	KUNIT_EXPECT_LT(test, cost_print(&m, text, sizeof(text)), (int)sizeof(all));
	KUNIT_EXPECT_EQ(test, cost_print(&m, text, 8), 7);
	KUNIT_EXPECT_EQ(test, text[7], 0);
}

/* 4 KiB cost what the request rate says; further sectors what the byte rate says. */
static void isoblk_cost_follows_the_rates(struct kunit *test)
{
	struct cost_model m = {};
	u64 more;

	KUNIT_ASSERT_EQ(test, cost_test_parse(&m, model_text), 0);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, 8, true), NSEC_PER_SEC / 200000);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, 8, false), NSEC_PER_SEC / 100000);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_WRITE, 8, true), NSEC_PER_SEC / 50000);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_WRITE, 8, false), NSEC_PER_SEC / 25000);
	more = cost_of(&m, ISOBLK_READ, 2048 + 8, false) - cost_of(&m, ISOBLK_READ, 8, false);
	KUNIT_EXPECT_EQ(test, more, 1048576);
	more = cost_of(&m, ISOBLK_WRITE, 2048 + 8, true) - cost_of(&m, ISOBLK_WRITE, 8, true);
	KUNIT_EXPECT_EQ(test, more, 2 * 1048576);
}

static void isoblk_cost_of_discard_is_write_without_data(struct kunit *test)
{
	struct cost_model m = {};
	u64 cost = NSEC_PER_SEC / 25000;

	KUNIT_ASSERT_EQ(test, cost_test_parse(&m, model_text), 0);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_DISCARD, 8, false), cost);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_DISCARD, SECTORS_MAX, false), cost);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_DISCARD, SECTORS_MAX, true), cost);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_WRITE, 0, false), cost);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_WRITE, 0, true),
			cost_of(&m, ISOBLK_WRITE, ISOBLK_NO_DATA_COST, true));
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, 0, false),
			cost_of(&m, ISOBLK_READ, ISOBLK_NO_DATA_COST, false));
}

/* Invariants of any model. */
static void cost_test_expect_sane(struct kunit *test, const struct cost_model *m)
{
	static const u64 sectors[] = { 0, 1, 7, 8, 9, 256, 2048, 65535, SECTORS_MAX, U32_MAX };
	bool ordered;
	u64 cost, least;
	unsigned int i;
	int op;

	for (op = ISOBLK_READ; op < ISOBLK_NR_OPS; op++) {
		const u64 *line = &m->line[op == ISOBLK_READ ? COST_RBPS : COST_WBPS];

		ordered = line[1] >= line[2];
		least = 1;
		for (i = 0; i < ARRAY_SIZE(sectors); i++) {
			cost = cost_of(m, op, sectors[i], false);
			KUNIT_EXPECT_GE(test, cost, 1);
			KUNIT_EXPECT_LE(test, cost, COST_MAX);
			if (ordered)
				KUNIT_EXPECT_LE(test, cost_of(m, op, sectors[i], true), cost);
			if (!sectors[i])
				continue;
			KUNIT_EXPECT_GE(test, cost, least);
			least = cost;
		}
	}
}

static void isoblk_cost_is_sane_at_all_rates(struct kunit *test)
{
	static const u64 rates[] = {
		1, 2, 999, 122070, 1000000, 999999999, 1000000000, 1000000001, 1000000000000,
		COST_LINE_MAX,
	};
	struct cost_model m;
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(rates); i++)
		for (k = 0; k < ARRAY_SIZE(rates); k++) {
			cost_test_parse_rates(test, &m, rates[i], rates[k]);
			cost_test_expect_sane(test, &m);
		}
	cost_test_parse_rates(test, &m, 1, 1);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, SECTORS_MAX, false), COST_MAX);
	/* 4 KiB at the lowest byte rate that the cost of a sector can represent. */
	KUNIT_EXPECT_GE(test, cost_of(&m, ISOBLK_READ, 8, false), NSEC_PER_SEC);
	/* By byte rate 4 KiB take longer than by request rate: they cost their bytes. */
	cost_test_parse_rates(test, &m, 1000000, 1000000);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, 8, false), 4096000 + 1);
	cost_test_parse_rates(test, &m, COST_LINE_MAX, COST_LINE_MAX);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, 8, false), 1);
}

static void isoblk_cost_models_cover_all_kinds_of_disks(struct kunit *test)
{
	struct cost_model m;
	int kind;

	for (kind = 0; kind < COST_KINDS; kind++) {
		cost_set_auto(&m, kind);
		KUNIT_EXPECT_EQ(test, m.source, COST_AUTO);
		cost_test_expect_sane(test, &m);
	}
	cost_set_auto(&m, COST_ROTATIONAL);
	/* A seek takes longer than a track: 5 ms, and 4 KiB of a stream 25 us. */
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, 8, false), 5000000);
	KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, 8, true), 25000);
	cost_set_auto(&m, COST_FLASH);
	KUNIT_EXPECT_LT(test, cost_of(&m, ISOBLK_READ, 8, false),
			cost_of(&m, ISOBLK_WRITE, 8, false));
}

static void isoblk_cost_of_bytes_is_equal_in_any_request(struct kunit *test)
{
	struct cost_model m = {};
	u64 sectors, one;

	KUNIT_ASSERT_EQ(test, cost_test_parse(&m, model_text), 0);
	cost_set_bytes(&m);
	KUNIT_EXPECT_EQ(test, m.source, COST_BYTES);
	one = cost_of(&m, ISOBLK_READ, 1, false);
	for (sectors = 1; sectors < 65536; sectors *= 3) {
		KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, sectors, false), sectors * one);
		KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_READ, sectors, true), sectors * one);
		KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_WRITE, sectors, false), sectors * one);
		KUNIT_EXPECT_EQ(test, cost_of(&m, ISOBLK_WRITE, sectors, true), sectors * one);
	}
	cost_test_expect_sane(test, &m);
}

/* ---- room ---------------------------------------------------------------- */

static struct iso_room *room_test_make(struct kunit *test, unsigned int nr, u64 size)
{
	struct iso_room *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_EQ(test, iso_room_init(r, nr, NUMA_NO_NODE), 0);
	iso_room_resize(r, size);
	return r;
}

/* Queues take room in any order: never more than there is, and in the end all of it. */
static void isoblk_room_is_neither_lost_nor_made(struct kunit *test)
{
	struct iso_room *r = room_test_make(test, 4, 100);
	u64 taken[4] = { }, all = 0, much;
	struct rnd_state rnd;
	unsigned int step, i;

	prandom_seed_state(&rnd, 1);
	for (step = 0; step < 10000; step++) {
		i = prandom_u32_state(&rnd) % 4;
		much = 1 + prandom_u32_state(&rnd) % 40;
		switch (prandom_u32_state(&rnd) % 8) {
		case 0:
			iso_room_resize(r, 50 + prandom_u32_state(&rnd) % 100);
			break;
		case 1: case 2: case 3:
			much = min(much, taken[i]);
			iso_room_put(r, i, much, prandom_u32_state(&rnd) % 2);
			taken[i] -= much;
			all -= much;
			break;
		default:
			KUNIT_ASSERT_EQ(test, iso_room_has(r, i, much),
					all + much <= r->size);
			if (iso_room_get(r, i, much)) {
				KUNIT_ASSERT_LE(test, all + much, r->size);
				taken[i] += much;
				all += much;
			} else {
				KUNIT_ASSERT_GT(test, all + much, r->size);
			}
		}
		KUNIT_ASSERT_EQ(test, iso_room_used(r), (s64)all);
	}
	iso_room_exit(r);
}

static void isoblk_room_forced_is_owed(struct kunit *test)
{
	struct iso_room *r = room_test_make(test, 2, 10);

	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 0, 10));
	iso_room_force(r, 0, 5);
	KUNIT_EXPECT_EQ(test, iso_room_used(r), 15);
	KUNIT_EXPECT_FALSE(test, iso_room_get(r, 1, 1));
	iso_room_put(r, 0, 5, true);
	KUNIT_EXPECT_FALSE(test, iso_room_get(r, 1, 1));
	iso_room_put(r, 0, 1, true);
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 1, 1));
	iso_room_exit(r);
}

static void isoblk_room_that_shrinks_is_owed(struct kunit *test)
{
	struct iso_room *r = room_test_make(test, 2, 100);

	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 0, 60));
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 1, 30));
	iso_room_resize(r, 50);
	KUNIT_EXPECT_EQ(test, iso_room_used(r), 90);
	KUNIT_EXPECT_FALSE(test, iso_room_has(r, 0, 1));
	KUNIT_EXPECT_FALSE(test, iso_room_get(r, 0, 1));
	/* No queue waits for room: the debt is paid nevertheless. */
	iso_room_put(r, 0, 40, false);
	KUNIT_EXPECT_EQ(test, iso_room_used(r), 50);
	KUNIT_EXPECT_FALSE(test, iso_room_get(r, 0, 1));
	iso_room_put(r, 0, 20, false);
	KUNIT_EXPECT_FALSE(test, iso_room_get(r, 1, 21));
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 1, 20));
	iso_room_put(r, 1, 50, false);
	KUNIT_EXPECT_EQ(test, iso_room_used(r), 0);
	/* All room is free again, and no more than that. */
	KUNIT_EXPECT_FALSE(test, iso_room_has(r, 0, 51));
	KUNIT_EXPECT_FALSE(test, iso_room_get(r, 0, 51));
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 0, 50));
	iso_room_exit(r);
}

static void isoblk_room_that_grows_is_usable_at_once(struct kunit *test)
{
	struct iso_room *r = room_test_make(test, 3, 10);

	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 0, 10));
	iso_room_resize(r, 14);
	KUNIT_EXPECT_TRUE(test, iso_room_has(r, 2, 4));
	KUNIT_EXPECT_FALSE(test, iso_room_has(r, 2, 5));
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 2, 4));
	iso_room_resize(r, 0);
	KUNIT_EXPECT_EQ(test, iso_room_used(r), 14);
	iso_room_exit(r);
}

/* Room in the lease of one queue is available to another queue that finds none. */
static void isoblk_room_leases_are_taken_back(struct kunit *test)
{
	struct iso_room *r = room_test_make(test, 4, 80);
	unsigned int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_TRUE(test, iso_room_get(r, i, 5));
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, atomic64_read(&r->lease[i].spare), 5);
	KUNIT_EXPECT_TRUE(test, iso_room_has(r, 2, 60));
	KUNIT_EXPECT_FALSE(test, iso_room_has(r, 2, 61));
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 2, 60));
	KUNIT_EXPECT_EQ(test, iso_room_used(r), 80);
	iso_room_exit(r);
}

/* While a queue waits for room no lease keeps any. */
static void isoblk_room_wanted_goes_to_the_pool(struct kunit *test)
{
	struct iso_room *r = room_test_make(test, 2, 100);

	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 0, 10));
	iso_room_put(r, 0, 5, false);
	KUNIT_EXPECT_EQ(test, atomic64_read(&r->lease[0].spare), 20);
	iso_room_put(r, 0, 0, true);
	KUNIT_EXPECT_EQ(test, atomic64_read(&r->lease[0].spare), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&r->pool), 95);
	iso_room_exit(r);
}

static void isoblk_room_of_a_single_queue_is_all(struct kunit *test)
{
	struct iso_room *r = room_test_make(test, 1, 100);

	KUNIT_EXPECT_FALSE(test, iso_room_get(r, 0, 101));
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 0, 1));
	KUNIT_EXPECT_EQ(test, atomic64_read(&r->pool), 0);
	KUNIT_EXPECT_TRUE(test, iso_room_has(r, 0, 99));
	KUNIT_EXPECT_FALSE(test, iso_room_has(r, 0, 100));
	/* The size at which the window is off. */
	iso_room_resize(r, S64_MAX / 4);
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 0, COST_MAX));
	iso_room_resize(r, 100);
	KUNIT_EXPECT_EQ(test, iso_room_used(r), (s64)COST_MAX + 1);
	iso_room_put(r, 0, COST_MAX + 1, false);
	KUNIT_EXPECT_TRUE(test, iso_room_get(r, 0, 100));
	KUNIT_EXPECT_FALSE(test, iso_room_get(r, 0, 1));
	iso_room_exit(r);
}

static struct kunit_case isoblk_cases[] = {
	KUNIT_CASE(isoblk_muldiv_saturates),
	KUNIT_CASE(isoblk_vtime_step_is_cost_over_share),
	KUNIT_CASE(isoblk_vtime_step_is_bounded),
	KUNIT_CASE(isoblk_vtimes_compare_across_the_wrap),
	KUNIT_CASE(isoblk_vtime_lead_stays_the_same_cost),
	KUNIT_CASE(isoblk_vtime_lag_is_not_rescaled),
	KUNIT_CASE(isoblk_cost_model_is_parsed_in_any_order),
	KUNIT_CASE(isoblk_cost_model_refused_changes_nothing),
	KUNIT_CASE(isoblk_cost_model_printed_can_be_parsed),
	KUNIT_CASE(isoblk_cost_model_is_printed_by_its_source),
	KUNIT_CASE(isoblk_cost_follows_the_rates),
	KUNIT_CASE(isoblk_cost_of_discard_is_write_without_data),
	KUNIT_CASE(isoblk_cost_is_sane_at_all_rates),
	KUNIT_CASE(isoblk_cost_models_cover_all_kinds_of_disks),
	KUNIT_CASE(isoblk_cost_of_bytes_is_equal_in_any_request),
	KUNIT_CASE(isoblk_room_is_neither_lost_nor_made),
	KUNIT_CASE(isoblk_room_forced_is_owed),
	KUNIT_CASE(isoblk_room_that_shrinks_is_owed),
	KUNIT_CASE(isoblk_room_that_grows_is_usable_at_once),
	KUNIT_CASE(isoblk_room_leases_are_taken_back),
	KUNIT_CASE(isoblk_room_wanted_goes_to_the_pool),
	KUNIT_CASE(isoblk_room_of_a_single_queue_is_all),
	{ }
};

static struct kunit_suite isoblk_suite = {
	.name = "isoblk",
	.test_cases = isoblk_cases,
};

kunit_test_suite(isoblk_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of isoblk's arithmetic");
