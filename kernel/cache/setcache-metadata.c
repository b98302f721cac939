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
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
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

#include "setcache-metadata.h"

#define SC_MAGIC	"isoblk setcache"
#define SC_VERSION	1

/* Above the block in a record. */
#define SC_STATE_SHIFT	60
#define SC_BLOCK_MASK	GENMASK_ULL(SC_STATE_SHIFT - 1, 0)

/* Longest reason why records were refused. */
#define SC_MAX_REASON	96

/* Few writes are made stable by FUA each, more by one flush behind them. */
#define SC_MAX_FUA	2

enum sc_super_state {
	SC_SUPER_IN_USE,
	SC_SUPER_CLEAN,
};

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
	u8 zero[SC_RECORD_BLOCK - 112];
} __packed;

/* The record of a slot. */
struct sc_record {
	__le64 where;
	__le32 seq;
	__le32 csum;
} __packed;

static_assert(sizeof(struct sc_disk_super) == SC_RECORD_BLOCK);
static_assert(sizeof(struct sc_record) == SC_RECORD_SIZE);

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
 * @seq: of the superblock; this and the rest: of whoever commits, one at a time
 * @commits: commits so far
 * @uuid: of this cache
 * @seed: checksum of @uuid
 * @pages: a batch of blocks
 * @index: their numbers
 * @states: of a block's records
 * @where: of a block's records
 * @reason: why the records were refused
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
	u64 seq;
	u64 commits;
	uuid_t uuid;
	u32 seed;
	struct page *pages[SC_BATCH];
	u64 index[SC_BATCH];
	u8 states[SC_RECORDS];
	u64 where[SC_RECORDS];
	char reason[SC_MAX_REASON];
};

/* Bios in flight that somebody waits for. */
struct sc_wait_io {
	atomic_t pending;
	int error;
	struct completion done;
};

int sc_geometry_fit(struct sc_geometry *geo)
{
	u64 set = (u64)geo->assoc * geo->block;
	u64 slots, records, missing;

	if (geo->ssd <= SC_RECORD_START)
		return -ENOSPC;
	geo->sets = div64_u64(geo->ssd - SC_RECORD_START, set);
	while (geo->sets) {
		slots = geo->sets * geo->assoc;
		records = DIV_ROUND_UP_ULL(slots, SC_RECORDS);
		geo->data = SC_RECORD_START + records * SC_BLOCK_SECTORS;
		geo->data = round_up(geo->data, SC_DATA_ALIGN);
		if (geo->data + geo->sets * set <= geo->ssd)
			return 0;
		/* A set less makes room for less than twice a set, aligned. */
		missing = geo->data + geo->sets * set - geo->ssd;
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

static void sc_wait_put(struct sc_wait_io *wait)
{
	if (atomic_dec_and_test(&wait->pending))
		complete(&wait->done);
}

static void sc_wait_endio(struct bio *bio)
{
	struct sc_wait_io *wait = bio->bi_private;

	if (bio->bi_status)
		WRITE_ONCE(wait->error, blk_status_to_errno(bio->bi_status));
	bio_put(bio);
	sc_wait_put(wait);
}

/* Read or write pages from @first on, that lie together on the SSD. */
static void sc_md_submit(struct sc_md *md, blk_opf_t opf, sector_t sector,
			 u32 first, u32 count, struct sc_wait_io *wait)
{
	struct bio *bio = bio_alloc_bioset(md->bdev, count, opf, GFP_NOIO,
					   md->bs);

	bio->bi_iter.bi_sector = sector;
	bio->bi_private = wait;
	bio->bi_end_io = sc_wait_endio;
	while (count--)
		__bio_add_page(bio, md->pages[first++], SC_RECORD_BLOCK, 0);
	atomic_inc(&wait->pending);
	submit_bio(bio);
}

static void sc_wait_init(struct sc_wait_io *wait)
{
	atomic_set(&wait->pending, 1);
	wait->error = 0;
	init_completion(&wait->done);
}

static int sc_wait_for(struct sc_wait_io *wait)
{
	sc_wait_put(wait);
	wait_for_completion_io(&wait->done);
	return wait->error;
}

static int sc_md_io(struct sc_md *md, blk_opf_t opf, sector_t sector, u32 count)
{
	struct sc_wait_io wait;

	sc_wait_init(&wait);
	sc_md_submit(md, opf, sector, 0, count, &wait);
	return sc_wait_for(&wait);
}

static int sc_md_flush(struct sc_md *md)
{
	struct sc_wait_io wait;
	struct bio *bio;

	sc_wait_init(&wait);
	bio = bio_alloc_bioset(md->bdev, 0, REQ_OP_WRITE | REQ_PREFLUSH,
			       GFP_NOIO, md->bs);
	bio->bi_private = &wait;
	bio->bi_end_io = sc_wait_endio;
	atomic_inc(&wait.pending);
	submit_bio(bio);
	return sc_wait_for(&wait);
}

static sector_t sc_record_sector(u64 block)
{
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

/* Write the first pages, which are blocks @index, neighbours together. */
static int sc_md_write(struct sc_md *md, u32 count)
{
	struct sc_wait_io wait;
	u32 first, next, runs = 0;
	blk_opf_t opf = REQ_OP_WRITE | REQ_SYNC | REQ_META;
	int r;

	for (next = 0; next < count; next++)
		runs += !next || md->index[next] != md->index[next - 1] + 1;
	if (runs <= SC_MAX_FUA)
		opf |= REQ_FUA;

	sc_wait_init(&wait);
	for (first = 0; first < count; first = next) {
		for (next = first + 1; next < count; next++)
			if (md->index[next] != md->index[next - 1] + 1)
				break;
		sc_md_submit(md, opf, sc_record_sector(md->index[first]),
			     first, next - first, &wait);
	}
	r = sc_wait_for(&wait);
	if (!r && !(opf & REQ_FUA))
		r = sc_md_flush(md);
	return r;
}

int sc_md_commit(struct sc_md *md, bool flush, u64 *written)
{
	unsigned long block = 0;
	u32 i, count;
	int r;

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
			return 0;
		r = sc_md_flush(md);
		if (!r)
			r = sc_md_write(md, count);
		if (r) {
			md->failed = true;
			return r;
		}
		*written += count;
		for (i = 0; i < count; i++)
			clear_bit(md->index[i], md->writing);
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

/* Write the superblock, in the other copy, durably. */
static int sc_md_write_super(struct sc_md *md, enum sc_super_state state,
			     u32 stamp, u64 dirty)
{
	struct sc_disk_super *disk = page_address(md->pages[0]);
	int r;

	memset(disk, 0, sizeof(*disk));
	memcpy(disk->magic, SC_MAGIC, sizeof(disk->magic));
	disk->version = cpu_to_le32(SC_VERSION);
	disk->seq = cpu_to_le64(md->seq + 1);
	export_uuid(disk->uuid, &md->uuid);
	disk->block = cpu_to_le32(md->geo.block);
	disk->assoc = cpu_to_le32(md->geo.assoc);
	disk->sets = cpu_to_le64(md->geo.sets);
	disk->origin = cpu_to_le64(md->geo.origin);
	disk->ssd = cpu_to_le64(md->geo.ssd);
	disk->data = cpu_to_le64(md->geo.data);
	disk->state = cpu_to_le32(state);
	disk->stamp = cpu_to_le32(stamp);
	disk->commits = cpu_to_le64(md->commits);
	disk->dirty = cpu_to_le64(dirty);
	disk->csum = cpu_to_le32(sc_super_sum(disk));

	if (state == SC_SUPER_CLEAN)
		md->may_be_clean = true;
	r = sc_md_io(md, REQ_OP_WRITE | REQ_SYNC | REQ_META | REQ_PREFLUSH |
		     REQ_FUA, ((md->seq + 1) & 1) * SC_BLOCK_SECTORS, 1);
	if (r)
		return r;
	md->seq++;
	md->may_be_clean = state == SC_SUPER_CLEAN;
	return 0;
}

/* Write every record. The last flush is up to the superblock's. */
static int sc_md_write_all(struct sc_md *md, bool stop)
{
	u64 block = 0;
	u32 count;
	int r;

	while (block < md->blocks) {
		for (count = 0; count < SC_BATCH && block < md->blocks; count++)
			sc_md_make(md, block++, md->pages[count], stop);
		r = sc_md_io(md, REQ_OP_WRITE | REQ_SYNC | REQ_META,
			     sc_record_sector(block - count), count);
		if (r)
			return r;
		cond_resched();
	}
	return 0;
}

static bool sc_super_valid(const struct sc_disk_super *disk)
{
	return !memcmp(disk->magic, SC_MAGIC, sizeof(disk->magic)) &&
	       le32_to_cpu(disk->csum) == sc_super_sum(disk);
}

static void sc_md_set_uuid(struct sc_md *md)
{
	u8 raw[UUID_SIZE];

	export_uuid(raw, &md->uuid);
	md->seed = crc32c(~0, raw, sizeof(raw));
}

static int sc_md_format(struct sc_md *md, struct sc_super *super,
			const char **error)
{
	int r;

	uuid_gen(&md->uuid);
	sc_md_set_uuid(md);
	md->seq = 1;
	md->commits = 0;
	*error = "cannot format the SSD";
	r = sc_md_write_all(md, false);
	if (r)
		return r;
	/* Both copies: what is lost of one is then found. */
	r = sc_md_write_super(md, SC_SUPER_CLEAN, 0, 0);
	if (!r)
		r = sc_md_write_super(md, SC_SUPER_CLEAN, 0, 0);
	super->clean = true;
	super->fresh = true;
	super->stamp = 0;
	super->dirty = 0;
	return r;
}

/* Whether the superblock is of this cache; else why not. */
static bool sc_md_fits(struct sc_md *md, const struct sc_disk_super *disk,
		       const char **error)
{
	*error = NULL;
	if (le32_to_cpu(disk->version) != SC_VERSION)
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

/*
 * Read the copies into the first two pages, each by itself: the other one will
 * do. One that cannot be read is left as something that is no superblock.
 */
static int sc_md_read_supers(struct sc_md *md)
{
	int r[2];
	u32 i;

	for (i = 0; i < 2; i++) {
		struct sc_wait_io wait;

		sc_wait_init(&wait);
		sc_md_submit(md, REQ_OP_READ, i * SC_BLOCK_SECTORS, i, 1,
			     &wait);
		r[i] = sc_wait_for(&wait);
		if (r[i])
			memset(page_address(md->pages[i]), 0xff,
			       SC_RECORD_BLOCK);
	}
	return r[0] && r[1] ? r[0] : 0;
}

int sc_md_open(struct sc_md *md, bool format, struct sc_super *super,
	       const char **error)
{
	const struct sc_disk_super *disk, *other;
	uuid_t uuid;
	bool both;
	int r;

	*error = "cannot read the superblock";
	r = sc_md_read_supers(md);
	if (r)
		return r;
	disk = page_address(md->pages[0]);
	other = page_address(md->pages[1]);
	if (!memchr_inv(disk, 0, SC_RECORD_BLOCK) &&
	    !memchr_inv(other, 0, SC_RECORD_BLOCK)) {
		if (format)
			return sc_md_format(md, super, error);
		*error = "the SSD is empty, but there were dirty blocks";
		return -EINVAL;
	}

	both = sc_super_valid(disk) && sc_super_valid(other);
	if (!sc_super_valid(disk) ||
	    (sc_super_valid(other) &&
	     le64_to_cpu(other->seq) > le64_to_cpu(disk->seq)))
		disk = other;
	if (!sc_super_valid(disk)) {
		*error = "no superblock, or both are damaged: run isoblk cache check";
		return -EINVAL;
	}
	if (!sc_md_fits(md, disk, error))
		return -EINVAL;
	import_uuid(&uuid, disk->uuid);
	if (md->seq && !uuid_equal(&uuid, &md->uuid)) {
		*error = "the SSD holds another cache";
		return -EINVAL;
	}

	md->seq = le64_to_cpu(disk->seq);
	md->commits = le64_to_cpu(disk->commits);
	md->uuid = uuid;
	sc_md_set_uuid(md);
	/* A copy that cannot be read may have been newer, and said in use. */
	super->clean = le32_to_cpu(disk->state) == SC_SUPER_CLEAN && both;
	super->stamp = le32_to_cpu(disk->stamp);
	super->dirty = le64_to_cpu(disk->dirty);
	super->fresh = false;
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
			    const char **error)
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
		r = md->ops->load(md->context, slot, state, where);
		if (r) {
			*error = sc_md_refuse(md, slot, "does not fit the others");
			return r;
		}
	}
	return 0;
}

int sc_md_load(struct sc_md *md, const char **error)
{
	u64 block = 0;
	u32 i, count;
	int r;

	while (block < md->blocks) {
		count = min_t(u64, SC_BATCH, md->blocks - block);
		*error = "cannot read the records: run isoblk cache check";
		r = sc_md_io(md, REQ_OP_READ, sc_record_sector(block), count);
		for (i = 0; i < count && !r; i++)
			r = sc_md_load_block(md, block++, md->pages[i], error);
		if (r)
			return r;
		cond_resched();
	}
	bitmap_zero(md->changed, md->blocks);
	bitmap_zero(md->writing, md->blocks);
	atomic_long_set(&md->nr_changed, 0);
	md->failed = false;
	return 0;
}

bool sc_md_may_be_clean(struct sc_md *md)
{
	return md->may_be_clean;
}

int sc_md_start(struct sc_md *md)
{
	return sc_md_write_super(md, SC_SUPER_IN_USE, 0, 0);
}

int sc_md_stop(struct sc_md *md, u32 stamp, u64 dirty, u64 *pending)
{
	int r;

	*pending = atomic_long_read(&md->nr_changed);
	md->commits++;
	/* Data first, as in every commit. */
	r = sc_md_flush(md);
	if (!r)
		r = sc_md_write_all(md, true);
	if (r)
		return r;
	bitmap_zero(md->changed, md->blocks);
	bitmap_zero(md->writing, md->blocks);
	atomic_long_set(&md->nr_changed, 0);
	md->failed = false;
	return sc_md_write_super(md, SC_SUPER_CLEAN, stamp, dirty);
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
