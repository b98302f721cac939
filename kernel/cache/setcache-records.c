// SPDX-License-Identifier: GPL-2.0-only
/*
 * The records of dm-setcache: which records have to be written, and in what order.
 *
 * Invariant: a record says dirty on the SSD only if the data of its slot
 * are there. The SSD's volatile cache may write in any order. So a
 * commit encodes a batch of record blocks from the current state of
 * memory, flushes, writes the batch, and flushes again. A slot that
 * changes after its block was encoded marks the block again, and is in
 * the next commit.
 *
 * A block that has to be written has a bit in @changed. A commit moves the bit
 * to @writing and clears it there when the block is stable. If a block has a
 * bit in neither, the SSD equals memory.
 *
 * A block that cannot be written is moved (-place). Until the commit ends its
 * old place stays valid.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "setcache-md.h"

/*
 * Places that are tried for a block of records. If all of these are bad, nearly
 * all of the SSD is, and it cannot be used.
 */
#define SC_MOVE_TRIES_MAX	16

/* Up to this many writes a batch uses FUA; a larger batch ends with a flush. */
#define SC_FUA_WRITES_MAX	2

/* Return the number of records of a block: the last block may have fewer. */
static u32 sc_md_count_records(struct sc_md *md, u64 block)
{
	return min_t(u64, SC_RECORDS_PER_BLOCK,
		     md->nr_slots - block * SC_RECORDS_PER_BLOCK);
}

/* Encode a block of records from the current state of memory. */
static void sc_md_encode_block(struct sc_md *md, u64 block, struct page *page,
			       bool stop)
{
	struct sc_record *records = page_address(page);
	u8 *states = md->batch.states;
	u64 *where = md->batch.where;
	u32 i, count = sc_md_count_records(md, block);
	u64 slot = block * SC_RECORDS_PER_BLOCK;

	md->ops->get_slots(md->context, slot, count, stop, states, where);
	for (i = 0; i < count; i++)
		sc_record_encode(&records[i], md->super.seed, slot + i,
				 states[i], where[i], md->super.commits);
	memset(records + count, 0,
	       (SC_RECORDS_PER_BLOCK - count) * SC_RECORD_BYTES);
}

/* Write page @i, a block of records, to another place. Return 0 or an error. */
static int sc_md_move_block(struct sc_md *md, u32 i)
{
	u32 tries, count = sc_place_count_slots(md);
	u64 slot, place;
	int r;

	for (tries = 0; tries < SC_MOVE_TRIES_MAX; tries++) {
		if (!md->ops->find_spare(md->context, count, &slot))
			return -ENOSPC;
		place = div_u64(md->geo.data_sector +
					slot * md->geo.block_sectors,
				SC_RECORD_BLOCK_SECTORS);
		if (place > U32_MAX)
			return -EIO;
		r = sc_md_rw_page(md, SC_MD_WRITE_OPF | REQ_FUA,
				  place * SC_RECORD_BLOCK_SECTORS, i);
		if (!r)
			return sc_md_set_moved(md, md->batch.index[i], place) ?
			       0 : -EIO;
		if (r == -ENODEV)
			return r;
	}
	return r;
}

/*
 * Write the first pages, which are blocks of records, one by one, after a write
 * of all has failed. A block that fails again goes to another place; a block
 * without a place does not keep the following blocks from being written.
 */
static int sc_md_write_each(struct sc_md *md, u32 count)
{
	int r, result = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		r = sc_md_rw_page(md, SC_MD_WRITE_OPF,
				  sc_place_record_sector(md, md->batch.index[i]), i);
		if (r && r != -ENODEV)
			r = sc_md_move_block(md, i);
		if (r && r != -ENOSPC)
			return r;
		if (r) {
			__set_bit(i, md->batch.unplaced);
			result = r;
		}
	}
	return result;
}

/*
 * Write the first pages, which are blocks of records, durably if @stable. After
 * -ENOSPC this holds for all blocks that are not homeless.
 */
static int sc_md_write_batch(struct sc_md *md, u32 count, bool stable)
{
	blk_opf_t opf = SC_MD_WRITE_OPF;
	u32 first, runs = 0;
	int r, each = 0;

	bitmap_zero(md->batch.unplaced, SC_BATCH_BLOCKS);
	for (first = 0; first < count; first = sc_md_run_end(md, first, count))
		runs++;
	if (runs <= SC_FUA_WRITES_MAX && stable)
		opf |= REQ_FUA;
	r = sc_md_rw_batch(md, opf, count);
	if (r && r != -ENODEV) {
		opf &= ~REQ_FUA;
		each = sc_md_write_each(md, count);
		r = each == -ENOSPC ? 0 : each;
	}
	if (!r && stable && !(opf & REQ_FUA))
		r = sc_md_flush(md);
	if (!r && md->super.must_write)
		r = sc_super_write_everywhere(md);
	return r ? r : each;
}

int sc_md_commit(struct sc_md *md, bool flush, u64 *written)
{
	unsigned long block = 0;
	int r, result = 0;
	u32 i, count;

	*written = 0;
	/* Include the blocks that the last commit failed to write. */
	if (md->commit_failed) {
		for_each_set_bit_from(block, md->writing, md->nr_blocks) {
			clear_bit(block, md->writing);
			if (!test_and_set_bit(block, md->changed))
				atomic_long_inc(&md->nr_changed);
		}
		md->commit_failed = false;
		block = 0;
	}
	if (!sc_md_is_pending(md))
		return flush ? sc_md_flush(md) : 0;

	md->super.commits++;
	for (;;) {
		count = 0;
		for_each_set_bit_from(block, md->changed, md->nr_blocks) {
			if (count == SC_BATCH_BLOCKS)
				break;
			/* The block has a bit in one of both at any time. */
			set_bit(block, md->writing);
			smp_mb__after_atomic(); /* with sc_md_is_stable() */
			clear_bit(block, md->changed);
			atomic_long_dec(&md->nr_changed);
			sc_md_encode_block(md, block, md->batch.pages[count],
					   false);
			md->batch.index[count++] = block;
		}
		if (!count)
			return result;
		r = sc_md_flush(md);
		if (!r)
			r = sc_md_write_batch(md, count, true);
		if (r) {
			md->commit_failed = true;
			result = r;
		}
		if (r && r != -ENOSPC)
			return r;
		for (i = 0; i < count; i++) {
			if (r && test_bit(i, md->batch.unplaced))
				continue;
			clear_bit(md->batch.index[i], md->writing);
			(*written)++;
		}
	}
}

bool sc_md_mark_changed(struct sc_md *md, u64 slot)
{
	u64 block = slot / SC_RECORDS_PER_BLOCK;

	if (test_bit(block, md->changed) ||
	    test_and_set_bit(block, md->changed))
		return false;
	atomic_long_inc(&md->nr_changed);
	return true;
}

bool sc_md_is_stable(struct sc_md *md, u64 slot)
{
	u64 block = slot / SC_RECORDS_PER_BLOCK;

	if (test_bit(block, md->changed))
		return false;
	smp_rmb(); /* changed is cleared after writing is set */
	return !test_bit(block, md->writing);
}

bool sc_md_is_pending(struct sc_md *md)
{
	return md->commit_failed || atomic_long_read(&md->nr_changed) > 0;
}

/* Clear all marks: no record has to be written. No request changes the cache. */
void sc_md_clear_marks(struct sc_md *md)
{
	bitmap_zero(md->changed, md->nr_blocks);
	bitmap_zero(md->writing, md->nr_blocks);
	atomic_long_set(&md->nr_changed, 0);
	md->commit_failed = false;
}

/* Write all records. The superblock's write makes them stable. */
int sc_md_write_all(struct sc_md *md, bool stop)
{
	u64 block = 0;
	u32 count;
	int r;

	while (block < md->nr_blocks) {
		for (count = 0;
		     count < SC_BATCH_BLOCKS && block < md->nr_blocks;
		     count++) {
			md->batch.index[count] = block;
			sc_md_encode_block(md, block++, md->batch.pages[count],
					   stop);
		}
		r = sc_md_write_batch(md, count, false);
		if (r)
			return r;
		cond_resched();
	}
	return 0;
}

/*---------------------------------------------------------------------------*/

/* Format why the records are refused. The text is valid as long as @md. */
static const char *sc_md_format_reason(struct sc_md *md, u64 slot,
				       const char *what)
{
	snprintf(md->reason, sizeof(md->reason),
		 "the record of slot %llu %s: run isoblk cache check", slot,
		 what);
	return md->reason;
}

/* Pass the records of a block to @load_slot, and track the highest commit number. */
static int sc_md_load_block(struct sc_md *md, u64 block, struct page *page,
			    bool keep, const char **error)
{
	const struct sc_record *records = page_address(page);
	u32 i, count = sc_md_count_records(md, block);

	for (i = 0; i < count; i++) {
		u64 slot = block * SC_RECORDS_PER_BLOCK + i;
		enum sc_record_state state;
		u64 where;
		int r;

		if (!sc_record_decode(&records[i], md->super.seed, slot, &state,
				      &where)) {
			*error = sc_md_format_reason(md, slot, "is damaged");
			return -EILSEQ;
		}
		md->super.commits = max_t(u64, md->super.commits,
					  le32_to_cpu(records[i].seq));
		if (state == SC_RECORD_FREE)
			continue;
		r = md->ops->load_slot(md->context, slot, state, where, keep);
		if (r) {
			*error = sc_md_format_reason(md, slot, "does not fit the others");
			return r;
		}
	}
	return 0;
}

/* Pass the slots that hold moved blocks of records to @load_slot, as retired. */
static int sc_md_load_moved(struct sc_md *md)
{
	u32 i, count;
	u64 slot;
	int r;

	for (i = 0; i < md->moved.nr; i++) {
		slot = sc_place_first_slot(md, md->moved.list[i].place);
		for (count = sc_place_count_slots(md); count; count--) {
			r = md->ops->load_slot(md->context, slot++,
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
	while (block < md->nr_blocks) {
		count = min_t(u64, SC_BATCH_BLOCKS, md->nr_blocks - block);
		for (i = 0; i < count; i++)
			md->batch.index[i] = block + i;
		*error = "cannot read the records: run isoblk cache check";
		r = sc_md_rw_batch(md, REQ_OP_READ, count);
		for (i = 0; i < count && !r; i++)
			r = sc_md_load_block(md, block++, md->batch.pages[i],
					     keep, error);
		if (r)
			return r;
		cond_resched();
	}
	sc_md_clear_marks(md);
	return 0;
}
