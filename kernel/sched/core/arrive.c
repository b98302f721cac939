// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that come: they are counted at once, without a lock, and taken in by whoever has
 * the lock of their hardware queue next.
 */
#include <linux/module.h>

#include <trace/events/block.h>

#include "core/arrive.h"
#include "core/charge.h"
#include "core/clock.h"
#include "core/elevator.h"
#include "core/first.h"
#include "core/horizon.h"
#include "core/latency.h"
#include "core/members.h"
#include "core/rq.h"
#include "core/run.h"
#include "core/size.h"
#include "core/tree.h"
#include "share/gate.h"
#include "share/policy.h"
#include "share/sleep.h"

/* A group that has been late once may be behind by so many slacks, and no more. */
#define LATE_SLACKS		2

void isoblk_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
	if (unlikely(rq->cmd_flags & REQ_PREFLUSH))
		isoblk_flush_comes(rq);
}
EXPORT_SYMBOL_GPL(isoblk_prepare_request);

/* The end of a trial does not give @g what it has not asked for. */
static void come_back(const struct iso_disk *d, struct iso_group *g, u64 vnow)
{
	u64 credit = LATE_SLACKS * READ_ONCE(d->clock.slack);

	iso_lift(g, vnow - credit);
	if (READ_ONCE(g->hold.trial_credit) > credit)
		WRITE_ONCE(g->hold.trial_credit, credit);
}

/*
 * A group that had @had requests has @rq as well. Return true if none waits, and it goes
 * before all others.
 */
static bool arrive(struct iso_disk *d, struct iso_group *g, u64 had,
		   const struct request *rq, u64 now)
{
	u64 think, think_ns = READ_ONCE(g->think_ns);
	u64 vnow = READ_ONCE(d->clock.vnow);

	if (iso_waits(had)) {
		WRITE_ONCE(g->think_ns, think_ns - think_ns / 64);
		if (likely(!iso_has_target(g)))
			return false;
		goto out;
	}
	if (iso_in_device(had)) {
		if (READ_ONCE(g->held_for) || READ_ONCE(g->gated))
			vnow -= READ_ONCE(d->clock.credit);
		iso_lift(g, vnow);
		goto out;
	}
	if (READ_ONCE(d->wait.since))
		iso_end_wait(d, now);
	think = now - min(READ_ONCE(g->ended_ns), now);
	if (!READ_ONCE(g->held_for) && !READ_ONCE(g->gated))
		iso_lift(g, vnow);
	else if (think >= iso_patience(d, g))
		come_back(d, g, vnow);
	if (READ_ONCE(g->ended_ns))
		WRITE_ONCE(g->think_ns, (think_ns * 7 +
					 min(think, NSEC_PER_SEC)) / 8);
out:
	return iso_goes_first(d, g, rq, now);
}

/* @rq holds a tag of @group's from now on. */
static struct iso_gq *enter(struct iso_hq *hq, struct request *rq,
			    struct isoblk_group *group)
{
	struct iso_gq *gq = isoblk_gq_own(group->gq[hq->index]);

	rq->elv.priv[0] = gq;
	isoblk_gate_enter(gq->common);
	return gq;
}

/**
 * iso_flush_comes() - a flush has a tag
 * @group: of the task that sends it; its blkg is held
 * @rq: flush
 *
 * The kernel makes one of many, and what waits for it never comes here. But all of them hold tags
 * meanwhile, and each who asked pays a price.
 */
void iso_flush_comes(struct isoblk_group *group, struct request *rq)
{
	struct iso_hq *hq = hctx_to_hq(rq->mq_hctx);
	struct iso_group *g = enter(hq, rq, group)->group;
	u64 work = iso_price_of(hq->disk, ISOBLK_WRITE, 0);

	/* As in announce(). */
	if (unlikely(!READ_ONCE(g->joined)))
		iso_join(hq->disk, g);
	iso_update_share(hq->disk, g);
	atomic64_add(vtime_step(work, max(READ_ONCE(g->share), 1U)), &g->vtime);
}

/*
 * Whose @rq is, now that it is here with its bio. A flush was counted for the task that sent
 * it; what it writes may be another's.
 */
static struct iso_gq *owner(struct iso_hq *hq, struct request *rq)
{
	struct isoblk_group *group = isoblk_bio_group(rq->bio);
	struct iso_gq *gq = rq_to_gq(rq), *sender = gq;

	if (gq && likely(gq->group->group == group))
		return gq;
	gq = enter(hq, rq, group);
	if (sender)
		iso_leave_gate(sender);
	return gq;
}

/* @rq comes: it is counted, and its group takes part. In any order, without a lock. */
static void announce(struct iso_disk *d, struct iso_hq *hq, struct request *rq,
		     bool at_head)
{
	struct iso_gq *gq = owner(hq, rq);
	struct iso_group *g = gq->group;
	unsigned long state = rq_state(rq);
	u64 had;

	iso_note_now(hq, rq->start_time_ns);
	if (unlikely(!READ_ONCE(d->room.size)))
		iso_first_request(d, iso_work_of(d, rq));

	/* Our count before their flag: the barrier is in it; pairs with iso_leave(). */
	had = atomic64_fetch_add(ISO_WAITS, &g->has);
	if (unlikely(!READ_ONCE(g->joined)))
		iso_join(d, g);
	state &= ~(RQ_AT_HEAD | RQ_FRESH);
	if (arrive(d, g, had, rq, READ_ONCE(hq->now)))
		state |= RQ_FRESH;
	if (at_head)
		state |= RQ_AT_HEAD;
	rq->elv.priv[1] = (void *)state;
}

/* Return true if it may change who is next: else what blocks the others blocks it. */
static bool insert(struct iso_disk *d, struct iso_hq *hq, struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);
	bool fresh = rq_state(rq) & RQ_FRESH;

	WRITE_ONCE(hq->nr, hq->nr + 1);
	if (isoblk_rq_urgent(gq->group->group, rq)) {
		list_add_tail(&rq->queuelist, &hq->urgent);
		return true;
	}
	if (rq_state(rq) & RQ_AT_HEAD)
		list_add(&rq->queuelist, &gq->fifo);
	else
		list_add_tail(&rq->queuelist, &gq->fifo);
	WRITE_ONCE(gq->nr, gq->nr + 1);
	if (gq->nr == 1)
		iso_tree_add(hq, gq);
	if (fresh && list_empty(&gq->fresh_node))
		list_add_tail(&gq->fresh_node, &hq->fresh);
	return fresh || iso_is_alone(d) ||
		vtime_before(gq->key, READ_ONCE(hq->wait_tag)) ||
		(READ_ONCE(hq->lacks) && iso_may_go(d, hq, 0));
}

/**
 * iso_take_in() - take in what has arrived
 * @d: disk
 * @hq: something has; its lock is held
 */
void iso_take_in(struct iso_disk *d, struct iso_hq *hq)
{
	struct request *rq, *next;
	struct llist_node *list;
	bool news = false;

	lockdep_assert_held(&hq->lock);

	list = llist_reverse_order(llist_del_all(&hq->arrived));
	llist_for_each_entry_safe(rq, next, list, ipi_list)
		news |= insert(d, hq, rq);
	if (news)
		iso_unblock(d, hq);
}

void isoblk_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			    blk_insert_t flags)
{
	struct iso_hq *hq = hctx_to_hq(hctx);
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		announce(hq->disk, hq, rq, flags & BLK_MQ_INSERT_AT_HEAD);
		trace_block_rq_insert(rq);
		llist_add(&rq->ipi_list, &hq->arrived);
	}
	/* Whoever inserts runs the hardware queue next, if there is work. */
	if (iso_hq_trylock(hq))
		iso_hq_unlock(hq);
}
EXPORT_SYMBOL_GPL(isoblk_insert_requests);
