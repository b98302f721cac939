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
struct request *iso_take(struct iso_hq *hq, struct iso_gq *gq);
bool iso_may_boost(const struct iso_disk *d, const struct iso_group *g, bool waits);
void iso_raise(struct iso_group *g, u64 least);
u64 iso_cut(struct iso_group *g, u64 most);

/* The request that @gq, of which something waits, would send next; hq->lock. */
static inline struct request *iso_first_of(const struct iso_gq *gq)
{
	unsigned int class = isoblk_first_class(gq->sent);

	while (list_empty(&gq->fifo[class]))
		class = isoblk_next_class(class);
	return list_first_entry(&gq->fifo[class], struct request, queuelist);
}

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
