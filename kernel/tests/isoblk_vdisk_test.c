// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of isoblk_vdisk's models, without a block device: a model is
 * told what arrives and what time it is, so here the test is the clock.
 *
 * The models are compiled into this module. It needs no other one.
 */
#include <kunit/test.h>
#include <linux/ktime.h>
#include <linux/math.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../vdisk/fixed.c"

#define READ_NS		20000
#define WRITE_NS	50000
#define TRIM_NS		3000
#define FLUSH_NS	7000
#define MAX_CMDS	1024
#define MAX_SERVERS	50

#include "vdisk_bench.h"

static const struct vdisk_params defaults = {
	.ops = &vdisk_fixed_ops,
	.servers = 4,
	.service_ns = { READ_NS, WRITE_NS, TRIM_NS, FLUSH_NS },
};

static struct vdisk_cmd *submit(struct bench *bench, enum vdisk_op op,
				u32 bytes)
{
	struct vdisk_cmd *cmd = &bench->cmds[bench->used++];

	cmd->op = op;
	cmd->bytes = bytes;
	bench->next = bench->model->ops->submit(bench->model, cmd, bench->now);
	return cmd;
}

/* Change the parameters, as the user does. */
static void change(struct bench *bench, const struct vdisk_params *params)
{
	bench->next = bench->model->ops->change(bench->model, params,
						bench->now);
}

static void expect_done(struct kunit *test, struct bench *bench,
			struct vdisk_cmd *cmd, u64 at)
{
	struct vdisk_cmd *done = next_done(bench);

	KUNIT_EXPECT_PTR_EQ(test, done, cmd);
	KUNIT_EXPECT_EQ(test, bench->now, at);
}

static void fixed_one_command_takes_its_service_time(struct kunit *test)
{
	struct bench *bench = bench_create(test, &defaults);
	struct vdisk_cmd *cmd;

	bench->now = 1000;
	cmd = submit(bench, VDISK_READ, 4096);
	KUNIT_EXPECT_EQ(test, bench->next, 1000 + READ_NS);
	expect_done(test, bench, cmd, 1000 + READ_NS);

	cmd = submit(bench, VDISK_WRITE, 4096);
	expect_done(test, bench, cmd, 1000 + READ_NS + WRITE_NS);

	cmd = submit(bench, VDISK_TRIM, 4096);
	expect_done(test, bench, cmd, 1000 + READ_NS + WRITE_NS + TRIM_NS);

	cmd = submit(bench, VDISK_FLUSH, 0);
	expect_done(test, bench, cmd,
		    1000 + READ_NS + WRITE_NS + TRIM_NS + FLUSH_NS);
	KUNIT_EXPECT_EQ(test, bench->next, VDISK_NEVER);
}

static void fixed_nothing_ends_early(struct kunit *test)
{
	struct bench *bench = bench_create(test, &defaults);
	struct vdisk_cmd *cmd = submit(bench, VDISK_READ, 4096);

	run_to(bench, READ_NS - 1);
	KUNIT_EXPECT_NULL(test, vdisk_list_pop(&bench->done));
	run_to(bench, READ_NS);
	KUNIT_EXPECT_PTR_EQ(test, vdisk_list_pop(&bench->done), cmd);
}

static void fixed_serves_in_order_of_arrival(struct kunit *test)
{
	struct bench *bench = bench_create(test, &defaults);
	u32 i;

	for (i = 0; i < 100; i++) {
		bench->now = i;
		submit(bench, VDISK_READ, 4096);
	}
	for (i = 0; i < 100; i++) {
		/* Rounds of 4 servers, each as far apart as the arrivals. */
		expect_done(test, bench, &bench->cmds[i],
			    i % 4 + (i / 4 + 1) * READ_NS);
	}
	KUNIT_EXPECT_NULL(test, next_done(bench));
}

static void fixed_ends_of_one_instant_in_order_of_submission(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	u32 i;

	params.servers = 64;
	bench = bench_create(test, &params);
	/* Every second one is a write, which began so much earlier. */
	params.service_ns[VDISK_WRITE] = READ_NS + 1;
	change(bench, &params);
	for (i = 0; i < 32; i++)
		submit(bench, VDISK_WRITE, 512);
	bench->now = 1;
	for (i = 0; i < 32; i++)
		submit(bench, VDISK_READ, 512);
	for (i = 0; i < 64; i++)
		expect_done(test, bench, &bench->cmds[i], READ_NS + 1);
}

static void fixed_throughput_is_servers_by_service_time(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	u64 ended = 0;
	u32 i;

	params.servers = 16;
	bench = bench_create(test, &params);
	for (i = 0; i < 128; i++)
		submit(bench, VDISK_READ, 4096);
	/* A closed loop of 1,000 rounds. */
	for (;;) {
		struct vdisk_cmd *cmd = next_done(bench);

		if (bench->now > 1000 * READ_NS)
			break;
		ended++;
		bench->next = bench->model->ops->submit(bench->model, cmd,
							bench->now);
	}
	KUNIT_EXPECT_EQ(test, ended, 16 * 1000);
}

static void fixed_late_calls_lose_no_throughput(struct kunit *test)
{
	struct bench *bench = bench_create(test, &defaults);
	u32 i, ended = 0;

	for (i = 0; i < 400; i++)
		submit(bench, VDISK_READ, 4096);
	/* 100 rounds of 4, looked at only once. */
	run_to(bench, 100 * READ_NS);
	while (vdisk_list_pop(&bench->done))
		ended++;
	KUNIT_EXPECT_EQ(test, ended, 400);
}

static void fixed_late_calls_start_nothing_before_it_came(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	struct vdisk_cmd *first, *second;

	params.servers = 1;
	bench = bench_create(test, &params);
	first = submit(bench, VDISK_READ, 4096);
	/* The server is free, but the model has not been told the time. */
	bench->now = READ_NS + 700;
	second = submit(bench, VDISK_READ, 4096);
	run_to(bench, READ_NS + 800);
	KUNIT_EXPECT_PTR_EQ(test, vdisk_list_pop(&bench->done), first);
	KUNIT_EXPECT_EQ(test, bench->next, 2 * READ_NS + 700);
	expect_done(test, bench, second, 2 * READ_NS + 700);
}

static void fixed_link_is_crossed_one_by_one(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	u32 i;

	/* 4,096 bytes take 4,096 ns. */
	params.bps[VDISK_READ] = NSEC_PER_SEC;
	bench = bench_create(test, &params);
	for (i = 0; i < 4; i++)
		submit(bench, VDISK_READ, 4096);
	for (i = 0; i < 4; i++)
		expect_done(test, bench, &bench->cmds[i],
			    READ_NS + (i + 1) * 4096);
}

static void fixed_link_holds_the_server(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	struct vdisk_cmd *first, *second;

	params.servers = 1;
	params.bps[VDISK_READ] = NSEC_PER_SEC;
	bench = bench_create(test, &params);
	first = submit(bench, VDISK_READ, 4096);
	second = submit(bench, VDISK_READ, 8192);
	run_to(bench, READ_NS);
	KUNIT_EXPECT_EQ(test, stats(bench).in_service, 1);
	KUNIT_EXPECT_EQ(test, stats(bench).waiting, 1);
	expect_done(test, bench, first, READ_NS + 4096);
	expect_done(test, bench, second, 2 * READ_NS + 4096 + 8192);
}

static void fixed_link_carries_exactly_its_limit(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	u32 i;

	/* 512 bytes take 170 2/3 ns: 1,000 of them must not take 171,000. */
	params.servers = 1000;
	params.bps[VDISK_WRITE] = 3000000000ULL;
	bench = bench_create(test, &params);
	for (i = 0; i < 1000; i++)
		submit(bench, VDISK_WRITE, 512);
	for (i = 0; i < 999; i++)
		next_done(bench);
	expect_done(test, bench, &bench->cmds[999], WRITE_NS + 170666);
}

/* Two centuries of queue do not end early, nor out of order. */
static void fixed_slowest_link_does_not_wrap(struct kunit *test)
{
	struct vdisk_params params = defaults;
	u64 last = 0, least = 0;
	struct vdisk_cmd *cmd;
	struct bench *bench;
	u32 i;

	params.bps[VDISK_READ] = 1;
	bench = bench_create(test, &params);
	for (i = 0; i < 8; i++)
		submit(bench, VDISK_READ, SZ_2G);
	for (i = 0; i < 8; i++) {
		cmd = next_done(bench);
		KUNIT_EXPECT_PTR_EQ(test, cmd, &bench->cmds[i]);
		KUNIT_EXPECT_GE(test, bench->now, last);
		least = min(least + SZ_2G * NSEC_PER_SEC, VDISK_FAR_NS);
		KUNIT_EXPECT_GE(test, bench->now, least);
		KUNIT_EXPECT_LT(test, bench->now, (u64)KTIME_MAX);
		last = bench->now;
	}
}

static void fixed_directions_share_servers_not_links(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	struct vdisk_cmd *read, *write, *trim, *late;

	params.servers = 3;
	params.service_ns[VDISK_WRITE] = READ_NS;
	params.service_ns[VDISK_TRIM] = READ_NS;
	params.bps[VDISK_READ] = NSEC_PER_SEC;
	params.bps[VDISK_WRITE] = NSEC_PER_SEC / 2;
	bench = bench_create(test, &params);
	read = submit(bench, VDISK_READ, 1000);
	write = submit(bench, VDISK_WRITE, 1000);
	trim = submit(bench, VDISK_TRIM, 1U << 31);
	late = submit(bench, VDISK_READ, 1000);
	/* Neither waits for the other's link, and a trim for none. */
	expect_done(test, bench, trim, READ_NS);
	expect_done(test, bench, read, READ_NS + 1000);
	expect_done(test, bench, write, READ_NS + 2000);
	/* It had the trim's server. */
	expect_done(test, bench, late, 2 * READ_NS + 1000);
}

static void fixed_more_servers_start_what_waits(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	u32 i;

	params.servers = 1;
	bench = bench_create(test, &params);
	for (i = 0; i < 4; i++)
		submit(bench, VDISK_READ, 4096);
	run_to(bench, 500);
	params.servers = 3;
	change(bench, &params);
	KUNIT_EXPECT_EQ(test, stats(bench).in_service, 3);
	expect_done(test, bench, &bench->cmds[0], READ_NS);
	expect_done(test, bench, &bench->cmds[1], READ_NS + 500);
	expect_done(test, bench, &bench->cmds[2], READ_NS + 500);
	expect_done(test, bench, &bench->cmds[3], 2 * READ_NS);
}

static void fixed_fewer_servers_interrupt_nobody(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench = bench_create(test, &params);
	u32 i;

	for (i = 0; i < 6; i++)
		submit(bench, VDISK_READ, 4096);
	params.servers = 1;
	change(bench, &params);
	KUNIT_EXPECT_EQ(test, stats(bench).in_service, 4);
	for (i = 0; i < 4; i++)
		expect_done(test, bench, &bench->cmds[i], READ_NS);
	KUNIT_EXPECT_EQ(test, stats(bench).in_service, 1);
	expect_done(test, bench, &bench->cmds[4], 2 * READ_NS);
	expect_done(test, bench, &bench->cmds[5], 3 * READ_NS);
}

static void fixed_new_times_are_for_later_starts(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	u32 i;

	params.servers = 1;
	bench = bench_create(test, &params);
	for (i = 0; i < 2; i++)
		submit(bench, VDISK_READ, 1000);
	params.service_ns[VDISK_READ] = 7;
	params.bps[VDISK_READ] = NSEC_PER_SEC;
	change(bench, &params);
	expect_done(test, bench, &bench->cmds[0], READ_NS);
	expect_done(test, bench, &bench->cmds[1], READ_NS + 7 + 1000);
}

static void fixed_new_limit_waits_for_the_crossing(struct kunit *test)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	struct vdisk_cmd *slow, *fast;

	params.bps[VDISK_READ] = NSEC_PER_SEC;
	bench = bench_create(test, &params);
	slow = submit(bench, VDISK_READ, 4096);
	params.bps[VDISK_READ] = 2 * NSEC_PER_SEC;
	change(bench, &params);
	fast = submit(bench, VDISK_READ, 4096);
	expect_done(test, bench, slow, READ_NS + 4096);
	expect_done(test, bench, fast, READ_NS + 4096 + 2048);
}

static void fixed_statistics_add_up(struct kunit *test)
{
	struct bench *bench = bench_create(test, &defaults);
	u32 i;

	for (i = 0; i < 10; i++)
		submit(bench, VDISK_READ, 4096);
	KUNIT_EXPECT_EQ(test, stats(bench).in_service, 4);
	KUNIT_EXPECT_EQ(test, stats(bench).waiting, 6);
	run_to(bench, READ_NS / 2);
	KUNIT_EXPECT_EQ(test, stats(bench).busy_ns, 4 * READ_NS / 2);
	run_to(bench, 10 * READ_NS);
	KUNIT_EXPECT_EQ(test, stats(bench).in_service, 0);
	KUNIT_EXPECT_EQ(test, stats(bench).waiting, 0);
	KUNIT_EXPECT_EQ(test, stats(bench).waiting_max, 6);
	KUNIT_EXPECT_EQ(test, stats(bench).busy_ns, 10 * READ_NS);
}

/* Return a number below a limit. */
static u32 below(struct rnd_state *rnd, u32 limit)
{
	return prandom_u32_state(rnd) % limit;
}

static void random_change(struct bench *bench, struct rnd_state *rnd,
			  struct vdisk_params *params)
{
	params->servers = 1 + below(rnd, MAX_SERVERS);
	params->service_ns[below(rnd, VDISK_NR_OPS)] = 1 + below(rnd, 100000);
	/* No limit, less than what the servers do, more. */
	params->bps[below(rnd, VDISK_TRIM)] = below(rnd, 3) * 700000000ULL;
	run_to(bench, bench->now);
	change(bench, params);
}

/*
 * Everything at random, against what holds for any run: no command is lost or
 * ends twice, and no server works for two.
 */
static void fixed_random_runs_lose_nothing(struct kunit *test)
{
	struct rnd_state rnd;
	u32 round;

	prandom_seed_state(&rnd, 20);
	for (round = 0; round < 50; round++) {
		struct vdisk_params params = defaults;
		struct bench *bench = bench_create(test, &params);
		struct vdisk_cmd *cmd;
		u32 ended = 0;
		bool *has_ended;

		has_ended = kunit_kcalloc(test, MAX_CMDS, sizeof(*has_ended),
					  GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, has_ended);

		while (bench->used < MAX_CMDS || bench->next != VDISK_NEVER) {
			u32 dice = below(&rnd, 100);

			if (dice < 50 && bench->used < MAX_CMDS)
				submit(bench, below(&rnd, VDISK_NR_OPS),
				       512 << below(&rnd, 8));
			else if (dice < 52)
				random_change(bench, &rnd, &params);
			else if (dice < 80 && bench->next != VDISK_NEVER)
				run_to(bench, max(bench->now, bench->next));
			else
				bench->now += below(&rnd, 30000);

			while ((cmd = vdisk_list_pop(&bench->done))) {
				u32 i = cmd - bench->cmds;

				KUNIT_ASSERT_FALSE(test, has_ended[i]);
				has_ended[i] = true;
				ended++;
			}
			KUNIT_ASSERT_EQ(test, bench->used, ended +
					stats(bench).in_service +
					stats(bench).waiting);
		}
		KUNIT_ASSERT_EQ(test, ended, MAX_CMDS);
		KUNIT_ASSERT_LE(test, stats(bench).busy_ns,
				MAX_SERVERS * bench->now);
	}
}

/* Return what some commands take, one after the other. */
static u64 jitter_sum(struct kunit *test, u64 jitter, u64 seed, bool late)
{
	struct vdisk_params params = defaults;
	struct bench *bench;
	u64 sum = 0;
	u32 i;

	params.servers = 1;
	params.jitter = jitter;
	params.seed = seed;
	bench = bench_create(test, &params);
	for (i = 0; i < MAX_CMDS; i++) {
		struct vdisk_cmd *cmd = submit(bench, VDISK_READ, 4096);
		u64 took = bench->next - bench->now;
		u64 most = READ_NS * jitter / 1000;

		KUNIT_EXPECT_GE(test, took, READ_NS - most);
		KUNIT_EXPECT_LE(test, took, READ_NS + most);
		/* Another order gives another sum. */
		sum += took * (i + 1);
		run_to(bench, bench->next + (late ? 12345 : 0));
		KUNIT_EXPECT_PTR_EQ(test, next_done(bench), cmd);
	}
	return sum;
}

static void jitter_is_of_the_seed_and_the_order_alone(struct kunit *test)
{
	u64 sum = jitter_sum(test, 200, 1, false);

	KUNIT_EXPECT_EQ(test, sum, jitter_sum(test, 200, 1, true));
	KUNIT_EXPECT_NE(test, sum, jitter_sum(test, 200, 2, false));
	KUNIT_EXPECT_EQ(test, jitter_sum(test, 0, 1, false),
			(u64)READ_NS * MAX_CMDS * (MAX_CMDS + 1) / 2);
	jitter_sum(test, VDISK_MAX_JITTER, 3, false);
}

/* Each value of a small range as often as another. */
static void random_numbers_are_even(struct kunit *test)
{
	u32 count[10] = { };
	u64 seed, n;
	int i;

	for (seed = 0; seed < 10; seed++) {
		for (n = 0; n < 1000; n++)
			count[vdisk_random_below(seed, n, ARRAY_SIZE(count))]++;
	}
	/* Of 10,000 drawings, 30 is one standard deviation. */
	for (i = 0; i < ARRAY_SIZE(count); i++) {
		KUNIT_EXPECT_GT(test, count[i], 1000 - 120);
		KUNIT_EXPECT_LT(test, count[i], 1000 + 120);
	}
	KUNIT_EXPECT_NE(test, vdisk_random(1, 1), vdisk_random(0, 1));
	KUNIT_EXPECT_NE(test, vdisk_random(1, 1), vdisk_random(1, 0));
	/* The first of seed 0 in the generator's authors' own program. */
	KUNIT_EXPECT_EQ(test, vdisk_random(0, 0), 0xe220a8397b1dcdaf);
}

static struct kunit_case isoblk_vdisk_cases[] = {
	KUNIT_CASE(fixed_one_command_takes_its_service_time),
	KUNIT_CASE(fixed_nothing_ends_early),
	KUNIT_CASE(fixed_serves_in_order_of_arrival),
	KUNIT_CASE(fixed_ends_of_one_instant_in_order_of_submission),
	KUNIT_CASE(fixed_throughput_is_servers_by_service_time),
	KUNIT_CASE(fixed_late_calls_lose_no_throughput),
	KUNIT_CASE(fixed_late_calls_start_nothing_before_it_came),
	KUNIT_CASE(fixed_link_is_crossed_one_by_one),
	KUNIT_CASE(fixed_link_holds_the_server),
	KUNIT_CASE(fixed_link_carries_exactly_its_limit),
	KUNIT_CASE(fixed_slowest_link_does_not_wrap),
	KUNIT_CASE(fixed_directions_share_servers_not_links),
	KUNIT_CASE(fixed_more_servers_start_what_waits),
	KUNIT_CASE(fixed_fewer_servers_interrupt_nobody),
	KUNIT_CASE(fixed_new_times_are_for_later_starts),
	KUNIT_CASE(fixed_new_limit_waits_for_the_crossing),
	KUNIT_CASE(fixed_statistics_add_up),
	KUNIT_CASE(fixed_random_runs_lose_nothing),
	KUNIT_CASE(jitter_is_of_the_seed_and_the_order_alone),
	KUNIT_CASE(random_numbers_are_even),
	{}
};

static struct kunit_suite isoblk_vdisk_suite = {
	.name = "isoblk_vdisk",
	.test_cases = isoblk_vdisk_cases,
};

kunit_test_suite(isoblk_vdisk_suite);

MODULE_DESCRIPTION("KUnit tests of isoblk_vdisk's models");
MODULE_LICENSE("GPL");
