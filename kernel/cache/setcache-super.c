// SPDX-License-Identifier: GPL-2.0-only
/*
 * The superblock of dm-setcache: its contents, and which of its copies counts.
 *
 * There are three copies. Copies 0 and 1 are written in turn, and the newer one
 * counts. If a copy cannot be written, the next number goes to the other copy.
 * Copy 2, at the end of the SSD, is written seldom, and has the contents that
 * cannot be recovered from elsewhere: the origin's identity, and the location
 * of the records. Two of the three copies have to be written with a change of
 * these, and two have to be read: so an unreadable copy, at either time, hides
 * no change that a commit has acknowledged. It may hide the write of a commit
 * that has failed. That write must never count as the newest later: numbers
 * continue far beyond it, and all copies are written again.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "setcache-md.h"

/* Copies that have to be written, and that have to be read. */
#define SC_QUORUM	2

/*
 * Gap in the numbers after a copy could not be read: larger than any number of
 * failed writes. It is even, so each copy keeps its own numbers.
 */
#define SC_SEQ_GAP	BIT_ULL(32)

/* Return a page of the batch as a superblock. */
static struct sc_disk_super *sc_super_page(const struct sc_md *md, u32 i)
{
	return page_address(md->batch.pages[i]);
}

/* Return the checksum of a superblock, computed with a zero checksum. */
static u32 sc_super_checksum(const struct sc_disk_super *disk)
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

/* Encode a superblock in the first page. */
static void sc_super_encode(struct sc_md *md, enum sc_super_state state,
			    const struct sc_origin_state *origin, u64 dirty)
{
	struct sc_disk_super *disk = sc_super_page(md, 0);
	u32 i;

	memset(disk, 0, sizeof(*disk));
	memcpy(disk->magic, SC_MAGIC, sizeof(disk->magic));
	disk->version = cpu_to_le32(SC_VERSION);
	disk->seq = cpu_to_le64(md->super.seq);
	export_uuid(disk->uuid, &md->super.uuid);
	disk->block = cpu_to_le32(md->geo.block_sectors);
	disk->assoc = cpu_to_le32(md->geo.assoc);
	disk->sets = cpu_to_le64(md->geo.nr_sets);
	disk->origin = cpu_to_le64(md->geo.origin_sectors);
	disk->ssd = cpu_to_le64(md->geo.ssd_sectors);
	disk->data = cpu_to_le64(md->geo.data_sector);
	disk->state = cpu_to_le32(state);
	disk->commits = cpu_to_le64(md->super.commits);
	disk->dirty = cpu_to_le64(dirty);
	memcpy(disk->identity, md->super.identity, sizeof(disk->identity));
	if (origin) {
		disk->stamp = cpu_to_le32(origin->stamp);
		export_uuid(disk->boot, &origin->boot_id);
		disk->diskseq = cpu_to_le64(origin->diskseq);
		disk->sectors = cpu_to_le64(origin->written_sectors);
	}
	disk->nr_moved = cpu_to_le32(md->moved.nr);
	for (i = 0; i < md->moved.nr; i++) {
		disk->moved[i].block = cpu_to_le32(md->moved.list[i].block);
		disk->moved[i].place = cpu_to_le32(md->moved.list[i].place);
	}
	disk->csum = cpu_to_le32(sc_super_checksum(disk));
}

/* Write the first page to a copy of the superblock, durably. */
static int sc_super_write_copy(struct sc_md *md, u32 copy)
{
	return sc_md_rw_page(md, SC_MD_WRITE_OPF | REQ_PREFLUSH | REQ_FUA,
			     sc_super_sector(&md->geo, copy), 0);
}

/*
 * Write the superblock, durably, to the copy that is next in turn, or to the
 * other copy if that fails. Each attempt takes a new number, for a failed write
 * may have changed the copy.
 */
int sc_super_write(struct sc_md *md, enum sc_super_state state,
		   const struct sc_origin_state *origin, u64 dirty)
{
	u32 turn;
	int r;

	if (state == SC_SUPER_CLEAN)
		md->super.may_be_clean = true;
	for (turn = 0; turn < SC_NR_TURN_COPIES; turn++) {
		md->super.seq++;
		sc_super_encode(md, state, origin, dirty);
		r = sc_super_write_copy(md, md->super.seq % SC_NR_TURN_COPIES);
		if (!r) {
			md->super.may_be_clean = state == SC_SUPER_CLEAN;
			return 0;
		}
		if (r == -ENODEV)
			break;
	}
	return r;
}

/* Write all copies of the superblock, with the state in use. */
int sc_super_write_everywhere(struct sc_md *md)
{
	u32 i, copy, good = 0;
	int r, error = 0;

	for (i = 0; i < SC_NR_COPIES; i++) {
		if (i < SC_NR_TURN_COPIES)
			md->super.seq++;
		copy = i < SC_NR_TURN_COPIES ?
			       md->super.seq % SC_NR_TURN_COPIES :
			       i;
		sc_super_encode(md, SC_SUPER_IN_USE, NULL, 0);
		r = sc_super_write_copy(md, copy);
		if (r == -ENODEV)
			return r;
		if (r)
			error = r;
		else
			good++;
	}
	if (good < SC_QUORUM)
		return error;
	md->super.must_write = false;
	md->super.may_be_clean = false;
	return 0;
}

/* Set the seed of the records' checksums from the UUID. */
void sc_super_set_seed(struct sc_md *md)
{
	u8 raw[UUID_SIZE];

	export_uuid(raw, &md->super.uuid);
	md->super.seed = crc32c(~0, raw, sizeof(raw));
}

/*---------------------------------------------------------------------------*/

/* Return whether page @copy holds that copy of a superblock, with any contents. */
static bool sc_super_is_valid(const struct sc_md *md, u32 copy)
{
	const struct sc_disk_super *disk = sc_super_page(md, copy);

	return !memcmp(disk->magic, SC_MAGIC, sizeof(disk->magic)) &&
	       le32_to_cpu(disk->csum) == sc_super_checksum(disk) &&
	       (copy >= SC_NR_TURN_COPIES ||
		le64_to_cpu(disk->seq) % SC_NR_TURN_COPIES == copy);
}

/*
 * Read the copies into the first pages, one by one. @hidden counts unreadable
 * copies: their pages are filled so that they are not a superblock.
 */
int sc_super_read(struct sc_md *md, u32 *hidden)
{
	int r, error = 0;
	u32 i;

	*hidden = 0;
	for (i = 0; i < SC_NR_COPIES; i++) {
		r = sc_md_rw_page(md, REQ_OP_READ, sc_super_sector(&md->geo, i),
				  i);
		if (!r)
			continue;
		error = r;
		++*hidden;
		memset(sc_super_page(md, i), 0xff, SC_RECORD_BLOCK_BYTES);
	}
	return SC_NR_COPIES - *hidden < SC_QUORUM ? error : 0;
}

/* Return whether the copies in the first pages are all zeros. */
bool sc_super_is_empty(const struct sc_md *md)
{
	u32 i;

	for (i = 0; i < SC_NR_COPIES; i++)
		if (memchr_inv(sc_super_page(md, i), 0, SC_RECORD_BLOCK_BYTES))
			return false;
	return true;
}

/* Return whether the superblock fits this table and SSD; else set @error. */
static bool sc_super_is_usable(struct sc_md *md,
			       const struct sc_disk_super *disk,
			       const char **error)
{
	*error = NULL;
	if (le32_to_cpu(disk->version) == 1)
		*error = "a cache of format 1, that no release had: wipe the SSD if it may go";
	else if (le32_to_cpu(disk->version) != SC_VERSION)
		*error = "superblock of a version that is not known";
	else if (le32_to_cpu(disk->block) != md->geo.block_sectors)
		*error = "the cache was made with another block size";
	else if (le32_to_cpu(disk->assoc) != md->geo.assoc)
		*error = "the cache was made with another associativity";
	else if (le64_to_cpu(disk->origin) != md->geo.origin_sectors)
		*error = "the origin has changed its size: it, or the cache, is another one";
	else if (le64_to_cpu(disk->ssd) != md->geo.ssd_sectors ||
		 le64_to_cpu(disk->sets) != md->geo.nr_sets ||
		 le64_to_cpu(disk->data) != md->geo.data_sector)
		*error = "the SSD has changed its size";
	return !*error;
}

/* Return whether two superblocks belong to the same cache. */
static bool sc_super_is_same(const struct sc_disk_super *a,
			     const struct sc_disk_super *b)
{
	return a->version == b->version &&
	       !memcmp(a->uuid, b->uuid, sizeof(a->uuid)) &&
	       a->block == b->block && a->assoc == b->assoc &&
	       a->sets == b->sets && a->origin == b->origin &&
	       a->ssd == b->ssd && a->data == b->data;
}

/*
 * Return the index of the copy that counts, or -1 if none does. @both tells
 * whether copies 0 and 1 are valid.
 */
static int sc_super_choose_copy(const struct sc_md *md, bool *both)
{
	bool valid[SC_NR_TURN_COPIES];
	u64 seq[SC_NR_TURN_COPIES];
	u32 i;

	for (i = 0; i < SC_NR_TURN_COPIES; i++) {
		const struct sc_disk_super *disk = sc_super_page(md, i);

		valid[i] = sc_super_is_valid(md, i);
		seq[i] = le64_to_cpu(disk->seq);
	}
	*both = valid[0] && valid[1];
	if (*both)
		return seq[1] > seq[0];
	if (valid[0] || valid[1])
		return valid[1];
	return sc_super_is_valid(md, SC_NR_TURN_COPIES) ? SC_NR_TURN_COPIES :
							  -1;
}

/*
 * Return the newest copy in the first pages, or NULL if copies are of different
 * caches.
 */
static const struct sc_disk_super *
sc_super_find_newest(struct sc_md *md, const struct sc_disk_super *chosen)
{
	const struct sc_disk_super *newest = chosen, *disk;
	u32 i;

	for (i = 0; i < SC_NR_COPIES; i++) {
		disk = sc_super_page(md, i);
		if (!sc_super_is_valid(md, i))
			continue;
		if (!sc_super_is_same(disk, chosen))
			return NULL;
		if (le64_to_cpu(disk->seq) > le64_to_cpu(newest->seq))
			newest = disk;
	}
	return newest;
}

/* Return whether all places of moved records are in the data, and distinct. */
static bool sc_moved_is_valid(const struct sc_md *md,
			      const struct sc_disk_super *disk)
{
	u32 i, j, nr = le32_to_cpu(disk->nr_moved);
	u64 start = md->geo.data_sector / SC_RECORD_BLOCK_SECTORS;
	u64 end = div_u64(md->geo.data_sector +
				  md->nr_slots * md->geo.block_sectors,
			  SC_RECORD_BLOCK_SECTORS);

	if (nr > SC_MOVED_MAX)
		return false;
	for (i = 0; i < nr; i++) {
		u32 block = le32_to_cpu(disk->moved[i].block);
		u32 place = le32_to_cpu(disk->moved[i].place);

		if (block >= md->nr_blocks || place < start || place >= end ||
		    (i && block <= le32_to_cpu(disk->moved[i - 1].block)))
			return false;
		for (j = 0; j < i; j++)
			if (disk->moved[j].place == disk->moved[i].place)
				return false;
	}
	return true;
}

/*
 * Return whether all copies in the first pages are valid and list the same
 * moved blocks.
 */
static bool sc_moved_is_everywhere(const struct sc_md *md,
				   const struct sc_disk_super *newest)
{
	const struct sc_disk_super *disk;
	u32 i;

	for (i = 0; i < SC_NR_COPIES; i++) {
		disk = sc_super_page(md, i);
		if (!sc_super_is_valid(md, i) ||
		    disk->nr_moved != newest->nr_moved ||
		    memcmp(disk->moved, newest->moved, sizeof(disk->moved)))
			return false;
	}
	return true;
}

/*
 * Return whether the superblock names this origin, or none; else set @error.
 */
static bool sc_super_names_origin(struct sc_md *md,
				  const struct sc_disk_super *disk,
				  const char *identity, const char **error)
{
	char named[SC_IDENTITY_BYTES];

	memcpy(named, disk->identity, sizeof(named));
	named[SC_IDENTITY_BYTES - 1] = 0;
	if (!named[0] || !strcmp(named, identity))
		return true;
	snprintf(md->reason, sizeof(md->reason),
		 "the SSD is the cache of another origin, %s, not of %s", named,
		 identity[0] ? identity : "one without an identity");
	*error = md->reason;
	return false;
}

/*
 * Load the metadata from the copy that counts, and from the newest copy.
 */
static void sc_super_load(struct sc_md *md, const struct sc_disk_super *disk,
			  const struct sc_disk_super *newest, bool hidden)
{
	u32 i;

	/* Do not reuse a number: a failed write may have reached the SSD. */
	md->super.seq = max(md->super.seq, le64_to_cpu(newest->seq));
	if (hidden)
		md->super.seq += SC_SEQ_GAP;
	md->super.commits =
		max(le64_to_cpu(disk->commits), le64_to_cpu(newest->commits));
	import_uuid(&md->super.uuid, disk->uuid);
	sc_super_set_seed(md);
	memcpy(md->super.identity, newest->identity,
	       sizeof(md->super.identity));
	md->super.identity[SC_IDENTITY_BYTES - 1] = 0;
	md->moved.nr = le32_to_cpu(newest->nr_moved);
	for (i = 0; i < md->moved.nr; i++) {
		md->moved.list[i].block = le32_to_cpu(newest->moved[i].block);
		md->moved.list[i].place = le32_to_cpu(newest->moved[i].place);
	}
	md->super.must_write = !sc_moved_is_everywhere(md, newest);
}

/*
 * Load the superblock from the copies in the first pages, @hidden of which
 * could not be read. Return 0, or -EINVAL and set @error.
 */
int sc_super_open(struct sc_md *md, u32 hidden, const char *identity,
		  struct sc_super *super, const char **error)
{
	const struct sc_disk_super *disk, *newest;
	uuid_t uuid;
	bool both;
	int r;

	r = sc_super_choose_copy(md, &both);
	if (r < 0) {
		*error = "no superblock, or all are damaged: run isoblk cache check";
		return -EINVAL;
	}
	disk = sc_super_page(md, r);
	if (!sc_super_is_usable(md, disk, error))
		return -EINVAL;
	newest = sc_super_find_newest(md, disk);
	*error = "the copies of the superblock do not fit each other: run isoblk cache check";
	if (!newest || !sc_moved_is_valid(md, newest))
		return -EINVAL;
	if (!sc_super_names_origin(md, newest, identity, error))
		return -EINVAL;
	import_uuid(&uuid, disk->uuid);
	*error = "the SSD holds another cache";
	if (md->super.seq && !uuid_equal(&uuid, &md->super.uuid))
		return -EINVAL;

	/* An unreadable copy may be newer, and say in use. */
	super->clean = le32_to_cpu(disk->state) == SC_SUPER_CLEAN && both;
	super->origin.stamp = le32_to_cpu(disk->stamp);
	import_uuid(&super->origin.boot_id, disk->boot);
	super->origin.diskseq = le64_to_cpu(disk->diskseq);
	super->origin.written_sectors = le64_to_cpu(disk->sectors);
	super->nr_dirty = le64_to_cpu(disk->dirty);
	super->formatted = false;
	sc_super_load(md, disk, newest, hidden);
	if (strcmp(md->super.identity, identity)) {
		strscpy_pad(md->super.identity, identity);
		md->super.must_write = true;
	}
	return 0;
}
