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
 * hour; what takes longer falls into the last bucket.
 */
#define BLKLOAD_HIST_EXACT_BITS	7
#define BLKLOAD_HIST_SUB_BITS	6
#define BLKLOAD_HIST_TOP_BITS	42
#define BLKLOAD_HIST_BUCKETS \
	((1U << BLKLOAD_HIST_EXACT_BITS) + \
	 ((BLKLOAD_HIST_TOP_BITS - BLKLOAD_HIST_EXACT_BITS) << \
	  BLKLOAD_HIST_SUB_BITS))

/**
 * blkload_hist_bucket - where a latency is counted
 * @ns: the latency
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
 * blkload_hist_upper - the upper bound of a bucket
 * @bucket: its number
 *
 * Return: the first latency, in ns, that is above it.
 */
static inline u64 blkload_hist_upper(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < 1U << BLKLOAD_HIST_EXACT_BITS)
		return bucket + 1;
	shift = (bucket >> BLKLOAD_HIST_SUB_BITS) - 1;
	return (u64)(bucket + 1 - (shift << BLKLOAD_HIST_SUB_BITS)) << shift;
}

/**
 * struct blkload_measure - the times a run is measured by
 * @barrier: CLOCK_MONOTONIC ns; the others are relative to it
 * @from: begin of the measured window
 * @to: its end
 * @window: width of a window of the series
 *
 * Written before any request, constant while requests are in flight.
 */
struct blkload_measure {
	u64 barrier;
	u64 from;
	u64 to;
	u64 window;
};

/**
 * struct blkload_window - one window of a time series
 * @ios: requests that ended in it
 * @bytes: their bytes
 */
struct blkload_window {
	u64 ios;
	u64 bytes;
};

/* Windows are allocated by the page. */
#define BLKLOAD_CHUNK_WINDOWS	(PAGE_SIZE / sizeof(struct blkload_window))

/**
 * struct blkload_counts - what one operation came to
 * @issued: requests submitted
 * @ios: requests that ended well
 * @bytes: their bytes
 * @errors: requests that failed
 * @verify_errors: reads that gave something else than had been written
 * @meas_ios: of @ios, those that ended in the measured window
 * @meas_bytes: their bytes
 * @lat_sum: their latencies, ns
 * @lat_min: the least, U64_MAX if there is none
 * @lat_max: the greatest
 */
struct blkload_counts {
	u64 issued;
	u64 ios;
	u64 bytes;
	u64 errors;
	u64 verify_errors;
	u64 meas_ios;
	u64 meas_bytes;
	u64 lat_sum;
	u64 lat_min;
	u64 lat_max;
};

/**
 * struct blkload_stats - what one job did with one operation
 * @counts: counts
 * @hist: histogram of the latencies, BLKLOAD_HIST_BUCKETS
 * @chunks: pages of windows
 * @window: the window last used
 * @window_begin: its begin
 * @window_end: its end
 *
 * Written by the job's thread only, read when the run is done.
 */
struct blkload_stats {
	struct blkload_counts counts;
	u64 *hist;
	struct xarray chunks;
	struct blkload_window *window;
	u64 window_begin;
	u64 window_end;
};

int blkload_stats_init(struct blkload_stats *stats,
		       const struct blkload_measure *measure, u64 duration);
void blkload_stats_free(struct blkload_stats *stats);
int blkload_stats_complete(struct blkload_stats *stats,
			   const struct blkload_measure *measure,
			   u64 at, u64 latency, u32 bytes);

#endif /* BLKLOAD_STATS_H */
