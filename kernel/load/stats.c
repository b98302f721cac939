// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics. A completion costs a few additions: the histogram is an array,
 * and the last used window of the series is cached. Windows whose time is known
 * are allocated before the run; a run that ends by its number of requests
 * allocates a page of windows whenever one is full.
 */
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "stats.h"

/* Get a page of windows; @gfp: GFP_KERNEL before the run, GFP_NOIO in it. */
static struct blkload_window *
blkload_stats_get_chunk(struct blkload_stats *stats, unsigned long index,
			gfp_t gfp)
{
	struct blkload_window *chunk = xa_load(&stats->chunks, index);

	if (chunk)
		return chunk;
	/* If windows are too narrow, fail rather than invoke the OOM killer. */
	gfp |= __GFP_NOWARN | __GFP_NORETRY;
	chunk = (struct blkload_window *)get_zeroed_page(gfp);
	if (!chunk)
		return NULL;
	if (xa_err(xa_store(&stats->chunks, index, chunk, gfp))) {
		free_page((unsigned long)chunk);
		return NULL;
	}
	return chunk;
}

/**
 * blkload_stats_init - allocate the memory of statistics
 * @stats: the statistics, zeroed
 * @measure: the run's times; only the width of a window is used
 * @duration: time for which windows are certainly needed, ns
 *
 * Context: May sleep.
 * Return: 0 or -ENOMEM; blkload_stats_free() cleans up in both cases.
 */
int blkload_stats_init(struct blkload_stats *stats,
		       const struct blkload_measure *measure, u64 duration)
{
	unsigned long last, i;

	xa_init(&stats->chunks);
	stats->counts.lat_min_ns = U64_MAX;
	stats->hist = kvcalloc(BLKLOAD_HIST_BUCKETS, sizeof(*stats->hist),
			       GFP_KERNEL);
	if (!stats->hist)
		return -ENOMEM;
	last = div64_ul(div64_u64(duration, measure->window_ns),
			BLKLOAD_WINDOWS_PER_CHUNK);
	for (i = 0; i <= last; i++) {
		if (!blkload_stats_get_chunk(stats, i, GFP_KERNEL))
			return -ENOMEM;
		cond_resched();
	}
	return 0;
}

/**
 * blkload_stats_free - free the memory of blkload_stats_init()
 * @stats: the statistics, initialised or zeroed
 */
void blkload_stats_free(struct blkload_stats *stats)
{
	struct blkload_window *chunk;
	unsigned long index;

	if (!stats->hist)
		return;
	xa_for_each(&stats->chunks, index, chunk)
		free_page((unsigned long)chunk);
	xa_destroy(&stats->chunks);
	kvfree(stats->hist);
	stats->hist = NULL;
}

/* Make the window of time @at the cached window. */
static int blkload_stats_seek_window(struct blkload_stats *stats, u64 width,
				     u64 at)
{
	struct blkload_window *chunk;
	u64 n = div64_u64(at, width);

	chunk = blkload_stats_get_chunk(stats,
					div64_ul(n, BLKLOAD_WINDOWS_PER_CHUNK),
					GFP_NOIO);
	if (!chunk)
		return -ENOMEM;
	stats->window = &chunk[n % BLKLOAD_WINDOWS_PER_CHUNK];
	stats->window_begin_ns = n * width;
	stats->window_end_ns = stats->window_begin_ns + width;
	return 0;
}

/**
 * blkload_stats_complete - count a request that succeeded
 * @stats: statistics of its operation
 * @measure: the run's times
 * @at: time at which it ended, relative to the barrier, ns
 * @latency: ns from its intended start
 * @bytes: its size, bytes
 *
 * Context: The job's thread.
 * Return: 0, or -ENOMEM without memory for a window: then all counts but the
 * window's are updated.
 */
int blkload_stats_complete(struct blkload_stats *stats,
			   const struct blkload_measure *measure,
			   u64 at, u64 latency, u32 bytes)
{
	struct blkload_counts *c = &stats->counts;

	c->ios++;
	c->bytes += bytes;
	if (at >= measure->from_ns && at < measure->to_ns) {
		c->meas_ios++;
		c->meas_bytes += bytes;
		c->lat_sum_ns += latency;
		c->lat_min_ns = min(c->lat_min_ns, latency);
		c->lat_max_ns = max(c->lat_max_ns, latency);
		stats->hist[blkload_hist_bucket(latency)]++;
	}
	if (unlikely(at < stats->window_begin_ns ||
		     at >= stats->window_end_ns)) {
		int ret = blkload_stats_seek_window(stats, measure->window_ns,
						    at);

		if (ret)
			return ret;
	}
	stats->window->ios++;
	stats->window->bytes += bytes;
	return 0;
}
