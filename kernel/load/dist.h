/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random numbers, distributions and arrival times in integers. Pure: no state
 * except the caller's, no locks.
 */
#ifndef BLKLOAD_DIST_H
#define BLKLOAD_DIST_H

#include <linux/math64.h>
#include <linux/types.h>

#include "opts.h"

/* Fractional bits of logarithms. */
#define BLKLOAD_LOG_BITS	48

/* Fractional bits of the result of blkload_exp2(). */
#define BLKLOAD_EXP_BITS	62

/* A stream of random numbers. */
struct blkload_rng {
	u64 state;	/* state of a splitmix64 generator */
};

/**
 * blkload_rng_next - return the next number of a stream
 * @rng: the stream
 *
 * Return: 64 random bits.
 */
static inline u64 blkload_rng_next(struct blkload_rng *rng)
{
	u64 z = rng->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/**
 * blkload_rng_below - return a uniform number
 * @rng: the stream
 * @n: the bound, not 0
 *
 * Return: 0 .. @n - 1, each with a probability that is off by less than
 * @n / 2^64 of itself.
 */
static inline u64 blkload_rng_below(struct blkload_rng *rng, u64 n)
{
	return mul_u64_u64_shr(blkload_rng_next(rng), n, 64);
}

void blkload_rng_seed(struct blkload_rng *rng, u64 seed, u32 job);

u64 blkload_log2(u64 x, unsigned int bits);
u64 blkload_exp2(u64 x);

/* A segment: ranks that are treated as equally likely. */
struct blkload_segment {
	u64 first_rank;	/* first rank */
	u64 weight_sum;	/* weight of all segments up to and with this one */
};

/* A skewed distribution over ranks 0 .. @nr_ranks - 1. */
struct blkload_dist {
	u64 nr_ranks; /* number of ranks */
	u64 stride; /* factor coprime to @nr_ranks; spreads ranks over the region */
	u32 nr_segments; /* number of segments */
	/* segments, then an end with @first_rank = @nr_ranks */
	struct blkload_segment segments[];
};

struct blkload_dist *blkload_dist_create(enum blkload_shape shape, u32 arg,
					 u64 n);
u64 blkload_dist_draw_rank(const struct blkload_dist *dist,
			   struct blkload_rng *rng);
u64 blkload_dist_draw_block(const struct blkload_dist *dist,
			    struct blkload_rng *rng);

/* The schedule of an open loop. */
struct blkload_arrivals {
	u64 next_ns;	/* time of the next arrival, ns */
	u64 rate;	/* arrivals a second */
	u64 step;	/* mean interval, ns, or with Poisson 2^-16 ns */
	u64 rem;	/* fraction missing from @step, in 1 / @rate ns */
	u64 frac;	/* fraction missing from @next_ns, in 1 / @rate ns or 2^-16 ns */
	bool poisson;	/* whether intervals are exponential */
};

void blkload_arrivals_init(struct blkload_arrivals *arrivals, u64 begin,
			   u64 rate, bool poisson, struct blkload_rng *rng);
void blkload_arrivals_advance(struct blkload_arrivals *arrivals,
			      struct blkload_rng *rng);

#endif /* BLKLOAD_DIST_H */
