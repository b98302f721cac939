/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of a tenant, which its attributes hold.
 */
#ifndef BLKLOAD_OPTS_H
#define BLKLOAD_OPTS_H

#include <linux/time64.h>
#include <linux/types.h>

/* Enough for nested groups; an attribute's file holds a page at most. */
#define BLKLOAD_PATH_BYTES	1024

/* Request sizes: one sector, and a size that a bio's 32 bits hold easily. */
#define BLKLOAD_BS_MIN		512U
#define BLKLOAD_BS_MAX		(32U << 20)

/* Sizes in a mix of bssplit. */
#define BLKLOAD_SPLITS_MAX	16

/* Three years. Sums of a few of them stay far inside 63 bits of ns. */
#define BLKLOAD_TIME_NS_MAX		(100000000ULL * NSEC_PER_SEC)

/*
 * More threads are not needed to load any device. Each has at most one virtual
 * processor.
 */
#define BLKLOAD_JOBS_MAX	64

/* Decimal fractions are kept in millionths. */
#define BLKLOAD_MILLION		1000000U

/* Operations of requests. */
enum blkload_op {
	BLKLOAD_READ,	/* read bytes */
	BLKLOAD_WRITE,	/* write bytes */
	BLKLOAD_TRIM,	/* discard bytes */
	BLKLOAD_FLUSH,	/* make written data stable */
	BLKLOAD_NR_OPS,
};

/* Kinds of loads, under fio's names. */
enum blkload_rw {
	BLKLOAD_RW_READ,	/* reads in sequence */
	BLKLOAD_RW_WRITE,	/* writes in sequence */
	BLKLOAD_RW_RANDREAD,	/* random reads */
	BLKLOAD_RW_RANDWRITE,	/* random writes */
	BLKLOAD_RW_RW,		/* reads and writes, each in sequence */
	BLKLOAD_RW_RANDRW,	/* random reads and writes */
	BLKLOAD_RW_TRIM,	/* trims in sequence */
	BLKLOAD_RW_RANDTRIM,	/* random trims */
	BLKLOAD_NR_RWS,
};

/* How random offsets are distributed. */
enum blkload_shape {
	BLKLOAD_UNIFORM,	/* all equally likely */
	BLKLOAD_ZIPF,		/* by rank, to the power of theta */
	BLKLOAD_PARETO,		/* as fio draws them, with h */
};

/* One size of a mix. */
struct blkload_split {
	u32 bytes;	/* size */
	u32 percent;	/* share of the requests */
};

/* The options of a tenant. A number in an attribute is a u64 here. */
struct blkload_opts {
	/* Device and region of the requests, and the cgroup to charge. */
	char device[BLKLOAD_PATH_BYTES]; /* path of the device, "" if not set */
	char cgroup[BLKLOAD_PATH_BYTES]; /* path of the cgroup in io's hierarchy */
	u64 offset;		/* first byte of the region */
	u64 size;		/* bytes of the region; 0 = up to the device's end */

	/* Operations and flags. */
	enum blkload_rw rw;	/* kind of load */
	u64 rwmixread;		/* share of reads, per cent */
	u64 fsync;		/* writes between two flushes; 0 = no flushes */
	u64 fua;		/* 1 = every write is FUA */
	u64 meta;		/* 1 = requests are of metadata */
	u64 background;		/* 1 = writes are writeback, not synchronous */
	u64 relay;		/* 1 = the relay submits the requests */
	u16 ioprio;		/* I/O priority of the kthreads; 0 = not set */
	u64 verify;		/* 1 = reads verify data that were written */

	/* Sizes and offsets. */
	u64 bs;			/* size without bsrange and bssplit, bytes */
	u32 range_low;		/* smallest size of bsrange, bytes, 0 if not set */
	u32 range_high;		/* largest size of bsrange, bytes */
	u32 nr_splits;		/* number of sizes in @split, 0 if not set */
	struct blkload_split split[BLKLOAD_SPLITS_MAX]; /* sizes of bssplit */
	enum blkload_shape shape; /* distribution of random offsets */
	u32 shape_arg;		/* theta of zipf, h of pareto, millionths */
	u64 randseed;		/* seed of all random numbers */

	/* Numbers and times of requests. */
	u64 iodepth;		/* requests in flight per job */
	u64 numjobs;		/* number of kthreads */
	u64 rate_iops;		/* arrivals a second per job; 0 = closed loop */
	bool poisson;		/* whether arrivals are a Poisson process */
	u64 thinktime;		/* length of a pause, ns */
	u64 thinktime_blocks;	/* requests between two pauses */
	u64 on;			/* length of a working phase, ns */
	u64 off;		/* length of a rest, ns; 0 = no rests */
	u64 cputime;		/* CPU time of a request, spent before it, ns */
	u64 cpus;		/* virtual processors; 0 = one per job */

	/* Phases of the run. */
	u64 startdelay;		/* time before the first request, ns */
	u64 ramp_time;		/* time after startdelay that is not measured, ns */
	u64 runtime;		/* time that is measured, ns; 0 = no limit */
	u64 number_ios;		/* requests per job; 0 = no limit */
	u64 window;		/* width of a window of the time series, ns */

	/* A trace to be replayed instead. */
	char trace[BLKLOAD_PATH_BYTES]; /* path of the compact trace, "" for none */
	bool timed;		/* whether replayed at its times; else closed loop */
	u64 speed;		/* speed of a timed replay, in thousandths */
	bool scale;		/* whether addresses are scaled, not wrapped */
	u64 trace_loop;		/* 1 = it restarts after its last record */
};

#endif /* BLKLOAD_OPTS_H */
