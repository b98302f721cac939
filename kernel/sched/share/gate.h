/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The admission gate in front of the tags. gate.c opens with the design.
 */
#ifndef ISOBLK_GATE_H
#define ISOBLK_GATE_H

#include "share/group.h"

struct isoblk_gq *isoblk_gate_recognize(struct request_queue *q, struct bio *bio);
void isoblk_gate_end_transit(struct isoblk_gq *gq);
bool isoblk_gate_admit_or_hold(struct isoblk_gq *gq, struct bio *bio);
void isoblk_gate_count_tag(struct isoblk_gq *gq);
void isoblk_gate_release_tag(struct isoblk_gq *gq);
void isoblk_gate_release_unused(struct request *rq);
void isoblk_gate_set_served(struct isoblk_group *group);
void isoblk_gate_tick(struct isoblk_disk *disk);
void isoblk_gate_exit(struct isoblk_disk *disk);

/* Number of held bios and of sleepers; nr_waiting counts all bios as one waiter. */
static inline unsigned int isoblk_gate_nr_waiting(const struct isoblk_gq *gq)
{
	unsigned int waiting = READ_ONCE(gq->gate.nr_waiting);
	unsigned int bios = READ_ONCE(gq->gate.nr_bios);

	return bios && waiting ? waiting - 1 + bios : waiting;
}

/*
 * An urgent request is sent before all others. Tasks of other groups may wait for metadata. A
 * group whose swap-out waits stays short of memory, and the OOM killer ends its tasks.
 */
static inline bool isoblk_rq_is_urgent(const struct isoblk_group *group,
				       const struct request *rq)
{
	if (rq->cmd_flags & REQ_SWAP)
		return true;
	return rq->cmd_flags & REQ_META && !READ_ONCE(group->indebted);
}

/* Metadata of an indebted group is not urgent: the group leads by too much. Any context. */
static inline void isoblk_group_set_indebted(struct isoblk_group *group,
					     bool indebted)
{
	if (READ_ONCE(group->indebted) != indebted)
		WRITE_ONCE(group->indebted, indebted);
}

#endif /* ISOBLK_GATE_H */
