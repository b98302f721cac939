/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How late processors are.
 */
#ifndef ISOBLK_CORE_LATE_H
#define ISOBLK_CORE_LATE_H

#include "core/disk.h"

void iso_probe(struct iso_hq *hq, u64 now);
void iso_probe_init(struct iso_disk *d, struct iso_hq *hq);

#endif /* ISOBLK_CORE_LATE_H */
