// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that come: they are counted at once, without a lock, and taken in by the CPU that has
 * the lock of their hardware queue next.
 */
#include <trace/events/block.h>

#include "isoblk/fq.h"
#include "isoblk/insert.h"
#include "isoblk/isoblk.h"
#include "isoblk/members.h"
#include "isoblk/run.h"
#include "isoblk/throttle.h"
#include "isoblk/trace.h"
#include "share/policy.h"
#include "share/sleep.h"

/* Weight of the newest think time, and decay with each request that overlaps: 1 / these. */
#define THINK_NEW		8
#define THINK_FADE		64

void iso_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
	if (unlikely(rq->cmd_flags & REQ_PREFLUSH))
		isoblk_flush_allocated(rq);
}

/*
 * A group that had @had requests sends another: its lag is capped, and it shows for how long it
 * thinks.
 */
static void iso_reactivate(struct iso_disk *d, struct iso_group *g, u64 had, u64 now)
{
	u64 think, usual = READ_ONCE(g->think_ns), least = READ_ONCE(d->clock.vnow);
	u64 ended = READ_ONCE(g->ended_ns);

	if (had) {
		WRITE_ONCE(g->think_ns, usual - usual / THINK_FADE);
		if (iso_waits(had))
			return;
	}
	/* Other groups waited for it, or it cannot but wait for the requests in flight. */
	if (had || iso_expected(d, g, now))
		least -= READ_ONCE(d->clock.credit);
	iso_raise_vtime(g, least);
	iso_lower_horizon(d, atomic64_read(&g->vtime));
	if (had || !ended)
		return;
	think = min_t(u64, now - min(ended, now), NSEC_PER_SEC);
	WRITE_ONCE(g->think_ns, usual - usual / THINK_NEW + think / THINK_NEW);
}

/* @rq holds a tag of @group's from now on. */
static struct iso_gq *iso_enter_gate(struct iso_hq *hq, struct request *rq,
				     struct isoblk_group *group)
{
	struct iso_gq *gq = isoblk_gq_own(group->gq[hq->index]);

	rq->elv.priv[0] = gq;
	isoblk_gate_count_tag(gq->common);
	return gq;
}

/**
 * iso_flush_allocated() - a flush has a tag
 * @group: of the task that sends it; its blkg is held
 * @rq: flush
 *
 * The kernel merges several flushes into one, and the waiting ones never arrive here. All of them
 * keep their tags meanwhile, and each group that sent one is charged.
 */
void iso_flush_allocated(struct isoblk_group *group, struct request *rq)
{
	struct iso_hq *hq = hctx_to_hq(rq->mq_hctx);
	struct iso_group *g = iso_enter_gate(hq, rq, group)->group;

	/* As in iso_announce(). A flush has no bio yet, so its class is not known: it ends none. */
	if (unlikely(!READ_ONCE(g->joined)))
		iso_join(hq->disk, g, true);
	iso_update_share(hq->disk, g);
	atomic64_add(iso_step(g, cost_of(&hq->disk->cost, ISOBLK_WRITE, 0, false)),
		     &g->vtime);
}

/*
 * The group of @rq, now that it is here with its bio. A flush was counted for the task that sent
 * it; what it writes may be another's.
 */
static struct iso_gq *iso_find_owner(struct iso_hq *hq, struct request *rq)
{
	struct isoblk_group *group = isoblk_bio_group(rq->bio);
	struct iso_gq *gq = rq_to_gq(rq), *sender = gq;

	if (gq && likely(gq->group->group == group))
		return gq;
	gq = iso_enter_gate(hq, rq, group);
	if (sender)
		iso_leave_gate(sender);
	return gq;
}

/* @rq comes: it is counted, and its group is active. In any order, without a lock. */
static void iso_announce(struct iso_disk *d, struct iso_hq *hq, struct request *rq,
			 bool at_head)
{
	struct iso_gq *gq = iso_find_owner(hq, rq);
	struct iso_group *g = gq->group;
	bool idle_class = isoblk_class(req_get_ioprio(rq)) == ISOBLK_CLASS_IDLE;
	unsigned long state = rq_state(rq);
	u64 had;

	iso_note_now(hq, rq->start_time_ns);
	/* Our count before the flag: the barrier is in it; pairs with iso_leave(). */
	had = atomic64_fetch_add(ISO_WAITS, &g->has);
	/* The group's class is read after; pairs with iso_join(). */
	if (unlikely(!smp_load_acquire(&g->joined)))
		iso_join(d, g, idle_class);
	if (unlikely(READ_ONCE(g->group->idle_class)) && !idle_class)
		iso_end_idle_class(d, g);
	iso_update_share(d, g);
	iso_reactivate(d, g, had, READ_ONCE(hq->now));
	state &= ~(RQ_AT_HEAD | RQ_BOOSTED);
	if (iso_may_boost(d, g, iso_waits(had)))
		state |= RQ_BOOSTED;
	if (at_head)
		state |= RQ_AT_HEAD;
	rq->elv.priv[1] = (void *)state;
	trace_isoblk_enqueue(rq, g, state & RQ_BOOSTED ? ISO_BOOSTED : ISO_IN_ORDER, 0);
}

/* Return true if it may change which request is next: else it waits for the same room. */
static bool iso_insert(struct iso_disk *d, struct iso_hq *hq, struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);
	bool boosted = rq_state(rq) & RQ_BOOSTED;

	WRITE_ONCE(hq->nr, hq->nr + 1);
	if (isoblk_rq_is_urgent(gq->group->group, rq)) {
		list_add_tail(&rq->queuelist, &hq->urgent);
		return true;
	}
	iso_add_request(hq, gq, rq);
	if (boosted && list_empty(&gq->boosted_node))
		list_add_tail(&gq->boosted_node, &hq->boosted);
	return boosted || d->rotational ||
		vtime_before(gq->key, READ_ONCE(hq->wait_key)) ||
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
		news |= iso_insert(d, hq, rq);
	if (news)
		iso_unblock(d, hq);
}

void iso_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			 blk_insert_t flags)
{
	struct iso_hq *hq = hctx_to_hq(hctx);
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		iso_announce(hq->disk, hq, rq, flags & BLK_MQ_INSERT_AT_HEAD);
		trace_block_rq_insert(rq);
		llist_add(&rq->ipi_list, &hq->arrived);
	}
	/* The task that inserts runs the hardware queue next, if there is work. */
	if (iso_hq_trylock(hq))
		iso_hq_unlock(hq);
}
