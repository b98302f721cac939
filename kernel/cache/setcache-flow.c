// SPDX-License-Identifier: GPL-2.0-only
/*
 * Detection of sequential streams of requests in dm-setcache.
 *
 * A flow is identified by the sector at which it continues. A request that
 * begins there belongs to the flow, and moves it. Flows are stored in a hash
 * table; a bucket without room forgets its least recently used flow. Each
 * bucket has its lock, and no two of these locks are held together.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "setcache-flow.h"

/* A flow ends when it has no request for this time, in jiffies. */
#define SC_FLOW_LIFE_JIFFIES	(10 * HZ)

/* Most buckets have one flow at most; each has room for a few. */
#define SC_FLOW_BUCKETS	64
#define SC_FLOW_WAYS	4

#define SC_FLOW_BITS	const_ilog2(SC_FLOW_BUCKETS)

/* A sequential stream; by the lock of its bucket. */
struct sc_flow {
	sector_t next_sector;	/* sector at which the flow continues */
	sector_t sectors;	/* sectors so far; 0: no flow */
	unsigned long last_used; /* jiffies of its last request */
};

/* Flows with the same hash. */
struct sc_flow_bucket {
	/* Protects flows. Any context; never held with another bucket's. */
	spinlock_t lock;
	struct sc_flow flows[SC_FLOW_WAYS];	/* the flows */
};

struct sc_flows {
	struct sc_flow_bucket buckets[SC_FLOW_BUCKETS];	/* hash table */
};

struct sc_flows *sc_flows_create(void)
{
	struct sc_flows *flows = kvzalloc(sizeof(*flows), GFP_KERNEL);
	u32 i;

	if (!flows)
		return NULL;
	for (i = 0; i < SC_FLOW_BUCKETS; i++)
		spin_lock_init(&flows->buckets[i].lock);
	return flows;
}

/*
 * Add a request to its stream. Return the stream's length before the request,
 * in sectors.
 */
sector_t sc_flow_add(struct sc_flows *flows, sector_t sector, u32 count,
		     unsigned long now)
{
	struct sc_flow_bucket *bucket;
	struct sc_flow *flow, *oldest;
	sector_t length = 0;
	unsigned long flags;
	u32 i;

	bucket = &flows->buckets[hash_64(sector, SC_FLOW_BITS)];
	spin_lock_irqsave(&bucket->lock, flags);
	for (i = 0; i < SC_FLOW_WAYS; i++) {
		flow = &bucket->flows[i];
		if (!flow->sectors || flow->next_sector != sector)
			continue;
		if (time_before_eq(now, flow->last_used + SC_FLOW_LIFE_JIFFIES))
			length = flow->sectors;
		flow->sectors = 0;
		break;
	}
	spin_unlock_irqrestore(&bucket->lock, flags);

	bucket = &flows->buckets[hash_64(sector + count, SC_FLOW_BITS)];
	spin_lock_irqsave(&bucket->lock, flags);
	oldest = &bucket->flows[0];
	for (i = 0; i < SC_FLOW_WAYS; i++) {
		flow = &bucket->flows[i];
		if (!flow->sectors) {
			oldest = flow;
			break;
		}
		if (time_before(flow->last_used, oldest->last_used))
			oldest = flow;
	}
	oldest->next_sector = sector + count;
	oldest->sectors = length + count;
	oldest->last_used = now;
	spin_unlock_irqrestore(&bucket->lock, flags);
	return length;
}
