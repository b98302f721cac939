// SPDX-License-Identifier: GPL-2.0-only
/*
 * isoblk's comparison of two settings, and the loop that finds the window with it, on devices whose
 * rate is a known function of the cost in flight.
 *
 * The code under test is compiled into this module, which needs no other one.
 */
#include <kunit/test.h>
#include <linux/log2.h>
#include <linux/module.h>

#include "../sched/isoblk/trial.c"
#include "../sched/isoblk/window.c"

#include "isoblk_devices.h"

/* ---- trials -------------------------------------------------------------- */

/* Feed a trial with rates @a and @b, and @dev's noise, until it has @pairs. */
static struct trial_result trial_test_compare(struct device *dev, u64 a, u64 b, unsigned int pairs)
{
	struct trial t;

	trial_begin(&t);
	while (t.n < pairs)
		trial_add(&t, device_add_noise(dev, trial_has_b(&t) ? b : a));
	return trial_result(&t);
}

/* A B B A A B B A, with an uncounted span after each change. */
static void trial_settings_take_turns_in_pairs(struct kunit *test)
{
	static const char order[] = "aAbBBaAAbBBaAAbBBaA";
	struct trial t;
	unsigned int i;

	trial_begin(&t);
	for (i = 0; order[i]; i++) {
		bool b = order[i] == 'b' || order[i] == 'B';
		unsigned int n = t.n;
		bool done;

		KUNIT_EXPECT_EQ_MSG(test, trial_has_b(&t), b, "span %u", i);
		KUNIT_EXPECT_EQ_MSG(test, t.settling, order[i] > 'Z', "span %u", i);
		done = trial_add(&t, 1000);
		KUNIT_EXPECT_EQ(test, done, t.n > n);
	}
	KUNIT_EXPECT_EQ(test, t.at, 12);
	KUNIT_EXPECT_EQ(test, t.n, 6);
}

static void trial_settling_spans_are_not_counted(struct kunit *test)
{
	struct trial_result r;
	struct trial t;

	trial_begin(&t);
	while (t.n < TRIAL_PAIRS_MIN) {
		u64 rate = trial_has_b(&t) ? 1100000 : 1000000;

		trial_add(&t, t.settling ? 7 * DEVICE_RATE : rate);
	}
	r = trial_result(&t);
	KUNIT_EXPECT_EQ(test, r.gain, TRIAL_ONE / 10);
	KUNIT_EXPECT_EQ(test, r.error, 0);
}

static void trial_constant_difference_has_no_error(struct kunit *test)
{
	static const unsigned int permille[] = { 0, 1, 500, 990, 1000, 1010, 1500, 3000, 64000 };
	struct device dev = device_make(1, 0, 1);
	struct trial_result r;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(permille); i++)
		for (n = 1; n <= TRIAL_PAIRS_MAX; n++) {
			r = trial_test_compare(&dev, DEVICE_RATE, DEVICE_RATE / 1000 * permille[i],
					       n);
			KUNIT_EXPECT_EQ(test, r.error, 0);
			KUNIT_EXPECT_LE(test, abs(r.gain * 1000 - TRIAL_ONE * permille[i] +
						  TRIAL_ONE * 1000), 1000);
		}
}

/* A linear drift of the load during the trial cancels. */
static void trial_linear_drift_cancels(struct kunit *test)
{
	static const s64 drifts[] = { 10000000, -10000000, 100 };
	struct trial_result r;
	struct trial t;
	unsigned int i;
	u64 rate;

	for (i = 0; i < ARRAY_SIZE(drifts); i++) {
		trial_begin(&t);
		for (rate = DEVICE_RATE; t.n < TRIAL_PAIRS_MIN; rate += drifts[i])
			trial_add(&t, rate);
		r = trial_result(&t);
		KUNIT_EXPECT_EQ(test, r.gain, 0);
		KUNIT_EXPECT_LE(test, r.error, 2 * TRIAL_ONE * 2 / 100);
	}
}

static void trial_error_grows_with_noise(struct kunit *test)
{
	static const unsigned int noises[] = { 3, 10, 30, 100 };
	unsigned int i, k, n;
	s64 sum, exact;

	for (i = 0; i < ARRAY_SIZE(noises); i++)
		for (n = TRIAL_PAIRS_MIN; n <= TRIAL_PAIRS_MAX; n += 20) {
			struct device dev = device_make(1, noises[i], 3);

			for (sum = 0, k = 0; k < 100; k++)
				sum += trial_test_compare(&dev, DEVICE_RATE, DEVICE_RATE, n).error;
			/* Standard errors of the mean of n differences of two spans. */
			exact = (2 * n + 4) * noises[i] * TRIAL_ONE * 1414 /
				(n * DEVICE_ONE * (s64)int_sqrt64(1000000 * n));
			KUNIT_EXPECT_GE_MSG(test, sum / 100, exact * 8 / 10 - 1,
					    "noise %u, %u pairs", noises[i], n);
			KUNIT_EXPECT_LE_MSG(test, sum / 100, exact * 12 / 10 + 1,
					    "noise %u, %u pairs", noises[i], n);
		}
}

/* The error is two standard errors: less certain with few pairs than with many. */
static void trial_true_gain_is_within_the_error(struct kunit *test)
{
	unsigned int k, n, within;
	struct trial_result r;

	for (n = TRIAL_PAIRS_MIN; n <= TRIAL_PAIRS_MAX; n += 10) {
		struct device dev = device_make(1, 50, n);

		for (within = 0, k = 0; k < 500; k++) {
			r = trial_test_compare(&dev, DEVICE_RATE, DEVICE_RATE / 10 * 11, n);
			within += abs(r.gain - TRIAL_ONE / 10) <= r.error;
		}
		KUNIT_EXPECT_GE(test, within, 400);
		KUNIT_EXPECT_LT(test, within, 500);
	}
}

/* A device that paused when the trial began, and is noisy after that. */
static void trial_first_span_without_rate_hides_no_noise(struct kunit *test)
{
	static const u64 first[] = { 0, 1, DEVICE_RATE / 1000, 1000 * DEVICE_RATE };
	struct trial_result r;
	unsigned int i;
	struct trial t;

	for (i = 0; i < ARRAY_SIZE(first); i++) {
		struct device dev = device_make(1, 200, 5);

		trial_begin(&t);
		trial_add(&t, 0);
		trial_add(&t, first[i]);
		while (t.n < TRIAL_PAIRS_MAX)
			trial_add(&t, device_add_noise(&dev, DEVICE_RATE));
		r = trial_result(&t);
		KUNIT_EXPECT_GE(test, r.error, TRIAL_ONE / 20);
	}
}

/* Differences that overflow the unit, and those before them, are counted in a larger unit. */
static void trial_larger_unit_keeps_the_sums(struct kunit *test)
{
	static const u64 more[] = { 60, 60, 100, 100 };
	struct trial_result r;
	struct trial t;

	trial_begin(&t);
	while (t.n < ARRAY_SIZE(more))
		trial_add(&t, trial_has_b(&t) ? more[t.n] * 1000000 : 1000000);
	r = trial_result(&t);
	KUNIT_EXPECT_EQ(test, r.gain, 79 * TRIAL_ONE);
	/* Three, for few pairs, of a deviation of 20, over the root of 3. */
	KUNIT_EXPECT_GE(test, r.error, 3428 * TRIAL_ONE / 100);
	KUNIT_EXPECT_LE(test, r.error, 3502 * TRIAL_ONE / 100);
}

static void trial_any_rates_have_a_result(struct kunit *test)
{
	static const u64 rates[] = {
		0, 1, 4095, 4097, DEVICE_RATE, BIT_ULL(49), BIT_ULL(50), BIT_ULL(62),
		BIT_ULL(63), U64_MAX,
	};
	unsigned int a, b, first, n;
	struct trial_result r;
	struct trial t;

	for (a = 0; a < ARRAY_SIZE(rates); a++)
		for (b = 0; b < ARRAY_SIZE(rates); b++)
			for (first = 0; first < ARRAY_SIZE(rates); first++) {
				trial_begin(&t);
				trial_add(&t, 0);
				trial_add(&t, rates[first]);
				for (n = 1; n <= TRIAL_PAIRS_MAX; n++) {
					while (t.n < n)
						trial_add(&t, trial_has_b(&t) ? rates[b] :
							  rates[a]);
					r = trial_result(&t);
					KUNIT_EXPECT_GE(test, r.gain, -TRIAL_ONE);
					KUNIT_EXPECT_GE(test, r.error, 0);
				}
				/* The first span is one of 48. */
				if (rates[a] > DEVICE_RATE || rates[first] > rates[a])
					continue;
				if (rates[b] > 2 * rates[a])
					KUNIT_EXPECT_GE(test, r.gain, TRIAL_ONE / 2);
				if (rates[b] < rates[a] / 2)
					KUNIT_EXPECT_LE(test, r.gain, -TRIAL_ONE / 3);
			}
}

/* ---- the window ---------------------------------------------------------- */

#define TEST_KNEE		1000000ULL
#define TEST_WINDOW_MIN		2000ULL

/* Scale on which sizes are compared: permille of the knee. */
#define OF_KNEE(size)	div64_u64((size) * 1000, TEST_KNEE)

/**
 * struct window_outcome - result of a window in a number of epochs
 */
struct window_outcome {
	u64 least;		/* least size */
	u64 most;		/* largest size */
	u64 mean;		/* mean size */
	u64 loss;		/* mean shortfall against the largest rate, permille */
	unsigned int trials;	/* part of epochs that were trials, permille */
	unsigned int large;	/* part of epochs with a size above 1.25 knees, permille */
};

static void window_test_run_epoch(struct window *w, struct window_epoch *e, bool may_try)
{
	e->may_try = may_try;
	window_epoch(w, e);
}

/* Run the loop with requests that wait for room. */
static struct window_outcome window_test_run(struct window *w, struct device *dev,
					     unsigned int epochs)
{
	u64 size = 0, rate = 0, trials = 0, large = 0;
	struct window_outcome o = { .least = U64_MAX };
	unsigned int i;

	for (i = 0; i < epochs; i++) {
		struct window_epoch e = {
			.rate = device_get_rate(dev, window_now(w)),
			.least = TEST_WINDOW_MIN,
			.limited = true,
		};

		rate += min(dev->get_rate(dev, window_now(w)), DEVICE_RATE);
		window_test_run_epoch(w, &e, true);
		o.least = min(o.least, w->size);
		o.most = max(o.most, w->size);
		size += w->size;
		trials += w->phase == WINDOW_TRIAL;
		large += w->size > dev->knee / 4 * 5;
	}
	o.mean = div_u64(size, epochs);
	o.loss = 1000 - div64_u64(div_u64(rate, epochs) * 1000, DEVICE_RATE);
	o.trials = div_u64(1000 * trials, epochs);
	o.large = div_u64(1000 * large, epochs);
	return o;
}

/* Run the loop with a load that the window does not limit. */
static void window_test_run_unlimited(struct window *w, unsigned int epochs)
{
	struct window_epoch e = { .rate = DEVICE_RATE / 10, .least = TEST_WINDOW_MIN };

	while (epochs--)
		window_test_run_epoch(w, &e, true);
}

static const u64 window_test_starts[] = { TEST_KNEE / 32, TEST_KNEE / 2, TEST_KNEE + TEST_KNEE / 2,
					  8 * TEST_KNEE, 64 * TEST_KNEE };

/* Number of epochs in which a window is found. */
#define FIND_EPOCHS		2000

static void window_is_the_knee(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 3, 10, 20 };
	unsigned int i, k, seed;
	struct window_outcome o;
	struct window w;

	for (i = 0; i < ARRAY_SIZE(noises); i++)
		for (k = 0; k < ARRAY_SIZE(window_test_starts); k++)
			for (seed = 1; seed <= 4; seed++) {
				struct device dev = device_make(TEST_KNEE, noises[i], seed);

				window_init(&w, window_test_starts[k]);
				window_test_run(&w, &dev, FIND_EPOCHS);
				o = window_test_run(&w, &dev, 10000);
				KUNIT_EXPECT_GE_MSG(test, OF_KNEE(o.mean), 990, "noise %u",
						    noises[i]);
				KUNIT_EXPECT_LE_MSG(test, o.large, 100, "noise %u", noises[i]);
				KUNIT_EXPECT_LE_MSG(test, o.loss, 10, "noise %u", noises[i]);
			}
}

static void window_is_found_in_much_noise(struct kunit *test)
{
	unsigned int k, seed, noise;
	struct window_outcome o;
	struct window w;

	for (noise = 50; noise <= 100; noise += 50)
		for (k = 0; k < ARRAY_SIZE(window_test_starts); k++)
			for (seed = 1; seed <= 2; seed++) {
				struct device dev = device_make(TEST_KNEE, noise, seed);

				window_init(&w, window_test_starts[k]);
				window_test_run(&w, &dev, 10 * FIND_EPOCHS);
				o = window_test_run(&w, &dev, 20000);
				KUNIT_EXPECT_LE_MSG(test, OF_KNEE(o.mean), 1700, "noise %u",
						    noise);
				KUNIT_EXPECT_LE_MSG(test, o.loss, 30, "noise %u", noise);
			}
}

static void window_of_a_steady_device_has_few_trials(struct kunit *test)
{
	struct device dev = device_make(TEST_KNEE, 0, 1);
	struct window_outcome o;
	struct window w;

	window_init(&w, TEST_KNEE / 32);
	window_test_run(&w, &dev, 2 * FIND_EPOCHS);
	o = window_test_run(&w, &dev, 20000);
	KUNIT_EXPECT_LE(test, o.trials, 50);
	KUNIT_EXPECT_GE(test, o.trials, 1);
	KUNIT_EXPECT_EQ(test, o.least, o.most);
}

/* Each doubling is a trial of the fewest pairs, and no pause follows. */
static void window_grows_fast_at_first(struct kunit *test)
{
	unsigned int noise, epochs;
	struct window w;

	for (noise = 0; noise <= 50; noise += 10) {
		struct device dev = device_make(TEST_KNEE, noise, 1);

		window_init(&w, TEST_KNEE / 32);
		for (epochs = 0; w.size < TEST_KNEE && epochs < FIND_EPOCHS; epochs++)
			window_test_run(&w, &dev, 1);
		KUNIT_EXPECT_LE(test, epochs, 5 * (6 * TRIAL_PAIRS_MIN / 2 + 2) + 6);
	}
}

static void window_shrinks_fast(struct kunit *test)
{
	struct device dev = device_make(TEST_KNEE, 0, 1);
	unsigned int epochs;
	struct window w;

	window_init(&w, 64 * TEST_KNEE);
	for (epochs = 0; w.size > TEST_KNEE / 4 * 5 && epochs < FIND_EPOCHS; epochs++)
		window_test_run(&w, &dev, 1);
	KUNIT_EXPECT_LE(test, epochs, 200);
}

static void window_without_a_knee_grows_to_the_load(struct kunit *test)
{
	struct device dev = device_make(BIT_ULL(34), 10, 1);
	struct window w;

	window_init(&w, 250 * 1000);
	window_test_run(&w, &dev, 400);
	KUNIT_EXPECT_GE(test, w.size, dev.knee);
	KUNIT_EXPECT_LE(test, w.size, 2 * dev.knee);
}

static void window_follows_a_knee_that_moves(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 10, 30 };
	struct window_outcome o;
	unsigned int i;
	struct window w;

	for (i = 0; i < ARRAY_SIZE(noises); i++) {
		struct device dev = device_make(TEST_KNEE, noises[i], 1);

		window_init(&w, TEST_KNEE / 4);
		window_test_run(&w, &dev, 4 * FIND_EPOCHS);
		dev.knee = TEST_KNEE / 16;
		window_test_run(&w, &dev, 4 * FIND_EPOCHS);
		o = window_test_run(&w, &dev, FIND_EPOCHS);
		KUNIT_EXPECT_LE(test, OF_KNEE(o.mean), 1300 / 16);
		KUNIT_EXPECT_LE(test, o.loss, 10);
		dev.knee = 4 * TEST_KNEE;
		window_test_run(&w, &dev, 4 * FIND_EPOCHS);
		o = window_test_run(&w, &dev, FIND_EPOCHS);
		KUNIT_EXPECT_GE(test, OF_KNEE(o.mean), 4 * 980);
		KUNIT_EXPECT_LE(test, OF_KNEE(o.mean), 4 * 1300);
	}
}

/*
 * Two percent less with each factor e of the size: no single step costs much, but all steps do.
 * With noise of a hundredth and more no trial sees the cost of a step.
 */
static u64 window_test_rate_ever_slower(const struct device *dev, u64 in_flight)
{
	unsigned int octave = ilog2(in_flight);
	u64 part = (in_flight << 10 >> octave) - 1024 + 1024 * octave;

	/* log2(TEST_KNEE) is 19.9. */
	return DEVICE_RATE - (DEVICE_RATE >> 10) * 14 / 1000 *
		(20 * 1024 - min(part, 20 * 1024ULL));
}

static void window_small_losses_do_not_add_up(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 1, 3 };
	struct window_outcome o;
	unsigned int i;
	struct window w;

	for (i = 0; i < ARRAY_SIZE(noises); i++) {
		struct device dev = device_make(TEST_KNEE, noises[i], 1);

		dev.get_rate = window_test_rate_ever_slower;
		window_init(&w, TEST_KNEE);
		o = window_test_run(&w, &dev, 40000);
		KUNIT_EXPECT_LE_MSG(test, o.loss, noises[i] ? 20 : 10, "noise %u", noises[i]);
		if (!noises[i])
			KUNIT_EXPECT_GE(test, window_test_rate_ever_slower(&dev, o.least),
					DEVICE_RATE / 1000 * 990);
	}
}

static void window_step_up_reports_the_loss(struct kunit *test)
{
	struct window w;

	window_init(&w, TEST_KNEE);
	w.best = 2 * TEST_KNEE;
	w.lost = 2;
	w.other = 2 * TEST_KNEE;
	window_reject(&w, 9);
	KUNIT_EXPECT_EQ(test, w.lost, 9);
	KUNIT_EXPECT_EQ(test, w.best, 2 * TEST_KNEE);
	/* A size above that from which losses are counted gains more than was lost. */
	w.up = true;
	w.best = TEST_KNEE;
	w.other = TEST_KNEE / 4 * 5;
	w.lost = 2;
	window_reject(&w, 9);
	KUNIT_EXPECT_EQ(test, w.lost, 2);
	w.up = true;
	window_reject(&w, -1);
	KUNIT_EXPECT_EQ(test, w.lost, 0);
	KUNIT_EXPECT_EQ(test, w.best, TEST_KNEE);
}

static void window_keeps_its_size_under_an_unlimited_load(struct kunit *test)
{
	struct window w;
	unsigned int i;

	window_init(&w, 250 * 1000);
	for (i = 0; i < 10000; i++) {
		window_test_run_unlimited(&w, 1);
		KUNIT_EXPECT_EQ(test, w.size, 250 * 1000);
		KUNIT_EXPECT_EQ(test, w.phase, WINDOW_CRUISE);
	}
}

/*
 * The larger size of a trial may exceed the cost that the load has in flight; the smaller may not.
 */
static void window_grows_to_the_load(struct kunit *test)
{
	struct device dev = device_make(TEST_KNEE, 10, 1);
	u64 demand = TEST_KNEE / 10 * 8;
	struct window w;
	unsigned int i;

	window_init(&w, TEST_KNEE / 32);
	for (i = 0; i < FIND_EPOCHS; i++) {
		struct window_epoch e = {
			.rate = device_get_rate(&dev, min(window_now(&w), demand)),
			.least = TEST_WINDOW_MIN,
			.limited = window_now(&w) < demand,
		};

		window_test_run_epoch(&w, &e, true);
	}
	KUNIT_EXPECT_GE(test, OF_KNEE(w.size), 780);
	KUNIT_EXPECT_LE(test, OF_KNEE(w.size), 500 * WINDOW_START);
}

static void window_begins_no_trial_that_may_not_begin(struct kunit *test)
{
	struct window_epoch e = { .rate = DEVICE_RATE, .least = TEST_WINDOW_MIN, .limited = true };
	unsigned int i;
	struct window w;

	window_init(&w, TEST_KNEE);
	for (i = 0; i < 100; i++) {
		window_test_run_epoch(&w, &e, false);
		KUNIT_EXPECT_EQ(test, w.phase, WINDOW_CRUISE);
	}
	window_test_run_epoch(&w, &e, true);
	KUNIT_EXPECT_EQ(test, w.phase, WINDOW_TRIAL);
	/* A trial in progress continues. */
	window_test_run_epoch(&w, &e, false);
	window_test_run_epoch(&w, &e, false);
	KUNIT_EXPECT_EQ(test, w.phase, WINDOW_TRIAL);
	KUNIT_EXPECT_EQ(test, window_now(&w), WINDOW_START * TEST_KNEE);
}

static void window_trial_ends_in_any_case(struct kunit *test)
{
	unsigned int noise, epochs, most = 6 * TRIAL_PAIRS_MAX / 2 + 2, i;
	unsigned int least = 6 * TRIAL_PAIRS_MIN / 2, shortest, longest;
	struct window w;

	for (noise = 0; noise <= 400; noise += 100) {
		struct device dev = device_make(TEST_KNEE, noise, 1);

		shortest = UINT_MAX;
		longest = 0;
		window_init(&w, TEST_KNEE);
		for (epochs = 0, i = 0; i < 10000; i++) {
			window_test_run(&w, &dev, 1);
			if (w.phase == WINDOW_TRIAL && !(w.starting && !w.trial.at)) {
				epochs++;
				continue;
			}
			if (epochs) {
				shortest = min(shortest, epochs);
				longest = max(longest, epochs);
			}
			epochs = 0;
		}
		KUNIT_EXPECT_GE(test, shortest + 2, least);
		KUNIT_EXPECT_LE(test, longest, noise ? most : least + 2);
	}
}

/* In a trial as well, and when a larger request arrives during a trial. */
static void window_is_never_below_the_least(struct kunit *test)
{
	struct window_epoch e = { .limited = true };
	struct device dev = device_make(1, 50, 1);
	struct window w;
	unsigned int i;

	window_init(&w, 1);
	for (i = 0; i < 100000; i++) {
		e.rate = device_get_rate(&dev, window_now(&w));
		e.least = 1000;
		if (i & 512)
			e.least += prandom_u32_state(&dev.rnd) % 1000;
		window_test_run_epoch(&w, &e, true);
		KUNIT_ASSERT_GE(test, window_now(&w), e.least);
		KUNIT_ASSERT_GE(test, w.size, e.least);
	}
	KUNIT_EXPECT_LE(test, w.size, 4000);
}

static void window_survives_any_rates(struct kunit *test)
{
	static const u64 rates[] = { 0, 1, DEVICE_RATE, BIT_ULL(62), U64_MAX };
	struct window_epoch e = { .limited = true, .least = TEST_WINDOW_MIN };
	struct device dev = device_make(TEST_KNEE, 0, 1);
	unsigned int i, k;
	struct window w;

	window_init(&w, TEST_KNEE);
	for (i = 0; i < 100000; i++) {
		k = prandom_u32_state(&dev.rnd) % ARRAY_SIZE(rates);
		e.rate = rates[k];
		window_test_run_epoch(&w, &e, true);
		KUNIT_ASSERT_GE(test, window_now(&w), TEST_WINDOW_MIN);
		KUNIT_ASSERT_LE(test, w.lost, TRIAL_ONE * TRIAL_ONE);
		KUNIT_ASSERT_GE(test, w.lost, 0);
	}
	/* Arbitrary rates are forgotten afterwards. */
	window_init(&w, TEST_KNEE);
	e.rate = 0;
	for (i = 0; i < 1000; i++)
		window_test_run_epoch(&w, &e, true);
	window_test_run(&w, &dev, 3 * FIND_EPOCHS);
	KUNIT_EXPECT_GE(test, OF_KNEE(w.size), 950);
	KUNIT_EXPECT_LE(test, OF_KNEE(w.size), 1250);
}

static struct kunit_case isoblk_window_cases[] = {
	KUNIT_CASE(trial_settings_take_turns_in_pairs),
	KUNIT_CASE(trial_settling_spans_are_not_counted),
	KUNIT_CASE(trial_constant_difference_has_no_error),
	KUNIT_CASE(trial_linear_drift_cancels),
	KUNIT_CASE(trial_error_grows_with_noise),
	KUNIT_CASE(trial_true_gain_is_within_the_error),
	KUNIT_CASE(trial_first_span_without_rate_hides_no_noise),
	KUNIT_CASE(trial_larger_unit_keeps_the_sums),
	KUNIT_CASE(trial_any_rates_have_a_result),
	KUNIT_CASE(window_is_the_knee),
	KUNIT_CASE(window_is_found_in_much_noise),
	KUNIT_CASE(window_of_a_steady_device_has_few_trials),
	KUNIT_CASE(window_grows_fast_at_first),
	KUNIT_CASE(window_shrinks_fast),
	KUNIT_CASE(window_without_a_knee_grows_to_the_load),
	KUNIT_CASE(window_follows_a_knee_that_moves),
	KUNIT_CASE(window_small_losses_do_not_add_up),
	KUNIT_CASE(window_step_up_reports_the_loss),
	KUNIT_CASE(window_keeps_its_size_under_an_unlimited_load),
	KUNIT_CASE(window_grows_to_the_load),
	KUNIT_CASE(window_begins_no_trial_that_may_not_begin),
	KUNIT_CASE(window_trial_ends_in_any_case),
	KUNIT_CASE(window_is_never_below_the_least),
	KUNIT_CASE(window_survives_any_rates),
	{ }
};

static struct kunit_suite isoblk_window_suite = {
	.name = "isoblk_window",
	.test_cases = isoblk_window_cases,
};

kunit_test_suite(isoblk_window_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of isoblk's window");
