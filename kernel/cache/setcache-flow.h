/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which stream of requests of dm-setcache is sequential. Any context.
 */
#ifndef SETCACHE_FLOW_H
#define SETCACHE_FLOW_H

#include <linux/types.h>

struct sc_flows;

/* May sleep. What is made is freed by kvfree(). */
struct sc_flows *sc_flows_create(void);
sector_t sc_flow(struct sc_flows *flows, sector_t sector, u32 count,
		 unsigned long now);

#endif /* SETCACHE_FLOW_H */
