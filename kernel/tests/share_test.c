// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of weights: shares in a tree of groups, and quotas at the gate.
 *
 * The code under test is compiled into this module. It works on disks and groups made here, without
 * a request queue: nothing may be inserted or dispatched.
 */
/* The same prefix as in policy.c. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/sched.h>

#include "part_of_test.h"

#include "../sched/share/policy.c"
#include "../sched/share/weight.c"
#include "../sched/share/stat.c"
#include "../sched/share/share.c"
#include "../sched/share/quota.c"
#include "../sched/share/gate.c"
#include "../sched/share/sleep.c"
#include "../sched/share/resubmit.c"
#include "../sched/share/disk.c"

#define MANY_GROUPS	40
#define DEEPEST		6
#define STEPS		2000
#define MANY_QUEUES	128

static const struct isoblk_ops test_ops = { };

static struct isoblk_disk *share_test_make_disk(struct kunit *test, unsigned int tags)
{
	struct isoblk_disk *disk;

	disk = kunit_kzalloc(test, sizeof(*disk), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, disk);
	disk->hq = kunit_kzalloc(test, sizeof(*disk->hq), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, disk->hq);
	disk->hq[0] = kunit_kzalloc(test, sizeof(*disk->hq[0]), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, disk->hq[0]);
	disk->hq[0]->disk = disk;
	disk->ops = &test_ops;
	disk->nr_hqs = 1;
	disk->tags = tags;
	disk->weights.gen = 1;
	spin_lock_init(&disk->lock);
	INIT_LIST_HEAD(&disk->weights.active);
	return disk;
}

static struct isoblk_group *share_test_make_group(struct kunit *test, struct isoblk_disk *disk,
						  struct isoblk_group *parent, u32 weight)
{
	struct isoblk_group *group;

	group = kunit_kzalloc(test, sizeof(*group), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, group);
	group->gq = kunit_kzalloc(test, sizeof(*group->gq), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, group->gq);
	group->gq[0] = kunit_kzalloc(test, sizeof(*group->gq[0]), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, group->gq[0]);
	group->disk = disk;
	group->parent = parent;
	group->weight = weight;
	INIT_LIST_HEAD(&group->active_node);
	group->gq[0]->group = group;
	group->gq[0]->hq = disk->hq[0];
	return group;
}

/* @ppm: share in parts per million; rounding costs less than one part. */
static void share_test_expect_share(struct kunit *test, const struct isoblk_group *group, s64 ppm)
{
	s64 share = ((u64)group->share * 1000000) >> ISOBLK_SHARE_SHIFT;

	KUNIT_EXPECT_LE_MSG(test, abs(share - ppm), 1, "%lld, not %lld", share,
			    ppm);
}

static void share_test_update(struct isoblk_disk *disk)
{
	struct isoblk_group *group;

	spin_lock_irq(&disk->lock);
	list_for_each_entry(group, &disk->weights.active, active_node)
		isoblk_group_share(group);
	isoblk_update_quotas(disk);
	spin_unlock_irq(&disk->lock);
}

static void share_test_activate_class(struct isoblk_group *group, bool idle_class)
{
	spin_lock_irq(&group->disk->lock);
	if (!group->active) {
		group->idle_class = idle_class;
		isoblk_group_activate(group);
	} else if (group->idle_class && !idle_class) {
		isoblk_group_end_idle_class(group);
	}
	spin_unlock_irq(&group->disk->lock);
}

static void share_test_activate(struct isoblk_group *group)
{
	share_test_activate_class(group, false);
}

static void share_test_deactivate(struct isoblk_group *group)
{
	spin_lock_irq(&group->disk->lock);
	isoblk_group_deactivate(group);
	spin_unlock_irq(&group->disk->lock);
}

/* A parent of weight 800 with children of 300 and 100, alongside a leaf of 200. */
struct family {
	struct isoblk_disk *disk;
	struct isoblk_group *root, *parent, *a, *b, *leaf;
};

static struct family share_test_make_family(struct kunit *test)
{
	struct family f = { .disk = share_test_make_disk(test, 256) };

	f.root = share_test_make_group(test, f.disk, NULL, 100);
	f.parent = share_test_make_group(test, f.disk, f.root, 800);
	f.a = share_test_make_group(test, f.disk, f.parent, 300);
	f.b = share_test_make_group(test, f.disk, f.parent, 100);
	f.leaf = share_test_make_group(test, f.disk, f.root, 200);
	share_test_activate(f.a);
	share_test_activate(f.b);
	share_test_activate(f.leaf);
	share_test_update(f.disk);
	return f;
}

/* ---- shares ---------------------------------------------------------- */

static void share_is_the_product_along_the_path(struct kunit *test)
{
	struct family f = share_test_make_family(test);

	share_test_expect_share(test, f.a, 600000);
	share_test_expect_share(test, f.b, 200000);
	share_test_expect_share(test, f.leaf, 200000);
	KUNIT_EXPECT_EQ(test, f.disk->weights.nr_active, 3);
}

static void share_own_requests_count_as_a_child(struct kunit *test)
{
	struct family f = share_test_make_family(test);

	share_test_activate(f.parent);
	share_test_update(f.disk);
	share_test_expect_share(test, f.a, 480000);
	share_test_expect_share(test, f.b, 160000);
	share_test_expect_share(test, f.parent, 160000);
	share_test_expect_share(test, f.leaf, 200000);

	/* Weight 100 alongside 800 and 200. */
	share_test_activate(f.root);
	share_test_update(f.disk);
	share_test_expect_share(test, f.root, 1000000 / 11);
	share_test_expect_share(test, f.leaf, 2000000 / 11);
}

static void share_of_an_idle_group_goes_to_siblings(struct kunit *test)
{
	struct family f = share_test_make_family(test);

	share_test_deactivate(f.b);
	share_test_update(f.disk);
	share_test_expect_share(test, f.a, 800000);
	share_test_expect_share(test, f.leaf, 200000);

	share_test_deactivate(f.a);
	share_test_update(f.disk);
	share_test_expect_share(test, f.leaf, 1000000);
	KUNIT_EXPECT_EQ(test, f.parent->subtree.sum, 0);
	KUNIT_EXPECT_EQ(test, f.root->subtree.sum, 200);

	share_test_activate(f.a);
	share_test_update(f.disk);
	share_test_expect_share(test, f.a, 800000);
	share_test_expect_share(test, f.leaf, 200000);
}

static void share_group_with_a_tag_is_found(struct kunit *test)
{
	struct family f = share_test_make_family(test);

	KUNIT_EXPECT_FALSE(test, isoblk_group_has_tags(f.a));
	atomic_set(&f.a->gq[0]->allocated, 1);
	KUNIT_EXPECT_TRUE(test, isoblk_group_has_tags(f.a));
}

static void share_weights_change_at_any_level(struct kunit *test)
{
	struct family f = share_test_make_family(test);

	isoblk_group_set_weight(f.parent, 0, 200);
	share_test_update(f.disk);
	share_test_expect_share(test, f.a, 375000);
	share_test_expect_share(test, f.b, 125000);
	share_test_expect_share(test, f.leaf, 500000);

	/* The new weight of an idle group counts when it becomes active. */
	share_test_deactivate(f.leaf);
	isoblk_group_set_weight(f.leaf, 0, 600);
	KUNIT_EXPECT_EQ(test, f.root->subtree.sum, 200);
	share_test_activate(f.leaf);
	share_test_update(f.disk);
	share_test_expect_share(test, f.leaf, 750000);

	/* The weight for the device overrides that of the cgroup. */
	isoblk_group_set_weight(f.leaf, 200, 600);
	share_test_update(f.disk);
	share_test_expect_share(test, f.leaf, 500000);
}

static void share_idle_class_has_the_least_weight(struct kunit *test)
{
	struct family f = share_test_make_family(test);

	share_test_deactivate(f.b);
	share_test_activate_class(f.b, true);
	share_test_update(f.disk);
	share_test_expect_share(test, f.a, 800000LL * 300 / 301);
	share_test_expect_share(test, f.b, 800000LL / 301);
	share_test_expect_share(test, f.leaf, 200000);

	/* A request of another class ends the idle class. */
	share_test_activate(f.b);
	share_test_update(f.disk);
	share_test_expect_share(test, f.a, 600000);
	share_test_expect_share(test, f.b, 200000);
	share_test_deactivate(f.b);
	KUNIT_EXPECT_EQ(test, f.parent->subtree.sum, 300);

	/* Without other active groups it has all of the disk. */
	share_test_deactivate(f.a);
	share_test_deactivate(f.leaf);
	share_test_activate_class(f.b, true);
	share_test_update(f.disk);
	share_test_expect_share(test, f.b, 1000000);
}

static void share_parent_is_idle_class_if_all_below_are(struct kunit *test)
{
	struct family f = share_test_make_family(test);

	share_test_deactivate(f.a);
	share_test_deactivate(f.b);
	share_test_activate_class(f.a, true);
	share_test_activate_class(f.b, true);
	share_test_update(f.disk);
	share_test_expect_share(test, f.a, 1000000LL / 201 / 2);
	share_test_expect_share(test, f.b, 1000000LL / 201 / 2);
	share_test_expect_share(test, f.leaf, 1000000LL * 200 / 201);

	/* A new weight counts once the group is no longer of the idle class. */
	isoblk_group_set_weight(f.parent, 0, 600);
	share_test_update(f.disk);
	share_test_expect_share(test, f.leaf, 1000000LL * 200 / 201);
	share_test_activate(f.a);
	share_test_update(f.disk);
	share_test_expect_share(test, f.a, 750000LL * 300 / 301);
	share_test_expect_share(test, f.leaf, 250000);

	/* The parent's own requests are one more child. */
	share_test_deactivate(f.b);
	share_test_activate_class(f.parent, true);
	share_test_update(f.disk);
	share_test_expect_share(test, f.parent, 750000LL / 301);
	KUNIT_EXPECT_EQ(test, f.root->subtree.sum, 800);
}

static void share_of_the_lightest_group_is_not_zero(struct kunit *test)
{
	struct isoblk_disk *disk = share_test_make_disk(test, 256);
	struct isoblk_group *light = share_test_make_group(test, disk, NULL, 100);
	struct isoblk_group *heavy;
	unsigned int i;

	for (i = 0; i < DEEPEST; i++) {
		heavy = share_test_make_group(test, disk, light, ISOBLK_WEIGHT_MAX);
		light = share_test_make_group(test, disk, light, ISOBLK_WEIGHT_MIN);
		share_test_activate(heavy);
	}
	share_test_activate(light);
	share_test_update(disk);
	KUNIT_EXPECT_GE(test, light->share, 1);
	KUNIT_EXPECT_GE(test, isoblk_quota(light->gq[0]), 1);
}

/* Expect the counts of @group that follow from the groups below it. */
static void share_test_expect_counts(struct kunit *test, struct isoblk_group **groups,
				     const struct isoblk_group *group)
{
	unsigned int i, other = group->active && !group->idle_class;
	u32 sum = group->active ? group->idle_class ? 1 : OWN_WEIGHT : 0;

	for (i = 0; i < MANY_GROUPS; i++) {
		if (groups[i]->parent != group || !groups[i]->subtree.sum)
			continue;
		sum += groups[i]->subtree.nr_other ? groups[i]->weight : 1;
		other += !!groups[i]->subtree.nr_other;
	}
	KUNIT_ASSERT_EQ(test, group->subtree.sum, sum);
	KUNIT_ASSERT_EQ(test, group->subtree.nr_other, other);
}

/* In any order of events the counts are right, and the whole disk is given. */
static void share_counts_are_right_in_any_order(struct kunit *test)
{
	struct isoblk_disk *disk = share_test_make_disk(test, 256);
	struct isoblk_group *groups[MANY_GROUPS], *group;
	unsigned int i, step, active;
	struct rnd_state rnd;
	u64 given;

	prandom_seed_state(&rnd, 1);
	groups[0] = share_test_make_group(test, disk, NULL, 100);
	for (i = 1; i < MANY_GROUPS; i++)
		groups[i] = share_test_make_group(test, disk, groups[prandom_u32_state(&rnd) % i],
						  1 + prandom_u32_state(&rnd) % 10000);

	for (step = 0; step < STEPS; step++) {
		group = groups[prandom_u32_state(&rnd) % MANY_GROUPS];
		switch (prandom_u32_state(&rnd) % 3) {
		case 0:
			share_test_activate_class(group, prandom_u32_state(&rnd) % 2);
			break;
		case 1:
			if (group->active)
				share_test_deactivate(group);
			break;
		default:
			isoblk_group_set_weight(group, 0, 1 +
					 prandom_u32_state(&rnd) % 10000);
		}
		share_test_update(disk);

		given = 0;
		active = 0;
		for (i = 0; i < MANY_GROUPS; i++) {
			share_test_expect_counts(test, groups, groups[i]);
			active += groups[i]->active;
			if (groups[i]->active)
				given += groups[i]->share;
		}
		KUNIT_ASSERT_EQ(test, disk->weights.nr_active, active);
		if (!active)
			continue;
		/* Each level rounds down by less than one, each share up by at most one. */
		KUNIT_ASSERT_LE(test, given, ISOBLK_SHARE_ONE + active);
		KUNIT_ASSERT_GE(test, given,
				ISOBLK_SHARE_ONE - MANY_GROUPS * MANY_GROUPS);
	}
}

/* ---- gate ------------------------------------------------------------ */

static void gate_quotas_leave_the_reserve_free(struct kunit *test)
{
	static const unsigned int nr_tags[] = { 1, 2, 4, 64, 256, 2048 };
	static const unsigned int nr_groups[] = { 1, 2, 3, 64, 300 };
	static const u32 weights[] = { 1000, 500, 250, 100, 1 };
	struct isoblk_group *root, *group;
	unsigned int t, g, i, all, usable;
	struct isoblk_disk *disk;

	for (g = 0; g < ARRAY_SIZE(nr_groups); g++) {
		disk = share_test_make_disk(test, 0);
		root = share_test_make_group(test, disk, NULL, 100);
		for (i = 0; i < nr_groups[g]; i++)
			share_test_activate(share_test_make_group(test, disk, root,
								  weights[i % 5]));
		share_test_update(disk);
		for (t = 0; t < ARRAY_SIZE(nr_tags); t++) {
			spin_lock_irq(&disk->lock);
			disk->tags = nr_tags[t];
			isoblk_update_quotas(disk);
			spin_unlock_irq(&disk->lock);
			usable = nr_tags[t] - isoblk_reserve(nr_tags[t]);
			all = 0;
			list_for_each_entry(group, &disk->weights.active,
					    active_node) {
				KUNIT_EXPECT_GE(test, isoblk_quota(group->gq[0]), 1);
				all += isoblk_quota(group->gq[0]);
			}
			KUNIT_EXPECT_LE(test, all, max(usable, nr_groups[g]));
		}
	}
}

/* ---- memory ---------------------------------------------------------- */

/* Sizes as large as those of isoblk. */
#define OWN_SIZE	250
#define OWN_GQ_SIZE	200

static void share_test_init_group(struct isoblk_group *group)
{
}

static const struct isoblk_ops large_ops = {
	.own_size = OWN_SIZE,
	.own_gq_size = OWN_GQ_SIZE,
	.group_init = share_test_init_group,
};

/* The part of a disk that the allocation of a group uses. */
struct wide_disk {
	struct gendisk gendisk;
	struct request_queue q;
	struct elevator_queue eq;
	struct isoblk_disk disk;
	struct isoblk_hq hq[MANY_QUEUES];
	struct isoblk_hq *hqs[MANY_QUEUES];
};

static struct wide_disk *share_test_make_wide_disk(struct kunit *test)
{
	struct wide_disk *wide;
	unsigned int i;

	wide = kunit_kzalloc(test, sizeof(*wide), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, wide);
	wide->gendisk.queue = &wide->q;
	wide->gendisk.node_id = NUMA_NO_NODE;
	wide->q.elevator = &wide->eq;
	wide->eq.elevator_data = &wide->disk;
	wide->disk.ops = &large_ops;
	wide->disk.nr_hqs = MANY_QUEUES;
	wide->disk.hq = wide->hqs;
	for (i = 0; i < MANY_QUEUES; i++) {
		wide->hq[i].node = NUMA_NO_NODE;
		wide->hqs[i] = &wide->hq[i];
	}
	return wide;
}

static void share_group_parts_fit_in_a_page(struct kunit *test)
{
	struct wide_disk *wide = share_test_make_wide_disk(test);
	struct blkg_policy_data *pd;
	struct isoblk_group *group;
	unsigned int i;

	pd = isoblk_pd_alloc(&wide->gendisk, NULL, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pd);
	group = isoblk_pd_group(pd);
	KUNIT_EXPECT_LE(test, ksize(group), PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, group->nr_gqs, MANY_QUEUES);
	memset(isoblk_group_own(group), 0xff, OWN_SIZE);
	for (i = 0; i < MANY_QUEUES; i++) {
		KUNIT_ASSERT_PTR_EQ(test, group->gq[i]->group, group);
		KUNIT_ASSERT_PTR_EQ(test, group->gq[i]->hq, wide->hqs[i]);
		KUNIT_EXPECT_LE(test, ksize(group->gq[i]), PAGE_SIZE);
		memset(isoblk_gq_own(group->gq[i]), 0xff, OWN_GQ_SIZE);
	}
	isoblk_pd_free(pd);
}

/*
 * If the allocation of any part of a group fails, all other parts are freed. Sanitizers allocate
 * memory as well, and tolerate a failure.
 */
static void share_group_creation_is_all_or_nothing(struct kunit *test)
{
#if IS_ENABLED(CONFIG_FAILSLAB)
	struct wide_disk *wide = share_test_make_wide_disk(test);
	unsigned int nth = 1, left, failed = 0;
	struct blkg_policy_data *pd;

	do {
		current->fail_nth = nth++;
		pd = isoblk_pd_alloc(&wide->gendisk, NULL,
				     GFP_NOWAIT | __GFP_NOWARN);
		left = current->fail_nth;
		current->fail_nth = 0;
		if (pd) {
			KUNIT_EXPECT_EQ(test, isoblk_pd_group(pd)->nr_gqs,
					MANY_QUEUES);
			isoblk_pd_free(pd);
		} else {
			failed++;
		}
	} while (!left);
	KUNIT_EXPECT_NOT_NULL(test, pd);
	KUNIT_EXPECT_EQ(test, failed, 1 + MANY_QUEUES);
#else
	kunit_skip(test, "no faults can be injected");
#endif
}

static struct kunit_case share_cases[] = {
	KUNIT_CASE(share_is_the_product_along_the_path),
	KUNIT_CASE(share_own_requests_count_as_a_child),
	KUNIT_CASE(share_of_an_idle_group_goes_to_siblings),
	KUNIT_CASE(share_group_with_a_tag_is_found),
	KUNIT_CASE(share_weights_change_at_any_level),
	KUNIT_CASE(share_idle_class_has_the_least_weight),
	KUNIT_CASE(share_parent_is_idle_class_if_all_below_are),
	KUNIT_CASE(share_of_the_lightest_group_is_not_zero),
	KUNIT_CASE(share_counts_are_right_in_any_order),
	KUNIT_CASE(gate_quotas_leave_the_reserve_free),
	KUNIT_CASE(share_group_parts_fit_in_a_page),
	KUNIT_CASE(share_group_creation_is_all_or_nothing),
	{}
};

static struct kunit_suite share_suite = {
	.name = "isoblk_share_test",
	.test_cases = share_cases,
};

kunit_test_suite(share_suite);

MODULE_DESCRIPTION("Tests of the arithmetic of weights");
MODULE_LICENSE("GPL");
