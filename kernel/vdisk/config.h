/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The attributes of a disk's directory, and the macros that define them.
 *
 * The directory has the attributes that all models share, and a default group
 * for each part: "flash" and "disk" for the parameters of a model, "volume" for
 * a cloud volume, "fault" for injected faults. Each attribute is one line of a
 * macro below; it works in the directory and in a group. Each file lists its
 * attributes in a config_item_type, and config.c combines these.
 *
 * A parameter is a u64 in struct vdisk_params or in a struct within it. Only
 * its own range is checked here; the model's create() checks conditions between
 * parameters, and fails with -EINVAL.
 */
#ifndef ISOBLK_VDISK_CONFIG_H
#define ISOBLK_VDISK_CONFIG_H

#include <linux/array_size.h>
#include <linux/configfs.h>
#include <linux/mutex.h>
#include <linux/stddef.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "model.h"

/* A second is slow for any disk; ten leave room for a broken disk. */
#define VDISK_SERVICE_NS_MAX	(10ULL * NSEC_PER_SEC)
/* 1 TB/s: more than any bus, and bytes * 10^9 / bps is far from overflow. */
#define VDISK_BPS_MAX		1000000000000ULL

struct vdisk;

/* A directory of a disk. */
struct vdisk_item {
	struct config_group group;	/* the directory in configfs */
	struct config_group flash;	/* default group "flash" */
	struct config_group disk;	/* default group "disk" */
	struct config_group volume;	/* default group "volume" */
	struct config_group fault;	/* default group "fault" */
	struct mutex mutex;		/* protects params, vdisk, and power */
	struct vdisk_params params;	/* parameters as set by the user */
	struct vdisk *vdisk;		/* disk, NULL while the power is off */
};

/* Permitted values of a number. */
struct vdisk_range {
	u64 min;		/* least */
	u64 max;		/* greatest */
	u32 multiple_of;	/* a power of 2 that divides it; 0 = any number */
	bool power_of_2;	/* whether it is a power of 2 */
	bool live;		/* whether it may change while the disk is on */
};

struct vdisk_item *to_vdisk_item(struct config_item *item);
int vdisk_parse_u64(const char *page, u64 *value);
ssize_t vdisk_number_show(struct config_item *item, size_t field, char *page);
ssize_t vdisk_number_store(struct config_item *item, size_t field,
			   const char *page, size_t count,
			   const struct vdisk_range *range);
ssize_t vdisk_choice_show(struct config_item *item, size_t field, char *page,
			  const char * const names[]);
ssize_t vdisk_choice_store(struct config_item *item, size_t field,
			   const char *page, size_t count,
			   const char * const names[], size_t nr_names);

/**
 * VDISK_NUMBER() - define vdisk_attr_@name, an attribute that is a number
 * @name: name that the user sees
 * @field: field of struct vdisk_params, such as flash.channels
 * @...: struct vdisk_range, as .min = 1, .max = 64
 */
#define VDISK_NUMBER(name, field, ...)					\
static const size_t vdisk_##name##_field =				\
	offsetof(struct vdisk_params, field);				\
									\
static ssize_t vdisk_##name##_show(struct config_item *item, char *page) \
{									\
	return vdisk_number_show(item, vdisk_##name##_field, page);	\
}									\
									\
static ssize_t vdisk_##name##_store(struct config_item *item,		\
				    const char *page, size_t count)	\
{									\
	return vdisk_number_store(item, vdisk_##name##_field, page,	\
				  count,				\
				  &(struct vdisk_range){ __VA_ARGS__ }); \
}									\
									\
CONFIGFS_ATTR(vdisk_, name)

/**
 * VDISK_CHOICE() - define vdisk_attr_@name, an attribute with named values
 * @name: name that the user sees
 * @field: field of struct vdisk_params: the index of the word, from 0
 * @...: the words, as "none", "sequential", "random"
 *
 * It cannot change while the power is on.
 */
#define VDISK_CHOICE(name, field, ...)					\
static const char * const vdisk_##name##_names[] = { __VA_ARGS__ };	\
static const size_t vdisk_##name##_field =				\
	offsetof(struct vdisk_params, field);				\
									\
static ssize_t vdisk_##name##_show(struct config_item *item, char *page) \
{									\
	return vdisk_choice_show(item, vdisk_##name##_field, page,	\
				 vdisk_##name##_names);			\
}									\
									\
static ssize_t vdisk_##name##_store(struct config_item *item,		\
				    const char *page, size_t count)	\
{									\
	return vdisk_choice_store(item, vdisk_##name##_field, page,	\
				  count, vdisk_##name##_names,		\
				  ARRAY_SIZE(vdisk_##name##_names));	\
}									\
									\
CONFIGFS_ATTR(vdisk_, name)

extern const struct config_item_type vdisk_flash_type;
extern const struct config_item_type vdisk_hdd_type;
extern const struct config_item_type vdisk_volume_type;
extern const struct config_item_type vdisk_fault_type;

#endif /* ISOBLK_VDISK_CONFIG_H */
