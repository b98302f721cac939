// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that go to the device: what goes before all others, then what is next in order.
 */
#include <linux/ktime.h>
#include <linux/module.h>

#include "core/arrive.h"
#include "core/charge.h"
#include "core/choose.h"
#include "core/clock.h"
#include "core/elevator.h"
#include "core/epoch.h"
#include "core/first.h"
#include "core/late.h"
#include "core/latency.h"
#include "core/members.h"
#include "core/rq.h"
#include "core/run.h"
#include "core/swap.h"
#include "core/trace.h"
#include "core/tree.h"
#include "share/gate.h"
#include "share/stat.h"

/* The disk's time is written when it has moved on by this part of the slack. */
#define VNOW_FRACTION		16

static void note_peak(struct iso_disk *d, struct iso_hq *hq, u64 work)
{
	s64 in = READ_ONCE(d->room.size) - atomic64_read(&d->room.pool) -
		atomic64_read(&d->room.lease[hq->index].spare);

	if (in > (s64)READ_ONCE(d->epoch.peak))
		WRITE_ONCE(d->epoch.peak, in);
	if (work > READ_ONCE(d->epoch.largest))
		WRITE_ONCE(d->epoch.largest, work);
}

/* @rq goes to the device. */
static void charge(struct iso_disk *d, struct iso_hq *hq, struct request *rq,
		   u64 work)
{
	struct iso_gq *gq = rq_to_gq(rq);
	struct iso_group *g = gq->group;
	u64 now, waited;

	atomic64_add(vtime_step(work, max(READ_ONCE(g->share), 1U)), &g->vtime);
	isoblk_set_indebted(g->group, iso_indebted(d, g));

	atomic64_add(ISO_IN_DEVICE - ISO_WAITS, &g->has);
	atomic_inc(&hq->in_device);
	WRITE_ONCE(hq->nr, hq->nr - 1);
	note_peak(d, hq, work);
	rq_set_state(rq, RQ_IN_DEVICE, work);
	if (unlikely(iso_is_alone(d)) &&
	    (enum price_kind)isoblk_rq_op(rq) != READ_ONCE(d->tariff.alone))
		atomic64_add(work, &d->pricing.passed);
	isoblk_account_sent(gq->common, rq);
	now = READ_ONCE(hq->now);
	if (now <= rq->start_time_ns)
		return;
	waited = now - rq->start_time_ns;
	WRITE_ONCE(gq->wait_ns, gq->wait_ns + waited);
	atomic64_add(waited * work, &g->wait_area);
}

/* Send what goes before all others, above the window if need be. */
static void force(struct iso_disk *d, struct iso_hq *hq, struct request *rq)
{
	u64 work;

	iso_update_share(d, rq_to_gq(rq)->group);
	work = iso_work_of(d, rq);
	iso_room_force(&d->room, hq->index, work);
	charge(d, hq, rq, work);
	/* Else others would wait for a queue that has nothing to send. */
	if (!hq->nr)
		iso_unblock(d, hq);
}

static struct request *next_urgent(struct iso_disk *d, struct iso_hq *hq)
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
	force(d, hq, rq);
	if (rq->cmd_flags & REQ_SWAP)
		iso_swapped_out(d, hq, g, from);
	return rq;
}

/* The first of those that go before all others, and may. */
static struct iso_gq *first_fresh(struct iso_disk *d, struct iso_hq *hq)
{
	struct iso_gq *gq;

	list_for_each_entry(gq, &hq->fresh, fresh_node)
		if (likely(iso_may_pass(d, gq)))
			return gq;
	return NULL;
}

/* Whoever is not ahead and had nothing goes before all others, window or not. */
static struct request *next_fresh(struct iso_disk *d, struct iso_hq *hq)
{
	struct iso_gq *gq = first_fresh(d, hq);
	struct request *rq;

	if (!gq)
		return NULL;
	rq = iso_take(hq, gq);
	force(d, hq, rq);
	if (d->rotational) {
		atomic_inc(&d->nr_first);
		rq->elv.priv[1] = (void *)(rq_state(rq) | RQ_FIRST);
	}
	if (gq->nr)
		iso_tree_add(hq, gq);
	if (gq->nr && iso_more_go_first(d, gq))
		list_add_tail(&gq->fresh_node, &hq->fresh);
	return rq;
}

/*
 * The kernel asks for the next at once. If there is no room for it that is said now, for
 * a look at the room is less than all of iso_choose(). What waits is as that
 * would find it: nothing goes before all others, or it had gone.
 */
static void block_if_full(struct iso_disk *d, struct iso_hq *hq)
{
	if (!iso_is_full(d, hq))
		return;
	iso_block(d, hq);
	/* As in next_in_order(). */
	smp_mb();
	if (iso_has_room(d, hq))
		iso_unblock(d, hq);
}

static struct request *next_in_order(struct iso_disk *d, struct iso_hq *hq)
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
		 * pairs with leave_device(), iso_run_blocked_at() and itself on another.
		 */
		smp_mb();
		if (c->lacks && !iso_has_room(d, hq))
			return NULL;
		if (!iso_choose(d, hq))
			return NULL;
		if (!c->gq) {
			if (c->ask)
				iso_run(d, c->ask);
			return NULL;
		}
		iso_unblock(d, hq);
	}
	gq = c->gq;
	/* Not for those that went before: else they would drive it on themselves. */
	iso_advance_vnow(d, c->first,
			 READ_ONCE(d->clock.slack) / VNOW_FRACTION);
	rq = iso_take(hq, gq);
	charge(d, hq, rq, c->work);
	if (unlikely(iso_is_paced(d)))
		iso_pace_charge(d, c->work, READ_ONCE(hq->now));
	if (gq->nr)
		iso_tree_add(hq, gq);
	block_if_full(d, hq);
	return rq;
}

static void end_epoch(struct iso_disk *d, u64 now)
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

static struct request *next_request(struct iso_disk *d, struct iso_hq *hq)
{
	struct request *rq;

	end_epoch(d, READ_ONCE(hq->now));
	iso_probe(hq, READ_ONCE(hq->now));
	rq = next_urgent(d, hq);
	if (!rq)
		rq = next_fresh(d, hq);
	if (!rq)
		rq = next_in_order(d, hq);
	return rq;
}

struct request *isoblk_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct iso_hq *hq = hctx_to_hq(hctx);
	struct request *rq;
	bool missed;

	do {
		if (!iso_hq_trylock(hq))
			return NULL;
		rq = next_request(hq->disk, hq);
		missed = iso_hq_unlock(hq);
		/* With a request in hand the kernel asks again anyway. */
	} while (!rq && missed);
	return rq;
}
EXPORT_SYMBOL_GPL(isoblk_dispatch_request);

/* To say no costs the kernel a lock that all need. */
bool isoblk_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct iso_hq *hq;

	/* The kernel may add hardware queues while we are chosen, and ask us first. */
	if (unlikely(!hctx->sched_data))
		return false;
	hq = hctx_to_hq(hctx);
	if (!llist_empty(&hq->arrived))
		return true;
	/* It is taken in by now, or somebody is at it; pairs with take_in(). */
	smp_rmb();
	/* Who no longer is has counted it; pairs with iso_hq_unlock(). */
	if (smp_load_acquire(&hq->at_work))
		return true;
	return READ_ONCE(hq->nr) && !READ_ONCE(hq->blocked);
}
EXPORT_SYMBOL_GPL(isoblk_has_work);
