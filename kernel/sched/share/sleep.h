/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that sleep at the gate, where their bio cannot be held.
 */
#ifndef ISOBLK_SLEEP_H
#define ISOBLK_SLEEP_H

#include "share/group.h"

struct isoblk_gq *isoblk_group_map_gq(struct isoblk_group *group, blk_opf_t opf);
void isoblk_gate_sleep(struct isoblk_group *group, blk_opf_t opf);
void isoblk_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void isoblk_flush_allocated(struct request *rq);

/* Requests in the task's plug: they have tags, and are not inserted yet. */
static inline unsigned int isoblk_nr_plugged(void)
{
	return current->plug ? current->plug->rq_count : 0;
}

#endif /* ISOBLK_SLEEP_H */
