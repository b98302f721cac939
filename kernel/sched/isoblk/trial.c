// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does a device do more with setting A or B?
 *
 * Spans of time with one setting and the other take turns, as A B B A A B B A. Two neighbours
 * are a pair, and a pair's difference is one sample. A change of load or device affects both spans,
 * and drift cancels over two pairs. The spread of the samples says how far their mean may be off.
 * After a change of settings one span is not counted: it completes requests sent before.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/math64.h>

#include "isoblk/trial.h"

/* Differences are counted in parts of this of the first rate: their squares fit. */
#define TRIAL_UNITS	4096

/* Twice the standard error, and more of few looks, about as Student's t has it. */
#define TRIAL_ERRORS		2
#define TRIAL_ERRORS_FEW	4

/* A difference of more units doubles the unit. */
#define TRIAL_UNITS_MAX	(64 * TRIAL_UNITS)

/* A rate that is larger is taken for this: products with TRIAL_ONE fit. */
#define TRIAL_RATE_MAX	BIT_ULL(50)

/**
 * trial_begin() - begin anew; the span that is under way has setting A
 * @t: trial
 */
void trial_begin(struct trial *t)
{
	*t = (struct trial){ .settling = true };
}

/**
 * trial_add() - a span is over
 * @t: trial
 * @rate: of the device in it, units a second
 *
 * Return: whether a pair is complete, so that there is a new result.
 */
bool trial_add(struct trial *t, u64 rate)
{
	bool b = trial_has_b(t), second = t->at & 1;
	s64 more, parts;

	if (t->settling) {
		t->settling = false;
		return false;
	}
	rate = min(rate, TRIAL_RATE_MAX);
	if (!t->unit)
		t->unit = max(rate / TRIAL_UNITS, 1ULL);
	t->at++;
	t->settling = trial_has_b(t) != b;
	if (!b)
		t->sum_a += rate;
	if (!second) {
		t->first = rate;
		return false;
	}
	more = b ? rate - t->first : t->first - rate;
	parts = div64_s64(more, t->unit);
	/* The first rate may be far below all others: the device has paused. */
	while (abs(parts) > TRIAL_UNITS_MAX) {
		t->unit *= 2;
		t->squares /= 4;
		parts = div64_s64(more, t->unit);
	}
	t->n++;
	t->sum += more;
	t->squares += parts * parts;
	return true;
}

/**
 * trial_result() - what has been shown so far
 * @t: trial with a pair at least
 */
struct trial_result trial_result(const struct trial *t)
{
	u64 a = max(div64_u64(t->sum_a, t->n), 1ULL);
	s64 mean = div64_s64(t->sum, t->n);
	s64 parts = div64_s64(mean, t->unit);
	u64 variance = div64_u64(t->squares, t->n);
	u64 doubt;

	variance -= min(variance, (u64)(parts * parts));
	/* Of a mean of n looks, as unknown as their variance itself. */
	doubt = int_sqrt64(div64_u64(variance, max(t->n - 1, 1U)));
	return (struct trial_result){
		.gain = div64_s64(mean * TRIAL_ONE, a),
		.error = div64_u64((TRIAL_ERRORS * t->n + TRIAL_ERRORS_FEW) * doubt *
				   t->unit * TRIAL_ONE, t->n * a),
	};
}
