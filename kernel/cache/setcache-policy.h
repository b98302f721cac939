/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replacement in dm-setcache. The lock of the set's bucket is held.
 */
#ifndef SETCACHE_POLICY_H
#define SETCACHE_POLICY_H

#include "setcache-set.h"

enum sc_policy {
	SC_POLICY_FIFO,
	SC_POLICY_LRU,
	SC_POLICY_RANDOM,
	SC_NR_POLICIES,
};

void sc_touch_slot(struct sc_index *index, u32 set, u16 slot,
		   enum sc_policy policy, bool inserted);
u16 sc_take_slot(struct sc_index *index, u32 set, u32 id, u16 near,
		 enum sc_policy policy, bool *replaced);
bool sc_is_evictable(struct sc_index *index, u32 set, u16 slot);
u16 sc_slot_age(const struct sc_index *index, u32 set, u16 slot);

#endif /* SETCACHE_POLICY_H */
