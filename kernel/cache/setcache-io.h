/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The path of a bio through dm-setcache: entry points for device-mapper and -set.
 */
#ifndef SETCACHE_IO_H
#define SETCACHE_IO_H

#include "setcache.h"

/* Any context. */
int sc_map(struct dm_target *ti, struct bio *bio);
int sc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error);
size_t sc_per_bio_size(void);

/* The lock of the bucket is held. */
void sc_wake_op(struct setcache *sc, struct sc_bucket *bucket,
		struct sc_op *op);

/* The worker; sleeps. */
void sc_defer_work(struct work_struct *work);

#endif /* SETCACHE_IO_H */
