// SPDX-License-Identifier: GPL-2.0-only
/*
 * FeedBAC's credit predictor, where its values are exact, and the adaptation of a.
 * tests/unit/test_predictor.py compares it with the paper's formulas over random loads.
 *
 * The code under test is compiled into this module, which needs no other one.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/module.h>

#include "../sched/predict.c"

#define HALF	(PREDICT_ONE / 2)

static void predict_test_init(struct predict *p)
{
	predict_init(p, PREDICT_A_MIN, PREDICT_A_MAX);
}

/* Feed the same use @periods times. Return: the last prediction. */
static u64 predict_test_feed(struct predict *p, u64 used, unsigned int periods)
{
	u64 next = 0;

	while (periods--)
		next = predict_next(p, used);
	return next;
}

/* With a = 1/2 only the result is rounded in the first 16 periods. */
static void predict_values_match_the_paper(struct kunit *test)
{
	static const struct {
		u64 used;
		u64 next;
	} periods[] = {
		{ 0, 0 },
		/* up: s1 4096 6144 7168 7680, s2 2048 4096 5632 6656 */
		{ 8192, 8192 },
		{ 8192, 10240 },
		{ 8192, 10240 },
		{ 8192, 9728 },
		/* down: s1 3840 1920, s2 5248 3584 */
		{ 0, 1024 },
		/* 2 x 1920 - 5248 is below 0 */
		{ 0, 0 },
	};
	struct predict p;
	unsigned int i;

	predict_init(&p, HALF, HALF);
	for (i = 0; i < ARRAY_SIZE(periods); i++)
		KUNIT_EXPECT_EQ_MSG(test, predict_next(&p, periods[i].used),
				    periods[i].next, "period %u", i);
}

static void predict_values_are_clamped_to_limits(struct kunit *test)
{
	static const struct {
		u32 a_min, a_max;
		u32 min, max;
	} limits[] = {
		{ 0, U32_MAX, PREDICT_A_FLOOR, PREDICT_A_CEILING },
		{ U32_MAX, 0, PREDICT_A_CEILING, PREDICT_A_CEILING },
		{ HALF, 0, HALF, HALF },
		{ PREDICT_A_MIN, PREDICT_A_MAX, PREDICT_A_MIN, PREDICT_A_MAX },
	};
	struct predict p;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		predict_init(&p, limits[i].a_min, limits[i].a_max);
		KUNIT_EXPECT_EQ(test, p.a_min, limits[i].min);
		KUNIT_EXPECT_EQ(test, p.a_max, limits[i].max);
		KUNIT_EXPECT_EQ(test, p.a, limits[i].min);
	}
}

static void predict_steady_load_is_predicted_exactly(struct kunit *test)
{
	static const u64 uses[] = { 0, 1, 77777, PREDICT_USED_MAX };
	struct predict p;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(uses); i++) {
		predict_test_init(&p);
		KUNIT_EXPECT_EQ(test, predict_test_feed(&p, uses[i], 1), uses[i]);
		KUNIT_EXPECT_EQ(test, predict_test_feed(&p, uses[i], 100), uses[i]);
		KUNIT_EXPECT_EQ(test, predict_error_permille(&p), 0);
		KUNIT_EXPECT_EQ(test, p.a, PREDICT_A_MIN);
	}
}

static void predict_halved_speed_is_found_in_six_periods(struct kunit *test)
{
	struct predict p;

	predict_test_init(&p);
	predict_test_feed(&p, 1000000, 20);
	predict_test_feed(&p, 500000, 6);
	KUNIT_EXPECT_GT(test, predict_error_permille(&p), 10);
	predict_test_feed(&p, 500000, 1);
	KUNIT_EXPECT_LT(test, predict_error_permille(&p), 10);
}

static void predict_ignores_one_large_error(struct kunit *test)
{
	struct predict p;

	predict_test_init(&p);
	predict_test_feed(&p, 1000000, 20);
	KUNIT_EXPECT_GT(test, predict_test_feed(&p, 400000, 1), 750000);
	KUNIT_EXPECT_EQ(test, p.a, PREDICT_A_MIN);
	predict_test_feed(&p, 1000000, 1);
	KUNIT_EXPECT_EQ(test, p.a, PREDICT_A_MIN);
	predict_test_feed(&p, 1000000, 40);
	KUNIT_EXPECT_EQ(test, p.a, PREDICT_A_MIN);

	predict_test_feed(&p, 400000, 2);
	KUNIT_EXPECT_EQ(test, p.a, PREDICT_A_MAX);
	predict_test_feed(&p, 400000, 40);
	KUNIT_EXPECT_EQ(test, p.a, PREDICT_A_MIN);
}

static void predict_error_is_relative_to_the_use(struct kunit *test)
{
	struct predict p;

	predict_test_init(&p);
	predict_test_feed(&p, 1000, 1);
	KUNIT_EXPECT_EQ(test, predict_error_permille(&p), 0);
	predict_test_feed(&p, 1250, 1);
	KUNIT_EXPECT_EQ(test, predict_error_permille(&p), 200);

	predict_test_init(&p);
	predict_test_feed(&p, 1000, 1);
	predict_test_feed(&p, 0, 1);
	KUNIT_EXPECT_EQ(test, predict_error_permille(&p), PREDICT_ERROR_MAX);

	predict_test_init(&p);
	predict_test_feed(&p, PREDICT_USED_MAX, 1);
	predict_test_feed(&p, 1, 1);
	KUNIT_EXPECT_EQ(test, predict_error_permille(&p), PREDICT_ERROR_MAX);
}

/* The largest prediction, and one that is clamped, with all bits used. */
static void predict_extremes_do_not_overflow(struct kunit *test)
{
	struct predict p;

	predict_init(&p, HALF, HALF);
	predict_test_feed(&p, 0, 1);
	KUNIT_EXPECT_EQ(test, predict_test_feed(&p, U64_MAX, 1), PREDICT_USED_MAX);
	KUNIT_EXPECT_EQ(test, predict_test_feed(&p, U64_MAX, 1), PREDICT_USED_MAX / 4 * 5);
	KUNIT_EXPECT_EQ(test, predict_test_feed(&p, U64_MAX, 60), PREDICT_USED_MAX);
	predict_test_feed(&p, 0, 1);
	KUNIT_EXPECT_EQ(test, predict_test_feed(&p, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, predict_test_feed(&p, 0, 60), 0);
}

static struct kunit_case predict_cases[] = {
	KUNIT_CASE(predict_values_match_the_paper),
	KUNIT_CASE(predict_values_are_clamped_to_limits),
	KUNIT_CASE(predict_steady_load_is_predicted_exactly),
	KUNIT_CASE(predict_halved_speed_is_found_in_six_periods),
	KUNIT_CASE(predict_ignores_one_large_error),
	KUNIT_CASE(predict_error_is_relative_to_the_use),
	KUNIT_CASE(predict_extremes_do_not_overflow),
	{}
};

static struct kunit_suite predict_suite = {
	.name = "isoblk_predict",
	.test_cases = predict_cases,
};

kunit_test_suite(predict_suite);

MODULE_DESCRIPTION("Tests of FeedBAC's credit predictor");
MODULE_LICENSE("GPL");
