/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cgroup on a disk, and on each of its hardware queues; and what a request carries of ours.
 */
#ifndef ISOBLK_ISO_GROUP_H
#define ISOBLK_ISO_GROUP_H

#include "isoblk/disk.h"
#include "share/gate.h"

/* Requests of a group in one word: those that wait below, those in flight above. */
#define ISO_WAITS		1ULL
#define ISO_IN_FLIGHT		BIT_ULL(32)

/**
 * struct iso_gq - one group on one hardware queue: isoblk_gq_own()
 */
struct iso_gq {
	struct rb_node node;		/* in hq->tree while @nr is not 0; hq->lock */
	struct list_head boosted_node;	/* in hq->boosted while it is boosted; hq->lock */
	struct iso_group *group;	/* constant */
	struct isoblk_gq *common;	/* what the gate and the weights know of it; constant */
	struct iso_hq *hq;		/* constant */
	u64 key;			/* virtual deadline in the tree, maybe stale; hq->lock */
	u64 step;			/* part of @key that its next request takes; hq->lock */
	sector_t end;			/* sector behind the request sent last; hq->lock */
	struct list_head fifo[ISOBLK_NR_CLASSES]; /* requests that wait, by class; hq->lock */
	struct request *first;		/* sent next, while @nr is not 0; hq->lock */
	unsigned int sent;		/* requests taken from @fifo so far; hq->lock */
	unsigned int nr;		/* requests in @fifo; hq->lock, read without */
	unsigned int merged_none;	/* bios in a row that were not merged; a hint */
	u64 wait_ns;			/* from insertion to dispatch; hq->lock, read without */
};

/**
 * struct iso_group - a cgroup on a disk: isoblk_group_own()
 */
struct iso_group {
	struct isoblk_group *group;	/* constant */
	bool joined;			/* it is active; disk lock, a hint without */
	bool gated;			/* bios of it wait for tags; disk lock, read without */
	bool swaps;			/* it is in debt for swapping; disk lock, a hint without */
	u32 share;			/* of ISOBLK_SHARE_ONE; disk lock, read without */
	u64 share_gen;			/* weights that @share is of; disk lock, a hint without */
	atomic64_t vtime;		/* what it was charged over its share; any context */
	atomic64_t has;			/* requests: ISO_WAITS, ISO_IN_FLIGHT; any context */
	u64 ended_ns;			/* when one last completed; any context */
	u64 think_ns;			/* time from there to the next, usually; any context */
	struct list_head node;		/* in disk->members.list while @joined; disk lock */
	struct list_head swapper;	/* in disk->swappers while @swaps; disk lock */
	u64 aside;			/* lead before an open span: throttle.c; disk lock */
	s64 owed;			/* lead by such spans, yet to be paid; disk lock */
};

static inline struct iso_gq *iso_gq(const struct iso_group *g, unsigned int i)
{
	return isoblk_gq_own(g->group->gq[i]);
}

static inline u32 iso_in_flight(u64 has)
{
	return has >> 32;
}

static inline u32 iso_waits(u64 has)
{
	return has;
}

/* @g's lead over the disk's virtual time is more than @slack. */
static inline bool iso_is_ahead(const struct iso_disk *d,
				const struct iso_group *g, u64 slack)
{
	return vtime_before(READ_ONCE(d->clock.vnow) + slack,
			    atomic64_read(&g->vtime));
}

/* @g's lead is so large that its metadata is ordinary. */
static inline bool iso_indebted(const struct iso_disk *d,
				const struct iso_group *g)
{
	return iso_is_ahead(d, g, READ_ONCE(d->clock.debt_max));
}

/* The disk's virtual time is @vnow or later; another CPU may have moved it on. */
static inline void iso_advance_vnow(struct iso_disk *d, u64 vnow)
{
	u64 at = READ_ONCE(d->clock.vnow);

	while (vtime_before(at, vnow))
		if (try_cmpxchg(&d->clock.vnow, &at, vnow))
			break;
}

/* How far @cost moves @g's virtual time. */
static inline u64 iso_step(const struct iso_group *g, u64 cost)
{
	return vtime_step(cost, max(READ_ONCE(g->share), 1U));
}

/*
 * rq->elv.priv[0] is the struct iso_gq that the request is of, from the first insertion on.
 * priv[1] packs:
 */
#define RQ_IN_FLIGHT		BIT(0)
#define RQ_REFUNDED		BIT(1)	/* the driver gave it back, and the charge was undone */
#define RQ_AT_HEAD		BIT(2)	/* it is to be sent before its group's of its class */
#define RQ_BOOSTED		BIT(3)	/* when it came, its group was to be boosted */
#define RQ_ALONE		BIT(4)	/* rotational: nothing else is sent while it is in flight */
#define RQ_COST_SHIFT		5
#define RQ_SECTORS_SHIFT	40

static_assert(BITS_PER_LONG == 64);

static inline struct iso_gq *rq_to_gq(const struct request *rq)
{
	return rq->elv.priv[0];
}

static inline unsigned long rq_state(const struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static inline void rq_set_state(struct request *rq, unsigned long flags,
				u64 cost)
{
	u64 sectors = min_t(u64, blk_rq_sectors(rq),
			    GENMASK(BITS_PER_LONG - 1 - RQ_SECTORS_SHIFT, 0));

	rq->elv.priv[1] = (void *)(flags | cost << RQ_COST_SHIFT |
				   sectors << RQ_SECTORS_SHIFT);
}

static inline u64 rq_cost(const struct request *rq)
{
	return rq_state(rq) >> RQ_COST_SHIFT & COST_MAX;
}

static inline unsigned int rq_sectors(const struct request *rq)
{
	return rq_state(rq) >> RQ_SECTORS_SHIFT;
}

/* A request of @gq's gives its tag back: counted down, it no longer keeps its group. */
static inline void iso_leave_gate(struct iso_gq *gq)
{
	rcu_read_lock();
	isoblk_gate_release_tag(gq->common);
	rcu_read_unlock();
}

#endif /* ISOBLK_ISO_GROUP_H */
