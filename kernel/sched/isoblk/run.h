/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hardware queues that are blocked, and when they are run again: run.c.
 */
#ifndef ISOBLK_ISO_RUN_H
#define ISOBLK_ISO_RUN_H

#include "isoblk/group.h"

/* Another CPU may have noted a later time since: the next one notes it again. */
static inline void iso_note_now(struct iso_hq *hq, u64 now)
{
	if (now > READ_ONCE(hq->now))
		WRITE_ONCE(hq->now, now);
}

/* Nothing may be sent for now. */
static inline void iso_block(struct iso_disk *d, struct iso_hq *hq)
{
	lockdep_assert_held(&hq->lock);

	WRITE_ONCE(hq->wait_key, hq->next.key);
	WRITE_ONCE(hq->lacks, hq->next.lacks);
	/* Counted before it can be undone. */
	atomic_inc(&d->nr_blocked);
	if (xchg(&hq->blocked, true))
		atomic_dec(&d->nr_blocked);
}

/* Return false if it was not blocked. */
static inline bool iso_unblock(struct iso_disk *d, struct iso_hq *hq)
{
	if (!READ_ONCE(hq->blocked) || !xchg(&hq->blocked, false))
		return false;
	atomic_dec(&d->nr_blocked);
	return true;
}

/*
 * Whether @hq, which waits for room, need not any longer: there is @least of it free, and enough
 * for its next request. While a queue is blocked, a completion puts all that its own queue has to
 * spare into the pool.
 */
static inline bool iso_may_go(const struct iso_disk *d,
			      const struct iso_hq *hq, u64 least)
{
	s64 lacks = max(READ_ONCE(hq->lacks), least);

	return atomic64_read(&d->room.pool) >= lacks ||
		atomic_read(&hq->in_flight) < ISO_IN_FLIGHT_MIN;
}

/*
 * The same just after @hq has blocked, when room may still be in a lease: what was put there by a
 * completion that did not see @blocked yet.
 */
static inline bool iso_has_room(const struct iso_disk *d,
				const struct iso_hq *hq)
{
	return iso_room_has(&d->room, hq->index, READ_ONCE(hq->lacks)) ||
		atomic_read(&hq->in_flight) < ISO_IN_FLIGHT_MIN;
}

/*
 * Whether a completion runs @hq. Running it costs a context switch, so where it waits for room some
 * gathers first. As long as the device has other requests of @hq, their completions ask again; and
 * the task that sends the next request runs it anyway.
 */
static inline bool iso_worth_a_run(const struct iso_disk *d,
				   const struct iso_hq *hq)
{
	return !READ_ONCE(hq->lacks) ||
		iso_may_go(d, hq, READ_ONCE(d->gather));
}

/* Whether no request is in flight. */
static inline bool iso_is_idle(const struct iso_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		if (atomic_read(&d->hq[i].in_flight))
			return false;
	return true;
}

void iso_run(struct iso_disk *d, struct iso_hq *hq);
void iso_run_first_blocked(struct iso_disk *d);
void iso_run_blocked(struct iso_disk *d);
void iso_run_blocked_at(struct iso_disk *d, u64 now);

#endif /* ISOBLK_ISO_RUN_H */
