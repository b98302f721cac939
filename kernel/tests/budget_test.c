// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets: the next budget of each group is P3's B(k) = round * w(k) / sum of w + left(k). Also
 * tested: which groups delay a refill.
 *
 * The code under test is compiled into this module. It works on disks and groups made here, without
 * a request queue.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "part_of_test.h"

/* Tests set the shares themselves. */
#define isoblk_group_share share_of_test

#include "../sched/budget/budget.c"

#define GROUPS	5
#define STEPS	500

static u64 round_sectors;

u32 share_of_test(struct isoblk_group *group)
{
	return group->share;
}

static u64 budget_test_round(struct budget_disk *bd, const struct budget_round *r)
{
	return round_sectors;
}

static const struct budget_policy test_policy = { .round = budget_test_round };

static struct budget_disk *budget_test_make_disk(struct kunit *test, bool paper)
{
	struct budget_disk *bd = kunit_kzalloc(test, sizeof(*bd), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bd);
	INIT_LIST_HEAD(&bd->members);
	INIT_LIST_HEAD(&bd->turns);
	bd->policy = &test_policy;
	bd->paper_mode = paper;
	return bd;
}

/* A group with a share of @part / @of, which has waiting requests. */
static struct budget_group *budget_test_make_group(struct kunit *test, struct budget_disk *bd,
						   u32 part, u32 of)
{
	struct isoblk_group *group =
		kunit_kzalloc(test, sizeof(*group) + sizeof(struct budget_group),
			      GFP_KERNEL);
	struct budget_group *g;

	KUNIT_ASSERT_NOT_NULL(test, group);
	group->share = ISOBLK_SHARE_ONE / of * part;
	budget_group_init(group);
	g = isoblk_group_own(group);
	list_add_tail(&g->member_node, &bd->members);
	list_add_tail(&g->turn_node, &bd->turns);
	g->waiting = 1;
	return g;
}

/* Two groups with a share of one half each. */
static struct budget_disk *budget_test_make_halves(struct kunit *test, bool paper,
						   struct budget_group **a, struct budget_group **b)
{
	struct budget_disk *bd = budget_test_make_disk(test, paper);

	*a = budget_test_make_group(test, bd, 1, 2);
	*b = budget_test_make_group(test, bd, 1, 2);
	return bd;
}

static void budget_test_remove_requests(struct budget_group *g)
{
	list_del_init(&g->turn_node);
	g->waiting = 0;
}

static void budget_test_charge(struct budget_group *g, u64 sectors)
{
	g->left -= sectors;
	g->used += sectors;
}

static void budget_refill_adds_the_share_to_the_rest(struct kunit *test)
{
	static const u32 part[GROUPS] = { 8, 4, 2, 1, 1 };	/* sixteenths */
	struct budget_disk *bd = budget_test_make_disk(test, true);
	struct budget_group *g[GROUPS];
	s64 before[GROUPS];
	struct rnd_state rnd;
	unsigned int i, step;
	bool any;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < GROUPS; i++)
		g[i] = budget_test_make_group(test, bd, part[i], 16);
	for (step = 0; step < STEPS; step++) {
		any = false;
		round_sectors = 16 * (100 + prandom_u32_state(&rnd) % 2000);
		for (i = 0; i < GROUPS; i++) {
			budget_test_charge(g[i], 1 + prandom_u32_state(&rnd) % 1000);
			before[i] = g[i]->left;
			any |= before[i] + (s64)(round_sectors / 16 * part[i]) > 0;
		}
		budget_refill(bd, (step + 1) * NSEC_PER_SEC);
		for (i = 0; any && i < GROUPS; i++) {
			KUNIT_ASSERT_EQ(test, g[i]->left,
					before[i] + round_sectors / 16 * part[i]);
			KUNIT_ASSERT_EQ(test, g[i]->used, 0);
		}
	}
}

/* Of a share of 1.4 sectors per round at most one sector is outstanding. */
static void budget_fractions_of_a_sector_add_up(struct kunit *test)
{
	struct budget_disk *bd = budget_test_make_disk(test, true);
	struct budget_group *heavy = budget_test_make_group(test, bd, 93, 100);
	struct budget_group *light = budget_test_make_group(test, bd, 7, 100);
	unsigned int step;

	round_sectors = 20;
	for (step = 1; step <= STEPS; step++) {
		budget_refill(bd, step);
		KUNIT_ASSERT_GE(test, heavy->left + 1, (s64)step * 186 / 10);
		KUNIT_ASSERT_GE(test, light->left + 1, (s64)step * 14 / 10);
		KUNIT_ASSERT_LE(test, heavy->left + light->left, (s64)step * 20);
	}
}

/* In paper mode a group that has sent a request keeps its budget, and delays all others. */
static void budget_paper_mode_waits_for_every_group_that_sent(struct kunit *test)
{
	struct budget_group *a, *b;
	struct budget_disk *bd = budget_test_make_halves(test, true, &a, &b);

	round_sectors = 1000;
	budget_refill(bd, 1);
	budget_test_charge(a, 500);
	budget_test_charge(b, 10);
	budget_test_remove_requests(b);
	KUNIT_EXPECT_FALSE(test, budget_is_used_up(bd));
	/* At the end of the period the refill comes in any case. */
	budget_refill(bd, 2);
	KUNIT_EXPECT_EQ(test, a->left, 500);
	KUNIT_EXPECT_EQ(test, b->left, 990);
	/* Since then group b has sent nothing, and it has no requests. */
	budget_test_charge(a, 500);
	KUNIT_EXPECT_TRUE(test, budget_is_used_up(bd));
	budget_refill(bd, 3);
	KUNIT_EXPECT_EQ(test, a->left, 500);
	KUNIT_EXPECT_EQ(test, b->left, 990);
}

static void budget_by_default_only_groups_with_requests_delay_a_refill(struct kunit *test)
{
	struct budget_group *a, *b;
	struct budget_disk *bd = budget_test_make_halves(test, false, &a, &b);

	round_sectors = 1000;
	budget_refill(bd, 1);
	budget_test_charge(a, 500);
	KUNIT_EXPECT_FALSE(test, budget_is_used_up(bd));
	budget_test_charge(b, 10);
	budget_test_remove_requests(b);
	b->in_flight = 1;
	KUNIT_EXPECT_FALSE(test, budget_is_used_up(bd));
	b->in_flight = 0;
	KUNIT_EXPECT_TRUE(test, budget_is_used_up(bd));
	/* A group without requests keeps its budget, and gets no more. */
	budget_refill(bd, 2);
	KUNIT_EXPECT_EQ(test, a->left, 500);
	KUNIT_EXPECT_EQ(test, b->left, 490);
}

static void budget_one_group_may_send_when_all_are_in_debt(struct kunit *test)
{
	struct budget_group *a, *b;
	struct budget_disk *bd = budget_test_make_halves(test, true, &a, &b);

	round_sectors = 10;
	budget_test_charge(a, 5000);
	budget_test_charge(b, 9000);
	budget_refill(bd, 1);
	KUNIT_EXPECT_GT(test, a->left, 0);
	KUNIT_EXPECT_LE(test, b->left, 0);
}

/*
 * The heavy group has all requests in flight. A round that gets the light group out of debt would
 * be far too large.
 */
static void budget_refill_is_one_round_while_the_heavy_group_is_in_flight(struct kunit *test)
{
	struct budget_disk *bd = budget_test_make_disk(test, false);
	struct budget_group *heavy = budget_test_make_group(test, bd, 999, 1000);
	struct budget_group *light = budget_test_make_group(test, bd, 1, 1000);

	round_sectors = 1000;
	budget_test_remove_requests(heavy);
	heavy->in_flight = 4;
	budget_test_charge(light, 2000);
	budget_refill(bd, 1);
	KUNIT_EXPECT_GT(test, heavy->left, 0);
	KUNIT_EXPECT_LE(test, heavy->left, 1000);
	KUNIT_EXPECT_LE(test, light->left, 0);
}

static struct kunit_case budget_cases[] = {
	KUNIT_CASE(budget_refill_adds_the_share_to_the_rest),
	KUNIT_CASE(budget_fractions_of_a_sector_add_up),
	KUNIT_CASE(budget_paper_mode_waits_for_every_group_that_sent),
	KUNIT_CASE(budget_by_default_only_groups_with_requests_delay_a_refill),
	KUNIT_CASE(budget_one_group_may_send_when_all_are_in_debt),
	KUNIT_CASE(budget_refill_is_one_round_while_the_heavy_group_is_in_flight),
	{}
};

static struct kunit_suite budget_suite = {
	.name = "budget_test",
	.test_cases = budget_cases,
};

kunit_test_suite(budget_suite);

MODULE_DESCRIPTION("Tests of budgets");
MODULE_LICENSE("GPL");
