/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slots of dm-setcache after a request: their states, and the next requests.
 */
#ifndef SETCACHE_SLOTS_H
#define SETCACHE_SLOTS_H

#include "setcache.h"

/* Any context; the lock of the bucket is taken. */
void sc_end_write(struct setcache *sc, const struct sc_op *op, bool through);
void sc_drop_blocks(struct setcache *sc, const struct sc_op *op, bool failed);
void sc_release_op(struct setcache *sc, struct sc_op *op);

/* May sleep. */
void sc_end_discard(struct setcache *sc, const struct sc_op *op, bool recorded,
		    bool failed);
int sc_change_mode(struct setcache *sc, u8 mode);

/* The lock of the set's bucket is held. */
bool sc_set_is_over(const struct setcache *sc, u32 set);
void sc_check_dirty(struct setcache *sc, u32 set);

#endif /* SETCACHE_SLOTS_H */
