/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who is next.
 */
#ifndef ISOBLK_CORE_CHOOSE_H
#define ISOBLK_CORE_CHOOSE_H

#include "core/group.h"

bool iso_has_enough(const struct iso_disk *d, const struct iso_group *g);
bool iso_choose(struct iso_disk *d, struct iso_hq *hq);
bool iso_is_full(struct iso_disk *d, struct iso_hq *hq);

#endif /* ISOBLK_CORE_CHOOSE_H */
