// SPDX-License-Identifier: GPL-2.0-only
/*
 * A job: one kthread that keeps its slots busy.
 *
 * The thread loops: take the slots whose requests have ended and count these;
 * issue all requests that are due, random requests under one plug; sleep until
 * a request ends or the next one is due. A slot holds all memory that a request
 * needs, so that issuing allocates none.
 *
 * Time. A request's latency begins at its intended start. Closed loop: when
 * its slot became free, or the thinktime was over. Open loop: when it
 * arrived, however long it then waited for a slot. A slot becomes free when
 * its last request ends, so the closed loop needs only the clock reading at
 * the end of I/O, and a delay of this thread counts as latency instead of
 * vanishing. submit_bio() may sleep where a controller throttles; that counts
 * as well.
 *
 * Virtual time. Instructions take no time there, and a device without latency would
 * stop the clock: so after BLKLOAD_INSTANT_IN_ROW_MAX requests without duration each further
 * one waits for BLKLOAD_INSTANT_NS. The CPU cost of a request is @cputime; in real time a
 * request has its real cost, and @cputime is ignored. UML has one processor,
 * tenants on a server have many; so a tenant has @cpus virtual processors of its
 * own. A job's thread sleeps until its virtual processor has spent the cost, behind
 * the costs of earlier requests, and then issues the request. Threads are real-time
 * tasks: they do not wait for each other, and those that wake at one time run in
 * that order, whatever the history of the guest's scheduler.
 */
#define pr_fmt(fmt) "blkload: " fmt

#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/cgroup.h>
#include <linux/container_of.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/ioprio.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/wait.h>
#ifdef CONFIG_UML_TIME_TRAVEL_SUPPORT
#include <linux/time-internal.h>
#endif

#include "dist.h"
#include "job.h"
#include "opts.h"
#include "parse.h"
#include "record.h"
#include "relay.h"
#include "replay.h"
#include "run.h"
#include "stats.h"
#include "unseen.h"
#include "verify.h"

/*
 * Failed requests in a row that end a job. A whole queue, even of the largest
 * iodepth, may fail by one event; more means that the device is gone.
 */
#define BLKLOAD_ERRORS_IN_ROW_MAX	8192

/*
 * Requests in a row that may have no duration without a cost. A flush that the
 * device does not need has none, and must not cost any.
 */
#define BLKLOAD_INSTANT_IN_ROW_MAX	16

/* Cost of each further request, ns. */
#define BLKLOAD_INSTANT_NS	256

/* The cost of a request varies by up to a quarter: no two are equal. */
#define BLKLOAD_CPU_SPREAD	4

/* Update the time and the stop flag after a sleep. */
static void blkload_job_update(struct blkload_job *job)
{
	job->now_ns = ktime_get_ns();
	if (READ_ONCE(job->run->progress.stop))
		job->finished = true;
}

/*
 * Context: any. Once the slot is in the list the thread may end the run: RCU
 * keeps the job until the wake-up is complete.
 */
static void blkload_job_end_io(struct bio *bio)
{
	struct blkload_slot *slot = container_of(bio, struct blkload_slot, bio);
	struct blkload_job *job = slot->job;

	slot->ended_ns = ktime_get_ns();
	rcu_read_lock();
	if (llist_add(&slot->node, &job->ended) && READ_ONCE(job->waiting))
		wake_up_process(job->task);
	rcu_read_unlock();
}

/*
 * Sleep until a request ends, the run is stopped, or @until. A waker makes its
 * reason visible and then reads @waiting; the thread sets @waiting and then
 * checks for reasons: one of both sees the other. A thread that sleeps
 * elsewhere, in submit_bio() for a tag, must not be woken, or it would overtake
 * earlier waiters.
 */
static void blkload_job_wait(struct blkload_job *job, u64 until)
{
	ktime_t expires = ns_to_ktime(until);

	WRITE_ONCE(job->waiting, true);
	set_current_state(TASK_IDLE);
	if (!llist_empty(&job->ended) ||
	    (!job->finished && READ_ONCE(job->run->progress.stop))) {
		__set_current_state(TASK_RUNNING);
		cond_resched();
	} else if (until == BLKLOAD_NO_TIME_NS) {
		schedule();
	} else {
		schedule_hrtimeout_range(&expires, 0, HRTIMER_MODE_ABS);
	}
	WRITE_ONCE(job->waiting, false);
}

/**
 * blkload_job_kick - wake a sleeping job, after its run's @stop was set
 * @job: the job
 */
void blkload_job_kick(struct blkload_job *job)
{
	/* Pairs with set_current_state() in blkload_job_wait(). */
	smp_mb();
	if (READ_ONCE(job->waiting))
		wake_up_process(job->task);
}

static void blkload_job_put_free(struct blkload_job *job,
				 struct blkload_slot *slot)
{
	slot->next = NULL;
	*job->free.tail = slot;
	job->free.tail = &slot->next;
}

static struct blkload_slot *blkload_job_get_free(struct blkload_job *job)
{
	struct blkload_slot *slot = job->free.first;

	job->free.first = slot->next;
	if (!job->free.first)
		job->free.tail = &job->free.first;
	return slot;
}

static void blkload_job_fail(struct blkload_job *job, int error)
{
	if (!job->error)
		job->error = error;
	job->finished = true;
}

/* Handle a failed request: end the job if the device is gone. */
static void blkload_job_handle_error(struct blkload_job *job,
				     blk_status_t status)
{
	struct gendisk *disk = job->run->target.bdev->bd_disk;

	if (status == BLK_STS_OFFLINE || test_bit(GD_DEAD, &disk->state))
		blkload_job_fail(job, -ENODEV);
	else if (++job->errors_in_row >= BLKLOAD_ERRORS_IN_ROW_MAX)
		blkload_job_fail(job, blk_status_to_errno(status));
}

/* Count a request that has ended. */
static void blkload_job_account_slot(struct blkload_job *job,
				     struct blkload_slot *slot)
{
	struct blkload_stats *stats = &job->stats[slot->op];
	const struct blkload_measure *measure = &job->run->measure;

	job->nr_in_flight--;
	job->last_end_ns = max(job->last_end_ns, slot->ended_ns);
	if (job->run->load.verify.gens && !blkload_request_check(job, slot))
		stats->counts.verify_errors++;
	if (unlikely(slot->bio.bi_status)) {
		stats->counts.errors++;
		blkload_job_handle_error(job, slot->bio.bi_status);
	} else {
		job->errors_in_row = 0;
		if (blkload_stats_complete(stats, measure,
					   slot->ended_ns - measure->barrier_ns,
					   slot->ended_ns - slot->intended_ns,
					   slot->bytes))
			blkload_job_fail(job, -ENOMEM);
	}
	if (likely(slot->ended_ns != slot->issued_ns))
		job->instant_in_row = 0;
	else if (++job->instant_in_row > BLKLOAD_INSTANT_IN_ROW_MAX)
		ndelay(BLKLOAD_INSTANT_NS);
}

/* Count ended requests, in the order of their ends. */
static void blkload_job_reap(struct blkload_job *job)
{
	struct llist_node *list = llist_del_all(&job->ended);
	struct blkload_slot *slot, *next;

	list = llist_reverse_order(list);
	llist_for_each_entry_safe(slot, next, list, node) {
		blkload_job_account_slot(job, slot);
		blkload_job_put_free(job, slot);
	}
}

/* Submit the request in a slot. */
static void blkload_job_submit(struct blkload_job *job,
			       struct blkload_slot *slot)
{
	const struct blkload_target *target = &job->run->target;
	struct blkload_load *load = &job->run->load;
	const struct blkload_buf *buf =
		load->verify.gens ? &slot->buf : &load->data[slot->op];
	struct bio *bio = &slot->bio;

	if (slot->op == BLKLOAD_FLUSH || slot->op == BLKLOAD_TRIM) {
		bio_init(bio, NULL, NULL, 0, load->opf[slot->op]);
	} else if (slot->bytes <= buf->piece_bytes) {
		bvec_set_page(&slot->vec, buf->vecs[0].bv_page, slot->bytes, 0);
		bio_init(bio, NULL, &slot->vec, 1, load->opf[slot->op]);
		bio->bi_vcnt = 1;
	} else {
		bio_init(bio, NULL, buf->vecs, buf->nr_vecs,
			 load->opf[slot->op]);
		bio->bi_vcnt = DIV_ROUND_UP(slot->bytes, buf->piece_bytes);
	}
	/* bio_init() with a device would associate a blkg, to be replaced. */
	bio->bi_bdev = target->bdev;
	bio_associate_blkg_from_css(bio, target->css);
	bio->bi_iter.bi_sector = (target->base_pos + slot->offset) >>
				 SECTOR_SHIFT;
	bio->bi_iter.bi_size = slot->bytes;
	bio->bi_end_io = blkload_job_end_io;
	if (slot->op == BLKLOAD_READ && !load->verify.gens)
		bio_set_unseen(bio);
	if (slot->flags & BLKLOAD_RECORD_FUA)
		bio->bi_opf |= REQ_FUA;
	if (slot->flags & BLKLOAD_RECORD_PREFLUSH)
		bio->bi_opf |= REQ_PREFLUSH;
	if (slot->flags & BLKLOAD_RECORD_ASYNC)
		bio->bi_opf &= ~(REQ_SYNC | REQ_IDLE);

	job->nr_in_flight++;
	job->stats[slot->op].counts.issued++;
	if (load->relayed)
		blkload_relay_submit(bio);
	else
		submit_bio(bio);
}

static bool blkload_is_virtual_time(void)
{
#ifdef CONFIG_UML_TIME_TRAVEL_SUPPORT
	return time_travel_mode == TT_MODE_INFCPU;
#else
	return false;
#endif
}

/*
 * Book the job's virtual processor for a request that was due at @ready.
 * A thread wakes up to 256 ns late, but its processor begins at @ready. Return
 * the time at which the cost is spent, ns.
 */
static u64 blkload_job_book_cpu(struct blkload_job *job, u64 ready)
{
	struct blkload_run *run = job->run;
	const struct blkload_measure *measure = &run->measure;
	u64 *cpu_free =
		&run->cpu_free_ns[job->number % blkload_run_get_cpus(run)];
	u64 ns = run->opts.cputime, spread = ns / BLKLOAD_CPU_SPREAD, end;

	ns += blkload_rng_below(&job->cpu_rng, 2 * spread + 1) - spread;
	spin_lock(&run->cpu_lock);
	end = max(*cpu_free, ready) + ns;
	*cpu_free = end;
	if (end - measure->barrier_ns >= measure->from_ns &&
	    end - measure->barrier_ns < measure->to_ns)
		run->cpu_busy_ns += ns;
	spin_unlock(&run->cpu_lock);
	return end;
}

/*
 * Sleep while the virtual processor spends the cost of a request that was due
 * at @ready.
 */
static void blkload_job_spend_cpu(struct blkload_job *job, u64 ready)
{
	ktime_t expires = ns_to_ktime(blkload_job_book_cpu(job, ready));

	set_current_state(TASK_IDLE);
	schedule_hrtimeout_range(&expires, 0, HRTIMER_MODE_ABS);
	job->now_ns = ktime_get_ns();
}

/*
 * Issue all requests that are due. Return when the next will be due, BLKLOAD_NO_TIME_NS
 * if an end of I/O has to come first.
 */
static u64 blkload_job_issue(struct blkload_job *job)
{
	const struct blkload_opts *opts = &job->run->opts;
	struct blkload_replay *replay = &job->run->load.replay;
	unsigned long switches = current->nvcsw;
	struct blk_plug plug;
	u64 start = BLKLOAD_NO_TIME_NS, intended;
	int ret;

	blk_start_plug(&plug);
	while (job->free.first) {
		struct blkload_slot *slot;

		start = blkload_request_start_ns(job, job->free.first,
						 &intended);
		if (start > job->now_ns)
			break;
		slot = blkload_job_get_free(job);
		if (opts->cputime && blkload_is_virtual_time())
			blkload_job_spend_cpu(job, max(start, slot->ended_ns));
		blkload_request_fill(job, slot, intended);
		blkload_job_submit(job, slot);
		start = BLKLOAD_NO_TIME_NS;
		if (replay->file) {
			ret = blkload_replay_advance(replay);
			if (ret)
				blkload_job_fail(job, ret);
		}
		if (!job->run->load.random) {
			/* A plug would merge requests; fio submits one by one. */
			blk_finish_plug(&plug);
			blk_start_plug(&plug);
		}
		if (unlikely(current->nvcsw != switches)) {
			/* submit_bio() slept, or the trace's file is slow. */
			switches = current->nvcsw;
			blkload_job_update(job);
		}
	}
	blk_finish_plug(&plug);
	return start;
}

static void blkload_job_run(struct blkload_job *job)
{
	struct blkload_run *run = job->run;
	const struct blkload_opts *opts = &run->opts;
	u64 begin = run->measure.barrier_ns + opts->startdelay;
	u64 start;
	u32 i;

	blkload_job_update(job);
	while (job->now_ns < begin && !job->finished) {
		blkload_job_wait(job, begin);
		blkload_job_update(job);
	}
	job->stop_ns = opts->runtime ?
			       run->measure.barrier_ns + run->measure.to_ns :
			       BLKLOAD_NO_TIME_NS;
	job->last_end_ns = job->now_ns;
	job->pace.begin_ns = begin;
	for (i = 0; i < opts->iodepth; i++) {
		job->slots[i].ended_ns = job->now_ns;
		blkload_job_put_free(job, &job->slots[i]);
	}
	if (opts->rate_iops)
		blkload_arrivals_init(&job->pace.arrivals, begin,
				      opts->rate_iops, opts->poisson,
				      &job->pace.rng);
	run->load.replay.begin_ns = begin;
	for (;;) {
		start = blkload_job_issue(job);
		if (job->finished && !job->nr_in_flight)
			return;
		blkload_job_wait(job, start);
		blkload_job_update(job);
		blkload_job_reap(job);
	}
}

static int blkload_job_thread(void *data)
{
	struct blkload_job *job = data;
	struct blkload_run *run = job->run;
	u16 ioprio = run->opts.ioprio;
	int ret = 0;

	if (blkload_is_virtual_time()) {
		sched_set_fifo(current);
		/* A real-time task's default priority would be higher. */
		ioprio = ioprio ?: IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE,
						     IOPRIO_BE_NORM);
	}
	kthread_associate_blkcg(run->target.css);
	if (ioprio)
		ret = set_task_ioprio(current, ioprio);
	blkload_run_job_ready();
	if (ret)
		blkload_job_fail(job, ret);
	else
		blkload_job_run(job);
	kthread_associate_blkcg(NULL);
	/* The last blkload_job_end_io() may still be about to wake this thread. */
	synchronize_rcu();
	blkload_run_job_ended(run);
	return 0;
}

static int blkload_job_init_slots(struct blkload_job *job)
{
	struct blkload_run *run = job->run;
	u32 max_bs = blkload_get_bs_max(&run->opts), i;
	int ret;

	job->slots = kvcalloc(run->opts.iodepth, sizeof(*job->slots),
			      GFP_KERNEL);
	if (!job->slots)
		return -ENOMEM;
	for (i = 0; i < run->opts.iodepth; i++) {
		struct blkload_slot *slot = &job->slots[i];

		slot->job = job;
		if (!run->load.verify.gens)
			continue;
		ret = blkload_buf_init(&slot->buf, max_bs, false);
		if (ret)
			return ret;
		slot->seen_gens = kvcalloc(max_bs / run->load.bs_min,
					   sizeof(*slot->seen_gens),
					   GFP_KERNEL);
		if (!slot->seen_gens)
			return -ENOMEM;
	}
	return 0;
}

/**
 * blkload_job_create - create a job and its kthread, without starting it
 * @run: the job's run, complete except for its jobs
 * @number: number of the job
 *
 * Context: May sleep.
 * Return: the job or an ERR_PTR().
 */
struct blkload_job *blkload_job_create(struct blkload_run *run, u32 number)
{
	const struct blkload_opts *opts = &run->opts;
	struct blkload_job *job;
	struct task_struct *task;
	unsigned long op, ops = run->load.ops;
	u64 known;
	int ret;

	job = kzalloc(sizeof(*job), GFP_KERNEL);
	if (!job)
		return ERR_PTR(-ENOMEM);
	job->run = run;
	job->number = number;
	job->free.tail = &job->free.first;
	init_llist_head(&job->ended);
	blkload_rng_seed(&job->pace.rng, opts->randseed, number);
	blkload_rng_seed(&job->cpu_rng, ~opts->randseed, number);

	known = opts->runtime ? run->measure.to_ns : run->measure.from_ns;
	for_each_set_bit(op, &ops, BLKLOAD_NR_OPS) {
		ret = blkload_stats_init(&job->stats[op], &run->measure, known);
		if (ret)
			goto free;
	}
	ret = blkload_job_init_slots(job);
	if (ret)
		goto free;
	task = kthread_create(blkload_job_thread, job, "blkload/%s.%u",
			      run->name, number);
	if (IS_ERR(task)) {
		ret = PTR_ERR(task);
		goto free;
	}
	job->task = get_task_struct(task);
	return job;

free:
	blkload_job_free(job);
	return ERR_PTR(ret);
}

/**
 * blkload_job_release_io - release the resources of the I/O path
 * @job: a job that has ended or was never started; may be called again
 */
void blkload_job_release_io(struct blkload_job *job)
{
	u32 i;

	if (!job->slots)
		return;
	for (i = 0; i < job->run->opts.iodepth; i++) {
		blkload_buf_free(&job->slots[i].buf);
		kvfree(job->slots[i].seen_gens);
	}
	kvfree(job->slots);
	job->slots = NULL;
}

/**
 * blkload_job_free - free a job
 * @job: a job of a run that is done or was never started
 *
 * Context: May sleep: waits until the kthread has left this module.
 */
void blkload_job_free(struct blkload_job *job)
{
	unsigned int op;

	if (job->task)
		kthread_stop_put(job->task);
	blkload_job_release_io(job);
	for (op = 0; op < BLKLOAD_NR_OPS; op++)
		blkload_stats_free(&job->stats[op]);
	kfree(job);
}
