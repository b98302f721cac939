/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The identity of dm-setcache's origin, and whether it has changed. All
 * functions may sleep.
 */
#ifndef SETCACHE_ORIGIN_H
#define SETCACHE_ORIGIN_H

#include "setcache.h"

/* Whether the origin has changed since the cache was stopped. */
enum sc_change {
	SC_ORIGIN_SAME,
	SC_ORIGIN_UNKNOWN,
	SC_ORIGIN_CHANGED,
};

void sc_origin_get_identity(const struct setcache *sc, char *identity);
char *sc_origin_check_identity(const struct setcache *sc, u8 mode);
int sc_origin_get_state(struct setcache *sc, struct sc_origin_state *state);
enum sc_change sc_origin_compare(const struct setcache *sc,
				 const struct sc_origin_state *was,
				 const struct sc_origin_state *is);
bool sc_origin_is_written(const struct setcache *sc,
			  const struct sc_origin_state *was);
void sc_origin_init(void);

#endif /* SETCACHE_ORIGIN_H */
