// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loss of dm-setcache's SSD: state change, and dropping of clean blocks.
 *
 * Clean blocks are dropped, for the SSD may hold other data when it comes back.
 * A clean block that a request uses stays, and is not read: the request finds
 * out about the loss when it ends. Dirty blocks stay in memory, so that a
 * request for one gets an error, and not the origin's older data.
 */
#include "setcache.h"
#include "setcache-loss.h"

/* Enter the state lost. */
void sc_lose_ssd(struct setcache *sc)
{
	if (!sc_phase_move(sc, SC_EVENT_LOSE))
		return;
	DMERR("%s: the SSD is lost; %ld dirty blocks are out of reach",
	      sc_device_name(sc), atomic_long_read(&sc->index.nr_dirty));
	queue_work(sc->wq.common, &sc->lost_work);
}

/* Drop clean blocks after the loss of the SSD. */
void sc_lost_work(struct work_struct *work)
{
	struct setcache *sc = container_of(work, struct setcache, lost_work);
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket;
	u32 set;
	u16 slot;

	for (set = 0; set < index->geo.nr_sets; set++) {
		bucket = sc_get_bucket(index, set);
		spin_lock_irq(&bucket->lock);
		for (slot = 0; slot < index->geo.assoc; slot++)
			if (sc_get_slot_state(index, set, slot) ==
				    SC_SLOT_CLEAN &&
			    !sc_block_is_busy(index, set,
					      sc_get_slot_id(index, set, slot),
					      NULL))
				sc_remove_block(index, set, slot);
		spin_unlock_irq(&bucket->lock);
		cond_resched();
	}
}
