/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run of a tenant. prepare.c looks everything up and checks it, run.c has its
 * life and the barrier that all begin on.
 */
#ifndef BLKLOAD_RUN_H
#define BLKLOAD_RUN_H

#include <linux/atomic.h>
#include <linux/blk_types.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>

#include "dist.h"
#include "opts.h"
#include "replay.h"
#include "stats.h"
#include "verify.h"

struct blkload_job;
struct cgroup_subsys_state;
struct file;

/* Where the requests of a run go, and whom they are charged to. */
struct blkload_target {
	struct file *file;	/* open device */
	struct block_device *bdev; /* device */
	struct cgroup_subsys_state *css; /* what they are charged to */
	u64 base;		/* first byte of the region */
	u64 bytes;		/* size of the region */
};

/* What the requests of a run are. */
struct blkload_load {
	unsigned int ops;	/* operations that may occur, a mask */
	blk_opf_t opf[BLKLOAD_NR_OPS]; /* how each of them is submitted */
	bool random;		/* whether offsets are random */
	bool relayed;		/* whether the relay submits, and is held */
	u32 min_bs;		/* smallest size; offsets are multiples of it */
	struct blkload_dist *dist; /* distribution of offsets, NULL: uniform */
	struct blkload_buf data[BLKLOAD_NR_OPS]; /* data that do not matter */
	struct blkload_verify verify; /* content; no @gen: unverified */
	struct blkload_replay replay; /* trace; its @file is NULL without one */
};

/* How far the jobs of a run are. */
struct blkload_progress {
	atomic_t active;	/* jobs that have not ended */
	bool stop;		/* whether the jobs shall end */
	bool done;		/* whether all of them have ended */
	int error;		/* error of the first job that has one, or 0 */
	u64 end;		/* time from the barrier to the last end, ns */
};

/*
 * One run of one tenant. All is constant while jobs run, but @active, @stop,
 * @cpu_free and @cpu_busy.
 * The last job to end gives @target and the memory of @load back and then sets
 * @done (release); who sees it (acquire) may read the rest.
 */
struct blkload_run {
	struct kref ref;	/* references: the tenant's, and of readers */
	struct list_head link;	/* link in the list of those that start */
	char *name;		/* the tenant's name */
	struct blkload_opts opts; /* the tenant's options at the start */
	struct blkload_measure measure; /* times that it is measured by */
	struct blkload_target target; /* where the requests go */
	struct blkload_load load; /* what the requests are */
	struct blkload_progress progress; /* how far the jobs are */
	spinlock_t cpu_lock;	/* protects @cpu_free and @cpu_busy */
	u64 cpu_free[BLKLOAD_MAX_JOBS]; /* when a virtual processor is free */
	u64 cpu_busy;		/* work of all of them, in the measured time */
	u32 nr_jobs;		/* number of jobs */
	struct blkload_job *jobs[]; /* jobs */
};

/* prepare.c */
int blkload_run_prepare(struct blkload_run *run);
void blkload_run_release_io(struct blkload_run *run);

/* run.c */
struct blkload_run *blkload_run_create(const char *name,
				       const struct blkload_opts *opts);
void blkload_run_get(struct blkload_run *run);
void blkload_run_put(struct blkload_run *run);
void blkload_runs_start(struct list_head *runs);
u32 blkload_run_cpus(const struct blkload_run *run);
void blkload_run_stop(struct blkload_run *run);
bool blkload_run_done(const struct blkload_run *run);
void blkload_run_wait(struct blkload_run *run);
bool blkload_idle(void);
int blkload_wait_idle(void);
void blkload_run_job_ready(void);
void blkload_run_job_ended(struct blkload_run *run);

#endif /* BLKLOAD_RUN_H */
