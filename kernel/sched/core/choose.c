// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who is next: of the groups that wait on a hardware queue, in the order of their times,
 * the first that may, and that has room.
 */
#include "core/charge.h"
#include "core/choose.h"
#include "core/first.h"
#include "core/horizon.h"
#include "core/latency.h"
#include "core/members.h"
#include "core/run.h"
#include "core/tree.h"
#include "core/vtime.h"

/* Beside others a group keeps so many apart: who has one has nothing to send meanwhile. */
#define LEAST_APART		4

/* ---- turns --------------------------------------------------------------- */

/**
 * iso_has_enough() - whether a group has as many requests apart as keep the device busy
 * @d: disk
 * @g: group
 */
bool iso_has_enough(const struct iso_disk *d, const struct iso_group *g)
{
	u64 has = atomic64_read(&g->has);
	u64 apart = iso_waits(has) + iso_in_device(has);

	return apart >= LEAST_APART &&
		apart * ISO_BUSY_ONE > READ_ONCE(d->device.busy_with);
}

/* How far @gq's group may be ahead: one that streams, and fills the device, further. */
static u64 slack_of(const struct iso_disk *d, const struct iso_gq *gq)
{
	if (iso_in_sequence(gq) && iso_has_enough(d, gq->group))
		return READ_ONCE(d->clock.stream_slack);
	return READ_ONCE(d->clock.slack);
}

/*
 * Whose turn it is: the same group's, on a disk that turns or as long as it streams,
 * unless it is far ahead.
 */
static struct iso_gq *keep_turn(struct iso_disk *d, struct iso_hq *hq,
				struct iso_gq *first)
{
	struct iso_gq *turn = hq->turn;

	if (!turn || !(d->rotational || iso_in_sequence(turn)) ||
	    vtime_before(first->key + slack_of(d, turn),
			 atomic64_read(&turn->group->vtime)))
		hq->turn = first;
	return hq->turn;
}

/* ---- choice ---------------------------------------------------------------- */

/* The first from @gq on that may send. */
static struct iso_gq *find_able(struct iso_disk *d, struct iso_gq *gq)
{
	struct rb_node *node = &gq->node;

	if (likely(!iso_is_alone(d)))
		return gq;
	for (; node; node = rb_next(node)) {
		gq = rb_entry(node, struct iso_gq, node);
		if (iso_may_pass(d, gq))
			return gq;
	}
	return NULL;
}

/* There is no room for @c->work: the window is what holds it back. */
static void lack_room(struct iso_disk *d, struct iso_choice *c)
{
	if (!READ_ONCE(d->epoch.limited))
		WRITE_ONCE(d->epoch.limited, true);
	/* Where it turns a change of task is nothing beside a request. */
	c->lacks = d->rotational ? 0 : c->work;
}

/* Take room for @c->work, or not. */
static bool take_room(struct iso_disk *d, struct iso_hq *hq,
		      struct iso_choice *c)
{
	if (unlikely(iso_is_paced(d)) &&
	    !iso_pace_allows(d, READ_ONCE(hq->now)))
		return false;
	if (iso_room_get(&d->room, hq->index, c->work))
		return true;
	if (atomic_read(&hq->in_device) >= ISO_LEAST_IN_DEVICE) {
		lack_room(d, c);
		return false;
	}
	/* However large: while one is served, the next is there. */
	iso_room_force(&d->room, hq->index, c->work);
	return true;
}

/**
 * iso_is_full() - whether it can be told at a glance that there is no room
 * @d: disk
 * @hq: its lock is held; @next is told by what there is none for
 *
 * Not where the leases of others may have room, nor where what waits may wait for
 * something else.
 */
bool iso_is_full(struct iso_disk *d, struct iso_hq *hq)
{
	struct rb_node *node = rb_first_cached(&hq->tree);
	struct iso_choice *c = &hq->next;
	struct iso_gq *gq = hq->turn;

	if (!node || d->room.nr > 1 || d->rotational || iso_is_alone(d) ||
	    atomic_read(&hq->in_device) < ISO_LEAST_IN_DEVICE)
		return false;
	if (!gq || !iso_in_sequence(gq))
		gq = rb_entry(node, struct iso_gq, node);
	c->work = iso_work_of(d, iso_first_of(gq));
	if (iso_room_has(&d->room, hq->index, c->work))
		return false;
	c->tag = gq->key;
	lack_room(d, c);
	return true;
}

/* If the kind that has the device for itself has nothing to send, all may again. */
static bool end_alone(struct iso_disk *d)
{
	unsigned int in_device = 0, i;

	if (likely(!iso_is_alone(d)))
		return false;
	for (i = 0; i < d->disk.nr_hqs; i++)
		in_device += atomic_read(&d->hq[i].in_device);
	if (in_device >= ISO_LEAST_IN_DEVICE)
		return false;
	WRITE_ONCE(d->pricing.starved, true);
	WRITE_ONCE(d->tariff.alone, PRICE_KINDS);
	return true;
}

/**
 * iso_choose() - find out who is next, and take room for it
 * @d: disk
 * @hq: its lock is held; @next is told
 *
 * Return: false if nothing waits in order.
 */
bool iso_choose(struct iso_disk *d, struct iso_hq *hq)
{
	unsigned int in_device = atomic_read(&hq->in_device);
	struct iso_choice *c = &hq->next;
	struct iso_gq *first, *gq, *late;

again:
	/* Pairs with iso_reorder(). */
	if (unlikely(smp_load_acquire(&hq->stale))) {
		WRITE_ONCE(hq->stale, false);
		iso_reorder_now(hq);
	}
	first = iso_tree_first(d, hq);
	if (!first)
		return false;
	c->first = first->key;
	c->gq = NULL;
	c->lacks = 0;
	c->ask = NULL;
	gq = keep_turn(d, hq, first);
	iso_update_share(d, gq->group);
	c->tag = atomic64_read(&gq->group->vtime);

	/* What the device does not take would wait where nobody chooses. */
	if (in_device + 2 > d->tags && in_device)
		return true;
	/*
	 * A disk that turns serves first what is near, and a stream is always near:
	 * who went before all others would wait until that ends.
	 */
	if (d->rotational && atomic_read(&d->nr_first))
		return true;
	gq = find_able(d, gq);
	if (!gq && hq->turn != first)
		gq = find_able(d, first);
	if (!gq) {
		if (end_alone(d))
			goto again;
		return true;
	}
	if (unlikely(gq != hq->turn)) {
		/* Time does not stand still with those that may not. */
		if (iso_is_alone(d))
			c->first = vtime_later(c->first, gq->key);
		iso_update_share(d, gq->group);
		c->tag = atomic64_read(&gq->group->vtime);
	}
	c->work = iso_work_of(d, iso_first_of(gq));
	if (!take_room(d, hq, c))
		return true;
	/* Else others, and @hq itself, would wait for the time that it had when it blocked. */
	if (READ_ONCE(hq->blocked))
		WRITE_ONCE(hq->wait_tag, c->tag);
	if (iso_is_alone(d) ||
	    !iso_beyond_horizon(d, hq, c->tag, slack_of(d, gq), &late)) {
		c->gq = gq;
		return true;
	}
	iso_room_put(&d->room, hq->index, c->work,
		     atomic_read(&d->nr_blocked));
	if (late && late->key != atomic64_read(&late->group->vtime)) {
		iso_tree_renew(hq, late);
		goto again;
	}
	return true;
}
