/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Latency targets, and what others are left with for their sake.
 */
#ifndef ISOBLK_CORE_LATENCY_H
#define ISOBLK_CORE_LATENCY_H

#include <linux/seq_file.h>

#include "core/group.h"

static inline bool iso_has_target(const struct iso_group *g)
{
	return READ_ONCE(g->target_ns);
}

/* Others than those with a target may send only so many units a second. */
static inline bool iso_is_paced(const struct iso_disk *d)
{
	return READ_ONCE(d->squeeze.pace);
}

void iso_latency_init(struct iso_disk *d);
void iso_latency_exit(struct iso_disk *d);
void iso_latency_note(struct iso_disk *d, struct iso_group *g,
		      const struct request *rq, u64 now);
void iso_latency_look(struct iso_disk *d, const struct window_epoch *e,
		      u64 span, u64 now);
void iso_latency_stat(struct iso_group *g, struct seq_file *s);
void iso_set_target(struct isoblk_group *group, u32 us);
u32 iso_target_us(struct isoblk_group *group);
bool iso_pace_allows(struct iso_disk *d, u64 now);
void iso_pace_charge(struct iso_disk *d, u64 work, u64 now);

#endif /* ISOBLK_CORE_LATENCY_H */
