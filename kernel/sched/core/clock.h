/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The times of groups and of the disk, which only these functions set.
 */
#ifndef ISOBLK_CORE_CLOCK_H
#define ISOBLK_CORE_CLOCK_H

#include "core/group.h"
#include "core/vtime.h"
#include "muldiv.h"

/* @g was served further ahead of its time than @slack. */
static inline bool iso_is_ahead(const struct iso_disk *d,
				const struct iso_group *g, u64 slack)
{
	return vtime_before(READ_ONCE(d->clock.vnow) + slack,
			    atomic64_read(&g->vtime));
}

/* @g was served so far ahead of its time that its metadata is ordinary. */
static inline bool iso_indebted(const struct iso_disk *d,
				const struct iso_group *g)
{
	return iso_is_ahead(d, g, READ_ONCE(d->clock.debt_max));
}

/* The disk's time is @vnow; in a trial until that ends. */
static inline void iso_set_vnow(struct iso_disk *d, u64 vnow)
{
	WRITE_ONCE(d->clock.vnow, vnow);
	if (!READ_ONCE(d->hold.trial))
		WRITE_ONCE(d->clock.floor, vnow);
}

/*
 * The disk's time is @vnow if that is later by more than @least: another CPU may have moved it
 * on since @vnow was found, and it does not go back by that.
 */
static inline void iso_advance_vnow(struct iso_disk *d, u64 vnow, u64 least)
{
	u64 at = READ_ONCE(d->clock.vnow);

	while (vtime_before(at + least, vnow))
		if (try_cmpxchg(&d->clock.vnow, &at, vnow)) {
			if (!READ_ONCE(d->hold.trial))
				WRITE_ONCE(d->clock.floor, vnow);
			break;
		}
}

/* A group whose time is @tag is further ahead of the horizon than @slack. */
static inline bool iso_is_beyond(const struct iso_disk *d, u64 tag, u64 slack)
{
	return vtime_before(READ_ONCE(d->clock.behind) + slack, tag);
}

/* The group's time is @least or later, so that it has not saved up. */
static inline void iso_lift(struct iso_group *g, u64 least)
{
	u64 at = atomic64_read(&g->vtime);

	while (vtime_before(at, least))
		if (atomic64_try_cmpxchg(&g->vtime, &at, least)) {
			atomic64_add(least - at, &g->lifted);
			break;
		}
}

/* The group's time is @most or earlier. Return by how much it was set back. */
static inline u64 iso_cut(struct iso_group *g, u64 most)
{
	u64 at = atomic64_read(&g->vtime);

	while (vtime_before(most, at))
		if (atomic64_try_cmpxchg(&g->vtime, &at, most))
			return at - most;
	return 0;
}

/* The same, but what it was served still counts as served. */
static inline void iso_set_back(struct iso_group *g, u64 most)
{
	u64 by = iso_cut(g, most);

	if (by)
		atomic64_sub(by, &g->lifted);
}

/* What of a group's time it was served, or paid: only differences say something. */
static inline u64 iso_served(const struct iso_group *g)
{
	return atomic64_read(&g->vtime) - atomic64_read(&g->lifted);
}

#endif /* ISOBLK_CORE_CLOCK_H */
