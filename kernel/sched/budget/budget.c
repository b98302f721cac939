// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets: what the schedulers of P2 (feedbac) and P3 (kyber-fair) have in common.
 *
 * A group has a budget of sectors, pays from it when a request goes to the device, and sends
 * nothing while it has none. A refill gives every active group its share of a round on top of
 * what it has left; below 0 it pays its debt first. How large a round is, a scheduler says:
 * from what was used (P3), or from a prediction (P2). Groups with a budget take turns of one
 * request, and a disk gets all that they may send. What others may wait for in turn (metadata of
 * a group that has a budget, what is swapped out) goes before all of them. Nothing is idled for,
 * so weights hold among groups that always have requests.
 *
 * When a refill comes is the one thing in which paper mode differs:
 *
 *  - As the papers have it, when every active group has used its budget up, else when the
 *    period is over. A group is active that has sent something since the last refill, or has a
 *    request. A period is long (100 ms in P3). So a group with a small request now and then
 *    keeps all others waiting for the end of the period.
 *
 *  - By default, when no group that has a request, waiting or with the device, has a budget. A
 *    group without requests keeps what it has, and keeps nothing from others. A round is short,
 *    so that the light groups' part of it is not over long before the heavy ones'.
 *
 * Locks: the disk lock guards everything, with interrupts off. One hardware queue sends for all.
 * A hardware queue is run without it. Lifetime: a request holds its group's blkg, and so does
 * taking part, which begins with the first request and ends when the tick finds the group idle.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include <trace/events/block.h>

#include "budget/budget.h"
#include "muldiv.h"
#include "share/gate.h"
#include "share/policy.h"
#include "share/share.h"
#include "share/sleep.h"
#include "share/stat.h"

/* A group that has had no request for so many ticks, 100 ms, no longer takes part. */
#define IDLE_TICKS		(msecs_to_jiffies(100) / ISOBLK_TICK)

/*
 * rq->elv.priv[0] is the struct isoblk_gq that a request is of, from insertion on. priv[1] packs
 * the sectors that it was charged, and:
 */
#define RQ_IN_DEVICE		BIT(0)
#define RQ_REFUNDED		BIT(1)	/* the driver gave it back, and it was refunded */
#define RQ_SECTORS_SHIFT	2

static struct budget_disk *q_to_budget(const struct request_queue *q)
{
	return q->elevator->elevator_data;
}

static struct isoblk_gq *rq_gq(const struct request *rq)
{
	return rq->elv.priv[0];
}

static struct budget_group *rq_group(const struct request *rq)
{
	return isoblk_group_own(rq_gq(rq)->group);
}

static unsigned long rq_state(const struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static void rq_set_state(struct request *rq, unsigned long state)
{
	rq->elv.priv[1] = (void *)state;
}

static unsigned int rq_charged(const struct request *rq)
{
	return rq_state(rq) >> RQ_SECTORS_SHIFT;
}

static unsigned int class_of(const struct budget_disk *bd, blk_opf_t opf)
{
	return bd->policy->class ? bd->policy->class(opf) : 0;
}

/* ---- budgets -------------------------------------------------------------------- */

static bool has_requests(const struct budget_group *g)
{
	return g->waiting || g->in_device;
}

/* Whether a group has a part of the next round, and holds it up while it has a budget. */
static bool is_active(const struct budget_disk *bd, const struct budget_group *g)
{
	return has_requests(g) || (READ_ONCE(bd->paper) && g->used);
}

/*
 * Whole sectors are given, and the rest is added to the next part. Of a slow device a light
 * group's part is a few sectors: without the rest it would lose several per cent of its share.
 */
static void give(struct budget_disk *bd, u64 sectors)
{
	struct budget_group *g;
	u32 share;

	list_for_each_entry(g, &bd->members, member) {
		if (!is_active(bd, g))
			continue;
		share = isoblk_group_share(g->group);
		g->left += mul_div(sectors, share, ISOBLK_SHARE_ONE);
		/* The low bits of the product are right even if it has more than 64. */
		g->rest += (sectors * share) & (ISOBLK_SHARE_ONE - 1);
		g->left += g->rest >> ISOBLK_SHARE_SHIFT;
		g->rest &= ISOBLK_SHARE_ONE - 1;
	}
}

/*
 * A round in which the first of the groups that have requests is out of debt; 0: one is. A
 * group that has all of them in the device counts as well: to wait for it is a moment, and to
 * get a lighter one out of debt instead may give it a thousand times what is its due.
 */
static u64 least_round(const struct budget_disk *bd)
{
	const struct budget_group *g;
	u64 least = 0, need;

	list_for_each_entry(g, &bd->members, member) {
		if (!has_requests(g))
			continue;
		if (g->left > 0)
			return 0;
		need = mul_div(1 - g->left, ISOBLK_SHARE_ONE,
			       max(isoblk_group_share(g->group), 1U)) + 1;
		least = least ? min(least, need) : need;
	}
	return least;
}

/* Give active groups their shares of a round. */
static void refill(struct budget_disk *bd, u64 now)
{
	struct budget_round r = { .elapsed_ns = now - min(bd->refilled_ns, now) };
	struct budget_group *g;

	list_for_each_entry(g, &bd->members, member) {
		r.used += g->used;
		if (is_active(bd, g))
			r.left += g->left;
	}
	bd->granted = bd->policy->round(bd, &r);
	bd->refilled_ns = now;
	give(bd, bd->granted);
	give(bd, least_round(bd));
	list_for_each_entry(g, &bd->members, member)
		g->used = 0;
}

/* Whether every group that may hold a refill up has used its budget up. */
static bool all_used(const struct budget_disk *bd)
{
	const struct budget_group *g;

	list_for_each_entry(g, &bd->members, member)
		if (g->left > 0 && is_active(bd, g))
			return false;
	return true;
}

/* @rq is paid for with @sign 1, and refunded with -1. */
static void charge(struct request *rq, int sign)
{
	struct budget_group *g = rq_group(rq);
	s64 sectors = rq_charged(rq);

	g->left -= sign * sectors;
	g->used += sign * sectors;
	/* Without a budget a group's metadata waits like the rest, at the gate as well. */
	isoblk_group_set_indebted(g->group, g->left <= 0);
}

/* ---- taking part ------------------------------------------------------------------ */

static void join(struct budget_disk *bd, struct budget_group *g)
{
	if (!list_empty(&g->member))
		return;
	/* A request of it is here, with its bio, which holds the blkg. */
	blkg_get(pd_to_blkg(&g->group->pd));
	isoblk_group_activate(g->group);
	list_add_tail(&g->member, &bd->members);
	g->used = 0;
	g->left = mul_div(bd->granted, isoblk_group_share(g->group),
			  ISOBLK_SHARE_ONE);
	if (!timer_pending(&bd->tick))
		mod_timer(&bd->tick, jiffies + ISOBLK_TICK);
}

static void leave(struct budget_group *g)
{
	list_del_init(&g->member);
	isoblk_group_deactivate(g->group);
	blkg_put(pd_to_blkg(&g->group->pd));
}

static void find_idle(struct budget_disk *bd)
{
	struct budget_group *g, *next;
	struct blkcg_gq *blkg;

	list_for_each_entry_safe(g, next, &bd->members, member) {
		blkg = pd_to_blkg(&g->group->pd);
		if (has_requests(g))
			g->idle = 0;
		else if (++g->idle > IDLE_TICKS || !READ_ONCE(blkg->online))
			leave(g);
	}
}

static void budget_tick(struct timer_list *t)
{
	struct budget_disk *bd = timer_container_of(bd, t, tick);
	u64 now = ktime_get_ns();
	unsigned long flags;
	bool run;

	spin_lock_irqsave(&bd->disk.lock, flags);
	if (bd->policy->tick)
		bd->policy->tick(bd, now);
	find_idle(bd);
	isoblk_gate_tick(&bd->disk);
	if (READ_ONCE(bd->paper) && bd->waiting &&
	    now - bd->refilled_ns >= bd->policy->period_ns(bd))
		refill(bd, now);
	/* A weight, a depth or the mode may be another. */
	run = bd->blocked && bd->waiting;
	WRITE_ONCE(bd->blocked, false);
	if (!list_empty(&bd->members))
		mod_timer(&bd->tick, jiffies + ISOBLK_TICK);
	spin_unlock_irqrestore(&bd->disk.lock, flags);
	if (run)
		blk_mq_run_hw_queues(bd->disk.q, true);
}

/* ---- in ------------------------------------------------------------------------- */

bool budget_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs)
{
	struct isoblk_gq *waited = isoblk_gate_recognize(q, bio);
	struct isoblk_group *group = isoblk_bio_group(bio);
	struct budget_group *g = isoblk_group_own(group);
	struct budget_disk *bd = q_to_budget(q);
	bool merged = false;

	/* Most bios find nothing of their group that waits, and need no lock to see that. */
	if (READ_ONCE(g->waiting)) {
		spin_lock_irq(&bd->disk.lock);
		merged = blk_bio_list_merge(q, &g->fifo[class_of(bd, bio->bi_opf)],
					    bio, nr_segs);
		spin_unlock_irq(&bd->disk.lock);
	}
	if (merged && waited)
		isoblk_gate_end_transit(waited);
	return merged ||
		(!waited && !isoblk_gate_admit_or_hold(isoblk_group_map_gq(group, bio->bi_opf),
						       bio));
}
EXPORT_SYMBOL_GPL(budget_bio_merge);

void budget_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
}
EXPORT_SYMBOL_GPL(budget_prepare_request);

/* The first time that @rq is seen with its bio: it holds its group. */
static void rq_enter(struct request *rq)
{
	struct isoblk_group *group = isoblk_bio_group(rq->bio);
	struct isoblk_hq *hq = rq->mq_hctx->sched_data;

	blkg_get(pd_to_blkg(&group->pd));
	rq->elv.priv[0] = group->gq[hq->index];
	isoblk_gate_count_tag(rq_gq(rq));
}

static void insert(struct budget_disk *bd, struct request *rq, bool at_head)
{
	struct budget_group *g;

	if (!rq_gq(rq))
		rq_enter(rq);
	g = rq_group(rq);
	join(bd, g);
	trace_block_rq_insert(rq);
	WRITE_ONCE(bd->waiting, bd->waiting + 1);
	if (at_head) {
		list_add(&rq->queuelist, &bd->urgent);
		return;
	}
	if (isoblk_rq_is_urgent(g->group, rq)) {
		list_add_tail(&rq->queuelist, &bd->urgent);
		return;
	}
	list_add_tail(&rq->queuelist, &g->fifo[class_of(bd, rq->cmd_flags)]);
	if (!g->waiting)
		list_add_tail(&g->turn, &bd->turns);
	WRITE_ONCE(g->waiting, g->waiting + 1);
}

void budget_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			    blk_insert_t flags)
{
	struct budget_disk *bd = q_to_budget(hctx->queue);
	struct request *rq, *next;

	spin_lock_irq(&bd->disk.lock);
	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		insert(bd, rq, flags & BLK_MQ_INSERT_AT_HEAD);
	}
	/* The kernel runs the queue next, and which group may send is looked for again. */
	WRITE_ONCE(bd->blocked, false);
	spin_unlock_irq(&bd->disk.lock);
}
EXPORT_SYMBOL_GPL(budget_insert_requests);

/* ---- out ------------------------------------------------------------------------ */

static bool has_token(const struct budget_disk *bd, unsigned int class)
{
	return !bd->depth[class] || bd->in_device[class] < bd->depth[class];
}

/* The class of which @g sends next: the one in turn, of those that have a token; or -1. */
static int next_class(const struct budget_disk *bd, const struct budget_group *g)
{
	unsigned int nr = max(bd->policy->nr_classes, 1U), i, class = bd->class;

	if (nr > 1 && bd->batch >= bd->policy->batch[class])
		class = (class + 1) % nr;
	for (i = 0; i < nr; i++, class = (class + 1) % nr)
		if (!list_empty(&g->fifo[class]) && has_token(bd, class))
			return class;
	return -1;
}

/* The first group in turn that has a budget and a token for @class; or NULL. */
static struct budget_group *next_group(struct budget_disk *bd, int *class)
{
	struct budget_group *g;

	bd->no_token = false;
	list_for_each_entry(g, &bd->turns, turn) {
		if (g->left <= 0)
			continue;
		*class = next_class(bd, g);
		if (*class >= 0)
			return g;
		bd->no_token = true;
	}
	return NULL;
}

/* @rq goes to the device. */
static void send(struct budget_disk *bd, struct request *rq, u64 now)
{
	unsigned int class = class_of(bd, rq->cmd_flags);
	struct budget_group *g = rq_group(rq);
	u64 sectors = blk_rq_sectors(rq) ?: ISOBLK_NO_DATA_COST;

	rq_set_state(rq, sectors << RQ_SECTORS_SHIFT | RQ_IN_DEVICE);
	charge(rq, 1);
	isoblk_account_dispatched(rq_gq(rq), rq);
	WRITE_ONCE(bd->waiting, bd->waiting - 1);
	g->in_device++;
	g->wait_ns += now - min(rq->start_time_ns, now);
	bd->in_device[class]++;
	bd->batch = class == bd->class ? bd->batch + 1 : 1;
	bd->class = class;
}

/* A request whose turn it is; or NULL, and why. */
static struct request *next_in_turn(struct budget_disk *bd, u64 now)
{
	struct budget_group *g;
	struct request *rq;
	int class;

	g = next_group(bd, &class);
	if (!g && !list_empty(&bd->turns) && !bd->no_token && all_used(bd)) {
		refill(bd, now);
		g = next_group(bd, &class);
	}
	if (!g)
		return NULL;
	rq = list_first_entry(&g->fifo[class], struct request, queuelist);
	list_del_init(&rq->queuelist);
	WRITE_ONCE(g->waiting, g->waiting - 1);
	if (g->waiting)
		list_move_tail(&g->turn, &bd->turns);
	else
		list_del_init(&g->turn);
	return rq;
}

struct request *budget_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct budget_disk *bd = q_to_budget(hctx->queue);
	u64 now = blk_time_get_ns();
	struct request *rq;

	spin_lock_irq(&bd->disk.lock);
	rq = list_first_entry_or_null(&bd->urgent, struct request, queuelist);
	if (rq)
		list_del_init(&rq->queuelist);
	else
		rq = next_in_turn(bd, now);
	if (rq)
		send(bd, rq, now);
	else
		WRITE_ONCE(bd->blocked, true);
	spin_unlock_irq(&bd->disk.lock);
	return rq;
}
EXPORT_SYMBOL_GPL(budget_dispatch_request);

bool budget_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct budget_disk *bd = q_to_budget(hctx->queue);

	return READ_ONCE(bd->waiting) && !READ_ONCE(bd->blocked);
}
EXPORT_SYMBOL_GPL(budget_has_work);

/* ---- back ----------------------------------------------------------------------- */

/* @rq is no longer with the device. Return: hardware queues are to be run, without the lock. */
static bool back(struct budget_disk *bd, struct request *rq)
{
	struct budget_group *g = rq_group(rq);
	unsigned long state = rq_state(rq);
	bool run;

	if (!(state & RQ_IN_DEVICE))
		return false;
	rq_set_state(rq, state & ~RQ_IN_DEVICE);
	g->in_device--;
	bd->in_device[class_of(bd, rq->cmd_flags)]--;
	/* There is a token again; or the group that the others waited for has nothing more. */
	run = bd->blocked && (bd->no_token || !has_requests(g));
	if (run)
		WRITE_ONCE(bd->blocked, false);
	return run;
}

void budget_completed_request(struct request *rq, u64 now)
{
	struct budget_disk *bd = q_to_budget(rq->q);
	unsigned long flags;
	bool run;

	if (!rq_gq(rq))
		return;
	spin_lock_irqsave(&bd->disk.lock, flags);
	bd->done += rq_charged(rq);
	run = back(bd, rq);
	spin_unlock_irqrestore(&bd->disk.lock, flags);
	if (run)
		blk_mq_run_hw_queues(rq->q, true);
}
EXPORT_SYMBOL_GPL(budget_completed_request);

/* @rq is charged, or with @sign -1 refunded, while it is in no queue. */
static void charge_late(struct request *rq, int sign)
{
	isoblk_account_bypassed(rq_gq(rq)->group, rq, rq_charged(rq), sign);
	charge(rq, sign);
}

/* The driver gives @rq back. It comes again by insertion, or goes straight to the driver. */
void budget_requeue_request(struct request *rq)
{
	struct budget_disk *bd = q_to_budget(rq->q);
	unsigned long flags;
	bool run;

	if (!rq_gq(rq) || !(rq_state(rq) & RQ_IN_DEVICE))
		return;
	spin_lock_irqsave(&bd->disk.lock, flags);
	run = back(bd, rq);
	charge_late(rq, -1);
	rq_set_state(rq, rq_state(rq) | RQ_REFUNDED);
	spin_unlock_irqrestore(&bd->disk.lock, flags);
	if (run)
		blk_mq_run_hw_queues(rq->q, true);
}
EXPORT_SYMBOL_GPL(budget_requeue_request);

void budget_finish_request(struct request *rq)
{
	struct budget_disk *bd = q_to_budget(rq->q);
	struct isoblk_gq *gq = rq_gq(rq);
	struct blkcg_gq *blkg;
	unsigned long flags;
	bool run;

	if (!gq) {
		isoblk_gate_release_unused(rq);
		return;
	}
	blkg = pd_to_blkg(&gq->group->pd);
	isoblk_gate_release_tag(gq);
	spin_lock_irqsave(&bd->disk.lock, flags);
	run = back(bd, rq);
	if (rq_state(rq) & RQ_REFUNDED)
		charge_late(rq, 1);
	spin_unlock_irqrestore(&bd->disk.lock, flags);
	blkg_put(blkg);
	rq->elv.priv[0] = NULL;
	if (run)
		blk_mq_run_hw_queues(rq->q, true);
}
EXPORT_SYMBOL_GPL(budget_finish_request);

/* ---- life ----------------------------------------------------------------------- */

static void group_init(struct isoblk_group *group)
{
	struct budget_group *g = isoblk_group_own(group);
	unsigned int i;

	g->group = group;
	INIT_LIST_HEAD(&g->member);
	INIT_LIST_HEAD(&g->turn);
	for (i = 0; i < BUDGET_CLASSES; i++)
		INIT_LIST_HEAD(&g->fifo[i]);
}

static void group_exit(struct isoblk_group *group)
{
	struct budget_group *g = isoblk_group_own(group);

	if (!list_empty(&g->member))
		leave(g);
}

static void stat(struct isoblk_group *group, struct seq_file *s)
{
	struct budget_disk *bd = container_of(group->disk, struct budget_disk, disk);
	struct budget_group *g = isoblk_group_own(group);

	seq_printf(s, " isoblk.%s=%lld isoblk.wait_us=%llu", bd->policy->left_name,
		   READ_ONCE(g->left) << SECTOR_SHIFT,
		   div_u64(READ_ONCE(g->wait_ns), NSEC_PER_USEC));
}

static const struct isoblk_ops budget_ops = {
	.own_size = sizeof(struct budget_group),
	.group_init = group_init,
	.group_exit = group_exit,
	.stat = stat,
};

/**
 * budget_init() - a scheduler's init_sched
 * @bd: first in the scheduler's own data, zero
 * @q: frozen
 * @eq: the elevator's; @bd becomes its data
 * @policy: what the scheduler does its own way
 *
 * Return: 0 or a negative errno; then nothing is left to undo.
 */
int budget_init(struct budget_disk *bd, struct request_queue *q,
		struct elevator_queue *eq, const struct budget_policy *policy)
{
	int ret;

	bd->policy = policy;
	INIT_LIST_HEAD(&bd->members);
	INIT_LIST_HEAD(&bd->turns);
	INIT_LIST_HEAD(&bd->urgent);
	timer_setup(&bd->tick, budget_tick, 0);
	bd->refilled_ns = ktime_get_ns();
	ret = isoblk_groups_init(&bd->disk, q, eq, &budget_ops);
	if (ret)
		return ret;
	/* Else a request has no io_start_time_ns. */
	blk_stat_enable_accounting(q);
	/* One hardware queue is as good as another: any sends for all. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	return 0;
}
EXPORT_SYMBOL_GPL(budget_init);

/**
 * budget_exit() - a scheduler's exit_sched; @bd is the caller's to free
 * @bd: no request is in flight, no bio waits
 * @eq: the elevator's
 */
void budget_exit(struct budget_disk *bd, struct elevator_queue *eq)
{
	blk_stat_disable_accounting(bd->disk.q);
	timer_shutdown_sync(&bd->tick);
	isoblk_groups_exit(&bd->disk, eq);
}
EXPORT_SYMBOL_GPL(budget_exit);

/* ---- sysfs, debugfs --------------------------------------------------------------- */

ssize_t budget_paper_mode_show(struct elevator_queue *e, char *page)
{
	struct budget_disk *bd = e->elevator_data;

	return sysfs_emit(page, "%d\n", READ_ONCE(bd->paper));
}
EXPORT_SYMBOL_GPL(budget_paper_mode_show);

ssize_t budget_paper_mode_store(struct elevator_queue *e, const char *page,
				size_t count)
{
	struct budget_disk *bd = e->elevator_data;

	/* The next tick tries again what waits. */
	return isoblk_store_bool(page, count, &bd->paper);
}
EXPORT_SYMBOL_GPL(budget_paper_mode_store);

#ifdef CONFIG_BLK_DEBUG_FS
int budget_debugfs_groups(void *data, struct seq_file *m)
{
	struct budget_disk *bd = isoblk_show_begin(data, budget_debugfs_groups);
	const struct budget_group *g;

	if (!bd)
		return 0;
	spin_lock_irq(&bd->disk.lock);
	list_for_each_entry(g, &bd->members, member) {
		isoblk_show_group(m, g->group);
		seq_printf(m, " left %lld waiting %u in_device %u at_gate %u\n",
			   g->left, g->waiting, g->in_device,
			   isoblk_group_nr_waiting(g->group));
	}
	spin_unlock_irq(&bd->disk.lock);
	isoblk_show_end(data);
	return 0;
}
EXPORT_SYMBOL_GPL(budget_debugfs_groups);
#endif
