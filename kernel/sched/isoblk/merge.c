// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios that are merged into a waiting request. All other bios go to the gate.
 */
#include "isoblk/fq.h"
#include "isoblk/insert.h"
#include "isoblk/isoblk.h"
#include "share/gate.h"
#include "share/policy.h"

/*
 * After MERGE_TRIES failed merges in a row a group counts as random: a merge is tried for only one
 * in MERGE_ONE_IN of its bios.
 */
#define MERGE_TRIES		64
#define MERGE_ONE_IN		8

/*
 * When groups compete, do not merge one down below this many requests: with a single large request
 * in flight it has nothing queued.
 */
#define MERGE_MIN_RQS		4

/* A group alone, or one whose requests fill the window or half of the device's tags. */
static bool iso_has_enough(const struct iso_disk *d, const struct iso_group *g)
{
	u64 has = atomic64_read(&g->has);
	u64 nr = iso_waits(has) + iso_in_flight(has);

	if (READ_ONCE(d->members.nr) < 2)
		return true;
	return nr >= MERGE_MIN_RQS &&
		(2 * nr >= d->tags ||
		 nr * READ_ONCE(d->device.mean_cost) >= READ_ONCE(d->window.size));
}

/* When groups compete no merged request costs more than groups may be apart. */
bool iso_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio)
{
	struct iso_disk *d = q_to_iso(q);
	u64 sectors = blk_rq_sectors(rq) + bio_sectors(bio);

	if (READ_ONCE(d->members.nr) < 2)
		return true;
	return sectors <= (u64)READ_ONCE(d->tunables.merge_kb) << 1 &&
		cost_of(&d->cost, isoblk_rq_op(rq), sectors, true) <=
			READ_ONCE(d->clock.slack);
}

/* Whether to look for a request that the next bio could be merged with. */
static bool iso_may_find_merge(struct iso_gq *gq)
{
	unsigned int vain = READ_ONCE(gq->merged_none);

	WRITE_ONCE(gq->merged_none, vain + 1);
	return vain < MERGE_TRIES || !(vain % MERGE_ONE_IN);
}

static bool iso_merge(struct iso_gq *gq, struct bio *bio, unsigned int nr_segs)
{
	/* The kernel merges none of another priority. */
	struct list_head *fifo = &gq->fifo[isoblk_class(bio->bi_ioprio)];
	bool merged = blk_bio_list_merge(gq->hq->disk->disk.q, fifo, bio, nr_segs);

	if (merged)
		WRITE_ONCE(gq->merged_none, 0);
	return merged;
}

bool iso_bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs)
{
	struct iso_hq *hq = hctx_to_hq(isoblk_map_queue(q, bio->bi_opf));
	struct isoblk_gq *waited = isoblk_gate_recognize(q, bio);
	struct iso_group *g = isoblk_group_own(isoblk_bio_group(bio));
	struct iso_gq *gq = iso_gq(g, hq->index);
	bool merged = false;

	if (READ_ONCE(gq->nr) && iso_has_enough(hq->disk, g) && iso_may_find_merge(gq) &&
	    iso_hq_trylock(hq)) {
		if (gq->nr)
			merged = iso_merge(gq, bio, nr_segs);
		if (merged && waited)
			isoblk_gate_end_transit(waited);
		if (iso_hq_unlock(hq))
			blk_mq_run_hw_queue(hq->hctx, true);
	}
	return merged || (!waited && !isoblk_gate_admit_or_hold(gq->common, bio));
}
