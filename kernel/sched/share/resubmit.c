// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios that wait at the gate, on their way out.
 *
 * A bio whose group may have no tag yet waits in the group's list (gate.c), and
 * its submitter goes on: a thread that submits for many does not wait for one of
 * them. When a tag is due the bio is moved to the outlet of its hardware
 * queue, and a worker submits it again. It then comes to the gate a second time,
 * and is known there by the worker's being under way with it.
 *
 * On its second way it must not be counted again, neither in io.stat nor by
 * io.max. Both look at the cgroup that the bio is charged to; so it is charged to
 * the root, which neither of them counts, until it is at the gate again. Nor is it
 * merged with a request in the worker's plug on this way, for only what is charged
 * alike is: so that each bio that was let through is either merged by the elevator,
 * which says so to the gate, or one request that is inserted, or ends on its way. The
 * worker sees that: such a bio is neither settled nor in its plug when submission returns.
 *
 * Lifetime. Submitting may wait until the queue is no longer frozen, and an
 * elevator leaves while it is: so nobody can wait for the worker then. The outlet
 * therefore has references: the disk's, and the worker's while it is queued. The
 * elevator that goes moves all bios that wait to their outlets, and takes
 * itself out of them; what comes to the gate later comes to another elevator's,
 * which does not know the outlet. The workqueue is the module's, and is drained before
 * that is unloaded.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "share/disk.h"
#include "share/gate.h"
#include "share/resubmit.h"
#include "share/policy.h"

static struct workqueue_struct *resubmit_wq;

/**
 * isoblk_resubmit_put() - give back a reference
 * @rs: outlet; what is in it will be submitted
 */
void isoblk_resubmit_put(struct isoblk_resubmit *rs)
{
	if (refcount_dec_and_test(&rs->refs))
		kfree(rs);
}

/*
 * A bio of @blkg's has ended on its way: it counts no more, and others may come. The group is
 * there while queue_lock is held, if the policy still is.
 */
static void isoblk_resubmit_count_lost(struct isoblk_resubmit *rs, struct blkcg_gq *blkg)
{
	struct isoblk_group *group;
	struct isoblk_gq *gq;

	spin_lock_irq(&blkg->q->queue_lock);
	group = isoblk_blkg_group(blkg);
	gq = group && rs->index < group->nr_gqs ? group->gq[rs->index] : NULL;
	if (gq && gq->hq->resubmit == rs)
		isoblk_gate_end_transit(gq);
	else
		isoblk_resubmit_end_transit(rs);
	spin_unlock_irq(&blkg->q->queue_lock);
}

/* One bio's second submission. */
static void isoblk_resubmit_bio(struct isoblk_resubmit *rs, struct bio *bio)
{
	struct blkcg_gq *root = bio->bi_bdev->bd_queue->root_blkg;
	struct blkcg_gq *blkg = bio->bi_blkg;

	/* Who polls for it looks at no queue that it is not in. */
	bio_clear_polled(bio);

	blkg_get(root);
	bio->bi_blkg = root;
	rs->bio = bio;
	rs->blkg = blkg;
	/* For isoblk_resubmit_count_lost(); the bio's own may be gone by then. */
	blkg_get(blkg);
	rs->nr_pending++;
	submit_bio_noacct(bio);
	if (rs->bio) {
		/* It failed on its way, or found another elevator. */
		blkg_put(rs->blkg);
		rs->bio = NULL;
	}
	/* All that arrived have a request in the plug, or have been settled. */
	if (unlikely(rs->nr_pending > current->plug->rq_count))
		isoblk_resubmit_count_lost(rs, blkg);
	blkg_put(blkg);
}

static void isoblk_resubmit_work(struct work_struct *work)
{
	struct isoblk_resubmit *rs = container_of(work, struct isoblk_resubmit,
						   work);
	unsigned int nr = 0;
	struct blk_plug plug;
	struct bio *bio;

	WRITE_ONCE(rs->worker, current);
	/* The clock is read once, and the hardware queue run once. */
	blk_start_plug(&plug);
	spin_lock_irq(&rs->lock);
	while ((bio = bio_list_pop(&rs->bios))) {
		spin_unlock_irq(&rs->lock);
		isoblk_resubmit_bio(rs, bio);
		nr++;
		spin_lock_irq(&rs->lock);
	}
	spin_unlock_irq(&rs->lock);
	blk_finish_plug(&plug);
	/* None is left, unless the request of another bio hid it in the plug. */
	rs->nr_pending = 0;
	WRITE_ONCE(rs->worker, NULL);

	spin_lock_irq(&rs->lock);
	WRITE_ONCE(rs->nr_bios, rs->nr_bios - nr);
	spin_unlock_irq(&rs->lock);
	isoblk_resubmit_put(rs);
}

/**
 * isoblk_resubmit_of_current() - find the worker that is running
 * @disk: disk under an elevator
 *
 * Return: NULL if the current task is not a worker of @disk.
 */
struct isoblk_resubmit *isoblk_resubmit_of_current(const struct isoblk_disk *disk)
{
	struct isoblk_resubmit *rs;
	unsigned int i;

	if (likely(!(current->flags & PF_WQ_WORKER)))
		return NULL;
	for (i = 0; i < disk->nr_hqs; i++) {
		rs = disk->hq[i]->resubmit;
		if (READ_ONCE(rs->worker) == current)
			return rs;
	}
	return NULL;
}

/**
 * isoblk_resubmit_alloc() - an outlet for a hardware queue
 * @node: of its disk
 *
 * Return: the disk's reference to it, or NULL.
 */
struct isoblk_resubmit *isoblk_resubmit_alloc(int node)
{
	struct isoblk_resubmit *rs = kzalloc_node(sizeof(*rs), GFP_KERNEL,
						   node);

	if (!rs)
		return NULL;
	INIT_WORK(&rs->work, isoblk_resubmit_work);
	spin_lock_init(&rs->lock);
	bio_list_init(&rs->bios);
	refcount_set(&rs->refs, 1);
	return rs;
}

/**
 * isoblk_resubmit_add() - have bios submitted again
 * @rs: outlet
 * @bios: what to; empty afterwards
 * @nr: how many
 *
 * In any context.
 */
void isoblk_resubmit_add(struct isoblk_resubmit *rs, struct bio_list *bios,
			 unsigned int nr)
{
	unsigned long flags;

	spin_lock_irqsave(&rs->lock, flags);
	bio_list_merge(&rs->bios, bios);
	WRITE_ONCE(rs->nr_bios, rs->nr_bios + nr);
	/* The worker that is queued has the reference. */
	if (queue_work(resubmit_wq, &rs->work))
		refcount_inc(&rs->refs);
	spin_unlock_irqrestore(&rs->lock, flags);
	bio_list_init(bios);
}

/* The bio that @rs submits has come to the gate: it is its own cgroup's again. */
static void isoblk_resubmit_restore_blkg(struct isoblk_resubmit *rs)
{
	blkg_put(rs->bio->bi_blkg);
	rs->bio->bi_blkg = rs->blkg;
	rs->bio = NULL;
}

/**
 * isoblk_resubmit_recognize() - the outlet from which a bio comes to the gate
 * @disk: at whose gate it is
 * @bio: charged to its own cgroup again, if it comes from one
 *
 * Return: NULL if it does not.
 */
const struct isoblk_resubmit *isoblk_resubmit_recognize(struct isoblk_disk *disk,
							struct bio *bio)
{
	struct isoblk_resubmit *rs = isoblk_resubmit_of_current(disk);

	if (likely(!rs) || rs->bio != bio)
		return NULL;
	isoblk_resubmit_restore_blkg(rs);
	return rs;
}

/**
 * isoblk_resubmit_end_transit() - a bio is no longer on its way
 * @rs: outlet from which the caller has submitted it
 */
void isoblk_resubmit_end_transit(struct isoblk_resubmit *rs)
{
	if (rs->nr_pending)
		rs->nr_pending--;
}

/**
 * isoblk_resubmit_recognize_alloc() - whether a tag is asked for a bio from an outlet
 * @disk: at whose gate it is
 *
 * Where bios are no longer merged since, they come to the gate only here.
 */
bool isoblk_resubmit_recognize_alloc(struct isoblk_disk *disk)
{
	struct isoblk_resubmit *rs = isoblk_resubmit_of_current(disk);

	if (likely(!rs) || !rs->bio)
		return false;
	isoblk_resubmit_restore_blkg(rs);
	return true;
}

/**
 * isoblk_resubmit_is_idle() - whether nothing is on its way
 * @rs: outlet
 */
bool isoblk_resubmit_is_idle(struct isoblk_resubmit *rs)
{
	return !READ_ONCE(rs->nr_bios);
}

int isoblk_resubmit_init(void)
{
	/* Memory may be freed by what waits here. */
	resubmit_wq = alloc_workqueue("isoblk_gate", WQ_MEM_RECLAIM | WQ_HIGHPRI |
				      WQ_UNBOUND, 0);
	return resubmit_wq ? 0 : -ENOMEM;
}

void isoblk_resubmit_exit(void)
{
	destroy_workqueue(resubmit_wq);
}
