/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The attributes of a disk's directory, and what they are made of.
 *
 * The directory has attributes that every model knows, and a default group a
 * part: "flash" and "disk" for the parameters of a model, "volume" for those of
 * a cloud volume, "fault" for injected faults. An attribute is one line of a
 * macro below, in either place: it finds the directory by itself. Each file
 * lists its attributes in a config_item_type, and config.c puts them together.
 *
 * A parameter is a u64 of struct vdisk_params, so also a member of a struct in
 * it. Only its own range is checked here; what must hold between two of them is
 * for the model's create(), which then fails with -EINVAL.
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

/* A second is slow for anything; ten leave room for a broken disk. */
#define VDISK_MAX_SERVICE_NS	(10ULL * NSEC_PER_SEC)
/* 1 TB/s: more than any bus, and bytes * 10^9 / bps is far from overflow. */
#define VDISK_MAX_BPS		1000000000000ULL

struct vdisk;

/* A directory of a disk. */
struct vdisk_item {
	struct config_group group;	/* configfs's side */
	struct config_group flash;	/* default group "flash" */
	struct config_group disk;	/* default group "disk" */
	struct config_group volume;	/* default group "volume" */
	struct config_group fault;	/* default group "fault" */
	struct mutex mutex;		/* lock of the rest, and of power */
	struct vdisk_params params;	/* parameters that are set */
	struct vdisk *vdisk;		/* disk, NULL while the power is off */
};

/* What a number may be. */
struct vdisk_range {
	u64 min;		/* least */
	u64 max;		/* greatest */
	u32 multiple_of;	/* power of 2 it is a multiple of; 0 = any */
	bool power_of_2;	/* whether it is a power of 2 */
	bool live;		/* whether it may change under power */
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
 * VDISK_NUMBER() - vdisk_attr_@name, an attribute that is a number
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
 * VDISK_CHOICE() - vdisk_attr_@name, an attribute that is one of some words
 * @name: name that the user sees
 * @field: field of struct vdisk_params, for the number of the word, from 0
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
