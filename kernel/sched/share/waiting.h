/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hardware queue's list of groups with held bios or sleepers.
 */
#ifndef ISOBLK_WAITING_H
#define ISOBLK_WAITING_H

#include "share/disk.h"

/**
 * struct isoblk_sleeper - a task that sleeps at the gate; hq->gate.lock
 */
struct isoblk_sleeper {
	struct list_head node;		/* in gq->gate.sleepers, until it is admitted */
	struct task_struct *task;	/* task to wake; constant */
	bool admitted;			/* counted in gq->gate.nr_entering, and may run */
};

/* Add a sleeper, or the first held bio of @gq; hq->gate.lock. */
static inline void isoblk_gate_add_waiter(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;

	WRITE_ONCE(gq->gate.nr_waiting, gq->gate.nr_waiting + 1);
	if (gq->gate.nr_waiting == 1) {
		list_add_tail(&gq->gate.node, &hq->gate.list);
		WRITE_ONCE(hq->gate.nr_groups, hq->gate.nr_groups + 1);
	}
}

/* Remove a sleeper, or the last held bio of @gq; hq->gate.lock. */
static inline void isoblk_gate_del_waiter(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;

	WRITE_ONCE(gq->gate.nr_waiting, gq->gate.nr_waiting - 1);
	if (!gq->gate.nr_waiting) {
		list_del_init(&gq->gate.node);
		WRITE_ONCE(hq->gate.nr_groups, hq->gate.nr_groups - 1);
	}
}

/* Add @nr to the sleepers of @gq that are admitted and have not run yet; hq->gate.lock. */
static inline void isoblk_gate_add_entering(struct isoblk_gq *gq, int nr)
{
	WRITE_ONCE(gq->gate.nr_entering, gq->gate.nr_entering + nr);
	WRITE_ONCE(gq->hq->gate.nr_entering, gq->hq->gate.nr_entering + nr);
}

void isoblk_gate_admit_waiting(struct isoblk_gq *gq);

#endif /* ISOBLK_WAITING_H */
