// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who goes before all others.
 *
 * Who has nothing that waits and is not ahead of the disk's time goes next, whether the
 * device has its fill or not: that is the reader beside the backup. But that time is the
 * one of whoever was furthest behind when somebody was served last, and does not always say
 * how much has been done:
 *
 *  - It goes on by whole requests. While one of 1 MiB is written it stands still, and
 *    who reads 4 KiB for the third time meanwhile would be ahead. So a small request goes as
 *    well if in their order it ends before a large one does that is being served.
 *
 *  - It stands still while those catch up who were behind: after a pause of theirs, or because
 *    others were not held back. So who has been served less than half of its
 *    share of all that is done goes as well. That is counted apart (struct vclock), and
 *    nothing is saved up beyond the slack. Who uses all of its share has no need of it: it
 *    has a place in the order, and the disk's time goes on with that.
 *
 *  - While a kind of requests has the device, for its price to be found (price.c), the other
 *    kinds wait. Those of groups that have few do not, as long as all of them are little
 *    beside it.
 */
#include <linux/time64.h>

#include "core/charge.h"
#include "core/clock.h"
#include "core/first.h"
#include "core/latency.h"
#include "core/size.h"
#include "core/tree.h"

/*
 * Of what the device does while a kind of requests has it, others may be so much; to begin
 * with they may have as much as after so long, or the first would wait.
 */
#define PASS_PART		16
#define PASS_FIRST_NS		(20 * NSEC_PER_MSEC)

/* So few requests of a group leave a kind that has the device nearly alone. */
#define PASS_FEW		4

/* Whether @g is served less than half of its share. */
static bool is_light(const struct iso_disk *d, struct iso_group *g, u64 now)
{
	u64 clock = vclock_now(&d->clock.half, now), all = iso_served(g);
	u64 served = all - READ_ONCE(g->light_from);
	u64 least = clock - READ_ONCE(d->clock.slack);

	if (vtime_before(served, least))
		WRITE_ONCE(g->light_from, all - least);
	return !vtime_before(clock, served);
}

/* There it is a seek; or all do less for the sake of a target, however little it is. */
static bool nobody_is_helped(const struct iso_disk *d)
{
	return d->rotational || unlikely(READ_ONCE(d->squeeze.window));
}

/**
 * iso_goes_first() - whether a group of which nothing waits goes before all others
 * @d: disk
 * @g: group
 * @rq: its next request
 * @now: ns
 *
 * All that go because the disk's time moves on by whole requests are no more than @ease, or
 * the largest request, together.
 */
bool iso_goes_first(const struct iso_disk *d, struct iso_group *g,
		    const struct request *rq, u64 now)
{
	u64 lead, step;

	if (unlikely(iso_has_target(g)))
		return !iso_is_ahead(d, g, READ_ONCE(d->clock.target_slack));
	if (!iso_is_ahead(d, g, READ_ONCE(d->clock.ease)))
		return true;
	if (nobody_is_helped(d))
		return false;
	if (is_light(d, g, now))
		return true;
	lead = max(READ_ONCE(d->epoch.largest), READ_ONCE(d->device.largest)) <<
		VTIME_SHIFT;
	if (iso_is_ahead(d, g, lead))
		return false;
	step = vtime_step(iso_work_of(d, rq), max(READ_ONCE(g->share), 1U));
	return step <= lead && !iso_is_ahead(d, g, lead - step);
}

/**
 * iso_more_go_first() - whether the next of a group of which one went first does as well
 * @d: disk
 * @gq: has requests that wait; the lock of its hardware queue is held
 *
 * Without a target not in a trial, which is to show what a group has that is not helped.
 */
bool iso_more_go_first(const struct iso_disk *d, const struct iso_gq *gq)
{
	if (!iso_has_target(gq->group) &&
	    (nobody_is_helped(d) || READ_ONCE(d->hold.trial)))
		return false;
	return iso_goes_first(d, gq->group, iso_first_of(gq),
			      READ_ONCE(gq->hq->now));
}

/**
 * iso_may_pass() - whether a group may send though a kind of requests has the device
 * @d: disk
 * @gq: has requests that wait; the lock of its hardware queue is held
 *
 * By how much it is, and, as prices may be far from right, by how many.
 */
bool iso_may_pass(const struct iso_disk *d, const struct iso_gq *gq)
{
	u64 since = READ_ONCE(d->pricing.alone_since);
	u64 now = READ_ONCE(gq->hq->now);
	enum price_kind alone = READ_ONCE(d->tariff.alone);
	u64 has = atomic64_read(&gq->group->has);

	if (likely(alone == PRICE_KINDS) ||
	    (enum price_kind)isoblk_rq_op(iso_first_of(gq)) == alone)
		return true;
	if (iso_waits(has) + iso_in_device(has) >= PASS_FEW)
		return false;
	since = now - min(since, now);
	return (u64)atomic64_read(&d->pricing.passed) <=
		iso_work_in(d, since + PASS_FIRST_NS) / PASS_PART;
}
