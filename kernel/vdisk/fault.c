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
	medium->fault = VDISK_FAULT_NONE;
}

/**
 * vdisk_medium_is_bad - return whether a command touches a bad range
 * @medium: the medium
 * @cmd: the command; only reads and writes touch the medium
 *
 * Context: queue_rq().
 * Return: whether it fails.
 */
bool vdisk_medium_is_bad(struct vdisk_medium *medium,
			 const struct vdisk_cmd *cmd)
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
 * vdisk_medium_take_fault - return the fault that a command triggers
 * @medium: the medium
 * @cmd: the command; all but reads count as writes
 *
 * Context: queue_rq(), once for each command.
 * Return: the fault, or VDISK_FAULT_NONE.
 */
enum vdisk_fault vdisk_medium_take_fault(struct vdisk_medium *medium,
					 const struct vdisk_cmd *cmd)
{
	enum vdisk_fault fault;

	if (READ_ONCE(medium->fault) == VDISK_FAULT_NONE ||
	    cmd->op == VDISK_READ)
		return VDISK_FAULT_NONE;

	spin_lock(&medium->lock);
	fault = medium->fault;
	if (medium->writes_left > 1) {
		medium->writes_left--;
		fault = VDISK_FAULT_NONE;
	} else if (medium->writes_left) {
		medium->writes_left = 0;
	} else if (fault != VDISK_FAULT_ERRORS) {
		fault = VDISK_FAULT_NONE;
	}
	spin_unlock(&medium->lock);
	return fault;
}
