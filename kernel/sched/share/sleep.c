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

/* Far above the time between a group's completions. */
#define RECHECK			(HZ / 10)

static void gate_wait(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;
	unsigned long flags;
	DEFINE_WAIT(wait);

	spin_lock_irqsave(&hq->gate.lock, flags);
	isoblk_join_list(gq);
	spin_unlock_irqrestore(&hq->gate.lock, flags);

	prepare_to_wait_exclusive(&gq->gate.sleepers, &wait,
				  TASK_UNINTERRUPTIBLE);
	/* We are seen before we look; pairs with isoblk_gate_leave(). */
	smp_mb();
	if (!isoblk_may_wake(gq, 0))
		io_schedule_timeout(RECHECK);
	finish_wait(&gq->gate.sleepers, &wait);

	spin_lock_irqsave(&hq->gate.lock, flags);
	isoblk_leave_list(gq);
	spin_unlock_irqrestore(&hq->gate.lock, flags);
}

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

/**
 * isoblk_gate_sleep() - sleep until a group may have another tag
 * @group: of a disk in use
 * @opf: operation of the request that it is for
 *
 * The task may be on another CPU, thus on another queue, after every wait.
 */
void isoblk_gate_sleep(struct isoblk_group *group, blk_opf_t opf)
{
	struct isoblk_gq *gq = isoblk_group_gq(group, opf);

	while (!isoblk_may_wake(gq, isoblk_plugged())) {
		if (!READ_ONCE(group->disk->gate.used))
			WRITE_ONCE(group->disk->gate.used, true);
		/* Awake, io_schedule() comes back, with the plug flushed. */
		if (isoblk_plugged())
			io_schedule();
		else
			gate_wait(gq);
		gq = isoblk_group_gq(group, opf);
	}
}

/*
 * Whose a request is that the task asks for. A bio of its own, @bio, knows, and holds it until it
 * is given back.
 */
static struct isoblk_group *group_of_task(struct request_queue *q,
					  blk_opf_t opf, struct bio *bio)
{
	bio_init(bio, q->disk->part0, NULL, 0, opf);
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
	if (READ_ONCE(group->disk->gate.on) &&
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
