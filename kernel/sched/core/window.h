/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much work the device has at once: enough to keep it busy, and no more.
 */
#ifndef ISOBLK_WINDOW_H
#define ISOBLK_WINDOW_H

#include <linux/types.h>

enum window_phase { WINDOW_GROW, WINDOW_CRUISE, WINDOW_TRY };

/* Rates of one size in a trial, each relative to @unit below. */
struct window_sample {
	u64 n;
	u64 sum;
	u64 squares;
};

/**
 * struct window - the control loop of a disk's window; the caller's lock
 * @size: work the device may have at once, units
 * @trial: the size that is tried, in WINDOW_TRY
 * @needed: what @size was while there was load for it, 0: it is
 * @phase: what is being done
 * @odd: this epoch has @trial
 * @up: @trial is the larger
 * @try_up: the next one is
 * @skip: the next epoch still shows what went before
 * @unit: rate that is WINDOW_ONE in a sample
 * @last: the rate before the last doubling
 * @pause: epochs between trials
 * @step: how far down the next trial goes
 * @left: epochs left of this phase
 * @drain: epochs in which the device had more than a window that was to grow
 * @lost: what steps down have cost, of WINDOW_ONE
 * @back: the size before the last step down, 0: it was none
 * @back_rate: and the rate
 * @seen: epochs of this pause in which somebody had to wait
 * @seen_rate: sum of their rates
 * @usual: rate of the last pause in which somebody had to wait, 0: not known
 * @slower: of the epochs with @size, the last in which the device did much less than that
 * @faster: of these epochs, the last in which the device did much more than before
 * @at: samples of @size and of @trial
 */
struct window {
	u64 size;
	u64 trial;
	u64 needed;
	enum window_phase phase;
	bool odd;
	bool up;
	bool try_up;
	unsigned int skip;
	u64 unit;
	u64 last;
	unsigned int pause;
	unsigned int step;
	unsigned int left;
	unsigned int drain;
	s64 lost;
	u64 back;
	u64 back_rate;
	u64 seen;
	u64 seen_rate;
	u64 usual;
	unsigned int slower;
	unsigned int faster;
	struct window_sample at[2];
};

/**
 * struct window_epoch - what was seen in a span of time
 * @rate: units a second that the device has done
 * @limited: somebody had to wait for the window
 * @peak: the most work that the device had
 * @busy: as much as the device does in the least time a request takes, units
 * @least: below this the window makes no sense, units
 */
struct window_epoch {
	u64 rate;
	bool limited;
	u64 peak;
	u64 busy;
	u64 least;
};

void window_init(struct window *w, u64 size);
void window_stop(struct window *w);
void window_epoch(struct window *w, const struct window_epoch *e);

static inline u64 window_now(const struct window *w)
{
	return w->phase == WINDOW_TRY && w->odd ? w->trial : w->size;
}

#endif /* ISOBLK_WINDOW_H */
