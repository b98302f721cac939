// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of a trace. A file is untrusted input: each part is checked before
 * its use, even on the second reading.
 *
 * A trace comes from a disk with another size and other blocks. Its requests
 * keep their sizes, with two exceptions: a request that does not consist of
 * whole logical blocks grows until it does, and a request that is longer than
 * the generator's limit, or than the region, is truncated. Addresses are
 * wrapped, so that adjacent addresses stay adjacent and distant ones may
 * coincide, or scaled, so that distances keep their proportions and adjacent
 * requests get gaps or overlaps. A request that would exceed the end of the
 * region ends there.
 */
#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include "record.h"

/**
 * blkload_header_check - check a trace's header
 * @header: the header
 * @file_size: bytes of the whole file
 * @facts: facts of the trace, zeroed; filled in
 *
 * Return: NULL, or a description of the error.
 */
const char *blkload_header_check(const struct blkload_header *header,
				 u64 file_size, struct blkload_facts *facts)
{
	u64 bytes;

	if (memcmp(header->magic, BLKLOAD_TRACE_MAGIC, sizeof(header->magic)))
		return "is not a compact trace";
	if (le32_to_cpu(header->version) != BLKLOAD_TRACE_VERSION ||
	    le32_to_cpu(header->record_size) != sizeof(struct blkload_record))
		return "is a compact trace of another version";
	facts->nr_records = le64_to_cpu(header->records);
	facts->span_ns = le64_to_cpu(header->span);
	facts->end_pos = le64_to_cpu(header->end);
	if (!facts->nr_records)
		return "has no records";
	if (check_mul_overflow(facts->nr_records,
			       (u64)sizeof(struct blkload_record), &bytes) ||
	    check_add_overflow(bytes, (u64)sizeof(*header), &bytes) ||
	    bytes > file_size)
		return "is truncated: it has fewer records than its header says";
	if (bytes < file_size)
		return "has more records than its header says";
	if (facts->span_ns > BLKLOAD_TIME_NS_MAX)
		return "is longer than three years";
	return NULL;
}

/**
 * blkload_record_check - check a record
 * @record: the record
 * @facts: facts from the header and earlier records; updated
 *
 * Return: NULL, or a description of the error.
 */
const char *blkload_record_check(const struct blkload_record *record,
				 struct blkload_facts *facts)
{
	u64 time = le64_to_cpu(record->time);
	u64 offset = le64_to_cpu(record->offset);
	u32 bytes = le32_to_cpu(record->bytes);

	if (record->op >= BLKLOAD_NR_OPS)
		return "unknown operation";
	if (time < facts->last_time_ns)
		return "starts before the one before it";
	if (time > facts->span_ns)
		return "starts after the end that the header gives";
	facts->last_time_ns = time;
	facts->ops |= BIT(record->op);
	if (record->op == BLKLOAD_FLUSH)
		return NULL;
	/* S64_MAX is the limit of the kernel's positions. */
	if (offset > S64_MAX || offset + bytes > facts->end_pos)
		return "goes beyond the last byte that the header gives";
	if (record->op != BLKLOAD_TRIM)
		facts->bytes_max = max(facts->bytes_max, bytes);
	return NULL;
}

/**
 * blkload_trace_period_ns - return the time after which a trace repeats
 * @records: number of records
 * @span: time of the last one, ns
 *
 * The mean interval follows the last record, so that the rate stays the same.
 *
 * Return: ns; 0 if all records have one time.
 */
u64 blkload_trace_period_ns(u64 records, u64 span)
{
	return records > 1 ? span + div64_u64(span, records - 1) : 0;
}

/**
 * blkload_fit_init - set up the mapping of addresses to a region
 * @fit: the mapping, filled in
 * @block: bytes of a logical block, a power of 2
 * @bytes: bytes of the region, at least @block
 * @end: byte that no record of the trace goes beyond
 * @scale: scale rather than wrap
 */
void blkload_fit_init(struct blkload_fit *fit, u32 block, u64 bytes, u64 end,
		      bool scale)
{
	fit->shift = ilog2(block);
	fit->nr_blocks = bytes >> fit->shift;
	fit->trace_blocks = scale ? max(1ULL, (end + block - 1) >> fit->shift) :
				    0;
}

/**
 * blkload_fit_map - map a request to a region
 * @fit: the mapping
 * @op: operation, not BLKLOAD_FLUSH
 * @offset: first byte in the trace
 * @bytes: size there; 0 becomes one block
 * @place: filled in
 */
void blkload_fit_map(const struct blkload_fit *fit, enum blkload_op op,
		     u64 offset, u32 bytes, struct blkload_place *place)
{
	u32 most = op == BLKLOAD_TRIM ? U32_MAX : BLKLOAD_BS_MAX;
	u64 block = 1ULL << fit->shift;
	u64 first = offset >> fit->shift;
	u64 nr = ((offset + bytes + block - 1) >> fit->shift) - first;
	u64 at = first;

	nr = max(nr, 1ULL);
	place->rounded = offset & (block - 1) || nr << fit->shift != bytes;
	place->clipped = nr > min(fit->nr_blocks, (u64)most >> fit->shift);
	if (place->clipped)
		nr = min(fit->nr_blocks, (u64)most >> fit->shift);
	if (fit->trace_blocks)
		at = mul_u64_u64_div_u64(first, fit->nr_blocks,
					 fit->trace_blocks);
	else if (first >= fit->nr_blocks)
		div64_u64_rem(first, fit->nr_blocks, &at);
	at = min(at, fit->nr_blocks - nr);
	place->moved = at != first;
	place->offset = at << fit->shift;
	place->bytes = nr << fit->shift;
}
