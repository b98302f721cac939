// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hardware queues that are blocked, and when they are run again.
 */
#include "isoblk/run.h"
#include "isoblk/vtime.h"

/**
 * iso_run() - a hardware queue that is blocked decides again
 * @d: disk
 * @hq: hardware queue
 */
void iso_run(struct iso_disk *d, struct iso_hq *hq)
{
	if (iso_unblock(d, hq))
		blk_mq_run_hw_queue(hq->hctx, true);
}

/**
 * iso_run_first_blocked() - of the queues that are blocked, and worth a run, run the first
 * @d: disk
 */
void iso_run_first_blocked(struct iso_disk *d)
{
	struct iso_hq *hq, *first = NULL;
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++) {
		hq = &d->hq[i];
		if (READ_ONCE(hq->blocked) && iso_worth_a_run(d, hq) &&
		    (!first || vtime_before(READ_ONCE(hq->wait_key),
					    READ_ONCE(first->wait_key))))
			first = hq;
	}
	if (first)
		iso_run(d, first);
}

/**
 * iso_run_blocked() - run all queues that are blocked
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
 * iso_run_blocked_at() - a timer expired: blocked queues try again, and know the time
 * @d: disk
 * @now: ns
 */
void iso_run_blocked_at(struct iso_disk *d, u64 now)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		iso_note_now(&d->hq[i], now);
	/*
	 * The timer is not queued, and the time is known, before we look for @blocked; pairs
	 * with iso_next_in_order().
	 */
	smp_mb();
	iso_run_blocked(d);
}
