// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which queue is served: groups by vdisktime, and in a group classes, workloads and queues.
 *
 * Each of three levels has turns of its own. A turn or slice begins with the first request that is
 * sent in it.
 *
 *  - Groups. The group with the least vdisktime is served for target_latency times its share. Then
 *    its vdisktime grows by the time over its share, so that the time of groups is in proportion to
 *    their weights. A group that becomes active has its own vdisktime or that at which the group in
 *    service began, whichever is larger (start-time fair queueing). So it saves up no service while
 *    it is inactive.
 *  - Classes and workloads. In a group the highest class with requests is served: RT may starve BE,
 *    and BE may starve IDLE. In the class, the workload (enum cfq_workload) of the queue with the
 *    least key is served. Its turn is the group's turn times its part of the queues.
 *  - Queues. In a workload the queue with the least key is served for a slice. The key is the time
 *    at which the queue entered the tree, plus a delay for a lower level.
 *
 * A slice ends early in two cases. A queue of the same group that becomes busy preempts the active
 * one if its class is higher, or if the class is equal, it is synchronous and the active one is
 * not. An empty queue is expired unless the disk idles for it, and idling is the essence of CFQ
 * (cfq_idle_ns()). The disk idles for slice_idle if the queue's process sends its next request soon
 * after a completion. It idles for group_idle if the queue is the last of its group, so that the
 * group keeps its turn.
 */
#include <linux/module.h>

#include "cfq/cfq.h"
#include "cfq/queue.h"
#include "cfq/tree.h"
#include "muldiv.h"
#include "share/gate.h"
#include "share/share.h"

/*
 * Least charge for a turn in which no request completed: such a turn is too short to show its cost.
 */
#define CFQ_CHARGE_MIN_NS		NSEC_PER_MSEC

/*
 * Charge for a request in IOPS mode. It is about the time that a request takes, so that the mode
 * may change while groups wait.
 */
#define CFQ_CHARGE_REQUEST_NS		(100ULL * NSEC_PER_USEC)

/* A process seeks if more of its last 32 requests than this were seeks. */
#define CFQ_SEEKS_MAX	4

static u64 cfq_ms_to_ns(unsigned int ms)
{
	return (u64)ms * NSEC_PER_MSEC;
}

static u64 cfq_slice_idle_ns(const struct cfq_disk *cd)
{
	return cfq_ms_to_ns(READ_ONCE(cd->tunables.slice_idle));
}

/* ---- service trees ---------------------------------------------------- */

static struct cfq_service_tree *cfq_queue_tree(const struct cfq_queue *queue)
{
	return &queue->group->service_tree[cfq_class_of(queue)][queue->workload];
}

static bool cfq_queue_less(struct rb_node *a, const struct rb_node *b)
{
	return cfq_before(rb_entry(a, struct cfq_queue, node)->key,
			  rb_entry(b, struct cfq_queue, node)->key);
}

static bool cfq_group_less(struct rb_node *a, const struct rb_node *b)
{
	return cfq_before(rb_entry(a, struct cfq_group, node)->vdisktime,
			  rb_entry(b, struct cfq_group, node)->vdisktime);
}

static struct cfq_queue *cfq_tree_first(const struct cfq_service_tree *tree)
{
	struct rb_node *node = rb_first_cached(&tree->root);

	return node ? rb_entry(node, struct cfq_queue, node) : NULL;
}

static unsigned int cfq_class_nr_queues(const struct cfq_group *group,
					enum cfq_class class)
{
	unsigned int load, nr = 0;

	for (load = 0; load < CFQ_NR_WORKLOADS; load++)
		nr += group->service_tree[class][load].nr;
	return nr;
}

/* The slice of @queue's level, before it is fitted into the turn of the group. */
static u64 cfq_base_slice_ns(const struct cfq_disk *cd, const struct cfq_queue *queue)
{
	unsigned int ms = queue->sync ? READ_ONCE(cd->tunables.slice_sync) :
		READ_ONCE(cd->tunables.slice_async);

	return cfq_scale_slice(cfq_ms_to_ns(ms), queue->prio);
}

/*
 * Add @queue to its service tree. For each queue of its class a lower level is due later, by the
 * difference to the longest slice.
 */
static void cfq_tree_add(struct cfq_disk *cd, struct cfq_queue *queue, u64 now)
{
	u64 first, slice = cfq_base_slice_ns(cd, queue);
	struct cfq_service_tree *tree;

	if (!queue->sync)
		queue->workload = CFQ_ASYNC;
	else if (cfq_has_idle_window(cd, queue))
		queue->workload = CFQ_SYNC_IDLE;
	else
		queue->workload = CFQ_SYNC_NOIDLE;

	first = cfq_scale_slice(cfq_ms_to_ns(READ_ONCE(cd->tunables.slice_sync)),
				0);
	queue->key = now - queue->slice.resid_ns;
	if (first > slice)
		queue->key += cfq_class_nr_queues(queue->group, cfq_class_of(queue)) *
			(first - slice);
	queue->slice.resid_ns = 0;

	tree = cfq_queue_tree(queue);
	rb_add_cached(&queue->node, &tree->root, cfq_queue_less);
	tree->nr++;
}

static void cfq_tree_del(struct cfq_queue *queue)
{
	struct cfq_service_tree *tree = cfq_queue_tree(queue);

	rb_erase_cached(&queue->node, &tree->root);
	tree->nr--;
}

/* ---- groups ---------------------------------------------------------- */

/*
 * IOPS mode: without idling requests of several queues are in flight, and time cannot be attributed
 * to one group.
 */
static bool cfq_is_iops_mode(const struct cfq_disk *cd)
{
	return cd->has_queueing && !READ_ONCE(cd->tunables.slice_idle);
}

static u64 cfq_group_slice_ns(const struct cfq_disk *cd, struct cfq_group *group)
{
	return mul_u64_u64_shr(cfq_ms_to_ns(READ_ONCE(cd->tunables.target_latency)),
			       isoblk_group_share(group->group),
			       ISOBLK_SHARE_SHIFT);
}

static bool cfq_group_turn_is_over(const struct cfq_disk *cd, u64 now)
{
	return cd->turn.start_ns && cfq_since(now, cd->turn.start_ns) >=
		cfq_group_slice_ns(cd, cd->turn.group);
}

/* End the turn of the group in service, and charge the group, which is active. */
static void cfq_group_expire(struct cfq_disk *cd, u64 now)
{
	struct cfq_group *group = cd->turn.group;
	u64 used, charge;

	if (cd->turn.start_ns) {
		used = cfq_since(now, cd->turn.start_ns);
		if (cfq_is_iops_mode(cd))
			charge = cd->turn.rqs * CFQ_CHARGE_REQUEST_NS;
		else if (cd->turn.has_completion)
			charge = used;
		else
			charge = max(used, CFQ_CHARGE_MIN_NS);
		group->vdisktime +=
			cfq_vdisktime(charge, isoblk_group_share(group->group));
		WRITE_ONCE(group->time_ns, group->time_ns + used);
	}
	cd->turn.group = NULL;
	if (group->nr_busy)
		rb_add_cached(&group->node, &cd->groups, cfq_group_less);
}

static void cfq_group_begin_turn(struct cfq_disk *cd, struct cfq_group *group)
{
	rb_erase_cached(&group->node, &cd->groups);
	if (cfq_before(cd->min_vdisktime, group->vdisktime))
		cd->min_vdisktime = group->vdisktime;
	cd->turn.group = group;
	cd->turn.start_ns = 0;
	cd->turn.rqs = 0;
	cd->turn.has_completion = false;
	isoblk_gate_set_served(group->group);
}

static void cfq_group_join(struct cfq_disk *cd, struct cfq_group *group)
{
	isoblk_group_activate(group->group);
	if (cfq_before(group->vdisktime, cd->min_vdisktime))
		group->vdisktime = cd->min_vdisktime;
	rb_add_cached(&group->node, &cd->groups, cfq_group_less);
}

static void cfq_group_leave(struct cfq_disk *cd, struct cfq_group *group, u64 now)
{
	if (cd->turn.group == group)
		cfq_group_expire(cd, now);
	else
		rb_erase_cached(&group->node, &cd->groups);
	isoblk_group_deactivate(group->group);
}

/* ---- idling ---------------------------------------------------------- */

/**
 * cfq_has_idle_window() - whether the disk may idle for a queue by itself
 * @cd: disk; its lock is held
 * @queue: synchronous
 *
 * It may if the process sends its next request soon, and nearby. An SSD that takes several requests
 * at a time gains nothing by idling.
 */
bool cfq_has_idle_window(const struct cfq_disk *cd, const struct cfq_queue *queue)
{
	u64 idle_ns = cfq_slice_idle_ns(cd);

	return idle_ns && queue->icq && queue->habits.think_ns <= idle_ns &&
		(cd->rotational || !cd->has_queueing) &&
		hweight32(queue->habits.seek_history) <= CFQ_SEEKS_MAX;
}

/*
 * The slice of the active queue. With low_latency all processes of the group shall have a slice in
 * its turn. Groups and queues come and go during a slice, so it is computed on each call.
 */
static u64 cfq_slice_ns(const struct cfq_disk *cd, const struct cfq_queue *queue)
{
	const struct cfq_tunables *t = &cd->tunables;
	const struct cfq_service_tree *tree = queue->group->service_tree[cfq_class_of(queue)];
	u64 slice = cfq_base_slice_ns(cd, queue);

	if (!queue->sync || !READ_ONCE(t->low_latency))
		return slice;
	return cfq_fit_slice(slice, 1 + tree[CFQ_SYNC_IDLE].nr +
			     tree[CFQ_SYNC_NOIDLE].nr,
			     cfq_ms_to_ns(READ_ONCE(t->slice_sync)),
			     cfq_group_slice_ns(cd, queue->group),
			     cfq_scale_slice(2 * cfq_slice_idle_ns(cd),
					     queue->prio));
}

static bool cfq_slice_is_over(const struct cfq_disk *cd, const struct cfq_queue *queue,
			      u64 now)
{
	if (!queue->slice.start_ns)
		return false;
	if (!queue->sync && queue->slice.rqs >=
	    cfq_async_limit(READ_ONCE(cd->tunables.slice_async_rq),
			    queue->prio))
		return true;
	return cfq_since(now, queue->slice.start_ns) >= cfq_slice_ns(cd, queue);
}

/**
 * cfq_idle_ns() - for how long the disk idles for the next request of a queue
 * @cd: disk; its lock is held
 * @queue: the active one, without waiting requests
 * @now: ns
 *
 * The disk idles for a queue that seeks only if the workload has no other queue: the queues that
 * seek are waited for together. It idles for the last queue of a group although its slice is over,
 * so that the group keeps its turn.
 *
 * Return: ns; 0: the disk does not idle.
 */
u64 cfq_idle_ns(const struct cfq_disk *cd, const struct cfq_queue *queue,
		u64 now)
{
	u64 idle_ns = cfq_slice_idle_ns(cd);

	if (!queue->icq || queue->prio == CFQ_PRIO_IDLE)
		return 0;
	if (idle_ns && queue->habits.think_ns <= idle_ns &&
	    !cfq_slice_is_over(cd, queue, now) &&
	    (queue->workload == CFQ_SYNC_IDLE || !cfq_queue_tree(queue)->nr))
		return idle_ns;
	idle_ns = cfq_ms_to_ns(READ_ONCE(cd->tunables.group_idle));
	if (queue->group->nr_busy == 1 && queue->habits.think_ns <= idle_ns)
		return idle_ns;
	return 0;
}

/**
 * cfq_stop_idling() - stop the timer that idles for the active queue
 * @cd: disk; its lock is held
 */
void cfq_stop_idling(struct cfq_disk *cd)
{
	if (!cd->idling)
		return;
	cd->idling = false;
	/* A timer that is about to expire finds @idling false, and runs the hardware queues. */
	hrtimer_try_to_cancel(&cd->timer);
}

/**
 * cfq_schedule_dispatch() - have the timer run the hardware queues
 * @cd: disk; its lock is held
 *
 * For callers that may not run them directly.
 */
void cfq_schedule_dispatch(struct cfq_disk *cd)
{
	hrtimer_start(&cd->timer, 0, HRTIMER_MODE_REL);
}

/* ---- queues ---------------------------------------------------------- */

static void cfq_set_active_queue(struct cfq_disk *cd, struct cfq_queue *queue)
{
	cfq_tree_del(queue);
	queue->refs++;
	queue->slice.start_ns = 0;
	queue->slice.rqs = 0;
	queue->slice.may_check_fifo = true;
	cd->active = queue;
}

/* @queue has no requests, and the disk does not idle for it. */
static void cfq_clear_busy(struct cfq_disk *cd, struct cfq_queue *queue, u64 now)
{
	queue->busy = false;
	queue->slice.resid_ns = 0;
	cd->nr_busy--;
	if (!--queue->group->nr_busy)
		cfq_group_leave(cd, queue->group, now);
}

/**
 * cfq_expire_active_queue() - end the slice of the active queue
 * @cd: disk; its lock is held
 * @now: ns
 * @taken: the queue was preempted, and keeps the rest of its slice
 *
 * The group in service may have no busy queue after this, and then its turn is over as well.
 */
void cfq_expire_active_queue(struct cfq_disk *cd, u64 now, bool taken)
{
	struct cfq_queue *queue = cd->active;
	u64 used, slice;

	lockdep_assert_held(&cd->disk.lock);

	cfq_stop_idling(cd);
	if (queue->slice.start_ns) {
		used = cfq_since(now, queue->slice.start_ns);
		slice = cfq_slice_ns(cd, queue);
		queue->group->workload_left_ns -= used;
		if (taken && used < slice)
			queue->slice.resid_ns = slice - used;
	}
	cd->active = NULL;
	if (queue->queued)
		cfq_tree_add(cd, queue, now);
	else
		cfq_clear_busy(cd, queue, now);
	cfq_queue_put(cd, queue);
}

/* Whether @queue is served at once, although the slice of the active queue is not over. */
static bool cfq_should_preempt(const struct cfq_disk *cd, const struct cfq_queue *queue)
{
	const struct cfq_queue *active = cd->active;

	/* Between groups weights decide, not priorities. */
	if (!active || active->group != queue->group)
		return false;
	if (cfq_class_of(queue) != cfq_class_of(active))
		return cfq_class_of(queue) < cfq_class_of(active);
	return queue->sync && !active->sync;
}

/**
 * cfq_set_busy() - a request was added to a queue
 * @cd: disk; its lock is held
 * @queue: queue
 * @now: ns
 */
void cfq_set_busy(struct cfq_disk *cd, struct cfq_queue *queue, u64 now)
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
		cfq_group_join(cd, group);
	cfq_tree_add(cd, queue, now);
	if (!cfq_should_preempt(cd, queue))
		return;
	/* The group stays in service: @queue keeps it busy. */
	cfq_expire_active_queue(cd, now, true);
	group->serving_class = cfq_class_of(queue);
	group->serving_workload = queue->workload;
	group->workload_left_ns = 0;
	cfq_set_active_queue(cd, queue);
}

/* ---- selection -------------------------------------------------------- */

/* Choose the workload of @class whose first queue has the least key. */
static void cfq_choose_workload(struct cfq_disk *cd, struct cfq_group *group,
				enum cfq_class class)
{
	struct cfq_queue *first, *best = NULL;
	unsigned int load;
	u64 turn;

	for (load = 0; load < CFQ_NR_WORKLOADS; load++) {
		first = cfq_tree_first(&group->service_tree[class][load]);
		if (first && (!best || cfq_before(first->key, best->key)))
			best = first;
	}

	group->serving_class = class;
	group->serving_workload = best->workload;
	turn = mul_div(cfq_group_slice_ns(cd, group),
		       group->service_tree[class][best->workload].nr,
		       cfq_class_nr_queues(group, class));
	/* The asynchronous workload has a turn in proportion to the slices. */
	if (best->workload == CFQ_ASYNC)
		turn = mul_div(turn, READ_ONCE(cd->tunables.slice_async),
			       READ_ONCE(cd->tunables.slice_sync));
	group->workload_left_ns = max(turn, 2 * cfq_slice_idle_ns(cd));
}

/* Make the queue that is due the active one. */
static struct cfq_queue *cfq_activate_next_queue(struct cfq_disk *cd, u64 now)
{
	const struct cfq_service_tree *tree;
	struct cfq_group *group;
	struct rb_node *node;
	unsigned int class = 0;

	if (cd->turn.group && cfq_group_turn_is_over(cd, now))
		cfq_group_expire(cd, now);
	if (!cd->turn.group) {
		node = rb_first_cached(&cd->groups);
		if (!node)
			return NULL;
		cfq_group_begin_turn(cd, rb_entry(node, struct cfq_group, node));
	}
	group = cd->turn.group;

	while (!cfq_class_nr_queues(group, class))
		class++;
	if (class != group->serving_class || group->workload_left_ns <= 0 ||
	    !group->service_tree[class][group->serving_workload].nr)
		cfq_choose_workload(cd, group, class);

	tree = &group->service_tree[class][group->serving_workload];
	cfq_set_active_queue(cd, cfq_tree_first(tree));
	return cd->active;
}

/* Whether one more request of @queue may be sent. */
static bool cfq_may_dispatch(const struct cfq_disk *cd, const struct cfq_queue *queue,
			     u64 now)
{
	/* With both kinds in flight the device would decide between them. */
	if (queue->sync ? cd->in_flight[false] && cfq_idle_ns(cd, queue, now) :
	    cd->in_flight[true])
		return false;
	if (queue->prio == CFQ_PRIO_IDLE)
		return !queue->dispatched;
	if (queue->dispatched < READ_ONCE(cd->tunables.quantum))
		return true;
	/*
	 * More than quantum are allowed while no other queue has requests: none waits, and none is
	 * in flight, after which the next one would come.
	 */
	return cd->nr_busy == 1 && queue->dispatched ==
		cd->in_flight[false] + cd->in_flight[true];
}

/**
 * cfq_select_queue() - find the queue that sends the next request
 * @cd: disk; its lock is held
 * @now: ns
 *
 * Return: a queue with a waiting request. NULL: none may be sent until a request arrives, a request
 * completes, or the timer expires.
 */
struct cfq_queue *cfq_select_queue(struct cfq_disk *cd, u64 now)
{
	struct cfq_queue *queue = cd->active;

	lockdep_assert_held(&cd->disk.lock);

	if (queue) {
		if (!queue->queued && cfq_idle_ns(cd, queue, now) &&
		    (cd->idling || queue->group->dispatched))
			return NULL;
		if (!queue->queued || cfq_slice_is_over(cd, queue, now)) {
			cfq_expire_active_queue(cd, now, false);
			queue = NULL;
		}
	}
	if (!queue)
		queue = cfq_activate_next_queue(cd, now);
	if (!queue || !cfq_may_dispatch(cd, queue, now))
		return NULL;
	return queue;
}
