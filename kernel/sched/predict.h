/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * FeedBAC's credit predictor: how much credit the next prediction period will
 * use, from what the past ones used. Pure: no state but what the caller
 * passes, no locks; the caller lets one call at a time work on a predictor.
 */
#ifndef ISOBLK_PREDICT_H
#define ISOBLK_PREDICT_H

#include <linux/types.h>

/* Fractional bits, of the smoothed values and of the factor a. */
#define PREDICT_SHIFT		16
#define PREDICT_ONE		65536U

/*
 * The largest use that is told apart, 2^40: 512 TiB in sectors. The smoothed values
 * then take 56 bits, a prediction before its fraction is dropped 57.
 */
#define PREDICT_USED_MAX	0x10000000000ULL

/*
 * What the limits of a may be. The rounding error grows with 1 / a; the
 * overshoot of a step with a, and at 1 the formula has no value.
 */
#define PREDICT_A_FLOOR		(PREDICT_ONE / 64)
#define PREDICT_A_CEILING	(PREDICT_ONE * 9 / 10)

/*
 * The limits to start from. 0.2: noise in the load grows by only 1.14 in the
 * error of the prediction, and noise of 2.5 % never leaves this limit. 0.8: 6
 * periods after the device's speed halved or doubled the error is below 1 %.
 * A higher maximum saves one of them and overshoots by more; a lower minimum
 * loses in ramps what it wins in noise.
 */
#define PREDICT_A_MIN		(PREDICT_ONE / 5)
#define PREDICT_A_MAX		(PREDICT_ONE * 4 / 5)

/* The largest error that predict_error_permille() tells. */
#define PREDICT_ERROR_MAX	1000000U

/**
 * struct predict - a predictor
 * @s1: use, smoothed; fixed point with PREDICT_SHIFT fractional bits
 * @s2: @s1, smoothed; likewise
 * @next: the last prediction
 * @a_min: lower limit of @a
 * @a_max: upper limit of @a
 * @a: weight of the newest use, in 1 / PREDICT_ONE
 * @error: of the last prediction that was put to the test, in 1/1000 of what
 *	was used
 * @large: direction of the last error if it was large: 1 more was used than
 *	predicted, -1 less; 0 the error was not large
 * @started: a use has been fed
 */
struct predict {
	u64 s1;
	u64 s2;
	u64 next;
	u32 a_min;
	u32 a_max;
	u32 a;
	u32 error;
	s8 large;
	bool started;
};

/**
 * predict_init - start a predictor
 * @p: the predictor, all of whose fields are set
 * @a_min: lower limit of a, in 1 / PREDICT_ONE
 * @a_max: upper limit of a, likewise
 *
 * Limits outside PREDICT_A_FLOOR .. PREDICT_A_CEILING are moved inside, and
 * @a_max up to @a_min. Equal limits make a constant.
 */
void predict_init(struct predict *p, u32 a_min, u32 a_max);

/**
 * predict_next - feed what a period used, get what the next will use
 * @p: the predictor
 * @used: credit used, in any unit; more than PREDICT_USED_MAX counts as that
 *
 * The first use is the first prediction. Given the same a, a prediction is
 * off the formula's exact value, rounded nowhere, by at most 1/2 (the result
 * is an integer) + 1/256 (all rounding before it), whatever the size of the
 * uses and however many there were: the error has no relative part. With
 * a_min at least PREDICT_A_MIN, the 1/256 is 1/3276.
 *
 * Return: the prediction in the unit of @used. Where the formula gives less
 * than 0, 0; never more than twice the largest use so far.
 */
u64 predict_next(struct predict *p, u64 used);

/**
 * predict_error_permille - how wrong the last prediction was
 * @p: the predictor
 *
 * Return: the distance between the newest use and what was predicted for it,
 * in 1/1000 of that use, rounded; at most PREDICT_ERROR_MAX, which is also the
 * answer if something was predicted and nothing used. 0 before there were two
 * uses.
 */
static inline u32 predict_error_permille(const struct predict *p)
{
	return p->error;
}

#endif /* ISOBLK_PREDICT_H */
