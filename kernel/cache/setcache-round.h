/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A round of the cleaner of dm-setcache: the interface for -io.
 */
#ifndef SETCACHE_ROUND_H
#define SETCACHE_ROUND_H

#include "setcache.h"

/* The lock of the set's bucket is held. */
void sc_round_wake_op(struct setcache *sc, struct sc_bucket *bucket,
		      struct sc_op *op);

#endif /* SETCACHE_ROUND_H */
