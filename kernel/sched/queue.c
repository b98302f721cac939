// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests wait here, a queue a group on each hardware queue, are chosen by
 * budget, charged, and given back.
 *
 * A fifo (struct isoblk_fifo) with requests is in one of three places of its
 * hardware queue: in the ready list of its domain; in the fresh list, if it was
 * empty; or, once it came to its turn with a group that had no budget, in the
 * throttled list. Dispatch serves the first of the fresh list, else of the ready
 * list, for a turn, and puts it at the end of the ready list. So all groups with
 * budget take turns, none keeps the queue, one that sends little does not
 * queue behind those that always do (it is bounded by its budget as they are),
 * and what is throttled costs nothing.
 *
 * A turn is a request of the lightest group, and of the others more by their share:
 * all use their budgets up at about the same time. If all had turns of one
 * request, the light ones would be out of budget first, and the rest of the round
 * would be the heaviest group's alone, which may not have enough requests to
 * keep the device busy. Turns and budgets are deficits: a large request is paid
 * for by the next turns.
 *
 * A refill (isoblk_refill()) gives every active group its share of a round and
 * advances disk->gen. A hardware queue that sees a new gen puts its throttled
 * fifos back: nobody takes another hardware queue's lock. A refill is due when
 * all active groups are without budget, or refill_ns has passed; and, but
 * not in paper mode, when nobody is ready on any hardware queue and the
 * device may be short of work.
 *
 * A group's budget is a pool that its queues take slices from. A request may
 * be larger than what is left: the group then owes the difference. What a
 * group leaves of its budget is kept, so that one whose next request is just
 * under way loses nothing, but never more than a refill's worth.
 *
 * Merging makes few large requests of many small ones, and a group that has all
 * it asked for in one request has nothing here while the device serves that: no
 * more than its turn, however large its share. So beside others a group's
 * requests are merged only while it has some more.
 *
 * Requests that others may wait for whoever sent them (journal, swap: the kernel
 * has them issued as if from the root) wait in the root's queue, and are charged
 * to their group.
 *
 * The wake-ups. A hardware queue that finds no room in the device has a bit set
 * and is run when places become free (depth.c). One that has only throttled
 * fifos while another has ready ones is run by the refill, and the other, once
 * it has none left, makes that refill: each writes its own count, then reads
 * the other's.
 */
#include <linux/module.h>
#include <linux/ktime.h>

#include <trace/events/block.h>

#include "isoblk_share.h"
#include "trace.h"

/*
 * A refill that leaves everybody in debt is made again with twice the round; a
 * request has at most 2^23 sectors, so that many doublings pay any debt.
 */
#define MAX_ROUNDS_SHIFT	24

/* Sectors; keeps the arithmetic of shares in 64 bits. */
#define MAX_ROUND		BIT_ULL(63 - ISOBLK_SHARE_SHIFT)

/* A round has so many turns at least, however light the lightest group. */
#define MIN_TURNS		8

/*
 * Beside others a group keeps so many requests apart: one being served, one
 * that waits for the next turn, and as many that are under way.
 */
#define MIN_APART		4

/* A slice is this part of the pool a hardware queue, lest one takes it all. */
#define SLICE_FRACTION		4
#define MIN_SLICE		64

/*
 * rq->elv.priv[0] is the struct isoblk_gq that holds the request, from the
 * first insertion on, and a reference to the group's blkg. priv[1] packs:
 */
#define RQ_CHARGED		BIT(0)	/* the sectors below, to its group */
#define RQ_REFUNDED		BIT(1)	/* they were, and have been given back */
#define RQ_PLACE		BIT(2)	/* it has a place in the device */
#define RQ_AS_ROOT		BIT(3)	/* it waits, or waited, in the root's queue */
#define RQ_SECTORS_SHIFT	32	/* the upper half */
#define RQ_ELEVATOR_MASK	GENMASK(31, ISOBLK_RQ_SHIFT)

static_assert(BITS_PER_LONG == 64);

static struct isoblk_gq *rq_gq(const struct request *rq)
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

static unsigned int rq_sectors(const struct request *rq)
{
	return rq_state(rq) >> RQ_SECTORS_SHIFT;
}

static void rq_set_sectors(struct request *rq, unsigned long flag)
{
	unsigned long kept = rq_state(rq) &
		(RQ_PLACE | RQ_AS_ROOT | RQ_ELEVATOR_MASK);

	rq_set_state(rq, kept | flag |
		     (unsigned long)blk_rq_sectors(rq) << RQ_SECTORS_SHIFT);
}

/* What @rq takes from the budget, sectors. */
static unsigned int rq_cost(const struct isoblk_disk *disk,
			    const struct request *rq, unsigned int sectors)
{
	u64 cost = sectors ?: ISOBLK_NO_DATA_COST;

	if (op_is_write(req_op(rq)))
		cost = div_u64(cost * READ_ONCE(disk->write_cost), 100);
	return clamp(cost, 1, U32_MAX >> 1);
}

static enum isoblk_op rq_op(const struct request *rq)
{
	if (op_is_discard(rq->cmd_flags))
		return ISOBLK_DISCARD;
	return op_is_write(rq->cmd_flags) ? ISOBLK_WRITE : ISOBLK_READ;
}

static struct isoblk_fifo *gq_fifo(struct isoblk_gq *gq, blk_opf_t opf)
{
	const struct isoblk_ops *ops = gq->group->disk->ops;

	return &gq->fifo[ops->domain ? ops->domain(opf) : 0];
}

/* The root's queue, in which requests wait that are issued as if from there. */
static struct isoblk_gq *root_gq(struct isoblk_hq *hq)
{
	struct blkcg_gq *root = hq->disk->q->root_blkg;

	return &container_of(blkg_to_pd(root, &isoblk_policy),
			     struct isoblk_group, pd)->gq[hq->index];
}

/* ---- budget ---------------------------------------------------------- */

/* Whether @gq may send; takes a slice if it must. */
static bool gq_may_send(struct isoblk_gq *gq)
{
	struct isoblk_group *group = gq->group;
	struct isoblk_disk *disk = group->disk;
	s64 pool, slice;

	lockdep_assert_held(&gq->hq->lock);

	if (gq->slice > 0)
		return true;

	pool = atomic64_read(&group->pool);
	do {
		if (pool <= 0)
			break;
		slice = max_t(s64, div_u64(pool, SLICE_FRACTION * disk->nr_hqs),
			      MIN_SLICE);
		slice = min(slice, pool);
	} while (!atomic64_try_cmpxchg(&group->pool, &pool, pool - slice));
	if (pool > 0) {
		gq->slice += slice;
		if (gq->slice > 0)
			return true;
		/* The slice went into a debt; the pool may have more. */
		return gq_may_send(gq);
	}
	return false;
}

/* @group was found without budget: once a refill. */
static void group_broke(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;
	u64 gen = READ_ONCE(disk->gen);
	s64 old = atomic64_read(&group->broke_gen);

	if (old != gen && atomic64_try_cmpxchg(&group->broke_gen, &old, gen))
		atomic_inc(&disk->nr_broke);
}

static unsigned int nr_bios(const struct request *rq)
{
	const struct bio *bio;
	unsigned int nr = 0;

	for (bio = rq->bio; bio; bio = bio->bi_next)
		nr++;
	return nr;
}

static unsigned int charge(struct isoblk_gq *gq, struct request *rq)
{
	struct isoblk_hq *hq = gq->hq;
	unsigned int sectors = rq_cost(hq->disk, rq, blk_rq_sectors(rq));
	enum isoblk_op op = rq_op(rq);

	lockdep_assert_held(&hq->lock);

	gq->slice -= sectors;
	WRITE_ONCE(hq->sectors, hq->sectors + sectors);
	WRITE_ONCE(hq->ios, hq->ios + 1);
	WRITE_ONCE(hq->bios, hq->bios + nr_bios(rq));
	WRITE_ONCE(gq->bytes[op], gq->bytes[op] + blk_rq_bytes(rq));
	WRITE_ONCE(gq->ios[op], gq->ios[op] + 1);
	if (!READ_ONCE(gq->group->touched))
		WRITE_ONCE(gq->group->touched, true);
	if (!READ_ONCE(gq->group->busy))
		WRITE_ONCE(gq->group->busy, true);
	rq_set_sectors(rq, RQ_CHARGED);
	return sectors;
}

/*
 * The sectors of @rq, from any context, so by the group's atomics alone: @sign 1
 * charges them, -1 gives them back.
 */
static void charge_late(struct isoblk_gq *gq, struct request *rq, int sign)
{
	struct isoblk_group *group = gq->group;
	s64 sectors = rq_sectors(rq);
	s64 cost = rq_cost(group->disk, rq, sectors);
	enum isoblk_op op = rq_op(rq);

	atomic64_sub(sign * cost, &group->pool);
	atomic64_add(sign * (sectors << SECTOR_SHIFT), &group->late_bytes[op]);
	atomic64_add(sign, &group->late_ios[op]);
}

/* ---- ready and throttled --------------------------------------------- */

static unsigned int fifo_domain(const struct isoblk_fifo *fifo)
{
	return fifo - fifo->gq->fifo;
}

static void fifo_set_ready(struct isoblk_hq *hq, struct isoblk_fifo *fifo)
{
	list_add_tail(&fifo->node, &hq->ready[fifo_domain(fifo)]);
	WRITE_ONCE(hq->nr_ready, hq->nr_ready + 1);
}

static void fifo_set_fresh(struct isoblk_hq *hq, struct isoblk_fifo *fifo)
{
	list_add_tail(&fifo->node, &hq->fresh[fifo_domain(fifo)]);
	WRITE_ONCE(hq->nr_ready, hq->nr_ready + 1);
}

static u64 turn_sectors(const struct isoblk_group *group)
{
	return mul_u64_u64_shr(READ_ONCE(group->disk->turn),
			       READ_ONCE(group->share), ISOBLK_SHARE_SHIFT);
}

static struct isoblk_fifo *next_fifo(struct isoblk_hq *hq, unsigned int domain)
{
	struct isoblk_fifo *fifo;

	fifo = list_first_entry_or_null(&hq->fresh[domain], struct isoblk_fifo,
					node);
	return fifo ?: list_first_entry_or_null(&hq->ready[domain],
						struct isoblk_fifo, node);
}

static void fifo_throttle(struct isoblk_hq *hq, struct isoblk_fifo *fifo)
{
	struct isoblk_gq *gq = fifo->gq;

	list_move_tail(&fifo->node, &hq->throttled);
	WRITE_ONCE(hq->nr_ready, hq->nr_ready - 1);
	WRITE_ONCE(hq->nr_throttled, hq->nr_throttled + 1);
	if (!gq->nr_throttled++)
		gq->throttled_at = blk_time_get_ns();
	group_broke(gq->group);
	trace_isoblk_throttle(gq);
}

static void fifo_unthrottle(struct isoblk_hq *hq, struct isoblk_fifo *fifo)
{
	struct isoblk_gq *gq = fifo->gq;
	s64 ns;

	list_del(&fifo->node);
	fifo_set_ready(hq, fifo);
	if (--gq->nr_throttled)
		return;
	ns = READ_ONCE(hq->disk->refilled_ns) - gq->throttled_at;
	WRITE_ONCE(gq->throttled_ns, gq->throttled_ns + max(ns, 0));
}

/* There was a refill: everybody has another try. */
static void hq_unthrottle(struct isoblk_hq *hq)
{
	struct isoblk_fifo *fifo, *next;

	lockdep_assert_held(&hq->lock);

	WRITE_ONCE(hq->gen, READ_ONCE(hq->disk->gen));
	list_for_each_entry_safe(fifo, next, &hq->throttled, node)
		fifo_unthrottle(hq, fifo);
	WRITE_ONCE(hq->nr_throttled, 0);
}

static struct request *fifo_pop(struct isoblk_hq *hq, struct isoblk_fifo *fifo)
{
	struct isoblk_gq *gq = fifo->gq;
	struct request *rq;
	bool empty;

	spin_lock(&gq->lock);
	rq = list_first_entry(&fifo->rqs, struct request, queuelist);
	list_del_init(&rq->queuelist);
	empty = list_empty(&fifo->rqs);
	if (empty)
		list_del_init(&fifo->node);
	spin_unlock(&gq->lock);

	if (empty) {
		WRITE_ONCE(hq->nr_ready, hq->nr_ready - 1);
		gq->nr_fifos--;
	}
	return rq;
}

/**
 * isoblk_take() - take the next request of a domain, and charge it
 * @hq: its lock is held
 * @domain: below ops->nr_domains
 *
 * Return: a request of the group whose turn it is among those with budget, or
 * NULL if there is none.
 */
struct request *isoblk_take(struct isoblk_hq *hq, unsigned int domain)
{
	struct isoblk_fifo *fifo;
	struct isoblk_gq *gq, *owner;
	struct request *rq;

	lockdep_assert_held(&hq->lock);

	while ((fifo = next_fifo(hq, domain))) {
		gq = fifo->gq;
		if (!gq_may_send(gq)) {
			fifo_throttle(hq, fifo);
			continue;
		}
		if (fifo->turn <= 0)
			fifo->turn += turn_sectors(gq->group);
		rq = fifo_pop(hq, fifo);
		owner = rq_gq(rq);
		fifo->turn -= charge(owner, rq);
		if (list_empty(&fifo->node)) {
			fifo->turn = 0;
			/* Unused budget belongs to all of its queues. */
			if (!gq->nr_fifos && gq->slice > 0) {
				atomic64_add(gq->slice, &gq->group->pool);
				gq->slice = 0;
			}
		} else if (!gq_may_send(gq)) {
			fifo_throttle(hq, fifo);
		} else if (fifo->turn <= 0) {
			list_move_tail(&fifo->node, &hq->ready[domain]);
		}
		return rq;
	}
	return NULL;
}
EXPORT_SYMBOL_GPL(isoblk_take);

/* ---- refill ---------------------------------------------------------- */

static bool others_ready(const struct isoblk_disk *disk,
			 const struct isoblk_hq *hq)
{
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++)
		if (disk->hq[i] != hq && READ_ONCE(disk->hq[i]->nr_ready))
			return true;
	return false;
}

/* @mine: places in the device that @hq has taken for it. */
static bool refill_due(struct isoblk_disk *disk, struct isoblk_hq *hq, int mine)
{
	if (atomic_read(&disk->nr_broke) >= READ_ONCE(disk->nr_active))
		return true;
	return !READ_ONCE(disk->paper_mode) && !others_ready(disk, hq) &&
		isoblk_depth_short(disk, hq, mine);
}

/**
 * isoblk_refill() - begin a new round
 * @disk: its lock is held
 * @rounds: how many to give out at once
 *
 * Everybody who is active gets a share of the round; what is left over from the
 * last is kept up to one round's share, and up to two by a group that did
 * send: its next request may be just under way. In paper mode a group that
 * sent nothing becomes idle instead, and all that is left is kept.
 */
void isoblk_refill(struct isoblk_disk *disk, unsigned int rounds)
{
	struct isoblk_group *group, *next;
	struct isoblk_round r = { };
	u64 now = ktime_get_ns();
	u64 sectors = 0, ios = 0, total;
	unsigned int i;
	s64 pool, grant;

	lockdep_assert_held(&disk->lock);

	for (i = 0; i < disk->nr_hqs; i++) {
		sectors += READ_ONCE(disk->hq[i]->sectors);
		ios += READ_ONCE(disk->hq[i]->ios);
	}
	r.used = sectors - disk->refilled_sectors;
	r.elapsed_ns = max_t(u64, now - disk->refilled_ns, 1);
	if (ios != disk->refilled_ios)
		disk->mean_sectors = DIV64_U64_ROUND_UP(r.used, ios -
							disk->refilled_ios);

	if (disk->paper_mode)
		list_for_each_entry_safe(group, next, &disk->active,
					 active_node)
			if (!group->touched)
				isoblk_deactivate(group);
	isoblk_update_shares(disk);

	list_for_each_entry(group, &disk->active, active_node)
		r.remainder += atomic64_read(&group->pool);
	r.floor = div_u64(disk->mean_sectors * disk->busy_share,
			  disk->lightest_share);
	total = clamp(disk->ops->round(disk, &r), 1, MAX_ROUND);
	/* To those who use theirs; an idle one dilutes nobody's. */
	disk->total = total;
	disk->round = div64_u64(total << ISOBLK_SHARE_SHIFT, disk->busy_share);
	WRITE_ONCE(disk->turn, disk->paper_mode ? 0 :
		   min(div_u64(disk->mean_sectors << ISOBLK_SHARE_SHIFT,
			       disk->lightest_share),
		       disk->round / MIN_TURNS));

	list_for_each_entry(group, &disk->active, active_node) {
		grant = isoblk_grant(group);
		pool = atomic64_read(&group->pool);
		if (disk->paper_mode) {
			atomic64_add(grant * rounds, &group->pool);
		} else {
			s64 most = group->touched ? 2 * grant : grant;

			atomic64_add(min(grant * rounds, most - pool),
				     &group->pool);
		}
		WRITE_ONCE(group->touched, false);
	}

	trace_isoblk_refill(disk, &r, total, rounds);
	disk->refilled_ns = now;
	disk->refilled_sectors = sectors;
	disk->refilled_ios = ios;
	atomic_set(&disk->nr_broke, 0);
	/* Budgets before the news of them. */
	smp_store_release(&disk->gen, disk->gen + 1);
}

/**
 * isoblk_run_throttled() - run the hardware queues that wait for a refill
 * @disk: there was one
 * @except: is running already, or NULL
 */
void isoblk_run_throttled(struct isoblk_disk *disk,
			  const struct isoblk_hq *except)
{
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++)
		if (disk->hq[i] != except && READ_ONCE(disk->hq[i]->nr_throttled))
			blk_mq_run_hw_queue(disk->hq[i]->hctx, true);
}

/* @hq has nothing ready: begin a round if one is due, and say so. */
static bool try_refill(struct isoblk_hq *hq, unsigned int rounds)
{
	struct isoblk_disk *disk = hq->disk;
	unsigned long flags;
	bool due;

	spin_lock_irqsave(&disk->lock, flags);
	due = rounds > 1 || hq->gen != disk->gen || refill_due(disk, hq, 1);
	/* Unless another hardware queue just did. */
	if (due && hq->gen == disk->gen)
		isoblk_refill(disk, rounds);
	spin_unlock_irqrestore(&disk->lock, flags);
	return due;
}

/*
 * @hq has just lost its last ready fifo: another hardware queue with only
 * throttled ones may have waited for that. Pairs with the barrier in
 * isoblk_has_work().
 */
static void pass_on(struct isoblk_hq *hq)
{
	struct isoblk_disk *disk = hq->disk;

	if (disk->nr_hqs == 1)
		return;
	/* Our count before theirs; pairs with isoblk_has_work(). */
	smp_mb();
	if (!others_ready(disk, hq))
		isoblk_run_throttled(disk, hq);
}

/**
 * isoblk_dispatch() - an elevator's dispatch_request
 * @hctx: hardware queue
 * @pick: chooses among the domains and calls isoblk_take(); hq->lock is held
 */
struct request *isoblk_dispatch(struct blk_mq_hw_ctx *hctx,
				struct request *(*pick)(struct isoblk_hq *hq))
{
	struct isoblk_hq *hq = hctx->sched_data;
	struct isoblk_disk *disk = hq->disk;
	struct request *rq = NULL;
	unsigned int rounds;
	bool was_ready;

	if (!isoblk_depth_get(disk, hq))
		return NULL;

	spin_lock(&hq->lock);
	/* The news, then the budgets; pairs with isoblk_refill(). */
	if (hq->gen != smp_load_acquire(&disk->gen))
		hq_unthrottle(hq);
	was_ready = hq->nr_ready;
	rq = pick(hq);

	for (rounds = 1; !rq && !hq->nr_ready && hq->nr_throttled &&
	     rounds < BIT(MAX_ROUNDS_SHIFT); rounds <<= 1) {
		if (!try_refill(hq, rounds))
			break;
		hq_unthrottle(hq);
		isoblk_run_throttled(disk, hq);
		rq = pick(hq);
	}
	if (rq)
		rq_set_state(rq, rq_state(rq) | RQ_PLACE);
	was_ready = was_ready && !hq->nr_ready;
	spin_unlock(&hq->lock);

	if (!rq)
		isoblk_depth_put(disk);
	if (was_ready)
		pass_on(hq);
	return rq;
}
EXPORT_SYMBOL_GPL(isoblk_dispatch);

/**
 * isoblk_has_work() - an elevator's has_work: is there anything to dispatch now?
 * @hctx: hardware queue
 *
 * False while everything is throttled, or the device has no room; then @hctx is
 * noted down to be run when it has. False too for an @hctx that we were not told
 * of: 6.12 lets an elevator be chosen while the number of hardware queues
 * changes, and then runs the new ones.
 */
bool isoblk_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct isoblk_hq *hq = hctx->sched_data;
	struct isoblk_disk *disk;

	if (unlikely(!hq))
		return false;
	disk = hq->disk;
	if (READ_ONCE(hq->nr_ready))
		return isoblk_depth_room(disk, hq);
	if (!READ_ONCE(hq->nr_throttled))
		return false;
	if (READ_ONCE(hq->gen) != READ_ONCE(disk->gen))
		return isoblk_depth_room(disk, hq);
	/* Our count before theirs; pairs with pass_on(). */
	smp_mb();
	return isoblk_depth_room(disk, hq) && refill_due(disk, hq, 0);
}
EXPORT_SYMBOL_GPL(isoblk_has_work);

/* ---- in and out ------------------------------------------------------ */

/* Beside others, whether @gq's group has so many requests that they may merge. */
static bool may_merge(struct isoblk_gq *gq)
{
	return READ_ONCE(gq->group->disk->nr_active) < 2 ||
		atomic_read(&isoblk_tags_gq(gq)->held) >= MIN_APART;
}

/**
 * isoblk_bio_merge() - an elevator's bio_merge: merge, or wait at the gate
 * @q: queue
 * @bio: not yet a request
 * @nr_segs: of @bio
 *
 * Return: true if there is nothing left to do for @bio: it was merged, or it may
 * not wait and has been ended with BLK_STS_AGAIN.
 */
bool isoblk_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs)
{
	struct isoblk_hq *hq = isoblk_map_queue(q, bio->bi_opf)->sched_data;
	struct isoblk_gq *waited = isoblk_gate_arrive(q, bio);
	struct isoblk_fifo *fifo;
	struct isoblk_gq *gq;
	bool merged;

	gq = bio_issue_as_root_blkg(bio) ? root_gq(hq) :
		&isoblk_bio_group(bio)->gq[hq->index];
	fifo = gq_fifo(gq, bio->bi_opf);
	if (!list_empty_careful(&fifo->rqs) && may_merge(gq)) {
		spin_lock(&gq->lock);
		merged = blk_bio_list_merge(q, &fifo->rqs, bio, nr_segs);
		if (merged && waited)
			isoblk_gate_merged(waited);
		spin_unlock(&gq->lock);
		if (merged)
			return true;
	}
	return !waited && !isoblk_gate_pass(q, bio);
}
EXPORT_SYMBOL_GPL(isoblk_bio_merge);

/**
 * isoblk_prepare_request() - an elevator's prepare_request
 * @rq: has no bio yet
 */
void isoblk_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = NULL;
}
EXPORT_SYMBOL_GPL(isoblk_prepare_request);

/* The first time that @rq is seen with its bio: it holds a tag for @gq. */
static void rq_enter(struct isoblk_gq *gq, struct request *rq)
{
	blkg_get(pd_to_blkg(&gq->group->pd));
	isoblk_gate_enter(gq);
	rq->elv.priv[0] = gq;
	isoblk_activate(gq->group);

	if (unlikely(bio_issue_as_root_blkg(rq->bio))) {
		gq = root_gq(gq->hq);
		atomic_inc(&isoblk_tags_gq(gq)->held);
		rq_set_state(rq, RQ_AS_ROOT);
		isoblk_activate(gq->group);
	}
}

static void insert(struct isoblk_hq *hq, struct request *rq, bool at_head)
{
	struct isoblk_fifo *fifo;
	struct isoblk_gq *gq;
	bool was_empty;

	if (!rq_gq(rq))
		rq_enter(&isoblk_bio_group(rq->bio)->gq[hq->index], rq);
	gq = rq_state(rq) & RQ_AS_ROOT ? root_gq(hq) : rq_gq(rq);

	fifo = gq_fifo(gq, rq->cmd_flags);
	spin_lock(&gq->lock);
	was_empty = list_empty(&fifo->rqs);
	if (at_head)
		list_add(&rq->queuelist, &fifo->rqs);
	else
		list_add_tail(&rq->queuelist, &fifo->rqs);
	spin_unlock(&gq->lock);
	if (!was_empty)
		return;

	spin_lock(&hq->lock);
	/* It may be gone again, or another may have come before us. */
	if (list_empty(&fifo->node) && !list_empty_careful(&fifo->rqs)) {
		gq->nr_fifos++;
		if (!READ_ONCE(hq->disk->paper_mode) && gq_may_send(gq))
			fifo_set_fresh(hq, fifo);
		else
			fifo_set_ready(hq, fifo);
	}
	spin_unlock(&hq->lock);
}

/**
 * isoblk_insert_requests() - an elevator's insert_requests
 * @hctx: hardware queue
 * @list: requests, new or given back
 * @flags: where to
 */
void isoblk_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			    blk_insert_t flags)
{
	struct isoblk_hq *hq = hctx->sched_data;
	struct isoblk_disk *disk = hq->disk;
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		insert(hq, rq, flags & BLK_MQ_INSERT_AT_HEAD);
		trace_block_rq_insert(rq);
	}
	if (!READ_ONCE(disk->used)) {
		WRITE_ONCE(disk->used, true);
		if (!timer_pending(&disk->timer))
			mod_timer(&disk->timer, jiffies + ISOBLK_TICK);
	}
}
EXPORT_SYMBOL_GPL(isoblk_insert_requests);

/**
 * isoblk_completed_request() - an elevator's completed_request
 * @rq: ended
 * @now: ns
 */
void isoblk_completed_request(struct request *rq, u64 now)
{
	struct isoblk_gq *gq = rq_gq(rq);

	if (gq)
		isoblk_depth_account(gq->group->disk, rq, now);
}
EXPORT_SYMBOL_GPL(isoblk_completed_request);

/* @rq is no longer with the device, for whatever reason. */
static void leave_device(struct isoblk_gq *gq, struct request *rq)
{
	unsigned long state = rq_state(rq);

	if (state & RQ_PLACE) {
		rq_set_state(rq, state & ~RQ_PLACE);
		isoblk_depth_put(gq->group->disk);
	}
}

/**
 * isoblk_requeue_request() - an elevator's requeue_request
 * @rq: given back by the driver
 *
 * What it was charged is refunded. It may come back by insertion, and is then
 * charged again at dispatch; or, if the driver has prepared it, straight
 * to the driver: isoblk_finish_request() charges that.
 */
void isoblk_requeue_request(struct request *rq)
{
	struct isoblk_gq *gq = rq_gq(rq);

	if (!gq)
		return;
	leave_device(gq, rq);
	if (rq_state(rq) & RQ_CHARGED) {
		/* What is left of it: a part may have completed. */
		rq_set_sectors(rq, RQ_REFUNDED);
		charge_late(gq, rq, -1);
	}
}
EXPORT_SYMBOL_GPL(isoblk_requeue_request);

/**
 * isoblk_finish_request() - an elevator's finish_request
 * @rq: about to be freed
 */
void isoblk_finish_request(struct request *rq)
{
	struct isoblk_gq *gq = rq_gq(rq);

	if (!gq)
		return;
	leave_device(gq, rq);
	if (rq_state(rq) & RQ_REFUNDED)
		charge_late(gq, rq, 1);

	if (unlikely(rq_state(rq) & RQ_AS_ROOT))
		atomic_dec(&isoblk_tags_gq(root_gq(gq->hq))->held);
	isoblk_gate_leave(gq);
	rq->elv.priv[0] = NULL;
	blkg_put(pd_to_blkg(&gq->group->pd));
}
EXPORT_SYMBOL_GPL(isoblk_finish_request);
