// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios of dm-setcache's own pages.
 */
#include <linux/bio.h>
#include <linux/minmax.h>

#include "setcache.h"

/**
 * sc_bio_of_pages() - a bio to or from bytes @at to @stop of some pages
 * @sc: the cache
 * @bdev: the device
 * @opf: what to do there
 * @sector: where on the device @at belongs
 * @pages: the pages
 * @at: first byte, of all of them
 * @stop: behind the last one
 *
 * Return: the bio, which is for as many of the bytes as fit one.
 */
struct bio *sc_bio_of_pages(struct setcache *sc, struct block_device *bdev,
			    blk_opf_t opf, sector_t sector,
			    struct page **pages, u64 at, u64 stop)
{
	u64 room = DIV_ROUND_UP_ULL(offset_in_page(at) + stop - at, PAGE_SIZE);
	u32 bytes, vecs = min_t(u64, room, BIO_MAX_VECS);
	struct bio *bio;

	bio = bio_alloc_bioset(bdev, vecs, opf, GFP_NOIO, &sc->bs);
	bio->bi_iter.bi_sector = sector;
	for (; vecs--; at += bytes) {
		bytes = min_t(u64, PAGE_SIZE - offset_in_page(at), stop - at);
		__bio_add_page(bio, pages[at >> PAGE_SHIFT], bytes,
			       offset_in_page(at));
	}
	return bio;
}
