/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slots of dm-setcache after I/O errors.
 */
#ifndef SETCACHE_TRIAL_H
#define SETCACHE_TRIAL_H

#include "setcache.h"

/* Any context. */
void sc_account_ssd_error(struct setcache *sc, blk_status_t error);
void sc_trial_kick(struct setcache *sc);

/* The lock of the set's bucket is held. */
void sc_suspect_slot(struct setcache *sc, u32 set, u16 slot);

/* The worker; sleeps. */
void sc_trial_work(struct work_struct *work);

#endif /* SETCACHE_TRIAL_H */
