/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may ask for a tag. gate.c opens with the design.
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

/* How many wait at the gate: bios, and tasks with one that may not be merged. */
static inline unsigned int isoblk_gate_nr_waiting(const struct isoblk_gq *gq)
{
	unsigned int waiting = READ_ONCE(gq->gate.nr_waiting);
	unsigned int bios = READ_ONCE(gq->gate.nr_bios);

	return bios && waiting ? waiting - 1 + bios : waiting;
}

/*
 * Whether @rq, of @group, goes before all others: the gate lets it pass, for others may wait for
 * it in turn. What is swapped out never waits: its group would be short of memory meanwhile, and
 * its tasks be killed.
 */
static inline bool isoblk_rq_is_urgent(const struct isoblk_group *group,
				       const struct request *rq)
{
	if (rq->cmd_flags & REQ_SWAP)
		return true;
	return rq->cmd_flags & REQ_META && !READ_ONCE(group->indebted);
}

/* Whether @group is so far ahead that its metadata is ordinary; any context. */
static inline void isoblk_group_set_indebted(struct isoblk_group *group,
					     bool indebted)
{
	if (READ_ONCE(group->indebted) != indebted)
		WRITE_ONCE(group->indebted, indebted);
}

#endif /* ISOBLK_GATE_H */
