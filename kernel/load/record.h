/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The compact trace file: its records, and what becomes of one on a device.
 * Pure: no state, no locks. kernel/README.md describes the format.
 */
#ifndef BLKLOAD_RECORD_H
#define BLKLOAD_RECORD_H

#include <linux/build_bug.h>
#include <linux/math64.h>
#include <linux/types.h>

#include "parse.h"

#define BLKLOAD_TRACE_MAGIC	"ISOTRACE"
#define BLKLOAD_TRACE_VERSION	1

/* Speeds are in thousandths of the recorded one. */
#define BLKLOAD_SPEED_ONE	1000ULL
/* What is due then is due after every run, and far from where sums overflow. */
#define BLKLOAD_NEVER_NS	(U64_MAX / 4)

/* In @flags of a record, of a write: it is stable when it ends. */
#define BLKLOAD_RECORD_FUA	0x01
/* What ended before it is made stable first. */
#define BLKLOAD_RECORD_PREFLUSH	0x02
/* Nobody waits for it: the page cache writes it back. */
#define BLKLOAD_RECORD_ASYNC	0x04

/**
 * struct blkload_header - what the file begins with
 * @magic: BLKLOAD_TRACE_MAGIC, without an end
 * @version: BLKLOAD_TRACE_VERSION
 * @record_size: bytes of a record
 * @records: how many follow
 * @span: time of the last record, ns
 * @end: no record goes beyond this byte
 * @zero: for later versions
 */
struct blkload_header {
	char magic[8];
	__le32 version;
	__le32 record_size;
	__le64 records;
	__le64 span;
	__le64 end;
	u8 zero[24];
};

static_assert(sizeof(struct blkload_header) == 64);

/**
 * struct blkload_record - one request
 * @time: when it started, ns after the first
 * @offset: its first byte; of no meaning for a flush
 * @bytes: its size; likewise
 * @op: enum blkload_op
 * @flags: BLKLOAD_RECORD_*
 * @stream: who issued it, 0 if not known
 */
struct blkload_record {
	__le64 time;
	__le64 offset;
	__le32 bytes;
	u8 op;
	u8 flags;
	__le16 stream;
};

static_assert(sizeof(struct blkload_record) == 24);

/**
 * struct blkload_facts - what is known of a trace
 * @records: number of records
 * @span: time of the last one, ns
 * @end: no record goes beyond this byte
 * @time: of the record that was checked last
 * @ops: operations among those that were checked, a mask
 * @max_bytes: size of their largest read or write
 */
struct blkload_facts {
	u64 records;
	u64 span;
	u64 end;
	u64 time;
	unsigned int ops;
	u32 max_bytes;
};

const char *blkload_header_check(const struct blkload_header *header,
				 u64 file_size, struct blkload_facts *facts);
const char *blkload_record_check(const struct blkload_record *record,
				 struct blkload_facts *facts);

/**
 * blkload_at_speed - when a record is due
 * @time: its time, ns
 * @speed: in thousandths of the recorded speed, not 0
 *
 * Return: ns, rounded down, at most BLKLOAD_NEVER_NS.
 */
static inline u64 blkload_at_speed(u64 time, u64 speed)
{
	u64 rest, whole = div64_u64_rem(time, speed, &rest);

	/* Of the rest, which is below the speed, the product has 64 bits. */
	if (whole >= BLKLOAD_NEVER_NS / BLKLOAD_SPEED_ONE)
		return BLKLOAD_NEVER_NS;
	return whole * BLKLOAD_SPEED_ONE +
	       div64_u64(rest * BLKLOAD_SPEED_ONE, speed);
}

u64 blkload_trace_period(u64 records, u64 span);

/**
 * struct blkload_fit - how the addresses of a trace come to lie in a region
 * @shift: log2 of the logical block's bytes
 * @blocks: logical blocks of the region
 * @scale: of the trace, if its addresses are scaled; 0: they are wrapped
 */
struct blkload_fit {
	unsigned int shift;
	u64 blocks;
	u64 scale;
};

/**
 * struct blkload_place - where a request of a trace comes to lie
 * @offset: its first byte, relative to the region
 * @bytes: its size
 * @rounded: it was not made of whole logical blocks
 * @clipped: it was too long
 * @moved: it lay elsewhere, rounding aside
 */
struct blkload_place {
	u64 offset;
	u32 bytes;
	bool rounded;
	bool clipped;
	bool moved;
};

void blkload_fit_init(struct blkload_fit *fit, u32 block, u64 bytes, u64 end,
		      bool scale);
void blkload_fit_place(const struct blkload_fit *fit, enum blkload_op op,
		       u64 offset, u32 bytes, struct blkload_place *place);

#endif /* BLKLOAD_RECORD_H */
