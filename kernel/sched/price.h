/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a request costs the device, learned from what the device does.
 */
#ifndef ISOBLK_PRICE_H
#define ISOBLK_PRICE_H

#include <linux/bits.h>
#include <linux/types.h>

/* A price of one unit of work. */
#define PRICE_SHIFT		12
#define PRICE_ONE		((u32)BIT(PRICE_SHIFT))

/* Kinds of requests, each with a price; those of the latter are tried. */
enum price_kind {
	PRICE_READ,
	PRICE_WRITE,
	PRICE_DISCARD,
	PRICE_KINDS,
};

/**
 * struct price - of requests of a kind: both, of PRICE_ONE
 * @request: of each
 * @sector: and of each sector of it
 */
struct price {
	u32 request;
	u32 sector;
};

/**
 * struct price_sums - what completed
 * @nr: requests by kind
 * @sectors: of all of a kind
 */
struct price_sums {
	u64 nr[PRICE_KINDS];
	u64 sectors[PRICE_KINDS];
};

/**
 * struct price_sample - of epochs with the same price: work a span, by the usual prices
 * @n: epochs
 * @those: of the requests whose price is tried
 * @others: of the others
 * @whole: squares of the sum of both
 */
struct price_sample {
	s64 n;
	s64 those;
	s64 others;
	s64 whole;
};

/**
 * struct prices - the loop that finds prices; the caller's lock
 * @of: by kind
 * @kind: whose price is tried, or will be next
 * @trying: it is
 * @low: this epoch it is the lower
 * @look: so many epochs are one sample, and as many before it show what went before
 * @left: epochs until the next trial, or until the sample ends
 * @pause: epochs between trials of a kind
 * @step: by how much its price may change at once, of PRICE_ONE beyond one
 * @changed: it has changed
 * @dearer: its last change was to a higher price
 * @unit: work that is PRICE_SAMPLE_ONE in a sample
 * @samples: in this trial
 * @at: samples of the higher and of the lower price
 * @sample: what completed since the present one began
 * @span: the time since then, ns
 * @seen: what completed since the last trial ended, less of what is long ago
 */
struct prices {
	struct price of[PRICE_KINDS];
	enum price_kind kind;
	bool trying;
	bool low;
	unsigned int look;
	unsigned int left;
	unsigned int pause[PRICE_KINDS];
	u32 step[PRICE_KINDS];
	bool changed[PRICE_KINDS];
	bool dearer[PRICE_KINDS];
	u64 unit;
	unsigned int samples;
	struct price_sample at[2];
	struct price_sums sample;
	u64 span;
	struct price_sums seen;
};

void prices_init(struct prices *p, u32 unit);
void prices_epoch(struct prices *p, const struct price_sums *done, u64 span);
struct price prices_now(const struct prices *p, enum price_kind kind);

#endif /* ISOBLK_PRICE_H */
