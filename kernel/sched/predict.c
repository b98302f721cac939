// SPDX-License-Identifier: GPL-2.0-only
/*
 * FeedBAC's credit predictor (IIBC 20(3), 2020, doi
 * 10.7236/IIBC.2020.20.3.97): double exponential smoothing. With x_t, the
 * credit used in period t,
 *
 *	s1_t = s1_{t-1} + a (x_t - s1_{t-1})
 *	s2_t = s2_{t-1} + a (s1_t - s2_{t-1})
 *	c_{t+1} = (2 s1_t - s2_t) + (a / (1 - a)) (s1_t - s2_t)
 *
 * s1 is late behind a ramp, s2 late behind s1 by as much again; so 2 s1 - s2
 * is the level now, and the last term is one more step of the ramp.
 *
 * The last line is worked out without its division, which near a = 1 would
 * magnify rounding errors. It is s1_t + (s1_t - s2_t) / (1 - a), and from the
 * second line s1_t - s2_t = (1 - a) (s1_t - s2_{t-1}). So
 *
 *	c_{t+1} = 2 s1_t - s2_{t-1}
 *
 * Each of the two multiplications by a drops less than u = 2^-16, towards the
 * old value, so that s1 and s2 never leave the range of the x. An error fades
 * by 1 - a each period, hence s1 is off by less than u / a, s2 by less than
 * 2 u / a, and c by less than 4 u / a: 1/256 at the smallest a there is.
 *
 * How a adapts. After a step of the load by D, a constant a predicts 2 a D at
 * once: 0.5 is right the first time, more overshoots by (2 a - 1) D, less
 * falls short. Either way the errors after the first add up to D again with
 * the opposite sign, and fade with (1 - a)^t: a large a makes the transient
 * high and short. In noise, a small a is better. So:
 *
 * - An error is large above 1/16 of the larger of prediction and use. Two
 *   large errors in turn and in the same direction mean that the load is
 *   another one: a goes to its maximum, at once, because smoothing is useless
 *   there.
 * - An error up to 1/32 halves the distance of a to its minimum.
 * - Anything else leaves a alone: errors between the two, and a large error
 *   by itself. One slow period, as when the device collects garbage, is thus
 *   no new level: it draws the next prediction down by 2 a of its loss. If
 *   that is much, the errors after it, which have the other direction, raise
 *   a and so bring the prediction back.
 *
 * With the default limits the overshoot of a step is 64 % of its height, for
 * one period. The first period after a step is wrong by the whole step, of
 * course, and the second nearly so.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "predict.h"

/* Bounds of large and small errors, as shifts: 1/16 and 1/32. */
#define LARGE_SHIFT	4
#define SMALL_SHIFT	5

void predict_init(struct predict *p, u32 a_min, u32 a_max)
{
	*p = (struct predict) {
		.a_min = clamp(a_min, PREDICT_A_FLOOR, PREDICT_A_CEILING),
	};
	p->a_max = clamp(a_max, p->a_min, PREDICT_A_CEILING);
	p->a = p->a_min;
}

/* Note the error of the last prediction, and choose a by it. */
static void judge(struct predict *p, u64 used)
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

	if (diff << LARGE_SHIFT > larger)
		large = used > p->next ? 1 : -1;
	if (large && large == p->large)
		p->a = p->a_max;
	else if (diff << SMALL_SHIFT <= larger)
		p->a -= (p->a - p->a_min + 1) / 2;
	p->large = large;
}

/* @from + @a (@to - @from) */
static u64 smooth(u64 from, u64 to, u32 a)
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

	/* From 0 the smoothed values would need 1 / a periods to arrive. */
	if (!p->started) {
		p->started = true;
		p->s1 = x;
		p->s2 = x;
		p->next = used;
		return used;
	}

	judge(p, used);

	s2_before = p->s2;
	p->s1 = smooth(p->s1, x, p->a);
	p->s2 = smooth(p->s2, p->s1, p->a);
	if (2 * p->s1 > s2_before)
		p->next = (2 * p->s1 - s2_before + PREDICT_ONE / 2) >>
			  PREDICT_SHIFT;
	else
		p->next = 0;
	return p->next;
}
