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
 * Locks. blkload_completed_mutex serialises begin, end and clearing, and protects
 * whether completed_probe is attached. blkload_completed_lock protects the list of
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

enum blkload_completed_kind {
	BLKLOAD_COMPLETED_READ,
	BLKLOAD_COMPLETED_WRITE,
	BLKLOAD_COMPLETED_DISCARD,
	BLKLOAD_NR_COMPLETED_KINDS,
};

/* A cgroup with completed requests. */
struct blkload_completed_group {
	struct hlist_node	hash;	/* in blkload_completed_groups, by its css */
	struct list_head	link;	/* in blkload_completed_order */
	struct cgroup_subsys_state *css;	/* with a reference */
	u64			bytes[BLKLOAD_NR_COMPLETED_KINDS];
	u64			ios[BLKLOAD_NR_COMPLETED_KINDS];
};

static DEFINE_MUTEX(blkload_completed_mutex);
/* The tracepoint to which the probe is attached, or NULL. */
static struct tracepoint *blkload_completed_tracepoint;

static DEFINE_SPINLOCK(blkload_completed_lock);
static DEFINE_HASHTABLE(blkload_completed_groups, 8);
/* The cgroups of blkload_completed_groups, in the order of their first request. */
static LIST_HEAD(blkload_completed_order);
/* Requests that were not counted for lack of memory. */
static u64 blkload_completed_lost;

/* Find or create a cgroup's counts. Return NULL without memory. */
static struct blkload_completed_group *
blkload_completed_find_group(struct cgroup_subsys_state *css)
{
	struct blkload_completed_group *group;

	lockdep_assert_held(&blkload_completed_lock);
	hash_for_each_possible(blkload_completed_groups, group, hash,
			       (unsigned long)css)
		if (group->css == css)
			return group;
	group = kzalloc(sizeof(*group), GFP_ATOMIC | __GFP_NOWARN);
	if (!group)
		return NULL;
	/* The bio still holds its own reference here. */
	css_get(css);
	group->css = css;
	hash_add(blkload_completed_groups, &group->hash, (unsigned long)css);
	list_add_tail(&group->link, &blkload_completed_order);
	return group;
}

static enum blkload_completed_kind
blkload_completed_get_kind(struct request *rq)
{
	if (op_is_discard(req_op(rq)))
		return BLKLOAD_COMPLETED_DISCARD;
	return op_is_write(req_op(rq)) ? BLKLOAD_COMPLETED_WRITE :
					 BLKLOAD_COMPLETED_READ;
}

/* Called in parallel: requests of one disk end on several CPUs. */
static void blkload_completed_probe(void *unused, struct request *rq,
				    blk_status_t error, unsigned int nr_bytes)
{
	struct cgroup_subsys_state *css = bio_blkcg_css(rq->bio);
	enum blkload_completed_kind kind = blkload_completed_get_kind(rq);
	struct blkload_completed_group *group;
	unsigned long flags;
	struct bio *bio;

	/* A request with a flush before or after it ends again with that. */
	if (!css || error || !nr_bytes)
		return;
	spin_lock_irqsave(&blkload_completed_lock, flags);
	group = blkload_completed_find_group(css);
	if (group) {
		group->bytes[kind] += nr_bytes;
		__rq_for_each_bio(bio, rq)
			group->ios[kind]++;
	} else {
		blkload_completed_lost++;
	}
	spin_unlock_irqrestore(&blkload_completed_lock, flags);
}

static void blkload_completed_find_tracepoint(struct tracepoint *tracepoint,
					      void *found)
{
	if (!strcmp(tracepoint->name, "block_rq_complete"))
		*(struct tracepoint **)found = tracepoint;
}

static int blkload_completed_attach(void)
{
	struct tracepoint *found = NULL;
	int ret;

	lockdep_assert_held(&blkload_completed_mutex);
	/* The tracepoint is not exported by its name: search for it. */
	for_each_kernel_tracepoint(blkload_completed_find_tracepoint, &found);
	if (!found)
		return -EOPNOTSUPP;
	ret = tracepoint_probe_register(found, blkload_completed_probe, NULL);
	if (!ret)
		blkload_completed_tracepoint = found;
	return ret;
}

/* Detach the probe. On return no call of it is running. */
static void blkload_completed_detach(void)
{
	lockdep_assert_held(&blkload_completed_mutex);
	if (!blkload_completed_tracepoint)
		return;
	tracepoint_probe_unregister(blkload_completed_tracepoint,
				    blkload_completed_probe, NULL);
	tracepoint_synchronize_unregister();
	blkload_completed_tracepoint = NULL;
}

/* Clear all counts, with the probe detached. */
static void blkload_completed_clear(void)
{
	struct blkload_completed_group *group, *next;
	LIST_HEAD(old);

	lockdep_assert_held(&blkload_completed_mutex);
	spin_lock_irq(&blkload_completed_lock);
	list_splice_init(&blkload_completed_order, &old);
	hash_init(blkload_completed_groups);
	blkload_completed_lost = 0;
	spin_unlock_irq(&blkload_completed_lock);
	list_for_each_entry_safe(group, next, &old, link) {
		css_put(group->css);
		kfree(group);
	}
}

static ssize_t blkload_completed_write(struct file *file,
				       const char __user *text, size_t count,
				       loff_t *position)
{
	bool wanted;
	int ret;

	ret = kstrtobool_from_user(text, count, &wanted);
	if (ret)
		return ret;
	mutex_lock(&blkload_completed_mutex);
	blkload_completed_detach();
	if (wanted) {
		blkload_completed_clear();
		ret = blkload_completed_attach();
	}
	mutex_unlock(&blkload_completed_mutex);
	return ret ?: count;
}

static int blkload_completed_show(struct seq_file *m, void *unused)
{
	struct blkload_completed_group *group;
	char *path;

	path = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!path)
		return -ENOMEM;
	spin_lock_irq(&blkload_completed_lock);
	list_for_each_entry(group, &blkload_completed_order, link) {
		if (cgroup_path(group->css->cgroup, path, PATH_MAX) < 0)
			continue;
		seq_printf(m,
			   "%s rbytes=%llu wbytes=%llu rios=%llu wios=%llu dbytes=%llu dios=%llu\n",
			   path, group->bytes[BLKLOAD_COMPLETED_READ],
			   group->bytes[BLKLOAD_COMPLETED_WRITE],
			   group->ios[BLKLOAD_COMPLETED_READ],
			   group->ios[BLKLOAD_COMPLETED_WRITE],
			   group->bytes[BLKLOAD_COMPLETED_DISCARD],
			   group->ios[BLKLOAD_COMPLETED_DISCARD]);
	}
	if (blkload_completed_lost)
		seq_printf(m, "lost %llu\n", blkload_completed_lost);
	spin_unlock_irq(&blkload_completed_lock);
	kfree(path);
	return 0;
}

static int blkload_completed_open(struct inode *inode, struct file *file)
{
	return single_open(file, blkload_completed_show, NULL);
}

static const struct file_operations blkload_completed_fops = {
	.owner		= THIS_MODULE,
	.open		= blkload_completed_open,
	.read		= seq_read,
	.write		= blkload_completed_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

/**
 * blkload_completed_init - create the file
 * @dir: directory in debugfs
 */
void blkload_completed_init(struct dentry *dir)
{
	debugfs_create_file("completed", 0600, dir, NULL,
			    &blkload_completed_fops);
}

/**
 * blkload_completed_exit - end the counting, after the file's removal
 */
void blkload_completed_exit(void)
{
	mutex_lock(&blkload_completed_mutex);
	blkload_completed_detach();
	blkload_completed_clear();
	mutex_unlock(&blkload_completed_mutex);
}
