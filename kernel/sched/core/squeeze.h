/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How little others may do for the sake of somebody's latency.
 */
#ifndef ISOBLK_SQUEEZE_H
#define ISOBLK_SQUEEZE_H

#include <linux/types.h>

/**
 * struct squeeze - what others are left with; the caller's lock, @pace read without
 * @window: work the device may have at once, units; 0: as much as makes it fast
 * @pace: units a second that others may send, 0: as many as they can
 * @full: what the device did when the squeeze began, units a second
 * @from: and when the pace did
 */
struct squeeze {
	u64 window;
	u64 pace;
	u64 full;
	u64 from;
};

/**
 * struct squeeze_seen - what was seen in the last span of time
 * @peak: the most work that the device had, or may have if that is less
 * @least: a window below this makes no sense, units
 * @rate: units a second that the device usually does
 */
struct squeeze_seen {
	u64 peak;
	u64 least;
	u64 rate;
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
