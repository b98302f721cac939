/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a hardware queue sends next in order: choose.c.
 */
#ifndef ISOBLK_ISO_CHOOSE_H
#define ISOBLK_ISO_CHOOSE_H

#include "isoblk/group.h"

bool iso_is_full(struct iso_disk *d, struct iso_hq *hq);
bool iso_choose(struct iso_disk *d, struct iso_hq *hq);

#endif /* ISOBLK_ISO_CHOOSE_H */
