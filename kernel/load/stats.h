/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts, latency histogram and time series of one operation of one job.
 */
#ifndef BLKLOAD_STATS_H
#define BLKLOAD_STATS_H

#include <linux/bitops.h>
#include <linux/types.h>
#include <linux/xarray.h>

/*
 * Latencies below 2^7 ns are exact. Above, each power of two has 2^6 buckets:
 * a bucket is at most 1/64, 1.6 %, of its lower bound wide. 2^42 ns is over an
 * hour; longer latencies fall into the last bucket.
 */
#define BLKLOAD_HIST_EXACT_BITS	7
#define BLKLOAD_HIST_SUB_BITS	6
#define BLKLOAD_HIST_TOP_BITS	42
#define BLKLOAD_HIST_BUCKETS \
	((1U << BLKLOAD_HIST_EXACT_BITS) + \
	 ((BLKLOAD_HIST_TOP_BITS - BLKLOAD_HIST_EXACT_BITS) << \
	  BLKLOAD_HIST_SUB_BITS))

/**
 * blkload_hist_bucket - return the bucket of a latency
 * @ns: the latency, ns
 *
 * Return: number of the bucket.
 */
static inline unsigned int blkload_hist_bucket(u64 ns)
{
	unsigned int shift;

	if (ns < 1U << BLKLOAD_HIST_EXACT_BITS)
		return ns;
	if (ns >= 1ULL << BLKLOAD_HIST_TOP_BITS)
		return BLKLOAD_HIST_BUCKETS - 1;
	/* ns >> shift is 64 .. 127: the buckets of one octave. */
	shift = fls64(ns) - 1 - BLKLOAD_HIST_SUB_BITS;
	return (shift << BLKLOAD_HIST_SUB_BITS) + (ns >> shift);
}

/**
 * blkload_hist_bucket_end - return the upper bound of a bucket
 * @bucket: number of the bucket
 *
 * Return: the first latency, in ns, that is above it.
 */
static inline u64 blkload_hist_bucket_end(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < 1U << BLKLOAD_HIST_EXACT_BITS)
		return bucket + 1;
	shift = (bucket >> BLKLOAD_HIST_SUB_BITS) - 1;
	return (u64)(bucket + 1 - (shift << BLKLOAD_HIST_SUB_BITS)) << shift;
}

/*
 * Times of a run's measurement, in ns. They are written before any request and
 * constant while requests are in flight.
 */
struct blkload_measure {
	u64 barrier_ns;	/* CLOCK_MONOTONIC ns; other times are relative to it */
	u64 from_ns;	/* begin of the measured window */
	u64 to_ns;	/* end of the measured window */
	u64 window_ns;	/* width of a window of the series */
};

/* One window of a time series. */
struct blkload_window {
	u64 ios;	/* requests that ended in it */
	u64 bytes;	/* their bytes */
};

/* Windows are allocated by the page. */
#define BLKLOAD_WINDOWS_PER_CHUNK	(PAGE_SIZE / sizeof(struct blkload_window))

/* Counts of one operation. */
struct blkload_counts {
	u64 issued;	/* requests submitted */
	u64 ios;	/* requests that succeeded */
	u64 bytes;	/* their bytes */
	u64 errors;	/* requests that failed */
	u64 verify_errors; /* reads that returned wrong data */
	u64 meas_ios;	/* part of @ios that ended in the measured window */
	u64 meas_bytes;	/* bytes of @meas_ios */
	u64 lat_sum_ns;	/* sum of latencies of @meas_ios, ns */
	u64 lat_min_ns;	/* least latency, ns; U64_MAX if there is none */
	u64 lat_max_ns;	/* greatest latency, ns */
};

/*
 * Statistics of one job and one operation. The job's thread writes them; other
 * threads read them when the run is done.
 */
struct blkload_stats {
	struct blkload_counts counts;	/* counts */
	u64 *hist;			/* histogram of latencies */
	struct xarray chunks;		/* pages of windows */
	struct blkload_window *window;	/* last used window */
	u64 window_begin_ns;		/* begin of @window, ns */
	u64 window_end_ns;		/* end of @window, ns */
};

int blkload_stats_init(struct blkload_stats *stats,
		       const struct blkload_measure *measure, u64 duration);
void blkload_stats_free(struct blkload_stats *stats);
int blkload_stats_complete(struct blkload_stats *stats,
			   const struct blkload_measure *measure,
			   u64 at, u64 latency, u32 bytes);

#endif /* BLKLOAD_STATS_H */
