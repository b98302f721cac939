// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/blkload/results: the last run of every tenant, one record
 * per line. The counts of a run's jobs are summed when they are printed.
 *
 * A reader has a cursor on a line. The cursor holds a reference to its run, so
 * that the tenant may be started again or removed while it is read; the reader
 * then continues with the next name.
 */
#include <linux/bits.h>
#include <linux/debugfs.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/time64.h>
#include <linux/xarray.h>

#include "completed.h"
#include "job.h"
#include "opts.h"
#include "replay.h"
#include "results.h"
#include "run.h"
#include "stats.h"
#include "tenant.h"

/* Kinds of lines, in their order. */
enum line {
	LINE_TENANT,	/* a tenant, and its times */
	LINE_CPU,	/* busy time of its virtual processors */
	LINE_TRACE,	/* counts of its replay */
	LINE_LATE,	/* lateness of its requests */
	LINE_OP,	/* the counts of an operation */
	LINE_LAT,	/* a bucket of its latencies */
	LINE_WIN,	/* a window of its time series */
};

/* Position of a reader. The seq_file's lock protects it. */
struct cursor {
	struct blkload_run *run; /* run, NULL at the end */
	enum line line;		/* kind of the line */
	enum blkload_op op;	/* operation of the line */
	unsigned long index;	/* bucket of LINE_LAT, window of LINE_WIN */
	loff_t pos;		/* number of the line in the file */
};

static const char * const op_names[BLKLOAD_NR_OPS] = {
	[BLKLOAD_READ]	= "read",
	[BLKLOAD_WRITE]	= "write",
	[BLKLOAD_TRIM]	= "trim",
	[BLKLOAD_FLUSH]	= "flush",
};

/* Return the sum of one operation's counts over a run's jobs. */
static struct blkload_counts sum_counts(const struct cursor *c)
{
	struct blkload_counts sum = { .lat_min = U64_MAX };
	u32 i;

	for (i = 0; i < c->run->nr_jobs; i++) {
		const struct blkload_counts *s =
			&c->run->jobs[i]->stats[c->op].counts;

		sum.issued += s->issued;
		sum.ios += s->ios;
		sum.bytes += s->bytes;
		sum.errors += s->errors;
		sum.verify_errors += s->verify_errors;
		sum.meas_ios += s->meas_ios;
		sum.meas_bytes += s->meas_bytes;
		sum.lat_sum += s->lat_sum;
		sum.lat_min = min(sum.lat_min, s->lat_min);
		sum.lat_max = max(sum.lat_max, s->lat_max);
	}
	if (!sum.meas_ios)
		sum.lat_min = 0;
	return sum;
}

static u64 sum_bucket(const struct cursor *c)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < c->run->nr_jobs; i++)
		sum += c->run->jobs[i]->stats[c->op].hist[c->index];
	return sum;
}

static struct blkload_window sum_window(const struct cursor *c)
{
	struct blkload_window sum = {};
	u32 i;

	for (i = 0; i < c->run->nr_jobs; i++) {
		struct blkload_window *chunk;

		chunk = xa_load(&c->run->jobs[i]->stats[c->op].chunks,
				c->index / BLKLOAD_CHUNK_WINDOWS);
		if (!chunk)
			continue;
		sum.ios += chunk[c->index % BLKLOAD_CHUNK_WINDOWS].ios;
		sum.bytes += chunk[c->index % BLKLOAD_CHUNK_WINDOWS].bytes;
	}
	return sum;
}

/* Return the number of windows up to the run's end. */
static unsigned long nr_windows(const struct blkload_run *run)
{
	return div64_u64(run->progress.end, run->measure.window) + 1;
}

/* Go to the first operation from @op on that occurred. */
static bool find_op(struct cursor *c, enum blkload_op op)
{
	for (c->op = op; c->op < BLKLOAD_NR_OPS; c->op++)
		if (c->run->load.ops & BIT(c->op) && sum_counts(c).issued)
			return true;
	return false;
}

static void next_run(struct cursor *c, const char *after)
{
	struct blkload_run *old = c->run;

	c->run = blkload_run_after(after);
	c->line = LINE_TENANT;
	blkload_run_put(old);
}

/* Go to the next line that is not empty. */
static void advance(struct cursor *c)
{
	switch (c->line) {
	case LINE_TENANT:
		c->line = LINE_CPU;
		if (c->run->cpu_busy)
			return;
		fallthrough;
	case LINE_CPU:
		c->line = LINE_TRACE;
		if (c->run->opts.trace[0])
			return;
		fallthrough;
	case LINE_TRACE:
		c->line = LINE_LATE;
		if (c->run->opts.trace[0] && c->run->opts.timed)
			return;
		fallthrough;
	case LINE_LATE:
		if (!find_op(c, 0))
			break;
		c->line = LINE_OP;
		return;
	case LINE_OP:
		c->line = LINE_LAT;
		c->index = -1UL;
		fallthrough;
	case LINE_LAT:
		while (++c->index < BLKLOAD_HIST_BUCKETS)
			if (sum_bucket(c))
				return;
		c->line = LINE_WIN;
		c->index = -1UL;
		fallthrough;
	case LINE_WIN:
		while (++c->index < nr_windows(c->run))
			if (sum_window(c).ios)
				return;
		if (!find_op(c, c->op + 1))
			break;
		c->line = LINE_OP;
		return;
	}
	next_run(c, c->run->name);
}

static void *results_start(struct seq_file *m, loff_t *pos)
{
	struct cursor *c = m->private;

	/* A reader continues at its cursor, except after a seek. */
	if (!*pos || *pos != c->pos) {
		next_run(c, "");
		for (c->pos = 0; c->run && c->pos < *pos; c->pos++)
			advance(c);
		c->pos = *pos;
	}
	return c->run ? c : NULL;
}

static void *results_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct cursor *c = v;

	advance(c);
	c->pos = ++*pos;
	return c->run ? c : NULL;
}

static void results_stop(struct seq_file *m, void *v)
{
}

static void show_tenant(struct seq_file *m, const struct blkload_run *run)
{
	seq_printf(m, "tenant %s jobs %u start_ns %llu measure_from_ns %llu measure_to_ns %llu end_ns %llu error %d\n",
		   run->name, run->nr_jobs, run->measure.barrier,
		   run->measure.from, run->measure.to, run->progress.end,
		   run->progress.error);
}

static void show_cpu(struct seq_file *m, const struct blkload_run *run)
{
	seq_printf(m, "cpu %s cpus %u busy_ns %llu\n", run->name,
		   blkload_run_cpus(run), run->cpu_busy);
}

static void show_trace(struct seq_file *m, const struct blkload_run *run)
{
	const struct blkload_replay_counts *counts = &run->load.replay.counts;

	seq_printf(m, "trace %s records %llu passes %llu rounded %llu clipped %llu moved %llu\n",
		   run->name, counts->records, counts->passes, counts->rounded,
		   counts->clipped, counts->moved);
}

static void show_late(struct seq_file *m, const struct blkload_run *run)
{
	const struct blkload_late *late = &run->load.replay.counts.late;

	seq_printf(m, "late %s ios %llu sum_ns %llu max_ns %llu above_1ms %llu\n",
		   run->name, late->ios, late->sum, late->max, late->above);
}

static void show_op(struct seq_file *m, const struct cursor *c)
{
	struct blkload_counts sum = sum_counts(c);

	seq_printf(m, "op %s %s issued %llu ios %llu bytes %llu errors %llu verify_errors %llu meas_ios %llu meas_bytes %llu lat_sum_ns %llu lat_min_ns %llu lat_max_ns %llu\n",
		   c->run->name, op_names[c->op], sum.issued, sum.ios,
		   sum.bytes, sum.errors, sum.verify_errors, sum.meas_ios,
		   sum.meas_bytes, sum.lat_sum, sum.lat_min, sum.lat_max);
}

static int results_show(struct seq_file *m, void *v)
{
	const struct cursor *c = v;
	struct blkload_window window;

	switch (c->line) {
	case LINE_TENANT:
		show_tenant(m, c->run);
		break;
	case LINE_CPU:
		show_cpu(m, c->run);
		break;
	case LINE_TRACE:
		show_trace(m, c->run);
		break;
	case LINE_LATE:
		show_late(m, c->run);
		break;
	case LINE_OP:
		show_op(m, c);
		break;
	case LINE_LAT:
		seq_printf(m, "lat %s %s %llu %llu\n", c->run->name,
			   op_names[c->op], blkload_hist_upper(c->index),
			   sum_bucket(c));
		break;
	case LINE_WIN:
		window = sum_window(c);
		seq_printf(m, "win %s %s %llu %llu %llu\n", c->run->name,
			   op_names[c->op],
			   div_u64(c->index * c->run->measure.window,
				   NSEC_PER_MSEC),
			   window.ios, window.bytes);
		break;
	}
	return 0;
}

static const struct seq_operations results_seq_ops = {
	.start	= results_start,
	.next	= results_next,
	.stop	= results_stop,
	.show	= results_show,
};

static int results_open(struct inode *inode, struct file *file)
{
	return seq_open_private(file, &results_seq_ops, sizeof(struct cursor));
}

static int results_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct cursor *c = m->private;

	blkload_run_put(c->run);
	return seq_release_private(inode, file);
}

static const struct file_operations results_fops = {
	.owner		= THIS_MODULE,
	.open		= results_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= results_release,
};

static struct dentry *results_dir;

/**
 * blkload_results_init - create the files; without debugfs there are none
 */
void blkload_results_init(void)
{
	results_dir = debugfs_create_dir("blkload", NULL);
	debugfs_create_file("results", 0444, results_dir, NULL, &results_fops);
	blkload_completed_init(results_dir);
}

/**
 * blkload_results_exit - remove the files
 */
void blkload_results_exit(void)
{
	debugfs_remove(results_dir);
	blkload_completed_exit();
}
