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
 * one: the bio in a list of the group's, while its submitter goes on. When a tag
 * is due it is submitted again (outlet.c). The part, the quota, is one tag and
 * its share of what is left when every active group has one. The elevator
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
 * so one that never passed here is counted as well. A bio that was let through
 * counts until it is inserted or merged; of one that fails on its way nobody
 * tells us, so that count begins anew whenever nothing is on its way. Between
 * gate and insertion of others lie a task's plug (its length is added to what
 * its group holds) and, without a plug, a few instructions: so a group may
 * exceed its quota by one a running task, which the reserve bears, also in a
 * storm of forks: the next ones see what the first hold.
 *
 * To an elevator with a queue for each process a request is its sender's: there
 * the sender sleeps, whatever it sends.
 *
 * Who does not wait:
 *  - a bio with REQ_NOWAIT is ended with BLK_STS_AGAIN instead;
 *  - what others may wait for in turn (journal, swap) and what is sent to free
 *    memory: a light group's share must not hold up the machine. It is charged.
 * Bios that may not be merged (flush, FUA, parts of a bio that was split, a
 * queue with nomerges) never come to bio_merge; their submitters sleep in
 * limit_depth, where the tag is asked for. That does not say for
 * which bio: the cgroup is taken that a bio of the task would have, that is its own
 * or, of a kernel thread, that for which it works (a loop device does), or the root.
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
 * its insertion does, as a merge does. A sleeper that was woken and then sends
 * nothing (its bio failed) would have taken the wake-up of the next, whom only the
 * group's next completion would wake, and there might be none: so every sleeper
 * looks again after RECHECK.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "isoblk_share.h"

/* Of the tags, a hardware queue: for groups that come next, and for overshoot. */
#define RESERVE_FRACTION	16

/*
 * And of few tags so many: who sleeps for one is woken when so many were freed, and
 * would find them lent again.
 */
#define RESERVE_LEAST		8
#define RESERVE_LEAST_FRACTION	4

/* Groups that are asked whether they want a tag that another gives back. */
#define PASS_ON_TRIES		4

/* Far above the time between a group's completions. */
#define RECHECK			(HZ / 10)

static unsigned int reserve(unsigned int tags)
{
	return max(tags / RESERVE_FRACTION,
		   min(tags / RESERVE_LEAST_FRACTION, RESERVE_LEAST));
}

/**
 * isoblk_gate_update() - the number of active groups or of tags has changed
 * @disk: its lock is held
 */
void isoblk_gate_update(struct isoblk_disk *disk)
{
	unsigned int tags = READ_ONCE(disk->tags);
	unsigned int usable = tags - reserve(tags);
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

static bool reserve_free(const struct isoblk_hq *hq, unsigned int more)
{
	unsigned int tags = READ_ONCE(hq->disk->tags);

	return atomic_read(&hq->held) + more + reserve(tags) < tags;
}

/*
 * Whether a group that @has so many tags may have of the reserve as well: it leaves as many,
 * so that whoever comes next finds some, and the one after. One that has none may, for nobody
 * else's completion would let it through.
 */
static bool has_few(const struct isoblk_hq *hq, unsigned int has,
		    unsigned int more)
{
	return !has || atomic_read(&hq->held) + more + has <
		READ_ONCE(hq->disk->tags);
}

/* Where groups are served one by one, the others have no use for more now. */
static bool may_borrow(const struct isoblk_gq *gq)
{
	const struct isoblk_disk *disk = gq->group->disk;

	return !disk->ops->equal_quotas || READ_ONCE(disk->served) == gq->group;
}

/* Somebody, or a bio, waits; hq->gate_lock. */
static void join_list(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;

	WRITE_ONCE(gq->nr_waiting, gq->nr_waiting + 1);
	if (gq->nr_waiting == 1) {
		list_add_tail(&gq->gate_node, &hq->gate_list);
		WRITE_ONCE(hq->nr_gate, hq->nr_gate + 1);
	}
}

static void leave_list(struct isoblk_gq *gq)
{
	struct isoblk_hq *hq = gq->hq;

	WRITE_ONCE(gq->nr_waiting, gq->nr_waiting - 1);
	if (!gq->nr_waiting) {
		list_del_init(&gq->gate_node);
		WRITE_ONCE(hq->nr_gate, hq->nr_gate - 1);
	}
}

/*
 * Add up for how long bios wait, before their number changes; it has fallen by
 * @less already. A coarse clock that costs nothing will do: of many waits the sum
 * is right.
 */
static void count_wait(struct isoblk_gq *gq, unsigned int less)
{
	u64 now = get_jiffies_64();

	WRITE_ONCE(gq->wait_ns, gq->wait_ns + (gq->nr_bios + less) *
		   jiffies64_to_nsecs(now - gq->waited_at));
	gq->waited_at = now;
}

/*
 * Whether @gq's group may ask for a tag, when it has @more than it holds, and its
 * hardware queue @all more.
 */
static bool may_have(const struct isoblk_gq *gq, unsigned int more,
		     unsigned int all)
{
	unsigned int has = atomic_read(&gq->held) + more;
	unsigned int may = quota(gq);

	/* What was lent to others they give back as they are served: it is not there yet. */
	if (has < may)
		return has_few(gq->hq, has, all) || reserve_free(gq->hq, all);
	return has < may + READ_ONCE(gq->hq->lendable) && may_borrow(gq) &&
		reserve_free(gq->hq, all);
}

/* The same for a bio, when its task has @plugged already. */
static bool gate_open(const struct isoblk_gq *gq, unsigned int plugged)
{
	return may_have(gq, READ_ONCE(gq->passing) + plugged,
			READ_ONCE(gq->hq->passing) + plugged);
}

/*
 * And for a task that sleeps here: it has entered the queue, and what is on its way
 * may be waiting for the queue to be thawed, which waits for the task.
 */
static bool may_wake(const struct isoblk_gq *gq, unsigned int plugged)
{
	return may_have(gq, plugged, plugged);
}

/* So many more bios are on their way; hq->gate_lock. */
static void set_passing(struct isoblk_gq *gq, int more)
{
	WRITE_ONCE(gq->passing, gq->passing + more);
	WRITE_ONCE(gq->hq->passing, gq->hq->passing + more);
}

/* The first bio of @gq's is on its way, once it is in the outlet. */
static void take_first(struct isoblk_gq *gq, struct bio_list *bios)
{
	bio_list_add(bios, bio_list_pop(&gq->bios));
	set_passing(gq, 1);
	WRITE_ONCE(gq->nr_bios, gq->nr_bios - 1);
}

/* @bios, @nr that were the first of @gq's, go. */
static void let_go(struct isoblk_gq *gq, struct bio_list *bios,
		   unsigned int nr)
{
	count_wait(gq, nr);
	isoblk_outlet_add(gq->hq->outlet, bios, nr);
	if (!gq->nr_bios)
		leave_list(gq);
}

/* Bios of @gq that may go now go; those who sleep are woken. */
static void let_through(struct isoblk_gq *gq)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	unsigned int nr;

	lockdep_assert_held(&gq->hq->gate_lock);

	for (nr = 0; gq->nr_bios && gate_open(gq, 0); nr++)
		take_first(gq, &bios);
	if (nr)
		let_go(gq, &bios, nr);
	/* Who is missed looks again after RECHECK; the lock orders the others. */
	if (waitqueue_active(&gq->gate) && may_wake(gq, 0))
		wake_up(&gq->gate);
}

static bool anybody_waits(const struct isoblk_disk *disk)
{
	unsigned int i;

	for (i = 0; i < disk->nr_hqs; i++)
		if (READ_ONCE(disk->hq[i]->nr_gate))
			return true;
	return false;
}

/*
 * Of a bio that failed on its way nobody told us. Once nothing is, whatever is
 * counted, nobody is to wait for it.
 */
static void begin_anew(struct isoblk_disk *disk, struct isoblk_hq *hq)
{
	struct isoblk_group *group;
	struct isoblk_gq *gq, *next;

	spin_lock(&hq->gate_lock);
	if (!isoblk_outlet_idle(hq->outlet))
		goto unlock;
	list_for_each_entry(group, &disk->active, active_node) {
		gq = group->gq[hq->index];
		set_passing(gq, -(int)gq->passing);
	}
	/* And those that wait without being active. */
	list_for_each_entry(gq, &hq->gate_list, gate_node)
		set_passing(gq, -(int)gq->passing);
	list_for_each_entry_safe(gq, next, &hq->gate_list, gate_node)
		let_through(gq);
unlock:
	spin_unlock(&hq->gate_lock);
}

/**
 * isoblk_gate_tick() - see what groups leave of their quotas
 * @disk: its lock is held; called every tick
 */
void isoblk_gate_tick(struct isoblk_disk *disk)
{
	unsigned int tags = READ_ONCE(disk->tags);
	unsigned int usable = tags - reserve(tags);
	unsigned int i, claimed;
	struct isoblk_group *group;
	struct isoblk_hq *hq;
	struct isoblk_gq *gq;

	lockdep_assert_held(&disk->lock);

	if (!READ_ONCE(disk->gate_used) && !anybody_waits(disk))
		return;
	WRITE_ONCE(disk->gate_used, false);
	for (i = 0; i < (disk->shared_tags ? 1 : disk->nr_hqs); i++) {
		hq = disk->hq[i];
		claimed = 0;
		list_for_each_entry(group, &disk->active, active_node) {
			gq = group->gq[i];
			claimed += min_t(unsigned int, quota(gq),
					 READ_ONCE(gq->peak));
			WRITE_ONCE(gq->peak, atomic_read(&gq->held));
		}
		WRITE_ONCE(hq->lendable,
			   usable > claimed ? usable - claimed : 0);
		if (READ_ONCE(hq->passing))
			begin_anew(disk, hq);
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
		gq = group->gq[i];
		/* The barrier is above. */
		if (READ_ONCE(gq->nr_waiting) && gate_open(gq, 0)) {
			spin_lock(&gq->hq->gate_lock);
			let_through(gq);
			spin_unlock(&gq->hq->gate_lock);
		}
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
	join_list(gq);
	spin_unlock_irqrestore(&hq->gate_lock, flags);

	prepare_to_wait_exclusive(&gq->gate, &wait, TASK_UNINTERRUPTIBLE);
	/* We are seen before we look; pairs with isoblk_gate_leave(). */
	smp_mb();
	if (!may_wake(gq, 0))
		io_schedule_timeout(RECHECK);
	finish_wait(&gq->gate, &wait);

	spin_lock_irqsave(&hq->gate_lock, flags);
	leave_list(gq);
	spin_unlock_irqrestore(&hq->gate_lock, flags);
}

/**
 * isoblk_group_gq() - a group where a request that the task sends now would have its tag
 * @group: of a disk in use
 * @opf: operation of the request
 */
struct isoblk_gq *isoblk_group_gq(struct isoblk_group *group, blk_opf_t opf)
{
	struct isoblk_hq *hq = isoblk_map_queue(group->disk->q, opf)->sched_data;

	return isoblk_tags_gq(group->gq[hq->index]);
}
EXPORT_SYMBOL_GPL(isoblk_group_gq);

/* The task may be on another CPU, thus on another queue, after every wait. */
static void gate_wait_open(struct isoblk_group *group, blk_opf_t opf)
{
	struct isoblk_gq *gq = isoblk_group_gq(group, opf);

	while (!may_wake(gq, plugged())) {
		if (!READ_ONCE(group->disk->gate_used))
			WRITE_ONCE(group->disk->gate_used, true);
		/* Awake, io_schedule() comes back, with the plug flushed. */
		if (plugged())
			io_schedule();
		else
			gate_wait(gq);
		gq = isoblk_group_gq(group, opf);
	}
}

/* Whether the task's plug has a request that is charged as @bio is. */
static bool plug_has(const struct bio *bio)
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
static bool has_nothing(const struct isoblk_gq *gq, const struct bio *bio)
{
	return !atomic_read(&gq->held) && !READ_ONCE(gq->passing) &&
	       !plug_has(bio);
}

/* Returns false if there is room by now, and nobody before @bio. */
static bool hold(struct isoblk_gq *gq, struct bio *bio)
{
	struct isoblk_hq *hq = gq->hq;
	unsigned long flags;

	spin_lock_irqsave(&hq->gate_lock, flags);
	if (!gq->nr_bios) {
		if (gate_open(gq, plugged())) {
			spin_unlock_irqrestore(&hq->gate_lock, flags);
			return false;
		}
		join_list(gq);
		gq->waited_at = get_jiffies_64();
	} else {
		count_wait(gq, 0);
	}
	bio_list_add(&gq->bios, bio);
	WRITE_ONCE(gq->nr_bios, gq->nr_bios + 1);
	if (!READ_ONCE(hq->disk->gate_used))
		WRITE_ONCE(hq->disk->gate_used, true);
	/* We are seen before we look; pairs with isoblk_gate_leave(). */
	smp_mb();
	/*
	 * What is in the task's plug comes here soon, and lets others of its group
	 * through. But all of it may be others': one that submits for many has one
	 * plug. Who has nothing here would then wait for nobody.
	 */
	if (gate_open(gq, plugged()) || has_nothing(gq, bio))
		let_through(gq);
	spin_unlock_irqrestore(&hq->gate_lock, flags);
	return true;
}

/* Others may wait for it in turn, or it frees memory; without end only what is swapped out. */
static bool urgent(const struct isoblk_group *group, struct bio *bio)
{
	if (bio->bi_opf & REQ_SWAP)
		return true;
	if (READ_ONCE(group->indebted))
		return false;
	return bio_issue_as_root_blkg(bio) || (current->flags & PF_MEMALLOC);
}

/**
 * isoblk_gate_arrive() - a bio comes to an elevator's bio_merge
 * @q: queue
 * @bio: charged to its own cgroup afterwards
 *
 * Return: where it is counted, if it has waited here and was let through; it then
 * is not asked for again.
 */
struct isoblk_gq *isoblk_gate_arrive(struct request_queue *q, struct bio *bio)
{
	struct isoblk_disk *disk = q->elevator->elevator_data;
	const struct isoblk_outlet *out = isoblk_outlet_arrived(disk, bio);

	if (likely(!out))
		return NULL;
	return isoblk_bio_group(bio)->gq[out->index];
}
EXPORT_SYMBOL_GPL(isoblk_gate_arrive);

/**
 * isoblk_gate_through() - a bio that was let through is no longer on its way
 * @gq: where it is counted; the request that it is in has not been served
 *
 * It was merged, or its request is counted by now. Others may come if that leaves room.
 */
void isoblk_gate_through(struct isoblk_gq *gq)
{
	unsigned long flags;

	spin_lock_irqsave(&gq->hq->gate_lock, flags);
	if (gq->passing)
		set_passing(gq, -1);
	let_through(gq);
	spin_unlock_irqrestore(&gq->hq->gate_lock, flags);
}
EXPORT_SYMBOL_GPL(isoblk_gate_through);

/**
 * isoblk_gate_pass() - whether a bio's group may have another tag
 * @gq: its group's, on its hardware queue
 * @bio: could not be merged, and has not waited here
 *
 * Return: false if the bio waits, or may not and has been ended; it is then no
 * longer the caller's.
 */
bool isoblk_gate_pass(struct isoblk_gq *gq, struct bio *bio)
{
	struct isoblk_group *group = gq->group;
	struct isoblk_disk *disk = group->disk;

	gq = isoblk_tags_gq(gq);
	if (likely(!READ_ONCE(gq->nr_bios) && gate_open(gq, plugged())))
		return true;
	/* The root's is the machine's own. */
	if (!READ_ONCE(disk->gate_on) || !group->parent || urgent(group, bio))
		return true;
	if (bio->bi_opf & REQ_NOWAIT) {
		/* Its sender may wait for it, where it asked not to. */
		bio_wouldblock_error(bio);
		return false;
	}
	if (!disk->ops->sender_sleeps)
		return !hold(gq, bio);
	/*
	 * The task may have allocated requests ahead, with their tags, and its
	 * caller have taken a look at one: asleep, they would be freed.
	 */
	if (!current->plug || rq_list_empty(&current->plug->cached_rqs))
		gate_wait_open(group, bio->bi_opf);
	return true;
}
EXPORT_SYMBOL_GPL(isoblk_gate_pass);

/**
 * isoblk_gate_exit() - let everything go that waits
 * @disk: its elevator goes; frozen
 */
void isoblk_gate_exit(struct isoblk_disk *disk)
{
	struct isoblk_gq *gq, *next;
	struct isoblk_hq *hq;
	unsigned int i, nr;

	for (i = 0; i < disk->nr_hqs; i++) {
		hq = disk->hq[i];
		spin_lock_irq(&hq->gate_lock);
		list_for_each_entry_safe(gq, next, &hq->gate_list, gate_node) {
			nr = gq->nr_bios;
			WRITE_ONCE(gq->nr_bios, 0);
			if (!nr)
				continue;
			isoblk_outlet_add(hq->outlet, &gq->bios, nr);
			leave_list(gq);
		}
		spin_unlock_irq(&hq->gate_lock);
	}
}

/* Apart from what all pass: the kernel may be built to clear what lies on the stack. */
static noinline void pass_unmerged(blk_opf_t opf,
				   struct blk_mq_alloc_data *data)
{
	struct request_queue *q = data->q;
	struct isoblk_group *group;
	struct bio bio;

	/* It has waited already. */
	if (isoblk_outlet_allocates(q->elevator->elevator_data))
		return;

	/* A bio of the task's own knows, and holds, whom it would be charged to. */
	bio_init(&bio, q->disk->part0, NULL, 0, opf);
	group = isoblk_bio_group(&bio);

	/* Flushes of many are made as one, by the kernel: a price for each. */
	if (opf & REQ_PREFLUSH && group->disk->ops->charge_flush)
		group->disk->ops->charge_flush(group);
	if (READ_ONCE(group->disk->gate_on) &&
	    !(data->flags & BLK_MQ_REQ_NOWAIT) &&
	    !(opf & (REQ_META | REQ_SWAP)) && !(current->flags & PF_MEMALLOC))
		gate_wait_open(group, opf);
	bio_uninit(&bio);
}

/**
 * isoblk_limit_depth() - an elevator's limit_depth: the gate of what cannot merge
 * @opf: operation of the request to be
 * @data: what it is allocated by
 */
void isoblk_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	if (unlikely(opf & REQ_NOMERGE_FLAGS || blk_queue_nomerges(data->q)))
		pass_unmerged(opf, data);
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
		let_through(gq);
	}
	spin_unlock_irqrestore(&hq->gate_lock, flags);
}

/* Somebody gives back what he was lent: it is for a group that has not got its quota. */
static void pass_on(struct isoblk_hq *hq)
{
	struct bio_list bios = BIO_EMPTY_LIST;
	unsigned int tries = PASS_ON_TRIES;
	struct isoblk_gq *gq;
	unsigned long flags;

	spin_lock_irqsave(&hq->gate_lock, flags);
	while (tries-- && !list_empty(&hq->gate_list)) {
		gq = list_first_entry(&hq->gate_list, struct isoblk_gq,
				      gate_node);
		list_move_tail(&gq->gate_node, &hq->gate_list);
		if (gq->nr_bios &&
		    atomic_read(&gq->held) + gq->passing < quota(gq)) {
			take_first(gq, &bios);
			let_go(gq, &bios, 1);
			break;
		}
	}
	spin_unlock_irqrestore(&hq->gate_lock, flags);
}

static void try_let_through(struct isoblk_gq *gq)
{
	unsigned long flags;

	spin_lock_irqsave(&gq->hq->gate_lock, flags);
	let_through(gq);
	spin_unlock_irqrestore(&gq->hq->gate_lock, flags);
}

/**
 * isoblk_gate_enter() - a request has a tag
 * @gq: its group's, on its hardware queue
 */
void isoblk_gate_enter(struct isoblk_gq *gq)
{
	const struct isoblk_outlet *out;
	int held;

	gq = isoblk_tags_gq(gq);
	held = atomic_inc_return(&gq->held);
	/*
	 * The worker may have come to another hardware queue than the one that its
	 * bio waited on; the bio's tag then is none that those behind it wait for.
	 */
	out = isoblk_outlet_inserts(gq->group->disk);
	if (unlikely(out))
		isoblk_gate_through(gq->group->gq[out->index]);
	if (held > READ_ONCE(gq->peak))
		WRITE_ONCE(gq->peak, held);
	/* A waiter that is missed is let through when a request is freed. */
	if (READ_ONCE(gq->nr_waiting) && gate_open(gq, 0))
		try_let_through(gq);
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
	if (READ_ONCE(gq->nr_waiting) && gate_open(gq, 0)) {
		try_let_through(gq);
		return;
	}
	if (hq->disk->ops->equal_quotas)
		return;
	if (READ_ONCE(hq->lendable) &&
	    reserve_free(hq, READ_ONCE(hq->passing)))
		wake_longest(hq);
	else if (atomic_read(&gq->held) >= quota(gq))
		pass_on(hq);
}
EXPORT_SYMBOL_GPL(isoblk_gate_leave);
