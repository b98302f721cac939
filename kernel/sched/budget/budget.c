// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets: the common code of the schedulers of P2 (feedbac) and P3 (kyber-fair).
 *
 * A group has a budget of sectors. A request is charged to it when it is sent, and a group without
 * a budget sends nothing. A refill gives each active group its share of a round, added to what it
 * has left; a group below 0 pays its debt first. The scheduler chooses the size of a round: from
 * the sectors used (P3), or from a prediction (P2). Groups with a budget take turns of one request,
 * and the device gets all that the budgets allow. Urgent requests (swap-out, and metadata of a
 * group with a budget) precede all others. The disk does not idle, so weights hold among groups
 * that always have requests.
 *
 * Paper mode changes one thing, the time of a refill:
 *
 *  - In paper mode a refill comes when each active group has used up its budget, or when the period
 *    is over. A group is active if it has sent a request since the last refill, or has one. A
 *    period is long (100 ms in P3). So a group with a small request now and then makes all other
 *    groups wait for the end of the period.
 *  - By default a refill comes when no group with a request, waiting or in flight, has a budget. A
 *    group without requests keeps its budget and delays no refill. A round is short, so that a
 *    light group does not use up its part long before the heavy groups do.
 *
 * Locks: the disk lock guards everything, with interrupts off. One hardware queue dispatches for
 * all. Hardware queues are run without the lock.
 *
 * Lifetime: a request holds the blkg of its group, and so does a member. A group becomes a member
 * with its first request, and leaves when the tick finds it idle.
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

/* A group without requests leaves after this number of ticks, 100 ms. */
#define BUDGET_IDLE_TICKS_MAX	(msecs_to_jiffies(100) / ISOBLK_TICK)

/*
 * State of a request: from insertion on rq->elv.priv[0] is its struct isoblk_gq. elv.priv[1] packs,
 * under the disk lock, the sectors that it was charged, and:
 */
#define BUDGET_RQ_IN_FLIGHT	BIT(0)
#define BUDGET_RQ_REFUNDED	BIT(1)	/* the charge was taken back at requeue */
#define BUDGET_RQ_SECTORS_SHIFT	2

static struct budget_disk *q_to_budget(const struct request_queue *q)
{
	return q->elevator->elevator_data;
}

static struct isoblk_gq *budget_rq_gq(const struct request *rq)
{
	return rq->elv.priv[0];
}

static struct budget_group *budget_rq_group(const struct request *rq)
{
	return isoblk_group_own(budget_rq_gq(rq)->group);
}

static unsigned long budget_rq_state(const struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static void budget_rq_set_state(struct request *rq, unsigned long state)
{
	rq->elv.priv[1] = (void *)state;
}

static unsigned int budget_rq_charged(const struct request *rq)
{
	return budget_rq_state(rq) >> BUDGET_RQ_SECTORS_SHIFT;
}

static unsigned int budget_class_of(const struct budget_disk *bd, blk_opf_t opf)
{
	return bd->policy->class ? bd->policy->class(opf) : 0;
}

/* ---- budgets -------------------------------------------------------------------- */

static bool budget_has_requests(const struct budget_group *g)
{
	return g->waiting || g->in_flight;
}

/* Whether @g has a part of the next round, and delays a refill while it has a budget. */
static bool budget_is_active(const struct budget_disk *bd, const struct budget_group *g)
{
	return budget_has_requests(g) || (READ_ONCE(bd->paper_mode) && g->used);
}

/*
 * Give active groups their parts of @sectors. A fraction of a sector is kept for the next round: on
 * a slow device a light group's part is a few sectors, and rounding would cost several percent of
 * it.
 */
static void budget_grant(struct budget_disk *bd, u64 sectors)
{
	struct budget_group *g;
	u32 share;

	list_for_each_entry(g, &bd->members, member_node) {
		if (!budget_is_active(bd, g))
			continue;
		share = isoblk_group_share(g->group);
		g->left += mul_div(sectors, share, ISOBLK_SHARE_ONE);
		/* The product may have more than 64 bits; its low bits are right. */
		g->fraction += (sectors * share) & (ISOBLK_SHARE_ONE - 1);
		g->left += g->fraction >> ISOBLK_SHARE_SHIFT;
		g->fraction &= ISOBLK_SHARE_ONE - 1;
	}
}

/*
 * The smallest round after which one group with requests is out of debt; 0: one has a budget
 * already. A group with all requests in flight counts as well: waiting for its next request takes
 * little time. A round that gets a lighter group out of debt instead may be a thousand times too
 * large.
 */
static u64 budget_min_round(const struct budget_disk *bd)
{
	const struct budget_group *g;
	u64 least = 0, need;

	list_for_each_entry(g, &bd->members, member_node) {
		if (!budget_has_requests(g))
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
static void budget_refill(struct budget_disk *bd, u64 now)
{
	struct budget_round r = { .elapsed_ns = now - min(bd->refilled_ns, now) };
	struct budget_group *g;

	list_for_each_entry(g, &bd->members, member_node) {
		r.used += g->used;
		if (budget_is_active(bd, g))
			r.left += g->left;
	}
	bd->granted_sectors = bd->policy->round(bd, &r);
	bd->refilled_ns = now;
	budget_grant(bd, bd->granted_sectors);
	budget_grant(bd, budget_min_round(bd));
	list_for_each_entry(g, &bd->members, member_node)
		g->used = 0;
}

/* Whether no active group has a budget left. */
static bool budget_is_used_up(const struct budget_disk *bd)
{
	const struct budget_group *g;

	list_for_each_entry(g, &bd->members, member_node)
		if (g->left > 0 && budget_is_active(bd, g))
			return false;
	return true;
}

/* Charge @rq to its group if @sign is 1, take the charge back if it is -1. */
static void budget_charge(struct request *rq, int sign)
{
	struct budget_group *g = budget_rq_group(rq);
	s64 sectors = budget_rq_charged(rq);

	g->left -= sign * sectors;
	g->used += sign * sectors;
	/* In debt, the metadata of a group is not urgent, and waits at the gate as well. */
	isoblk_group_set_indebted(g->group, g->left <= 0);
}

/* ---- members -------------------------------------------------------------------- */

static void budget_join(struct budget_disk *bd, struct budget_group *g)
{
	if (!list_empty(&g->member_node))
		return;
	/* The caller has a request of the group, whose bio holds the blkg. */
	blkg_get(pd_to_blkg(&g->group->pd));
	isoblk_group_activate(g->group);
	list_add_tail(&g->member_node, &bd->members);
	g->used = 0;
	g->left = mul_div(bd->granted_sectors, isoblk_group_share(g->group),
			  ISOBLK_SHARE_ONE);
	if (!timer_pending(&bd->tick))
		mod_timer(&bd->tick, jiffies + ISOBLK_TICK);
}

static void budget_leave(struct budget_group *g)
{
	list_del_init(&g->member_node);
	isoblk_group_deactivate(g->group);
	blkg_put(pd_to_blkg(&g->group->pd));
}

static void budget_leave_idle(struct budget_disk *bd)
{
	struct budget_group *g, *next;
	struct blkcg_gq *blkg;

	list_for_each_entry_safe(g, next, &bd->members, member_node) {
		blkg = pd_to_blkg(&g->group->pd);
		if (budget_has_requests(g))
			g->idle_ticks = 0;
		else if (++g->idle_ticks > BUDGET_IDLE_TICKS_MAX || !READ_ONCE(blkg->online))
			budget_leave(g);
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
	budget_leave_idle(bd);
	isoblk_gate_tick(&bd->disk);
	if (READ_ONCE(bd->paper_mode) && bd->waiting &&
	    now - bd->refilled_ns >= bd->policy->period_ns(bd))
		budget_refill(bd, now);
	/* Look again: a weight, a depth or the mode may have changed. */
	run = bd->blocked && bd->waiting;
	WRITE_ONCE(bd->blocked, false);
	if (!list_empty(&bd->members))
		mod_timer(&bd->tick, jiffies + ISOBLK_TICK);
	spin_unlock_irqrestore(&bd->disk.lock, flags);
	if (run)
		blk_mq_run_hw_queues(bd->disk.q, true);
}

/* ---- merging, insertion ---------------------------------------------------------- */

bool budget_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs)
{
	struct isoblk_gq *waited = isoblk_gate_recognize(q, bio);
	struct isoblk_group *group = isoblk_bio_group(bio);
	struct budget_group *g = isoblk_group_own(group);
	struct budget_disk *bd = q_to_budget(q);
	bool merged = false;

	/* Most bios find no waiting request of their group; that takes no lock to see. */
	if (READ_ONCE(g->waiting)) {
		spin_lock_irq(&bd->disk.lock);
		merged = blk_bio_list_merge(q, &g->fifo[budget_class_of(bd, bio->bi_opf)],
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

/* On its first insertion a request finds its group by its bio, and takes a reference. */
static void budget_attach_request(struct request *rq)
{
	struct isoblk_group *group = isoblk_bio_group(rq->bio);
	struct isoblk_hq *hq = rq->mq_hctx->sched_data;

	blkg_get(pd_to_blkg(&group->pd));
	rq->elv.priv[0] = group->gq[hq->index];
	isoblk_gate_count_tag(budget_rq_gq(rq));
}

static void budget_insert_request(struct budget_disk *bd, struct request *rq, bool at_head)
{
	struct budget_group *g;

	if (!budget_rq_gq(rq))
		budget_attach_request(rq);
	g = budget_rq_group(rq);
	budget_join(bd, g);
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
	list_add_tail(&rq->queuelist, &g->fifo[budget_class_of(bd, rq->cmd_flags)]);
	if (!g->waiting)
		list_add_tail(&g->turn_node, &bd->turns);
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
		budget_insert_request(bd, rq, flags & BLK_MQ_INSERT_AT_HEAD);
	}
	/* The kernel runs the hardware queue after this, and budget_next_group() decides anew. */
	WRITE_ONCE(bd->blocked, false);
	spin_unlock_irq(&bd->disk.lock);
}
EXPORT_SYMBOL_GPL(budget_insert_requests);

/* ---- dispatch --------------------------------------------------------------------- */

static bool budget_has_token(const struct budget_disk *bd, unsigned int class)
{
	return !bd->depth[class] || bd->in_flight[class] < bd->depth[class];
}

/* The class of the next request of @g: classes in turn, of those with a token; or -1. */
static int budget_next_class(const struct budget_disk *bd, const struct budget_group *g)
{
	unsigned int nr = max(bd->policy->nr_classes, 1U), i, class = bd->class;

	if (nr > 1 && bd->batch >= bd->policy->batch[class])
		class = (class + 1) % nr;
	for (i = 0; i < nr; i++, class = (class + 1) % nr)
		if (!list_empty(&g->fifo[class]) && budget_has_token(bd, class))
			return class;
	return -1;
}

/* The first group in turn that has a budget and a token for @class; or NULL. */
static struct budget_group *budget_next_group(struct budget_disk *bd, int *class)
{
	struct budget_group *g;

	bd->lacks_token = false;
	list_for_each_entry(g, &bd->turns, turn_node) {
		if (g->left <= 0)
			continue;
		*class = budget_next_class(bd, g);
		if (*class >= 0)
			return g;
		bd->lacks_token = true;
	}
	return NULL;
}

/* Charge and count @rq, which is sent. */
static void budget_activate_request(struct budget_disk *bd, struct request *rq, u64 now)
{
	unsigned int class = budget_class_of(bd, rq->cmd_flags);
	struct budget_group *g = budget_rq_group(rq);
	u64 sectors = blk_rq_sectors(rq) ?: ISOBLK_NO_DATA_COST;

	budget_rq_set_state(rq, sectors << BUDGET_RQ_SECTORS_SHIFT | BUDGET_RQ_IN_FLIGHT);
	budget_charge(rq, 1);
	isoblk_account_dispatched(budget_rq_gq(rq), rq);
	WRITE_ONCE(bd->waiting, bd->waiting - 1);
	g->in_flight++;
	g->wait_ns += now - min(rq->start_time_ns, now);
	bd->in_flight[class]++;
	bd->batch = class == bd->class ? bd->batch + 1 : 1;
	bd->class = class;
}

/* Take the next request in turn off its queue, after a refill if one is due; or NULL. */
static struct request *budget_next_request(struct budget_disk *bd, u64 now)
{
	struct budget_group *g;
	struct request *rq;
	int class;

	g = budget_next_group(bd, &class);
	if (!g && !list_empty(&bd->turns) && !bd->lacks_token && budget_is_used_up(bd)) {
		budget_refill(bd, now);
		g = budget_next_group(bd, &class);
	}
	if (!g)
		return NULL;
	rq = list_first_entry(&g->fifo[class], struct request, queuelist);
	list_del_init(&rq->queuelist);
	WRITE_ONCE(g->waiting, g->waiting - 1);
	if (g->waiting)
		list_move_tail(&g->turn_node, &bd->turns);
	else
		list_del_init(&g->turn_node);
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
		rq = budget_next_request(bd, now);
	if (rq)
		budget_activate_request(bd, rq, now);
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

/* ---- completion, requeue ---------------------------------------------------------- */

/* @rq is no longer in flight. Return: the hardware queues are to be run, without the lock. */
static bool budget_deactivate_request(struct budget_disk *bd, struct request *rq)
{
	struct budget_group *g = budget_rq_group(rq);
	unsigned long state = budget_rq_state(rq);
	bool run;

	if (!(state & BUDGET_RQ_IN_FLIGHT))
		return false;
	budget_rq_set_state(rq, state & ~BUDGET_RQ_IN_FLIGHT);
	g->in_flight--;
	bd->in_flight[budget_class_of(bd, rq->cmd_flags)]--;
	/* A token is free; or this group had delayed the refill, and has no more requests. */
	run = bd->blocked && (bd->lacks_token || !budget_has_requests(g));
	if (run)
		WRITE_ONCE(bd->blocked, false);
	return run;
}

void budget_completed_request(struct request *rq, u64 now)
{
	struct budget_disk *bd = q_to_budget(rq->q);
	unsigned long flags;
	bool run;

	if (!budget_rq_gq(rq))
		return;
	spin_lock_irqsave(&bd->disk.lock, flags);
	bd->done_sectors += budget_rq_charged(rq);
	run = budget_deactivate_request(bd, rq);
	spin_unlock_irqrestore(&bd->disk.lock, flags);
	if (run)
		blk_mq_run_hw_queues(rq->q, true);
}
EXPORT_SYMBOL_GPL(budget_completed_request);

/* Charge @rq, or take its charge back, while it is in no queue. */
static void budget_charge_requeued(struct request *rq, int sign)
{
	isoblk_account_bypassed(budget_rq_gq(rq)->group, rq, budget_rq_charged(rq), sign);
	budget_charge(rq, sign);
}

/* The driver gives @rq back. It is inserted again, or issued without the elevator. */
void budget_requeue_request(struct request *rq)
{
	struct budget_disk *bd = q_to_budget(rq->q);
	unsigned long flags;
	bool run;

	if (!budget_rq_gq(rq) || !(budget_rq_state(rq) & BUDGET_RQ_IN_FLIGHT))
		return;
	spin_lock_irqsave(&bd->disk.lock, flags);
	run = budget_deactivate_request(bd, rq);
	budget_charge_requeued(rq, -1);
	budget_rq_set_state(rq, budget_rq_state(rq) | BUDGET_RQ_REFUNDED);
	spin_unlock_irqrestore(&bd->disk.lock, flags);
	if (run)
		blk_mq_run_hw_queues(rq->q, true);
}
EXPORT_SYMBOL_GPL(budget_requeue_request);

void budget_finish_request(struct request *rq)
{
	struct budget_disk *bd = q_to_budget(rq->q);
	struct isoblk_gq *gq = budget_rq_gq(rq);
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
	run = budget_deactivate_request(bd, rq);
	if (budget_rq_state(rq) & BUDGET_RQ_REFUNDED)
		budget_charge_requeued(rq, 1);
	spin_unlock_irqrestore(&bd->disk.lock, flags);
	blkg_put(blkg);
	rq->elv.priv[0] = NULL;
	if (run)
		blk_mq_run_hw_queues(rq->q, true);
}
EXPORT_SYMBOL_GPL(budget_finish_request);

/* ---- init, exit ------------------------------------------------------------------- */

static void budget_group_init(struct isoblk_group *group)
{
	struct budget_group *g = isoblk_group_own(group);
	unsigned int i;

	g->group = group;
	INIT_LIST_HEAD(&g->member_node);
	INIT_LIST_HEAD(&g->turn_node);
	for (i = 0; i < BUDGET_NR_CLASSES; i++)
		INIT_LIST_HEAD(&g->fifo[i]);
}

static void budget_group_exit(struct isoblk_group *group)
{
	struct budget_group *g = isoblk_group_own(group);

	if (!list_empty(&g->member_node))
		budget_leave(g);
}

static void budget_stat(struct isoblk_group *group, struct seq_file *s)
{
	struct budget_disk *bd = container_of(group->disk, struct budget_disk, disk);
	struct budget_group *g = isoblk_group_own(group);

	seq_printf(s, " isoblk.%s=%lld isoblk.wait_us=%llu", bd->policy->left_name,
		   READ_ONCE(g->left) << SECTOR_SHIFT,
		   div_u64(READ_ONCE(g->wait_ns), NSEC_PER_USEC));
}

static const struct isoblk_ops budget_ops = {
	.own_size = sizeof(struct budget_group),
	.group_init = budget_group_init,
	.group_exit = budget_group_exit,
	.stat = budget_stat,
};

/**
 * budget_init() - a scheduler's init_sched
 * @bd: first member of the scheduler's data, zero
 * @q: frozen
 * @eq: elevator queue; @bd becomes its data
 * @policy: operations and constants of the scheduler
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
	/* Without accounting rq->io_start_time_ns is not set. */
	blk_stat_enable_accounting(q);
	/* Any hardware queue dispatches for all: requests are in queues of groups. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	return 0;
}
EXPORT_SYMBOL_GPL(budget_init);

/**
 * budget_exit() - a scheduler's exit_sched; the caller frees @bd
 * @bd: no request is in flight, no bio waits
 * @eq: elevator queue
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

	return sysfs_emit(page, "%d\n", READ_ONCE(bd->paper_mode));
}
EXPORT_SYMBOL_GPL(budget_paper_mode_show);

ssize_t budget_paper_mode_store(struct elevator_queue *e, const char *page,
				size_t count)
{
	struct budget_disk *bd = e->elevator_data;

	/* The next tick runs the hardware queues if requests wait. */
	return isoblk_store_bool(page, count, &bd->paper_mode);
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
	list_for_each_entry(g, &bd->members, member_node) {
		isoblk_show_group(m, g->group);
		seq_printf(m, " left %lld waiting %u in_device %u at_gate %u\n",
			   g->left, g->waiting, g->in_flight,
			   isoblk_group_nr_waiting(g->group));
	}
	spin_unlock_irq(&bd->disk.lock);
	isoblk_show_end(data);
	return 0;
}
EXPORT_SYMBOL_GPL(budget_debugfs_groups);
#endif
