// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a group gains while others are held back for it, and what these lose.
 *
 * Before anybody is held back it can only be estimated. A group that has n of the N
 * units in the device, where each takes rho times what it would if nobody queued, gains
 * n / N x (rho - 1) units for each that the others lose.
 *
 * What it would take if nobody queued is not known either. The least time that was seen is
 * too little where requests are unlike each other, though of one size: pages of a flash
 * cell are not read alike, some are found in a buffer. Then all seem to queue, for ever.
 * So what was estimated is compared with what came of it: while others are held back, and
 * in the trial after that, when nobody is. If the device does clearly less while they
 * are, and those for whom they are gain next to nothing by it, then what these take is
 * what requests take: the estimate begins there. One trial may be wrong, for requests are
 * few in it, and a device may stop to clean up; so it takes the mean of several.
 */
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>

#include "core/trade.h"
#include "muldiv.h"

/* So that products fit: a gain, and how many times the least something took. */
#define GAIN_MOST		BIT(30)
#define TIMES_MOST		(1024 * TRADE_ONE)

/* All that was done in a trial. One trial may not outweigh the others by more than that. */
#define ALL			(TRADE_ONE * TRADE_ONE)

/* A device that does less by no more than this part may have done so by chance. */
#define LOSS_PARTS		16

/* Trials that are needed for a verdict, and that the means are of. */
#define TRIALS_LEAST		3U
#define TRIALS_MOST		8U

/*
 * It was in vain if what was gained is a smaller part of what was lost and gained, and nobody
 * became faster by as much: to who is a small part of all, little of it is much.
 */
#define GAINED_LEAST		(TRADE_ONE / 8)
#define FASTER_LEAST		(TRADE_ONE / 10)

/* It may be found to be that small yet if it is less than so many times as much. */
#define NEARLY			2U

static u32 times(u64 took, u64 base)
{
	return min_t(u64, mul_div(took, TRADE_ONE, base), TIMES_MOST);
}

/**
 * trade_gain() - what would a group gain for each unit that others lose?
 * @s: what its requests took
 * @plain: what they would take if nobody queued, of TRADE_ONE the least
 *
 * Return: of TRADE_ONE.
 */
u32 trade_gain(const struct trade_sums *s, u32 plain)
{
	u64 took = s->area + s->wait, base, more;

	base = mul_div(s->base, plain, TRADE_ONE);
	if (!base || !s->all || took <= base)
		return 0;
	more = mul_div(took - base, TRADE_ONE, base);
	return min_t(u64, mul_div(more, s->area, s->all), GAIN_MOST);
}

/**
 * trade_begin() - a trial begins: keep how long requests have taken up to now
 * @side: what is seen of a group
 * @s: what its requests took
 * @held_for: others are held back for it
 */
void trade_begin(struct trade_side *side, const struct trade_sums *s,
		 bool held_for)
{
	bool seen = held_for && s->base;

	side->took = seen ? times(s->area + s->wait, s->base) : 0;
	side->served = seen ? times(s->area, s->base) : 0;
}

static s64 mean(s64 of, s64 value, unsigned int nr)
{
	return of + div_s64(value - of, nr);
}

/**
 * trade_end() - a trial has ended; trade_add() follows for each group
 * @trials: those so far
 * @held_rate: what was done while others were held back
 * @free_rate: what was done when nobody was, in the same time
 */
void trade_end(struct trade_trials *trials, u64 held_rate, u64 free_rate)
{
	s64 lost = ALL;

	if (free_rate)
		lost -= min(mul_div(held_rate, ALL, free_rate), 2ULL * ALL);
	trials->nr = min(trials->nr + 1, TRIALS_MOST);
	trials->lost = mean(trials->lost, lost, trials->nr);
	trials->gained = 0;
	trials->faster = 0;
	trials->least_nr = TRIALS_MOST;
}

/**
 * trade_add() - what did a group gain while others were held back?
 * @trials: with the one that has ended
 * @side: what is seen of the group
 * @s: what its requests took in the trial, when nobody was held back
 *
 * Who lost is one of those who were held back, also if others were for it.
 */
void trade_add(struct trade_trials *trials, struct trade_side *side,
	       const struct trade_sums *s)
{
	s64 faster;
	u64 part;

	if (trials->nr == 1)
		side->nr = 0;
	if (!side->took || !s->base || !s->all)
		return;
	/* A mean of one is that one, whatever it was before. */
	if (!side->nr)
		side->least = side->served;
	side->nr = min(side->nr + 1, TRIALS_MOST);
	part = min_t(u64, mul_div(s->area, TRADE_ONE, s->all), TRADE_ONE);
	faster = mul_div(times(s->area + s->wait, s->base), TRADE_ONE,
			 side->took);
	faster = min(TRADE_ONE * (faster - TRADE_ONE), (s64)ALL);
	side->faster = mean(side->faster, faster, side->nr);
	side->gained = mean(side->gained,
			    div_s64((s64)part * faster, TRADE_ONE), side->nr);
	side->least = min(side->least, side->served);
	if (side->gained > 0)
		trials->gained += side->gained;
	trials->faster = max(trials->faster, side->faster);
	trials->least_nr = min(trials->least_nr, side->nr);
}

/* Whether others lost by it, and what was gained is less than @times what is enough. */
static bool poor(const struct trade_trials *trials, unsigned int times)
{
	return trials->lost > (s64)(ALL / LOSS_PARTS) &&
		trials->faster < (s64)times * FASTER_LEAST * TRADE_ONE &&
		trials->gained * TRADE_ONE <
		times * GAINED_LEAST * (trials->gained + trials->lost);
}

/* Whether that were enough trials, of each group, to say anything. */
static bool enough(const struct trade_trials *trials)
{
	return trials->nr >= TRIALS_LEAST && trials->least_nr >= TRIALS_LEAST;
}

/**
 * trade_in_vain() - were others held back in vain?
 * @trials: that say so
 */
bool trade_in_vain(const struct trade_trials *trials)
{
	return enough(trials) && poor(trials, 1);
}

/**
 * trade_open() - may others be held back in vain, and are more trials needed to say it?
 * @trials: so far
 */
bool trade_open(const struct trade_trials *trials)
{
	return trials->nr < TRIALS_MOST && poor(trials, NEARLY);
}

/**
 * trade_unsure() - may the next trials tell whether others are held back in vain?
 * @trials: so far
 *
 * Not where as many as count have not told it.
 */
bool trade_unsure(const struct trade_trials *trials)
{
	return trials->nr_made < TRIALS_MOST &&
		(!enough(trials) || trade_open(trials));
}

/**
 * trade_learn() - others were held back in vain: so requests take that long
 * @side: what was seen of a group
 */
void trade_learn(struct trade_side *side)
{
	if (side->nr)
		side->plain = max(side->plain, side->least);
}

/**
 * trade_lower() - requests take no longer if nobody queues than they do
 * @side: what was seen of a group
 * @s: what its requests take now
 *
 * What was learned while the device was slow is not to hide waiting once it is not.
 */
void trade_lower(struct trade_side *side, const struct trade_sums *s)
{
	if (side->plain > TRADE_ONE && s->base)
		side->plain = clamp(times(s->area, s->base), TRADE_ONE,
				    side->plain);
}
