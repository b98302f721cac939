/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hardware queues that wait, and who runs them again.
 */
#ifndef ISOBLK_CORE_RUN_H
#define ISOBLK_CORE_RUN_H

#include "core/group.h"

/* Another CPU may have noted a later time meanwhile: the next one notes it again. */
static inline void iso_note_now(struct iso_hq *hq, u64 now)
{
	if (now > READ_ONCE(hq->now))
		WRITE_ONCE(hq->now, now);
}

/* Nothing may go for now. */
static inline void iso_block(struct iso_disk *d, struct iso_hq *hq)
{
	lockdep_assert_held(&hq->lock);

	WRITE_ONCE(hq->wait_tag, hq->next.tag);
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
 * Whether @hq, which waits for room, need not any longer: there is @least of it free, and
 * enough for its next. While somebody waits all that is free is in the pool.
 */
static inline bool iso_may_go(const struct iso_disk *d,
			      const struct iso_hq *hq, u64 least)
{
	s64 lacks = max(READ_ONCE(hq->lacks), least);

	return atomic64_read(&d->room.pool) >= lacks ||
		atomic_read(&hq->in_device) < ISO_LEAST_IN_DEVICE;
}

/*
 * Whether @hq is to be run for what has just completed. To run it is a change of
 * task, so where it waits for room some is let gather. As long as the device has other
 * requests of @hq, one of them asks again; and whoever sends the next runs it anyway.
 */
static inline bool iso_worth_a_run(const struct iso_disk *d,
				   const struct iso_hq *hq)
{
	return !READ_ONCE(hq->lacks) ||
		iso_may_go(d, hq, READ_ONCE(d->size.gather));
}

void iso_run_first_blocked(struct iso_disk *d);
void iso_run_blocked(struct iso_disk *d);
void iso_note_time(struct iso_disk *d, u64 now);

#endif /* ISOBLK_CORE_RUN_H */
