/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many tags a group may have. gate.c opens with the design.
 */
#ifndef ISOBLK_QUOTA_H
#define ISOBLK_QUOTA_H

#include "share/disk.h"

/* Of the tags, a hardware queue: for groups that come next, and for overshoot. */
#define ISOBLK_RESERVE_FRACTION	16

/*
 * And of few tags so many: who sleeps for one is woken when so many were freed, and
 * would find them lent again.
 */
#define ISOBLK_RESERVE_MIN	8
#define ISOBLK_RESERVE_MIN_FRACTION	4

/* Tags of a hardware queue, which has so many, that are not lent. */
static inline unsigned int isoblk_reserve(unsigned int tags)
{
	return max(tags / ISOBLK_RESERVE_FRACTION,
		   min(tags / ISOBLK_RESERVE_MIN_FRACTION,
		       ISOBLK_RESERVE_MIN));
}

/* Tags that @gq's group may have without being lent any. */
static inline unsigned int isoblk_quota(const struct isoblk_gq *gq)
{
	const struct isoblk_disk *disk = gq->group->disk;
	u64 spare = READ_ONCE(disk->gate.spare);

	if (disk->ops->has_equal_quotas)
		return 1 + spare;
	return 1 + (spare * READ_ONCE(gq->group->share) >> ISOBLK_SHARE_SHIFT);
}

/* Whether the reserve is left alone if @hq has @more requests than it holds. */
static inline bool isoblk_reserve_is_free(const struct isoblk_hq *hq,
					  unsigned int more)
{
	unsigned int tags = READ_ONCE(hq->disk->tags);

	return atomic_read(&hq->allocated) + more + isoblk_reserve(tags) < tags;
}

/*
 * Whether a group that @has so many tags may have of the reserve as well: it leaves as many,
 * so that whoever comes next finds some, and the one after. One that has none may, for nobody
 * else's completion would let it through.
 */
static inline bool isoblk_may_use_reserve(const struct isoblk_hq *hq, unsigned int has,
					  unsigned int more)
{
	return !has || atomic_read(&hq->allocated) + more + has <
		READ_ONCE(hq->disk->tags);
}

/* Where groups are served one by one, the others have no use for more now. */
static inline bool isoblk_may_borrow(const struct isoblk_gq *gq)
{
	const struct isoblk_disk *disk = gq->group->disk;

	return !disk->ops->has_equal_quotas ||
		READ_ONCE(disk->gate.served) == gq->group;
}

/*
 * Whether @gq's group may ask for a tag, when it has @more than it holds, and its
 * hardware queue @all more.
 */
static inline bool isoblk_may_allocate(const struct isoblk_gq *gq,
				       unsigned int more, unsigned int all)
{
	unsigned int has = atomic_read(&gq->allocated) + more;
	unsigned int may = isoblk_quota(gq);

	/* What was lent to others they give back as they are served: it is not there yet. */
	if (has < may)
		return isoblk_may_use_reserve(gq->hq, has, all) ||
			isoblk_reserve_is_free(gq->hq, all);
	return has < may + READ_ONCE(gq->hq->lendable) &&
		isoblk_may_borrow(gq) &&
		isoblk_reserve_is_free(gq->hq, all);
}

/* The same for a bio, when its task has @plugged already. */
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
 * And for a task that sleeps here: it has entered the queue, and bios on their way
 * may be waiting for the queue to be thawed, which waits for the task.
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
