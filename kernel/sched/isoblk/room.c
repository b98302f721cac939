// SPDX-License-Identifier: GPL-2.0-only
/*
 * Room: a quantity that a disk may have in flight, divided into leases of its hardware queues.
 *
 * A hardware queue sends from its lease without a shared word, so CPUs do not contend as long as
 * room is left. A hardware queue that finds no room in its lease or in the pool takes back the
 * spare room of other leases. While a hardware queue waits, spare room goes to the pool at once.
 */
#include <linux/slab.h>

#include "isoblk/room.h"

/* Take what @need more needs out of the pool, and some for the next. */
static bool iso_room_lease(struct iso_room *r, struct iso_lease *lease,
			   s64 need)
{
	s64 pool = atomic64_read(&r->pool), part, take;

	part = r->nr == 1 ? S64_MAX : READ_ONCE(r->size) / (2 * r->nr);
	part = max(part, need);
	do {
		if (pool < need)
			return false;
		take = min(pool, part);
	} while (!atomic64_try_cmpxchg(&r->pool, &pool, pool - take));
	atomic64_add(take, &lease->spare);
	return true;
}

static void iso_room_give_back(struct iso_room *r, struct iso_lease *lease)
{
	s64 spare = atomic64_read(&lease->spare);

	while (spare > 0)
		if (atomic64_try_cmpxchg(&lease->spare, &spare, 0)) {
			atomic64_add(spare, &r->pool);
			return;
		}
}

/**
 * iso_room_get() - take room
 * @r: room
 * @i: hardware queue that takes it; its lock is held
 * @much: how much
 *
 * Return: false if there is not so much.
 */
bool iso_room_get(struct iso_room *r, unsigned int i, u64 much)
{
	struct iso_lease *lease = &r->lease[i];
	s64 spare = atomic64_sub_return(much, &lease->spare);
	unsigned int k;

	if (spare >= 0 || iso_room_lease(r, lease, -spare))
		return true;
	if (r->nr > 1) {
		for (k = 0; k < r->nr; k++)
			if (k != i)
				iso_room_give_back(r, &r->lease[k]);
		if (iso_room_lease(r, lease, -spare))
			return true;
	}
	atomic64_add(much, &lease->spare);
	return false;
}

/**
 * iso_room_has() - whether iso_room_get() would find so much room
 * @r: room
 * @i: hardware queue that would take it
 * @much: how much
 */
bool iso_room_has(const struct iso_room *r, unsigned int i, u64 much)
{
	s64 free = atomic64_read(&r->lease[i].spare);
	unsigned int k;

	for (k = 0; k < r->nr; k++)
		if (k != i)
			free += max_t(s64, atomic64_read(&r->lease[k].spare), 0);
	/* Last, for what is given to the pool is first taken from a lease. */
	return free + atomic64_read(&r->pool) >= (s64)much;
}

/**
 * iso_room_force() - take room, if need be more than there is
 * @r: room
 * @i: hardware queue; its lock is held
 * @much: how much
 */
void iso_room_force(struct iso_room *r, unsigned int i, u64 much)
{
	if (!iso_room_get(r, i, much))
		atomic64_sub(much, &r->lease[i].spare);
}

/**
 * iso_room_put() - give room back
 * @r: room
 * @i: hardware queue that took it; any context
 * @much: how much
 * @wanted: a hardware queue waits, maybe for it
 */
void iso_room_put(struct iso_room *r, unsigned int i, u64 much, bool wanted)
{
	atomic64_add(much, &r->lease[i].spare);
	if (wanted || atomic64_read(&r->pool) < 0)
		iso_room_give_back(r, &r->lease[i]);
}

/**
 * iso_room_used() - how much is taken
 * @r: room
 */
s64 iso_room_used(const struct iso_room *r)
{
	s64 used = READ_ONCE(r->size) - atomic64_read(&r->pool);
	unsigned int i;

	for (i = 0; i < r->nr; i++)
		used -= atomic64_read(&r->lease[i].spare);
	return used;
}

/**
 * iso_room_resize() - there is another amount of it
 * @r: room; one caller at a time
 * @size: how much
 *
 * Below what has been given out the pool is in debt, and what comes back goes there.
 */
void iso_room_resize(struct iso_room *r, u64 size)
{
	unsigned int i;

	for (i = 0; size < r->size && i < r->nr; i++)
		iso_room_give_back(r, &r->lease[i]);
	atomic64_add((s64)(size - r->size), &r->pool);
	WRITE_ONCE(r->size, size);
}

/**
 * iso_room_init() - a room of nothing
 * @r: room, zero
 * @nr: hardware queues
 * @node: where their memory is to be
 *
 * Return: 0 or -ENOMEM.
 */
int iso_room_init(struct iso_room *r, unsigned int nr, int node)
{
	r->lease = kvcalloc_node(nr, sizeof(*r->lease), GFP_KERNEL, node);
	if (!r->lease)
		return -ENOMEM;
	r->nr = nr;
	return 0;
}

/**
 * iso_room_exit() - free it
 * @r: room; zero will do
 */
void iso_room_exit(struct iso_room *r)
{
	kvfree(r->lease);
}
