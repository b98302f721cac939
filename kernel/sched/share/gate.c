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
 * So what a group sends beyond its part of the tags waits here, before it asks for
 * one: the bio in a list of the group's for its class of ioprio, while its submitter goes on.
 * When a tag is due it is submitted again (outlet.c), of the first class first. The part, the
 * quota, is one tag and its share of what is left when every active group has one. The elevator
 * decides about shares; all that a quota must see to is that a group whose turn
 * comes has a request there. One will do for a group that is light
 * among many, for its turns are far apart; who has a larger share of the device
 * has more requests in it, and in turn more tags. What
 * the active groups did not hold of their quotas lately is lent: a group may
 * have that above its own, while more than a reserve of tags is free. So no tag
 * stays idle because those it is kept for have nothing to send; and one that
 * is short for a moment finds its tags. The reserve is for those who come next, and
 * who comes back to a quota that is lent has no more than half of it until that is
 * given back: or all would be held, and who comes next would wait in line for one.
 * What one has above its quota and gives back is for a group that has less.
 *
 * Counted is what is held, and what was let through and is on its way. A request
 * is counted when it is inserted, with the bio it has then, and until it is freed;
 * so one that never passed here is counted as well. A flush waits with a tag for one that
 * the kernel makes of many, and most are never inserted: it is counted when it has its tag. Not
 * counted is who waits for a flush after its data has been written: an elevator is told
 * that its request has ended when that has. A bio that was let through
 * counts until it is inserted or merged, or the worker that submits it finds that it has
 * ended. That count begins anew whenever nothing is on its way. Between
 * gate and insertion of others lie a task's plug (its length is added to what
 * its group holds) and, without a plug, a few instructions: so a group may
 * exceed its quota by one a running task, which the reserve bears, also in a
 * storm of forks: the next ones see what the first hold.
 *
 * To an elevator with a queue for each process a request is its sender's: there
 * the sender sleeps, whatever it sends.
 *
 * Bios that do not wait, and are charged all the same:
 *  - the root cgroup's, which are the machine's own;
 *  - what others may wait for in turn (journal, swap) and what is sent to free
 *    memory: a light group's share must not hold up the machine;
 *  - writes of a zoned disk. The kernel keeps the writes of a zone in order, in a list of its
 *    own, but behind the gate: a bio that waited here would be overtaken, and fail. At
 *    most one write of a zone has a tag.
 * A bio with REQ_NOWAIT waits, as its submitter goes on; where the submitter would sleep, it
 * is ended with BLK_STS_AGAIN.
 *
 * Of a group ISOBLK_HELD_MOST bios wait on a hardware queue; then its submitters sleep, as for
 * a tag: bios are memory.
 *
 * Bios that may not be merged (flush, FUA, parts of a bio that was split, a
 * queue with nomerges) never come to bio_merge; their submitters sleep in
 * limit_depth, where the tag is asked for. That does not say for
 * which bio (sleep.c, isoblk_task_group()).
 *
 * That sleep is like the one for a tag: not interruptible, for it always ends, with a
 * killed task's I/O as with any other. Freezing waits for who sleeps, as for any
 * who entered the queue, and they for requests in flight, which end while a queue
 * freezes; not for bios on their way, which cannot enter a frozen queue. Bios that
 * wait have not entered it. So an elevator is switched with nobody here, and what
 * waits is submitted to the next (isoblk_gate_exit()).
 *
 * Wake-ups. A bio waits only while its group has a request here or in the plug of
 * the task that sent it, or a bio on its way. A request that is freed lets through
 * one of its group's, one that is inserted the next if there is room for more (a
 * quota that grew), or, if there are tags to lend, one of the group that has waited
 * longest on its hardware queue. The worker may run on a processor of another
 * hardware queue: its request is held there, and lets none through here any more; so
 * its insertion does, as a merge does.
 *
 * A task that sleeps is admitted: it is counted until it runs, so no other request takes
 * its place meanwhile. Tasks of a group are admitted in the order in which they came, by the
 * same events as its bios, and by the tick if there is room: quotas grow, and tags of other
 * groups are freed, without an event of the group's own. A task that then runs on another
 * hardware queue, or frees its request unused, hands its place on. No other wake-up is known to
 * be missed: sleep.c rescues a task all the same, and counts it (debugfs, gate).
 */
#include <linux/module.h>

#include "share/disk.h"
#include "share/gate.h"
#include "share/resubmit.h"
#include "share/policy.h"
#include "share/quota.h"
#include "share/sleep.h"
#include "share/waiting.h"

/* Groups that a tick looks at with interrupts off; on each hardware queue they miss the cache. */
#define TICK_GROUPS_MAX		1024

/* Groups that are asked whether they want a tag that another gives back. */
#define PASS_ON_GROUPS_MAX		4

/* Bios of one group held on a hardware queue, some MiB of memory; then its senders sleep. */
#define HELD_BIOS_MAX	16384

/*
 * Add up for how long bios wait, before their number changes; it has fallen by
 * @less already. A coarse clock that costs nothing will do: of many waits the sum
 * is right.
 */
static void isoblk_gate_add_wait_time(struct isoblk_gq *gq, unsigned int less)
{
	struct isoblk_gq_gate *w = &gq->gate;
	u64 now = get_jiffies_64();

	WRITE_ONCE(w->wait_ns, w->wait_ns + (w->nr_bios + less) *
		   jiffies64_to_nsecs(now - w->waited_at));
	w->waited_at = now;
}

/* So many more bios are on their way; hq->gate.lock. */
static void isoblk_gate_add_in_transit(struct isoblk_gq *gq, int more)
{
	WRITE_ONCE(gq->gate.nr_in_transit, gq->gate.nr_in_transit + more);
	WRITE_ONCE(gq->hq->gate.nr_in_transit, gq->hq->gate.nr_in_transit + more);
}

/* The first task of @gq's wakes with a place that no other request can take. */
static void isoblk_gate_admit_sleeper(struct isoblk_gq *gq)
{
	struct isoblk_sleeper *sleeper;

	sleeper = list_first_entry(&gq->gate.sleepers, struct isoblk_sleeper,
				   node);
	list_del(&sleeper->node);
	isoblk_gate_del_waiter(gq);
	isoblk_gate_add_entering(gq, 1);
	sleeper->admitted = true;
	wake_up_process(sleeper->task);
}

/* The first bio of @gq's, by class, is on its way, once it is in the outlet. */
static void isoblk_gate_admit_bio(struct isoblk_gq *gq, struct bio_list *bios)
{
	unsigned int class = isoblk_first_class(gq->gate.nr_admitted++);

	while (bio_list_empty(&gq->gate.bios[class]))
		class = isoblk_next_class(class);
	bio_list_add(bios, bio_list_pop(&gq->gate.bios[class]));
	isoblk_gate_add_in_transit(gq, 1);
	WRITE_ONCE(gq->gate.nr_bios, gq->gate.nr_bios - 1);
}

/* @bios, @nr that were the first of @gq's, go. */
static void isoblk_gate_resubmit(struct isoblk_gq *gq, struct bio_list *bios,
				 unsigned int nr)
{
	isoblk_gate_add_wait_time(gq, nr);
	isoblk_resubmit_add(gq->hq->resubmit, bios, nr);
	if (!gq->gate.nr_bios)
		isoblk_gate_del_waiter(gq);
}

/* All tasks of @gq's for which there is room; hq->gate.lock. */
static void isoblk_gate_admit_sleepers(struct isoblk_gq *gq)
{
	while (!list_empty(&gq->gate.sleepers) && isoblk_may_admit_task(gq, 0))
		isoblk_gate_admit_sleeper(gq);
}

/**
 * isoblk_gate_admit_waiting() - admit all bios and tasks of a group for which there is room
 * @gq: where they wait
 */
void isoblk_gate_admit_waiting(struct isoblk_gq *gq)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	unsigned int nr;

	lockdep_assert_held(&gq->hq->gate.lock);

	for (nr = 0; gq->gate.nr_bios && isoblk_may_admit_bio(gq, 0); nr++)
		isoblk_gate_admit_bio(gq, &bios);
	if (nr)
		isoblk_gate_resubmit(gq, &bios, nr);
	isoblk_gate_admit_sleepers(gq);
}

/* Whether a bio or a task of @gq's may go; a hint without hq->gate.lock. */
static bool isoblk_gate_has_room(const struct isoblk_gq *gq)
{
	return READ_ONCE(gq->gate.nr_waiting) &&
	       (isoblk_may_admit_bio(gq, 0) || (!list_empty(&gq->gate.sleepers) &&
						isoblk_may_admit_task(gq, 0)));
}

static bool isoblk_gate_has_waiters(const struct isoblk_disk *disk)
{
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++)
		if (READ_ONCE(disk->hq[i]->gate.nr_groups))
			return true;
	return false;
}

/*
 * Of a bio that failed on its way nobody told us. Once nothing is, whatever is
 * counted, nobody is to wait for it.
 */
static void isoblk_gate_reset_in_transit(struct isoblk_disk *disk, struct isoblk_hq *hq)
{
	struct isoblk_group *group;
	struct isoblk_gq *gq, *next;

	spin_lock(&hq->gate.lock);
	if (!isoblk_resubmit_is_idle(hq->resubmit))
		goto unlock;
	list_for_each_entry(group, &disk->weights.active, active_node) {
		gq = group->gq[hq->index];
		isoblk_gate_add_in_transit(gq, -(int)gq->gate.nr_in_transit);
	}
	/* And those that wait without being active. */
	list_for_each_entry(gq, &hq->gate.list, gate.node)
		isoblk_gate_add_in_transit(gq, -(int)gq->gate.nr_in_transit);
	list_for_each_entry_safe(gq, next, &hq->gate.list, gate.node)
		isoblk_gate_admit_waiting(gq);
unlock:
	spin_unlock(&hq->gate.lock);
}

/* Quotas and what is lent have changed, or others' tags are free: no request of the group ends. */
static void isoblk_gate_admit_hq_sleepers(struct isoblk_hq *hq)
{
	struct isoblk_gq *gq, *next;

	spin_lock(&hq->gate.lock);
	list_for_each_entry_safe(gq, next, &hq->gate.list, gate.node)
		isoblk_gate_admit_sleepers(gq);
	spin_unlock(&hq->gate.lock);
}

static void isoblk_gate_tick_hq(struct isoblk_disk *disk, struct isoblk_hq *hq)
{
	isoblk_lend_tags(disk, hq->index);
	if (READ_ONCE(hq->gate.nr_in_transit))
		isoblk_gate_reset_in_transit(disk, hq);
	if (READ_ONCE(hq->gate.nr_groups))
		isoblk_gate_admit_hq_sleepers(hq);
}

/**
 * isoblk_gate_tick() - see what groups leave of their quotas
 * @disk: its lock is held; called every tick
 *
 * A tick sees as many hardware queues as have TICK_GROUPS groups, and at least one. The others
 * are seen in the ticks that follow; then the round begins anew.
 */
void isoblk_gate_tick(struct isoblk_disk *disk)
{
	unsigned int some = TICK_GROUPS_MAX / max(disk->weights.nr_active, 1U);
	unsigned int nr = disk->shared_tags ? 1 : disk->nr_hqs;

	lockdep_assert_held(&disk->lock);

	if (!disk->gate.nr_unvisited &&
	    (READ_ONCE(disk->gate.had_waiters) || isoblk_gate_has_waiters(disk))) {
		WRITE_ONCE(disk->gate.had_waiters, false);
		disk->gate.nr_unvisited = nr;
	}
	for (some = max(some, 1U); some && disk->gate.nr_unvisited; some--)
		isoblk_gate_tick_hq(disk, disk->hq[nr - disk->gate.nr_unvisited--]);
}
EXPORT_SYMBOL_GPL(isoblk_gate_tick);

/**
 * isoblk_gate_set_served() - one group has the device to itself, says an elevator
 * @group: may borrow tags, and others may not; the disk's lock is held
 */
void isoblk_gate_set_served(struct isoblk_group *group)
{
	struct isoblk_disk *disk = group->disk;
	struct isoblk_gq *gq;
	unsigned int i;

	lockdep_assert_held(&disk->lock);

	if (disk->gate.served == group)
		return;
	WRITE_ONCE(disk->gate.served, group);
	/* We are seen before we look; pairs with isoblk_gate_wait(). */
	smp_mb();
	for (i = 0; i < disk->nr_hqs; i++) {
		gq = group->gq[i];
		/* The barrier is above. */
		if (isoblk_gate_has_room(gq)) {
			spin_lock(&gq->hq->gate.lock);
			isoblk_gate_admit_waiting(gq);
			spin_unlock(&gq->hq->gate.lock);
		}
	}
}
EXPORT_SYMBOL_GPL(isoblk_gate_set_served);

/* Whether the task's plug has a request that is charged as @bio is. */
static bool isoblk_plug_has_group(const struct bio *bio)
{
	struct request *rq;

	if (!current->plug)
		return false;
	rq_list_for_each(&current->plug->mq_list, rq)
		if (rq->bio && rq->bio->bi_blkg == bio->bi_blkg)
			return true;
	return false;
}

/* No insertion and no completion would let @bio through. */
static bool isoblk_gate_has_no_wakeup(const struct isoblk_gq *gq, const struct bio *bio)
{
	return !atomic_read(&gq->allocated) && !READ_ONCE(gq->gate.nr_in_transit) &&
	       !READ_ONCE(gq->gate.nr_entering) && !isoblk_plug_has_group(bio);
}

/* Return false if there is room by now, and nobody before @bio. */
static bool isoblk_gate_hold(struct isoblk_gq *gq, struct bio *bio)
{
	struct isoblk_hq *hq = gq->hq;
	unsigned long flags;

	spin_lock_irqsave(&hq->gate.lock, flags);
	if (!gq->gate.nr_bios) {
		if (isoblk_may_admit_bio(gq, isoblk_nr_plugged())) {
			spin_unlock_irqrestore(&hq->gate.lock, flags);
			return false;
		}
		isoblk_gate_add_waiter(gq);
		gq->gate.waited_at = get_jiffies_64();
	} else {
		isoblk_gate_add_wait_time(gq, 0);
	}
	/* The worker that submits it may wait. */
	bio->bi_opf &= ~REQ_NOWAIT;
	bio_list_add(&gq->gate.bios[isoblk_class(bio->bi_ioprio)], bio);
	WRITE_ONCE(gq->gate.nr_bios, gq->gate.nr_bios + 1);
	if (!READ_ONCE(hq->disk->gate.had_waiters))
		WRITE_ONCE(hq->disk->gate.had_waiters, true);
	/* We are seen before we look; pairs with isoblk_gate_release_tag(). */
	smp_mb();
	/*
	 * What is in the task's plug comes here soon, and lets others of its group
	 * through. But all of it may be others': one that submits for many has one
	 * plug. Who has nothing here would then wait for nobody.
	 */
	if (isoblk_may_admit_bio(gq, isoblk_nr_plugged()) || isoblk_gate_has_no_wakeup(gq, bio))
		isoblk_gate_admit_waiting(gq);
	spin_unlock_irqrestore(&hq->gate.lock, flags);
	return true;
}

/* Others may wait for it in turn, or it frees memory; without end only what is swapped out. */
static bool isoblk_bio_is_urgent(const struct isoblk_group *group, struct bio *bio)
{
	if (bio->bi_opf & REQ_SWAP)
		return true;
	if (READ_ONCE(group->indebted))
		return false;
	return bio_issue_as_root_blkg(bio) || (current->flags & PF_MEMALLOC);
}

/**
 * isoblk_gate_recognize() - a bio comes to an elevator's bio_merge
 * @q: queue
 * @bio: charged to its own cgroup afterwards
 *
 * Return: where it is counted, if it has waited here and was let through; it then
 * is not asked for again.
 */
struct isoblk_gq *isoblk_gate_recognize(struct request_queue *q, struct bio *bio)
{
	struct isoblk_disk *disk = q->elevator->elevator_data;
	const struct isoblk_resubmit *rs = isoblk_resubmit_recognize(disk, bio);

	if (likely(!rs))
		return NULL;
	return isoblk_bio_group(bio)->gq[rs->index];
}
EXPORT_SYMBOL_GPL(isoblk_gate_recognize);

/**
 * isoblk_gate_end_transit() - a bio that was let through is no longer on its way
 * @gq: where it is counted; the request that it is in has not been served
 *
 * It was merged, its request is counted by now, or it has ended. Others may come if that leaves
 * room. Called by the worker that submits it.
 */
void isoblk_gate_end_transit(struct isoblk_gq *gq)
{
	unsigned long flags;

	isoblk_resubmit_end_transit(gq->hq->resubmit);
	spin_lock_irqsave(&gq->hq->gate.lock, flags);
	if (gq->gate.nr_in_transit)
		isoblk_gate_add_in_transit(gq, -1);
	isoblk_gate_admit_waiting(gq);
	spin_unlock_irqrestore(&gq->hq->gate.lock, flags);
}
EXPORT_SYMBOL_GPL(isoblk_gate_end_transit);

/**
 * isoblk_gate_admit_or_hold() - whether a bio's group may have another tag
 * @gq: its group's, on its hardware queue
 * @bio: could not be merged, and has not waited here
 *
 * Return: false if the bio waits, or may not and has been ended; it is then no
 * longer the caller's.
 */
bool isoblk_gate_admit_or_hold(struct isoblk_gq *gq, struct bio *bio)
{
	struct isoblk_group *group = gq->group;
	struct isoblk_disk *disk = group->disk;

	gq = isoblk_tags_gq(gq);
	if (likely(!READ_ONCE(gq->gate.nr_bios) &&
		   isoblk_may_admit_bio(gq, isoblk_nr_plugged())))
		return true;
	/* The root's is the machine's own. */
	if (!READ_ONCE(disk->gate.enabled) || !group->parent || isoblk_bio_is_urgent(group, bio))
		return true;
	/* The kernel puts a zone's writes in order behind the gate, in the order that they come. */
	if (bio_needs_zone_write_plugging(bio))
		return true;
	if (!disk->ops->sender_sleeps &&
	    READ_ONCE(gq->gate.nr_bios) < HELD_BIOS_MAX)
		return !isoblk_gate_hold(gq, bio);
	if (bio->bi_opf & REQ_NOWAIT) {
		bio_wouldblock_error(bio);
		return false;
	}
	/*
	 * The task may have allocated requests ahead, with their tags, and its
	 * caller have taken a look at one: asleep, they would be freed.
	 */
	if (!current->plug || rq_list_empty(&current->plug->cached_rqs))
		isoblk_gate_sleep(group, bio->bi_opf);
	return true;
}
EXPORT_SYMBOL_GPL(isoblk_gate_admit_or_hold);

/**
 * isoblk_gate_exit() - let everything go that waits
 * @disk: its elevator goes; frozen
 */
void isoblk_gate_exit(struct isoblk_disk *disk)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	struct isoblk_gq *gq, *next;
	struct isoblk_hq *hq;
	unsigned int i, j, nr;

	for (i = 0; i < disk->nr_hqs; i++) {
		hq = disk->hq[i];
		spin_lock_irq(&hq->gate.lock);
		list_for_each_entry_safe(gq, next, &hq->gate.list, gate.node) {
			nr = gq->gate.nr_bios;
			WRITE_ONCE(gq->gate.nr_bios, 0);
			if (!nr)
				continue;
			for (j = 0; j < ISOBLK_NR_CLASSES; j++)
				bio_list_merge_init(&bios, &gq->gate.bios[j]);
			isoblk_resubmit_add(hq->resubmit, &bios, nr);
			isoblk_gate_del_waiter(gq);
		}
		spin_unlock_irq(&hq->gate.lock);
	}
}

/* Somebody waits on @hq while tags are free: take turns among the groups. */
static void isoblk_gate_admit_next_group(struct isoblk_hq *hq)
{
	struct isoblk_gq *gq;
	unsigned long flags;

	spin_lock_irqsave(&hq->gate.lock, flags);
	gq = list_first_entry_or_null(&hq->gate.list, struct isoblk_gq,
				      gate.node);
	if (gq) {
		list_move_tail(&gq->gate.node, &hq->gate.list);
		isoblk_gate_admit_waiting(gq);
	}
	spin_unlock_irqrestore(&hq->gate.lock, flags);
}

/* Somebody gives back what he was lent: it is for a group that has not got its quota. */
static void isoblk_gate_pass_on_tag(struct isoblk_hq *hq)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	unsigned int tries = PASS_ON_GROUPS_MAX;
	struct isoblk_gq *gq;
	unsigned long flags;

	spin_lock_irqsave(&hq->gate.lock, flags);
	while (tries-- && !list_empty(&hq->gate.list)) {
		gq = list_first_entry(&hq->gate.list, struct isoblk_gq,
				      gate.node);
		list_move_tail(&gq->gate.node, &hq->gate.list);
		if (atomic_read(&gq->allocated) + gq->gate.nr_in_transit +
		    gq->gate.nr_entering >= isoblk_quota(gq))
			continue;
		if (gq->gate.nr_bios) {
			isoblk_gate_admit_bio(gq, &bios);
			isoblk_gate_resubmit(gq, &bios, 1);
		} else {
			isoblk_gate_admit_sleeper(gq);
		}
		break;
	}
	spin_unlock_irqrestore(&hq->gate.lock, flags);
}

static void isoblk_gate_lock_and_admit(struct isoblk_gq *gq)
{
	unsigned long flags;

	spin_lock_irqsave(&gq->hq->gate.lock, flags);
	isoblk_gate_admit_waiting(gq);
	spin_unlock_irqrestore(&gq->hq->gate.lock, flags);
}

/**
 * isoblk_gate_count_tag() - a request has a tag
 * @gq: its group's, on its hardware queue
 */
void isoblk_gate_count_tag(struct isoblk_gq *gq)
{
	const struct isoblk_resubmit *rs;
	int allocated;

	gq = isoblk_tags_gq(gq);
	allocated = atomic_inc_return(&gq->allocated);
	/*
	 * The worker may have come to another hardware queue than the one that its
	 * bio waited on; the bio's tag then is none that those behind it wait for.
	 */
	rs = isoblk_resubmit_of_current(gq->group->disk);
	if (unlikely(rs))
		isoblk_gate_end_transit(gq->group->gq[rs->index]);
	if (allocated > READ_ONCE(gq->peak_allocated))
		WRITE_ONCE(gq->peak_allocated, allocated);
	/* A waiter that is missed is let through when a request is freed. */
	if (isoblk_gate_has_room(gq))
		isoblk_gate_lock_and_admit(gq);
	atomic_inc(&gq->hq->allocated);
}
EXPORT_SYMBOL_GPL(isoblk_gate_count_tag);

/**
 * isoblk_gate_release_tag() - a request gives its tag back
 * @gq: as it entered
 */
void isoblk_gate_release_tag(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq;

	gq = isoblk_tags_gq(gq);
	hq = gq->hq;
	atomic_dec(&gq->allocated);
	atomic_dec(&hq->allocated);
	/* We have counted before we look; pairs with isoblk_gate_wait(). */
	smp_mb__after_atomic();
	if (!READ_ONCE(hq->gate.nr_groups))
		return;
	/* The barrier is above. */
	if (isoblk_gate_has_room(gq)) {
		isoblk_gate_lock_and_admit(gq);
		return;
	}
	if (hq->disk->ops->has_equal_quotas)
		return;
	if (READ_ONCE(hq->lendable) &&
	    isoblk_reserve_is_free(hq, READ_ONCE(hq->gate.nr_in_transit)))
		isoblk_gate_admit_next_group(hq);
	else if (atomic_read(&gq->allocated) >= isoblk_quota(gq))
		isoblk_gate_pass_on_tag(hq);
}
EXPORT_SYMBOL_GPL(isoblk_gate_release_tag);

/**
 * isoblk_gate_release_unused() - a request is freed that was never inserted
 * @rq: request
 *
 * A task that was admitted for it sends nothing: its place is for the next.
 */
void isoblk_gate_release_unused(struct request *rq)
{
	struct isoblk_hq *hq = rq->mq_hctx->sched_data;
	struct isoblk_gq *gq, *next;
	unsigned long flags;

	if (hq->disk->shared_tags)
		hq = hq->disk->hq[0];
	if (likely(!READ_ONCE(hq->gate.nr_groups)))
		return;
	spin_lock_irqsave(&hq->gate.lock, flags);
	list_for_each_entry_safe(gq, next, &hq->gate.list, gate.node)
		isoblk_gate_admit_waiting(gq);
	spin_unlock_irqrestore(&hq->gate.lock, flags);
}
EXPORT_SYMBOL_GPL(isoblk_gate_release_unused);
