/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cgroup on a disk, and on each of its hardware queues, with what each part keeps there.
 */
#ifndef ISOBLK_CORE_GROUP_H
#define ISOBLK_CORE_GROUP_H

#include "core/disk.h"
#include "core/trade.h"

/* Requests of a group in one word: those that wait below, in the device above. */
#define ISO_WAITS		1ULL
#define ISO_IN_DEVICE		BIT_ULL(32)

struct iso_group;

/**
 * struct iso_gq - one group on one hardware queue: isoblk_gq_own()
 */
struct iso_gq {
	struct rb_node node;		/* in hq->tree while @nr is not 0; hq->lock */
	struct list_head fresh_node;	/* in hq->fresh if it goes before others; hq->lock */
	struct iso_group *group;	/* constant */
	struct isoblk_gq *common;	/* what the gate and the weights know of it; constant */
	struct iso_hq *hq;		/* constant */
	u64 key;			/* time by which it is in the tree, maybe stale; hq->lock */
	sector_t end;			/* sector behind the one that was taken last; hq->lock */
	struct list_head fifo;		/* requests that wait; hq->lock */
	unsigned int nr;		/* length of all of @fifo; hq->lock, read without */
	unsigned int merged_none;	/* bios in a row that were not merged; a hint */
	u64 wait_ns;			/* ns from insertion to device; hq->lock, read without */
};

/**
 * struct iso_held - whether others are held back for a group: hold.c; disk lock
 */
struct iso_held {
	struct list_head node;		/* in disk->hold.list while @held_for or @gated */
	struct trade_sums seen;		/* at the last scan */
	struct trade_sums recent;	/* of the last scans, each counts 3/4 of the next */
	struct trade_side side;		/* what came of holding others back */
	u32 gain;			/* gain of holding others back, of TRADE_ONE */
	u64 trial_lifted;		/* iso_group.lifted when a trial began, or it joined */
	u64 trial_credit;		/* how far behind it may be after a trial; any context */
	u64 trial_most;			/* how far behind by what others are served in it; 0: any */
	u64 in_trials;			/* served in trials, and maybe ahead by that still */
	u64 trial_served;		/* iso_served() when it began, or it joined */
	u64 served;			/* that when the last trial ended */
	u64 lifted;			/* iso_group.lifted at that time */
	u64 served_ns;			/* when that was; 0: before it joined */
};

/**
 * struct iso_debts - what a group owes for being served out of order: charge.c; disk lock
 *
 * Two that do not mix: @owes is within one kind of requests, and paid at once when its price
 * is found; @debt is between kinds, and paid bit by bit, maybe when the next time has begun.
 */
struct iso_debts {
	u64 owes;			/* time that it was served before others of its kind */
	enum price_kind owes_for;	/* that kind */
	unsigned long served_alone;	/* kinds with which it was served while they were alone */
	u64 sent_before;		/* requests of that kind when it began to be alone */
	u64 debt;			/* time that its kinds were alone for beyond its share */
	u64 paid_at;			/* iso_served() when it last paid of @debt */
};

/**
 * struct iso_target - what came of a group's latency target: latency.c
 */
struct iso_target {
	struct list_head node;		/* in disk->latency.list while it has one; disk lock */
	atomic64_t nr;			/* requests that have ended since; any context */
	atomic64_t missed;		/* those of them that were late; any context */
	u64 seen_nr;			/* @nr when the next verdict's count began; disk lock */
	u64 seen_missed;		/* @missed at that time; disk lock */
	u64 vtime;			/* time of the group when last looked at; disk lock */
	u64 judged_ns;			/* end of the last request that was judged; disk lock */
	bool met;			/* the last verdict; disk lock, read without */
	bool unreachable;		/* missed also when others do nothing; likewise */
};

/**
 * struct iso_group - a cgroup on a disk: isoblk_group_own()
 *
 * What each request reads or writes comes first, together.
 */
struct iso_group {
	struct isoblk_group *group;	/* constant */
	bool joined;			/* it takes part; disk lock, a hint without */
	bool held_for;			/* others are held back for it; disk lock, read without */
	bool gated;			/* bios of it wait for tags; disk lock, read without */
	bool swaps;			/* it is in debt for swapping; disk lock, a hint without */
	u32 share;			/* part of ISOBLK_SHARE_ONE; disk lock, read without */
	u64 share_gen;			/* weights that @share is of; disk lock, a hint without */
	atomic64_t vtime;		/* what it was charged over its share; any context */
	atomic64_t lifted;		/* part of that for what it did not send; any context */
	u64 light_from;			/* iso_served() at 0 of disk->clock.half; any context */
	atomic64_t has;			/* requests of it: ISO_WAITS, ISO_IN_DEVICE; any context */
	atomic64_t area;		/* work x time in the device, completed; any context */
	atomic64_t base_area;		/* the same, had each taken the least time; any context */
	atomic64_t wait_area;		/* work x time from insertion to device; any context */
	u64 target_ns;			/* latency target, 0: none; disk lock, read without */
	u64 ended_ns;			/* when one last left the device; any context */
	u64 think_ns;			/* time from there to the next, usually; any context */

	struct list_head node;		/* in disk->members.list while @joined; disk lock */
	struct list_head swapper;	/* in disk->swappers while @swaps; disk lock */
	struct iso_held hold;
	struct iso_debts debts;
	struct iso_target target;
};

static inline struct iso_gq *iso_gq(const struct iso_group *g, unsigned int i)
{
	return isoblk_gq_own(g->group->gq[i]);
}

static inline u32 iso_in_device(u64 has)
{
	return has >> 32;
}

static inline u32 iso_waits(u64 has)
{
	return has;
}

#endif /* ISOBLK_CORE_GROUP_H */
