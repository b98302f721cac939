/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the device did in a span of time, and what follows from it: epoch.c.
 */
#ifndef ISOBLK_ISO_EPOCH_H
#define ISOBLK_ISO_EPOCH_H

#include "isoblk/group.h"

void iso_end_epoch(struct iso_disk *d, u64 now);
void iso_set_window(struct iso_disk *d);
void iso_set_slacks(struct iso_disk *d);
void iso_restart(struct iso_disk *d);
u64 iso_done_cost(const struct iso_disk *d);

#endif /* ISOBLK_ISO_EPOCH_H */
