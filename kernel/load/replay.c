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
#define CHUNK_RECORDS	4096U

/* Reads chunks, for all tenants. */
static struct workqueue_struct *replay_wq;

/**
 * blkload_replay_init - prepare for replays
 *
 * Return: 0 or -ENOMEM.
 */
int blkload_replay_init(void)
{
	replay_wq = alloc_workqueue("blkload_replay", WQ_UNBOUND, 0);
	return replay_wq ? 0 : -ENOMEM;
}

/**
 * blkload_replay_exit - undo blkload_replay_init()
 */
void blkload_replay_exit(void)
{
	destroy_workqueue(replay_wq);
}

/* Read all of @bytes, or fail. */
static int replay_read(struct file *file, void *to, size_t bytes, u64 from)
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

static int chunk_read(struct blkload_chunk *chunk)
{
	return replay_read(chunk->replay->file, chunk->records,
			   chunk->nr * sizeof(*chunk->records),
			   sizeof(struct blkload_header) +
			   chunk->first * sizeof(*chunk->records));
}

/* Check records once more: the file may have changed since the start. */
static int chunk_check(const struct blkload_chunk *chunk)
{
	const struct blkload_facts *known = &chunk->replay->facts;
	struct blkload_facts facts = { .span = known->span, .end = known->end };
	u32 i;

	for (i = 0; i < chunk->nr; i++)
		if (blkload_record_check(&chunk->records[i], &facts))
			return -EINVAL;
	if (facts.ops & ~known->ops || facts.max_bytes > known->max_bytes)
		return -EINVAL;
	return 0;
}

static void chunk_work(struct work_struct *work)
{
	struct blkload_chunk *chunk =
		container_of(work, struct blkload_chunk, work);

	chunk->error = chunk_read(chunk);
	if (!chunk->error)
		chunk->error = chunk_check(chunk);
	complete(&chunk->full);
}

/* Queue the reading of the next records into a chunk; at the end it is empty. */
static void chunk_queue(struct blkload_replay *replay,
			struct blkload_chunk *chunk)
{
	if (replay->next == replay->facts.records && replay->loop)
		replay->next = 0;
	chunk->first = replay->next;
	chunk->nr = min_t(u64, replay->facts.records - replay->next,
			  CHUNK_RECORDS);
	replay->next += chunk->nr;
	queue_work(replay_wq, &chunk->work);
}

/* Take the next chunk: it holds the next record, or none. */
static int replay_take(struct blkload_replay *replay)
{
	struct blkload_chunk *chunk = &replay->chunk[replay->turn];

	replay->record = NULL;
	wait_for_completion(&chunk->full);
	if (chunk->error || !chunk->nr)
		return chunk->error;
	if (!chunk->first && replay->counts.passes)
		replay->pass = min(replay->pass + replay->period,
				   BLKLOAD_NEVER_NS);
	replay->at = 0;
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
	struct blkload_chunk *chunk = &replay->chunk[replay->turn];

	replay->counts.records++;
	replay->counts.passes += !chunk->first && !replay->at;
	if (++replay->at < chunk->nr) {
		replay->record++;
		return 0;
	}
	chunk_queue(replay, chunk);
	replay->turn ^= 1;
	return replay_take(replay);
}

/**
 * blkload_replay_late - count the lateness of a request
 * @replay: the replay
 * @late: lateness, ns
 */
void blkload_replay_late(struct blkload_replay *replay, u64 late)
{
	struct blkload_late *counts = &replay->counts.late;

	counts->ios++;
	counts->sum += late;
	counts->max = max(counts->max, late);
	counts->above += late > BLKLOAD_LATE_NS;
}

static int replay_scan_chunk(struct blkload_replay *replay,
			     struct blkload_chunk *chunk, const char *name,
			     const char *path)
{
	const char *wrong;
	int ret;
	u32 i;

	ret = chunk_read(chunk);
	if (ret) {
		pr_err("%s: trace %s: error %d\n", name, path, ret);
		return ret;
	}
	for (i = 0; i < chunk->nr; i++) {
		wrong = blkload_record_check(&chunk->records[i],
					     &replay->facts);
		if (wrong) {
			pr_err("%s: trace %s: record %llu: %s\n", name, path,
			       chunk->first + i + 1, wrong);
			return -EINVAL;
		}
	}
	return 0;
}

/* Check every record, and collect the facts of the trace. */
static int replay_scan(struct blkload_replay *replay, const char *name,
		       const char *path)
{
	struct blkload_chunk *chunk = &replay->chunk[0];
	int ret;

	chunk->nr = 0;
	for (chunk->first = 0; chunk->first < replay->facts.records;
	     chunk->first += chunk->nr) {
		chunk->nr = min_t(u64, replay->facts.records - chunk->first,
				  CHUNK_RECORDS);
		ret = replay_scan_chunk(replay, chunk, name, path);
		if (ret)
			return ret;
		if (signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Open a trace, and check its header. */
static int replay_open_file(struct blkload_replay *replay, const char *name,
			    const char *path)
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
	ret = replay_read(file, &header, sizeof(header), 0);
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
	for (i = 0; i < ARRAY_SIZE(replay->chunk); i++) {
		struct blkload_chunk *chunk = &replay->chunk[i];

		chunk->replay = replay;
		INIT_WORK(&chunk->work, chunk_work);
		init_completion(&chunk->full);
		chunk->records = kvmalloc_array(CHUNK_RECORDS,
						sizeof(*chunk->records),
						GFP_KERNEL);
		if (!chunk->records)
			return -ENOMEM;
	}
	ret = replay_open_file(replay, name, opts->trace);
	if (ret)
		return ret;
	replay->period = blkload_trace_period(replay->facts.records,
					      replay->facts.span);
	if (replay->timed && replay->loop && !replay->period) {
		pr_err("%s: trace %s: all records have one time, it cannot be repeated\n",
		       name, opts->trace);
		return -EINVAL;
	}
	ret = replay_scan(replay, name, opts->trace);
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(replay->chunk); i++)
		chunk_queue(replay, &replay->chunk[i]);
	return replay_take(replay);
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

	for (i = 0; i < ARRAY_SIZE(replay->chunk); i++) {
		struct blkload_chunk *chunk = &replay->chunk[i];

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
 * blkload_replay_max_bytes - return the largest read or write of a replay
 * @replay: the replay
 * @block: bytes of a logical block
 *
 * Return: bytes.
 */
u32 blkload_replay_max_bytes(const struct blkload_replay *replay, u32 block)
{
	/* Rounding to whole blocks may extend it at both ends. */
	u64 bytes = roundup((u64)replay->facts.max_bytes, block) + block;

	return min_t(u64, bytes, BLKLOAD_MAX_BS);
}
