// SPDX-License-Identifier: GPL-2.0-only
/*
 * The admission gate in front of the tags.
 *
 * Why a gate. A request needs a tag before the elevator sees it. A hardware queue has nr_requests
 * tags, and blk-mq hands them out in order of arrival. Once there are more bios than tags, that
 * order decides the groups' shares, whatever the elevator does. limit_depth does not help: blk-mq
 * reads the limit once, before the wait for a tag, so a limited task waits on after the limit is
 * gone. The gate therefore holds a bio whose group has its quota of tags allocated. The bio waits
 * in a list of its group and ioprio class, and its submitter goes on. Later the gate admits it,
 * and a worker resubmits it (resubmit.c). From then until it is inserted or merged, or has ended,
 * the bio is in transit.
 *
 * Quota. A group's quota is one tag, plus its share of the tags that remain when every active
 * group has one (quota.h). The elevator decides shares; the quota only ensures that a group whose
 * turn comes has a request. For a light group among many one is enough: its turns are far apart.
 *
 * Lending and the reserve. Tags of quotas that were not used lately are lent: a group may borrow
 * them while more than the reserve is free. So no tag idles for a group that sends nothing. The
 * reserve serves groups that become active, and overshoot. A group whose quota is lent gets at
 * most half of the reserve until borrowers return tags, so that the next group finds a tag, too.
 * A borrowed tag that is returned goes to a group below its quota.
 *
 * What is counted. A group has its allocated tags, its bios in transit, and its tasks that were
 * admitted and have not run yet. A request counts from insertion until it is freed, also if its
 * bio never passed the gate. A flush counts from allocation, as most flushes are never inserted. A
 * bio that waits for a flush after its data was written does not count: its request has ended for
 * the elevator. Requests in the submitter's plug are added. A bio that passes the gate without a
 * plug is not counted until it is inserted, so a group may exceed its quota by one tag for each
 * running task; the reserve absorbs that.
 *
 * Bios that never wait, but are charged:
 *
 *  - of the root cgroup, which are the machine's own;
 *  - metadata, journal, swap, and bios sent to free memory: other groups may wait for them;
 *  - writes to a zoned disk. The kernel orders the writes of a zone behind the gate, so a held bio
 *    would be overtaken and fail. A zone has at most one write with a tag.
 *
 * Where tasks sleep:
 *
 *  - under an elevator with a queue for each process (ops->sender_sleeps), which only the
 *    submitter can fill;
 *  - when a group has HELD_BIOS_MAX bios on the hardware queue, because bios are memory;
 *  - in limit_depth, with a bio that may not be merged (flush, FUA, part of a split bio,
 *    nomerges): it never reaches bio_merge (sleep.c).
 *
 * A bio with REQ_NOWAIT may be held, but ends with BLK_STS_AGAIN where its task would sleep. The
 * sleep is uninterruptible, like that for a tag, and always ends: a frozen queue still completes
 * its requests, and no sleeper waits for a bio in transit (isoblk_may_admit_task()). Held bios
 * have not entered the queue. When an elevator leaves no task sleeps here, and isoblk_gate_exit()
 * resubmits the held bios to the next elevator.
 *
 * Wake-ups. A bio is held only while its group has an allocated tag, a request in the submitter's
 * plug, a bio in transit or an admitted task: each ends in an event. Waiters are admitted by
 *
 *  - a freed request: of its own group first, else of the next group in turn if tags can be lent,
 *    else of a group below its quota if the tag was borrowed;
 *  - an insertion, if the quota has grown;
 *  - the end of a transit. The worker may run on a CPU of another hardware queue. The tag is then
 *    allocated there, and its release admits no waiter here;
 *  - an admitted task that now maps to another hardware queue, or frees its request unused;
 *  - the tick, for sleepers: quotas grow and other groups free tags without an event of theirs.
 *
 * Tasks are admitted in order of arrival, and counted until they run, so that no bio takes their
 * tag. No missed wake-up is known; sleep.c still rescues a sleeper, and counts it in debugfs.
 */
#include <linux/module.h>

#include "share/disk.h"
#include "share/gate.h"
#include "share/resubmit.h"
#include "share/policy.h"
#include "share/quota.h"
#include "share/sleep.h"
#include "share/waiting.h"

/* Groups visited in a tick with interrupts off: each costs a cache miss a hardware queue. */
#define TICK_GROUPS_MAX		1024

/* Groups examined for one that is below its quota when a borrowed tag is returned. */
#define PASS_ON_GROUPS_MAX	4

/* Held bios of a group on a hardware queue, some MiB of memory. Beyond, submitters sleep. */
#define HELD_BIOS_MAX		16384

/*
 * Add the wait of held bios up to now. @removed bios have just left nr_bios, and waited as well.
 * Jiffies are exact enough for the sum of many waits, and cost nothing. hq->gate.lock.
 */
static void isoblk_gate_add_wait_time(struct isoblk_gq *gq, unsigned int removed)
{
	struct isoblk_gq_gate *w = &gq->gate;
	u64 now = get_jiffies_64();

	WRITE_ONCE(w->wait_ns, w->wait_ns + (w->nr_bios + removed) *
		   jiffies64_to_nsecs(now - w->waited_at));
	w->waited_at = now;
}

/* Add @nr to the bios of @gq in transit; hq->gate.lock. */
static void isoblk_gate_add_in_transit(struct isoblk_gq *gq, int nr)
{
	WRITE_ONCE(gq->gate.nr_in_transit, gq->gate.nr_in_transit + nr);
	WRITE_ONCE(gq->hq->gate.nr_in_transit, gq->hq->gate.nr_in_transit + nr);
}

/* Wake the first sleeper of @gq. It is counted at once, so no bio takes its tag; hq->gate.lock. */
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

/* Move the next held bio of @gq, by class, to @bios; the caller resubmits these. hq->gate.lock. */
static void isoblk_gate_admit_bio(struct isoblk_gq *gq, struct bio_list *bios)
{
	unsigned int class = isoblk_first_class(gq->gate.nr_admitted++);

	while (bio_list_empty(&gq->gate.bios[class]))
		class = isoblk_next_class(class);
	bio_list_add(bios, bio_list_pop(&gq->gate.bios[class]));
	isoblk_gate_add_in_transit(gq, 1);
	WRITE_ONCE(gq->gate.nr_bios, gq->gate.nr_bios - 1);
}

/* Resubmit @nr admitted @bios of @gq; hq->gate.lock. */
static void isoblk_gate_resubmit(struct isoblk_gq *gq, struct bio_list *bios,
				 unsigned int nr)
{
	isoblk_gate_add_wait_time(gq, nr);
	isoblk_resubmit_add(gq->hq->resubmit, bios, nr);
	if (!gq->gate.nr_bios)
		isoblk_gate_del_waiter(gq);
}

/* Admit sleepers of @gq while there is room; hq->gate.lock. */
static void isoblk_gate_admit_sleepers(struct isoblk_gq *gq)
{
	while (!list_empty(&gq->gate.sleepers) && isoblk_may_admit_task(gq, 0))
		isoblk_gate_admit_sleeper(gq);
}

/**
 * isoblk_gate_admit_waiting() - admit a group's held bios and sleepers while there is room
 * @gq: group on the hardware queue; hq->gate.lock is held
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

/* isoblk_gate_admit_waiting() with the lock taken. */
static void isoblk_gate_lock_and_admit(struct isoblk_gq *gq)
{
	unsigned long flags;

	spin_lock_irqsave(&gq->hq->gate.lock, flags);
	isoblk_gate_admit_waiting(gq);
	spin_unlock_irqrestore(&gq->hq->gate.lock, flags);
}

/* Whether a held bio or a sleeper of @gq may be admitted. Without hq->gate.lock only a hint. */
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
 * Reset the counts of bios in transit if the resubmitter is idle. A bio that failed unseen is
 * still counted, and no event would ever take it off. Covers active groups and groups that wait
 * without being active.
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
	list_for_each_entry(gq, &hq->gate.list, gate.node)
		isoblk_gate_add_in_transit(gq, -(int)gq->gate.nr_in_transit);
	list_for_each_entry_safe(gq, next, &hq->gate.list, gate.node)
		isoblk_gate_admit_waiting(gq);
unlock:
	spin_unlock(&hq->gate.lock);
}

/* Admit sleepers on @hq: a grown quota or another group's freed tag is no event of theirs. */
static void isoblk_gate_admit_hq_sleepers(struct isoblk_hq *hq)
{
	struct isoblk_gq *gq, *next;

	spin_lock(&hq->gate.lock);
	list_for_each_entry_safe(gq, next, &hq->gate.list, gate.node)
		isoblk_gate_admit_sleepers(gq);
	spin_unlock(&hq->gate.lock);
}

/* Renew what is lent on @hq, and admit waiters that no event admits; disk->lock. */
static void isoblk_gate_tick_hq(struct isoblk_disk *disk, struct isoblk_hq *hq)
{
	isoblk_lend_tags(disk, hq->index);
	if (READ_ONCE(hq->gate.nr_in_transit))
		isoblk_gate_reset_in_transit(disk, hq);
	if (READ_ONCE(hq->gate.nr_groups))
		isoblk_gate_admit_hq_sleepers(hq);
}

/**
 * isoblk_gate_tick() - lend unused tags anew, and admit waiters
 * @disk: disk; its lock is held
 *
 * Called every few milliseconds. A call visits at most TICK_GROUPS_MAX pairs of group and hardware
 * queue, but at least one hardware queue. The following calls visit the rest, before a new round
 * begins. Without waiters there is no round.
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
 * isoblk_gate_set_served() - give one group the device, and with it all tags that are lent
 * @group: the only group that may borrow from now on; the disk's lock is held
 *
 * For elevators that serve one group at a time (ops->has_equal_quotas).
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
	/* Publish @served before reading nr_waiting; pairs with smp_mb() in isoblk_gate_wait(). */
	smp_mb();
	for (i = 0; i < disk->nr_hqs; i++) {
		gq = group->gq[i];
		/* Ordered by the barrier above. */
		if (isoblk_gate_has_room(gq))
			isoblk_gate_lock_and_admit(gq);
	}
}
EXPORT_SYMBOL_GPL(isoblk_gate_set_served);

/* Whether the task's plug has a request charged to the cgroup of @bio. */
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

/* Whether no insertion and no completion of the group is to come, which would admit @bio. */
static bool isoblk_gate_has_no_wakeup(const struct isoblk_gq *gq, const struct bio *bio)
{
	return !atomic_read(&gq->allocated) && !READ_ONCE(gq->gate.nr_in_transit) &&
	       !READ_ONCE(gq->gate.nr_entering) && !isoblk_plug_has_group(bio);
}

/* Hold @bio. Return false if its group has room by now and no held bio: @bio goes on. */
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
	/* The worker that resubmits the bio may sleep. */
	bio->bi_opf &= ~REQ_NOWAIT;
	bio_list_add(&gq->gate.bios[isoblk_class(bio->bi_ioprio)], bio);
	WRITE_ONCE(gq->gate.nr_bios, gq->gate.nr_bios + 1);
	if (!READ_ONCE(hq->disk->gate.had_waiters))
		WRITE_ONCE(hq->disk->gate.had_waiters, true);
	/* Publish the bio before reading counts; pairs with isoblk_gate_release_tag(). */
	smp_mb();
	/*
	 * Plugged requests count against the group, and their insertion admits the bio. But a task
	 * that submits for many cgroups has one plug: all of it may be of other groups. A group
	 * without any request then gets no event, so decide without the plug.
	 */
	if (isoblk_may_admit_bio(gq, isoblk_nr_plugged()) || isoblk_gate_has_no_wakeup(gq, bio))
		isoblk_gate_admit_waiting(gq);
	spin_unlock_irqrestore(&hq->gate.lock, flags);
	return true;
}

/* An urgent bio never waits. Of an indebted group only swap-out is urgent. */
static bool isoblk_bio_is_urgent(const struct isoblk_group *group, struct bio *bio)
{
	if (bio->bi_opf & REQ_SWAP)
		return true;
	if (READ_ONCE(group->indebted))
		return false;
	return bio_issue_as_root_blkg(bio) || (current->flags & PF_MEMALLOC);
}

/**
 * isoblk_gate_recognize() - tell a resubmitted bio from a new one, in bio_merge
 * @q: queue
 * @bio: bio; if it is resubmitted, it is charged to its own cgroup again
 *
 * Return: the gq where a resubmitted bio counts as in transit; NULL for a new bio, which has to
 * pass isoblk_gate_admit_or_hold().
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
 * isoblk_gate_end_transit() - a resubmitted bio was merged, inserted and counted, or has ended
 * @gq: where it counts as in transit; a request that it was merged with has not been sent
 *
 * Admits waiters if that leaves room. Called by the worker that resubmits the bio.
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
 * isoblk_gate_admit_or_hold() - admit a new bio if its group may have another tag, else hold it
 * @gq: the bio's group on its hardware queue
 * @bio: bio that could not be merged and was not resubmitted
 *
 * May sleep instead of holding the bio: see the head of this file.
 *
 * Return: true if the bio goes on; false if it is held, or has ended with BLK_STS_AGAIN. The
 * caller then no longer owns it.
 */
bool isoblk_gate_admit_or_hold(struct isoblk_gq *gq, struct bio *bio)
{
	struct isoblk_group *group = gq->group;
	struct isoblk_disk *disk = group->disk;

	gq = isoblk_tags_gq(gq);
	if (likely(!READ_ONCE(gq->gate.nr_bios) &&
		   isoblk_may_admit_bio(gq, isoblk_nr_plugged())))
		return true;
	/* The root's bios are the machine's own. */
	if (!READ_ONCE(disk->gate.enabled) || !group->parent || isoblk_bio_is_urgent(group, bio))
		return true;
	/* Behind the gate the kernel expects the writes of a zone in order of submission. */
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
	 * Do not sleep with cached requests: schedule() would flush the plug and free them, while
	 * blk_mq_submit_bio() may hold a pointer to one.
	 */
	if (!current->plug || rq_list_empty(&current->plug->cached_rqs))
		isoblk_gate_sleep(group, bio->bi_opf);
	return true;
}
EXPORT_SYMBOL_GPL(isoblk_gate_admit_or_hold);

/**
 * isoblk_gate_exit() - resubmit all held bios
 * @disk: frozen disk whose elevator leaves; no task sleeps at its gate
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

/* Tags of @hq can be lent: admit waiters of the next group in turn. */
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

/* A borrowed tag of @hq was returned: admit a waiter of a group below its quota. */
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

/**
 * isoblk_gate_count_tag() - count the tag of a request that is being inserted
 * @gq: the request's group on its hardware queue
 *
 * Also a flush that is never inserted, when it is allocated.
 */
void isoblk_gate_count_tag(struct isoblk_gq *gq)
{
	const struct isoblk_resubmit *rs;
	int allocated;

	gq = isoblk_tags_gq(gq);
	allocated = atomic_inc_return(&gq->allocated);
	/*
	 * The worker may run on a CPU of another hardware queue than the one where its bio was
	 * held: end the transit there, where the bio is counted.
	 */
	rs = isoblk_resubmit_of_current(gq->group->disk);
	if (unlikely(rs))
		isoblk_gate_end_transit(gq->group->gq[rs->index]);
	if (allocated > READ_ONCE(gq->peak_allocated))
		WRITE_ONCE(gq->peak_allocated, allocated);
	/* No barrier: a waiter missed here is admitted when a request is freed. */
	if (isoblk_gate_has_room(gq))
		isoblk_gate_lock_and_admit(gq);
	/*
	 * Last: until then the waiters above may have this tag of the reserve. Counted first, it
	 * costs small streams the requests into which theirs merge.
	 */
	atomic_inc(&gq->hq->allocated);
}
EXPORT_SYMBOL_GPL(isoblk_gate_count_tag);

/**
 * isoblk_gate_release_tag() - a counted request is freed
 * @gq: as given to isoblk_gate_count_tag()
 */
void isoblk_gate_release_tag(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq;

	gq = isoblk_tags_gq(gq);
	hq = gq->hq;
	atomic_dec(&gq->allocated);
	atomic_dec(&hq->allocated);
	/* Count before reading nr_groups; pairs with isoblk_gate_hold() and isoblk_gate_wait(). */
	smp_mb__after_atomic();
	if (!READ_ONCE(hq->gate.nr_groups))
		return;
	/* Ordered by the barrier above. */
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
 * isoblk_gate_release_unused() - a request is freed that was never counted
 * @rq: request
 *
 * A task may have been admitted for its tag: admit the next waiter instead.
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
