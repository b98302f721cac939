// SPDX-License-Identifier: GPL-2.0-only
/*
 * The admission gate in front of the tags.
 *
 * A request needs a tag before an elevator ever sees it, there are nr_requests
 * of them a hardware queue, and who waits for one is served in order of
 * arrival. Once the groups together have more to send than there are tags, that
 * order decides about their shares, whatever the elevator does. A limit read
 * before the wait for a tag (limit_depth) does not help: who has been limited
 * stays limited until the wait is over, and starves.
 *
 * So a group that holds its part of the tags waits here, in the submitter's
 * context, before it asks for another. Its part, the quota, is one tag and
 * its share of what is left when every active group has one. The elevator
 * decides about shares; all that a quota must see to is that a group whose turn
 * comes has a request there. One will do for a group that is light
 * among many, for its turns are far apart; who has a larger share of the device
 * has more requests in it, and in turn more tags. What
 * the active groups did not hold of their quotas lately is lent: a group may
 * have that above its own, while more than a reserve of tags is free. So no tag
 * stays idle because those it is kept for have nothing to send; and one that
 * is short for a moment finds its tags. The reserve is for those who come next.
 *
 * Counted is what is held, not what was let through. A request is counted when
 * it is inserted, with the bio it has then, and until it is freed; so a bio that
 * merges after all, fails, or is killed on its way leaves nothing behind, and
 * one that never passed here is counted as well. Between gate and insertion
 * lie a task's plug (its length is added to what its group holds, and a
 * task flushes it before it waits) and, without a plug, a few
 * instructions: so a group may exceed its quota by one a running task, which the
 * reserve bears, also in a storm of forks: the next ones see what the first
 * hold.
 *
 * Who does not wait:
 *  - a bio with REQ_NOWAIT is ended with BLK_STS_AGAIN instead;
 *  - what others may wait for in turn (journal, swap) and what is sent to free
 *    memory: a light group's share must not hold up the machine. It is charged.
 * Bios that may not be merged (flush, FUA, parts of a bio that was split, a
 * queue with nomerges) never come to bio_merge; they wait in limit_depth, where
 * the tag is asked for and sleeping is allowed as well. That does not say for
 * which bio: the cgroup is taken that a bio of the task would have, that is its own
 * or, of a kernel thread, that for which it works (a loop device does), or the root.
 *
 * The wait is like that for a tag: not interruptible, for it always ends, with a
 * killed task's I/O as with any other. Freezing waits for us, as for any
 * who entered the queue, and we for requests in flight, which end while a queue
 * freezes. So an elevator is switched with nobody here.
 *
 * Wake-ups. A request that is freed wakes one of its group's, one that is
 * inserted the next if there is room for more (a quota that grew), or, if there are tags to
 * lend, one of the group that has waited longest on its hardware queue. A
 * waiter that was woken and then sends nothing (its bio failed) would have
 * taken the wake-up of the next, whom only the group's next completion would
 * wake, and there might be none: so every waiter looks again after RECHECK.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "isoblk_share.h"

/* Of the tags, a hardware queue: for groups that come next, and for overshoot. */
#define RESERVE_FRACTION	16

/* Far above the time between a group's completions. */
#define RECHECK			(HZ / 10)

/**
 * isoblk_gate_update() - the number of active groups or of tags has changed
 * @disk: its lock is held
 */
void isoblk_gate_update(struct isoblk_disk *disk)
{
	unsigned int tags = READ_ONCE(disk->tags);
	unsigned int usable = tags - tags / RESERVE_FRACTION;
	unsigned int groups = disk->nr_active;

	lockdep_assert_held(&disk->lock);

	usable = usable > groups ? usable - groups : 0;
	if (disk->ops->equal_quotas && groups)
		usable /= groups;
	WRITE_ONCE(disk->gate_spare, usable);
}

static unsigned int quota(const struct isoblk_gq *gq)
{
	const struct isoblk_disk *disk = gq->group->disk;
	u64 spare = READ_ONCE(disk->gate_spare);

	if (disk->ops->equal_quotas)
		return 1 + spare;
	return 1 + (spare * READ_ONCE(gq->group->share) >> ISOBLK_SHARE_SHIFT);
}

static bool reserve_free(const struct isoblk_hq *hq, unsigned int plugged)
{
	unsigned int tags = READ_ONCE(hq->disk->tags);

	return atomic_read(&hq->held) + plugged + tags / RESERVE_FRACTION < tags;
}

/* Where groups are served one by one, the others have no use for more now. */
static bool may_borrow(const struct isoblk_gq *gq)
{
	const struct isoblk_disk *disk = gq->group->disk;

	return !disk->ops->equal_quotas || READ_ONCE(disk->served) == gq->group;
}

/* Whether @gq's group may ask for a tag, when its task has @plugged already. */
static bool gate_open(const struct isoblk_gq *gq, unsigned int plugged)
{
	unsigned int has = atomic_read(&gq->held) + plugged;
	unsigned int may = quota(gq);

	return has < may || (has < may + READ_ONCE(gq->hq->lendable) &&
			     may_borrow(gq) && reserve_free(gq->hq, plugged));
}

/**
 * isoblk_gate_tick() - see what groups leave of their quotas
 * @disk: its lock is held; called every tick
 */
void isoblk_gate_tick(struct isoblk_disk *disk)
{
	unsigned int tags = READ_ONCE(disk->tags);
	unsigned int usable = tags - tags / RESERVE_FRACTION;
	unsigned int i, claimed;
	struct isoblk_group *group;
	struct isoblk_gq *gq;

	lockdep_assert_held(&disk->lock);

	disk->tags_short = READ_ONCE(disk->gate_used);
	if (!disk->tags_short)
		return;
	WRITE_ONCE(disk->gate_used, false);
	for (i = 0; i < (disk->shared_tags ? 1 : disk->nr_hqs); i++) {
		claimed = 0;
		list_for_each_entry(group, &disk->active, active_node) {
			gq = &group->gq[i];
			claimed += min_t(unsigned int, quota(gq),
					 READ_ONCE(gq->peak));
			WRITE_ONCE(gq->peak, atomic_read(&gq->held));
		}
		WRITE_ONCE(disk->hq[i]->lendable,
			   usable > claimed ? usable - claimed : 0);
	}
}
EXPORT_SYMBOL_GPL(isoblk_gate_tick);

/**
 * isoblk_gate_serve() - one group has the device to itself, says an elevator
 * @group: may borrow tags, and others may not; the disk's lock is held
 */
void isoblk_gate_serve(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;
	struct isoblk_gq *gq;
	unsigned int i;

	lockdep_assert_held(&disk->lock);

	if (disk->served == group)
		return;
	WRITE_ONCE(disk->served, group);
	/* We are seen before we look; pairs with gate_wait(). */
	smp_mb();
	for (i = 0; i < disk->nr_hqs; i++) {
		gq = &group->gq[i];
		/* The barrier is above. */
		if (waitqueue_active(&gq->gate) && gate_open(gq, 0))
			wake_up(&gq->gate);
	}
}
EXPORT_SYMBOL_GPL(isoblk_gate_serve);

static unsigned int plugged(void)
{
	return current->plug ? current->plug->rq_count : 0;
}

static void gate_wait(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;
	unsigned long flags;
	DEFINE_WAIT(wait);

	spin_lock_irqsave(&hq->gate_lock, flags);
	if (!gq->nr_waiting++) {
		list_add_tail(&gq->gate_node, &hq->gate_list);
		WRITE_ONCE(hq->nr_gate, hq->nr_gate + 1);
	}
	spin_unlock_irqrestore(&hq->gate_lock, flags);

	prepare_to_wait_exclusive(&gq->gate, &wait, TASK_UNINTERRUPTIBLE);
	/* We are seen before we look; pairs with isoblk_gate_leave(). */
	smp_mb();
	if (!gate_open(gq, 0))
		io_schedule_timeout(RECHECK);
	finish_wait(&gq->gate, &wait);
	/* Who waits here has more to send than the one it may. */
	WRITE_ONCE(gq->alone, false);

	spin_lock_irqsave(&hq->gate_lock, flags);
	if (!--gq->nr_waiting) {
		list_del_init(&gq->gate_node);
		WRITE_ONCE(hq->nr_gate, hq->nr_gate - 1);
	}
	spin_unlock_irqrestore(&hq->gate_lock, flags);
}

static struct isoblk_gq *group_gq(struct isoblk_group *group, blk_opf_t opf)
{
	struct isoblk_hq *hq = isoblk_map_queue(group->disk->q, opf)->sched_data;

	return isoblk_tags_gq(&group->gq[hq->index]);
}

/* The task may be on another CPU, thus on another queue, after every wait. */
static void gate_wait_open(struct isoblk_group *group, blk_opf_t opf)
{
	struct isoblk_gq *gq = group_gq(group, opf);

	while (!gate_open(gq, plugged())) {
		if (!READ_ONCE(group->disk->gate_used))
			WRITE_ONCE(group->disk->gate_used, true);
		/* Awake, io_schedule() comes back, with the plug flushed. */
		if (plugged())
			io_schedule();
		else
			gate_wait(gq);
		gq = group_gq(group, opf);
	}
}

/**
 * isoblk_gate_pass() - wait until a bio's group may have another tag
 * @q: queue
 * @bio: could not be merged
 *
 * Return: false if the bio may not wait; it has then been ended.
 */
bool isoblk_gate_pass(struct request_queue *q, struct bio *bio)
{
	struct isoblk_group *group = isoblk_bio_group(bio);

	if (gate_open(group_gq(group, bio->bi_opf), plugged()) ||
	    !READ_ONCE(group->disk->gate_on))
		return true;
	if (bio_issue_as_root_blkg(bio) || (current->flags & PF_MEMALLOC))
		return true;
	/*
	 * The task has allocated requests ahead, with their tags, and its
	 * caller may have taken a look at one: asleep, they would be freed.
	 */
	if (current->plug && !rq_list_empty(&current->plug->cached_rqs))
		return true;
	if (bio->bi_opf & REQ_NOWAIT) {
		bio_wouldblock_error(bio);
		return false;
	}
	gate_wait_open(group, bio->bi_opf);
	return true;
}
EXPORT_SYMBOL_GPL(isoblk_gate_pass);

/**
 * isoblk_limit_depth() - an elevator's limit_depth: the gate of what cannot merge
 * @opf: operation of the request to be
 * @data: what it is allocated by
 */
void isoblk_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct request_queue *q = data->q;
	struct isoblk_group *group;
	struct bio bio;

	if (likely(!(opf & REQ_NOMERGE_FLAGS) && !blk_queue_nomerges(q)))
		return;

	/* A bio of the task's own knows, and holds, whom it would be charged to. */
	bio_init(&bio, q->disk->part0, NULL, 0, opf);
	group = isoblk_bio_group(&bio);

	/* Flushes of many are made as one, by the kernel: a price for each. */
	if (opf & REQ_PREFLUSH)
		atomic64_sub(ISOBLK_NO_DATA_COST, &group->pool);
	if (READ_ONCE(group->disk->gate_on) &&
	    !(data->flags & BLK_MQ_REQ_NOWAIT) &&
	    !(opf & (REQ_META | REQ_SWAP)) && !(current->flags & PF_MEMALLOC))
		gate_wait_open(group, opf);
	bio_uninit(&bio);
}
EXPORT_SYMBOL_GPL(isoblk_limit_depth);

/* Somebody waits on @hq while tags are free: take turns among the groups. */
static void wake_longest(struct isoblk_hq *hq)
{
	struct isoblk_gq *gq;
	unsigned long flags;

	spin_lock_irqsave(&hq->gate_lock, flags);
	gq = list_first_entry_or_null(&hq->gate_list, struct isoblk_gq,
				      gate_node);
	if (gq) {
		list_move_tail(&gq->gate_node, &hq->gate_list);
		wake_up(&gq->gate);
	}
	spin_unlock_irqrestore(&hq->gate_lock, flags);
}

/**
 * isoblk_gate_enter() - a request has a tag
 * @gq: its group's, on its hardware queue
 */
void isoblk_gate_enter(struct isoblk_gq *gq)
{
	bool alone;
	int held;

	gq = isoblk_tags_gq(gq);
	held = atomic_inc_return(&gq->held);
	if (held > READ_ONCE(gq->peak))
		WRITE_ONCE(gq->peak, held);
	/* A waiter that is missed is woken when a request is freed. */
	if (waitqueue_active(&gq->gate) && gate_open(gq, 0))
		wake_up(&gq->gate);
	/* Twice running: the first of many that come at once is none. */
	alone = held == 1;
	/* No barrier: a hint. */
	if (alone && READ_ONCE(gq->alone) && !waitqueue_active(&gq->gate))
		WRITE_ONCE(gq->hq->lone, gq->hq->lone + 1);
	if (READ_ONCE(gq->alone) != alone)
		WRITE_ONCE(gq->alone, alone);
	atomic_inc(&gq->hq->held);
}
EXPORT_SYMBOL_GPL(isoblk_gate_enter);

/**
 * isoblk_gate_leave() - a request gives its tag back
 * @gq: as it entered
 */
void isoblk_gate_leave(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq;

	gq = isoblk_tags_gq(gq);
	hq = gq->hq;
	atomic_dec(&gq->held);
	atomic_dec(&hq->held);
	/* We have counted before we look; pairs with gate_wait(). */
	smp_mb__after_atomic();
	if (!READ_ONCE(hq->nr_gate))
		return;
	/* The barrier is above. */
	if (waitqueue_active(&gq->gate) && gate_open(gq, 0))
		wake_up(&gq->gate);
	else if (!hq->disk->ops->equal_quotas && READ_ONCE(hq->lendable) &&
		 reserve_free(hq, 0))
		wake_longest(hq);
}
EXPORT_SYMBOL_GPL(isoblk_gate_leave);
