// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of isoblk_vdisk's models, without a block device. The test is the clock: it tells
 * a model the arrivals and the time.
 *
 * The models are compiled into this module, which needs no other one.
 */
#include <kunit/test.h>
#include <linux/ktime.h>
#include <linux/math.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../vdisk/fixed.c"
#include "../vdisk/volume.c"

#define READ_NS		20000
#define WRITE_NS	50000
#define TRIM_NS		3000
#define FLUSH_NS	7000
#define MAX_CMDS	1024
#define MAX_SERVERS	50

#include "vdisk_bench.h"

static const struct vdisk_params vdisk_test_params = {
	.ops = &vdisk_fixed_ops,
	.servers = 4,
	.service_ns = { READ_NS, WRITE_NS, TRIM_NS, FLUSH_NS },
};

static struct vdisk_cmd *vdisk_test_submit(struct bench *bench, enum vdisk_op op, u32 bytes)
{
	struct vdisk_cmd *cmd = &bench->cmds[bench->nr_used++];

	cmd->op = op;
	cmd->bytes = bytes;
	bench->next_ns = bench->model->ops->submit(bench->model, cmd, bench->now_ns);
	return cmd;
}

/* Change the parameters of a live disk. */
static void vdisk_test_change_params(struct bench *bench, const struct vdisk_params *params)
{
	bench->next_ns = bench->model->ops->change(bench->model, params, bench->now_ns);
}

static void vdisk_test_expect_done(struct kunit *test, struct bench *bench, struct vdisk_cmd *cmd,
				   u64 at)
{
	struct vdisk_cmd *done = bench_next_done(bench);

	KUNIT_EXPECT_PTR_EQ(test, done, cmd);
	KUNIT_EXPECT_EQ(test, bench->now_ns, at);
}

static void fixed_one_command_takes_its_service_time(struct kunit *test)
{
	struct bench *bench = bench_create(test, &vdisk_test_params);
	struct vdisk_cmd *cmd;

	bench->now_ns = 1000;
	cmd = vdisk_test_submit(bench, VDISK_READ, 4096);
	KUNIT_EXPECT_EQ(test, bench->next_ns, 1000 + READ_NS);
	vdisk_test_expect_done(test, bench, cmd, 1000 + READ_NS);

	cmd = vdisk_test_submit(bench, VDISK_WRITE, 4096);
	vdisk_test_expect_done(test, bench, cmd, 1000 + READ_NS + WRITE_NS);

	cmd = vdisk_test_submit(bench, VDISK_TRIM, 4096);
	vdisk_test_expect_done(test, bench, cmd, 1000 + READ_NS + WRITE_NS + TRIM_NS);

	cmd = vdisk_test_submit(bench, VDISK_FLUSH, 0);
	vdisk_test_expect_done(test, bench, cmd, 1000 + READ_NS + WRITE_NS + TRIM_NS + FLUSH_NS);
	KUNIT_EXPECT_EQ(test, bench->next_ns, VDISK_NEVER_NS);
}

static void fixed_nothing_ends_early(struct kunit *test)
{
	struct bench *bench = bench_create(test, &vdisk_test_params);
	struct vdisk_cmd *cmd = vdisk_test_submit(bench, VDISK_READ, 4096);

	bench_run_to(bench, READ_NS - 1);
	KUNIT_EXPECT_NULL(test, vdisk_list_pop(&bench->done));
	bench_run_to(bench, READ_NS);
	KUNIT_EXPECT_PTR_EQ(test, vdisk_list_pop(&bench->done), cmd);
}

static void fixed_serves_in_order_of_arrival(struct kunit *test)
{
	struct bench *bench = bench_create(test, &vdisk_test_params);
	u32 i;

	for (i = 0; i < 100; i++) {
		bench->now_ns = i;
		vdisk_test_submit(bench, VDISK_READ, 4096);
	}
	for (i = 0; i < 100; i++) {
		/* Rounds of 4 servers; commands of a round end as far apart as they arrived. */
		vdisk_test_expect_done(test, bench, &bench->cmds[i], i % 4 + (i / 4 + 1) * READ_NS);
	}
	KUNIT_EXPECT_NULL(test, bench_next_done(bench));
}

static void fixed_ends_of_one_instant_in_order_of_submission(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	u32 i;

	params.servers = 64;
	bench = bench_create(test, &params);
	/* Every second command is a write, which began that much earlier. */
	params.service_ns[VDISK_WRITE] = READ_NS + 1;
	vdisk_test_change_params(bench, &params);
	for (i = 0; i < 32; i++)
		vdisk_test_submit(bench, VDISK_WRITE, 512);
	bench->now_ns = 1;
	for (i = 0; i < 32; i++)
		vdisk_test_submit(bench, VDISK_READ, 512);
	for (i = 0; i < 64; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[i], READ_NS + 1);
}

static void fixed_throughput_is_servers_over_service_time(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	u64 ended = 0;
	u32 i;

	params.servers = 16;
	bench = bench_create(test, &params);
	for (i = 0; i < 128; i++)
		vdisk_test_submit(bench, VDISK_READ, 4096);
	/* A closed loop of 1,000 rounds. */
	for (;;) {
		struct vdisk_cmd *cmd = bench_next_done(bench);

		if (bench->now_ns > 1000 * READ_NS)
			break;
		ended++;
		bench->next_ns = bench->model->ops->submit(bench->model, cmd, bench->now_ns);
	}
	KUNIT_EXPECT_EQ(test, ended, 16 * 1000);
}

static void fixed_late_calls_lose_no_throughput(struct kunit *test)
{
	struct bench *bench = bench_create(test, &vdisk_test_params);
	u32 i, ended = 0;

	for (i = 0; i < 400; i++)
		vdisk_test_submit(bench, VDISK_READ, 4096);
	/* 100 rounds of 4, with one call at the end. */
	bench_run_to(bench, 100 * READ_NS);
	while (vdisk_list_pop(&bench->done))
		ended++;
	KUNIT_EXPECT_EQ(test, ended, 400);
}

static void fixed_late_calls_start_no_command_before_its_arrival(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	struct vdisk_cmd *first, *second;

	params.servers = 1;
	bench = bench_create(test, &params);
	first = vdisk_test_submit(bench, VDISK_READ, 4096);
	/* The server is free, but no call has told the model the time. */
	bench->now_ns = READ_NS + 700;
	second = vdisk_test_submit(bench, VDISK_READ, 4096);
	bench_run_to(bench, READ_NS + 800);
	KUNIT_EXPECT_PTR_EQ(test, vdisk_list_pop(&bench->done), first);
	KUNIT_EXPECT_EQ(test, bench->next_ns, 2 * READ_NS + 700);
	vdisk_test_expect_done(test, bench, second, 2 * READ_NS + 700);
}

static void fixed_link_is_crossed_one_by_one(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	u32 i;

	/* 4,096 bytes take 4,096 ns. */
	params.bps[VDISK_READ] = NSEC_PER_SEC;
	bench = bench_create(test, &params);
	for (i = 0; i < 4; i++)
		vdisk_test_submit(bench, VDISK_READ, 4096);
	for (i = 0; i < 4; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[i], READ_NS + (i + 1) * 4096);
}

static void fixed_link_keeps_the_server_busy(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	struct vdisk_cmd *first, *second;

	params.servers = 1;
	params.bps[VDISK_READ] = NSEC_PER_SEC;
	bench = bench_create(test, &params);
	first = vdisk_test_submit(bench, VDISK_READ, 4096);
	second = vdisk_test_submit(bench, VDISK_READ, 8192);
	bench_run_to(bench, READ_NS);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 1);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, 1);
	vdisk_test_expect_done(test, bench, first, READ_NS + 4096);
	vdisk_test_expect_done(test, bench, second, 2 * READ_NS + 4096 + 8192);
}

static void fixed_link_carries_exactly_its_limit(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	u32 i;

	/* 512 bytes take 170 2/3 ns: 1,000 of them must not take 171,000. */
	params.servers = 1000;
	params.bps[VDISK_WRITE] = 3000000000ULL;
	bench = bench_create(test, &params);
	for (i = 0; i < 1000; i++)
		vdisk_test_submit(bench, VDISK_WRITE, 512);
	for (i = 0; i < 999; i++)
		bench_next_done(bench);
	vdisk_test_expect_done(test, bench, &bench->cmds[999], WRITE_NS + 170666);
}

/* A queue of two centuries neither ends early nor out of order. */
static void fixed_slowest_link_does_not_wrap(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	u64 last = 0, least = 0;
	struct vdisk_cmd *cmd;
	struct bench *bench;
	u32 i;

	params.bps[VDISK_READ] = 1;
	bench = bench_create(test, &params);
	for (i = 0; i < 8; i++)
		vdisk_test_submit(bench, VDISK_READ, SZ_2G);
	for (i = 0; i < 8; i++) {
		cmd = bench_next_done(bench);
		KUNIT_EXPECT_PTR_EQ(test, cmd, &bench->cmds[i]);
		KUNIT_EXPECT_GE(test, bench->now_ns, last);
		least = min(least + SZ_2G * NSEC_PER_SEC, VDISK_LINK_NS_MAX);
		KUNIT_EXPECT_GE(test, bench->now_ns, least);
		KUNIT_EXPECT_LT(test, bench->now_ns, (u64)KTIME_MAX);
		last = bench->now_ns;
	}
}

static void fixed_directions_share_servers_not_links(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	struct vdisk_cmd *read, *write, *trim, *late;

	params.servers = 3;
	params.service_ns[VDISK_WRITE] = READ_NS;
	params.service_ns[VDISK_TRIM] = READ_NS;
	params.bps[VDISK_READ] = NSEC_PER_SEC;
	params.bps[VDISK_WRITE] = NSEC_PER_SEC / 2;
	bench = bench_create(test, &params);
	read = vdisk_test_submit(bench, VDISK_READ, 1000);
	write = vdisk_test_submit(bench, VDISK_WRITE, 1000);
	trim = vdisk_test_submit(bench, VDISK_TRIM, 1U << 31);
	late = vdisk_test_submit(bench, VDISK_READ, 1000);
	/* Read and write use a link each, and a trim uses none. */
	vdisk_test_expect_done(test, bench, trim, READ_NS);
	vdisk_test_expect_done(test, bench, read, READ_NS + 1000);
	vdisk_test_expect_done(test, bench, write, READ_NS + 2000);
	/* It used the server of the trim. */
	vdisk_test_expect_done(test, bench, late, 2 * READ_NS + 1000);
}

static void fixed_more_servers_start_waiting_commands(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	u32 i;

	params.servers = 1;
	bench = bench_create(test, &params);
	for (i = 0; i < 4; i++)
		vdisk_test_submit(bench, VDISK_READ, 4096);
	bench_run_to(bench, 500);
	params.servers = 3;
	vdisk_test_change_params(bench, &params);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 3);
	vdisk_test_expect_done(test, bench, &bench->cmds[0], READ_NS);
	vdisk_test_expect_done(test, bench, &bench->cmds[1], READ_NS + 500);
	vdisk_test_expect_done(test, bench, &bench->cmds[2], READ_NS + 500);
	vdisk_test_expect_done(test, bench, &bench->cmds[3], 2 * READ_NS);
}

static void fixed_fewer_servers_interrupt_no_command(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench = bench_create(test, &params);
	u32 i;

	for (i = 0; i < 6; i++)
		vdisk_test_submit(bench, VDISK_READ, 4096);
	params.servers = 1;
	vdisk_test_change_params(bench, &params);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 4);
	for (i = 0; i < 4; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[i], READ_NS);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 1);
	vdisk_test_expect_done(test, bench, &bench->cmds[4], 2 * READ_NS);
	vdisk_test_expect_done(test, bench, &bench->cmds[5], 3 * READ_NS);
}

static void fixed_new_times_are_for_later_starts(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	u32 i;

	params.servers = 1;
	bench = bench_create(test, &params);
	for (i = 0; i < 2; i++)
		vdisk_test_submit(bench, VDISK_READ, 1000);
	params.service_ns[VDISK_READ] = 7;
	params.bps[VDISK_READ] = NSEC_PER_SEC;
	vdisk_test_change_params(bench, &params);
	vdisk_test_expect_done(test, bench, &bench->cmds[0], READ_NS);
	vdisk_test_expect_done(test, bench, &bench->cmds[1], READ_NS + 7 + 1000);
}

static void fixed_new_limit_waits_for_the_crossing(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	struct vdisk_cmd *slow, *fast;

	params.bps[VDISK_READ] = NSEC_PER_SEC;
	bench = bench_create(test, &params);
	slow = vdisk_test_submit(bench, VDISK_READ, 4096);
	params.bps[VDISK_READ] = 2 * NSEC_PER_SEC;
	vdisk_test_change_params(bench, &params);
	fast = vdisk_test_submit(bench, VDISK_READ, 4096);
	vdisk_test_expect_done(test, bench, slow, READ_NS + 4096);
	vdisk_test_expect_done(test, bench, fast, READ_NS + 4096 + 2048);
}

static void fixed_statistics_add_up(struct kunit *test)
{
	struct bench *bench = bench_create(test, &vdisk_test_params);
	u32 i;

	for (i = 0; i < 10; i++)
		vdisk_test_submit(bench, VDISK_READ, 4096);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 4);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, 6);
	bench_run_to(bench, READ_NS / 2);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).busy_ns, 4 * READ_NS / 2);
	bench_run_to(bench, 10 * READ_NS);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 0);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, 0);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting_max, 6);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).busy_ns, 10 * READ_NS);
}

/* Return: a random number below @limit. */
static u32 vdisk_test_random_below(struct rnd_state *rnd, u32 limit)
{
	return prandom_u32_state(rnd) % limit;
}

static void vdisk_test_random_change(struct bench *bench, struct rnd_state *rnd,
				     struct vdisk_params *params)
{
	params->servers = 1 + vdisk_test_random_below(rnd, MAX_SERVERS);
	params->service_ns[vdisk_test_random_below(rnd, VDISK_NR_OPS)] =
		1 + vdisk_test_random_below(rnd, 100000);
	/* No limit, one below the servers' rate, one above it. */
	params->bps[vdisk_test_random_below(rnd, VDISK_TRIM)] =
		vdisk_test_random_below(rnd, 3) * 700000000ULL;
	params->volume.iops = vdisk_test_random_below(rnd, 3) * 50000;
	params->volume.bps = vdisk_test_random_below(rnd, 3) * 500000000ULL;
	params->volume.burst_ns = vdisk_test_random_below(rnd, 2) * 100000;
	params->volume.net_ns = vdisk_test_random_below(rnd, 2) * 50000;
	params->volume.net_spread = vdisk_test_random_below(rnd, 1001);
	bench_run_to(bench, bench->now_ns);
	vdisk_test_change_params(bench, params);
}

/*
 * Random runs, against invariants of any run: no command is lost or ends twice, and no server has
 * two commands.
 */
static void fixed_random_runs_lose_no_command(struct kunit *test)
{
	struct rnd_state rnd;
	u32 round;

	prandom_seed_state(&rnd, 20);
	for (round = 0; round < 50; round++) {
		struct vdisk_params params = vdisk_test_params;
		struct bench *bench = bench_create(test, &params);
		struct vdisk_cmd *cmd;
		u32 ended = 0;
		bool *has_ended;

		has_ended = kunit_kcalloc(test, MAX_CMDS, sizeof(*has_ended),
					  GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, has_ended);

		while (bench->nr_used < MAX_CMDS || bench->next_ns != VDISK_NEVER_NS) {
			u32 dice = vdisk_test_random_below(&rnd, 100);

			if (dice < 50 && bench->nr_used < MAX_CMDS)
				vdisk_test_submit(bench,
						  vdisk_test_random_below(&rnd, VDISK_NR_OPS),
						  512 << vdisk_test_random_below(&rnd, 8));
			else if (dice < 52)
				vdisk_test_random_change(bench, &rnd, &params);
			else if (dice < 80 && bench->next_ns != VDISK_NEVER_NS)
				bench_run_to(bench, max(bench->now_ns, bench->next_ns));
			else
				bench->now_ns += vdisk_test_random_below(&rnd, 30000);

			while ((cmd = vdisk_list_pop(&bench->done))) {
				u32 i = cmd - bench->cmds;

				KUNIT_ASSERT_FALSE(test, has_ended[i]);
				has_ended[i] = true;
				ended++;
			}
			KUNIT_ASSERT_EQ(test, bench->nr_used,
					ended + bench_get_stats(bench).nr_in_service +
						bench_get_stats(bench).nr_waiting);
		}
		KUNIT_ASSERT_EQ(test, ended, MAX_CMDS);
		KUNIT_ASSERT_LE(test, bench_get_stats(bench).busy_ns, MAX_SERVERS * bench->now_ns);
	}
}

/* Return: the time that some commands take, one after another. */
static u64 vdisk_test_sum_jitter(struct kunit *test, u64 jitter, u64 seed, bool late)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	u64 sum = 0;
	u32 i;

	params.servers = 1;
	params.jitter = jitter;
	params.seed = seed;
	bench = bench_create(test, &params);
	for (i = 0; i < MAX_CMDS; i++) {
		struct vdisk_cmd *cmd = vdisk_test_submit(bench, VDISK_READ, 4096);
		u64 took = bench->next_ns - bench->now_ns;
		u64 most = READ_NS * jitter / 1000;

		KUNIT_EXPECT_GE(test, took, READ_NS - most);
		KUNIT_EXPECT_LE(test, took, READ_NS + most);
		/* The sum depends on the order. */
		sum += took * (i + 1);
		bench_run_to(bench, bench->next_ns + (late ? 12345 : 0));
		KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), cmd);
	}
	return sum;
}

static void vdisk_jitter_follows_seed_and_order(struct kunit *test)
{
	u64 sum = vdisk_test_sum_jitter(test, 200, 1, false);

	KUNIT_EXPECT_EQ(test, sum, vdisk_test_sum_jitter(test, 200, 1, true));
	KUNIT_EXPECT_NE(test, sum, vdisk_test_sum_jitter(test, 200, 2, false));
	KUNIT_EXPECT_EQ(test, vdisk_test_sum_jitter(test, 0, 1, false),
			(u64)READ_NS * MAX_CMDS * (MAX_CMDS + 1) / 2);
	vdisk_test_sum_jitter(test, VDISK_JITTER_MAX, 3, false);
}

/* All values of a small range are equally frequent. */
static void vdisk_random_numbers_are_uniform(struct kunit *test)
{
	u32 count[10] = { };
	u64 seed, n;
	int i;

	for (seed = 0; seed < 10; seed++) {
		for (n = 0; n < 1000; n++)
			count[vdisk_random_below(seed, n, ARRAY_SIZE(count))]++;
	}
	/* Of 10,000 numbers, 30 is one standard deviation. */
	for (i = 0; i < ARRAY_SIZE(count); i++) {
		KUNIT_EXPECT_GT(test, count[i], 1000 - 120);
		KUNIT_EXPECT_LT(test, count[i], 1000 + 120);
	}
	KUNIT_EXPECT_NE(test, vdisk_random(1, 1), vdisk_random(0, 1));
	KUNIT_EXPECT_NE(test, vdisk_random(1, 1), vdisk_random(1, 0));
	/* The first number of seed 0 in the reference program of the generator's authors. */
	KUNIT_EXPECT_EQ(test, vdisk_random(0, 0), 0xe220a8397b1dcdaf);
}

/* ---- cloud volumes ---- */

/* A volume with more servers than its limits need. */
static struct vdisk_params volume_test_make_params(u64 iops, u64 bps, u64 burst_ns)
{
	struct vdisk_params params = vdisk_test_params;

	params.servers = MAX_CMDS;
	params.volume.iops = iops;
	params.volume.bps = bps;
	params.volume.burst_ns = burst_ns;
	return params;
}

/* Send a command that no other command continues. */
static struct vdisk_cmd *volume_test_submit_apart(struct bench *bench, enum vdisk_op op, u32 bytes)
{
	bench->cmds[bench->nr_used].pos = (u64)bench->nr_used << 30;
	return vdisk_test_submit(bench, op, bytes);
}

static void volume_limits_requests_exactly(struct kunit *test)
{
	/* A request takes 333,333 1/3 ns. */
	struct vdisk_params params = volume_test_make_params(3000, 0, 0);
	struct bench *bench = bench_create(test, &params);
	u32 i;

	bench->now_ns = 5000;
	for (i = 0; i < 301; i++)
		volume_test_submit_apart(bench, i % 2 ? VDISK_READ : VDISK_TRIM, 4096);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 1);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, 300);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting_max, 300);
	for (i = 0; i < 301; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[i],
				       5000 + i * 1000000ULL / 3 + (i % 2 ? READ_NS : TRIM_NS));
}

static void volume_counts_a_large_request_by_its_parts(struct kunit *test)
{
	struct vdisk_params params = volume_test_make_params(1000, 0, 0);
	struct bench *bench = bench_create(test, &params);
	u32 i;

	volume_test_submit_apart(bench, VDISK_WRITE, VDISK_VOLUME_IO_BYTES);
	volume_test_submit_apart(bench, VDISK_WRITE, VDISK_VOLUME_IO_BYTES + 512);
	volume_test_submit_apart(bench, VDISK_WRITE, 512);
	/* A flush is free, and a trim costs as much as a small request. */
	vdisk_test_submit(bench, VDISK_FLUSH, 0);
	volume_test_submit_apart(bench, VDISK_TRIM, SZ_1G);
	volume_test_submit_apart(bench, VDISK_WRITE, 512);
	for (i = 0; i < 6; i++) {
		static const u64 ms[] = { 0, 1, 3, 3, 4, 5 };
		static const u64 ns[] = { WRITE_NS, WRITE_NS, WRITE_NS,
					  FLUSH_NS, TRIM_NS, WRITE_NS };
		static const u32 order[] = { 0, 1, 3, 2, 4, 5 };
		u32 nr = order[i];

		vdisk_test_expect_done(test, bench, &bench->cmds[nr],
				       ms[nr] * NSEC_PER_MSEC + ns[nr]);
	}
}

static void volume_limits_bytes_exactly(struct kunit *test)
{
	struct vdisk_params params = volume_test_make_params(0, 128000000, 0);
	struct bench *bench = bench_create(test, &params);
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < 100; i++)
		volume_test_submit_apart(bench, i % 2 ? VDISK_READ : VDISK_WRITE, (i + 1) * 4096);
	for (i = 0; i < 100; i++) {
		struct vdisk_cmd *cmd = bench_next_done(bench);

		/* Reads end before the write that was sent before them. */
		bytes += cmd->bytes;
	}
	KUNIT_EXPECT_EQ(test, bytes, 5050 * 4096);
	KUNIT_EXPECT_EQ(test, bench->now_ns, (bytes - 100 * 4096) * 1000 / 128 + READ_NS);
}

static void volume_saves_tokens_for_a_burst(struct kunit *test)
{
	struct vdisk_params params = volume_test_make_params(1000, 0, 5000000);
	struct bench *bench = bench_create(test, &params);
	u32 i;

	/* Five saved requests, and one that leaves a debt. */
	for (i = 0; i < 10; i++)
		volume_test_submit_apart(bench, VDISK_READ, 4096);
	for (i = 0; i < 10; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[i],
				       READ_NS + (i > 5 ? i - 5 : 0) * 1000000ULL);
	/* After 3 ms as many more; after a long time all of them. */
	bench->now_ns = 4000000 + 3000000;
	for (i = 0; i < 5; i++)
		volume_test_submit_apart(bench, VDISK_READ, 4096);
	for (i = 0; i < 5; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[10 + i],
				       READ_NS + 7000000 + (i > 2 ? i - 2 : 0) * 1000000ULL);
	bench->now_ns = NSEC_PER_SEC;
	for (i = 0; i < 6; i++)
		volume_test_submit_apart(bench, VDISK_READ, 4096);
	for (i = 0; i < 6; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[15 + i], NSEC_PER_SEC + READ_NS);
}

static void volume_merges_sequential_waiting_commands(struct kunit *test)
{
	struct vdisk_params params = volume_test_make_params(1000, 0, 0);
	struct bench *bench = bench_create(test, &params);
	u32 i;

	/* The first command did not wait, so no other is merged with it. */
	for (i = 0; i < 130; i++) {
		bench->cmds[i].pos = i * 4096;
		vdisk_test_submit(bench, VDISK_READ, 4096);
	}
	for (i = 0; i < 130; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[i],
				       READ_NS + (i + 63) / 64 * 1000000ULL);
	/* No merge with another direction, nor while no command waits. */
	bench->now_ns = NSEC_PER_SEC;
	for (i = 130; i < 133; i++) {
		bench->cmds[i].pos = i * 4096;
		vdisk_test_submit(bench, i == 131 ? VDISK_WRITE : VDISK_READ, 4096);
	}
	vdisk_test_expect_done(test, bench, &bench->cmds[130], NSEC_PER_SEC + READ_NS);
	vdisk_test_expect_done(test, bench, &bench->cmds[131], NSEC_PER_SEC + 1000000 + WRITE_NS);
	vdisk_test_expect_done(test, bench, &bench->cmds[132], NSEC_PER_SEC + 2000000 + READ_NS);
}

static void volume_limits_change_while_commands_wait(struct kunit *test)
{
	struct vdisk_params params = volume_test_make_params(10, 0, 0);
	struct bench *bench = bench_create(test, &params);
	u32 i;

	for (i = 0; i < 5; i++)
		volume_test_submit_apart(bench, VDISK_READ, 4096);
	bench_run_to(bench, 150000000);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_PTR_EQ(test, vdisk_list_pop(&bench->done),
				    &bench->cmds[i]);
	/* The debt of the second command is paid at the old limit. */
	params.volume.iops = 1000;
	vdisk_test_change_params(bench, &params);
	vdisk_test_expect_done(test, bench, &bench->cmds[2], 200000000 + READ_NS);
	vdisk_test_expect_done(test, bench, &bench->cmds[3], 201000000 + READ_NS);
	params.volume.iops = 0;
	vdisk_test_change_params(bench, &params);
	vdisk_test_expect_done(test, bench, &bench->cmds[4], bench->now_ns + READ_NS);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, 0);
}

static void volume_network_keeps_no_server_busy(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct bench *bench;
	u32 i;

	params.servers = 1;
	params.volume.net_ns = 500000;
	bench = bench_create(test, &params);
	for (i = 0; i < 4; i++)
		vdisk_test_submit(bench, VDISK_READ, 4096);
	bench_run_to(bench, 3 * READ_NS);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 4);
	for (i = 0; i < 4; i++)
		vdisk_test_expect_done(test, bench, &bench->cmds[i], (i + 1) * READ_NS + 500000);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).busy_ns, 4 * READ_NS);
}

static void volume_network_has_a_minimum_and_a_tail(struct kunit *test)
{
	struct vdisk_params params = vdisk_test_params;
	struct vdisk_volume volume;
	u64 sum = 0, floor = 700000;
	u32 i, late = 0, seed;

	params.volume.net_ns = 1000000;
	params.volume.net_spread = 300;
	for (seed = 0; seed < 10; seed++) {
		params.seed = seed;
		vdisk_volume_init(&volume, &params);
		for (i = 0; i < 10000; i++) {
			u64 ns = vdisk_volume_draw_net_ns(&volume, i);

			KUNIT_ASSERT_GE(test, ns, floor);
			sum += ns - floor;
			/* -ln(0.01) is 4.605. */
			late += ns > floor + 4605 * 300;
		}
	}
	/* The standard deviations are 949 for ns of the sum, and 31 for the count. */
	KUNIT_EXPECT_LT(test, abs_diff(div_u64(sum, 100000), 300000ULL), 4000);
	KUNIT_EXPECT_LT(test, abs_diff(late, 1000U), 120);
	KUNIT_EXPECT_EQ(test, vdisk_volume_draw_net_ns(&volume, 5),
			vdisk_volume_draw_net_ns(&volume, 5));
	KUNIT_EXPECT_NE(test, vdisk_volume_draw_net_ns(&volume, 5),
			vdisk_volume_draw_net_ns(&volume, 6));
	/* Nothing but the tail; its longest possible value is 22 means. */
	params.volume.net_spread = 1000;
	vdisk_volume_init(&volume, &params);
	for (i = 0; i < 10000; i++)
		KUNIT_ASSERT_LT(test, vdisk_volume_draw_net_ns(&volume, i),
				23000000);
}

/* Return: a sum over the ends of all commands, in order. */
static u64 volume_test_run_load(struct kunit *test, const struct vdisk_params *params, u32 step)
{
	struct bench *bench = bench_create(test, params);
	struct vdisk_cmd *cmd;
	struct rnd_state rnd;
	u64 at = 0, sum = 0;

	prandom_seed_state(&rnd, 21);
	while (bench->nr_used < MAX_CMDS) {
		at += vdisk_test_random_below(&rnd, 200000);
		while (step && bench->now_ns + step < at)
			bench_run_to(bench, bench->now_ns + step);
		while (!step && bench->next_ns < at)
			bench_run_to(bench, bench->next_ns);
		bench->now_ns = at;
		volume_test_submit_apart(bench, vdisk_test_random_below(&rnd, VDISK_NR_OPS),
					 512 << vdisk_test_random_below(&rnd, 8));
	}
	while (bench->next_ns != VDISK_NEVER_NS)
		bench_run_to(bench, step ? bench->now_ns + step : bench->next_ns);
	while ((cmd = vdisk_list_pop(&bench->done)))
		sum = sum * 1000003 + (cmd - bench->cmds);
	return sum;
}

static void volume_late_calls_change_no_order(struct kunit *test)
{
	struct vdisk_params params = volume_test_make_params(8000, 100000000, 2000000);
	u64 sum;

	params.servers = 2;
	params.jitter = 300;
	params.volume.net_ns = 300000;
	params.volume.net_spread = 500;
	sum = volume_test_run_load(test, &params, 0);
	KUNIT_EXPECT_EQ(test, volume_test_run_load(test, &params, 777), sum);
	params.seed++;
	KUNIT_EXPECT_NE(test, volume_test_run_load(test, &params, 0), sum);
}

static struct kunit_case isoblk_vdisk_cases[] = {
	KUNIT_CASE(fixed_one_command_takes_its_service_time),
	KUNIT_CASE(fixed_nothing_ends_early),
	KUNIT_CASE(fixed_serves_in_order_of_arrival),
	KUNIT_CASE(fixed_ends_of_one_instant_in_order_of_submission),
	KUNIT_CASE(fixed_throughput_is_servers_over_service_time),
	KUNIT_CASE(fixed_late_calls_lose_no_throughput),
	KUNIT_CASE(fixed_late_calls_start_no_command_before_its_arrival),
	KUNIT_CASE(fixed_link_is_crossed_one_by_one),
	KUNIT_CASE(fixed_link_keeps_the_server_busy),
	KUNIT_CASE(fixed_link_carries_exactly_its_limit),
	KUNIT_CASE(fixed_slowest_link_does_not_wrap),
	KUNIT_CASE(fixed_directions_share_servers_not_links),
	KUNIT_CASE(fixed_more_servers_start_waiting_commands),
	KUNIT_CASE(fixed_fewer_servers_interrupt_no_command),
	KUNIT_CASE(fixed_new_times_are_for_later_starts),
	KUNIT_CASE(fixed_new_limit_waits_for_the_crossing),
	KUNIT_CASE(fixed_statistics_add_up),
	KUNIT_CASE(fixed_random_runs_lose_no_command),
	KUNIT_CASE(vdisk_jitter_follows_seed_and_order),
	KUNIT_CASE(vdisk_random_numbers_are_uniform),
	KUNIT_CASE(volume_limits_requests_exactly),
	KUNIT_CASE(volume_counts_a_large_request_by_its_parts),
	KUNIT_CASE(volume_limits_bytes_exactly),
	KUNIT_CASE(volume_saves_tokens_for_a_burst),
	KUNIT_CASE(volume_merges_sequential_waiting_commands),
	KUNIT_CASE(volume_limits_change_while_commands_wait),
	KUNIT_CASE(volume_network_keeps_no_server_busy),
	KUNIT_CASE(volume_network_has_a_minimum_and_a_tail),
	KUNIT_CASE(volume_late_calls_change_no_order),
	{}
};

static struct kunit_suite isoblk_vdisk_suite = {
	.name = "isoblk_vdisk",
	.test_cases = isoblk_vdisk_cases,
};

kunit_test_suite(isoblk_vdisk_suite);

MODULE_DESCRIPTION("KUnit tests of isoblk_vdisk's models");
MODULE_LICENSE("GPL");
