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

/* Kinds of requests, each with a price. */
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
 * struct prices - the loop that finds prices; the caller's lock
 * @of: by kind
 * @alone: kind that has the device for itself, or PRICE_KINDS
 * @left: epochs until that begins
 * @pause: epochs from one time to the next
 * @known: it has been tried
 * @spans: that @alone has had the device for
 * @work: done in the present one
 * @ns: length of that so far
 * @full: the device had as much as it can use since the second
 * @span_rate: work a second in the last of these
 * @lately: work a second while none is alone, smoothed
 * @together: @lately when the first began to be alone
 * @alone_rate: by kind, what it did alone; 0: there is none
 * @alone_full: and whether that was all that the device can do
 * @wanted: work a second that was done alone, by the prices found
 * @epochs: since they were
 * @doubted: that what is done is as much was doubted already
 * @seen: what completed while none was alone, less of what is long ago
 */
struct prices {
	struct price of[PRICE_KINDS];
	enum price_kind alone;
	unsigned int left;
	unsigned int pause;
	bool known;
	unsigned int spans;
	u64 work;
	u64 ns;
	bool full;
	u64 span_rate;
	u64 lately;
	u64 together;
	u64 alone_rate[PRICE_KINDS];
	bool alone_full[PRICE_KINDS];
	u64 wanted;
	unsigned int epochs;
	bool doubted;
	struct price_sums seen;
};

void prices_init(struct prices *p, u32 unit);
void prices_epoch(struct prices *p, const struct price_sums *done, u64 span,
		  bool full);
void prices_give_up(struct prices *p);

#endif /* ISOBLK_PRICE_H */
