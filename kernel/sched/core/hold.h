/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For whom others are held back.
 */
#ifndef ISOBLK_CORE_HOLD_H
#define ISOBLK_CORE_HOLD_H

#include "core/group.h"

void iso_scan(struct iso_disk *d, u64 now);
void iso_hold_nobody(struct iso_disk *d);
void iso_hold_unlearn(struct iso_disk *d);

#endif /* ISOBLK_CORE_HOLD_H */
