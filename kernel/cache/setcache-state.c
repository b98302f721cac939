// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether dm-setcache has its SSD: one state machine, whose states are the
 * phases of a table, and whose moves are made by sc_phase_move() alone.
 *
 *	new	memory says nothing yet
 *	live	memory is what holds, and the SSD follows
 *	stopped	suspended in order: the SSD says all that memory does
 *	lost	the SSD is out of reach; what is dirty is only there
 *	told	lost, and a flush has failed for what went with it
 *
 *	event	when
 *	read	resumed: memory is about to become what the SSD says
 *	load	it has become that
 *	resume	resumed: memory still is what the SSD says
 *	stop	suspended, and the SSD says all that memory does
 *	lose	the SSD is gone, or has failed at a suspension
 *	tell	a flush fails
 *
 *	from		read	load	resume	stop	lose	tell
 *	new		new	live
 *	live					stopped	lost
 *	stopped		new		live
 *	lost		new					told
 *	told		new
 *
 * An event that has no entry there changes nothing: an SSD is lost once,
 * however many requests find out. A table whose resumption has failed half way
 * is new; one that could not even be read stays what it was. If the origin
 * fails while a table is suspended, it stays live: the SSD is not called clean,
 * and all that is dirty is there.
 *
 * Locks. The phase is one word, and no lock protects it: it moves by compare
 * and exchange. Read, load, resume and stop come from device-mapper while the
 * table is suspended, one at a time. Lose and tell come at any time, from any
 * context. Who reads the phase while requests go on may be late by a move. That
 * does no harm: who changes slots reads it under the lock of their bucket,
 * which the worker of the loss takes after the move, for each bucket; and what
 * is written to a lost SSD is unsafe, so a flush behind it fails.
 *
 * Two facts stand beside the phase. Unsafe: what was acknowledged and may not
 * be on the SSD for good, that is data in its volatile cache, or what records
 * are to say of them. Owing: the SSD has come back from a loss without that,
 * maybe, and nobody was told; so the next flush fails, once.
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
	{ SC_PHASE_LOST, SC_EVENT_TELL, SC_PHASE_TOLD },
	{ SC_PHASE_TOLD, SC_EVENT_READ, SC_PHASE_NEW },
};

/* Give the phase that follows, or the same if the event has no entry. */
static bool sc_phase_after(int from, enum sc_event event, int *to)
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

/* Tell the machine what has happened. Return whether the table has moved. */
bool sc_phase_move(struct setcache *sc, enum sc_event event)
{
	int from = READ_ONCE(sc->state.phase), to;

	do {
		if (!sc_phase_after(from, event, &to))
			return false;
	} while (!try_cmpxchg(&sc->state.phase, &from, to));
	return true;
}

/*---------------------------------------------------------------------------*/

/* Return whether something acknowledged may not be on the SSD for good. */
bool sc_is_unsafe(struct setcache *sc)
{
	return READ_ONCE(sc->state.unsafe.data) ||
	       READ_ONCE(sc->state.unsafe.records);
}

/* Note that dirty data were written, and will be acknowledged. */
void sc_set_unsafe_data(struct setcache *sc)
{
	if (!READ_ONCE(sc->state.unsafe.data))
		WRITE_ONCE(sc->state.unsafe.data, true);
}

/* Note that a record is to be written that somebody may wait for. */
void sc_set_unsafe_records(struct setcache *sc)
{
	if (!READ_ONCE(sc->state.unsafe.records))
		WRITE_ONCE(sc->state.unsafe.records, true);
}

/*
 * Give what is unsafe to a commit that is about to make it safe. What becomes
 * unsafe from here on is the next one's.
 */
struct sc_unsafe sc_take_unsafe(struct setcache *sc)
{
	struct sc_unsafe unsafe;

	unsafe.data = xchg(&sc->state.unsafe.data, false);
	unsafe.records = xchg(&sc->state.unsafe.records, false);
	return unsafe;
}

/* Take back what a commit could not make safe. */
void sc_put_unsafe(struct setcache *sc, struct sc_unsafe unsafe)
{
	if (unsafe.data)
		WRITE_ONCE(sc->state.unsafe.data, true);
	if (unsafe.records)
		WRITE_ONCE(sc->state.unsafe.records, true);
}

/*
 * A flush that waited for the origin as well has ended. Return whether it is to
 * fail for what went with the SSD: now, or because nobody was told before.
 */
bool sc_must_tell(struct setcache *sc, bool failed)
{
	if (failed) {
		sc_phase_move(sc, SC_EVENT_TELL);
		return true;
	}
	return xchg(&sc->state.owing, false);
}

/*---------------------------------------------------------------------------*/

/* Memory is about to become what the SSD says. The table is suspended. */
void sc_begin_read(struct setcache *sc)
{
	if (sc->state.phase == SC_PHASE_LOST && sc_is_unsafe(sc))
		sc->state.owing = true;
	sc_phase_move(sc, SC_EVENT_READ);
}

/* Memory has become what the SSD says. The table is suspended. */
void sc_end_read(struct setcache *sc)
{
	sc->state.unsafe = (struct sc_unsafe){};
	sc_phase_move(sc, SC_EVENT_LOAD);
}

/* The SSD says all that memory does. The table is suspended. */
void sc_end_stop(struct setcache *sc)
{
	sc->state.unsafe = (struct sc_unsafe){};
	sc_phase_move(sc, SC_EVENT_STOP);
}
