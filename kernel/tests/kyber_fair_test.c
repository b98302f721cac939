// SPDX-License-Identifier: GPL-2.0-only
/*
 * kyber-fair's latency buckets and percentiles, and P3's next budget.
 *
 * The code under test is compiled into this module; the code that it shares with other schedulers
 * is isoblk_share's.
 */
#include <kunit/test.h>

#include "part_of_test.h"

#include "../sched/kyber-fair.c"

#define TARGET_NS	2000000ULL

static void kyber_fair_latency_buckets_are_quarters_of_the_target(struct kunit *test)
{
	static const struct {
		u64 ns;
		unsigned int bucket;
	} latencies[] = {
		{ 0, 0 },
		{ TARGET_NS / 4 - 1, 0 },
		{ TARGET_NS / 4, 1 },
		{ TARGET_NS - 1, KF_GOOD_BUCKETS - 1 },
		{ TARGET_NS, KF_GOOD_BUCKETS },
		{ 2 * TARGET_NS - 1, KF_BUCKETS - 1 },
		{ 2 * TARGET_NS, KF_BUCKETS - 1 },
		{ 3600 * NSEC_PER_SEC, KF_BUCKETS - 1 },
	};
	u32 buckets[KF_BUCKETS];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(latencies); i++) {
		memset(buckets, 0, sizeof(buckets));
		buckets[kf_bucket(latencies[i].ns, TARGET_NS)]++;
		KUNIT_EXPECT_EQ_MSG(test, buckets[latencies[i].bucket], 1,
				    "%llu ns", latencies[i].ns);
	}
}

static void kyber_fair_percentiles_are_nearest_ranks(struct kunit *test)
{
	u32 buckets[KF_BUCKETS] = { };

	/* Too few completions for a percentile. */
	KUNIT_EXPECT_EQ(test, kf_percentile(buckets, 99), -1);
	buckets[0] = KF_COMPLETIONS_MIN - 1;
	KUNIT_EXPECT_EQ(test, kf_percentile(buckets, 99), -1);

	buckets[0] = 990;
	buckets[6] = 10;
	KUNIT_EXPECT_EQ(test, kf_percentile(buckets, 99), 0);
	buckets[0] = 989;
	buckets[6] = 11;
	KUNIT_EXPECT_EQ(test, kf_percentile(buckets, 99), 6);
	KUNIT_EXPECT_EQ(test, kf_percentile(buckets, 90), 0);

	memset(buckets, 0, sizeof(buckets));
	buckets[KF_BUCKETS - 1] = KF_COMPLETIONS_MIN;
	KUNIT_EXPECT_EQ(test, kf_percentile(buckets, 90), KF_BUCKETS - 1);
}

/* B = used * interval / T - left, and never below 0. */
static void kyber_fair_paper_mode_has_the_papers_next_budget(struct kunit *test)
{
	static const struct {
		u64 used, elapsed_ns;
		s64 left;
		u64 round;
	} rounds[] = {
		{ 8000, 100000000, 0, 8000 },
		{ 8000, 50000000, 0, 16000 },
		{ 8000, 100000000, 3000, 5000 },
		{ 8000, 100000000, -3000, 11000 },
		{ 8000, 100000000, 9000, 0 },
		/* 2^40 sectors in a second: no overflow. */
		{ 1ULL << 40, 1000000000, 0, (1ULL << 40) / 10 },
	};
	struct kf_disk *kf = kunit_kzalloc(test, sizeof(*kf), GFP_KERNEL);
	struct budget_round r = { };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, kf);
	kf->budget.paper_mode = true;
	kf->refill_ms = 100;
	for (i = 0; i < ARRAY_SIZE(rounds); i++) {
		r.used = rounds[i].used;
		r.elapsed_ns = rounds[i].elapsed_ns;
		r.left = rounds[i].left;
		KUNIT_EXPECT_EQ_MSG(test, kf_round(&kf->budget, &r),
				    rounds[i].round, "round %u", i);
	}
}

static void kyber_fair_operations_have_their_domains(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kf_domain(REQ_OP_READ | REQ_RAHEAD), KF_READ);
	KUNIT_EXPECT_EQ(test, kf_domain(REQ_OP_WRITE | REQ_FUA), KF_WRITE);
	KUNIT_EXPECT_EQ(test, kf_domain(REQ_OP_DISCARD), KF_DISCARD);
	KUNIT_EXPECT_EQ(test, kf_domain(REQ_OP_FLUSH), KF_OTHER);
	KUNIT_EXPECT_EQ(test, kf_domain(REQ_OP_WRITE_ZEROES), KF_OTHER);
	KUNIT_EXPECT_EQ(test, kf_domain(REQ_OP_SECURE_ERASE), KF_OTHER);
}

static struct kunit_case kyber_fair_cases[] = {
	KUNIT_CASE(kyber_fair_latency_buckets_are_quarters_of_the_target),
	KUNIT_CASE(kyber_fair_percentiles_are_nearest_ranks),
	KUNIT_CASE(kyber_fair_paper_mode_has_the_papers_next_budget),
	KUNIT_CASE(kyber_fair_operations_have_their_domains),
	{}
};

static struct kunit_suite kyber_fair_suite = {
	.name = "kyber_fair_test",
	.test_cases = kyber_fair_cases,
};

kunit_test_suite(kyber_fair_suite);

MODULE_DESCRIPTION("Tests of kyber-fair's percentiles and budgets");
MODULE_LICENSE("GPL");
