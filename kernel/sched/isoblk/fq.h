/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups that wait on a hardware queue, by virtual deadline: fq.c.
 */
#ifndef ISOBLK_ISO_FQ_H
#define ISOBLK_ISO_FQ_H

#include "isoblk/group.h"

void iso_tree_add(struct iso_hq *hq, struct iso_gq *gq);
struct iso_gq *iso_tree_first(struct iso_hq *hq);
void iso_reorder(struct iso_disk *d);
void iso_add_request(struct iso_hq *hq, struct iso_gq *gq, struct request *rq);
struct request *iso_take_request(struct iso_hq *hq, struct iso_gq *gq);
bool iso_may_boost(const struct iso_disk *d, const struct iso_group *g, bool waits);
void iso_raise_vtime(struct iso_group *g, u64 least);
u64 iso_lower_vtime(struct iso_group *g, u64 most);

/* Whether @rq begins where the last of @gq's ended; hq->lock. */
static inline bool iso_is_sequential(const struct iso_gq *gq,
				     const struct request *rq)
{
	return blk_rq_pos(rq) == gq->end;
}

/* What @rq of @gq's is charged if it is sent now; hq->lock. */
static inline u64 iso_cost_of(const struct iso_gq *gq, const struct request *rq)
{
	return cost_of(&gq->hq->disk->cost, isoblk_rq_op(rq),
		       blk_rq_sectors(rq), iso_is_sequential(gq, rq));
}

/* A group that lets the disk wait for longer, usually, than it is expected back. */
static inline bool iso_is_light(const struct iso_disk *d,
				const struct iso_group *g)
{
	return READ_ONCE(g->think_ns) >
		(u64)READ_ONCE(d->tunables.idle_us) * NSEC_PER_USEC;
}

#endif /* ISOBLK_ISO_FQ_H */
