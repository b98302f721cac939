// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a disk: ok, lost or without power.
 *
 * A disk that is gone, lost or cut, fails new requests at once. Requests in
 * flight still pass through the model, whose time does not stop, and fail when
 * they end. A request records the disk's outages when it is queued: an odd
 * number means that the disk is gone, and a different number at its end means
 * that the disk was gone in between. A disk may also go at a chosen write: it
 * goes after the write has been queued, so the write is in flight.
 */
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "disk.h"
#include "fault.h"
#include "store.h"
#include "vdisk.h"

/* All disks that are on. A disk's lock nests inside this lock. */
static LIST_HEAD(vdisk_disks);
static DEFINE_SPINLOCK(vdisk_disks_lock);

/* Apply a power cut to the contents. */
static void vdisk_cut_work(struct work_struct *work)
{
	struct vdisk *vdisk = container_of(work, struct vdisk, cut_work);

	vdisk_store_apply_cut(vdisk->store);
}

/*
 * Make a disk lost or cut, at once, from any state; if @if_ok only from ok. The
 * work of a cut may still be pending on return.
 */
static void vdisk_enter_state(struct vdisk *vdisk, enum vdisk_state state,
			      bool if_ok)
{
	unsigned long flags;

	spin_lock_irqsave(&vdisk->lock, flags);
	if (vdisk->state == state ||
	    (if_ok && vdisk->state != VDISK_STATE_OK))
		goto unlock;

	/* The disk is gone before its contents change. */
	if (vdisk->state == VDISK_STATE_OK)
		WRITE_ONCE(vdisk->outages, vdisk->outages + 1);
	WRITE_ONCE(vdisk->state, state);
	if (vdisk->store && state == VDISK_STATE_CUT) {
		vdisk_store_begin_cut(vdisk->store);
		schedule_work(&vdisk->cut_work);
	}
unlock:
	spin_unlock_irqrestore(&vdisk->lock, flags);
}

/* Trigger the fault of a write that has been queued. */
void vdisk_apply_fault(struct vdisk *vdisk, enum vdisk_fault fault)
{
	unsigned long flags;

	switch (fault) {
	case VDISK_FAULT_LOST:
		vdisk_enter_state(vdisk, VDISK_STATE_LOST, true);
		break;
	case VDISK_FAULT_CUT:
		vdisk_enter_state(vdisk, VDISK_STATE_CUT, true);
		break;
	case VDISK_FAULT_CUT_ALL:
		spin_lock_irqsave(&vdisk_disks_lock, flags);
		list_for_each_entry(vdisk, &vdisk_disks, link)
			vdisk_enter_state(vdisk, VDISK_STATE_CUT, true);
		spin_unlock_irqrestore(&vdisk_disks_lock, flags);
		break;
	default:
		break;
	}
}

/* Initialize the state of a new disk. */
void vdisk_state_init(struct vdisk *vdisk)
{
	INIT_WORK(&vdisk->cut_work, vdisk_cut_work);
}

/* Add a disk to the list of disks that VDISK_FAULT_CUT_ALL affects. */
void vdisk_state_add(struct vdisk *vdisk)
{
	spin_lock_irq(&vdisk_disks_lock);
	list_add_tail(&vdisk->link, &vdisk_disks);
	spin_unlock_irq(&vdisk_disks_lock);
}

/* Remove a disk from that list. */
void vdisk_state_del(struct vdisk *vdisk)
{
	spin_lock_irq(&vdisk_disks_lock);
	list_del(&vdisk->link);
	spin_unlock_irq(&vdisk_disks_lock);
}

/* Wait for the work of a cut. No request is left that could trigger another. */
void vdisk_state_destroy(struct vdisk *vdisk)
{
	flush_work(&vdisk->cut_work);
}

/**
 * vdisk_get_state - return the state of a disk
 * @vdisk: the disk
 *
 * Return: its state.
 */
enum vdisk_state vdisk_get_state(const struct vdisk *vdisk)
{
	return READ_ONCE(vdisk->state);
}

/**
 * vdisk_set_state - change the state of a disk
 * @vdisk: the disk
 * @state: its state from now on
 *
 * Context: may sleep. The caller serializes the calls.
 */
void vdisk_set_state(struct vdisk *vdisk, enum vdisk_state state)
{
	if (state != VDISK_STATE_OK) {
		vdisk_enter_state(vdisk, state, false);
		flush_work(&vdisk->cut_work);
		return;
	}
	if (vdisk_get_state(vdisk) == VDISK_STATE_OK)
		return;

	/* While gone, no fault triggers. Return to ok after the cut's work. */
	flush_work(&vdisk->cut_work);
	if (vdisk->store)
		vdisk_store_restore_power(vdisk->store);
	spin_lock_irq(&vdisk->lock);
	WRITE_ONCE(vdisk->outages, vdisk->outages + 1);
	WRITE_ONCE(vdisk->state, VDISK_STATE_OK);
	spin_unlock_irq(&vdisk->lock);
}
