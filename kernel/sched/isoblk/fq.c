// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fair queueing: the order of the groups that wait on a hardware queue.
 *
 * A group's virtual deadline is its virtual time with its next request charged. The group with the
 * earliest is sent first: of groups that were served alike a small request before a large one. A
 * group's virtual time is written by charging it, and where its lag is capped: here, by
 * iso_raise_vtime(), when it sends again.
 *
 * A group's own requests are sent by their class of ioprio: real-time ones before best-effort ones,
 * idle ones last, and those of one class in order of arrival. One in ISOBLK_CLASS_TURN is of the
 * class whose turn it is: a task of a better class may wait for a lock that one of a worse holds.
 *
 * A group that is not ahead of the disk's virtual time by more than the slack, and of which
 * nothing waits, is boosted: its request is sent next, also if the window is full. That is the
 * reader beside the backup. A light group, which thinks for longer than others would wait for it,
 * is boosted as well while it has requests that wait: a burst of it.
 *
 * On a rotational disk only light groups are. Any other that sends one request after the other
 * would have the arm move each time.
 */
#include <linux/time64.h>

#include "isoblk/fq.h"

/* A light group's lead, as time of the device, up to which it is boosted. */
#define ISO_BURST_NS		(20 * NSEC_PER_MSEC)

/**
 * iso_may_boost() - whether a group's next request is sent before those in order
 * @d: disk
 * @g: group
 * @waits: requests of it wait already
 */
bool iso_may_boost(const struct iso_disk *d, const struct iso_group *g, bool waits)
{
	bool light = iso_is_light(d, g);

	if (light)
		return !iso_is_ahead(d, g, d->rotational ?
				     READ_ONCE(d->clock.credit) :
				     max(iso_cost_in(d, ISO_BURST_NS),
					 READ_ONCE(d->clock.slack)));
	return !waits && !d->rotational &&
		!iso_is_ahead(d, g, READ_ONCE(d->clock.slack));
}

/**
 * iso_raise_vtime() - a group's virtual time is @least or later: its lag is capped
 * @g: group
 * @least: virtual time
 */
void iso_raise_vtime(struct iso_group *g, u64 least)
{
	u64 at = atomic64_read(&g->vtime);

	while (vtime_before(at, least))
		if (atomic64_try_cmpxchg(&g->vtime, &at, least))
			break;
}

/**
 * iso_lower_vtime() - a group's virtual time is @most or earlier: its lead is capped
 * @g: group
 * @most: virtual time
 *
 * Return: by how much it was lowered.
 */
u64 iso_lower_vtime(struct iso_group *g, u64 most)
{
	u64 at = atomic64_read(&g->vtime);

	while (vtime_before(most, at))
		if (atomic64_try_cmpxchg(&g->vtime, &at, most))
			return at - most;
	return 0;
}

/**
 * iso_tree_add() - requests of a group wait
 * @hq: its lock is held
 * @gq: not in the tree
 */
void iso_tree_add(struct iso_hq *hq, struct iso_gq *gq)
{
	struct rb_node **link = &hq->tree.rb_root.rb_node, *parent = NULL;
	struct iso_gq *other;
	bool first = true;

	gq->step = iso_step(gq->group, iso_cost_of(gq, gq->first));
	gq->key = atomic64_read(&gq->group->vtime) + gq->step;
	while (*link) {
		parent = *link;
		other = rb_entry(parent, struct iso_gq, node);
		if (vtime_before(gq->key, other->key)) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			first = false;
		}
	}
	rb_link_node(&gq->node, parent, link);
	rb_insert_color_cached(&gq->node, &hq->tree, first);
}

/**
 * iso_reorder() - virtual times were lowered
 * @d: disk; its queues are run afterwards
 */
void iso_reorder(struct iso_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		/* Pairs with iso_tree_first(): virtual times are read after. */
		smp_store_release(&d->hq[i].stale, true);
}

/* All groups are put where they belong. */
static void iso_reorder_now(struct iso_hq *hq)
{
	struct rb_root all = hq->tree.rb_root;
	struct rb_node *node;

	hq->tree = RB_ROOT_CACHED;
	while ((node = rb_first(&all))) {
		rb_erase(node, &all);
		iso_tree_add(hq, rb_entry(node, struct iso_gq, node));
	}
}

/**
 * iso_tree_first() - the group with the earliest virtual deadline
 * @hq: its lock is held
 *
 * A virtual time grows where the group sends from another hardware queue: its place here is then
 * too early, and is corrected when it comes first. Where virtual times are lowered iso_reorder()
 * has all places corrected.
 *
 * Return: NULL if none waits.
 */
struct iso_gq *iso_tree_first(struct iso_hq *hq)
{
	struct rb_node *node;
	struct iso_gq *gq;

	/* Pairs with iso_reorder(). */
	if (unlikely(smp_load_acquire(&hq->stale))) {
		WRITE_ONCE(hq->stale, false);
		iso_reorder_now(hq);
	}
	while ((node = rb_first_cached(&hq->tree))) {
		gq = rb_entry(node, struct iso_gq, node);
		if (gq->key == atomic64_read(&gq->group->vtime) + gq->step)
			return gq;
		rb_erase_cached(&gq->node, &hq->tree);
		iso_tree_add(hq, gq);
	}
	return NULL;
}

/* The request that @gq, of which something waits, sends next. */
static struct request *iso_find_first(const struct iso_gq *gq)
{
	unsigned int class = isoblk_first_class(gq->sent);

	while (list_empty(&gq->fifo[class]))
		class = isoblk_next_class(class);
	return list_first_entry(&gq->fifo[class], struct request, queuelist);
}

/**
 * iso_add_request() - a request of a group waits
 * @hq: its lock is held
 * @gq: group
 * @rq: request
 */
void iso_add_request(struct iso_hq *hq, struct iso_gq *gq, struct request *rq)
{
	struct list_head *fifo = &gq->fifo[isoblk_class(req_get_ioprio(rq))];

	if (rq_state(rq) & RQ_AT_HEAD)
		list_add(&rq->queuelist, fifo);
	else
		list_add_tail(&rq->queuelist, fifo);
	WRITE_ONCE(gq->nr, gq->nr + 1);
	gq->first = iso_find_first(gq);
	if (gq->first != rq)
		return;
	/* The deadline is that of the request that was first so far. */
	if (gq->nr > 1)
		rb_erase_cached(&gq->node, &hq->tree);
	iso_tree_add(hq, gq);
}

/**
 * iso_take_request() - take the first request of a group out of all lists
 * @hq: its lock is held
 * @gq: has one; is to be added to the tree again, if it has more
 */
struct request *iso_take_request(struct iso_hq *hq, struct iso_gq *gq)
{
	struct request *rq = gq->first;

	list_del_init(&rq->queuelist);
	list_del_init(&gq->boosted_node);
	rb_erase_cached(&gq->node, &hq->tree);
	WRITE_ONCE(gq->nr, gq->nr - 1);
	gq->sent++;
	gq->first = gq->nr ? iso_find_first(gq) : NULL;
	return rq;
}
