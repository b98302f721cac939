// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hardware queues that wait, and who runs them again.
 */
#include "core/run.h"
#include "core/vtime.h"

/**
 * iso_run_first_blocked() - the first of those that wait, and may go, tries again
 * @d: disk
 */
void iso_run_first_blocked(struct iso_disk *d)
{
	struct iso_hq *hq, *first = NULL;
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++) {
		hq = &d->hq[i];
		if (READ_ONCE(hq->blocked) && iso_worth_a_run(d, hq) &&
		    (!first || vtime_before(READ_ONCE(hq->wait_tag),
					    READ_ONCE(first->wait_tag))))
			first = hq;
	}
	if (first && iso_unblock(d, first))
		blk_mq_run_hw_queue(first->hctx, true);
}

/**
 * iso_run_blocked() - whoever waits may try again
 * @d: disk
 */
void iso_run_blocked(struct iso_disk *d)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		iso_unblock(d, &d->hq[i]);
	blk_mq_run_hw_queues(d->disk.q, true);
}

/**
 * iso_note_time() - tell all hardware queues what time it is
 * @d: disk
 * @now: ns
 */
void iso_note_time(struct iso_disk *d, u64 now)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		iso_note_now(&d->hq[i], now);
}
