// SPDX-License-Identifier: GPL-2.0-only
/*
 * isoblk's arithmetic: virtual time, and the loop that finds how much work the device
 * has at once, against devices whose answer is known. And latency targets: what is a miss,
 * and what others are left with.
 *
 * The code under test is compiled into this module. It needs no other one.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "../sched/core/room.c"
#include "../sched/core/vtime.h"
#include "../sched/core/window.c"
#include "../sched/core/squeeze.c"

#define SHARE(part)	((u32)(ISOBLK_SHARE_ONE / (part)))

/* ---- virtual time ---------------------------------------------------- */

static void a_step_is_work_over_share(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vtime_step(8, ISOBLK_SHARE_ONE),
			8ULL << VTIME_SHIFT);
	KUNIT_EXPECT_EQ(test, vtime_step(8, SHARE(4)), 32ULL << VTIME_SHIFT);
	KUNIT_EXPECT_EQ(test, vtime_step(0, SHARE(4)), 0);
}

static void the_longest_step_is_bounded(struct kunit *test)
{
	u64 step = vtime_step(GENMASK(27, 0), 1);

	KUNIT_EXPECT_LE(test, step, VTIME_STEP_MAX);
	KUNIT_EXPECT_TRUE(test, vtime_before(0, step));
}

/* A division of more than 64 bits is an exception on some processors. */
static void what_is_too_large_is_the_most(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, 3, 4), U64_MAX / 4 * 3 + 2);
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, 4, 4), U64_MAX);
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, 5, 4), U64_MAX);
	KUNIT_EXPECT_EQ(test, mul_div(U64_MAX, U64_MAX, 1), U64_MAX);
	KUNIT_EXPECT_EQ(test, vtime_step(BIT_ULL(40), 1), VTIME_STEP_MAX);
	/* The only one so far, beside one of far more weight from now on. */
	KUNIT_EXPECT_EQ(test, vtime_rescale(BIT_ULL(57), 0, ISOBLK_SHARE_ONE, 1),
			VTIME_STEP_MAX);
}

static void times_are_compared_across_the_end(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, vtime_before(U64_MAX - 5, 5));
	KUNIT_EXPECT_FALSE(test, vtime_before(5, U64_MAX - 5));
	KUNIT_EXPECT_FALSE(test, vtime_before(7, 7));
}

static void a_lead_stays_the_same_work(struct kunit *test)
{
	u64 now = 1000000;

	/* A quarter of the disk becomes an eighth: twice as far ahead. */
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + 640, now, SHARE(4), SHARE(8)),
			now + 1280);
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + 640, now, SHARE(8), SHARE(4)),
			now + 320);
}

static void who_is_behind_stays_where_it_is(struct kunit *test)
{
	u64 now = 1000000;

	KUNIT_EXPECT_EQ(test, vtime_rescale(now - 640, now, SHARE(4), SHARE(8)),
			now - 640);
	/* So does a group that had no share yet. */
	KUNIT_EXPECT_EQ(test, vtime_rescale(now + 640, now, 0, SHARE(8)),
			now + 640);
}

/* Who is served half of its share moves on as fast as the clock of all that is done. */
static void a_clock_is_half_of_all_that_is_done(struct kunit *test)
{
	struct vclock c;

	vclock_set(&c, 1000, 0, 5);
	KUNIT_EXPECT_EQ(test, vclock_now(&c, 5),
			vtime_step(1000 / 8, SHARE(4)));
	/* Without a pace it stands still. */
	KUNIT_EXPECT_EQ(test, vclock_now(&c, NSEC_PER_SEC), vclock_now(&c, 5));
}

static void a_clock_runs_on_between_two_settings(struct kunit *test)
{
	/* Exact in binary: so many units a second. */
	u64 rate = NSEC_PER_SEC >> 9;
	struct vclock c;
	u64 at;

	vclock_set(&c, 1000, rate, NSEC_PER_SEC);
	at = vclock_now(&c, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, vclock_now(&c, NSEC_PER_SEC + (1 << 20)) - at,
			vtime_step((1 << 20 >> 9) / 2, ISOBLK_SHARE_ONE));
	/* Not for long, nor back; and a long pause is no overflow. */
	KUNIT_EXPECT_EQ(test, vclock_now(&c, U64_MAX),
			vclock_now(&c, NSEC_PER_SEC + VCLOCK_MOST_NS));
	KUNIT_EXPECT_EQ(test, vclock_now(&c, 0), at);
}

/* ---- the window ------------------------------------------------------ */

#define UNIT		8ULL
#define FULL_RATE	8000000ULL

/* Epochs: a tenth of the longest pause between trials. */
#define AT_ONCE		100

/* How fast a device is that has @work at once. */
typedef u64 (*device_rate)(u64 work);

/* Sixteen servers behind one queue: no faster beyond 16 requests. */
static u64 common_queue(u64 work)
{
	return FULL_RATE * min(work, 16 * UNIT) / (16 * UNIT);
}

/* 32 dies, each with its queue: faster with every request, ever less. */
static u64 queue_a_die(u64 work)
{
	return FULL_RATE * work / (work + 31 * UNIT);
}

/* As fast with little as with much: a full write buffer. */
static u64 drained(u64 work)
{
	return FULL_RATE;
}

/* The same while it collects garbage beside. */
static u64 garbage(u64 work)
{
	return FULL_RATE / 40;
}

/* Run the loop where @demand is there for the device. Returns its speed. */
static u64 run(struct window *w, device_rate rate, u64 busy, u64 demand,
	       unsigned int epochs)
{
	u64 in = 0;

	while (epochs--) {
		struct window_epoch e = {
			.busy = busy,
			.least = 2 * UNIT,
			.limited = demand > window_now(w),
		};

		in = min(demand, window_now(w));
		e.peak = in;
		e.rate = rate(in);
		window_epoch(w, &e);
	}
	return rate(w->size);
}

static void a_common_queue_gets_what_its_servers_take(struct kunit *test)
{
	struct window w;

	window_init(&w, 4 * UNIT);
	run(&w, common_queue, 16 * UNIT, 128 * UNIT, 20000);
	KUNIT_EXPECT_GE(test, w.size, 16 * UNIT * 98 / 100);
	KUNIT_EXPECT_LE(test, w.size, 20 * UNIT);
}

static void dies_with_queues_get_all_that_there_is(struct kunit *test)
{
	struct window w;
	u64 rate;

	window_init(&w, 4 * UNIT);
	rate = run(&w, queue_a_die, 30 * UNIT, 128 * UNIT, 20000);
	KUNIT_EXPECT_GE(test, rate, queue_a_die(128 * UNIT) * 95 / 100);
}

static void a_device_that_is_drained_gets_little(struct kunit *test)
{
	struct window w;

	window_init(&w, 256 * UNIT);
	run(&w, drained, UNIT, 512 * UNIT, 20000);
	KUNIT_EXPECT_LE(test, w.size, 4 * UNIT);
	KUNIT_EXPECT_GE(test, w.size, 2 * UNIT);
}

static void the_window_grows_again_when_the_device_can_do_more(struct kunit *test)
{
	struct window w;

	window_init(&w, 4 * UNIT);
	run(&w, drained, UNIT, 512 * UNIT, 20000);
	run(&w, common_queue, 16 * UNIT, 512 * UNIT, 200000);
	KUNIT_EXPECT_GE(test, w.size, 16 * UNIT * 98 / 100);
}

static void a_device_that_becomes_faster_gets_more_at_once(struct kunit *test)
{
	struct window w;

	window_init(&w, 4 * UNIT);
	run(&w, garbage, UNIT, 512 * UNIT, 20000);
	KUNIT_EXPECT_LE(test, w.size, 3 * UNIT);
	run(&w, common_queue, 16 * UNIT, 512 * UNIT, AT_ONCE);
	KUNIT_EXPECT_GE(test, w.size, 4 * UNIT);
	run(&w, common_queue, 16 * UNIT, 512 * UNIT, 9 * AT_ONCE);
	KUNIT_EXPECT_GE(test, w.size, 16 * UNIT * 90 / 100);
}

static void nobody_waits_for_a_window_that_is_not_full(struct kunit *test)
{
	struct window w;

	window_init(&w, 256 * UNIT);
	run(&w, queue_a_die, 8 * UNIT, 8 * UNIT, 20000);
	/* Trials cost no more than a part of the time between them. */
	KUNIT_EXPECT_GE(test, w.size, 8 * UNIT);
}

static void a_load_that_comes_back_finds_the_window_that_it_left(struct kunit *test)
{
	struct window w;
	u64 found;

	window_init(&w, 4 * UNIT);
	run(&w, common_queue, 16 * UNIT, 128 * UNIT, 20000);
	found = w.size;
	run(&w, common_queue, UNIT, UNIT, 20000);
	KUNIT_EXPECT_LE(test, w.size, 4 * UNIT);
	/* At any point of a trial: in it, an epoch and those that are not counted. */
	run(&w, common_queue, 16 * UNIT, 128 * UNIT, 2 * (1 + SETTLE));
	KUNIT_EXPECT_GE(test, w.size, found);
}

/* A size that was not enough is not gone back to. */
static void growth_ends_at_the_size_that_was_faster(struct kunit *test)
{
	u64 bound = GROW_BUSY * 16 * UNIT + 2 * UNIT;
	struct window w;

	window_init(&w, bound / 2 + UNIT);
	run(&w, queue_a_die, 16 * UNIT, 512 * UNIT, 2 * (1 + SETTLE));
	KUNIT_EXPECT_EQ(test, w.phase, WINDOW_CRUISE);
	KUNIT_EXPECT_GT(test, w.size, bound);
}

/* Rates that do not vary leave no doubt, whatever their ratio to a whole number is. */
static void a_trial_of_steady_rates_ends_at_the_first_look(struct kunit *test)
{
	static const u64 less[] = { 777003, 769684, 790001, 600007 };
	unsigned int i, epochs;
	struct window w;

	for (i = 0; i < ARRAY_SIZE(less); i++) {
		struct window_epoch e = { .rate = 799999, .limited = true,
					  .busy = UNIT, .least = UNIT };

		window_init(&w, 64 * UNIT);
		w.phase = WINDOW_CRUISE;
		while (w.phase != WINDOW_TRY)
			window_epoch(&w, &e);
		for (epochs = 0; w.phase == WINDOW_TRY; epochs++) {
			e.rate = w.odd ? less[i] : 799999;
			window_epoch(&w, &e);
		}
		KUNIT_EXPECT_EQ(test, epochs, 2 * TRIAL_LOOK * (1 + SETTLE));
		KUNIT_EXPECT_EQ(test, w.size, 64 * UNIT);
	}
}

/* One request is more than the window: so it will be for ever. */
static void a_large_request_does_not_stop_growth(struct kunit *test)
{
	struct window_epoch e = { .limited = true, .busy = 16 * UNIT,
				  .least = 2 * UNIT };
	struct window w;
	unsigned int i;

	window_init(&w, 4 * UNIT);
	for (i = 0; i < AT_ONCE; i++) {
		e.rate = common_queue(window_now(&w));
		e.peak = window_now(&w) + 64 * UNIT;
		window_epoch(&w, &e);
	}
	KUNIT_EXPECT_GE(test, w.size, 16 * UNIT);
}

/*
 * A device that has fallen into step does half as much with the size that was enough,
 * until it is given more for once.
 */
static void a_device_that_does_less_is_tried_with_more(struct kunit *test)
{
	struct window_epoch e = { .limited = true, .busy = 16 * UNIT,
				  .least = 2 * UNIT };
	bool in_step = true;
	struct window w;
	unsigned int i;
	u64 enough;

	window_init(&w, 4 * UNIT);
	run(&w, common_queue, 16 * UNIT, 512 * UNIT, 40 * AT_ONCE);
	enough = w.size;
	cruise(&w, PAUSE_MOST);
	w.usual = FULL_RATE;
	for (i = 0; i < AT_ONCE; i++) {
		if (window_now(&w) > enough)
			in_step = false;
		e.rate = common_queue(window_now(&w)) >> in_step;
		e.peak = window_now(&w);
		window_epoch(&w, &e);
	}
	KUNIT_EXPECT_FALSE(test, in_step);
}

static void the_window_is_never_below_the_least(struct kunit *test)
{
	struct window_epoch e = { .rate = 1, .limited = true, .peak = 1,
				  .busy = 0, .least = 1000 };
	struct window w;
	unsigned int i;

	window_init(&w, 1);
	for (i = 0; i < 10000; i++) {
		window_epoch(&w, &e);
		KUNIT_ASSERT_GE(test, window_now(&w), 1000);
	}
}

static void no_rate_at_all_is_survived(struct kunit *test)
{
	struct window_epoch e = { .limited = true, .least = UNIT };
	struct window w;
	unsigned int i;

	window_init(&w, UNIT);
	for (i = 0; i < 10000; i++) {
		e.rate = i % 3 ? 0 : U64_MAX >> 12;
		window_epoch(&w, &e);
		KUNIT_ASSERT_LT(test, window_now(&w), BIT_ULL(40));
	}
}

/* ---- latency targets ------------------------------------------------- */

#define ALL_OF_IT	1000000ULL
#define FULL_WINDOW	(256 * UNIT)

static void three_late_of_few_are_a_miss(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, latency_judge(2, 2), LATENCY_UNSURE);
	KUNIT_EXPECT_EQ(test, latency_judge(3, 3), LATENCY_MISSED);
	KUNIT_EXPECT_EQ(test, latency_judge(10, 3), LATENCY_MISSED);
}

/* One in a hundred: three of 128 may be bad luck. */
static void as_many_as_may_be_late_are_no_miss(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, latency_judge(128, 3), LATENCY_UNSURE);
	KUNIT_EXPECT_EQ(test, latency_judge(1024, 8), LATENCY_MET);
	KUNIT_EXPECT_EQ(test, latency_judge(1024, 9), LATENCY_MISSED);
	KUNIT_EXPECT_EQ(test, latency_judge(100000, 1000), LATENCY_MISSED);
}

static void that_there_is_room_takes_many(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, latency_judge(0, 0), LATENCY_UNSURE);
	KUNIT_EXPECT_EQ(test, latency_judge(399, 0), LATENCY_UNSURE);
	KUNIT_EXPECT_EQ(test, latency_judge(400, 0), LATENCY_ROOM);
	KUNIT_EXPECT_EQ(test, latency_judge(400, 1), LATENCY_UNSURE);
	KUNIT_EXPECT_EQ(test, latency_judge(1024, 4), LATENCY_ROOM);
	KUNIT_EXPECT_EQ(test, latency_judge(1024, 5), LATENCY_MET);
}

static const struct squeeze_seen usual = {
	.peak = FULL_WINDOW,
	.least = 2 * UNIT,
	.rate = ALL_OF_IT,
};

static void the_window_gives_way_before_the_pace(struct kunit *test)
{
	struct squeeze s = {};
	unsigned int steps = 0;
	u64 before;

	do {
		before = s.window ?: FULL_WINDOW;
		squeeze_tighten(&s, 100, 50, &usual);
		KUNIT_EXPECT_LE(test, s.window, before);
		KUNIT_EXPECT_GE(test, s.window, usual.least);
	} while (!s.pace && ++steps < AT_ONCE);

	KUNIT_EXPECT_EQ(test, s.full, ALL_OF_IT);
	KUNIT_EXPECT_LE(test, s.window, usual.least + usual.least / 4);
	KUNIT_EXPECT_LT(test, s.pace, ALL_OF_IT);
}

/* Twice what may be late halves it; a little more takes an eighth; more than half never. */
static void a_step_is_as_large_as_the_miss(struct kunit *test)
{
	struct squeeze s = {};

	squeeze_tighten(&s, 1024, 9, &usual);
	KUNIT_EXPECT_EQ(test, s.window, FULL_WINDOW / 8 * 7);
	s.window = 0;
	squeeze_tighten(&s, 1024, 16, &usual);
	KUNIT_EXPECT_EQ(test, s.window, FULL_WINDOW / 2);
	s.window = 0;
	squeeze_tighten(&s, 100, 100, &usual);
	KUNIT_EXPECT_EQ(test, s.window, FULL_WINDOW / 2);
}

static void others_go_on_however_often_it_is_missed(struct kunit *test)
{
	struct squeeze s = {};
	unsigned int i;

	for (i = 0; i < AT_ONCE; i++)
		squeeze_tighten(&s, 100, 100, &usual);
	KUNIT_EXPECT_TRUE(test, squeeze_is_least(&s));
	KUNIT_EXPECT_EQ(test, s.pace, ALL_OF_IT / PACE_LEAST);
	KUNIT_EXPECT_EQ(test, s.window, usual.least);
}

static void all_is_given_back_and_the_pace_first(struct kunit *test)
{
	struct squeeze s = {};
	unsigned int i;
	u64 window;

	for (i = 0; i < AT_ONCE; i++)
		squeeze_tighten(&s, 100, 100, &usual);
	window = s.window;
	for (i = 0; s.pace && i < AT_ONCE; i++) {
		squeeze_relax(&s, FULL_WINDOW);
		KUNIT_EXPECT_EQ(test, s.window, window);
	}
	KUNIT_EXPECT_EQ(test, s.pace, 0);
	for (i = 0; s.window && i < AT_ONCE; i++)
		squeeze_relax(&s, FULL_WINDOW);
	KUNIT_EXPECT_EQ(test, s.window, 0);
	squeeze_relax(&s, FULL_WINDOW);
	KUNIT_EXPECT_EQ(test, s.window, 0);
}

/* A drive that is idle from the start, or does nothing: no division by it, no pace of 0. */
static void a_device_that_did_nothing_has_a_pace(struct kunit *test)
{
	static const struct squeeze_seen idle = { .least = 2 };
	struct squeeze s = {};
	unsigned int i;

	for (i = 0; i < AT_ONCE; i++)
		squeeze_tighten(&s, 3, 3, &idle);
	KUNIT_EXPECT_EQ(test, s.window, 2);
	KUNIT_EXPECT_EQ(test, s.pace, 1);
	KUNIT_EXPECT_TRUE(test, squeeze_is_least(&s));
}

/*
 * Reads that meet a program of the others': as often as those write. The loop ends where
 * one in a hundred is late, and stays near it.
 */
static void the_loop_finds_what_can_be_given(struct kunit *test)
{
	u64 late, part, nr = 1024, sum = 0, over = 0;
	struct squeeze s = {};
	unsigned int i;

	for (i = 0; i < 4 * AT_ONCE; i++) {
		/* A fifth is late at full speed, of any window. */
		part = s.pace ?: ALL_OF_IT;
		late = nr * part / (5 * ALL_OF_IT);
		switch (latency_judge(nr, late)) {
		case LATENCY_MISSED:
			squeeze_tighten(&s, nr, late, &usual);
			break;
		case LATENCY_ROOM:
			squeeze_relax(&s, FULL_WINDOW);
			break;
		default:
			break;
		}
		if (i < AT_ONCE)
			continue;
		sum += part;
		over += 100 * late > nr;
	}
	/* A twentieth would be exact. */
	KUNIT_EXPECT_GT(test, sum / (3 * AT_ONCE), ALL_OF_IT / 50);
	KUNIT_EXPECT_EQ(test, over, 0);
}

/* ---- room ---------------------------------------------------------------- */

static struct iso_room *make_room(struct kunit *test, unsigned int nr, u64 size)
{
	struct iso_room *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_EQ(test, iso_room_init(r, nr, NUMA_NO_NODE), 0);
	iso_room_resize(r, size);
	return r;
}

/* Whichever queue takes room, in any order: never more than there is, always all. */
static void room_is_neither_lost_nor_made(struct kunit *test)
{
	struct iso_room *r = make_room(test, 4, 100);
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

static void forced_room_is_owed(struct kunit *test)
{
	struct iso_room *r = make_room(test, 2, 10);

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

static struct kunit_case isoblk_cases[] = {
	KUNIT_CASE(a_step_is_work_over_share),
	KUNIT_CASE(the_longest_step_is_bounded),
	KUNIT_CASE(what_is_too_large_is_the_most),
	KUNIT_CASE(times_are_compared_across_the_end),
	KUNIT_CASE(a_lead_stays_the_same_work),
	KUNIT_CASE(who_is_behind_stays_where_it_is),
	KUNIT_CASE(a_clock_is_half_of_all_that_is_done),
	KUNIT_CASE(a_clock_runs_on_between_two_settings),
	KUNIT_CASE(a_common_queue_gets_what_its_servers_take),
	KUNIT_CASE(dies_with_queues_get_all_that_there_is),
	KUNIT_CASE(a_device_that_is_drained_gets_little),
	KUNIT_CASE(the_window_grows_again_when_the_device_can_do_more),
	KUNIT_CASE(a_device_that_becomes_faster_gets_more_at_once),
	KUNIT_CASE(nobody_waits_for_a_window_that_is_not_full),
	KUNIT_CASE(a_load_that_comes_back_finds_the_window_that_it_left),
	KUNIT_CASE(growth_ends_at_the_size_that_was_faster),
	KUNIT_CASE(a_trial_of_steady_rates_ends_at_the_first_look),
	KUNIT_CASE(a_large_request_does_not_stop_growth),
	KUNIT_CASE(a_device_that_does_less_is_tried_with_more),
	KUNIT_CASE(the_window_is_never_below_the_least),
	KUNIT_CASE(no_rate_at_all_is_survived),
	KUNIT_CASE(three_late_of_few_are_a_miss),
	KUNIT_CASE(as_many_as_may_be_late_are_no_miss),
	KUNIT_CASE(that_there_is_room_takes_many),
	KUNIT_CASE(the_window_gives_way_before_the_pace),
	KUNIT_CASE(a_step_is_as_large_as_the_miss),
	KUNIT_CASE(others_go_on_however_often_it_is_missed),
	KUNIT_CASE(all_is_given_back_and_the_pace_first),
	KUNIT_CASE(a_device_that_did_nothing_has_a_pace),
	KUNIT_CASE(the_loop_finds_what_can_be_given),
	KUNIT_CASE(room_is_neither_lost_nor_made),
	KUNIT_CASE(forced_room_is_owed),
	{ }
};

static struct kunit_suite isoblk_suite = {
	.name = "isoblk",
	.test_cases = isoblk_cases,
};

kunit_test_suite(isoblk_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of isoblk's arithmetic");
