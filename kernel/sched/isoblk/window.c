// SPDX-License-Identifier: GPL-2.0-only
/*
 * The window: as much cost in flight as makes the device fast, and no more. Requests beyond that
 * wait in the device's queues, in the device's order.
 *
 * Latency does not show what a device does with more in flight: a device with a common queue gets
 * slower answers and no more work done, a device whose dies have queues of their own as slow
 * answers and more work done. So sizes are compared (trial.c). At first the size grows fourfold as
 * long as that gains; later it is a quarter more or some sixteenths less.
 */
#include <linux/minmax.h>

#include "isoblk/window.h"

/* Least gain of a larger size, and largest loss of a smaller one, of TRIAL_ONE. */
#define WINDOW_GAIN_MIN		10
#define WINDOW_LOSS_MAX		8LL

/* A step down: the first, and after failures. */
#define WINDOW_STEPS		16U
#define WINDOW_STEP_FIRST	8U
#define WINDOW_STEP_MIN		1U

/* While starting sizes grow so fast: where one slow request fills the window two show no gain. */
#define WINDOW_START		4

/* Epochs from one trial to the next: after a change, and if nothing changes. */
#define WINDOW_PAUSE_MIN	4
#define WINDOW_PAUSE_MAX	512

/**
 * window_init() - begin anew
 * @w: window
 * @size: to begin with
 */
void window_init(struct window *w, u64 size)
{
	*w = (struct window){
		.size = size,
		.best = size,
		.up = true,
		.starting = true,
		.step = WINDOW_STEP_FIRST,
		.pause = WINDOW_PAUSE_MIN,
	};
}

/* The size to compare with, at least @least. */
static u64 window_other_size(const struct window *w, u64 least)
{
	if (w->up)
		return w->starting ? WINDOW_START * w->size :
			max(w->size + max(w->size / 4, least / 2), w->best);
	return max(w->size - w->size / WINDOW_STEPS * w->step, least);
}

static void window_cruise(struct window *w, unsigned int epochs)
{
	w->phase = WINDOW_CRUISE;
	w->left = epochs;
}

static void window_begin_trial(struct window *w, u64 least)
{
	w->other = window_other_size(w, least);
	if (w->other == w->size) {
		w->up = true;
		window_cruise(w, w->pause);
		return;
	}
	w->phase = WINDOW_TRIAL;
	trial_begin(&w->trial);
}

/*
 * What steps down have cost is remembered, so that many small losses do not add up. A step up goes
 * back to the size that they are counted from at least: one that gains little says how much they
 * cost in all. After a step down the next may be larger: noise has steps fail that cost nothing.
 */
static void window_adopt(struct window *w, s64 gain)
{
	w->size = w->other;
	if (w->up) {
		w->lost = 0;
		w->best = w->size;
	} else {
		w->lost = max(w->lost - gain, 0LL);
		w->step = min(2 * w->step, WINDOW_STEP_FIRST);
	}
	w->pause = WINDOW_PAUSE_MIN;
	window_cruise(w, w->starting ? 0 : w->pause);
}

static void window_reject(struct window *w, s64 gain)
{
	if (w->up) {
		/* A size above the best one was never in use: its gain counts as no loss. */
		if (w->other > w->best)
			gain = min(gain, w->lost);
		w->lost = max(gain, 0LL);
		if (!w->lost)
			w->best = w->size;
	} else {
		w->step = max(w->step / 2, WINDOW_STEP_MIN);
	}
	w->up = !w->up;
	w->starting = false;
	w->pause = min(2 * w->pause, WINDOW_PAUSE_MAX);
	window_cruise(w, w->pause);
}

static void window_judge(struct window *w)
{
	struct trial_result r = trial_result(&w->trial);
	s64 least = w->up ? WINDOW_GAIN_MIN :
		-max(WINDOW_LOSS_MAX - w->lost, 1LL);

	if (r.gain - r.error > least)
		window_adopt(w, r.gain);
	else if (r.gain + r.error < least)
		window_reject(w, r.gain);
	else if (w->trial.n < TRIAL_PAIRS_MAX)
		return;
	else if (!w->up && r.gain > least / 2)
		window_adopt(w, r.gain);
	else
		window_reject(w, r.gain);
}

static void window_add_epoch(struct window *w, const struct window_epoch *e)
{
	if (trial_add(&w->trial, e->rate) && w->trial.n >= TRIAL_PAIRS_MIN)
		window_judge(w);
}

/**
 * window_widen() - the device does more with twice as much in flight
 * @w: window; no trial is under way
 */
void window_widen(struct window *w)
{
	w->size *= 2;
	w->lost = 0;
	w->pause = WINDOW_PAUSE_MIN;
	window_cruise(w, w->pause);
}

/**
 * window_epoch() - an epoch is over
 * @w: window
 * @e: what was seen in it
 */
void window_epoch(struct window *w, const struct window_epoch *e)
{
	w->size = max(w->size, e->least);
	if (w->phase == WINDOW_TRIAL) {
		w->other = max(w->other, e->least);
		if (w->other == w->size)
			window_cruise(w, w->pause);
		else
			window_add_epoch(w, e);
		return;
	}
	if (!e->limited)
		return;
	if (w->left)
		w->left--;
	else if (e->may_try)
		window_begin_trial(w, e->least);
}
