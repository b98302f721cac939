// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes and requests charged to groups, in io.stat and for cgroup v1.
 */
#include <linux/module.h>
#include <linux/seq_file.h>

#include "share/disk.h"
#include "share/policy.h"
#include "share/stat.h"

/**
 * isoblk_group_has_tags() - whether a group has an allocated tag
 * @group: the group
 */
bool isoblk_group_has_tags(const struct isoblk_group *group)
{
	unsigned int i;

	for (i = 0; i < group->disk->nr_hqs; i++)
		if (atomic_read(&group->gq[i]->allocated))
			return true;
	return false;
}
EXPORT_SYMBOL_GPL(isoblk_group_has_tags);

/**
 * isoblk_group_bytes() - bytes charged to a group
 * @group: the group
 * @op: kind of request
 */
u64 isoblk_group_bytes(const struct isoblk_group *group, enum isoblk_op op)
{
	u64 bytes = atomic64_read(&group->bypassed.bytes[op]);
	unsigned int i;

	for (i = 0; i < group->disk->nr_hqs; i++)
		bytes += READ_ONCE(group->gq[i]->bytes[op]);
	return bytes;
}

/**
 * isoblk_group_ios() - number of requests charged to a group
 * @group: the group
 * @op: kind of request
 */
u64 isoblk_group_ios(const struct isoblk_group *group, enum isoblk_op op)
{
	u64 ios = atomic64_read(&group->bypassed.ios[op]);
	unsigned int i;

	for (i = 0; i < group->disk->nr_hqs; i++)
		ios += READ_ONCE(group->gq[i]->ios[op]);
	return ios;
}

/**
 * isoblk_pd_stat() - print a group's part of io.stat
 * @pd: policy data of the group
 * @s: file
 */
void isoblk_pd_stat(struct blkg_policy_data *pd, struct seq_file *s)
{
	struct isoblk_group *group = isoblk_pd_group(pd);
	u64 used = 0;
	int op;

	for (op = 0; op < ISOBLK_NR_OPS; op++)
		used += isoblk_group_bytes(group, op);
	seq_printf(s, " isoblk.used=%llu", used);
	group->disk->ops->stat(group, s);
}

/* cgroup v1 has no io.stat: print the same in the form of its files. */
static u64 isoblk_prfill_legacy(struct seq_file *sf, struct blkg_policy_data *pd,
				int ios)
{
	static const char *const name[ISOBLK_NR_OPS] = {
		[ISOBLK_READ] = "Read",
		[ISOBLK_WRITE] = "Write",
		[ISOBLK_DISCARD] = "Discard",
	};
	struct isoblk_group *group = isoblk_pd_group(pd);
	struct gendisk *disk = group->disk->q->disk;
	u64 value, total = 0;
	int op;

	for (op = 0; op < ISOBLK_NR_OPS; op++) {
		value = ios ? isoblk_group_ios(group, op) :
			isoblk_group_bytes(group, op);
		seq_printf(sf, "%d:%d %s %llu\n", disk->major,
			   disk->first_minor, name[op], value);
		total += value;
	}
	seq_printf(sf, "%d:%d Total %llu\n", disk->major, disk->first_minor,
		   total);
	return total;
}

/**
 * isoblk_stat_show() - print bytes or requests charged to a cgroup, for cgroup v1
 * @sf: file; its cftype's private is true for requests
 * @v: unused
 */
int isoblk_stat_show(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), isoblk_prfill_legacy,
			  &isoblk_policy, seq_cft(sf)->private, true);
	return 0;
}
