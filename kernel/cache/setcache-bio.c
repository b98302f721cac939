// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios of dm-setcache's own pages, and synchronous bios.
 */
#include <linux/bio.h>
#include <linux/minmax.h>

#include "setcache-bio.h"

/*
 * Allocate a bio for the next bytes of a span, as many as fit. Return NULL at
 * the end of the span.
 */
struct bio *sc_span_next_bio(struct bio_set *bs, struct sc_span *span)
{
	u64 bytes = span->stop - span->at, room;
	u32 piece, vecs;
	struct bio *bio;

	if (!bytes)
		return NULL;
	room = DIV_ROUND_UP_ULL(offset_in_page(span->at) + bytes, PAGE_SIZE);
	vecs = min_t(u64, room, BIO_MAX_VECS);
	bio = bio_alloc_bioset(span->bdev, vecs, span->opf, GFP_NOIO, bs);
	bio->bi_iter.bi_sector = span->sector;
	for (; vecs--; span->at += piece) {
		piece = min_t(u64, PAGE_SIZE - offset_in_page(span->at),
			      span->stop - span->at);
		__bio_add_page(bio, span->pages[span->at >> PAGE_SHIFT], piece,
			       offset_in_page(span->at));
	}
	span->sector += bio_sectors(bio);
	return bio;
}

/*---------------------------------------------------------------------------*/

void sc_flight_init(struct sc_flight *flight)
{
	atomic_set(&flight->pending, 1);
	flight->status = BLK_STS_OK;
	init_completion(&flight->done);
}

static void sc_flight_put(struct sc_flight *flight)
{
	if (atomic_dec_and_test(&flight->pending))
		complete(&flight->done);
}

static void sc_flight_endio(struct bio *bio)
{
	struct sc_flight *flight = bio->bi_private;

	if (bio->bi_status)
		WRITE_ONCE(flight->status, bio->bi_status);
	bio_put(bio);
	sc_flight_put(flight);
}

/* Submit a bio of a flight. */
void sc_flight_send(struct sc_flight *flight, struct bio *bio)
{
	bio->bi_private = flight;
	bio->bi_end_io = sc_flight_endio;
	atomic_inc(&flight->pending);
	submit_bio(bio);
}

/* Submit a flush of a device as a bio of a flight. */
void sc_flight_flush(struct sc_flight *flight, struct block_device *bdev,
		     struct bio_set *bs)
{
	sc_flight_send(flight, bio_alloc_bioset(bdev, 0, REQ_OP_WRITE |
						REQ_PREFLUSH, GFP_NOIO, bs));
}

/* Wait for all bios of a flight. Return the error of one that has failed, if any. */
blk_status_t sc_flight_wait(struct sc_flight *flight)
{
	sc_flight_put(flight);
	wait_for_completion_io(&flight->done);
	return flight->status;
}
