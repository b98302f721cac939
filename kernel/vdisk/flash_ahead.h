/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a flash disk reads before it is asked: streams of reads one behind the
 * other, and units in the controller's memory that they will want next
 * (flash_ahead.c).
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FLASH_AHEAD_H
#define ISOBLK_VDISK_FLASH_AHEAD_H

#include <linux/types.h>

struct flash;
struct vdisk_cmd;

/* Streams that are followed at once. */
#define FLASH_STREAMS		16
/* Reads that a stream may miss before another one may take its place. */
#define FLASH_STREAM_AGE	64
/* Reads of no stream that another one may turn out to continue. */
#define FLASH_RECENT		32

/* What a slot holds. */
enum flash_ahead_state {
	FLASH_AHEAD_EMPTY,	/* nothing */
	FLASH_AHEAD_COMING,	/* a unit that its die is asked for */
	FLASH_AHEAD_STALE,	/* same, written since: of no use to others */
	FLASH_AHEAD_THERE,	/* a unit */
};

/* A place for a unit that is read ahead. */
struct flash_ahead_slot {
	struct vdisk_cmd *cmd;	/* read that waits for the unit, or NULL */
	u32 unit;		/* number of the unit, unless it is empty */
	enum flash_ahead_state state; /* what it holds */
};

/* Reads one behind the other. */
struct flash_stream {
	u64 next;	/* byte behind the last that was read */
	u32 ahead;	/* unit behind the last that was asked for */
	u32 run;	/* units that were read; at most as many as slots */
	u64 used;	/* number of the last read of it; 0 = there was none */
};

/* All that is read ahead. */
struct flash_ahead {
	struct flash_stream stream[FLASH_STREAMS]; /* streams */
	u64 recent[FLASH_RECENT]; /* bytes behind reads of no stream */
	u32 oldest;		/* number of the oldest of these */
	struct flash_ahead_slot *slot; /* @room for each stream */
	u32 room;		/* slots of a stream, 0 = none; constant */
	u32 units;		/* units of the disk; constant */
	u32 used;		/* slots that are not empty */
	u64 reads;		/* reads ever seen */
	u64 asked;		/* units ever asked for */
	u64 hits;		/* units that reads found or waited for */
};

int flash_ahead_init(struct flash_ahead *ahead, u32 room, u32 units);
void flash_ahead_destroy(struct flash_ahead *ahead);
bool flash_ahead_take(struct flash_ahead *ahead, struct vdisk_cmd *cmd,
		      u32 unit);
void flash_ahead_follow(struct flash *flash, const struct vdisk_cmd *cmd);
void flash_ahead_done(struct flash *flash, u32 slot, u64 at);
void flash_ahead_forget(struct flash_ahead *ahead, u32 unit);

#endif /* ISOBLK_VDISK_FLASH_AHEAD_H */
