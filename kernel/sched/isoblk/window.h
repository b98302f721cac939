/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much cost a disk has in flight: window.c.
 */
#ifndef ISOBLK_WINDOW_H
#define ISOBLK_WINDOW_H

#include "isoblk/trial.h"

enum window_phase { WINDOW_CRUISE, WINDOW_TRIAL };

/**
 * struct window - the control loop of a disk's window; the caller's lock
 */
struct window {
	u64 size;		/* cost that may be in flight */
	u64 other;		/* the size compared with it, in WINDOW_TRIAL */
	enum window_phase phase;
	bool up;		/* the next trial, or the one under way, is of a larger size */
	bool starting;		/* sizes grow fast, until that gains nothing */
	unsigned int step;	/* how far down the next trial goes, of WINDOW_STEPS */
	unsigned int pause;	/* epochs from one trial to the next */
	unsigned int left;	/* epochs until that */
	u64 best;		/* size that @lost is counted from */
	s64 lost;		/* what the steps down from @best have cost, of TRIAL_ONE */
	struct trial trial;
};

/**
 * struct window_epoch - what was seen in an epoch
 */
struct window_epoch {
	u64 rate;		/* of the device, cost a second */
	u64 least;		/* least window that makes sense */
	bool limited;		/* a request waited for room in the window */
	bool may_try;		/* a trial may begin */
};

void window_init(struct window *w, u64 size);
void window_widen(struct window *w);
void window_epoch(struct window *w, const struct window_epoch *e);

/* Size in the epoch that is under way. */
static inline u64 window_now(const struct window *w)
{
	return w->phase == WINDOW_TRIAL && trial_has_b(&w->trial) ? w->other :
		w->size;
}

#endif /* ISOBLK_WINDOW_H */
