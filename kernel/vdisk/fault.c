// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults: which commands fail on bad ranges, and which command triggers a
 * fault. config_fault.c sets faults; disk.c applies them.
 */
#include <linux/compiler.h>
#include <linux/spinlock.h>

#include "fault.h"
#include "model.h"

/**
 * vdisk_medium_init - initialize a medium without bad ranges
 * @medium: the medium
 */
void vdisk_medium_init(struct vdisk_medium *medium)
{
	spin_lock_init(&medium->lock);
	medium->trip = VDISK_NO_TRIP;
}

/**
 * vdisk_medium_bad - return whether a command touches a bad range
 * @medium: the medium
 * @cmd: the command; only reads and writes touch the medium
 *
 * Context: queue_rq().
 * Return: whether it fails.
 */
bool vdisk_medium_bad(struct vdisk_medium *medium, const struct vdisk_cmd *cmd)
{
	bool bad = false;
	u32 i;

	/* Only commands that come after the range was set have to fail. */
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
 * vdisk_medium_trip - return the fault that a command triggers
 * @medium: the medium
 * @cmd: the command; all but reads count as writes
 *
 * Context: queue_rq(), once for each command.
 * Return: the fault, or VDISK_NO_TRIP.
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
