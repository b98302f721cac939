/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual time: what a group was charged, over its share.
 *
 * One unit of work done for a share of the whole device moves a group's time on by
 * 2^VTIME_SHIFT; for half of the device by twice that. So while the device is
 * busy all times move as fast as it works, however many groups there are and
 * whatever their weights. A time is compared, never read as a date: it wraps
 * after centuries.
 */
#ifndef ISOBLK_VTIME_H
#define ISOBLK_VTIME_H

#include <linux/types.h>

#include "muldiv.h"
#include "share/group.h"

/* Bits of a unit of work: so that heavy groups' times are not rounded alike. */
#define VTIME_SHIFT	6

/* The longest step, so that no request of a feather-weight stops its clock. */
#define VTIME_STEP_MAX	BIT_ULL(56)

static inline bool vtime_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline u64 vtime_later(u64 a, u64 b)
{
	return vtime_before(a, b) ? b : a;
}

/**
 * vtime_step() - how far work moves a group's time
 * @work: units
 * @share: of the device, of ISOBLK_SHARE_ONE; not 0
 */
static inline u64 vtime_step(u64 work, u32 share)
{
	u64 step = mul_div(work << VTIME_SHIFT, ISOBLK_SHARE_ONE, share);

	return min(step, VTIME_STEP_MAX);
}

/**
 * vtime_rescale() - where a group stands when its share has changed
 * @vtime: where it stood
 * @now: the disk's time
 * @before: share so far
 * @after: share from now on
 *
 * What it was served ahead of its time stays the same work.
 */
static inline u64 vtime_rescale(u64 vtime, u64 now, u32 before, u32 after)
{
	u64 lead = vtime - now;

	if (!before || before == after || !vtime_before(now, vtime))
		return vtime;
	lead = mul_div(lead, before, max(after, 1U));
	return now + min(lead, VTIME_STEP_MAX);
}

/*
 * Between two settings a clock runs on for so long, the longest epoch (measure.c): if nothing
 * is done it stands still.
 */
#define VCLOCK_MOST_NS	(100 * NSEC_PER_MSEC)

/* Bits of its pace: so that it is exact also on a disk of a hundred requests a second. */
#define VCLOCK_SHIFT	20

/**
 * struct vclock - half of all that a disk does, as a time
 *
 * Of those who divide a disk by shares nobody falls behind it who uses half of its share. One
 * at a time sets it; who reads it meanwhile is off by what was done since the last time.
 */
struct vclock {
	u64 at;		/* time that it was set to last */
	u64 ns;		/* date of that */
	u64 pace;	/* its speed since then, a ns, times 1 << VCLOCK_SHIFT */
};

/**
 * vclock_set() - so much has been done
 * @c: clock
 * @work: in all, units
 * @rate: of late, units a second
 * @now: ns
 */
static inline void vclock_set(struct vclock *c, u64 work, u64 rate, u64 now)
{
	WRITE_ONCE(c->at, work << VTIME_SHIFT >> 1);
	WRITE_ONCE(c->ns, now);
	WRITE_ONCE(c->pace,
		   mul_div(rate, BIT_ULL(VTIME_SHIFT + VCLOCK_SHIFT - 1),
			   NSEC_PER_SEC));
}

/**
 * vclock_now() - what time it is
 * @c: clock
 * @now: ns
 */
static inline u64 vclock_now(const struct vclock *c, u64 now)
{
	u64 since = READ_ONCE(c->ns), run = now - min(since, now);

	run = min(run, VCLOCK_MOST_NS);
	return READ_ONCE(c->at) + (run * READ_ONCE(c->pace) >> VCLOCK_SHIFT);
}

#endif /* ISOBLK_VTIME_H */
