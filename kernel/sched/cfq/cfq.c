// SPDX-License-Identifier: GPL-2.0-only
/*
 * cfq: completely fair queueing for blk-mq.
 *
 * CFQ divided a disk's *time* among processes and cgroups until Linux 5.0. This is a new
 * implementation of its published design (Documentation/block/cfq-iosched.txt, the studies P0 and
 * P1), to repeat studies of it. One process has the disk for a time slice, and its requests are
 * sent in the order of their sectors. That suits a rotational disk. A fast SSD loses throughput by
 * it, and each process waits for the slices of all other processes.
 *
 * Queues. A queue has the synchronous requests (reads, and writes that a task waits for) of one
 * process, cgroup and I/O priority; a process is an io context. Asynchronous requests have one
 * queue for each cgroup and priority, whichever process sent them. A queue has its requests by
 * sector and by arrival. It sends the nearest request ahead of the disk's last position. A request
 * behind the position precedes it if its distance is at most back_seek_max and, times
 * back_seek_penalty, less than the distance ahead. Once a slice, the oldest request goes first if
 * it is older than fifo_expire_(a)sync. At most quantum requests of a queue are in flight, unless
 * no other queue has requests, waiting or in flight.
 *
 * Turns (tree.c). Groups have turns by weight. In a group the classes RT, BE and IDLE are served in
 * this order, and in a class each queue has a slice by its level. While the process of an empty
 * queue is likely to send another request soon, the disk idles.
 *
 * Weights, shares, the lifetime of groups and the gate are isoblk_share's (share.c, gate.c).
 *
 * Gate. CFQ had a list of nr_requests requests for each cgroup. blk-mq has one set of tags for all
 * groups, and requests that wait for the turn of their group keep their tags. So the gate allows
 * all groups with requests equally many tags: a group needs its requests in its turn, however
 * rarely that comes. The device is not kept busy if there are fewer tags than groups times the
 * depth that it needs. Shares hold as long as each group has a tag.
 *
 * Differences from CFQ. Asynchronous requests have CFQ_ASYNC_PERCENT of the tags, so that a writer
 * does not take all, and have no limit beyond that and their turns. Cooperators, processes that
 * read one area in turn, do not share a queue. A group that becomes active begins at the vdisktime
 * of the other groups; CFQ put it behind them.
 *
 * Locks. The disk lock (disk->lock of isoblk_share) guards everything, with interrupts off. It
 * nests inside queue_lock, and inside an io context's lock, under which the kernel calls
 * cfq_exit_icq(). Running a hardware queue may take queue_lock, so hardware queues are run without
 * the disk lock, or by the timer.
 *
 * Lifetime. A request has a reference to its group's blkg, to its io context and to its queue. A
 * queue is linked, and can be found, until its process exits or its group is freed. The active
 * queue may have no request and then holds no reference to its group: cfq_group_exit() expires it.
 * When the elevator exits there are no requests; the kernel first unlinks the io contexts, then
 * frees the groups.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>

#include <trace/events/block.h>

#include "cfq/cfq.h"
#include "cfq/queue.h"
#include "cfq/show.h"
#include "cfq/tree.h"
#include "share/gate.h"
#include "share/policy.h"
#include "share/sleep.h"
#include "share/stat.h"

/* Percentage of the tags that asynchronous requests may have. */
#define CFQ_ASYNC_PERCENT	75

/* A device with a larger queue depth reorders its requests by itself. */
#define CFQ_SERIAL_DEPTH_MAX	4

/* Sectors (400 KiB) beyond which the distance to the previous request counts as a seek. */
#define CFQ_SEEK_SECTORS	800

/* The mean think time gives its newest sample a weight of 1/8. */
#define CFQ_THINK_SHIFT	3

/* Longest think time that is counted: a long absence must not outweigh the samples after it. */
#define CFQ_THINK_MAX_NS	NSEC_PER_SEC

/* Interval between calls of isoblk_gate_tick(), which happen on dispatch. */
#define CFQ_GATE_TICK_NS	(5 * NSEC_PER_MSEC)

/* CFQ's defaults. cfq_init() sets slice_idle to 0 for a disk that is not rotational. */
static const struct cfq_tunables cfq_defaults = {
	.quantum		= 8,
	.fifo_expire_sync	= 125,
	.fifo_expire_async	= 250,
	.back_seek_max		= 16 * 1024,
	.back_seek_penalty	= 2,
	.slice_sync		= 100,
	.slice_async		= 40,
	.slice_async_rq		= 2,
	.slice_idle		= 8,
	.group_idle		= 8,
	.low_latency		= 1,
	.target_latency		= 300,
};

/*
 * State of a request: rq->elv.icq is its process, with a reference to the io context. From
 * insertion on elv.priv[0] is its queue, with references to the queue and to the blkg of its group.
 * elv.priv[1] packs, under the disk lock:
 */
#define CFQ_RQ_IN_FLIGHT	BIT(0)	/* the driver has it */
#define CFQ_RQ_CHARGED		BIT(1)	/* its group is charged the sectors in the upper half */
#define CFQ_RQ_REFUNDED		BIT(2)	/* the charge was taken back at requeue */
#define CFQ_RQ_SECTORS_SHIFT	32	/* upper half: sectors charged */

static_assert(BITS_PER_LONG == 64);

static struct cfq_queue *cfq_rq_queue(const struct request *rq)
{
	return rq->elv.priv[0];
}

static unsigned long cfq_rq_state(const struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static void cfq_rq_set_state(struct request *rq, unsigned long state)
{
	rq->elv.priv[1] = (void *)state;
}

/* The part of @rq's group, on its hardware queue, that counts its tag at the gate. */
static struct isoblk_gq *cfq_rq_gq(const struct request *rq)
{
	const struct isoblk_hq *hq = rq->mq_hctx->sched_data;

	return cfq_rq_queue(rq)->group->group->gq[hq->index];
}

/* ---- accounting ------------------------------------------------------- */

static void cfq_account(struct request *rq, unsigned int sectors, int sign)
{
	isoblk_account_bypassed(cfq_rq_queue(rq)->group->group, rq, sectors, sign);
}

static void cfq_charge(struct request *rq)
{
	cfq_rq_set_state(rq, CFQ_RQ_IN_FLIGHT | CFQ_RQ_CHARGED |
		     (unsigned long)blk_rq_sectors(rq) << CFQ_RQ_SECTORS_SHIFT);
	cfq_account(rq, blk_rq_sectors(rq), 1);
}

/* Take the charge back at requeue. The size may be smaller since: a part may have completed. */
static void cfq_refund(struct request *rq)
{
	if (!(cfq_rq_state(rq) & CFQ_RQ_CHARGED))
		return;
	cfq_rq_set_state(rq, CFQ_RQ_REFUNDED |
		     (unsigned long)blk_rq_sectors(rq) << CFQ_RQ_SECTORS_SHIFT);
	cfq_account(rq, blk_rq_sectors(rq), -1);
}

static void cfq_stat(struct isoblk_group *group, struct seq_file *s)
{
	seq_printf(s, " isoblk.time_us=%llu",
		   div_u64(READ_ONCE(cfq_group_of(group)->time_ns),
			   NSEC_PER_USEC));
}

/* ---- waiting requests ------------------------------------------------- */

static void cfq_update_think_time(struct cfq_queue *queue, u64 now)
{
	u64 think_ns;

	/* With other requests waiting or in flight the interval is not a think time. */
	if (queue->queued || queue->dispatched || !queue->habits.last_done_ns)
		return;
	think_ns = min(cfq_since(now, queue->habits.last_done_ns), CFQ_THINK_MAX_NS);
	queue->habits.think_ns -= queue->habits.think_ns >> CFQ_THINK_SHIFT;
	queue->habits.think_ns += think_ns >> CFQ_THINK_SHIFT;
}

static void cfq_update_seek_history(struct cfq_queue *queue, const struct request *rq)
{
	s64 distance = blk_rq_pos(rq) - queue->habits.last_end;

	queue->habits.seek_history = queue->habits.seek_history << 1 |
		(queue->habits.last_end && abs(distance) > CFQ_SEEK_SECTORS);
	queue->habits.last_end = blk_rq_pos(rq) + blk_rq_sectors(rq);
}

static void cfq_add_request(struct cfq_disk *cd, struct cfq_queue *queue,
			    struct request *rq, u64 now)
{
	unsigned int ms = queue->sync ?
		READ_ONCE(cd->tunables.fifo_expire_sync) :
		READ_ONCE(cd->tunables.fifo_expire_async);

	cfq_update_think_time(queue, now);
	cfq_update_seek_history(queue, rq);
	rq->fifo_time = now + (u64)ms * NSEC_PER_MSEC;
	list_add_tail(&rq->queuelist, &queue->fifo);
	elv_rb_add(&queue->sorted, rq);
	queue->queued++;
	WRITE_ONCE(cd->queued, cd->queued + 1);
	cfq_set_busy(cd, queue, now);
}

static void cfq_del_request(struct cfq_disk *cd, struct request *rq)
{
	struct request_queue *q = cd->disk.q;
	struct cfq_queue *queue = cfq_rq_queue(rq);

	elv_rqhash_del(q, rq);
	if (q->last_merge == rq)
		q->last_merge = NULL;
	list_del_init(&rq->queuelist);
	elv_rb_del(&queue->sorted, rq);
	queue->queued--;
	WRITE_ONCE(cd->queued, cd->queued - 1);
}

/* The request of @queue that is nearest to the disk's last position. */
static struct request *cfq_find_nearest(const struct cfq_disk *cd,
					const struct cfq_queue *queue)
{
	u64 most = 2ULL * READ_ONCE(cd->tunables.back_seek_max);
	struct request *rq, *ahead = NULL, *behind = NULL;
	struct rb_node *node = queue->sorted.rb_node;
	u64 back;

	while (node) {
		rq = rb_entry_rq(node);
		if (blk_rq_pos(rq) >= cd->last_position) {
			ahead = rq;
			node = node->rb_left;
		} else {
			behind = rq;
			node = node->rb_right;
		}
	}
	if (!behind)
		return ahead;

	back = cd->last_position - blk_rq_pos(behind);
	if (back <= most &&
	    (!ahead || back * READ_ONCE(cd->tunables.back_seek_penalty) <
	     blk_rq_pos(ahead) - cd->last_position))
		return behind;
	/* Too far behind: take the nearest ahead, or wrap to the lowest sector. */
	return ahead ?: rb_entry_rq(rb_first(&queue->sorted));
}

static struct request *cfq_choose_request(struct cfq_disk *cd,
					  struct cfq_queue *queue, u64 now)
{
	struct request *rq = rq_entry_fifo(queue->fifo.next);

	if (queue->slice.may_check_fifo) {
		queue->slice.may_check_fifo = false;
		if (!cfq_before(now, rq->fifo_time))
			return rq;
	}
	return cfq_find_nearest(cd, queue);
}

/* ---- requests in flight ------------------------------------------------ */

static void cfq_activate_request(struct cfq_disk *cd, struct request *rq)
{
	struct cfq_queue *queue = cfq_rq_queue(rq);

	queue->dispatched++;
	queue->group->dispatched++;
	cd->in_flight[queue->sync]++;
	cd->last_position = blk_rq_pos(rq) + blk_rq_sectors(rq);
	cfq_charge(rq);
}

/* @rq is no longer in flight. Return: the hardware queues are to be run, without the lock. */
static bool cfq_deactivate_request(struct cfq_disk *cd, struct request *rq)
{
	struct cfq_queue *queue = cfq_rq_queue(rq), *active = cd->active;
	struct cfq_group *group = queue->group;
	u64 idle_ns, now;

	if (!(cfq_rq_state(rq) & CFQ_RQ_IN_FLIGHT))
		return false;
	cfq_rq_set_state(rq, cfq_rq_state(rq) & ~CFQ_RQ_IN_FLIGHT);
	now = blk_time_get_ns();
	queue->dispatched--;
	group->dispatched--;
	cd->in_flight[queue->sync]--;
	queue->habits.last_done_ns = now;
	if (cd->turn.group == group)
		cd->turn.has_completion = true;

	if (active && !active->queued && active->group == group &&
	    !group->dispatched && !cd->idling) {
		idle_ns = cfq_idle_ns(cd, active, now);
		if (idle_ns) {
			cd->idling = true;
			hrtimer_start(&cd->timer, idle_ns, HRTIMER_MODE_REL);
		}
	}
	if (cd->idling || !cd->blocked)
		return false;
	WRITE_ONCE(cd->blocked, false);
	return cd->queued;
}

static enum hrtimer_restart cfq_timer(struct hrtimer *timer)
{
	struct cfq_disk *cd = container_of(timer, struct cfq_disk, timer);
	unsigned long flags;
	bool run;

	spin_lock_irqsave(&cd->disk.lock, flags);
	if (cd->idling)
		cfq_expire_active_queue(cd, ktime_get_ns(), false);
	WRITE_ONCE(cd->blocked, false);
	run = cd->queued;
	spin_unlock_irqrestore(&cd->disk.lock, flags);

	if (run)
		blk_mq_run_hw_queues(cd->disk.q, true);
	return HRTIMER_NORESTART;
}

static struct request *cfq_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct cfq_disk *cd = q_to_cfq(hctx->queue);
	u64 now = blk_time_get_ns();
	struct cfq_queue *queue;
	struct request *rq;

	spin_lock_irq(&cd->disk.lock);
	if (cfq_since(now, cd->gate_ticked_ns) >= CFQ_GATE_TICK_NS) {
		cd->gate_ticked_ns = now;
		isoblk_gate_tick(&cd->disk);
	}
	rq = list_first_entry_or_null(&cd->urgent, struct request, queuelist);
	if (rq) {
		list_del_init(&rq->queuelist);
		cfq_activate_request(cd, rq);
		goto unlock;
	}

	queue = cfq_select_queue(cd, now);
	if (!queue) {
		WRITE_ONCE(cd->blocked, true);
		goto unlock;
	}
	if (!queue->slice.start_ns)
		queue->slice.start_ns = now;
	if (!cd->turn.start_ns)
		cd->turn.start_ns = now;
	rq = cfq_choose_request(cd, queue, now);
	cfq_del_request(cd, rq);
	queue->slice.rqs++;
	cd->turn.rqs++;
	cfq_activate_request(cd, rq);
unlock:
	spin_unlock_irq(&cd->disk.lock);
	return rq;
}

static bool cfq_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct cfq_disk *cd = q_to_cfq(hctx->queue);

	return !list_empty_careful(&cd->urgent) ||
		(READ_ONCE(cd->queued) && !READ_ONCE(cd->blocked));
}

/* ---- merging, insertion, completion ------------------------------------ */

static void cfq_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	isoblk_limit_depth(opf, data);
	if (!op_is_sync(opf))
		data->shallow_depth = max(data->q->nr_requests *
					  CFQ_ASYNC_PERCENT / 100, 1UL);
}

/* Asynchronous requests may be limited to any number of tags: see cfq_limit_depth(). */
static void cfq_update_depth(struct request_queue *q)
{
	isoblk_depth_updated(q);
	isoblk_set_min_shallow_depth(q, 1);
}

static bool cfq_bio_merge(struct request_queue *q, struct bio *bio,
			  unsigned int nr_segs)
{
	struct isoblk_group *common = isoblk_bio_group(bio);
	struct cfq_disk *cd = q_to_cfq(q);
	struct io_cq *icq = NULL;
	struct request *free = NULL;
	struct cfq_group *group;
	bool merged;

	/*
	 * The icq outlives the lookup: the current task has the io context and keeps the elevator.
	 */
	if (current->io_context) {
		spin_lock_irq(&q->queue_lock);
		icq = ioc_lookup_icq(q);
		spin_unlock_irq(&q->queue_lock);
	}

	spin_lock_irq(&cd->disk.lock);
	group = cfq_group_of(common);
	cd->bio_queue = cfq_queue_find(to_icq(icq), group,
				       op_is_sync(bio->bi_opf),
				       cfq_prio(bio->bi_ioprio));
	merged = cd->bio_queue &&
		blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	spin_unlock_irq(&cd->disk.lock);

	if (free)
		blk_mq_free_request(free);
	return merged ||
		!isoblk_gate_admit_or_hold(isoblk_group_map_gq(common, bio->bi_opf), bio);
}

/* Called under the disk lock, from cfq_bio_merge(). */
static bool cfq_allow_merge(struct request_queue *q, struct request *rq,
			    struct bio *bio)
{
	return cfq_rq_queue(rq) == q_to_cfq(q)->bio_queue;
}

static int cfq_request_merge(struct request_queue *q, struct request **found,
			     struct bio *bio)
{
	struct request *rq;

	rq = elv_rb_find(&q_to_cfq(q)->bio_queue->sorted, bio_end_sector(bio));
	if (!rq || !elv_bio_merge_ok(rq, bio))
		return ELEVATOR_NO_MERGE;
	*found = rq;
	return blk_discard_mergable(rq) ? ELEVATOR_DISCARD_MERGE :
		ELEVATOR_FRONT_MERGE;
}

/* Called under the disk lock; a front merge has moved the first sector of @rq. */
static void cfq_request_merged(struct request_queue *q, struct request *rq,
			       enum elv_merge type)
{
	struct cfq_queue *queue = cfq_rq_queue(rq);

	if (type != ELEVATOR_FRONT_MERGE)
		return;
	elv_rb_del(&queue->sorted, rq);
	elv_rb_add(&queue->sorted, rq);
}

/* Called under the disk lock; @next, of the same queue, has become part of @rq. */
static void cfq_requests_merged(struct request_queue *q, struct request *rq,
				struct request *next)
{
	if (cfq_before(next->fifo_time, rq->fifo_time)) {
		list_move(&rq->queuelist, &next->queuelist);
		rq->fifo_time = next->fifo_time;
	}
	cfq_del_request(q_to_cfq(q), next);
	/* @rq is charged for the sectors of @next. */
	cfq_rq_set_state(next, 0);
}

static void cfq_prepare_request(struct request *rq)
{
	rq->elv.icq = ioc_find_get_icq(rq->q);
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
}

/* On its first insertion a request finds its queue by its bio. */
static void cfq_attach_request(struct cfq_disk *cd, struct request *rq)
{
	struct isoblk_group *group = isoblk_bio_group(rq->bio);
	struct cfq_queue *queue;

	queue = cfq_queue_get(cd, to_icq(rq->elv.icq), cfq_group_of(group),
			      rq_is_sync(rq), cfq_prio(req_get_ioprio(rq)));
	queue->refs++;
	blkg_get(pd_to_blkg(&group->pd));
	rq->elv.priv[0] = queue;
	isoblk_gate_count_tag(cfq_rq_gq(rq));
}

/*
 * Insert one request. Its bios have tried to merge one by one already. A merge of whole requests
 * would not check that both are of one queue.
 */
static void cfq_insert_request(struct cfq_disk *cd, struct request *rq, bool at_head,
			       u64 now)
{
	struct request_queue *q = cd->disk.q;

	if (!cfq_rq_queue(rq))
		cfq_attach_request(cd, rq);
	trace_block_rq_insert(rq);
	if (at_head) {
		list_add(&rq->queuelist, &cd->urgent);
		return;
	}
	cfq_add_request(cd, cfq_rq_queue(rq), rq, now);
	if (rq_mergeable(rq)) {
		elv_rqhash_add(q, rq);
		if (!q->last_merge)
			q->last_merge = rq;
	}
}

static void cfq_insert_requests(struct blk_mq_hw_ctx *hctx,
				struct list_head *list, blk_insert_t flags)
{
	struct cfq_disk *cd = q_to_cfq(hctx->queue);
	u64 now = blk_time_get_ns();
	struct request *rq, *next;

	spin_lock_irq(&cd->disk.lock);
	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		cfq_insert_request(cd, rq, flags & BLK_MQ_INSERT_AT_HEAD, now);
	}
	/* The kernel runs the hardware queue after this, and cfq_select_queue() decides anew. */
	WRITE_ONCE(cd->blocked, false);
	spin_unlock_irq(&cd->disk.lock);
}

/* The driver gives @rq back. It is inserted again, or issued without the elevator. */
static void cfq_requeue_request(struct request *rq)
{
	struct cfq_disk *cd = q_to_cfq(rq->q);
	unsigned long flags;
	bool run;

	if (!cfq_rq_queue(rq))
		return;
	spin_lock_irqsave(&cd->disk.lock, flags);
	run = cfq_deactivate_request(cd, rq);
	cfq_refund(rq);
	spin_unlock_irqrestore(&cd->disk.lock, flags);
	if (run)
		blk_mq_run_hw_queues(rq->q, true);
}

static void cfq_finish_request(struct request *rq)
{
	struct cfq_disk *cd = q_to_cfq(rq->q);
	struct cfq_queue *queue = cfq_rq_queue(rq);
	struct blkcg_gq *blkg;
	unsigned long flags;
	bool run;

	if (queue) {
		isoblk_gate_release_tag(cfq_rq_gq(rq));
		blkg = pd_to_blkg(&queue->group->group->pd);
		spin_lock_irqsave(&cd->disk.lock, flags);
		run = cfq_deactivate_request(cd, rq);
		if (cfq_rq_state(rq) & CFQ_RQ_REFUNDED)
			cfq_account(rq, cfq_rq_state(rq) >> CFQ_RQ_SECTORS_SHIFT, 1);
		cfq_queue_put(cd, queue);
		spin_unlock_irqrestore(&cd->disk.lock, flags);
		blkg_put(blkg);
		rq->elv.priv[0] = NULL;
		if (run)
			blk_mq_run_hw_queues(rq->q, true);
	} else {
		isoblk_gate_release_unused(rq);
	}
	if (rq->elv.icq) {
		put_io_context(rq->elv.icq->ioc);
		rq->elv.icq = NULL;
	}
}

/* ---- init, exit --------------------------------------------------------- */

static const struct isoblk_ops cfq_ops = {
	.has_equal_quotas	= true,
	.sender_sleeps	= true,
	.own_size	= sizeof(struct cfq_group),
	.group_init	= cfq_group_init,
	.group_exit	= cfq_group_exit,
	.stat		= cfq_stat,
};

static int cfq_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct cfq_disk *cd;
	int ret;

	cd = kzalloc_node(sizeof(*cd), GFP_KERNEL, q->node);
	if (!cd)
		return -ENOMEM;
	cd->groups = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&cd->urgent);
	hrtimer_setup(&cd->timer, cfq_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	cd->has_queueing = q->tag_set->queue_depth > CFQ_SERIAL_DEPTH_MAX;
	cd->rotational = q->limits.features & BLK_FEAT_ROTATIONAL;
	cd->tunables = cfq_defaults;
	/* As CFQ since 4.2: without idling an SSD's requests are charged, not their time. */
	if (!cd->rotational)
		cd->tunables.slice_idle = 0;

	ret = isoblk_groups_init(&cd->disk, q, eq, &cfq_ops);
	if (ret) {
		kfree(cd);
		return ret;
	}
	cfq_update_depth(q);
	/* Any hardware queue dispatches for all: requests are in queues of cfq, not of an hctx. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	return 0;
}

ISOBLK_ELEVATOR_HOOKS(cfq, cfq_init, cfq_update_depth)

static void cfq_exit_sched(struct elevator_queue *eq)
{
	struct cfq_disk *cd = eq->elevator_data;

	isoblk_groups_exit(&cd->disk, eq);
	/* cfq_group_exit() may have started the timer. */
	hrtimer_cancel(&cd->timer);
	kfree(cd);
}

static struct elevator_type cfq = {
	.ops = {
		.init_sched		= cfq_init_sched,
		.exit_sched		= cfq_exit_sched,
		.depth_updated		= cfq_depth_updated,
		.init_hctx		= isoblk_init_hctx,
		.exit_hctx		= isoblk_exit_hctx,
		.limit_depth		= cfq_limit_depth,
		.allow_merge		= cfq_allow_merge,
		.bio_merge		= cfq_bio_merge,
		.request_merge		= cfq_request_merge,
		.request_merged		= cfq_request_merged,
		.requests_merged	= cfq_requests_merged,
		.former_request		= elv_rb_former_request,
		.next_request		= elv_rb_latter_request,
		.prepare_request	= cfq_prepare_request,
		.insert_requests	= cfq_insert_requests,
		.dispatch_request	= cfq_dispatch_request,
		.has_work		= cfq_has_work,
		.requeue_request	= cfq_requeue_request,
		.finish_request		= cfq_finish_request,
		.init_icq		= cfq_init_icq,
		.exit_icq		= cfq_exit_icq,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = cfq_debugfs,
#endif
	.icq_size = sizeof(struct cfq_icq),
	.icq_align = __alignof__(struct cfq_icq),
	.elevator_attrs = cfq_attrs,
	.elevator_name = "cfq",
	.elevator_owner = THIS_MODULE,
};

static int __init cfq_module_init(void)
{
	int ret = cfq_queues_init();

	if (ret)
		return ret;
	ret = elv_register(&cfq);
	if (ret)
		cfq_queues_exit();
	return ret;
}

static void __exit cfq_module_exit(void)
{
	elv_unregister(&cfq);
	cfq_queues_exit();
}

module_init(cfq_module_init);
module_exit(cfq_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Completely fair queueing, for blk-mq");
