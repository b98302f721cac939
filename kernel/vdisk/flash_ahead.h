/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Read-ahead of a flash disk: streams of sequential reads, and units
 * in the controller's memory that these will read next
 * (flash_ahead.c).
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FLASH_AHEAD_H
#define ISOBLK_VDISK_FLASH_AHEAD_H

#include <linux/types.h>

struct flash;
struct vdisk_cmd;

/* Streams that are tracked at a time. */
#define FLASH_NR_STREAMS		16
/* Reads without a hit after which a stream may be replaced. */
#define FLASH_STREAM_MISSES_MIN	64
/* Recent reads outside of streams that a later read may continue. */
#define FLASH_NR_RECENT		32

/* States of a slot. */
enum flash_ahead_state {
	FLASH_AHEAD_EMPTY,	/* no unit */
	FLASH_AHEAD_READING,	/* a unit that is being read */
	FLASH_AHEAD_STALE,	/* being read, but written since: only for @cmd */
	FLASH_AHEAD_READY,	/* a unit that has been read */
};

/* A slot for a unit that is read ahead. */
struct flash_ahead_slot {
	struct vdisk_cmd *cmd;	/* read that waits for the unit, or NULL */
	u32 unit;		/* number of the unit, unless the slot is empty */
	enum flash_ahead_state state; /* state of the slot */
};

/* A stream: sequential reads. */
struct flash_stream {
	u64 next_pos;	/* byte behind the last read */
	u32 ahead_end;	/* unit behind the last that was read ahead */
	u32 run_units;	/* units read, limited to the number of slots */
	u64 last_read;	/* number of its last read; 0 = unused */
};

/* The read-ahead of a disk. */
struct flash_ahead {
	struct flash_stream streams[FLASH_NR_STREAMS]; /* streams */
	u64 recent_ends[FLASH_NR_RECENT]; /* bytes behind recent reads outside of streams */
	u32 oldest_recent;	/* index of the oldest entry of @recent_ends */
	struct flash_ahead_slot *slots; /* @room for each stream */
	u32 room;		/* slots of a stream, 0 = no read-ahead; constant */
	u32 units;		/* units of the disk; constant */
	u32 nr_used;		/* slots that are not empty */
	u64 nr_reads;		/* reads ever seen */
	u64 nr_asked;		/* units ever read ahead */
	u64 nr_hits;		/* units that reads found or waited for */
};

int flash_ahead_init(struct flash_ahead *ahead, u32 room, u32 units);
void flash_ahead_destroy(struct flash_ahead *ahead);
bool flash_ahead_serve(struct flash_ahead *ahead, struct vdisk_cmd *cmd,
		       u32 unit);
void flash_ahead_update(struct flash *flash, const struct vdisk_cmd *cmd);
void flash_ahead_end_read(struct flash *flash, u32 slot, u64 at);
void flash_ahead_invalidate(struct flash_ahead *ahead, u32 unit);

#endif /* ISOBLK_VDISK_FLASH_AHEAD_H */
