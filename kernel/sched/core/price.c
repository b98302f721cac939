// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop that finds what requests cost.
 *
 * A device that is kept busy does as much as it can, whatever that is made of: with
 * the right prices its work is the same for every mixture, and for each kind of
 * requests alone. So now and then each kind has the device for itself for a moment,
 * and what it then does is how dear it is. To vary the mixture a little would disturb
 * nobody, and was tried first; but what a drive buffers it works on for up to
 * half a second more, so that fewer writes leave the reads nothing for as long, and
 * the last reads that go beside many writes cost more of these than the first.
 *
 * Who does as much alone as all together did has the price that it should have. That is
 * seen at once, so where reads and writes cost the same it takes a moment only.
 *
 * A kind of which there is too little to keep the device busy shows no more than that
 * the device can do at least so much of it: its price may turn out lower by that, not
 * higher.
 *
 * Prices are relative: what one becomes dearer by all become cheaper, so that the
 * same mixture remains as much work, and the window and all rates mean what they did.
 * Where all requests are alike nothing is tried, and work is bytes.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "core/price.h"
#include "muldiv.h"

/*
 * For so long a kind alone shows what went before. Then it has the device until it does
 * no more in one span than in the one before, by this part, or for so many.
 */
#define ALONE_SETTLE_NS		(40 * NSEC_PER_MSEC)
#define ALONE_SPAN_NS		(80 * NSEC_PER_MSEC)
#define ALONE_GAIN		16
#define ALONE_MOST		7

/* A longer epoch is one of a device on which nobody could wait for so many. */
#define EPOCH_LONGEST_NS	(50 * NSEC_PER_MSEC)

/* Below this part of the work a kind is not tried: it does not matter. */
#define SEEN_PART		16

/* Prices that change by less than this part are nearly right. */
#define CHANGE_PART		4

/*
 * If all together do more or less than each alone, by this part, the device is another
 * than it was: what it buffers is full, or it collects garbage. So many epochs tell.
 */
#define OTHER_PART		3
#define OTHER_EPOCHS		16

/* Epochs before the first time, and from one to the next: if something changes, and if not. */
#define FIRST_PAUSE		8
#define PAUSE_LEAST		256
#define PAUSE_MOST		4096

/* What was seen so many epochs ago no longer counts. */
#define SEEN_EPOCHS		8

/* A discard is as dear as so many sectors to begin with. */
#define DISCARD_SECTORS		8

/* Prices are kept between these, of PRICE_ONE. */
#define PRICE_LEAST		16U
#define PRICE_MOST		GENMASK(30, 0)

/**
 * prices_init() - begin with bytes
 * @p: prices
 * @unit: work that a sector is
 */
void prices_init(struct prices *p, u32 unit)
{
	enum price_kind kind;

	*p = (struct prices){
		.alone = PRICE_KINDS,
		.left = FIRST_PAUSE,
		.pause = PAUSE_LEAST,
	};
	for (kind = 0; kind < PRICE_KINDS; kind++)
		p->of[kind] = (struct price){
			.sector = unit << PRICE_SHIFT,
		};
	p->of[PRICE_DISCARD] = (struct price){
		.request = unit * DISCARD_SECTORS << PRICE_SHIFT,
	};
}

static u64 work_of_kind(const struct prices *p, const struct price_sums *s,
			enum price_kind kind)
{
	const struct price *price = &p->of[kind];

	return (s->nr[kind] * price->request +
		s->sectors[kind] * price->sector) >> PRICE_SHIFT;
}

static u64 work_of_all(const struct prices *p, const struct price_sums *s)
{
	enum price_kind kind;
	u64 all = 0;

	for (kind = 0; kind < PRICE_KINDS; kind++)
		all += work_of_kind(p, s, kind);
	return all;
}

static u32 times(u32 price, u64 num, u64 den)
{
	return clamp(mul_div(price, num, max(den, 1ULL)),
		     price ? PRICE_LEAST : 0, PRICE_MOST);
}

static void scale(struct price *price, u64 num, u64 den)
{
	price->request = times(price->request, num, den);
	price->sector = times(price->sector, num, den);
}

/* ---- a kind alone ---------------------------------------------------------- */

/* The next kind from @kind on that matters. */
static enum price_kind next_seen(const struct prices *p, enum price_kind kind)
{
	u64 all = work_of_all(p, &p->seen);

	for (; kind < PRICE_KINDS; kind++)
		if (work_of_kind(p, &p->seen, kind) > all / SEEN_PART)
			break;
	return kind;
}

static void begin_alone(struct prices *p, enum price_kind kind)
{
	p->alone = kind;
	p->spans = 0;
	p->work = 0;
	p->ns = 0;
	p->full = true;
}

/* Whether it has begun: there are kinds that differ. */
static bool begin(struct prices *p)
{
	enum price_kind first = next_seen(p, 0);

	if (first == PRICE_KINDS || next_seen(p, first + 1) == PRICE_KINDS)
		return false;
	memset(p->alone_rate, 0, sizeof(p->alone_rate));
	p->together = p->lately;
	begin_alone(p, first);
	return true;
}

static void rest(struct prices *p, bool changed)
{
	p->alone = PRICE_KINDS;
	p->pause = changed ? PAUSE_LEAST : min(p->pause * 2, PAUSE_MOST);
	p->left = p->pause;
	p->epochs = 0;
	p->seen = (struct price_sums){};
}

/* The price of @kind is @num / @den times what it was. Return true if that is much. */
static bool adopt(struct prices *p, enum price_kind kind, u64 num, u64 den)
{
	u64 least = min(num, den), off = max(num, den) - least;

	/* What a drive does is uneven: half of a change is believed, if it is not large. */
	if (p->known && off < least) {
		num += den;
		den *= 2;
	}
	scale(&p->of[kind], num, den);
	return off > least / CHANGE_PART;
}

/*
 * All have been alone: what each did is the same work. What was not enough of a kind to
 * keep the device busy may be less.
 */
static void conclude(struct prices *p)
{
	enum price_kind first = next_seen(p, 0), kind;
	u64 before = work_of_all(p, &p->seen), after, did, ref;
	bool changed = false;

	ref = p->alone_rate[first];
	for (kind = first + 1; kind < PRICE_KINDS; kind++) {
		did = p->alone_rate[kind];
		if (!did || !ref)
			continue;
		if (ref > did ? p->alone_full[kind] : p->alone_full[first])
			changed |= adopt(p, kind, ref, did);
	}
	after = work_of_all(p, &p->seen);
	for (kind = 0; kind < PRICE_KINDS; kind++)
		scale(&p->of[kind], before, after);
	p->known = true;
	p->wanted = mul_div(ref, before, max(after, 1ULL));
	p->doubted &= !changed;
	rest(p, changed);
}

static bool nearly(u64 a, u64 b)
{
	return max(a, b) - min(a, b) <= min(a, b) / ALONE_GAIN;
}

/* The kind that is alone does @rate. The next is, or all have been. */
static void found(struct prices *p, u64 rate)
{
	p->alone_rate[p->alone] = rate;
	p->alone_full[p->alone] = p->full;
	begin_alone(p, next_seen(p, p->alone + 1));
	if (p->alone == PRICE_KINDS)
		conclude(p);
}

static void alone_epoch(struct prices *p, u64 work, u64 ns, bool full)
{
	u64 rate, before = p->span_rate;

	p->work += work;
	p->ns += ns;
	p->full &= full;
	if (p->ns < (p->spans ? ALONE_SPAN_NS : ALONE_SETTLE_NS))
		return;
	rate = mul_div(p->work, NSEC_PER_SEC, p->ns);
	p->span_rate = rate;
	p->work = 0;
	p->ns = 0;
	/* As much as all together: its price is right, and need not be measured. */
	if (!p->spans && nearly(rate, p->together)) {
		found(p, p->together);
		return;
	}
	if (p->spans++ < 2) {
		p->full = full;
		return;
	}
	if (rate > before + before / ALONE_GAIN && p->spans < ALONE_MOST)
		return;
	found(p, (before + rate) / 2);
}

/**
 * prices_give_up() - a kind that was to be alone had nothing to send
 * @p: prices
 *
 * Others were sent before it, by the same tenants, and must have ended.
 */
void prices_give_up(struct prices *p)
{
	if (p->alone < PRICE_KINDS)
		rest(p, false);
}

static void add_up(struct price_sums *sum, const struct price_sums *done)
{
	enum price_kind kind;

	for (kind = 0; kind < PRICE_KINDS; kind++) {
		sum->nr[kind] += done->nr[kind];
		sum->sectors[kind] += done->sectors[kind];
	}
}

static void forget_some(struct price_sums *sum)
{
	enum price_kind kind;

	for (kind = 0; kind < PRICE_KINDS; kind++) {
		sum->nr[kind] -= sum->nr[kind] / SEEN_EPOCHS;
		sum->sectors[kind] -= sum->sectors[kind] / SEEN_EPOCHS;
	}
}

/* Whether the device does much more or less than by its prices it could; this is said once. */
static bool is_another(struct prices *p, u64 rate)
{
	u64 off;

	if (!p->epochs)
		p->lately = rate;
	p->lately = (p->lately * (OTHER_EPOCHS - 1) + rate) / OTHER_EPOCHS;
	if (!p->known || p->doubted || p->epochs++ < 2 * OTHER_EPOCHS)
		return false;
	off = max(p->lately, p->wanted) - min(p->lately, p->wanted);
	p->doubted = off > p->wanted / OTHER_PART;
	return p->doubted;
}

/**
 * prices_epoch() - an epoch is over in which the device was wanted
 * @p: prices
 * @done: what completed in it
 * @span: its length, ns
 * @full: the device had as much as it can use
 */
void prices_epoch(struct prices *p, const struct price_sums *done, u64 span,
		  bool full)
{
	if (p->alone < PRICE_KINDS) {
		alone_epoch(p, work_of_kind(p, done, p->alone), span, full);
		return;
	}
	forget_some(&p->seen);
	add_up(&p->seen, done);
	if (is_another(p, mul_div(work_of_all(p, done), NSEC_PER_SEC, span)))
		p->left = 0;
	if (p->left)
		p->left--;
	else if (span > EPOCH_LONGEST_NS || !begin(p))
		p->left = FIRST_PAUSE;
}
