/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How little others may do for the sake of somebody's latency.
 */
#ifndef ISOBLK_SQUEEZE_H
#define ISOBLK_SQUEEZE_H

#include <linux/types.h>

/**
 * struct squeeze - what others are left with; the caller's lock, @pace read without
 */
struct squeeze {
	u64 window;		/* work at once in the device, units; 0: what makes it fast */
	u64 pace;		/* units a second that others may send; 0: any number */
	u64 full;		/* units a second of the device when the squeeze began */
	u64 from;		/* units a second of it when the pace began */
};

/**
 * struct squeeze_seen - what was seen in the last span of time
 */
struct squeeze_seen {
	u64 peak;		/* most work that the device had, or may have if less */
	u64 least;		/* least window that makes sense, units */
	u64 rate;		/* units a second of the device, usually */
};

/* What can be said of a target from so many requests and those that missed it. */
enum latency_verdict {
	LATENCY_UNSURE,
	LATENCY_MISSED,
	LATENCY_MET,
	LATENCY_ROOM,
};

enum latency_verdict latency_judge(u64 nr, u64 missed);
void squeeze_tighten(struct squeeze *s, u64 nr, u64 missed,
		     const struct squeeze_seen *e);
void squeeze_relax(struct squeeze *s, u64 size);
bool squeeze_is_least(const struct squeeze *s);

#endif /* ISOBLK_SQUEEZE_H */
