// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop that learns what requests cost, against devices whose costs are known.
 *
 * The code under test is compiled into this module. It needs no other one.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../sched/price.c"

#define UNIT		16
#define SECTORS		8
#define SPAN		(20 * NSEC_PER_MSEC)

/**
 * struct device - what a request of each kind takes, ns; 0: there are none
 * @ns: without noise
 * @noise: percent by which the device is faster or slower in an epoch, at most
 * @fixed: requests an epoch of reads, whatever they are charged; 0: by share
 */
struct device {
	u64 ns[PRICE_KINDS];
	unsigned int noise;
	u64 fixed;
};

static u64 charged(const struct prices *p, enum price_kind kind)
{
	struct price price = prices_now(p, kind);

	return price.request + (u64)SECTORS * price.sector;
}

/*
 * Who sends requests of a kind gets as much work, by what is charged, as everybody
 * else; and all together keep the device busy.
 */
static void epoch(struct prices *p, const struct device *dev, u32 *random)
{
	struct price_sums done = {};
	u64 span = SPAN, each = 0;
	enum price_kind kind;

	*random = *random * 1103515245 + 12345;
	if (dev->noise)
		span = div_u64(SPAN * (100 - dev->noise + (*random >> 16) %
				       (2 * dev->noise)), 100);
	if (dev->fixed)
		span -= dev->fixed * dev->ns[PRICE_READ];
	for (kind = 0; kind < PRICE_KINDS; kind++)
		if (dev->ns[kind] && !(dev->fixed && kind == PRICE_READ))
			each += div64_u64(dev->ns[kind] << 32, charged(p, kind));
	for (kind = 0; kind < PRICE_KINDS; kind++) {
		if (!dev->ns[kind])
			continue;
		done.nr[kind] = dev->fixed && kind == PRICE_READ ?
			dev->fixed : mul_u64_u64_div_u64(span, 1ULL << 32,
							 each * charged(p, kind));
		done.sectors[kind] = kind == PRICE_DISCARD ? 0 : done.nr[kind] * SECTORS;
	}
	prices_epoch(p, &done, SPAN);
}

static void learn(struct prices *p, const struct device *dev, unsigned int epochs)
{
	u32 random = 1;

	while (epochs--)
		epoch(p, dev, &random);
}

/* How often @b costs what @a costs, in hundredths. */
static u64 ratio(const struct prices *p, enum price_kind a, enum price_kind b)
{
	struct price x = p->of[a], y = p->of[b];

	return div64_u64(100 * (y.request + (u64)SECTORS * y.sector),
			 x.request + (u64)SECTORS * x.sector);
}

static void it_begins_with_bytes(struct kunit *test)
{
	struct prices p;

	prices_init(&p, UNIT);
	KUNIT_EXPECT_EQ(test, prices_now(&p, 0).request, 0);
	KUNIT_EXPECT_EQ(test, prices_now(&p, 0).sector, UNIT * PRICE_ONE);
	KUNIT_EXPECT_EQ(test, ratio(&p, PRICE_READ, PRICE_WRITE), 100);
}

static void where_all_are_alike_it_stays_bytes(struct kunit *test)
{
	static const struct device dev = { .ns = { [PRICE_READ] = 3000 } };
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, &dev, 2000);
	KUNIT_EXPECT_FALSE(test, p.trying);
	KUNIT_EXPECT_EQ(test, p.of[0].request, 0);
	KUNIT_EXPECT_EQ(test, p.of[0].sector, UNIT * PRICE_ONE);
}

static void writes_that_cost_ten_times_as_much_are_found_out(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 30000 },
	};
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, &dev, 1000);
	KUNIT_EXPECT_GE(test, ratio(&p, PRICE_READ, PRICE_WRITE), 850);
	KUNIT_EXPECT_LE(test, ratio(&p, PRICE_READ, PRICE_WRITE), 1150);
}

static void writes_that_cost_a_tenth_are_found_out(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 30000, [PRICE_WRITE] = 3000 },
	};
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, &dev, 1000);
	KUNIT_EXPECT_GE(test, ratio(&p, PRICE_WRITE, PRICE_READ), 850);
	KUNIT_EXPECT_LE(test, ratio(&p, PRICE_WRITE, PRICE_READ), 1150);
}

static void a_device_that_is_uneven_is_found_out_all_the_same(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 15000 },
		.noise = 20,
	};
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, &dev, 4000);
	KUNIT_EXPECT_GE(test, ratio(&p, PRICE_READ, PRICE_WRITE), 350);
	KUNIT_EXPECT_LE(test, ratio(&p, PRICE_READ, PRICE_WRITE), 700);
}

static void discards_have_a_price_of_their_own(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_DISCARD] = 30000 },
	};
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, &dev, 1000);
	KUNIT_EXPECT_GE(test, ratio(&p, PRICE_READ, PRICE_DISCARD), 850);
	KUNIT_EXPECT_LE(test, ratio(&p, PRICE_READ, PRICE_DISCARD), 1150);
}

static void who_minds_no_price_keeps_it(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 30000 },
		.fixed = 2000,
	};
	struct prices p;
	u64 is;

	prices_init(&p, UNIT);
	learn(&p, &dev, 1000);
	is = ratio(&p, PRICE_READ, PRICE_WRITE);
	KUNIT_EXPECT_GE(test, is, 90);
	KUNIT_EXPECT_LE(test, is, 110);
}

static void the_same_mixture_remains_as_much_work(struct kunit *test)
{
	struct price_sums mixture = {
		.nr = { [PRICE_READ] = 100, [PRICE_WRITE] = 100 },
		.sectors = { [PRICE_READ] = 800, [PRICE_WRITE] = 800 },
	};
	u64 those, others, before;
	struct prices p;

	prices_init(&p, UNIT);
	p.seen = mixture;
	split_work(&p, &mixture, &those, &others);
	before = those + others;
	adopt(&p, 3, 1);
	split_work(&p, &mixture, &those, &others);
	KUNIT_EXPECT_GE(test, those + others, before * 99 / 100);
	KUNIT_EXPECT_LE(test, those + others, before * 101 / 100);
	KUNIT_EXPECT_EQ(test, ratio(&p, PRICE_READ, PRICE_WRITE), 300);
}

static struct kunit_case price_cases[] = {
	KUNIT_CASE(it_begins_with_bytes),
	KUNIT_CASE(where_all_are_alike_it_stays_bytes),
	KUNIT_CASE(writes_that_cost_ten_times_as_much_are_found_out),
	KUNIT_CASE(writes_that_cost_a_tenth_are_found_out),
	KUNIT_CASE(a_device_that_is_uneven_is_found_out_all_the_same),
	KUNIT_CASE(discards_have_a_price_of_their_own),
	KUNIT_CASE(who_minds_no_price_keeps_it),
	KUNIT_CASE(the_same_mixture_remains_as_much_work),
	{}
};

static struct kunit_suite price_suite = {
	.name = "price_test",
	.test_cases = price_cases,
};

kunit_test_suite(price_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of the loop that learns what requests cost");
