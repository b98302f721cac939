// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether it pays to hold others back: what is estimated, what trials show of it, and what is
 * learned from that.
 *
 * The code under test is compiled into this module. It needs no other one.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../sched/core/trade.c"

#define LEAST		64	/* least time of a request */
#define RATE		1000000ULL

/* What requests of @work took, each @took, of which @wait before the device; of all @all. */
static struct trade_sums sums(u64 work, u64 took, u64 wait, u64 all)
{
	return (struct trade_sums){
		.area = work * took,
		.wait = work * wait,
		.base = work * LEAST,
		.all = all,
	};
}

/* One of two takes @held while the other is held back and @free in a trial, half of all. */
static void try_once(struct trade_trials *trials, struct trade_side *side,
		     u64 held, u64 free, u64 held_rate)
{
	struct trade_sums before = sums(100, held, 0, 200 * held);
	struct trade_sums in_trial = sums(100, free, 0, 200 * free);

	trade_begin(side, &before, true);
	trade_end(trials, held_rate, RATE);
	trade_add(trials, side, &in_trial);
}

static void a_gain_is_the_part_times_what_is_waited(struct kunit *test)
{
	struct trade_sums s = sums(100, 3 * LEAST, 0, 600 * LEAST);

	/* Half of the device, and three times the least. */
	KUNIT_EXPECT_EQ(test, trade_gain(&s, TRADE_ONE), TRADE_ONE);
	/* They take twice the least though nobody queues. */
	KUNIT_EXPECT_EQ(test, trade_gain(&s, 2 * TRADE_ONE), TRADE_ONE / 4);
	KUNIT_EXPECT_EQ(test, trade_gain(&s, 3 * TRADE_ONE), 0);
	KUNIT_EXPECT_EQ(test, trade_gain(&s, 4 * TRADE_ONE), 0);
}

static void who_did_nothing_gains_nothing(struct kunit *test)
{
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};
	struct trade_sums none = {};

	KUNIT_EXPECT_EQ(test, trade_gain(&none, TRADE_ONE), 0);
	trade_begin(&side, &none, true);
	trade_end(&trials, 0, 0);
	trade_add(&trials, &side, &none);
	KUNIT_EXPECT_EQ(test, trials.gained, 0);
	trade_learn(&side);
	KUNIT_EXPECT_EQ(test, side.plain, TRADE_ONE);
}

static void it_takes_several_trials_to_give_up(struct kunit *test)
{
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};
	unsigned int i;

	for (i = 1; i < TRIALS_LEAST; i++) {
		try_once(&trials, &side, 4 * LEAST, 4 * LEAST, RATE / 2);
		KUNIT_EXPECT_FALSE(test, trade_in_vain(&trials));
		KUNIT_EXPECT_TRUE(test, trade_open(&trials));
	}
	try_once(&trials, &side, 4 * LEAST, 4 * LEAST, RATE / 2);
	KUNIT_EXPECT_TRUE(test, trade_in_vain(&trials));
}

static void what_requests_take_anyway_is_learned(struct kunit *test)
{
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};
	struct trade_sums s = sums(100, 4 * LEAST, 0, 800 * LEAST);

	try_once(&trials, &side, 5 * LEAST, 5 * LEAST, RATE / 2);
	try_once(&trials, &side, 4 * LEAST, 4 * LEAST, RATE / 2);
	try_once(&trials, &side, 6 * LEAST, 6 * LEAST, RATE / 2);
	KUNIT_EXPECT_GT(test, trade_gain(&s, side.plain), TRADE_ONE);
	trade_learn(&side);
	/* The least of what was seen, so as not to give up too easily. */
	KUNIT_EXPECT_EQ(test, side.plain, 4 * TRADE_ONE);
	KUNIT_EXPECT_EQ(test, trade_gain(&s, side.plain), 0);
	/* Who then waits for others gains again. */
	s = sums(100, 8 * LEAST, 0, 1600 * LEAST);
	KUNIT_EXPECT_EQ(test, trade_gain(&s, side.plain), TRADE_ONE / 2);
}

static void what_costs_nothing_is_not_in_vain(struct kunit *test)
{
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};
	unsigned int i;

	for (i = 0; i < 2 * TRIALS_MOST; i++)
		try_once(&trials, &side, 4 * LEAST, 4 * LEAST,
			 RATE - RATE / 20);
	KUNIT_EXPECT_FALSE(test, trade_in_vain(&trials));
	KUNIT_EXPECT_FALSE(test, trade_open(&trials));
}

static void it_is_unsure_until_enough_is_seen(struct kunit *test)
{
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, trade_unsure(&trials));
	for (i = 1; i < TRIALS_LEAST; i++) {
		try_once(&trials, &side, 4 * LEAST, 4 * LEAST, RATE);
		KUNIT_EXPECT_TRUE(test, trade_unsure(&trials));
	}
	try_once(&trials, &side, 4 * LEAST, 4 * LEAST, RATE);
	KUNIT_EXPECT_FALSE(test, trade_unsure(&trials));
	/* Another one joins. */
	side = (struct trade_side){ .plain = TRADE_ONE };
	try_once(&trials, &side, 4 * LEAST, 4 * LEAST, RATE);
	KUNIT_EXPECT_TRUE(test, trade_unsure(&trials));
}

static void what_seems_in_vain_is_unsure_until_it_is_not(struct kunit *test)
{
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};
	unsigned int i;

	for (i = 0; i < TRIALS_LEAST; i++)
		try_once(&trials, &side, 4 * LEAST, 4 * LEAST, RATE / 2);
	KUNIT_EXPECT_TRUE(test, trade_open(&trials));
	KUNIT_EXPECT_TRUE(test, trade_unsure(&trials));
}

static void trials_that_show_nothing_do_not_leave_it_unsure(struct kunit *test)
{
	struct trade_trials trials = { .nr_made = TRIALS_MOST - 1 };

	KUNIT_EXPECT_TRUE(test, trade_unsure(&trials));
	trials.nr_made++;
	KUNIT_EXPECT_FALSE(test, trade_unsure(&trials));
}

static void what_gains_enough_is_not_in_vain(struct kunit *test)
{
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};
	unsigned int i;

	/* It would be a quarter slower: an eighth of all, for four eighths lost. */
	for (i = 0; i < 2 * TRIALS_MOST; i++)
		try_once(&trials, &side, 4 * LEAST, 5 * LEAST, RATE / 2);
	KUNIT_EXPECT_FALSE(test, trade_in_vain(&trials));
}

/* Try with a group that is a small part of what the device does, many times slower by others. */
static void what_is_much_to_a_small_group_is_not_in_vain(struct kunit *test)
{
	struct trade_sums before = sums(100, LEAST, 0, 1000 * LEAST);
	struct trade_sums in_trial = sums(100, 3 * LEAST, 0, 30000 * LEAST);
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};
	unsigned int i;

	for (i = 0; i < 2 * TRIALS_MOST; i++) {
		trade_begin(&side, &before, true);
		trade_end(&trials, RATE / 10, RATE);
		trade_add(&trials, &side, &in_trial);
	}
	KUNIT_EXPECT_FALSE(test, trade_in_vain(&trials));
	KUNIT_EXPECT_FALSE(test, trade_open(&trials));
}

static void one_odd_trial_does_not_decide(struct kunit *test)
{
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};

	/* The device stood still before one of them. */
	try_once(&trials, &side, LEAST, 3 * LEAST, RATE - RATE / 4);
	try_once(&trials, &side, 900 * LEAST, 3 * LEAST, RATE / 100);
	try_once(&trials, &side, LEAST, 3 * LEAST, RATE - RATE / 4);
	KUNIT_EXPECT_FALSE(test, trade_in_vain(&trials));
}

static void who_lost_takes_nothing_from_who_gained(struct kunit *test)
{
	struct trade_side one = { .plain = TRADE_ONE }, other = one;
	struct trade_sums before = sums(900, LEAST, 0, 1000 * LEAST);
	struct trade_sums waited = sums(100, LEAST, 90 * LEAST, 1000 * LEAST);
	struct trade_sums in_trial = sums(100, 2 * LEAST, 0, 400 * LEAST);
	struct trade_trials trials = {};
	unsigned int i;

	for (i = 0; i < TRIALS_MOST; i++) {
		trade_begin(&one, &before, true);
		trade_begin(&other, &waited, true);
		trade_end(&trials, RATE / 2, RATE);
		trade_add(&trials, &one, &in_trial);
		trade_add(&trials, &other, &in_trial);
	}
	KUNIT_EXPECT_LT(test, other.gained, 0);
	KUNIT_EXPECT_EQ(test, trials.gained, (u64)one.gained);
	KUNIT_EXPECT_FALSE(test, trade_in_vain(&trials));
}

static void who_was_not_helped_teaches_nothing(struct kunit *test)
{
	struct trade_sums s = sums(100, 4 * LEAST, 0, 800 * LEAST);
	struct trade_side side = { .plain = TRADE_ONE };
	struct trade_trials trials = {};

	trade_begin(&side, &s, false);
	trade_end(&trials, RATE / 2, RATE);
	trade_add(&trials, &side, &s);
	trade_learn(&side);
	KUNIT_EXPECT_EQ(test, side.plain, TRADE_ONE);
	KUNIT_EXPECT_EQ(test, side.gained, 0);
}

static void what_was_learned_stays_if_less_is_seen(struct kunit *test)
{
	struct trade_side side = { .plain = 6 * TRADE_ONE };
	struct trade_trials trials = {};

	try_once(&trials, &side, 4 * LEAST, 4 * LEAST, RATE / 2);
	trade_learn(&side);
	KUNIT_EXPECT_EQ(test, side.plain, 6 * TRADE_ONE);
}

static void what_was_learned_of_a_slow_device_is_forgotten(struct kunit *test)
{
	struct trade_side side = { .plain = 6 * TRADE_ONE };
	struct trade_sums none = {}, s = sums(100, 9 * LEAST, 0, 1);

	trade_lower(&side, &none);
	trade_lower(&side, &s);
	KUNIT_EXPECT_EQ(test, side.plain, 6 * TRADE_ONE);
	s = sums(100, 2 * LEAST, 0, 1);
	trade_lower(&side, &s);
	KUNIT_EXPECT_EQ(test, side.plain, 2 * TRADE_ONE);
	s = sums(100, LEAST / 2, 0, 1);
	trade_lower(&side, &s);
	KUNIT_EXPECT_EQ(test, side.plain, TRADE_ONE);
}

static void numbers_of_any_size_are_survived(struct kunit *test)
{
	struct trade_sums most = {
		.area = U64_MAX / 2,
		.wait = U64_MAX / 2,
		.base = 1,
		.all = 1,
	};
	struct trade_side side = { .plain = U32_MAX };
	struct trade_trials trials = {};
	unsigned int i;

	for (i = 0; i < 2 * TRIALS_MOST; i++) {
		trade_begin(&side, &most, true);
		trade_end(&trials, i & 1 ? U64_MAX : 0, i & 2 ? U64_MAX : 1);
		trade_add(&trials, &side, &most);
	}
	KUNIT_EXPECT_LE(test, trade_gain(&most, 1), GAIN_MOST);
	KUNIT_EXPECT_LE(test, trials.gained, (u64)ALL);
	KUNIT_EXPECT_LE(test, trials.lost, (s64)ALL);
	KUNIT_EXPECT_GE(test, trials.lost, -(s64)ALL);
	KUNIT_EXPECT_LE(test, trials.faster, (s64)ALL);
}

static struct kunit_case trade_cases[] = {
	KUNIT_CASE(a_gain_is_the_part_times_what_is_waited),
	KUNIT_CASE(who_did_nothing_gains_nothing),
	KUNIT_CASE(it_takes_several_trials_to_give_up),
	KUNIT_CASE(what_requests_take_anyway_is_learned),
	KUNIT_CASE(what_costs_nothing_is_not_in_vain),
	KUNIT_CASE(it_is_unsure_until_enough_is_seen),
	KUNIT_CASE(what_seems_in_vain_is_unsure_until_it_is_not),
	KUNIT_CASE(trials_that_show_nothing_do_not_leave_it_unsure),
	KUNIT_CASE(what_gains_enough_is_not_in_vain),
	KUNIT_CASE(what_is_much_to_a_small_group_is_not_in_vain),
	KUNIT_CASE(one_odd_trial_does_not_decide),
	KUNIT_CASE(who_lost_takes_nothing_from_who_gained),
	KUNIT_CASE(who_was_not_helped_teaches_nothing),
	KUNIT_CASE(what_was_learned_stays_if_less_is_seen),
	KUNIT_CASE(what_was_learned_of_a_slow_device_is_forgotten),
	KUNIT_CASE(numbers_of_any_size_are_survived),
	{}
};

static struct kunit_suite trade_suite = {
	.name = "trade_test",
	.test_cases = trade_cases,
};

kunit_test_suite(trade_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of whether it pays to hold others back");
