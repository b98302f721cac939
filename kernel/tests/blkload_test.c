// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of blkload: histogram, logarithms, distributions, arrivals, text forms of options,
 * and the addresses and times of a trace's records. Expected values were computed with 50 decimal
 * digits, sums over all ranks in full.
 *
 * The code under test is compiled into this module, which needs no other one.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/module.h>

#include "../load/dist.c"
#include "../load/parse.c"
#include "../load/record.c"
#include "../load/stats.h"

/* Every latency falls into a bucket whose bounds hold it, in order. */
static void blkload_hist_buckets_hold_their_latencies(struct kunit *test)
{
	u64 lower = 0;
	unsigned int b;

	for (b = 0; b < BLKLOAD_HIST_BUCKETS; b++) {
		u64 upper = blkload_hist_bucket_end(b);

		KUNIT_ASSERT_GT(test, upper, lower);
		KUNIT_ASSERT_EQ(test, blkload_hist_bucket(lower), b);
		KUNIT_ASSERT_EQ(test, blkload_hist_bucket(upper - 1), b);
		if (lower < 1U << BLKLOAD_HIST_EXACT_BITS)
			KUNIT_ASSERT_EQ(test, upper - lower, 1);
		else
			KUNIT_ASSERT_LE(test, (upper - lower) * 64, lower);
		lower = upper;
	}
	KUNIT_EXPECT_EQ(test, lower, 1ULL << BLKLOAD_HIST_TOP_BITS);
}

static void blkload_hist_clamps_long_latencies(struct kunit *test)
{
	static const u64 longest[] = { 1ULL << BLKLOAD_HIST_TOP_BITS, U64_MAX };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(longest); i++)
		KUNIT_EXPECT_EQ(test, blkload_hist_bucket(longest[i]),
				BLKLOAD_HIST_BUCKETS - 1);
}

static const struct {
	u64 x;
	u64 log;
} logs[] = {
	{ 1ULL, 0ULL },
	{ 2ULL, 281474976710656ULL },
	{ 3ULL, 446127282977750ULL },
	{ 5ULL, 653564656432238ULL },
	{ 10ULL, 935039633142894ULL },
	{ 1000ULL, 2805118899428682ULL },
	{ 1000000ULL, 5610237798857365ULL },
	{ 999999ULL, 5610237392774608ULL },
	{ 4294967295ULL, 9007199254646443ULL },
	{ 1099511627776ULL, 11258999068426240ULL },
	{ 1099511627777ULL, 11258999068426609ULL },
	{ 12345678901234567ULL, 15046204261006349ULL },
	{ 18446744073709551615ULL, 18014398509481983ULL },
};

static void blkload_log2_is_exact(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(logs); i++) {
		u64 log = blkload_log2(logs[i].x, BLKLOAD_LOG_BITS);

		/* Never too high, and at most one unit too low. */
		KUNIT_EXPECT_LE(test, log, logs[i].log);
		KUNIT_EXPECT_LE(test, logs[i].log - log, 1);
		KUNIT_EXPECT_LE(test, (logs[i].log >> 16) -
				blkload_log2(logs[i].x, 32), 1);
	}
}

static const struct {
	u64 x;
	u64 power;
} powers[] = {
	{ 0ULL, 4611686018427387904ULL },
	{ 70368744177664ULL, 5484249825272419511ULL },
	{ 140737488355328ULL, 6521908912666391106ULL },
	{ 211106232532992ULL, 7755900482342532474ULL },
	{ 93824992236885ULL, 5810360290122537191ULL },
	{ 278660226943549ULL, 9159661552424276048ULL },
};

static void blkload_exp2_is_exact(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(powers); i++) {
		s64 off = blkload_exp2(powers[i].x) - powers[i].power;

		KUNIT_EXPECT_LE(test, abs(off), 32);
	}
}

static void blkload_exp2_neg_scales(struct kunit *test)
{
	u64 one = 1ULL << BLKLOAD_LOG_BITS;

	KUNIT_EXPECT_EQ(test, blkload_exp2_neg(0, 50), 1ULL << 50);
	KUNIT_EXPECT_EQ(test, blkload_exp2_neg(10 * one, 50), 1ULL << 40);
	KUNIT_EXPECT_EQ(test, blkload_exp2_neg(50 * one, 50), 1);
	KUNIT_EXPECT_EQ(test, blkload_exp2_neg(51 * one, 50), 0);
	KUNIT_EXPECT_EQ(test, blkload_exp2_neg(500 * one, 50), 0);
	/* 2^-0.5 */
	KUNIT_EXPECT_EQ(test, blkload_exp2_neg(one / 2, 32), 3037000499ULL);
}

/* Probability of the first @ranks of @n ranks, in 2^-32. */
static const struct {
	enum blkload_shape shape;
	u32 arg;
	u64 n;
	u64 ranks;
	u32 probability;
} shapes[] = {
	{ BLKLOAD_ZIPF, 1200000, 1000, 1, 990590472U },
	{ BLKLOAD_ZIPF, 1200000, 1000, 2, 1421770019U },
	{ BLKLOAD_ZIPF, 1200000, 1000, 10, 2444493348U },
	{ BLKLOAD_ZIPF, 1200000, 1000, 63, 3379691440U },
	{ BLKLOAD_ZIPF, 1200000, 1000, 127, 3660681749U },
	{ BLKLOAD_ZIPF, 1200000, 1000, 511, 4116328320U },
	{ BLKLOAD_ZIPF, 1200000, 1000, 1000, 4294967295U },
	{ BLKLOAD_ZIPF, 800000, 1048576, 1, 56839954U },
	{ BLKLOAD_ZIPF, 800000, 1048576, 63, 399667826U },
	{ BLKLOAD_ZIPF, 800000, 1048576, 1023, 884458575U },
	{ BLKLOAD_ZIPF, 800000, 1048576, 65535, 2359445013U },
	{ BLKLOAD_ZIPF, 800000, 1048576, 524287, 3706334102U },
	{ BLKLOAD_ZIPF, 1000000, 1048576, 1, 297432117U },
	{ BLKLOAD_ZIPF, 1000000, 1048576, 63, 1406338141U },
	{ BLKLOAD_ZIPF, 1000000, 1048576, 1023, 2233179561U },
	{ BLKLOAD_ZIPF, 1000000, 1048576, 65535, 3470307949U },
	{ BLKLOAD_ZIPF, 1000000, 1048576, 524287, 4088802636U },
	{ BLKLOAD_ZIPF, 2500000, 100000, 1, 3201646038U },
	{ BLKLOAD_ZIPF, 2500000, 100000, 2, 3767622445U },
	{ BLKLOAD_ZIPF, 2500000, 100000, 3, 3973008134U },
	{ BLKLOAD_ZIPF, 2500000, 100000, 10, 4232322607U },
	{ BLKLOAD_ZIPF, 2500000, 100000, 1023, 4294902178U },
	{ BLKLOAD_PARETO, 200000, 1000, 1, 1648235294U },
	{ BLKLOAD_PARETO, 200000, 1000, 2, 1814496273U },
	{ BLKLOAD_PARETO, 200000, 1000, 10, 2268120341U },
	{ BLKLOAD_PARETO, 200000, 1000, 63, 2927468089U },
	{ BLKLOAD_PARETO, 200000, 1000, 127, 3226302166U },
	{ BLKLOAD_PARETO, 200000, 1000, 511, 3913211558U },
	{ BLKLOAD_PARETO, 200000, 1000, 1000, 4294967295U },
	{ BLKLOAD_PARETO, 100000, 1048576, 1, 2277573061U },
	{ BLKLOAD_PARETO, 100000, 1048576, 63, 2752996287U },
	{ BLKLOAD_PARETO, 100000, 1048576, 1023, 3127495355U },
	{ BLKLOAD_PARETO, 100000, 1048576, 65535, 3783223940U },
	{ BLKLOAD_PARETO, 100000, 1048576, 524287, 4160882445U },
	{ BLKLOAD_PARETO, 500000, 1048576, 1023, 4190208U },
	{ BLKLOAD_PARETO, 500000, 1048576, 524287, 2147479552U },
	{ BLKLOAD_PARETO, 300000, 1073741824, 1, 9069237U },
	{ BLKLOAD_PARETO, 300000, 1073741824, 1048575, 551014941U },
	{ BLKLOAD_PARETO, 300000, 1073741824, 536870911, 3497681216U },
};

static void blkload_shapes_match_exact_weights(struct kunit *test)
{
	unsigned int i;
	u32 s;

	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct blkload_dist *dist;
		u64 total, below = 0;
		s64 off;

		dist = blkload_dist_create(shapes[i].shape, shapes[i].arg,
					   shapes[i].n);
		KUNIT_ASSERT_NOT_NULL(test, dist);
		total = dist->segments[dist->nr_segments - 1].weight_sum;
		for (s = 0; s < dist->nr_segments; s++)
			if (dist->segments[s + 1].first_rank == shapes[i].ranks)
				below = dist->segments[s].weight_sum;
		KUNIT_EXPECT_NE(test, below, 0);
		/* 2^-32 of the whole; @total is at least 2^50. */
		off = div64_u64(below, total >> 32) - shapes[i].probability;
		KUNIT_EXPECT_LE_MSG(test, abs(off), 1U << 18,
				    "line %u of the table is off by %lld", i,
				    off);
		kvfree(dist);
	}
}

/* Segments cover all ranks, and no segment is wider than a 32nd. */
static void blkload_segments_are_narrow(struct kunit *test)
{
	static const u64 ns[] = { 1, 2, 63, 64, 65, 1000, 1 << 20, 1ULL << 40 };
	unsigned int i;
	u32 s;

	for (i = 0; i < ARRAY_SIZE(ns); i++) {
		struct blkload_dist *dist;

		dist = blkload_dist_create(BLKLOAD_ZIPF, 1200000, ns[i]);
		KUNIT_ASSERT_NOT_NULL(test, dist);
		KUNIT_EXPECT_EQ(test, dist->segments[0].first_rank, 0);
		KUNIT_EXPECT_EQ(test,
				dist->segments[dist->nr_segments].first_rank,
				ns[i]);
		for (s = 0; s < dist->nr_segments; s++) {
			u64 first = dist->segments[s].first_rank;
			u64 width = dist->segments[s + 1].first_rank - first;

			KUNIT_ASSERT_GT(test, width, 0);
			if (first < 63)
				KUNIT_ASSERT_EQ(test, width, 1);
			else
				KUNIT_ASSERT_LE(test, width * 32, first + 1);
		}
		kvfree(dist);
	}
}

/* Draws follow the weights: within five standard deviations. */
static void blkload_ranks_are_drawn_by_weight(struct kunit *test)
{
	enum { N = 1000, DRAWS = 1000000 };
	struct blkload_dist *dist;
	struct blkload_rng rng;
	u32 i, first = 0, ten = 0;

	dist = blkload_dist_create(BLKLOAD_ZIPF, 1200000, N);
	KUNIT_ASSERT_NOT_NULL(test, dist);
	blkload_rng_seed(&rng, 1, 0);
	for (i = 0; i < DRAWS; i++) {
		u64 rank = blkload_dist_draw_rank(dist, &rng);

		KUNIT_ASSERT_LT(test, rank, N);
		first += rank == 0;
		ten += rank < 10;
	}
	/* From the table: .230640 and .569153, deviations 421 and 495. */
	KUNIT_EXPECT_LE(test, abs((s32)first - 230640), 5 * 421);
	KUNIT_EXPECT_LE(test, abs((s32)ten - 569153), 5 * 495);
	kvfree(dist);
}

/* Every block has one rank. */
static void blkload_ranks_spread_over_all_blocks(struct kunit *test)
{
	static const u32 ns[] = { 1, 2, 6, 997, 1000, 4096, 65535 };
	unsigned long *seen;
	unsigned int i;
	u64 rank;

	seen = kunit_kcalloc(test, BITS_TO_LONGS(65535), sizeof(*seen),
			     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (i = 0; i < ARRAY_SIZE(ns); i++) {
		u64 stride = blkload_dist_find_stride(ns[i]);

		bitmap_zero(seen, 65535);
		for (rank = 0; rank < ns[i]; rank++)
			__set_bit(rank * stride % ns[i], seen);
		KUNIT_EXPECT_EQ(test, bitmap_weight(seen, 65535), ns[i]);
	}
	/* Products of a very large region stay inside 64 bits. */
	KUNIT_EXPECT_LE(test, blkload_dist_find_stride(1ULL << 48),
			U64_MAX >> 48);
	KUNIT_EXPECT_EQ(test, gcd(blkload_dist_find_stride(1ULL << 48), 1ULL << 48), 1);
}

static void blkload_streams_differ_by_seed_and_job(struct kunit *test)
{
	struct blkload_rng a, b;

	blkload_rng_seed(&a, 1, 0);
	blkload_rng_seed(&b, 1, 0);
	KUNIT_EXPECT_EQ(test, blkload_rng_next(&a), blkload_rng_next(&b));
	blkload_rng_seed(&b, 1, 1);
	KUNIT_EXPECT_NE(test, blkload_rng_next(&a), blkload_rng_next(&b));
	blkload_rng_seed(&b, 2, 0);
	KUNIT_EXPECT_NE(test, blkload_rng_next(&a), blkload_rng_next(&b));
}

/* Arrival k is at k / rate, rounded down, however large k. */
static void blkload_linear_arrivals_never_drift(struct kunit *test)
{
	static const u64 rates[] = { 1, 3, 7, 1000, 999983, NSEC_PER_SEC };
	struct blkload_arrivals a;
	struct blkload_rng rng;
	unsigned int i;
	u64 k;

	blkload_rng_seed(&rng, 1, 0);
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		blkload_arrivals_init(&a, 12345, rates[i], false, &rng);
		for (k = 0; k < 10000; k++) {
			KUNIT_ASSERT_EQ(test, a.next_ns,
					12345 + div64_u64(k * NSEC_PER_SEC,
							  rates[i]));
			blkload_arrivals_advance(&a, &rng);
		}
	}
}

/*
 * The sum of n intervals with mean m has a deviation of m sqrt(n). The number of intervals above m
 * is e^-1 of them, with a deviation of sqrt(n (1 - 1/e) / e).
 */
static void blkload_poisson_arrivals_are_exponential(struct kunit *test)
{
	enum { N = 1000000, MEAN = 10000 };
	u64 last = 0, above = 0;
	struct blkload_arrivals a;
	struct blkload_rng rng;
	u32 i;

	blkload_rng_seed(&rng, 1, 0);
	blkload_arrivals_init(&a, 0, NSEC_PER_SEC / MEAN, true, &rng);
	for (i = 0; i < N; i++) {
		KUNIT_ASSERT_GE(test, a.next_ns, last);
		above += a.next_ns - last > MEAN;
		last = a.next_ns;
		blkload_arrivals_advance(&a, &rng);
	}
	KUNIT_EXPECT_LE(test, abs((s64)last - (s64)N * MEAN), 5 * MEAN * 1000);
	KUNIT_EXPECT_LE(test, abs((s64)above - 367879), 5 * 483);
}

static const struct {
	const char *text;
	int ret;
	u64 bytes;
} sizes[] = {
	{ "0", 0, 0 },
	{ "4096", 0, 4096 },
	{ "4k", 0, 4096 },
	{ "4K", 0, 4096 },
	{ "3m", 0, 3 << 20 },
	{ "2g", 0, 2ULL << 30 },
	{ "8589934591g", -ERANGE, 0 },
	{ "17179869184g", -ERANGE, 0 },
	{ "18446744073709551615", -ERANGE, 0 },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "k", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ "4kb", -EINVAL, 0 },
	{ "4 k", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
};

static void blkload_sizes_are_parsed(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 bytes = 77;

		KUNIT_EXPECT_EQ_MSG(test, sizes[i].ret,
				    blkload_parse_bytes(sizes[i].text, 0,
							1ULL << 62, &bytes),
				    "'%s'", sizes[i].text);
		KUNIT_EXPECT_EQ_MSG(test, bytes,
				    sizes[i].ret ? 77 : sizes[i].bytes,
				    "'%s'", sizes[i].text);
	}
}

static const struct {
	const char *text;
	int ret;
	u64 ns;
	const char *printed;
} times[] = {
	{ "0", 0, 0, "0" },
	{ "10", 0, 10000, "10" },
	{ "10us", 0, 10000, "10" },
	{ "10ns", 0, 10, "10ns" },
	{ "3ms", 0, 3000000, "3000" },
	{ "2s", 0, 2000000000, "2000000" },
	{ "1500ns", 0, 1500, "1500ns" },
	{ "18446744073709551615s", -ERANGE, 0, NULL },
	{ "100000001s", -ERANGE, 0, NULL },
	{ "", -EINVAL, 0, NULL },
	{ "s", -EINVAL, 0, NULL },
	{ "1m", -EINVAL, 0, NULL },
	{ "1.5s", -EINVAL, 0, NULL },
	{ "1 s", -EINVAL, 0, NULL },
};

static void blkload_times_are_parsed_and_printed(struct kunit *test)
{
	unsigned int i;
	char buf[32];

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		const char *text = times[i].text;
		u64 ns = 77;

		KUNIT_EXPECT_EQ_MSG(test, times[i].ret,
				    blkload_parse_time(text, NSEC_PER_USEC, 0,
						       BLKLOAD_TIME_NS_MAX,
						       &ns),
				    "'%s'", text);
		KUNIT_EXPECT_EQ_MSG(test, ns, times[i].ret ? 77 : times[i].ns,
				    "'%s'", text);
		if (times[i].ret)
			continue;
		blkload_format_time(buf, sizeof(buf), ns, NSEC_PER_USEC);
		KUNIT_EXPECT_STREQ(test, buf, times[i].printed);
	}
}

static const struct {
	const char *text;
	int ret;
	const char *printed;
	u32 min;
	u32 max;
} splits[] = {
	{ "4k/100", 0, "4096/100", 4096, 4096 },
	{ "64k/10:512/90", 0, "65536/10:512/90", 512, 65536 },
	{ "", 0, "", 8192, 8192 },
	{ "4k/50:8k/49", -ERANGE, NULL, 0, 0 },
	{ "4k/50:8k/51", -ERANGE, NULL, 0, 0 },
	{ "4k/0:8k/100", -ERANGE, NULL, 0, 0 },
	{ "33m/100", -ERANGE, NULL, 0, 0 },
	{ "0/100", -ERANGE, NULL, 0, 0 },
	{ "513/100", -EINVAL, NULL, 0, 0 },
	{ "4k", -EINVAL, NULL, 0, 0 },
	{ "4k/", -EINVAL, NULL, 0, 0 },
	{ "4k/100:", -EINVAL, NULL, 0, 0 },
	{ ":4k/100", -EINVAL, NULL, 0, 0 },
	{ "4k/50,8k/50", -EINVAL, NULL, 0, 0 },
	{ "4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/1:4k/84",
	  -ERANGE, NULL, 0, 0 },
};

static void blkload_splits_are_parsed_and_printed(struct kunit *test)
{
	struct blkload_opts *opts;
	char buf[128];
	unsigned int i;

	opts = kunit_kzalloc(test, sizeof(*opts), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, opts);
	for (i = 0; i < ARRAY_SIZE(splits); i++) {
		blkload_opts_init(opts);
		opts->bs = 8192;
		opts->range_low = 1024;
		opts->range_high = 2048;
		KUNIT_EXPECT_EQ_MSG(test, splits[i].ret,
				    blkload_parse_split(splits[i].text, opts),
				    "'%s'", splits[i].text);
		if (splits[i].ret) {
			KUNIT_EXPECT_EQ(test, opts->nr_splits, 0);
			KUNIT_EXPECT_EQ(test, opts->range_low, 1024);
			continue;
		}
		KUNIT_EXPECT_EQ(test, blkload_get_bs_min(opts), splits[i].min);
		KUNIT_EXPECT_EQ(test, blkload_get_bs_max(opts), splits[i].max);
		buf[0] = '\0';
		blkload_format_split(buf, sizeof(buf), opts);
		KUNIT_EXPECT_STREQ(test, buf, splits[i].printed);
	}
}

static const struct {
	const char *text;
	int ret;
	u32 low;
	u32 max;
} ranges[] = {
	{ "4k-64k", 0, 4096, 65536 },
	{ "4k-4k", 0, 4096, 4096 },
	/* The largest multiple of LOW. */
	{ "4k-10k", 0, 4096, 8192 },
	{ "", 0, 0, 4096 },
	{ "8k-4k", -ERANGE, 0, 0 },
	{ "4k-33m", -ERANGE, 0, 0 },
	{ "4k", -EINVAL, 0, 0 },
	{ "4k-", -EINVAL, 0, 0 },
	{ "-4k", -EINVAL, 0, 0 },
	{ "4k-8k-12k", -EINVAL, 0, 0 },
	{ "4k:8k", -EINVAL, 0, 0 },
	{ "100-1000", -ERANGE, 0, 0 },
};

static void blkload_ranges_are_parsed(struct kunit *test)
{
	struct blkload_opts *opts;
	unsigned int i;

	opts = kunit_kzalloc(test, sizeof(*opts), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, opts);
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		blkload_opts_init(opts);
		KUNIT_EXPECT_EQ_MSG(test, ranges[i].ret,
				    blkload_parse_range(ranges[i].text, opts),
				    "'%s'", ranges[i].text);
		KUNIT_EXPECT_EQ(test, opts->range_low, ranges[i].low);
		if (!ranges[i].ret)
			KUNIT_EXPECT_EQ(test, blkload_get_bs_max(opts),
					ranges[i].max);
	}
}

static const struct {
	const char *text;
	int ret;
	const char *printed;
} distributions[] = {
	{ "random", 0, "random" },
	{ "zipf:1.2", 0, "zipf:1.2" },
	{ "zipf:1", 0, "zipf:1.0" },
	{ "zipf:0.010000", 0, "zipf:0.01" },
	{ "zipf:0.123456", 0, "zipf:0.123456" },
	{ "zipf:10", 0, "zipf:10.0" },
	{ "pareto:0.20", 0, "pareto:0.2" },
	{ "pareto:0.99", 0, "pareto:0.99" },
	{ "zipf:0", -ERANGE, NULL },
	{ "zipf:10.1", -ERANGE, NULL },
	{ "zipf:99999999999999999999", -ERANGE, NULL },
	{ "pareto:1", -ERANGE, NULL },
	{ "pareto:0.001", -ERANGE, NULL },
	{ "zipf:0.1234567", -EINVAL, NULL },
	{ "zipf:", -EINVAL, NULL },
	{ "zipf:1.", -EINVAL, NULL },
	{ "zipf:.5", -EINVAL, NULL },
	{ "zipf", -EINVAL, NULL },
	{ "random:1", -EINVAL, NULL },
	{ "", -EINVAL, NULL },
};

static void blkload_distributions_are_parsed_and_printed(struct kunit *test)
{
	struct blkload_opts *opts;
	unsigned int i;
	char buf[32];

	opts = kunit_kzalloc(test, sizeof(*opts), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, opts);
	for (i = 0; i < ARRAY_SIZE(distributions); i++) {
		blkload_opts_init(opts);
		KUNIT_EXPECT_EQ_MSG(test, distributions[i].ret,
				    blkload_parse_shape(distributions[i].text,
							opts),
				    "'%s'", distributions[i].text);
		blkload_format_shape(buf, sizeof(buf), opts);
		KUNIT_EXPECT_STREQ(test, buf, distributions[i].ret ? "random" :
				   distributions[i].printed);
	}
}

static const struct {
	u64 time;
	u64 speed;
	u64 due;
} speeds[] = {
	{ 0, 1000, 0 },
	{ 12345, 1000, 12345 },
	{ 12345, 2000, 6172 },
	{ 1, 3000, 0 },
	{ 12345, 500, 24690 },
	{ 1000000007, 10, 100000000700ULL },
	/* The product has more than 64 bits. */
	{ BLKLOAD_TIME_NS_MAX, 1000, BLKLOAD_TIME_NS_MAX },
	{ BLKLOAD_TIME_NS_MAX, 1000000, BLKLOAD_TIME_NS_MAX / 1000 },
	{ BLKLOAD_TIME_NS_MAX / 100, 1, 10 * BLKLOAD_TIME_NS_MAX },
	{ BLKLOAD_TIME_NS_MAX, 1, BLKLOAD_NEVER_NS },
	{ U64_MAX, 1000, BLKLOAD_NEVER_NS },
	/* Nanoseconds that were mistaken for milliseconds, and for seconds. */
	{ 60000000000000001ULL, 1000000000, 60000000000ULL },
	{ 7999999999ULL, 1000000000000ULL, 7 },
	{ U64_MAX, 1000000000000ULL, U64_MAX / 1000000000 },
};

static void blkload_trace_times_scale_with_speed(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++)
		KUNIT_EXPECT_EQ(test, speeds[i].due,
				blkload_scale_time(speeds[i].time,
						   speeds[i].speed));
	/* Ten records at 0, 100 .. 900: the next is due at 1000. */
	KUNIT_EXPECT_EQ(test, blkload_trace_period_ns(10, 900), 1000);
	KUNIT_EXPECT_EQ(test, blkload_trace_period_ns(2, 5), 10);
	KUNIT_EXPECT_EQ(test, blkload_trace_period_ns(2, 0), 0);
	KUNIT_EXPECT_EQ(test, blkload_trace_period_ns(1, 0), 0);
}

#define RD	BLKLOAD_READ
#define WR	BLKLOAD_WRITE
#define TR	BLKLOAD_TRIM
#define MIB	BIT_ULL(20)

/* @end_pos: end of the trace if its addresses are scaled, 0 if they are wrapped. */
static const struct {
	u32 block;
	u64 region;
	u64 end;
	enum blkload_op op;
	u32 bytes;
	u64 offset;
	struct blkload_place place;
} places[] = {
	/* Unchanged. */
	{ 512, MIB, 0, RD, 4096, 0, { 0, 4096 } },
	{ 512, MIB, 0, RD, 4096, MIB - 4096, { MIB - 4096, 4096 } },
	{ 4096, MIB, 0, RD, 4096, 8192, { 8192, 4096 } },
	/* Wrapped; the last request keeps its size and moves forward. */
	{ 512, MIB, 0, RD, 4096, MIB, { 0, 4096, .moved = true } },
	{ 512, MIB, 0, RD, 4096, 5 * MIB + 512, { 512, 4096, .moved = true } },
	{ 512, MIB, 0, RD, 4096, 2 * MIB - 512,
	  { MIB - 4096, 4096, .moved = true } },
	{ 512, MIB, 0, RD, 4096, MIB - 512,
	  { MIB - 4096, 4096, .moved = true } },
	/* A region of 3 blocks, which is not a power of 2. */
	{ 4096, 12288, 0, RD, 4096, 40960, { 4096, 4096, .moved = true } },
	{ 512, MIB, 0, RD, 4096, BIT_ULL(63) - 512,
	  { MIB - 4096, 4096, .moved = true } },
	/* Rounded to whole blocks. */
	{ 4096, MIB, 0, RD, 512, 4096, { 4096, 4096, .rounded = true } },
	{ 4096, MIB, 0, WR, 4096, 512, { 0, 8192, .rounded = true } },
	{ 512, MIB, 0, RD, 1, 1023, { 512, 512, .rounded = true } },
	{ 512, MIB, 0, RD, 0, 1024, { 1024, 512, .rounded = true } },
	/* Too long for the region, or for the generator; a trim is not. */
	{ 512, 8192, 0, RD, 16384, 0, { 0, 8192, .clipped = true } },
	{ 512, 8192, 0, RD, 16384, 512,
	  { 0, 8192, .clipped = true, .moved = true } },
	{ 512, 1024 * MIB, 0, WR, 64 * MIB, 512,
	  { 512, 32 * MIB, .clipped = true } },
	{ 512, 1024 * MIB, 0, TR, 64 * MIB, 512, { 512, 64 * MIB } },
	{ 4096, 8192 * MIB, 0, TR, U32_MAX, 0,
	  { 0, U32_MAX - 4095, .rounded = true, .clipped = true } },
	/* Scaled down and up; the ends stay ends. */
	{ 512, MIB, 4 * MIB, RD, 4096, 0, { 0, 4096 } },
	{ 512, MIB, 4 * MIB, RD, 4096, MIB, { MIB / 4, 4096, .moved = true } },
	{ 512, MIB, 4 * MIB, RD, 4096, 4 * MIB - 4096,
	  { MIB - 4096, 4096, .moved = true } },
	{ 512, 8 * MIB, MIB, RD, 4096, MIB / 2,
	  { 4 * MIB, 4096, .moved = true } },
	{ 512, MIB, MIB, RD, 4096, MIB / 2, { MIB / 2, 4096 } },
	/* The product has more than 64 bits. */
	{ 512, 1ULL << 60, BIT_ULL(62), RD, 4096, 1ULL << 61,
	  { 1ULL << 59, 4096, .moved = true } },
};

static void blkload_requests_map_to_the_region(struct kunit *test)
{
	struct blkload_place place;
	struct blkload_fit fit;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		blkload_fit_init(&fit, places[i].block, places[i].region,
				 places[i].end, places[i].end);
		blkload_fit_map(&fit, places[i].op, places[i].offset,
				places[i].bytes, &place);
		KUNIT_EXPECT_EQ_MSG(test, places[i].place.offset, place.offset,
				    "%u", i);
		KUNIT_EXPECT_EQ_MSG(test, places[i].place.bytes, place.bytes,
				    "%u", i);
		KUNIT_EXPECT_EQ_MSG(test, places[i].place.rounded,
				    place.rounded, "%u", i);
		KUNIT_EXPECT_EQ_MSG(test, places[i].place.clipped,
				    place.clipped, "%u", i);
		KUNIT_EXPECT_EQ_MSG(test, places[i].place.moved, place.moved,
				    "%u", i);
	}
}

/* Any record of a trace gives a request of whole blocks inside the region. */
static void blkload_no_request_leaves_the_region(struct kunit *test)
{
	struct blkload_rng rng;
	unsigned int i;

	blkload_rng_seed(&rng, 7, 0);
	for (i = 0; i < 100000; i++) {
		u32 block = 512U << blkload_rng_below(&rng, 4);
		u64 region = block + blkload_rng_below(&rng, 1ULL << 30);
		u64 end = 1 + blkload_rng_below(&rng, 1ULL << 40);
		u64 offset = blkload_rng_below(&rng, end);
		u32 bytes = blkload_rng_below(&rng, min(end - offset + 1,
							1ULL << 32));
		enum blkload_op op = blkload_rng_below(&rng, BLKLOAD_FLUSH);
		struct blkload_place place;
		struct blkload_fit fit;

		blkload_fit_init(&fit, block, region, end,
				 blkload_rng_below(&rng, 2));
		blkload_fit_map(&fit, op, offset, bytes, &place);
		KUNIT_ASSERT_EQ(test, place.offset % block, 0);
		KUNIT_ASSERT_EQ(test, place.bytes % block, 0);
		KUNIT_ASSERT_GT(test, place.bytes, 0);
		KUNIT_ASSERT_LE(test, place.offset + place.bytes, region);
		if (op != BLKLOAD_TRIM)
			KUNIT_ASSERT_LE(test, place.bytes, BLKLOAD_BS_MAX);
		if (!place.clipped)
			KUNIT_ASSERT_GE(test, place.bytes, bytes);
	}
}

static const struct blkload_header good_header = {
	.magic = { 'I', 'S', 'O', 'T', 'R', 'A', 'C', 'E' },
	.version = cpu_to_le32(1),
	.record_size = cpu_to_le32(24),
	.records = cpu_to_le64(2),
	.span = cpu_to_le64(100),
	.end = cpu_to_le64(8192),
};

static void blkload_headers_are_checked(struct kunit *test)
{
	struct blkload_header header = good_header;
	struct blkload_facts facts = {};
	u64 size = 64 + 2 * 24;

	KUNIT_EXPECT_NULL(test, blkload_header_check(&header, size, &facts));
	KUNIT_EXPECT_EQ(test, facts.nr_records, 2);
	KUNIT_EXPECT_EQ(test, facts.span_ns, 100);
	KUNIT_EXPECT_EQ(test, facts.end_pos, 8192);
	KUNIT_EXPECT_NOT_NULL(test, blkload_header_check(&header, size - 1,
							 &facts));
	KUNIT_EXPECT_NOT_NULL(test, blkload_header_check(&header, size + 1,
							 &facts));
	/* Times 24, this wraps to 2 * 24. */
	header.records = cpu_to_le64((1ULL << 61) + 2);
	KUNIT_EXPECT_NOT_NULL(test, blkload_header_check(&header, size,
							 &facts));
	header.records = 0;
	KUNIT_EXPECT_NOT_NULL(test, blkload_header_check(&header, 64, &facts));
	header = good_header;
	header.magic[7] = 0;
	KUNIT_EXPECT_NOT_NULL(test, blkload_header_check(&header, size,
							 &facts));
	header = good_header;
	header.version = cpu_to_le32(2);
	KUNIT_EXPECT_NOT_NULL(test, blkload_header_check(&header, size,
							 &facts));
	header = good_header;
	header.record_size = cpu_to_le32(32);
	KUNIT_EXPECT_NOT_NULL(test, blkload_header_check(&header, size,
							 &facts));
	header = good_header;
	header.span = cpu_to_le64(BLKLOAD_TIME_NS_MAX + 1);
	KUNIT_EXPECT_NOT_NULL(test, blkload_header_check(&header, size,
							 &facts));
}

static const struct {
	u64 time;
	u64 offset;
	u32 bytes;
	u8 op;
	bool good;
} records[] = {
	{ 50, 0, 8192, BLKLOAD_READ, true },
	{ 50, 4096, 4096, BLKLOAD_WRITE, true },
	{ 100, 8191, 1, BLKLOAD_TRIM, true },
	/* The address of a flush has no meaning. */
	{ 100, U64_MAX, U32_MAX, BLKLOAD_FLUSH, true },
	{ 100, 0, 4096, 4, false },
	{ 101, 0, 4096, BLKLOAD_READ, false },
	{ 49, 0, 4096, BLKLOAD_READ, false },
	{ 100, 8191, 2, BLKLOAD_READ, false },
	{ 100, 8193, 0, BLKLOAD_READ, false },
	{ 100, U64_MAX, 2, BLKLOAD_READ, false },
};

static void blkload_records_are_checked(struct kunit *test)
{
	const struct blkload_facts before = { .span_ns = 100,
					      .end_pos = 8192,
					      .last_time_ns = 50 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(records); i++) {
		struct blkload_record record = {
			.time = cpu_to_le64(records[i].time),
			.offset = cpu_to_le64(records[i].offset),
			.bytes = cpu_to_le32(records[i].bytes),
			.op = records[i].op,
		};
		struct blkload_facts facts = before;
		const char *wrong = blkload_record_check(&record, &facts);

		KUNIT_EXPECT_EQ_MSG(test, !wrong, records[i].good, "%u", i);
		if (wrong)
			continue;
		KUNIT_EXPECT_EQ(test, facts.last_time_ns, records[i].time);
		KUNIT_EXPECT_EQ(test, facts.ops, BIT(records[i].op));
		KUNIT_EXPECT_EQ(test, facts.bytes_max,
				records[i].op <= BLKLOAD_WRITE ? records[i].bytes : 0);
	}
}

static struct kunit_case blkload_cases[] = {
	KUNIT_CASE(blkload_hist_buckets_hold_their_latencies),
	KUNIT_CASE(blkload_hist_clamps_long_latencies),
	KUNIT_CASE(blkload_log2_is_exact),
	KUNIT_CASE(blkload_exp2_is_exact),
	KUNIT_CASE(blkload_exp2_neg_scales),
	KUNIT_CASE(blkload_shapes_match_exact_weights),
	KUNIT_CASE(blkload_segments_are_narrow),
	KUNIT_CASE(blkload_ranks_are_drawn_by_weight),
	KUNIT_CASE(blkload_ranks_spread_over_all_blocks),
	KUNIT_CASE(blkload_streams_differ_by_seed_and_job),
	KUNIT_CASE(blkload_linear_arrivals_never_drift),
	KUNIT_CASE(blkload_poisson_arrivals_are_exponential),
	KUNIT_CASE(blkload_sizes_are_parsed),
	KUNIT_CASE(blkload_times_are_parsed_and_printed),
	KUNIT_CASE(blkload_splits_are_parsed_and_printed),
	KUNIT_CASE(blkload_ranges_are_parsed),
	KUNIT_CASE(blkload_distributions_are_parsed_and_printed),
	KUNIT_CASE(blkload_trace_times_scale_with_speed),
	KUNIT_CASE(blkload_requests_map_to_the_region),
	KUNIT_CASE(blkload_no_request_leaves_the_region),
	KUNIT_CASE(blkload_headers_are_checked),
	KUNIT_CASE(blkload_records_are_checked),
	{}
};

static struct kunit_suite blkload_suite = {
	.name = "blkload",
	.test_cases = blkload_cases,
};

kunit_test_suite(blkload_suite);

MODULE_DESCRIPTION("Tests of blkload's arithmetic");
MODULE_LICENSE("GPL");
