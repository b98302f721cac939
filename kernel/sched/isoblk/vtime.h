/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual time: the cost that a group was charged, over its share.
 *
 * A cost of 1 ns charged to a group with a share of the whole device moves the group's virtual
 * time on by 1; with half of the device by 2. So while the device is busy all virtual times move
 * as fast as it works, however many groups there are and whatever their weights. A virtual time
 * is compared, never read as a date: it wraps.
 */
#ifndef ISOBLK_VTIME_H
#define ISOBLK_VTIME_H

#include <linux/types.h>

#include "muldiv.h"
#include "share/group.h"

/* The longest step: no request of a group of tiny share stops its clock. */
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
 * vtime_step() - how far a cost moves a group's virtual time
 * @cost: ns of the device
 * @share: of the device, of ISOBLK_SHARE_ONE; not 0
 */
static inline u64 vtime_step(u64 cost, u32 share)
{
	return min(mul_div(cost, ISOBLK_SHARE_ONE, share), VTIME_STEP_MAX);
}

/**
 * vtime_rescale() - virtual time of a group whose share has changed
 * @vtime: with the share so far
 * @now: the disk's virtual time
 * @before: share so far, 0: none
 * @after: share from now on
 *
 * The group's lead stays the same cost.
 */
static inline u64 vtime_rescale(u64 vtime, u64 now, u32 before, u32 after)
{
	u64 lead = vtime - now;

	if (!before || before == after || !vtime_before(now, vtime))
		return vtime;
	lead = mul_div(lead, before, max(after, 1U));
	return now + min(lead, VTIME_STEP_MAX);
}

#endif /* ISOBLK_VTIME_H */
