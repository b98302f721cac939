// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether dm-setcache has its SSD: the phases of a table.
 *
 *	new	memory says nothing yet
 *	live	memory is what holds, and the SSD follows
 *	stopped	suspended in order: the SSD says all that memory does
 *	lost	the SSD is out of reach; what is dirty is only there
 *	told	lost, and a flush has failed for what went with it
 *
 *	from		when					to
 *	new		resumed, and the SSD was read		live
 *	live		suspended				stopped
 *	live		suspended, and the SSD failed		lost
 *	live		the SSD is gone				lost
 *	stopped		resumed					live
 *	lost		a flush fails				told
 *	lost, told	resumed, and the SSD was read		live
 *	lost, told	resumed, the SSD read in part		new
 *
 * Who is stopped and resumed is read from the SSD again if the origin was written
 * to meanwhile. Nothing else changes the phase: who cannot resume stays what he
 * was. Live and lost are left under suspension, but for the loss itself, which
 * comes at any time. If the origin fails while a table is suspended it stays live:
 * the SSD is not called clean, and all that is dirty is there.
 *
 * Three facts stand beside it. Unflushed: data that were acknowledged may be in
 * the SSD's own cache. Marked: so may be what records are to say of them. Owing:
 * the SSD has come back from a loss without what was acknowledged, maybe, and
 * nobody was told: the next flush fails, once.
 */
#include "setcache.h"

/*
 * The SSD is gone. What is clean is dropped, for nobody knows what it will hold
 * when it is back; where somebody is at work it stays, and is not looked at.
 */
void sc_lose(struct setcache *sc)
{
	if (cmpxchg(&sc->phase, SC_PHASE_LIVE, SC_PHASE_LOST) != SC_PHASE_LIVE)
		return;
	DMERR("%s: the SSD is lost; %ld dirty blocks are out of reach",
	      dm_table_device_name(sc->ti->table),
	      atomic_long_read(&sc->index.nr_dirty));
	queue_work(sc->wq, &sc->lost_work);
}

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

/* A flush fails for what went with the SSD, or is still to fail for it. */
bool sc_must_tell(struct setcache *sc, bool failed)
{
	if (failed) {
		cmpxchg(&sc->phase, SC_PHASE_LOST, SC_PHASE_TOLD);
		return true;
	}
	return xchg(&sc->owing, false);
}

/* Something acknowledged is not on the SSD, or not known to be. */
bool sc_is_unflushed(struct setcache *sc)
{
	return READ_ONCE(sc->unflushed) || READ_ONCE(sc->marked);
}

/* Dirty data were written, and will be acknowledged. */
void sc_set_unflushed(struct setcache *sc)
{
	if (!READ_ONCE(sc->unflushed))
		WRITE_ONCE(sc->unflushed, true);
}

/* Memory is about to become what the SSD says. */
void sc_forget(struct setcache *sc)
{
	if (sc->phase == SC_PHASE_LOST && sc_is_unflushed(sc))
		sc->owing = true;
	WRITE_ONCE(sc->phase, SC_PHASE_NEW);
}
