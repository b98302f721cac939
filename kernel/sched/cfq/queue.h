/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues: how they are found, allocated and freed. */
#ifndef ISOBLK_CFQ_QUEUE_H
#define ISOBLK_CFQ_QUEUE_H

#include "cfq/cfq.h"

int cfq_queues_init(void);
void cfq_queues_exit(void);
struct cfq_queue *cfq_queue_find(struct cfq_icq *icq,
				 const struct cfq_group *group, bool sync,
				 unsigned int prio);
struct cfq_queue *cfq_queue_get(struct cfq_disk *cd, struct cfq_icq *icq,
				struct cfq_group *group, bool sync,
				unsigned int prio);
void cfq_queue_put(struct cfq_disk *cd, struct cfq_queue *queue);
void cfq_init_icq(struct io_cq *icq);
void cfq_exit_icq(struct io_cq *icq);
void cfq_group_init(struct isoblk_group *group);
void cfq_group_exit(struct isoblk_group *group);

#endif /* ISOBLK_CFQ_QUEUE_H */
