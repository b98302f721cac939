/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Active groups, and their shares: members.c.
 */
#ifndef ISOBLK_ISO_MEMBERS_H
#define ISOBLK_ISO_MEMBERS_H

#include "isoblk/group.h"

/* How often groups that are idle are looked for, and what changes seldom. */
#define ISO_TICK		msecs_to_jiffies(50)

void iso_join(struct iso_disk *d, struct iso_group *g, bool idle_class);
void iso_end_idle_class(struct iso_disk *d, struct iso_group *g);
void iso_leave(struct iso_disk *d, struct iso_group *g);
void iso_take_out(struct iso_disk *d, struct iso_group *g);
void iso_find_idle(struct iso_disk *d, u64 now);
void iso_renew_share(struct iso_disk *d, struct iso_group *g);
bool iso_update_shares(struct iso_disk *d);

/**
 * iso_update_share() - bring a group's share up to date
 * @d: disk
 * @g: its blkg is held
 */
static inline void iso_update_share(struct iso_disk *d, struct iso_group *g)
{
	if (unlikely(READ_ONCE(g->share_gen) !=
		     READ_ONCE(d->disk.weights.gen)))
		iso_renew_share(d, g);
}

#endif /* ISOBLK_ISO_MEMBERS_H */
