// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admitted bios are resubmitted by a worker.
 *
 * A held bio (gate.c) is on a list of its group, and its submitter has gone on: a thread that
 * submits for many groups does not wait for one of them. When the gate admits the bio, it moves to
 * the resubmitter of its hardware queue, whose worker submits it again. At the gate the bio is
 * recognized by the running worker: it is the bio that this worker submits.
 *
 * The second submission must not count in io.stat or against io.max. Both look at the cgroup that
 * the bio is charged to. So the bio is charged to the root cgroup, which neither of them counts,
 * until it is at the gate again. blk-mq merges only bios of the same cgroup, so the bio is not
 * merged with a request in the worker's plug either. Each admitted bio is therefore merged by the
 * elevator, which reports that to the gate, or becomes a request that is inserted, or ends in
 * transit. A bio ended in transit if, when its submission returns, neither was reported and the
 * plug has no request for it.
 *
 * Lifetime. Submission may wait until the queue is no longer frozen, and an elevator leaves while
 * the queue is frozen, so an elevator cannot wait for the worker. The resubmitter therefore has
 * references: the disk's, and the worker's while it is queued. An elevator that leaves moves its
 * held bios to their resubmitters and drops its references. The next elevator does not know these
 * resubmitters, and takes their bios for new ones. The workqueue belongs to the module, and is
 * drained before the module is unloaded.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "share/disk.h"
#include "share/gate.h"
#include "share/resubmit.h"
#include "share/policy.h"

static struct workqueue_struct *resubmit_wq;

/**
 * isoblk_resubmit_put() - drop a reference
 * @rs: its queued bios are still submitted
 */
void isoblk_resubmit_put(struct isoblk_resubmit *rs)
{
	if (refcount_dec_and_test(&rs->refs))
		kfree(rs);
}

/*
 * A bio of @blkg has ended in transit: take it off the count. queue_lock keeps the group, if the
 * policy is still active.
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

/*
 * Submit @bio a second time, charged to the root cgroup until the gate recognizes it. An inserted
 * bio has a request in the plug at first.
 */
static void isoblk_resubmit_bio(struct isoblk_resubmit *rs, struct bio *bio)
{
	struct blkcg_gq *root = bio->bi_bdev->bd_queue->root_blkg;
	struct blkcg_gq *blkg = bio->bi_blkg;

	/* Polling looks at the queue of the submitter, not at that of the worker. */
	bio_clear_polled(bio);

	blkg_get(root);
	bio->bi_blkg = root;
	rs->bio = bio;
	rs->blkg = blkg;
	/* For isoblk_resubmit_count_lost(): the bio's own reference may be gone by then. */
	blkg_get(blkg);
	rs->nr_pending++;
	submit_bio_noacct(bio);
	if (rs->bio) {
		/* The bio failed before the gate, or reached another elevator. */
		blkg_put(rs->blkg);
		rs->bio = NULL;
	}
	/* A pending bio without a request in the plug was neither inserted nor merged: it ended. */
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
	/* Plugged, the clock is read once and the hardware queue run once. */
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
	/* An ended bio may be left, if the plug had a request that is not of a pending bio. */
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
 * isoblk_resubmit_alloc() - allocate the resubmitter of a hardware queue
 * @node: NUMA node of the disk
 *
 * Return: the disk's reference, or NULL.
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
 * isoblk_resubmit_add() - queue admitted bios for resubmission
 * @rs: resubmitter
 * @bios: admitted bios; empty afterwards
 * @nr: length of @bios
 *
 * Context: any.
 */
void isoblk_resubmit_add(struct isoblk_resubmit *rs, struct bio_list *bios,
			 unsigned int nr)
{
	unsigned long flags;

	spin_lock_irqsave(&rs->lock, flags);
	bio_list_merge(&rs->bios, bios);
	WRITE_ONCE(rs->nr_bios, rs->nr_bios + nr);
	/* The queued work holds a reference. */
	if (queue_work(resubmit_wq, &rs->work))
		refcount_inc(&rs->refs);
	spin_unlock_irqrestore(&rs->lock, flags);
	bio_list_init(bios);
}

/* The bio that @rs submits is at the gate: charge it to its own cgroup again. */
static void isoblk_resubmit_restore_blkg(struct isoblk_resubmit *rs)
{
	blkg_put(rs->bio->bi_blkg);
	rs->bio->bi_blkg = rs->blkg;
	rs->bio = NULL;
}

/**
 * isoblk_resubmit_recognize() - recognize a resubmitted bio at the gate
 * @disk: disk of the gate
 * @bio: bio; if it is resubmitted, it is charged to its own cgroup again
 *
 * Return: the bio's resubmitter, or NULL for a new bio.
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
 * isoblk_resubmit_end_transit() - a resubmitted bio is no longer in transit
 * @rs: the bio's resubmitter, whose worker calls this
 */
void isoblk_resubmit_end_transit(struct isoblk_resubmit *rs)
{
	if (rs->nr_pending)
		rs->nr_pending--;
}

/**
 * isoblk_resubmit_recognize_alloc() - recognize a resubmitted bio when its tag is allocated
 * @disk: disk of the gate
 *
 * A bio that was held before merging was switched off reaches the gate only here.
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
 * isoblk_resubmit_is_idle() - whether no bio is queued or being submitted
 * @rs: resubmitter
 */
bool isoblk_resubmit_is_idle(struct isoblk_resubmit *rs)
{
	return !READ_ONCE(rs->nr_bios);
}

int isoblk_resubmit_init(void)
{
	/* Held writes may have to complete before memory is freed. */
	resubmit_wq = alloc_workqueue("isoblk_gate", WQ_MEM_RECLAIM | WQ_HIGHPRI |
				      WQ_UNBOUND, 0);
	return resubmit_wq ? 0 : -ENOMEM;
}

void isoblk_resubmit_exit(void)
{
	destroy_workqueue(resubmit_wq);
}
