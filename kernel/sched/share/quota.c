// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many tags there are to divide, and to lend. gate.c opens with the design.
 */
#include "share/quota.h"

/**
 * isoblk_update_quotas() - the number of active groups or of tags has changed
 * @disk: its lock is held
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
 * isoblk_lend_tags() - lend what groups have left of their quotas on a hardware queue
 * @disk: its lock is held
 * @index: of the hardware queue
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
