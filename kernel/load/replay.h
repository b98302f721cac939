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

/* Requests that start later than this are counted, ns. */
#define BLKLOAD_LATE_NS		NSEC_PER_MSEC

/* Lateness of the requests of a timed replay. */
struct blkload_late {
	u64 nr_ios;	/* requests that were due in the measured window */
	u64 sum_ns;	/* sum of lateness, ns */
	u64 max_ns;	/* maximum of lateness, ns */
	u64 nr_late;	/* requests late by more than BLKLOAD_LATE_NS */
};

/* Counts of a replay. */
struct blkload_replay_counts {
	u64 nr_records;	/* records issued */
	u64 nr_passes;	/* times that the trace was begun */
	u64 nr_rounded;	/* requests extended to whole blocks */
	u64 nr_clipped;	/* requests that were truncated */
	u64 nr_moved;	/* requests with changed addresses */
	struct blkload_late late; /* lateness */
};

/*
 * A chunk: some records, read ahead. @work owns it from queueing until @full,
 * then the job's thread.
 */
struct blkload_chunk {
	struct blkload_replay *replay;	/* replay that it is of */
	struct work_struct work;	/* work that reads the records */
	struct completion full;		/* end of @work */
	struct blkload_record *records;	/* records */
	u64 first_record;		/* number of the first record */
	u32 nr_records;			/* number of records */
	int error;			/* negative errno or 0 */
};

/*
 * A trace and its replay. @file and @facts are constant during a run; the job's
 * thread owns all other fields except the chunks.
 */
struct blkload_replay {
	struct file *file; /* open file */
	struct blkload_facts facts; /* facts of the whole file */
	/* mapping of its addresses to the region */
	struct blkload_fit fit;
	/* two chunks: one is replayed while the other is read */
	struct blkload_chunk chunks[2];
	unsigned int current_chunk; /* index of the chunk that is replayed */
	u32 record_index; /* index of the next record in that chunk */
	u64 next_record; /* number of the first record that no chunk has */
	u64 period_ns;	/* time from pass to pass, ns */
	u64 pass_ns;	/* time of the first record of this pass, ns */
	u64 begin_ns;	/* time of the very first record, CLOCK_MONOTONIC ns */
	const struct blkload_record *record; /* next record; NULL at the end */
	bool loop;	/* whether it restarts after the last record */
	bool timed;	/* whether records have a time */
	u64 speed;	/* speed, in thousandths */
	struct blkload_replay_counts counts; /* counts */
};

int blkload_replay_init(void);
void blkload_replay_exit(void);
int blkload_replay_open(struct blkload_replay *replay, const char *name,
			const struct blkload_opts *opts);
void blkload_replay_close(struct blkload_replay *replay);
u32 blkload_replay_bytes_max(const struct blkload_replay *replay, u32 block);
int blkload_replay_advance(struct blkload_replay *replay);
void blkload_replay_count_late(struct blkload_replay *replay, u64 late);

/**
 * blkload_replay_due_ns - return the time at which the next record is due
 * @replay: a timed replay that has a next record
 *
 * Return: CLOCK_MONOTONIC ns.
 */
static inline u64 blkload_replay_due_ns(const struct blkload_replay *replay)
{
	return replay->begin_ns +
	       blkload_scale_time(replay->pass_ns +
					  le64_to_cpu(replay->record->time),
				  replay->speed);
}

#endif /* BLKLOAD_REPLAY_H */
