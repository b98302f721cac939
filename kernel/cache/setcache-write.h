/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs of dm-setcache that write. All functions may sleep.
 */
#ifndef SETCACHE_WRITE_H
#define SETCACHE_WRITE_H

struct sc_job;

void sc_write_start(struct sc_job *job);

#endif /* SETCACHE_WRITE_H */
