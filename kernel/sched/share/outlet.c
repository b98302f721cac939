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
#include "share/outlet.h"
#include "share/policy.h"

static struct workqueue_struct *outlet_wq;

/**
 * isoblk_outlet_put() - give back a reference
 * @out: outlet; what is in it will be submitted
 */
void isoblk_outlet_put(struct isoblk_outlet *out)
{
	if (refcount_dec_and_test(&out->refs))
		kfree(out);
}

/*
 * A bio of @blkg's has ended on its way: it counts no more, and others may come. The group is
 * there while queue_lock is held, if the policy still is.
 */
static void count_lost(struct isoblk_outlet *out, struct blkcg_gq *blkg)
{
	struct isoblk_group *group;
	struct isoblk_gq *gq;

	spin_lock_irq(&blkg->q->queue_lock);
	group = isoblk_blkg_group(blkg);
	gq = group && out->index < group->nr_gqs ? group->gq[out->index] : NULL;
	if (gq && gq->hq->outlet == out)
		isoblk_gate_through(gq);
	else
		isoblk_outlet_settled(out);
	spin_unlock_irq(&blkg->q->queue_lock);
}

/* One bio's second submission. */
static void submit_again(struct isoblk_outlet *out, struct bio *bio)
{
	struct blkcg_gq *root = bio->bi_bdev->bd_queue->root_blkg;
	struct blkcg_gq *blkg = bio->bi_blkg;

	/* Who polls for it looks at no queue that it is not in. */
	bio_clear_polled(bio);

	blkg_get(root);
	bio->bi_blkg = root;
	out->bio = bio;
	out->blkg = blkg;
	/* For count_lost(); the bio's own may be gone by then. */
	blkg_get(blkg);
	out->pending++;
	submit_bio_noacct(bio);
	if (out->bio) {
		/* It failed on its way, or found another elevator. */
		blkg_put(out->blkg);
		out->bio = NULL;
	}
	/* All that arrived have a request in the plug, or have been settled. */
	if (unlikely(out->pending > current->plug->rq_count))
		count_lost(out, blkg);
	blkg_put(blkg);
}

static void outlet_work(struct work_struct *work)
{
	struct isoblk_outlet *out = container_of(work, struct isoblk_outlet,
						 work);
	unsigned int nr = 0;
	struct blk_plug plug;
	struct bio *bio;

	WRITE_ONCE(out->worker, current);
	/* The clock is read once, and the hardware queue run once. */
	blk_start_plug(&plug);
	spin_lock_irq(&out->lock);
	while ((bio = bio_list_pop(&out->bios))) {
		spin_unlock_irq(&out->lock);
		submit_again(out, bio);
		nr++;
		spin_lock_irq(&out->lock);
	}
	spin_unlock_irq(&out->lock);
	blk_finish_plug(&plug);
	/* None is left, unless the request of another bio hid it in the plug. */
	out->pending = 0;
	WRITE_ONCE(out->worker, NULL);

	spin_lock_irq(&out->lock);
	WRITE_ONCE(out->nr, out->nr - nr);
	spin_unlock_irq(&out->lock);
	isoblk_outlet_put(out);
}

/* The outlet that the caller submits from, if it does from one of @disk. */
static struct isoblk_outlet *outlet_of_worker(const struct isoblk_disk *disk)
{
	struct isoblk_outlet *out;
	unsigned int i;

	if (likely(!(current->flags & PF_WQ_WORKER)))
		return NULL;
	for (i = 0; i < disk->nr_hqs; i++) {
		out = disk->hq[i]->outlet;
		if (READ_ONCE(out->worker) == current)
			return out;
	}
	return NULL;
}

/**
 * isoblk_outlet_alloc() - an outlet for a hardware queue
 * @node: of its disk
 *
 * Return: the disk's reference to it, or NULL.
 */
struct isoblk_outlet *isoblk_outlet_alloc(int node)
{
	struct isoblk_outlet *out = kzalloc_node(sizeof(*out), GFP_KERNEL,
						 node);

	if (!out)
		return NULL;
	INIT_WORK(&out->work, outlet_work);
	spin_lock_init(&out->lock);
	bio_list_init(&out->bios);
	refcount_set(&out->refs, 1);
	return out;
}

/**
 * isoblk_outlet_add() - have bios submitted again
 * @out: outlet
 * @bios: what to; empty afterwards
 * @nr: how many
 *
 * In any context.
 */
void isoblk_outlet_add(struct isoblk_outlet *out, struct bio_list *bios,
		       unsigned int nr)
{
	unsigned long flags;

	spin_lock_irqsave(&out->lock, flags);
	bio_list_merge(&out->bios, bios);
	WRITE_ONCE(out->nr, out->nr + nr);
	/* The worker that is queued has the reference. */
	if (queue_work(outlet_wq, &out->work))
		refcount_inc(&out->refs);
	spin_unlock_irqrestore(&out->lock, flags);
	bio_list_init(bios);
}

/* The bio that @out submits has come to the gate: it is its own cgroup's again. */
static void arrive(struct isoblk_outlet *out)
{
	blkg_put(out->bio->bi_blkg);
	out->bio->bi_blkg = out->blkg;
	out->bio = NULL;
}

/**
 * isoblk_outlet_arrived() - the outlet from which a bio comes to the gate
 * @disk: at whose gate it is
 * @bio: charged to its own cgroup again, if it comes from one
 *
 * Return: NULL if it does not.
 */
const struct isoblk_outlet *isoblk_outlet_arrived(struct isoblk_disk *disk,
						  struct bio *bio)
{
	struct isoblk_outlet *out = outlet_of_worker(disk);

	if (likely(!out) || out->bio != bio)
		return NULL;
	arrive(out);
	return out;
}

/**
 * isoblk_outlet_settled() - a bio is no longer on its way
 * @out: outlet from which the caller has submitted it
 */
void isoblk_outlet_settled(struct isoblk_outlet *out)
{
	if (out->pending)
		out->pending--;
}

/**
 * isoblk_outlet_allocates() - whether a tag is asked for a bio from an outlet
 * @disk: at whose gate it is
 *
 * Where bios are no longer merged since, they come to the gate only here.
 */
bool isoblk_outlet_allocates(struct isoblk_disk *disk)
{
	struct isoblk_outlet *out = outlet_of_worker(disk);

	if (likely(!out) || !out->bio)
		return false;
	arrive(out);
	return true;
}

/**
 * isoblk_outlet_inserts() - the outlet whose bio's request is being inserted
 * @disk: where to
 *
 * Return: NULL if it is not one of an outlet.
 */
const struct isoblk_outlet *
isoblk_outlet_inserts(const struct isoblk_disk *disk)
{
	return outlet_of_worker(disk);
}

/**
 * isoblk_outlet_idle() - whether nothing is on its way
 * @out: outlet
 */
bool isoblk_outlet_idle(struct isoblk_outlet *out)
{
	return !READ_ONCE(out->nr);
}

int isoblk_outlet_init(void)
{
	/* Memory may be freed by what waits here. */
	outlet_wq = alloc_workqueue("isoblk_gate", WQ_MEM_RECLAIM | WQ_HIGHPRI |
				    WQ_UNBOUND, 0);
	return outlet_wq ? 0 : -ENOMEM;
}

void isoblk_outlet_exit(void)
{
	destroy_workqueue(outlet_wq);
}
