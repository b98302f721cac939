// SPDX-License-Identifier: GPL-2.0-only
/*
 * What groups were charged, and what they hold.
 */
#include <linux/module.h>
#include <linux/seq_file.h>

#include "share/disk.h"
#include "share/policy.h"
#include "share/stat.h"

/**
 * isoblk_group_has_tags() - whether a request of a group has a tag
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
 * isoblk_group_bytes() - what a group was charged
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
 * isoblk_group_ios() - how many requests a group was charged
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
 * isoblk_pd_stat() - what io.stat says of a group
 * @pd: of the group
 * @s: where to
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

/* cgroup v1 has no io.stat: the same in the form of its own files. */
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
 * isoblk_stat_show() - bytes or requests that a cgroup was charged, for cgroup v1
 * @sf: file; its private says which
 * @v: not used
 */
int isoblk_stat_show(struct seq_file *sf, void *v)
{
	blkcg_print_blkgs(sf, css_to_blkcg(seq_css(sf)), isoblk_prfill_legacy,
			  &isoblk_policy, seq_cft(sf)->private, true);
	return 0;
}
