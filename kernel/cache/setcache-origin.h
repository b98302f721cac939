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

void sc_origin_identity(const struct setcache *sc, char *identity);
char *sc_origin_nameless(const struct setcache *sc, u8 mode);
int sc_origin_see(struct setcache *sc, struct sc_seen *seen);
enum sc_change sc_origin_change(const struct setcache *sc,
				const struct sc_seen *was,
				const struct sc_seen *is);
bool sc_origin_written_since(const struct setcache *sc,
			     const struct sc_seen *was);
void sc_origin_init(void);

#endif /* SETCACHE_ORIGIN_H */
