// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets: every group's next one is P3's B(k) = round * w(k) / sum of w + left(k), and which
 * groups a refill waits for.
 *
 * The code under test is compiled into this module, and works on disks and groups made here,
 * without a request queue.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "part_of_test.h"

/* Shares are as a test sets them. */
#define isoblk_group_share share_of_test

#include "../sched/budget/budget.c"

#define GROUPS	5
#define STEPS	500

static u64 round_sectors;

u32 share_of_test(struct isoblk_group *group)
{
	return group->share;
}

static u64 test_round(struct budget_disk *bd, const struct budget_round *r)
{
	return round_sectors;
}

static const struct budget_policy test_policy = { .round = test_round };

static struct budget_disk *make_disk(struct kunit *test, bool paper)
{
	struct budget_disk *bd = kunit_kzalloc(test, sizeof(*bd), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bd);
	INIT_LIST_HEAD(&bd->members);
	INIT_LIST_HEAD(&bd->turns);
	bd->policy = &test_policy;
	bd->paper = paper;
	return bd;
}

/* A group with @part of @of of the disk, of which something waits. */
static struct budget_group *make_group(struct kunit *test,
				       struct budget_disk *bd, u32 part, u32 of)
{
	struct isoblk_group *group =
		kunit_kzalloc(test, sizeof(*group) + sizeof(struct budget_group),
			      GFP_KERNEL);
	struct budget_group *g;

	KUNIT_ASSERT_NOT_NULL(test, group);
	group->share = ISOBLK_SHARE_ONE / of * part;
	group_init(group);
	g = isoblk_group_own(group);
	list_add_tail(&g->member, &bd->members);
	list_add_tail(&g->turn, &bd->turns);
	g->waiting = 1;
	return g;
}

/* Two groups with half of a disk each. */
static struct budget_disk *make_halves(struct kunit *test, bool paper,
				       struct budget_group **a,
				       struct budget_group **b)
{
	struct budget_disk *bd = make_disk(test, paper);

	*a = make_group(test, bd, 1, 2);
	*b = make_group(test, bd, 1, 2);
	return bd;
}

static void has_nothing_that_waits(struct budget_group *g)
{
	list_del_init(&g->turn);
	g->waiting = 0;
}

static void pay(struct budget_group *g, u64 sectors)
{
	g->left -= sectors;
	g->used += sectors;
}

static void every_group_gets_its_part_and_keeps_its_rest(struct kunit *test)
{
	static const u32 part[GROUPS] = { 8, 4, 2, 1, 1 };	/* of 16 */
	struct budget_disk *bd = make_disk(test, true);
	struct budget_group *g[GROUPS];
	s64 before[GROUPS];
	struct rnd_state rnd;
	unsigned int i, step;
	bool any;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < GROUPS; i++)
		g[i] = make_group(test, bd, part[i], 16);
	for (step = 0; step < STEPS; step++) {
		any = false;
		round_sectors = 16 * (100 + prandom_u32_state(&rnd) % 2000);
		for (i = 0; i < GROUPS; i++) {
			pay(g[i], 1 + prandom_u32_state(&rnd) % 1000);
			before[i] = g[i]->left;
			any |= before[i] + (s64)(round_sectors / 16 * part[i]) > 0;
		}
		refill(bd, (step + 1) * NSEC_PER_SEC);
		for (i = 0; any && i < GROUPS; i++) {
			KUNIT_ASSERT_EQ(test, g[i]->left,
					before[i] + round_sectors / 16 * part[i]);
			KUNIT_ASSERT_EQ(test, g[i]->used, 0);
		}
	}
}

/* Of a part of 1.4 sectors no more than one sector is ever left out. */
static void small_parts_are_given_in_full(struct kunit *test)
{
	struct budget_disk *bd = make_disk(test, true);
	struct budget_group *heavy = make_group(test, bd, 93, 100);
	struct budget_group *light = make_group(test, bd, 7, 100);
	unsigned int step;

	round_sectors = 20;
	for (step = 1; step <= STEPS; step++) {
		refill(bd, step);
		KUNIT_ASSERT_GE(test, heavy->left + 1, (s64)step * 186 / 10);
		KUNIT_ASSERT_GE(test, light->left + 1, (s64)step * 14 / 10);
		KUNIT_ASSERT_LE(test, heavy->left + light->left, (s64)step * 20);
	}
}

/* In paper mode a group that has sent something keeps its budget, and the others from theirs. */
static void the_papers_wait_for_every_group_that_sent(struct kunit *test)
{
	struct budget_group *a, *b;
	struct budget_disk *bd = make_halves(test, true, &a, &b);

	round_sectors = 1000;
	refill(bd, 1);
	pay(a, 500);
	pay(b, 10);
	has_nothing_that_waits(b);
	KUNIT_EXPECT_FALSE(test, all_used(bd));
	/* The end of the period does not ask. */
	refill(bd, 2);
	KUNIT_EXPECT_EQ(test, a->left, 500);
	KUNIT_EXPECT_EQ(test, b->left, 990);
	/* It sent nothing since, and has nothing to send. */
	pay(a, 500);
	KUNIT_EXPECT_TRUE(test, all_used(bd));
	refill(bd, 3);
	KUNIT_EXPECT_EQ(test, a->left, 500);
	KUNIT_EXPECT_EQ(test, b->left, 990);
}

static void else_only_groups_with_requests_are_waited_for(struct kunit *test)
{
	struct budget_group *a, *b;
	struct budget_disk *bd = make_halves(test, false, &a, &b);

	round_sectors = 1000;
	refill(bd, 1);
	pay(a, 500);
	KUNIT_EXPECT_FALSE(test, all_used(bd));
	pay(b, 10);
	has_nothing_that_waits(b);
	b->in_device = 1;
	KUNIT_EXPECT_FALSE(test, all_used(bd));
	b->in_device = 0;
	KUNIT_EXPECT_TRUE(test, all_used(bd));
	/* What it has stays, and nothing is added. */
	refill(bd, 2);
	KUNIT_EXPECT_EQ(test, a->left, 500);
	KUNIT_EXPECT_EQ(test, b->left, 490);
}

static void one_may_go_when_all_are_deep_in_debt(struct kunit *test)
{
	struct budget_group *a, *b;
	struct budget_disk *bd = make_halves(test, true, &a, &b);

	round_sectors = 10;
	pay(a, 5000);
	pay(b, 9000);
	refill(bd, 1);
	KUNIT_EXPECT_GT(test, a->left, 0);
	KUNIT_EXPECT_LE(test, b->left, 0);
}

/* The heavy group has all its requests in the device: what lets the light one go is too much. */
static void no_more_than_a_round_beside_a_heavy_group_in_the_device(struct kunit *test)
{
	struct budget_disk *bd = make_disk(test, false);
	struct budget_group *heavy = make_group(test, bd, 999, 1000);
	struct budget_group *light = make_group(test, bd, 1, 1000);

	round_sectors = 1000;
	has_nothing_that_waits(heavy);
	heavy->in_device = 4;
	pay(light, 2000);
	refill(bd, 1);
	KUNIT_EXPECT_GT(test, heavy->left, 0);
	KUNIT_EXPECT_LE(test, heavy->left, 1000);
	KUNIT_EXPECT_LE(test, light->left, 0);
}

static struct kunit_case budget_cases[] = {
	KUNIT_CASE(every_group_gets_its_part_and_keeps_its_rest),
	KUNIT_CASE(small_parts_are_given_in_full),
	KUNIT_CASE(the_papers_wait_for_every_group_that_sent),
	KUNIT_CASE(else_only_groups_with_requests_are_waited_for),
	KUNIT_CASE(one_may_go_when_all_are_deep_in_debt),
	KUNIT_CASE(no_more_than_a_round_beside_a_heavy_group_in_the_device),
	{}
};

static struct kunit_suite budget_suite = {
	.name = "budget_test",
	.test_cases = budget_cases,
};

kunit_test_suite(budget_suite);

MODULE_DESCRIPTION("Tests of budgets");
MODULE_LICENSE("GPL");
