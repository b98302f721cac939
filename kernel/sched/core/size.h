/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much the device has at once.
 */
#ifndef ISOBLK_CORE_SIZE_H
#define ISOBLK_CORE_SIZE_H

#include "core/disk.h"

/* Below so many requests in the device there is no order in which to serve. */
#define ISO_LEAST_REQUESTS		2

u64 iso_work_in(const struct iso_disk *d, u64 ns);
void iso_first_request(struct iso_disk *d, u64 work);
void iso_set_window(struct iso_disk *d);
void iso_measure_restart(struct iso_disk *d);

#endif /* ISOBLK_CORE_SIZE_H */
