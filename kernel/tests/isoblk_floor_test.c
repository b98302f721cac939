// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop that finds isoblk's floor, on devices that lose a known part of their rate by
 * throttling.
 *
 * The code under test is compiled into this module, which needs no other one.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../sched/isoblk/trial.c"
#include "../sched/isoblk/floor.c"

#include "isoblk_devices.h"

#define TEST_WINDOW		500000ULL
#define TEST_WINDOW_MIN		5000ULL

/* Mean cost in flight while no group is throttled. */
#define TEST_OPEN_COST		400000ULL

/* Unit of a loss. */
#define LOSS_ONE	1000000ULL

/**
 * struct floor_load - groups on a device, and the loss by throttling them
 */
struct floor_load {
	struct device dev;
	u64 peak;		/* loss with no floor, of LOSS_ONE */
	u64 need;		/* floor from which on the loss is zero or almost zero */
	u64 (*loss)(const struct floor_load *l, u64 floor);
	unsigned int groups;	/* number of active groups */
	bool changed;		/* other groups are active in each span */
	u64 window;		/* cost that may be in flight */
	bool widens;		/* the window grows if the floor finds it too small */
};

static u64 floor_test_loss_linear(const struct floor_load *l, u64 floor)
{
	return l->peak * (l->need - min(floor, l->need)) / l->need;
}

/* Halved by each sixteenth of @need. */
static u64 floor_test_loss_steep(const struct floor_load *l, u64 floor)
{
	u64 sixteenth = l->need / 16, n = div64_u64(floor, sixteenth);

	if (n >= 32)
		return 0;
	return (l->peak >> n) - (l->peak >> (n + 1)) * (floor % sixteenth) / sixteenth;
}

static u64 floor_test_loss_cliff(const struct floor_load *l, u64 floor)
{
	return floor < l->need ? l->peak : 0;
}

/* A quarter of the loss stays with any floor: in open spans the window is larger. */
static u64 floor_test_loss_never_zero(const struct floor_load *l, u64 floor)
{
	return l->peak / 4 + floor_test_loss_linear(l, floor) / 4 * 3;
}

static struct floor_load floor_test_make_load(unsigned int peak, u64 need, unsigned int noise,
					      u64 seed)
{
	return (struct floor_load){
		.dev = device_make(1, noise, seed),
		.peak = peak * LOSS_ONE / 1000,
		.need = need,
		.loss = floor_test_loss_linear,
		.window = TEST_WINDOW,
	};
}

/* Observation in a span of @f; in a span that settles @in_flight is arbitrary. */
static struct floor_span floor_test_observe(struct floor_load *l, const struct floor *f,
					    unsigned int max_loss)
{
	bool open = floor_now(f) == FLOOR_OPEN;
	u64 in_flight = f->trial.settling ? TEST_WINDOW : TEST_OPEN_COST;
	u64 loss = open ? 0 : l->loss(l, f->size);

	return (struct floor_span){
		.rate = device_add_noise(&l->dev, DEVICE_RATE / LOSS_ONE * (LOSS_ONE - loss)),
		.in_flight = open ? in_flight : f->size,
		.window = l->window,
		.least = TEST_WINDOW_MIN,
		.throttled = open ? 0 : 999,
		.spared = f->size,
		.groups = l->groups,
		.changed = l->changed,
		.may_try = true,
		.max_loss = max_loss,
	};
}

/**
 * struct floor_outcome - result of a floor in a number of spans
 */
struct floor_outcome {
	u64 size;		/* mean size */
	unsigned int loss;	/* mean loss by throttling in spans of the size, permille */
	unsigned int worst;	/* part of spans with a loss above twice the right one, permille */
	unsigned int trials;	/* part of spans that were trials, permille */
};

/* Smallest loss that is distinguishable from @max_loss, plus one percent. */
static unsigned int floor_test_get_allowed_loss(unsigned int max_loss)
{
	return max_loss + max_loss / FLOOR_RIGHT + 10;
}

static struct floor_outcome floor_test_run(struct floor *f, struct floor_load *l,
					   unsigned int max_loss, unsigned int spans)
{
	u64 loss = 0, size = 0, trials = 0, worst = 0, one;
	struct floor_outcome o;
	unsigned int i;

	for (i = 0; i < spans; i++) {
		struct floor_span s = floor_test_observe(l, f, max_loss);

		floor_span(f, &s);
		if (f->widen && l->widens)
			l->window *= 2;
		one = l->loss(l, f->size);
		loss += one;
		worst += one > 2 * floor_test_get_allowed_loss(max_loss) * LOSS_ONE / 1000;
		size += f->size;
		trials += f->phase == FLOOR_TRIAL;
	}
	o.size = div_u64(size, spans);
	o.loss = div_u64(div_u64(loss, spans), LOSS_ONE / 1000);
	o.worst = div_u64(1000 * worst, spans);
	o.trials = div_u64(1000 * trials, spans);
	return o;
}

/* Number of spans in which a floor is found. */
#define FIND_SPANS		1500

/* Number of spans in which it is found again without a sign that the load has changed. */
#define FIND_AGAIN_SPANS	15000

/* Trials, permille of all spans: a twentieth, plus those saved up. */
#define TRIALS_MAX	60

/* Find the floor, and complete a trial in progress. */
static void floor_test_find(struct floor *f, struct floor_load *l)
{
	floor_test_run(f, l, 100, FIND_SPANS);
	while (f->phase == FLOOR_TRIAL)
		floor_test_run(f, l, 100, 1);
}

/* One span whose observation differs from @l by @change. */
static void floor_test_run_span(struct floor *f, struct floor_load *l,
				void (*change)(struct floor_span *s))
{
	struct floor_span s = floor_test_observe(l, f, 100);

	change(&s);
	floor_span(f, &s);
}

/* Whether a trial is in progress after one of at most @nr such spans. */
static bool floor_test_is_tried(struct floor *f, struct floor_load *l, unsigned int nr,
				void (*change)(struct floor_span *s))
{
	while (nr--) {
		floor_test_run_span(f, l, change);
		if (f->phase == FLOOR_TRIAL)
			return true;
	}
	return false;
}

static void floor_test_set_hardly_throttled(struct floor_span *s)
{
	s->throttled = 99;
}

static void floor_test_set_just_throttled(struct floor_span *s)
{
	s->throttled = 100;
}

static void floor_test_set_unthrottled(struct floor_span *s)
{
	s->throttled = 0;
	s->spared = false;
}

static void floor_test_set_spared(struct floor_span *s)
{
	s->throttled = 0;
	s->spared = true;
}

static void floor_test_set_full(struct floor_span *s)
{
	s->full = true;
}

static void floor_test_forbid_trial(struct floor_span *s)
{
	s->may_try = false;
}

/* Whether a floor a quarter and two requests below would lose too much. */
static bool floor_test_is_low_enough(const struct floor_load *l, u64 size, unsigned int max_loss)
{
	u64 lower = size / 4 * 3;

	return lower <= 2 * TEST_WINDOW_MIN ||
	       l->loss(l, lower - 2 * TEST_WINDOW_MIN) > max_loss * LOSS_ONE / 1000;
}

static void floor_test_expect_found(struct kunit *test, struct floor_load *l, struct floor *f,
				    unsigned int max_loss)
{
	struct floor_outcome o = floor_test_run(f, l, max_loss, 20000);

	KUNIT_EXPECT_LE_MSG(test, o.loss, floor_test_get_allowed_loss(max_loss),
			    "peak %llu need %llu max_loss %u noise %u", l->peak, l->need, max_loss,
			    l->dev.noise);
	if (o.loss < max_loss / 3 && o.size > TEST_WINDOW_MIN)
		KUNIT_EXPECT_EQ_MSG(test, floor_test_is_low_enough(l, o.size, max_loss), true,
				    "peak %llu need %llu max_loss %u noise %u size %llu", l->peak,
				    l->need, max_loss, l->dev.noise, o.size);
	KUNIT_EXPECT_LE_MSG(test, o.trials, TRIALS_MAX, "peak %llu need %llu max_loss %u noise %u",
			    l->peak, l->need, max_loss, l->dev.noise);
	KUNIT_EXPECT_LE_MSG(test, o.worst, 40, "peak %llu need %llu max_loss %u noise %u",
			    l->peak, l->need, max_loss, l->dev.noise);
}

static void floor_test_expect_found_everywhere(struct kunit *test,
					       u64 (*loss)(const struct floor_load *, u64),
					       u64 need)
{
	static const unsigned int peaks[] = { 50, 500, 900 };
	static const unsigned int limits[] = { 10, 100, 250, 999 };
	static const unsigned int noises[] = { 0, 3, 10 };
	unsigned int i, k, n;
	struct floor f;

	for (i = 0; i < ARRAY_SIZE(peaks); i++)
		for (k = 0; k < ARRAY_SIZE(limits); k++)
			for (n = 0; n < ARRAY_SIZE(noises); n++) {
				struct floor_load l =
					floor_test_make_load(peaks[i], need, noises[n], 1);

				l.loss = loss;
				floor_init(&f);
				floor_test_run(&f, &l, limits[k], FIND_SPANS);
				floor_test_expect_found(test, &l, &f, limits[k]);
			}
}

static void floor_meets_the_limit_of_a_linear_loss(struct kunit *test)
{
	floor_test_expect_found_everywhere(test, floor_test_loss_linear, TEST_OPEN_COST);
}

static void floor_is_no_larger_than_useful(struct kunit *test)
{
	floor_test_expect_found_everywhere(test, floor_test_loss_linear, TEST_OPEN_COST / 4);
}

static void floor_meets_the_limit_of_a_steep_loss(struct kunit *test)
{
	floor_test_expect_found_everywhere(test, floor_test_loss_steep, TEST_OPEN_COST);
}

static void floor_is_just_above_a_cliff(struct kunit *test)
{
	floor_test_expect_found_everywhere(test, floor_test_loss_cliff, TEST_OPEN_COST / 4);
}

/* Groups have at times more in flight than on average: the needed floor exceeds the window. */
static void floor_widens_a_window_that_loses_too_much(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 3, 10 };
	struct floor f;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(noises); i++) {
		struct floor_load l = floor_test_make_load(500, 2 * TEST_OPEN_COST, noises[i], 1);

		floor_init(&f);
		floor_test_run(&f, &l, 100, FIND_SPANS);
		KUNIT_EXPECT_EQ(test, f.size, TEST_WINDOW);
		l.widens = true;
		floor_test_run(&f, &l, 100, FIND_AGAIN_SPANS);
		KUNIT_EXPECT_EQ(test, l.window, 2 * TEST_WINDOW);
		floor_test_expect_found(test, &l, &f, 100);
	}
}

static void floor_is_found_in_much_noise(struct kunit *test)
{
	struct floor_outcome o;
	struct floor f;
	u64 seed;

	for (seed = 1; seed <= 8; seed++) {
		struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 100, seed);

		floor_init(&f);
		floor_test_run(&f, &l, 100, FIND_AGAIN_SPANS);
		o = floor_test_run(&f, &l, 100, 20000);
		KUNIT_EXPECT_LE(test, o.loss, 150);
		KUNIT_EXPECT_GE(test, o.loss, 30);
		KUNIT_EXPECT_LE(test, o.trials, TRIALS_MAX);
	}
}

/* With a linear loss the first trial finds it, after its pairs and the spans that settle. */
static void floor_needs_one_trial_for_a_linear_loss(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 0, 1);
	unsigned int spans;
	struct floor f;

	floor_init(&f);
	for (spans = 0; !f.size && spans < FIND_SPANS; spans++)
		floor_test_run(&f, &l, 100, 1);
	KUNIT_EXPECT_EQ(test, spans, 1 + 6 * TRIAL_PAIRS_MIN / 2 + 1);
	KUNIT_EXPECT_GE(test, f.size, TEST_OPEN_COST * 79 / 100);
	KUNIT_EXPECT_LE(test, f.size, TEST_OPEN_COST * 81 / 100);
}

static unsigned int floor_test_count_trial_spans(struct floor_load *l, unsigned int max_loss)
{
	unsigned int spans = 0;
	struct floor f;

	floor_init(&f);
	do {
		floor_test_run(&f, l, max_loss, 1);
		spans++;
	} while (f.phase == FLOOR_TRIAL && spans < FIND_SPANS);
	return spans;
}

static void floor_trial_lasts_as_long_as_doubt(struct kunit *test)
{
	unsigned int least = 6 * TRIAL_PAIRS_MIN / 2 + 2, most = 6 * TRIAL_PAIRS_MAX / 2 + 2;
	unsigned int spans = 0;
	u64 seed;

	for (seed = 1; seed <= 4; seed++) {
		struct floor_load near = floor_test_make_load(100, TEST_OPEN_COST, 20, seed);
		struct floor_load far = floor_test_make_load(500, TEST_OPEN_COST, 20, seed);

		KUNIT_EXPECT_EQ(test, floor_test_count_trial_spans(&far, 100), least);
		spans += floor_test_count_trial_spans(&near, 100);
		near.dev.noise = 100;
		KUNIT_EXPECT_LE(test, floor_test_count_trial_spans(&near, 100), most);
	}
	KUNIT_EXPECT_GE(test, spans, 4 * 2 * least);
}

/* Observation at the end of a trial. */
static const struct floor_span seen = { .window = TEST_WINDOW, .least = TEST_WINDOW_MIN };

static void floor_keeps_a_size_with_about_the_limit(struct kunit *test)
{
	static const s64 about[] = { 90, 100, 110 };
	struct floor f = { .high = FLOOR_OPEN,
			   .pause = FLOOR_PAUSE_MIN,
			   .size = TEST_OPEN_COST / 2 };
	unsigned int i;

	f.trial.at = 2 * TRIAL_PAIRS_MIN;
	f.in_flight = TEST_OPEN_COST;
	f.nr_open = 1;
	for (i = 0; i < ARRAY_SIZE(about); i++)
		floor_end_trial(&f, about[i], 0, 100, &seen);
	floor_end_trial(&f, 50, 60, 100, &seen);
	floor_end_trial(&f, 150, 60, 100, &seen);
	KUNIT_EXPECT_EQ(test, f.size, TEST_OPEN_COST / 2);
	KUNIT_EXPECT_EQ(test, f.pause, FLOOR_PAUSE_TRIALS * f.trial.at);
	floor_end_trial(&f, 50, 40, 100, &seen);
	KUNIT_EXPECT_LT(test, f.size, TEST_OPEN_COST / 2);
	KUNIT_EXPECT_EQ(test, f.pause, FLOOR_PAUSE_MIN);
	f.size = TEST_OPEN_COST / 2;
	floor_end_trial(&f, 150, 40, 100, &seen);
	KUNIT_EXPECT_GT(test, f.size, TEST_OPEN_COST / 2);
}

static void floor_forgets_results_that_a_trial_contradicts(struct kunit *test)
{
	struct floor f = { .low = TEST_OPEN_COST / 2,
			   .size = TEST_OPEN_COST / 4,
			   .high = TEST_OPEN_COST };

	KUNIT_EXPECT_EQ(test, floor_lower(&f, TEST_OPEN_COST, 0, 100, TEST_WINDOW_MIN),
			TEST_OPEN_COST / 4 / FLOOR_DOWN);
	KUNIT_EXPECT_EQ(test, f.low, 0);
	KUNIT_EXPECT_EQ(test, f.high, TEST_OPEN_COST / 4);
	f.size = TEST_OPEN_COST / 2;
	/* Half of the loss is to go: raise the floor by half of the distance. */
	KUNIT_EXPECT_EQ(test, floor_higher(&f, TEST_OPEN_COST, 200, 100, TEST_WINDOW_MIN),
			TEST_OPEN_COST / 4 * 3);
	KUNIT_EXPECT_EQ(test, f.low, TEST_OPEN_COST / 2);
	KUNIT_EXPECT_EQ(test, f.high, FLOOR_OPEN);
	/* A floor below the cost of a request spares no request. */
	f = (struct floor){ .high = FLOOR_OPEN, .size = 3 * TEST_WINDOW_MIN };
	KUNIT_EXPECT_EQ(test, floor_lower(&f, TEST_OPEN_COST, 0, 100, TEST_WINDOW_MIN), 0);
}

static void floor_needs_no_trial_at_the_extremes(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(900, TEST_OPEN_COST, 10, 1);
	struct floor f;
	unsigned int i;

	floor_init(&f);
	for (i = 0; i < 1000; i++) {
		floor_test_run(&f, &l, 0, 1);
		KUNIT_EXPECT_EQ(test, f.phase, FLOOR_CRUISE);
		KUNIT_EXPECT_EQ(test, floor_now(&f), FLOOR_OPEN);
	}
	for (i = 0; i < 1000; i++) {
		floor_test_run(&f, &l, FLOOR_LOSS_ONE, 1);
		KUNIT_EXPECT_EQ(test, f.phase, FLOOR_CRUISE);
		KUNIT_EXPECT_EQ(test, floor_now(&f), 0);
	}
}

/* In open spans of a trial, in its other spans, and between trials. */
static void floor_max_loss_may_change_at_any_time(struct kunit *test)
{
	static const unsigned int limits[] = { 0, 10, 100, 400, 1000 };
	unsigned int at, from, to;
	struct floor_outcome o;
	struct floor f;

	for (at = 1; at <= 45; at++)
		for (from = 0; from < ARRAY_SIZE(limits); from++)
			for (to = 0; to < ARRAY_SIZE(limits); to++) {
				struct floor_load l =
					floor_test_make_load(500, TEST_OPEN_COST, 3, at);

				floor_init(&f);
				floor_test_run(&f, &l, limits[from], at);
				floor_test_run(&f, &l, limits[to], 1);
				if (!limits[from] && limits[to])
					KUNIT_EXPECT_EQ(test, f.size, 0);
				if (!limits[to])
					KUNIT_EXPECT_EQ(test, floor_now(&f), FLOOR_OPEN);
				if (limits[to] == FLOOR_LOSS_ONE)
					KUNIT_EXPECT_EQ(test, floor_now(&f), 0);
				if (!(limits[to] % FLOOR_LOSS_ONE))
					continue;
				floor_test_run(&f, &l, limits[to], 800);
				o = floor_test_run(&f, &l, limits[to], 200);
				KUNIT_EXPECT_LE(test, o.loss,
						floor_test_get_allowed_loss(limits[to]));
				KUNIT_EXPECT_LE(test, o.size, TEST_OPEN_COST / 4 * 5);
				KUNIT_EXPECT_TRUE(test,
						  floor_test_is_low_enough(&l, o.size, limits[to]));
			}
}

/* In the long run as well, when a known loss was measured for another max_loss. */
static void floor_meets_a_new_max_loss_soon(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(900, TEST_OPEN_COST, 3, 1);
	struct floor f;

	floor_init(&f);
	floor_test_run(&f, &l, 400, FIND_AGAIN_SPANS);
	floor_test_run(&f, &l, 20, 300);
	KUNIT_EXPECT_LE(test, l.loss(&l, f.size),
			floor_test_get_allowed_loss(20) * LOSS_ONE / 1000);
	floor_test_run(&f, &l, 20, FIND_AGAIN_SPANS);
	floor_test_run(&f, &l, 400, 300);
	KUNIT_EXPECT_GE(test, l.loss(&l, f.size), 300 * LOSS_ONE / 1000);
}

/* Nothing shows that the load has changed. */
static void floor_follows_a_loss_that_changes(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 3, 10 };
	struct floor f;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(noises); i++) {
		struct floor_load l = floor_test_make_load(300, TEST_OPEN_COST / 2, noises[i], 1);

		floor_init(&f);
		floor_test_run(&f, &l, 100, FIND_AGAIN_SPANS);
		l.peak *= 2;
		floor_test_run(&f, &l, 100, FIND_SPANS);
		floor_test_expect_found(test, &l, &f, 100);
		l.need *= 2;
		floor_test_run(&f, &l, 100, FIND_SPANS);
		floor_test_expect_found(test, &l, &f, 100);
		l.peak = 0;
		floor_test_run(&f, &l, 100, FIND_AGAIN_SPANS);
		KUNIT_EXPECT_LE(test, f.size, TEST_OPEN_COST / 10);
		l.peak = LOSS_ONE / 2;
		floor_test_run(&f, &l, 100, FIND_AGAIN_SPANS);
		floor_test_expect_found(test, &l, &f, 100);
	}
}

static void floor_follows_a_change_of_groups_soon(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(300, TEST_OPEN_COST / 2, 3, 1);
	struct floor_span s;
	struct floor f;

	floor_init(&f);
	floor_test_run(&f, &l, 100, FIND_AGAIN_SPANS);
	KUNIT_EXPECT_GT(test, f.size, TEST_OPEN_COST / 4);
	/* At any time in a long pause. */
	while (f.left < 50)
		floor_test_run(&f, &l, 100, 1);
	l.peak = 0;
	s = floor_test_observe(&l, &f, 100);
	s.changed = true;
	floor_span(&f, &s);
	KUNIT_EXPECT_EQ(test, f.low, 0);
	KUNIT_EXPECT_EQ(test, f.high, FLOOR_OPEN);
	KUNIT_EXPECT_LE(test, f.left, FLOOR_PAUSE_MIN);
	floor_test_run(&f, &l, 100, 120);
	KUNIT_EXPECT_LE(test, f.size, TEST_OPEN_COST / 40);
}

static void floor_is_kept_by_number_of_groups(struct kunit *test)
{
	struct floor_load few = floor_test_make_load(500, TEST_OPEN_COST / 4, 0, 1);
	struct floor_load more = floor_test_make_load(500, TEST_OPEN_COST, 0, 1);
	struct floor_load *loads[] = { &few, &more };
	struct floor_span s;
	u64 size[2];
	struct floor f;
	unsigned int i;

	few.groups = 2;
	more.groups = 100;
	floor_init(&f);
	for (i = 0; i < 2; i++) {
		floor_test_find(&f, loads[i]);
		floor_test_expect_found(test, loads[i], &f, 100);
		size[i] = f.size;
	}
	KUNIT_EXPECT_NE(test, size[0], size[1]);
	/* Groups come and go without a trial. */
	for (i = 0; i < 10; i++) {
		floor_test_run_span(&f, loads[i % 2], floor_test_forbid_trial);
		KUNIT_EXPECT_EQ(test, f.size, size[i % 2]);
	}
	/* For another limit nothing is known. */
	s = floor_test_observe(&more, &f, 50);
	s.may_try = false;
	floor_span(&f, &s);
	s.groups = few.groups;
	floor_span(&f, &s);
	KUNIT_EXPECT_EQ(test, f.size, size[1]);
}

/* Tenants come and go. */
static void floor_has_few_trials_with_ever_changing_groups(struct kunit *test)
{
	struct floor_outcome o;
	struct floor f;
	u64 seed;

	for (seed = 1; seed <= 4; seed++) {
		struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 10, seed);

		l.changed = true;
		floor_init(&f);
		floor_test_run(&f, &l, 100, FIND_SPANS);
		o = floor_test_run(&f, &l, 100, 20000);
		KUNIT_EXPECT_LE(test, o.trials, TRIALS_MAX);
		KUNIT_EXPECT_GE(test, o.trials, 10);
		KUNIT_EXPECT_LE(test, o.loss, floor_test_get_allowed_loss(100));
	}
}

/* No floor has so small a loss: no group is throttled then, and trials are rare. */
static void floor_stops_at_an_unreachable_loss(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 10, 50 };
	struct floor_outcome o;
	struct floor f;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(noises); i++) {
		struct floor_load l = floor_test_make_load(400, TEST_OPEN_COST, noises[i], 1);

		l.loss = floor_test_loss_never_zero;
		floor_init(&f);
		floor_test_run(&f, &l, 50, FIND_AGAIN_SPANS);
		o = floor_test_run(&f, &l, 50, 20000);
		KUNIT_EXPECT_LE(test, o.trials, TRIALS_MAX);
		KUNIT_EXPECT_EQ(test, o.size, TEST_WINDOW);
		KUNIT_EXPECT_TRUE(test, f.size == TEST_WINDOW);
	}
}

/* Without throttling there is no loss. */
static void floor_has_no_trial_without_throttling(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 0, 1);
	struct floor f;

	floor_init(&f);
	KUNIT_EXPECT_FALSE(test,
			   floor_test_is_tried(&f, &l, 1000, floor_test_set_hardly_throttled));
	KUNIT_EXPECT_TRUE(test, floor_test_is_tried(&f, &l, 1, floor_test_set_just_throttled));
}

/* A floor that spares all requests may be too high; one that spares none does nothing. */
static void floor_that_spares_requests_is_tried(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 0, 1);
	struct floor f;

	floor_init(&f);
	floor_test_find(&f, &l);
	KUNIT_EXPECT_FALSE(test, floor_test_is_tried(&f, &l, 5000, floor_test_set_unthrottled));
	KUNIT_EXPECT_TRUE(test, floor_test_is_tried(&f, &l, 5000, floor_test_set_spared));
}

/* A full device loses nothing by throttling, but its floor may be too high. */
static void floor_of_a_full_device_is_tried_lower_only(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 0, 1);
	struct floor f;
	unsigned int i;

	floor_init(&f);
	for (i = 0; i < 1000; i++) {
		KUNIT_EXPECT_FALSE(test, floor_test_is_tried(&f, &l, 1, floor_test_set_full));
		KUNIT_EXPECT_TRUE(test, f.settled);
	}
	floor_test_find(&f, &l);
	KUNIT_EXPECT_NE(test, f.size, 0);
	KUNIT_EXPECT_TRUE(test, floor_test_is_tried(&f, &l, 5000, floor_test_set_full));
}

static void floor_begins_no_trial_that_may_not_begin(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 0, 1);
	struct floor f;
	unsigned int i;

	floor_init(&f);
	KUNIT_EXPECT_FALSE(test, floor_test_is_tried(&f, &l, 100, floor_test_forbid_trial));
	floor_test_run(&f, &l, 100, 1);
	KUNIT_EXPECT_EQ(test, f.phase, FLOOR_TRIAL);
	/* A trial in progress continues. */
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, floor_now(&f), FLOOR_OPEN);
		floor_test_run_span(&f, &l, floor_test_forbid_trial);
	}
	KUNIT_EXPECT_EQ(test, f.phase, FLOOR_TRIAL);
	KUNIT_EXPECT_EQ(test, floor_now(&f), 0);
}

static void floor_test_set_busy(struct floor_span *s)
{
	s->busy = true;
}

static void floor_test_run_busy(struct floor *f, struct floor_load *l, unsigned int nr)
{
	while (nr--)
		floor_test_run_span(f, l, floor_test_set_busy);
}

/* The model says that nothing is lost: no trial is needed to lower the floor. */
static void floor_of_a_busy_device_is_zero(struct kunit *test)
{
	struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 0, 1);
	struct floor_span s;
	unsigned int i;
	struct floor f;
	u64 size;

	floor_init(&f);
	floor_test_find(&f, &l);
	size = f.size;
	/* Busy spans that are not consecutive. */
	floor_test_run_busy(&f, &l, FLOOR_BUSY - 1);
	s = floor_test_observe(&l, &f, 100);
	floor_span(&f, &s);
	floor_test_run_busy(&f, &l, FLOOR_BUSY - 1);
	KUNIT_EXPECT_EQ(test, f.size, size);
	/* No further than a floor that is known to lose too much. */
	f.low = size - 1;
	floor_test_run_busy(&f, &l, 1);
	KUNIT_EXPECT_EQ(test, f.size, size);
	f.low = 0;
	floor_test_run_busy(&f, &l, FLOOR_BUSY);
	KUNIT_EXPECT_EQ(test, f.size, size / FLOOR_DOWN);
	floor_test_run_busy(&f, &l, FLOOR_BUSY - 1);
	KUNIT_EXPECT_EQ(test, f.size, size / FLOOR_DOWN);
	for (i = 0; i < 100; i++) {
		floor_test_run_busy(&f, &l, FLOOR_BUSY);
		KUNIT_EXPECT_EQ(test, f.phase, FLOOR_CRUISE);
	}
	KUNIT_EXPECT_EQ(test, f.size, 0);
	/* When the device is no longer busy the floor is found. */
	floor_test_run(&f, &l, 100, FIND_SPANS);
	floor_test_expect_found(test, &l, &f, 100);
}

static u64 floor_test_draw_number(struct rnd_state *rnd)
{
	u64 number = (u64)prandom_u32_state(rnd) << 18 | prandom_u32_state(rnd);

	return number >> prandom_u32_state(rnd) % 50;
}

/* With any observation a trial ends, no division traps, and the floor is found afterwards. */
static void floor_survives_any_observation(struct kunit *test)
{
	unsigned int i, k, trial = 0, most = 6 * TRIAL_PAIRS_MAX / 2 + 1;
	struct floor_load l = floor_test_make_load(500, TEST_OPEN_COST, 3, 1);
	struct rnd_state *rnd = &l.dev.rnd;
	struct floor_span s;
	struct floor f;

	floor_init(&f);
	for (k = 0; k < 20; k++) {
		for (i = 0; i < 5000; i++) {
			s = (struct floor_span){
				.rate = floor_test_draw_number(rnd),
				.in_flight = floor_test_draw_number(rnd),
				.window = floor_test_draw_number(rnd) << 11,
				.least = 1 + floor_test_draw_number(rnd),
				.throttled = prandom_u32_state(rnd) % 1001,
				.spared = prandom_u32_state(rnd) % 2,
				.busy = prandom_u32_state(rnd) % 100 < k,
				.full = prandom_u32_state(rnd) % 50 < k,
				.groups = prandom_u32_state(rnd) % 64 < k ?
						  floor_test_draw_number(rnd) :
						  4,
				.changed = prandom_u32_state(rnd) % 64 < k,
				.may_try = prandom_u32_state(rnd) % 8,
				.max_loss = 1 + prandom_u32_state(rnd) % 999,
			};
			if (prandom_u32_state(rnd) % 1000 < k)
				s.max_loss = prandom_u32_state(rnd) % 2 * FLOOR_LOSS_ONE;
			floor_span(&f, &s);
			trial = f.phase == FLOOR_TRIAL ? trial + 1 : 0;
			KUNIT_ASSERT_LE(test, trial, most);
			KUNIT_ASSERT_LE(test, f.left, FLOOR_PAUSE_TRIALS * 2 * TRIAL_PAIRS_MAX);
		}
		/* Any size of the floor, and any debt of trials. */
		floor_test_run(&f, &l, 100, 5 * FIND_AGAIN_SPANS);
		trial = 0;
		KUNIT_EXPECT_LE(test, l.loss(&l, f.size),
				floor_test_get_allowed_loss(100) * LOSS_ONE / 1000);
		KUNIT_EXPECT_TRUE(test, floor_test_is_low_enough(&l, f.size, 100));
	}
}

static struct kunit_case isoblk_floor_cases[] = {
	KUNIT_CASE(floor_meets_the_limit_of_a_linear_loss),
	KUNIT_CASE(floor_is_no_larger_than_useful),
	KUNIT_CASE(floor_meets_the_limit_of_a_steep_loss),
	KUNIT_CASE(floor_is_just_above_a_cliff),
	KUNIT_CASE(floor_widens_a_window_that_loses_too_much),
	KUNIT_CASE(floor_is_found_in_much_noise),
	KUNIT_CASE(floor_needs_one_trial_for_a_linear_loss),
	KUNIT_CASE(floor_trial_lasts_as_long_as_doubt),
	KUNIT_CASE(floor_keeps_a_size_with_about_the_limit),
	KUNIT_CASE(floor_forgets_results_that_a_trial_contradicts),
	KUNIT_CASE(floor_needs_no_trial_at_the_extremes),
	KUNIT_CASE(floor_max_loss_may_change_at_any_time),
	KUNIT_CASE(floor_meets_a_new_max_loss_soon),
	KUNIT_CASE(floor_follows_a_loss_that_changes),
	KUNIT_CASE(floor_follows_a_change_of_groups_soon),
	KUNIT_CASE(floor_is_kept_by_number_of_groups),
	KUNIT_CASE(floor_has_few_trials_with_ever_changing_groups),
	KUNIT_CASE(floor_stops_at_an_unreachable_loss),
	KUNIT_CASE(floor_has_no_trial_without_throttling),
	KUNIT_CASE(floor_that_spares_requests_is_tried),
	KUNIT_CASE(floor_of_a_full_device_is_tried_lower_only),
	KUNIT_CASE(floor_begins_no_trial_that_may_not_begin),
	KUNIT_CASE(floor_of_a_busy_device_is_zero),
	KUNIT_CASE(floor_survives_any_observation),
	{ }
};

static struct kunit_suite isoblk_floor_suite = {
	.name = "isoblk_floor",
	.test_cases = isoblk_floor_cases,
};

kunit_test_suite(isoblk_floor_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of isoblk's floor");
