// SPDX-License-Identifier: GPL-2.0-only
/*
 * cfq: completely fair queueing, for blk-mq.
 *
 * Linux had CFQ until 5.0; this is a new implementation of what was published
 * about it (Documentation/block/cfq-iosched.txt, and the studies P0 and P1), to
 * repeat studies of it. It divides the device's *time*: one process at a time has the
 * device to itself, for a slice, and its requests are sent in the order of
 * their sectors. That suits a disk that seeks. A fast device loses by it, and
 * whoever waits, waits for the slices of all others.
 *
 * Queues. The synchronous requests (reads, and writes that somebody waits for) of a
 * process, its io context that is, have a queue for each cgroup and I/O priority.
 * Asynchronous ones have one for each cgroup and priority, whoever sent them.
 * A queue has its requests by sector and by arrival. The next one is the nearest ahead
 * of the last one sent by anybody, or behind it, if it is not further than
 * back_seek_max and nearer than the one ahead though it counts back_seek_penalty
 * times; once a turn the oldest is taken first if it is older than
 * fifo_expire_(a)sync. At most quantum requests of a queue are with the device, unless no
 * other queue has any, here or there.
 *
 * Turns, which tree.c decides about: groups by weight, in a group the classes RT,
 * BE and IDLE, then queues for a slice by their level. An empty queue whose process
 * is likely to send another request at once is waited for, and the device idles.
 *
 * Weights, shares and the lifetime of groups are isoblk_share's (share.c), and so is
 * the gate (gate.c); it has no budget or depth here.
 *
 * The gate. CFQ had a list of nr_requests requests for every cgroup; blk-mq has one
 * set of tags for all, and a group whose requests wait for its turn holds theirs. So
 * the gate lets all groups that have requests hold equally many: a group needs
 * its requests in its turn, however seldom that comes. With fewer tags than groups
 * times what keeps the device busy, the device is not kept busy; shares hold as
 * long as every group has one.
 *
 * What is not as it was. Asynchronous requests get ASYNC_PERCENT of the tags, lest a
 * writer take all. Processes that read the same area in turn (cooperators) do not share a
 * queue. Asynchronous requests are not slowed down beyond what their turns say.
 * A group that comes back is served from where the others are; it was put
 * behind them.
 *
 * Locks. One lock a disk guards everything: disk->lock of isoblk_share, taken
 * with interrupts off. It is inside queue_lock and inside an io context's lock,
 * with which the kernel tells us that a process exits; running a hardware queue
 * may take queue_lock, so it is done without ours, or by the timer.
 *
 * Lifetime. A request holds a reference to its group's blkg, to its io context and
 * to its queue. A queue is linked (and so found again) until its process
 * exits or its group goes. The active queue may have no request, and then
 * nothing holds its group: it is expired when the group is freed. When the
 * elevator goes there are no requests; the kernel breaks the ties to io contexts
 * first, and then frees the groups.
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

/* Of the tags, for asynchronous requests: percent. */
#define ASYNC_PERCENT		75

/* A device that takes more at once has an order of its own. */
#define QUEUEING_DEPTH		4

/* A request so far from the one before costs a seek: sectors, 400 KiB. */
#define FAR_SECTORS		800

/* Of the mean think time, what a new one counts: 1/8. */
#define THINK_SHIFT		3

/* A process may have been away for long; that is as bad as a second. */
#define MAX_THINK_NS		NSEC_PER_SEC

/* The gate sees what groups leave of their quotas this often, while requests go. */
#define GATE_TICK_NS		(5 * NSEC_PER_MSEC)

/* As CFQ had them; see cfq_init() for a disk that does not seek. */
static const struct cfq_tunables defaults = {
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
 * rq->elv.icq is the process, with a reference to its io context; elv.priv[0]
 * the queue, from insertion on, with references to it and to its group's blkg;
 * elv.priv[1] packs, under the disk's lock:
 */
#define RQ_SENT			BIT(0)	/* it is with the device */
#define RQ_CHARGED		BIT(1)	/* the sectors below, to its group */
#define RQ_REFUNDED		BIT(2)	/* they were, and have been given back */
#define RQ_SECTORS_SHIFT	32	/* the upper half */

static_assert(BITS_PER_LONG == 64);

static struct cfq_queue *rq_queue(const struct request *rq)
{
	return rq->elv.priv[0];
}

static unsigned long rq_state(const struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static void rq_set_state(struct request *rq, unsigned long state)
{
	rq->elv.priv[1] = (void *)state;
}

/* Where the gate counts @rq. */
static struct isoblk_gq *rq_gq(const struct request *rq)
{
	const struct isoblk_hq *hq = rq->mq_hctx->sched_data;

	return rq_queue(rq)->group->group->gq[hq->index];
}

/* ---- figures ---------------------------------------------------------- */

static void account(struct request *rq, unsigned int sectors, int sign)
{
	isoblk_account_bypassed(rq_queue(rq)->group->group, rq, sectors, sign);
}

static void charge(struct request *rq)
{
	rq_set_state(rq, RQ_SENT | RQ_CHARGED |
		     (unsigned long)blk_rq_sectors(rq) << RQ_SECTORS_SHIFT);
	account(rq, blk_rq_sectors(rq), 1);
}

/* It comes back; a part of it may have been done. */
static void refund(struct request *rq)
{
	if (!(rq_state(rq) & RQ_CHARGED))
		return;
	rq_set_state(rq, RQ_REFUNDED |
		     (unsigned long)blk_rq_sectors(rq) << RQ_SECTORS_SHIFT);
	account(rq, blk_rq_sectors(rq), -1);
}

static void cfq_stat(struct isoblk_group *group, struct seq_file *s)
{
	seq_printf(s, " isoblk.time_us=%llu",
		   div_u64(READ_ONCE(cfq_group_of(group)->time_ns),
			   NSEC_PER_USEC));
}

/* ---- waiting requests ------------------------------------------------- */

static void note_think_time(struct cfq_queue *queue, u64 now)
{
	u64 think_ns;

	/* With others on their way it says nothing about this one. */
	if (queue->queued || queue->dispatched || !queue->habits.done_ns)
		return;
	think_ns = min(cfq_since(now, queue->habits.done_ns), MAX_THINK_NS);
	queue->habits.think_ns -= queue->habits.think_ns >> THINK_SHIFT;
	queue->habits.think_ns += think_ns >> THINK_SHIFT;
}

static void note_seek(struct cfq_queue *queue, const struct request *rq)
{
	s64 distance = blk_rq_pos(rq) - queue->habits.last_end;

	queue->habits.seeks = queue->habits.seeks << 1 |
		(queue->habits.last_end && abs(distance) > FAR_SECTORS);
	queue->habits.last_end = blk_rq_pos(rq) + blk_rq_sectors(rq);
}

static void add_request(struct cfq_disk *cd, struct cfq_queue *queue,
			struct request *rq, u64 now)
{
	unsigned int ms = queue->sync ?
		READ_ONCE(cd->tunables.fifo_expire_sync) :
		READ_ONCE(cd->tunables.fifo_expire_async);

	note_think_time(queue, now);
	note_seek(queue, rq);
	rq->fifo_time = now + (u64)ms * NSEC_PER_MSEC;
	list_add_tail(&rq->queuelist, &queue->fifo);
	elv_rb_add(&queue->sorted, rq);
	queue->queued++;
	WRITE_ONCE(cd->queued, cd->queued + 1);
	cfq_queue_ready(cd, queue, now);
}

static void del_request(struct cfq_disk *cd, struct request *rq)
{
	struct request_queue *q = cd->disk.q;
	struct cfq_queue *queue = rq_queue(rq);

	elv_rqhash_del(q, rq);
	if (q->last_merge == rq)
		q->last_merge = NULL;
	list_del_init(&rq->queuelist);
	elv_rb_del(&queue->sorted, rq);
	queue->queued--;
	WRITE_ONCE(cd->queued, cd->queued - 1);
}

/* The request of @queue that is nearest to where the device is. */
static struct request *nearest(const struct cfq_disk *cd,
			       const struct cfq_queue *queue)
{
	u64 most = 2ULL * READ_ONCE(cd->tunables.back_seek_max);
	struct request *rq, *ahead = NULL, *behind = NULL;
	struct rb_node *node = queue->sorted.rb_node;
	u64 back;

	while (node) {
		rq = rb_entry_rq(node);
		if (blk_rq_pos(rq) >= cd->position) {
			ahead = rq;
			node = node->rb_left;
		} else {
			behind = rq;
			node = node->rb_right;
		}
	}
	if (!behind)
		return ahead;

	back = cd->position - blk_rq_pos(behind);
	if (back <= most &&
	    (!ahead || back * READ_ONCE(cd->tunables.back_seek_penalty) <
	     blk_rq_pos(ahead) - cd->position))
		return behind;
	/* Too far to go back: ahead, or on from the first. */
	return ahead ?: rb_entry_rq(rb_first(&queue->sorted));
}

static struct request *choose_request(struct cfq_disk *cd,
				      struct cfq_queue *queue, u64 now)
{
	struct request *rq = rq_entry_fifo(queue->fifo.next);

	if (queue->slice.fifo_check) {
		queue->slice.fifo_check = false;
		if (!cfq_before(now, rq->fifo_time))
			return rq;
	}
	return nearest(cd, queue);
}

/* ---- with the device -------------------------------------------------- */

static void sent(struct cfq_disk *cd, struct request *rq)
{
	struct cfq_queue *queue = rq_queue(rq);

	queue->dispatched++;
	queue->group->dispatched++;
	cd->in_device[queue->sync]++;
	cd->position = blk_rq_pos(rq) + blk_rq_sectors(rq);
	charge(rq);
}

/*
 * @rq is no longer with the device. Return: the queue is to be run, without the
 * lock.
 */
static bool back(struct cfq_disk *cd, struct request *rq)
{
	struct cfq_queue *queue = rq_queue(rq), *active = cd->active;
	struct cfq_group *group = queue->group;
	u64 idle_ns, now;

	if (!(rq_state(rq) & RQ_SENT))
		return false;
	rq_set_state(rq, rq_state(rq) & ~RQ_SENT);
	now = blk_time_get_ns();
	queue->dispatched--;
	group->dispatched--;
	cd->in_device[queue->sync]--;
	queue->habits.done_ns = now;
	if (cd->turn.group == group)
		cd->turn.served = true;

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
		cfq_expire(cd, ktime_get_ns(), false);
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
	if (cfq_since(now, cd->gate_ns) >= GATE_TICK_NS) {
		cd->gate_ns = now;
		isoblk_gate_tick(&cd->disk);
	}
	rq = list_first_entry_or_null(&cd->urgent, struct request, queuelist);
	if (rq) {
		list_del_init(&rq->queuelist);
		sent(cd, rq);
		goto unlock;
	}

	queue = cfq_select(cd, now);
	if (!queue) {
		WRITE_ONCE(cd->blocked, true);
		goto unlock;
	}
	if (!queue->slice.start)
		queue->slice.start = now;
	if (!cd->turn.start)
		cd->turn.start = now;
	rq = choose_request(cd, queue, now);
	del_request(cd, rq);
	queue->slice.rqs++;
	cd->turn.rqs++;
	sent(cd, rq);
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

/* ---- in, merged, and out ---------------------------------------------- */

static void cfq_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	isoblk_limit_depth(opf, data);
	if (!op_is_sync(opf))
		data->shallow_depth = max(data->q->nr_requests *
					  ASYNC_PERCENT / 100, 1UL);
}

/* Any number of tags may be the limit: see cfq_limit_depth(). */
static void cfq_depth(struct request_queue *q)
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

	/* Found, it stays: the task is here, and keeps the elevator. */
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

/* Under the lock, from cfq_bio_merge(). */
static bool cfq_allow_merge(struct request_queue *q, struct request *rq,
			    struct bio *bio)
{
	return rq_queue(rq) == q_to_cfq(q)->bio_queue;
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

/* Under the lock; @rq begins earlier now. */
static void cfq_request_merged(struct request_queue *q, struct request *rq,
			       enum elv_merge type)
{
	struct cfq_queue *queue = rq_queue(rq);

	if (type != ELEVATOR_FRONT_MERGE)
		return;
	elv_rb_del(&queue->sorted, rq);
	elv_rb_add(&queue->sorted, rq);
}

/* Under the lock; @next, of the same queue, is part of @rq now. */
static void cfq_requests_merged(struct request_queue *q, struct request *rq,
				struct request *next)
{
	if (cfq_before(next->fifo_time, rq->fifo_time)) {
		list_move(&rq->queuelist, &next->queuelist);
		rq->fifo_time = next->fifo_time;
	}
	del_request(q_to_cfq(q), next);
	/* It is charged as part of @rq. */
	rq_set_state(next, 0);
}

static void cfq_prepare_request(struct request *rq)
{
	rq->elv.icq = ioc_find_get_icq(rq->q);
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
}

/* The first time that @rq is seen with its bio. */
static void rq_enter(struct cfq_disk *cd, struct request *rq)
{
	struct isoblk_group *group = isoblk_bio_group(rq->bio);
	struct cfq_queue *queue;

	queue = cfq_queue_get(cd, to_icq(rq->elv.icq), cfq_group_of(group),
			      rq_is_sync(rq), cfq_prio(req_get_ioprio(rq)));
	queue->refs++;
	blkg_get(pd_to_blkg(&group->pd));
	rq->elv.priv[0] = queue;
	isoblk_gate_count_tag(rq_gq(rq));
}

/*
 * Its bios have tried to merge one by one; whole requests would not ask whose
 * the others are.
 */
static void insert(struct cfq_disk *cd, struct request *rq, bool at_head,
		   u64 now)
{
	struct request_queue *q = cd->disk.q;

	if (!rq_queue(rq))
		rq_enter(cd, rq);
	trace_block_rq_insert(rq);
	if (at_head) {
		list_add(&rq->queuelist, &cd->urgent);
		return;
	}
	add_request(cd, rq_queue(rq), rq, now);
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
		insert(cd, rq, flags & BLK_MQ_INSERT_AT_HEAD, now);
	}
	/* The kernel runs the queue next, and we look again who may send. */
	WRITE_ONCE(cd->blocked, false);
	spin_unlock_irq(&cd->disk.lock);
}

/* The driver has given it back; it is inserted again, or sent past us. */
static void cfq_requeue_request(struct request *rq)
{
	struct cfq_disk *cd = q_to_cfq(rq->q);
	unsigned long flags;
	bool run;

	if (!rq_queue(rq))
		return;
	spin_lock_irqsave(&cd->disk.lock, flags);
	run = back(cd, rq);
	refund(rq);
	spin_unlock_irqrestore(&cd->disk.lock, flags);
	if (run)
		blk_mq_run_hw_queues(rq->q, true);
}

static void cfq_finish_request(struct request *rq)
{
	struct cfq_disk *cd = q_to_cfq(rq->q);
	struct cfq_queue *queue = rq_queue(rq);
	struct blkcg_gq *blkg;
	unsigned long flags;
	bool run;

	if (queue) {
		isoblk_gate_release_tag(rq_gq(rq));
		blkg = pd_to_blkg(&queue->group->group->pd);
		spin_lock_irqsave(&cd->disk.lock, flags);
		run = back(cd, rq);
		if (rq_state(rq) & RQ_REFUNDED)
			account(rq, rq_state(rq) >> RQ_SECTORS_SHIFT, 1);
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

/* ---- life ------------------------------------------------------------- */

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
	cd->queueing = q->tag_set->queue_depth > QUEUEING_DEPTH;
	cd->rotational = q->limits.features & BLK_FEAT_ROTATIONAL;
	cd->tunables = defaults;
	/* As CFQ since 4.2: nobody waits for a seek, so requests are counted. */
	if (!cd->rotational)
		cd->tunables.slice_idle = 0;

	ret = isoblk_groups_init(&cd->disk, q, eq, &cfq_ops);
	if (ret) {
		kfree(cd);
		return ret;
	}
	cfq_depth(q);
	/* One hardware queue is as good as another: any sends for all. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	return 0;
}

ISOBLK_ELEVATOR_HOOKS(cfq, cfq_init, cfq_depth)

static void cfq_exit_sched(struct elevator_queue *eq)
{
	struct cfq_disk *cd = eq->elevator_data;

	isoblk_groups_exit(&cd->disk, eq);
	/* A group that goes may start it. */
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
