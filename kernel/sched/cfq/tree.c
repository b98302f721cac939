// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose turn it is: groups by vdisktime, in a group classes, loads and queues.
 *
 * Three levels, each with turns of its own, and a turn begins with the first
 * request that is sent in it:
 *
 *  - The group with the least vdisktime is served for target_latency times its
 *    share. Then it is charged with the time, over its share: so what all have
 *    is in proportion to their weights. A group that was away comes back with
 *    the vdisktime at which the group in service began (start-time fair
 *    queueing), or its own if that is more: it saves nothing up.
 *
 *  - In a group the best class that has requests; RT may starve BE, and BE
 *    IDLE. Then the load (see enum cfq_load) with the queue that has waited
 *    longest; its turn is the group's, times its part of the queues.
 *
 *  - In a load the queue with the least key, for a slice. Its key is the time
 *    at which it came, and later for a low level, to which it gives way.
 *
 * A turn ends when its time is over; when a queue of a better class or, in the same
 * class, a synchronous one has requests in the same group and an asynchronous one
 * was served; and when the queue is empty and not worth waiting for. It is
 * waited for, which is what CFQ is about (cfq_idle_ns()), for slice_idle if its
 * process sends its next request soon after the last one's end; and for group_idle if
 * it is the last of its group, lest the group lose its turn.
 */
#include <linux/module.h>

#include "cfq/cfq.h"
#include "cfq/queue.h"
#include "cfq/tree.h"
#include "muldiv.h"
#include "share/gate.h"
#include "share/share.h"

/*
 * A turn in which no request ended has been too short to tell what it cost; it
 * is charged as if it had taken this.
 */
#define MIN_CHARGE_NS		NSEC_PER_MSEC

/*
 * What a request is charged when requests are counted and not time: about what
 * it takes, so that the mode may change while groups wait.
 */
#define REQUEST_NS		(100ULL * NSEC_PER_USEC)

/* A process seeks if more than one in eight of its requests were far. */
#define SEEKS_OF_32		4

static u64 ms_to_ns(unsigned int ms)
{
	return (u64)ms * NSEC_PER_MSEC;
}

static u64 slice_idle_ns(const struct cfq_disk *cd)
{
	return ms_to_ns(READ_ONCE(cd->tunables.slice_idle));
}

/* ---- trees ------------------------------------------------------------ */

static struct cfq_tree *queue_tree(const struct cfq_queue *queue)
{
	return &queue->group->tree[cfq_class_of(queue)][queue->load];
}

static bool queue_less(struct rb_node *a, const struct rb_node *b)
{
	return cfq_before(rb_entry(a, struct cfq_queue, node)->key,
			  rb_entry(b, struct cfq_queue, node)->key);
}

static bool group_less(struct rb_node *a, const struct rb_node *b)
{
	return cfq_before(rb_entry(a, struct cfq_group, node)->vdisktime,
			  rb_entry(b, struct cfq_group, node)->vdisktime);
}

static struct cfq_queue *tree_first(const struct cfq_tree *tree)
{
	struct rb_node *node = rb_first_cached(&tree->root);

	return node ? rb_entry(node, struct cfq_queue, node) : NULL;
}

static unsigned int class_nr(const struct cfq_group *group,
			     enum cfq_class class)
{
	unsigned int load, nr = 0;

	for (load = 0; load < CFQ_NR_LOADS; load++)
		nr += group->tree[class][load].nr;
	return nr;
}

/* The slice at @queue's level, of all the time in the world. */
static u64 queue_slice(const struct cfq_disk *cd, const struct cfq_queue *queue)
{
	unsigned int ms = queue->sync ? READ_ONCE(cd->tunables.slice_sync) :
		READ_ONCE(cd->tunables.slice_async);

	return cfq_scale_slice(ms_to_ns(ms), queue->prio);
}

/* Into its tree; a low level gives way to what the others of its class have. */
static void tree_add(struct cfq_disk *cd, struct cfq_queue *queue, u64 now)
{
	u64 first, slice = queue_slice(cd, queue);
	struct cfq_tree *tree;

	if (!queue->sync)
		queue->load = CFQ_ASYNC;
	else if (cfq_idle_window(cd, queue))
		queue->load = CFQ_SYNC_IDLE;
	else
		queue->load = CFQ_SYNC_NOIDLE;

	first = cfq_scale_slice(ms_to_ns(READ_ONCE(cd->tunables.slice_sync)),
				0);
	queue->key = now - queue->slice.left_ns;
	if (first > slice)
		queue->key += class_nr(queue->group, cfq_class_of(queue)) *
			(first - slice);
	queue->slice.left_ns = 0;

	tree = queue_tree(queue);
	rb_add_cached(&queue->node, &tree->root, queue_less);
	tree->nr++;
}

static void tree_del(struct cfq_queue *queue)
{
	struct cfq_tree *tree = queue_tree(queue);

	rb_erase_cached(&queue->node, &tree->root);
	tree->nr--;
}

/* ---- groups ----------------------------------------------------------- */

/* The device is fast and nobody is waited for: requests can be counted only. */
static bool counts_requests(const struct cfq_disk *cd)
{
	return cd->queueing && !READ_ONCE(cd->tunables.slice_idle);
}

static u64 group_slice(const struct cfq_disk *cd, struct cfq_group *group)
{
	return mul_u64_u64_shr(ms_to_ns(READ_ONCE(cd->tunables.target_latency)),
			       isoblk_group_share(group->group),
			       ISOBLK_SHARE_SHIFT);
}

static bool group_turn_over(const struct cfq_disk *cd, u64 now)
{
	return cd->turn.start && cfq_since(now, cd->turn.start) >=
		group_slice(cd, cd->turn.group);
}

/* The turn of the group in service is over: charge it. It has joined. */
static void group_expire(struct cfq_disk *cd, u64 now)
{
	struct cfq_group *group = cd->turn.group;
	u64 used, charge;

	if (cd->turn.start) {
		used = cfq_since(now, cd->turn.start);
		if (counts_requests(cd))
			charge = cd->turn.rqs * REQUEST_NS;
		else if (cd->turn.served)
			charge = used;
		else
			charge = max(used, MIN_CHARGE_NS);
		group->vdisktime +=
			cfq_vdisktime(charge, isoblk_group_share(group->group));
		WRITE_ONCE(group->time_ns, group->time_ns + used);
	}
	cd->turn.group = NULL;
	if (group->nr_busy)
		rb_add_cached(&group->node, &cd->groups, group_less);
}

static void group_begin(struct cfq_disk *cd, struct cfq_group *group)
{
	rb_erase_cached(&group->node, &cd->groups);
	if (cfq_before(cd->vclock, group->vdisktime))
		cd->vclock = group->vdisktime;
	cd->turn.group = group;
	cd->turn.start = 0;
	cd->turn.rqs = 0;
	cd->turn.served = false;
	isoblk_gate_set_served(group->group);
}

static void group_join(struct cfq_disk *cd, struct cfq_group *group)
{
	isoblk_group_activate(group->group);
	if (cfq_before(group->vdisktime, cd->vclock))
		group->vdisktime = cd->vclock;
	rb_add_cached(&group->node, &cd->groups, group_less);
}

static void group_leave(struct cfq_disk *cd, struct cfq_group *group, u64 now)
{
	if (cd->turn.group == group)
		group_expire(cd, now);
	else
		rb_erase_cached(&group->node, &cd->groups);
	isoblk_group_deactivate(group->group);
}

/* ---- idling ----------------------------------------------------------- */

/**
 * cfq_idle_window() - is a queue worth waiting for by itself?
 * @cd: disk; its lock is held
 * @queue: synchronous
 *
 * That is if its process sends the next request soon, and not far away; a device
 * that does not seek, and has other requests meanwhile, has nothing from it.
 */
bool cfq_idle_window(const struct cfq_disk *cd, const struct cfq_queue *queue)
{
	u64 idle_ns = slice_idle_ns(cd);

	return idle_ns && queue->icq && queue->habits.think_ns <= idle_ns &&
		(cd->rotational || !cd->queueing) &&
		hweight32(queue->habits.seeks) <= SEEKS_OF_32;
}

/*
 * The active queue's slice, of what there is: with low_latency all processes of
 * its group shall have theirs in the group's turn. Groups and queues come and go
 * meanwhile, so it is found anew each time.
 */
static u64 slice_ns(const struct cfq_disk *cd, const struct cfq_queue *queue)
{
	const struct cfq_tunables *t = &cd->tunables;
	const struct cfq_tree *tree = queue->group->tree[cfq_class_of(queue)];
	u64 slice = queue_slice(cd, queue);

	if (!queue->sync || !READ_ONCE(t->low_latency))
		return slice;
	return cfq_fit_slice(slice, 1 + tree[CFQ_SYNC_IDLE].nr +
			     tree[CFQ_SYNC_NOIDLE].nr,
			     ms_to_ns(READ_ONCE(t->slice_sync)),
			     group_slice(cd, queue->group),
			     cfq_scale_slice(2 * slice_idle_ns(cd),
					     queue->prio));
}

static bool slice_over(const struct cfq_disk *cd, const struct cfq_queue *queue,
		       u64 now)
{
	if (!queue->slice.start)
		return false;
	if (!queue->sync && queue->slice.rqs >=
	    cfq_async_limit(READ_ONCE(cd->tunables.slice_async_rq),
			    queue->prio))
		return true;
	return cfq_since(now, queue->slice.start) >= slice_ns(cd, queue);
}

/**
 * cfq_idle_ns() - for how long is the next request of a queue waited for?
 * @cd: disk; its lock is held
 * @queue: the active one, with none
 * @now: ns
 *
 * Return: 0 if it is not. One that seeks is waited for only if no other of its
 * kind is there: they are waited for together. The last queue of a group is
 * waited for even though its slice is over: the group keeps its place by it.
 */
u64 cfq_idle_ns(const struct cfq_disk *cd, const struct cfq_queue *queue,
		u64 now)
{
	u64 idle_ns = slice_idle_ns(cd);

	if (!queue->icq || queue->prio == CFQ_PRIO_IDLE)
		return 0;
	if (idle_ns && queue->habits.think_ns <= idle_ns &&
	    !slice_over(cd, queue, now) &&
	    (queue->load == CFQ_SYNC_IDLE || !queue_tree(queue)->nr))
		return idle_ns;
	idle_ns = ms_to_ns(READ_ONCE(cd->tunables.group_idle));
	if (queue->group->nr_busy == 1 && queue->habits.think_ns <= idle_ns)
		return idle_ns;
	return 0;
}

/**
 * cfq_stop_idling() - there is no reason to wait any more
 * @cd: disk; its lock is held
 */
void cfq_stop_idling(struct cfq_disk *cd)
{
	if (!cd->idling)
		return;
	cd->idling = false;
	/* If it is about to expire it finds @idling false, and runs the queue. */
	hrtimer_try_to_cancel(&cd->timer);
}

/**
 * cfq_run_later() - have the queue run soon, from where that is not allowed
 * @cd: disk; its lock is held
 */
void cfq_run_later(struct cfq_disk *cd)
{
	hrtimer_start(&cd->timer, 0, HRTIMER_MODE_REL);
}

/* ---- queues ----------------------------------------------------------- */

static void activate(struct cfq_disk *cd, struct cfq_queue *queue)
{
	tree_del(queue);
	queue->refs++;
	queue->slice.start = 0;
	queue->slice.rqs = 0;
	queue->slice.fifo_check = true;
	cd->active = queue;
}

/* It has no requests, and nobody waits for one. */
static void not_busy(struct cfq_disk *cd, struct cfq_queue *queue, u64 now)
{
	queue->busy = false;
	queue->slice.left_ns = 0;
	cd->nr_busy--;
	if (!--queue->group->nr_busy)
		group_leave(cd, queue->group, now);
}

/**
 * cfq_expire() - end the turn of the active queue
 * @cd: disk; its lock is held
 * @now: ns
 * @taken: its slice was not over, and it would have used the rest
 *
 * The group in service may be left without a queue, or be the one no more.
 */
void cfq_expire(struct cfq_disk *cd, u64 now, bool taken)
{
	struct cfq_queue *queue = cd->active;
	u64 used, slice;

	lockdep_assert_held(&cd->disk.lock);

	cfq_stop_idling(cd);
	if (queue->slice.start) {
		used = cfq_since(now, queue->slice.start);
		slice = slice_ns(cd, queue);
		queue->group->load_left -= used;
		if (taken && used < slice)
			queue->slice.left_ns = slice - used;
	}
	cd->active = NULL;
	if (queue->queued)
		tree_add(cd, queue, now);
	else
		not_busy(cd, queue, now);
	cfq_queue_put(cd, queue);
}

/* Whether @queue is served at once, before the turn of the active one ends. */
static bool preempts(const struct cfq_disk *cd, const struct cfq_queue *queue)
{
	const struct cfq_queue *active = cd->active;

	/* In other groups weights decide, and not priorities. */
	if (!active || active->group != queue->group)
		return false;
	if (cfq_class_of(queue) != cfq_class_of(active))
		return cfq_class_of(queue) < cfq_class_of(active);
	return queue->sync && !active->sync;
}

/**
 * cfq_queue_ready() - a queue has a request
 * @cd: disk; its lock is held
 * @queue: queue
 * @now: ns
 */
void cfq_queue_ready(struct cfq_disk *cd, struct cfq_queue *queue, u64 now)
{
	struct cfq_group *group = queue->group;

	if (queue->busy) {
		if (queue == cd->active)
			cfq_stop_idling(cd);
		return;
	}
	queue->busy = true;
	cd->nr_busy++;
	if (!group->nr_busy++)
		group_join(cd, group);
	tree_add(cd, queue, now);
	if (!preempts(cd, queue))
		return;
	/* It is the group's turn, and stays so. */
	cfq_expire(cd, now, true);
	group->class = cfq_class_of(queue);
	group->load = queue->load;
	group->load_left = 0;
	activate(cd, queue);
}

/* ---- selection -------------------------------------------------------- */

/* Which load of @class: that of the queue that has waited longest. */
static void choose_load(struct cfq_disk *cd, struct cfq_group *group,
			enum cfq_class class)
{
	struct cfq_queue *first, *best = NULL;
	unsigned int load;
	u64 turn;

	for (load = 0; load < CFQ_NR_LOADS; load++) {
		first = tree_first(&group->tree[class][load]);
		if (first && (!best || cfq_before(first->key, best->key)))
			best = first;
	}

	group->class = class;
	group->load = best->load;
	turn = mul_div(group_slice(cd, group),
		       group->tree[class][best->load].nr,
		       class_nr(group, class));
	/* Asynchronous requests are worth less in proportion to their slice. */
	if (best->load == CFQ_ASYNC)
		turn = mul_div(turn, READ_ONCE(cd->tunables.slice_async),
			       READ_ONCE(cd->tunables.slice_sync));
	group->load_left = max(turn, 2 * slice_idle_ns(cd));
}

/* Make the queue whose turn it is the active one. */
static struct cfq_queue *next_queue(struct cfq_disk *cd, u64 now)
{
	struct cfq_group *group;
	struct rb_node *node;
	unsigned int class = 0;

	if (cd->turn.group && group_turn_over(cd, now))
		group_expire(cd, now);
	if (!cd->turn.group) {
		node = rb_first_cached(&cd->groups);
		if (!node)
			return NULL;
		group_begin(cd, rb_entry(node, struct cfq_group, node));
	}
	group = cd->turn.group;

	while (!class_nr(group, class))
		class++;
	if (class != group->class || group->load_left <= 0 ||
	    !group->tree[class][group->load].nr)
		choose_load(cd, group, class);

	activate(cd, tree_first(&group->tree[class][group->load]));
	return cd->active;
}

/* Whether the device may have one more request of @queue now. */
static bool may_send(const struct cfq_disk *cd, const struct cfq_queue *queue,
		     u64 now)
{
	/* Both kinds at once would have the device decide between them. */
	if (queue->sync ? cd->in_device[false] && cfq_idle_ns(cd, queue, now) :
	    cd->in_device[true])
		return false;
	if (queue->prio == CFQ_PRIO_IDLE)
		return !queue->dispatched;
	if (queue->dispatched < READ_ONCE(cd->tunables.quantum))
		return true;
	/*
	 * Unless somebody suffers from it: others have requests here, or are about
	 * to, for their last ones are with the device.
	 */
	return cd->nr_busy == 1 && queue->dispatched ==
		cd->in_device[false] + cd->in_device[true];
}

/**
 * cfq_select() - the queue that may send a request now
 * @cd: disk; its lock is held
 * @now: ns
 *
 * Return: a queue that has one, or NULL: nothing may be sent until a request
 * comes, one ends, or the timer does.
 */
struct cfq_queue *cfq_select(struct cfq_disk *cd, u64 now)
{
	struct cfq_queue *queue = cd->active;

	lockdep_assert_held(&cd->disk.lock);

	if (queue) {
		if (!queue->queued && cfq_idle_ns(cd, queue, now) &&
		    (cd->idling || queue->group->dispatched))
			return NULL;
		if (!queue->queued || slice_over(cd, queue, now)) {
			cfq_expire(cd, now, false);
			queue = NULL;
		}
	}
	if (!queue)
		queue = next_queue(cd, now);
	if (!queue || !may_send(cd, queue, now))
		return NULL;
	return queue;
}
