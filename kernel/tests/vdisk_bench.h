/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of isoblk_vdisk under test, without a block device: it is told what
 * arrives and what time it is, so the test is the clock.
 *
 * The test defines MAX_CMDS, the most commands it has, before.
 */
#ifndef ISOBLK_VDISK_BENCH_H
#define ISOBLK_VDISK_BENCH_H

#include <kunit/test.h>
#include <linux/err.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "../vdisk/model.h"

/**
 * struct bench - a model under test
 * @test: the test
 * @model: the model
 * @cmds: commands, used from the front
 * @used: how many are in use or were
 * @now: time
 * @next: time of the model's next event
 * @done: what has ended
 * @rnd: numbers for the test
 */
struct bench {
	struct kunit *test;
	struct vdisk_model *model;
	struct vdisk_cmd *cmds;
	u32 used;
	u64 now;
	u64 next;
	struct vdisk_list done;
	struct rnd_state rnd;
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
	bench->next = VDISK_NEVER;
	vdisk_list_init(&bench->done);
	prandom_seed_state(&bench->rnd, 4);
	return bench;
}

/* The clock goes to a time. What ends until then is on done. */
static void run_to(struct bench *bench, u64 now)
{
	bench->now = now;
	bench->next = bench->model->ops->run(bench->model, now, &bench->done);
}

/* The clock goes from event to event until a command ends; which, and when. */
static struct vdisk_cmd *next_done(struct bench *bench)
{
	while (!bench->done.head && bench->next != VDISK_NEVER)
		run_to(bench, bench->next);
	return vdisk_list_pop(&bench->done);
}

static inline struct vdisk_stats stats(struct bench *bench)
{
	struct vdisk_stats stats;

	bench->model->ops->stats(bench->model, bench->now, &stats);
	return stats;
}

#endif /* ISOBLK_VDISK_BENCH_H */
