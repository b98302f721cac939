/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs of dm-setcache that read. All functions may sleep.
 */
#ifndef SETCACHE_FILL_H
#define SETCACHE_FILL_H

struct sc_job;
struct work_struct;

void sc_read_start(struct sc_job *job);
void sc_fill_work(struct work_struct *work);

#endif /* SETCACHE_FILL_H */
