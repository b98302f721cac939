/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job: one kthread of a tenant. job.c is the thread and its I/O, request.c
 * what it asks for next, and when.
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
#define JOB_NEVER	U64_MAX

/*
 * Room for one request. It belongs to the thread, but while in flight: then
 * @node, @ended and @bio belong to the block layer and the end of I/O.
 */
struct blkload_slot {
	struct llist_node node;	/* link in the job's list of ended requests */
	struct blkload_slot *next; /* next free slot */
	struct blkload_job *job; /* job that it is of; constant */
	u64 intended;		/* time at which it should have started */
	u64 issued;		/* time at which it was issued */
	u64 ended;		/* time at which it ended */
	u64 offset;		/* place, relative to the region */
	u32 bytes;		/* size */
	enum blkload_op op;	/* what it does */
	u8 flags;		/* BLKLOAD_RECORD_* of a write from a trace */
	struct bio_vec vec;	/* its data, when they are one piece */
	struct blkload_buf buf;	/* data of its own, when verified */
	u32 *seen;		/* words that the read has seen, or NULL */
	struct bio bio;		/* request of the block layer */
};

/* The slots that are not in flight, in the order in which they ended. */
struct blkload_free {
	struct blkload_slot *first; /* first slot, or NULL */
	struct blkload_slot **tail; /* where the next one goes */
};

/* What and when the next request is. The thread's. */
struct blkload_pace {
	struct blkload_rng rng;	/* random numbers */
	struct blkload_arrivals arrivals; /* schedule of the open loop */
	u64 next[BLKLOAD_NR_OPS]; /* next offset in sequence, by operation */
	u64 requests;		/* requests issued, without flushes */
	u64 begin;		/* when the job began, after its delay, ns */
	u64 since_pause;	/* requests since the last thinktime */
	u64 since_flush;	/* writes since the last flush */
	u64 gate;		/* end of the pause: nothing is issued before */
	u64 flush_at;		/* intended start of what is to be flushed */
};

/* One kthread of a tenant. */
struct blkload_job {
	struct blkload_run *run; /* run that it is part of; constant */
	u32 number;		/* number in the run, from 0; constant */
	struct task_struct *task; /* kthread, with a reference; constant */
	struct blkload_slot *slots; /* iodepth slots */

	/* Shared with the end of I/O: see job_wait(). */
	struct llist_head done ____cacheline_aligned_in_smp; /* ended slots */
	bool waiting;		/* whether the thread wants to be woken */

	/* The thread's. */
	struct blkload_free free ____cacheline_aligned_in_smp; /* free slots */
	struct blkload_pace pace; /* what is next */
	struct blkload_rng cpu_rng; /* random numbers of what requests cost */
	u32 inflight;		/* requests in flight */
	bool finished;		/* whether nothing more is to be issued */
	u64 now;		/* time, as far as the thread knows */
	u64 stop_at;		/* time at which issuing ends */
	u32 errors_in_row;	/* failed requests since one succeeded */
	u32 instant_in_row;	/* requests that took no time, since one did */

	/* The thread's, and read by others once the run is done. */
	u64 last_end;		/* end of the last request, or of the runtime */
	int error;		/* negative errno that ended it early, or 0 */
	struct blkload_stats stats[BLKLOAD_NR_OPS]; /* what it did */
};

/* job.c */
struct blkload_job *blkload_job_create(struct blkload_run *run, u32 number);
void blkload_job_release_io(struct blkload_job *job);
void blkload_job_free(struct blkload_job *job);
void blkload_job_kick(struct blkload_job *job);

/* request.c */
u64 blkload_request_start(struct blkload_job *job,
			  const struct blkload_slot *slot, u64 *intended);
void blkload_request_fill(struct blkload_job *job, struct blkload_slot *slot,
			  u64 intended);
bool blkload_request_check(struct blkload_job *job, struct blkload_slot *slot);

#endif /* BLKLOAD_JOB_H */
