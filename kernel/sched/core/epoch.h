/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of an epoch: what was seen, and what follows.
 */
#ifndef ISOBLK_CORE_EPOCH_H
#define ISOBLK_CORE_EPOCH_H

#include "core/disk.h"

void iso_end_epoch(struct iso_disk *d, u64 now);

#endif /* ISOBLK_CORE_EPOCH_H */
