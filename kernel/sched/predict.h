/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * FeedBAC's credit predictor: it predicts the credit used in the next prediction period from that
 * of past periods. It has no state but the caller's struct predict, and no locks: the caller
 * serializes calls on a predictor.
 */
#ifndef ISOBLK_PREDICT_H
#define ISOBLK_PREDICT_H

#include <linux/types.h>

/* Fractional bits of the smoothed values and of the factor a. */
#define PREDICT_SHIFT		16
#define PREDICT_ONE		65536U

/*
 * Largest use; a larger one is cut to it. 2^40 sectors are 512 TiB. The smoothed values then take
 * 56 bits, a prediction before its fraction is dropped 57.
 */
#define PREDICT_USED_MAX	0x10000000000ULL

/*
 * Bounds of the limits of a. The rounding error grows with 1 / a, the overshoot of a step with a;
 * at a = 1 the formula is undefined.
 */
#define PREDICT_A_FLOOR		(PREDICT_ONE / 64)
#define PREDICT_A_CEILING	(PREDICT_ONE * 9 / 10)

/*
 * Default limits of a. With 0.2 the error of a prediction is 1.14 times the noise of the load, and
 * noise of 2.5 % never raises a. With 0.8 the error is below 1 % six periods after the device's
 * speed has halved or doubled. A higher maximum saves one period and overshoots by more. A lower
 * minimum loses in ramps what it gains in noise.
 */
#define PREDICT_A_MIN		(PREDICT_ONE / 5)
#define PREDICT_A_MAX		(PREDICT_ONE * 4 / 5)

/* Largest error that predict_error_permille() returns. */
#define PREDICT_ERROR_MAX	1000000U

/**
 * struct predict - a predictor
 * @s1: smoothed use; fixed point with PREDICT_SHIFT fractional bits
 * @s2: smoothed @s1; fixed point with PREDICT_SHIFT fractional bits
 * @next: the last prediction
 * @a_min: lower limit of @a
 * @a_max: upper limit of @a
 * @a: weight of the newest use, in 1 / PREDICT_ONE
 * @error: error of the last prediction that could be checked, in 1/1000 of the use
 * @large: direction of the last error if it was large: 1 more was used than predicted, -1 less;
 *	0 the error was not large
 * @started: the first use has been fed
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
 * @p: predictor; all of its fields are set
 * @a_min: lower limit of a, in 1 / PREDICT_ONE
 * @a_max: upper limit of a, in 1 / PREDICT_ONE
 *
 * Limits outside PREDICT_A_FLOOR .. PREDICT_A_CEILING are moved inside, and @a_max is raised to
 * @a_min. With equal limits a is constant.
 */
void predict_init(struct predict *p, u32 a_min, u32 a_max);

/**
 * predict_next - feed the use of a period, predict that of the next
 * @p: predictor
 * @used: credit used, in any unit; cut to PREDICT_USED_MAX
 *
 * The first use is the first prediction. With the same a, a prediction differs from the exact value
 * of the formula by at most 1/2 (the result is an integer) + 1/256 (rounding before it), or 1/3276
 * if a_min is at least PREDICT_A_MIN. The bound depends neither on the size of the uses nor on
 * their number.
 *
 * Return: the prediction in the unit of @used. It is 0 where the formula is negative, and at most
 * twice the largest use so far.
 */
u64 predict_next(struct predict *p, u64 used);

/**
 * predict_error_permille - error of the last prediction
 * @p: predictor
 *
 * Return: the distance between the newest use and its prediction, in 1/1000 of that use, rounded.
 * It is at most PREDICT_ERROR_MAX, also if credit was predicted and none used. It is 0 before the
 * second use.
 */
static inline u32 predict_error_permille(const struct predict *p)
{
	return p->error;
}

#endif /* ISOBLK_PREDICT_H */
