/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What has completed.
 */
#ifndef ISOBLK_CORE_MEASURE_H
#define ISOBLK_CORE_MEASURE_H

#include "core/group.h"

void iso_account(struct iso_disk *d, struct iso_group *g,
		 const struct request *rq, unsigned int sectors, u64 work,
		 u64 now);
u64 iso_done_work(const struct iso_disk *d);
struct iso_done iso_sum_up(const struct iso_disk *d);

#endif /* ISOBLK_CORE_MEASURE_H */
