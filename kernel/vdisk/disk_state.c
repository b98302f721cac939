// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a disk is there, lost or without power.
 *
 * A disk that is not there (fault.c) refuses what comes, at once. What it holds
 * goes through the model all the same, for the model's time does not stop, and
 * fails when it ends. To tell, a request remembers how often the disk had gone
 * and come when it was queued: an odd number says that it is gone, and another
 * one at the end says that it was. The disk may also go by itself, at a write:
 * it is gone once that has been queued, and so the write is in flight.
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

/* All disks that are on. The lock is taken before that of a disk. */
static LIST_HEAD(vdisk_disks);
static DEFINE_SPINLOCK(vdisk_disks_lock);

/* Do to the contents what the power cut has decided. */
static void vdisk_cut_work(struct work_struct *work)
{
	struct vdisk *vdisk = container_of(work, struct vdisk, cut_work);

	vdisk_store_cut(vdisk->store);
}

/*
 * Let a disk be lost or cut, at once, whatever it was; or only if it was there.
 * The work that a cut leaves goes on.
 */
static void vdisk_go(struct vdisk *vdisk, enum vdisk_state state, bool if_ok)
{
	unsigned long flags;

	spin_lock_irqsave(&vdisk->lock, flags);
	if (vdisk->state == state ||
	    (if_ok && vdisk->state != VDISK_STATE_OK))
		goto unlock;

	/* Gone before it loses anything. */
	if (vdisk->state == VDISK_STATE_OK)
		WRITE_ONCE(vdisk->outages, vdisk->outages + 1);
	WRITE_ONCE(vdisk->state, state);
	if (vdisk->store && state == VDISK_STATE_CUT) {
		vdisk_store_stop(vdisk->store);
		schedule_work(&vdisk->cut_work);
	}
unlock:
	spin_unlock_irqrestore(&vdisk->lock, flags);
}

/* Do what happens at a write that has been queued. */
void vdisk_trip(struct vdisk *vdisk, enum vdisk_trip trip)
{
	unsigned long flags;

	switch (trip) {
	case VDISK_TRIP_LOST:
		vdisk_go(vdisk, VDISK_STATE_LOST, true);
		break;
	case VDISK_TRIP_CUT:
		vdisk_go(vdisk, VDISK_STATE_CUT, true);
		break;
	case VDISK_TRIP_CUT_ALL:
		spin_lock_irqsave(&vdisk_disks_lock, flags);
		list_for_each_entry(vdisk, &vdisk_disks, link)
			vdisk_go(vdisk, VDISK_STATE_CUT, true);
		spin_unlock_irqrestore(&vdisk_disks_lock, flags);
		break;
	default:
		break;
	}
}

/* Make a disk that is there, of which nobody else knows yet. */
void vdisk_state_init(struct vdisk *vdisk)
{
	INIT_WORK(&vdisk->cut_work, vdisk_cut_work);
}

/* Put a disk on the list of those that go when all do. */
void vdisk_state_add(struct vdisk *vdisk)
{
	spin_lock_irq(&vdisk_disks_lock);
	list_add_tail(&vdisk->link, &vdisk_disks);
	spin_unlock_irq(&vdisk_disks_lock);
}

/* Take a disk off that list. */
void vdisk_state_del(struct vdisk *vdisk)
{
	spin_lock_irq(&vdisk_disks_lock);
	list_del(&vdisk->link);
	spin_unlock_irq(&vdisk_disks_lock);
}

/* Wait for the work of a disk. No request is there that could make it go. */
void vdisk_state_destroy(struct vdisk *vdisk)
{
	flush_work(&vdisk->cut_work);
}

/**
 * vdisk_get_state - is a disk there?
 * @vdisk: the disk
 *
 * Return: its state.
 */
enum vdisk_state vdisk_get_state(const struct vdisk *vdisk)
{
	return READ_ONCE(vdisk->state);
}

/**
 * vdisk_set_state - let a disk go or come
 * @vdisk: the disk
 * @state: its state from now on
 *
 * Context: may sleep. The caller serializes the calls.
 */
void vdisk_set_state(struct vdisk *vdisk, enum vdisk_state state)
{
	if (state != VDISK_STATE_OK) {
		vdisk_go(vdisk, state, false);
		flush_work(&vdisk->cut_work);
		return;
	}
	if (vdisk_get_state(vdisk) == VDISK_STATE_OK)
		return;

	/* Gone, it does nothing by itself. It is back after all is decided. */
	flush_work(&vdisk->cut_work);
	if (vdisk->store)
		vdisk_store_restore(vdisk->store);
	spin_lock_irq(&vdisk->lock);
	WRITE_ONCE(vdisk->outages, vdisk->outages + 1);
	WRITE_ONCE(vdisk->state, VDISK_STATE_OK);
	spin_unlock_irq(&vdisk->lock);
}
