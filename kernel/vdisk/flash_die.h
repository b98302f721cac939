/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The dies of a flash disk and the channels between them and the controller
 * (flash_die.c).
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FLASH_DIE_H
#define ISOBLK_VDISK_FLASH_DIE_H

#include <linux/types.h>

#include "flash_buffer.h"
#include "link.h"
#include "model.h"

struct flash;

/*
 * Reads in the dies' queues, for each die. Further reads wait at the
 * controller, whose slots all dies share.
 */
#define FLASH_READS_PER_DIE	64

/* The operation of a die. */
enum flash_state {
	FLASH_IDLE,		/* no operation */
	FLASH_SENSE,		/* senses for the host */
	FLASH_TRANSFER,		/* transfers sensed data over its channel */
	FLASH_PROGRAM,		/* receives data and programs them */
	FLASH_GC_SENSE,		/* senses for garbage collection */
	FLASH_GC_TRANSFER,	/* transfers for garbage collection */
	FLASH_GC_PROGRAM,	/* programs for garbage collection */
	FLASH_ERASE,		/* erases a block */
};

/* A unit that is read from a die for the host, or ahead. */
struct flash_read {
	struct vdisk_cmd *cmd;	/* command of the read, NULL for read-ahead */
	u32 ahead_slot;		/* slot for read-ahead (flash_ahead.h) */
	u32 unit;		/* number of the unit, on the die */
	u32 next;		/* next read of a queue, a transfer, or the free list */
};

/* The slots for reads in the dies' queues. */
struct flash_reads {
	struct flash_read *slots; /* FLASH_READS_PER_DIE for each die */
	u32 first_free;		/* first free slot, or FLASH_NIL */
};

/* The current operation of a die, and sums of earlier ones. */
struct flash_op {
	enum flash_state state;	/* kind of the operation */
	u32 first;		/* first read, or first entry of the buffer */
	u32 nr_units;		/* number of units, also in collection */
	u64 start_ns;		/* time of its start, ns */
	u64 nr_started;		/* operations ever started */
	u64 seed;		/* seed of the jitter; constant */
	u64 busy_ns;		/* time of all operations that have ended, ns */
};

/* A die. */
struct flash_die {
	struct flash_op op;	/* current operation */
	bool kicked;		/* whether it is on the list of kicked dies */
	u32 latched_row;	/* row in its registers, or FLASH_NIL */
	u32 read_streak;	/* reads since the last other operation */
	u32 first_read;		/* first read of its queue, or FLASH_NIL */
	u32 last_read;		/* last read of its queue, if there is a first */
	struct flash_dirty dirty; /* queue of entries to program */
};

/* All dies. */
struct flash_dies {
	struct flash_die *dies;	/* the dies; unit u of the disk is on u % @nr */
	u32 nr;			/* number of dies; constant */
	u32 row_units;		/* units of a row; constant */
	struct vdisk_link *channels; /* channels; die n has n % channels */
	struct flash_reads reads; /* slots for reads */
	u32 *kicked;		/* idle dies that may have an operation to start */
	u32 nr_kicked;		/* number of kicked dies */
	u32 nr_busy;		/* number of dies that are not idle */
	u32 nr_programming;	/* number of dies that program for the host */
	u64 service_ns_sum;	/* sum of ends minus starts, ns (fixed.c) */
};

int flash_dies_init(struct flash_dies *dies, u32 nr, u32 row, u32 channels,
		    u64 seed);
void flash_dies_destroy(struct flash_dies *dies);
void flash_die_kick(struct flash_dies *dies, u32 nr);
bool flash_die_queue_read(struct flash_dies *dies, struct vdisk_cmd *cmd,
			  u32 ahead, u32 nr, u32 unit);
void flash_dies_start_next(struct flash *flash, u64 at);
void flash_die_handle_event(struct flash *flash, u32 nr, u64 at);

#endif /* ISOBLK_VDISK_FLASH_DIE_H */
