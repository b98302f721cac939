// SPDX-License-Identifier: GPL-2.0-only
/*
 * A run of a tenant, from the look-up of its device to the last reader of its
 * results; and the start of many on one barrier.
 */
#define pr_fmt(fmt) "blkload: " fmt

#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "blkload.h"

/* Threads that are ready sleep at least this long before the barrier. */
#define BARRIER_MARGIN_NS	NSEC_PER_MSEC

/*
 * A region must hold this many times all the requests that may be in flight,
 * if they are verified: then there is always a place for a write that overlaps
 * none of the others.
 */
#define VERIFY_ROOM	2

/* One is enough unless memory is short, and each gives the worker a ms. */
#define BLKG_TRIES	1000

/* Jobs that are not yet ready; the last one wakes the starter. */
static atomic_t run_starting = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(run_ready);

/* The barrier is known. */
static DECLARE_COMPLETION(run_go);

/* Runs that are not done; woken when one is. */
static atomic_t run_running = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(run_idle);

/*
 * The css at @path of a version 1 hierarchy. cgroup_get_from_path() knows the
 * version 2 hierarchy only.
 */
static struct cgroup_subsys_state *run_css_v1(const char *path)
{
	struct cgroup_subsys_state *pos, *css = ERR_PTR(-ENOENT);
	char *name;

	name = kmalloc(BLKLOAD_PATH_LEN, GFP_KERNEL);
	if (!name)
		return ERR_PTR(-ENOMEM);
	rcu_read_lock();
	css_for_each_descendant_pre(pos, blkcg_root_css) {
		if (cgroup_path(pos->cgroup, name, BLKLOAD_PATH_LEN) < 0 ||
		    strcmp(name, path))
			continue;
		if (css_tryget_online(pos)) {
			css = pos;
			break;
		}
	}
	rcu_read_unlock();
	kfree(name);
	return css;
}

/*
 * The css that a process in the cgroup at @path would be charged to: on
 * version 2 that of the nearest group for which io is enabled.
 */
static struct cgroup_subsys_state *run_css(const char *path)
{
	struct cgroup_subsys_state *css;
	struct cgroup *cgrp;

	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		return run_css_v1(path);
	cgrp = cgroup_get_from_path(path);
	if (IS_ERR(cgrp))
		return ERR_CAST(cgrp);
	css = cgroup_get_e_css(cgrp, &io_cgrp_subsys);
	cgroup_put(cgrp);
	return css;
}

static int run_find_css(struct blkload_run *run)
{
	char *path = run->opts.cgroup;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	run->css = run_css(len ? path : "/");
	if (IS_ERR(run->css)) {
		int ret = PTR_ERR(run->css);

		run->css = NULL;
		pr_err("%s: cgroup %s: error %d\n", run->name, path, ret);
		return ret;
	}
	return 0;
}

/* What the load consists of. */
static void run_find_ops(struct blkload_run *run)
{
	struct blkload_opts *opts = &run->opts;

	if (run->replay.file) {
		run->ops = run->replay.facts.ops;
		return;
	}
	switch (opts->rw) {
	case BLKLOAD_RW_READ:
	case BLKLOAD_RW_RANDREAD:
		run->ops = BIT(BLKLOAD_READ);
		break;
	case BLKLOAD_RW_WRITE:
	case BLKLOAD_RW_RANDWRITE:
		run->ops = BIT(BLKLOAD_WRITE);
		break;
	case BLKLOAD_RW_TRIM:
	case BLKLOAD_RW_RANDTRIM:
		run->ops = BIT(BLKLOAD_TRIM);
		/* There is nothing to verify. */
		opts->verify = 0;
		break;
	default:
		run->ops = BIT(BLKLOAD_READ) | BIT(BLKLOAD_WRITE);
	}
	if (opts->fsync && run->ops & BIT(BLKLOAD_WRITE))
		run->ops |= BIT(BLKLOAD_FLUSH);
	run->random = opts->rw == BLKLOAD_RW_RANDREAD ||
		      opts->rw == BLKLOAD_RW_RANDWRITE ||
		      opts->rw == BLKLOAD_RW_RANDRW ||
		      opts->rw == BLKLOAD_RW_RANDTRIM;
}

/* How each operation is submitted. */
static void run_find_opf(struct blkload_run *run)
{
	/* As direct I/O of a process is submitted: someone waits for it. */
	blk_opf_t write = REQ_OP_WRITE | REQ_SYNC;
	blk_opf_t meta = run->opts.meta ? REQ_META | REQ_PRIO : 0;

	run->opf[BLKLOAD_READ] = REQ_OP_READ | meta;
	run->opf[BLKLOAD_WRITE] = run->opts.background ? REQ_OP_WRITE :
							 write | REQ_IDLE;
	run->opf[BLKLOAD_WRITE] |= meta | (run->opts.fua ? REQ_FUA : 0);
	run->opf[BLKLOAD_TRIM] = REQ_OP_DISCARD;
	run->opf[BLKLOAD_FLUSH] = write | REQ_PREFLUSH;
}

/* What can be said without the device. */
static int run_check_opts(const struct blkload_run *run)
{
	const struct blkload_opts *opts = &run->opts;
	u32 i;

	if (!opts->device[0]) {
		pr_err("%s: device is not set\n", run->name);
		return -EINVAL;
	}
	if (opts->trace[0] && (opts->numjobs > 1 || opts->verify ||
			       opts->rate_iops || opts->thinktime ||
			       opts->fsync)) {
		pr_err("%s: a trace needs numjobs 1, and no verify, rate_iops, thinktime or fsync\n",
		       run->name);
		return -EINVAL;
	}
	if (!opts->runtime && !opts->number_ios &&
	    (!opts->trace[0] || opts->trace_loop)) {
		pr_err("%s: neither runtime nor number_ios is set\n",
		       run->name);
		return -EINVAL;
	}
	for (i = 0; opts->verify && i < opts->nr_splits; i++) {
		if (opts->split[i].bytes % run->min_bs) {
			pr_err("%s: verify needs sizes that are multiples of the smallest\n",
			       run->name);
			return -EINVAL;
		}
	}
	return 0;
}

static bool run_bs_fits(const struct blkload_opts *opts, u32 block)
{
	u32 i;

	/* A trace's requests are made to fit. */
	if (opts->trace[0])
		return true;
	/* A range's sizes are multiples of its lower end. */
	if (opts->range_low)
		return opts->range_low % block == 0;
	if (!opts->nr_splits)
		return (u32)opts->bs % block == 0;
	for (i = 0; i < opts->nr_splits; i++)
		if (opts->split[i].bytes % block)
			return false;
	return true;
}

/* Check the load against the device and find its region. */
static int run_check_device(struct blkload_run *run)
{
	const struct blkload_opts *opts = &run->opts;
	u32 block = bdev_logical_block_size(run->bdev);
	u64 capacity = bdev_nr_bytes(run->bdev), room;

	if (run->ops & ~BIT(BLKLOAD_READ) && bdev_read_only(run->bdev)) {
		pr_err("%s: %s is read-only\n", run->name, opts->device);
		return -EROFS;
	}
	if (run->ops & BIT(BLKLOAD_TRIM) &&
	    !bdev_max_discard_sectors(run->bdev)) {
		pr_err("%s: %s cannot trim\n", run->name, opts->device);
		return -EOPNOTSUPP;
	}
	if (!run_bs_fits(opts, block) || opts->offset & (block - 1)) {
		pr_err("%s: bs and offset must be multiples of %u, the block size of %s\n",
		       run->name, block, opts->device);
		return -EINVAL;
	}
	if (opts->offset > capacity || opts->size > capacity - opts->offset) {
		pr_err("%s: offset and size go beyond the end of %s\n",
		       run->name, opts->device);
		return -ERANGE;
	}
	run->base = opts->offset;
	run->bytes = opts->size ?: capacity - opts->offset;
	room = run->replay.file ? block : blkload_max_bs(opts);
	if (opts->verify)
		room *= VERIFY_ROOM * opts->iodepth * opts->numjobs;
	if (run->bytes < room) {
		pr_err("%s: the region has %llu bytes, the load needs %llu\n",
		       run->name, run->bytes, room);
		return -ERANGE;
	}
	if (run->replay.file)
		blkload_fit_init(&run->replay.fit, block, run->bytes,
				 run->replay.facts.end, opts->scale);
	return 0;
}

/*
 * Have the block layer make what it charges the cgroup with on this device, the
 * blkg, before the load begins. Left to itself it does so at the first bio, with
 * the memory that is at hand, and while there is none it charges an ancestor:
 * of a thousand cgroups that begin at one instant, half would be charged too
 * little.
 */
static int run_make_blkg(struct blkload_run *run)
{
	unsigned int i;

	for (i = 0; i < BLKG_TRIES; i++) {
		struct bio bio;
		bool made;

		bio_init(&bio, run->bdev, NULL, 0, REQ_OP_READ);
		bio_associate_blkg_from_css(&bio, run->css);
		made = bio_blkcg_css(&bio) == run->css;
		bio_uninit(&bio);
		if (made)
			return 0;
		/* A worker replenishes the percpu memory meanwhile. */
		usleep_range(USEC_PER_MSEC, 2 * USEC_PER_MSEC);
	}
	return -ENOMEM;
}

static int run_open(struct blkload_run *run)
{
	bool write = run->ops & ~BIT(BLKLOAD_READ);
	struct file *file;

	file = bdev_file_open_by_path(run->opts.device, BLK_OPEN_READ |
				      (write ? BLK_OPEN_WRITE : 0), NULL, NULL);
	if (IS_ERR(file)) {
		pr_err("%s: device %s: error %ld\n", run->name,
		       run->opts.device, PTR_ERR(file));
		return PTR_ERR(file);
	}
	run->file = file;
	run->bdev = file_bdev(file);
	return 0;
}

/* The device must be closed when the run is done, not some time later. */
static void run_close(struct blkload_run *run)
{
	if (!run->file)
		return;
	if (current->flags & PF_KTHREAD)
		__fput_sync(run->file);
	else
		bdev_fput(run->file);
	run->file = NULL;
	run->bdev = NULL;
}

static int run_alloc(struct blkload_run *run)
{
	const struct blkload_opts *opts = &run->opts;
	u32 block = bdev_logical_block_size(run->bdev);
	u32 max_bs = run->replay.file ?
		     blkload_replay_max_bytes(&run->replay, block) :
		     blkload_max_bs(opts);
	enum blkload_op op;
	int ret;

	if (run->random && opts->shape != BLKLOAD_UNIFORM) {
		run->dist = blkload_dist_create(opts->shape, opts->shape_arg,
						div_u64(run->bytes,
							run->min_bs));
		if (!run->dist)
			return -ENOMEM;
	}
	if (!(run->ops & (BIT(BLKLOAD_READ) | BIT(BLKLOAD_WRITE))))
		return 0;
	if (opts->verify)
		return blkload_verify_init(&run->verify, run->base, run->bytes,
					   run->min_bs, block,
					   opts->randseed);
	for (op = BLKLOAD_READ; op <= BLKLOAD_WRITE; op++) {
		if (!(run->ops & BIT(op)))
			continue;
		ret = blkload_buf_init(&run->data[op], max_bs, true);
		if (ret)
			return ret;
	}
	return 0;
}

/* Free what only the I/O path needs; may be called again. */
static void run_release_io(struct blkload_run *run)
{
	enum blkload_op op;
	u32 i;

	for (i = 0; i < run->nr_jobs; i++)
		if (run->jobs[i])
			blkload_job_release_io(run->jobs[i]);
	for (op = 0; op < BLKLOAD_NR_OPS; op++)
		blkload_buf_free(&run->data[op]);
	blkload_verify_free(&run->verify);
	blkload_replay_close(&run->replay);
	kvfree(run->dist);
	run->dist = NULL;
	run_close(run);
	if (run->css)
		css_put(run->css);
	run->css = NULL;
	if (run->relayed)
		blkload_relay_put();
	run->relayed = false;
}

static void run_free(struct kref *ref)
{
	struct blkload_run *run = container_of(ref, struct blkload_run, ref);
	u32 i;

	run_release_io(run);
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
		kref_put(&run->ref, run_free);
}

/**
 * blkload_run_create - look everything up and prepare the jobs
 * @name: the tenant's name
 * @opts: its options
 *
 * What is wrong is said in the kernel's log.
 *
 * Context: May sleep.
 * Return: the run, of which no thread runs yet, or an ERR_PTR().
 */
struct blkload_run *blkload_run_create(const char *name,
				       const struct blkload_opts *opts)
{
	struct blkload_run *run;
	int ret = -ENOMEM;
	u32 i;

	run = kzalloc(struct_size(run, jobs, opts->numjobs), GFP_KERNEL);
	if (!run)
		return ERR_PTR(-ENOMEM);
	kref_init(&run->ref);
	run->nr_jobs = opts->numjobs;
	run->opts = *opts;
	run->min_bs = blkload_min_bs(opts);
	run->measure.window = opts->window;
	run->measure.from = opts->startdelay + opts->ramp_time;
	run->measure.to = opts->runtime ? run->measure.from + opts->runtime :
					  U64_MAX;
	atomic_set(&run->active, run->nr_jobs);
	run->name = kstrdup(name, GFP_KERNEL);
	if (!run->name)
		goto free;
	if (opts->trace[0]) {
		ret = blkload_replay_open(&run->replay, name, opts);
		if (ret)
			goto free;
	}
	run_find_ops(run);
	run_find_opf(run);
	ret = run_check_opts(run);
	if (ret)
		goto free;
	ret = run_open(run);
	if (ret)
		goto free;
	ret = run_check_device(run);
	if (ret)
		goto free;
	ret = run_find_css(run);
	if (ret)
		goto free;
	ret = run_make_blkg(run);
	if (ret)
		goto free;
	ret = run_alloc(run);
	if (ret)
		goto free;
	if (opts->relay) {
		ret = blkload_relay_get();
		if (ret)
			goto free;
		run->relayed = true;
	}
	for (i = 0; i < run->nr_jobs; i++) {
		struct blkload_job *job = blkload_job_create(run, i);

		if (IS_ERR(job)) {
			ret = PTR_ERR(job);
			goto free;
		}
		run->jobs[i] = job;
	}
	return run;

free:
	if (ret == -ENOMEM)
		pr_err("%s: not enough memory\n", name);
	blkload_run_put(run);
	return ERR_PTR(ret);
}

/**
 * blkload_runs_start - start runs on one barrier
 * @runs: list of runs, in the order in which their threads start
 *
 * Context: May sleep; blkload_lock held and blkload_idle().
 */
void blkload_runs_start(struct list_head *runs)
{
	struct blkload_run *run;
	u64 barrier;
	u32 i;

	reinit_completion(&run_go);
	list_for_each_entry(run, runs, link) {
		atomic_add(run->nr_jobs, &run_starting);
		atomic_inc(&run_running);
	}
	list_for_each_entry(run, runs, link)
		for (i = 0; i < run->nr_jobs; i++)
			wake_up_process(run->jobs[i]->task);
	wait_event_idle(run_ready, !atomic_read(&run_starting));

	barrier = roundup_u64(ktime_get_ns() + BARRIER_MARGIN_NS,
			      NSEC_PER_SEC);
	list_for_each_entry(run, runs, link)
		run->measure.barrier = barrier;
	complete_all(&run_go);
}

/**
 * blkload_run_job_ready - wait for the barrier to be set
 *
 * Context: A job's thread, once.
 */
void blkload_run_job_ready(void)
{
	if (atomic_dec_and_test(&run_starting))
		wake_up(&run_ready);
	wait_for_completion(&run_go);
}

/**
 * blkload_run_job_ended - a job has ended
 * @run: its run
 *
 * Context: The job's thread, with nothing in flight. @run may be gone
 * afterwards.
 */
void blkload_run_job_ended(struct blkload_run *run)
{
	u64 end = 0;
	u32 i;

	if (!atomic_dec_and_test(&run->active))
		return;
	for (i = 0; i < run->nr_jobs; i++) {
		struct blkload_job *job = run->jobs[i];

		end = max(end, job->last_end);
		if (!run->error)
			run->error = job->error;
	}
	run_release_io(run);
	/* A run that was stopped may have ended before the barrier. */
	run->end = end > run->measure.barrier ? end - run->measure.barrier : 0;
	run->measure.to = max(run->measure.from,
			      min(run->measure.to, run->end));
	/* Pairs with blkload_run_done(). */
	smp_store_release(&run->done, true);
	atomic_dec(&run_running);
	wake_up_all(&run_idle);
}

/**
 * blkload_run_stop - have the jobs of a run end
 * @run: a started run
 *
 * Context: Any; does not wait.
 */
void blkload_run_stop(struct blkload_run *run)
{
	u32 i;

	WRITE_ONCE(run->stop, true);
	for (i = 0; i < run->nr_jobs; i++)
		blkload_job_kick(run->jobs[i]);
}

/**
 * blkload_run_done - whether all jobs of a run have ended
 * @run: a started run
 *
 * Return: true if its results may be read.
 */
bool blkload_run_done(const struct blkload_run *run)
{
	/* Pairs with blkload_run_job_ended(). */
	return smp_load_acquire(&run->done);
}

/**
 * blkload_run_wait - wait until a run is done
 * @run: a started run
 *
 * Context: May sleep.
 */
void blkload_run_wait(struct blkload_run *run)
{
	wait_event_idle(run_idle, blkload_run_done(run));
}

/**
 * blkload_idle - whether no run is under way
 *
 * Return: true if all runs are done.
 */
bool blkload_idle(void)
{
	return !atomic_read(&run_running);
}

/**
 * blkload_wait_idle - wait until no run is under way
 *
 * Context: May sleep.
 * Return: 0 or -ERESTARTSYS.
 */
int blkload_wait_idle(void)
{
	return wait_event_interruptible(run_idle, blkload_idle());
}
