// SPDX-License-Identifier: GPL-2.0-only
/*
 * The default group "fault": injected faults of a disk that is on.
 *
 * There are two kinds: ranges of the medium are bad, and the disk as a whole is
 * gone, either unplugged ("lost") or without power ("cut"). A fault may also be
 * set for a certain write ("nth_write"): a test that tries each write covers
 * all points of failure. Faults belong to the disk, not to its directory: a new
 * disk has none.
 */
#include <linux/array_size.h>
#include <linux/configfs.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "config.h"
#include "fault.h"
#include "vdisk.h"

static const char * const vdisk_state_names[] = {
	[VDISK_STATE_OK] = "ok",
	[VDISK_STATE_LOST] = "lost",
	[VDISK_STATE_CUT] = "cut",
};

static const char * const vdisk_fault_names[] = {
	[VDISK_FAULT_ERROR] = "error",
	[VDISK_FAULT_ERRORS] = "errors",
	[VDISK_FAULT_LOST] = "lost",
	[VDISK_FAULT_CUT] = "cut",
	[VDISK_FAULT_CUT_ALL] = "cut-all",
};

/* Read "START LENGTH read", or "write" or "readwrite" for the last word. */
static int vdisk_parse_bad_range(char *text, struct vdisk_bad_range *range)
{
	char *start = strsep(&text, " ");
	char *length = strsep(&text, " ");
	u64 bytes;
	int err;

	if (!length || !text)
		return -EINVAL;
	err = vdisk_parse_u64(start, &range->start) ?:
	      vdisk_parse_u64(length, &bytes);
	if (err)
		return err;
	if (!bytes)
		return -ERANGE;
	if (check_add_overflow(range->start, bytes, &range->end))
		return -ERANGE;

	range->read = !strncmp(text, "read", 4);
	range->write = !strcmp(text + (range->read ? 4 : 0), "write");
	if (!range->write && strcmp(text, "read"))
		return -EINVAL;
	return 0;
}

static ssize_t vdisk_errors_show(struct config_item *item, char *page)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	struct vdisk_medium *medium;
	int len = 0;
	u32 i;

	mutex_lock(&vi->mutex);
	if (vi->vdisk) {
		medium = vdisk_get_medium(vi->vdisk);
		spin_lock(&medium->lock);
		for (i = 0; i < medium->count; i++) {
			struct vdisk_bad_range *range = &medium->ranges[i];

			len += sysfs_emit_at(page, len, "%llu %llu %s%s\n",
					     range->start,
					     range->end - range->start,
					     range->read ? "read" : "",
					     range->write ? "write" : "");
		}
		spin_unlock(&medium->lock);
	}
	mutex_unlock(&vi->mutex);
	return len;
}

static int vdisk_add_bad_range(struct vdisk_medium *medium,
			       const struct vdisk_bad_range *range)
{
	int err = 0;

	spin_lock(&medium->lock);
	if (medium->count < VDISK_BAD_RANGES_MAX) {
		medium->ranges[medium->count] = *range;
		WRITE_ONCE(medium->count, medium->count + 1);
	} else {
		err = -ENOSPC;
	}
	spin_unlock(&medium->lock);
	return err;
}

static ssize_t vdisk_errors_store(struct config_item *item, const char *page,
				  size_t count)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	struct vdisk_bad_range range = { };
	/* Two numbers, a word and two separators. */
	char text[64];
	bool none = sysfs_streq(page, "none");
	int err = 0;

	if (!none) {
		if (strscpy(text, page) < 0)
			return -EINVAL;
		err = vdisk_parse_bad_range(strim(text), &range);
		if (err)
			return err;
	}

	mutex_lock(&vi->mutex);
	if (!vi->vdisk) {
		err = -ENODEV;
	} else if (none) {
		struct vdisk_medium *medium = vdisk_get_medium(vi->vdisk);

		spin_lock(&medium->lock);
		WRITE_ONCE(medium->count, 0);
		spin_unlock(&medium->lock);
	} else {
		err = vdisk_add_bad_range(vdisk_get_medium(vi->vdisk), &range);
	}
	mutex_unlock(&vi->mutex);
	return err ?: count;
}

CONFIGFS_ATTR(vdisk_, errors);

static ssize_t vdisk_nth_write_show(struct config_item *item, char *page)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	enum vdisk_fault fault = VDISK_FAULT_NONE;
	struct vdisk_medium *medium;
	u64 left = 0;

	mutex_lock(&vi->mutex);
	if (vi->vdisk) {
		medium = vdisk_get_medium(vi->vdisk);
		spin_lock(&medium->lock);
		fault = medium->fault;
		left = medium->writes_left;
		spin_unlock(&medium->lock);
	}
	mutex_unlock(&vi->mutex);
	if (fault == VDISK_FAULT_NONE)
		return sysfs_emit(page, "none\n");
	return sysfs_emit(page, "%llu %s\n", left, vdisk_fault_names[fault]);
}

/* Read "N WHAT", or "none". */
static int vdisk_parse_fault(char *text, u64 *left, enum vdisk_fault *fault)
{
	char *number = strsep(&text, " ");
	int err, what;

	*left = 0;
	*fault = VDISK_FAULT_NONE;
	if (!text)
		return strcmp(number, "none") ? -EINVAL : 0;
	err = vdisk_parse_u64(number, left);
	if (err)
		return err;
	what = match_string(vdisk_fault_names, VDISK_NR_FAULTS, text);
	if (what < 0)
		return what;
	*fault = what;
	return *left ? 0 : -ERANGE;
}

static ssize_t vdisk_nth_write_store(struct config_item *item,
				     const char *page, size_t count)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	struct vdisk_medium *medium;
	enum vdisk_fault fault;
	/* A number and a word. */
	char text[32];
	int err = 0;
	u64 left;

	if (strscpy(text, page) < 0)
		return -EINVAL;
	err = vdisk_parse_fault(strim(text), &left, &fault);
	if (err)
		return err;

	mutex_lock(&vi->mutex);
	if (vi->vdisk) {
		medium = vdisk_get_medium(vi->vdisk);
		spin_lock(&medium->lock);
		WRITE_ONCE(medium->fault, fault);
		medium->writes_left = left;
		spin_unlock(&medium->lock);
	} else {
		err = -ENODEV;
	}
	mutex_unlock(&vi->mutex);
	return err ?: count;
}

CONFIGFS_ATTR(vdisk_, nth_write);

static ssize_t vdisk_state_show(struct config_item *item, char *page)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	enum vdisk_state state = VDISK_STATE_OK;

	mutex_lock(&vi->mutex);
	if (vi->vdisk)
		state = vdisk_get_state(vi->vdisk);
	mutex_unlock(&vi->mutex);
	return sysfs_emit(page, "%s\n", vdisk_state_names[state]);
}

static ssize_t vdisk_state_store(struct config_item *item, const char *page,
				 size_t count)
{
	struct vdisk_item *vi = to_vdisk_item(item);
	int state;
	int err = 0;

	state = __sysfs_match_string(vdisk_state_names,
				     ARRAY_SIZE(vdisk_state_names), page);
	if (state < 0)
		return state;

	mutex_lock(&vi->mutex);
	if (vi->vdisk)
		vdisk_set_state(vi->vdisk, state);
	else
		err = -ENODEV;
	mutex_unlock(&vi->mutex);
	return err ?: count;
}

CONFIGFS_ATTR(vdisk_, state);

static struct configfs_attribute *vdisk_fault_attrs[] = {
	&vdisk_attr_errors,
	&vdisk_attr_nth_write,
	&vdisk_attr_state,
	NULL,
};

const struct config_item_type vdisk_fault_type = {
	.ct_attrs = vdisk_fault_attrs,
	.ct_owner = THIS_MODULE,
};
