// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which commands fail on a bad medium, and which one makes something happen.
 * Who sets that is in config_fault.c, what follows from it in disk.c.
 */
#include <linux/compiler.h>
#include <linux/spinlock.h>

#include "fault.h"
#include "model.h"

/**
 * vdisk_medium_init - make a medium that is good everywhere
 * @medium: the medium
 */
void vdisk_medium_init(struct vdisk_medium *medium)
{
	spin_lock_init(&medium->lock);
	medium->trip = VDISK_NO_TRIP;
}

/**
 * vdisk_medium_bad - does a command touch what is bad?
 * @medium: the medium
 * @cmd: a read or write; no other command touches anything
 *
 * Context: of queue_rq().
 * Return: whether it fails.
 */
bool vdisk_medium_bad(struct vdisk_medium *medium, const struct vdisk_cmd *cmd)
{
	bool bad = false;
	u32 i;

	/* What fails is what comes after the range was given. */
	if (!READ_ONCE(medium->count))
		return false;

	spin_lock(&medium->lock);
	for (i = 0; i < medium->count && !bad; i++) {
		struct vdisk_bad_range *range = &medium->ranges[i];

		bad = cmd->pos < range->end &&
		      cmd->pos + cmd->bytes > range->start &&
		      ((range->read && cmd->op == VDISK_READ) ||
		       (range->write && cmd->op == VDISK_WRITE));
	}
	spin_unlock(&medium->lock);
	return bad;
}

/**
 * vdisk_medium_trip - does a command do what was to happen at a write?
 * @medium: the medium
 * @cmd: counts if it changes the disk, so a flush does, too
 *
 * Context: of queue_rq(), once for each command.
 * Return: what happens now, or VDISK_NO_TRIP.
 */
enum vdisk_trip vdisk_medium_trip(struct vdisk_medium *medium,
				  const struct vdisk_cmd *cmd)
{
	enum vdisk_trip trip;

	if (READ_ONCE(medium->trip) == VDISK_NO_TRIP || cmd->op == VDISK_READ)
		return VDISK_NO_TRIP;

	spin_lock(&medium->lock);
	trip = medium->trip;
	if (medium->writes_left > 1) {
		medium->writes_left--;
		trip = VDISK_NO_TRIP;
	} else if (medium->writes_left) {
		medium->writes_left = 0;
	} else if (trip != VDISK_TRIP_ERRORS) {
		trip = VDISK_NO_TRIP;
	}
	spin_unlock(&medium->lock);
	return trip;
}
