// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: how they are found, allocated and freed. cfq.c opens with the design.
 *
 * A process has a queue for each cgroup and I/O priority of its synchronous requests. A group has
 * one for each priority of its asynchronous requests. A queue is linked, and can be found, until
 * its process exits or its group is freed.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "cfq/cfq.h"
#include "cfq/queue.h"
#include "cfq/tree.h"

static struct kmem_cache *cfq_queue_cache;

int __init cfq_queues_init(void)
{
	cfq_queue_cache = KMEM_CACHE(cfq_queue, 0);
	return cfq_queue_cache ? 0 : -ENOMEM;
}

void cfq_queues_exit(void)
{
	kmem_cache_destroy(cfq_queue_cache);
}

static void cfq_queue_free(struct cfq_queue *queue)
{
	kmem_cache_free(cfq_queue_cache, queue);
}

/**
 * cfq_queue_put() - drop a reference to a queue
 * @cd: disk; its lock is held
 * @queue: freed with its last reference
 */
void cfq_queue_put(struct cfq_disk *cd, struct cfq_queue *queue)
{
	lockdep_assert_held(&cd->disk.lock);

	if (!--queue->refs)
		cfq_queue_free(queue);
}

static void cfq_queue_init(struct cfq_queue *queue, struct cfq_group *group,
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

/* Allocate a queue and link it to its group; NULL without memory. */
static struct cfq_queue *cfq_queue_alloc(struct cfq_disk *cd, struct cfq_group *group,
					 bool sync, unsigned int prio)
{
	struct cfq_queue *queue;

	queue = kmem_cache_alloc_node(cfq_queue_cache,
				      GFP_NOWAIT | __GFP_NOWARN | __GFP_ZERO,
				      cd->disk.q->node);
	if (!queue)
		return NULL;
	cfq_queue_init(queue, group, sync, prio);
	list_add(&queue->group_node, &group->queues);
	/* cfq_group_exit(), which frees the queue, is called for groups that were active. */
	group->group->was_active = true;
	return queue;
}

/* Unlink @queue: new requests do not find it; those that it has complete as usual. */
static void cfq_queue_unlink(struct cfq_disk *cd, struct cfq_queue *queue)
{
	if (queue->icq) {
		hlist_del_init(&queue->icq_node);
		queue->icq = NULL;
	}
	list_del_init(&queue->group_node);
	cfq_queue_put(cd, queue);
}

/**
 * cfq_queue_find() - find the queue of a request
 * @icq: process, or NULL
 * @group: group; its disk's lock is held
 * @sync: whether the request is synchronous
 * @prio: class and level
 *
 * Return: the queue, or NULL if it does not exist.
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
 * cfq_queue_get() - find or allocate the queue of a request
 * @cd: disk; its lock is held
 * @icq: process, or NULL
 * @group: group
 * @sync: whether the request is synchronous
 * @prio: class and level
 *
 * A process that needs a new queue unlinks those without requests: it may have moved to another
 * cgroup or priority.
 *
 * Return: the queue, without a reference for the caller; never NULL.
 */
struct cfq_queue *cfq_queue_get(struct cfq_disk *cd, struct cfq_icq *icq,
				struct cfq_group *group, bool sync,
				unsigned int prio)
{
	struct cfq_queue *queue = cfq_queue_find(icq, group, sync, prio);
	struct hlist_node *next;

	if (queue)
		return queue;
	/* A flush may delay a request until its process has exited. */
	if (sync && (!icq || icq->has_exited))
		return &group->fallback;
	if (sync)
		hlist_for_each_entry_safe(queue, next, &icq->queues, icq_node)
			if (queue->refs == 1)
				cfq_queue_unlink(cd, queue);

	queue = cfq_queue_alloc(cd, group, sync, prio);
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
 * cfq_exit_icq() - unlink the queues of a process
 * @icq: process; it has exited, or the elevator exits
 */
void cfq_exit_icq(struct io_cq *icq)
{
	struct cfq_disk *cd = q_to_cfq(icq->q);
	struct cfq_queue *queue;
	struct hlist_node *next;
	unsigned long flags;

	spin_lock_irqsave(&cd->disk.lock, flags);
	to_icq(icq)->has_exited = true;
	hlist_for_each_entry_safe(queue, next, &to_icq(icq)->queues, icq_node) {
		/* No next request comes: the disk need not idle. */
		if (queue == cd->active && cd->idling)
			cfq_schedule_dispatch(cd);
		cfq_queue_unlink(cd, queue);
	}
	spin_unlock_irqrestore(&cd->disk.lock, flags);
}

/**
 * cfq_init_icq() - prepare a process on a disk
 * @icq: process
 */
void cfq_init_icq(struct io_cq *icq)
{
	INIT_HLIST_HEAD(&to_icq(icq)->queues);
}

/**
 * cfq_group_init() - prepare a group, without queues
 * @group: cfq's data in it is zero
 */
void cfq_group_init(struct isoblk_group *group)
{
	struct cfq_group *cg = cfq_group_of(group);

	cg->group = group;
	INIT_LIST_HEAD(&cg->queues);
	cfq_queue_init(&cg->fallback, cg, true, CFQ_PRIO_BE + CFQ_LEVEL_DEFAULT);
}

/**
 * cfq_group_exit() - unlink the queues of a group
 * @group: has no requests; its disk's lock is held
 */
void cfq_group_exit(struct isoblk_group *group)
{
	struct cfq_disk *cd = container_of(group->disk, struct cfq_disk, disk);
	struct cfq_group *cg = cfq_group_of(group);
	struct cfq_queue *queue, *next;

	if (cd->active && cd->active->group == cg) {
		cfq_expire_active_queue(cd, ktime_get_ns(), false);
		cfq_schedule_dispatch(cd);
	}
	list_for_each_entry_safe(queue, next, &cg->queues, group_node)
		cfq_queue_unlink(cd, queue);
}
