// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests completed by disks, by cgroup
 *
 * The kernel charges a cgroup with a bio when the bio is submitted. A program
 * that writes through the page cache submits at once as much as the scheduler's
 * queue holds, hundreds of megabytes, and is charged long before a disk has
 * seen the data. Here a cgroup's bytes count when their request ends. All bios
 * of a request belong to one cgroup, for the block layer merges only these. A
 * flush moves no data and does not count.
 *
 * The probe is attached to the tracepoint of completed requests while counting
 * is on: writing "1" to the file clears the counts and begins, "0" ends. Reading
 * the file gives a line for each cgroup with its path and the names of io.stat.
 *
 * Locks. completed_mutex serialises begin, end and clearing, and protects
 * whether completed_probe is attached. completed_lock protects the list of
 * cgroups and their counts, which grow in interrupts. A cgroup stays in the
 * list, with a reference to its css, until the counts are cleared, with the
 * probe detached and its last call done.
 */
#define pr_fmt(fmt) "blkload: " fmt

#include <linux/blk-cgroup.h>
#include <linux/blk-mq.h>
#include <linux/cgroup.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/tracepoint.h>
#include <linux/types.h>

#include "completed.h"

enum completed_kind {
	COMPLETED_READ,
	COMPLETED_WRITE,
	COMPLETED_DISCARD,
	COMPLETED_KINDS,
};

/* A cgroup with completed requests. */
struct completed_group {
	struct hlist_node	hash;	/* in completed_groups, by its css */
	struct list_head	link;	/* in completed_order */
	struct cgroup_subsys_state *css;	/* with a reference */
	u64			bytes[COMPLETED_KINDS];
	u64			ios[COMPLETED_KINDS];
};

static DEFINE_MUTEX(completed_mutex);
/* The tracepoint to which the probe is attached, or NULL. */
static struct tracepoint *completed_tracepoint;

static DEFINE_SPINLOCK(completed_lock);
static DEFINE_HASHTABLE(completed_groups, 8);
/* The cgroups of completed_groups, in the order of their first request. */
static LIST_HEAD(completed_order);
/* Requests that were not counted for lack of memory. */
static u64 completed_lost;

/* Find or create a cgroup's counts. Return NULL without memory. */
static struct completed_group *find_group(struct cgroup_subsys_state *css)
{
	struct completed_group *group;

	lockdep_assert_held(&completed_lock);
	hash_for_each_possible(completed_groups, group, hash,
			       (unsigned long)css)
		if (group->css == css)
			return group;
	group = kzalloc(sizeof(*group), GFP_ATOMIC | __GFP_NOWARN);
	if (!group)
		return NULL;
	/* The bio still holds its own reference here. */
	css_get(css);
	group->css = css;
	hash_add(completed_groups, &group->hash, (unsigned long)css);
	list_add_tail(&group->link, &completed_order);
	return group;
}

static enum completed_kind kind_of(struct request *rq)
{
	if (op_is_discard(req_op(rq)))
		return COMPLETED_DISCARD;
	return op_is_write(req_op(rq)) ? COMPLETED_WRITE : COMPLETED_READ;
}

/* Called in parallel: requests of one disk end on several CPUs. */
static void completed_probe(void *unused, struct request *rq,
			    blk_status_t error, unsigned int nr_bytes)
{
	struct cgroup_subsys_state *css = bio_blkcg_css(rq->bio);
	enum completed_kind kind = kind_of(rq);
	struct completed_group *group;
	unsigned long flags;
	struct bio *bio;

	/* A request with a flush before or after it ends again with that. */
	if (!css || error || !nr_bytes)
		return;
	spin_lock_irqsave(&completed_lock, flags);
	group = find_group(css);
	if (group) {
		group->bytes[kind] += nr_bytes;
		__rq_for_each_bio(bio, rq)
			group->ios[kind]++;
	} else {
		completed_lost++;
	}
	spin_unlock_irqrestore(&completed_lock, flags);
}

static void find_tracepoint(struct tracepoint *tracepoint, void *found)
{
	if (!strcmp(tracepoint->name, "block_rq_complete"))
		*(struct tracepoint **)found = tracepoint;
}

static int attach(void)
{
	struct tracepoint *found = NULL;
	int ret;

	lockdep_assert_held(&completed_mutex);
	/* The tracepoint is not exported by its name: search for it. */
	for_each_kernel_tracepoint(find_tracepoint, &found);
	if (!found)
		return -EOPNOTSUPP;
	ret = tracepoint_probe_register(found, completed_probe, NULL);
	if (!ret)
		completed_tracepoint = found;
	return ret;
}

/* Detach the probe. On return no call of it is running. */
static void detach(void)
{
	lockdep_assert_held(&completed_mutex);
	if (!completed_tracepoint)
		return;
	tracepoint_probe_unregister(completed_tracepoint, completed_probe,
				    NULL);
	tracepoint_synchronize_unregister();
	completed_tracepoint = NULL;
}

/* Clear all counts, with the probe detached. */
static void forget(void)
{
	struct completed_group *group, *next;
	LIST_HEAD(old);

	lockdep_assert_held(&completed_mutex);
	spin_lock_irq(&completed_lock);
	list_splice_init(&completed_order, &old);
	hash_init(completed_groups);
	completed_lost = 0;
	spin_unlock_irq(&completed_lock);
	list_for_each_entry_safe(group, next, &old, link) {
		css_put(group->css);
		kfree(group);
	}
}

static ssize_t completed_write(struct file *file, const char __user *text,
			       size_t count, loff_t *position)
{
	bool wanted;
	int ret;

	ret = kstrtobool_from_user(text, count, &wanted);
	if (ret)
		return ret;
	mutex_lock(&completed_mutex);
	detach();
	if (wanted) {
		forget();
		ret = attach();
	}
	mutex_unlock(&completed_mutex);
	return ret ?: count;
}

static int completed_show(struct seq_file *m, void *unused)
{
	struct completed_group *group;
	char *path;

	path = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!path)
		return -ENOMEM;
	spin_lock_irq(&completed_lock);
	list_for_each_entry(group, &completed_order, link) {
		if (cgroup_path(group->css->cgroup, path, PATH_MAX) < 0)
			continue;
		seq_printf(m, "%s rbytes=%llu wbytes=%llu rios=%llu wios=%llu dbytes=%llu dios=%llu\n",
			   path, group->bytes[COMPLETED_READ],
			   group->bytes[COMPLETED_WRITE],
			   group->ios[COMPLETED_READ],
			   group->ios[COMPLETED_WRITE],
			   group->bytes[COMPLETED_DISCARD],
			   group->ios[COMPLETED_DISCARD]);
	}
	if (completed_lost)
		seq_printf(m, "lost %llu\n", completed_lost);
	spin_unlock_irq(&completed_lock);
	kfree(path);
	return 0;
}

static int completed_open(struct inode *inode, struct file *file)
{
	return single_open(file, completed_show, NULL);
}

static const struct file_operations completed_fops = {
	.owner		= THIS_MODULE,
	.open		= completed_open,
	.read		= seq_read,
	.write		= completed_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

/**
 * blkload_completed_init - create the file
 * @dir: directory in debugfs
 */
void blkload_completed_init(struct dentry *dir)
{
	debugfs_create_file("completed", 0600, dir, NULL, &completed_fops);
}

/**
 * blkload_completed_exit - end the counting, after the file's removal
 */
void blkload_completed_exit(void)
{
	mutex_lock(&completed_mutex);
	detach();
	forget();
	mutex_unlock(&completed_mutex);
}
