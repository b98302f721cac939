// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rounds as the papers have them, in virtual time: every group's next budget is P3's
 * B(k) = round * w(k) / sum of w + left(k). And room, divided among hardware queues.
 *
 * The code under test is compiled into this module, and works on disks and groups made
 * here, without a request queue.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "part_of_test.h"

#include "core/disk.h"
#include "../sched/core/room.c"

/* The event asks for a queue, which there is none of. */
#define ISOBLK_TRACE_H
static void trace_isoblk_refill(const struct iso_disk *d,
				const struct iso_round *r)
{
}

#include "../sched/core/paper.c"

#define GROUPS	5
#define STEPS	500

static u64 round_units;
static struct iso_group *left;

void iso_leave(struct iso_disk *d, struct iso_group *g)
{
	left = g;
	list_del_init(&g->node);
}

static u64 test_refill(struct iso_disk *d, const struct iso_round *r)
{
	return round_units;
}

static const struct iso_policy test_policy = { .refill = test_refill };

static struct iso_disk *make_disk(struct kunit *test)
{
	struct iso_disk *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, d);
	spin_lock_init(&d->disk.lock);
	INIT_LIST_HEAD(&d->members.list);
	d->policy = &test_policy;
	d->paper = true;
	d->rounds.refill_ns = 100 * NSEC_PER_MSEC;
	d->clock.vnow = BIT_ULL(60);
	return d;
}

static struct iso_group *make_group(struct kunit *test, struct iso_disk *d,
				    u32 share)
{
	struct iso_group *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, g);
	g->share = share;
	atomic64_set(&g->vtime, d->clock.vnow);
	g->refill_vtime = d->clock.vnow;
	list_add_tail(&g->node, &d->members.list);
	return g;
}

static bool refill(struct iso_disk *d, u64 now)
{
	bool done;

	spin_lock_irq(&d->disk.lock);
	done = iso_refill(d, now, true);
	spin_unlock_irq(&d->disk.lock);
	return done;
}

static void charge(struct iso_group *g, u64 work)
{
	atomic64_add(vtime_step(work, g->share), &g->vtime);
}

static s64 budget(const struct iso_disk *d, const struct iso_group *g)
{
	return iso_left(d->clock.vnow, 0, atomic64_read(&g->vtime), g->share);
}

static void every_group_gets_its_part_and_keeps_its_rest(struct kunit *test)
{
	static const u32 part[GROUPS] = { 8, 4, 2, 1, 1 };	/* of 16 */
	struct iso_disk *d = make_disk(test);
	struct iso_group *g[GROUPS];
	s64 before[GROUPS];
	struct rnd_state rnd;
	unsigned int i, step;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < GROUPS; i++)
		g[i] = make_group(test, d, ISOBLK_SHARE_ONE / 16 * part[i]);
	for (step = 0; step < STEPS; step++) {
		for (i = 0; i < GROUPS; i++) {
			charge(g[i], 1 + prandom_u32_state(&rnd) % 1000);
			before[i] = budget(d, g[i]);
		}
		round_units = 16 * (100 + prandom_u32_state(&rnd) % 2000);
		KUNIT_ASSERT_TRUE(test, refill(d, (step + 1) * NSEC_PER_SEC));
		for (i = 0; i < GROUPS; i++) {
			s64 want = before[i] + round_units / 16 * part[i];

			/* Unless all were in debt, and somebody had to go. */
			if (d->clock.vnow & ((1 << VTIME_SHIFT) - 1))
				break;
			KUNIT_ASSERT_LE(test, abs(budget(d, g[i]) - want), 2);
		}
	}
}

static void a_refill_waits_for_who_has_budget_until_it_is_due(struct kunit *test)
{
	struct iso_disk *d = make_disk(test);
	struct iso_group *a = make_group(test, d, ISOBLK_SHARE_ONE / 2);
	struct iso_group *b = make_group(test, d, ISOBLK_SHARE_ONE / 2);

	round_units = 1000;
	charge(a, 10);
	charge(b, 10);
	KUNIT_EXPECT_TRUE(test, refill(d, 1));
	charge(a, 490);
	KUNIT_EXPECT_LE(test, budget(d, a), 0);
	/* b may still send 490, and has something to. */
	atomic64_set(&b->has, ISO_WAITS);
	KUNIT_EXPECT_FALSE(test, refill(d, 2));
	KUNIT_EXPECT_TRUE(test, refill(d, 2 + d->rounds.refill_ns));
	KUNIT_EXPECT_EQ(test, budget(d, a), 500);
	KUNIT_EXPECT_EQ(test, budget(d, b), 990);
}

static void who_sent_nothing_is_not_waited_for_and_leaves(struct kunit *test)
{
	struct iso_disk *d = make_disk(test);
	struct iso_group *a = make_group(test, d, ISOBLK_SHARE_ONE / 2);
	struct iso_group *idle = make_group(test, d, ISOBLK_SHARE_ONE / 2);

	round_units = 1000;
	d->clock.vnow += 1000 << VTIME_SHIFT;
	charge(a, 2000);
	left = NULL;
	KUNIT_EXPECT_TRUE(test, refill(d, 1));
	KUNIT_EXPECT_PTR_EQ(test, left, idle);

	/* However long it was away, it has what one refill gives. */
	d->clock.vnow += 50000 << VTIME_SHIFT;
	spin_lock_irq(&d->disk.lock);
	iso_paper_join(d, idle);
	spin_unlock_irq(&d->disk.lock);
	KUNIT_EXPECT_EQ(test, budget(d, idle), 500);
}

static void nobody_waits_when_all_are_deep_in_debt(struct kunit *test)
{
	struct iso_disk *d = make_disk(test);
	struct iso_group *a = make_group(test, d, ISOBLK_SHARE_ONE / 2);
	struct iso_group *b = make_group(test, d, ISOBLK_SHARE_ONE / 2);

	round_units = 10;
	charge(a, 5000);
	charge(b, 9000);
	KUNIT_EXPECT_TRUE(test, refill(d, 1));
	KUNIT_EXPECT_TRUE(test, vtime_before(atomic64_read(&a->vtime),
					     d->clock.vnow));
	KUNIT_EXPECT_FALSE(test, vtime_before(atomic64_read(&b->vtime),
					      d->clock.vnow));
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

/* Whoever takes it, and in whatever order: never more than there is, always all. */
static void room_is_neither_lost_nor_made(struct kunit *test)
{
	struct iso_room *r = make_room(test, 4, 100);
	u64 taken[4] = { }, all = 0, much;
	struct rnd_state rnd;
	unsigned int step, i;

	prandom_seed_state(&rnd, 1);
	for (step = 0; step < 20 * STEPS; step++) {
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

static struct kunit_case paper_cases[] = {
	KUNIT_CASE(every_group_gets_its_part_and_keeps_its_rest),
	KUNIT_CASE(a_refill_waits_for_who_has_budget_until_it_is_due),
	KUNIT_CASE(who_sent_nothing_is_not_waited_for_and_leaves),
	KUNIT_CASE(nobody_waits_when_all_are_deep_in_debt),
	KUNIT_CASE(room_is_neither_lost_nor_made),
	KUNIT_CASE(forced_room_is_owed),
	{}
};

static struct kunit_suite paper_suite = {
	.name = "paper_test",
	.test_cases = paper_cases,
};

kunit_test_suite(paper_suite);

MODULE_DESCRIPTION("Tests of rounds and room");
MODULE_LICENSE("GPL");
