// SPDX-License-Identifier: GPL-2.0-only
/*
 * FeedBAC's credit predictor (IIBC 20(3), 2020, doi 10.7236/IIBC.2020.20.3.97): double exponential
 * smoothing. With x_t, the credit used in period t,
 *
 *	s1_t = s1_{t-1} + a (x_t - s1_{t-1})
 *	s2_t = s2_{t-1} + a (s1_t - s2_{t-1})
 *	c_{t+1} = (2 s1_t - s2_t) + (a / (1 - a)) (s1_t - s2_t)
 *
 * On a ramp s1 lags behind x, and s2 lags behind s1 by as much. So 2 s1 - s2 is the present level,
 * and the last term is one more step of the ramp.
 *
 * The last line is computed without its division, which near a = 1 would magnify rounding errors.
 * It equals s1_t + (s1_t - s2_t) / (1 - a), and by the second line s1_t - s2_t = (1 - a) (s1_t -
 * s2_{t-1}). So
 *
 *	c_{t+1} = 2 s1_t - s2_{t-1}
 *
 * Rounding. Each multiplication by a drops less than u = 2^-16, towards the old value, so s1 and s2
 * stay in the range of the x. An error decays by 1 - a each period. Hence s1 is off by less than u
 * / a, s2 by less than 2 u / a, and c by less than 4 u / a: 1/256 at the smallest a.
 *
 * Adaptation of a. After a step of the load by D a constant a predicts a change of 2 a D at once.
 * With a = 0.5 that is right, a larger a overshoots by (2 a - 1) D, a smaller one falls short. The
 * errors after the first add up to D with the opposite sign, and decay with (1 - a)^t. So a large a
 * makes the transient high and short; in noise a small a is better. The rules:
 *
 *  - An error is large above 1/16 of the larger of prediction and use. Two consecutive large errors
 *    in the same direction are a new level of the load: a becomes a_max at once, because smoothing
 *    is useless there.
 *  - An error up to 1/32 halves the distance of a to a_min.
 *  - Any other error leaves a unchanged: one between the two bounds, or a single large one. So one
 *    slow period, as during garbage collection, is not a new level. It lowers the next prediction
 *    by 2 a of the loss. If that is much, the next errors have the other direction; they raise a,
 *    which restores the prediction.
 *
 * With the default limits a step overshoots by 64 % of its height, for one period. The first period
 * after a step is wrong by the whole step, and the second by nearly as much.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "predict.h"

/* Bounds of large and small errors, as shifts: 1/16 and 1/32. */
#define PREDICT_LARGE_SHIFT	4
#define PREDICT_SMALL_SHIFT	5

void predict_init(struct predict *p, u32 a_min, u32 a_max)
{
	*p = (struct predict) {
		.a_min = clamp(a_min, PREDICT_A_FLOOR, PREDICT_A_CEILING),
	};
	p->a_max = clamp(a_max, p->a_min, PREDICT_A_CEILING);
	p->a = p->a_min;
}

/* Record the error of the last prediction, and adapt a. */
static void predict_adapt(struct predict *p, u64 used)
{
	u64 diff = used > p->next ? used - p->next : p->next - used;
	u64 larger = max(used, p->next);
	s8 large = 0;

	if (!diff)
		p->error = 0;
	else if (!used)
		p->error = PREDICT_ERROR_MAX;
	else
		p->error = min_t(u64, PREDICT_ERROR_MAX,
				 div64_u64(diff * 1000 + used / 2, used));

	if (diff << PREDICT_LARGE_SHIFT > larger)
		large = used > p->next ? 1 : -1;
	if (large && large == p->large)
		p->a = p->a_max;
	else if (diff << PREDICT_SMALL_SHIFT <= larger)
		p->a -= (p->a - p->a_min + 1) / 2;
	p->large = large;
}

/* @from + @a (@to - @from) */
static u64 predict_smooth(u64 from, u64 to, u32 a)
{
	if (to < from)
		return from - mul_u64_u32_shr(from - to, a, PREDICT_SHIFT);
	return from + mul_u64_u32_shr(to - from, a, PREDICT_SHIFT);
}

u64 predict_next(struct predict *p, u64 used)
{
	u64 x, s2_before;

	used = min(used, PREDICT_USED_MAX);
	x = used << PREDICT_SHIFT;

	/* The first use starts both: from 0 they would need 1 / a periods to reach it. */
	if (!p->started) {
		p->started = true;
		p->s1 = x;
		p->s2 = x;
		p->next = used;
		return used;
	}

	predict_adapt(p, used);

	s2_before = p->s2;
	p->s1 = predict_smooth(p->s1, x, p->a);
	p->s2 = predict_smooth(p->s2, p->s1, p->a);
	if (2 * p->s1 > s2_before)
		p->next = (2 * p->s1 - s2_before + PREDICT_ONE / 2) >>
			  PREDICT_SHIFT;
	else
		p->next = 0;
	return p->next;
}
