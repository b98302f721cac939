// SPDX-License-Identifier: GPL-2.0-only
/*
 * What part of a disk is a group's.
 *
 * A group's share is the product of weight fractions along its path, each
 * taken among *active* siblings, that is those with requests in themselves or
 * below, now or a tenth of a second ago. The requests of a group that has
 * active children count as one more child, of the default weight. Shares
 * are computed again only when the active set or a weight has changed, when somebody
 * asks.
 */
#include <linux/module.h>

#include "share/disk.h"
#include "share/quota.h"
#include "share/share.h"

/* A group's requests beside its active children's: as one that was not set. */
#define OWN_WEIGHT	ISOBLK_WEIGHT_DFL

/* Something in @group becomes active that weighs @weight among its like. */
static void group_join(struct isoblk_group *group, u32 weight)
{
	for (; group; group = group->parent) {
		group->subtree.sum += weight;
		if (group->subtree.nr_active++)
			break;
		weight = group->weight;
	}
}

static void group_leave(struct isoblk_group *group, u32 weight)
{
	for (; group; group = group->parent) {
		group->subtree.sum -= weight;
		if (--group->subtree.nr_active)
			break;
		weight = group->weight;
	}
}

/* Bring the shares of @group and of its ancestors up to date. */
static void update_share(struct isoblk_group *group)
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
					top->weight, top->parent->subtree.sum);
		top->subtree.gen = gen;
	}
	share = div_u64((u64)group->subtree.share * OWN_WEIGHT,
			group->subtree.sum);
	WRITE_ONCE(group->share, max_t(u32, 1, share));
}

/* From now on the requests of @group have a share. */
static void take_part(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;

	lockdep_assert_held(&disk->lock);

	group_join(group, OWN_WEIGHT);
	list_add_tail(&group->active_node, &disk->weights.active);
	WRITE_ONCE(disk->weights.nr_active, disk->weights.nr_active + 1);
	group->was_active = true;
	WRITE_ONCE(disk->weights.gen, disk->weights.gen + 1);
}

/**
 * isoblk_take_leave() - the requests of a group have a share no longer
 * @group: has joined; its disk's lock is held
 */
void isoblk_take_leave(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;

	lockdep_assert_held(&disk->lock);

	list_del_init(&group->active_node);
	WRITE_ONCE(disk->weights.nr_active, disk->weights.nr_active - 1);
	group_leave(group, OWN_WEIGHT);
	WRITE_ONCE(disk->weights.gen, disk->weights.gen + 1);
}

/**
 * isoblk_join() - a group has requests, says an elevator with its own queues
 * @group: has none so far; its disk's lock is held
 */
void isoblk_join(struct isoblk_group *group)
{
	take_part(group);
	group->active = true;
	isoblk_gate_update(group->disk);
}
EXPORT_SYMBOL_GPL(isoblk_join);

/**
 * isoblk_leave() - a group that joined has no more requests
 * @group: its disk's lock is held
 */
void isoblk_leave(struct isoblk_group *group)
{
	group->active = false;
	isoblk_take_leave(group);
	isoblk_gate_update(group->disk);
}
EXPORT_SYMBOL_GPL(isoblk_leave);

/**
 * isoblk_group_share() - what part of the device is a group's
 * @group: has joined; its disk's lock is held
 *
 * Return: of ISOBLK_SHARE_ONE, 1 at least.
 */
u32 isoblk_group_share(struct isoblk_group *group)
{
	update_share(group);
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

	spin_lock_irqsave(&disk->lock, flags);
	group->dev_weight = dev_weight;
	if (dev_weight)
		weight = dev_weight;
	if (group->parent && group->subtree.nr_active)
		group->parent->subtree.sum += weight - group->weight;
	group->weight = weight;
	WRITE_ONCE(disk->weights.gen, disk->weights.gen + 1);
	spin_unlock_irqrestore(&disk->lock, flags);
}
