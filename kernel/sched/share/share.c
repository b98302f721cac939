// SPDX-License-Identifier: GPL-2.0-only
/*
 * What part of a disk is a group's.
 *
 * A group's share is the product of weight fractions along its path, each
 * taken among *active* siblings, that is those with requests in themselves or
 * below, now or a tenth of a second ago. The requests of a group that has
 * active children count as one more child, of the default weight. A group that
 * sends only requests of the idle class (ioprio), and one in which all that is
 * active does, count with the least weight instead. Shares are computed again
 * only when the active set or a weight has changed, when an elevator asks.
 */
#include <linux/module.h>

#include "share/disk.h"
#include "share/quota.h"
#include "share/share.h"

/* A group's requests beside its active children's: as one that was not set. */
#define OWN_WEIGHT	ISOBLK_WEIGHT_DFL

/* What @group counts among its siblings: the least weight if all in it is of the idle class. */
static u32 isoblk_effective_weight(const struct isoblk_group *group)
{
	if (!group->subtree.sum)
		return 0;
	return group->subtree.nr_other ? group->weight : ISOBLK_WEIGHT_MIN;
}

/* What the requests of @group itself, which is active, count among its children. */
static u32 isoblk_own_weight(const struct isoblk_group *group)
{
	return group->idle_class ? ISOBLK_WEIGHT_MIN : OWN_WEIGHT;
}

/* Add @weight to the weights in @group, and @other to the number not of the idle class. */
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

/* Bring the shares of @group and of its ancestors up to date. */
static void isoblk_update_share(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;
	u64 gen = disk->weights.gen;
	struct isoblk_group *top;
	u64 share;

	lockdep_assert_held(&disk->lock);

	/* From above: a share is a part of the parent's. */
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

/* From now on the requests of @group have a share. */
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
 * isoblk_group_del_active() - the requests of a group have a share no longer
 * @group: has joined; its disk's lock is held
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
 * isoblk_group_activate() - a group has requests, says an elevator with its own queues
 * @group: has none so far, and @idle_class is set; its disk's lock is held
 */
void isoblk_group_activate(struct isoblk_group *group)
{
	isoblk_group_add_active(group);
	group->active = true;
	isoblk_update_quotas(group->disk);
}
EXPORT_SYMBOL_GPL(isoblk_group_activate);

/**
 * isoblk_group_deactivate() - a group that joined has no more requests
 * @group: its disk's lock is held
 */
void isoblk_group_deactivate(struct isoblk_group *group)
{
	group->active = false;
	isoblk_group_del_active(group);
	isoblk_update_quotas(group->disk);
}
EXPORT_SYMBOL_GPL(isoblk_group_deactivate);

/**
 * isoblk_group_end_idle_class() - a group has its first request of another class
 * @group: is of the idle class so far; its disk's lock is held
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
 * isoblk_group_share() - what part of the device is a group's
 * @group: has joined; its disk's lock is held
 *
 * Return: of ISOBLK_SHARE_ONE, 1 at least.
 */
u32 isoblk_group_share(struct isoblk_group *group)
{
	isoblk_update_share(group);
	return group->share;
}
EXPORT_SYMBOL_GPL(isoblk_group_share);

/**
 * isoblk_group_set_weight() - give a group a weight
 * @group: group
 * @dev_weight: of this disk, 0: none
 * @weight: of the cgroup, if there is none of this disk
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
