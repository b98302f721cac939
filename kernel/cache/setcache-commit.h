/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commits of dm-setcache: who waits for records, and what these say.
 */
#ifndef SETCACHE_COMMIT_H
#define SETCACHE_COMMIT_H

#include "setcache.h"

/* Who waits for a commit. */
struct sc_waiter {
	struct list_head link;	/* place in the cache's list; by its lock */
	bool origin;		/* the origin is to be flushed, too; constant */
	blk_status_t error;	/* error of the commit, or of that flush */
	/* Called when it is done, in process context. Constant. */
	void (*fn)(struct sc_waiter *waiter);
};

/* What the metadata ask of the cache. */
extern const struct sc_md_ops sc_record_answers;

/* The lock of the set's bucket is held. */
void sc_mark(struct setcache *sc, u32 set, u16 slot);
void sc_mark_retired(struct setcache *sc, u32 set, u16 slot);

/* Any context. */
void sc_wait_commit(struct setcache *sc, struct sc_waiter *waiter,
		    void (*fn)(struct sc_waiter *waiter), bool origin);

/* May sleep. */
int sc_commit_now(struct setcache *sc);
void sc_commit_work(struct work_struct *work);
void sc_commit_timer(struct work_struct *work);

#endif /* SETCACHE_COMMIT_H */
