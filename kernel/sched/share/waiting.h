/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The list of groups of which somebody waits at the gate of a hardware queue.
 */
#ifndef ISOBLK_WAITING_H
#define ISOBLK_WAITING_H

#include "share/disk.h"

/* Somebody, or a bio, waits; hq->gate.lock. */
static inline void isoblk_join_list(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;

	WRITE_ONCE(gq->gate.nr_waiting, gq->gate.nr_waiting + 1);
	if (gq->gate.nr_waiting == 1) {
		list_add_tail(&gq->gate.node, &hq->gate.list);
		WRITE_ONCE(hq->gate.nr, hq->gate.nr + 1);
	}
}

static inline void isoblk_leave_list(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;

	WRITE_ONCE(gq->gate.nr_waiting, gq->gate.nr_waiting - 1);
	if (!gq->gate.nr_waiting) {
		list_del_init(&gq->gate.node);
		WRITE_ONCE(hq->gate.nr, hq->gate.nr - 1);
	}
}

#endif /* ISOBLK_WAITING_H */
