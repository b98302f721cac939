// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loss of the SSD of dm-setcache, and what becomes of memory then.
 *
 * What is clean is dropped, for nobody knows what the SSD will hold when it is
 * back. Where somebody is at work the block stays, and is not looked at: who
 * has lost the SSD in the middle of a request finds out when it ends. What is
 * dirty stays, so that who asks for it gets an error, and not what is older.
 */
#include "setcache.h"
#include "setcache-loss.h"

/* Lose the SSD, which is gone. */
void sc_lose(struct setcache *sc)
{
	if (!sc_phase_move(sc, SC_EVENT_LOSE))
		return;
	DMERR("%s: the SSD is lost; %ld dirty blocks are out of reach",
	      sc_device(sc),
	      atomic_long_read(&sc->index.nr_dirty));
	queue_work(sc->wq.common, &sc->lost_work);
}

/* Drop what is clean, for the SSD is lost. */
void sc_lost_work(struct work_struct *work)
{
	struct setcache *sc = container_of(work, struct setcache, lost_work);
	struct sc_index *index = &sc->index;
	struct sc_bucket *bucket;
	u32 set;
	u16 slot;

	for (set = 0; set < index->geo.sets; set++) {
		bucket = sc_bucket(index, set);
		spin_lock_irq(&bucket->lock);
		for (slot = 0; slot < index->geo.assoc; slot++)
			if (sc_state(index, set, slot) == SC_SLOT_CLEAN &&
			    !sc_slot_busy(index, set, sc_id(index, set, slot),
					  NULL))
				sc_remove(index, set, slot);
		spin_unlock_irq(&bucket->lock);
		cond_resched();
	}
}
