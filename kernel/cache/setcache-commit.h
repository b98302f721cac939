/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commits of dm-setcache: waiters, and the contents of records.
 */
#ifndef SETCACHE_COMMIT_H
#define SETCACHE_COMMIT_H

#include "setcache.h"

/* A waiter for a commit. */
struct sc_waiter {
	struct list_head link;	/* entry in commits.waiters; under its lock */
	bool flush_origin;	/* also flush the origin; constant */
	blk_status_t error;	/* error of the commit, or of that flush */
	/* Called after the commit, in process context. Constant. */
	void (*fn)(struct sc_waiter *waiter);
};

/* The cache's answers to the metadata. */
extern const struct sc_md_ops sc_commit_md_ops;

/* The lock of the set's bucket is held. */
void sc_mark_record(struct setcache *sc, u32 set, u16 slot);
void sc_mark_retired_record(struct setcache *sc, u32 set, u16 slot);

/* Any context. */
void sc_wait_commit(struct setcache *sc, struct sc_waiter *waiter,
		    void (*fn)(struct sc_waiter *waiter), bool origin);

/* May sleep. */
int sc_commit_now(struct setcache *sc);
void sc_commit_work(struct work_struct *work);
void sc_commit_timer(struct work_struct *work);

#endif /* SETCACHE_COMMIT_H */
