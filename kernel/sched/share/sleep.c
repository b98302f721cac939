// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that sleep at the gate, where their bio cannot be held. gate.c opens with the design.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "share/disk.h"
#include "share/resubmit.h"
#include "share/policy.h"
#include "share/quota.h"
#include "share/sleep.h"
#include "share/waiting.h"

/*
 * A sleeper checks for a missed wake-up this often, far above the time between completions of a
 * group. It is rescued if there is room at two checks and no sleeper of the group ran in between.
 * After one check the tick may still admit it; a sleeper that ran is about to use the room.
 */
#define RESCUE_JIFFIES		(HZ / 10)

/**
 * isoblk_group_map_gq() - map a request of the current CPU to the gq that counts its tag
 * @group: the request's group; its disk is in use
 * @opf: operation of the request
 */
struct isoblk_gq *isoblk_group_map_gq(struct isoblk_group *group, blk_opf_t opf)
{
	struct blk_mq_hw_ctx *hctx = isoblk_map_queue(group->disk->q, opf);
	struct isoblk_hq *hq = hctx->sched_data;

	return isoblk_tags_gq(group->gq[hq->index]);
}
EXPORT_SYMBOL_GPL(isoblk_group_map_gq);

/* A wake-up was missed: count that, and admit waiters; hq->gate.lock. */
static void isoblk_gate_rescue(struct isoblk_gq *gq)
{
	struct isoblk_hq_gate *gate = &gq->hq->gate;

	WRITE_ONCE(gate->nr_rescues, gate->nr_rescues + 1);
	isoblk_gate_admit_waiting(gq);
}

/* Sleep until @sleeper is admitted; drops and retakes hq->gate.lock. */
static void isoblk_gate_sleep_until_admitted(struct isoblk_gq *gq,
					     struct isoblk_sleeper *sleeper)
{
	struct isoblk_hq_gate *gate = &gq->hq->gate;
	unsigned int runs, looks = 0;
	long left;

	while (!sleeper->admitted) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		runs = gq->gate.nr_run;
		spin_unlock_irq(&gate->lock);
		left = io_schedule_timeout(RESCUE_JIFFIES);
		spin_lock_irq(&gate->lock);
		if (left || sleeper->admitted)
			continue;
		if (!isoblk_may_admit_task(gq, 0) || runs != gq->gate.nr_run)
			looks = 0;
		else if (++looks >= 2)
			isoblk_gate_rescue(gq);
	}
	__set_current_state(TASK_RUNNING);
}

/*
 * Sleep until @gq's group may have another tag.
 * Return: the gq where the task would have its tag now. It is admitted there only if that is @gq.
 */
static struct isoblk_gq *isoblk_gate_wait(struct isoblk_gq *gq, blk_opf_t opf)
{
	struct isoblk_sleeper sleeper = { .task = current };
	struct isoblk_hq_gate *gate = &gq->hq->gate;
	struct isoblk_gq *now;

	spin_lock_irq(&gate->lock);
	list_add_tail(&sleeper.node, &gq->gate.sleepers);
	isoblk_gate_add_waiter(gq);
	/* Publish the sleeper before reading counts; pairs with isoblk_gate_release_tag(). */
	smp_mb();
	isoblk_gate_admit_waiting(gq);
	isoblk_gate_sleep_until_admitted(gq, &sleeper);
	isoblk_gate_add_entering(gq, -1);
	gq->gate.nr_run++;
	now = isoblk_group_map_gq(gq->group, opf);
	/* The task allocates no tag here, so no release would admit the next waiter. */
	if (now != gq)
		isoblk_gate_admit_waiting(gq);
	spin_unlock_irq(&gate->lock);
	return now;
}

/**
 * isoblk_gate_sleep() - sleep until a group may have another tag
 * @group: group; its disk is in use
 * @opf: operation of the request that the task allocates
 *
 * After each sleep the task may be on a CPU of another hardware queue.
 */
void isoblk_gate_sleep(struct isoblk_group *group, blk_opf_t opf)
{
	struct isoblk_gq *gq = isoblk_group_map_gq(group, opf), *had = NULL;

	while (gq != had && !isoblk_may_admit_task(gq, isoblk_nr_plugged())) {
		if (!READ_ONCE(group->disk->gate.had_waiters))
			WRITE_ONCE(group->disk->gate.had_waiters, true);
		/* In TASK_RUNNING io_schedule() flushes the plug and returns. */
		if (isoblk_nr_plugged()) {
			io_schedule();
			gq = isoblk_group_map_gq(group, opf);
		} else {
			had = gq;
			gq = isoblk_gate_wait(gq, opf);
		}
	}
}

/*
 * Find the group for which the current task allocates a request with @opf: limit_depth does not
 * get the bio. While the first part of a split bio is allocated, the rest is on the task's
 * bio_list and has the group. Otherwise it is the group of the task's own cgroup. @bio is
 * initialized for that, and holds a reference until bio_uninit().
 */
static struct isoblk_group *isoblk_task_group(struct request_queue *q,
					      blk_opf_t opf, struct bio *bio)
{
	struct bio *rest = current->bio_list ?
		bio_list_peek(current->bio_list) : NULL;

	bio_init(bio, q->disk->part0, NULL, 0, opf);
	if (rest && opf & REQ_NOMERGE && bdev_get_queue(rest->bi_bdev) == q)
		return isoblk_bio_group(rest);
	return isoblk_bio_group(bio);
}

/* noinline: some kernels clear the stack of a function, and all requests pass the caller. */
static noinline void isoblk_gate_admit_unmerged(blk_opf_t opf,
						struct blk_mq_alloc_data *data)
{
	struct request_queue *q = data->q;
	struct isoblk_group *group;
	struct bio bio;

	/* A resubmitted bio is admitted already. */
	if (isoblk_resubmit_recognize_alloc(q->elevator->elevator_data))
		return;

	group = isoblk_task_group(q, opf, &bio);
	/* The root's bios are the machine's own. */
	if (READ_ONCE(group->disk->gate.enabled) && group->parent &&
	    !(data->flags & BLK_MQ_REQ_NOWAIT) &&
	    !(opf & (REQ_META | REQ_SWAP)) && !(current->flags & PF_MEMALLOC))
		isoblk_gate_sleep(group, opf);
	bio_uninit(&bio);
}

/**
 * isoblk_limit_depth() - an elevator's limit_depth: the gate for bios that may not merge
 * @opf: operation of the request
 * @data: allocation of the request
 */
void isoblk_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	if (unlikely(opf & REQ_NOMERGE_FLAGS || blk_queue_nomerges(data->q)))
		isoblk_gate_admit_unmerged(opf, data);
}
EXPORT_SYMBOL_GPL(isoblk_limit_depth);

/**
 * isoblk_flush_allocated() - tell the elevator the group of a flush
 * @rq: flush with a tag, without a bio yet
 */
noinline void isoblk_flush_allocated(struct request *rq)
{
	struct isoblk_group *group;
	struct bio bio;

	group = isoblk_task_group(rq->q, rq->cmd_flags, &bio);
	group->disk->ops->flush_allocated(group, rq);
	bio_uninit(&bio);
}
EXPORT_SYMBOL_GPL(isoblk_flush_allocated);
