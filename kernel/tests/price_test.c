// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop that learns what requests cost, against devices whose costs are known.
 *
 * The code under test is compiled into this module. It needs no other one.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../sched/core/price.c"

#define UNIT		16
#define SECTORS		8
#define SPAN		(20 * NSEC_PER_MSEC)

/**
 * struct device - what a request of each kind takes, ns; 0: there are none
 * @ns: without noise
 * @noise: percent by which the device is faster or slower in an epoch, at most
 * @fixed: reads that are sent in an epoch, at most, which do not fill it; 0: any number
 * @drain: for so many epochs after others it works on what it has buffered of those, ever
 *	less; 0: it buffers nothing
 */
struct device {
	u64 ns[PRICE_KINDS];
	unsigned int noise;
	u64 fixed;
	unsigned int drain;
};

static u64 charged(const struct prices *p, enum price_kind kind)
{
	struct price price = p->of[kind];

	return price.request + (u64)SECTORS * price.sector;
}

/* What all have done in an epoch: each as much work, by what is charged, as every other. */
static void all_do(const struct prices *p, const struct device *dev, u64 span,
		   struct price_sums *done)
{
	enum price_kind kind;
	u64 each = 0;

	for (kind = 0; kind < PRICE_KINDS; kind++)
		if (dev->ns[kind])
			each += div64_u64(dev->ns[kind] << 32, charged(p, kind));
	for (kind = 0; kind < PRICE_KINDS; kind++)
		if (dev->ns[kind])
			done->nr[kind] = mul_u64_u64_div_u64(span, 1ULL << 32,
							     each * charged(p, kind));
}

static void epoch(struct prices *p, const struct device *dev, u32 *random,
		  unsigned int since_others)
{
	struct price_sums done = {};
	enum price_kind alone = p->alone, kind;
	bool full = true;
	u64 span = SPAN;

	*random = *random * 1103515245 + 12345;
	if (dev->noise)
		span = div_u64(SPAN * (100 - dev->noise + (*random >> 16) %
				       (2 * dev->noise)), 100);
	if (alone == PRICE_KINDS) {
		all_do(p, dev, span, &done);
	} else {
		if (since_others < dev->drain)
			span = span * since_others / dev->drain;
		done.nr[alone] = div64_u64(span, dev->ns[alone]);
	}
	if (dev->fixed && done.nr[PRICE_READ] > dev->fixed) {
		done.nr[PRICE_READ] = dev->fixed;
		full = alone != PRICE_READ;
	}
	for (kind = 0; kind < PRICE_KINDS; kind++)
		done.sectors[kind] = kind == PRICE_DISCARD ? 0 : done.nr[kind] * SECTORS;
	prices_epoch(p, &done, SPAN, full);
}

static void learn(struct prices *p, const struct device *dev, unsigned int epochs)
{
	enum price_kind alone = PRICE_KINDS;
	unsigned int since = 0;
	u32 random = 1;

	while (epochs--) {
		since = p->alone == alone ? since + 1 : 0;
		alone = p->alone;
		epoch(p, dev, &random, since);
	}
}

/* How often @b costs what @a costs, in hundredths. */
static u64 ratio(const struct prices *p, enum price_kind a, enum price_kind b)
{
	struct price x = p->of[a], y = p->of[b];

	return div64_u64(100 * (y.request + (u64)SECTORS * y.sector),
			 x.request + (u64)SECTORS * x.sector);
}

/* After so many epochs @b costs from @least to @most hundredths of @a. */
static void expect_learned(struct kunit *test, const struct device *dev,
			   unsigned int epochs, enum price_kind a,
			   enum price_kind b, u64 least, u64 most)
{
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, dev, epochs);
	KUNIT_EXPECT_GE(test, ratio(&p, a, b), least);
	KUNIT_EXPECT_LE(test, ratio(&p, a, b), most);
}

static void it_begins_with_bytes(struct kunit *test)
{
	struct prices p;

	prices_init(&p, UNIT);
	KUNIT_EXPECT_EQ(test, p.of[0].request, 0);
	KUNIT_EXPECT_EQ(test, p.of[0].sector, UNIT * PRICE_ONE);
	KUNIT_EXPECT_EQ(test, ratio(&p, PRICE_READ, PRICE_WRITE), 100);
}

static void where_all_are_alike_it_stays_bytes(struct kunit *test)
{
	static const struct device dev = { .ns = { [PRICE_READ] = 3000 } };
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, &dev, 2000);
	KUNIT_EXPECT_EQ(test, p.alone, PRICE_KINDS);
	KUNIT_EXPECT_EQ(test, p.of[0].request, 0);
	KUNIT_EXPECT_EQ(test, p.of[0].sector, UNIT * PRICE_ONE);
}

static void writes_that_cost_ten_times_as_much_are_found_out(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 30000 },
	};

	expect_learned(test, &dev, 1000, PRICE_READ, PRICE_WRITE, 850, 1150);
}

static void writes_that_cost_a_tenth_are_found_out(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 30000, [PRICE_WRITE] = 3000 },
	};

	expect_learned(test, &dev, 1000, PRICE_WRITE, PRICE_READ, 850, 1150);
}

static void a_device_that_is_uneven_is_found_out_all_the_same(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 15000 },
		.noise = 20,
	};

	expect_learned(test, &dev, 4000, PRICE_READ, PRICE_WRITE, 420, 580);
}

static void discards_have_a_price_of_their_own(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_DISCARD] = 30000 },
	};

	expect_learned(test, &dev, 1000, PRICE_READ, PRICE_DISCARD, 850, 1150);
}

static void what_a_drive_has_buffered_is_waited_for(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 30000 },
		.drain = 20,
	};

	expect_learned(test, &dev, 100, PRICE_READ, PRICE_WRITE, 850, 1150);
}

static void who_cannot_fill_the_device_becomes_no_dearer(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 30000 },
		.fixed = 300,
	};
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, &dev, 1000);
	KUNIT_EXPECT_EQ(test, ratio(&p, PRICE_READ, PRICE_WRITE), 100);
}

static void who_cannot_fill_the_device_becomes_as_cheap_as_was_seen(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 30000 },
		.fixed = 2000,
	};

	expect_learned(test, &dev, 1000, PRICE_READ, PRICE_WRITE, 285, 315);
}

static void a_price_that_is_right_is_seen_at_once(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 3000 },
	};
	unsigned int alone = 0, i;
	struct prices p;
	u32 random = 1;

	prices_init(&p, UNIT);
	for (i = 0; i < 100; i++) {
		epoch(&p, &dev, &random, 0);
		alone += p.alone < PRICE_KINDS;
	}
	KUNIT_EXPECT_TRUE(test, p.known);
	KUNIT_EXPECT_LE(test, alone, 2 * ALONE_SETTLE_NS / SPAN);
	KUNIT_EXPECT_EQ(test, ratio(&p, PRICE_READ, PRICE_WRITE), 100);
}

static void on_a_slow_device_nobody_waits_for_prices(struct kunit *test)
{
	struct price_sums done = {
		.nr = { [PRICE_READ] = 50, [PRICE_WRITE] = 50 },
		.sectors = { [PRICE_READ] = 400, [PRICE_WRITE] = 400 },
	};
	struct prices p;
	int i;

	prices_init(&p, UNIT);
	for (i = 0; i < 1000; i++) {
		prices_epoch(&p, &done, 2 * EPOCH_LONGEST_NS, true);
		KUNIT_ASSERT_EQ(test, p.alone, PRICE_KINDS);
	}
}

static void who_had_nothing_to_send_alone_is_asked_more_rarely(struct kunit *test)
{
	static const struct device dev = {
		.ns = { [PRICE_READ] = 3000, [PRICE_WRITE] = 30000 },
	};
	unsigned int pause;
	struct prices p;

	prices_init(&p, UNIT);
	learn(&p, &dev, FIRST_PAUSE + 1);
	KUNIT_ASSERT_EQ(test, p.alone, PRICE_READ);
	pause = p.pause;
	prices_give_up(&p);
	KUNIT_EXPECT_EQ(test, p.alone, PRICE_KINDS);
	KUNIT_EXPECT_EQ(test, p.pause, 2 * pause);
	KUNIT_EXPECT_EQ(test, ratio(&p, PRICE_READ, PRICE_WRITE), 100);
}

static void the_same_mixture_remains_as_much_work(struct kunit *test)
{
	struct price_sums mixture = {
		.nr = { [PRICE_READ] = 100, [PRICE_WRITE] = 100 },
		.sectors = { [PRICE_READ] = 800, [PRICE_WRITE] = 800 },
	};
	struct prices p;
	u64 before;

	prices_init(&p, UNIT);
	p.seen = mixture;
	p.alone_rate[PRICE_READ] = 3000;
	p.alone_rate[PRICE_WRITE] = 1000;
	p.alone_full[PRICE_WRITE] = true;
	before = work_of_all(&p, &mixture);
	conclude(&p);
	KUNIT_EXPECT_GE(test, work_of_all(&p, &mixture), before * 99 / 100);
	KUNIT_EXPECT_LE(test, work_of_all(&p, &mixture), before * 101 / 100);
	KUNIT_EXPECT_EQ(test, ratio(&p, PRICE_READ, PRICE_WRITE), 300);
}

static struct kunit_case price_cases[] = {
	KUNIT_CASE(it_begins_with_bytes),
	KUNIT_CASE(where_all_are_alike_it_stays_bytes),
	KUNIT_CASE(writes_that_cost_ten_times_as_much_are_found_out),
	KUNIT_CASE(writes_that_cost_a_tenth_are_found_out),
	KUNIT_CASE(a_device_that_is_uneven_is_found_out_all_the_same),
	KUNIT_CASE(discards_have_a_price_of_their_own),
	KUNIT_CASE(what_a_drive_has_buffered_is_waited_for),
	KUNIT_CASE(who_cannot_fill_the_device_becomes_no_dearer),
	KUNIT_CASE(who_cannot_fill_the_device_becomes_as_cheap_as_was_seen),
	KUNIT_CASE(a_price_that_is_right_is_seen_at_once),
	KUNIT_CASE(on_a_slow_device_nobody_waits_for_prices),
	KUNIT_CASE(who_had_nothing_to_send_alone_is_asked_more_rarely),
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
