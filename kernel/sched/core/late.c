// SPDX-License-Identifier: GPL-2.0-only
/*
 * How late processors are.
 *
 * A host takes the processors of a virtual machine away, for milliseconds, and what the
 * device completes meanwhile is seen afterwards. That looks like a queue in the
 * device, and is none: nobody is served sooner because others are held back or
 * because the device has less at once. And where all keep pace with each other,
 * all stand still with the one whose processor does.
 *
 * So now and then a timer is set where requests are sent. As late as it goes off, beyond
 * what it always is, completions are seen. That is added to the least time that a
 * request takes, before anybody is held back; groups may be further apart by it; and
 * the device may have on top of the window what it does meanwhile. Where processors
 * are there when they are needed, timers are exact, and all that is nothing.
 */
#include <linux/ktime.h>

#include "core/late.h"

/*
 * A timer is set while its processor runs, and is to go off when that is no longer
 * likelier than at any other time: after as long as hosts let one run. A pause
 * follows, but not at first.
 */
#define PROBE_NS		(2 * NSEC_PER_MSEC)
#define PAUSE_NS		(2 * NSEC_PER_MSEC)

/* Of so many probes is the mean, about. */
#define PROBES			16U

/*
 * A timer is not exact to less, and may always be late by more: the shortest time that a
 * request takes has that in it.
 */
#define EXACT_NS		(4 * NSEC_PER_USEC)
#define ALWAYS_NS		(50 * NSEC_PER_USEC)

/* Later than this it was not the host's sharing. */
#define LATE_MOST_NS		(20 * NSEC_PER_MSEC)

/*
 * A request waits for a processor about so often: to be sent, often by a worker, to be
 * seen when it has completed, and until whoever asked for it is awake and asks again.
 */
#define LATE_TIMES		4

static enum hrtimer_restart probe_over(struct hrtimer *timer)
{
	struct iso_hq *hq = container_of(timer, struct iso_hq, probe);
	struct iso_disk *d = hq->disk;
	u64 due = ktime_to_ns(hrtimer_get_expires(timer)), now = ktime_get_ns();
	u64 late = min(now - min(due, now), LATE_MOST_NS);
	unsigned int nr = min(READ_ONCE(d->late.probes) + 1, PROBES);
	u64 least = min(READ_ONCE(d->late.least), late);
	u64 mean = READ_ONCE(d->late.mean);

	/* If two are over at once one of them may be lost. */
	mean = mean - mean / nr + late / nr;
	WRITE_ONCE(d->late.probes, nr);
	WRITE_ONCE(d->late.least, least);
	WRITE_ONCE(d->late.mean, mean);
	late = mean - min(mean, least);
	WRITE_ONCE(d->late.ns, late < EXACT_NS ? 0 : LATE_TIMES * late);
	return HRTIMER_NORESTART;
}

/**
 * iso_probe() - find out how late this processor is, if it is time to
 * @hq: its lock is held
 * @now: ns
 */
void iso_probe(struct iso_hq *hq, u64 now)
{
	bool begun;

	if (likely(now < hq->probe_ns))
		return;
	begun = READ_ONCE(hq->disk->late.probes) == PROBES;
	hq->probe_ns = now + PROBE_NS + (begun ? PAUSE_NS : 0);
	if (!hrtimer_active(&hq->probe))
		hrtimer_start(&hq->probe, ns_to_ktime(PROBE_NS),
			      HRTIMER_MODE_REL_PINNED);
}

/**
 * iso_probe_init() - before the first
 * @d: disk
 * @hq: hardware queue
 */
void iso_probe_init(struct iso_disk *d, struct iso_hq *hq)
{
	d->late.least = ALWAYS_NS;
	hrtimer_setup(&hq->probe, probe_over, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED);
}
