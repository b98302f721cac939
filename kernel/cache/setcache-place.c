// SPDX-License-Identifier: GPL-2.0-only
/*
 * The location of dm-setcache's blocks of records, and I/O to
 * them.
 *
 * A block of records that cannot be written in its own place moves to the place
 * of a slot that holds no data, and the superblock records the move. So a bad
 * sector costs a slot, and no data. This part keeps the list of moves.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "setcache-bio.h"
#include "setcache-md.h"

/* Read or write pages from @first on, which are adjacent on the SSD. */
static void sc_md_submit(struct sc_md *md, blk_opf_t opf, sector_t sector,
			 u32 first, u32 count, struct sc_flight *flight)
{
	struct bio *bio = bio_alloc_bioset(md->bdev, count, opf, GFP_NOIO,
					   md->bs);

	bio->bi_iter.bi_sector = sector;
	while (count--)
		__bio_add_page(bio, md->batch.pages[first++],
			       SC_RECORD_BLOCK_BYTES, 0);
	sc_flight_send(flight, bio);
}

int sc_md_flush(struct sc_md *md)
{
	struct sc_flight flight;

	sc_flight_init(&flight);
	sc_flight_flush(&flight, md->bdev, md->bs);
	return blk_status_to_errno(sc_flight_wait(&flight));
}

/* Read or write a page. */
int sc_md_rw_page(struct sc_md *md, blk_opf_t opf, sector_t sector, u32 i)
{
	struct sc_flight flight;

	sc_flight_init(&flight);
	sc_md_submit(md, opf, sector, i, 1, &flight);
	return blk_status_to_errno(sc_flight_wait(&flight));
}

/*
 * Return the position in the list of the first move whose block is not below
 * @block.
 */
static u32 sc_md_find_move(const struct sc_md *md, u64 block)
{
	u32 low = 0, high = md->moved.nr;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (md->moved.list[middle].block < block)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Return the sector of a block of records. */
sector_t sc_place_record_sector(const struct sc_md *md, u64 block)
{
	u32 at = sc_md_find_move(md, block);

	if (at < md->moved.nr && md->moved.list[at].block == block)
		return (u64)md->moved.list[at].place * SC_RECORD_BLOCK_SECTORS;
	return SC_RECORD_START_SECTOR + block * SC_RECORD_BLOCK_SECTORS;
}

/* Return the number of slots that a moved block of records occupies. */
u32 sc_place_count_slots(const struct sc_md *md)
{
	return max_t(u32, 1, SC_RECORD_BLOCK_SECTORS / md->geo.block_sectors);
}

/* Return the first slot that a moved block of records occupies. */
u64 sc_place_first_slot(const struct sc_md *md, u32 place)
{
	u64 sector = (u64)place * SC_RECORD_BLOCK_SECTORS - md->geo.data_sector;

	return div_u64(sector, md->geo.block_sectors);
}

/*
 * Add a moved block of records to the list, or change its place. Return whether
 * the list had room.
 */
bool sc_md_set_moved(struct sc_md *md, u64 block, u64 place)
{
	u32 at = sc_md_find_move(md, block);

	if (at == md->moved.nr || md->moved.list[at].block != block) {
		if (md->moved.nr == SC_MOVED_MAX)
			return false;
		memmove(&md->moved.list[at + 1], &md->moved.list[at],
			(md->moved.nr - at) * sizeof(md->moved.list[0]));
		md->moved.nr++;
	}
	md->moved.list[at].block = block;
	md->moved.list[at].place = place;
	md->super.must_write = true;
	return true;
}

/* Return the end of the run of pages from @first on whose blocks are adjacent. */
u32 sc_md_run_end(const struct sc_md *md, u32 first, u32 count)
{
	u32 next = first + 1;

	while (next < count &&
	       sc_place_record_sector(md, md->batch.index[next]) ==
		       sc_place_record_sector(md, md->batch.index[next - 1]) +
			       SC_RECORD_BLOCK_SECTORS)
		next++;
	return next;
}

/* Read or write the first pages, which are blocks of records. */
int sc_md_rw_batch(struct sc_md *md, blk_opf_t opf, u32 count)
{
	struct sc_flight flight;
	u32 first, next;

	sc_flight_init(&flight);
	for (first = 0; first < count; first = next) {
		next = sc_md_run_end(md, first, count);
		sc_md_submit(md, opf,
			     sc_place_record_sector(md, md->batch.index[first]),
			     first, next - first, &flight);
	}
	return blk_status_to_errno(sc_flight_wait(&flight));
}
