// SPDX-License-Identifier: GPL-2.0-only
/*
 * io.isoblk.latency: what is written there, and what it shows. What comes of it is the
 * elevator's: latency.c.
 *
 * A target is of a group on one disk, as a weight of its own on a disk is: it goes with the
 * elevator. One for all disks would mean little, for a hard disk takes a thousand times as
 * long as flash.
 */
#include <linux/module.h>
#include <linux/seq_file.h>

#include "share/disk.h"
#include "share/policy.h"
#include "share/target.h"

/* Nobody waits for longer than a minute. */
#define TARGET_US_MOST	60000000U

static u32 target_of(struct isoblk_group *group)
{
	const struct isoblk_ops *ops = group->disk->ops;

	return ops->set_target ? ops->target(group) : 0;
}

static u64 prfill_target(struct seq_file *sf, struct blkg_policy_data *pd,
			 int off)
{
	struct isoblk_group *group = isoblk_pd_group(pd);
	struct gendisk *disk = group->disk->q->disk;
	u32 us = target_of(group);

	if (us)
		seq_printf(sf, "%d:%d target=%u\n", disk->major,
			   disk->first_minor, us);
	return 0;
}

/**
 * isoblk_target_show() - a cgroup's targets, as they may be written
 * @sf: file
 * @v: not used
 */
int isoblk_target_show(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), prfill_target,
			  &isoblk_policy, 0, false);
	return 0;
}

static u64 prfill_stat(struct seq_file *sf, struct blkg_policy_data *pd,
		       int off)
{
	struct isoblk_group *group = isoblk_pd_group(pd);
	struct gendisk *disk = group->disk->q->disk;

	if (target_of(group)) {
		seq_printf(sf, "%d:%d", disk->major, disk->first_minor);
		group->disk->ops->stat(group, sf);
		seq_putc(sf, '\n');
	}
	return 0;
}

/**
 * isoblk_target_stat_show() - what io.stat has of groups with a target, for cgroup v1
 * @sf: file
 * @v: not used
 */
int isoblk_target_stat_show(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), prfill_stat,
			  &isoblk_policy, 0, false);
	return 0;
}

/* "target=USEC"; 0 and none are no target. */
static int parse_target(const char *text, u32 *us)
{
	const char *value = text + strlen("target=");
	int ret;

	if (!str_has_prefix(text, "target="))
		return -EINVAL;
	if (!strcmp(value, "none")) {
		*us = 0;
		return 0;
	}
	ret = kstrtou32(value, 10, us);
	if (ret)
		return ret;
	return *us > TARGET_US_MOST ? -ERANGE : 0;
}

static int set_target(struct isoblk_group *group, char *text)
{
	u32 us;
	int ret = parse_target(text, &us);

	if (ret)
		return ret;
	if (!group->disk->ops->set_target)
		return -EOPNOTSUPP;
	group->disk->ops->set_target(group, us);
	return 0;
}

/**
 * isoblk_target_write() - "MAJ:MIN target=USEC"
 * @of: file
 * @buf: text
 * @nbytes: its length
 * @off: not used
 */
ssize_t isoblk_target_write(struct kernfs_open_file *of, char *buf,
			    size_t nbytes, loff_t off)
{
	int ret = isoblk_set_on_disk(css_to_blkcg(of_css(of)), strim(buf),
				     set_target);

	return ret ?: nbytes;
}
