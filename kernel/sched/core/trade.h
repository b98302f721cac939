/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a group gains while others are held back for it, and what these lose.
 */
#ifndef ISOBLK_CORE_TRADE_H
#define ISOBLK_CORE_TRADE_H

#include <linux/types.h>

/* A gain that is as much as the others lose, or one time. */
#define TRADE_ONE		256U

/**
 * struct trade_sums - what a group's requests took
 */
struct trade_sums {
	u64 area;		/* work x time in the device */
	u64 wait;		/* work x time before */
	u64 base;		/* work x the least time in the device */
	u64 all;		/* @area of the whole disk */
};

/**
 * struct trade_side - what came of holding others back for a group
 *
 * Times are those of a request, of TRADE_ONE the least, 0: not known.
 */
struct trade_side {
	u32 took;		/* since it came, before the trial, others being held back */
	u32 served;		/* in the device, likewise */
	u32 least;		/* least of @served before the trials that are being judged */
	u32 plain;		/* in the device if nobody queues; TRADE_ONE or more */
	unsigned int nr;	/* trials of these in which others were held back for the group */
	s64 faster;		/* mean of how much less its requests took then */
	s64 gained;		/* mean of what the group gained: trade_trials */
};

/**
 * struct trade_trials - what trials have shown, of TRADE_ONE ^ 2 all that was done in them
 */
struct trade_trials {
	unsigned int nr_made;	/* trials, also those that were too short to show anything */
	unsigned int nr;	/* trials that the means are of, up to so many as count */
	unsigned int least_nr;	/* least trade_side.nr of those for whom others are held back */
	s64 lost;		/* mean of what all lost */
	u64 gained;		/* what those gained who did */
	s64 faster;		/* trade_side.faster of whoever gained the most, of TRADE_ONE ^ 2 */
};

u32 trade_gain(const struct trade_sums *s, u32 plain);
void trade_begin(struct trade_side *side, const struct trade_sums *s,
		 bool held_for);
void trade_end(struct trade_trials *trials, u64 held_rate, u64 free_rate);
void trade_add(struct trade_trials *trials, struct trade_side *side,
	       const struct trade_sums *s);
bool trade_in_vain(const struct trade_trials *trials);
bool trade_open(const struct trade_trials *trials);
bool trade_unsure(const struct trade_trials *trials);
void trade_learn(struct trade_side *side);
void trade_lower(struct trade_side *side, const struct trade_sums *s);

#endif /* ISOBLK_CORE_TRADE_H */
