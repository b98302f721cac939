/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of blkload share. See main.c for the design.
 */
#ifndef BLKLOAD_H
#define BLKLOAD_H

#include <linux/blk_types.h>
#include <linux/configfs.h>
#include <linux/ktime.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/sched.h>

#include "dist.h"
#include "parse.h"
#include "replay.h"
#include "stats.h"
#include "verify.h"

struct blkload_run;
struct blkload_slot;

/**
 * struct blkload_job - one kthread of a tenant
 * @run: what it is part of
 * @number: 0 .. numjobs - 1
 * @task: the kthread; a reference is held until the job is freed
 * @slots: iodepth of them
 * @done: slots whose requests ended, filled by the end of I/O
 * @waiting: the thread sleeps and wants to be woken
 * @free: first of the slots not in flight, in the order they ended
 * @free_tail: where the next of them goes
 * @inflight: requests in flight
 * @finished: nothing more will be issued
 * @now: the time, as far as the thread knows
 * @stop_at: CLOCK_MONOTONIC ns at which issuing ends
 * @gate: nothing is issued before it: end of the thinktime
 * @flush_at: intended start of the write that made a flush due
 * @last_end: when the latest request ended, or the runtime
 * @rng: random numbers
 * @arrivals: schedule of the open loop
 * @next: next sequential offset of an operation
 * @requests: issued, flushes not counted
 * @since_pause: requests since the last thinktime
 * @since_flush: writes since the last flush
 * @errors_in_row: failed requests since one succeeded
 * @instant_in_row: requests that took no time since one took some
 * @error: negative errno that ended the job early, or 0
 * @stats: what it did
 *
 * @done and @waiting are shared with the end of I/O, see job_wait(). The
 * fields from @free on belong to the thread; @error, @last_end and @stats are
 * read by others once the run is done.
 */
struct blkload_job {
	struct blkload_run *run;
	u32 number;
	struct task_struct *task;
	struct blkload_slot *slots;

	struct llist_head done ____cacheline_aligned_in_smp;
	bool waiting;

	struct blkload_slot *free ____cacheline_aligned_in_smp;
	struct blkload_slot **free_tail;
	u32 inflight;
	bool finished;
	u64 now;
	u64 stop_at;
	u64 gate;
	u64 flush_at;
	u64 last_end;
	struct blkload_rng rng;
	struct blkload_arrivals arrivals;
	u64 next[BLKLOAD_NR_OPS];
	u64 requests;
	u64 since_pause;
	u64 since_flush;
	u32 errors_in_row;
	u32 instant_in_row;
	int error;
	struct blkload_stats stats[BLKLOAD_NR_OPS];
};

/**
 * struct blkload_run - one run of one tenant
 * @ref: the tenant has one, and so has a reader of the results
 * @link: in the list of runs that start together
 * @name: the tenant's name
 * @opts: its options when it was started
 * @measure: its times
 * @file: the open device
 * @bdev: the device
 * @css: what its requests are charged to
 * @base: first byte of the region
 * @bytes: size of the region
 * @min_bs: smallest request; random offsets are multiples of it
 * @random: offsets are random
 * @ops: the operations that may occur, a mask
 * @opf: how each of them is submitted
 * @dist: distribution of random offsets, NULL for a uniform one
 * @data: for each operation, data without a content that matters
 * @verify: content of the region; its @gen is NULL without verification
 * @relayed: it holds the relay
 * @replay: the trace; its @file is NULL without one and when the run is done
 * @active: jobs that have not ended
 * @stop: the jobs shall end
 * @done: all jobs have ended
 * @error: of the first job that has one
 * @end: when the last job ended, relative to the barrier
 * @nr_jobs: number of jobs
 * @jobs: the jobs
 *
 * All is constant while jobs run, but @active and @stop. The last job to end
 * gives the device, @css and the memory of the I/O path back and then sets
 * @done (release); who sees it (acquire) may read the rest.
 */
struct blkload_run {
	struct kref ref;
	struct list_head link;
	char *name;
	struct blkload_opts opts;
	struct blkload_measure measure;
	struct file *file;
	struct block_device *bdev;
	struct cgroup_subsys_state *css;
	u64 base;
	u64 bytes;
	u32 min_bs;
	bool random;
	unsigned int ops;
	blk_opf_t opf[BLKLOAD_NR_OPS];
	struct blkload_dist *dist;
	struct blkload_buf data[BLKLOAD_NR_OPS];
	struct blkload_verify verify;
	bool relayed;
	struct blkload_replay replay;
	atomic_t active;
	bool stop;
	bool done;
	int error;
	u64 end;
	u32 nr_jobs;
	struct blkload_job *jobs[];
};

/**
 * struct blkload_tenant - a directory in configfs
 * @item: the directory
 * @link: in the list of tenants, which is sorted by name
 * @opts: the attributes
 * @run: its last run, or NULL
 *
 * All but @item is protected by blkload_lock.
 */
struct blkload_tenant {
	struct config_item item;
	struct list_head link;
	struct blkload_opts opts;
	struct blkload_run *run;
};

/* main.c */
extern struct mutex blkload_lock;
struct blkload_run *blkload_run_after(const char *name);

/* tenant.c */
extern const struct config_item_type blkload_tenant_type;

/* run.c */
struct blkload_run *blkload_run_create(const char *name,
				       const struct blkload_opts *opts);
void blkload_run_get(struct blkload_run *run);
void blkload_run_put(struct blkload_run *run);
void blkload_runs_start(struct list_head *runs);
void blkload_run_stop(struct blkload_run *run);
bool blkload_run_done(const struct blkload_run *run);
void blkload_run_wait(struct blkload_run *run);
bool blkload_idle(void);
int blkload_wait_idle(void);
void blkload_run_job_ready(void);
void blkload_run_job_ended(struct blkload_run *run);

/* job.c */
struct blkload_job *blkload_job_create(struct blkload_run *run, u32 number);
void blkload_job_release_io(struct blkload_job *job);
void blkload_job_free(struct blkload_job *job);
void blkload_job_kick(struct blkload_job *job);

/* relay.c */
int blkload_relay_get(void);
void blkload_relay_put(void);
void blkload_relay_submit(struct bio *bio);

/* results.c */
void blkload_results_init(void);
void blkload_results_exit(void);

#endif /* BLKLOAD_H */
