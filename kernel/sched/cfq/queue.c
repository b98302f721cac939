// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: who has one, and for how long. cfq.c opens with the design.
 *
 * The synchronous requests of a process have a queue for each cgroup and I/O priority,
 * asynchronous ones one for each cgroup and priority. A queue is linked, and so found
 * again, until its process exits or its group goes.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "cfq/cfq.h"
#include "cfq/queue.h"
#include "cfq/tree.h"

static struct kmem_cache *queue_cache;

int __init cfq_queues_init(void)
{
	queue_cache = KMEM_CACHE(cfq_queue, 0);
	return queue_cache ? 0 : -ENOMEM;
}

void cfq_queues_exit(void)
{
	kmem_cache_destroy(queue_cache);
}

static void queue_free(struct cfq_queue *queue)
{
	kmem_cache_free(queue_cache, queue);
}

/**
 * cfq_queue_put() - give a reference to a queue back
 * @cd: disk; its lock is held
 * @queue: may be freed
 */
void cfq_queue_put(struct cfq_disk *cd, struct cfq_queue *queue)
{
	lockdep_assert_held(&cd->disk.lock);

	if (!--queue->refs)
		queue_free(queue);
}

static void queue_init(struct cfq_queue *queue, struct cfq_group *group,
		       bool sync, unsigned int prio)
{
	INIT_HLIST_NODE(&queue->icq_node);
	INIT_LIST_HEAD(&queue->group_node);
	INIT_LIST_HEAD(&queue->fifo);
	queue->sorted = RB_ROOT;
	queue->group = group;
	queue->sync = sync;
	queue->prio = prio;
	queue->refs = 1;
}

/* A linked queue, or NULL. */
static struct cfq_queue *queue_new(struct cfq_disk *cd, struct cfq_group *group,
				   bool sync, unsigned int prio)
{
	struct cfq_queue *queue;

	queue = kmem_cache_alloc_node(queue_cache,
				      GFP_NOWAIT | __GFP_NOWARN | __GFP_ZERO,
				      cd->disk.q->node);
	if (!queue)
		return NULL;
	queue_init(queue, group, sync, prio);
	list_add(&queue->group_node, &group->queues);
	/* So that it is freed, and its queues with it: see cfq_group_exit(). */
	group->group->was_active = true;
	return queue;
}

/* No more requests find it; those that it has end as usual. */
static void queue_unlink(struct cfq_disk *cd, struct cfq_queue *queue)
{
	if (queue->icq) {
		hlist_del_init(&queue->icq_node);
		queue->icq = NULL;
	}
	list_del_init(&queue->group_node);
	cfq_queue_put(cd, queue);
}

/**
 * cfq_queue_find() - the queue of a request that there is, or NULL
 * @icq: process, or NULL
 * @group: group; its disk's lock is held
 * @sync: whether the request is synchronous
 * @prio: class and level
 */
struct cfq_queue *cfq_queue_find(struct cfq_icq *icq,
				 const struct cfq_group *group, bool sync,
				 unsigned int prio)
{
	struct cfq_queue *queue;

	if (!sync)
		return group->async[prio];
	if (!icq)
		return NULL;
	hlist_for_each_entry(queue, &icq->queues, icq_node)
		if (queue->group == group && queue->prio == prio)
			return queue;
	return NULL;
}

/**
 * cfq_queue_get() - the queue of a request, which is made if there is none
 * @cd: disk; its lock is held
 * @icq: process, or NULL
 * @group: group
 * @sync: whether the request is synchronous
 * @prio: class and level
 *
 * A process need not keep those that it left.
 */
struct cfq_queue *cfq_queue_get(struct cfq_disk *cd, struct cfq_icq *icq,
				struct cfq_group *group, bool sync,
				unsigned int prio)
{
	struct cfq_queue *queue = cfq_queue_find(icq, group, sync, prio);
	struct hlist_node *next;

	if (queue)
		return queue;
	/* A flush may hold a request back until its process is gone. */
	if (sync && (!icq || icq->exited))
		return &group->fallback;
	if (sync)
		hlist_for_each_entry_safe(queue, next, &icq->queues, icq_node)
			if (queue->refs == 1)
				queue_unlink(cd, queue);

	queue = queue_new(cd, group, sync, prio);
	if (!queue)
		return &group->fallback;
	if (sync) {
		queue->icq = icq;
		hlist_add_head(&queue->icq_node, &icq->queues);
	} else {
		group->async[prio] = queue;
	}
	return queue;
}

/**
 * cfq_exit_icq() - the process has exited, or the disk is no more ours
 * @icq: process
 */
void cfq_exit_icq(struct io_cq *icq)
{
	struct cfq_disk *cd = q_to_cfq(icq->q);
	struct cfq_queue *queue;
	struct hlist_node *next;
	unsigned long flags;

	spin_lock_irqsave(&cd->disk.lock, flags);
	to_icq(icq)->exited = true;
	hlist_for_each_entry_safe(queue, next, &to_icq(icq)->queues, icq_node) {
		/* There will be no next request to wait for. */
		if (queue == cd->active && cd->idling)
			cfq_run_later(cd);
		queue_unlink(cd, queue);
	}
	spin_unlock_irqrestore(&cd->disk.lock, flags);
}

/**
 * cfq_init_icq() - a process comes to a disk
 * @icq: process
 */
void cfq_init_icq(struct io_cq *icq)
{
	INIT_HLIST_HEAD(&to_icq(icq)->queues);
}

/**
 * cfq_group_init() - a group has no queues yet
 * @group: its own bytes are zero
 */
void cfq_group_init(struct isoblk_group *group)
{
	struct cfq_group *cg = cfq_group_of(group);

	cg->group = group;
	INIT_LIST_HEAD(&cg->queues);
	queue_init(&cg->fallback, cg, true, CFQ_PRIO_BE + CFQ_LEVEL);
}

/**
 * cfq_group_exit() - a group gives up its queues
 * @group: has no requests; its disk's lock is held
 */
void cfq_group_exit(struct isoblk_group *group)
{
	struct cfq_disk *cd = container_of(group->disk, struct cfq_disk, disk);
	struct cfq_group *cg = cfq_group_of(group);
	struct cfq_queue *queue, *next;

	if (cd->active && cd->active->group == cg) {
		cfq_expire(cd, ktime_get_ns(), false);
		cfq_run_later(cd);
	}
	list_for_each_entry_safe(queue, next, &cg->queues, group_node)
		queue_unlink(cd, queue);
}
