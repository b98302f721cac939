// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that the device is done with, or gives back.
 */
#include "isoblk/group.h"
#include "isoblk/isoblk.h"
#include "isoblk/run.h"
#include "share/stat.h"

/*
 * On a rotational disk a group is charged the time for which its request kept the disk: since the
 * last one completed, or since it was sent. It was charged @cost beforehand.
 */
static void iso_charge_time(struct iso_disk *d, struct iso_group *g,
			    const struct request *rq, u64 cost, u64 now)
{
	u64 since = max(READ_ONCE(d->busy_until), rq->io_start_time_ns);
	u64 took = min(now - min(since, now), COST_MAX);

	WRITE_ONCE(d->busy_until, now);
	atomic64_add((s64)iso_step(g, took) - (s64)iso_step(g, cost), &g->vtime);
}

/* @rq has completed: record it for the end of the epoch. */
static void iso_account_completion(struct iso_disk *d, const struct request *rq, u64 cost, u64 now)
{
	u64 took;

	if (!rq->io_start_time_ns || now <= rq->io_start_time_ns)
		return;
	took = now - rq->io_start_time_ns;
	this_cpu_inc(d->done->nr);
	this_cpu_add(d->done->cost, cost);
	this_cpu_add(d->done->took_ns, took);
	this_cpu_add(d->done->area, cost * div_u64(took, NSEC_PER_USEC));
	if (op_is_write(rq->cmd_flags))
		this_cpu_add(d->done->written, cost);
}

/* @rq is no longer with the device. @now is 0 if it has not been served. */
static void iso_leave_device(struct request *rq, u64 now)
{
	struct iso_gq *gq = rq_to_gq(rq);
	struct iso_hq *hq = gq->hq;
	struct iso_disk *d = hq->disk;
	u64 cost = rq_cost(rq);
	bool wanted;

	iso_note_now(hq, now);
	if (now) {
		iso_account_completion(d, rq, cost, now);
		if (d->rotational)
			iso_charge_time(d, gq->group, rq, cost, now);
	}
	if (rq_state(rq) & RQ_ALONE)
		atomic_dec(&d->nr_alone);
	rq->elv.priv[1] = (void *)(rq_state(rq) & ~(RQ_IN_FLIGHT | RQ_ALONE));
	atomic_dec(&hq->in_flight);
	wanted = atomic_read(&d->nr_blocked);
	iso_room_put(&d->room, hq->index, cost, wanted);
	WRITE_ONCE(gq->group->ended_ns, READ_ONCE(hq->now));
	atomic64_sub(ISO_IN_FLIGHT, &gq->group->has);
	/* Room is given back before ->blocked is read; pairs with iso_next_in_order(). */
	smp_mb__after_atomic();
	/* A queue that has blocked in the meantime may have looked at the lease too early. */
	if (unlikely(!wanted && atomic_read(&d->nr_blocked)))
		iso_room_put(&d->room, hq->index, 0, true);
	if (READ_ONCE(hq->nr) && iso_worth_a_run(d, hq) && iso_unblock(d, hq))
		blk_mq_run_hw_queue(hq->hctx, true);
	else if (unlikely(atomic_read(&d->nr_blocked)))
		iso_run_first_blocked(d);
}

void iso_completed_request(struct request *rq, u64 now)
{
	if (rq_to_gq(rq) && rq_state(rq) & RQ_IN_FLIGHT)
		iso_leave_device(rq, now);
}

/* @rq is charged, or with @sign -1 the charge is undone, while it is in no queue. */
static void iso_charge_late(struct iso_gq *gq, const struct request *rq, int sign)
{
	isoblk_account_bypassed(gq->group->group, rq, rq_sectors(rq), sign);
	atomic64_add(sign * (s64)iso_step(gq->group, rq_cost(rq)),
		     &gq->group->vtime);
}

/*
 * The driver gives @rq back. It may come again by insertion, and is then charged at dispatch; or,
 * if the driver has prepared it, straight to the driver: iso_finish_request() charges that.
 */
void iso_requeue_request(struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);
	u64 cost;

	if (!gq || !(rq_state(rq) & RQ_IN_FLIGHT))
		return;
	iso_leave_device(rq, 0);
	/* What is left of it: a part may have completed. */
	cost = rq_cost(rq);
	rq_set_state(rq, RQ_REFUNDED, cost);
	iso_charge_late(gq, rq, -1);
}

void iso_finish_request(struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);

	if (!gq) {
		isoblk_gate_release_unused(rq);
		return;
	}
	if (unlikely(rq_state(rq) & RQ_IN_FLIGHT))
		iso_leave_device(rq, 0);
	if (unlikely(rq_state(rq) & RQ_REFUNDED))
		iso_charge_late(gq, rq, 1);
	rq->elv.priv[0] = NULL;
	iso_leave_gate(gq);
}
