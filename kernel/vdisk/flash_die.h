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
 * Reads that dies hold at once, for each die. More wait at the controller: it
 * has as many slots.
 */
#define FLASH_READS_A_DIE	64

/* What a die is doing. */
enum flash_state {
	FLASH_IDLE,		/* nothing */
	FLASH_SENSE,		/* reads for the host */
	FLASH_TRANSFER,		/* gives what it has read to its channel */
	FLASH_PROGRAM,		/* gets data and programs them */
	FLASH_GC_SENSE,		/* reads for garbage collection */
	FLASH_GC_TRANSFER,	/* gives that to its channel */
	FLASH_GC_PROGRAM,	/* programs for garbage collection */
	FLASH_ERASE,		/* erases a block */
};

/* A unit that is read from a die for the host, or ahead. */
struct flash_read {
	struct vdisk_cmd *cmd;	/* command that wants it, NULL if none does */
	u32 ahead;		/* then, the slot for it (flash_ahead.h) */
	u32 unit;		/* number of the unit, on the die */
	u32 next;		/* next one in a queue, a transfer, or free */
};

/* The slots for reads that dies hold. */
struct flash_reads {
	struct flash_read *slot; /* FLASH_READS_A_DIE for each die */
	u32 free;		/* first free slot, or FLASH_NIL */
};

/* The operation that a die is at, and those it was at. */
struct flash_op {
	enum flash_state state;	/* kind of the operation */
	u32 first;		/* its first read or entry of the buffer */
	u32 count;		/* number of these, also in collection */
	u64 since;		/* time of its start, ns */
	u64 number;		/* operations ever started */
	u64 seed;		/* seed of the jitter; constant */
	u64 busy_ns;		/* length of all operations that have ended */
};

/* A die. */
struct flash_die {
	struct flash_op op;	/* operation that it is at */
	bool kicked;		/* whether it is on the list of kicked dies */
	u32 latched;		/* row in its registers, or FLASH_NIL */
	u32 streak;		/* reads since the last other operation */
	u32 reads;		/* first read of its queue, or FLASH_NIL */
	u32 reads_tail;		/* last read of it, if there is a first */
	struct flash_dirty dirty; /* queue of what it has to program */
};

/* All dies. */
struct flash_dies {
	struct flash_die *die;	/* the dies; unit u of the disk is on u % @nr */
	u32 nr;			/* number of dies; constant */
	u32 row;		/* units of a row; constant */
	struct vdisk_link *channel; /* channels; die n has n % channels */
	struct flash_reads reads; /* what the host reads from them */
	u32 *kicked;		/* idle dies that may have something to do */
	u32 nr_kicked;		/* number of these */
	u32 busy;		/* number of dies at an operation */
	u32 programming;	/* number of dies that program for the host */
	u64 held_ns;		/* ends minus starts of operations (fixed.c) */
};

int flash_dies_init(struct flash_dies *dies, u32 nr, u32 row, u32 channels,
		    u64 seed);
void flash_dies_destroy(struct flash_dies *dies);
void flash_kick(struct flash_dies *dies, u32 nr);
bool flash_die_read(struct flash_dies *dies, struct vdisk_cmd *cmd, u32 ahead,
		    u32 nr, u32 unit);
void flash_dies_next(struct flash *flash, u64 at);
void flash_die_event(struct flash *flash, u32 nr, u64 at);

#endif /* ISOBLK_VDISK_FLASH_DIE_H */
