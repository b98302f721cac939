// SPDX-License-Identifier: GPL-2.0-only
/*
 * The floor: with less cost in flight than this no group is throttled. So throttling, which makes
 * shares exact where groups send few requests at a time, gives up at most max_loss of what the
 * device would do without.
 *
 * How much is lost is seen by comparing spans in which no group is throttled with spans in which
 * groups are, beyond the floor (trial.c). Between them the loss falls about linearly, from what
 * is in flight with the floor to what is in flight without. So the next floor is where that line
 * meets max_loss.
 *
 * A floor above the window does nothing. If with one as large as that too much is lost, or with
 * hardly a request throttled, it is the window that is too small.
 *
 * Groups come and go, and trials are few: the floor that was found with as many groups is where the
 * search goes on.
 *
 * No trial is needed where requests were throttled for less than max_loss of the time, and none
 * waited for room: a window in which large requests leave no room for others loses, too. Nor where
 * the model, if it is one of this disk, says that the device did what it can.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "isoblk/floor.h"
#include "muldiv.h"

/*
 * Spans from a trial that changed the floor to the next trial. Each trial without a change
 * multiplies the pause by FLOOR_PAUSE_GROWS, up to FLOOR_PAUSE_TRIALS lengths of a trial.
 */
#define FLOOR_PAUSE_MIN		4U
#define FLOOR_PAUSE_GROWS	4U
#define FLOOR_PAUSE_TRIALS	60

/* Spans in which the device is busy before the floor is lowered for it. */
#define FLOOR_BUSY		16

/* A loss that is off by less than this part of max_loss is right. */
#define FLOOR_RIGHT		8

/* The floor comes down to this part at most at a time. */
#define FLOOR_DOWN		4

/* Of all spans trials take this part at most, once they have taken so many. */
#define FLOOR_TRIAL_PART	20
#define FLOOR_TRIAL_FREE	100
#define FLOOR_CREDIT_MAX	(FLOOR_TRIAL_PART * FLOOR_TRIAL_FREE)
#define FLOOR_DEBT_MAX		(10 * FLOOR_CREDIT_MAX)

/**
 * floor_init() - begin anew
 * @f: floor
 */
void floor_init(struct floor *f)
{
	*f = (struct floor){
		.high = FLOOR_OPEN,
		.pause = FLOOR_PAUSE_MIN,
		.credit = FLOOR_CREDIT_MAX,
	};
}

static void floor_cruise(struct floor *f, unsigned int spans)
{
	f->phase = FLOOR_CRUISE;
	f->left = spans;
}

/*
 * The next floor if one of @f's size loses more than @limit: half way to one that loses less, or on
 * the line to no loss with @open in flight.
 */
static u64 floor_higher(struct floor *f, u64 open, s64 loss, s64 limit, u64 least)
{
	f->low = f->size;
	if (f->high <= f->low)
		f->high = FLOOR_OPEN;
	if (f->high != FLOOR_OPEN)
		return f->high - f->low > f->high / FLOOR_RIGHT ?
			(f->high + f->low) / 2 : f->high;
	if (f->size < open)
		return max(open - mul_div(open - f->size, limit, loss), f->size + least);
	return f->size + max(f->size / FLOOR_RIGHT, least);
}

/* The same if it loses less: no lower than the line says, for it may lose so little by chance. */
static u64 floor_lower(struct floor *f, u64 open, s64 loss, s64 limit, u64 least)
{
	u64 size = f->size / FLOOR_DOWN, below;

	f->high = f->size;
	if (f->low >= f->high)
		f->low = 0;
	if (f->low && f->high - f->low <= f->high / FLOOR_RIGHT)
		return f->size;
	if (f->low)
		size = (f->high + f->low) / 2;
	if (loss > 0 && f->size < open) {
		below = mul_div(open - f->size, limit, loss);
		size = max(size, open - min(open, below));
	}
	return size < least ? 0 : size;
}

static void floor_end_trial(struct floor *f, s64 loss, s64 error, s64 limit,
			    const struct floor_span *s)
{
	u64 open = min(div_u64(f->in_flight, max(f->nr_open, 1U)), s->window);
	unsigned int length = f->trial.at;
	u64 was = f->size;

	error = max(error, limit / FLOOR_RIGHT);
	f->widen = loss > limit + error &&
		(f->size >= s->window || f->throttled < (u64)s->max_loss * f->trial.n);
	if (f->widen)
		f->high = FLOOR_OPEN;
	else if (loss > limit + error)
		f->size = min(floor_higher(f, open, loss, limit, s->least), s->window);
	else if (loss < limit - error && f->size)
		f->size = floor_lower(f, open, loss, limit, s->least);
	f->settled = f->size == was;
	if (!f->settled) {
		f->pause = FLOOR_PAUSE_MIN;
	} else if (f->pause < FLOOR_PAUSE_TRIALS * length) {
		f->pause = min(FLOOR_PAUSE_GROWS * f->pause, FLOOR_PAUSE_TRIALS * length);
	} else {
		/* The known loss may be old, and a floor far below may lose much: go in steps. */
		f->low /= 2;
		f->high = FLOOR_OPEN;
	}
	f->searching = !f->settled;
	floor_cruise(f, f->pause);
}

static void floor_add_span(struct floor *f, const struct floor_span *s, s64 limit)
{
	struct trial_result r;
	s64 off;

	if (!f->trial.settling && trial_has_b(&f->trial)) {
		f->throttled += s->throttled;
	} else if (!f->trial.settling) {
		f->in_flight += s->in_flight;
		f->nr_open++;
	}
	if (!trial_add(&f->trial, s->rate) || f->trial.n < TRIAL_PAIRS_MIN)
		return;
	r = trial_result(&f->trial);
	off = abs(-r.gain - limit);
	if (off > r.error || r.error * FLOOR_RIGHT < limit ||
	    f->trial.n >= TRIAL_PAIRS_MAX)
		floor_end_trial(f, -r.gain, r.error, limit, s);
}

/* The known loss was measured with other groups, or with another limit. */
static void floor_forget(struct floor *f)
{
	f->low = 0;
	f->high = FLOOR_OPEN;
	f->settled = false;
	f->pause = FLOOR_PAUSE_MIN;
	f->left = min(f->left, FLOOR_PAUSE_MIN);
}

/* With so many groups the search goes on where it ended. */
static void floor_recall(struct floor *f, unsigned int groups)
{
	const struct floor_found *found = &f->found[groups];

	f->found[f->groups] = (struct floor_found){
		.any = true,
		.size = f->size,
		.low = f->low,
		.high = f->high,
	};
	f->groups = groups;
	floor_forget(f);
	if (!found->any)
		return;
	f->size = found->size;
	f->low = found->low;
	f->high = found->high;
}

/**
 * floor_span() - a span is over
 * @f: floor
 * @s: what was seen in it
 */
void floor_span(struct floor *f, const struct floor_span *s)
{
	s64 limit = div_u64((u64)s->max_loss * TRIAL_ONE, FLOOR_LOSS_ONE);
	unsigned int groups = min(s->groups, FLOOR_GROUPS - 1U);

	if (!s->max_loss || s->max_loss >= FLOOR_LOSS_ONE) {
		floor_init(f);
		f->size = s->max_loss ? 0 : FLOOR_OPEN;
		f->settled = true;
		return;
	}
	if (f->size == FLOOR_OPEN)
		floor_init(f);
	if (s->max_loss != f->max_loss) {
		f->max_loss = s->max_loss;
		memset(f->found, 0, sizeof(f->found));
		floor_forget(f);
	}
	if (f->phase == FLOOR_CRUISE && groups != f->groups)
		floor_recall(f, groups);
	else if (s->changed)
		floor_forget(f);
	f->widen = false;
	if (f->phase == FLOOR_TRIAL) {
		f->credit = max(f->credit - FLOOR_TRIAL_PART, -FLOOR_DEBT_MAX);
		floor_add_span(f, s, limit);
		return;
	}
	f->credit = min(f->credit + 1, FLOOR_CREDIT_MAX);
	f->busy = s->busy ? f->busy + 1 : 0;
	if (s->busy) {
		if (f->busy >= FLOOR_BUSY) {
			f->busy = 0;
			f->size = floor_lower(f, 0, 0, limit, s->least);
		}
		f->settled = true;
		return;
	}
	if ((s->full && !f->size) ||
	    (s->throttled < s->max_loss && !s->limited && !(f->size && s->spared))) {
		f->settled = true;
		return;
	}
	if (f->left) {
		f->left--;
	} else if (s->may_try && (f->searching || f->credit > 0)) {
		f->phase = FLOOR_TRIAL;
		f->in_flight = 0;
		f->nr_open = 0;
		f->throttled = 0;
		trial_begin(&f->trial);
	}
}
