// SPDX-License-Identifier: GPL-2.0-only
/*
 * What has completed: how much, and how long it took.
 */
#include "core/measure.h"

/* What was told in times of the least no longer holds if that falls by such a part. */
#define BASE_FALL		8

static void count_kind(struct iso_disk *d, enum isoblk_op kind,
		       unsigned int sectors)
{
	this_cpu_inc(d->done->sums.nr[kind]);
	this_cpu_add(d->done->sums.sectors[kind], sectors);
}

/* Requests of a kind have taken @took, and @was at the least, U32_MAX: not known. */
static void note_fall(struct iso_disk *d, u32 was, u32 took)
{
	if (was != U32_MAX && took < was - was / BASE_FALL)
		WRITE_ONCE(d->device.nr_falls,
			   READ_ONCE(d->device.nr_falls) + 1);
}

/**
 * iso_account() - a request has completed
 * @d: disk
 * @g: its group
 * @rq: request
 * @sectors: that it had when it went to the device
 * @work: of it
 * @now: ns
 */
void iso_account(struct iso_disk *d, struct iso_group *g,
		 const struct request *rq, unsigned int sectors, u64 work,
		 u64 now)
{
	unsigned int c = min(fls(sectors), ISO_SIZES - 1);
	unsigned int dir = op_is_write(rq->cmd_flags);
	u32 base, *least = &d->device.base[0][dir][c];
	u64 took;

	if (!rq->io_start_time_ns || now <= rq->io_start_time_ns)
		return;
	took = min_t(u64, now - rq->io_start_time_ns, U32_MAX - 1);
	base = min(READ_ONCE(*least), READ_ONCE(d->device.base[1][dir][c]));
	if (took < READ_ONCE(*least))
		WRITE_ONCE(*least, took);
	if (took < base) {
		note_fall(d, base, took);
		base = took;
	}

	/* Alone, a group has nobody to be held back. */
	if (READ_ONCE(d->members.nr) > 1) {
		atomic64_add(took * work, &g->area);
		atomic64_add((base + READ_ONCE(d->late.ns)) * work,
			     &g->base_area);
	}
	this_cpu_inc(d->done->nr);
	this_cpu_add(d->done->work, work);
	this_cpu_add(d->done->area, took * work);
	this_cpu_add(d->done->base_area, base * work);
	if (READ_ONCE(d->tariff.account) == ISO_TIME)
		count_kind(d, isoblk_rq_op(rq), sectors);
}

static void sum_up_kinds(struct price_sums *sum, const struct price_sums *of)
{
	enum price_kind kind;

	for (kind = 0; kind < PRICE_KINDS; kind++) {
		sum->nr[kind] += READ_ONCE(of->nr[kind]);
		sum->sectors[kind] += READ_ONCE(of->sectors[kind]);
	}
}

/**
 * iso_sum_up() - what has completed on all CPUs so far
 * @d: disk
 */
struct iso_done iso_sum_up(const struct iso_disk *d)
{
	const struct iso_done *done;
	struct iso_done sum = {};
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		done = per_cpu_ptr(d->done, cpu);
		sum.nr += READ_ONCE(done->nr);
		sum.work += READ_ONCE(done->work);
		sum.area += READ_ONCE(done->area);
		sum.base_area += READ_ONCE(done->base_area);
		if (d->tariff.account == ISO_TIME)
			sum_up_kinds(&sum.sums, &done->sums);
	}
	return sum;
}

/**
 * iso_done_work() - work that has completed so far
 * @d: disk
 */
u64 iso_done_work(const struct iso_disk *d)
{
	return iso_sum_up(d).work;
}
