// SPDX-License-Identifier: GPL-2.0-only
/*
 * Skewed distributions without floating point
 *
 * A distribution over ranks is divided into segments: each of the first 64
 * ranks is one, above them every octave has 32. A segment's weight is computed
 * with fixed-point powers at the start of a run; ranks within a segment are
 * equally likely. Drawing a rank costs two random numbers, a binary search and
 * a multiplication.
 *
 * zipf, P(rank) ~ 1 / rank^theta with ranks from 1: a segment weighs its width
 * times the power at its midpoint. For width / rank = w/r < 1/32 the error of
 * that is at most theta (theta + 1) / 24 * 2^-10: below 0.01 % for theta = 1.
 * The probability of one rank is off by at most theta * 1.6 %, of one of the
 * first 64 by 2^-40.
 *
 * pareto, as fio draws it: rank = n * u^(log h / log(1 - h)), so its
 * distribution function is (x / n)^a with a = log(1 - h) / log h. A segment
 * weighs the difference of two of its values, exact to 2^-40; the probability
 * of one rank is off by at most |a - 1| * 1.6 % above the first 64.
 *
 * Ranks are spread over the region by a multiplication modulo n, a bijection
 * if the factor is coprime to n.
 */
#include <linux/bitops.h>
#include <linux/gcd.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/time64.h>

#include "dist.h"

/* An octave has 2^5 segments; a rank below 2^6 has its own. */
#define BLKLOAD_SEGMENT_BITS	5

/*
 * Weight of the heaviest segment of zipf. There are fewer than 2^12 segments,
 * so that their sum stays below 2^63.
 */
#define BLKLOAD_WEIGHT_BITS	50

/* ln 2 with 64 fractional bits. */
#define BLKLOAD_LN2		0xb17217f7d1cf79abULL

/* Terms of the series for 2^x: ln(2)^20 / 20! is below 2^-70. */
#define BLKLOAD_EXP_TERMS	20

/* Fractional bits of intervals: 2^-32 of the mean is far below a ns. */
#define BLKLOAD_ARRIVAL_LOG_BITS	32
#define BLKLOAD_ARRIVAL_FRAC_BITS	16

/**
 * blkload_rng_seed - seed the stream of a job
 * @rng: the stream
 * @seed: the tenant's randseed
 * @job: number of the job
 */
void blkload_rng_seed(struct blkload_rng *rng, u64 seed, u32 job)
{
	rng->state = seed;
	rng->state = blkload_rng_next(rng) + job;
	rng->state = blkload_rng_next(rng);
}

/**
 * blkload_log2 - compute the binary logarithm, bit by bit
 * @x: the number, not 0
 * @bits: fractional bits of the result, at most BLKLOAD_LOG_BITS
 *
 * Squaring doubles the logarithm; whether the square reaches 2 is the next
 * bit.
 *
 * Return: log2(@x) with @bits fractional bits, less than 2^-@bits too low.
 */
u64 blkload_log2(u64 x, unsigned int bits)
{
	unsigned int e = fls64(x) - 1;
	u64 m = x << (63 - e);		/* 1 <= m < 2, 63 fractional bits */
	u64 log = e;

	while (bits--) {
		u64 square = mul_u64_u64_shr(m, m, 64);	/* 62 bits */
		unsigned int bit = square >> 63;

		log = log << 1 | bit;
		m = square << (1 - bit);
	}
	return log;
}

/**
 * blkload_exp2 - compute a power of 2
 * @x: exponent, 0 <= @x < 1 with BLKLOAD_LOG_BITS fractional bits
 *
 * Return: 2^@x with BLKLOAD_EXP_BITS fractional bits, the last five of which
 * are not exact.
 */
u64 blkload_exp2(u64 x)
{
	u64 y = mul_u64_u64_shr(x << (64 - BLKLOAD_LOG_BITS), BLKLOAD_LN2, 64);
	u64 term = 1ULL << BLKLOAD_EXP_BITS, sum = term;
	unsigned int n;

	for (n = 1; n < BLKLOAD_EXP_TERMS; n++) {
		term = div_u64(mul_u64_u64_shr(term, y, 64), n);
		sum += term;
	}
	return sum;
}

/* Return 2^-x with @bits fractional bits, x with BLKLOAD_LOG_BITS. */
static u64 blkload_exp2_neg(u64 x, unsigned int bits)
{
	u64 whole = x >> BLKLOAD_LOG_BITS;
	u64 frac = x & ((1ULL << BLKLOAD_LOG_BITS) - 1);
	unsigned int shift = BLKLOAD_EXP_BITS - bits;

	if (frac) {
		frac = (1ULL << BLKLOAD_LOG_BITS) - frac;
		whole++;
	}
	if (whole + shift > 63)
		return 0;
	return blkload_exp2(frac) >> (whole + shift);
}

/* Return the rank (from 1) at which the segment that begins at @rank ends. */
static u64 blkload_dist_segment_end(u64 rank, u64 n)
{
	unsigned int e = fls64(rank) - 1;
	u64 width = e > BLKLOAD_SEGMENT_BITS ?
			    1ULL << (e - BLKLOAD_SEGMENT_BITS) :
			    1;

	return min(rank + width, n + 1);
}

/* Return log2 of the zipf weight of ranks @from .. @to - 1. */
static s64 blkload_dist_zipf_log_weight(u64 from, u64 to, u32 theta)
{
	/* Twice the midpoint is an integer. */
	u64 mid = blkload_log2(from + to - 1, BLKLOAD_LOG_BITS) -
		  (1ULL << BLKLOAD_LOG_BITS);

	return blkload_log2(to - from, BLKLOAD_LOG_BITS) -
	       mul_u64_u32_div(mid, theta, BLKLOAD_MILLION);
}

static void blkload_dist_build_zipf(struct blkload_dist *dist, u32 theta)
{
	s64 most = S64_MIN;
	u64 below = 0;
	u32 i;

	for (i = 0; i < dist->nr_segments; i++)
		most = max(most,
			   blkload_dist_zipf_log_weight(dist->segments[i].first_rank + 1,
							dist->segments[i + 1].first_rank + 1,
							theta));
	for (i = 0; i < dist->nr_segments; i++) {
		s64 w = blkload_dist_zipf_log_weight(dist->segments[i].first_rank + 1,
						     dist->segments[i + 1].first_rank + 1, theta);

		below += blkload_exp2_neg(most - w, BLKLOAD_WEIGHT_BITS);
		dist->segments[i].weight_sum = below;
	}
}

static void blkload_dist_build_pareto(struct blkload_dist *dist, u32 h)
{
	u64 one = blkload_log2(BLKLOAD_MILLION, BLKLOAD_LOG_BITS);
	u64 up = one - blkload_log2(BLKLOAD_MILLION - h, BLKLOAD_LOG_BITS);
	u64 down = one - blkload_log2(h, BLKLOAD_LOG_BITS);
	/* a = up / down with 32 bits; 0.01 <= h keeps @up below 2^52.8. */
	u64 a = div64_u64(up << 11, down >> 21);
	u64 logn = blkload_log2(dist->nr_ranks, BLKLOAD_LOG_BITS);
	u32 i;

	for (i = 0; i < dist->nr_segments; i++) {
		u64 end = dist->segments[i + 1].first_rank;
		u64 x = logn - blkload_log2(end, BLKLOAD_LOG_BITS);

		dist->segments[i].weight_sum =
			blkload_exp2_neg(mul_u64_u64_shr(x, a, 32),
					 BLKLOAD_EXP_BITS);
	}
}

/*
 * Return a factor near the golden section of n, so that neighbouring ranks lie
 * far apart, coprime to n, and small enough for products in 64 bits.
 */
static u64 blkload_dist_find_stride(u64 n)
{
	u64 stride = mul_u64_u64_shr(n, 0x9e3779b97f4a7c15ULL, 64);

	stride = min(stride, div64_u64(U64_MAX, n));
	while (stride > 1 && gcd(stride, n) != 1)
		stride--;
	return max(stride, 1ULL);
}

/**
 * blkload_dist_create - build the table of a distribution
 * @shape: BLKLOAD_ZIPF or BLKLOAD_PARETO
 * @arg: theta or h, in millionths, in the range blkload_parse_shape() allows
 * @n: number of ranks, not 0 and at most 2^54, the sectors of 2^63 bytes
 *
 * Context: May sleep.
 * Return: the distribution, to be freed with kvfree(), or NULL.
 */
struct blkload_dist *blkload_dist_create(enum blkload_shape shape, u32 arg,
					 u64 n)
{
	struct blkload_dist *dist;
	u64 rank;
	u32 nr = 0;

	for (rank = 1; rank <= n; rank = blkload_dist_segment_end(rank, n))
		nr++;
	dist = kvzalloc(struct_size(dist, segments, nr + 1), GFP_KERNEL);
	if (!dist)
		return NULL;
	nr = 0;
	for (rank = 1; rank <= n; rank = blkload_dist_segment_end(rank, n))
		dist->segments[nr++].first_rank = rank - 1;
	dist->segments[nr].first_rank = n;
	dist->nr_segments = nr;
	dist->nr_ranks = n;
	dist->stride = blkload_dist_find_stride(n);
	if (shape == BLKLOAD_ZIPF)
		blkload_dist_build_zipf(dist, arg);
	else
		blkload_dist_build_pareto(dist, arg);
	return dist;
}

/**
 * blkload_dist_draw_rank - draw a rank
 * @dist: the distribution
 * @rng: the stream
 *
 * Return: 0 .. n - 1, 0 being the first of the ranks.
 */
u64 blkload_dist_draw_rank(const struct blkload_dist *dist,
			   struct blkload_rng *rng)
{
	const struct blkload_segment *s = dist->segments;
	u64 want = blkload_rng_below(rng, s[dist->nr_segments - 1].weight_sum);
	u32 low = 0, high = dist->nr_segments - 1;

	/* The first segment whose sum is above @want. */
	while (low < high) {
		u32 mid = (low + high) / 2;

		if (s[mid].weight_sum > want)
			high = mid;
		else
			low = mid + 1;
	}
	return s[low].first_rank +
	       blkload_rng_below(rng,
				 s[low + 1].first_rank - s[low].first_rank);
}

/**
 * blkload_dist_draw_block - draw a block, with ranks spread over the region
 * @dist: the distribution
 * @rng: the stream
 *
 * Return: 0 .. n - 1.
 */
u64 blkload_dist_draw_block(const struct blkload_dist *dist,
			    struct blkload_rng *rng)
{
	u64 block;

	div64_u64_rem(blkload_dist_draw_rank(dist, rng) * dist->stride,
		      dist->nr_ranks, &block);
	return block;
}

/**
 * blkload_arrivals_init - start a schedule
 * @arrivals: the schedule
 * @begin: time to begin, ns. A linear schedule has its first arrival here, a
 *	Poisson process its first interval.
 * @rate: arrivals a second, 1 .. 10^9
 * @poisson: intervals are exponential
 * @rng: the stream
 */
void blkload_arrivals_init(struct blkload_arrivals *arrivals, u64 begin,
			   u64 rate, bool poisson, struct blkload_rng *rng)
{
	*arrivals = (struct blkload_arrivals){
		.next_ns = begin,
		.rate = rate,
		.poisson = poisson,
	};
	if (poisson) {
		arrivals->step = div64_u64((u64)NSEC_PER_SEC << BLKLOAD_ARRIVAL_FRAC_BITS, rate);
		blkload_arrivals_advance(arrivals, rng);
	} else {
		arrivals->step = div64_u64_rem(NSEC_PER_SEC, rate,
					       &arrivals->rem);
	}
}

/**
 * blkload_arrivals_advance - go to the next arrival
 * @arrivals: the schedule
 * @rng: the stream
 *
 * A linear schedule never drifts: arrival k is at k / rate, rounded down.
 */
void blkload_arrivals_advance(struct blkload_arrivals *arrivals,
			      struct blkload_rng *rng)
{
	u64 r, ln;

	if (!arrivals->poisson) {
		arrivals->next_ns += arrivals->step;
		arrivals->frac += arrivals->rem;
		if (arrivals->frac >= arrivals->rate) {
			arrivals->frac -= arrivals->rate;
			arrivals->next_ns++;
		}
		return;
	}
	/* -ln(r / 2^64); an odd r is not 0. */
	r = blkload_rng_next(rng) | 1;
	ln = mul_u64_u64_shr((64ULL << BLKLOAD_ARRIVAL_LOG_BITS) -
				     blkload_log2(r, BLKLOAD_ARRIVAL_LOG_BITS),
			     BLKLOAD_LN2, 64);
	arrivals->frac +=
		mul_u64_u64_shr(arrivals->step, ln, BLKLOAD_ARRIVAL_LOG_BITS);
	arrivals->next_ns += arrivals->frac >> BLKLOAD_ARRIVAL_FRAC_BITS;
	arrivals->frac &= (1U << BLKLOAD_ARRIVAL_FRAC_BITS) - 1;
}
