/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of a tenant: what its attributes hold.
 */
#ifndef BLKLOAD_OPTS_H
#define BLKLOAD_OPTS_H

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

/*
 * More threads are not needed to load any device. Each has one virtual
 * processor at most.
 */
#define BLKLOAD_MAX_JOBS	64

/* Decimal fractions are kept in millionths. */
#define BLKLOAD_MILLION		1000000U

/* What a request does. */
enum blkload_op {
	BLKLOAD_READ,	/* read bytes */
	BLKLOAD_WRITE,	/* write bytes */
	BLKLOAD_TRIM,	/* discard bytes */
	BLKLOAD_FLUSH,	/* make stable what has been written */
	BLKLOAD_NR_OPS,
};

/* What a load does, under fio's names. */
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
	BLKLOAD_UNIFORM,	/* all alike */
	BLKLOAD_ZIPF,		/* by rank, to the power of theta */
	BLKLOAD_PARETO,		/* as fio draws them, with h */
};

/* One size of a mix. */
struct blkload_split {
	u32 bytes;	/* size */
	u32 percent;	/* share of the requests */
};

/* The options of a tenant. What is a number in its attribute is a u64. */
struct blkload_opts {
	/* Where the requests go, and whom they are charged to. */
	char device[BLKLOAD_PATH_LEN]; /* path of the device, "" if not set */
	char cgroup[BLKLOAD_PATH_LEN]; /* path in the hierarchy of io */
	u64 offset;		/* first byte of the region */
	u64 size;		/* bytes of the region; 0 = all the rest */

	/* What they do. */
	enum blkload_rw rw;	/* kind of load */
	u64 rwmixread;		/* percentage of reads */
	u64 fsync;		/* writes between two flushes; 0 = no flushes */
	u64 fua;		/* 1 = every write is FUA */
	u64 meta;		/* 1 = they are of metadata */
	u64 background;		/* 1 = writes are writeback, nobody waits */
	u64 relay;		/* 1 = the relay submits */
	u16 ioprio;		/* I/O priority of the kthreads; 0 = not set */
	u64 verify;		/* 1 = what was written is checked when read */

	/* Their sizes and offsets. */
	u64 bs;			/* size, without a range or a split, bytes */
	u32 range_low;		/* smallest size of bsrange, 0 if not set */
	u32 range_high;		/* largest size of bsrange */
	u32 nr_splits;		/* number of sizes in @split, 0 if not set */
	struct blkload_split split[BLKLOAD_MAX_SPLIT]; /* sizes of bssplit */
	enum blkload_shape shape; /* distribution of random offsets */
	u32 shape_arg;		/* theta of zipf, h of pareto, millionths */
	u64 randseed;		/* seed of all random numbers */

	/* How many, and when. */
	u64 iodepth;		/* requests in flight of a job */
	u64 numjobs;		/* number of kthreads */
	u64 rate_iops;		/* arrivals a second, a job; 0 = closed loop */
	bool poisson;		/* whether arrivals are a Poisson process */
	u64 thinktime;		/* length of a pause, ns */
	u64 thinktime_blocks;	/* requests between two pauses */
	u64 on;			/* how long it works until it rests, ns */
	u64 off;		/* how long it rests, ns; 0 = never */
	u64 cputime;		/* CPU time of a request, spent before it, ns */
	u64 cpus;		/* virtual processors; 0 = one a job */

	/* How long. */
	u64 startdelay;		/* time before the first request, ns */
	u64 ramp_time;		/* time after it that is not measured, ns */
	u64 runtime;		/* time that is measured, ns; 0 = no limit */
	u64 number_ios;		/* requests of a job; 0 = no limit */
	u64 window;		/* width of a window of the time series, ns */

	/* The trace that is replayed instead. */
	char trace[BLKLOAD_PATH_LEN]; /* path of the compact trace, "" for none */
	bool timed;		/* whether at its times; else a closed loop */
	u64 speed;		/* speed of a timed replay, in thousandths */
	bool scale;		/* whether addresses are scaled, not wrapped */
	u64 trace_loop;		/* 1 = it begins anew after its last record */
};

#endif /* BLKLOAD_OPTS_H */
