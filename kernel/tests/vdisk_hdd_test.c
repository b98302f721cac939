// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "disk" of isoblk_vdisk: its geometry against the figures that it is made from, and its
 * commands against the sums of these figures. The test is the clock.
 *
 * The model is compiled into this module, and is included first because of its pr_fmt().
 */
#include "../vdisk/hdd_geo.c"
#include "../vdisk/hdd.c"
#include "../vdisk/hdd_arm.c"
#include "../vdisk/hdd_cache.c"
#include "../vdisk/hdd_controller.c"

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#define MAX_CMDS	1024
#define RPM		7200
#define TURN_NS		(60 * NSEC_PER_SEC / RPM)
#define CMD_NS		30000
#define LINK_BPS	500000000ULL
#define SIZE		(1000ULL * 1000 * 1000 * 1000 / SZ_4K * SZ_4K)

#include "vdisk_bench.h"

static const struct vdisk_params hdd_test_params = {
	.ops = &vdisk_hdd_ops,
	.size = SIZE,
	.bps = { LINK_BPS, LINK_BPS },
	.write_cache = 1,
	.seed = 1,
	.hdd = {
		.rpm = RPM,
		.seek_min_ns = 1000000,
		.seek_avg_ns = 8900000,
		.seek_max_ns = 20000000,
		.head_switch_ns = 800000,
		.heads = 2,
		.zones = 16,
		.outer_bps = 180000000,
		.inner_bps = 90000000,
		.cache = SZ_64M,
		.write_pieces = 256,
		.readahead = SZ_1M,
		.ncq = 32,
		.cmd_ns = CMD_NS,
	},
};

/* Return: the internals of the disk. */
static struct hdd *hdd_test_get_hdd(struct bench *bench)
{
	return to_hdd(bench->model);
}

/* Return: a random number below @limit. */
static u64 hdd_test_random_below(struct bench *bench, u64 limit)
{
	u64 number = (u64)prandom_u32_state(&bench->rnd) << 32 |
		     prandom_u32_state(&bench->rnd);

	return mul_u64_u64_shr(number, limit, 64);
}

static u64 hdd_test_random_pos(struct bench *bench, u32 bytes)
{
	return hdd_test_random_below(bench, SIZE / bytes) * bytes;
}

/* Send a command, which may be a completed one. */
static void hdd_test_resubmit(struct bench *bench, struct vdisk_cmd *cmd, enum vdisk_op op, u64 pos,
			      u32 bytes)
{
	cmd->op = op;
	cmd->pos = pos;
	cmd->bytes = bytes;
	bench->next_ns = bench->model->ops->submit(bench->model, cmd, bench->now_ns);
}

static struct vdisk_cmd *hdd_test_submit(struct bench *bench, enum vdisk_op op, u64 pos, u32 bytes)
{
	struct vdisk_cmd *cmd = &bench->cmds[bench->nr_used++];

	hdd_test_resubmit(bench, cmd, op, pos, bytes);
	return cmd;
}

/* Advance the clock until the disk has nothing more to do. */
static void hdd_test_run_out(struct bench *bench)
{
	while (bench->next_ns != VDISK_NEVER_NS)
		bench_run_to(bench, bench->next_ns);
}

/* Run one command. Return: the time that it took. */
static u64 hdd_test_run_one(struct bench *bench, enum vdisk_op op, u64 pos, u32 bytes)
{
	struct vdisk_cmd *cmd = &bench->cmds[0];
	u64 start = bench->now_ns;

	hdd_test_resubmit(bench, cmd, op, pos, bytes);
	KUNIT_ASSERT_PTR_EQ(bench->test, bench_next_done(bench), cmd);
	return bench->now_ns - start;
}

/* Run a closed loop of random commands. Return: the time that it took. */
static u64 hdd_test_run_random(struct bench *bench, enum vdisk_op op, u32 bytes, u32 depth,
			       u32 count)
{
	u64 start = bench->now_ns;
	u32 i;

	for (i = 0; i < depth; i++)
		hdd_test_resubmit(bench, &bench->cmds[i], op, hdd_test_random_pos(bench, bytes),
				  bytes);
	for (; i < count; i++)
		hdd_test_resubmit(bench, bench_next_done(bench), op,
				  hdd_test_random_pos(bench, bytes), bytes);
	for (i = 0; i < depth; i++)
		bench_next_done(bench);
	return bench->now_ns - start;
}

/* Run a closed loop of sequential commands. Return: bytes per second. */
static u64 hdd_test_measure_stream_bps(struct bench *bench, enum vdisk_op op, u64 pos, u32 bytes,
				       u32 depth, u32 count)
{
	u64 start = bench->now_ns;
	u32 i;

	for (i = 0; i < depth; i++)
		hdd_test_resubmit(bench, &bench->cmds[i], op, pos + (u64)i * bytes, bytes);
	for (; i < count; i++)
		hdd_test_resubmit(bench, bench_next_done(bench), op, pos + (u64)i * bytes, bytes);
	for (i = 0; i < depth; i++)
		bench_next_done(bench);
	return div64_u64((u64)count * bytes * NSEC_PER_SEC, bench->now_ns - start);
}

/* Expect a figure to be within some permille of another. */
static void hdd_test_expect_near(struct kunit *test, u64 figure, u64 should, u32 per_mille)
{
	u64 off = figure > should ? figure - should : should - figure;

	KUNIT_EXPECT_LE_MSG(test, off * 1000, should * per_mille,
			    "%llu for %llu", figure, should);
}

static u64 hdd_test_get_link_ns(u64 bytes)
{
	return DIV_ROUND_UP_ULL(bytes * NSEC_PER_SEC, LINK_BPS);
}

static void hdd_seek_curve_goes_through_its_points(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	const struct hdd_geo *geo = &hdd_test_get_hdd(bench)->geo;

	KUNIT_EXPECT_EQ(test, hdd_geo_seek_ns(&geo->seek, 0), 0);
	KUNIT_EXPECT_EQ(test, hdd_geo_seek_ns(&geo->seek, 1), hdd_test_params.hdd.seek_min_ns);
	KUNIT_EXPECT_EQ(test, hdd_geo_seek_ns(&geo->seek, geo->seek.cyls / 3),
			hdd_test_params.hdd.seek_avg_ns);
	KUNIT_EXPECT_EQ(test, hdd_geo_seek_ns(&geo->seek, geo->seek.cyls - 1),
			hdd_test_params.hdd.seek_max_ns);
	/* A quarter of the way, half of the time. */
	hdd_test_expect_near(test, hdd_geo_seek_ns(&geo->seek, geo->seek.cyls / 12),
			     (hdd_test_params.hdd.seek_min_ns +
			      hdd_test_params.hdd.seek_avg_ns) / 2,
			     1);
}

static void hdd_seek_curve_never_falls(struct kunit *test)
{
	static const u64 sizes[] = { SZ_4K, SZ_1M, 8 * SZ_1M, SZ_1G, SIZE };
	u32 i, d;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct vdisk_params params = hdd_test_params;
		const struct hdd_geo *geo;
		u64 last = 0;

		params.size = sizes[i];
		geo = &hdd_test_get_hdd(bench_create(test, &params))->geo;
		for (d = 0; d < geo->seek.cyls; d += 1 + d / 100) {
			KUNIT_ASSERT_GE(test, hdd_geo_seek_ns(&geo->seek, d),
					last);
			last = hdd_geo_seek_ns(&geo->seek, d);
		}
		KUNIT_EXPECT_LE(test, last, params.hdd.seek_max_ns);
	}
}

static void hdd_sectors_have_distinct_places(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	struct hdd_span last = {}, span;
	const struct hdd_geo *geo;
	u64 lba;

	params.size = SZ_1G;
	geo = &hdd_test_get_hdd(bench_create(test, &params))->geo;
	hdd_geo_locate(geo, 0, &last);
	KUNIT_EXPECT_EQ(test, last.place.cyl, 0);
	KUNIT_EXPECT_EQ(test, last.place.angle, 0);
	for (lba = 1; lba < SZ_1G / HDD_SECTOR_BYTES; lba++) {
		hdd_geo_locate(geo, lba, &span);
		KUNIT_ASSERT_LT(test, span.place.angle, HDD_TURN_ANGLE);
		KUNIT_ASSERT_LT(test, span.place.cyl, geo->seek.cyls);
		if (span.first) {
			KUNIT_ASSERT_EQ(test, span.first, last.first + 1);
			KUNIT_ASSERT_EQ(test, span.place.head,
					last.place.head);
		} else {
			/* Track after track, cylinder after cylinder. */
			KUNIT_ASSERT_EQ(test, last.count, 1);
			KUNIT_ASSERT_EQ(test, (u64)span.place.cyl * geo->heads +
					span.place.head,
					(u64)last.place.cyl * geo->heads +
					last.place.head + 1);
		}
		last = span;
	}
}

static void hdd_angle_is_exact_after_years(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	const struct hdd_geo *geo = &hdd_test_get_hdd(bench)->geo;
	u64 minute = 60 * NSEC_PER_SEC;
	u64 years = minute * 60 * 24 * 366 * 10;

	/* 7200 rpm: 8,333,333 ns are a turn less 2400 units, a third of a ns. */
	KUNIT_EXPECT_EQ(test, hdd_geo_angle_beyond(geo, years, 0), 0);
	KUNIT_EXPECT_EQ(test, hdd_geo_angle_beyond(geo, years + 8333333, 0),
			HDD_TURN_ANGLE - 2400);
	KUNIT_EXPECT_EQ(test, hdd_geo_wait_ns(geo, years + 1, 0),
			years + 8333334);
	KUNIT_EXPECT_EQ(test, hdd_geo_wait_ns(geo, years, 0), years);
	/* The rounding is less than a ns: 3 turns are 25,000,000 ns. */
	KUNIT_EXPECT_EQ(test, hdd_geo_wait_ns(geo, years + 16666667, 0),
			years + 16666667);
	KUNIT_EXPECT_EQ(test, hdd_geo_wait_ns(geo, years + 16666668, 0),
			years + 25000000);
}

static void hdd_pass_stops_at_its_limit(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	const struct hdd_geo *geo = &hdd_test_get_hdd(bench)->geo;
	u64 track = geo->zones[0].track_sectors;
	u64 lba, at, end, until;
	u32 i;

	lba = 0;
	at = hdd_pass(geo, &lba, 5 * track, 0, VDISK_NEVER_NS);
	KUNIT_EXPECT_EQ(test, lba, 5 * track);
	/* 3 of the turns have 2 ns that TURN_NS lacks. */
	KUNIT_EXPECT_EQ(test, at,
			5 * TURN_NS + 2 + 2 * hdd_test_params.hdd.head_switch_ns +
				2 * hdd_test_params.hdd.seek_min_ns);

	for (i = 0; i < 2000; i++) {
		until = hdd_test_random_below(bench, at);
		lba = 0;
		end = hdd_pass(geo, &lba, 5 * track, 0, until);
		KUNIT_ASSERT_GE(test, end, until);
		KUNIT_ASSERT_LE(test, end, until + TURN_NS / track + 1);
		/* To pass just so far takes until then, or ends before a gap. */
		until = lba;
		lba = 0;
		KUNIT_ASSERT_LE(test,
				hdd_pass(geo, &lba, until, 0, VDISK_NEVER_NS),
				end);
	}
}

static void hdd_wait_is_half_a_turn_on_average(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	struct bench *bench;
	u64 sum = 0;
	u32 i;

	params.hdd.seek_min_ns = 0;
	params.hdd.seek_avg_ns = 0;
	params.hdd.seek_max_ns = 0;
	params.hdd.head_switch_ns = 0;
	params.hdd.cache = 0;
	params.bps[VDISK_READ] = 0;
	bench = bench_create(test, &params);
	for (i = 0; i < 20000; i++)
		sum += hdd_test_run_one(bench, VDISK_READ, hdd_test_random_pos(bench, 512), 512);
	/* A sector passes in 1/2000 of a turn or so. */
	hdd_test_expect_near(test, sum / i, CMD_NS + TURN_NS / 2, 10);
}

static void hdd_streams_run_at_the_set_bandwidth(struct kunit *test)
{
	static const struct {
		enum vdisk_op op;
		u32 bytes;
		u32 depth;
	} streams[] = {
		{ VDISK_READ, SZ_64K, 1 },
		{ VDISK_READ, SZ_1M, 1 },
		{ VDISK_READ, SZ_128K, 32 },
		{ VDISK_WRITE, SZ_1M, 1 },
		{ VDISK_WRITE, SZ_128K, 32 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(streams); i++) {
		u32 count = 400 * SZ_1M / streams[i].bytes;
		struct bench *bench = bench_create(test, &hdd_test_params);
		u64 far = SIZE - 600 * SZ_1M;

		/* The measurement begins when the cache is full. */
		hdd_test_measure_stream_bps(bench, streams[i].op, 0, streams[i].bytes,
					    streams[i].depth, count / 4);
		hdd_test_expect_near(test,
				     hdd_test_measure_stream_bps(bench, streams[i].op, 100 * SZ_1M,
								 streams[i].bytes, streams[i].depth,
								 count),
				     hdd_test_params.hdd.outer_bps, 10);

		hdd_test_measure_stream_bps(bench, streams[i].op, far, streams[i].bytes,
					    streams[i].depth, count / 4);
		hdd_test_expect_near(test,
				     hdd_test_measure_stream_bps(bench, streams[i].op,
								 far + 100 * SZ_1M,
								 streams[i].bytes, streams[i].depth,
								 count),
				     hdd_test_params.hdd.inner_bps, 10);
	}
}

static void hdd_random_reads_take_seek_half_turn_and_transfer(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	u64 should = hdd_test_params.hdd.seek_avg_ns + TURN_NS / 2 + CMD_NS;
	u32 count = 5000;

	/* At the mean bandwidth. */
	should += SZ_4K * NSEC_PER_SEC / 135000000;
	hdd_test_expect_near(test, hdd_test_run_random(bench, VDISK_READ, SZ_4K, 1, count) / count,
			     should, 30);
}

static void hdd_nearest_first_gains_over_fifo(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	u64 fifo, nearest;

	nearest = hdd_test_run_random(bench_create(test, &params), VDISK_READ, SZ_4K, 32, 3000);
	params.hdd.ncq = 1;
	fifo = hdd_test_run_random(bench_create(test, &params), VDISK_READ, SZ_4K, 32, 3000);
	/* Real disks reach between 75 and 170 requests per second. */
	KUNIT_EXPECT_GT(test, fifo, nearest * 2);
	KUNIT_EXPECT_LT(test, fifo, nearest * 3);
}

static void hdd_no_command_waits_for_ever(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	struct vdisk_cmd *far, *cmd;
	u32 i;

	for (i = 0; i < 8; i++)
		hdd_test_submit(bench, VDISK_READ, hdd_test_random_below(bench, 1000) * SZ_64K,
				SZ_4K);
	bench_run_to(bench, 10 * NSEC_PER_MSEC);
	far = hdd_test_submit(bench, VDISK_READ, SIZE - SZ_4K, SZ_4K);
	/* The other commands stay in a corner of the disk. */
	while ((cmd = bench_next_done(bench)) != far) {
		KUNIT_ASSERT_LT(test, bench->now_ns, 3 * HDD_COMMAND_AGE_NS_MAX);
		hdd_test_resubmit(bench, cmd, VDISK_READ,
				  hdd_test_random_below(bench, 1000) * SZ_64K, SZ_4K);
	}
	KUNIT_EXPECT_GT(test, bench->now_ns, HDD_COMMAND_AGE_NS_MAX);
	KUNIT_EXPECT_LT(test, bench->now_ns, HDD_COMMAND_AGE_NS_MAX + 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->arm.counters.nr_aged, 1);
}

static void hdd_cache_holds_read_sectors_and_read_ahead(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	u64 hit_ns = CMD_NS + hdd_test_get_link_ns(SZ_4K);

	hdd_test_run_one(bench, VDISK_READ, SZ_1G, SZ_4K);
	KUNIT_EXPECT_EQ(test, hdd_test_run_one(bench, VDISK_READ, SZ_1G, SZ_4K), hit_ns);
	hdd_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, hdd_test_run_one(bench, VDISK_READ, SZ_1G + SZ_4K, SZ_4K), hit_ns);
	hdd_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, hdd_test_run_one(bench, VDISK_READ, SZ_1G + SZ_1M, SZ_4K), hit_ns);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->reads.nr_hits, 3);
	/* The sectors before the read were not read. */
	KUNIT_EXPECT_GT(test, hdd_test_run_one(bench, VDISK_READ, SZ_1G - SZ_4K, SZ_4K),
			2 * hit_ns);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->reads.nr_misses, 2);
}

static void hdd_cache_evicts_the_least_recently_used(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	u64 segments = hdd_test_get_hdd(bench)->reads.nr_segments;
	u64 i;

	KUNIT_ASSERT_EQ(test, segments, 16);
	for (i = 0; i <= segments; i++)
		hdd_test_run_one(bench, VDISK_READ, i * SZ_1G, SZ_4K);
	for (i = 1; i <= segments; i++)
		hdd_test_run_one(bench, VDISK_READ, i * SZ_1G, SZ_4K);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->reads.nr_hits, segments);
	hdd_test_run_one(bench, VDISK_READ, 0, SZ_4K);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->reads.nr_hits, segments);
}

static void hdd_cache_holds_the_end_of_a_stream(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	u64 misses;

	hdd_test_measure_stream_bps(bench, VDISK_READ, 0, SZ_64K, 1, 1024);
	misses = hdd_test_get_hdd(bench)->reads.nr_misses;
	/* A segment is 2 MiB, of which 1 MiB lies ahead at most. */
	hdd_test_run_one(bench, VDISK_READ, 63 * SZ_1M, SZ_1M);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->reads.nr_misses, misses);
	hdd_test_run_one(bench, VDISK_READ, 61 * SZ_1M, SZ_4K);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->reads.nr_misses, misses + 1);
}

static void hdd_read_joins_the_read_ahead(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	u64 ns;

	hdd_test_run_one(bench, VDISK_READ, SZ_1G, SZ_4K);
	/* 256 KiB ahead: not read so far, and too near for another seek. */
	ns = hdd_test_run_one(bench, VDISK_READ, SZ_1G + SZ_256K, SZ_4K);
	KUNIT_EXPECT_GT(test, ns, NSEC_PER_MSEC);
	KUNIT_EXPECT_LT(test, ns, 3 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->reads.nr_hits, 1);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->arm.counters.nr_moves, 1);
}

static void hdd_without_cache_no_read_hits(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	struct bench *bench;

	params.hdd.cache = 0;
	bench = bench_create(test, &params);
	hdd_test_run_one(bench, VDISK_READ, SZ_1G, SZ_4K);
	/* The sector has just passed: a turn, less the way to the host. */
	hdd_test_expect_near(test, hdd_test_run_one(bench, VDISK_READ, SZ_1G, SZ_4K), TURN_NS, 5);
	KUNIT_EXPECT_GT(test, hdd_test_run_one(bench, VDISK_WRITE, SZ_1G, SZ_4K), TURN_NS / 2);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->reads.nr_hits, 0);
}

static void hdd_cached_write_ends_at_once(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);

	KUNIT_EXPECT_EQ(test, hdd_test_run_one(bench, VDISK_WRITE, SZ_1G, SZ_4K),
			CMD_NS + hdd_test_get_link_ns(SZ_4K));
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors,
			SZ_4K / HDD_SECTOR_BYTES);
	/* Data can be read before they are on the platter. */
	KUNIT_EXPECT_EQ(test, hdd_test_run_one(bench, VDISK_READ, SZ_1G, SZ_4K),
			CMD_NS + hdd_test_get_link_ns(SZ_4K));
	hdd_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors, 0);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->arm.counters.nr_destages, 1);
}

static void hdd_write_through_ends_on_the_platter(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	struct bench *bench = bench_create(test, &params);
	u64 pos, sum = 0;
	u32 i;

	/* FUA, with a cache. */
	for (i = 0; i < 1000; i++) {
		pos = hdd_test_random_pos(bench, SZ_4K);
		bench->cmds[0].fua = true;
		sum += hdd_test_run_one(bench, VDISK_WRITE, pos, SZ_4K);
		KUNIT_ASSERT_EQ(test, hdd_test_get_hdd(bench)->arm.pass.to,
				(pos + SZ_4K) / HDD_SECTOR_BYTES);
	}
	hdd_test_expect_near(test, sum / i, hdd_test_params.hdd.seek_avg_ns + TURN_NS / 2, 50);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->arm.counters.nr_destages, 0);

	params.write_cache = 0;
	bench = bench_create(test, &params);
	sum = hdd_test_run_random(bench, VDISK_WRITE, SZ_4K, 1, 1000);
	hdd_test_expect_near(test, sum / 1000, hdd_test_params.hdd.seek_avg_ns + TURN_NS / 2, 50);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->arm.counters.nr_destages, 0);
}

static void hdd_adjacent_writes_are_one_piece(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	u32 i;

	/* The arm is busy elsewhere. */
	hdd_test_submit(bench, VDISK_READ, SIZE / 2, SZ_4K);
	/* Every second block, then the blocks between them, then some blocks again. */
	for (i = 0; i < 16; i += 2)
		hdd_test_submit(bench, VDISK_WRITE, i * SZ_4K, SZ_4K);
	for (i = 1; i < 16; i += 2)
		hdd_test_submit(bench, VDISK_WRITE, i * SZ_4K, SZ_4K);
	hdd_test_submit(bench, VDISK_WRITE, 5 * SZ_4K, 3 * SZ_4K);
	for (i = 0; i < 17; i++)
		bench_next_done(bench);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors,
			16 * SZ_4K / HDD_SECTOR_BYTES);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.nr_free, 255);
	hdd_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->arm.counters.nr_destages, 1);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors, 0);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.nr_free, 256);
}

static void hdd_freed_piece_admits_the_next_write(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	struct bench *bench;
	u32 i;

	params.hdd.write_pieces = 2;
	params.hdd.cmd_ns = 1;
	bench = bench_create(test, &params);
	/*
	 * The arm is away for some ms. The third write finds no room until the second has arrived
	 * and been merged with the first.
	 */
	hdd_test_submit(bench, VDISK_READ, SIZE / 2, SZ_4K);
	hdd_test_submit(bench, VDISK_WRITE, 0, SZ_4K);
	hdd_test_submit(bench, VDISK_WRITE, SZ_4K, SZ_4K);
	hdd_test_submit(bench, VDISK_WRITE, SZ_1G, SZ_4K);
	for (i = 1; i <= 3; i++)
		KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), &bench->cmds[i]);
	KUNIT_EXPECT_LT(test, bench->now_ns, NSEC_PER_MSEC);
}

static void hdd_writes_wait_for_room(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	struct bench *bench;
	u64 limit;
	u32 i;

	/* Room for 8 blocks, or 4 pieces. */
	params.hdd.cache = 64 * SZ_1K;
	for (params.hdd.write_pieces = 4; params.hdd.write_pieces <= 8;
	     params.hdd.write_pieces += 4) {
		bench = bench_create(test, &params);
		limit = params.hdd.write_pieces;
		for (i = 0; i < 100; i++)
			hdd_test_submit(bench, VDISK_WRITE, hdd_test_random_pos(bench, SZ_4K),
					SZ_4K);
		for (i = 0; i < 100; i++) {
			KUNIT_ASSERT_PTR_EQ(test, bench_next_done(bench), &bench->cmds[i]);
			/* One more piece is at the arm. */
			KUNIT_ASSERT_LE(test, hdd_test_get_hdd(bench)->writes.dirty_sectors,
					min(limit + 1, 8) * SZ_4K / HDD_SECTOR_BYTES);
		}
		KUNIT_EXPECT_GT(test, bench->now_ns, 90 * NSEC_PER_MSEC);
		hdd_test_run_out(bench);
		KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors, 0);
		KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.nr_free, limit);
	}
}

static void hdd_write_larger_than_the_cache_ends(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	struct bench *bench;
	u32 i;

	params.hdd.cache = SZ_64K;
	bench = bench_create(test, &params);
	for (i = 0; i < 3; i++)
		hdd_test_submit(bench, VDISK_WRITE, i * SZ_1G, SZ_1M);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), &bench->cmds[i]);
	hdd_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors, 0);
}

/* Reads and writes that compete for the arm get it in turns. */
static void hdd_full_cache_does_not_starve_reads(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	u32 i, reads = 0, writes = 0;
	struct vdisk_cmd *cmd;
	struct bench *bench;

	params.hdd.readahead = 0;
	bench = bench_create(test, &params);
	hdd_test_run_random(bench, VDISK_WRITE, SZ_4K, 1, 1000);
	for (i = 1; i < 8; i++)
		hdd_test_resubmit(bench, &bench->cmds[i], i % 2 ? VDISK_READ : VDISK_WRITE,
				  hdd_test_random_pos(bench, SZ_4K), SZ_4K);
	for (i = 0; i < 1000; i++) {
		cmd = bench_next_done(bench);
		if (cmd->op == VDISK_READ)
			reads++;
		else
			writes++;
		hdd_test_resubmit(bench, cmd, cmd->op, hdd_test_random_pos(bench, SZ_4K), SZ_4K);
	}
	KUNIT_EXPECT_LE(test, abs((int)(reads - writes)), 20);
}

static void hdd_nearest_piece_is_the_nearest_of_all(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	struct hdd *hdd = hdd_test_get_hdd(bench);
	struct hdd_piece *piece;
	u64 at, best;
	u32 i, j;

	for (i = 0; i < 200; i++) {
		for (j = 0; j < 30; j++) {
			u64 lba = hdd_test_random_below(bench, hdd->sectors - 8);

			/* The same as admit() does. */
			hdd->writes.nr_free--;
			hdd->writes.dirty_sectors += 8;
			hdd_piece_add(hdd, lba, lba + 8);
		}
		hdd->arm.pass.to = hdd_test_random_below(bench, hdd->sectors) + 1;
		hdd->arm.place =
			hdd_geo_find_place(&hdd->geo, hdd->arm.pass.to - 1);
		at = hdd_test_random_below(bench, NSEC_PER_SEC);
		best = VDISK_NEVER_NS;
		for (piece = hdd_piece_find(&hdd->writes, 0); piece;
		     piece = hdd_piece_next(piece))
			best = min(best,
				   hdd_arm_reach_ns(hdd, &piece->place, at));
		piece = hdd_arm_find_piece(hdd, at);
		KUNIT_ASSERT_EQ(test, hdd_arm_reach_ns(hdd, &piece->place, at),
				best);
		while (hdd->writes.pieces.rb_node) {
			hdd->writes.dirty_sectors -= 8;
			hdd_piece_free(&hdd->writes,
				       hdd_piece_find(&hdd->writes, 0));
		}
	}
}

static void hdd_flush_ends_when_the_cache_is_clean(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	struct vdisk_cmd *flush, *later;
	u32 i;

	for (i = 0; i < 50; i++) {
		hdd_test_submit(bench, VDISK_WRITE, hdd_test_random_pos(bench, SZ_4K), SZ_4K);
		bench_next_done(bench);
	}
	KUNIT_EXPECT_GT(test, hdd_test_get_hdd(bench)->writes.dirty_sectors, 0);
	flush = hdd_test_submit(bench, VDISK_FLUSH, 0, 0);
	later = hdd_test_submit(bench, VDISK_WRITE, SZ_1G, SZ_4K);
	KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), flush);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors, 0);
	/* 50 pieces in a good order. */
	KUNIT_EXPECT_GT(test, bench->now_ns, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_LT(test, bench->now_ns, 500 * NSEC_PER_MSEC);
	KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), later);

	hdd_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, hdd_test_run_one(bench, VDISK_FLUSH, 0, 0), CMD_NS);
}

static void hdd_flush_waits_for_writes_on_the_link(struct kunit *test)
{
	struct bench *bench = bench_create(test, &hdd_test_params);
	u32 i;

	for (i = 0; i < 20; i++)
		hdd_test_submit(bench, VDISK_WRITE, hdd_test_random_pos(bench, SZ_4K), SZ_4K);
	hdd_test_submit(bench, VDISK_FLUSH, 0, 0);
	for (i = 0; i <= 20; i++)
		KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), &bench->cmds[i]);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors, 0);
	KUNIT_EXPECT_EQ(test, hdd_test_get_hdd(bench)->arm.counters.nr_destages, 20);
}

/* A read's data cross the link while they come off the platter. */
static void hdd_link_adds_nothing_to_a_slower_platter(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	u64 with = hdd_test_run_one(bench_create(test, &params), VDISK_READ, SZ_1G, SZ_1M);

	params.bps[VDISK_READ] = 0;
	KUNIT_EXPECT_EQ(test, with,
			hdd_test_run_one(bench_create(test, &params), VDISK_READ, SZ_1G, SZ_1M));
}

static void hdd_link_limits_the_throughput(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	struct bench *bench;
	u64 bps;

	params.bps[VDISK_READ] = 50000000;
	bench = bench_create(test, &params);
	bps = hdd_test_measure_stream_bps(bench, VDISK_READ, 0, SZ_1M, 4, 200);
	hdd_test_expect_near(test, bps, 50000000, 10);
	params.bps[VDISK_READ] = 60000000;
	bench->model->ops->change(bench->model, &params, bench->now_ns);
	bps = hdd_test_measure_stream_bps(bench, VDISK_READ, SZ_1G, SZ_1M, 4, 200);
	hdd_test_expect_near(test, bps, 60000000, 20);
}

static void hdd_jitter_varies_seeks_not_streams(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;
	u64 plain, shaken, again, other;

	plain = hdd_test_run_random(bench_create(test, &params), VDISK_READ, SZ_4K, 1, 2000);
	params.jitter = 200;
	shaken = hdd_test_run_random(bench_create(test, &params), VDISK_READ, SZ_4K, 1, 2000);
	again = hdd_test_run_random(bench_create(test, &params), VDISK_READ, SZ_4K, 1, 2000);
	hdd_test_expect_near(test,
			     hdd_test_measure_stream_bps(bench_create(test, &params), VDISK_READ, 0,
							 SZ_1M, 1, 400),
			     params.hdd.outer_bps, 10);
	params.seed = 2;
	other = hdd_test_run_random(bench_create(test, &params), VDISK_READ, SZ_4K, 1, 2000);
	KUNIT_EXPECT_NE(test, plain, shaken);
	KUNIT_EXPECT_EQ(test, shaken, again);
	KUNIT_EXPECT_NE(test, shaken, other);
	hdd_test_expect_near(test, shaken, plain, 20);
}

static void hdd_invalid_parameters_are_refused(struct kunit *test)
{
	struct vdisk_params params = hdd_test_params;

	params.hdd.seek_avg_ns = params.hdd.seek_min_ns - 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(hdd_create(&params, 1)), -EINVAL);
	params = hdd_test_params;
	params.hdd.seek_max_ns = params.hdd.seek_avg_ns - 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(hdd_create(&params, 1)), -EINVAL);
	params = hdd_test_params;
	params.hdd.inner_bps = params.hdd.outer_bps + 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(hdd_create(&params, 1)), -EINVAL);
	params = hdd_test_params;
	params.size = BIT_ULL(60);
	KUNIT_EXPECT_EQ(test, PTR_ERR(hdd_create(&params, 1)), -EINVAL);
}

/* Return: parameters of a random disk of 1 GiB at most. */
static struct vdisk_params hdd_test_make_params(struct bench *bench)
{
	struct vdisk_params params = hdd_test_params;
	struct vdisk_hdd_params *hdd = &params.hdd;

	params.size = (1 + hdd_test_random_below(bench, SZ_1G / SZ_4K)) * SZ_4K;
	params.write_cache = hdd_test_random_below(bench, 2);
	params.jitter = hdd_test_random_below(bench, 2) * 300;
	params.bps[VDISK_READ] = hdd_test_random_below(bench, 3) * 300000000;
	params.bps[VDISK_WRITE] = hdd_test_random_below(bench, 3) * 100000000;
	hdd->rpm = 1000 + hdd_test_random_below(bench, 29001);
	hdd->seek_min_ns = hdd_test_random_below(bench, 3000000);
	hdd->seek_avg_ns = hdd->seek_min_ns + hdd_test_random_below(bench, 10000000);
	hdd->seek_max_ns = hdd->seek_avg_ns + hdd_test_random_below(bench, 20000000);
	hdd->head_switch_ns = hdd_test_random_below(bench, 3000000);
	hdd->heads = 1 + hdd_test_random_below(bench, 8);
	hdd->zones = 1 + hdd_test_random_below(bench, 64);
	hdd->inner_bps = 1000000 + hdd_test_random_below(bench, 200000000);
	hdd->outer_bps = hdd->inner_bps + hdd_test_random_below(bench, 200000000);
	hdd->cache = hdd_test_random_below(bench, 4) * hdd_test_random_below(bench, SZ_4M);
	hdd->readahead = hdd_test_random_below(bench, 2) * hdd_test_random_below(bench, SZ_1M);
	hdd->write_pieces = 1 + hdd_test_random_below(bench, 64);
	hdd->ncq = 1 + hdd_test_random_below(bench, 64);
	hdd->cmd_ns = 1 + hdd_test_random_below(bench, 50000);
	return params;
}

static void hdd_test_submit_random(struct bench *bench, u64 size)
{
	struct vdisk_cmd *cmd = &bench->cmds[bench->nr_used];
	u32 dice = hdd_test_random_below(bench, 100);
	u64 bytes, pos;

	bytes = min(512ULL << hdd_test_random_below(bench, 13), size);
	bytes = (1 + hdd_test_random_below(bench, bytes / 512)) * 512;
	pos = hdd_test_random_below(bench, (size - bytes) / 512 + 1) * 512;
	/* Addresses are often near each other, so that pieces touch. */
	if (hdd_test_random_below(bench, 2))
		pos = min(pos, hdd_test_random_below(bench, 64) * 512);
	cmd->fua = false;
	if (dice < 45) {
		hdd_test_submit(bench, VDISK_READ, pos, bytes);
	} else if (dice < 90) {
		cmd->fua = dice < 50;
		hdd_test_submit(bench, VDISK_WRITE, pos, bytes);
	} else if (dice < 95) {
		hdd_test_submit(bench, VDISK_TRIM, pos, bytes);
	} else {
		hdd_test_submit(bench, VDISK_FLUSH, 0, 0);
	}
}

/*
 * Random runs, against invariants of any run: no command is lost or ends twice, and at the end the
 * cache is empty.
 */
static void hdd_random_runs_lose_no_command(struct kunit *test)
{
	struct bench *dice = bench_create(test, &hdd_test_params);
	u32 round;

	for (round = 0; round < 100; round++) {
		struct vdisk_params params = hdd_test_make_params(dice);
		struct bench *bench = bench_create(test, &params);
		struct vdisk_cmd *cmd;
		struct vdisk_stats stats;
		u32 ended = 0;
		bool *has_ended;

		prandom_seed_state(&bench->rnd, round);
		has_ended = kunit_kcalloc(test, MAX_CMDS, sizeof(*has_ended),
					  GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, has_ended);
		while (bench->nr_used < MAX_CMDS || bench->next_ns != VDISK_NEVER_NS) {
			if (hdd_test_random_below(bench, 100) < 50 && bench->nr_used < MAX_CMDS)
				hdd_test_submit_random(bench, params.size);
			else if (bench->next_ns != VDISK_NEVER_NS)
				bench_run_to(bench, max(bench->now_ns, bench->next_ns));

			while ((cmd = vdisk_list_pop(&bench->done))) {
				u32 i = cmd - bench->cmds;

				KUNIT_ASSERT_FALSE(test, has_ended[i]);
				has_ended[i] = true;
				ended++;
			}
			bench->model->ops->stats(bench->model, bench->now_ns, &stats);
			KUNIT_ASSERT_EQ(test, bench->nr_used,
					ended + stats.nr_in_service + stats.nr_waiting);
			KUNIT_ASSERT_LE(test, stats.busy_ns, bench->now_ns);
		}
		KUNIT_ASSERT_EQ(test, ended, MAX_CMDS);
		KUNIT_ASSERT_EQ(test, hdd_test_get_hdd(bench)->writes.dirty_sectors, 0);
		KUNIT_ASSERT_EQ(test, hdd_test_get_hdd(bench)->writes.nr_free,
				params.hdd.write_pieces);
	}
}

/* Number of commands of a run that is played several times. */
#define PLAYED_CMDS	300

/**
 * struct hdd_outcome - result of a run
 * @order: commands, in the order of their ends
 * @busy_ns: time that the arm was busy, ns
 * @counters: counters of the model
 */
struct hdd_outcome {
	u32 order[PLAYED_CMDS];
	u64 busy_ns;
	struct vdisk_counter counters[8];
};

/*
 * Play the run of a round. Variant 0 calls run() at each event. Other variants call it at arbitrary
 * times, and at the instant of a command before or after it.
 */
static struct hdd_outcome *hdd_test_play(struct kunit *test, const struct vdisk_params *params,
					 u32 round, u32 variant)
{
	struct bench *bench = bench_create(test, params);
	struct bench *when = bench_create(test, &hdd_test_params);
	struct hdd_outcome *outcome;
	struct vdisk_cmd *cmd;
	u32 i, ended = 0;
	u64 arrival = 0;

	outcome = kunit_kzalloc(test, sizeof(*outcome), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, outcome);
	prandom_seed_state(&bench->rnd, round);
	prandom_seed_state(&when->rnd, variant);
	for (i = 0; i < PLAYED_CMDS; i++) {
		if (hdd_test_random_below(bench, 4))
			arrival += hdd_test_random_below(bench, 3000000);
		while (!variant && bench->next_ns < arrival)
			bench_run_to(bench, bench->next_ns);
		if (variant && hdd_test_random_below(when, 3))
			bench_run_to(bench,
				     arrival - hdd_test_random_below(when,
								     arrival - bench->now_ns + 1));
		bench->now_ns = arrival;
		hdd_test_submit_random(bench, params->size);
	}
	if (variant)
		bench_run_to(bench, arrival + hdd_test_random_below(when, NSEC_PER_SEC));
	hdd_test_run_out(bench);
	while ((cmd = vdisk_list_pop(&bench->done)))
		outcome->order[ended++] = cmd - bench->cmds;
	KUNIT_EXPECT_EQ(test, ended, PLAYED_CMDS);
	outcome->busy_ns = hdd_test_get_hdd(bench)->arm.counters.busy_ns;
	hdd_get_counters(bench->model, bench->now_ns, outcome->counters,
			 ARRAY_SIZE(outcome->counters));
	return outcome;
}

static void hdd_late_calls_change_no_result(struct kunit *test)
{
	struct bench *dice = bench_create(test, &hdd_test_params);
	u32 round, variant;

	for (round = 0; round < 60; round++) {
		struct vdisk_params params = hdd_test_make_params(dice);
		struct hdd_outcome *timely = hdd_test_play(test, &params, round, 0);

		for (variant = 1; variant < 3; variant++) {
			struct hdd_outcome *late;

			late = hdd_test_play(test, &params, round, variant);
			KUNIT_ASSERT_MEMEQ(test, timely, late, sizeof(*late));
		}
	}
}

static struct kunit_case vdisk_hdd_cases[] = {
	KUNIT_CASE(hdd_seek_curve_goes_through_its_points),
	KUNIT_CASE(hdd_seek_curve_never_falls),
	KUNIT_CASE(hdd_sectors_have_distinct_places),
	KUNIT_CASE(hdd_angle_is_exact_after_years),
	KUNIT_CASE(hdd_pass_stops_at_its_limit),
	KUNIT_CASE(hdd_wait_is_half_a_turn_on_average),
	KUNIT_CASE(hdd_streams_run_at_the_set_bandwidth),
	KUNIT_CASE(hdd_random_reads_take_seek_half_turn_and_transfer),
	KUNIT_CASE(hdd_nearest_first_gains_over_fifo),
	KUNIT_CASE(hdd_no_command_waits_for_ever),
	KUNIT_CASE(hdd_cache_holds_read_sectors_and_read_ahead),
	KUNIT_CASE(hdd_cache_evicts_the_least_recently_used),
	KUNIT_CASE(hdd_cache_holds_the_end_of_a_stream),
	KUNIT_CASE(hdd_read_joins_the_read_ahead),
	KUNIT_CASE(hdd_without_cache_no_read_hits),
	KUNIT_CASE(hdd_cached_write_ends_at_once),
	KUNIT_CASE(hdd_write_through_ends_on_the_platter),
	KUNIT_CASE(hdd_adjacent_writes_are_one_piece),
	KUNIT_CASE(hdd_freed_piece_admits_the_next_write),
	KUNIT_CASE(hdd_writes_wait_for_room),
	KUNIT_CASE(hdd_write_larger_than_the_cache_ends),
	KUNIT_CASE(hdd_full_cache_does_not_starve_reads),
	KUNIT_CASE(hdd_nearest_piece_is_the_nearest_of_all),
	KUNIT_CASE(hdd_flush_ends_when_the_cache_is_clean),
	KUNIT_CASE(hdd_flush_waits_for_writes_on_the_link),
	KUNIT_CASE(hdd_link_adds_nothing_to_a_slower_platter),
	KUNIT_CASE(hdd_link_limits_the_throughput),
	KUNIT_CASE(hdd_jitter_varies_seeks_not_streams),
	KUNIT_CASE(hdd_invalid_parameters_are_refused),
	KUNIT_CASE(hdd_random_runs_lose_no_command),
	KUNIT_CASE(hdd_late_calls_change_no_result),
	{}
};

static struct kunit_suite vdisk_hdd_suite = {
	.name = "vdisk_hdd",
	.test_cases = vdisk_hdd_cases,
};

kunit_test_suite(vdisk_hdd_suite);

MODULE_DESCRIPTION("KUnit tests of isoblk_vdisk's model of a hard disk");
MODULE_LICENSE("GPL");
