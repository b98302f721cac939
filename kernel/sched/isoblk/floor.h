/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cost in flight up to which no group is throttled: floor.c.
 */
#ifndef ISOBLK_FLOOR_H
#define ISOBLK_FLOOR_H

#include <linux/limits.h>

#include "isoblk/trial.h"

/* No request is throttled. */
#define FLOOR_OPEN	U64_MAX

/* Unit of max_loss: permille. */
#define FLOOR_LOSS_ONE	1000

/* Numbers of groups for which a floor is kept; the last is for more, too. */
#define FLOOR_GROUPS	8

enum floor_phase { FLOOR_CRUISE, FLOOR_TRIAL };

/**
 * struct floor_found - where the search ended with some number of groups
 */
struct floor_found {
	bool any;		/* there was one */
	u64 size;		/* as those of struct floor */
	u64 low;
	u64 high;
};

/**
 * struct floor - the control loop of a disk's floor; the caller's lock
 */
struct floor {
	u64 size;		/* cost in flight below which no group is throttled */
	u64 low;		/* largest size known to lose more than max_loss, 0: none is */
	u64 high;		/* least size known to lose less, FLOOR_OPEN: none is */
	enum floor_phase phase;
	unsigned int pause;	/* spans from one trial to the next */
	unsigned int left;	/* spans with throttling until that */
	bool settled;		/* the last trial changed nothing, or none is needed */
	bool widen;		/* too much is lost, and by the window: it is too small */
	bool searching;		/* the last trial changed @size: the next is not put off */
	int credit;		/* of FLOOR_TRIAL_PART a span of a trial: below 0 there is none */
	unsigned int max_loss;	/* that @low and @high are of, permille */
	unsigned int groups;	/* number of groups that @size is for, below FLOOR_GROUPS */
	struct floor_found found[FLOOR_GROUPS];
	unsigned int busy;	/* spans in a row in which the model had the device busy */
	u64 in_flight;		/* sum of cost in flight in open spans of the trial */
	unsigned int nr_open;	/* number of them */
	u64 throttled;		/* sum of floor_span.throttled in the trial's other spans */
	struct trial trial;	/* A: open; B: throttled beyond @size */
};

/**
 * struct floor_span - what was seen in a span of time
 */
struct floor_span {
	u64 rate;		/* of the device, cost a second */
	u64 in_flight;		/* mean cost in flight */
	u64 window;		/* cost that may be in flight */
	u64 least;		/* least floor but none: a request's cost */
	unsigned int throttled;	/* permille of the time in which a request was throttled */
	bool limited;		/* a request waited for room in the window */
	bool spared;		/* a request was not, for the floor alone */
	bool busy;		/* by a model that is known the device lost less than max_loss */
	bool full;		/* by such a model it hardly lost anything */
	unsigned int groups;	/* number of active groups */
	bool changed;		/* other groups are active than before */
	bool may_try;		/* a trial may begin */
	unsigned int max_loss;	/* permille */
};

void floor_init(struct floor *f);
void floor_span(struct floor *f, const struct floor_span *s);

/* Floor in the span that is under way. */
static inline u64 floor_now(const struct floor *f)
{
	return f->phase == FLOOR_TRIAL && !trial_has_b(&f->trial) ? FLOOR_OPEN :
		f->size;
}

#endif /* ISOBLK_FLOOR_H */
