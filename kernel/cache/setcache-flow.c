// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which stream of requests of dm-setcache is sequential.
 *
 * A flow is known by the sector at which it would go on. A request that begins
 * there is of that flow, and moves it. There are as many flows as the table
 * holds, by hash; where there is no room the one not used for longest is
 * forgotten. Each hash has its lock, and none is held while another is.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "setcache-flow.h"

/* A flow that is not used for so long has ended. */
#define SC_FLOW_LIFE	(10 * HZ)

/* Most likely a bucket has one flow; it has room for a few. */
#define SC_FLOW_BUCKETS	64
#define SC_FLOW_WAYS	4

#define SC_FLOW_BITS	const_ilog2(SC_FLOW_BUCKETS)

/* A sequential stream; by the lock of its bucket. */
struct sc_flow {
	sector_t next;		/* sector at which it goes on */
	sector_t length;	/* sectors so far; 0: there is none */
	unsigned long used;	/* jiffies of its last request */
};

/* Flows of a hash. */
struct sc_flow_bucket {
	/* Protects the flows. Any context; never held while another is. */
	spinlock_t lock;
	struct sc_flow flows[SC_FLOW_WAYS];	/* the flows */
};

struct sc_flows {
	struct sc_flow_bucket buckets[SC_FLOW_BUCKETS];	/* all of them */
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
 * Return the length of the stream that a request belongs to, in sectors,
 * without the request itself, and add it.
 */
sector_t sc_flow(struct sc_flows *flows, sector_t sector, u32 count,
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
		if (!flow->length || flow->next != sector)
			continue;
		if (time_before_eq(now, flow->used + SC_FLOW_LIFE))
			length = flow->length;
		flow->length = 0;
		break;
	}
	spin_unlock_irqrestore(&bucket->lock, flags);

	bucket = &flows->buckets[hash_64(sector + count, SC_FLOW_BITS)];
	spin_lock_irqsave(&bucket->lock, flags);
	oldest = &bucket->flows[0];
	for (i = 0; i < SC_FLOW_WAYS; i++) {
		flow = &bucket->flows[i];
		if (!flow->length) {
			oldest = flow;
			break;
		}
		if (time_before(flow->used, oldest->used))
			oldest = flow;
	}
	oldest->next = sector + count;
	oldest->length = length + count;
	oldest->used = now;
	spin_unlock_irqrestore(&bucket->lock, flags);
	return length;
}
