// SPDX-License-Identifier: GPL-2.0-only
/*
 * The next request that a hardware queue sends in order: that of the group with the earliest
 * virtual deadline, or of the group that has its turn, if there is room for the request and the
 * group's lead is not too large.
 *
 * Turns. On a rotational disk a stream keeps the disk for hold_us, for each change moves the arm
 * there and back. It keeps it, too, while it has no request but is expected back: a stream that is
 * read through the page cache has few at a time. Its turn begins when what was sent before has
 * completed, or the disk would go back and forth between both.
 */
#include <linux/time64.h>

#include "isoblk/choose.h"
#include "isoblk/fq.h"
#include "isoblk/members.h"
#include "isoblk/run.h"
#include "isoblk/throttle.h"

/* Turns become shorter above TURN_GROUPS groups, down to half at TURN_SHORTER_MAX times as many. */
#define TURN_GROUPS		4U
#define TURN_SHORTER_MAX	2U

/* ---- turns --------------------------------------------------------------- */

/* How far @g may be ahead of the next group in its turn. */
static u64 iso_turn_slack(const struct iso_disk *d, const struct iso_group *g)
{
	u64 ns = (u64)READ_ONCE(d->tunables.hold_us) * NSEC_PER_USEC;
	unsigned int nr = READ_ONCE(d->members.nr);

	nr = clamp(nr, TURN_GROUPS, TURN_GROUPS * TURN_SHORTER_MAX);
	return iso_step(g, div_u64(ns * TURN_GROUPS, nr));
}

/* Whether the group of @turn has used up its turn. */
static bool iso_turn_is_over(const struct iso_disk *d, const struct iso_gq *turn,
			     const struct iso_gq *first)
{
	return turn != first &&
		vtime_before(atomic64_read(&first->group->vtime) +
			     iso_turn_slack(d, turn->group),
			     atomic64_read(&turn->group->vtime));
}

/* Whether the next request of @turn's, or one that is expected, goes on where its last ended. */
static bool iso_continues_stream(struct iso_disk *d, struct iso_hq *hq, const struct iso_gq *turn)
{
	u64 wait;

	if (turn->nr)
		return iso_is_sequential(turn, turn->first);
	if (atomic64_read(&turn->group->has))
		return true;
	wait = iso_expected(d, turn->group, READ_ONCE(hq->now));
	if (wait)
		iso_expect(d, wait);
	return wait;
}

/*
 * The group that goes on with its turn on a rotational disk, or NULL. It may have no request. A
 * group that leaves takes back its turn without the lock: iso_take_out(). Until the RCU section of
 * our caller ends it is there.
 */
static struct iso_gq *iso_keep_turn(struct iso_disk *d, struct iso_hq *hq, struct iso_gq *first)
{
	struct iso_gq *turn = READ_ONCE(hq->turn);

	if (turn && !iso_turn_is_over(d, turn, first) && iso_continues_stream(d, hq, turn))
		return turn;
	WRITE_ONCE(hq->turn, NULL);
	return NULL;
}

/* ---- room ------------------------------------------------------------------ */

/* There is no room for @c->cost: the window limits the device. */
static void iso_lack_room(struct iso_disk *d, struct iso_choice *c)
{
	if (!READ_ONCE(d->epoch.limited))
		WRITE_ONCE(d->epoch.limited, true);
	c->why = ISO_NO_ROOM;
	/* On a rotational disk a change of task is nothing beside a request. */
	c->lacks = d->rotational ? 0 : c->cost;
}

/* Take room for @c->cost, or not. */
static bool iso_take_room(struct iso_disk *d, struct iso_hq *hq, struct iso_choice *c)
{
	if (iso_room_get(&d->room, hq->index, c->cost))
		return true;
	if (atomic_read(&hq->in_flight) >= ISO_IN_FLIGHT_MIN) {
		iso_lack_room(d, c);
		return false;
	}
	/* However large: while one is served, the next is there. */
	iso_room_force(&d->room, hq->index, c->cost);
	return true;
}

/**
 * iso_is_full() - whether a look shows that there is no room
 * @d: disk
 * @hq: its lock is held; what is found is in @next
 *
 * Only if no lease of another queue may have room, and waiting requests wait for room alone.
 */
bool iso_is_full(struct iso_disk *d, struct iso_hq *hq)
{
	struct rb_node *node = rb_first_cached(&hq->tree);
	struct iso_choice *c = &hq->next;
	struct iso_gq *gq;

	if (!node || d->room.nr > 1 || d->rotational || READ_ONCE(hq->stale) ||
	    atomic_read(&hq->in_flight) < ISO_IN_FLIGHT_MIN)
		return false;
	gq = rb_entry(node, struct iso_gq, node);
	c->cost = iso_cost_of(gq, gq->first);
	if (iso_room_has(&d->room, hq->index, c->cost))
		return false;
	c->key = gq->key;
	iso_lack_room(d, c);
	return true;
}

/* ---- choice ---------------------------------------------------------------- */

/* The device has no tag free; the last one is for urgent and boosted requests. */
static bool iso_has_no_tag(const struct iso_disk *d, const struct iso_hq *hq)
{
	unsigned int in_flight = atomic_read(&hq->in_flight);

	return in_flight && in_flight + 2 > d->tags;
}

/* Take room for the next of @gq's, and send it if its group may be so far ahead. */
static void iso_choose_gq(struct iso_disk *d, struct iso_hq *hq, struct iso_gq *gq, bool throttle)
{
	struct iso_choice *c = &hq->next;

	iso_update_share(d, gq->group);
	c->cost = iso_cost_of(gq, gq->first);
	if (!iso_take_room(d, hq, c))
		return;
	/* Else other queues, and @hq itself, would wait for the key that it had when it blocked. */
	if (READ_ONCE(hq->blocked))
		WRITE_ONCE(hq->wait_key, c->key);
	c->why = throttle ? iso_throttle(d, hq, gq->group) : ISO_IN_ORDER;
	if (likely(c->why == ISO_IN_ORDER))
		c->gq = gq;
	else
		iso_room_put(&d->room, hq->index, c->cost,
			     atomic_read(&d->nr_blocked));
}

static void iso_choose_rotational(struct iso_disk *d, struct iso_hq *hq, struct iso_gq *first)
{
	struct iso_gq *turn;

	if (atomic_read(&d->nr_alone))
		return;
	guard(rcu)();
	turn = iso_keep_turn(d, hq, first);
	if (turn) {
		if (turn->nr)
			iso_choose_gq(d, hq, turn, false);
		return;
	}
	if (!iso_is_sequential(first, first->first)) {
		iso_choose_gq(d, hq, first, true);
	} else if (!atomic_read(&hq->in_flight)) {
		iso_choose_gq(d, hq, first, true);
		if (hq->next.gq)
			WRITE_ONCE(hq->turn, first);
	}
}

/**
 * iso_choose() - find what is next in order, and take room for it
 * @d: disk
 * @hq: its lock is held; what is found is in @next
 *
 * Return: false if nothing waits in order.
 */
bool iso_choose(struct iso_disk *d, struct iso_hq *hq)
{
	struct iso_gq *first = iso_tree_first(hq);

	if (!first)
		return false;
	hq->next = (struct iso_choice){ .key = first->key, .why = ISO_NO_TAG };
	if (iso_has_no_tag(d, hq))
		return true;
	if (d->rotational) {
		hq->next.why = ISO_TURN;
		iso_choose_rotational(d, hq, first);
	} else {
		iso_choose_gq(d, hq, first, true);
	}
	return true;
}
