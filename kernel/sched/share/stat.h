/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What groups were charged.
 */
#ifndef ISOBLK_STAT_H
#define ISOBLK_STAT_H

#include <linux/seq_file.h>

#include "share/group.h"

/* @rq goes to the device, and is charged to @gq's group; the elevator's lock of its queue. */
static inline void isoblk_account_dispatched(struct isoblk_gq *gq,
					     const struct request *rq)
{
	enum isoblk_op op = isoblk_rq_op(rq);

	WRITE_ONCE(gq->bytes[op], gq->bytes[op] + blk_rq_bytes(rq));
	WRITE_ONCE(gq->ios[op], gq->ios[op] + 1);
}

/* @rq of @sectors is charged when it is not sent by us, or with @sign -1 refunded; any context. */
static inline void isoblk_account_bypassed(struct isoblk_group *group,
					   const struct request *rq,
					   unsigned int sectors, int sign)
{
	enum isoblk_op op = isoblk_rq_op(rq);

	atomic64_add(sign * ((s64)sectors << SECTOR_SHIFT),
		     &group->bypassed.bytes[op]);
	atomic64_add(sign, &group->bypassed.ios[op]);
}

bool isoblk_group_has_tags(const struct isoblk_group *group);
u64 isoblk_group_bytes(const struct isoblk_group *group, enum isoblk_op op);
u64 isoblk_group_ios(const struct isoblk_group *group, enum isoblk_op op);
void isoblk_pd_stat(struct blkg_policy_data *pd, struct seq_file *s);
int isoblk_stat_show(struct seq_file *sf, void *v);

#endif /* ISOBLK_STAT_H */
