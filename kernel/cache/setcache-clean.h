/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cleaner of dm-setcache: the interface for -target, -table and -life.
 */
#ifndef SETCACHE_CLEAN_H
#define SETCACHE_CLEAN_H

#include "setcache.h"

/* May sleep. */
struct sc_cleaner *sc_cleaner_create(struct setcache *sc);
void sc_cleaner_destroy(struct sc_cleaner *cleaner);
void sc_clean_work(struct work_struct *work);

/* Any context. */
void sc_clean_set_all(struct setcache *sc, bool start);

#endif /* SETCACHE_CLEAN_H */
