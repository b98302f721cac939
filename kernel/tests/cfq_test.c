// SPDX-License-Identifier: GPL-2.0-only
/*
 * cfq's arithmetic: slices by level, the charge of a group, the order of turns, and the next
 * request.
 *
 * The code under test is compiled into this module; groups and shares are isoblk_share's. Disks,
 * groups and requests are made here, without a request queue: nothing may be inserted or
 * dispatched.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <kunit/test.h>

#include "part_of_test.h"

#include "../sched/cfq/queue.c"
#include "../sched/cfq/tree.c"
#include "../sched/cfq/show.c"
#include "../sched/cfq/cfq.c"

#define NR_GROUPS	4

static struct cfq_disk *cfq_test_make_disk(struct kunit *test)
{
	struct cfq_disk *cd = kunit_kzalloc(test, sizeof(*cd), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cd);
	cd->disk.ops = &cfq_ops;
	cd->disk.weights.gen = 1;
	spin_lock_init(&cd->disk.lock);
	INIT_LIST_HEAD(&cd->disk.weights.active);
	INIT_LIST_HEAD(&cd->urgent);
	cd->groups = RB_ROOT_CACHED;
	cd->has_queueing = true;
	cd->tunables = cfq_defaults;
	return cd;
}

static struct cfq_group *cfq_test_make_group(struct kunit *test, struct cfq_disk *cd,
					     struct isoblk_group *parent, u32 weight)
{
	struct isoblk_group *group;

	group = kunit_kzalloc(test, sizeof(*group) + sizeof(struct cfq_group),
			      GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, group);
	group->disk = &cd->disk;
	group->parent = parent;
	group->weight = weight;
	INIT_LIST_HEAD(&group->active_node);
	cfq_group_init(group);
	return cfq_group_of(group);
}

static struct request *cfq_test_make_request(struct kunit *test, sector_t sector)
{
	struct request *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rq);
	rq->__sector = sector;
	rq->__data_len = SECTOR_SIZE;
	RB_CLEAR_NODE(&rq->rb_node);
	return rq;
}

static void cfq_test_add_request(struct cfq_queue *queue, struct request *rq)
{
	list_add_tail(&rq->queuelist, &queue->fifo);
	elv_rb_add(&queue->sorted, rq);
	queue->queued++;
}

/* Nothing is sent, so a count of requests is enough. */
static void cfq_test_set_requests(struct cfq_disk *cd, struct cfq_queue *queue, u64 now)
{
	queue->queued = 1;
	cfq_set_busy(cd, queue, now);
}

static void cfq_slices_follow_the_level(struct kunit *test)
{
	static const u64 slice[IOPRIO_NR_LEVELS] = {
		180, 160, 140, 120, 100, 80, 60, 40
	};
	unsigned int i;

	for (i = 0; i < IOPRIO_NR_LEVELS; i++) {
		KUNIT_EXPECT_EQ(test, cfq_scale_slice(100, i), slice[i]);
		KUNIT_EXPECT_EQ(test, cfq_scale_slice(100, CFQ_PRIO_BE + i),
				slice[i]);
	}
	KUNIT_EXPECT_EQ(test, cfq_scale_slice(100, CFQ_PRIO_IDLE), 40);
	/* 4 times slice_async_rq at the lowest level, 16 times at the highest, doubled. */
	KUNIT_EXPECT_EQ(test, cfq_async_limit(2, CFQ_PRIO_BE + 7), 4);
	KUNIT_EXPECT_EQ(test, cfq_async_limit(2, CFQ_PRIO_BE + 4), 16);
	KUNIT_EXPECT_EQ(test, cfq_async_limit(2, CFQ_PRIO_BE), 32);
}

static void cfq_priorities_match_the_kernel(struct kunit *test)
{
	const struct {
		unsigned short ioprio;
		unsigned int prio;
		enum cfq_class class;
	} prios[] = {
		{ IOPRIO_PRIO_VALUE(IOPRIO_CLASS_NONE, 0), 12, CFQ_BE },
		{ IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0), 0, CFQ_RT },
		{ IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 7), 7, CFQ_RT },
		{ IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 0), 8, CFQ_BE },
		{ IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7), 15, CFQ_BE },
		{ IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0), 16, CFQ_IDLE },
		{ IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 5), 16, CFQ_IDLE },
	};
	struct cfq_queue queue = { };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(prios); i++) {
		queue.prio = cfq_prio(prios[i].ioprio);
		KUNIT_EXPECT_EQ(test, queue.prio, prios[i].prio);
		KUNIT_EXPECT_EQ(test, cfq_class_of(&queue), prios[i].class);
	}
}

static void cfq_slices_are_fitted_into_the_groups_turn(struct kunit *test)
{
	/* slice, queues, mean, room, least; expected slice */
	static const u64 cases[][6] = {
		{ 100, 1, 100, 300, 16, 100 },
		{ 100, 3, 100, 300, 16, 100 },
		{ 100, 6, 100, 300, 16, 50 },
		{ 180, 6, 100, 300, 29, 90 },
		{ 100, 1, 100, 20, 16, 20 },
		{ 100, 100, 100, 300, 16, 16 },
		/* A slice that is short already does not become longer. */
		{ 10, 100, 10, 100, 16, 10 },
		{ 100, 100, 100, 300, 0, 3 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test,
				    cfq_fit_slice(cases[i][0], cases[i][1],
						  cases[i][2], cases[i][3],
						  cases[i][4]),
				    cases[i][5], "case %u", i);
}

static void cfq_vdisktime_is_time_over_share(struct kunit *test)
{
	u64 ns = 20 * NSEC_PER_MSEC;

	KUNIT_EXPECT_EQ(test, cfq_vdisktime(ns, ISOBLK_SHARE_ONE), ns);
	KUNIT_EXPECT_EQ(test, cfq_vdisktime(ns, ISOBLK_SHARE_ONE / 4), 4 * ns);
	KUNIT_EXPECT_EQ(test, cfq_vdisktime(0, 1), 0);
	/* Longest turn of the lightest group. */
	KUNIT_EXPECT_EQ(test, cfq_vdisktime(CFQ_CHARGE_MAX_NS, 1),
			CFQ_CHARGE_MAX_NS << ISOBLK_SHARE_SHIFT);
	KUNIT_EXPECT_EQ(test, cfq_vdisktime(U64_MAX, 1),
			cfq_vdisktime(CFQ_CHARGE_MAX_NS, 1));

	KUNIT_EXPECT_TRUE(test, cfq_before(U64_MAX, 3));
	KUNIT_EXPECT_FALSE(test, cfq_before(3, U64_MAX));
	KUNIT_EXPECT_EQ(test, cfq_since(5, 3), 2);
	KUNIT_EXPECT_EQ(test, cfq_since(3, 5), 0);
}

/* All groups always have requests. The test counts the steps that serve each. */
static void cfq_groups_have_time_by_weight(struct kunit *test)
{
	static const u32 weight[NR_GROUPS] = { 100, 200, 400, 800 };
	struct cfq_disk *cd = cfq_test_make_disk(test);
	struct cfq_group *root = cfq_test_make_group(test, cd, NULL, 100);
	struct cfq_group *group[NR_GROUPS];
	u64 served[NR_GROUPS] = { }, now = NSEC_PER_SEC;
	struct cfq_queue *queue;
	unsigned int i, step;

	for (i = 0; i < NR_GROUPS; i++)
		group[i] = cfq_test_make_group(test, cd, root->group, weight[i]);
	spin_lock_irq(&cd->disk.lock);
	for (i = 0; i < NR_GROUPS; i++)
		cfq_test_set_requests(cd, &group[i]->fallback, now);
	for (step = 0; step < 300000; step++) {
		queue = cfq_select_queue(cd, now);
		if (!queue)
			break;
		if (!queue->slice.start_ns)
			queue->slice.start_ns = now;
		if (!cd->turn.start_ns)
			cd->turn.start_ns = now;
		cd->turn.has_completion = true;
		for (i = 0; i < NR_GROUPS; i++)
			if (queue->group == group[i])
				served[i]++;
		now += 100 * NSEC_PER_USEC;
	}
	spin_unlock_irq(&cd->disk.lock);

	KUNIT_ASSERT_EQ(test, step, 300000);
	for (i = 0; i < NR_GROUPS; i++) {
		/* Of 300000 steps 1/15 for each weight of 100, give or take a turn. */
		u64 fair = step / 15 * weight[i] / 100;

		KUNIT_EXPECT_LE_MSG(test, abs_diff(served[i], fair), 2000,
				    "group %u: %llu, not %llu", i, served[i],
				    fair);
	}
}

/* Its inactive time neither earns a group service nor costs it any. */
static void cfq_inactive_time_is_no_credit(struct kunit *test)
{
	struct cfq_disk *cd = cfq_test_make_disk(test);
	struct cfq_group *root = cfq_test_make_group(test, cd, NULL, 100);
	struct cfq_group *busy = cfq_test_make_group(test, cd, root->group, 100);
	struct cfq_group *returning = cfq_test_make_group(test, cd, root->group, 100);

	spin_lock_irq(&cd->disk.lock);
	cd->min_vdisktime = 1000 * NSEC_PER_MSEC;
	busy->vdisktime = 1200 * NSEC_PER_MSEC;
	cfq_test_set_requests(cd, &busy->fallback, 1);
	cfq_test_set_requests(cd, &returning->fallback, 1);
	KUNIT_EXPECT_EQ(test, busy->vdisktime, 1200 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, returning->vdisktime, 1000 * NSEC_PER_MSEC);
	KUNIT_EXPECT_PTR_EQ(test, cfq_select_queue(cd, 1), &returning->fallback);
	spin_unlock_irq(&cd->disk.lock);
}

static void cfq_nearest_request_is_next(struct kunit *test)
{
	/* Sectors of the requests, and the next one from sector 10000. */
	static const struct {
		sector_t at[3];
		unsigned int back_seek_max;	/* KiB */
		sector_t next;
	} cases[] = {
		{ { 12000, 20000, 30000 }, 16384, 12000 },
		{ { 10000, 20000, 30000 }, 16384, 10000 },
		/* A distance backward counts twice. */
		{ { 9001, 12000, 30000 }, 16384, 9001 },
		{ { 9000, 12000, 30000 }, 16384, 12000 },
		/* No further backward than allowed: 100 KiB are 200 sectors. */
		{ { 9800, 90000, 90010 }, 100, 9800 },
		{ { 9799, 90000, 90010 }, 100, 90000 },
		{ { 1000, 5000, 9800 }, 100, 9800 },
		/* Too far backward: start again at the lowest sector. */
		{ { 1000, 5000, 9000 }, 100, 1000 },
	};
	struct cfq_disk *cd = cfq_test_make_disk(test);
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cfq_group *group = cfq_test_make_group(test, cd, NULL, 100);

		cd->last_position = 10000;
		cd->tunables.back_seek_max = cases[i].back_seek_max;
		for (j = 0; j < ARRAY_SIZE(cases[i].at); j++)
			cfq_test_add_request(&group->fallback,
					     cfq_test_make_request(test, cases[i].at[j]));
		KUNIT_EXPECT_EQ_MSG(test,
				    blk_rq_pos(cfq_find_nearest(cd, &group->fallback)),
				    cases[i].next, "case %u", i);
	}
}

static void cfq_expired_request_is_next_once_a_slice(struct kunit *test)
{
	struct cfq_disk *cd = cfq_test_make_disk(test);
	struct cfq_group *group = cfq_test_make_group(test, cd, NULL, 100);
	struct cfq_queue *queue = &group->fallback;
	struct request *old = cfq_test_make_request(test, 90000);
	struct request *near = cfq_test_make_request(test, 10);

	old->fifo_time = 1000;
	near->fifo_time = 2000;
	cfq_test_add_request(queue, old);
	cfq_test_add_request(queue, near);

	queue->slice.may_check_fifo = true;
	KUNIT_EXPECT_PTR_EQ(test, cfq_choose_request(cd, queue, 999), near);
	/* Only the first choice in a slice checks the expiry. */
	KUNIT_EXPECT_PTR_EQ(test, cfq_choose_request(cd, queue, 1000), near);
	queue->slice.may_check_fifo = true;
	KUNIT_EXPECT_PTR_EQ(test, cfq_choose_request(cd, queue, 1000), old);
	KUNIT_EXPECT_PTR_EQ(test, cfq_choose_request(cd, queue, 1000), near);
}

static void cfq_think_time_is_a_decaying_mean(struct kunit *test)
{
	struct cfq_queue queue = { };
	u64 now = 1;
	unsigned int i;

	/* Nothing has completed yet. */
	cfq_update_think_time(&queue, now);
	KUNIT_EXPECT_EQ(test, queue.habits.think_ns, 0);
	for (i = 0; i < 100; i++) {
		queue.habits.last_done_ns = now;
		now += NSEC_PER_MSEC;
		cfq_update_think_time(&queue, now);
	}
	KUNIT_EXPECT_LE(test, abs_diff(queue.habits.think_ns, (u64)NSEC_PER_MSEC),
			NSEC_PER_MSEC / 100);
	/* With other requests in flight the interval is not a think time. */
	queue.dispatched = 1;
	cfq_update_think_time(&queue, now + NSEC_PER_SEC);
	KUNIT_EXPECT_LE(test, queue.habits.think_ns, 2 * NSEC_PER_MSEC);
	/* A long absence counts as a second. */
	queue.dispatched = 0;
	cfq_update_think_time(&queue, now + 1000 * NSEC_PER_SEC);
	KUNIT_EXPECT_LE(test, queue.habits.think_ns, NSEC_PER_SEC / 8 + NSEC_PER_MSEC);
}

static struct kunit_case cfq_cases[] = {
	KUNIT_CASE(cfq_slices_follow_the_level),
	KUNIT_CASE(cfq_priorities_match_the_kernel),
	KUNIT_CASE(cfq_slices_are_fitted_into_the_groups_turn),
	KUNIT_CASE(cfq_vdisktime_is_time_over_share),
	KUNIT_CASE(cfq_groups_have_time_by_weight),
	KUNIT_CASE(cfq_inactive_time_is_no_credit),
	KUNIT_CASE(cfq_nearest_request_is_next),
	KUNIT_CASE(cfq_expired_request_is_next_once_a_slice),
	KUNIT_CASE(cfq_think_time_is_a_decaying_mean),
	{}
};

static struct kunit_suite cfq_suite = {
	.name = "cfq_test",
	.test_cases = cfq_cases,
};

kunit_test_suite(cfq_suite);

MODULE_DESCRIPTION("Tests of cfq's slices, vdisktime and order");
MODULE_LICENSE("GPL");
