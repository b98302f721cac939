// SPDX-License-Identifier: GPL-2.0-only
/*
 * For whom others are held back, and how far.
 *
 * Start-time order divides what waits. A device that takes all that there is leaves
 * nothing waiting, and then serves in its own order: by the number of requests, not by
 * weight. The same holds of a tenant that waits for each answer before it asks
 * again. So nobody may be more than the slack ahead of those for whom it is worth
 * waiting: the horizon. It needs no measured depth; the device ends up with as
 * much as exact shares allow it.
 *
 * Worth it is a trade (trade.c): what a group would gain if others were held back,
 * against what these would lose. It cannot be seen while others are held back, for then
 * nobody queues. So now and then, and the more rarely the more often the answer was the
 * same, nobody is held back for a moment: the trial. What a group falls behind by that
 * it makes good later: the times stand, but for what others would wait too long for. The
 * trial also shows what came of holding others back, and so whether what that would gain
 * had been estimated rightly.
 *
 * A group whose bios wait for tags (gate.c) has more to send than is ever seen of it
 * here. It is always waited for; but where there is no more than a tag for each group
 * not while a request of it waits in its turn, for who is held back then holds a tag
 * that others wait for.
 */
#include "core/charge.h"
#include "core/clock.h"
#include "core/hold.h"
#include "core/horizon.h"
#include "core/trade.h"
#include "core/tree.h"
#include "muldiv.h"
#include "share/gate.h"

/* Others are held back if they lose less than so many units for one gained. */
#define GAIN_ENOUGH		(TRADE_ONE / 16)
#define GAIN_BEGIN		(TRADE_ONE / 10)

/*
 * A trial begins to count when the window is large enough, or at the latest after so many epochs.
 * At once where it takes long until requests have completed, in a second fewer than these: a
 * reader is worse off as long as it lasts.
 */
#define SETTLE_EPOCHS		3U
#define SETTLE_MOST_NS		(20 * NSEC_PER_MSEC)
#define SETTLE_REQUESTS		5000U

/* It ends when so many requests have completed, or at the latest: */
#define TRIAL_REQUESTS		64U
#define TRIAL_GROUP_REQUESTS	8U
#define TRIAL_MOST_NS		(200 * NSEC_PER_MSEC)

/* Of a group that has fewer in it nothing is told. */
#define JUDGE_REQUESTS		4U

/*
 * A drive with a buffer may take in, in a trial, what the group that others are held back for
 * needs a second for; so long they would wait afterwards. So a trial ends when it is so much
 * time. That is seen some requests later: what is beyond so many times it is forgiven, in one
 * trial and in all of late.
 */
#define CATCH_UP_NS		(100 * NSEC_PER_MSEC)
#define FORGIVE_TIMES		2
#define FORGIVE_ALL_TIMES	4

/*
 * Of what is forgiven the shares know nothing, so the next trial comes so many times as long
 * later. For one that is so short, while several such are needed soon to know whether others
 * are held back in vain, only what is beyond in all is forgiven.
 */
#define TRIAL_PART		32
#define TRIAL_SHORT_NS		(10 * NSEC_PER_MSEC)

/* Scans from one trial to the next: after a change, and if nothing changes. */
#define HOLD_LEAST		4U
#define HOLD_MOST		256U

/* So many groups times hardware queues are looked at in a scan for bios at the gate. */
#define GATE_LOOKS		1024U

static void hold_for(struct iso_disk *d, struct iso_group *g, bool on,
		     bool gated)
{
	if (g->held_for != on) {
		WRITE_ONCE(g->held_for, on);
		d->hold.changed = true;
	}
	WRITE_ONCE(g->gated, gated);
	if (list_empty(&g->hold.node) == !(on || gated))
		return;
	if (on || gated)
		list_add_tail(&g->hold.node, &d->hold.list);
	else
		list_del_init(&g->hold.node);
}

/* Whether bios of @g wait at the gate. */
static bool at_gate(const struct iso_disk *d, const struct iso_group *g)
{
	unsigned int i;

	for (i = 0; i < d->disk.nr_hqs; i++)
		if (READ_ONCE(d->disk.hq[i]->gate.nr) &&
		    READ_ONCE(g->group->gq[i]->gate.nr_bios))
			return true;
	return false;
}

/* In how many scans all groups are looked for at the gate: interrupts are off. */
static unsigned int gate_scans(const struct iso_disk *d)
{
	return 1 + d->members.nr * d->disk.nr_hqs / GATE_LOOKS;
}

static struct trade_sums sums_of(const struct iso_group *g, u64 all)
{
	return (struct trade_sums){
		.area = atomic64_read(&g->area),
		.wait = atomic64_read(&g->wait_area),
		.base = atomic64_read(&g->base_area),
		.all = all,
	};
}

static void smooth(u64 *recent, u64 now, u64 seen)
{
	*recent = *recent - *recent / 4 + (now - seen);
}

static void smooth_sums(struct iso_group *g, const struct trade_sums *s)
{
	smooth(&g->hold.recent.area, s->area, g->hold.seen.area);
	smooth(&g->hold.recent.wait, s->wait, g->hold.seen.wait);
	smooth(&g->hold.recent.base, s->base, g->hold.seen.base);
	smooth(&g->hold.recent.all, s->all, g->hold.seen.all);
	g->hold.seen = *s;
}

/* What was done of late, and in how much time. */
static void smooth_done(struct iso_disk *d, u64 now)
{
	struct iso_holding *h = &d->hold;

	if (h->seen_ns) {
		smooth(&h->recent_work, d->epoch.seen.work, h->seen_work);
		smooth(&h->recent_ns, now, h->seen_ns);
	}
	h->seen_work = d->epoch.seen.work;
	h->seen_ns = now;
}

/* How much longer than at best requests were in the device, from @from to @to. */
static u64 queued_for(const struct iso_done *from, const struct iso_done *to)
{
	u64 area = to->area - from->area, base = to->base_area - from->base_area;

	if (area <= base || to->work == from->work)
		return 0;
	return div64_u64(area - base, to->work - from->work);
}

static u64 rate_of(u64 work, u64 ns)
{
	return ns ? mul_div(work, NSEC_PER_SEC, ns) : 0;
}

/*
 * Whether all for whom others were held back had requests before the trial, and enough in it.
 * About how many: as a group's part of the least time that all took.
 */
static bool enough_seen(struct iso_disk *d)
{
	const struct iso_done *from = &d->hold.trial_seen, *to = &d->epoch.seen;
	u64 base = to->base_area - from->base_area, nr = to->nr - from->nr;
	struct iso_group *g;

	list_for_each_entry(g, &d->members.list, node)
		if (g->held_for &&
		    (!g->hold.side.took ||
		     mul_div(g->hold.recent.base, nr, max(base, 1ULL)) <
		     JUDGE_REQUESTS))
			return false;
	return true;
}

/*
 * See what came of holding others back, now that the trial shows what is done without. Returns
 * whether another trial is needed soon.
 */
static bool look_back(struct iso_disk *d, u64 now)
{
	struct trade_trials *trials = &d->hold.trials;
	unsigned int nr_falls = READ_ONCE(d->device.nr_falls);
	struct iso_group *g;

	/* What was seen before was told in times of another least. */
	if (d->hold.seen_falls != nr_falls) {
		d->hold.seen_falls = nr_falls;
		*trials = (struct trade_trials){};
		return true;
	}
	trials->nr_made++;
	if (!d->hold.held_rate || !enough_seen(d))
		return false;
	trade_end(trials, d->hold.held_rate,
		  rate_of(d->epoch.seen.work - d->hold.trial_seen.work,
			  now - d->hold.trial_ns));
	list_for_each_entry(g, &d->members.list, node)
		trade_add(trials, &g->hold.side, &g->hold.recent);
	if (!trade_in_vain(trials))
		return trade_open(trials);
	list_for_each_entry(g, &d->members.list, node)
		trade_learn(&g->hold.side);
	*trials = (struct trade_trials){};
	return false;
}

/* What @g was served in the trial. */
static u64 served_in_trial(const struct iso_group *g)
{
	return max_t(s64, iso_served(g) - g->hold.trial_served, 0);
}

/* The most that anybody was. */
static u64 most_in_trial(const struct iso_disk *d)
{
	const struct iso_group *g;
	u64 most = 0;

	list_for_each_entry(g, &d->members.list, node)
		most = max(most, served_in_trial(g));
	return most;
}

/* Whether the trial that is under way, or just over, is one of those short ones so far. */
static bool is_short(const struct iso_disk *d, u64 now)
{
	return now - d->hold.begun_ns < TRIAL_SHORT_NS &&
	       trade_unsure(&d->hold.trials);
}

/*
 * Whether somebody for whom others are held back has fallen behind by as much as it may: it
 * makes that good afterwards, while they wait.
 */
static bool took_enough(const struct iso_disk *d, u64 now)
{
	const struct iso_group *g;
	u64 most;

	if (is_short(d, now))
		return false;
	most = most_in_trial(d);
	list_for_each_entry(g, &d->members.list, node)
		if (g->hold.trial_most &&
		    most > served_in_trial(g) + g->hold.trial_most)
			return true;
	return false;
}

/* Whether the trial that is under way has shown enough. */
static bool trial_over(const struct iso_disk *d, u64 now)
{
	if (d->hold.settle)
		return false;
	return d->epoch.seen.nr - d->hold.trial_seen.nr >=
		max(TRIAL_REQUESTS, TRIAL_GROUP_REQUESTS * d->members.nr) ||
		now - d->hold.trial_ns > TRIAL_MOST_NS || took_enough(d, now);
}

/* What is seen begins here: what was before was seen while holding, or just after. */
static void see_anew(struct iso_disk *d, u64 all, u64 now)
{
	struct iso_group *g;

	d->hold.trial_seen = d->epoch.seen;
	d->hold.trial_ns = now;
	list_for_each_entry(g, &d->members.list, node) {
		g->hold.seen = sums_of(g, all);
		g->hold.recent = (struct trade_sums){};
	}
}

/*
 * What @g, for whom others are held back, was served in CATCH_UP_NS of late. 0 if it comes and
 * goes, and begins where the disk is: others wait only while it is there.
 */
static u64 can_catch_up(const struct iso_disk *d, const struct iso_group *g,
			u64 now)
{
	u64 served = iso_served(g) - g->hold.served;
	u64 span = now - g->hold.served_ns;

	if (!g->hold.served_ns ||
	    (u64)atomic64_read(&g->lifted) != g->hold.lifted)
		return 0;
	return clamp(mul_div(served, CATCH_UP_NS, max(span, 1ULL)),
		     d->clock.slack, d->clock.credit);
}

/*
 * Nobody is held back from here on. At first the others' requests come all at once, and the
 * window is still what those few needed that there were.
 */
static void begin_trial(struct iso_disk *d, u64 all, u64 now)
{
	struct iso_group *g;

	WRITE_ONCE(d->hold.trial, true);
	d->hold.begun_ns = now;
	d->hold.held_rate = rate_of(d->hold.recent_work, d->hold.recent_ns);
	d->hold.settle = div_u64(d->hold.held_rate, SETTLE_REQUESTS) <
			 d->device.mean_work ? 0 : SETTLE_EPOCHS;
	list_for_each_entry(g, &d->members.list, node) {
		trade_begin(&g->hold.side, &g->hold.recent, g->held_for);
		WRITE_ONCE(g->hold.trial_credit,
			   g->held_for ? d->clock.credit : 0);
		g->hold.trial_most = g->held_for ? can_catch_up(d, g, now) : 0;
		g->hold.trial_lifted = atomic64_read(&g->lifted);
		g->hold.trial_served = iso_served(g);
	}
	see_anew(d, all, now);
}

/* Another epoch of the trial is over; maybe the next one counts. */
static void settle(struct iso_disk *d, u64 all, u64 now)
{
	if (!d->hold.settle)
		return;
	d->hold.settle--;
	if (!d->epoch.was_limited || took_enough(d, now) ||
	    now - d->hold.trial_ns > SETTLE_MOST_NS)
		d->hold.settle = 0;
	if (!d->hold.settle)
		see_anew(d, all, now);
}

/*
 * What puts whoever was served in trials far beyond where others may be, ahead of those for
 * whom they are held back, is forgiven: it is not charged.
 */
static void forgive(struct iso_disk *d, u64 now)
{
	bool is_one_of_many = is_short(d, now), is_held = false;
	u64 in_one = U64_MAX, in_all = 0, most, at, served, beyond;
	struct iso_group *g;

	list_for_each_entry(g, &d->members.list, node) {
		g->hold.in_trials += served_in_trial(g);
		if (!g->held_for || !g->hold.trial_most)
			continue;
		in_one = min(in_one, served_in_trial(g) +
				     FORGIVE_TIMES * g->hold.trial_most);
		most = atomic64_read(&g->vtime) +
			FORGIVE_ALL_TIMES * g->hold.trial_most;
		if (!is_held || vtime_before(most, in_all))
			in_all = most;
		is_held = true;
	}
	if (!is_held)
		return;
	list_for_each_entry(g, &d->members.list, node) {
		served = served_in_trial(g);
		at = atomic64_read(&g->vtime);
		beyond = is_one_of_many ? 0 : served - min(served, in_one);
		if (vtime_before(in_all, at))
			beyond = max(beyond, min(at - in_all,
						 g->hold.in_trials));
		else
			g->hold.in_trials = 0;
		if (!beyond)
			continue;
		g->hold.in_trials -= min(g->hold.in_trials, beyond);
		/* In this order nobody sees less served than was. */
		atomic64_sub(beyond, &g->lifted);
		atomic64_sub(beyond, &g->vtime);
		if (!is_one_of_many)
			d->hold.next_ns = now +
				TRIAL_PART * (now - d->hold.begun_ns);
	}
}

/*
 * Those for whom others are held back again are behind by what these were served meanwhile.
 * So is the disk's time, by which all others begin: who only came back in a trial would else
 * have to wait until they have caught up.
 */
static void end_trial(struct iso_disk *d, u64 now)
{
	struct iso_group *g;

	if (!d->hold.trial)
		return;
	WRITE_ONCE(d->hold.trial, false);
	d->hold.settle = 0;
	WRITE_ONCE(d->clock.vnow, READ_ONCE(d->clock.floor));
	list_for_each_entry(g, &d->members.list, node) {
		u64 by = atomic64_read(&g->lifted) - g->hold.trial_lifted;

		atomic64_sub(by, &g->lifted);
		atomic64_sub(by, &g->vtime);
		/* As in arrive(), of one that was there when the trial began, or came since. */
		if (by)
			iso_lift(g, d->clock.floor -
				 (g->held_for ? READ_ONCE(g->hold.trial_credit) : 0));
	}
	forgive(d, now);
	list_for_each_entry(g, &d->members.list, node) {
		g->hold.served = iso_served(g);
		g->hold.lifted = atomic64_read(&g->lifted);
		g->hold.served_ns = now;
	}
	iso_reorder(d);
}

/**
 * iso_hold_nobody() - begin anew, with nobody for whom others are held back
 * @d: its disk lock is held
 */
void iso_hold_nobody(struct iso_disk *d)
{
	struct iso_group *g;

	lockdep_assert_held(&d->disk.lock);

	list_for_each_entry(g, &d->members.list, node)
		hold_for(d, g, false, false);
	end_trial(d, d->hold.scan_ns);
	iso_update_horizon(d, d->hold.scan_ns);
}

/**
 * iso_hold_unlearn() - what requests take though nobody queues is to be found out anew
 * @d: its disk lock is held
 */
void iso_hold_unlearn(struct iso_disk *d)
{
	struct iso_group *g;

	lockdep_assert_held(&d->disk.lock);

	d->hold.trials = (struct trade_trials){};
	list_for_each_entry(g, &d->members.list, node)
		g->hold.side.plain = TRADE_ONE;
}

/**
 * iso_scan() - look at all groups that take part
 * @d: its disk lock is held
 * @now: ns
 */
void iso_scan(struct iso_disk *d, u64 now)
{
	bool over = d->hold.trial && trial_over(d, now), soon = false, on;
	u32 least = over ? GAIN_ENOUGH : GAIN_BEGIN;
	unsigned int scans = gate_scans(d), i = d->hold.nr_scans;
	u64 all = d->epoch.seen.area;
	struct iso_group *g;
	struct trade_sums s;

	lockdep_assert_held(&d->disk.lock);

	smooth_done(d, now);
	d->hold.scan_ns = now;
	d->hold.nr_scans++;
	/* What is seen while one kind of requests is alone says nothing of all. */
	if ((d->hold.trial && !over) || iso_is_alone(d)) {
		settle(d, all, now);
		return;
	}
	d->hold.changed = false;
	list_for_each_entry(g, &d->members.list, node) {
		s = sums_of(g, all);
		smooth_sums(g, &s);
	}
	if (over)
		soon = look_back(d, now);
	list_for_each_entry(g, &d->members.list, node) {
		trade_lower(&g->hold.side, &g->hold.recent);
		g->hold.gain = trade_gain(&g->hold.recent, g->hold.side.plain);
		on = over || !g->held_for ? g->hold.gain > least : g->held_for;
		hold_for(d, g, on, i++ % scans ? g->gated : at_gate(d, g));
		isoblk_set_indebted(g->group, iso_indebted(d, g));
	}

	if (over) {
		d->hold.own_queue_ns = queued_for(&d->hold.trial_seen,
						  &d->epoch.seen);
		d->hold.own_queue_ns -= min(d->hold.own_queue_ns,
				       READ_ONCE(d->late.ns));
		end_trial(d, now);
		if (d->hold.changed || soon)
			d->hold.length = HOLD_LEAST;
		else
			d->hold.length = clamp(2 * d->hold.length, HOLD_LEAST,
					       HOLD_MOST);
		d->hold.left = d->hold.length;
	} else if (d->hold.changed) {
		d->hold.length = HOLD_LEAST;
		d->hold.left = HOLD_LEAST;
	} else if (d->hold.left) {
		d->hold.left -= !list_empty(&d->hold.list);
	} else if (!list_empty(&d->hold.list) && now >= d->hold.next_ns) {
		begin_trial(d, all, now);
	}
}
