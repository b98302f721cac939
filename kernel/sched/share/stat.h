/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bytes and requests charged to groups.
 */
#ifndef ISOBLK_STAT_H
#define ISOBLK_STAT_H

#include <linux/seq_file.h>

#include "share/group.h"

/* Charge @rq to @gq's group at dispatch; the elevator's lock of the hardware queue. */
static inline void isoblk_account_dispatched(struct isoblk_gq *gq,
					     const struct request *rq)
{
	enum isoblk_op op = isoblk_rq_op(rq);

	WRITE_ONCE(gq->bytes[op], gq->bytes[op] + blk_rq_bytes(rq));
	WRITE_ONCE(gq->ios[op], gq->ios[op] + 1);
}

/* Charge @rq of @sectors, which bypassed dispatch, or refund it with @sign -1; any context. */
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
