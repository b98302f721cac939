/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether dm-setcache's SSD is available. setcache-state.c has the table of
 * moves, and the locking rule.
 */
#ifndef SETCACHE_STATE_H
#define SETCACHE_STATE_H

#include <linux/types.h>

struct setcache;

/* Phases of a table. From lost on there is no SSD. */
enum sc_phase {
	SC_PHASE_NEW,
	SC_PHASE_LIVE,
	SC_PHASE_STOPPED,
	SC_PHASE_LOST,
	SC_PHASE_REPORTED,
	SC_NR_PHASES,
};

/* Events that move a table from a phase to another. */
enum sc_event {
	SC_EVENT_READ,
	SC_EVENT_LOAD,
	SC_EVENT_RESUME,
	SC_EVENT_STOP,
	SC_EVENT_LOSE,
	SC_EVENT_REPORT,
	SC_NR_EVENTS,
};

/* What may be acknowledged, but not stable on the SSD. */
struct sc_unsafe {
	bool data;	/* data of dirty blocks, in the SSD's volatile cache */
	bool records;	/* records of dirty blocks, not yet written */
};

/* Any context. */
bool sc_phase_move(struct setcache *sc, enum sc_event event);
bool sc_is_unsafe(struct setcache *sc);
void sc_set_unsafe_data(struct setcache *sc);
void sc_set_unsafe_records(struct setcache *sc);

/* Commit worker. */
struct sc_unsafe sc_take_unsafe(struct setcache *sc);
void sc_put_unsafe(struct setcache *sc, struct sc_unsafe unsafe);
bool sc_must_report_loss(struct setcache *sc, bool failed);

/* The table is suspended. */
void sc_phase_begin_read(struct setcache *sc);
void sc_phase_end_read(struct setcache *sc);
void sc_phase_end_stop(struct setcache *sc);

#endif /* SETCACHE_STATE_H */
