// SPDX-License-Identifier: GPL-2.0-only
/*
 * Superblock and records of dm-setcache (README.md has the format).
 *
 * Order is all that matters here. A record that says dirty must not be on the
 * SSD before the data it stands for are, and a volatile cache inside the SSD
 * may write in any order. So a commit makes a batch of record blocks from what
 * is true in memory at that moment, flushes, writes them, and flushes again.
 * What becomes true between the making and the flush has marked its block
 * anew, and is in the next commit.
 *
 * A block that has to be written has a bit in @changed. A commit moves it to
 * @writing and takes it off there when the block is stable. Neither means that
 * the SSD says what memory does.
 *
 * A block of records that cannot be written in its place goes into the place of
 * data that are not needed, and the superblock says where. So one bad place
 * costs a slot, and nobody's data. What the place said before is still true: no
 * commit has ended since.
 *
 * The superblock has three copies. Two are written in turn, and the newer one
 * counts. One that cannot be written is passed over: the next number goes to the
 * other one. The third, at the end of the SSD, is written seldom, and carries what
 * nothing else could tell: whose cache it is, and where its records are. Two of the
 * three have to say so, and two have to be read: so one that cannot be read, now
 * or then, hides nothing that a commit has promised. What it may hide is the
 * attempt of a commit that has failed. Nobody must find that later, and believe it
 * to be the newest: numbers go on far beyond it, and all copies are written anew.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/crc32c.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "setcache-bio.h"
#include "setcache-metadata.h"

#define SC_MAGIC	"isoblk setcache"
#define SC_VERSION	2

/* Of the superblock; those but the last are written in turn. */
#define SC_TURNS	2
#define SC_COPIES	3

/* Copies that say where the records are, and of those that are to be read. */
#define SC_QUORUM	2

/*
 * Numbers of superblocks go on so much further where one could not be read: more
 * than are ever tried in vain. Even, so each copy has its own ones still.
 */
#define SC_SEQ_GAP	BIT_ULL(32)

/* Above the block in a record. */
#define SC_STATE_SHIFT	60
#define SC_BLOCK_MASK	GENMASK_ULL(SC_STATE_SHIFT - 1, 0)

/* Longest reason why an SSD was refused, with two identities. */
#define SC_MAX_REASON	384

/*
 * Places that are tried for a block of records. If so many are bad, as good as
 * all are, and the SSD is.
 */
#define SC_MOVE_TRIES	16

#define SC_MD_WRITE	(REQ_OP_WRITE | REQ_SYNC | REQ_META)

/* Few writes are made stable by FUA each, more by one flush behind them. */
#define SC_MAX_FUA	2

enum sc_super_state {
	SC_SUPER_IN_USE,
	SC_SUPER_CLEAN,
};

/* Where a block of records is instead, in blocks of 4096 bytes of the SSD. */
struct sc_disk_move {
	__le32 block;
	__le32 place;
} __packed;

/* A superblock. Sums are over a whole block, whose rest is zeros. */
struct sc_disk_super {
	u8 magic[16];
	__le32 version;
	__le32 csum;
	__le64 seq;
	u8 uuid[16];
	__le32 block;
	__le32 assoc;
	__le64 sets;
	__le64 origin;
	__le64 ssd;
	__le64 data;
	__le32 state;
	__le32 stamp;
	__le64 commits;
	__le64 dirty;
	u8 identity[SC_IDENTITY_SIZE];
	u8 boot[16];
	__le64 diskseq;
	__le64 sectors;
	__le32 nr_moved;
	struct sc_disk_move moved[SC_MAX_MOVED];
	u8 zero[SC_RECORD_BLOCK - 276 - SC_MAX_MOVED * 8];
} __packed;

/* The record of a slot. */
struct sc_record {
	__le64 where;
	__le32 seq;
	__le32 csum;
} __packed;

static_assert(sizeof(struct sc_disk_super) == SC_RECORD_BLOCK);
static_assert(sizeof(struct sc_record) == SC_RECORD_SIZE);

/* A block of records that has been moved. */
struct sc_move {
	u32 block;
	u32 place;
};

/**
 * struct sc_md - the metadata of a cache
 * @bdev: the SSD; constant, as all up to @changed
 * @bs: for bios
 * @geo: geometry
 * @ops: what is asked
 * @context: for @ops
 * @blocks: blocks of records
 * @slots: records
 * @changed: a bit a block that has to be written; atomic
 * @writing: a bit a block that is being written; atomic
 * @nr_changed: bits in @changed; atomic, may be more for a moment
 * @failed: of the last commit, blocks remain in @writing; of the committer
 * @may_be_clean: the superblock says clean, or may: a write of it has failed
 * @due: what all copies of the superblock are to say, some do not, maybe
 * @seq: of the superblock; this and the rest: of whoever commits, one at a time
 * @commits: commits so far
 * @uuid: of this cache
 * @seed: checksum of @uuid
 * @identity: of the origin
 * @moved: where blocks of records are instead, in their order
 * @nr_moved: how many
 * @pages: a batch of blocks
 * @index: their numbers
 * @homeless: a bit each, those that no place could be found for
 * @states: of a block's records
 * @where: of a block's records
 * @reason: why the SSD was refused
 */
struct sc_md {
	struct block_device *bdev;
	struct bio_set *bs;
	struct sc_geometry geo;
	const struct sc_md_ops *ops;
	void *context;
	u64 blocks;
	u64 slots;
	unsigned long *changed;
	unsigned long *writing;
	atomic_long_t nr_changed;
	bool failed;
	bool may_be_clean;
	bool due;
	u64 seq;
	u64 commits;
	uuid_t uuid;
	u32 seed;
	char identity[SC_IDENTITY_SIZE];
	struct sc_move moved[SC_MAX_MOVED];
	u32 nr_moved;
	struct page *pages[SC_BATCH];
	u64 index[SC_BATCH];
	DECLARE_BITMAP(homeless, SC_BATCH);
	u8 states[SC_RECORDS];
	u64 where[SC_RECORDS];
	char reason[SC_MAX_REASON];
};

/* The sector of a copy of the superblock. */
static sector_t sc_super_sector(const struct sc_geometry *geo, u32 copy)
{
	if (copy < SC_TURNS)
		return copy * SC_BLOCK_SECTORS;
	return round_down(geo->ssd, SC_BLOCK_SECTORS) - SC_BLOCK_SECTORS;
}

int sc_geometry_fit(struct sc_geometry *geo)
{
	u64 set = (u64)geo->assoc * geo->block;
	u64 slots, records, missing, end;

	if (geo->ssd <= SC_RECORD_START + SC_BLOCK_SECTORS)
		return -ENOSPC;
	end = sc_super_sector(geo, SC_TURNS);
	geo->sets = div64_u64(end - SC_RECORD_START, set);
	while (geo->sets) {
		slots = geo->sets * geo->assoc;
		records = DIV_ROUND_UP_ULL(slots, SC_RECORDS);
		geo->data = SC_RECORD_START + records * SC_BLOCK_SECTORS;
		geo->data = round_up(geo->data, SC_DATA_ALIGN);
		if (geo->data + geo->sets * set <= end)
			return 0;
		/* A set less makes room for less than twice a set, aligned. */
		missing = geo->data + geo->sets * set - end;
		missing = DIV64_U64_ROUND_UP(missing, 2 * (set + SC_DATA_ALIGN));
		geo->sets -= min(geo->sets, missing);
	}
	return -ENOSPC;
}

void sc_record_encode(struct sc_record *record, u32 seed, u64 slot,
		      enum sc_record_state state, u64 block, u32 seq)
{
	__le64 number = cpu_to_le64(slot);
	u32 sum;

	record->where = cpu_to_le64((block & SC_BLOCK_MASK) |
				    (u64)state << SC_STATE_SHIFT);
	record->seq = cpu_to_le32(seq);
	sum = crc32c(seed, &number, sizeof(number));
	sum = crc32c(sum, record, offsetof(struct sc_record, csum));
	record->csum = cpu_to_le32(sum);
}

bool sc_record_decode(const struct sc_record *record, u32 seed, u64 slot,
		      enum sc_record_state *state, u64 *block)
{
	__le64 number = cpu_to_le64(slot);
	u64 where = le64_to_cpu(record->where);
	u32 sum;

	sum = crc32c(seed, &number, sizeof(number));
	sum = crc32c(sum, record, offsetof(struct sc_record, csum));
	*state = where >> SC_STATE_SHIFT;
	*block = where & SC_BLOCK_MASK;
	return le32_to_cpu(record->csum) == sum && *state < SC_NR_RECORD_STATES;
}

static u32 sc_super_sum(const struct sc_disk_super *disk)
{
	static const __le32 zero;
	const u8 *rest = (const u8 *)disk +
			 offsetofend(struct sc_disk_super, csum);
	u32 sum;

	sum = crc32c(~0, disk, offsetof(struct sc_disk_super, csum));
	sum = crc32c(sum, &zero, sizeof(zero));
	return crc32c(sum, rest,
		      sizeof(*disk) - offsetofend(struct sc_disk_super, csum));
}

/*---------------------------------------------------------------------------*/

/* Read or write pages from @first on, that lie together on the SSD. */
static void sc_md_submit(struct sc_md *md, blk_opf_t opf, sector_t sector,
			 u32 first, u32 count, struct sc_flight *flight)
{
	struct bio *bio = bio_alloc_bioset(md->bdev, count, opf, GFP_NOIO,
					   md->bs);

	bio->bi_iter.bi_sector = sector;
	while (count--)
		__bio_add_page(bio, md->pages[first++], SC_RECORD_BLOCK, 0);
	sc_flight_send(flight, bio);
}

static int sc_md_flush(struct sc_md *md)
{
	struct sc_flight flight;

	sc_flight_init(&flight);
	sc_flight_flush(&flight, md->bdev, md->bs);
	return blk_status_to_errno(sc_flight_wait(&flight));
}

/* The first moved block that is not before this one. */
static u32 sc_move_at(const struct sc_md *md, u64 block)
{
	u32 low = 0, high = md->nr_moved;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (md->moved[middle].block < block)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Where a block of records is. */
static sector_t sc_record_sector(const struct sc_md *md, u64 block)
{
	u32 at = sc_move_at(md, block);

	if (at < md->nr_moved && md->moved[at].block == block)
		return (u64)md->moved[at].place * SC_BLOCK_SECTORS;
	return SC_RECORD_START + block * SC_BLOCK_SECTORS;
}

/* Records that a block has; the last one may have fewer. */
static u32 sc_records_of(struct sc_md *md, u64 block)
{
	return min_t(u64, SC_RECORDS, md->slots - block * SC_RECORDS);
}

/* Make a block of records from what is true now. */
static void sc_md_make(struct sc_md *md, u64 block, struct page *page,
		       bool stop)
{
	struct sc_record *records = page_address(page);
	u32 i, count = sc_records_of(md, block);
	u64 slot = block * SC_RECORDS;

	md->ops->say(md->context, slot, count, stop, md->states, md->where);
	for (i = 0; i < count; i++)
		sc_record_encode(&records[i], md->seed, slot + i,
				 md->states[i], md->where[i], md->commits);
	memset(records + count, 0, (SC_RECORDS - count) * SC_RECORD_SIZE);
}

/* The end of a run of pages from @first on, whose blocks lie together. */
static u32 sc_md_run(const struct sc_md *md, u32 first, u32 count)
{
	u32 next = first + 1;

	while (next < count && sc_record_sector(md, md->index[next]) ==
	       sc_record_sector(md, md->index[next - 1]) + SC_BLOCK_SECTORS)
		next++;
	return next;
}

/* Read or write the first pages, which are blocks @index. */
static int sc_md_batch(struct sc_md *md, blk_opf_t opf, u32 count)
{
	struct sc_flight flight;
	u32 first, next;

	sc_flight_init(&flight);
	for (first = 0; first < count; first = next) {
		next = sc_md_run(md, first, count);
		sc_md_submit(md, opf, sc_record_sector(md, md->index[first]),
			     first, next - first, &flight);
	}
	return blk_status_to_errno(sc_flight_wait(&flight));
}

/* Read or write a page. */
static int sc_md_page(struct sc_md *md, blk_opf_t opf, sector_t sector, u32 i)
{
	struct sc_flight flight;

	sc_flight_init(&flight);
	sc_md_submit(md, opf, sector, i, 1, &flight);
	return blk_status_to_errno(sc_flight_wait(&flight));
}

/* Return how many slots a place of a block of records takes. */
static u32 sc_place_slots(const struct sc_md *md)
{
	return max_t(u32, 1, SC_BLOCK_SECTORS / md->geo.block);
}

/* The first slot that a place of a block of records takes, and how many. */
static u64 sc_place_slot(const struct sc_md *md, u32 place, u32 *count)
{
	u64 sector = (u64)place * SC_BLOCK_SECTORS - md->geo.data;

	*count = sc_place_slots(md);
	return div_u64(sector, md->geo.block);
}

/* Remember where a block of records is. False: no room for more. */
static bool sc_md_set_moved(struct sc_md *md, u64 block, u64 place)
{
	u32 at = sc_move_at(md, block);

	if (at == md->nr_moved || md->moved[at].block != block) {
		if (md->nr_moved == SC_MAX_MOVED)
			return false;
		memmove(&md->moved[at + 1], &md->moved[at],
			(md->nr_moved - at) * sizeof(md->moved[0]));
		md->nr_moved++;
	}
	md->moved[at].block = block;
	md->moved[at].place = place;
	md->due = true;
	return true;
}

/* Write page @i, a block of records, to another place. */
static int sc_md_move(struct sc_md *md, u32 i)
{
	u32 tries, count = sc_place_slots(md);
	u64 slot, place;
	int r;

	for (tries = 0; tries < SC_MOVE_TRIES; tries++) {
		if (!md->ops->spare(md->context, count, &slot))
			return -ENOSPC;
		place = div_u64(md->geo.data + slot * md->geo.block,
				SC_BLOCK_SECTORS);
		if (place > U32_MAX)
			return -EIO;
		r = sc_md_page(md, SC_MD_WRITE | REQ_FUA,
			       place * SC_BLOCK_SECTORS, i);
		if (!r)
			return sc_md_set_moved(md, md->index[i], place) ?
			       0 : -EIO;
		if (r == -ENODEV)
			return r;
	}
	return r;
}

/*
 * Write the first pages, which are blocks @index. Some of them have failed
 * together: each by itself, and those that fail again to other places. Where
 * there is none the others are written all the same.
 */
static int sc_md_write_each(struct sc_md *md, u32 count)
{
	int r, result = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		r = sc_md_page(md, SC_MD_WRITE,
			       sc_record_sector(md, md->index[i]), i);
		if (r && r != -ENODEV)
			r = sc_md_move(md, i);
		if (r && r != -ENOSPC)
			return r;
		if (r) {
			__set_bit(i, md->homeless);
			result = r;
		}
	}
	return result;
}

static int sc_md_write_everywhere(struct sc_md *md);

/*
 * Write the first pages, which are blocks @index, durably if @stable. After
 * -ENOSPC that holds for all but those that are homeless.
 */
static int sc_md_write(struct sc_md *md, u32 count, bool stable)
{
	blk_opf_t opf = SC_MD_WRITE;
	u32 first, runs = 0;
	int r, each = 0;

	bitmap_zero(md->homeless, SC_BATCH);
	for (first = 0; first < count; first = sc_md_run(md, first, count))
		runs++;
	if (runs <= SC_MAX_FUA && stable)
		opf |= REQ_FUA;
	r = sc_md_batch(md, opf, count);
	if (r && r != -ENODEV) {
		opf &= ~REQ_FUA;
		each = sc_md_write_each(md, count);
		r = each == -ENOSPC ? 0 : each;
	}
	if (!r && stable && !(opf & REQ_FUA))
		r = sc_md_flush(md);
	if (!r && md->due)
		r = sc_md_write_everywhere(md);
	return r ? r : each;
}

int sc_md_commit(struct sc_md *md, bool flush, u64 *written)
{
	unsigned long block = 0;
	int r, result = 0;
	u32 i, count;

	*written = 0;
	/* What the last one could not write. */
	if (md->failed) {
		for_each_set_bit_from(block, md->writing, md->blocks) {
			clear_bit(block, md->writing);
			if (!test_and_set_bit(block, md->changed))
				atomic_long_inc(&md->nr_changed);
		}
		md->failed = false;
		block = 0;
	}
	if (!sc_md_pending(md))
		return flush ? sc_md_flush(md) : 0;

	md->commits++;
	for (;;) {
		count = 0;
		for_each_set_bit_from(block, md->changed, md->blocks) {
			if (count == SC_BATCH)
				break;
			/* Never in neither. */
			set_bit(block, md->writing);
			smp_mb__after_atomic(); /* with sc_md_stable() */
			clear_bit(block, md->changed);
			atomic_long_dec(&md->nr_changed);
			sc_md_make(md, block, md->pages[count], false);
			md->index[count++] = block;
		}
		if (!count)
			return result;
		r = sc_md_flush(md);
		if (!r)
			r = sc_md_write(md, count, true);
		if (r) {
			md->failed = true;
			result = r;
		}
		if (r && r != -ENOSPC)
			return r;
		for (i = 0; i < count; i++) {
			if (r && test_bit(i, md->homeless))
				continue;
			clear_bit(md->index[i], md->writing);
			(*written)++;
		}
	}
}

bool sc_md_changed(struct sc_md *md, u64 slot)
{
	u64 block = slot / SC_RECORDS;

	if (test_bit(block, md->changed) ||
	    test_and_set_bit(block, md->changed))
		return false;
	atomic_long_inc(&md->nr_changed);
	return true;
}

bool sc_md_stable(struct sc_md *md, u64 slot)
{
	u64 block = slot / SC_RECORDS;

	if (test_bit(block, md->changed))
		return false;
	smp_rmb(); /* changed is cleared after writing is set */
	return !test_bit(block, md->writing);
}

bool sc_md_pending(struct sc_md *md)
{
	return md->failed || atomic_long_read(&md->nr_changed) > 0;
}

/*---------------------------------------------------------------------------*/

/* Make a superblock in the first page. */
static void sc_super_make(struct sc_md *md, enum sc_super_state state,
			  const struct sc_seen *seen, u64 dirty)
{
	struct sc_disk_super *disk = page_address(md->pages[0]);
	u32 i;

	memset(disk, 0, sizeof(*disk));
	memcpy(disk->magic, SC_MAGIC, sizeof(disk->magic));
	disk->version = cpu_to_le32(SC_VERSION);
	disk->seq = cpu_to_le64(md->seq);
	export_uuid(disk->uuid, &md->uuid);
	disk->block = cpu_to_le32(md->geo.block);
	disk->assoc = cpu_to_le32(md->geo.assoc);
	disk->sets = cpu_to_le64(md->geo.sets);
	disk->origin = cpu_to_le64(md->geo.origin);
	disk->ssd = cpu_to_le64(md->geo.ssd);
	disk->data = cpu_to_le64(md->geo.data);
	disk->state = cpu_to_le32(state);
	disk->commits = cpu_to_le64(md->commits);
	disk->dirty = cpu_to_le64(dirty);
	memcpy(disk->identity, md->identity, sizeof(disk->identity));
	if (seen) {
		disk->stamp = cpu_to_le32(seen->stamp);
		export_uuid(disk->boot, &seen->boot);
		disk->diskseq = cpu_to_le64(seen->diskseq);
		disk->sectors = cpu_to_le64(seen->sectors);
	}
	disk->nr_moved = cpu_to_le32(md->nr_moved);
	for (i = 0; i < md->nr_moved; i++) {
		disk->moved[i].block = cpu_to_le32(md->moved[i].block);
		disk->moved[i].place = cpu_to_le32(md->moved[i].place);
	}
	disk->csum = cpu_to_le32(sc_super_sum(disk));
}

/* Write the first page to a copy of the superblock, durably. */
static int sc_super_write(struct sc_md *md, u32 copy)
{
	return sc_md_page(md, SC_MD_WRITE | REQ_PREFLUSH | REQ_FUA,
			  sc_super_sector(&md->geo, copy), 0);
}

/*
 * Write the superblock, durably, in the copy whose turn it is. If that cannot be
 * written, in the other one: numbers go on, for nobody knows what a write that
 * has failed has left.
 */
static int sc_md_write_super(struct sc_md *md, enum sc_super_state state,
			     const struct sc_seen *seen, u64 dirty)
{
	u32 turn;
	int r;

	if (state == SC_SUPER_CLEAN)
		md->may_be_clean = true;
	for (turn = 0; turn < SC_TURNS; turn++) {
		md->seq++;
		sc_super_make(md, state, seen, dirty);
		r = sc_super_write(md, md->seq % SC_TURNS);
		if (!r) {
			md->may_be_clean = state == SC_SUPER_CLEAN;
			return 0;
		}
		if (r == -ENODEV)
			break;
	}
	return r;
}

/* Write all copies of the superblock, in use. */
static int sc_md_write_everywhere(struct sc_md *md)
{
	u32 copy, good = 0;
	int r, error = 0;

	for (copy = 0; copy < SC_COPIES; copy++) {
		if (copy < SC_TURNS)
			md->seq++;
		sc_super_make(md, SC_SUPER_IN_USE, NULL, 0);
		r = sc_super_write(md, copy < SC_TURNS ? md->seq % SC_TURNS :
						       copy);
		if (r == -ENODEV)
			return r;
		if (r)
			error = r;
		else
			good++;
	}
	if (good < SC_QUORUM)
		return error;
	md->due = false;
	md->may_be_clean = false;
	return 0;
}

/* No record has to be written. Nobody changes the cache. */
static void sc_md_written(struct sc_md *md)
{
	bitmap_zero(md->changed, md->blocks);
	bitmap_zero(md->writing, md->blocks);
	atomic_long_set(&md->nr_changed, 0);
	md->failed = false;
}

/* Write every record. The last flush is up to the superblock's. */
static int sc_md_write_all(struct sc_md *md, bool stop)
{
	u64 block = 0;
	u32 count;
	int r;

	while (block < md->blocks) {
		for (count = 0; count < SC_BATCH && block < md->blocks; count++) {
			md->index[count] = block;
			sc_md_make(md, block++, md->pages[count], stop);
		}
		r = sc_md_write(md, count, false);
		if (r)
			return r;
		cond_resched();
	}
	return 0;
}

/* Whether page @copy is that copy of a superblock, whatever it says. */
static bool sc_super_valid(const struct sc_md *md, u32 copy)
{
	const struct sc_disk_super *disk = page_address(md->pages[copy]);

	return !memcmp(disk->magic, SC_MAGIC, sizeof(disk->magic)) &&
	       le32_to_cpu(disk->csum) == sc_super_sum(disk) &&
	       (copy >= SC_TURNS || le64_to_cpu(disk->seq) % SC_TURNS == copy);
}

static void sc_md_set_uuid(struct sc_md *md)
{
	u8 raw[UUID_SIZE];

	export_uuid(raw, &md->uuid);
	md->seed = crc32c(~0, raw, sizeof(raw));
}

static int sc_md_format(struct sc_md *md, const char *identity,
			struct sc_super *super, const char **error)
{
	int r;

	uuid_gen(&md->uuid);
	sc_md_set_uuid(md);
	strscpy_pad(md->identity, identity);
	md->seq = 0;
	md->commits = 0;
	md->nr_moved = 0;
	md->due = false;
	*error = "cannot format the SSD";
	r = sc_md_write_all(md, false);
	if (!r)
		r = sc_md_write_everywhere(md);
	memset(super, 0, sizeof(*super));
	super->clean = true;
	super->fresh = true;
	return r;
}

/* Whether the superblock is of this cache; else why not. */
static bool sc_md_fits(struct sc_md *md, const struct sc_disk_super *disk,
		       const char **error)
{
	*error = NULL;
	if (le32_to_cpu(disk->version) == 1)
		*error = "a cache of format 1, that no release had: wipe the SSD if it may go";
	else if (le32_to_cpu(disk->version) != SC_VERSION)
		*error = "superblock of a version that is not known";
	else if (le32_to_cpu(disk->block) != md->geo.block)
		*error = "the cache was made with another block size";
	else if (le32_to_cpu(disk->assoc) != md->geo.assoc)
		*error = "the cache was made with another associativity";
	else if (le64_to_cpu(disk->origin) != md->geo.origin)
		*error = "the origin has changed its size: it, or the cache, is another one";
	else if (le64_to_cpu(disk->ssd) != md->geo.ssd ||
		 le64_to_cpu(disk->sets) != md->geo.sets ||
		 le64_to_cpu(disk->data) != md->geo.data)
		*error = "the SSD has changed its size";
	return !*error;
}

/* Whether two superblocks are of the same cache. */
static bool sc_super_same(const struct sc_disk_super *a,
			  const struct sc_disk_super *b)
{
	return a->version == b->version &&
	       !memcmp(a->uuid, b->uuid, sizeof(a->uuid)) &&
	       a->block == b->block && a->assoc == b->assoc &&
	       a->sets == b->sets && a->origin == b->origin &&
	       a->ssd == b->ssd && a->data == b->data;
}

/*
 * Read the copies into the first pages, each by itself: @hidden says how many
 * could not be. Those are left as something that is no superblock.
 */
static int sc_md_read_supers(struct sc_md *md, u32 *hidden)
{
	int r, error = 0;
	u32 i;

	*hidden = 0;
	for (i = 0; i < SC_COPIES; i++) {
		r = sc_md_page(md, REQ_OP_READ, sc_super_sector(&md->geo, i),
			       i);
		if (!r)
			continue;
		error = r;
		++*hidden;
		memset(page_address(md->pages[i]), 0xff, SC_RECORD_BLOCK);
	}
	return SC_COPIES - *hidden < SC_QUORUM ? error : 0;
}

/* The copy that counts, of those in the first pages; -1 if there is none. */
static int sc_super_choose(const struct sc_md *md, bool *both)
{
	bool valid[SC_TURNS];
	u64 seq[SC_TURNS];
	u32 i;

	for (i = 0; i < SC_TURNS; i++) {
		const struct sc_disk_super *disk = page_address(md->pages[i]);

		valid[i] = sc_super_valid(md, i);
		seq[i] = le64_to_cpu(disk->seq);
	}
	*both = valid[0] && valid[1];
	if (*both)
		return seq[1] > seq[0];
	if (valid[0] || valid[1])
		return valid[1];
	return sc_super_valid(md, SC_TURNS) ? SC_TURNS : -1;
}

/* Whether all places of moved records are in the data, each once. */
static bool sc_moved_valid(const struct sc_md *md,
			   const struct sc_disk_super *disk)
{
	u32 i, j, nr = le32_to_cpu(disk->nr_moved);
	u64 start = md->geo.data / SC_BLOCK_SECTORS;
	u64 end = div_u64(md->geo.data + md->slots * md->geo.block,
			  SC_BLOCK_SECTORS);

	if (nr > SC_MAX_MOVED)
		return false;
	for (i = 0; i < nr; i++) {
		u32 block = le32_to_cpu(disk->moved[i].block);
		u32 place = le32_to_cpu(disk->moved[i].place);

		if (block >= md->blocks || place < start || place >= end ||
		    (i && block <= le32_to_cpu(disk->moved[i - 1].block)))
			return false;
		for (j = 0; j < i; j++)
			if (disk->moved[j].place == disk->moved[i].place)
				return false;
	}
	return true;
}

/* Whether all copies in the first pages say of the records what this one does. */
static bool sc_moved_everywhere(const struct sc_md *md,
				const struct sc_disk_super *newest)
{
	const struct sc_disk_super *disk;
	u32 i;

	for (i = 0; i < SC_COPIES; i++) {
		disk = page_address(md->pages[i]);
		if (!sc_super_valid(md, i) ||
		    disk->nr_moved != newest->nr_moved ||
		    memcmp(disk->moved, newest->moved, sizeof(disk->moved)))
			return false;
	}
	return true;
}

/* Take over what is to be kept of the copy that counts, and of the newest one. */
static void sc_super_load(struct sc_md *md, const struct sc_disk_super *disk,
			  const struct sc_disk_super *newest, bool hidden)
{
	u32 i;

	/* What was tried in vain may be there all the same. */
	md->seq = max(md->seq, le64_to_cpu(newest->seq));
	if (hidden)
		md->seq += SC_SEQ_GAP;
	md->commits = max(le64_to_cpu(disk->commits),
			  le64_to_cpu(newest->commits));
	import_uuid(&md->uuid, disk->uuid);
	sc_md_set_uuid(md);
	memcpy(md->identity, newest->identity, sizeof(md->identity));
	md->identity[SC_IDENTITY_SIZE - 1] = 0;
	md->nr_moved = le32_to_cpu(newest->nr_moved);
	for (i = 0; i < md->nr_moved; i++) {
		md->moved[i].block = le32_to_cpu(newest->moved[i].block);
		md->moved[i].place = le32_to_cpu(newest->moved[i].place);
	}
	md->due = !sc_moved_everywhere(md, newest);
}

/* Whether the copies in the first pages are of one cache; the newest of them. */
static const struct sc_disk_super *
sc_super_newest(struct sc_md *md, const struct sc_disk_super *chosen)
{
	const struct sc_disk_super *newest = chosen, *disk;
	u32 i;

	for (i = 0; i < SC_COPIES; i++) {
		disk = page_address(md->pages[i]);
		if (!sc_super_valid(md, i))
			continue;
		if (!sc_super_same(disk, chosen))
			return NULL;
		if (le64_to_cpu(disk->seq) > le64_to_cpu(newest->seq))
			newest = disk;
	}
	return newest;
}

/* The copies in the first pages are all zeros. */
static bool sc_md_is_empty(const struct sc_md *md)
{
	u32 i;

	for (i = 0; i < SC_COPIES; i++)
		if (memchr_inv(page_address(md->pages[i]), 0, SC_RECORD_BLOCK))
			return false;
	return true;
}

/* Whether the superblock names this origin, or none; else why not. */
static bool sc_md_is_of(struct sc_md *md, const struct sc_disk_super *disk,
			const char *identity, const char **error)
{
	char named[SC_IDENTITY_SIZE];

	memcpy(named, disk->identity, sizeof(named));
	named[SC_IDENTITY_SIZE - 1] = 0;
	if (!named[0] || !strcmp(named, identity))
		return true;
	snprintf(md->reason, sizeof(md->reason),
		 "the SSD is the cache of another origin, %s, not of %s", named,
		 identity[0] ? identity : "one without an identity");
	*error = md->reason;
	return false;
}

int sc_md_open(struct sc_md *md, bool format, const char *identity,
	       struct sc_super *super, const char **error)
{
	const struct sc_disk_super *disk, *newest;
	uuid_t uuid;
	u32 hidden;
	bool both;
	int r;

	*error = "cannot read two copies of the superblock";
	r = sc_md_read_supers(md, &hidden);
	if (r)
		return r;
	if (sc_md_is_empty(md)) {
		if (format)
			return sc_md_format(md, identity, super, error);
		*error = "the SSD is empty, but there were dirty blocks";
		return -EINVAL;
	}
	r = sc_super_choose(md, &both);
	if (r < 0) {
		*error = "no superblock, or all are damaged: run isoblk cache check";
		return -EINVAL;
	}
	disk = page_address(md->pages[r]);
	if (!sc_md_fits(md, disk, error))
		return -EINVAL;
	newest = sc_super_newest(md, disk);
	*error = "the copies of the superblock do not fit each other: run isoblk cache check";
	if (!newest || !sc_moved_valid(md, newest))
		return -EINVAL;
	if (!sc_md_is_of(md, newest, identity, error))
		return -EINVAL;
	import_uuid(&uuid, disk->uuid);
	*error = "the SSD holds another cache";
	if (md->seq && !uuid_equal(&uuid, &md->uuid))
		return -EINVAL;

	/* A copy that cannot be read may have been newer, and said in use. */
	super->clean = le32_to_cpu(disk->state) == SC_SUPER_CLEAN && both;
	super->seen.stamp = le32_to_cpu(disk->stamp);
	import_uuid(&super->seen.boot, disk->boot);
	super->seen.diskseq = le64_to_cpu(disk->diskseq);
	super->seen.sectors = le64_to_cpu(disk->sectors);
	super->dirty = le64_to_cpu(disk->dirty);
	super->fresh = false;
	sc_super_load(md, disk, newest, hidden);
	if (strcmp(md->identity, identity)) {
		strscpy_pad(md->identity, identity);
		md->due = true;
	}
	return 0;
}

/* Why the records are refused; valid as long as @md. */
static const char *sc_md_refuse(struct sc_md *md, u64 slot, const char *what)
{
	snprintf(md->reason, sizeof(md->reason),
		 "the record of slot %llu %s: run isoblk cache check", slot,
		 what);
	return md->reason;
}

/* Pass on the records of a block. The highest commit seen is remembered. */
static int sc_md_load_block(struct sc_md *md, u64 block, struct page *page,
			    bool keep, const char **error)
{
	const struct sc_record *records = page_address(page);
	u32 i, count = sc_records_of(md, block);

	for (i = 0; i < count; i++) {
		u64 slot = block * SC_RECORDS + i;
		enum sc_record_state state;
		u64 where;
		int r;

		if (!sc_record_decode(&records[i], md->seed, slot, &state,
				      &where)) {
			*error = sc_md_refuse(md, slot, "is damaged");
			return -EILSEQ;
		}
		md->commits = max_t(u64, md->commits,
				    le32_to_cpu(records[i].seq));
		if (state == SC_RECORD_FREE)
			continue;
		r = md->ops->load(md->context, slot, state, where, keep);
		if (r) {
			*error = sc_md_refuse(md, slot, "does not fit the others");
			return r;
		}
	}
	return 0;
}

/* Pass on slots where blocks of records are. */
static int sc_md_load_moved(struct sc_md *md)
{
	u32 i, count;
	u64 slot;
	int r;

	for (i = 0; i < md->nr_moved; i++) {
		slot = sc_place_slot(md, md->moved[i].place, &count);
		while (count--) {
			r = md->ops->load(md->context, slot++,
					  SC_RECORD_RETIRED, 0, false);
			if (r)
				return r;
		}
	}
	return 0;
}

int sc_md_load(struct sc_md *md, bool keep, const char **error)
{
	u64 block = 0;
	u32 i, count;
	int r;

	*error = "blocks of records have been moved beyond the data";
	r = sc_md_load_moved(md);
	if (r)
		return r;
	while (block < md->blocks) {
		count = min_t(u64, SC_BATCH, md->blocks - block);
		for (i = 0; i < count; i++)
			md->index[i] = block + i;
		*error = "cannot read the records: run isoblk cache check";
		r = sc_md_batch(md, REQ_OP_READ, count);
		for (i = 0; i < count && !r; i++)
			r = sc_md_load_block(md, block++, md->pages[i], keep,
					     error);
		if (r)
			return r;
		cond_resched();
	}
	sc_md_written(md);
	return 0;
}

const uuid_t *sc_md_uuid(const struct sc_md *md)
{
	return &md->uuid;
}

bool sc_md_may_be_clean(struct sc_md *md)
{
	return md->may_be_clean;
}

int sc_md_start(struct sc_md *md)
{
	if (md->due)
		return sc_md_write_everywhere(md);
	return sc_md_write_super(md, SC_SUPER_IN_USE, NULL, 0);
}

int sc_md_ask(struct sc_md *md)
{
	return sc_md_write_super(md, SC_SUPER_IN_USE, NULL, 0);
}

int sc_md_stop(struct sc_md *md, const struct sc_seen *seen, u64 dirty,
	       u64 *pending)
{
	int r;

	*pending = atomic_long_read(&md->nr_changed);
	md->commits++;
	/* Data first, as in every commit. */
	r = sc_md_flush(md);
	if (r)
		return r;
	/* A block that has to be moved retires slots, whose records are written by then. */
	do {
		sc_md_written(md);
		r = sc_md_write_all(md, true);
	} while (!r && sc_md_pending(md));
	if (r)
		return r;
	return sc_md_write_super(md, SC_SUPER_CLEAN, seen, dirty);
}

struct sc_md *sc_md_create(struct block_device *bdev, struct bio_set *bs,
			   const struct sc_geometry *geo,
			   const struct sc_md_ops *ops, void *context)
{
	struct sc_md *md = kvzalloc(sizeof(*md), GFP_KERNEL);
	u32 i;

	if (!md)
		return ERR_PTR(-ENOMEM);
	md->bdev = bdev;
	md->bs = bs;
	md->geo = *geo;
	md->ops = ops;
	md->context = context;
	md->slots = geo->sets * geo->assoc;
	md->blocks = DIV_ROUND_UP_ULL(md->slots, SC_RECORDS);
	md->changed = vzalloc(BITS_TO_LONGS(md->blocks) * sizeof(long));
	md->writing = vzalloc(BITS_TO_LONGS(md->blocks) * sizeof(long));
	if (!md->changed || !md->writing)
		goto bad;
	for (i = 0; i < SC_BATCH; i++) {
		md->pages[i] = alloc_page(GFP_KERNEL);
		if (!md->pages[i])
			goto bad;
	}
	return md;
bad:
	sc_md_destroy(md);
	return ERR_PTR(-ENOMEM);
}

void sc_md_destroy(struct sc_md *md)
{
	u32 i;

	for (i = 0; i < SC_BATCH; i++)
		if (md->pages[i])
			__free_page(md->pages[i]);
	vfree(md->writing);
	vfree(md->changed);
	kvfree(md);
}
