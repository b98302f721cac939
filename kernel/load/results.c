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
enum blkload_line {
	BLKLOAD_LINE_TENANT,	/* a tenant, and its times */
	BLKLOAD_LINE_CPU,	/* busy time of its virtual processors */
	BLKLOAD_LINE_TRACE,	/* counts of its replay */
	BLKLOAD_LINE_LATE,	/* lateness of its requests */
	BLKLOAD_LINE_OP,	/* the counts of an operation */
	BLKLOAD_LINE_LAT,	/* a bucket of its latencies */
	BLKLOAD_LINE_WIN,	/* a window of its time series */
};

/* Position of a reader. The seq_file's lock protects it. */
struct blkload_cursor {
	struct blkload_run *run; /* run, NULL at the end */
	enum blkload_line kind;	/* kind of the line */
	enum blkload_op op;	/* operation of the line */
	unsigned long index;	/* bucket of BLKLOAD_LINE_LAT, window of BLKLOAD_LINE_WIN */
	loff_t pos;		/* number of the line in the file */
};

static const char * const blkload_results_op_names[BLKLOAD_NR_OPS] = {
	[BLKLOAD_READ]	= "read",
	[BLKLOAD_WRITE]	= "write",
	[BLKLOAD_TRIM]	= "trim",
	[BLKLOAD_FLUSH]	= "flush",
};

/* Return the sum of one operation's counts over a run's jobs. */
static struct blkload_counts
blkload_results_sum_counts(const struct blkload_cursor *c)
{
	struct blkload_counts sum = { .lat_min_ns = U64_MAX };
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
		sum.lat_sum_ns += s->lat_sum_ns;
		sum.lat_min_ns = min(sum.lat_min_ns, s->lat_min_ns);
		sum.lat_max_ns = max(sum.lat_max_ns, s->lat_max_ns);
	}
	if (!sum.meas_ios)
		sum.lat_min_ns = 0;
	return sum;
}

static u64 blkload_results_sum_bucket(const struct blkload_cursor *c)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < c->run->nr_jobs; i++)
		sum += c->run->jobs[i]->stats[c->op].hist[c->index];
	return sum;
}

static struct blkload_window
blkload_results_sum_window(const struct blkload_cursor *c)
{
	struct blkload_window sum = {};
	u32 i;

	for (i = 0; i < c->run->nr_jobs; i++) {
		struct blkload_window *chunk;

		chunk = xa_load(&c->run->jobs[i]->stats[c->op].chunks,
				c->index / BLKLOAD_WINDOWS_PER_CHUNK);
		if (!chunk)
			continue;
		sum.ios += chunk[c->index % BLKLOAD_WINDOWS_PER_CHUNK].ios;
		sum.bytes += chunk[c->index % BLKLOAD_WINDOWS_PER_CHUNK].bytes;
	}
	return sum;
}

/* Return the number of windows up to the run's end. */
static unsigned long
blkload_results_count_windows(const struct blkload_run *run)
{
	return div64_u64(run->progress.end_ns, run->measure.window_ns) + 1;
}

/* Go to the first operation from @op on that occurred. */
static bool blkload_results_find_op(struct blkload_cursor *c,
				    enum blkload_op op)
{
	for (c->op = op; c->op < BLKLOAD_NR_OPS; c->op++)
		if (c->run->load.ops & BIT(c->op) &&
		    blkload_results_sum_counts(c).issued)
			return true;
	return false;
}

static void blkload_results_next_run(struct blkload_cursor *c,
				     const char *after)
{
	struct blkload_run *old = c->run;

	c->run = blkload_find_run_after(after);
	c->kind = BLKLOAD_LINE_TENANT;
	blkload_run_put(old);
}

/* Go to the next line that is not empty. */
static void blkload_results_advance(struct blkload_cursor *c)
{
	switch (c->kind) {
	case BLKLOAD_LINE_TENANT:
		c->kind = BLKLOAD_LINE_CPU;
		if (c->run->cpu_busy_ns)
			return;
		fallthrough;
	case BLKLOAD_LINE_CPU:
		c->kind = BLKLOAD_LINE_TRACE;
		if (c->run->opts.trace[0])
			return;
		fallthrough;
	case BLKLOAD_LINE_TRACE:
		c->kind = BLKLOAD_LINE_LATE;
		if (c->run->opts.trace[0] && c->run->opts.timed)
			return;
		fallthrough;
	case BLKLOAD_LINE_LATE:
		if (!blkload_results_find_op(c, 0))
			break;
		c->kind = BLKLOAD_LINE_OP;
		return;
	case BLKLOAD_LINE_OP:
		c->kind = BLKLOAD_LINE_LAT;
		c->index = -1UL;
		fallthrough;
	case BLKLOAD_LINE_LAT:
		while (++c->index < BLKLOAD_HIST_BUCKETS)
			if (blkload_results_sum_bucket(c))
				return;
		c->kind = BLKLOAD_LINE_WIN;
		c->index = -1UL;
		fallthrough;
	case BLKLOAD_LINE_WIN:
		while (++c->index < blkload_results_count_windows(c->run))
			if (blkload_results_sum_window(c).ios)
				return;
		if (!blkload_results_find_op(c, c->op + 1))
			break;
		c->kind = BLKLOAD_LINE_OP;
		return;
	}
	blkload_results_next_run(c, c->run->name);
}

static void *blkload_results_start(struct seq_file *m, loff_t *pos)
{
	struct blkload_cursor *c = m->private;

	/* A reader continues at its cursor, except after a seek. */
	if (!*pos || *pos != c->pos) {
		blkload_results_next_run(c, "");
		for (c->pos = 0; c->run && c->pos < *pos; c->pos++)
			blkload_results_advance(c);
		c->pos = *pos;
	}
	return c->run ? c : NULL;
}

static void *blkload_results_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct blkload_cursor *c = v;

	blkload_results_advance(c);
	c->pos = ++*pos;
	return c->run ? c : NULL;
}

static void blkload_results_stop(struct seq_file *m, void *v)
{
}

static void blkload_results_show_tenant(struct seq_file *m,
					const struct blkload_run *run)
{
	seq_printf(m,
		   "tenant %s jobs %u start_ns %llu measure_from_ns %llu measure_to_ns %llu end_ns %llu error %d\n",
		   run->name, run->nr_jobs, run->measure.barrier_ns,
		   run->measure.from_ns, run->measure.to_ns, run->progress.end_ns,
		   run->progress.error);
}

static void blkload_results_show_cpu(struct seq_file *m,
				     const struct blkload_run *run)
{
	seq_printf(m, "cpu %s cpus %u busy_ns %llu\n", run->name,
		   blkload_run_get_cpus(run), run->cpu_busy_ns);
}

static void blkload_results_show_trace(struct seq_file *m,
				       const struct blkload_run *run)
{
	const struct blkload_replay_counts *counts = &run->load.replay.counts;

	seq_printf(m,
		   "trace %s records %llu passes %llu rounded %llu clipped %llu moved %llu\n",
		   run->name, counts->nr_records, counts->nr_passes,
		   counts->nr_rounded, counts->nr_clipped, counts->nr_moved);
}

static void blkload_results_show_late(struct seq_file *m,
				      const struct blkload_run *run)
{
	const struct blkload_late *late = &run->load.replay.counts.late;

	seq_printf(m,
		   "late %s ios %llu sum_ns %llu max_ns %llu above_1ms %llu\n",
		   run->name, late->nr_ios, late->sum_ns, late->max_ns,
		   late->nr_late);
}

static void blkload_results_show_op(struct seq_file *m,
				    const struct blkload_cursor *c)
{
	struct blkload_counts sum = blkload_results_sum_counts(c);

	seq_printf(m,
		   "op %s %s issued %llu ios %llu bytes %llu errors %llu verify_errors %llu meas_ios %llu meas_bytes %llu lat_sum_ns %llu lat_min_ns %llu lat_max_ns %llu\n",
		   c->run->name, blkload_results_op_names[c->op], sum.issued,
		   sum.ios, sum.bytes, sum.errors, sum.verify_errors, sum.meas_ios,
		   sum.meas_bytes, sum.lat_sum_ns, sum.lat_min_ns, sum.lat_max_ns);
}

static int blkload_results_show(struct seq_file *m, void *v)
{
	const struct blkload_cursor *c = v;
	struct blkload_window window;

	switch (c->kind) {
	case BLKLOAD_LINE_TENANT:
		blkload_results_show_tenant(m, c->run);
		break;
	case BLKLOAD_LINE_CPU:
		blkload_results_show_cpu(m, c->run);
		break;
	case BLKLOAD_LINE_TRACE:
		blkload_results_show_trace(m, c->run);
		break;
	case BLKLOAD_LINE_LATE:
		blkload_results_show_late(m, c->run);
		break;
	case BLKLOAD_LINE_OP:
		blkload_results_show_op(m, c);
		break;
	case BLKLOAD_LINE_LAT:
		seq_printf(m, "lat %s %s %llu %llu\n", c->run->name,
			   blkload_results_op_names[c->op],
			   blkload_hist_bucket_end(c->index),
			   blkload_results_sum_bucket(c));
		break;
	case BLKLOAD_LINE_WIN:
		window = blkload_results_sum_window(c);
		seq_printf(m, "win %s %s %llu %llu %llu\n", c->run->name,
			   blkload_results_op_names[c->op],
			   div_u64(c->index * c->run->measure.window_ns,
				   NSEC_PER_MSEC),
			   window.ios, window.bytes);
		break;
	}
	return 0;
}

static const struct seq_operations blkload_results_seq_ops = {
	.start	= blkload_results_start,
	.next	= blkload_results_next,
	.stop	= blkload_results_stop,
	.show	= blkload_results_show,
};

static int blkload_results_open(struct inode *inode, struct file *file)
{
	return seq_open_private(file, &blkload_results_seq_ops,
				sizeof(struct blkload_cursor));
}

static int blkload_results_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct blkload_cursor *c = m->private;

	blkload_run_put(c->run);
	return seq_release_private(inode, file);
}

static const struct file_operations blkload_results_fops = {
	.owner		= THIS_MODULE,
	.open		= blkload_results_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= blkload_results_release,
};

static struct dentry *blkload_results_dir;

/**
 * blkload_results_init - create the files; without debugfs there are none
 */
void blkload_results_init(void)
{
	blkload_results_dir = debugfs_create_dir("blkload", NULL);
	debugfs_create_file("results", 0444, blkload_results_dir, NULL,
			    &blkload_results_fops);
	blkload_completed_init(blkload_results_dir);
}

/**
 * blkload_results_exit - remove the files
 */
void blkload_results_exit(void)
{
	debugfs_remove(blkload_results_dir);
	blkload_completed_exit();
}
