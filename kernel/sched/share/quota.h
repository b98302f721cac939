/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many tags a group may have. gate.c opens with the design.
 *
 * A group may allocate a tag on a hardware queue if it has
 *
 *  - fewer than its quota, and the reserve is free or the group leaves enough of it;
 *  - fewer than its quota and the lent tags together, and the reserve is free.
 */
#ifndef ISOBLK_QUOTA_H
#define ISOBLK_QUOTA_H

#include "share/disk.h"

/* Part of a hardware queue's tags kept for groups that become active, and for overshoot. */
#define ISOBLK_RESERVE_FRACTION	16

/*
 * Least reserve in tags, but at most a part of few tags: blk-mq wakes a task that waits for a tag
 * after a batch of 8 was freed, and must not find that batch lent again.
 */
#define ISOBLK_RESERVE_MIN	8
#define ISOBLK_RESERVE_MIN_FRACTION	4

/* Tags that are not lent, of a hardware queue's @tags. */
static inline unsigned int isoblk_reserve(unsigned int tags)
{
	return max(tags / ISOBLK_RESERVE_FRACTION,
		   min(tags / ISOBLK_RESERVE_MIN_FRACTION,
		       ISOBLK_RESERVE_MIN));
}

/* Tags that the group of @gq may have without borrowing; at least one. */
static inline unsigned int isoblk_quota(const struct isoblk_gq *gq)
{
	const struct isoblk_disk *disk = gq->group->disk;
	u64 spare = READ_ONCE(disk->gate.spare);

	if (disk->ops->has_equal_quotas)
		return 1 + spare;
	return 1 + (spare * READ_ONCE(gq->group->share) >> ISOBLK_SHARE_SHIFT);
}

/* Whether @hq has more than the reserve free, with @more tags in addition to the allocated. */
static inline bool isoblk_reserve_is_free(const struct isoblk_hq *hq,
					  unsigned int more)
{
	unsigned int tags = READ_ONCE(hq->disk->tags);

	return atomic_read(&hq->allocated) + more + isoblk_reserve(tags) < tags;
}

/*
 * Whether a group below its quota that has @has tags may take one of the reserve: it must leave
 * as many as it has, for groups that become active next. A group without a tag always may, since
 * no completion of another group would admit it.
 */
static inline bool isoblk_may_use_reserve(const struct isoblk_hq *hq, unsigned int has,
					  unsigned int more)
{
	return !has || atomic_read(&hq->allocated) + more + has <
		READ_ONCE(hq->disk->tags);
}

/* With equal quotas only the group that is served may borrow: it alone can use more tags. */
static inline bool isoblk_may_borrow(const struct isoblk_gq *gq)
{
	const struct isoblk_disk *disk = gq->group->disk;

	return !disk->ops->has_equal_quotas ||
		READ_ONCE(disk->gate.served) == gq->group;
}

/*
 * Whether the group of @gq may allocate a tag. @more: tags that it has in addition to its
 * allocated ones. @all_more: the same of all groups on the hardware queue.
 */
static inline bool isoblk_may_allocate(const struct isoblk_gq *gq,
				       unsigned int more, unsigned int all_more)
{
	unsigned int has = atomic_read(&gq->allocated) + more;
	unsigned int quota = isoblk_quota(gq);

	/* Below its quota a group may still have to wait until borrowers return its tags. */
	if (has < quota)
		return isoblk_may_use_reserve(gq->hq, has, all_more) ||
			isoblk_reserve_is_free(gq->hq, all_more);
	return has < quota + READ_ONCE(gq->hq->lendable) &&
		isoblk_may_borrow(gq) &&
		isoblk_reserve_is_free(gq->hq, all_more);
}

/* isoblk_may_allocate() for a bio whose task has @plugged requests in its plug. */
static inline bool isoblk_may_admit_bio(const struct isoblk_gq *gq,
					unsigned int plugged)
{
	const struct isoblk_hq_gate *all = &gq->hq->gate;

	return isoblk_may_allocate(gq, READ_ONCE(gq->gate.nr_in_transit) +
				   READ_ONCE(gq->gate.nr_entering) + plugged,
				   READ_ONCE(all->nr_in_transit) +
				   READ_ONCE(all->nr_entering) + plugged);
}

/*
 * isoblk_may_allocate() for a task that would sleep. Bios in transit do not count: they may wait
 * until the queue is unfrozen, and freezing waits for the task, which has entered the queue.
 */
static inline bool isoblk_may_admit_task(const struct isoblk_gq *gq,
					 unsigned int plugged)
{
	return isoblk_may_allocate(gq, READ_ONCE(gq->gate.nr_entering) + plugged,
				   READ_ONCE(gq->hq->gate.nr_entering) + plugged);
}

void isoblk_update_quotas(struct isoblk_disk *disk);
void isoblk_lend_tags(struct isoblk_disk *disk, unsigned int index);

#endif /* ISOBLK_QUOTA_H */
