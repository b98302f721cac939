/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a request carries of ours, from its insertion to its end.
 */
#ifndef ISOBLK_CORE_RQ_H
#define ISOBLK_CORE_RQ_H

#include "core/charge.h"
#include "core/group.h"
#include "share/gate.h"

/*
 * rq->elv.priv[0] is the struct iso_gq that the request is of, from the first
 * insertion on. priv[1] packs:
 */
#define RQ_IN_DEVICE		BIT(0)
#define RQ_REFUNDED		BIT(1)	/* it came back, and what it was charged too */
#define RQ_AT_HEAD		BIT(2)	/* it is to go before its group's others */
#define RQ_FRESH		BIT(3)	/* when it came, its group was not ahead */
#define RQ_FIRST		BIT(4)	/* it went before all others, on a disk that turns */
#define RQ_WORK_SHIFT		5
#define RQ_SECTORS_SHIFT	32

static_assert(BITS_PER_LONG == 64);

static inline struct iso_gq *rq_to_gq(const struct request *rq)
{
	return rq->elv.priv[0];
}

/* A request of @gq's gives its tag back: counted down, it no longer keeps its group. */
static inline void iso_leave_gate(struct iso_gq *gq)
{
	rcu_read_lock();
	isoblk_gate_leave(gq->common);
	rcu_read_unlock();
}

static inline unsigned long rq_state(const struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static inline void rq_set_state(struct request *rq, unsigned long flags,
				u64 work)
{
	rq->elv.priv[1] = (void *)(flags | work << RQ_WORK_SHIFT |
		(unsigned long)blk_rq_sectors(rq) << RQ_SECTORS_SHIFT);
}

static inline u64 rq_work(const struct request *rq)
{
	return rq_state(rq) >> RQ_WORK_SHIFT & ISO_WORK_MOST;
}

static inline unsigned int rq_sectors(const struct request *rq)
{
	return rq_state(rq) >> RQ_SECTORS_SHIFT;
}

#endif /* ISOBLK_CORE_RQ_H */
