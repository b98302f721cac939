// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life cycle of a run, to the last reader of its results; and the start of
 * all runs on one barrier.
 */
#define pr_fmt(fmt) "blkload: " fmt

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/wait.h>

#include "job.h"
#include "opts.h"
#include "run.h"

/* Minimum sleep of ready threads before the barrier, ns. */
#define BLKLOAD_BARRIER_MARGIN_NS	NSEC_PER_MSEC

/* Jobs that are not yet ready; the last one wakes the starter. */
static atomic_t blkload_nr_starting = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(blkload_ready_wait);

/* Complete once the barrier is known. */
static DECLARE_COMPLETION(blkload_barrier_set);

/* Runs that are not done; woken when a run is done. */
static atomic_t blkload_nr_running = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(blkload_idle_wait);

/* Free a run without references. */
static void blkload_run_free(struct kref *ref)
{
	struct blkload_run *run = container_of(ref, struct blkload_run, ref);
	u32 i;

	blkload_run_release_io(run);
	for (i = 0; i < run->nr_jobs; i++)
		if (run->jobs[i])
			blkload_job_free(run->jobs[i]);
	kfree(run->name);
	kfree(run);
}

/**
 * blkload_run_get - take a reference
 * @run: the run
 */
void blkload_run_get(struct blkload_run *run)
{
	kref_get(&run->ref);
}

/**
 * blkload_run_put - drop a reference
 * @run: a run that is done or was never started, or NULL
 *
 * Context: May sleep.
 */
void blkload_run_put(struct blkload_run *run)
{
	if (run)
		kref_put(&run->ref, blkload_run_free);
}

/**
 * blkload_run_create - create a run and prepare its jobs
 * @name: the tenant's name
 * @opts: the tenant's options
 *
 * Errors are explained in the kernel's log.
 *
 * Context: May sleep.
 * Return: the run, whose threads are not started, or an ERR_PTR().
 */
struct blkload_run *blkload_run_create(const char *name,
				       const struct blkload_opts *opts)
{
	struct blkload_run *run;
	int ret = -ENOMEM;

	run = kzalloc(struct_size(run, jobs, opts->numjobs), GFP_KERNEL);
	if (!run)
		return ERR_PTR(-ENOMEM);
	kref_init(&run->ref);
	spin_lock_init(&run->cpu_lock);
	run->nr_jobs = opts->numjobs;
	run->opts = *opts;
	run->measure.window_ns = opts->window;
	run->measure.from_ns = opts->startdelay + opts->ramp_time;
	run->measure.to_ns =
		opts->runtime ? run->measure.from_ns + opts->runtime : U64_MAX;
	atomic_set(&run->progress.nr_active, run->nr_jobs);
	run->name = kstrdup(name, GFP_KERNEL);
	if (run->name)
		ret = blkload_run_prepare(run);
	if (!ret)
		return run;

	if (ret == -ENOMEM)
		pr_err("%s: not enough memory\n", name);
	blkload_run_put(run);
	return ERR_PTR(ret);
}

/**
 * blkload_runs_start - start runs on one barrier
 * @runs: list of runs, in the order in which their threads start
 *
 * Context: May sleep; blkload_lock held and blkload_is_idle().
 */
void blkload_runs_start(struct list_head *runs)
{
	struct blkload_run *run;
	u64 barrier;
	u32 i;

	reinit_completion(&blkload_barrier_set);
	list_for_each_entry(run, runs, link) {
		atomic_add(run->nr_jobs, &blkload_nr_starting);
		atomic_inc(&blkload_nr_running);
	}
	list_for_each_entry(run, runs, link)
		for (i = 0; i < run->nr_jobs; i++)
			wake_up_process(run->jobs[i]->task);
	wait_event_idle(blkload_ready_wait, !atomic_read(&blkload_nr_starting));

	barrier = roundup_u64(ktime_get_ns() + BLKLOAD_BARRIER_MARGIN_NS,
			      NSEC_PER_SEC);
	list_for_each_entry(run, runs, link)
		run->measure.barrier_ns = barrier;
	complete_all(&blkload_barrier_set);
}

/**
 * blkload_run_job_ready - wait for the barrier to be set
 *
 * Context: A job's thread, once.
 */
void blkload_run_job_ready(void)
{
	if (atomic_dec_and_test(&blkload_nr_starting))
		wake_up(&blkload_ready_wait);
	wait_for_completion(&blkload_barrier_set);
}

/**
 * blkload_run_job_ended - account for a job that has ended
 * @run: run of the job
 *
 * Context: The job's thread, with no request in flight. @run may be freed
 * afterwards.
 */
void blkload_run_job_ended(struct blkload_run *run)
{
	struct blkload_progress *progress = &run->progress;
	u64 end = 0;
	u32 i;

	if (!atomic_dec_and_test(&progress->nr_active))
		return;
	for (i = 0; i < run->nr_jobs; i++) {
		struct blkload_job *job = run->jobs[i];

		end = max(end, job->last_end_ns);
		if (!progress->error)
			progress->error = job->error;
	}
	blkload_run_release_io(run);
	/* A run that was stopped may have ended before the barrier. */
	progress->end_ns = end > run->measure.barrier_ns ?
				   end - run->measure.barrier_ns :
				   0;
	run->measure.to_ns = max(run->measure.from_ns,
				 min(run->measure.to_ns, progress->end_ns));
	/* Pairs with blkload_run_is_done(). */
	smp_store_release(&progress->done, true);
	atomic_dec(&blkload_nr_running);
	wake_up_all(&blkload_idle_wait);
}

/**
 * blkload_run_get_cpus - return the number of a run's virtual processors
 * @run: a run
 */
u32 blkload_run_get_cpus(const struct blkload_run *run)
{
	return run->opts.cpus ?: run->nr_jobs;
}

/**
 * blkload_run_stop - make the jobs of a run end
 * @run: a started run
 *
 * Context: Any; does not wait.
 */
void blkload_run_stop(struct blkload_run *run)
{
	u32 i;

	WRITE_ONCE(run->progress.stop, true);
	for (i = 0; i < run->nr_jobs; i++)
		blkload_job_kick(run->jobs[i]);
}

/**
 * blkload_run_is_done - return whether all jobs of a run have ended
 * @run: a started run
 *
 * Return: true if its results may be read.
 */
bool blkload_run_is_done(const struct blkload_run *run)
{
	/* Pairs with blkload_run_job_ended(). */
	return smp_load_acquire(&run->progress.done);
}

/**
 * blkload_run_wait - wait until a run is done
 * @run: a started run
 *
 * Context: May sleep.
 */
void blkload_run_wait(struct blkload_run *run)
{
	wait_event_idle(blkload_idle_wait, blkload_run_is_done(run));
}

/**
 * blkload_is_idle - return whether all runs are done
 *
 * Return: true if all runs are done.
 */
bool blkload_is_idle(void)
{
	return !atomic_read(&blkload_nr_running);
}

/**
 * blkload_wait_idle - wait until all runs are done
 *
 * Context: May sleep.
 * Return: 0 or -ERESTARTSYS.
 */
int blkload_wait_idle(void)
{
	return wait_event_interruptible(blkload_idle_wait, blkload_is_idle());
}
