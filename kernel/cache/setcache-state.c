// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether dm-setcache's SSD is available: one state machine, whose states are
 * the phases of a table. Only sc_phase_move() changes the phase.
 *
 *	new	memory has no valid contents yet
 *	live	memory is authoritative, and commits update the SSD
 *	stopped	suspended in order: the SSD records all of memory
 *	lost	the SSD is out of reach, and dirty blocks with it
 *	reported lost, and a flush has reported the lost data
 *
 *	event	when
 *	read	resumed: memory is about to be loaded from the SSD
 *	load	memory has been loaded from the SSD
 *	resume	resumed: memory still equals the SSD's records
 *	stop	suspended, and the SSD records all of memory
 *	lose	the SSD is gone, or a suspension fails to write it
 *	report	a flush fails
 *
 *	from		read	load	resume	stop	lose	report
 *	new		new	live
 *	live					stopped	lost
 *	stopped		new		live
 *	lost		new					reported
 *	reported	new
 *
 * An event without an entry changes nothing: an SSD is lost once, however many
 * requests detect it. A table whose resumption fails while it loads is new; a
 * table whose metadata cannot be read keeps its phase. If the origin fails
 * while a table is suspended, the table stays live: the SSD does not say clean,
 * and its records show all dirty blocks.
 *
 * Locks. The phase is one word that no lock protects: it moves by compare and
 * exchange. Read, load, resume and stop come from device-mapper while the table
 * is suspended, one at a time. Lose and report come at any time, from any context.
 * While requests go on a reader of the phase may miss the latest move. That does
 * no harm: code that changes slots reads the phase under the lock of their
 * bucket, and after the move the worker of the loss takes the lock of each
 * bucket; and data written to a lost SSD are unsafe, so a later flush fails.
 *
 * Two flags complement the phase. Unsafe: acknowledged data may be in the SSD's
 * volatile cache, or their records not yet written. Must report: the SSD has come
 * back from a loss, maybe without acknowledged data, and no flush has reported
 * that; so the next flush fails, once.
 */
#include "setcache.h"

/* The moves, as above. */
static const struct {
	enum sc_phase from;
	enum sc_event event;
	enum sc_phase to;
} sc_moves[] = {
	{ SC_PHASE_NEW, SC_EVENT_READ, SC_PHASE_NEW },
	{ SC_PHASE_NEW, SC_EVENT_LOAD, SC_PHASE_LIVE },
	{ SC_PHASE_LIVE, SC_EVENT_STOP, SC_PHASE_STOPPED },
	{ SC_PHASE_LIVE, SC_EVENT_LOSE, SC_PHASE_LOST },
	{ SC_PHASE_STOPPED, SC_EVENT_READ, SC_PHASE_NEW },
	{ SC_PHASE_STOPPED, SC_EVENT_RESUME, SC_PHASE_LIVE },
	{ SC_PHASE_LOST, SC_EVENT_READ, SC_PHASE_NEW },
	{ SC_PHASE_LOST, SC_EVENT_REPORT, SC_PHASE_REPORTED },
	{ SC_PHASE_REPORTED, SC_EVENT_READ, SC_PHASE_NEW },
};

/* Find the phase after an event. Return false if the event has no entry. */
static bool sc_find_next_phase(int from, enum sc_event event, int *to)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sc_moves); i++) {
		if (sc_moves[i].from != from || sc_moves[i].event != event)
			continue;
		*to = sc_moves[i].to;
		return true;
	}
	return false;
}

/* Process an event. Return whether the phase has changed. */
bool sc_phase_move(struct setcache *sc, enum sc_event event)
{
	int from = READ_ONCE(sc->state.phase), to;

	do {
		if (!sc_find_next_phase(from, event, &to))
			return false;
	} while (!try_cmpxchg(&sc->state.phase, &from, to));
	return true;
}

/*---------------------------------------------------------------------------*/

/* Return whether acknowledged data or records may not be stable on the SSD. */
bool sc_is_unsafe(struct setcache *sc)
{
	return READ_ONCE(sc->state.unsafe.data) ||
	       READ_ONCE(sc->state.unsafe.records);
}

/* Record that dirty data were written, and will be acknowledged. */
void sc_set_unsafe_data(struct setcache *sc)
{
	if (!READ_ONCE(sc->state.unsafe.data))
		WRITE_ONCE(sc->state.unsafe.data, true);
}

/* Record that a record is to be written that a flush may depend on. */
void sc_set_unsafe_records(struct setcache *sc)
{
	if (!READ_ONCE(sc->state.unsafe.records))
		WRITE_ONCE(sc->state.unsafe.records, true);
}

/*
 * Clear the unsafe flags for a commit that is about to begin. Flags that are
 * set from here on belong to the next commit.
 */
struct sc_unsafe sc_take_unsafe(struct setcache *sc)
{
	struct sc_unsafe unsafe;

	unsafe.data = xchg(&sc->state.unsafe.data, false);
	unsafe.records = xchg(&sc->state.unsafe.records, false);
	return unsafe;
}

/* Restore the unsafe flags after a commit has failed. */
void sc_put_unsafe(struct setcache *sc, struct sc_unsafe unsafe)
{
	if (unsafe.data)
		WRITE_ONCE(sc->state.unsafe.data, true);
	if (unsafe.records)
		WRITE_ONCE(sc->state.unsafe.records, true);
}

/*
 * Return whether a flush fails for data that were lost with the SSD: because
 * its commit has @failed, or because no flush has reported an earlier loss.
 */
bool sc_must_report_loss(struct setcache *sc, bool failed)
{
	if (failed) {
		sc_phase_move(sc, SC_EVENT_REPORT);
		return true;
	}
	return xchg(&sc->state.must_report, false);
}

/*---------------------------------------------------------------------------*/

/* Memory is about to be loaded from the SSD. The table is suspended. */
void sc_phase_begin_read(struct setcache *sc)
{
	if (sc->state.phase == SC_PHASE_LOST && sc_is_unsafe(sc))
		sc->state.must_report = true;
	sc_phase_move(sc, SC_EVENT_READ);
}

/* Memory has been loaded from the SSD. The table is suspended. */
void sc_phase_end_read(struct setcache *sc)
{
	sc->state.unsafe = (struct sc_unsafe){};
	sc_phase_move(sc, SC_EVENT_LOAD);
}

/* The SSD records all of memory. The table is suspended. */
void sc_phase_end_stop(struct setcache *sc)
{
	sc->state.unsafe = (struct sc_unsafe){};
	sc_phase_move(sc, SC_EVENT_STOP);
}
