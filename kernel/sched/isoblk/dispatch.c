// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that go to the device: urgent ones, then boosted ones, then what is next in order.
 */
#include <linux/ktime.h>

#include "isoblk/choose.h"
#include "isoblk/epoch.h"
#include "isoblk/fq.h"
#include "isoblk/insert.h"
#include "isoblk/isoblk.h"
#include "isoblk/members.h"
#include "isoblk/run.h"
#include "isoblk/swap.h"
#include "isoblk/throttle.h"
#include "isoblk/trace.h"
#include "share/stat.h"

/* @rq goes to the device, and its group is charged. */
static void iso_charge(struct iso_disk *d, struct iso_hq *hq, struct request *rq,
		       u64 cost, enum iso_why why)
{
	struct iso_gq *gq = rq_to_gq(rq);
	struct iso_group *g = gq->group;
	u64 now = READ_ONCE(hq->now), waited = 0;

	atomic64_add(iso_step(g, cost), &g->vtime);
	isoblk_group_set_indebted(g->group, iso_indebted(d, g));

	atomic64_add(ISO_IN_FLIGHT - ISO_WAITS, &g->has);
	atomic_inc(&hq->in_flight);
	WRITE_ONCE(hq->nr, hq->nr - 1);
	if (cost > READ_ONCE(d->epoch.largest))
		WRITE_ONCE(d->epoch.largest, cost);
	gq->end = blk_rq_pos(rq) + blk_rq_sectors(rq);
	rq_set_state(rq, RQ_IN_FLIGHT, cost);
	isoblk_account_dispatched(gq->common, rq);
	if (now > rq->start_time_ns)
		waited = now - rq->start_time_ns;
	WRITE_ONCE(gq->wait_ns, gq->wait_ns + waited);
	trace_isoblk_send(rq, g, why, waited);
}

/* Send a request out of order, above the window if need be. */
static void iso_force(struct iso_disk *d, struct iso_hq *hq, struct request *rq, enum iso_why why)
{
	struct iso_gq *gq = rq_to_gq(rq);
	u64 cost;

	iso_update_share(d, gq->group);
	cost = iso_cost_of(gq, rq);
	iso_room_force(&d->room, hq->index, cost);
	iso_charge(d, hq, rq, cost, why);
	/* Else other queues would wait for a queue that has nothing to send. */
	if (!hq->nr)
		iso_unblock(d, hq);
}

static struct request *iso_next_urgent(struct iso_disk *d, struct iso_hq *hq)
{
	struct request *rq = list_first_entry_or_null(&hq->urgent,
						      struct request,
						      queuelist);
	struct iso_group *g;
	u64 from;

	if (!rq)
		return NULL;
	list_del_init(&rq->queuelist);
	g = rq_to_gq(rq)->group;
	from = atomic64_read(&g->vtime);
	iso_force(d, hq, rq, ISO_URGENT);
	if (rq->cmd_flags & REQ_SWAP)
		iso_swapped_out(d, hq, g, from);
	return rq;
}

/*
 * On a rotational disk nothing else is sent while a boosted request is in flight: the disk serves
 * first what is near, and a stream is always near.
 */
static struct request *iso_next_boosted(struct iso_disk *d, struct iso_hq *hq)
{
	struct iso_gq *gq = list_first_entry_or_null(&hq->boosted, struct iso_gq,
						     boosted_node);
	struct request *rq;

	if (!gq)
		return NULL;
	rq = iso_take_request(hq, gq);
	iso_force(d, hq, rq, ISO_BOOSTED);
	if (d->rotational) {
		atomic_inc(&d->nr_alone);
		rq->elv.priv[1] = (void *)(rq_state(rq) | RQ_ALONE);
	}
	if (!gq->nr)
		return rq;
	iso_tree_add(hq, gq);
	if (iso_may_boost(d, gq->group, true))
		list_add_tail(&gq->boosted_node, &hq->boosted);
	return rq;
}

/*
 * The kernel asks for the next at once. If there is no room for it that is said now, for a look at
 * the room is less than all of iso_choose(). What waits is as that would find it: nothing is
 * urgent or boosted, or it had been sent.
 */
static void iso_block_if_full(struct iso_disk *d, struct iso_hq *hq)
{
	if (!iso_is_full(d, hq))
		return;
	iso_block(d, hq);
	/* As in iso_next_in_order(). */
	smp_mb();
	if (iso_has_room(d, hq))
		iso_unblock(d, hq);
	else
		trace_isoblk_block(hq, &hq->next);
}

static struct request *iso_next_in_order(struct iso_disk *d, struct iso_hq *hq)
{
	struct iso_choice *c = &hq->next;
	struct request *rq;
	struct iso_gq *gq;

	if (!iso_choose(d, hq))
		return NULL;
	if (!c->gq) {
		iso_block(d, hq);
		/*
		 * @blocked before we look again at requests, timers, room and other queues;
		 * pairs with iso_leave_device(), iso_run_blocked_at() and itself on another.
		 */
		smp_mb();
		if (c->lacks && !iso_has_room(d, hq)) {
			trace_isoblk_block(hq, c);
			return NULL;
		}
		if (!iso_choose(d, hq))
			return NULL;
		if (!c->gq) {
			trace_isoblk_block(hq, c);
			if (c->ask)
				iso_run(d, c->ask);
			return NULL;
		}
		iso_unblock(d, hq);
	}
	gq = c->gq;
	iso_end_throttling(d, READ_ONCE(hq->now));
	/* Boosted requests do not: a boosted group would keep itself eligible. */
	iso_advance_vnow(d, atomic64_read(&gq->group->vtime));
	rq = iso_take_request(hq, gq);
	iso_charge(d, hq, rq, c->cost, ISO_IN_ORDER);
	if (gq->nr)
		iso_tree_add(hq, gq);
	iso_block_if_full(d, hq);
	return rq;
}

static void iso_try_end_epoch(struct iso_disk *d, u64 now)
{
	unsigned long flags;
	bool traced;
	u64 ns = 0;

	if (likely(now < READ_ONCE(d->epoch.look_ns)))
		return;
	/* One CPU will do. */
	if (atomic_xchg_acquire(&d->epoch.ending, 1))
		return;
	traced = trace_isoblk_epoch_end_enabled();
	spin_lock_irqsave(&d->disk.lock, flags);
	if (traced)
		ns = ktime_get_ns();
	if (now >= d->epoch.look_ns)
		iso_end_epoch(d, now);
	if (traced)
		ns = ktime_get_ns() - ns;
	spin_unlock_irqrestore(&d->disk.lock, flags);
	atomic_set_release(&d->epoch.ending, 0);
	if (traced)
		trace_isoblk_epoch_end(d, ns);
}

static struct request *iso_next_request(struct iso_disk *d, struct iso_hq *hq)
{
	struct request *rq;

	iso_try_end_epoch(d, READ_ONCE(hq->now));
	rq = iso_next_urgent(d, hq);
	if (!rq)
		rq = iso_next_boosted(d, hq);
	if (!rq)
		rq = iso_next_in_order(d, hq);
	return rq;
}

struct request *iso_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct iso_hq *hq = hctx_to_hq(hctx);
	struct request *rq;
	bool missed;

	do {
		if (!iso_hq_trylock(hq))
			return NULL;
		rq = iso_next_request(hq->disk, hq);
		missed = iso_hq_unlock(hq);
		/* With a request in hand the kernel asks again anyway. */
	} while (!rq && missed);
	return rq;
}

/* Returning NULL after has_work() makes blk-mq take a lock that all queues need; avoid it. */
bool iso_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct iso_hq *hq;

	/* The kernel may add hardware queues while we are chosen, and ask us first. */
	if (unlikely(!hctx->sched_data))
		return false;
	hq = hctx_to_hq(hctx);
	if (!llist_empty(&hq->arrived))
		return true;
	/* It is taken in by now, or a CPU is at it; pairs with iso_take_in(). */
	smp_rmb();
	/* A CPU that no longer is has counted it; pairs with iso_hq_unlock(). */
	if (smp_load_acquire(&hq->at_work))
		return true;
	return READ_ONCE(hq->nr) && !READ_ONCE(hq->blocked);
}
