/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets that come in rounds.
 */
#ifndef ISOBLK_CORE_PAPER_H
#define ISOBLK_CORE_PAPER_H

#include "core/group.h"
#include "core/vtime.h"

bool iso_refill(struct iso_disk *d, u64 now, bool tick);

/**
 * iso_paper_join() - a group takes part again: what one refill has given, no more
 * @d: its disk lock is held
 * @g: group
 */
static inline void iso_paper_join(struct iso_disk *d, struct iso_group *g)
{
	u64 vtime = atomic64_read(&g->vtime);
	u64 least = READ_ONCE(d->clock.vnow) - (d->rounds.grant << VTIME_SHIFT);

	lockdep_assert_held(&d->disk.lock);

	if (!d->paper)
		return;
	if (vtime_before(vtime, least))
		atomic64_set(&g->vtime, least);
	g->refill_vtime = atomic64_read(&g->vtime);
}

#endif /* ISOBLK_CORE_PAPER_H */
