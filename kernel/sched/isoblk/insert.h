/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests that come, and the lock of what waits on a hardware queue.
 */
#ifndef ISOBLK_ISO_INSERT_H
#define ISOBLK_ISO_INSERT_H

#include "isoblk/group.h"

void iso_take_in(struct iso_disk *d, struct iso_hq *hq);
void iso_flush_allocated(struct isoblk_group *group, struct request *rq);

/* Sparse cannot follow a lock that is held conditionally, so it does not see this one. */
static inline bool iso_hq_try(struct iso_hq *hq)
{
#ifdef __CHECKER__
	return hq;
#else
	return spin_trylock(&hq->lock);
#endif
}

/* Get the lock, unless another CPU has it: that one then does what there is to do. */
static inline bool iso_hq_trylock(struct iso_hq *hq)
{
	if (!iso_hq_try(hq)) {
		WRITE_ONCE(hq->missed, true);
		/* @missed before we try again; pairs with iso_hq_unlock(). */
		smp_mb();
		if (!iso_hq_try(hq))
			return false;
	}
	WRITE_ONCE(hq->at_work, true);
	if (unlikely(READ_ONCE(hq->missed))) {
		WRITE_ONCE(hq->missed, false);
		/* From here on we see everything queued by the CPU that set @missed. */
		smp_mb();
	}
	if (!llist_empty(&hq->arrived))
		iso_take_in(hq->disk, hq);
	return true;
}

/* Return true if a CPU came in the meantime, and found the lock taken. */
static inline bool iso_hq_unlock(struct iso_hq *hq)
{
	/* What was taken in is seen before; pairs with iso_has_work(). */
	smp_store_release(&hq->at_work, false);
	__acquire(&hq->lock);
	spin_unlock(&hq->lock);
	/* The lock is free before we look; pairs with iso_hq_trylock(). */
	smp_mb();
	return READ_ONCE(hq->missed);
}

#endif /* ISOBLK_ISO_INSERT_H */
