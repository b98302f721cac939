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
 *  - The horizon (hold.c): nobody is further ahead than a little of those for
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
 * @blocked; a dispatch that finds nothing sets @blocked first, and looks again.
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
 * Locks, outermost first: hq->lock, disk.lock. Lifetime: a group that takes part holds
 * its blkg, and takes part as long as a request of it has a tag (iso_leave()). Who counts such
 * a request down is in an RCU section, for then the group may go.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <trace/events/block.h>

#include "core.h"

/* Beside others a merged request grows to this: so long they may wait for it. */
#define MERGE_KB		128

/*
 * A group of whose bios so many in a row could not be merged sends what lies here and
 * there: the search is made for one in so many of the next.
 */
#define MERGE_TRIES		64
#define MERGE_ONE_IN		8

/*
 * A device that is busy with so few requests at once gains by larger ones. Any other
 * serves many side by side: no request takes more than this part of the window.
 */
#define FEW_REQUESTS		8

/* How far groups may be apart, as time of the device. */
#define HOLD_US			200
#define HOLD_US_ROTATIONAL	100000

/* For how long somebody is waited for who is expected back. */
#define IDLE_US			100
#define IDLE_US_ROTATIONAL	8000

/* How much time may be lost by that, permille. */
#define IDLE_LOSS		10

/* A group that has been late once may be behind by so many slacks, and no more. */
#define LATE_SLACKS		2

/* The disk's time is written when it has moved on by this part of the slack. */
#define VNOW_FRACTION		16

/* How often groups that are idle are looked for. */
#define ISO_TICK		msecs_to_jiffies(50)

/* The disk's time to begin with: times before it exist. */
#define FIRST_VNOW		BIT_ULL(60)

/*
 * rq->elv.priv[0] is the struct iso_gq that the request is of, from the first
 * insertion on. priv[1] packs:
 */
#define RQ_IN_DEVICE		BIT(0)
#define RQ_REFUNDED		BIT(1)	/* it came back, and what it was charged too */
#define RQ_AT_HEAD		BIT(2)	/* it is to go before its group's others */
#define RQ_FRESH		BIT(3)	/* when it came, its group was not ahead */
#define RQ_FIRST		BIT(4)	/* it went before all others, on a disk that turns */
#define RQ_WORK_SHIFT		5
#define RQ_SECTORS_SHIFT	32

static_assert(BITS_PER_LONG == 64);

static struct iso_disk *q_to_iso(const struct request_queue *q)
{
	return q->elevator->elevator_data;
}

static struct iso_hq *hctx_to_hq(const struct blk_mq_hw_ctx *hctx)
{
	const struct isoblk_hq *common = hctx->sched_data;

	return common->own;
}

/* It may be that another CPU has noted a later time: the next one notes it again. */
static void note_now(struct iso_hq *hq, u64 now)
{
	if (now > READ_ONCE(hq->now))
		WRITE_ONCE(hq->now, now);
}

static struct iso_gq *rq_to_gq(const struct request *rq)
{
	return rq->elv.priv[0];
}

static unsigned long rq_state(const struct request *rq)
{
	return (unsigned long)rq->elv.priv[1];
}

static void rq_set_state(struct request *rq, unsigned long flags, u64 work)
{
	rq->elv.priv[1] = (void *)(flags | work << RQ_WORK_SHIFT |
		(unsigned long)blk_rq_sectors(rq) << RQ_SECTORS_SHIFT);
}

static u64 rq_work(const struct request *rq)
{
	return rq_state(rq) >> RQ_WORK_SHIFT & ISO_WORK_MOST;
}

static unsigned int rq_sectors(const struct request *rq)
{
	return rq_state(rq) >> RQ_SECTORS_SHIFT;
}

static unsigned int rq_class(const struct iso_disk *d, const struct request *rq)
{
	return d->nr_classes ? d->policy->class(rq->cmd_flags) : 0;
}

/*
 * Others may wait for it in turn. What is swapped out never waits: its group would be short
 * of memory meanwhile, and its tasks be killed.
 */
static bool rq_urgent(const struct request *rq)
{
	if (rq->cmd_flags & REQ_SWAP)
		return true;
	return rq->cmd_flags & REQ_META &&
		!READ_ONCE(rq_to_gq(rq)->group->group->indebted);
}

/* ---- dispatch ------------------------------------------------------------- */

static void note_peak(struct iso_disk *d, struct iso_hq *hq, u64 work)
{
	s64 in = READ_ONCE(d->room.size) - atomic64_read(&d->room.pool) -
		atomic64_read(&d->room.lease[hq->index].spare);

	if (in > (s64)READ_ONCE(d->epoch.peak))
		WRITE_ONCE(d->epoch.peak, in);
	if (work > READ_ONCE(d->epoch.largest))
		WRITE_ONCE(d->epoch.largest, work);
}

/* @rq goes to the device. */
static void charge(struct iso_disk *d, struct iso_hq *hq, struct request *rq,
		   u64 work)
{
	struct iso_gq *gq = rq_to_gq(rq);
	struct iso_group *g = gq->group;
	enum isoblk_op op = isoblk_rq_op(rq);
	u64 now, waited;
	bool indebted;

	atomic64_add(vtime_step(work, max(READ_ONCE(g->share), 1U)), &g->vtime);
	if (unlikely(READ_ONCE(d->paper)))
		atomic64_add(work, &d->rounds.charged);
	indebted = iso_indebted(d, g);
	if (READ_ONCE(g->group->indebted) != indebted)
		WRITE_ONCE(g->group->indebted, indebted);

	atomic64_add(ISO_IN_DEVICE - ISO_WAITS, &g->has);
	atomic_inc(&hq->in_device);
	WRITE_ONCE(hq->nr, hq->nr - 1);
	note_peak(d, hq, work);
	rq_set_state(rq, RQ_IN_DEVICE, work);
	if (unlikely(iso_is_alone(d)) &&
	    (enum price_kind)op != READ_ONCE(d->tariff.alone))
		atomic64_add(work, &d->pricing.passed);
	WRITE_ONCE(gq->common->bytes[op],
		   gq->common->bytes[op] + blk_rq_bytes(rq));
	WRITE_ONCE(gq->common->ios[op], gq->common->ios[op] + 1);
	now = READ_ONCE(hq->now);
	if (now <= rq->start_time_ns)
		return;
	waited = now - rq->start_time_ns;
	WRITE_ONCE(gq->wait_ns, gq->wait_ns + waited);
	WRITE_ONCE(gq->wait_area, gq->wait_area + waited * work);
}

/* Nothing may go for now. */
static void block(struct iso_disk *d, struct iso_hq *hq)
{
	lockdep_assert_held(&hq->lock);

	WRITE_ONCE(hq->wait_tag, hq->next.tag);
	WRITE_ONCE(hq->lacks, hq->next.lacks);
	/* Counted before it can be undone. */
	atomic_inc(&d->nr_blocked);
	if (xchg(&hq->blocked, true))
		atomic_dec(&d->nr_blocked);
}

/* Returns false if it was not blocked. */
static bool unblock(struct iso_disk *d, struct iso_hq *hq)
{
	if (!READ_ONCE(hq->blocked) || !xchg(&hq->blocked, false))
		return false;
	atomic_dec(&d->nr_blocked);
	return true;
}

/*
 * Whether @hq, which waits for room, need not any longer: there is @least of it free, and
 * enough for its next. While somebody waits all that is free is in the pool.
 */
static bool may_go(const struct iso_disk *d, const struct iso_hq *hq,
		   u64 least)
{
	s64 lacks = max(READ_ONCE(hq->lacks), least);

	return atomic64_read(&d->room.pool) >= lacks ||
		atomic_read(&hq->in_device) < ISO_LEAST_IN_DEVICE;
}

/*
 * Whether @hq is to be run for what has just completed. To run it is a change of
 * task, so where it waits for room some is let gather. As long as the device has other
 * requests of @hq, one of them asks again; and whoever sends the next runs it anyway.
 */
static bool worth_a_run(const struct iso_disk *d, const struct iso_hq *hq)
{
	return !READ_ONCE(hq->lacks) ||
		may_go(d, hq, READ_ONCE(d->size.gather));
}

/* Send what goes before all others, above the window if need be. */
static void force(struct iso_disk *d, struct iso_hq *hq, struct request *rq,
		  unsigned int class)
{
	u64 work;

	iso_update_share(d, rq_to_gq(rq)->group);
	work = iso_work_of(d, rq);
	iso_room_force(&d->room, hq->index, work);
	if (d->nr_classes)
		iso_room_force(&d->tokens[class], hq->index, 1);
	charge(d, hq, rq, work);
}

static struct request *next_urgent(struct iso_disk *d, struct iso_hq *hq)
{
	struct request *rq = list_first_entry_or_null(&hq->urgent,
						      struct request,
						      queuelist);
	struct iso_group *g;
	u64 from;

	if (!rq)
		return NULL;
	list_del_init(&rq->queuelist);
	g = rq_to_gq(rq)->group;
	from = atomic64_read(&g->vtime);
	force(d, hq, rq, rq_class(d, rq));
	if (rq->cmd_flags & REQ_SWAP)
		iso_swapped_out(d, hq, g, from);
	return rq;
}

/* The first of those that go before all others, and may. */
static struct iso_gq *first_fresh(struct iso_disk *d, struct iso_hq *hq)
{
	struct iso_gq *gq;

	list_for_each_entry(gq, &hq->fresh, fresh_node)
		if (likely(iso_may_pass(d, gq)))
			return gq;
	return NULL;
}

/* Whoever is not ahead and had nothing goes before all others, window or not. */
static struct request *next_fresh(struct iso_disk *d, struct iso_hq *hq)
{
	struct iso_gq *gq = first_fresh(d, hq);
	struct request *rq;
	unsigned int class;

	if (!gq)
		return NULL;
	class = iso_next_class(hq, gq);
	rq = iso_take(hq, gq, class);
	force(d, hq, rq, class);
	if (d->rotational) {
		atomic_inc(&d->nr_first);
		rq->elv.priv[1] = (void *)(rq_state(rq) | RQ_FIRST);
	}
	if (gq->nr)
		iso_tree_add(hq, gq);
	if (gq->nr && iso_more_go_first(d, gq))
		list_add_tail(&gq->fresh_node, &hq->fresh);
	return rq;
}

/*
 * The kernel asks for the next at once. If there is no room for it that is said now, for
 * a look at the room is less than all of iso_choose(). What waits is as that
 * would find it: nothing goes before all others, or it had gone.
 */
static void block_if_full(struct iso_disk *d, struct iso_hq *hq)
{
	if (!iso_is_full(d, hq))
		return;
	block(d, hq);
	/* As in next_in_order(). */
	smp_mb();
	if (may_go(d, hq, 0))
		unblock(d, hq);
}

static struct request *next_in_order(struct iso_disk *d, struct iso_hq *hq)
{
	struct iso_choice *c = &hq->next;
	struct request *rq;
	struct iso_gq *gq;

	if (!iso_choose(d, hq))
		return NULL;
	if (!c->gq) {
		block(d, hq);
		/* Our flag before their requests; pairs with leave_device(). */
		smp_mb();
		if (c->lacks && !may_go(d, hq, 0))
			return NULL;
		if (!iso_choose(d, hq) || !c->gq)
			return NULL;
		unblock(d, hq);
	}
	gq = c->gq;
	/* Not for those that went before: else they would drive it on themselves. */
	if (!READ_ONCE(d->paper) &&
	    vtime_before(READ_ONCE(d->clock.vnow) +
			 READ_ONCE(d->clock.slack) / VNOW_FRACTION, c->first))
		iso_set_vnow(d, c->first);
	rq = iso_take(hq, gq, c->class);
	charge(d, hq, rq, c->work);
	if (unlikely(iso_is_paced(d)))
		iso_pace_charge(d, c->work, READ_ONCE(hq->now));
	if (gq->nr)
		iso_tree_add(hq, gq);
	block_if_full(d, hq);
	return rq;
}

static void measure(struct iso_disk *d, u64 now)
{
	unsigned long flags;

	if (likely(now < READ_ONCE(d->epoch.look_ns)))
		return;
	/* One CPU will do. */
	if (atomic_xchg_acquire(&d->epoch.ending, 1))
		return;
	spin_lock_irqsave(&d->disk.lock, flags);
	if (now >= d->epoch.look_ns)
		iso_measure(d, now);
	spin_unlock_irqrestore(&d->disk.lock, flags);
	atomic_set_release(&d->epoch.ending, 0);
}

static struct request *next_request(struct iso_disk *d, struct iso_hq *hq)
{
	struct request *rq;

	measure(d, READ_ONCE(hq->now));
	iso_probe(hq, READ_ONCE(hq->now));
	rq = next_urgent(d, hq);
	if (!rq)
		rq = next_fresh(d, hq);
	if (!rq)
		rq = next_in_order(d, hq);
	return rq;
}

/* Of the hardware queues that wait, and may have what they wait for, the first tries again. */
static void run_first_blocked(struct iso_disk *d)
{
	struct iso_hq *hq, *first = NULL;
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++) {
		hq = &d->hq[i];
		if (READ_ONCE(hq->blocked) && worth_a_run(d, hq) &&
		    (!first || vtime_before(READ_ONCE(hq->wait_tag),
					    READ_ONCE(first->wait_tag))))
			first = hq;
	}
	if (first && unblock(d, first))
		blk_mq_run_hw_queue(first->hctx, true);
}

/**
 * iso_run_blocked() - whoever waits may try again
 * @d: disk
 */
void iso_run_blocked(struct iso_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		unblock(d, &d->hq[i]);
	blk_mq_run_hw_queues(d->disk.q, true);
}

/**
 * iso_note_time() - tell all hardware queues what time it is
 * @d: disk
 * @now: ns
 */
void iso_note_time(struct iso_disk *d, u64 now)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		note_now(&d->hq[i], now);
}

/* Somebody was waited for, and has not come. */
static enum hrtimer_restart iso_timer(struct hrtimer *timer)
{
	struct iso_disk *d = container_of(timer, struct iso_disk, timer);
	u64 now = ktime_get_ns();

	iso_end_wait(d, now);
	iso_note_time(d, now);
	iso_run_blocked(d);
	return HRTIMER_NORESTART;
}

static unsigned long tick_length(const struct iso_disk *d)
{
	return d->policy->tick || READ_ONCE(d->paper) ? ISOBLK_TICK : ISO_TICK;
}

/*
 * Now and then, as long as groups take part: those that have been idle leave, a
 * round is over, the policy has its say. And whoever waits for what will not come
 * tries again.
 */
static void iso_tick(struct timer_list *t)
{
	struct iso_disk *d = timer_container_of(d, t, members.tick);
	u64 now = ktime_get_ns();
	bool again, changed;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (d->policy->tick)
		d->policy->tick(d, now);
	changed = iso_update_shares(d);
	changed |= d->paper && iso_refill(d, now, true);
	iso_look_at_swappers(d);
	if (now - d->members.looked_ns >= jiffies_to_nsecs(ISO_TICK)) {
		d->members.looked_ns = now;
		iso_find_idle(d, now);
	}
	again = !list_empty(&d->members.list);
	spin_unlock_irqrestore(&d->disk.lock, flags);

	if (changed)
		iso_run_blocked(d);
	for (i = 0; atomic_read(&d->nr_blocked) && i < d->disk.nr_hqs; i++)
		run_first_blocked(d);
	if (again)
		mod_timer(&d->members.tick, jiffies + tick_length(d));
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

/* ---- arrival --------------------------------------------------------------- */

static void join(struct iso_disk *d, struct iso_group *g)
{
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (!g->joined) {
		/* A request of it is here, with its bio, which holds the blkg. */
		blkg_get(pd_to_blkg(&g->group->pd));
		isoblk_join(g->group);
		list_add_tail(&g->node, &d->members.list);
		WRITE_ONCE(d->members.nr, d->members.nr + 1);
		WRITE_ONCE(g->share, 0);
		g->hold.recent = (struct iso_sums){};
		iso_forget_debts(g);
		g->hold.trial_lifted = atomic64_read(&g->lifted);
		iso_paper_join(d, g);
		WRITE_ONCE(g->joined, true);
		if (!timer_pending(&d->members.tick))
			mod_timer(&d->members.tick, jiffies + tick_length(d));
	}
	spin_unlock_irqrestore(&d->disk.lock, flags);
}

/*
 * A group that had @had requests has @rq as well. Returns true if none waits, and it goes
 * before all others.
 */
static bool arrive(struct iso_disk *d, struct iso_group *g, u64 had,
		   const struct request *rq, u64 now)
{
	u64 think, think_ns = READ_ONCE(g->think_ns);
	u64 vnow = READ_ONCE(d->clock.vnow);

	/* Budgets are all that counts there, and turns. */
	if (unlikely(READ_ONCE(d->paper)))
		return false;
	if (iso_waits(had)) {
		WRITE_ONCE(g->think_ns, think_ns - think_ns / 64);
		if (likely(!iso_has_target(g)))
			return false;
		goto out;
	}
	if (iso_in_device(had)) {
		if (READ_ONCE(g->held_for) || READ_ONCE(g->gated))
			vnow -= READ_ONCE(d->clock.credit);
		iso_lift(g, vnow);
		goto out;
	}
	if (READ_ONCE(d->wait.since))
		iso_end_wait(d, now);
	think = now - min(READ_ONCE(g->ended_ns), now);
	if (!READ_ONCE(g->held_for) && !READ_ONCE(g->gated))
		iso_lift(g, vnow);
	else if (think >= iso_patience(d, g))
		iso_lift(g, vnow - LATE_SLACKS * READ_ONCE(d->clock.slack));
	if (READ_ONCE(g->ended_ns))
		WRITE_ONCE(g->think_ns, (think_ns * 7 +
					 min(think, NSEC_PER_SEC)) / 8);
out:
	return iso_goes_first(d, g, rq, now);
}

/* The first time that @rq is seen with its bio: it holds a tag of its group's. */
static struct iso_gq *enter(struct iso_hq *hq, struct request *rq)
{
	struct isoblk_group *group = isoblk_bio_group(rq->bio);
	struct iso_gq *gq = isoblk_gq_own(group->gq[hq->index]);

	rq->elv.priv[0] = gq;
	isoblk_gate_enter(gq->common);
	return gq;
}

/* @rq comes: it is counted, and its group takes part. In any order, without a lock. */
static void announce(struct iso_disk *d, struct iso_hq *hq, struct request *rq,
		     bool at_head)
{
	struct iso_gq *gq = rq_to_gq(rq) ?: enter(hq, rq);
	struct iso_group *g = gq->group;
	unsigned long state = rq_state(rq);
	u64 had;

	note_now(hq, rq->start_time_ns);
	if (unlikely(!READ_ONCE(d->room.size)))
		iso_first_request(d, iso_work_of(d, rq));

	/* Our count before their flag: the barrier is in it; pairs with left(). */
	had = atomic64_fetch_add(ISO_WAITS, &g->has);
	if (unlikely(!READ_ONCE(g->joined)))
		join(d, g);
	state &= ~(RQ_AT_HEAD | RQ_FRESH);
	if (arrive(d, g, had, rq, READ_ONCE(hq->now)))
		state |= RQ_FRESH;
	if (at_head)
		state |= RQ_AT_HEAD;
	rq->elv.priv[1] = (void *)state;
}

/* Returns true if it may change who is next: else what blocks the others blocks it. */
static bool insert(struct iso_disk *d, struct iso_hq *hq, struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);
	bool fresh = rq_state(rq) & RQ_FRESH;
	struct list_head *fifo;

	WRITE_ONCE(hq->nr, hq->nr + 1);
	if (rq_urgent(rq) && !READ_ONCE(d->paper)) {
		list_add_tail(&rq->queuelist, &hq->urgent);
		return true;
	}
	fifo = &gq->fifo[rq_class(d, rq)];
	if (rq_state(rq) & RQ_AT_HEAD)
		list_add(&rq->queuelist, fifo);
	else
		list_add_tail(&rq->queuelist, fifo);
	WRITE_ONCE(gq->nr, gq->nr + 1);
	if (gq->nr == 1)
		iso_tree_add(hq, gq);
	if (fresh && list_empty(&gq->fresh_node))
		list_add_tail(&gq->fresh_node, &hq->fresh);
	return fresh || d->nr_classes || READ_ONCE(d->paper) ||
		iso_is_alone(d) ||
		vtime_before(gq->key, READ_ONCE(hq->wait_tag)) ||
		(READ_ONCE(hq->lacks) && may_go(d, hq, 0));
}

/* Take in what has arrived. */
static void take_in(struct iso_disk *d, struct iso_hq *hq)
{
	struct request *rq, *next;
	struct llist_node *list;
	bool news = false;

	lockdep_assert_held(&hq->lock);

	if (llist_empty(&hq->arrived))
		return;
	list = llist_reverse_order(llist_del_all(&hq->arrived));
	llist_for_each_entry_safe(rq, next, list, ipi_list)
		news |= insert(d, hq, rq);
	if (news)
		unblock(d, hq);
}

/* Sparse cannot follow a lock that one may have or not: it is told of none. */
static bool try(struct iso_hq *hq)
{
#ifdef __CHECKER__
	return hq;
#else
	return spin_trylock(&hq->lock);
#endif
}

/* Get the lock, unless another has it: that one then does what there is to do. */
static bool hq_trylock(struct iso_hq *hq)
{
	if (!try(hq)) {
		WRITE_ONCE(hq->missed, true);
		/* Our word before we try again; pairs with hq_unlock(). */
		smp_mb();
		if (!try(hq))
			return false;
	}
	WRITE_ONCE(hq->at_work, true);
	if (unlikely(READ_ONCE(hq->missed))) {
		WRITE_ONCE(hq->missed, false);
		/* Whose word that was is served by what we find from here on. */
		smp_mb();
	}
	take_in(hq->disk, hq);
	return true;
}

/* Returns true if somebody came meanwhile, and found the lock taken. */
static bool hq_unlock(struct iso_hq *hq)
{
	/* What was taken in is seen before; pairs with isoblk_has_work(). */
	smp_store_release(&hq->at_work, false);
	__acquire(&hq->lock);
	spin_unlock(&hq->lock);
	/* The lock is free before we look; pairs with hq_trylock(). */
	smp_mb();
	return READ_ONCE(hq->missed);
}

void isoblk_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			    blk_insert_t flags)
{
	struct iso_hq *hq = hctx_to_hq(hctx);
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		announce(hq->disk, hq, rq, flags & BLK_MQ_INSERT_AT_HEAD);
		trace_block_rq_insert(rq);
		llist_add(&rq->ipi_list, &hq->arrived);
	}
	/* Whoever inserts runs the hardware queue next, if there is work. */
	if (hq_trylock(hq))
		hq_unlock(hq);
}
EXPORT_SYMBOL_GPL(isoblk_insert_requests);

struct request *isoblk_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct iso_hq *hq = hctx_to_hq(hctx);
	struct request *rq;
	bool missed;

	do {
		if (!hq_trylock(hq))
			return NULL;
		rq = next_request(hq->disk, hq);
		missed = hq_unlock(hq);
		/* With a request in hand the kernel asks again anyway. */
	} while (!rq && missed);
	return rq;
}
EXPORT_SYMBOL_GPL(isoblk_dispatch_request);

/* To say no costs the kernel a lock that all need. */
bool isoblk_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct iso_hq *hq;

	/* The kernel may add hardware queues while we are chosen, and ask us first. */
	if (unlikely(!hctx->sched_data))
		return false;
	hq = hctx_to_hq(hctx);
	if (!llist_empty(&hq->arrived))
		return true;
	/* It is taken in by now, or somebody is at it; pairs with take_in(). */
	smp_rmb();
	/* Who no longer is has counted it; pairs with hq_unlock(). */
	if (smp_load_acquire(&hq->at_work))
		return true;
	return READ_ONCE(hq->nr) && !READ_ONCE(hq->blocked);
}
EXPORT_SYMBOL_GPL(isoblk_has_work);

/* ---- completion -------------------------------------------------------------- */

/* @rq is no longer with the device. @now is 0 if it has not been served. */
static void leave_device(struct request *rq, u64 now)
{
	struct iso_gq *gq = rq_to_gq(rq);
	struct iso_hq *hq = gq->hq;
	struct iso_disk *d = hq->disk;
	u64 work = rq_work(rq);
	bool wanted;

	note_now(hq, now);
	if (now)
		iso_account(d, gq, rq, rq_sectors(rq), work, now);
	if (now && unlikely(iso_has_target(gq->group)))
		iso_latency_note(d, gq->group, rq, now);
	if (rq_state(rq) & RQ_FIRST)
		atomic_dec(&d->nr_first);
	rq->elv.priv[1] = (void *)(rq_state(rq) & ~(RQ_IN_DEVICE | RQ_FIRST));
	atomic_dec(&hq->in_device);
	wanted = atomic_read(&d->nr_blocked);
	iso_room_put(&d->room, hq->index, work, wanted);
	if (d->nr_classes)
		iso_room_put(&d->tokens[rq_class(d, rq)], hq->index, 1, wanted);
	WRITE_ONCE(gq->group->ended_ns, READ_ONCE(hq->now));
	atomic64_sub(ISO_IN_DEVICE, &gq->group->has);
	/* What we gave back before their flag; pairs with next_in_order(). */
	smp_mb__after_atomic();
	if (READ_ONCE(hq->nr) && worth_a_run(d, hq) && unblock(d, hq))
		blk_mq_run_hw_queue(hq->hctx, true);
	else if (unlikely(atomic_read(&d->nr_blocked)))
		run_first_blocked(d);
}

void isoblk_completed_request(struct request *rq, u64 now)
{
	if (rq_to_gq(rq) && rq_state(rq) & RQ_IN_DEVICE)
		leave_device(rq, now);
}
EXPORT_SYMBOL_GPL(isoblk_completed_request);

/* What @rq was charged or is refunded while it is with nobody. */
static void charge_late(struct iso_gq *gq, const struct request *rq, int sign)
{
	struct isoblk_group *group = gq->group->group;
	enum isoblk_op op = isoblk_rq_op(rq);
	s64 bytes = (s64)rq_sectors(rq) << SECTOR_SHIFT;

	atomic64_add(sign * bytes, &group->late_bytes[op]);
	atomic64_add(sign, &group->late_ios[op]);
	atomic64_add(sign * (s64)vtime_step(rq_work(rq),
					    max(READ_ONCE(gq->group->share), 1U)),
		     &gq->group->vtime);
}

/*
 * The driver gives @rq back. It may come again by insertion, and is then charged
 * at dispatch; or, if the driver has prepared it, straight to the driver:
 * isoblk_finish_request() charges that.
 */
void isoblk_requeue_request(struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);
	u64 work;

	if (!gq || !(rq_state(rq) & RQ_IN_DEVICE))
		return;
	leave_device(rq, 0);
	/* What is left of it: a part may have completed. */
	work = rq_work(rq);
	rq_set_state(rq, RQ_REFUNDED, work);
	charge_late(gq, rq, -1);
}
EXPORT_SYMBOL_GPL(isoblk_requeue_request);

void isoblk_finish_request(struct request *rq)
{
	struct iso_gq *gq = rq_to_gq(rq);

	if (!gq)
		return;
	if (unlikely(rq_state(rq) & RQ_IN_DEVICE))
		leave_device(rq, 0);
	if (unlikely(rq_state(rq) & RQ_REFUNDED))
		charge_late(gq, rq, 1);
	rq->elv.priv[0] = NULL;
	/* Counted down, it no longer keeps its group. */
	rcu_read_lock();
	isoblk_gate_leave(gq->common);
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(isoblk_finish_request);

/* ---- merging ----------------------------------------------------------------- */

void isoblk_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
}
EXPORT_SYMBOL_GPL(isoblk_prepare_request);

bool isoblk_allow_merge(struct request_queue *q, struct request *rq,
			struct bio *bio)
{
	struct iso_disk *d = q_to_iso(q);
	u64 most = (u64)READ_ONCE(d->tunables.merge_kb) << 1;
	u64 size = READ_ONCE(d->size.free) / READ_ONCE(d->pricing.unit);

	if (READ_ONCE(d->device.busy_with) > FEW_REQUESTS * ISO_BUSY_ONE)
		most = min(most, size / FEW_REQUESTS);
	return READ_ONCE(d->members.nr) < 2 ||
		blk_rq_sectors(rq) + bio_sectors(bio) <= most;
}
EXPORT_SYMBOL_GPL(isoblk_allow_merge);

/* Whether to look for a request that the next bio could be merged with. */
static bool worth_a_look(struct iso_gq *gq)
{
	unsigned int vain = READ_ONCE(gq->merged_none);

	WRITE_ONCE(gq->merged_none, vain + 1);
	return vain < MERGE_TRIES || !(vain % MERGE_ONE_IN);
}

static bool merge(const struct iso_disk *d, struct iso_gq *gq, struct bio *bio,
		  unsigned int nr_segs)
{
	unsigned int class = 0;
	bool merged;

	if (d->nr_classes)
		class = d->policy->class(bio->bi_opf);
	merged = blk_bio_list_merge(d->disk.q, &gq->fifo[class], bio, nr_segs);
	if (merged)
		WRITE_ONCE(gq->merged_none, 0);
	return merged;
}

bool isoblk_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs)
{
	struct iso_hq *hq = hctx_to_hq(isoblk_map_queue(q, bio->bi_opf));
	struct isoblk_gq *waited = isoblk_gate_arrive(q, bio);
	struct iso_group *g = isoblk_group_own(isoblk_bio_group(bio));
	struct iso_gq *gq = iso_gq(g, hq->index);
	bool merged = false;

	if (READ_ONCE(gq->nr) && (READ_ONCE(hq->disk->members.nr) < 2 ||
				  iso_has_enough(hq->disk, g)) &&
	    worth_a_look(gq) && hq_trylock(hq)) {
		if (gq->nr)
			merged = merge(hq->disk, gq, bio, nr_segs);
		if (merged && waited)
			isoblk_gate_through(waited);
		if (hq_unlock(hq))
			blk_mq_run_hw_queue(hq->hctx, true);
	}
	return merged || (!waited && !isoblk_gate_pass(gq->common, bio));
}
EXPORT_SYMBOL_GPL(isoblk_bio_merge);

/* ---- groups -------------------------------------------------------------------- */

static void iso_group_init(struct isoblk_group *group)
{
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	struct iso_group *g = isoblk_group_own(group);
	unsigned int i, c;

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
		for (c = 0; c < ISO_CLASSES; c++)
			INIT_LIST_HEAD(&gq->fifo[c]);
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
			READ_ONCE(g->group->gq[i]->wait_ns);
	return div_u64(ns, NSEC_PER_USEC);
}

static void iso_stat(struct isoblk_group *group, struct seq_file *s)
{
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	struct iso_group *g = isoblk_group_own(group);
	u64 slack = READ_ONCE(d->paper) ? 0 : READ_ONCE(d->clock.slack);

	if (d->policy->left_name)
		seq_printf(s, " isoblk.%s=%lld", d->policy->left_name,
			   iso_left(READ_ONCE(d->clock.vnow), slack,
				    atomic64_read(&g->vtime),
				    READ_ONCE(g->share)) * SECTOR_SIZE /
			   READ_ONCE(d->pricing.unit));
	seq_printf(s, " isoblk.wait_us=%llu", waited_us(g));
	iso_latency_stat(g, s);
}

/* The kernel makes one flush of many: a price for each who asked. */
static void iso_charge_flush(struct isoblk_group *group)
{
	struct iso_group *g = isoblk_group_own(group);
	struct iso_disk *d = container_of(group->disk, struct iso_disk, disk);
	u64 work = iso_price_of(d, ISOBLK_WRITE, 0);

	atomic64_add(vtime_step(work, max(READ_ONCE(g->share), 1U)), &g->vtime);
}

static const struct isoblk_ops iso_ops = {
	.own_size = sizeof(struct iso_group),
	.own_gq_size = sizeof(struct iso_gq),
	.group_init = iso_group_init,
	.group_exit = iso_group_exit,
	.charge_flush = iso_charge_flush,
	.weight_changed = iso_weight_changed,
	.set_target = iso_set_target,
	.target = iso_target_us,
	.stat = iso_stat,
};

/* ---- the disk -------------------------------------------------------------------- */

static void iso_free(struct iso_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->nr_classes; i++)
		iso_room_exit(&d->tokens[i]);
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
	for (i = 0; !ret && i < d->nr_classes; i++)
		ret = iso_room_init(&d->tokens[i], nr, q->node);
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
 * @policy: what the elevator does its own way
 *
 * Return: 0 or a negative errno; then nothing is left to undo.
 */
int isoblk_core_init(struct iso_disk *d, struct request_queue *q,
		     struct elevator_queue *eq, const struct iso_policy *policy)
{
	int ret;

	d->policy = policy;
	d->nr_classes = policy->nr_classes;
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
	d->tunables.write_cost = 100;
	iso_set_vnow(d, FIRST_VNOW);
	d->clock.behind = FIRST_VNOW;
	d->epoch.begun_ns = ktime_get_ns();
	d->hold.scan_ns = d->epoch.begun_ns;
	d->device.base_ns = d->epoch.begun_ns;
	d->rounds.refilled_ns = d->epoch.begun_ns;
	d->pricing.begun_ns = d->epoch.begun_ns;
	memset(d->device.base, 0xff, sizeof(d->device.base));
	iso_set_account(d, policy->account);

	ret = isoblk_groups_init(&d->disk, q, eq, &iso_ops);
	if (ret) {
		iso_free(d);
		return ret;
	}
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

	timer_shutdown_sync(&d->members.tick);
	hrtimer_cancel(&d->timer);
	for (i = 0; i < d->disk.nr_hqs; i++)
		hrtimer_cancel(&d->hq[i].probe);
	iso_latency_exit(d);
	isoblk_groups_exit(&d->disk, eq);
	iso_free(d);
}
EXPORT_SYMBOL_GPL(isoblk_core_exit);
