/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups that wait on a hardware queue, in the order of their times.
 */
#ifndef ISOBLK_CORE_TREE_H
#define ISOBLK_CORE_TREE_H

#include "core/group.h"

void iso_tree_add(struct iso_hq *hq, struct iso_gq *gq);
void iso_tree_renew(struct iso_hq *hq, struct iso_gq *gq);
struct iso_gq *iso_tree_first(const struct iso_disk *d, struct iso_hq *hq);
void iso_reorder(struct iso_disk *d);
void iso_reorder_now(struct iso_hq *hq);
struct request *iso_take(struct iso_hq *hq, struct iso_gq *gq);

/* The request that @gq, of which something waits, would send next; hq->lock. */
static inline struct request *iso_first_of(const struct iso_gq *gq)
{
	return list_first_entry(&gq->fifo, struct request, queuelist);
}

/* Whether the next of @gq's begins where its last ended. */
static inline bool iso_in_sequence(const struct iso_gq *gq)
{
	return blk_rq_pos(iso_first_of(gq)) == gq->end;
}

#endif /* ISOBLK_CORE_TREE_H */
