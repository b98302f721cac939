/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios of dm-setcache's own pages, and synchronous bios. All functions may
 * sleep.
 */
#ifndef SETCACHE_BIO_H
#define SETCACHE_BIO_H

#include <linux/atomic.h>
#include <linux/blk_types.h>
#include <linux/completion.h>
#include <linux/types.h>

struct bio_set;
struct page;

/* A range of pages to be read or written; used by its owner only. */
struct sc_span {
	struct block_device *bdev;	/* the device */
	blk_opf_t opf;			/* operation and flags */
	sector_t sector;		/* sector of @at on the device */
	struct page **pages;		/* the pages */
	u64 at;				/* offset of the next byte in the pages */
	u64 stop;			/* offset behind the last byte */
};

/* A flight: bios that one thread waits for, together. */
struct sc_flight {
	atomic_t pending;	/* bios, plus 1 until the thread waits */
	blk_status_t status;	/* error of a failed bio; WRITE_ONCE() */
	struct completion done;	/* completes when all bios have ended */
};

struct bio *sc_span_next_bio(struct bio_set *bs, struct sc_span *span);

void sc_flight_init(struct sc_flight *flight);
void sc_flight_send(struct sc_flight *flight, struct bio *bio);
void sc_flight_flush(struct sc_flight *flight, struct block_device *bdev,
		     struct bio_set *bs);
blk_status_t sc_flight_wait(struct sc_flight *flight);

#endif /* SETCACHE_BIO_H */
