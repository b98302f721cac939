// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many tags are divided by share, and how many are lent. gate.c opens with the design.
 */
#include "share/quota.h"

/**
 * isoblk_update_quotas() - divide the tags after a change of active groups or of tags
 * @disk: disk; its lock is held
 */
void isoblk_update_quotas(struct isoblk_disk *disk)
{
	unsigned int tags = READ_ONCE(disk->tags);
	unsigned int usable = tags - isoblk_reserve(tags);
	unsigned int groups = disk->weights.nr_active;

	lockdep_assert_held(&disk->lock);

	usable = usable > groups ? usable - groups : 0;
	if (disk->ops->has_equal_quotas && groups)
		usable /= groups;
	WRITE_ONCE(disk->gate.spare, usable);
}

/**
 * isoblk_lend_tags() - lend the tags of a hardware queue that active groups do not use
 * @disk: disk; its lock is held
 * @index: index of the hardware queue
 *
 * An active group keeps the most that it had allocated since the last call, up to its quota.
 */
void isoblk_lend_tags(struct isoblk_disk *disk, unsigned int index)
{
	unsigned int tags = READ_ONCE(disk->tags), claimed = 0;
	unsigned int usable = tags - isoblk_reserve(tags);
	struct isoblk_group *group;
	struct isoblk_gq *gq;

	lockdep_assert_held(&disk->lock);

	list_for_each_entry(group, &disk->weights.active, active_node) {
		gq = group->gq[index];
		claimed += min_t(unsigned int, isoblk_quota(gq),
				 READ_ONCE(gq->peak_allocated));
		WRITE_ONCE(gq->peak_allocated, atomic_read(&gq->allocated));
	}
	WRITE_ONCE(disk->hq[index]->lendable,
		   usable > claimed ? usable - claimed : 0);
}
