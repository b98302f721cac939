/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios of dm-setcache's own pages, and bios that somebody waits for. All of it
 * may sleep.
 */
#ifndef SETCACHE_BIO_H
#define SETCACHE_BIO_H

#include <linux/atomic.h>
#include <linux/blk_types.h>
#include <linux/completion.h>
#include <linux/types.h>

struct bio_set;
struct page;

/* Bytes of some pages that are to be read or written; of its owner alone. */
struct sc_span {
	struct block_device *bdev;	/* where to, or from */
	blk_opf_t opf;			/* what to do there */
	sector_t sector;		/* where @at belongs on the device */
	struct page **pages;		/* the pages */
	u64 at;				/* next byte, of all of the pages */
	u64 stop;			/* byte behind the last one */
};

/* Bios under way that one thread waits for, together. */
struct sc_flight {
	atomic_t pending;	/* bios, and one while more are sent */
	blk_status_t status;	/* error of one that has failed; written once */
	struct completion done;	/* of all of them */
};

struct bio *sc_next_bio(struct bio_set *bs, struct sc_span *span);

void sc_flight_init(struct sc_flight *flight);
void sc_flight_send(struct sc_flight *flight, struct bio *bio);
void sc_flight_flush(struct sc_flight *flight, struct block_device *bdev,
		     struct bio_set *bs);
blk_status_t sc_flight_wait(struct sc_flight *flight);

#endif /* SETCACHE_BIO_H */
