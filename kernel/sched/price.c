// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop that finds what requests cost.
 *
 * A device that is kept busy does as much as it can, whatever that is made of: with
 * the right prices its work is the same for every mixture. So prices are found by
 * trying. In some samples the requests of one kind are charged more, in as many others
 * less; so there are fewer of them, and more. If the others gain as much work as
 * these lose, the price is right. Else the ratio of both is by how much it is wrong.
 * Nothing need be known of the device, and load or garbage collection that comes and
 * goes falls on both alike.
 *
 * Prices are relative: what one becomes dearer by all become cheaper, so that the
 * same mixture remains as much work, and the window and all rates mean what they did.
 * Where all requests are alike nothing is tried, and work is bytes.
 *
 * A kind that does not answer, for its tenants use less than they may, keeps its price.
 */
#include <linux/bitops.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "price.h"

/*
 * How much dearer and cheaper a kind is while it is tried, of PRICE_ONE: twice as long as
 * prices may be far off, for what a drive does is uneven; a quarter once they are not.
 */
#define TRY_FAR			(2 * PRICE_ONE)
#define TRY_NEAR		(PRICE_ONE + PRICE_ONE / 4)

/* Far off are those that may still change by so much. */
#define FAR_STEP		PRICE_ONE

#define PRICE_SAMPLE_ONE	4096

/*
 * Samples in a trial: before the first look, for it to be seen that nobody minds, and at
 * most. Of each price those before the last few count half, for what a drive did at
 * first may not be what it goes on to do.
 */
#define TRIAL_LOOK		4
#define TRIAL_ENOUGH		8
#define TRIAL_FEW		6
#define TRIAL_MOST		32

/*
 * Epochs in a sample: few while prices are far off, for then little time shows it; and
 * more once they are nearly right, for what a drive buffers and collects is uneven.
 */
#define LOOK_LEAST		1
#define LOOK_MOST		8

/* A change by less than this is small, of RIGHT_PART. */
#define SMALL_CHANGE		24

/* A kind answers if the mixture differs by this between both prices. */
#define ANSWER_PART		8

/* Below this part of the work a kind is not tried: it would not be seen. */
#define SEEN_PART		16

/* A price that is off by less than this part of itself is right. */
#define RIGHT_PART		16

/*
 * By how much a price may change after one trial, of PRICE_ONE beyond one. What lies
 * behind a change may differ from what the trial saw in front of it: a drive is no
 * longer busy, for tenants have no more requests. So a change in the other direction
 * than the last is a quarter of what that could be, and one in the same direction twice.
 */
#define STEP_MOST		(7 * PRICE_ONE)
#define STEP_LEAST		(PRICE_ONE / 16)

/* Epochs before the first trial. */
#define FIRST_PAUSE		8

/* Epochs between trials: after a change, and if nothing changes. */
#define PAUSE_LEAST		8
#define PAUSE_MOST		2048

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
		.kind = PRICE_WRITE,
		.left = FIRST_PAUSE,
		.look = LOOK_LEAST,
	};
	for (kind = 0; kind < PRICE_KINDS; kind++) {
		p->of[kind] = (struct price){
			.sector = unit << PRICE_SHIFT,
		};
		p->pause[kind] = PAUSE_LEAST;
		p->step[kind] = STEP_MOST;
	}
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

static void split_work(const struct prices *p, const struct price_sums *s,
		       u64 *those, u64 *others)
{
	enum price_kind kind;

	*those = 0;
	*others = 0;
	for (kind = 0; kind < PRICE_KINDS; kind++)
		*(kind == p->kind ? those : others) +=
			work_of_kind(p, s, kind);
}

static u32 times(u32 price, u64 num, u64 den)
{
	return clamp(mul_u64_u64_div_u64(price, num, max(den, 1ULL)),
		     price ? PRICE_LEAST : 0, PRICE_MOST);
}

static void scale(struct price *price, u64 num, u64 den)
{
	price->request = times(price->request, num, den);
	price->sector = times(price->sector, num, den);
}

/**
 * prices_now() - what requests are charged
 * @p: prices
 * @kind: of them
 */
struct price prices_now(const struct prices *p, enum price_kind kind)
{
	struct price tried = p->of[kind];
	u32 by;

	if (!p->trying || kind != p->kind)
		return tried;
	by = p->step[kind] > FAR_STEP ? TRY_FAR : TRY_NEAR;
	if (p->low)
		scale(&tried, PRICE_ONE, by);
	else
		scale(&tried, by, PRICE_ONE);
	return tried;
}

/* What was seen weighs as much as it did, by the new prices. */
static void keep_scale(struct prices *p, u64 before)
{
	u64 after = 0;
	enum price_kind kind;

	for (kind = 0; kind < PRICE_KINDS; kind++)
		after += work_of_kind(p, &p->seen, kind);
	for (kind = 0; kind < PRICE_KINDS; kind++)
		scale(&p->of[kind], before, after);
}

static void look_longer(struct prices *p)
{
	p->look = min(p->look * 2, LOOK_MOST);
}

/* All but reads are tried: those are what the others are compared with. */
static void next_kind(struct prices *p)
{
	p->trying = false;
	p->kind = p->kind == PRICE_WRITE ? PRICE_DISCARD : PRICE_WRITE;
	p->left = p->pause[p->kind];
}

/* The price is @num / @den times what it was, as far as a step goes. */
static void adopt(struct prices *p, u64 num, u64 den)
{
	u32 *step = &p->step[p->kind];
	bool dearer = num > den;
	u64 those, others, most;

	if (p->changed[p->kind])
		*step = dearer == p->dearer[p->kind] ?
			min(*step * 2, STEP_MOST) : max(*step / 4, STEP_LEAST);
	p->changed[p->kind] = true;
	p->dearer[p->kind] = dearer;
	most = PRICE_ONE + *step;
	if (dearer && num * PRICE_ONE > den * most) {
		num = most;
		den = PRICE_ONE;
	} else if (!dearer && den * PRICE_ONE > num * most) {
		num = PRICE_ONE;
		den = most;
	}
	split_work(p, &p->seen, &those, &others);
	scale(&p->of[p->kind], num, den);
	keep_scale(p, those + others);
	p->pause[p->kind] = PAUSE_LEAST;
	if (max(num, den) * RIGHT_PART > min(num, den) * SMALL_CHANGE)
		p->look = LOOK_LEAST;
	else
		look_longer(p);
	/* Once more, and the others after it. */
	p->trying = false;
	p->left = PAUSE_LEAST;
}

static void leave_as_it_is(struct prices *p)
{
	p->pause[p->kind] = min(p->pause[p->kind] * 2, PAUSE_MOST);
	look_longer(p);
	next_kind(p);
}

/* How far the mean of @n values may be off, whose sum and sum of squares are known. */
static u64 doubt(s64 n, s64 sum, s64 squares)
{
	s64 spread = n * squares - sum * sum;

	return spread > 0 ? div64_u64(spread, n * n * n) : 0;
}

static void halve(struct price_sample *s)
{
	s->n /= 2;
	s->those /= 2;
	s->others /= 2;
	s->whole /= 2;
}

static void judge(struct prices *p)
{
	const struct price_sample *high = &p->at[0], *low = &p->at[1];
	s64 more = div64_s64(low->those, low->n) -
		div64_s64(high->those, high->n);
	s64 less = div64_s64(high->others, high->n) -
		div64_s64(low->others, low->n);
	s64 usual = div64_s64(low->those + high->those, low->n + high->n);
	s64 rest = div64_s64(low->others + high->others, low->n + high->n);
	s64 off = int_sqrt64(doubt(low->n, low->those + low->others, low->whole) +
			     doubt(high->n, high->those + high->others,
				   high->whole));
	bool last = p->samples >= TRIAL_MOST;

	/*
	 * Nobody minds the price, for they use less than they may; or something else
	 * has happened, by which both kinds gained or lost.
	 */
	if (ANSWER_PART * (more * rest + less * usual) < usual * rest ||
	    min(more, less) < -2 * off) {
		if (p->samples < TRIAL_ENOUGH)
			return;
		/* It will hardly be otherwise soon. */
		p->pause[p->kind] = min(p->pause[p->kind] * 4, PAUSE_MOST);
		leave_as_it_is(p);
		return;
	}
	/* Lost by these, gained by the others: alike, if the price is right. */
	if (less - more > max(2 * off, more / RIGHT_PART))
		adopt(p, less, max(more + 2 * off, 1));
	else if (more - less > max(2 * off, more / RIGHT_PART))
		adopt(p, max(less + 2 * off, 1), more);
	else if (last || 2 * off < more / RIGHT_PART)
		leave_as_it_is(p);
}

static void take_sample(struct prices *p)
{
	struct price_sample *s = &p->at[p->low];
	s64 those, others;
	u64 a, b;

	split_work(p, &p->sample, &a, &b);
	those = mul_u64_u64_div_u64(a, NSEC_PER_SEC, p->span) / p->unit;
	others = mul_u64_u64_div_u64(b, NSEC_PER_SEC, p->span) / p->unit;
	s->n++;
	s->those += those;
	s->others += others;
	s->whole += (those + others) * (those + others);
}

/* Another price, or the first: as long again as a sample it shows what was before. */
static void begin_sample(struct prices *p)
{
	p->left = 2 * p->look;
	p->sample = (struct price_sums){};
	p->span = 0;
}

static bool begin_trial(struct prices *p, const struct price_sums *done, u64 span)
{
	u64 those, others, all;

	split_work(p, &p->seen, &those, &others);
	all = those + others;
	if (min(those, others) < all / SEEN_PART || !all)
		return false;
	split_work(p, done, &those, &others);
	p->unit = max(mul_u64_u64_div_u64(those + others, NSEC_PER_SEC, span) /
		      PRICE_SAMPLE_ONE, 1ULL);
	p->at[0] = (struct price_sample){};
	p->at[1] = (struct price_sample){};
	p->trying = true;
	p->samples = 0;
	p->low = false;
	begin_sample(p);
	return true;
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

/**
 * prices_epoch() - an epoch is over in which the device was kept busy
 * @p: prices
 * @done: what completed in it
 * @span: its length, ns
 */
void prices_epoch(struct prices *p, const struct price_sums *done, u64 span)
{
	if (!p->trying) {
		forget_some(&p->seen);
		add_up(&p->seen, done);
		if (p->left)
			p->left--;
		else if (!begin_trial(p, done, span))
			next_kind(p);
		return;
	}
	p->left--;
	if (p->left >= p->look)
		return;
	add_up(&p->sample, done);
	p->span += span;
	if (p->left)
		return;
	take_sample(p);
	p->samples++;
	/* High, low, low, high: what swings by itself does not swing in step. */
	p->low = hweight32(p->samples) & 1;
	begin_sample(p);
	if (p->samples % 2)
		return;
	if (p->samples >= TRIAL_LOOK)
		judge(p);
	if (p->at[0].n == TRIAL_FEW) {
		halve(&p->at[0]);
		halve(&p->at[1]);
	}
}
