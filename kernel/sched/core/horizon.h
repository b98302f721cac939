/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far others are held back, and for how long somebody is waited for.
 */
#ifndef ISOBLK_CORE_HORIZON_H
#define ISOBLK_CORE_HORIZON_H

#include "core/group.h"

bool iso_beyond_horizon(struct iso_disk *d, struct iso_hq *hq, u64 tag,
			u64 slack, struct iso_gq **late);
void iso_update_horizon(struct iso_disk *d, u64 now);
u64 iso_patience(const struct iso_disk *d, const struct iso_group *g);
void iso_end_wait(struct iso_disk *d, u64 now);

#endif /* ISOBLK_CORE_HORIZON_H */
