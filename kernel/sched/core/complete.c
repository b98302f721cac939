// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that the device is done with, or gives back.
 */
#include <linux/module.h>

#include "core/elevator.h"
#include "core/latency.h"
#include "core/measure.h"
#include "core/rq.h"
#include "core/run.h"
#include "core/vtime.h"
#include "share/stat.h"

/* @rq is no longer with the device. @now is 0 if it has not been served. */
static void leave_device(struct request *rq, u64 now)
{
	struct iso_gq *gq = rq_to_gq(rq);
	struct iso_hq *hq = gq->hq;
	struct iso_disk *d = hq->disk;
	u64 work = rq_work(rq);
	bool wanted;

	iso_note_now(hq, now);
	if (now)
		iso_account(d, gq->group, rq, rq_sectors(rq), work, now);
	if (now && unlikely(iso_has_target(gq->group)))
		iso_latency_note(d, gq->group, rq, now);
	if (rq_state(rq) & RQ_FIRST)
		atomic_dec(&d->nr_first);
	rq->elv.priv[1] = (void *)(rq_state(rq) & ~(RQ_IN_DEVICE | RQ_FIRST));
	atomic_dec(&hq->in_device);
	wanted = atomic_read(&d->nr_blocked);
	iso_room_put(&d->room, hq->index, work, wanted);
	WRITE_ONCE(gq->group->ended_ns, READ_ONCE(hq->now));
	atomic64_sub(ISO_IN_DEVICE, &gq->group->has);
	/* What we gave back before their flag; pairs with next_in_order(). */
	smp_mb__after_atomic();
	/* A queue that has blocked meanwhile may have looked at the lease too early. */
	if (unlikely(!wanted && atomic_read(&d->nr_blocked)))
		iso_room_put(&d->room, hq->index, 0, true);
	if (READ_ONCE(hq->nr) && iso_worth_a_run(d, hq) && iso_unblock(d, hq))
		blk_mq_run_hw_queue(hq->hctx, true);
	else if (unlikely(atomic_read(&d->nr_blocked)))
		iso_run_first_blocked(d);
}

void isoblk_completed_request(struct request *rq, u64 now)
{
	if (rq_to_gq(rq) && rq_state(rq) & RQ_IN_DEVICE)
		leave_device(rq, now);
}
EXPORT_SYMBOL_GPL(isoblk_completed_request);

/* @rq is charged, or with @sign -1 refunded, while it is in no queue. */
static void charge_late(struct iso_gq *gq, const struct request *rq, int sign)
{
	isoblk_account_late(gq->group->group, rq, rq_sectors(rq), sign);
	atomic64_add(sign * (s64)vtime_step(rq_work(rq),
					    max(READ_ONCE(gq->group->share), 1U)),
		     &gq->group->vtime);
}

/*
 * The driver gives @rq back. It may come again by insertion, and is then charged
 * at dispatch; or, if the driver has prepared it, straight to the driver:
 * isoblk_finish_request() charges that.
 */
void isoblk_requeue_request(struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);
	u64 work;

	if (!gq || !(rq_state(rq) & RQ_IN_DEVICE))
		return;
	leave_device(rq, 0);
	/* What is left of it: a part may have completed. */
	work = rq_work(rq);
	rq_set_state(rq, RQ_REFUNDED, work);
	charge_late(gq, rq, -1);
}
EXPORT_SYMBOL_GPL(isoblk_requeue_request);

void isoblk_finish_request(struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);

	if (!gq) {
		isoblk_gate_unused(rq);
		return;
	}
	if (unlikely(rq_state(rq) & RQ_IN_DEVICE))
		leave_device(rq, 0);
	if (unlikely(rq_state(rq) & RQ_REFUNDED))
		charge_late(gq, rq, 1);
	rq->elv.priv[0] = NULL;
	iso_leave_gate(gq);
}
EXPORT_SYMBOL_GPL(isoblk_finish_request);
