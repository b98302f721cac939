/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The compact trace file: its records, and their mapping to a device. Pure: no
 * state, no locks. kernel/README.md describes the format.
 */
#ifndef BLKLOAD_RECORD_H
#define BLKLOAD_RECORD_H

#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>

#include "opts.h"

#define BLKLOAD_TRACE_MAGIC	"ISOTRACE"
#define BLKLOAD_TRACE_VERSION	1

/* Speeds are in thousandths of the recorded one. */
#define BLKLOAD_SPEED_ONE	1000ULL
/* A time after every run, which sums cannot overflow, ns. */
#define BLKLOAD_NEVER_NS	(U64_MAX / 4)

/* Flags of a write in a record. The write is stable when it ends. */
#define BLKLOAD_RECORD_FUA	0x01
/* Writes that have ended before it are made stable first. */
#define BLKLOAD_RECORD_PREFLUSH	0x02
/* No task waits for it: it is writeback of the page cache. */
#define BLKLOAD_RECORD_ASYNC	0x04

/* The header of a trace file. */
struct blkload_header {
	char magic[8];		/* BLKLOAD_TRACE_MAGIC, without a zero */
	__le32 version;		/* BLKLOAD_TRACE_VERSION */
	__le32 record_size;	/* bytes of a record */
	__le64 records;		/* number of records that follow */
	__le64 span;		/* time of the last record, ns */
	__le64 end;		/* byte that no record goes beyond */
	u8 zero[24];		/* zeros; reserved */
};

static_assert(sizeof(struct blkload_header) == 64);

/* One request. */
struct blkload_record {
	__le64 time;	/* time at which it started, ns after the first */
	__le64 offset;	/* first byte; unused for a flush */
	__le32 bytes;	/* size, bytes; unused for a flush */
	u8 op;		/* enum blkload_op */
	u8 flags;	/* BLKLOAD_RECORD_* */
	__le16 stream;	/* number of its issuer, 0 if unknown */
};

static_assert(sizeof(struct blkload_record) == 24);

/* Facts of a trace. */
struct blkload_facts {
	u64 nr_records;	/* number of records */
	u64 span_ns;	/* time of the last record, ns */
	u64 end_pos;	/* byte that no record goes beyond */
	u64 last_time_ns; /* time of the record that was last checked, ns */
	unsigned int ops; /* operations of the checked records, a mask */
	u32 bytes_max;	/* size of the largest checked read or write, bytes */
};

const char *blkload_header_check(const struct blkload_header *header,
				 u64 file_size, struct blkload_facts *facts);
const char *blkload_record_check(const struct blkload_record *record,
				 struct blkload_facts *facts);

/**
 * blkload_scale_time - return the time of a record at a speed
 * @time: time of the record, ns
 * @speed: speed, in thousandths of the recorded one, not 0
 *
 * Return: ns, rounded down, at most BLKLOAD_NEVER_NS.
 */
static inline u64 blkload_scale_time(u64 time, u64 speed)
{
	u64 rest, whole = div64_u64_rem(time, speed, &rest);

	/* @rest is below the speed, so the product fits in 64 bits. */
	if (whole >= BLKLOAD_NEVER_NS / BLKLOAD_SPEED_ONE)
		return BLKLOAD_NEVER_NS;
	return whole * BLKLOAD_SPEED_ONE +
	       div64_u64(rest * BLKLOAD_SPEED_ONE, speed);
}

u64 blkload_trace_period_ns(u64 records, u64 span);

/* The mapping of a trace's addresses to a region. */
struct blkload_fit {
	unsigned int shift; /* log2 of the bytes of a logical block */
	u64 nr_blocks;	/* logical blocks of the region */
	u64 trace_blocks; /* blocks of the trace, if it is scaled; 0 = wrapped */
};

/* The place of a trace's request in a region. */
struct blkload_place {
	u64 offset;	/* first byte, relative to the region */
	u32 bytes;	/* size */
	bool rounded;	/* whether it was extended to whole logical blocks */
	bool clipped;	/* whether it was truncated */
	bool moved;	/* whether its address was changed, except by rounding */
};

void blkload_fit_init(struct blkload_fit *fit, u32 block, u64 bytes, u64 end,
		      bool scale);
void blkload_fit_map(const struct blkload_fit *fit, enum blkload_op op,
		     u64 offset, u32 bytes, struct blkload_place *place);

#endif /* BLKLOAD_RECORD_H */
