/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios of dm-setcache that need more than one, as others see them.
 */
#ifndef SETCACHE_JOB_H
#define SETCACHE_JOB_H

#include "setcache-plan.h"

size_t sc_job_size(u32 assoc);

/* Any context that @gfp allows. */
bool sc_job_start(struct sc_io *io, struct bio *bio, gfp_t gfp);

#endif /* SETCACHE_JOB_H */
