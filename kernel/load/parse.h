/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of a tenant and their text forms. Pure: no state, no locks.
 */
#ifndef BLKLOAD_PARSE_H
#define BLKLOAD_PARSE_H

#include <linux/time64.h>
#include <linux/types.h>

/* Enough for nested groups; an attribute's file holds a page at most. */
#define BLKLOAD_PATH_LEN	1024

/* One sector, and what fits a bio's 32-bit size with room to spare. */
#define BLKLOAD_MIN_BS		512U
#define BLKLOAD_MAX_BS		(32U << 20)

/* A mix of more sizes than this is a histogram, which nobody types. */
#define BLKLOAD_MAX_SPLIT	16

/* Three years. Sums of a few of them stay far inside 63 bits of ns. */
#define BLKLOAD_MAX_NS		(100000000ULL * NSEC_PER_SEC)

/* Decimal fractions are kept in millionths. */
#define BLKLOAD_MILLION		1000000U

enum blkload_op {
	BLKLOAD_READ,
	BLKLOAD_WRITE,
	BLKLOAD_TRIM,
	BLKLOAD_FLUSH,
	BLKLOAD_NR_OPS,
};

enum blkload_rw {
	BLKLOAD_RW_READ,
	BLKLOAD_RW_WRITE,
	BLKLOAD_RW_RANDREAD,
	BLKLOAD_RW_RANDWRITE,
	BLKLOAD_RW_RW,
	BLKLOAD_RW_RANDRW,
	BLKLOAD_RW_TRIM,
	BLKLOAD_RW_RANDTRIM,
	BLKLOAD_NR_RWS,
};

enum blkload_shape {
	BLKLOAD_UNIFORM,
	BLKLOAD_ZIPF,
	BLKLOAD_PARETO,
};

/**
 * struct blkload_split - one size of a mix
 * @bytes: the size
 * @percent: of the requests
 */
struct blkload_split {
	u32 bytes;
	u32 percent;
};

/**
 * struct blkload_opts - what a tenant's attributes hold
 * @device: path of the block device, "" if not set
 * @cgroup: path in the hierarchy that holds io or blkio
 * @rw: kind of load
 * @poisson: arrivals of the open loop are a Poisson process
 * @bs: request size when neither a range nor a split is set
 * @range_low: smallest size of bsrange, 0 if not set
 * @range_high: largest size of bsrange
 * @nr_splits: sizes in @split, 0 if not set
 * @split: bssplit
 * @shape: distribution of random offsets
 * @shape_arg: theta of zipf or h of pareto, in millionths
 * @rwmixread: percentage of reads
 * @iodepth: requests in flight a job
 * @numjobs: kthreads
 * @rate_iops: arrivals a second a job, 0 for a closed loop
 * @thinktime: ns
 * @thinktime_blocks: requests between two pauses
 * @cputime: ns the kthread spends before it issues a request
 * @startdelay: ns
 * @ramp_time: ns
 * @runtime: ns, 0 for none
 * @number_ios: requests a job, 0 for no limit
 * @offset: first byte
 * @size: bytes, 0 for the rest of the device
 * @fsync: writes between two flushes, 0 for never
 * @fua: every write is FUA
 * @meta: reads and writes are of metadata, as file systems mark them
 * @background: writes are those of writeback, for which nobody waits
 * @relay: the relay submits
 * @verify: stamp what is written and check what is read
 * @randseed: seed
 * @ioprio: I/O priority of the kthreads as the kernel has it, 0: not set
 * @trace: path of the compact trace to replay, "" for none
 * @timed: at its records' times, else a closed loop
 * @speed: of a timed replay, in thousandths of the recorded one
 * @scale: scale its addresses to the region rather than wrap them
 * @trace_loop: begin anew after its last record
 * @window: width of a window of the time series, ns
 */
struct blkload_opts {
	char device[BLKLOAD_PATH_LEN];
	char cgroup[BLKLOAD_PATH_LEN];
	enum blkload_rw rw;
	bool poisson;
	u64 bs;
	u32 range_low;
	u32 range_high;
	u32 nr_splits;
	struct blkload_split split[BLKLOAD_MAX_SPLIT];
	enum blkload_shape shape;
	u32 shape_arg;
	u64 rwmixread;
	u64 iodepth;
	u64 numjobs;
	u64 rate_iops;
	u64 thinktime;
	u64 thinktime_blocks;
	u64 cputime;
	u64 startdelay;
	u64 ramp_time;
	u64 runtime;
	u64 number_ios;
	u64 offset;
	u64 size;
	u64 fsync;
	u64 fua;
	u64 meta;
	u64 background;
	u64 relay;
	u64 verify;
	u64 randseed;
	u16 ioprio;
	char trace[BLKLOAD_PATH_LEN];
	bool timed;
	u64 speed;
	bool scale;
	u64 trace_loop;
	u64 window;
};

void blkload_opts_init(struct blkload_opts *opts);

int blkload_parse_number(const char *s, u64 min, u64 max, u64 *value);
int blkload_parse_bytes(const char *s, u64 min, u64 max, u64 *bytes);
int blkload_parse_time(const char *s, u64 unit, u64 min, u64 max, u64 *ns);
int blkload_parse_path(const char *s, char *path);
int blkload_parse_rw(const char *s, enum blkload_rw *rw);
int blkload_parse_bs(const char *s, struct blkload_opts *opts);
int blkload_parse_range(const char *s, struct blkload_opts *opts);
int blkload_parse_split(const char *s, struct blkload_opts *opts);
int blkload_parse_shape(const char *s, struct blkload_opts *opts);
int blkload_parse_ioprio(const char *s, u16 *ioprio);

int blkload_format_time(char *buf, size_t len, u64 ns, u64 unit);
const char *blkload_rw_name(enum blkload_rw rw);
int blkload_format_split(char *buf, size_t len,
			 const struct blkload_opts *opts);
int blkload_format_shape(char *buf, size_t len,
			 const struct blkload_opts *opts);
int blkload_format_ioprio(char *buf, size_t len, u16 ioprio);

u32 blkload_min_bs(const struct blkload_opts *opts);
u32 blkload_max_bs(const struct blkload_opts *opts);

#endif /* BLKLOAD_PARSE_H */
