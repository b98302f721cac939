// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preparation of a run before its threads start: its device, cgroup and memory;
 * and checks of its options against these.
 */
#define pr_fmt(fmt) "blkload: " fmt

#include <linux/bio.h>
#include <linux/bits.h>
#include <linux/blk-cgroup.h>
#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/math64.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "dist.h"
#include "job.h"
#include "opts.h"
#include "parse.h"
#include "relay.h"
#include "replay.h"
#include "run.h"
#include "verify.h"

/*
 * A verified region has this many times the size of all requests that may be in
 * flight: then there is always a place for a write that overlaps no other
 * write.
 */
#define BLKLOAD_VERIFY_ROOM	2

/* Tries of a bio. One is enough unless memory is short; each failure waits 1 ms. */
#define BLKLOAD_BLKG_TRIES_MAX	1000

/*
 * Find the css at a path of a version 1 hierarchy. cgroup_get_from_path()
 * supports only the version 2 hierarchy.
 */
static struct cgroup_subsys_state *blkload_find_css_v1(const char *path)
{
	struct cgroup_subsys_state *pos, *css = ERR_PTR(-ENOENT);
	char *name;

	name = kmalloc(BLKLOAD_PATH_BYTES, GFP_KERNEL);
	if (!name)
		return ERR_PTR(-ENOMEM);
	rcu_read_lock();
	css_for_each_descendant_pre(pos, blkcg_root_css) {
		if (cgroup_path(pos->cgroup, name, BLKLOAD_PATH_BYTES) < 0 ||
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
 * Find the css to which a process in the cgroup at a path is charged: on
 * version 2 that of the nearest group for which io is enabled.
 */
static struct cgroup_subsys_state *blkload_find_css(const char *path)
{
	struct cgroup_subsys_state *css;
	struct cgroup *cgrp;

	if (!cgroup_subsys_on_dfl(io_cgrp_subsys))
		return blkload_find_css_v1(path);
	cgrp = cgroup_get_from_path(path);
	if (IS_ERR(cgrp))
		return ERR_CAST(cgrp);
	css = cgroup_get_e_css(cgrp, &io_cgrp_subsys);
	cgroup_put(cgrp);
	return css;
}

/* Find the css to which the requests are charged. */
static int blkload_run_find_css(struct blkload_run *run)
{
	char *path = run->opts.cgroup;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	run->target.css = blkload_find_css(len ? path : "/");
	if (IS_ERR(run->target.css)) {
		int ret = PTR_ERR(run->target.css);

		run->target.css = NULL;
		pr_err("%s: cgroup %s: error %d\n", run->name, path, ret);
		return ret;
	}
	return 0;
}

/* Set the operations of the load. */
static void blkload_run_set_ops(struct blkload_run *run)
{
	struct blkload_opts *opts = &run->opts;
	struct blkload_load *load = &run->load;

	if (load->replay.file) {
		load->ops = load->replay.facts.ops;
		return;
	}
	switch (opts->rw) {
	case BLKLOAD_RW_READ:
	case BLKLOAD_RW_RANDREAD:
		load->ops = BIT(BLKLOAD_READ);
		break;
	case BLKLOAD_RW_WRITE:
	case BLKLOAD_RW_RANDWRITE:
		load->ops = BIT(BLKLOAD_WRITE);
		break;
	case BLKLOAD_RW_TRIM:
	case BLKLOAD_RW_RANDTRIM:
		load->ops = BIT(BLKLOAD_TRIM);
		/* Trims leave no data to verify. */
		opts->verify = 0;
		break;
	default:
		load->ops = BIT(BLKLOAD_READ) | BIT(BLKLOAD_WRITE);
	}
	if (opts->fsync && load->ops & BIT(BLKLOAD_WRITE))
		load->ops |= BIT(BLKLOAD_FLUSH);
	load->random = opts->rw == BLKLOAD_RW_RANDREAD ||
		      opts->rw == BLKLOAD_RW_RANDWRITE ||
		      opts->rw == BLKLOAD_RW_RANDRW ||
		      opts->rw == BLKLOAD_RW_RANDTRIM;
}

/* Set the flags with which each operation is submitted. */
static void blkload_run_set_opf(struct blkload_run *run)
{
	struct blkload_load *load = &run->load;
	/* As direct I/O of a process, which waits for it. */
	blk_opf_t write = REQ_OP_WRITE | REQ_SYNC;
	blk_opf_t meta = run->opts.meta ? REQ_META | REQ_PRIO : 0;

	load->opf[BLKLOAD_READ] = REQ_OP_READ | meta;
	load->opf[BLKLOAD_WRITE] = run->opts.background ? REQ_OP_WRITE :
							 write | REQ_IDLE;
	load->opf[BLKLOAD_WRITE] |= meta | (run->opts.fua ? REQ_FUA : 0);
	load->opf[BLKLOAD_TRIM] = REQ_OP_DISCARD;
	load->opf[BLKLOAD_FLUSH] = write | REQ_PREFLUSH;
}

/* Check the options that do not depend on the device. */
static int blkload_run_check_opts(const struct blkload_run *run)
{
	const struct blkload_opts *opts = &run->opts;
	u32 i;

	if (!opts->device[0]) {
		pr_err("%s: device is not set\n", run->name);
		return -EINVAL;
	}
	if (opts->trace[0] && (opts->numjobs > 1 || opts->verify ||
			       opts->rate_iops || opts->thinktime ||
			       opts->off || opts->fsync)) {
		pr_err("%s: a trace needs numjobs 1, and no verify, rate_iops, thinktime, off or fsync\n",
		       run->name);
		return -EINVAL;
	}
	if (!opts->on != !opts->off) {
		pr_err("%s: of on and off only one is set\n", run->name);
		return -EINVAL;
	}
	if (!opts->runtime && !opts->number_ios &&
	    (!opts->trace[0] || opts->trace_loop)) {
		pr_err("%s: neither runtime nor number_ios is set\n",
		       run->name);
		return -EINVAL;
	}
	for (i = 0; opts->verify && i < opts->nr_splits; i++) {
		if (opts->split[i].bytes % run->load.bs_min) {
			pr_err("%s: verify needs sizes that are multiples of the smallest\n",
			       run->name);
			return -EINVAL;
		}
	}
	return 0;
}

/* Return whether all sizes are multiples of the logical block. */
static bool blkload_bs_fits_block(const struct blkload_opts *opts, u32 block)
{
	u32 i;

	/* A trace's requests are rounded to logical blocks. */
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
static int blkload_run_check_device(struct blkload_run *run)
{
	const struct blkload_opts *opts = &run->opts;
	struct blkload_target *target = &run->target;
	struct blkload_load *load = &run->load;
	u32 block = bdev_logical_block_size(target->bdev);
	u64 capacity = bdev_nr_bytes(target->bdev), room;

	if (load->ops & ~BIT(BLKLOAD_READ) && bdev_read_only(target->bdev)) {
		pr_err("%s: %s is read-only\n", run->name, opts->device);
		return -EROFS;
	}
	if (load->ops & BIT(BLKLOAD_TRIM) &&
	    !bdev_max_discard_sectors(target->bdev)) {
		pr_err("%s: %s cannot trim\n", run->name, opts->device);
		return -EOPNOTSUPP;
	}
	if (!blkload_bs_fits_block(opts, block) || opts->offset & (block - 1)) {
		pr_err("%s: bs and offset must be multiples of %u, the block size of %s\n",
		       run->name, block, opts->device);
		return -EINVAL;
	}
	if (opts->offset > capacity || opts->size > capacity - opts->offset) {
		pr_err("%s: offset and size go beyond the end of %s\n",
		       run->name, opts->device);
		return -ERANGE;
	}
	target->base_pos = opts->offset;
	target->bytes = opts->size ?: capacity - opts->offset;
	room = load->replay.file ? block : blkload_get_bs_max(opts);
	if (opts->verify)
		room *= BLKLOAD_VERIFY_ROOM * opts->iodepth * opts->numjobs;
	if (target->bytes < room) {
		pr_err("%s: the region has %llu bytes, the load needs %llu\n",
		       run->name, target->bytes, room);
		return -ERANGE;
	}
	if (load->replay.file)
		blkload_fit_init(&load->replay.fit, block, target->bytes,
				 load->replay.facts.end_pos, opts->scale);
	return 0;
}

/*
 * Have the block layer create the cgroup's blkg on this device before
 * the load begins. By itself it does so at the first bio, with
 * GFP_NOWAIT, and while there is no memory it charges an ancestor: of a
 * thousand cgroups that begin at one instant, half would be charged too
 * little.
 */
static int blkload_run_make_blkg(struct blkload_run *run)
{
	unsigned int i;

	for (i = 0; i < BLKLOAD_BLKG_TRIES_MAX; i++) {
		struct bio bio;
		bool made;

		bio_init(&bio, run->target.bdev, NULL, 0, REQ_OP_READ);
		bio_associate_blkg_from_css(&bio, run->target.css);
		made = bio_blkcg_css(&bio) == run->target.css;
		bio_uninit(&bio);
		if (made)
			return 0;
		/* While this waits a worker replenishes the percpu memory. */
		usleep_range(USEC_PER_MSEC, 2 * USEC_PER_MSEC);
	}
	return -ENOMEM;
}

/* Open the device. */
static int blkload_run_open(struct blkload_run *run)
{
	bool write = run->load.ops & ~BIT(BLKLOAD_READ);
	struct file *file;

	file = bdev_file_open_by_path(run->opts.device, BLK_OPEN_READ |
				      (write ? BLK_OPEN_WRITE : 0), NULL, NULL);
	if (IS_ERR(file)) {
		pr_err("%s: device %s: error %ld\n", run->name,
		       run->opts.device, PTR_ERR(file));
		return PTR_ERR(file);
	}
	run->target.file = file;
	run->target.bdev = file_bdev(file);
	return 0;
}

/* Close the device synchronously: at the end of the run, not later. */
static void blkload_run_close(struct blkload_run *run)
{
	if (!run->target.file)
		return;
	if (current->flags & PF_KTHREAD)
		__fput_sync(run->target.file);
	else
		bdev_fput(run->target.file);
	run->target.file = NULL;
	run->target.bdev = NULL;
}

/* Allocate the memory that requests need. */
static int blkload_run_alloc(struct blkload_run *run)
{
	const struct blkload_opts *opts = &run->opts;
	struct blkload_target *target = &run->target;
	struct blkload_load *load = &run->load;
	u32 block = bdev_logical_block_size(target->bdev);
	u32 max_bs = load->replay.file ?
			     blkload_replay_bytes_max(&load->replay, block) :
			     blkload_get_bs_max(opts);
	enum blkload_op op;
	int ret;

	if (load->random && opts->shape != BLKLOAD_UNIFORM) {
		load->dist = blkload_dist_create(opts->shape, opts->shape_arg,
						 div_u64(target->bytes,
							 load->bs_min));
		if (!load->dist)
			return -ENOMEM;
	}
	if (!(load->ops & (BIT(BLKLOAD_READ) | BIT(BLKLOAD_WRITE))))
		return 0;
	if (opts->verify)
		return blkload_verify_init(&load->verify, target->base_pos,
					   target->bytes, load->bs_min, block,
					   opts->randseed);
	for (op = BLKLOAD_READ; op <= BLKLOAD_WRITE; op++) {
		if (!(load->ops & BIT(op)))
			continue;
		ret = blkload_buf_init(&load->data[op], max_bs, true);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * blkload_run_release_io - release the resources of the I/O path
 * @run: a run that has ended or was never started; may be called again
 */
void blkload_run_release_io(struct blkload_run *run)
{
	struct blkload_load *load = &run->load;
	enum blkload_op op;
	u32 i;

	for (i = 0; i < run->nr_jobs; i++)
		if (run->jobs[i])
			blkload_job_release_io(run->jobs[i]);
	for (op = 0; op < BLKLOAD_NR_OPS; op++)
		blkload_buf_free(&load->data[op]);
	blkload_verify_free(&load->verify);
	blkload_replay_close(&load->replay);
	kvfree(load->dist);
	load->dist = NULL;
	blkload_run_close(run);
	if (run->target.css)
		css_put(run->target.css);
	run->target.css = NULL;
	if (load->relayed)
		blkload_relay_put();
	load->relayed = false;
}

/**
 * blkload_run_prepare - look up device and cgroup, check, and create the jobs
 * @run: a run of which only the name, options and times are set
 *
 * Errors are explained in the kernel's log.
 *
 * Context: May sleep.
 * Return: 0 or a negative errno; blkload_run_put() cleans up in both cases.
 */
int blkload_run_prepare(struct blkload_run *run)
{
	const struct blkload_opts *opts = &run->opts;
	int ret;
	u32 i;

	run->load.bs_min = blkload_get_bs_min(opts);
	if (opts->trace[0]) {
		ret = blkload_replay_open(&run->load.replay, run->name, opts);
		if (ret)
			return ret;
	}
	blkload_run_set_ops(run);
	blkload_run_set_opf(run);
	ret = blkload_run_check_opts(run) ?:
	      blkload_run_open(run) ?:
	      blkload_run_check_device(run) ?:
	      blkload_run_find_css(run) ?:
	      blkload_run_make_blkg(run) ?:
	      blkload_run_alloc(run);
	if (ret)
		return ret;
	if (opts->relay) {
		ret = blkload_relay_get();
		if (ret)
			return ret;
		run->load.relayed = true;
	}
	for (i = 0; i < run->nr_jobs; i++) {
		struct blkload_job *job = blkload_job_create(run, i);

		if (IS_ERR(job))
			return PTR_ERR(job);
		run->jobs[i] = job;
	}
	return 0;
}
