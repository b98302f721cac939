/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs of dm-setcache: the interface for -io and -target.
 */
#ifndef SETCACHE_JOB_H
#define SETCACHE_JOB_H

#include "setcache-plan.h"

size_t sc_job_size(u32 assoc);

/* Any context that @gfp allows. */
bool sc_job_start(struct sc_io *io, struct bio *bio, gfp_t gfp);

#endif /* SETCACHE_JOB_H */
