/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text interfaces of dm-setcache. All functions may sleep.
 */
#ifndef SETCACHE_TABLE_H
#define SETCACHE_TABLE_H

#include "setcache.h"

void sc_set_default_options(struct setcache *sc);
int sc_parse_options(struct setcache *sc, struct dm_arg_set *as, char **error);
int sc_message(struct dm_target *ti, unsigned int argc, char **argv,
	       char *result, unsigned int maxlen);
void sc_status(struct dm_target *ti, status_type_t type, unsigned int flags,
	       char *result, unsigned int maxlen);

#endif /* SETCACHE_TABLE_H */
