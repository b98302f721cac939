/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Detection of sequential streams in dm-setcache. Any context.
 */
#ifndef SETCACHE_FLOW_H
#define SETCACHE_FLOW_H

#include <linux/types.h>

struct sc_flows;

/* May sleep. Free the result with kvfree(). */
struct sc_flows *sc_flows_create(void);
sector_t sc_flow_add(struct sc_flows *flows, sector_t sector, u32 count,
		     unsigned long now);

#endif /* SETCACHE_FLOW_H */
