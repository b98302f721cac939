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

#include "core/charge.h"
#include "core/clock.h"
#include "core/size.h"
#include "muldiv.h"
#include "share/stat.h"

/* A sector, where prices are learned: so that a cheap one is not rounded away. */
#define TIME_UNIT		16

/* How long work is counted before prices are looked at, and how much of it. */
#define PRICE_EPOCH_NS		(20 * NSEC_PER_MSEC)
#define PRICE_EPOCH_REQUESTS	64

/* The same while others wait for it. */
#define PRICE_EPOCH_ALONE	4

/* For so long, as time of the device, a group may have to wait for others to make up. */
#define OWES_NS			(50 * NSEC_PER_MSEC)

/* For so much it may have to pay for what its kind of requests has had. */
#define DEBT_MOST_NS		(10 * NSEC_PER_SEC)

/* Kinds of requests are operations. */
static_assert((int)PRICE_READ == (int)ISOBLK_READ &&
	      (int)PRICE_WRITE == (int)ISOBLK_WRITE &&
	      (int)PRICE_DISCARD == (int)ISOBLK_DISCARD &&
	      (int)PRICE_KINDS == (int)ISOBLK_NR_OPS);

static struct price fixed_price(const struct iso_disk *d, enum isoblk_op op)
{
	if (d->tariff.account == ISO_IOS || op == ISOBLK_DISCARD)
		return (struct price){
			.request = PRICE_ONE * ISOBLK_NO_DATA_COST,
		};
	return (struct price){ .sector = PRICE_ONE };
}

static void publish(struct iso_disk *d)
{
	enum isoblk_op op;
	struct price p;

	for (op = 0; op < ISOBLK_NR_OPS; op++) {
		p = d->tariff.account == ISO_TIME ? d->pricing.prices.of[op] :
			fixed_price(d, op);
		WRITE_ONCE(d->tariff.of[op].request, p.request);
		WRITE_ONCE(d->tariff.of[op].sector, p.sector);
	}
	WRITE_ONCE(d->tariff.alone, d->pricing.prices.alone);
}

/**
 * iso_forget_debts() - a group begins anew
 * @g: its disk's lock is held
 */
void iso_forget_debts(struct iso_group *g)
{
	g->debts.owes = 0;
	g->debts.debt = 0;
	g->debts.served_alone = 0;
}

/**
 * iso_set_account() - requests are charged something else from now on
 * @d: its disk lock is held, or nobody else knows it
 * @account: what
 */
void iso_set_account(struct iso_disk *d, enum iso_account account)
{
	WRITE_ONCE(d->tariff.account, account);
	WRITE_ONCE(d->tariff.unit, account == ISO_TIME ? TIME_UNIT : 1);
	prices_init(&d->pricing.prices, d->tariff.unit);
	publish(d);
}

/**
 * isoblk_change_account() - the user wants something else to be charged
 * @d: disk, in use
 * @account: what
 */
void isoblk_change_account(struct iso_disk *d, enum iso_account account)
{
	struct iso_group *g;

	spin_lock_irq(&d->disk.lock);
	iso_set_account(d, account);
	memset(d->pricing.alone_ns, 0, sizeof(d->pricing.alone_ns));
	list_for_each_entry(g, &d->members.list, node)
		iso_forget_debts(g);
	/* Work was something else before. */
	WRITE_ONCE(d->device.mean_work, iso_price_of(d, ISOBLK_READ, 0));
	if (d->room.size)
		iso_measure_restart(d);
	spin_unlock_irq(&d->disk.lock);
}
EXPORT_SYMBOL_GPL(isoblk_change_account);

static u32 any_price(const struct price *p)
{
	return max(p->sector ?: p->request, 1U);
}

/* @g is set back by what it owes, at the price that has been found for it. */
static void pay(struct iso_disk *d, struct iso_group *g,
		const struct price *before)
{
	u64 most = iso_work_in(d, OWES_NS) << VTIME_SHIFT;
	enum price_kind kind = g->debts.owes_for;
	u64 owes = mul_div(g->debts.owes,
			   any_price(&d->pricing.prices.of[kind]),
			   any_price(&before[kind]));

	atomic64_add(min(owes, most), &g->vtime);
	g->debts.owes = 0;
}

static u64 sent_of(const struct iso_group *g, enum price_kind kind)
{
	return isoblk_group_ios(g->group, (enum isoblk_op)kind);
}

/* Whether @g was served while @kind had the device, if one had. */
static bool served(const struct iso_group *g, enum price_kind kind)
{
	return kind < PRICE_KINDS && g->debts.served_alone & BIT(kind);
}

/* The share of all who were served while @kind had the device. */
static u64 share_of(const struct iso_disk *d, enum price_kind kind)
{
	const struct iso_group *g;
	u64 share = 0;

	list_for_each_entry(g, &d->members.list, node)
		if (served(g, kind))
			share += READ_ONCE(g->share);
	return share;
}

/*
 * All kinds have had the device alone, each for as long as it took. Those whose kind had it
 * for longer than their shares allow owe that: time by which they are ahead of those
 * whose kind had it for the shortest, by their shares.
 */
static void settle(struct iso_disk *d)
{
	u64 share, lead[PRICE_KINDS] = {}, least = U64_MAX;
	u64 *alone_ns = d->pricing.alone_ns;
	u64 most = iso_work_in(d, DEBT_MOST_NS) << VTIME_SHIFT;
	enum price_kind kind;
	struct iso_group *g;

	for (kind = 0; kind < PRICE_KINDS; kind++) {
		share = min_t(u64, share_of(d, kind), ISOBLK_SHARE_ONE);
		if (!share)
			continue;
		lead[kind] = vtime_step(iso_work_in(d, alone_ns[kind]), share);
		least = min(least, lead[kind]);
	}
	list_for_each_entry(g, &d->members.list, node) {
		for (kind = 0; kind < PRICE_KINDS; kind++)
			if (served(g, kind))
				g->debts.debt += lead[kind] - least;
		g->debts.debt = min(g->debts.debt, most);
		g->debts.served_alone = 0;
		g->debts.paid_at = iso_served(g);
	}
	memset(alone_ns, 0, sizeof(d->pricing.alone_ns));
	d->pricing.debts = true;
}

/* Who is in debt pays by what it is served, which counts twice until it has. */
static void repay(struct iso_disk *d)
{
	struct iso_group *g;

	d->pricing.debts = false;
	list_for_each_entry(g, &d->members.list, node) {
		u64 at = iso_served(g), part;
		s64 served = at - g->debts.paid_at;

		if (g->debts.debt && served > 0) {
			part = min_t(u64, g->debts.debt, served);
			atomic64_add(part, &g->vtime);
			g->debts.debt -= part;
			at += part;
		}
		g->debts.paid_at = at;
		d->pricing.debts |= g->debts.debt;
	}
}

/* How far @g is beyond where all were when a kind last began to have the device. */
static s64 lead_of(const struct iso_disk *d, const struct iso_group *g)
{
	return atomic64_read(&g->vtime) - d->pricing.level;
}

/*
 * Another kind of requests has the device from now on, or all, when @was had it. All
 * begin where the foremost is. Those who had the device were served
 * in an order of its own: what they got beyond the least of them they owe, by the
 * price that is found.
 */
static void change_alone(struct iso_disk *d, enum price_kind was,
			 const struct price *before, u64 now)
{
	enum price_kind alone = d->pricing.prices.alone;
	s64 lead, least = S64_MAX;
	u64 last = READ_ONCE(d->clock.vnow);
	struct iso_group *g;

	if (was < PRICE_KINDS)
		d->pricing.alone_ns[was] += now - d->pricing.alone_since;
	WRITE_ONCE(d->pricing.alone_since, now);
	atomic64_set(&d->pricing.passed, 0);
	list_for_each_entry(g, &d->members.list, node) {
		lead = lead_of(d, g);
		last = vtime_later(last, d->pricing.level + lead);
		if (was < PRICE_KINDS &&
		    sent_of(g, was) != g->debts.sent_before)
			g->debts.served_alone |= BIT(was);
		if (served(g, was) && lead > 0 &&
		    iso_in_device(atomic64_read(&g->has)))
			least = min(least, lead);
	}
	list_for_each_entry(g, &d->members.list, node) {
		lead = lead_of(d, g);
		if (alone < PRICE_KINDS)
			g->debts.sent_before = sent_of(g, alone);
		if (served(g, was) && lead > least) {
			g->debts.owes = lead - least;
			g->debts.owes_for = was;
		}
		iso_lift(g, last);
		if (alone == PRICE_KINDS)
			pay(d, g, before);
	}
	d->pricing.level = last;
	/* Nobody is behind that any more. */
	iso_set_vnow(d, last);
	if (alone == PRICE_KINDS)
		settle(d);
}

/* Whether the device had enough: somebody waited for room, or it took twice as long as need be. */
static bool was_full(const struct iso_disk *d, const struct iso_done *sum)
{
	return d->pricing.full || sum->area - d->pricing.seen.area >=
		2 * (sum->base_area - d->pricing.seen.base_area);
}

/*
 * Not while nobody waits, or is held back for a trial of another kind; nor where somebody
 * has a target of latency, or a seek costs more than any request.
 */
static bool may_try(const struct iso_disk *d)
{
	return READ_ONCE(d->pricing.wanted) && !d->hold.trial &&
		!d->rotational && list_empty(&d->latency.list);
}

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
 * @sum: what completed so far
 * @now: ns
 */
void iso_update_prices(struct iso_disk *d, const struct iso_done *sum, u64 now)
{
	enum price_kind alone = d->pricing.prices.alone;
	struct price before[PRICE_KINDS];
	u64 span = now - d->pricing.begun_ns, nr = 0;
	struct price_sums done;
	enum price_kind kind;

	lockdep_assert_held(&d->disk.lock);

	if (d->tariff.account != ISO_TIME || span < PRICE_EPOCH_NS)
		return;
	subtract(&done, &sum->sums, &d->pricing.seen.sums);
	for (kind = 0; kind < PRICE_KINDS; kind++)
		nr += done.nr[kind];
	if (nr < (iso_is_alone(d) ? PRICE_EPOCH_ALONE : PRICE_EPOCH_REQUESTS) &&
	    span < NSEC_PER_SEC)
		return;
	if (d->pricing.debts && !iso_is_alone(d))
		repay(d);
	memcpy(before, d->pricing.prices.of, sizeof(before));
	if (READ_ONCE(d->pricing.starved))
		prices_give_up(&d->pricing.prices);
	else if (alone < PRICE_KINDS || may_try(d))
		prices_epoch(&d->pricing.prices, &done, span, was_full(d, sum));
	if (d->pricing.prices.alone != alone)
		change_alone(d, alone, before, now);
	d->pricing.seen = *sum;
	d->pricing.begun_ns = now;
	d->pricing.full = false;
	WRITE_ONCE(d->pricing.starved, false);
	WRITE_ONCE(d->pricing.wanted, false);
	publish(d);
}
