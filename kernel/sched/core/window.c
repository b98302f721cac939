// SPDX-License-Identifier: GPL-2.0-only
/*
 * The window's control loop.
 *
 * What a device does with more work at once cannot be told from its latency: one
 * with a common queue answers late and is no faster, one whose dies have queues
 * of their own answers as late and is. So the window is found by trying. At first
 * it doubles while that makes the device faster. Later a quarter more or a
 * fifth less is tried now and then: epochs of both sizes take turns, so that what
 * the load or the device does meanwhile falls on both, and a difference counts
 * if it is larger than what the epochs differ among themselves.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "core/window.h"

#define WINDOW_ONE		1024ULL

/* Doubled, the device must do so much more, or it was enough before. */
#define GROW_GAIN		15

/* Requests that take so many times their least time gain little by more of them. */
#define GROW_BUSY		4

/* So many epochs after a change still show what went before. */
#define SETTLE			1

/* So many epochs in which nobody needs more end the growth. */
#define GROW_PATIENCE		16

/* In so many it has done what it was given before there was a window. */
#define DRAIN_PATIENCE		16

/* In a trial: up must bring so much, and downs may cost so much, of WINDOW_ONE. */
#define UP_GAIN			10
#define DOWN_LOSS		8LL

/* How far down a trial goes, of STEP_ONE: at first, and after failures. */
#define STEP_ONE		16U
#define STEP_FIRST		14U
#define STEP_LEAST		1U

/* Epochs of each size in a trial: before the first look, and at most. */
#define TRIAL_LOOK		6
#define TRIAL_MOST		48

/*
 * A device that does so much more than in this pause so far, of WINDOW_ONE, in so many
 * epochs on end has become faster, and may want more. So many come first.
 */
#define FASTER_GAIN		60
#define FASTER_EPOCHS		3
#define FASTER_AFTER		16
#define SLOWER_EPOCHS		4

/* Epochs between trials, from the last that changed something on. */
#define PAUSE_LEAST		4
#define PAUSE_DOWN		64
#define PAUSE_MOST		1024

/**
 * window_init() - begin anew
 * @w: window
 * @size: to begin with, units
 */
void window_init(struct window *w, u64 size)
{
	*w = (struct window){
		.size = size,
		.phase = WINDOW_GROW,
		.pause = PAUSE_LEAST,
		.step = STEP_FIRST,
	};
}

static void cruise(struct window *w, unsigned int epochs)
{
	w->phase = WINDOW_CRUISE;
	w->odd = false;
	w->left = epochs;
	w->seen = 0;
	w->seen_rate = 0;
	w->faster = 0;
	w->slower = 0;
}

static void begin_trial(struct window *w, const struct window_epoch *e)
{
	w->up = w->try_up;
	w->trial = w->up ? w->size + max(w->size / 4, e->least / 2) :
		max3(w->size - w->size / STEP_ONE * w->step, e->busy,
		     e->least);
	w->trial = w->up ? w->trial : min(w->trial, w->size);
	if (w->trial == w->size) {
		w->try_up = true;
		cruise(w, w->pause);
		return;
	}
	if (w->seen)
		w->usual = div64_u64(w->seen_rate, w->seen);
	w->phase = WINDOW_TRY;
	w->odd = false;
	w->slower = 0;
	w->skip = SETTLE;
	w->unit = max(e->rate / WINDOW_ONE, 1ULL);
	w->at[0] = (struct window_sample){};
	w->at[1] = (struct window_sample){};
}

static u64 mean(const struct window_sample *s)
{
	return div64_u64(s->sum, s->n);
}

/*
 * What steps down have cost is remembered, so that many small losses do not add up. An
 * up that brought little says how much it can be.
 */
static void end_trial(struct window *w, bool adopt, s64 gain)
{
	if (w->up)
		w->lost = adopt ? max(w->lost - gain, 0LL) :
			clamp(gain, 0LL, w->lost);
	else if (adopt)
		w->lost += max(-gain, 0LL);
	if (adopt) {
		w->back = w->up ? 0 : w->size;
		w->back_rate = mean(&w->at[0]) * w->unit;
		w->size = w->trial;
		w->needed = 0;
		w->pause = w->up ? PAUSE_LEAST : PAUSE_DOWN;
	} else {
		w->back = 0;
		w->try_up = !w->up;
		/* It was too much at once. */
		if (!w->up)
			w->step = max(w->step / 2, STEP_LEAST);
		w->pause = min(w->pause * 2, PAUSE_MOST);
	}
	cruise(w, w->pause);
}

/*
 * What a smaller size costs may show only later, when what waits elsewhere because of
 * it has come to an end: then it was too small.
 */
static bool regretted(struct window *w)
{
	u64 least = w->back_rate - w->back_rate / WINDOW_ONE * 2 * DOWN_LOSS;

	if (!w->back || !w->seen || div64_u64(w->seen_rate, w->seen) >= least)
		return false;
	w->size = w->back;
	w->back = 0;
	w->lost = DOWN_LOSS;
	w->step = max(w->step / 2, STEP_LEAST);
	w->pause = PAUSE_LEAST;
	w->try_up = true;
	return true;
}

/*
 * The square of how far the mean may be off: variance over number. All is a whole
 * number until the end, for a mean that is rounded looks like noise.
 */
static u64 doubt(const struct window_sample *s)
{
	return div64_u64(s->n * s->squares - s->sum * s->sum,
			 s->n * s->n * s->n);
}

static void judge(struct window *w)
{
	s64 gain = (s64)mean(&w->at[1]) - (s64)mean(&w->at[0]);
	s64 error = int_sqrt64(doubt(&w->at[0]) + doubt(&w->at[1]));
	s64 loss = max(DOWN_LOSS - w->lost, 1LL);

	if (w->up) {
		if (gain - 2 * error > UP_GAIN)
			end_trial(w, true, gain);
		else if (gain + 2 * error < UP_GAIN ||
			 w->at[1].n >= TRIAL_MOST)
			end_trial(w, false, gain);
	} else {
		if (gain - 2 * error > -loss)
			end_trial(w, true, gain);
		else if (gain + 2 * error < -loss)
			end_trial(w, false, gain);
		else if (w->at[1].n >= TRIAL_MOST)
			end_trial(w, gain > -loss / 2, gain);
	}
}

/* Nobody needs all of it: come down to where it can be felt. */
static void need_less(struct window *w, const struct window_epoch *e)
{
	w->needed = max(w->needed, w->size);
	w->size = max(min(w->size, e->peak + e->peak / 8), e->least);
	w->try_up = false;
}

/* That was for want of load, not because the device needs no more. */
static void need_again(struct window *w)
{
	w->size = max(w->size, w->needed);
	w->needed = 0;
}

/* Whether the device has become faster since this pause began. */
static bool faster(struct window *w, u64 rate)
{
	u64 usual = div64_u64(w->seen_rate, max(w->seen, 1ULL));

	if (w->seen < FASTER_AFTER ||
	    rate <= usual + usual / WINDOW_ONE * FASTER_GAIN)
		w->faster = 0;
	else
		w->faster++;
	return w->faster >= FASTER_EPOCHS;
}

/*
 * Whether the device does less than it did with this size. It may be that a size that just
 * fits leaves nothing to send while requests that ended together are replaced; then
 * they go on ending together, and only more at once brings it back.
 */
static bool slower(struct window *w, u64 rate)
{
	if (rate >= w->usual - w->usual / WINDOW_ONE * FASTER_GAIN)
		w->slower = 0;
	else
		w->slower++;
	return w->slower >= SLOWER_EPOCHS;
}

/* It is another device than it was: see at once whether it wants more. */
static void look_up(struct window *w, const struct window_epoch *e)
{
	w->usual = 0;
	w->seen = 0;
	w->try_up = true;
	w->pause = PAUSE_LEAST;
	begin_trial(w, e);
}

static void try_on(struct window *w, const struct window_epoch *e)
{
	struct window_sample *s = &w->at[w->odd];
	u64 r = div64_u64(e->rate, w->unit);

	if (w->skip) {
		w->skip--;
		return;
	}
	if (e->limited && !w->odd && w->needed > w->size) {
		need_again(w);
		cruise(w, w->pause);
		return;
	}
	/* The smaller of both at least must be felt. */
	if (!e->limited && w->odd != w->up) {
		cruise(w, w->pause);
		return;
	}
	if (!w->odd && !w->up && slower(w, e->rate)) {
		look_up(w, e);
		return;
	}
	r = min(r, 64 * WINDOW_ONE);
	s->n++;
	s->sum += r;
	s->squares += r * r;
	w->odd = !w->odd;
	w->skip = SETTLE;
	if (w->at[0].n >= TRIAL_LOOK && w->at[1].n == w->at[0].n)
		judge(w);
}

static void grow(struct window *w, const struct window_epoch *e)
{
	if (!e->limited) {
		if (w->left++ >= GROW_PATIENCE)
			cruise(w, PAUSE_LEAST);
		return;
	}
	w->left = 0;
	if (w->skip) {
		w->skip--;
		return;
	}
	/*
	 * What came before there was a window is still in the device; if it is for
	 * long, then a request is that large.
	 */
	if (e->peak > w->size + w->size / 4 && w->drain++ < DRAIN_PATIENCE)
		return;
	if (w->last && e->rate <= w->last + w->last / WINDOW_ONE * GROW_GAIN) {
		/* The size before was enough. */
		w->size = max(w->size / 2, e->least);
	} else if (w->size <= GROW_BUSY * e->busy + e->least) {
		w->last = e->rate;
		w->size *= 2;
		w->skip = SETTLE;
		return;
	}
	cruise(w, PAUSE_LEAST);
}

/**
 * window_stop() - give up a trial that is under way
 * @w: window
 */
void window_stop(struct window *w)
{
	if (w->phase == WINDOW_TRY)
		cruise(w, w->pause);
}

/**
 * window_epoch() - an epoch is over
 * @w: window
 * @e: what was seen in it
 */
void window_epoch(struct window *w, const struct window_epoch *e)
{
	w->size = max(w->size, e->least);
	switch (w->phase) {
	case WINDOW_GROW:
		grow(w, e);
		break;
	case WINDOW_CRUISE:
		if (e->limited) {
			need_again(w);
			if (faster(w, e->rate) || slower(w, e->rate)) {
				look_up(w, e);
				break;
			}
			w->seen++;
			w->seen_rate += e->rate;
		} else {
			need_less(w, e);
		}
		if (w->left--)
			break;
		if (regretted(w))
			cruise(w, w->pause);
		else
			begin_trial(w, e);
		break;
	case WINDOW_TRY:
		try_on(w, e);
		break;
	}
}
