/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far groups may be ahead: throttle.c.
 */
#ifndef ISOBLK_ISO_THROTTLE_H
#define ISOBLK_ISO_THROTTLE_H

#include "isoblk/group.h"

/*
 * A group sends again whose virtual time is @vtime. The horizon is no later: where that matters it
 * is looked for, and the one found counts.
 */
static inline void iso_lower_horizon(struct iso_disk *d, u64 vtime)
{
	if (vtime_before(vtime, READ_ONCE(d->clock.behind)))
		WRITE_ONCE(d->clock.behind, vtime);
}

u64 iso_expected(const struct iso_disk *d, const struct iso_group *g, u64 now);
void iso_expect(struct iso_disk *d, u64 wait);
void iso_find_gated(struct iso_disk *d);
void iso_update_horizon(struct iso_disk *d, u64 now);
enum iso_why iso_throttle(struct iso_disk *d, struct iso_hq *hq, struct iso_group *g);
void iso_end_throttling(struct iso_disk *d, u64 now);
void iso_set_aside(struct iso_disk *d);
void iso_put_back(struct iso_disk *d);
void iso_pay_back(struct iso_disk *d);

#endif /* ISOBLK_ISO_THROTTLE_H */
