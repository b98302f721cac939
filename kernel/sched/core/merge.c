// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios that become part of a request that waits, and all others on their way to the gate.
 */
#include <linux/module.h>

#include "core/arrive.h"
#include "core/choose.h"
#include "core/elevator.h"
#include "core/group.h"
#include "share/gate.h"
#include "share/policy.h"

/*
 * A group of whose bios so many in a row could not be merged sends what lies here and
 * there: the search is made for one in so many of the next.
 */
#define MERGE_TRIES		64
#define MERGE_ONE_IN		8

/*
 * A device that is busy with so few requests at once gains by larger ones. Any other
 * serves many side by side: no request takes more than this part of the window.
 */
#define FEW_REQUESTS		8

bool isoblk_allow_merge(struct request_queue *q, struct request *rq,
			struct bio *bio)
{
	struct iso_disk *d = q_to_iso(q);
	u64 most = (u64)READ_ONCE(d->tunables.merge_kb) << 1;
	u64 size = READ_ONCE(d->size.free) / READ_ONCE(d->tariff.unit);

	if (READ_ONCE(d->device.busy_with) > FEW_REQUESTS * ISO_BUSY_ONE)
		most = min(most, size / FEW_REQUESTS);
	return READ_ONCE(d->members.nr) < 2 ||
		blk_rq_sectors(rq) + bio_sectors(bio) <= most;
}
EXPORT_SYMBOL_GPL(isoblk_allow_merge);

/* Whether to look for a request that the next bio could be merged with. */
static bool worth_a_look(struct iso_gq *gq)
{
	unsigned int vain = READ_ONCE(gq->merged_none);

	WRITE_ONCE(gq->merged_none, vain + 1);
	return vain < MERGE_TRIES || !(vain % MERGE_ONE_IN);
}

static bool merge(const struct iso_disk *d, struct iso_gq *gq, struct bio *bio,
		  unsigned int nr_segs)
{
	bool merged = blk_bio_list_merge(d->disk.q, &gq->fifo, bio, nr_segs);

	if (merged)
		WRITE_ONCE(gq->merged_none, 0);
	return merged;
}

bool isoblk_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs)
{
	struct iso_hq *hq = hctx_to_hq(isoblk_map_queue(q, bio->bi_opf));
	struct isoblk_gq *waited = isoblk_gate_arrive(q, bio);
	struct iso_group *g = isoblk_group_own(isoblk_bio_group(bio));
	struct iso_gq *gq = iso_gq(g, hq->index);
	bool merged = false;

	if (READ_ONCE(gq->nr) && (READ_ONCE(hq->disk->members.nr) < 2 ||
				  iso_has_enough(hq->disk, g)) &&
	    worth_a_look(gq) && iso_hq_trylock(hq)) {
		if (gq->nr)
			merged = merge(hq->disk, gq, bio, nr_segs);
		if (merged && waited)
			isoblk_gate_through(waited);
		if (iso_hq_unlock(hq))
			blk_mq_run_hw_queue(hq->hctx, true);
	}
	return merged || (!waited && !isoblk_gate_pass(gq->common, bio));
}
EXPORT_SYMBOL_GPL(isoblk_bio_merge);
