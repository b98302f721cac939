/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replay of a trace by a tenant's one job.
 */
#ifndef BLKLOAD_REPLAY_H
#define BLKLOAD_REPLAY_H

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/workqueue.h>

#include "record.h"

/* A request that starts later than this is counted by itself. */
#define BLKLOAD_LATE_NS		NSEC_PER_MSEC

/**
 * struct blkload_late - by how much requests of a timed replay were late
 * @ios: requests due in the measured window
 * @sum: of what they were late, ns
 * @max: the most
 * @above: those late by more than BLKLOAD_LATE_NS
 */
struct blkload_late {
	u64 ios;
	u64 sum;
	u64 max;
	u64 above;
};

/**
 * struct blkload_replay_counts - what became of a trace
 * @records: records issued
 * @passes: times it was begun
 * @rounded: requests made of whole blocks
 * @clipped: requests that lost their end
 * @moved: requests that lie elsewhere than in the trace
 * @late: lateness
 */
struct blkload_replay_counts {
	u64 records;
	u64 passes;
	u64 rounded;
	u64 clipped;
	u64 moved;
	struct blkload_late late;
};

/**
 * struct blkload_chunk - some records, read ahead
 * @replay: whose
 * @work: reads them
 * @full: @work is done
 * @records: the records
 * @first: number of the first of them
 * @nr: how many
 * @error: negative errno, if they could not be read
 *
 * Belongs to @work from queueing until @full, then to the job's thread.
 */
struct blkload_chunk {
	struct blkload_replay *replay;
	struct work_struct work;
	struct completion full;
	struct blkload_record *records;
	u64 first;
	u32 nr;
	int error;
};

/**
 * struct blkload_replay - a trace, and how far it was played
 * @file: the open file
 * @facts: what the whole file was found to be
 * @fit: how its addresses come to lie in the region
 * @chunk: one is played, the other read
 * @turn: the one that is played
 * @at: number of the next record in it
 * @next: number of the first record that nobody reads yet
 * @period: time from pass to pass, ns
 * @pass: time of the first record of this pass, ns
 * @begin: CLOCK_MONOTONIC ns of the first record of the first pass
 * @record: the next record; NULL at the end
 * @loop: begin anew after the last record
 * @timed: records have a time
 * @speed: in thousandths
 * @counts: what was done
 *
 * @file and @facts are constant during a run; all but the chunks belongs to
 * the job's thread.
 */
struct blkload_replay {
	struct file *file;
	struct blkload_facts facts;
	struct blkload_fit fit;
	struct blkload_chunk chunk[2];
	unsigned int turn;
	u32 at;
	u64 next;
	u64 period;
	u64 pass;
	u64 begin;
	const struct blkload_record *record;
	bool loop;
	bool timed;
	u64 speed;
	struct blkload_replay_counts counts;
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
