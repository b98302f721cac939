// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics of a disk: the file "stats" of its directory in debugfs, with a
 * name and a value on each line.
 */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "disk.h"
#include "model.h"
#include "store.h"

/* Directory of the module. Set at load, then read only. */
static struct dentry *vdisk_debugfs;

static const char * const vdisk_op_names[] = {
	[VDISK_READ] = "read",
	[VDISK_WRITE] = "write",
	[VDISK_TRIM] = "trim",
	[VDISK_FLUSH] = "flush",
};

/* Show the statistics of the model and of the store. */
static void vdisk_stats_show_model(struct seq_file *m, struct vdisk *vdisk,
				   const struct vdisk_counter *counters,
				   u32 count)
{
	struct vdisk_store_stats stored;
	u32 i;

	for (i = 0; i < count; i++)
		seq_printf(m, "%s %llu\n", counters[i].name,
			   counters[i].value);
	if (!vdisk->store)
		return;
	vdisk_store_get_stats(vdisk->store, &stored);
	seq_printf(m, "stored_bytes %llu\n", stored.bytes);
	seq_printf(m, "unstable_writes %llu\n", stored.unstable);
	seq_printf(m, "cut_lost %llu\n", stored.lost);
	seq_printf(m, "cut_torn %llu\n", stored.torn);
	seq_printf(m, "cut_kept %llu\n", stored.kept);
}

static int vdisk_stats_show(struct seq_file *m, void *unused)
{
	struct vdisk *vdisk = m->private;
	struct vdisk_model *model = vdisk->model;
	struct vdisk_counter *counters;
	struct vdisk_stats stats;
	u64 requests[VDISK_NR_OPS];
	u64 bytes[VDISK_NR_OPS];
	u32 count = 0;
	u64 now;
	int op;

	counters = kvmalloc_array(VDISK_COUNTERS_MAX, sizeof(*counters),
				  GFP_KERNEL);
	if (!counters)
		return -ENOMEM;

	spin_lock_irq(&vdisk->lock);
	memcpy(requests, vdisk->completed.requests, sizeof(requests));
	memcpy(bytes, vdisk->completed.bytes, sizeof(bytes));
	now = ktime_get_ns();
	model->ops->stats(model, now, &stats);
	if (model->ops->counters)
		count = model->ops->counters(model, now, counters,
					     VDISK_COUNTERS_MAX);
	spin_unlock_irq(&vdisk->lock);

	for (op = 0; op < VDISK_NR_OPS; op++) {
		seq_printf(m, "%s_requests %llu\n", vdisk_op_names[op],
			   requests[op]);
		if (op != VDISK_FLUSH)
			seq_printf(m, "%s_bytes %llu\n", vdisk_op_names[op],
				   bytes[op]);
	}
	seq_printf(m, "failed_requests %lld\n",
		   (s64)atomic64_read(&vdisk->nr_failed));
	seq_printf(m, "in_service %u\n", stats.nr_in_service);
	seq_printf(m, "waiting %u\n", stats.nr_waiting);
	seq_printf(m, "waiting_max %u\n", stats.nr_waiting_max);
	seq_printf(m, "busy_ns %llu\n", stats.busy_ns);
	vdisk_stats_show_model(m, vdisk, counters, count);
	kvfree(counters);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vdisk_stats);

/* Make the directory of the module. Without debugfs there are no statistics. */
void vdisk_stats_init(void)
{
	vdisk_debugfs = debugfs_create_dir(KBUILD_MODNAME, NULL);
}

/* Remove the directory of the module. */
void vdisk_stats_exit(void)
{
	debugfs_remove(vdisk_debugfs);
}

/* Make the directory of a disk. */
void vdisk_stats_add(struct vdisk *vdisk, const char *name)
{
	vdisk->debugfs = debugfs_create_dir(name, vdisk_debugfs);
	debugfs_create_file("stats", 0444, vdisk->debugfs, vdisk,
			    &vdisk_stats_fops);
}

/* Remove the directory of a disk, after the last reader has left. */
void vdisk_stats_del(struct vdisk *vdisk)
{
	debugfs_remove(vdisk->debugfs);
}
