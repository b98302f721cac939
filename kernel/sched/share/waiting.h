/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What waits at the gate of a hardware queue: tasks, and the list of groups that have bios or
 * tasks there.
 */
#ifndef ISOBLK_WAITING_H
#define ISOBLK_WAITING_H

#include "share/disk.h"

/**
 * struct isoblk_sleeper - a task that sleeps at the gate; hq->gate.lock
 */
struct isoblk_sleeper {
	struct list_head node;		/* in gq->gate.sleepers, until it is admitted */
	struct task_struct *task;	/* constant */
	bool admitted;			/* it may go on, and is counted in gq->gate.entering */
};

/* A task, or the first of a group's bios, waits; hq->gate.lock. */
static inline void isoblk_gate_add_waiter(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;

	WRITE_ONCE(gq->gate.nr_waiting, gq->gate.nr_waiting + 1);
	if (gq->gate.nr_waiting == 1) {
		list_add_tail(&gq->gate.node, &hq->gate.list);
		WRITE_ONCE(hq->gate.nr_groups, hq->gate.nr_groups + 1);
	}
}

static inline void isoblk_gate_del_waiter(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;

	WRITE_ONCE(gq->gate.nr_waiting, gq->gate.nr_waiting - 1);
	if (!gq->gate.nr_waiting) {
		list_del_init(&gq->gate.node);
		WRITE_ONCE(hq->gate.nr_groups, hq->gate.nr_groups - 1);
	}
}

/* So many more of @gq's tasks were admitted and have not run; hq->gate.lock. */
static inline void isoblk_gate_add_entering(struct isoblk_gq *gq, int more)
{
	WRITE_ONCE(gq->gate.nr_entering, gq->gate.nr_entering + more);
	WRITE_ONCE(gq->hq->gate.nr_entering, gq->hq->gate.nr_entering + more);
}

void isoblk_gate_admit_waiting(struct isoblk_gq *gq);

#endif /* ISOBLK_WAITING_H */
