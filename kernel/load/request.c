// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests of a job: when the next one may be issued, its contents, and the
 * verification of reads.
 *
 * Closed loop: a request is due when its slot became free, or the thinktime was
 * over. Open loop: when it arrives. A trace: when its record is due, or as in a
 * closed loop. During a rest (off) a tenant begins no request and has no
 * arrivals; requests that have arrived before and wait are issued.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/types.h>

#include "dist.h"
#include "job.h"
#include "opts.h"
#include "record.h"
#include "replay.h"
#include "run.h"
#include "stats.h"
#include "verify.h"

/**
 * blkload_request_check - verify a read, or release the place of a write
 * @job: the job
 * @slot: a request that has ended
 *
 * Return: false if a read has found wrong data.
 */
bool blkload_request_check(struct blkload_job *job, struct blkload_slot *slot)
{
	struct blkload_verify *v = &job->run->load.verify;
	bool ok = !slot->bio.bi_status;

	if (slot->op == BLKLOAD_WRITE)
		blkload_verify_end_write(v, slot->offset, slot->bytes, ok);
	else if (slot->op == BLKLOAD_READ && ok)
		return blkload_verify_end_read(v, slot->offset, slot->bytes,
					       slot->seen_gens, &slot->buf);
	return true;
}

static bool blkload_request_is_flush_due(const struct blkload_job *job)
{
	const struct blkload_opts *opts = &job->run->opts;

	return opts->fsync && job->pace.since_flush >= opts->fsync;
}

/* Return the first time from @at on at which the tenant does not rest. */
static u64 blkload_request_skip_rest(const struct blkload_job *job, u64 at)
{
	const struct blkload_opts *opts = &job->run->opts;
	u64 into;

	if (!opts->off)
		return at;
	div64_u64_rem(at - job->pace.begin_ns, opts->on + opts->off, &into);
	return into < opts->on ? at : at + opts->on + opts->off - into;
}

/*
 * Return when an arrival at working time @at happens, with rests included;
 * BLKLOAD_NO_TIME_NS if that is centuries away.
 */
static u64 blkload_request_arrival_ns(const struct blkload_job *job, u64 at)
{
	const struct blkload_opts *opts = &job->run->opts;
	u64 turns, rests;

	if (!opts->off)
		return at;
	turns = div64_u64(at - job->pace.begin_ns, opts->on);
	if (check_mul_overflow(opts->off, turns, &rests) ||
	    check_add_overflow(at, rests, &at))
		return BLKLOAD_NO_TIME_NS;
	return at;
}

/**
 * blkload_request_start_ns - return when the next request may be issued
 * @job: the job
 * @slot: the slot that it would take
 * @intended: set to the time at which it should start, ns
 *
 * Return: ns; BLKLOAD_NO_TIME_NS if an end of I/O has to come first, or no request is
 * left.
 */
u64 blkload_request_start_ns(struct blkload_job *job,
			     const struct blkload_slot *slot, u64 *intended)
{
	struct blkload_pace *pace = &job->pace;
	const struct blkload_replay *replay = &job->run->load.replay;
	const struct blkload_opts *opts = &job->run->opts;
	bool flush = blkload_request_is_flush_due(job);
	u64 start;

	if (job->finished)
		return BLKLOAD_NO_TIME_NS;
	if (!flush && opts->number_ios && pace->nr_requests >= opts->number_ios)
		goto finish;
	if (replay->file && !replay->record)
		goto finish;
	if (opts->thinktime && pace->since_pause >= opts->thinktime_blocks) {
		/* As in fio, the pause begins when no request is in flight. */
		if (job->nr_in_flight)
			return BLKLOAD_NO_TIME_NS;
		pace->pause_end_ns = job->last_end_ns + opts->thinktime;
		pace->since_pause = 0;
	}
	if (replay->file && replay->timed) {
		start = blkload_replay_due_ns(replay);
		*intended = start;
	} else if (!opts->rate_iops) {
		start = blkload_request_skip_rest(job, max(slot->ended_ns,
							   pace->pause_end_ns));
		*intended = start;
	} else {
		*intended = flush ? pace->flush_intended_ns :
				    blkload_request_arrival_ns(job, pace->arrivals.next_ns);
		start = max(*intended, pace->pause_end_ns);
	}
	if (max(start, job->now_ns) < job->stop_ns)
		return start;
	/* The run lasts for its runtime, even if no request begins any more. */
	if (job->now_ns < job->stop_ns)
		return job->stop_ns;
	job->last_end_ns = max(job->last_end_ns, job->stop_ns);
finish:
	job->finished = true;
	return BLKLOAD_NO_TIME_NS;
}

static enum blkload_op blkload_request_pick_op(struct blkload_job *job)
{
	const struct blkload_opts *opts = &job->run->opts;

	switch (opts->rw) {
	case BLKLOAD_RW_RW:
	case BLKLOAD_RW_RANDRW:
		return blkload_rng_below(&job->pace.rng, 100) <
		       opts->rwmixread ? BLKLOAD_READ : BLKLOAD_WRITE;
	case BLKLOAD_RW_WRITE:
	case BLKLOAD_RW_RANDWRITE:
		return BLKLOAD_WRITE;
	case BLKLOAD_RW_TRIM:
	case BLKLOAD_RW_RANDTRIM:
		return BLKLOAD_TRIM;
	default:
		return BLKLOAD_READ;
	}
}

static u32 blkload_request_pick_bytes(struct blkload_job *job)
{
	const struct blkload_opts *opts = &job->run->opts;
	u32 i, r;

	if (opts->range_low)
		return opts->range_low *
		       (1 + blkload_rng_below(&job->pace.rng, opts->range_high /
						opts->range_low));
	if (!opts->nr_splits)
		return opts->bs;
	r = blkload_rng_below(&job->pace.rng, 100);
	for (i = 0; r >= opts->split[i].percent; i++)
		r -= opts->split[i].percent;
	return opts->split[i].bytes;
}

static u64 blkload_request_pick_offset(struct blkload_job *job,
				       enum blkload_op op, u32 bytes)
{
	struct blkload_pace *pace = &job->pace;
	const struct blkload_run *run = job->run;
	u64 at, last;

	if (!run->load.random) {
		at = pace->next_offset[op];
		if (at + bytes > run->target.bytes)
			at = 0;
		pace->next_offset[op] = at + bytes;
		return at;
	}
	last = div_u64(run->target.bytes - bytes, run->load.bs_min);
	if (run->load.dist)
		at = min(blkload_dist_draw_block(run->load.dist, &pace->rng),
			 last);
	else
		at = blkload_rng_below(&pace->rng, last + 1);
	return at * run->load.bs_min;
}

/* Fill a slot from the next record of the trace. */
static void blkload_request_fill_record(struct blkload_job *job,
					struct blkload_slot *slot)
{
	struct blkload_replay *replay = &job->run->load.replay;
	const struct blkload_measure *measure = &job->run->measure;
	const struct blkload_record *record = replay->record;
	u64 due = slot->intended_ns - measure->barrier_ns;
	struct blkload_place place = {};

	slot->op = record->op;
	if (slot->op != BLKLOAD_FLUSH)
		blkload_fit_map(&replay->fit, slot->op,
				le64_to_cpu(record->offset),
				le32_to_cpu(record->bytes), &place);
	slot->offset = place.offset;
	slot->bytes = place.bytes;
	slot->flags = slot->op == BLKLOAD_WRITE ? record->flags : 0;
	job->pace.nr_requests++;
	replay->counts.nr_rounded += place.rounded;
	replay->counts.nr_clipped += place.clipped;
	replay->counts.nr_moved += place.moved;
	if (replay->timed && due >= measure->from_ns && due < measure->to_ns)
		blkload_replay_count_late(replay,
					  slot->issued_ns - slot->intended_ns);
}

/**
 * blkload_request_fill - fill a slot with the next request
 * @job: the job
 * @slot: the slot that it takes
 * @intended: time at which it should start, ns
 */
void blkload_request_fill(struct blkload_job *job, struct blkload_slot *slot,
			  u64 intended)
{
	struct blkload_run *run = job->run;
	struct blkload_pace *pace = &job->pace;

	slot->intended_ns = intended;
	slot->issued_ns = job->now_ns;
	if (run->load.replay.file) {
		blkload_request_fill_record(job, slot);
		return;
	}
	if (blkload_request_is_flush_due(job)) {
		slot->op = BLKLOAD_FLUSH;
		slot->offset = 0;
		slot->bytes = 0;
		pace->since_flush = 0;
		return;
	}
	slot->op = blkload_request_pick_op(job);
	slot->bytes = blkload_request_pick_bytes(job);
	slot->offset = blkload_request_pick_offset(job, slot->op, slot->bytes);
	pace->nr_requests++;
	pace->since_pause++;
	if (slot->op == BLKLOAD_WRITE) {
		pace->since_flush++;
		pace->flush_intended_ns = intended;
	}
	if (run->opts.rate_iops)
		blkload_arrivals_advance(&pace->arrivals, &pace->rng);
	if (!run->load.verify.gens)
		return;
	if (slot->op == BLKLOAD_WRITE)
		slot->offset = blkload_verify_begin_write(&run->load.verify,
							  slot->offset,
							  slot->bytes,
							  &slot->buf);
	else
		blkload_verify_begin_read(&run->load.verify, slot->offset,
					  slot->bytes, slot->seen_gens);
}
