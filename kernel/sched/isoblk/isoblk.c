// SPDX-License-Identifier: GPL-2.0-only
/*
 * isoblk: divides a disk among cgroups by weight, in the time that the device takes.
 *
 * One quantity runs through all of it: the cost of a request, the nanoseconds for which it keeps a
 * busy device from all others (cost.c). A group's virtual time is the cost that it was charged
 * over its share of the disk (vtime.h). While every group keeps the disk busy, equal virtual times
 * are shares by weight. Three promises follow.
 *
 * 1. Shares. Of the groups that wait the one with the earliest virtual deadline is sent next
 *    (fq.c). That divides what waits here; what is in flight the device serves in its own order. So
 *
 *    - the device has no more cost in flight than makes it fast: the window (window.c), found by
 *      comparing one size with another;
 *    - no group is sent that is far ahead of one that has nothing waiting, because all of its
 *      requests are in flight or it is about to send the next: the horizon (throttle.c);
 *    - tags are divided before they are asked for, so that a group whose turn comes has a request:
 *      the gate (share/gate.c).
 *
 * 2. max_loss. The horizon costs speed where groups send few requests at a time. It holds only
 *    beyond so much in flight that the device does, but for max_loss permille, what it would do
 *    if no group were throttled: the floor (floor.c). It is found by comparing, too (trial.c).
 *
 * 3. Latency. A group whose lead is no more than the slack, and of which nothing waits, is
 *    boosted: sent before what is in order, window or not. A request that many may wait for
 *    (metadata, journal, swap) is sent before those; it is charged all the same. Once its group is
 *    far ahead its metadata is in order; what it swaps out never is, and its tasks sleep instead
 *    (swap.c).
 *
 * A worked case. A reads 4 KiB at random with weight 300, B writes 1 MiB with weight 100; the
 * model says 2 us and 500 us. Shares are 3/4 and 1/4: a read moves A's virtual time by 2.7 us, a
 * write B's by 2,000 us. Both begin at 0. A's deadline is 2.7, B's 2,000, so A sends some 750
 * reads, 1,500 us of the device, while one write, 500 us, becomes due: three to one.
 *
 * On a rotational disk the time that a request takes depends on where the arm is. There a group is
 * charged the time that was taken (complete.c), and streams have turns (choose.c).
 *
 * Many queues. A hardware queue decides alone, under its own lock, and no CPU takes that with
 * interrupts off or waits for it: a host that takes the CPU away from the lock's owner stops no
 * other. What is inserted goes on a list without a lock, and the next owner takes it in. A CPU that
 * comes for a request while another has the lock leaves word, and that one looks again. A
 * completion takes no lock: it gives back room and counts what is left with atomics, and looks last
 * for @blocked; a dispatch that finds nothing sets @blocked first, and looks again. With nothing in
 * flight no completion follows: throttle.c says why no disk stays idle. What all queues share is
 * read for each request and written seldom. A group's virtual time is written by the CPUs that send
 * for it; sums of what was done are each CPU's own.
 *
 * Time. No clock is read for a request: a hardware queue's time is when something was last
 * inserted or completed there, which the kernel has noted.
 *
 * Files, the lowest layer first: none calls one of a later line, and few one of their own.
 *
 *  - cost.c, trial.c, vtime.h: arithmetic; window.c, floor.c: loops, without a disk; room.c: the
 *    window's room, divided among hardware queues.
 *  - run.c, fq.c, swap.c, throttle.c: one thing of a disk each. members.c: active groups.
 *  - choose.c, epoch.c: all of it, for the next request and when an epoch ends.
 *  - insert.c, merge.c, dispatch.c, complete.c: the way of a request. show.c, isoblk.c: a disk's
 *    files and its life.
 *
 * Locks, outermost first: hq->lock, disk.lock; share/disk.h has the order of all. Lifetime: an
 * active group holds its blkg, and is active as long as a request of it has a tag (iso_leave()). A
 * CPU that counts such a request down is in an RCU section, for then the group may go.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "isoblk/epoch.h"
#include "isoblk/insert.h"
#include "isoblk/isoblk.h"
#include "isoblk/members.h"
#include "isoblk/run.h"
#include "isoblk/swap.h"
#include "share/sleep.h"

#define CREATE_TRACE_POINTS
#include "isoblk/trace.h"

/* When groups compete a merged request grows to this: so long they may wait for it. */
#define MERGE_KB		128

/* How far groups may be apart, as time of the device; on a rotational disk, a turn. */
#define HOLD_US			200
#define HOLD_US_ROTATIONAL	200000

/* A group that thinks for no longer is expected back. */
#define IDLE_US			100
#define IDLE_US_ROTATIONAL	8000

/* What throttling may cost, permille. */
#define MAX_LOSS		100

/* The disk's virtual time to begin with: virtual times before it exist. */
#define FIRST_VNOW		BIT_ULL(60)

/* Disks that take no more requests at a time than SATA has tags are taken for such. */
#define SATA_TAGS		32

/* A group was expected, and has not come. */
static enum hrtimer_restart iso_timer(struct hrtimer *timer)
{
	iso_run_blocked_at(container_of(timer, struct iso_disk, timer),
			   ktime_get_ns());
	return HRTIMER_NORESTART;
}

/* Whether requests wait, none is in flight, and nothing is under way that sends one. */
static bool iso_is_stuck(struct iso_disk *d)
{
	const struct iso_hq *hq;
	unsigned int i;

	if (!atomic_read(&d->nr_blocked) || !iso_is_idle(d) ||
	    hrtimer_is_queued(&d->timer))
		return false;
	for (i = 0; i < d->disk.nr_hqs; i++) {
		hq = &d->hq[i];
		if (!llist_empty(&hq->arrived) || READ_ONCE(hq->at_work) ||
		    (READ_ONCE(hq->nr) && !READ_ONCE(hq->blocked)))
			return false;
	}
	return true;
}

/*
 * A disk that is stuck at two looks, with nothing done between them, stays so. throttle.c says why
 * there is none: one that is found is a fault, which is counted and reported.
 */
static bool iso_needs_rescue(struct iso_disk *d)
{
	struct iso_rescue *r = &d->rescue;
	bool was_stuck = r->was_stuck;
	u64 done = r->done;

	lockdep_assert_held(&d->disk.lock);

	r->was_stuck = iso_is_stuck(d);
	r->done = iso_done_cost(d);
	if (!r->was_stuck || !was_stuck || r->done != done)
		return false;
	WRITE_ONCE(r->nr, r->nr + 1);
	pr_warn_ratelimited("%s: no request was in flight while some waited\n",
			    d->disk.q->disk->disk_name);
	return !READ_ONCE(r->off);
}

/* Now and then while groups are active: idle groups leave. */
static void iso_tick(struct timer_list *t)
{
	struct iso_disk *d = timer_container_of(d, t, members.tick);
	u64 now = ktime_get_ns();
	bool again, changed;
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	changed = iso_update_shares(d);
	iso_look_at_swappers(d);
	iso_find_idle(d, now);
	changed |= iso_needs_rescue(d);
	again = !list_empty(&d->members.list);
	spin_unlock_irqrestore(&d->disk.lock, flags);

	if (changed)
		iso_run_blocked(d);
	if (again)
		mod_timer(&d->members.tick, jiffies + ISO_TICK);
}

/* A group that has waited long because its weight was small is not to wait for a tick. */
static void iso_weight_changed(struct isoblk_group *group)
{
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	/* What waits may be sent; not by us: the caller may hold queue_lock. */
	if (iso_update_shares(d))
		hrtimer_start(&d->timer, 0, HRTIMER_MODE_REL);
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/* ---- groups -------------------------------------------------------------------- */

static void iso_group_init(struct isoblk_group *group)
{
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	struct iso_group *g = isoblk_group_own(group);
	unsigned int i, j;

	g->group = group;
	INIT_LIST_HEAD(&g->node);
	INIT_LIST_HEAD(&g->swapper);
	atomic64_set(&g->vtime, READ_ONCE(d->clock.vnow));
	for (i = 0; i < group->disk->nr_hqs; i++) {
		struct iso_gq *gq = iso_gq(g, i);

		RB_CLEAR_NODE(&gq->node);
		INIT_LIST_HEAD(&gq->boosted_node);
		for (j = 0; j < ISOBLK_NR_CLASSES; j++)
			INIT_LIST_HEAD(&gq->fifo[j]);
		gq->group = g;
		gq->common = group->gq[i];
		gq->hq = &d->hq[i];
	}
}

static void iso_group_exit(struct isoblk_group *group)
{
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	struct iso_group *g = isoblk_group_own(group);

	if (!g->joined)
		return;
	g->joined = false;
	iso_take_out(d, g);
}

static u64 iso_waited_us(const struct iso_group *g)
{
	const struct isoblk_disk *disk = g->group->disk;
	unsigned int i;
	u64 ns = 0;

	for (i = 0; i < disk->nr_hqs; i++)
		ns += READ_ONCE(iso_gq(g, i)->wait_ns) +
			READ_ONCE(g->group->gq[i]->gate.wait_ns);
	return div_u64(ns, NSEC_PER_USEC);
}

static void iso_stat(struct isoblk_group *group, struct seq_file *s)
{
	seq_printf(s, " isoblk.wait_us=%llu", iso_waited_us(isoblk_group_own(group)));
}

static const struct isoblk_ops iso_ops = {
	.own_size = sizeof(struct iso_group),
	.own_gq_size = sizeof(struct iso_gq),
	.group_init = iso_group_init,
	.group_exit = iso_group_exit,
	.flush_allocated = iso_flush_allocated,
	.weight_changed = iso_weight_changed,
	.stat = iso_stat,
};

/* ---- the disk -------------------------------------------------------------------- */

static void iso_free(struct iso_disk *d)
{
	iso_room_exit(&d->room);
	free_percpu(d->done);
	kvfree(d->hq);
	kfree(d);
}

static struct iso_disk *iso_alloc(struct request_queue *q)
{
	unsigned int nr = q->nr_hw_queues, i;
	struct iso_disk *d;

	d = kzalloc_node(sizeof(*d), GFP_KERNEL, q->node);
	if (!d)
		return NULL;
	d->hq = kvcalloc_node(nr, sizeof(*d->hq), GFP_KERNEL, q->node);
	d->done = alloc_percpu(struct iso_done);
	if (!d->hq || !d->done || iso_room_init(&d->room, nr, q->node)) {
		iso_free(d);
		return NULL;
	}
	for (i = 0; i < nr; i++) {
		struct iso_hq *hq = &d->hq[i];

		spin_lock_init(&hq->lock);
		hq->disk = d;
		hq->index = i;
		hq->tree = RB_ROOT_CACHED;
		INIT_LIST_HEAD(&hq->boosted);
		INIT_LIST_HEAD(&hq->urgent);
	}
	return d;
}

static enum cost_kind iso_cost_kind(struct request_queue *q)
{
	if (blk_queue_rot(q))
		return COST_ROTATIONAL;
	/* The disk's own depth: tags may be a host's, of many disks. */
	return blk_queue_depth(q) <= SATA_TAGS ? COST_SATA : COST_FLASH;
}

/* What is the disk's, before a group is there. */
static void iso_set_up(struct iso_disk *d, struct request_queue *q)
{
	INIT_LIST_HEAD(&d->members.list);
	INIT_LIST_HEAD(&d->swappers);
	timer_setup(&d->members.tick, iso_tick, 0);
	hrtimer_setup(&d->timer, iso_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	d->tags = q->tag_set->queue_depth;
	d->rotational = blk_queue_rot(q);
	d->kind = iso_cost_kind(q);
	cost_set_auto(&d->cost, d->kind);
	d->tunables.hold_us = d->rotational ? HOLD_US_ROTATIONAL : HOLD_US;
	d->tunables.idle_us = d->rotational ? IDLE_US_ROTATIONAL : IDLE_US;
	d->tunables.max_loss = MAX_LOSS;
	d->tunables.merge_kb = MERGE_KB;
	d->clock.vnow = FIRST_VNOW;
	d->clock.behind = FIRST_VNOW;
	iso_restart(d);
}

static int iso_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct iso_disk *d = iso_alloc(q);
	int ret;

	if (!d)
		return -ENOMEM;
	iso_set_up(d, q);
	ret = isoblk_groups_init(&d->disk, q, eq, &iso_ops);
	if (ret) {
		iso_free(d);
		return ret;
	}
	/* Else a request has no io_start_time_ns, and nothing is learned: complete.c. */
	blk_stat_enable_accounting(q);
	/* One hardware queue after another is not asked: each has its own. */
	blk_queue_flag_clear(QUEUE_FLAG_SQ_SCHED, q);
	return 0;
}

ISOBLK_ELEVATOR_HOOKS(iso, iso_init, isoblk_depth_updated)

static int iso_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct iso_disk *d = q_to_iso(hctx->queue);

	d->hq[index].hctx = hctx;
	d->disk.hq[index]->own = &d->hq[index];
	return isoblk_init_hctx(hctx, index);
}

static void iso_exit_sched(struct elevator_queue *eq)
{
	struct iso_disk *d = eq->elevator_data;

	blk_stat_disable_accounting(d->disk.q);
	timer_shutdown_sync(&d->members.tick);
	isoblk_groups_exit(&d->disk, eq);
	/* Last, for a new weight starts it as long as cgroups have their parts. */
	hrtimer_cancel(&d->timer);
	iso_free(d);
}

static struct elevator_type iso_sched = {
	.ops = {
		.init_sched		= iso_init_sched,
		.exit_sched		= iso_exit_sched,
		.init_hctx		= iso_init_hctx,
		.depth_updated		= iso_depth_updated,
		.exit_hctx		= isoblk_exit_hctx,
		.limit_depth		= isoblk_limit_depth,
		.allow_merge		= iso_allow_merge,
		.bio_merge		= iso_bio_merge,
		.prepare_request	= iso_prepare_request,
		.insert_requests	= iso_insert_requests,
		.dispatch_request	= iso_dispatch_request,
		.has_work		= iso_has_work,
		.completed_request	= iso_completed_request,
		.requeue_request	= iso_requeue_request,
		.finish_request		= iso_finish_request,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = iso_debugfs,
#endif
	.elevator_attrs = iso_attrs,
	.elevator_name = "isoblk",
	.elevator_owner = THIS_MODULE,
};

static int __init iso_module_init(void)
{
	return elv_register(&iso_sched);
}

static void __exit iso_module_exit(void)
{
	elv_unregister(&iso_sched);
}

module_init(iso_module_init);
module_exit(iso_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Divides a disk by weight in virtual time");
