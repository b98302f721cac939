// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a request is charged: what it moves, that it is one, or the device's time for it.
 *
 * Each is a price of a request and of a sector. Bytes are 1 for a sector, and the window
 * and all rates are in sectors then. Time is learned (price.c), and begins as bytes.
 *
 * The price is taken when a request is sent, and what it was charged stays with it, so
 * that what is given back is what was taken.
 */
#include <linux/module.h>

#include "core.h"

/* A sector, where prices are learned: so that a cheap one is not rounded away. */
#define TIME_UNIT		16

/* How long work is counted for one sample of prices, and how much of it. */
#define PRICE_EPOCH_NS		(20 * NSEC_PER_MSEC)
#define PRICE_EPOCH_REQUESTS	64

/* Kinds of requests are operations. */
static_assert((int)PRICE_READ == (int)ISOBLK_READ &&
	      (int)PRICE_WRITE == (int)ISOBLK_WRITE &&
	      (int)PRICE_DISCARD == (int)ISOBLK_DISCARD &&
	      (int)PRICE_KINDS == (int)ISOBLK_NR_OPS);

static struct price fixed_price(const struct iso_disk *d, enum isoblk_op op)
{
	u32 percent = op == ISOBLK_READ ? 100 : READ_ONCE(d->write_cost);
	u32 one = PRICE_ONE * percent / 100;

	if (d->account == ISO_IOS || op == ISOBLK_DISCARD)
		return (struct price){ .request = one * ISOBLK_NO_DATA_COST };
	return (struct price){ .sector = one };
}

static void publish(struct iso_disk *d)
{
	enum isoblk_op op;
	struct price p;

	for (op = 0; op < ISOBLK_NR_OPS; op++) {
		p = d->account == ISO_TIME ?
			prices_now(&d->prices, (enum price_kind)op) :
			fixed_price(d, op);
		WRITE_ONCE(d->price[op].request, p.request);
		WRITE_ONCE(d->price[op].sector, p.sector);
	}
}

/**
 * iso_set_account() - requests are charged something else from now on
 * @d: its disk lock is held, or nobody else knows it
 * @account: what
 */
void iso_set_account(struct iso_disk *d, enum iso_account account)
{
	WRITE_ONCE(d->account, account);
	WRITE_ONCE(d->unit, account == ISO_TIME ? TIME_UNIT : 1);
	prices_init(&d->prices, d->unit);
	publish(d);
}

/**
 * isoblk_change_account() - the user wants something else to be charged
 * @d: disk, in use
 * @account: what
 */
void isoblk_change_account(struct iso_disk *d, enum iso_account account)
{
	spin_lock_irq(&d->disk.lock);
	iso_set_account(d, account);
	/* Work was something else before. */
	WRITE_ONCE(d->mean_work, iso_price_of(d, ISOBLK_READ, 0));
	if (d->room.size)
		iso_measure_restart(d);
	spin_unlock_irq(&d->disk.lock);
}
EXPORT_SYMBOL_GPL(isoblk_change_account);

static void subtract(struct price_sums *left, const struct price_sums *sums,
		     const struct price_sums *before)
{
	enum price_kind kind;

	for (kind = 0; kind < PRICE_KINDS; kind++) {
		left->nr[kind] = sums->nr[kind] - before->nr[kind];
		left->sectors[kind] = sums->sectors[kind] - before->sectors[kind];
	}
}

/**
 * iso_update_prices() - see whether prices are still right
 * @d: its disk lock is held
 * @sums: what completed so far
 * @now: ns
 */
void iso_update_prices(struct iso_disk *d, const struct price_sums *sums,
		       u64 now)
{
	u64 span = now - d->priced_ns, nr = 0;
	struct price_sums done;
	enum price_kind kind;

	lockdep_assert_held(&d->disk.lock);

	if (d->account != ISO_TIME || span < PRICE_EPOCH_NS)
		return;
	subtract(&done, sums, &d->priced);
	for (kind = 0; kind < PRICE_KINDS; kind++)
		nr += done.nr[kind];
	if (nr < PRICE_EPOCH_REQUESTS && span < NSEC_PER_SEC)
		return;
	if (READ_ONCE(d->wanted) && !d->trial)
		prices_epoch(&d->prices, &done, span);
	d->priced = *sums;
	d->priced_ns = now;
	WRITE_ONCE(d->wanted, false);
	publish(d);
}
