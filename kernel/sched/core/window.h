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
 */
struct window {
	u64 size;		/* work the device may have at once, units */
	u64 trial;		/* the size that is tried, in WINDOW_TRY */
	u64 needed;		/* @size while there was load for it; 0: there is */
	enum window_phase phase; /* what is being tried */
	bool odd;		/* this epoch has @trial, not @size */
	bool up;		/* @trial is the larger */
	bool try_up;		/* the next trial is of a larger size */
	unsigned int skip;	/* epochs that still show what went before */
	u64 unit;		/* rate that is WINDOW_ONE in a sample */
	u64 last;		/* the rate before the last doubling */
	unsigned int pause;	/* epochs between trials */
	unsigned int step;	/* how far down the next trial goes */
	unsigned int left;	/* epochs left of this phase */
	unsigned int drain;	/* epochs with more in the device than a growing window */
	s64 lost;		/* cost of the steps down so far, of WINDOW_ONE */
	u64 back;		/* @size before the last step down; 0: that was none */
	u64 back_rate;		/* rate before it */
	u64 seen;		/* epochs of this pause in which somebody had to wait */
	u64 seen_rate;		/* sum of their rates */
	u64 usual;		/* rate of the last pause with waiting; 0: not known */
	unsigned int slower;	/* last epochs with @size in a row that did much less */
	unsigned int faster;	/* last of these in a row that did much more than before */
	struct window_sample at[2]; /* rates with @size and with @trial */
};

/**
 * struct window_epoch - what was seen in a span of time
 */
struct window_epoch {
	u64 rate;		/* units a second of the device */
	bool limited;		/* somebody had to wait for the window */
	u64 peak;		/* most work in the device, units */
	u64 busy;		/* work done in the least time of a request, units */
	u64 least;		/* least window that makes sense, units */
};

void window_init(struct window *w, u64 size);
void window_stop(struct window *w);
void window_epoch(struct window *w, const struct window_epoch *e);

static inline u64 window_now(const struct window *w)
{
	return w->phase == WINDOW_TRY && w->odd ? w->trial : w->size;
}

#endif /* ISOBLK_WINDOW_H */
