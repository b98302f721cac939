/* SPDX-License-Identifier: GPL-2.0-only */
/* Which queue is served. */
#ifndef ISOBLK_CFQ_TREE_H
#define ISOBLK_CFQ_TREE_H

#include "cfq/cfq.h"

bool cfq_has_idle_window(const struct cfq_disk *cd, const struct cfq_queue *queue);
u64 cfq_idle_ns(const struct cfq_disk *cd, const struct cfq_queue *queue,
		u64 now);
void cfq_set_busy(struct cfq_disk *cd, struct cfq_queue *queue, u64 now);
void cfq_expire_active_queue(struct cfq_disk *cd, u64 now, bool taken);
struct cfq_queue *cfq_select_queue(struct cfq_disk *cd, u64 now);
void cfq_stop_idling(struct cfq_disk *cd);
void cfq_schedule_dispatch(struct cfq_disk *cd);

#endif /* ISOBLK_CFQ_TREE_H */
