// SPDX-License-Identifier: GPL-2.0-only
/*
 * The window, divided among hardware queues.
 *
 * The window is so much work that the device may have at once. A hardware queue
 * takes a part of it and gives out of that without asking anybody, so that
 * CPUs write no common word for each request as long as the window does not bind.
 * One that finds neither in its part nor in the pool takes back what the others
 * have to spare. While somebody waits, spare work goes to the pool at once.
 */
#include "isoblk.h"

/* Take what @need more work needs out of the pool, and some for the next. */
static bool take_from_pool(struct iso_disk *d, struct iso_hq *hq, s64 need)
{
	s64 pool = atomic64_read(&d->pool), part, take;

	part = d->disk.nr_hqs == 1 ? S64_MAX :
		READ_ONCE(d->size) / (2 * d->disk.nr_hqs);
	part = max(part, need);
	do {
		if (pool < need)
			return false;
		take = min(pool, part);
	} while (!atomic64_try_cmpxchg(&d->pool, &pool, pool - take));
	atomic64_add(take, &hq->spare);
	return true;
}

/* What @hq has to spare goes to the pool. */
static void give_to_pool(struct iso_disk *d, struct iso_hq *hq)
{
	s64 spare = atomic64_read(&hq->spare);

	while (spare > 0)
		if (atomic64_try_cmpxchg(&hq->spare, &spare, 0)) {
			atomic64_add(spare, &d->pool);
			return;
		}
}

/**
 * iso_get_room() - take room for a request
 * @d: disk
 * @hq: where it is; its lock is held
 * @work: of the request
 *
 * Return: false if the window is full.
 */
bool iso_get_room(struct iso_disk *d, struct iso_hq *hq, u64 work)
{
	s64 spare = atomic64_sub_return(work, &hq->spare);
	unsigned int i;

	if (spare >= 0 || take_from_pool(d, hq, -spare))
		return true;
	if (d->disk.nr_hqs > 1) {
		for (i = 0; i < d->disk.nr_hqs; i++)
			if (&d->hq[i] != hq)
				give_to_pool(d, &d->hq[i]);
		if (take_from_pool(d, hq, -spare))
			return true;
	}
	atomic64_add(work, &hq->spare);
	return false;
}

/**
 * iso_put_room() - a request has left the device
 * @d: disk
 * @hq: where it came from; its lock is held
 * @work: of the request
 */
void iso_put_room(struct iso_disk *d, struct iso_hq *hq, u64 work)
{
	atomic64_add(work, &hq->spare);
	if (atomic_read(&d->nr_blocked) || atomic64_read(&d->pool) < 0)
		give_to_pool(d, hq);
}

/**
 * iso_resize() - the window has another size
 * @d: its disk lock is held
 * @size: work
 *
 * Below what has been given out the pool is in debt, and what comes back goes there.
 */
void iso_resize(struct iso_disk *d, u64 size)
{
	lockdep_assert_held(&d->disk.lock);

	atomic64_add((s64)(size - d->size), &d->pool);
	WRITE_ONCE(d->size, size);
}
