/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run of a tenant. prepare.c looks up and checks its resources; run.c has its
 * life cycle and the barrier on which all runs begin.
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

/* Device, region and cgroup of a run's requests. */
struct blkload_target {
	struct file *file;	/* open device */
	struct block_device *bdev; /* block device of @file */
	struct cgroup_subsys_state *css; /* css to charge, of io */
	u64 base_pos;		/* first byte of the region */
	u64 bytes;		/* size of the region, bytes */
};

/* The requests of a run. */
struct blkload_load {
	unsigned int ops;	/* operations that may occur, a mask */
	blk_opf_t opf[BLKLOAD_NR_OPS]; /* operation and flags, by blkload_op */
	bool random;		/* whether offsets are random */
	bool relayed;		/* whether the relay submits; holds a reference */
	u32 bs_min;		/* smallest size, bytes; offsets are multiples */
	struct blkload_dist *dist; /* distribution of offsets; NULL = uniform */
	struct blkload_buf data[BLKLOAD_NR_OPS]; /* data without verification */
	struct blkload_verify verify; /* verification; @gen NULL = none */
	struct blkload_replay replay; /* replay; @file NULL = no trace */
};

/* Progress of a run's jobs. */
struct blkload_progress {
	atomic_t nr_active;	/* jobs that have not ended */
	bool stop;		/* whether the jobs have to end */
	bool done;		/* whether all of them have ended */
	int error;		/* error of the first job with an error, or 0 */
	u64 end_ns;		/* time from the barrier to the last end, ns */
};

/*
 * A run of a tenant. All fields are constant while jobs run, except @nr_active,
 * @stop, @cpu_free_ns and @cpu_busy_ns. The last job to end releases @target and the
 * memory of @load and then sets @done (release); a reader that sees @done
 * (acquire) may read the rest.
 */
struct blkload_run {
	struct kref ref;	/* references of the tenant, and of readers */
	struct list_head link;	/* entry in the list of runs to be started */
	char *name;		/* the tenant's name */
	struct blkload_opts opts; /* the tenant's options at the start */
	struct blkload_measure measure; /* barrier and measured window */
	struct blkload_target target; /* device, region and cgroup */
	struct blkload_load load; /* requests */
	struct blkload_progress progress; /* progress of the jobs */
	spinlock_t cpu_lock;	/* protects @cpu_free_ns and @cpu_busy_ns */
	u64 cpu_free_ns[BLKLOAD_JOBS_MAX]; /* time when each is free, ns */
	u64 cpu_busy_ns;	/* busy time of all in the measured window, ns */
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
u32 blkload_run_get_cpus(const struct blkload_run *run);
void blkload_run_stop(struct blkload_run *run);
bool blkload_run_is_done(const struct blkload_run *run);
void blkload_run_wait(struct blkload_run *run);
bool blkload_is_idle(void);
int blkload_wait_idle(void);
void blkload_run_job_ready(void);
void blkload_run_job_ended(struct blkload_run *run);

#endif /* BLKLOAD_RUN_H */
