// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that sleep at the gate, where a bio cannot wait for them. gate.c opens with the
 * design.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "share/disk.h"
#include "share/outlet.h"
#include "share/policy.h"
#include "share/quota.h"
#include "share/sleep.h"
#include "share/waiting.h"

/*
 * Far above the time between a group's completions. No wake-up is known to be missed: if there is
 * room at two looks, and no task of the group ran between them, the task is rescued, and that is
 * counted. Room that is new has its tick yet to come; a task that ran is about to fill it.
 */
#define RECHECK			(HZ / 10)

/**
 * isoblk_group_gq() - a group where a request that the task sends now would have its tag
 * @group: of a disk in use
 * @opf: operation of the request
 */
struct isoblk_gq *isoblk_group_gq(struct isoblk_group *group, blk_opf_t opf)
{
	struct blk_mq_hw_ctx *hctx = isoblk_map_queue(group->disk->q, opf);
	struct isoblk_hq *hq = hctx->sched_data;

	return isoblk_tags_gq(group->gq[hq->index]);
}
EXPORT_SYMBOL_GPL(isoblk_group_gq);

/* A wake-up was missed: all that has room may go. */
static void rescue(struct isoblk_gq *gq)
{
	struct isoblk_hq_gate *gate = &gq->hq->gate;

	WRITE_ONCE(gate->rechecks, gate->rechecks + 1);
	isoblk_let_through(gq);
}

/* Sleep until @sleeper is admitted; hq->gate.lock, given up meanwhile. */
static void sleep_until_admitted(struct isoblk_gq *gq,
				 struct isoblk_sleeper *sleeper)
{
	struct isoblk_hq_gate *gate = &gq->hq->gate;
	unsigned int runs, looks = 0;
	long left;

	while (!sleeper->admitted) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		runs = gq->gate.runs;
		spin_unlock_irq(&gate->lock);
		left = io_schedule_timeout(RECHECK);
		spin_lock_irq(&gate->lock);
		if (left || sleeper->admitted)
			continue;
		if (!isoblk_may_wake(gq, 0) || runs != gq->gate.runs)
			looks = 0;
		else if (++looks >= 2)
			rescue(gq);
	}
	__set_current_state(TASK_RUNNING);
}

/*
 * Sleep for a place among @gq's tags.
 * Return: where the task would have its tag now; the place is its own if that is @gq.
 */
static struct isoblk_gq *gate_wait(struct isoblk_gq *gq, blk_opf_t opf)
{
	struct isoblk_sleeper sleeper = { .task = current };
	struct isoblk_hq_gate *gate = &gq->hq->gate;
	struct isoblk_gq *now;

	spin_lock_irq(&gate->lock);
	list_add_tail(&sleeper.node, &gq->gate.sleepers);
	isoblk_join_list(gq);
	/* We are seen before we look; pairs with isoblk_gate_leave(). */
	smp_mb();
	isoblk_let_through(gq);
	sleep_until_admitted(gq, &sleeper);
	isoblk_set_entering(gq, -1);
	gq->gate.runs++;
	now = isoblk_group_gq(gq->group, opf);
	/* The place is for the next, and no request will end for it. */
	if (now != gq)
		isoblk_let_through(gq);
	spin_unlock_irq(&gate->lock);
	return now;
}

/**
 * isoblk_gate_sleep() - sleep until a group may have another tag
 * @group: of a disk in use
 * @opf: operation of the request that it is for
 *
 * The task may be on another CPU, thus on another queue, after every wait.
 */
void isoblk_gate_sleep(struct isoblk_group *group, blk_opf_t opf)
{
	struct isoblk_gq *gq = isoblk_group_gq(group, opf), *had = NULL;

	while (gq != had && !isoblk_may_wake(gq, isoblk_plugged())) {
		if (!READ_ONCE(group->disk->gate.used))
			WRITE_ONCE(group->disk->gate.used, true);
		/* Awake, io_schedule() comes back, with the plug flushed. */
		if (isoblk_plugged()) {
			io_schedule();
			gq = isoblk_group_gq(group, opf);
		} else {
			had = gq;
			gq = gate_wait(gq, opf);
		}
	}
}

/*
 * The group of the bio for which the task asks for a request with @opf, which the kernel
 * does not hand over. The first part of a bio that was split is asked for while the rest
 * waits in the task's list. Else it is the group that a bio of the task's own would have,
 * @bio, which holds it until it is given back.
 */
static struct isoblk_group *group_of_task(struct request_queue *q,
					  blk_opf_t opf, struct bio *bio)
{
	struct bio *rest = current->bio_list ?
		bio_list_peek(current->bio_list) : NULL;

	bio_init(bio, q->disk->part0, NULL, 0, opf);
	if (rest && opf & REQ_NOMERGE && bdev_get_queue(rest->bi_bdev) == q)
		return isoblk_bio_group(rest);
	return isoblk_bio_group(bio);
}

/* Apart from what all pass: the kernel may be built to clear what lies on the stack. */
static noinline void pass_unmerged(blk_opf_t opf,
				   struct blk_mq_alloc_data *data)
{
	struct request_queue *q = data->q;
	struct isoblk_group *group;
	struct bio bio;

	/* It has waited already. */
	if (isoblk_outlet_allocates(q->elevator->elevator_data))
		return;

	group = group_of_task(q, opf, &bio);
	/* The root's is the machine's own. */
	if (READ_ONCE(group->disk->gate.on) && group->parent &&
	    !(data->flags & BLK_MQ_REQ_NOWAIT) &&
	    !(opf & (REQ_META | REQ_SWAP)) && !(current->flags & PF_MEMALLOC))
		isoblk_gate_sleep(group, opf);
	bio_uninit(&bio);
}

/**
 * isoblk_limit_depth() - an elevator's limit_depth: the gate of what cannot merge
 * @opf: operation of the request to be
 * @data: what it is allocated by
 */
void isoblk_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	if (unlikely(opf & REQ_NOMERGE_FLAGS || blk_queue_nomerges(data->q)))
		pass_unmerged(opf, data);
}
EXPORT_SYMBOL_GPL(isoblk_limit_depth);

/**
 * isoblk_flush_comes() - tell the elevator whose a flush is
 * @rq: has its tag, and no bio yet
 */
noinline void isoblk_flush_comes(struct request *rq)
{
	struct isoblk_group *group;
	struct bio bio;

	group = group_of_task(rq->q, rq->cmd_flags, &bio);
	group->disk->ops->flush_comes(group, rq);
	bio_uninit(&bio);
}
EXPORT_SYMBOL_GPL(isoblk_flush_comes);
