/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exclusive use of disks by tables of dm-setcache. All functions may sleep.
 */
#ifndef SETCACHE_CLAIM_H
#define SETCACHE_CLAIM_H

#include <linux/types.h>

struct setcache;

const char *sc_claim_disks(struct setcache *sc);
bool sc_is_claimed_twice(struct setcache *sc);
void sc_unclaim_disks(struct setcache *sc);

#endif /* SETCACHE_CLAIM_H */
