/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who goes before all others.
 */
#ifndef ISOBLK_CORE_FIRST_H
#define ISOBLK_CORE_FIRST_H

#include "core/group.h"

bool iso_goes_first(const struct iso_disk *d, struct iso_group *g,
		    const struct request *rq, u64 now);
bool iso_more_go_first(const struct iso_disk *d, const struct iso_gq *gq);
bool iso_may_pass(const struct iso_disk *d, const struct iso_gq *gq);

#endif /* ISOBLK_CORE_FIRST_H */
