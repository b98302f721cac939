/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Start and stop of dm-setcache. All functions may sleep.
 */
#ifndef SETCACHE_LIFE_H
#define SETCACHE_LIFE_H

struct dm_target;
struct setcache;

int sc_preresume(struct dm_target *ti);
void sc_resume(struct dm_target *ti);
void sc_postsuspend(struct dm_target *ti);
void sc_quiesce(struct setcache *sc);

#endif /* SETCACHE_LIFE_H */
