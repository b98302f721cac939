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
 * struct price - what requests of a kind cost
 */
struct price {
	u32 request;		/* work of each, of PRICE_ONE */
	u32 sector;		/* work of each sector of it, likewise */
};

/**
 * struct price_sums - what completed
 */
struct price_sums {
	u64 nr[PRICE_KINDS];	/* requests by kind */
	u64 sectors[PRICE_KINDS]; /* their sectors */
};

/**
 * struct prices - the loop that finds prices; the caller's lock
 */
struct prices {
	struct price of[PRICE_KINDS]; /* what requests cost now, by kind */
	enum price_kind alone;	/* kind that has the device for itself, or PRICE_KINDS */
	unsigned int left;	/* epochs until a kind is alone again */
	unsigned int pause;	/* epochs from one such time to the next */
	bool known;		/* all kinds have been alone, so @wanted is known */
	unsigned int spans;	/* spans that @alone has had the device for */
	u64 work;		/* work done in the present span */
	u64 ns;			/* length of that span so far */
	bool full;		/* since the second span the device had enough to do */
	u64 span_rate;		/* work a second in the last span */
	u64 lately;		/* work a second while none is alone, smoothed */
	u64 together;		/* @lately when the first began to be alone */
	u64 alone_rate[PRICE_KINDS]; /* work a second of each kind alone; 0: none */
	bool alone_full[PRICE_KINDS]; /* whether that was all that the device can do */
	u64 wanted;		/* work a second of a kind alone, by the prices found */
	unsigned int epochs;	/* epochs since these were found */
	bool doubted;		/* it has been said that much else is done than @wanted */
	struct price_sums seen;	/* what completed while none was alone, lately */
};

void prices_init(struct prices *p, u32 unit);
void prices_epoch(struct prices *p, const struct price_sums *done, u64 span,
		  bool full);
void prices_give_up(struct prices *p);

#endif /* ISOBLK_PRICE_H */
