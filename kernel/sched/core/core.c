// SPDX-License-Identifier: GPL-2.0-only
/*
 * The core: a disk divided by weight in virtual time.
 *
 * Every group has a time: the work it was charged over its share of the disk
 * (vtime.h). Who is furthest behind is served first: start-time fair queueing, as
 * SFQ(D) and MQFQ have it for devices that serve many at once. The disk's own time
 * is that of whoever was served last. A group that comes back begins there, so
 * that nobody saves up; and as it is not ahead of it, it goes before all others,
 * also when the device has its fill (first.c): that is the reader beside the backup.
 *
 * That divides what waits in the elevator. Three things see to it that
 * something does, and that waiting is no loss:
 *
 *  - The window (window.c): the device has as much work at once as makes it fast,
 *    and no more. Beyond, it only keeps queues of its own, in an order of its own.
 *    Its size is found by trying a little more and a little less.
 *
 *  - The horizon (horizon.c, hold.c): nobody is further ahead than a little of those for
 *    whom it is worth waiting, whether they have requests in the device or will come
 *    back at once. It divides what never waits here: four readers whose requests
 *    are all in the device, a log that is written one request after the other.
 *
 *  - The gate (gate.c): tags are divided before they are asked for, so that a
 *    group whose turn comes has a request.
 *
 * What others may wait for in turn (metadata, journal, swap) goes first of all. It
 * is charged to its owner. Metadata is ordinary once the owner is far ahead; swap never
 * waits, and the tasks of who is in debt for it sleep instead (swap.c).
 *
 * A disk that turns has an order of its own, by which who is far away waits until the
 * stream ends: while it has a request of somebody who comes back, it gets no other.
 *
 * A group keeps its turn until it is the slack ahead of the next on a disk that
 * turns, for there every change is a seek; and further as long as it streams and
 * fills the device alone, for streams that alternate request by request meet on the
 * same dies, where each alone would use all of them. Requests are merged where that
 * costs no parallelism: when a group has as many as keep the device busy.
 *
 * Many queues. A hardware queue decides alone, under its own lock, and nobody takes that
 * with interrupts off or waits for it: a host that takes the CPU away from whoever holds
 * it stops nobody else. What is inserted goes on a list without a lock, and whoever has
 * the lock next takes it in. Who comes for a request while another has the lock
 * leaves word, and that one looks again. A completion takes no lock.
 * It gives back room and counts what is left with atomics, and looks last for
 * @blocked; a dispatch that finds nothing sets @blocked first, and looks again. With
 * nothing in flight no completion follows, so a queue that blocks runs the one that it
 * waits for: horizon.c says why no disk stays idle.
 * What all share is read for each request and written seldom: the horizon, when somebody
 * is beyond it; the disk's time, when it has moved on by a part of the slack; the
 * window's room, when a hardware queue has used up its part. A group's time is written by
 * the CPUs that send for it; sums of what was done are each CPU's own. Hardware queues
 * keep pace since the horizon counts those that wait. A completion that leaves its
 * own queue with nothing to do runs the queue that waits with the earliest time.
 * To run one from a completion is a change of task: where it waits for room, some gathers
 * first, as far as the device stays busy. Who sends the next request runs it at no cost.
 *
 * Processors that a host takes away make requests look slow: late.c finds out how late
 * they are, and groups may be apart, and the device have more, by as much.
 *
 * Time. No clock is read for a request: a hardware queue's time is when something
 * was last inserted or completed there, which the kernel has noted.
 *
 * Files, the lowest layer first: none calls one of a later line, and few one of their own.
 *
 *  - price.c, window.c, squeeze.c: loops that find something out, without a disk; vtime.h,
 *    room.c: arithmetic and counting.
 *  - run.c, size.c, measure.c, late.c, tree.c, swap.c, horizon.c: one thing of a disk each.
 *  - charge.c, latency.c: what uses these, and has a loop of its own.
 *  - members.c, first.c, hold.c: groups that take part, and groups that are helped.
 *  - choose.c, epoch.c: all of it, for the next request and when an epoch ends.
 *  - arrive.c, merge.c, dispatch.c, complete.c: the way of a request. show.c, core.c: a disk's
 *    files and its life.
 *
 * Locks, outermost first: hq->lock, disk.lock. Lifetime: a group that takes part holds
 * its blkg, and takes part as long as a request of it has a tag (iso_leave()). Who counts such
 * a request down is in an RCU section, for then the group may go.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "core/arrive.h"
#include "core/charge.h"
#include "core/clock.h"
#include "core/elevator.h"
#include "core/horizon.h"
#include "core/late.h"
#include "core/latency.h"
#include "core/measure.h"
#include "core/members.h"
#include "core/run.h"
#include "core/swap.h"

#define CREATE_TRACE_POINTS
#include "core/trace.h"

/* Beside others a merged request grows to this: so long they may wait for it. */
#define MERGE_KB		128

/* How far groups may be apart, as time of the device. */
#define HOLD_US			200
#define HOLD_US_ROTATIONAL	100000

/* For how long somebody is waited for who is expected back. */
#define IDLE_US			100
#define IDLE_US_ROTATIONAL	8000

/* How much time may be lost by that, permille. */
#define IDLE_LOSS		10

/* The disk's time to begin with: times before it exist. */
#define FIRST_VNOW		BIT_ULL(60)

/* Somebody was waited for, and has not come. */
static enum hrtimer_restart iso_timer(struct hrtimer *timer)
{
	struct iso_disk *d = container_of(timer, struct iso_disk, timer);
	u64 now = ktime_get_ns();

	iso_end_wait(d, now);
	iso_run_blocked_at(d, now);
	return HRTIMER_NORESTART;
}

/* Whether requests wait, none is in flight, and nothing is under way that sends one. */
static bool iso_is_stuck(struct iso_disk *d)
{
	const struct iso_hq *hq;
	unsigned int i;

	if (!atomic_read(&d->nr_blocked) || !iso_is_idle(d) ||
	    hrtimer_is_queued(&d->timer) ||
	    hrtimer_is_queued(&d->latency.pace_timer))
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
 * A disk that is stuck at two looks, with nothing done between them, stays so. horizon.c
 * says why there is none: one that is found is a fault, which is counted and reported.
 */
static bool iso_needs_rescue(struct iso_disk *d)
{
	struct iso_rescue *r = &d->rescue;
	bool was_stuck = r->was_stuck;
	u64 done = r->done;

	lockdep_assert_held(&d->disk.lock);

	r->was_stuck = iso_is_stuck(d);
	r->done = iso_done_work(d);
	if (!r->was_stuck || !was_stuck || r->done != done)
		return false;
	WRITE_ONCE(r->nr, r->nr + 1);
	pr_warn_ratelimited("%s: no request was in flight while some waited\n",
			    d->disk.q->disk->disk_name);
	return !READ_ONCE(r->off);
}

/*
 * Now and then, as long as groups take part: those that have been idle leave.
 */
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

/* Who has waited long because its weight was small is not to wait for a tick. */
static void iso_weight_changed(struct isoblk_group *group)
{
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	/* Whoever waits may try again; not by us: the caller may hold queue_lock. */
	if (iso_update_shares(d))
		hrtimer_start(&d->timer, 0, HRTIMER_MODE_REL);
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/* ---- groups -------------------------------------------------------------------- */

static void iso_group_init(struct isoblk_group *group)
{
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	struct iso_group *g = isoblk_group_own(group);
	unsigned int i;

	g->group = group;
	INIT_LIST_HEAD(&g->node);
	INIT_LIST_HEAD(&g->hold.node);
	INIT_LIST_HEAD(&g->swapper);
	INIT_LIST_HEAD(&g->target.node);
	atomic64_set(&g->vtime, READ_ONCE(d->clock.vnow));
	atomic64_set(&g->lifted, READ_ONCE(d->clock.vnow));
	g->light_from = -READ_ONCE(d->clock.half.at);
	for (i = 0; i < group->disk->nr_hqs; i++) {
		struct iso_gq *gq = iso_gq(g, i);

		RB_CLEAR_NODE(&gq->node);
		INIT_LIST_HEAD(&gq->fresh_node);
		INIT_LIST_HEAD(&gq->fifo);
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

static u64 waited_us(const struct iso_group *g)
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
	struct iso_group *g = isoblk_group_own(group);

	seq_printf(s, " isoblk.wait_us=%llu", waited_us(g));
	iso_latency_stat(g, s);
}

static const struct isoblk_ops iso_ops = {
	.own_size = sizeof(struct iso_group),
	.own_gq_size = sizeof(struct iso_gq),
	.group_init = iso_group_init,
	.group_exit = iso_group_exit,
	.flush_comes = iso_flush_comes,
	.weight_changed = iso_weight_changed,
	.set_target = iso_set_target,
	.target = iso_target_us,
	.stat = iso_stat,
};

/* ---- the disk -------------------------------------------------------------------- */

static void iso_free(struct iso_disk *d)
{
	iso_room_exit(&d->room);
	free_percpu(d->done);
	kvfree(d->hq);
}

static int iso_alloc(struct iso_disk *d, struct request_queue *q)
{
	unsigned int nr = q->nr_hw_queues, i;
	int ret;

	d->hq = kvcalloc_node(nr, sizeof(*d->hq), GFP_KERNEL, q->node);
	d->done = alloc_percpu(struct iso_done);
	ret = d->hq && d->done ? iso_room_init(&d->room, nr, q->node) : -ENOMEM;
	if (ret) {
		iso_free(d);
		return ret;
	}
	for (i = 0; i < nr; i++) {
		struct iso_hq *hq = &d->hq[i];

		spin_lock_init(&hq->lock);
		hq->disk = d;
		hq->index = i;
		hq->tree = RB_ROOT_CACHED;
		INIT_LIST_HEAD(&hq->fresh);
		INIT_LIST_HEAD(&hq->urgent);
		iso_probe_init(d, hq);
	}
	return 0;
}

/**
 * isoblk_core_init() - an elevator's init_sched
 * @d: first in the elevator's own data, zero
 * @q: frozen
 * @eq: the elevator's; @d becomes its data
 *
 * Return: 0 or a negative errno; then nothing is left to undo.
 */
int isoblk_core_init(struct iso_disk *d, struct request_queue *q,
		     struct elevator_queue *eq)
{
	int ret;

	ret = iso_alloc(d, q);
	if (ret)
		return ret;
	INIT_LIST_HEAD(&d->members.list);
	INIT_LIST_HEAD(&d->hold.list);
	INIT_LIST_HEAD(&d->swappers);
	iso_latency_init(d);
	timer_setup(&d->members.tick, iso_tick, 0);
	hrtimer_setup(&d->timer, iso_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	d->tags = q->tag_set->queue_depth;
	d->rotational = blk_queue_rot(q);
	d->tunables.hold_us = d->rotational ? HOLD_US_ROTATIONAL : HOLD_US;
	d->tunables.idle_us = d->rotational ? IDLE_US_ROTATIONAL : IDLE_US;
	d->tunables.idle_loss = IDLE_LOSS;
	d->tunables.merge_kb = MERGE_KB;
	iso_set_vnow(d, FIRST_VNOW);
	d->clock.behind = FIRST_VNOW;
	d->epoch.begun_ns = ktime_get_ns();
	d->hold.scan_ns = d->epoch.begun_ns;
	d->device.base_ns = d->epoch.begun_ns;
	d->pricing.begun_ns = d->epoch.begun_ns;
	memset(d->device.base, 0xff, sizeof(d->device.base));
	iso_set_account(d, ISO_TIME);

	ret = isoblk_groups_init(&d->disk, q, eq, &iso_ops);
	if (ret) {
		iso_free(d);
		return ret;
	}
	/* Else a request has no io_start_time_ns, and nothing is learned: measure.c. */
	blk_stat_enable_accounting(q);
	/* One hardware queue after another is not asked: each has its own. */
	blk_queue_flag_clear(QUEUE_FLAG_SQ_SCHED, q);
	return 0;
}
EXPORT_SYMBOL_GPL(isoblk_core_init);

/**
 * isoblk_core_init_hctx() - an elevator's init_hctx
 * @hctx: hardware queue
 * @index: of it
 */
int isoblk_core_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct iso_disk *d = q_to_iso(hctx->queue);

	d->hq[index].hctx = hctx;
	d->disk.hq[index]->own = &d->hq[index];
	return isoblk_init_hctx(hctx, index);
}
EXPORT_SYMBOL_GPL(isoblk_core_init_hctx);

/**
 * isoblk_core_exit() - an elevator's exit_sched; @d is the caller's to free
 * @d: no request is in flight, nobody waits
 * @eq: the elevator's
 */
void isoblk_core_exit(struct iso_disk *d, struct elevator_queue *eq)
{
	unsigned int i;

	blk_stat_disable_accounting(d->disk.q);
	timer_shutdown_sync(&d->members.tick);
	for (i = 0; i < d->disk.nr_hqs; i++)
		hrtimer_cancel(&d->hq[i].probe);
	iso_latency_exit(d);
	isoblk_groups_exit(&d->disk, eq);
	/* Last, for a new weight starts it as long as cgroups have their parts. */
	hrtimer_cancel(&d->timer);
	iso_free(d);
}
EXPORT_SYMBOL_GPL(isoblk_core_exit);
