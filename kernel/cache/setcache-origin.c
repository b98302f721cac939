// SPDX-License-Identifier: GPL-2.0-only
/*
 * The origin of dm-setcache: its identity, and whether its contents have
 * changed since the cache was stopped.
 *
 * Identity. Dirty blocks belong to one disk, and would ruin another disk of the
 * same size. So the superblock names the disk by a property that no copy of the
 * disk has: its world-wide id, and for a partition its first sector. A
 * PARTUUID, and the UUIDs of LVM, LUKS and md, are stored on the disk, so a
 * copy has them, too. Where the kernel has no world-wide id, as for a loop
 * device or a device of device-mapper, the table line has to give a word.
 *
 * Change. Clean blocks are valid as long as only the cache writes to the disk.
 * While this module stays loaded, the disk's statistics decide: its number
 * (diskseq) is the same, and no further sector was written or discarded. They
 * cover the whole disk, so writes outside of a partition count, too. Across
 * loads of the module, and where statistics are off, this is unknown. A
 * checksum of a sample detects most changes of a whole disk, such as a new file
 * system or a restored image, but not a changed file: it can prove a change,
 * never the absence of changes, unless the user asserts that nothing else
 * writes there (option trust).
 *
 * Writes that do not pass the disk's queue are not seen: writes of other
 * machines, writes to the file of a loop device or to the disks below a mapped
 * device, and passthrough commands (SG_IO).
 */
#include <linux/blkdev.h>
#include <linux/crc32c.h>
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/part_stat.h>
#include <linux/string.h>
#include <linux/uuid.h>

#include "setcache.h"
#include "setcache-origin.h"

/*
 * The sample of the origin, in blocks of 4096 bytes: its beginning and its end,
 * where partition tables and volume managers store their metadata; the blocks
 * from 1 MiB on, where most first partitions and their file systems begin; and
 * some blocks between, so that a restored image is seen. A hard disk reads it
 * in less than half a second.
 */
#define SC_STAMP_RUN_BLOCKS	16
#define SC_STAMP_PARTITION_BLOCK	256
#define SC_STAMP_SPREAD_BLOCKS	16
#define SC_STAMP_PAGES	(3 * SC_STAMP_RUN_BLOCKS + SC_STAMP_SPREAD_BLOCKS)

/* Bytes of the longest world-wide id. */
#define SC_WWID_BYTES	16

static char sc_error_no_identity[] =
	"the kernel has no identity of the origin, and dirty blocks need one: option origin_id";

/* A random id of this load of the module; constant. */
static uuid_t sc_boot_id;

/* Return whether a disk is a device of device-mapper. */
static bool sc_origin_is_mapped(struct gendisk *disk)
{
	struct mapped_device *md = dm_get_md(disk_devt(disk));

	if (!md)
		return false;
	dm_put(md);
	return true;
}

/* Find the world-wide id of a disk, if it has one. */
static void sc_origin_disk_identity(struct gendisk *disk, char *identity)
{
	static const struct {
		enum blk_unique_id type;
		const char *name;
	} kinds[] = {
		{ BLK_UID_EUI64, "eui" },
		{ BLK_UID_NAA, "naa" },
	};
	u8 id[SC_WWID_BYTES];
	u32 i;
	int n;

	/* A device of device-mapper would give the id of a disk below it. */
	if (sc_origin_is_mapped(disk) || !disk->fops->get_unique_id)
		return;
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		n = disk->fops->get_unique_id(disk, id, kinds[i].type);
		if (n <= 0 || n > SC_WWID_BYTES || !memchr_inv(id, 0, n))
			continue;
		snprintf(identity, SC_IDENTITY_BYTES, "wwid:%s.%*phN",
			 kinds[i].name, n, id);
		return;
	}
}

/* Set the identity of the origin, or "" if it has none. */
void sc_origin_get_identity(const struct setcache *sc, char *identity)
{
	struct block_device *bdev = sc->origin->bdev;
	size_t used;

	identity[0] = 0;
	if (sc->known.origin_id[0]) {
		snprintf(identity, SC_IDENTITY_BYTES, "id:%s",
			 sc->known.origin_id);
		return;
	}
	sc_origin_disk_identity(bdev->bd_disk, identity);
	used = strlen(identity);
	if (used && bdev_is_partition(bdev))
		snprintf(identity + used, SC_IDENTITY_BYTES - used,
			 "/start:%llu", (u64)get_start_sect(bdev));
}

/* Return an error if a mode needs an identity and the origin has none; or NULL. */
char *sc_origin_check_identity(const struct setcache *sc, u8 mode)
{
	if (sc->known.identity[0] || !sc_mode_dirties(mode))
		return NULL;
	return sc_error_no_identity;
}

/*---------------------------------------------------------------------------*/

/*
 * Return the origin's block at position @i of the sample. It does not exist if
 * it is beyond the origin's end.
 */
static u64 sc_stamp_block(u64 blocks, u32 i)
{
	u32 at = i % SC_STAMP_RUN_BLOCKS;

	switch (i / SC_STAMP_RUN_BLOCKS) {
	case 0:
		return at;
	case 1:
		return SC_STAMP_PARTITION_BLOCK + at;
	case 2:
		/* On a smaller origin this wraps around, beyond its end. */
		return blocks - SC_STAMP_RUN_BLOCKS + at;
	default:
		i -= 3 * SC_STAMP_RUN_BLOCKS;
		return div_u64(blocks * (i + 1), SC_STAMP_SPREAD_BLOCKS + 1);
	}
}

/*
 * Read the sample, all blocks in parallel: a suspended device waits for it.
 * Pages beyond the end of the origin stay zeros.
 */
static int sc_stamp_read(struct setcache *sc, struct page **pages)
{
	u64 at, blocks = sc->index.geo.origin_sectors / SC_RECORD_BLOCK_SECTORS;
	struct bio *bio = NULL, *next;
	struct blk_plug plug;
	int r = 0;
	u32 i;

	blk_start_plug(&plug);
	for (i = 0; i < SC_STAMP_PAGES; i++) {
		at = sc_stamp_block(blocks, i);
		if (at >= blocks)
			continue;
		next = bio_alloc_bioset(sc->origin->bdev, 1, REQ_OP_READ,
					GFP_NOIO, &sc->bs);
		next->bi_iter.bi_sector = at * SC_RECORD_BLOCK_SECTORS;
		__bio_add_page(next, pages[i], SC_RECORD_BLOCK_BYTES, 0);
		/* The last bio ends after all others. */
		if (bio) {
			bio_chain(bio, next);
			submit_bio(bio);
		}
		bio = next;
	}
	if (bio) {
		r = submit_bio_wait(bio);
		bio_put(bio);
	}
	blk_finish_plug(&plug);
	return r;
}

/* Compute the checksum of the origin's sample. */
static int sc_origin_compute_stamp(struct setcache *sc, u32 *stamp)
{
	struct page *pages[SC_STAMP_PAGES];
	int r;
	u32 i;

	/* A failed allocation would make the stop fail: do not fail. */
	for (i = 0; i < SC_STAMP_PAGES; i++)
		pages[i] = alloc_page(GFP_NOIO | __GFP_NOFAIL | __GFP_ZERO);
	r = sc_stamp_read(sc, pages);
	*stamp = ~0;
	for (i = 0; i < SC_STAMP_PAGES; i++) {
		*stamp = crc32c(*stamp, page_address(pages[i]),
				SC_RECORD_BLOCK_BYTES);
		__free_page(pages[i]);
	}
	return r;
}

/*
 * Read how much has been written to the origin's disk, if its statistics are on.
 */
static void sc_origin_read_stats(const struct setcache *sc,
				 struct sc_origin_state *state)
{
	struct block_device *disk = bdev_whole(sc->origin->bdev);

	state->boot_id = uuid_null;
	if (!blk_queue_io_stat(bdev_get_queue(disk)))
		return;
	state->boot_id = sc_boot_id;
	state->diskseq = disk->bd_disk->diskseq;
	state->written_sectors = part_stat_read(disk, sectors[STAT_WRITE]);
	state->written_sectors += part_stat_read(disk, sectors[STAT_DISCARD]);
}

/*
 * Record the state of the origin's contents. The statistics are read before the
 * sample, so that a write during the sample is detected next time.
 */
int sc_origin_get_state(struct setcache *sc, struct sc_origin_state *state)
{
	/* The page cache may still hold dirty pages of the device. */
	sync_blockdev(sc->origin->bdev);
	sync_blockdev(bdev_whole(sc->origin->bdev));
	sc_origin_read_stats(sc, state);
	return sc_origin_compute_stamp(sc, &state->stamp);
}

/* Compare two recorded states of the origin. */
enum sc_change sc_origin_compare(const struct setcache *sc,
				 const struct sc_origin_state *was,
				 const struct sc_origin_state *is)
{
	if (was->stamp != is->stamp)
		return SC_ORIGIN_CHANGED;
	if (uuid_is_null(&was->boot_id) ||
	    !uuid_equal(&was->boot_id, &is->boot_id) ||
	    was->diskseq != is->diskseq)
		return SC_ORIGIN_UNKNOWN;
	if (was->written_sectors == is->written_sectors)
		return SC_ORIGIN_SAME;
	/* The write may have been outside of the partition. */
	return bdev_is_partition(sc->origin->bdev) ? SC_ORIGIN_UNKNOWN :
						     SC_ORIGIN_CHANGED;
}

/*
 * Return whether the origin has certainly been written to since. Only the
 * statistics of its disk decide: no sample is read.
 */
bool sc_origin_is_written(const struct setcache *sc,
			  const struct sc_origin_state *was)
{
	struct sc_origin_state is = { .stamp = was->stamp };

	sync_blockdev(sc->origin->bdev);
	sc_origin_read_stats(sc, &is);
	return sc_origin_compare(sc, was, &is) == SC_ORIGIN_CHANGED;
}

void sc_origin_init(void)
{
	uuid_gen(&sc_boot_id);
}
