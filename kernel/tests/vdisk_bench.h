/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of isoblk_vdisk under test, without a block device. The test is the clock: it tells the
 * model the arrivals and the time.
 *
 * The test defines MAX_CMDS, its largest number of commands, before including this.
 */
#ifndef ISOBLK_VDISK_BENCH_H
#define ISOBLK_VDISK_BENCH_H

#include <kunit/test.h>
#include <linux/err.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "../vdisk/model.h"

/* A model under test. */
struct bench {
	struct kunit *test;	/* current test */
	struct vdisk_model *model; /* model under test */
	struct vdisk_cmd *cmds;	/* MAX_CMDS commands, used from the front */
	u32 nr_used;		/* number of commands that are or were in use */
	u64 now_ns;		/* current time, ns */
	u64 next_ns;		/* time of the model's next event, ns */
	struct vdisk_list done;	/* commands that have ended */
	struct rnd_state rnd;	/* state of the test's random numbers */
};

static void bench_destroy(void *data)
{
	struct vdisk_model *model = data;

	model->ops->destroy(model);
}

static struct bench *bench_create(struct kunit *test,
				  const struct vdisk_params *params)
{
	struct bench *bench;

	bench = kunit_kzalloc(test, sizeof(*bench), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bench);
	bench->cmds = kunit_kcalloc(test, MAX_CMDS, sizeof(*bench->cmds),
				    GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bench->cmds);
	bench->model = params->ops->create(params, MAX_CMDS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(bench->model));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, bench_destroy,
						  bench->model));
	bench->test = test;
	bench->next_ns = VDISK_NEVER_NS;
	vdisk_list_init(&bench->done);
	prandom_seed_state(&bench->rnd, 4);
	return bench;
}

/* Advance the clock to @now. Commands that end until then are on done. */
static void bench_run_to(struct bench *bench, u64 now)
{
	bench->now_ns = now;
	bench->next_ns = bench->model->ops->run(bench->model, now, &bench->done);
}

/* Advance the clock from event to event until a command ends. Return: that command. */
static struct vdisk_cmd *bench_next_done(struct bench *bench)
{
	while (!bench->done.head && bench->next_ns != VDISK_NEVER_NS)
		bench_run_to(bench, bench->next_ns);
	return vdisk_list_pop(&bench->done);
}

static inline struct vdisk_stats bench_get_stats(struct bench *bench)
{
	struct vdisk_stats bench_get_stats;

	bench->model->ops->stats(bench->model, bench->now_ns, &bench_get_stats);
	return bench_get_stats;
}

#endif /* ISOBLK_VDISK_BENCH_H */
