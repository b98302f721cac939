// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of a latency target: whether it is met, and how much less others do
 * if it is not.
 *
 * Two things are taken from the others, one after the other. The window comes first: what
 * queues in the device stands in nobody's way if it queues here. It costs little until
 * the device is idle. But a drive with a buffer takes a write before it has written it,
 * and two of them at once keep it as busy as two hundred: then what is in the reader's way is
 * work that was accepted long ago. So when the window is at its least the others get a
 * pace. Given back is the pace first, for it costs more.
 *
 * Either shrinks as much as the target is missed by: what a reader meets of others'
 * work is in proportion to how much of it there is.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "core/squeeze.h"

/*
 * A 99th percentile is met if one request in a hundred is late. The loop keeps a little
 * away from it, for what comes of its own trials counts as well.
 */
#define LATE_ONE_IN		128ULL

/* Fewer late requests than this are chance, whatever their part. */
#define LATE_LEAST		3

/* Of so many the part is as near as need be; of so many without one there is room. */
#define JUDGE_MOST		1024
#define JUDGE_NONE_LATE		400

/* One step leaves at least this, and at most that much, of 8. */
#define SHRINK_ONE		8
#define SHRINK_LEAST		4
#define SHRINK_MOST		7

/* What is given back at a time: a quarter of the window, an eighth of the pace. */
#define RELAX_WINDOW		4
#define RELAX_PACE		8

/* Others keep at least this part of what the device did: they go on. */
#define PACE_LEAST		128

/**
 * latency_judge() - whether a group meets its target
 * @nr: requests that have completed
 * @missed: those of them that were late
 *
 * A miss is told as soon as it is more than chance: twice the deviation of so rare an event
 * above what may be. That it is met takes more requests.
 */
enum latency_verdict latency_judge(u64 nr, u64 missed)
{
	u64 late = missed * LATE_ONE_IN;

	if (missed >= LATE_LEAST && late > nr &&
	    (nr >= JUDGE_MOST ||
	     (late - nr) * (late - nr) > 4 * LATE_ONE_IN * nr))
		return LATENCY_MISSED;
	if (nr >= JUDGE_MOST)
		return 2 * late <= nr ? LATENCY_ROOM : LATENCY_MET;
	if (nr >= JUDGE_NONE_LATE && !missed)
		return LATENCY_ROOM;
	return LATENCY_UNSURE;
}

static u64 shrink(u64 value, u64 nr, u64 missed)
{
	u64 part = div64_u64(SHRINK_ONE * nr, max(missed * LATE_ONE_IN, 1ULL));

	return value / SHRINK_ONE * clamp(part, SHRINK_LEAST, SHRINK_MOST);
}

/* The pace may not be so low that others stand still. */
static u64 least_pace(const struct squeeze *s)
{
	return max(s->from / PACE_LEAST, 1ULL);
}

/* The least goes with the requests of a moment: near it is there. */
static bool window_is_least(const struct squeeze *s, u64 least)
{
	return s->window && s->window <= least + least / 4;
}

/**
 * squeeze_is_least() - whether there is nothing left to take from the others
 * @s: squeeze
 *
 * There is a pace only where the window is at its least.
 */
bool squeeze_is_least(const struct squeeze *s)
{
	return s->pace && s->pace <= least_pace(s);
}

/**
 * squeeze_tighten() - a target was missed: others may do less
 * @s: squeeze
 * @nr: requests that the verdict is of
 * @missed: those that were late
 * @e: what was seen
 */
void squeeze_tighten(struct squeeze *s, u64 nr, u64 missed,
		     const struct squeeze_seen *e)
{
	if (!s->window) {
		s->full = max(e->rate, 1ULL);
		WRITE_ONCE(s->window, e->peak);
	} else if (window_is_least(s, e->least) && !s->pace) {
		s->from = max(e->rate, 1ULL);
		WRITE_ONCE(s->pace, s->from);
	}
	if (!s->pace) {
		WRITE_ONCE(s->window,
			   max(shrink(s->window, nr, missed), e->least));
		return;
	}
	WRITE_ONCE(s->pace, max(shrink(s->pace, nr, missed), least_pace(s)));
}

/**
 * squeeze_relax() - the targets are met with room to spare: others may do more
 * @s: squeeze
 * @size: the window that makes the device fast
 */
void squeeze_relax(struct squeeze *s, u64 size)
{
	u64 pace = s->pace;

	if (pace) {
		pace += max(pace / RELAX_PACE, 1ULL);
		WRITE_ONCE(s->pace, pace < s->from ? pace : 0);
		return;
	}
	if (!s->window)
		return;
	WRITE_ONCE(s->window,
		   s->window + max(s->window / RELAX_WINDOW, 1ULL));
	if (s->window >= size)
		WRITE_ONCE(s->window, 0);
}
