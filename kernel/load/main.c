// SPDX-License-Identifier: GPL-2.0-only
/*
 * blkload: a load generator inside the kernel
 *
 * It measures the effects of block layer, scheduler and controllers on tenants,
 * not the cost of a system call. Requests are bios from kthreads. Each bio is
 * charged to its tenant's cgroup, and each thread is associated with it as
 * well, so that code which looks at the current task sees the tenant, too.
 *
 * A tenant is a directory in configfs; its attributes are fio's options. The
 * start looks up the devices and cgroups of all tenants, allocates all memory
 * that their loads need and creates all kthreads. Only if all of that has
 * succeeded do the threads run. They prepare themselves, and begin together
 * on a barrier, a whole second, in the order of the tenants' names. So in
 * virtual time a run consists of the same requests, whatever ran before it in
 * the same guest; only a timer of the kernel's own may delay a request by a
 * tick.
 *
 *	main.c		the root directory, the list of tenants
 *	tenant.c	a tenant's attributes
 *	opts.h		the options that these hold
 *	parse.c		text forms of options
 *	prepare.c	preparation of a run: device, cgroup and memory
 *	run.c		the life of a run, and the barrier
 *	job.c		one kthread of a run, the I/O path
 *	request.c	time and contents of a job's next request
 *	dist.c		random offsets and arrivals, in integers
 *	record.c	records of a trace, and their places on the device
 *	relay.c		a thread that submits for many tenants
 *	replay.c	a trace's file, read ahead
 *	verify.c	data buffers, and verification of reads
 *	stats.c		histogram and time series
 *	results.c	the results as text, in debugfs
 *	completed.c	requests completed by disks, by cgroup, in debugfs
 *
 * A run outlives its threads: the last thread to end releases the device, the
 * cgroup and the memory for I/O. The counts stay until the tenant is started
 * again or removed, and as long as a reader of the results needs them.
 *
 * Locks. blkload_lock protects the list of tenants, their options and their
 * runs; it is taken inside configfs' own locks, and never by job threads. A
 * job's thread shares a lockless list and a flag with the end of I/O (job.c),
 * the stop flag with other threads, and after its end all of its data (struct
 * blkload_run).
 */
#define pr_fmt(fmt) "blkload: " fmt

#include <linux/configfs.h>
#include <linux/container_of.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "opts.h"
#include "parse.h"
#include "replay.h"
#include "results.h"
#include "run.h"
#include "tenant.h"

/* Protects the fields of struct blkload_tenant, and the list of tenants. */
DEFINE_MUTEX(blkload_lock);

/* All tenants, sorted by name. */
static LIST_HEAD(blkload_tenants);

static const char *blkload_tenant_name(struct blkload_tenant *tenant)
{
	return config_item_name(&tenant->item);
}

/**
 * blkload_find_run_after - find the next results in the order of tenants' names
 * @name: name after which to search, "" to begin
 *
 * Return: the run of the first tenant behind @name whose last run is done,
 * with a reference, or NULL.
 */
struct blkload_run *blkload_find_run_after(const char *name)
{
	struct blkload_run *run = NULL;
	struct blkload_tenant *tenant;

	mutex_lock(&blkload_lock);
	list_for_each_entry(tenant, &blkload_tenants, link) {
		if (strcmp(blkload_tenant_name(tenant), name) <= 0 ||
		    !tenant->run || !blkload_run_is_done(tenant->run))
			continue;
		run = tenant->run;
		blkload_run_get(run);
		break;
	}
	mutex_unlock(&blkload_lock);
	return run;
}

/* Create the runs of all tenants, in @runs, or none. */
static int blkload_create_runs(struct list_head *runs)
{
	struct blkload_tenant *tenant;
	struct blkload_run *run, *next;
	int ret;

	list_for_each_entry(tenant, &blkload_tenants, link) {
		run = blkload_run_create(blkload_tenant_name(tenant),
					 &tenant->opts);
		if (IS_ERR(run)) {
			ret = PTR_ERR(run);
			goto undo;
		}
		list_add_tail(&run->link, runs);
	}
	return 0;

undo:
	list_for_each_entry_safe_reverse(run, next, runs, link) {
		list_del(&run->link);
		blkload_run_put(run);
	}
	return ret;
}

static int blkload_start_tenants(void)
{
	struct blkload_tenant *tenant;
	struct blkload_run *run;
	LIST_HEAD(runs);
	int ret;

	if (!blkload_is_idle())
		return -EBUSY;
	if (list_empty(&blkload_tenants))
		return -ENOENT;
	ret = blkload_create_runs(&runs);
	if (ret)
		return ret;
	/* There is one run per tenant, in the same order. */
	run = list_first_entry(&runs, struct blkload_run, link);
	list_for_each_entry(tenant, &blkload_tenants, link) {
		blkload_run_put(tenant->run);
		tenant->run = run;
		run = list_next_entry(run, link);
	}
	blkload_runs_start(&runs);
	return 0;
}

/* Accept "1" and nothing else. */
static int blkload_parse_one(const char *page)
{
	return sysfs_streq(page, "1") ? 0 : -EINVAL;
}

static ssize_t blkload_root_start_store(struct config_item *item,
					const char *page, size_t count)
{
	int ret;

	ret = blkload_parse_one(page);
	if (ret)
		return ret;
	mutex_lock(&blkload_lock);
	ret = blkload_start_tenants();
	mutex_unlock(&blkload_lock);
	return ret ?: count;
}
CONFIGFS_ATTR_WO(blkload_root_, start);

static ssize_t blkload_root_stop_store(struct config_item *item,
				       const char *page, size_t count)
{
	struct blkload_tenant *tenant;
	int ret;

	ret = blkload_parse_one(page);
	if (ret)
		return ret;
	mutex_lock(&blkload_lock);
	list_for_each_entry(tenant, &blkload_tenants, link)
		if (tenant->run && !blkload_run_is_done(tenant->run))
			blkload_run_stop(tenant->run);
	mutex_unlock(&blkload_lock);
	return count;
}
CONFIGFS_ATTR_WO(blkload_root_, stop);

static ssize_t blkload_root_wait_show(struct config_item *item, char *page)
{
	int ret;

	ret = blkload_wait_idle();
	return ret ?: sysfs_emit(page, "done\n");
}
CONFIGFS_ATTR_RO(blkload_root_, wait);

static ssize_t blkload_root_state_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", blkload_is_idle() ? "idle" : "running");
}
CONFIGFS_ATTR_RO(blkload_root_, state);

static ssize_t blkload_root_align_show(struct config_item *item, char *page)
{
	u64 second = roundup_u64(ktime_get_ns() + 1, NSEC_PER_SEC);
	ktime_t expires = ns_to_ktime(second);

	do {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!schedule_hrtimeout_range(&expires, 0, HRTIMER_MODE_ABS))
			return sysfs_emit(page, "%llu\n", second);
	} while (!signal_pending(current));
	return -ERESTARTSYS;
}
CONFIGFS_ATTR_RO(blkload_root_, align);

static struct configfs_attribute *blkload_root_attrs[] = {
	&blkload_root_attr_start,
	&blkload_root_attr_stop,
	&blkload_root_attr_wait,
	&blkload_root_attr_state,
	&blkload_root_attr_align,
	NULL,
};

/* Return whether a name is valid: it is a field of the results. */
static bool blkload_is_name_valid(const char *name)
{
	for (; *name; name++)
		if (!isgraph(*name))
			return false;
	return true;
}

static struct config_item *blkload_root_make_item(struct config_group *group,
						  const char *name)
{
	struct blkload_tenant *tenant, *pos;

	if (!blkload_is_name_valid(name))
		return ERR_PTR(-EINVAL);
	tenant = kzalloc(sizeof(*tenant), GFP_KERNEL);
	if (!tenant)
		return ERR_PTR(-ENOMEM);
	config_item_init_type_name(&tenant->item, name, &blkload_tenant_type);
	if (!config_item_name(&tenant->item)) {
		kfree(tenant);
		return ERR_PTR(-ENOMEM);
	}
	blkload_opts_init(&tenant->opts);

	mutex_lock(&blkload_lock);
	list_for_each_entry(pos, &blkload_tenants, link)
		if (strcmp(blkload_tenant_name(pos), name) > 0)
			break;
	list_add_tail(&tenant->link, &pos->link);
	mutex_unlock(&blkload_lock);
	return &tenant->item;
}

static void blkload_root_drop_item(struct config_group *group,
				   struct config_item *item)
{
	struct blkload_tenant *tenant =
		container_of(item, struct blkload_tenant, item);
	struct blkload_run *run;

	mutex_lock(&blkload_lock);
	/* From here on the tenant cannot be started. */
	list_del(&tenant->link);
	run = tenant->run;
	tenant->run = NULL;
	if (run)
		blkload_run_stop(run);
	mutex_unlock(&blkload_lock);
	if (run)
		blkload_run_wait(run);
	blkload_run_put(run);
	config_item_put(item);
}

static struct configfs_group_operations blkload_root_group_ops = {
	.make_item	= blkload_root_make_item,
	.drop_item	= blkload_root_drop_item,
};

static const struct config_item_type blkload_root_type = {
	.ct_owner	= THIS_MODULE,
	.ct_group_ops	= &blkload_root_group_ops,
	.ct_attrs	= blkload_root_attrs,
};

static struct configfs_subsystem blkload_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf	= "blkload",
			.ci_type	= &blkload_root_type,
		},
	},
};

static int __init blkload_init(void)
{
	int ret;

	ret = blkload_replay_init();
	if (ret)
		return ret;
	config_group_init(&blkload_subsys.su_group);
	mutex_init(&blkload_subsys.su_mutex);
	ret = configfs_register_subsystem(&blkload_subsys);
	if (ret) {
		blkload_replay_exit();
		return ret;
	}
	blkload_results_init();
	return 0;
}

static void __exit blkload_exit(void)
{
	blkload_results_exit();
	configfs_unregister_subsystem(&blkload_subsys);
	blkload_replay_exit();
}

module_init(blkload_init);
module_exit(blkload_exit);

MODULE_DESCRIPTION("Load generator for block devices, by cgroup");
MODULE_LICENSE("GPL");
