/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job: one kthread of a tenant. job.c has the thread and its I/O, request.c
 * chooses its requests and their times.
 */
#ifndef BLKLOAD_JOB_H
#define BLKLOAD_JOB_H

#include <linux/bio.h>
#include <linux/bvec.h>
#include <linux/cache.h>
#include <linux/limits.h>
#include <linux/llist.h>
#include <linux/types.h>

#include "dist.h"
#include "opts.h"
#include "stats.h"
#include "verify.h"

struct blkload_run;
struct task_struct;

/* Later than any time. */
#define BLKLOAD_NO_TIME_NS	U64_MAX

/*
 * A slot for one request. The thread owns it, except while in flight: then the
 * block layer and the end of I/O own @node, @ended_ns and @bio.
 */
struct blkload_slot {
	struct llist_node node;	/* entry in the job's list of ended requests */
	struct blkload_slot *next; /* next free slot */
	struct blkload_job *job; /* job of the slot; constant */
	u64 intended_ns;	/* time at which it should start, ns */
	u64 issued_ns;		/* time at which it was issued, ns */
	u64 ended_ns;		/* time at which it ended, ns */
	u64 offset;		/* first byte, relative to the region */
	u32 bytes;		/* size, bytes */
	enum blkload_op op;	/* operation */
	u8 flags;		/* BLKLOAD_RECORD_* of a write from a trace */
	struct bio_vec vec;	/* its data, if one piece suffices */
	struct blkload_buf buf;	/* its own data, if verified */
	u32 *seen_gens;		/* words of units at the read's start, or NULL */
	struct bio bio;		/* bio of the request */
};

/* Free slots, in the order in which their requests ended. */
struct blkload_free {
	struct blkload_slot *first; /* first slot, or NULL */
	struct blkload_slot **tail; /* pointer that the next slot is put into */
};

/* State from which the next request follows. Only the thread uses it. */
struct blkload_pace {
	struct blkload_rng rng;	/* random numbers */
	struct blkload_arrivals arrivals; /* schedule of the open loop */
	u64 next_offset[BLKLOAD_NR_OPS]; /* next offset in sequence, by operation */
	u64 nr_requests;	/* requests issued, without flushes */
	u64 begin_ns;		/* time of the job's begin, after its delay, ns */
	u64 since_pause;	/* requests since the last thinktime */
	u64 since_flush;	/* writes since the last flush */
	u64 pause_end_ns;	/* end of the pause, ns: no request before */
	u64 flush_intended_ns;	/* intended start of the writes to be flushed, ns */
};

/* One kthread of a tenant. */
struct blkload_job {
	struct blkload_run *run; /* run that it is part of; constant */
	u32 number;		/* number in the run, from 0; constant */
	struct task_struct *task; /* kthread, with a reference; constant */
	struct blkload_slot *slots; /* iodepth slots */

	/* Shared with the end of I/O: see job_wait(). */
	struct llist_head ended ____cacheline_aligned_in_smp; /* ended slots */
	bool waiting;		/* whether the thread sleeps in job_wait() */

	/* Used by the thread only. */
	struct blkload_free free ____cacheline_aligned_in_smp; /* free slots */
	struct blkload_pace pace; /* state for the next request */
	struct blkload_rng cpu_rng; /* random numbers for CPU costs */
	u32 nr_in_flight;	/* requests in flight */
	bool finished;		/* whether no further request is issued */
	u64 now_ns;		/* time at the last update, ns */
	u64 stop_ns;		/* time at which issuing ends, ns */
	u32 errors_in_row;	/* failed requests since the last success */
	u32 instant_in_row;	/* requests without duration, in a row */

	/* Used by the thread, and read by others once the run is done. */
	u64 last_end_ns;	/* end of the last request, or of the runtime, ns */
	int error;		/* negative errno that ended it early, or 0 */
	struct blkload_stats stats[BLKLOAD_NR_OPS]; /* statistics, by operation */
};

/* job.c */
struct blkload_job *blkload_job_create(struct blkload_run *run, u32 number);
void blkload_job_release_io(struct blkload_job *job);
void blkload_job_free(struct blkload_job *job);
void blkload_job_kick(struct blkload_job *job);

/* request.c */
u64 blkload_request_start_ns(struct blkload_job *job,
			     const struct blkload_slot *slot, u64 *intended);
void blkload_request_fill(struct blkload_job *job, struct blkload_slot *slot,
			  u64 intended);
bool blkload_request_check(struct blkload_job *job, struct blkload_slot *slot);

#endif /* BLKLOAD_JOB_H */
