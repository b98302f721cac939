// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cgroup file io.isoblk.weight.
 *
 * Like io.weight: a default for all disks, and a weight for a disk, which the elevator drops when
 * it leaves.
 */
#include <linux/module.h>
#include <linux/seq_file.h>

#include "share/disk.h"
#include "share/policy.h"
#include "share/share.h"
#include "share/weight.h"

static u64 isoblk_prfill_weight(struct seq_file *sf, struct blkg_policy_data *pd,
				int off)
{
	struct isoblk_group *group = isoblk_pd_group(pd);
	struct gendisk *disk = group->disk->q->disk;

	if (group->dev_weight)
		seq_printf(sf, "%d:%d %u\n", disk->major, disk->first_minor,
			   group->dev_weight);
	return 0;
}

/**
 * isoblk_weight_show() - print a cgroup's weights in the form that may be written
 * @sf: file
 * @v: unused
 */
int isoblk_weight_show(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf));

	seq_printf(sf, "default %u\n",
		   READ_ONCE(isoblk_blkcg_cgroup(blkcg)->weight));
	blkcg_print_blkgs(sf, blkcg, isoblk_prfill_weight, &isoblk_policy, 0, false);
	return 0;
}

static int isoblk_parse_weight(const char *text, u32 *weight)
{
	int ret = kstrtou32(text, 10, weight);

	if (ret)
		return ret;
	if (*weight < ISOBLK_WEIGHT_MIN || *weight > ISOBLK_WEIGHT_MAX)
		return -ERANGE;
	return 0;
}

/* "WEIGHT", "default WEIGHT", or "default" for ISOBLK_WEIGHT_DFL. */
static int isoblk_parse_default_weight(const char *text, u32 *weight)
{
	size_t word = strlen("default");

	if (!str_has_prefix(text, "default"))
		return isoblk_parse_weight(text, weight);
	if (isspace(text[word]))
		return isoblk_parse_weight(skip_spaces(text + word), weight);
	if (text[word])
		return -EINVAL;
	*weight = ISOBLK_WEIGHT_DFL;
	return 0;
}

/* Set a weight and notify the elevator; blkcg->lock. */
static void isoblk_change_weight(struct isoblk_group *group, u32 dev_weight,
				 u32 weight)
{
	const struct isoblk_ops *ops = group->disk->ops;

	isoblk_group_set_weight(group, dev_weight, weight);
	if (ops->weight_changed)
		ops->weight_changed(group);
}

static void isoblk_set_default_weight(struct blkcg *blkcg, u32 weight)
{
	struct isoblk_group *group;
	struct blkcg_gq *blkg;

	spin_lock_irq(&blkcg->lock);
	WRITE_ONCE(isoblk_blkcg_cgroup(blkcg)->weight, weight);
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
		group = isoblk_pd_group(blkg_to_pd(blkg, &isoblk_policy));
		if (group)
			isoblk_change_weight(group, group->dev_weight, weight);
	}
	spin_unlock_irq(&blkcg->lock);
}

/* Parse and set a weight on a disk; "default" removes it. */
static int isoblk_set_device_weight(struct isoblk_group *group, char *text)
{
	struct blkcg *blkcg = group->pd.blkg->blkcg;
	u32 weight = 0;
	int ret = 0;

	if (strcmp(text, "default"))
		ret = isoblk_parse_weight(text, &weight);
	if (ret)
		return ret;
	spin_lock(&blkcg->lock);
	isoblk_change_weight(group, weight, isoblk_blkcg_cgroup(blkcg)->weight);
	spin_unlock(&blkcg->lock);
	return 0;
}

/**
 * isoblk_weight_write() - set or reset a cgroup's weight
 * @of: file
 * @buf: "MAJ:MIN WEIGHT" for a disk, or "WEIGHT" for all disks without one; "default" instead of
 *	WEIGHT resets it
 * @nbytes: length of @buf
 * @off: unused
 */
ssize_t isoblk_weight_write(struct kernfs_open_file *of, char *buf,
			    size_t nbytes, loff_t off)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	u32 weight;
	int ret;

	buf = strim(buf);
	if (strchr(buf, ':')) {
		ret = isoblk_set_device_conf(blkcg, buf, isoblk_set_device_weight);
		return ret ?: nbytes;
	}

	ret = isoblk_parse_default_weight(buf, &weight);
	if (ret)
		return ret;
	isoblk_set_default_weight(blkcg, weight);
	return nbytes;
}
