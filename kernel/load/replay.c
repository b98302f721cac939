// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replay of a trace file: its records, one after the other.
 *
 * The start reads the whole file once: so the demands of the trace on the
 * device are known, and a damaged file starts no run. The run reads the file
 * again, a chunk at a time, from a workqueue: while the job's thread replays a
 * chunk, the other one is read. The memory is that of two chunks, whatever the
 * length of the trace. In virtual time the reading takes no time, for it ends
 * whenever the thread sleeps. In real time the thread waits only if the file is
 * slower than the trace, and this wait counts as lateness.
 *
 * The thread replays a chunk to its end, gives it to the worker with the
 * number of its next first record, and waits for the other chunk's
 * completion. So each chunk has one owner at any time, and needs no
 * lock.
 */
#define pr_fmt(fmt) "blkload: " fmt

#include <linux/array_size.h>
#include <linux/completion.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/stat.h>

#include "replay.h"

/* 96 KiB: some ms of the fastest device; usual file systems are faster. */
#define BLKLOAD_CHUNK_RECORDS	4096U

/* Reads chunks, for all tenants. */
static struct workqueue_struct *blkload_replay_wq;

/**
 * blkload_replay_init - prepare for replays
 *
 * Return: 0 or -ENOMEM.
 */
int blkload_replay_init(void)
{
	blkload_replay_wq = alloc_workqueue("blkload_replay", WQ_UNBOUND, 0);
	return blkload_replay_wq ? 0 : -ENOMEM;
}

/**
 * blkload_replay_exit - undo blkload_replay_init()
 */
void blkload_replay_exit(void)
{
	destroy_workqueue(blkload_replay_wq);
}

/* Read all of @bytes, or fail. */
static int blkload_replay_read_file(struct file *file, void *to, size_t bytes,
				    u64 from)
{
	loff_t pos = from;
	ssize_t n;

	while (bytes) {
		n = kernel_read(file, to, bytes, &pos);
		if (n <= 0)
			return n ?: -EIO;
		to += n;
		bytes -= n;
	}
	return 0;
}

static int blkload_chunk_read(struct blkload_chunk *chunk)
{
	return blkload_replay_read_file(chunk->replay->file, chunk->records,
					chunk->nr_records * sizeof(*chunk->records),
					sizeof(struct blkload_header) +
					chunk->first_record * sizeof(*chunk->records));
}

/* Check records once more: the file may have changed since the start. */
static int blkload_chunk_check(const struct blkload_chunk *chunk)
{
	const struct blkload_facts *known = &chunk->replay->facts;
	struct blkload_facts facts = { .span_ns = known->span_ns,
				       .end_pos = known->end_pos };
	u32 i;

	for (i = 0; i < chunk->nr_records; i++)
		if (blkload_record_check(&chunk->records[i], &facts))
			return -EINVAL;
	if (facts.ops & ~known->ops || facts.bytes_max > known->bytes_max)
		return -EINVAL;
	return 0;
}

static void blkload_chunk_work(struct work_struct *work)
{
	struct blkload_chunk *chunk =
		container_of(work, struct blkload_chunk, work);

	chunk->error = blkload_chunk_read(chunk);
	if (!chunk->error)
		chunk->error = blkload_chunk_check(chunk);
	complete(&chunk->full);
}

/* Queue the reading of the next records into a chunk; at the end it is empty. */
static void blkload_chunk_queue(struct blkload_replay *replay,
				struct blkload_chunk *chunk)
{
	if (replay->next_record == replay->facts.nr_records && replay->loop)
		replay->next_record = 0;
	chunk->first_record = replay->next_record;
	chunk->nr_records =
		min_t(u64, replay->facts.nr_records - replay->next_record,
		      BLKLOAD_CHUNK_RECORDS);
	replay->next_record += chunk->nr_records;
	queue_work(blkload_replay_wq, &chunk->work);
}

/* Take the next chunk: it holds the next record, or none. */
static int blkload_replay_take_chunk(struct blkload_replay *replay)
{
	struct blkload_chunk *chunk = &replay->chunks[replay->current_chunk];

	replay->record = NULL;
	wait_for_completion(&chunk->full);
	if (chunk->error || !chunk->nr_records)
		return chunk->error;
	if (!chunk->first_record && replay->counts.nr_passes)
		replay->pass_ns = min(replay->pass_ns + replay->period_ns,
				      BLKLOAD_NEVER_NS);
	replay->record_index = 0;
	replay->record = chunk->records;
	return 0;
}

/**
 * blkload_replay_advance - go to the next record after issuing one
 * @replay: a replay that has a record
 *
 * Context: The job's thread. May sleep.
 * Return: 0, then @replay->record is the next one or NULL at the end of the
 * trace, or a negative errno if the file cannot be read.
 */
int blkload_replay_advance(struct blkload_replay *replay)
{
	struct blkload_chunk *chunk = &replay->chunks[replay->current_chunk];

	replay->counts.nr_records++;
	replay->counts.nr_passes += !chunk->first_record &&
				    !replay->record_index;
	if (++replay->record_index < chunk->nr_records) {
		replay->record++;
		return 0;
	}
	blkload_chunk_queue(replay, chunk);
	replay->current_chunk ^= 1;
	return blkload_replay_take_chunk(replay);
}

/**
 * blkload_replay_count_late - count the lateness of a request
 * @replay: the replay
 * @late: lateness, ns
 */
void blkload_replay_count_late(struct blkload_replay *replay, u64 late)
{
	struct blkload_late *counts = &replay->counts.late;

	counts->nr_ios++;
	counts->sum_ns += late;
	counts->max_ns = max(counts->max_ns, late);
	counts->nr_late += late > BLKLOAD_LATE_NS;
}

static int blkload_replay_scan_chunk(struct blkload_replay *replay,
				     struct blkload_chunk *chunk,
				     const char *name, const char *path)
{
	const char *wrong;
	int ret;
	u32 i;

	ret = blkload_chunk_read(chunk);
	if (ret) {
		pr_err("%s: trace %s: error %d\n", name, path, ret);
		return ret;
	}
	for (i = 0; i < chunk->nr_records; i++) {
		wrong = blkload_record_check(&chunk->records[i],
					     &replay->facts);
		if (wrong) {
			pr_err("%s: trace %s: record %llu: %s\n", name, path,
			       chunk->first_record + i + 1, wrong);
			return -EINVAL;
		}
	}
	return 0;
}

/* Check every record, and collect the facts of the trace. */
static int blkload_replay_scan(struct blkload_replay *replay, const char *name,
			       const char *path)
{
	struct blkload_chunk *chunk = &replay->chunks[0];
	int ret;

	chunk->nr_records = 0;
	for (chunk->first_record = 0;
	     chunk->first_record < replay->facts.nr_records;
	     chunk->first_record += chunk->nr_records) {
		chunk->nr_records =
			min_t(u64,
			      replay->facts.nr_records - chunk->first_record,
			      BLKLOAD_CHUNK_RECORDS);
		ret = blkload_replay_scan_chunk(replay, chunk, name, path);
		if (ret)
			return ret;
		if (signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Open a trace, and check its header. */
static int blkload_replay_open_file(struct blkload_replay *replay,
				    const char *name, const char *path)
{
	struct blkload_header header;
	struct file *file;
	const char *wrong;
	u64 size;
	int ret;

	file = filp_open(path, O_RDONLY | O_LARGEFILE | O_NOATIME, 0);
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		goto fail;
	}
	replay->file = file;
	if (!S_ISREG(file_inode(file)->i_mode)) {
		pr_err("%s: trace %s: is not a file\n", name, path);
		return -EINVAL;
	}
	size = i_size_read(file_inode(file));
	if (size < sizeof(header)) {
		pr_err("%s: trace %s: is not a compact trace\n", name, path);
		return -EINVAL;
	}
	ret = blkload_replay_read_file(file, &header, sizeof(header), 0);
	if (ret)
		goto fail;
	wrong = blkload_header_check(&header, size, &replay->facts);
	if (wrong) {
		pr_err("%s: trace %s: %s\n", name, path, wrong);
		return -EINVAL;
	}
	return 0;

fail:
	pr_err("%s: trace %s: error %d\n", name, path, ret);
	return ret;
}

/**
 * blkload_replay_open - open a trace, check all of it and read its beginning
 * @replay: the replay, zeroed; blkload_replay_close() cleans up in any case
 * @name: the tenant's name
 * @opts: the tenant's options
 *
 * Errors are explained in the kernel's log. The caller sets @replay->fit, for
 * it knows the region.
 *
 * Context: May sleep.
 * Return: 0 or a negative errno: -EINVAL for an invalid trace.
 */
int blkload_replay_open(struct blkload_replay *replay, const char *name,
			const struct blkload_opts *opts)
{
	unsigned int i;
	int ret;

	replay->loop = opts->trace_loop;
	replay->timed = opts->timed;
	replay->speed = opts->speed;
	for (i = 0; i < ARRAY_SIZE(replay->chunks); i++) {
		struct blkload_chunk *chunk = &replay->chunks[i];

		chunk->replay = replay;
		INIT_WORK(&chunk->work, blkload_chunk_work);
		init_completion(&chunk->full);
		chunk->records = kvmalloc_array(BLKLOAD_CHUNK_RECORDS,
						sizeof(*chunk->records),
						GFP_KERNEL);
		if (!chunk->records)
			return -ENOMEM;
	}
	ret = blkload_replay_open_file(replay, name, opts->trace);
	if (ret)
		return ret;
	replay->period_ns = blkload_trace_period_ns(replay->facts.nr_records,
						    replay->facts.span_ns);
	if (replay->timed && replay->loop && !replay->period_ns) {
		pr_err("%s: trace %s: all records have one time, it cannot be repeated\n",
		       name, opts->trace);
		return -EINVAL;
	}
	ret = blkload_replay_scan(replay, name, opts->trace);
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(replay->chunks); i++)
		blkload_chunk_queue(replay, &replay->chunks[i]);
	return blkload_replay_take_chunk(replay);
}

/**
 * blkload_replay_close - close the file and free the chunks
 * @replay: the replay, zeroed or opened; may be called again
 *
 * Context: May sleep.
 */
void blkload_replay_close(struct blkload_replay *replay)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(replay->chunks); i++) {
		struct blkload_chunk *chunk = &replay->chunks[i];

		if (!chunk->records)
			continue;
		cancel_work_sync(&chunk->work);
		kvfree(chunk->records);
		chunk->records = NULL;
	}
	replay->record = NULL;
	if (replay->file)
		fput(replay->file);
	replay->file = NULL;
}

/**
 * blkload_replay_bytes_max - return the largest read or write of a replay
 * @replay: the replay
 * @block: bytes of a logical block
 *
 * Return: bytes.
 */
u32 blkload_replay_bytes_max(const struct blkload_replay *replay, u32 block)
{
	/* Rounding to whole blocks may extend it at both ends. */
	u64 bytes = roundup((u64)replay->facts.bytes_max, block) + block;

	return min_t(u64, bytes, BLKLOAD_BS_MAX);
}
