// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "flash" without a block device: its times, its buffer, and invariants of its
 * translation layer under any writes, trims and collection.
 *
 * The model is compiled into this module, which needs no other one.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/slab.h>

/* Both files define pr_fmt(). */
#undef pr_fmt
#include "../vdisk/ftl.c"
#include "../vdisk/ftl_fill.c"
#include "../vdisk/ftl_gc.c"
#include "../vdisk/ftl_log.c"
#undef pr_fmt
#include "../vdisk/flash.c"
#include "../vdisk/flash_ahead.c"
#include "../vdisk/flash_buffer.c"
#include "../vdisk/flash_die.c"
#include "../vdisk/flash_end.c"
#include "../vdisk/flash_host.c"
#include "../vdisk/flash_tree.c"

#define READ_NS		50000
#define PROGRAM_NS	500000
#define ERASE_NS	3000000
#define READ_LATENCY	3000
#define WRITE_LATENCY	5000
/* At one byte per ns. */
#define UNIT_NS		FTL_UNIT_BYTES
/* 2 channels of 2 dies; a row of 2 planes of 2 units; 64 units per block. */
#define DIES		4
#define ROW		4
#define BLOCK		64
#define MAX_CMDS	4096

#include "vdisk_bench.h"

/* 16 MiB; controller and host link take no time. */
static const struct vdisk_params flash_test_params = {
	.ops = &vdisk_flash_ops,
	.size = SZ_16M,
	.hw_queues = 1,
	.seed = 7,
	.flash = {
		.channels = 2,
		.dies = 2,
		.planes = 2,
		.page_size = 2 * FTL_UNIT_BYTES,
		.block_pages = 16,
		.spare = 250,
		.read_ns = READ_NS,
		.cell_bits = 1,
		.program_ns = PROGRAM_NS,
		.erase_ns = ERASE_NS,
		.bus_bps = NSEC_PER_SEC,
		.read_latency_ns = READ_LATENCY,
		.write_latency_ns = WRITE_LATENCY,
		.buffer = SZ_1M,
		.gc_low = 2,
		.gc_high = 4,
		.slc_read_ns = READ_NS / 2,
		.slc_program_ns = PROGRAM_NS / 4,
		.fill = 100,
		.precondition = VDISK_PRECONDITION_SEQUENTIAL,
	},
};

static void flash_test_resubmit(struct bench *bench, struct vdisk_cmd *cmd, enum vdisk_op op,
				u32 unit, u32 units)
{
	cmd->op = op;
	cmd->pos = (u64)unit << FTL_UNIT_SHIFT;
	cmd->bytes = units << FTL_UNIT_SHIFT;
	bench->next_ns = bench->model->ops->submit(bench->model, cmd, bench->now_ns);
}

static struct vdisk_cmd *flash_test_submit(struct bench *bench, enum vdisk_op op, u32 unit,
					   u32 units)
{
	struct vdisk_cmd *cmd = &bench->cmds[bench->nr_used++];

	flash_test_resubmit(bench, cmd, op, unit, units);
	return cmd;
}

static struct vdisk_cmd *flash_test_submit_fua(struct bench *bench, u32 unit)
{
	bench->cmds[bench->nr_used].fua = true;
	return flash_test_submit(bench, VDISK_WRITE, unit, 1);
}

/* Advance the clock until there is no event. */
static void flash_test_run_out(struct bench *bench)
{
	while (bench->next_ns != VDISK_NEVER_NS)
		bench_run_to(bench, bench->next_ns);
	vdisk_list_init(&bench->done);
}

static u64 flash_test_get_counter(struct bench *bench, const char *name)
{
	struct vdisk_counter counters[32];
	u32 i, count;

	count = bench->model->ops->counters(bench->model, bench->now_ns, counters,
					    ARRAY_SIZE(counters));
	for (i = 0; i < count; i++) {
		if (!strcmp(counters[i].name, name))
			return counters[i].value;
	}
	return U64_MAX;
}

static void flash_test_expect_done(struct kunit *test, struct bench *bench, struct vdisk_cmd *cmd,
				   u64 at)
{
	struct vdisk_cmd *done = bench_next_done(bench);

	KUNIT_EXPECT_PTR_EQ(test, done, cmd);
	KUNIT_EXPECT_EQ(test, cmd->flash.at_ns, at);
	KUNIT_EXPECT_GE(test, bench->now_ns, at);
}

static u32 flash_test_random_below(struct rnd_state *rnd, u32 limit)
{
	return prandom_u32_state(rnd) % limit;
}

/* ---- times ---- */

static void flash_read_is_the_sum_of_its_steps(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	struct vdisk_cmd *cmd;

	params.flash.cmd_ns = 1000;
	params.bps[VDISK_READ] = 2ULL * NSEC_PER_SEC;
	bench = bench_create(test, &params);
	bench->now_ns = 777;
	cmd = flash_test_submit(bench, VDISK_READ, 5, 1);
	flash_test_expect_done(test, bench, cmd,
			       777 + 1000 + READ_NS + UNIT_NS + READ_LATENCY + UNIT_NS / 2);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).busy_ns, READ_NS + UNIT_NS);
}

static void flash_read_of_unmapped_units_uses_no_die(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	struct vdisk_cmd *cmd;

	params.flash.fill = 50;
	bench = bench_create(test, &params);
	cmd = flash_test_submit(bench, VDISK_READ, SZ_8M / FTL_UNIT_BYTES, 64);
	flash_test_expect_done(test, bench, cmd, READ_LATENCY);
	cmd = flash_test_submit(bench, VDISK_READ, SZ_8M / FTL_UNIT_BYTES - 1, 1);
	flash_test_expect_done(test, bench, cmd, 2 * READ_LATENCY + READ_NS + UNIT_NS);
}

static void flash_write_ends_in_the_buffer(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	struct vdisk_cmd *cmd;
	u64 now = 1000 + UNIT_NS + WRITE_LATENCY;

	params.flash.cmd_ns = 1000;
	params.bps[VDISK_WRITE] = NSEC_PER_SEC;
	bench = bench_create(test, &params);
	cmd = flash_test_submit(bench, VDISK_WRITE, 9, 1);
	flash_test_expect_done(test, bench, cmd, now);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_used"), 1);

	/* A read is served from the buffer. */
	bench->now_ns = now;
	cmd = flash_test_submit(bench, VDISK_READ, 9, 1);
	flash_test_expect_done(test, bench, cmd, now + 1000 + READ_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_reads"), 1);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "host_pages"), 0);
}

static void flash_controller_takes_commands_one_by_one(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	u32 i;

	params.flash.cmd_ns = 2000;
	bench = bench_create(test, &params);
	for (i = 0; i < 10; i++)
		flash_test_submit(bench, VDISK_WRITE, i, 1);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, 10);
	for (i = 0; i < 10; i++)
		flash_test_expect_done(test, bench, &bench->cmds[i],
				       (i + 1) * 2000 + WRITE_LATENCY);
}

static void flash_window_bounds_fetched_commands(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	const u64 each = READ_NS + UNIT_NS + READ_LATENCY;
	struct bench *bench;
	u32 i;

	/* Four dies, at most two of which have a read. */
	params.flash.window = 2;
	params.flash.bus_bps = 0;
	bench = bench_create(test, &params);
	for (i = 0; i < DIES; i++)
		flash_test_submit(bench, VDISK_READ, i, 1);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, DIES);
	for (i = 0; i < DIES; i++)
		flash_test_expect_done(test, bench, &bench->cmds[i],
				       (i / 2 + 1) * (each - UNIT_NS));
}

static void flash_queues_take_turns(struct kunit *test)
{
	static const u32 queue[] = { 0, 0, 0, 2, 2, 1 };
	static const u32 order[] = { 0, 1, 5, 3, 2, 4 };
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	u32 i;

	params.hw_queues = 3;
	params.flash.window = 1;
	bench = bench_create(test, &params);
	for (i = 0; i < ARRAY_SIZE(queue); i++) {
		bench->cmds[i].queue = queue[i];
		flash_test_submit(bench, VDISK_READ, i, 1);
	}
	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), &bench->cmds[order[i]]);
}

/* Return: the time of a read behind writes that find no room. */
static u64 flash_test_read_behind_writes(struct kunit *test, u32 window, u32 writes)
{
	struct vdisk_params params = flash_test_params;
	struct vdisk_cmd *read;
	struct bench *bench;
	u32 i;

	params.flash.window = window;
	params.flash.buffer = DIES * ROW * FTL_UNIT_BYTES;
	params.flash.spare = 1000;
	bench = bench_create(test, &params);
	for (i = 0; i < writes; i++)
		flash_test_submit(bench, VDISK_WRITE, i, 1);
	read = flash_test_submit(bench, VDISK_READ, 2000, 1);
	while (bench_next_done(bench) != read)
		;
	return read->flash.at_ns;
}

static void flash_writes_without_room_keep_their_slots(struct kunit *test)
{
	u64 alone = flash_test_read_behind_writes(test, 64, 32);

	/* While slots are free the writes that wait do not matter. */
	KUNIT_EXPECT_EQ(test, flash_test_read_behind_writes(test, 0, 256), alone);
	KUNIT_EXPECT_EQ(test, flash_test_read_behind_writes(test, 257, 256), alone);
	/* A buffer of 16 units: 192 of 256 units have to be programmed, 12 times its size. */
	KUNIT_EXPECT_GT(test, flash_test_read_behind_writes(test, 64, 256), 11 * PROGRAM_NS);
}

static void flash_dies_work_in_parallel(struct kunit *test)
{
	struct bench *bench = bench_create(test, &flash_test_params);
	u32 i;

	/* Dies 0 and 2 share a channel, and so do 1 and 3. */
	for (i = 0; i < DIES; i++)
		flash_test_submit(bench, VDISK_READ, i, 1);
	for (i = 0; i < DIES; i++)
		flash_test_expect_done(test, bench, &bench->cmds[i],
				       READ_NS + (i / 2 + 1) * UNIT_NS + READ_LATENCY);
}

static void flash_die_has_one_operation_at_a_time(struct kunit *test)
{
	struct bench *bench = bench_create(test, &flash_test_params);
	u32 i;

	/* All of die 0, each in another row. */
	for (i = 0; i < 8; i++)
		flash_test_submit(bench, VDISK_READ, i * ROW * DIES, 1);
	for (i = 0; i < 8; i++)
		flash_test_expect_done(test, bench, &bench->cmds[i],
				       (i + 1) * (READ_NS + UNIT_NS) + READ_LATENCY);
}

static void flash_sense_serves_all_reads_of_a_row(struct kunit *test)
{
	struct bench *bench = bench_create(test, &flash_test_params);
	struct vdisk_cmd *cmd;

	/* A row of each die: one sense, and two rows over each channel. */
	cmd = flash_test_submit(bench, VDISK_READ, 0, ROW * DIES);
	flash_test_expect_done(test, bench, cmd, READ_NS + 2 * ROW * UNIT_NS + READ_LATENCY);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).busy_ns,
			4 * READ_NS + (2 + 4) * ROW * UNIT_NS);
}

/* Read a unit of die 0 and of a row alone. Return: the time of the sense. */
static s64 flash_test_measure_sense(struct bench *bench, u32 row)
{
	u64 begin = bench->now_ns;
	struct vdisk_cmd *cmd = flash_test_submit(bench, VDISK_READ, row * ROW * DIES, 1);

	bench_next_done(bench);
	return cmd->flash.at_ns - begin - UNIT_NS - READ_LATENCY;
}

static void flash_pages_of_a_cell_take_read_ns_on_average(struct kunit *test)
{
	/* One more sensing takes 15,000 ns; by bits and kind, less READ_NS. */
	static const s64 more[][4] = {
		{ 0 },
		{ -7500, 7500 },
		{ -20000, -5000, 25000 },
		{ -41250, -26250, 3750, 63750 },
	};
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	u32 bits, row;

	params.flash.read_step = 300;
	for (bits = 1; bits <= 4; bits++) {
		params.flash.cell_bits = bits;
		bench = bench_create(test, &params);
		for (row = 0; row < 12; row++)
			KUNIT_EXPECT_EQ(test, flash_test_measure_sense(bench, row),
					READ_NS + more[bits - 1][row % bits]);
	}
	/* Without a time for further sensings the pages do not differ. */
	params.flash.read_step = 0;
	bench->next_ns = bench->model->ops->change(bench->model, &params, bench->now_ns);
	KUNIT_EXPECT_EQ(test, flash_test_measure_sense(bench, 3), READ_NS);
}

static void flash_fast_blocks_have_one_kind_of_page(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	u32 i;

	params.flash.cell_bits = 3;
	params.flash.slc = SZ_1M;
	params.flash.precondition = VDISK_PRECONDITION_NONE;
	bench = bench_create(test, &params);
	for (i = 0; i < 6 * ROW; i++)
		flash_test_submit(bench, VDISK_WRITE, i * DIES, 1);
	/* Before the disk is idle and empties the buffers. */
	bench_run_to(bench, FLASH_IDLE_NS / 2);
	vdisk_list_init(&bench->done);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, flash_test_measure_sense(bench, i), READ_NS / 2);
}

static void flash_link_carries_exactly_its_limit(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	u32 i;

	/* A unit takes 1365 1/3 ns. */
	params.bps[VDISK_READ] = 3ULL * NSEC_PER_SEC;
	params.flash.fill = 0;
	bench = bench_create(test, &params);
	for (i = 0; i < 300; i++)
		flash_test_submit(bench, VDISK_READ, i, 1);
	for (i = 0; i < 299; i++)
		bench_next_done(bench);
	flash_test_expect_done(test, bench, &bench->cmds[299], READ_LATENCY + 409600);
}

static void flash_read_waits_for_a_running_program(struct kunit *test)
{
	struct bench *bench = bench_create(test, &flash_test_params);
	u64 program = ROW * UNIT_NS + PROGRAM_NS;
	struct vdisk_cmd *read;
	u32 i;

	/* Two rows of die 0. */
	for (i = 0; i < 2 * ROW; i++)
		flash_test_submit(bench, VDISK_WRITE, i * DIES, 1);
	bench_run_to(bench, 20000);
	read = flash_test_submit(bench, VDISK_READ, 100 * DIES, 1);
	for (i = 0; i < 2 * ROW; i++)
		flash_test_expect_done(test, bench, &bench->cmds[i], WRITE_LATENCY);
	/* The read waits for the running program, not for the waiting one. */
	flash_test_expect_done(test, bench, read, program + READ_NS + UNIT_NS + READ_LATENCY);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "host_pages"), 2 * ROW);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).busy_ns, 2 * program + READ_NS + UNIT_NS);
}

static void flash_reads_do_not_stop_programs(struct kunit *test)
{
	struct bench *bench = bench_create(test, &flash_test_params);
	u32 i;

	for (i = 0; i < 100; i++)
		flash_test_submit(bench, VDISK_READ, i * ROW * DIES, 1);
	for (i = 0; i < ROW; i++)
		flash_test_submit(bench, VDISK_WRITE, (200 + i) * DIES, 1);
	bench_run_to(bench, (FLASH_READ_STREAK_MAX + 1) * (READ_NS + UNIT_NS) + ROW * UNIT_NS +
				    PROGRAM_NS);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "host_pages"), ROW);
}

static void flash_full_buffer_delays_writes(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	u32 i;

	params.flash.buffer = 2 * ROW * FTL_UNIT_BYTES;
	bench = bench_create(test, &params);
	for (i = 0; i < 3 * ROW; i++)
		flash_test_submit(bench, VDISK_WRITE, i * DIES, 1);
	for (i = 0; i < 2 * ROW; i++)
		flash_test_expect_done(test, bench, &bench->cmds[i], WRITE_LATENCY);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, ROW);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "write_stalls"), 1);
	for (; i < 3 * ROW; i++)
		flash_test_expect_done(test, bench, &bench->cmds[i],
				       ROW * UNIT_NS + PROGRAM_NS + WRITE_LATENCY);
}

static void flash_write_may_be_larger_than_the_buffer(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	struct vdisk_cmd *cmd;

	params.flash.buffer = 2 * ROW * FTL_UNIT_BYTES;
	bench = bench_create(test, &params);
	cmd = flash_test_submit(bench, VDISK_WRITE, 0, 16 * ROW * DIES);
	KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), cmd);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test,
			flash_test_get_counter(bench, "host_pages") +
				flash_test_get_counter(bench, "buffer_used"),
			16 * ROW * DIES);
}

/* No die has a full row, and there is no room: parts of rows must be written. */
static void flash_smallest_buffer_makes_progress(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;
	u32 i;

	params.flash.buffer = FTL_UNIT_BYTES;
	bench = bench_create(test, &params);
	for (i = 0; i < 20; i++)
		flash_test_submit(bench, VDISK_WRITE, i, 1);
	for (i = 0; i < 20; i++)
		KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), &bench->cmds[i]);
}

static void flash_rewrite_replaces_the_buffer_entry(struct kunit *test)
{
	struct bench *bench = bench_create(test, &flash_test_params);
	u32 i;

	for (i = 0; i < 100; i++)
		flash_test_submit(bench, VDISK_WRITE, 3, 1);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_merges"), 99);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_used"), 1);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "host_pages"), 0);
}

static void flash_new_program_time_is_for_later_programs(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench = bench_create(test, &params);
	u32 i;

	for (i = 0; i < 2 * ROW; i++)
		flash_test_submit(bench, VDISK_WRITE, i * DIES, 1);
	bench_run_to(bench, 1000);
	params.flash.program_ns *= 3;
	bench->next_ns = bench->model->ops->change(bench->model, &params, 1000);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).busy_ns, 2 * ROW * UNIT_NS + 4 * PROGRAM_NS);
}

/* ---- read-ahead ---- */

static struct bench *flash_test_create_ahead(struct kunit *test, u32 units)
{
	struct vdisk_params params = flash_test_params;

	params.flash.readahead = units * FTL_UNIT_BYTES;
	return bench_create(test, &params);
}

/* Read alone, and let the read-ahead complete. Return: the time of the read. */
static u64 flash_test_read_alone(struct bench *bench, u32 unit)
{
	u64 begin = bench->now_ns;
	struct vdisk_cmd *cmd = flash_test_submit(bench, VDISK_READ, unit, 1);

	bench_next_done(bench);
	bench_run_to(bench, bench->now_ns + SZ_1M);
	return cmd->flash.at_ns - begin;
}

static void flash_read_ahead_is_as_long_as_the_stream(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 6);
	u32 i;

	/* Units ahead after each read, until there is no more room. */
	static const u64 asked[] = { 0, 2, 4, 6, 8, 10, 11, 12, 13 };

	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, i),
				i < 2 ? READ_NS + UNIT_NS + READ_LATENCY : READ_LATENCY);
		KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_pages"), asked[i]);
	}
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_hits"), i - 2);
}

static void flash_read_ahead_may_be_off(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 0);
	u32 i;

	for (i = 0; i < 2 * ROW * DIES; i++)
		KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, i),
				READ_NS + UNIT_NS + READ_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_pages"), 0);
}

static void flash_read_waits_for_read_ahead_in_flight(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 32);
	u32 i;

	for (i = 0; i < 3; i++)
		flash_test_submit(bench, VDISK_READ, i, 1);
	/*
	 * Each die senses once. Units 4 and 5 come with 0 and 1, and dies 0
	 * and 2 share a channel.
	 */
	flash_test_expect_done(test, bench, &bench->cmds[0], READ_NS + 2 * UNIT_NS + READ_LATENCY);
	flash_test_expect_done(test, bench, &bench->cmds[1], READ_NS + 2 * UNIT_NS + READ_LATENCY);
	flash_test_expect_done(test, bench, &bench->cmds[2], READ_NS + 3 * UNIT_NS + READ_LATENCY);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_hits"), 1);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_pages"), 4);
}

static void flash_second_read_of_incoming_units_uses_a_die(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 32);
	u32 i;

	for (i = 0; i < 2; i++)
		flash_test_submit(bench, VDISK_READ, i, 1);
	for (i = 0; i < 3; i++)
		flash_test_submit(bench, VDISK_READ, 3, 1);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_NOT_NULL(test, bench_next_done(bench));
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_hits"), 1);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 0);
}

static void flash_write_invalidates_read_ahead(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 32);
	u32 i;

	flash_test_read_alone(bench, 0);
	flash_test_read_alone(bench, 1);
	/* A row of die 2, with the unit 2, so that the buffer writes it out. */
	for (i = 0; i < ROW; i++)
		flash_test_submit(bench, VDISK_WRITE, 2 + i * DIES, 1);
	flash_test_submit(bench, VDISK_TRIM, 3, 1);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_used"), 0);
	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, 2), READ_NS + UNIT_NS + READ_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, 3), READ_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_hits"), 0);
	KUNIT_EXPECT_EQ(test, to_flash(bench->model)->ahead.nr_used,
			flash_test_get_counter(bench, "readahead_pages") - 2);
}

static void flash_write_invalidates_read_ahead_in_flight(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 32);
	struct flash_ahead *ahead = &to_flash(bench->model)->ahead;
	struct vdisk_cmd *waits, *later;
	u32 i;

	for (i = 0; i < 2; i++)
		flash_test_submit(bench, VDISK_READ, i, 1);
	waits = flash_test_submit(bench, VDISK_READ, 3, 1);
	bench_run_to(bench, 1);
	KUNIT_EXPECT_EQ(test, waits->flash.nr_pending, 1);
	/* The data arrived before the trim, and are not lost. */
	flash_test_submit(bench, VDISK_TRIM, 2, 2);
	bench_run_to(bench, 2);
	later = flash_test_submit(bench, VDISK_READ, 3, 1);
	flash_test_expect_done(test, bench, later, 2 + READ_LATENCY);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, waits->flash.nr_pending, 0);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 0);
	for (i = 0; i < FLASH_NR_STREAMS * ahead->room; i++)
		KUNIT_EXPECT_FALSE(test, ahead->slots[i].unit == 2 &&
				   ahead->slots[i].state != FLASH_AHEAD_EMPTY);
}

static void flash_streams_survive_random_reads(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 8);
	u32 stream, i, at = 0;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 3);
	for (i = 0; i < 20; i++) {
		for (stream = 0; stream < FLASH_NR_STREAMS; stream++) {
			u64 ns = flash_test_read_alone(bench, stream * 150 + i);

			if (i >= 2)
				KUNIT_EXPECT_EQ(test, ns, READ_LATENCY);
		}
		/* No read begins where another has ended. */
		for (at = 0; i && at < 2 * FLASH_NR_RECENT; at++)
			flash_test_read_alone(bench, 2501 + 2 * flash_test_random_below(&rnd, 700));
	}
	/* One more stream replaces the least recently read one. */
	for (i = 0; i < 2; i++)
		flash_test_read_alone(bench, 2480 + i);
	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, 2482), READ_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, 150 + 20), READ_LATENCY);
	KUNIT_EXPECT_EQ(test, to_flash(bench->model)->ahead.streams[0].next_pos,
			2483 * FTL_UNIT_BYTES);
}

static void flash_too_many_streams_keep_some_hits(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 8);
	u32 stream, i, asked, hits;

	for (i = 0; i < 20; i++) {
		for (stream = 0; stream < 2 * FLASH_NR_STREAMS; stream++)
			flash_test_read_alone(bench, stream * 100 + i);
	}
	hits = flash_test_get_counter(bench, "readahead_hits");
	asked = flash_test_get_counter(bench, "readahead_pages");
	/* As many streams as have room are followed, from their third read on. */
	KUNIT_EXPECT_EQ(test, hits, 18 * FLASH_NR_STREAMS);
	KUNIT_EXPECT_EQ(test, asked, hits + 8 * FLASH_NR_STREAMS);
}

static void flash_read_ahead_stops_at_the_end(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 32);
	u32 units = SZ_16M / FTL_UNIT_BYTES;
	u32 i;

	for (i = units - 5; i < units; i++)
		flash_test_read_alone(bench, i);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_pages"), 3);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "readahead_hits"), 3);
}

static void flash_small_reads_of_a_unit_are_a_stream(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 32);
	struct vdisk_cmd *cmd;
	u64 begin;
	u32 i;

	for (i = 0; i < 24; i++) {
		cmd = &bench->cmds[bench->nr_used++];
		cmd->op = VDISK_READ;
		cmd->pos = i * 512;
		cmd->bytes = 512;
		begin = bench->now_ns;
		bench->next_ns = bench->model->ops->submit(bench->model, cmd, begin);
		bench_next_done(bench);
		bench_run_to(bench, bench->now_ns + SZ_1M);
		if (i >= 2)
			KUNIT_EXPECT_EQ(test, cmd->flash.at_ns - begin,
					READ_LATENCY);
	}
}

static void flash_row_stays_latched_until_another_operation(struct kunit *test)
{
	struct bench *bench = flash_test_create_ahead(test, 32);
	u64 sense = READ_NS + UNIT_NS + READ_LATENCY;
	u32 i;

	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, 2 * DIES), sense);
	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, 0), UNIT_NS + READ_LATENCY);
	/* Another row of the die, and a program of that row. */
	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, 9 * DIES), sense);
	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, DIES), sense);
	for (i = 0; i < ROW; i++)
		flash_test_submit(bench, VDISK_WRITE, (100 + i) * DIES, 1);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_read_alone(bench, 3 * DIES), sense);
}

/* ---- stability ---- */

static void flash_flush_waits_for_ended_writes(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct vdisk_cmd *write, *flush, *later;
	struct bench *bench;
	u64 now = WRITE_LATENCY;

	params.write_cache = 1;
	bench = bench_create(test, &params);
	flush = flash_test_submit(bench, VDISK_FLUSH, 0, 0);
	flash_test_expect_done(test, bench, flush, WRITE_LATENCY);

	bench->now_ns = now;
	write = flash_test_submit(bench, VDISK_WRITE, 0, 1);
	flash_test_expect_done(test, bench, write, 2 * now);
	bench->now_ns = 2 * now;
	flush = flash_test_submit(bench, VDISK_FLUSH, 0, 0);
	/* A write to the same die, but not before the flush. */
	bench->now_ns++;
	later = flash_test_submit(bench, VDISK_WRITE, DIES, 1);
	flash_test_expect_done(test, bench, later, 2 * now + 1 + WRITE_LATENCY);
	flash_test_expect_done(test, bench, flush, 2 * now + UNIT_NS + PROGRAM_NS + WRITE_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_used"), 1);
	/* One page of one plane for each unit. */
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "padded_pages"), 1);
}

static void flash_fua_waits_for_its_own_unit_only(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct vdisk_cmd *other, *fua;
	struct bench *bench;

	params.write_cache = 1;
	bench = bench_create(test, &params);
	other = flash_test_submit(bench, VDISK_WRITE, 1, 1);
	fua = flash_test_submit_fua(bench, 0);
	flash_test_expect_done(test, bench, other, WRITE_LATENCY);
	flash_test_expect_done(test, bench, fua, UNIT_NS + PROGRAM_NS + WRITE_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_used"), 1);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "host_pages"), 1);
}

static void flash_two_fua_of_one_unit_both_end(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct vdisk_cmd *first, *second, *trim, *plain;
	struct bench *bench;

	params.write_cache = 1;
	bench = bench_create(test, &params);
	plain = flash_test_submit(bench, VDISK_WRITE, 0, 1);
	first = flash_test_submit_fua(bench, 0);
	second = flash_test_submit_fua(bench, 0);
	flash_test_expect_done(test, bench, plain, WRITE_LATENCY);
	flash_test_expect_done(test, bench, first, UNIT_NS + PROGRAM_NS + WRITE_LATENCY);
	/* The second write arrived when the first was on its way to the cells. */
	flash_test_expect_done(test, bench, second, 2 * (UNIT_NS + PROGRAM_NS) + WRITE_LATENCY);

	/* A write whose data are trimmed while it waits ends as well. */
	flash_test_run_out(bench);
	first = flash_test_submit_fua(bench, 0);
	bench_run_to(bench, bench->now_ns + 1000);
	second = flash_test_submit_fua(bench, 0);
	bench_run_to(bench, bench->now_ns + 1000);
	trim = flash_test_submit(bench, VDISK_TRIM, 0, 1);
	KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), second);
	KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), trim);
	KUNIT_EXPECT_PTR_EQ(test, bench_next_done(bench), first);
}

static void flash_protected_buffer_is_stable(struct kunit *test)
{
	struct bench *bench = bench_create(test, &flash_test_params);
	struct vdisk_cmd *fua = flash_test_submit_fua(bench, 0);
	struct vdisk_cmd *flush = flash_test_submit(bench, VDISK_FLUSH, 0, 0);

	flash_test_expect_done(test, bench, fua, WRITE_LATENCY);
	flash_test_expect_done(test, bench, flush, WRITE_LATENCY);
}

static void flash_idle_disk_empties_its_buffer(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct bench *bench;

	params.write_cache = 1;
	bench = bench_create(test, &params);
	flash_test_submit(bench, VDISK_WRITE, 0, 1);
	bench_run_to(bench, FLASH_IDLE_NS);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "host_pages"), 0);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "host_pages"), 1);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_used"), 0);
}

/* ---- the translation ---- */

static const struct ftl_geometry ftl_test_geometry = {
	.dies = 3,
	.units = 3 * 70001,
	.page_units = 2,
	.row_units = ROW,
	.block_units = BLOCK,
	.spare_per_mille = 100,
	.gc_low = 2,
	.gc_high = 4,
};

static void ftl_test_destroy(void *data)
{
	ftl_destroy(data);
}

static struct ftl *ftl_test_make(struct kunit *test, const struct ftl_geometry *geo, u32 wear_gap)
{
	struct ftl *ftl = ftl_create(geo, wear_gap);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ftl));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, ftl_test_destroy, ftl));
	return ftl;
}

/*
 * Each mapped unit of a die has its own slot, which refers back to it. The counts of valid units
 * agree with the map, and each free or closed block is in its list.
 */
static void ftl_test_check_die(struct kunit *test, struct ftl *ftl, u32 nr)
{
	struct ftl_die *die = &ftl->dies[nr];
	u32 blocks = ftl->nr_blocks[FTL_MAIN] + ftl->nr_blocks[FTL_SLC];
	u32 unit, block, valid, listed = 0, closed = 0, free = 0;
	unsigned long *taken;
	u16 *count;

	taken = bitmap_zalloc(ftl->nr_slots, GFP_KERNEL);
	count = kcalloc(blocks, sizeof(*count), GFP_KERNEL);
	if (!taken || !count) {
		KUNIT_FAIL(test, "no memory");
		goto free;
	}
	for (unit = 0; unit < die->map.units; unit++) {
		u32 slot = ftl_map_get_slot(&die->map, unit);

		if (slot == FTL_NONE)
			continue;
		KUNIT_EXPECT_LT(test, slot, ftl->nr_slots);
		KUNIT_EXPECT_FALSE(test, __test_and_set_bit(slot, taken));
		KUNIT_EXPECT_EQ(test, ftl_map_get_unit(&die->map, slot), unit);
		count[slot / ftl->geo.block_units]++;
	}
	for (block = 0; block < blocks; block++) {
		struct ftl_block *b = &die->blocks[block];

		KUNIT_EXPECT_EQ(test, b->valid, count[block]);
		if (b->state == FTL_FREE) {
			KUNIT_EXPECT_EQ(test, b->valid, 0);
			free++;
		}
		closed += b->state == FTL_CLOSED &&
			  !ftl_block_is_slc(ftl, block);
	}
	KUNIT_EXPECT_EQ(test, free, die->free[FTL_MAIN].count +
			die->free[FTL_SLC].count);
	for (valid = 0; valid <= ftl->geo.block_units; valid++) {
		for (block = die->closed.by_valid[valid]; block != FTL_NO_BLOCK;
		     block = die->blocks[block].next) {
			KUNIT_EXPECT_EQ(test, die->blocks[block].valid, valid);
			KUNIT_EXPECT_GE(test, valid, die->closed.valid_min);
			listed++;
		}
	}
	KUNIT_EXPECT_EQ(test, listed, closed);
free:
	kfree(count);
	bitmap_free(taken);
}

static void ftl_test_check(struct kunit *test, struct ftl *ftl)
{
	u32 nr;

	for (nr = 0; nr < ftl->geo.dies; nr++)
		ftl_test_check_die(test, ftl, nr);
}

/* Write a row of random units among the first of a die, as flash_die.c does. */
static void ftl_test_write_row(struct kunit *test, struct ftl *ftl, u32 nr, u32 limit,
			       struct rnd_state *rnd)
{
	struct ftl_room room;

	while (ftl_gc_is_urgent(ftl, nr))
		ftl_step(ftl, nr, FTL_MAIN);
	room = ftl_get_host_room(ftl, nr);
	KUNIT_ASSERT_NE(test, room.units, 0);
	while (room.units--)
		ftl_host_write(ftl, nr, flash_test_random_below(rnd, limit));
	ftl_host_end_program(ftl, nr);
}

static void ftl_map_stays_consistent_in_a_storm(struct kunit *test)
{
	struct ftl_geometry geo = ftl_test_geometry;
	struct rnd_state rnd;
	u32 round, i, nr;

	prandom_seed_state(&rnd, 4);
	for (round = 0; round < 6; round++) {
		struct ftl *ftl;

		geo.spare_per_mille = 10 << round;
		geo.gc_high = 3 + round;
		geo.slc_units = round & 1 ? 5000 : 0;
		ftl = ftl_test_make(test, &geo, round & 2 ? 2 : 0);
		if (round > 2)
			KUNIT_ASSERT_EQ(test, 0,
					ftl_precondition(ftl, 20 * round,
							 round & 1, round));
		ftl_test_check(test, ftl);
		for (i = 0; i < 60000; i++) {
			u32 dice = flash_test_random_below(&rnd, 1000);

			nr = flash_test_random_below(&rnd, geo.dies);
			if (dice < 700) {
				ftl_test_write_row(test, ftl, nr, ftl->dies[nr].map.units, &rnd);
			} else if (dice < 850) {
				ftl_trim(ftl, nr,
					 flash_test_random_below(&rnd, ftl->dies[nr].map.units));
			} else if (dice < 870 &&
				   ftl_get_host_room(ftl, nr).units) {
				/* A part of a row. */
				ftl_host_write(ftl, nr, 1);
				ftl_host_end_program(ftl, nr);
			} else if (ftl_gc_has_work(ftl, nr)) {
				ftl_step(ftl, nr, FTL_MAIN);
			} else if (ftl_may_fold(ftl, nr)) {
				ftl_step(ftl, nr, FTL_SLC);
			}
		}
		ftl_test_check(test, ftl);
		/* Idle collection comes to an end. */
		for (nr = 0; nr < geo.dies; nr++) {
			for (i = 0; i < 1000000 && ftl_gc_has_work(ftl, nr);
			     i++)
				ftl_step(ftl, nr, FTL_MAIN);
			KUNIT_EXPECT_FALSE(test, ftl_gc_has_work(ftl, nr));
		}
		ftl_test_check(test, ftl);
	}
}

/* Collection makes progress even with data over the whole disk and no spare. */
static void ftl_writes_without_spare(struct kunit *test)
{
	struct ftl_geometry geo = ftl_test_geometry;
	struct rnd_state rnd;
	struct ftl *ftl;
	u32 i;

	geo.dies = 1;
	geo.units = 20 * BLOCK;
	geo.spare_per_mille = 0;
	geo.gc_low = 1;
	geo.gc_high = 2;
	prandom_seed_state(&rnd, 5);
	ftl = ftl_test_make(test, &geo, 1);
	KUNIT_ASSERT_EQ(test, 0, ftl_precondition(ftl, 100, true, 1));
	for (i = 0; i < 5000; i++)
		ftl_test_write_row(test, ftl, 0, geo.units, &rnd);
	ftl_test_check(test, ftl);
}

static void ftl_takes_at_most_six_bytes_a_page(struct kunit *test)
{
	struct ftl_geometry geo = ftl_test_geometry;
	u32 spare;

	/* Some hundred blocks per die, as in a disk of full size. */
	geo.dies = 4;
	geo.units = 4 * 200 * 512;
	geo.block_units = 512;
	for (spare = 0; spare <= 280; spare += 70) {
		struct ftl *ftl;

		geo.spare_per_mille = spare;
		ftl = ftl_test_make(test, &geo, 0);
		KUNIT_EXPECT_LE(test, ftl_memory(ftl), 6ULL * geo.units);
	}
}

static u64 ftl_test_get_wa_per_mille(const struct ftl *ftl)
{
	const struct ftl_counters *done = ftl_counters(ftl);

	return div64_u64((done->host_pages + done->gc_pages) * 1000,
			 done->host_pages);
}

/* The state after many random writes, from the seed and from the writes. */
static void ftl_random_writes_amplify_as_greedy_does(struct kunit *test)
{
	/*
	 * a / (a + W(-a exp(-a))), a = 1 + spare, for greedy collection of large blocks under
	 * uniform random writes (Xiang and Kurkoski 2012; Desnoyers 2014 has the same limit). The
	 * number of valid units fluctuates between blocks, and greedy collection finds the block
	 * with the fewest: the amplification is 2 % lower with 256 units per block, 7 % with 64.
	 */
	static const struct {
		u32 spare;
		u32 wa_permille;
	} cases[] = {
		{ 70, 7817 }, { 150, 4016 }, { 280, 2481 }, { 500, 1716 },
	};
	struct rnd_state rnd;
	u32 i, row, half;

	prandom_seed_state(&rnd, 6);
	for (i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct ftl_geometry geo = ftl_test_geometry;
		u32 expect = cases[i / 2].wa_permille;
		struct ftl *ftl;

		geo.dies = 1;
		geo.units = 256 * 256;
		geo.block_units = 256;
		geo.spare_per_mille = cases[i / 2].spare;
		/* Collection at the last moment, and well before. */
		geo.gc_high = i & 1 ? 3 : 8;
		ftl = ftl_test_make(test, &geo, 0);
		KUNIT_ASSERT_EQ(test, 0, ftl_precondition(ftl, 100, true, i));
		/* No drift: the seed's state is the steady state. */
		for (half = 0; half < 2; half++) {
			memset(&ftl->counters, 0, sizeof(ftl->counters));
			for (row = 0; row < geo.units / ROW; row++)
				ftl_test_write_row(test, ftl, 0, geo.units, &rnd);
			kunit_info(test, "spare %u gc_high %u: %llu, greedy %u\n",
				   geo.spare_per_mille, geo.gc_high, ftl_test_get_wa_per_mille(ftl),
				   expect);
			KUNIT_EXPECT_GE(test, ftl_test_get_wa_per_mille(ftl) * 10, expect * 9);
			KUNIT_EXPECT_LE(test, ftl_test_get_wa_per_mille(ftl) * 10, expect * 11);
		}
	}
}

static void ftl_sequential_writes_do_not_amplify(struct kunit *test)
{
	struct ftl_geometry geo = ftl_test_geometry;
	struct ftl *ftl;
	u32 i, unit = 0;

	geo.dies = 1;
	geo.units = 100 * BLOCK;
	ftl = ftl_test_make(test, &geo, 0);
	KUNIT_ASSERT_EQ(test, 0, ftl_precondition(ftl, 100, false, 0));
	for (i = 0; i < 5 * 100 * BLOCK / ROW; i++) {
		u32 n;

		while (ftl_gc_is_urgent(ftl, 0))
			ftl_step(ftl, 0, FTL_MAIN);
		KUNIT_ASSERT_EQ(test, ftl_get_host_room(ftl, 0).units, ROW);
		for (n = 0; n < ROW; n++)
			ftl_host_write(ftl, 0, unit++ % geo.units);
		ftl_host_end_program(ftl, 0);
	}
	KUNIT_EXPECT_EQ(test, ftl_counters(ftl)->gc_pages, 0);
	KUNIT_EXPECT_GT(test, ftl_counters(ftl)->erases, 300);
}

/* Nine tenths of the data are never rewritten. */
static u32 ftl_test_measure_wear(struct kunit *test, u32 wear_gap)
{
	struct ftl_geometry geo = ftl_test_geometry;
	struct rnd_state rnd;
	u32 i, min, max;
	struct ftl *ftl;

	prandom_seed_state(&rnd, 8);
	geo.dies = 1;
	geo.units = 100 * BLOCK;
	ftl = ftl_test_make(test, &geo, wear_gap);
	KUNIT_ASSERT_EQ(test, 0, ftl_precondition(ftl, 100, false, 0));
	for (i = 0; i < 200 * 100 * BLOCK / ROW / 4; i++)
		ftl_test_write_row(test, ftl, 0, geo.units / 10, &rnd);
	ftl_test_check(test, ftl);
	ftl_wear(ftl, &min, &max);
	return max - min;
}

static void ftl_wear_is_levelled(struct kunit *test)
{
	KUNIT_EXPECT_GT(test, ftl_test_measure_wear(test, 0), 100);
	KUNIT_EXPECT_LE(test, ftl_test_measure_wear(test, 20), 60);
}

static void ftl_too_many_blocks_are_refused(struct kunit *test)
{
	struct ftl_geometry geo = ftl_test_geometry;

	/* More units per die than 24 bits count, and more blocks than 16 bits. */
	geo.dies = 1;
	geo.units = FTL_NONE;
	geo.block_units = 4096;
	KUNIT_EXPECT_EQ(test, PTR_ERR(ftl_create(&geo, 0)), -EINVAL);
	geo.units = 70000 * ROW;
	geo.block_units = ROW;
	KUNIT_EXPECT_EQ(test, PTR_ERR(ftl_create(&geo, 0)), -EINVAL);
}

/* ---- both together ---- */

/* Write at random in a closed loop. Return: the time that the writes took. */
static u64 flash_test_write_loop(struct bench *bench, u32 depth, u32 count, u32 limit,
				 struct rnd_state *rnd)
{
	u64 start = bench->now_ns;
	struct vdisk_cmd *cmd;
	u32 ended = 0;

	while (depth--)
		flash_test_submit(bench, VDISK_WRITE, flash_test_random_below(rnd, limit), 1);
	while (ended < count) {
		cmd = bench_next_done(bench);
		ended++;
		flash_test_resubmit(bench, cmd, VDISK_WRITE, flash_test_random_below(rnd, limit),
				    1);
	}
	return bench->now_ns - start;
}

/* Fresh flash is filled at the rate of programs; then the rate drops by the factor WA. */
static void flash_sustained_writes_fall_to_steady_state(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	u32 units = SZ_256M / FTL_UNIT_BYTES;
	struct rnd_state rnd;
	u64 fresh, fresh_rows, steady, host, moved, per_row, wa;
	struct bench *bench;

	params.size = SZ_256M;
	params.flash.precondition = VDISK_PRECONDITION_NONE;
	params.flash.block_pages = 64;
	/* With a larger buffer the test would measure the buffer. */
	params.flash.buffer = SZ_1M;
	prandom_seed_state(&rnd, 9);
	bench = bench_create(test, &params);
	fresh = flash_test_write_loop(bench, 64, units / 2, units, &rnd);
	/* All four dies program all the time. */
	host = flash_test_get_counter(bench, "host_pages");
	per_row = ROW * UNIT_NS + PROGRAM_NS;
	fresh_rows = div64_u64(fresh * DIES, per_row);
	KUNIT_EXPECT_LE(test, fresh_rows, host / ROW * 105 / 100);
	KUNIT_EXPECT_GE(test, fresh_rows, host / ROW);
	fresh = div64_u64(fresh * units, host);

	flash_test_write_loop(bench, 0, 4 * units, units, &rnd);
	host = flash_test_get_counter(bench, "host_pages");
	moved = flash_test_get_counter(bench, "gc_pages");
	steady = flash_test_write_loop(bench, 0, units, units, &rnd);
	host = flash_test_get_counter(bench, "host_pages") - host;
	moved = flash_test_get_counter(bench, "gc_pages") - moved;
	/* 250 per mille: 2693; see above. */
	wa = div64_u64((host + moved) * 1000, host);
	steady = div64_u64(steady * units, host);
	kunit_info(test, "fresh %llu ns, steady %llu ns, amplified %llu\n",
		   fresh, steady, wa);
	KUNIT_EXPECT_GE(test, wa, 2693 * 9 / 10);
	KUNIT_EXPECT_LE(test, wa, 2693 * 11 / 10);
	/* Each unit costs WA programs, and the reads and erases for them. */
	KUNIT_EXPECT_GT(test, steady * 1000, fresh * wa);
	ftl_test_check(test, to_flash(bench->model)->ftl);
}

static void flash_slc_is_fast_until_full(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	u32 slc = 2 * BLOCK * DIES;
	struct rnd_state rnd;
	struct bench *bench;
	u64 fast, slow;

	params.flash.slc = (u64)slc << FTL_UNIT_SHIFT;
	params.flash.buffer = 4 * ROW * DIES * FTL_UNIT_BYTES;
	params.flash.bus_bps = 0;
	params.flash.precondition = VDISK_PRECONDITION_NONE;
	prandom_seed_state(&rnd, 10);
	bench = bench_create(test, &params);
	flash_test_submit(bench, VDISK_WRITE, 0, slc);
	flash_test_submit(bench, VDISK_WRITE, slc, slc);
	bench_next_done(bench);
	fast = bench->now_ns;
	bench_next_done(bench);
	slow = bench->now_ns - fast;
	KUNIT_EXPECT_LE(test, fast, slc / ROW / DIES * PROGRAM_NS / 4);
	KUNIT_EXPECT_GE(test, slow,
			(slc / ROW / DIES - 8) * PROGRAM_NS);
	/* Reads of the SLC cache are fast as well. */
	bench_run_to(bench, bench->now_ns + 4 * PROGRAM_NS);
	flash_test_submit(bench, VDISK_READ, 0, 1);
	slow = bench->now_ns;
	bench_next_done(bench);
	KUNIT_EXPECT_EQ(test, bench->cmds[2].flash.at_ns,
			slow + READ_NS / 2 + READ_LATENCY);

	/* An idle disk empties the SLC cache, which is fast again. */
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "slc_pages"), 0);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "slc_pages"), slc);
	fast = bench->now_ns;
	flash_test_submit(bench, VDISK_WRITE, 0, slc);
	bench_next_done(bench);
	KUNIT_EXPECT_LE(test, bench->now_ns - fast, slc / ROW / DIES * PROGRAM_NS / 4);
	ftl_test_check(test, to_flash(bench->model)->ftl);
}

static void flash_trim_makes_room(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	u32 units = SZ_16M / FTL_UNIT_BYTES;
	struct vdisk_cmd *cmd;
	struct rnd_state rnd;
	struct bench *bench;

	params.flash.precondition = VDISK_PRECONDITION_RANDOM;
	params.flash.spare = 50;
	prandom_seed_state(&rnd, 11);
	bench = bench_create(test, &params);
	/* Units in the buffer are discarded as well. */
	flash_test_submit(bench, VDISK_WRITE, units - 1, 1);
	flash_test_run_out(bench);
	cmd = flash_test_submit(bench, VDISK_TRIM, units / 2, units / 2);
	flash_test_expect_done(test, bench, cmd, bench->now_ns + WRITE_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_used"), 0);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "trimmed_pages"), units / 2);
	cmd = flash_test_submit(bench, VDISK_READ, units - 1, 1);
	flash_test_expect_done(test, bench, cmd, bench->now_ns + READ_LATENCY);

	/* Half of the disk is spare now: almost no unit is moved. */
	flash_test_write_loop(bench, 16, 4 * units, units / 2, &rnd);
	KUNIT_EXPECT_LT(test, flash_test_get_counter(bench, "gc_pages") * 2,
			flash_test_get_counter(bench, "host_pages"));
}

/* The bit of an empty page of the table agrees with the map. */
static void flash_test_check_empty_pages(struct kunit *test, struct flash *flash, u32 units)
{
	u32 unit;

	for (unit = 0; unit < units; unit++) {
		if (test_bit(unit / FLASH_UNITS_PER_TABLE_PAGE,
			     flash->host.table.empty_pages))
			KUNIT_EXPECT_EQ(test, FTL_NONE,
					ftl_lookup(flash->ftl,
						   unit % flash->dies.nr,
						   unit / flash->dies.nr));
	}
}

static void flash_steady_state_has_no_free_fast_block(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct ftl *ftl;
	struct bench *bench;

	params.flash.precondition = VDISK_PRECONDITION_RANDOM;
	params.flash.slc = SZ_4M;
	bench = bench_create(test, &params);
	ftl = to_flash(bench->model)->ftl;
	KUNIT_EXPECT_FALSE(test, ftl_get_host_room(ftl, 0).slc);
	ftl_test_check(test, ftl);
	/* An idle disk empties the SLC blocks again. */
	flash_test_submit(bench, VDISK_READ, 0, 1);
	flash_test_run_out(bench);
	KUNIT_EXPECT_TRUE(test, ftl_get_host_room(ftl, 0).slc);
	ftl_test_check(test, ftl);
}

static void flash_trim_again_does_nothing(struct kunit *test)
{
	u32 units = SZ_16M / FTL_UNIT_BYTES, page = FLASH_UNITS_PER_TABLE_PAGE;
	struct bench *bench = bench_create(test, &flash_test_params);
	struct flash *flash = to_flash(bench->model);

	/* Two whole pages of the table, and parts of the adjacent pages. */
	flash_test_submit(bench, VDISK_TRIM, page - 1, 2 * page + 2);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, bitmap_weight(flash->host.table.empty_pages, 4),
			2);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "trimmed_pages"), 2 * page + 2);
	flash_test_submit(bench, VDISK_TRIM, 0, units);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "trimmed_pages"), units);

	/* Units written since are trimmed again, from buffer and flash. */
	flash_test_submit(bench, VDISK_WRITE, page, 1);
	flash_test_submit(bench, VDISK_WRITE, 3 * page, ROW * DIES);
	flash_test_run_out(bench);
	flash_test_check_empty_pages(test, flash, units);
	flash_test_submit(bench, VDISK_TRIM, 0, units);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "buffer_used"), 0);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "trimmed_pages"), units + ROW * DIES);
	flash_test_check_empty_pages(test, flash, units);
	ftl_test_check(test, flash->ftl);
}

static void flash_trim_takes_cmd_ns_per_table_page(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	u32 page = FLASH_UNITS_PER_TABLE_PAGE;
	struct bench *bench;

	params.flash.cmd_ns = 1000;
	bench = bench_create(test, &params);
	flash_test_expect_done(test, bench, flash_test_submit(bench, VDISK_TRIM, page - 1, 1),
			       1000 + WRITE_LATENCY);
	bench->now_ns = NSEC_PER_MSEC;
	flash_test_expect_done(test, bench,
			       flash_test_submit(bench, VDISK_TRIM, page - 1, page + 2),
			       bench->now_ns + 3 * 1000 + WRITE_LATENCY);
}

static void flash_table_is_written_after_table_updates(struct kunit *test)
{
	const u64 table_ns = 10 * NSEC_PER_MSEC;
	struct vdisk_params params = flash_test_params;
	struct vdisk_cmd *cmd, *read;
	struct bench *bench;
	u32 i;

	params.flash.table_updates = 5;
	params.flash.table_ns = table_ns;
	bench = bench_create(test, &params);
	/* The fifth update, by a large write, is the last one before the table is written. */
	for (i = 0; i < 4; i++)
		flash_test_submit(bench, VDISK_WRITE, i, 1);
	flash_test_submit(bench, VDISK_WRITE, 8, 16);
	cmd = flash_test_submit(bench, VDISK_WRITE, 40, 1);
	read = flash_test_submit(bench, VDISK_READ, 2000, 1);
	for (i = 0; i < 5; i++)
		flash_test_expect_done(test, bench, &bench->cmds[i], WRITE_LATENCY);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "table_writes"), 1);
	flash_test_expect_done(test, bench, read, READ_NS + UNIT_NS + READ_LATENCY);
	flash_test_expect_done(test, bench, cmd, table_ns + WRITE_LATENCY);

	/* A trim of three pages and a write make it five. */
	flash_test_run_out(bench);
	flash_test_submit(bench, VDISK_TRIM, 0, 2 * FLASH_UNITS_PER_TABLE_PAGE + 1);
	flash_test_submit(bench, VDISK_WRITE, 41, 1);
	flash_test_run_out(bench);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "table_writes"), 2);
	bench->now_ns += NSEC_PER_SEC;
	cmd = flash_test_submit(bench, VDISK_TRIM, 0, 1);
	flash_test_expect_done(test, bench, cmd, bench->now_ns + WRITE_LATENCY);
}

static void flash_writes_to_fast_blocks_do_not_update_the_table(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	struct rnd_state rnd;
	struct bench *bench;

	params.flash.table_updates = 1;
	params.flash.slc = SZ_8M;
	prandom_seed_state(&rnd, 11);
	bench = bench_create(test, &params);
	flash_test_write_loop(bench, 16, SZ_4M / FTL_UNIT_BYTES, 1024, &rnd);
	KUNIT_EXPECT_EQ(test, flash_test_get_counter(bench, "table_writes"), 0);
	params.flash.slc = 0;
	bench = bench_create(test, &params);
	flash_test_write_loop(bench, 16, 100, 1024, &rnd);
	KUNIT_EXPECT_GE(test, flash_test_get_counter(bench, "table_writes"), 100);
}

/* Run a random load. Return: a sum over the ends of all commands, in order. */
static u64 flash_test_run_random(struct kunit *test, const struct vdisk_params *params, u32 step)
{
	u32 units = SZ_16M / FTL_UNIT_BYTES;
	struct bench *bench = bench_create(test, params);
	struct vdisk_cmd *cmd;
	struct rnd_state rnd;
	u64 at = 0, sum = 0;
	u32 ended = 0, end = 0;

	prandom_seed_state(&rnd, 12);
	while (bench->nr_used < MAX_CMDS || ended < MAX_CMDS) {
		if (bench->nr_used < MAX_CMDS) {
			enum vdisk_op op = flash_test_random_below(&rnd, VDISK_NR_OPS);
			u32 count = 1 + flash_test_random_below(&rnd, 40);
			u32 unit = flash_test_random_below(&rnd, units - count);
			u32 where = flash_test_random_below(&rnd, 4);
			bool fua = flash_test_random_below(&rnd, 8) == 0;

			/* Every second command continues the previous one. */
			if (where < 2 && end + count < units)
				unit = end;
			end = unit + count;
			/* Arrivals do not depend on the calls. */
			at += flash_test_random_below(&rnd, 60000);
			while (step && bench->now_ns + step < at)
				bench_run_to(bench, bench->now_ns + step);
			while (!step && bench->next_ns < at)
				bench_run_to(bench, bench->next_ns);
			bench->now_ns = at;
			bench->cmds[bench->nr_used].fua = fua;
			bench->cmds[bench->nr_used].queue = bench->nr_used % params->hw_queues;
			flash_test_submit(bench, op, unit, op == VDISK_FLUSH ? 0 : count);
		} else {
			KUNIT_ASSERT_NE(test, bench->next_ns, VDISK_NEVER_NS);
			bench_run_to(bench, step ? bench->now_ns + step : bench->next_ns);
		}
		while ((cmd = vdisk_list_pop(&bench->done))) {
			sum = sum * 1000003 + cmd->flash.at_ns * MAX_CMDS +
			      (cmd - bench->cmds);
			ended++;
		}
	}
	KUNIT_EXPECT_EQ(test, ended, MAX_CMDS);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_in_service, 0);
	KUNIT_EXPECT_EQ(test, bench_get_stats(bench).nr_waiting, 0);
	ftl_test_check(test, to_flash(bench->model)->ftl);
	return sum;
}

static void flash_late_calls_change_no_result(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;
	u64 sum;

	params.write_cache = 1;
	params.jitter = 100;
	params.hw_queues = 3;
	params.bps[VDISK_READ] = 500000000;
	params.bps[VDISK_WRITE] = 400000000;
	params.flash.cmd_ns = 2000;
	params.flash.cell_bits = 3;
	params.flash.readahead = SZ_256K;
	params.flash.spare = 50;
	params.flash.buffer = 256 * FTL_UNIT_BYTES;
	params.flash.slc = SZ_1M;
	params.flash.window = 16;
	params.flash.table_updates = 100;
	params.flash.table_ns = 3000000;
	params.flash.precondition = VDISK_PRECONDITION_RANDOM;
	sum = flash_test_run_random(test, &params, 0);
	/* Called at each event, a little late, and very late. */
	KUNIT_EXPECT_EQ(test, flash_test_run_random(test, &params, 0), sum);
	KUNIT_EXPECT_EQ(test, flash_test_run_random(test, &params, 777), sum);
	KUNIT_EXPECT_EQ(test, flash_test_run_random(test, &params, 5000000), sum);
	params.seed++;
	KUNIT_EXPECT_NE(test, flash_test_run_random(test, &params, 0), sum);
}

static void flash_odd_geometries_lose_no_command(struct kunit *test)
{
	static const struct {
		u64 channels, dies, planes, page, block_pages;
		u64 spare, buffer, gc_low, gc_high, slc, write_cache;
	} shapes[] = {
		{ 1, 1, 1, 1, 4, 100, 1, 1, 2, 0, 1 },
		{ 1, 1, 1, 1, 1, 0, 3, 1, 2, 10, 1 },
		{ 3, 1, 1, 3, 5, 70, 7, 1, 4, 0, 0 },
		{ 5, 3, 3, 1, 7, 10, 1000, 5, 6, 300, 1 },
		{ 1, 7, 4, 16, 1, 1000, 20, 2, 3, 0, 1 },
		{ 64, 4, 1, 1, 2, 500, 64, 1, 9, 1000, 1 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct vdisk_params params = flash_test_params;

		params.seed = i;
		params.jitter = 1000;
		params.write_cache = shapes[i].write_cache;
		params.flash.channels = shapes[i].channels;
		params.flash.dies = shapes[i].dies;
		params.flash.planes = shapes[i].planes;
		params.flash.page_size = shapes[i].page << FTL_UNIT_SHIFT;
		params.flash.block_pages = shapes[i].block_pages;
		params.flash.spare = shapes[i].spare;
		params.flash.buffer = shapes[i].buffer << FTL_UNIT_SHIFT;
		params.flash.gc_low = shapes[i].gc_low;
		params.flash.gc_high = shapes[i].gc_high;
		params.flash.slc = shapes[i].slc << FTL_UNIT_SHIFT;
		params.flash.cell_bits = 1 + i % 4;
		params.flash.readahead = (i % 3) * i * FTL_UNIT_BYTES;
		params.flash.wear_gap = i % 2;
		params.flash.window = i;
		params.flash.table_updates = 2 * i;
		params.flash.table_ns = 1 << (4 * i);
		params.flash.copyback = i % 2;
		params.flash.precondition = VDISK_PRECONDITION_RANDOM;
		flash_test_run_random(test, &params, 0);
	}
}

static void flash_impossible_sizes_are_refused(struct kunit *test)
{
	struct vdisk_params params = flash_test_params;

	params.flash.gc_high = params.flash.gc_low;
	KUNIT_EXPECT_EQ(test, PTR_ERR(params.ops->create(&params, 1)), -EINVAL);
	params = flash_test_params;
	params.flash.block_pages = 65536 / ROW;
	KUNIT_EXPECT_EQ(test, PTR_ERR(params.ops->create(&params, 1)), -EINVAL);
	params = flash_test_params;
	params.size = 3 * FTL_UNIT_BYTES;
	KUNIT_EXPECT_EQ(test, PTR_ERR(params.ops->create(&params, 1)), -EINVAL);
	params = flash_test_params;
	params.size = 1ULL << 44;
	KUNIT_EXPECT_EQ(test, PTR_ERR(params.ops->create(&params, 1)), -EINVAL);
}

static struct kunit_case vdisk_flash_cases[] = {
	KUNIT_CASE(flash_read_is_the_sum_of_its_steps),
	KUNIT_CASE(flash_read_of_unmapped_units_uses_no_die),
	KUNIT_CASE(flash_write_ends_in_the_buffer),
	KUNIT_CASE(flash_controller_takes_commands_one_by_one),
	KUNIT_CASE(flash_window_bounds_fetched_commands),
	KUNIT_CASE(flash_queues_take_turns),
	KUNIT_CASE(flash_writes_without_room_keep_their_slots),
	KUNIT_CASE(flash_dies_work_in_parallel),
	KUNIT_CASE(flash_die_has_one_operation_at_a_time),
	KUNIT_CASE(flash_sense_serves_all_reads_of_a_row),
	KUNIT_CASE(flash_pages_of_a_cell_take_read_ns_on_average),
	KUNIT_CASE(flash_fast_blocks_have_one_kind_of_page),
	KUNIT_CASE(flash_link_carries_exactly_its_limit),
	KUNIT_CASE(flash_read_waits_for_a_running_program),
	KUNIT_CASE(flash_reads_do_not_stop_programs),
	KUNIT_CASE(flash_full_buffer_delays_writes),
	KUNIT_CASE(flash_write_may_be_larger_than_the_buffer),
	KUNIT_CASE(flash_smallest_buffer_makes_progress),
	KUNIT_CASE(flash_rewrite_replaces_the_buffer_entry),
	KUNIT_CASE(flash_new_program_time_is_for_later_programs),
	KUNIT_CASE(flash_read_ahead_is_as_long_as_the_stream),
	KUNIT_CASE(flash_read_ahead_may_be_off),
	KUNIT_CASE(flash_read_waits_for_read_ahead_in_flight),
	KUNIT_CASE(flash_second_read_of_incoming_units_uses_a_die),
	KUNIT_CASE(flash_write_invalidates_read_ahead),
	KUNIT_CASE(flash_write_invalidates_read_ahead_in_flight),
	KUNIT_CASE(flash_streams_survive_random_reads),
	KUNIT_CASE(flash_too_many_streams_keep_some_hits),
	KUNIT_CASE(flash_read_ahead_stops_at_the_end),
	KUNIT_CASE(flash_small_reads_of_a_unit_are_a_stream),
	KUNIT_CASE(flash_row_stays_latched_until_another_operation),
	KUNIT_CASE(flash_flush_waits_for_ended_writes),
	KUNIT_CASE(flash_fua_waits_for_its_own_unit_only),
	KUNIT_CASE(flash_two_fua_of_one_unit_both_end),
	KUNIT_CASE(flash_protected_buffer_is_stable),
	KUNIT_CASE(flash_idle_disk_empties_its_buffer),
	KUNIT_CASE(ftl_map_stays_consistent_in_a_storm),
	KUNIT_CASE(ftl_writes_without_spare),
	KUNIT_CASE(ftl_takes_at_most_six_bytes_a_page),
	KUNIT_CASE(ftl_random_writes_amplify_as_greedy_does),
	KUNIT_CASE(ftl_sequential_writes_do_not_amplify),
	KUNIT_CASE(ftl_wear_is_levelled),
	KUNIT_CASE(ftl_too_many_blocks_are_refused),
	KUNIT_CASE(flash_sustained_writes_fall_to_steady_state),
	KUNIT_CASE(flash_slc_is_fast_until_full),
	KUNIT_CASE(flash_trim_makes_room),
	KUNIT_CASE(flash_steady_state_has_no_free_fast_block),
	KUNIT_CASE(flash_trim_again_does_nothing),
	KUNIT_CASE(flash_trim_takes_cmd_ns_per_table_page),
	KUNIT_CASE(flash_table_is_written_after_table_updates),
	KUNIT_CASE(flash_writes_to_fast_blocks_do_not_update_the_table),
	KUNIT_CASE(flash_late_calls_change_no_result),
	KUNIT_CASE(flash_odd_geometries_lose_no_command),
	KUNIT_CASE(flash_impossible_sizes_are_refused),
	{}
};

static struct kunit_suite vdisk_flash_suite = {
	.name = "vdisk_flash",
	.test_cases = vdisk_flash_cases,
};

kunit_test_suite(vdisk_flash_suite);

MODULE_DESCRIPTION("KUnit tests of isoblk_vdisk's model of a solid-state disk");
MODULE_LICENSE("GPL");
