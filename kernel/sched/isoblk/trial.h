/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two settings of a device compared: trial.c.
 */
#ifndef ISOBLK_TRIAL_H
#define ISOBLK_TRIAL_H

#include <linux/types.h>

/* A rate as large as that with the first setting, in means and errors. */
#define TRIAL_ONE	1024LL

/* Pairs before the first look, and after which a trial ends in any case. */
#define TRIAL_PAIRS_MIN	4
#define TRIAL_PAIRS_MAX	24

/**
 * struct trial - a comparison of settings A and B; the caller's lock
 */
struct trial {
	unsigned int at;	/* spans counted so far */
	bool settling;		/* the span that is under way still shows the last setting */
	u64 first;		/* rate of the pair's first span */
	u64 sum_a;		/* sum of rates with A, units a second */
	unsigned int n;		/* pairs */
	s64 sum;		/* sum of (B - A) of pairs, units a second */
	u64 unit;		/* units a second in which @squares is counted */
	u64 squares;		/* sum of squares of (B - A), of @unit */
};

/**
 * struct trial_result - what a trial has shown so far, of TRIAL_ONE
 */
struct trial_result {
	s64 gain;	/* mean of what B does more than A */
	s64 error;	/* two standard errors of that */
};

void trial_begin(struct trial *t);
bool trial_add(struct trial *t, u64 rate);
struct trial_result trial_result(const struct trial *t);

/* Whether the span that is under way has setting B: A B B A, and so on. */
static inline bool trial_has_b(const struct trial *t)
{
	return (t->at + 1) & 2;
}

#endif /* ISOBLK_TRIAL_H */
