// SPDX-License-Identifier: GPL-2.0-only
/*
 * isoblk_vdisk: a disk whose completions are timers, exact in virtual time.
 *
 * This file is the user interface, a configfs directory for each disk. The disk
 * itself is a blk-mq device with one timer. A model decides when a command
 * ends: "fixed", "flash" or "disk".
 *
 *	config*.c	directories and attributes
 *	disk*.c		block device, its states (lost, power cut), statistics
 *	fault.c		bad ranges, and faults at a chosen write
 *	store*.c	contents, and the effect of a power cut on them
 *	model.h		the interface of a model
 *	fixed.c		the model "fixed", with volume.c a cloud volume
 *	flash*.c	the model "flash", with its translation layer, ftl*.c
 *	hdd*.c		the model "disk"
 *
 * disk.c, store.c, flash.c, ftl.c and hdd.c begin with their design.
 *
 * A directory holds parameters only, until 1 is written to power. Then the disk
 * exists, under the directory's name, until 0 is written or the directory is
 * removed; both wait for the disk's requests in flight.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/align.h>
#include <linux/array_size.h>
#include <linux/bits.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/configfs.h>
#include <linux/container_of.h>
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/kstrtox.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "config.h"
#include "model.h"
#include "random.h"
#include "vdisk.h"

/* Limit of servers: above the tags of one queue, for disks with many queues. */
#define VDISK_SERVERS_MAX	65536
/* 1 EiB: offsets in bytes stay positive. */
#define VDISK_SIZE_BYTES_MAX		BIT_ULL(60)

static const struct config_item_type vdisk_item_type;

static const struct vdisk_params vdisk_defaults = {
	.ops = &vdisk_fixed_ops,
	.size = 4ULL * SZ_1G,
	.logical_block_size = SECTOR_SIZE,
	.queue_depth = 1023,
	.hw_queues = 1,
	.servers = 16,
	.service_ns = { 20000, 20000, 20000, 20000 },
	.seed = 1,
	.flash = VDISK_FLASH_DEFAULTS,
	.hdd = VDISK_HDD_DEFAULTS,
};

static const struct vdisk_model_ops * const vdisk_models[] = {
	&vdisk_fixed_ops,
	&vdisk_flash_ops,
	&vdisk_hdd_ops,
};

/**
 * to_vdisk_item - return the directory of an attribute
 * @item: the directory, or one of its default groups
 *
 * Context: an attribute's show or store. configfs lets no show or store begin
 * while the directory is removed, and removes it after they have returned.
 * Return: the directory.
 */
struct vdisk_item *to_vdisk_item(struct config_item *item)
{
	if (item->ci_type != &vdisk_item_type)
		item = item->ci_parent;
	return container_of(item, struct vdisk_item, group.cg_item);
}

/**
 * vdisk_parse_u64 - read a number
 * @page: decimal digits, which may end in k, m or g: powers of 1024
 * @value: set to the number
 *
 * Return: 0; -EINVAL for text that is not a number, -ERANGE for one too large.
 */
int vdisk_parse_u64(const char *page, u64 *value)
{
	/* The longest u64, a suffix, a newline, the zero, and 1 to spare. */
	char buf[24];
	unsigned int shift = 0;
	size_t len;
	int err;

	if (strscpy(buf, page) < 0)
		return -EINVAL;
	len = strlen(buf);
	if (len && buf[len - 1] == '\n')
		buf[--len] = '\0';
	if (!len)
		return -EINVAL;

	switch (tolower(buf[len - 1])) {
	case 'g':
		shift += 10;
		fallthrough;
	case 'm':
		shift += 10;
		fallthrough;
	case 'k':
		shift += 10;
		buf[len - 1] = '\0';
	}
	/* kstrtou64() would accept a sign and a newline. */
	if (!isdigit(buf[0]) || strchr(buf, '\n'))
		return -EINVAL;
	err = kstrtou64(buf, 10, value);
	if (err)
		return err;
	return check_shl_overflow(*value, shift, value) ? -ERANGE : 0;
}

static u64 *vdisk_param_ptr(struct vdisk_item *vi, size_t field)
{
	return (void *)&vi->params + field;
}

/* Set a value that is in range. It fails if the disk is on, unless @live. */
static int vdisk_set_param(struct config_item *item, size_t field, u64 value,
			   bool live)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	int err = 0;

	mutex_lock(&vi->mutex);
	if (vi->vdisk && !live) {
		err = -EBUSY;
	} else {
		*vdisk_param_ptr(vi, field) = value;
		if (vi->vdisk)
			vdisk_change_params(vi->vdisk, &vi->params);
	}
	mutex_unlock(&vi->mutex);
	return err;
}

static u64 vdisk_get_param(struct config_item *item, size_t field)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	u64 value;

	mutex_lock(&vi->mutex);
	value = *vdisk_param_ptr(vi, field);
	mutex_unlock(&vi->mutex);
	return value;
}

/**
 * vdisk_number_show - show an attribute of VDISK_NUMBER()
 * @item: directory of the attribute
 * @field: offset in struct vdisk_params
 * @page: where the text goes
 *
 * Return: its length.
 */
ssize_t vdisk_number_show(struct config_item *item, size_t field, char *page)
{
	return sysfs_emit(page, "%llu\n", vdisk_get_param(item, field));
}

/**
 * vdisk_number_store - set an attribute of VDISK_NUMBER()
 * @item: directory of the attribute
 * @field: offset in struct vdisk_params
 * @page: text that is written
 * @count: its length
 * @range: range that it must be in
 *
 * Return: @count, or an error; then nothing has changed.
 */
ssize_t vdisk_number_store(struct config_item *item, size_t field,
			   const char *page, size_t count,
			   const struct vdisk_range *range)
{
	u64 value;
	int err;

	err = vdisk_parse_u64(page, &value);
	if (err)
		return err;
	if (value < range->min || value > range->max)
		return -ERANGE;
	if (range->multiple_of && !IS_ALIGNED(value, range->multiple_of))
		return -EINVAL;
	if (range->power_of_2 && !is_power_of_2(value))
		return -EINVAL;
	return vdisk_set_param(item, field, value, range->live) ?: count;
}

/**
 * vdisk_choice_show - show an attribute of VDISK_CHOICE()
 * @item: directory of the attribute
 * @field: offset in struct vdisk_params
 * @page: where the text goes
 * @names: the words
 *
 * Return: its length.
 */
ssize_t vdisk_choice_show(struct config_item *item, size_t field, char *page,
			  const char * const names[])
{
	return sysfs_emit(page, "%s\n", names[vdisk_get_param(item, field)]);
}

/**
 * vdisk_choice_store - set an attribute of VDISK_CHOICE()
 * @item: directory of the attribute
 * @field: offset in struct vdisk_params
 * @page: text that is written
 * @count: its length
 * @names: the words
 * @nr_names: number of words
 *
 * Return: @count, or an error; then nothing has changed.
 */
ssize_t vdisk_choice_store(struct config_item *item, size_t field,
			   const char *page, size_t count,
			   const char * const names[], size_t nr_names)
{
	size_t i;

	for (i = 0; i < nr_names; i++) {
		if (sysfs_streq(page, names[i]))
			return vdisk_set_param(item, field, i, false) ?: count;
	}
	return -EINVAL;
}

VDISK_NUMBER(size, size, .min = VDISK_PHYSICAL_BLOCK_BYTES,
	     .max = VDISK_SIZE_BYTES_MAX,
	     .multiple_of = VDISK_PHYSICAL_BLOCK_BYTES);
VDISK_NUMBER(logical_block_size, logical_block_size, .min = SECTOR_SIZE,
	     .max = VDISK_PHYSICAL_BLOCK_BYTES, .power_of_2 = true);
VDISK_NUMBER(queue_depth, queue_depth, .min = 1, .max = BLK_MQ_MAX_DEPTH);
VDISK_NUMBER(hw_queues, hw_queues, .min = 1, .max = nr_cpu_ids);
VDISK_NUMBER(servers, servers, .min = 1, .max = VDISK_SERVERS_MAX,
	     .live = true);
VDISK_NUMBER(read_ns, service_ns[VDISK_READ], .min = 1,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(write_ns, service_ns[VDISK_WRITE], .min = 1,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(trim_ns, service_ns[VDISK_TRIM], .min = 1,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(flush_ns, service_ns[VDISK_FLUSH], .min = 1,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(read_bps, bps[VDISK_READ], .max = VDISK_BPS_MAX, .live = true);
VDISK_NUMBER(write_bps, bps[VDISK_WRITE], .max = VDISK_BPS_MAX, .live = true);
VDISK_NUMBER(jitter, jitter, .max = VDISK_JITTER_MAX, .live = true);
VDISK_NUMBER(seed, seed, .max = U64_MAX);
VDISK_NUMBER(write_cache, write_cache, .max = 1);
VDISK_CHOICE(store, store, "none", "memory");

static ssize_t vdisk_model_show(struct config_item *item, char *page)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	const char *name;

	mutex_lock(&vi->mutex);
	name = vi->params.ops->name;
	mutex_unlock(&vi->mutex);
	return sysfs_emit(page, "%s\n", name);
}

static ssize_t vdisk_model_store(struct config_item *item, const char *page,
				 size_t count)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	ssize_t ret = -EINVAL;
	int i;

	for (i = 0; i < ARRAY_SIZE(vdisk_models); i++) {
		if (!sysfs_streq(page, vdisk_models[i]->name))
			continue;
		mutex_lock(&vi->mutex);
		ret = -EBUSY;
		if (!vi->vdisk) {
			vi->params.ops = vdisk_models[i];
			ret = count;
		}
		mutex_unlock(&vi->mutex);
	}
	return ret;
}

CONFIGFS_ATTR(vdisk_, model);

static int vdisk_power_on(struct vdisk_item *vi)
{
	struct vdisk *vdisk;

	lockdep_assert_held(&vi->mutex);

	if (vi->vdisk)
		return 0;
	vdisk = vdisk_create(config_item_name(&vi->group.cg_item), &vi->params);
	if (IS_ERR(vdisk))
		return PTR_ERR(vdisk);
	vi->vdisk = vdisk;
	return 0;
}

static void vdisk_power_off(struct vdisk_item *vi)
{
	lockdep_assert_held(&vi->mutex);

	if (vi->vdisk)
		vdisk_destroy(vi->vdisk);
	vi->vdisk = NULL;
}

static ssize_t vdisk_power_show(struct config_item *item, char *page)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	bool on;

	mutex_lock(&vi->mutex);
	on = vi->vdisk;
	mutex_unlock(&vi->mutex);
	return sysfs_emit(page, "%d\n", on);
}

static ssize_t vdisk_power_store(struct config_item *item, const char *page,
				 size_t count)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	bool on;
	int err;

	err = kstrtobool(page, &on);
	if (err)
		return err;

	mutex_lock(&vi->mutex);
	if (on)
		err = vdisk_power_on(vi);
	else
		vdisk_power_off(vi);
	mutex_unlock(&vi->mutex);
	return err ?: count;
}

CONFIGFS_ATTR(vdisk_, power);

static struct configfs_attribute *vdisk_attrs[] = {
	&vdisk_attr_model,
	&vdisk_attr_size,
	&vdisk_attr_logical_block_size,
	&vdisk_attr_queue_depth,
	&vdisk_attr_hw_queues,
	&vdisk_attr_servers,
	&vdisk_attr_read_ns,
	&vdisk_attr_write_ns,
	&vdisk_attr_trim_ns,
	&vdisk_attr_flush_ns,
	&vdisk_attr_read_bps,
	&vdisk_attr_write_bps,
	&vdisk_attr_jitter,
	&vdisk_attr_seed,
	&vdisk_attr_write_cache,
	&vdisk_attr_store,
	&vdisk_attr_power,
	NULL,
};

static void vdisk_item_release(struct config_item *item)
{
	struct vdisk_item *vi = to_vdisk_item(item);

	configfs_remove_default_groups(&vi->group);
	mutex_destroy(&vi->mutex);
	kfree(vi);
}

static struct configfs_item_operations vdisk_item_ops = {
	.release = vdisk_item_release,
};

static const struct config_item_type vdisk_item_type = {
	.ct_item_ops = &vdisk_item_ops,
	.ct_attrs = vdisk_attrs,
	.ct_owner = THIS_MODULE,
};

static void vdisk_add_group(struct vdisk_item *vi, struct config_group *group,
			    const char *name,
			    const struct config_item_type *type)
{
	config_group_init_type_name(group, name, type);
	configfs_add_default_group(group, &vi->group);
}

static struct config_group *vdisk_make_group(struct config_group *group,
					     const char *name)
{
	struct vdisk_item *vi;

	if (strlen(name) >= DISK_NAME_LEN)
		return ERR_PTR(-ENAMETOOLONG);

	vi = kzalloc(sizeof(*vi), GFP_KERNEL);
	if (!vi)
		return ERR_PTR(-ENOMEM);

	config_group_init_type_name(&vi->group, name, &vdisk_item_type);
	/* configfs allocates a long name, which may fail. */
	if (!config_item_name(&vi->group.cg_item)) {
		kfree(vi);
		return ERR_PTR(-ENOMEM);
	}
	vdisk_add_group(vi, &vi->fault, "fault", &vdisk_fault_type);
	vdisk_add_group(vi, &vi->volume, "volume", &vdisk_volume_type);
	vdisk_add_group(vi, &vi->flash, "flash", &vdisk_flash_type);
	vdisk_add_group(vi, &vi->disk, "disk", &vdisk_hdd_type);
	mutex_init(&vi->mutex);
	vi->params = vdisk_defaults;
	return &vi->group;
}

static void vdisk_drop_item(struct config_group *group,
			    struct config_item *item)
{
	struct vdisk_item *vi = to_vdisk_item(item);

	mutex_lock(&vi->mutex);
	vdisk_power_off(vi);
	mutex_unlock(&vi->mutex);
	config_item_put(item);
}

static struct configfs_group_operations vdisk_group_ops = {
	.make_group = vdisk_make_group,
	.drop_item = vdisk_drop_item,
};

static const struct config_item_type vdisk_group_type = {
	.ct_group_ops = &vdisk_group_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem vdisk_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = KBUILD_MODNAME,
			.ci_type = &vdisk_group_type,
		},
	},
	.su_mutex = __MUTEX_INITIALIZER(vdisk_subsys.su_mutex),
};

static int __init vdisk_module_init(void)
{
	int err;

	vdisk_init();
	config_group_init(&vdisk_subsys.su_group);
	err = configfs_register_subsystem(&vdisk_subsys);
	if (err)
		vdisk_exit();
	return err;
}

static void __exit vdisk_module_exit(void)
{
	configfs_unregister_subsystem(&vdisk_subsys);
	vdisk_exit();
}

module_init(vdisk_module_init);
module_exit(vdisk_module_exit);

MODULE_DESCRIPTION("Disk whose completions are timers, exact in virtual time");
MODULE_LICENSE("GPL");
