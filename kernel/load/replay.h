/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replay of a trace by a tenant's one job.
 */
#ifndef BLKLOAD_REPLAY_H
#define BLKLOAD_REPLAY_H

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/time64.h>
#include <linux/workqueue.h>

#include "record.h"

/* A request that starts later than this is counted by itself. */
#define BLKLOAD_LATE_NS		NSEC_PER_MSEC

/* By how much requests of a timed replay were late. */
struct blkload_late {
	u64 ios;	/* requests that were due in the measured window */
	u64 sum;	/* time that they were late in all, ns */
	u64 max;	/* most that one was late, ns */
	u64 above;	/* those late by more than BLKLOAD_LATE_NS */
};

/* What became of a trace. */
struct blkload_replay_counts {
	u64 records;	/* records issued */
	u64 passes;	/* times that it was begun */
	u64 rounded;	/* requests made of whole blocks */
	u64 clipped;	/* requests that lost their end */
	u64 moved;	/* requests that lie elsewhere than in the trace */
	struct blkload_late late; /* lateness */
};

/*
 * Some records, read ahead. It belongs to @work from queueing until @full, then
 * to the job's thread.
 */
struct blkload_chunk {
	struct blkload_replay *replay;	/* replay that it is of */
	struct work_struct work;	/* work that reads the records */
	struct completion full;		/* end of @work */
	struct blkload_record *records;	/* records */
	u64 first;			/* number of the first of them */
	u32 nr;				/* number of records */
	int error;			/* negative errno or 0 */
};

/*
 * A trace, and how far it was played. @file and @facts are constant during a
 * run; all but the chunks belongs to the job's thread.
 */
struct blkload_replay {
	struct file *file; /* open file */
	struct blkload_facts facts; /* what the whole file was found to be */
	/* how its addresses come to lie in the region */
	struct blkload_fit fit;
	/* two chunks: one is played, the other read */
	struct blkload_chunk chunk[2];
	unsigned int turn; /* number of the one that is played */
	u32 at;		/* number of the next record in it */
	u64 next;	/* number of the first record that nobody reads yet */
	u64 period;	/* time from pass to pass, ns */
	u64 pass;	/* time of the first record of this pass, ns */
	u64 begin;	/* time of the very first record, CLOCK_MONOTONIC */
	const struct blkload_record *record; /* next record; NULL at the end */
	bool loop;	/* whether it begins anew after the last record */
	bool timed;	/* whether records have a time */
	u64 speed;	/* speed, in thousandths */
	struct blkload_replay_counts counts; /* what was done */
};

int blkload_replay_init(void);
void blkload_replay_exit(void);
int blkload_replay_open(struct blkload_replay *replay, const char *name,
			const struct blkload_opts *opts);
void blkload_replay_close(struct blkload_replay *replay);
u32 blkload_replay_max_bytes(const struct blkload_replay *replay, u32 block);
int blkload_replay_advance(struct blkload_replay *replay);
void blkload_replay_late(struct blkload_replay *replay, u64 late);

/**
 * blkload_replay_due - when the next record is due
 * @replay: a timed replay that has a next record
 *
 * Return: CLOCK_MONOTONIC ns.
 */
static inline u64 blkload_replay_due(const struct blkload_replay *replay)
{
	return replay->begin +
	       blkload_at_speed(replay->pass + le64_to_cpu(replay->record->time),
				replay->speed);
}

#endif /* BLKLOAD_REPLAY_H */
