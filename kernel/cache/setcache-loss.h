/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The loss of dm-setcache's SSD.
 */
#ifndef SETCACHE_LOSS_H
#define SETCACHE_LOSS_H

struct setcache;
struct work_struct;

/* Any context. */
void sc_lose_ssd(struct setcache *sc);

/* The worker; sleeps. */
void sc_lost_work(struct work_struct *work);

#endif /* SETCACHE_LOSS_H */
