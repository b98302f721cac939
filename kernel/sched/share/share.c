// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shares of a disk.
 *
 * A group's share is the product of the weight fractions along its path, each taken among *active*
 * siblings. A group is active while it or a descendant has requests, and for a tenth of a second
 * after that. The own requests of a group with active children count as one more child of the
 * default weight. A group that sends only requests of the idle class (ioprio) counts with the
 * minimal weight, and so does a group all of whose active descendants do. Shares are recomputed
 * only when the active set or a weight has changed, and when an elevator asks.
 */
#include <linux/module.h>

#include "share/disk.h"
#include "share/quota.h"
#include "share/share.h"

/* Weight of a group's own requests among its active children: the default. */
#define OWN_WEIGHT	ISOBLK_WEIGHT_DFL

/* Weight of @group among its siblings: minimal if all its active descendants are idle class. */
static u32 isoblk_effective_weight(const struct isoblk_group *group)
{
	if (!group->subtree.sum)
		return 0;
	return group->subtree.nr_other ? group->weight : ISOBLK_WEIGHT_MIN;
}

/* Weight of the own requests of @group, which is active, among its children. */
static u32 isoblk_own_weight(const struct isoblk_group *group)
{
	return group->idle_class ? ISOBLK_WEIGHT_MIN : OWN_WEIGHT;
}

/* Add @weight to the sum of @group, @other to its number not of the idle class; walk upwards. */
static void isoblk_add_weight(struct isoblk_group *group, s32 weight, int other)
{
	bool had_other;
	u32 before;

	for (; group && (weight || other); group = group->parent) {
		before = isoblk_effective_weight(group);
		had_other = group->subtree.nr_other;
		group->subtree.sum += weight;
		group->subtree.nr_other += other;
		weight = isoblk_effective_weight(group) - before;
		other = !!group->subtree.nr_other - had_other;
	}
}

/* Recompute the shares of @group and of its ancestors, if outdated. */
static void isoblk_update_share(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;
	u64 gen = disk->weights.gen;
	struct isoblk_group *top;
	u64 share;

	lockdep_assert_held(&disk->lock);

	/* Top down: a share is a fraction of the parent's. */
	while (group->subtree.gen != gen) {
		top = group;
		while (top->parent && top->parent->subtree.gen != gen)
			top = top->parent;
		top->subtree.share = ISOBLK_SHARE_ONE;
		if (top->parent)
			top->subtree.share =
				div_u64((u64)top->parent->subtree.share *
					isoblk_effective_weight(top),
					top->parent->subtree.sum);
		top->subtree.gen = gen;
	}
	share = div_u64((u64)group->subtree.share * isoblk_own_weight(group),
			group->subtree.sum);
	WRITE_ONCE(group->share, max_t(u32, 1, share));
}

/* Add @group to the active groups. */
static void isoblk_group_add_active(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;

	lockdep_assert_held(&disk->lock);

	isoblk_add_weight(group, isoblk_own_weight(group), !group->idle_class);
	list_add_tail(&group->active_node, &disk->weights.active);
	WRITE_ONCE(disk->weights.nr_active, disk->weights.nr_active + 1);
	group->was_active = true;
	WRITE_ONCE(disk->weights.gen, disk->weights.gen + 1);
}

/**
 * isoblk_group_del_active() - remove a group from the active groups, keeping quotas
 * @group: active group; its disk's lock is held
 */
void isoblk_group_del_active(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;

	lockdep_assert_held(&disk->lock);

	list_del_init(&group->active_node);
	WRITE_ONCE(disk->weights.nr_active, disk->weights.nr_active - 1);
	isoblk_add_weight(group, -isoblk_own_weight(group), -!group->idle_class);
	WRITE_ONCE(disk->weights.gen, disk->weights.gen + 1);
}

/**
 * isoblk_group_activate() - make a group active: its requests get a share and a quota
 * @group: inactive group with idle_class set; its disk's lock is held
 */
void isoblk_group_activate(struct isoblk_group *group)
{
	isoblk_group_add_active(group);
	group->active = true;
	isoblk_update_quotas(group->disk);
}
EXPORT_SYMBOL_GPL(isoblk_group_activate);

/**
 * isoblk_group_deactivate() - make a group inactive: its share goes to the active groups
 * @group: active group; its disk's lock is held
 */
void isoblk_group_deactivate(struct isoblk_group *group)
{
	group->active = false;
	isoblk_group_del_active(group);
	isoblk_update_quotas(group->disk);
}
EXPORT_SYMBOL_GPL(isoblk_group_deactivate);

/**
 * isoblk_group_end_idle_class() - give a group its weight on its first request of another class
 * @group: active group of the idle class; its disk's lock is held
 */
void isoblk_group_end_idle_class(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;

	lockdep_assert_held(&disk->lock);

	WRITE_ONCE(group->idle_class, false);
	isoblk_add_weight(group, OWN_WEIGHT - ISOBLK_WEIGHT_MIN, 1);
	WRITE_ONCE(disk->weights.gen, disk->weights.gen + 1);
}
EXPORT_SYMBOL_GPL(isoblk_group_end_idle_class);

/**
 * isoblk_group_share() - compute a group's share of the device
 * @group: active group; its disk's lock is held
 *
 * Return: fraction of ISOBLK_SHARE_ONE, at least 1.
 */
u32 isoblk_group_share(struct isoblk_group *group)
{
	isoblk_update_share(group);
	return group->share;
}
EXPORT_SYMBOL_GPL(isoblk_group_share);

/**
 * isoblk_group_set_weight() - set a group's weight
 * @group: group
 * @dev_weight: weight on this disk, 0: none
 * @weight: default weight of the cgroup, used without @dev_weight
 */
void isoblk_group_set_weight(struct isoblk_group *group, u32 dev_weight,
			     u32 weight)
{
	struct isoblk_disk *disk = group->disk;
	unsigned long flags;
	u32 before;

	spin_lock_irqsave(&disk->lock, flags);
	before = isoblk_effective_weight(group);
	group->dev_weight = dev_weight;
	if (dev_weight)
		weight = dev_weight;
	group->weight = weight;
	isoblk_add_weight(group->parent, isoblk_effective_weight(group) - before, 0);
	WRITE_ONCE(disk->weights.gen, disk->weights.gen + 1);
	spin_unlock_irqrestore(&disk->lock, flags);
}
