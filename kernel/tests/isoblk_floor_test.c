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

#define WINDOW		500000ULL
#define LEAST		5000ULL

/* Mean cost in flight while no group is throttled. */
#define OPEN		400000ULL

/* Unit of a loss. */
#define LOSS_ONE	1000000ULL

/**
 * struct load - groups on a device, and the loss by throttling them
 */
struct load {
	struct device dev;
	u64 peak;		/* loss with no floor, of LOSS_ONE */
	u64 need;		/* floor from which on the loss is zero or almost zero */
	u64 (*loss)(const struct load *l, u64 floor);
	unsigned int groups;	/* number of active groups */
	bool changed;		/* other groups are active in each span */
	u64 window;		/* cost that may be in flight */
	bool widens;		/* the window grows if the floor finds it too small */
};

static u64 linear(const struct load *l, u64 floor)
{
	return l->peak * (l->need - min(floor, l->need)) / l->need;
}

/* Halved by each sixteenth of @need. */
static u64 steep(const struct load *l, u64 floor)
{
	u64 sixteenth = l->need / 16, n = div64_u64(floor, sixteenth);

	if (n >= 32)
		return 0;
	return (l->peak >> n) - (l->peak >> (n + 1)) * (floor % sixteenth) / sixteenth;
}

static u64 cliff(const struct load *l, u64 floor)
{
	return floor < l->need ? l->peak : 0;
}

/* A quarter of the loss stays with any floor: in open spans the window is larger. */
static u64 never_reached(const struct load *l, u64 floor)
{
	return l->peak / 4 + linear(l, floor) / 4 * 3;
}

static struct load load_make(unsigned int peak, u64 need, unsigned int noise, u64 seed)
{
	return (struct load){
		.dev = device_make(1, noise, seed),
		.peak = peak * LOSS_ONE / 1000,
		.need = need,
		.loss = linear,
		.window = WINDOW,
	};
}

/* Observation in a span of @f; in a span that settles @in_flight is arbitrary. */
static struct floor_span see(struct load *l, const struct floor *f, unsigned int max_loss)
{
	bool open = floor_now(f) == FLOOR_OPEN;
	u64 in_flight = f->trial.settling ? WINDOW : OPEN;
	u64 loss = open ? 0 : l->loss(l, f->size);

	return (struct floor_span){
		.rate = device_noise(&l->dev, DEVICE_RATE / LOSS_ONE * (LOSS_ONE - loss)),
		.in_flight = open ? in_flight : f->size,
		.window = l->window,
		.least = LEAST,
		.throttled = open ? 0 : 999,
		.spared = f->size,
		.groups = l->groups,
		.changed = l->changed,
		.may_try = true,
		.max_loss = max_loss,
	};
}

/**
 * struct outcome - result of a floor in a number of spans
 */
struct outcome {
	u64 size;		/* mean size */
	unsigned int loss;	/* mean loss by throttling in spans of the size, permille */
	unsigned int worst;	/* part of spans with a loss above twice the right one, permille */
	unsigned int trials;	/* part of spans that were trials, permille */
};

/* Smallest loss that is distinguishable from @max_loss, plus one percent. */
static unsigned int right(unsigned int max_loss)
{
	return max_loss + max_loss / FLOOR_RIGHT + 10;
}

static struct outcome run(struct floor *f, struct load *l, unsigned int max_loss,
			  unsigned int spans)
{
	u64 loss = 0, size = 0, trials = 0, worst = 0, one;
	struct outcome o;
	unsigned int i;

	for (i = 0; i < spans; i++) {
		struct floor_span s = see(l, f, max_loss);

		floor_span(f, &s);
		if (f->widen && l->widens)
			l->window *= 2;
		one = l->loss(l, f->size);
		loss += one;
		worst += one > 2 * right(max_loss) * LOSS_ONE / 1000;
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
#define FOUND		1500

/* Number of spans in which it is found again without a sign that the load has changed. */
#define FOUND_AGAIN	15000

/* Trials, permille of all spans: a twentieth, plus those saved up. */
#define TRIALS_MAX	60

/* Find the floor, and complete a trial in progress. */
static void find(struct floor *f, struct load *l)
{
	run(f, l, 100, FOUND);
	while (f->phase == FLOOR_TRIAL)
		run(f, l, 100, 1);
}

/* One span whose observation differs from @l by @change. */
static void span_with(struct floor *f, struct load *l, void (*change)(struct floor_span *s))
{
	struct floor_span s = see(l, f, 100);

	change(&s);
	floor_span(f, &s);
}

/* Whether a trial is in progress after one of at most @nr such spans. */
static bool is_tried_with(struct floor *f, struct load *l, unsigned int nr,
			  void (*change)(struct floor_span *s))
{
	while (nr--) {
		span_with(f, l, change);
		if (f->phase == FLOOR_TRIAL)
			return true;
	}
	return false;
}

static void hardly_throttled(struct floor_span *s)
{
	s->throttled = 99;
}

static void just_throttled(struct floor_span *s)
{
	s->throttled = 100;
}

static void free_to_send(struct floor_span *s)
{
	s->throttled = 0;
	s->spared = false;
}

static void spared(struct floor_span *s)
{
	s->throttled = 0;
	s->spared = true;
}

static void full(struct floor_span *s)
{
	s->full = true;
}

static void not_now(struct floor_span *s)
{
	s->may_try = false;
}

/* Whether a floor a quarter and two requests below would lose too much. */
static bool is_low_enough(const struct load *l, u64 size, unsigned int max_loss)
{
	u64 lower = size / 4 * 3;

	return lower <= 2 * LEAST ||
		l->loss(l, lower - 2 * LEAST) > max_loss * LOSS_ONE / 1000;
}

static void expect_found(struct kunit *test, struct load *l, struct floor *f,
			 unsigned int max_loss)
{
	struct outcome o = run(f, l, max_loss, 20000);

	KUNIT_EXPECT_LE_MSG(test, o.loss, right(max_loss),
			    "peak %llu need %llu max_loss %u noise %u",
			    l->peak, l->need, max_loss, l->dev.noise);
	if (o.loss < max_loss / 3 && o.size > LEAST)
		KUNIT_EXPECT_EQ_MSG(test, is_low_enough(l, o.size, max_loss), true,
				    "peak %llu need %llu max_loss %u noise %u size %llu",
				    l->peak, l->need, max_loss, l->dev.noise, o.size);
	KUNIT_EXPECT_LE_MSG(test, o.trials, TRIALS_MAX, "peak %llu need %llu max_loss %u noise %u",
			    l->peak, l->need, max_loss, l->dev.noise);
	KUNIT_EXPECT_LE_MSG(test, o.worst, 40, "peak %llu need %llu max_loss %u noise %u",
			    l->peak, l->need, max_loss, l->dev.noise);
}

static void expect_found_everywhere(struct kunit *test, u64 (*loss)(const struct load *, u64),
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
				struct load l = load_make(peaks[i], need, noises[n], 1);

				l.loss = loss;
				floor_init(&f);
				run(&f, &l, limits[k], FOUND);
				expect_found(test, &l, &f, limits[k]);
			}
}

static void a_linear_loss_is_what_is_allowed(struct kunit *test)
{
	expect_found_everywhere(test, linear, OPEN);
}

static void no_floor_is_above_what_gains_something(struct kunit *test)
{
	expect_found_everywhere(test, linear, OPEN / 4);
}

static void a_steep_loss_is_what_is_allowed(struct kunit *test)
{
	expect_found_everywhere(test, steep, OPEN);
}

static void a_floor_is_just_above_a_cliff(struct kunit *test)
{
	expect_found_everywhere(test, cliff, OPEN / 4);
}

/* Groups have at times more in flight than on average: the needed floor exceeds the window. */
static void a_window_that_loses_too_much_widens(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 3, 10 };
	struct floor f;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(noises); i++) {
		struct load l = load_make(500, 2 * OPEN, noises[i], 1);

		floor_init(&f);
		run(&f, &l, 100, FOUND);
		KUNIT_EXPECT_EQ(test, f.size, WINDOW);
		l.widens = true;
		run(&f, &l, 100, FOUND_AGAIN);
		KUNIT_EXPECT_EQ(test, l.window, 2 * WINDOW);
		expect_found(test, &l, &f, 100);
	}
}

static void a_floor_is_found_in_much_noise(struct kunit *test)
{
	struct outcome o;
	struct floor f;
	u64 seed;

	for (seed = 1; seed <= 8; seed++) {
		struct load l = load_make(500, OPEN, 100, seed);

		floor_init(&f);
		run(&f, &l, 100, FOUND_AGAIN);
		o = run(&f, &l, 100, 20000);
		KUNIT_EXPECT_LE(test, o.loss, 150);
		KUNIT_EXPECT_GE(test, o.loss, 30);
		KUNIT_EXPECT_LE(test, o.trials, TRIALS_MAX);
	}
}

/* With a linear loss the first trial finds it, after its pairs and the spans that settle. */
static void a_linear_loss_takes_one_trial(struct kunit *test)
{
	struct load l = load_make(500, OPEN, 0, 1);
	unsigned int spans;
	struct floor f;

	floor_init(&f);
	for (spans = 0; !f.size && spans < FOUND; spans++)
		run(&f, &l, 100, 1);
	KUNIT_EXPECT_EQ(test, spans, 1 + 6 * TRIAL_PAIRS_MIN / 2 + 1);
	KUNIT_EXPECT_GE(test, f.size, OPEN * 79 / 100);
	KUNIT_EXPECT_LE(test, f.size, OPEN * 81 / 100);
}

static unsigned int spans_of_first_trial(struct load *l, unsigned int max_loss)
{
	unsigned int spans = 0;
	struct floor f;

	floor_init(&f);
	do {
		run(&f, l, max_loss, 1);
		spans++;
	} while (f.phase == FLOOR_TRIAL && spans < FOUND);
	return spans;
}

static void a_trial_is_as_long_as_there_is_doubt(struct kunit *test)
{
	unsigned int least = 6 * TRIAL_PAIRS_MIN / 2 + 2, most = 6 * TRIAL_PAIRS_MAX / 2 + 2;
	unsigned int spans = 0;
	u64 seed;

	for (seed = 1; seed <= 4; seed++) {
		struct load near = load_make(100, OPEN, 20, seed);
		struct load far = load_make(500, OPEN, 20, seed);

		KUNIT_EXPECT_EQ(test, spans_of_first_trial(&far, 100), least);
		spans += spans_of_first_trial(&near, 100);
		near.dev.noise = 100;
		KUNIT_EXPECT_LE(test, spans_of_first_trial(&near, 100), most);
	}
	KUNIT_EXPECT_GE(test, spans, 4 * 2 * least);
}

/* Observation at the end of a trial. */
static const struct floor_span seen = { .window = WINDOW, .least = LEAST };

static void a_loss_that_is_about_right_stays(struct kunit *test)
{
	static const s64 about[] = { 90, 100, 110 };
	struct floor f = { .high = FLOOR_OPEN, .pause = FLOOR_PAUSE_MIN, .size = OPEN / 2 };
	unsigned int i;

	f.trial.at = 2 * TRIAL_PAIRS_MIN;
	f.in_flight = OPEN;
	f.nr_open = 1;
	for (i = 0; i < ARRAY_SIZE(about); i++)
		floor_end_trial(&f, about[i], 0, 100, &seen);
	floor_end_trial(&f, 50, 60, 100, &seen);
	floor_end_trial(&f, 150, 60, 100, &seen);
	KUNIT_EXPECT_EQ(test, f.size, OPEN / 2);
	KUNIT_EXPECT_EQ(test, f.pause, FLOOR_PAUSE_TRIALS * f.trial.at);
	floor_end_trial(&f, 50, 40, 100, &seen);
	KUNIT_EXPECT_LT(test, f.size, OPEN / 2);
	KUNIT_EXPECT_EQ(test, f.pause, FLOOR_PAUSE_MIN);
	f.size = OPEN / 2;
	floor_end_trial(&f, 150, 40, 100, &seen);
	KUNIT_EXPECT_GT(test, f.size, OPEN / 2);
}

static void what_contradicts_a_trial_is_forgotten(struct kunit *test)
{
	struct floor f = { .low = OPEN / 2, .size = OPEN / 4, .high = OPEN };

	KUNIT_EXPECT_EQ(test, floor_lower(&f, OPEN, 0, 100, LEAST), OPEN / 4 / FLOOR_DOWN);
	KUNIT_EXPECT_EQ(test, f.low, 0);
	KUNIT_EXPECT_EQ(test, f.high, OPEN / 4);
	f.size = OPEN / 2;
	/* Half of the loss is to go: raise the floor by half of the distance. */
	KUNIT_EXPECT_EQ(test, floor_higher(&f, OPEN, 200, 100, LEAST), OPEN / 4 * 3);
	KUNIT_EXPECT_EQ(test, f.low, OPEN / 2);
	KUNIT_EXPECT_EQ(test, f.high, FLOOR_OPEN);
	/* A floor below the cost of a request spares no request. */
	f = (struct floor){ .high = FLOOR_OPEN, .size = 3 * LEAST };
	KUNIT_EXPECT_EQ(test, floor_lower(&f, OPEN, 0, 100, LEAST), 0);
}

static void all_or_nothing_needs_no_trial(struct kunit *test)
{
	struct load l = load_make(900, OPEN, 10, 1);
	struct floor f;
	unsigned int i;

	floor_init(&f);
	for (i = 0; i < 1000; i++) {
		run(&f, &l, 0, 1);
		KUNIT_EXPECT_EQ(test, f.phase, FLOOR_CRUISE);
		KUNIT_EXPECT_EQ(test, floor_now(&f), FLOOR_OPEN);
	}
	for (i = 0; i < 1000; i++) {
		run(&f, &l, FLOOR_LOSS_ONE, 1);
		KUNIT_EXPECT_EQ(test, f.phase, FLOOR_CRUISE);
		KUNIT_EXPECT_EQ(test, floor_now(&f), 0);
	}
}

/* In open spans of a trial, in its other spans, and between trials. */
static void max_loss_may_change_at_any_moment(struct kunit *test)
{
	static const unsigned int limits[] = { 0, 10, 100, 400, 1000 };
	unsigned int at, from, to;
	struct outcome o;
	struct floor f;

	for (at = 1; at <= 45; at++)
		for (from = 0; from < ARRAY_SIZE(limits); from++)
			for (to = 0; to < ARRAY_SIZE(limits); to++) {
				struct load l = load_make(500, OPEN, 3, at);

				floor_init(&f);
				run(&f, &l, limits[from], at);
				run(&f, &l, limits[to], 1);
				if (!limits[from] && limits[to])
					KUNIT_EXPECT_EQ(test, f.size, 0);
				if (!limits[to])
					KUNIT_EXPECT_EQ(test, floor_now(&f), FLOOR_OPEN);
				if (limits[to] == FLOOR_LOSS_ONE)
					KUNIT_EXPECT_EQ(test, floor_now(&f), 0);
				if (!(limits[to] % FLOOR_LOSS_ONE))
					continue;
				run(&f, &l, limits[to], 800);
				o = run(&f, &l, limits[to], 200);
				KUNIT_EXPECT_LE(test, o.loss, right(limits[to]));
				KUNIT_EXPECT_LE(test, o.size, OPEN / 4 * 5);
				KUNIT_EXPECT_TRUE(test, is_low_enough(&l, o.size, limits[to]));
			}
}

/* In the long run as well, when a known loss was measured for another max_loss. */
static void a_new_max_loss_is_met_soon(struct kunit *test)
{
	struct load l = load_make(900, OPEN, 3, 1);
	struct floor f;

	floor_init(&f);
	run(&f, &l, 400, FOUND_AGAIN);
	run(&f, &l, 20, 300);
	KUNIT_EXPECT_LE(test, l.loss(&l, f.size), right(20) * LOSS_ONE / 1000);
	run(&f, &l, 20, FOUND_AGAIN);
	run(&f, &l, 400, 300);
	KUNIT_EXPECT_GE(test, l.loss(&l, f.size), 300 * LOSS_ONE / 1000);
}

/* Nothing shows that the load has changed. */
static void a_loss_that_changes_is_found_again(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 3, 10 };
	struct floor f;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(noises); i++) {
		struct load l = load_make(300, OPEN / 2, noises[i], 1);

		floor_init(&f);
		run(&f, &l, 100, FOUND_AGAIN);
		l.peak *= 2;
		run(&f, &l, 100, FOUND);
		expect_found(test, &l, &f, 100);
		l.need *= 2;
		run(&f, &l, 100, FOUND);
		expect_found(test, &l, &f, 100);
		l.peak = 0;
		run(&f, &l, 100, FOUND_AGAIN);
		KUNIT_EXPECT_LE(test, f.size, OPEN / 10);
		l.peak = LOSS_ONE / 2;
		run(&f, &l, 100, FOUND_AGAIN);
		expect_found(test, &l, &f, 100);
	}
}

static void other_groups_are_found_soon(struct kunit *test)
{
	struct load l = load_make(300, OPEN / 2, 3, 1);
	struct floor_span s;
	struct floor f;

	floor_init(&f);
	run(&f, &l, 100, FOUND_AGAIN);
	KUNIT_EXPECT_GT(test, f.size, OPEN / 4);
	/* At any time in a long pause. */
	while (f.left < 50)
		run(&f, &l, 100, 1);
	l.peak = 0;
	s = see(&l, &f, 100);
	s.changed = true;
	floor_span(&f, &s);
	KUNIT_EXPECT_EQ(test, f.low, 0);
	KUNIT_EXPECT_EQ(test, f.high, FLOOR_OPEN);
	KUNIT_EXPECT_LE(test, f.left, FLOOR_PAUSE_MIN);
	run(&f, &l, 100, 120);
	KUNIT_EXPECT_LE(test, f.size, OPEN / 40);
}

static void a_floor_is_kept_by_number_of_groups(struct kunit *test)
{
	struct load few = load_make(500, OPEN / 4, 0, 1);
	struct load more = load_make(500, OPEN, 0, 1);
	struct load *loads[] = { &few, &more };
	struct floor_span s;
	u64 size[2];
	struct floor f;
	unsigned int i;

	few.groups = 2;
	more.groups = 100;
	floor_init(&f);
	for (i = 0; i < 2; i++) {
		find(&f, loads[i]);
		expect_found(test, loads[i], &f, 100);
		size[i] = f.size;
	}
	KUNIT_EXPECT_NE(test, size[0], size[1]);
	/* Groups come and go without a trial. */
	for (i = 0; i < 10; i++) {
		span_with(&f, loads[i % 2], not_now);
		KUNIT_EXPECT_EQ(test, f.size, size[i % 2]);
	}
	/* For another limit nothing is known. */
	s = see(&more, &f, 50);
	s.may_try = false;
	floor_span(&f, &s);
	s.groups = few.groups;
	floor_span(&f, &s);
	KUNIT_EXPECT_EQ(test, f.size, size[1]);
}

/* Tenants come and go. */
static void groups_that_change_for_ever_have_few_trials(struct kunit *test)
{
	struct outcome o;
	struct floor f;
	u64 seed;

	for (seed = 1; seed <= 4; seed++) {
		struct load l = load_make(500, OPEN, 10, seed);

		l.changed = true;
		floor_init(&f);
		run(&f, &l, 100, FOUND);
		o = run(&f, &l, 100, 20000);
		KUNIT_EXPECT_LE(test, o.trials, TRIALS_MAX);
		KUNIT_EXPECT_GE(test, o.trials, 10);
		KUNIT_EXPECT_LE(test, o.loss, right(100));
	}
}

/* No floor has so small a loss: no group is throttled then, and trials are rare. */
static void a_loss_that_cannot_be_reached_has_an_end(struct kunit *test)
{
	static const unsigned int noises[] = { 0, 10, 50 };
	struct outcome o;
	struct floor f;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(noises); i++) {
		struct load l = load_make(400, OPEN, noises[i], 1);

		l.loss = never_reached;
		floor_init(&f);
		run(&f, &l, 50, FOUND_AGAIN);
		o = run(&f, &l, 50, 20000);
		KUNIT_EXPECT_LE(test, o.trials, TRIALS_MAX);
		KUNIT_EXPECT_EQ(test, o.size, WINDOW);
		KUNIT_EXPECT_TRUE(test, f.size == WINDOW);
	}
}

/* Without throttling there is no loss. */
static void no_trial_without_throttling(struct kunit *test)
{
	struct load l = load_make(500, OPEN, 0, 1);
	struct floor f;

	floor_init(&f);
	KUNIT_EXPECT_FALSE(test, is_tried_with(&f, &l, 1000, hardly_throttled));
	KUNIT_EXPECT_TRUE(test, is_tried_with(&f, &l, 1, just_throttled));
}

/* A floor that spares all requests may be too high; one that spares none does nothing. */
static void a_floor_that_spares_requests_is_tried(struct kunit *test)
{
	struct load l = load_make(500, OPEN, 0, 1);
	struct floor f;

	floor_init(&f);
	find(&f, &l);
	KUNIT_EXPECT_FALSE(test, is_tried_with(&f, &l, 5000, free_to_send));
	KUNIT_EXPECT_TRUE(test, is_tried_with(&f, &l, 5000, spared));
}

/* A full device loses nothing by throttling, but its floor may be too high. */
static void a_full_device_is_tried_for_its_floor_only(struct kunit *test)
{
	struct load l = load_make(500, OPEN, 0, 1);
	struct floor f;
	unsigned int i;

	floor_init(&f);
	for (i = 0; i < 1000; i++) {
		KUNIT_EXPECT_FALSE(test, is_tried_with(&f, &l, 1, full));
		KUNIT_EXPECT_TRUE(test, f.settled);
	}
	find(&f, &l);
	KUNIT_EXPECT_NE(test, f.size, 0);
	KUNIT_EXPECT_TRUE(test, is_tried_with(&f, &l, 5000, full));
}

static void no_trial_begins_that_may_not(struct kunit *test)
{
	struct load l = load_make(500, OPEN, 0, 1);
	struct floor f;
	unsigned int i;

	floor_init(&f);
	KUNIT_EXPECT_FALSE(test, is_tried_with(&f, &l, 100, not_now));
	run(&f, &l, 100, 1);
	KUNIT_EXPECT_EQ(test, f.phase, FLOOR_TRIAL);
	/* A trial in progress continues. */
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, floor_now(&f), FLOOR_OPEN);
		span_with(&f, &l, not_now);
	}
	KUNIT_EXPECT_EQ(test, f.phase, FLOOR_TRIAL);
	KUNIT_EXPECT_EQ(test, floor_now(&f), 0);
}

static void busy(struct floor_span *s)
{
	s->busy = true;
}

static void busy_spans(struct floor *f, struct load *l, unsigned int nr)
{
	while (nr--)
		span_with(f, l, busy);
}

/* The model says that nothing is lost: no trial is needed to lower the floor. */
static void a_busy_device_needs_no_floor(struct kunit *test)
{
	struct load l = load_make(500, OPEN, 0, 1);
	struct floor_span s;
	unsigned int i;
	struct floor f;
	u64 size;

	floor_init(&f);
	find(&f, &l);
	size = f.size;
	/* Busy spans that are not consecutive. */
	busy_spans(&f, &l, FLOOR_BUSY - 1);
	s = see(&l, &f, 100);
	floor_span(&f, &s);
	busy_spans(&f, &l, FLOOR_BUSY - 1);
	KUNIT_EXPECT_EQ(test, f.size, size);
	/* No further than a floor that is known to lose too much. */
	f.low = size - 1;
	busy_spans(&f, &l, 1);
	KUNIT_EXPECT_EQ(test, f.size, size);
	f.low = 0;
	busy_spans(&f, &l, FLOOR_BUSY);
	KUNIT_EXPECT_EQ(test, f.size, size / FLOOR_DOWN);
	busy_spans(&f, &l, FLOOR_BUSY - 1);
	KUNIT_EXPECT_EQ(test, f.size, size / FLOOR_DOWN);
	for (i = 0; i < 100; i++) {
		busy_spans(&f, &l, FLOOR_BUSY);
		KUNIT_EXPECT_EQ(test, f.phase, FLOOR_CRUISE);
	}
	KUNIT_EXPECT_EQ(test, f.size, 0);
	/* When the device is no longer busy the floor is found. */
	run(&f, &l, 100, FOUND);
	expect_found(test, &l, &f, 100);
}

static u64 any_number(struct rnd_state *rnd)
{
	u64 number = (u64)prandom_u32_state(rnd) << 18 | prandom_u32_state(rnd);

	return number >> prandom_u32_state(rnd) % 50;
}

/* With any observation a trial ends, no division traps, and the floor is found afterwards. */
static void anything_seen_is_survived(struct kunit *test)
{
	unsigned int i, k, trial = 0, most = 6 * TRIAL_PAIRS_MAX / 2 + 1;
	struct load l = load_make(500, OPEN, 3, 1);
	struct rnd_state *rnd = &l.dev.rnd;
	struct floor_span s;
	struct floor f;

	floor_init(&f);
	for (k = 0; k < 20; k++) {
		for (i = 0; i < 5000; i++) {
			s = (struct floor_span){
				.rate = any_number(rnd),
				.in_flight = any_number(rnd),
				.window = any_number(rnd) << 11,
				.least = 1 + any_number(rnd),
				.throttled = prandom_u32_state(rnd) % 1001,
				.spared = prandom_u32_state(rnd) % 2,
				.busy = prandom_u32_state(rnd) % 100 < k,
				.full = prandom_u32_state(rnd) % 50 < k,
				.groups = prandom_u32_state(rnd) % 64 < k ? any_number(rnd) : 4,
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
		run(&f, &l, 100, 5 * FOUND_AGAIN);
		trial = 0;
		KUNIT_EXPECT_LE(test, l.loss(&l, f.size), right(100) * LOSS_ONE / 1000);
		KUNIT_EXPECT_TRUE(test, is_low_enough(&l, f.size, 100));
	}
}

static struct kunit_case isoblk_floor_cases[] = {
	KUNIT_CASE(a_linear_loss_is_what_is_allowed),
	KUNIT_CASE(no_floor_is_above_what_gains_something),
	KUNIT_CASE(a_steep_loss_is_what_is_allowed),
	KUNIT_CASE(a_floor_is_just_above_a_cliff),
	KUNIT_CASE(a_window_that_loses_too_much_widens),
	KUNIT_CASE(a_floor_is_found_in_much_noise),
	KUNIT_CASE(a_linear_loss_takes_one_trial),
	KUNIT_CASE(a_trial_is_as_long_as_there_is_doubt),
	KUNIT_CASE(a_loss_that_is_about_right_stays),
	KUNIT_CASE(what_contradicts_a_trial_is_forgotten),
	KUNIT_CASE(all_or_nothing_needs_no_trial),
	KUNIT_CASE(max_loss_may_change_at_any_moment),
	KUNIT_CASE(a_new_max_loss_is_met_soon),
	KUNIT_CASE(a_loss_that_changes_is_found_again),
	KUNIT_CASE(other_groups_are_found_soon),
	KUNIT_CASE(a_floor_is_kept_by_number_of_groups),
	KUNIT_CASE(groups_that_change_for_ever_have_few_trials),
	KUNIT_CASE(a_loss_that_cannot_be_reached_has_an_end),
	KUNIT_CASE(no_trial_without_throttling),
	KUNIT_CASE(a_floor_that_spares_requests_is_tried),
	KUNIT_CASE(a_full_device_is_tried_for_its_floor_only),
	KUNIT_CASE(no_trial_begins_that_may_not),
	KUNIT_CASE(a_busy_device_needs_no_floor),
	KUNIT_CASE(anything_seen_is_survived),
	{ }
};

static struct kunit_suite isoblk_floor_suite = {
	.name = "isoblk_floor",
	.test_cases = isoblk_floor_cases,
};

kunit_test_suite(isoblk_floor_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of isoblk's floor");
