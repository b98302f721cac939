/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The buffer of a flash disk: units of 4 KiB in the controller's memory, each
 * of which waits for its program or is being programmed (flash_buffer.c).
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FLASH_BUFFER_H
#define ISOBLK_VDISK_FLASH_BUFFER_H

#include <linux/limits.h>
#include <linux/types.h>

#include "model.h"

struct flash;

/* The value of an index that points nowhere. */
#define FLASH_NIL		U32_MAX

/* A unit in the buffer. */
struct flash_entry {
	struct vdisk_cmd *owner; /* write with FUA that waits for it, or NULL */
	u32 unit;		/* number of the unit, on the disk */
	u32 epoch;		/* flushes of it and of later ones wait */
	u32 chain;		/* next entry of the hash bucket */
	u32 next;		/* next one in a queue, in a program, or free */
	u32 prev;		/* previous one in the die's queue */
	bool flying;		/* whether it is being programmed */
};

/* The units of the buffer that a die has still to program, oldest first. */
struct flash_dirty {
	u32 first;		/* first entry, or FLASH_NIL */
	u32 last;		/* last entry, or FLASH_NIL */
	u32 count;		/* number of entries */
	u32 urgent;		/* number to be written even as part of a row */
};

/* What a flush waits for: each begins another epoch of the buffer. */
struct flash_epochs {
	struct vdisk_list flushes; /* flushes that wait for the buffer */
	u32 *in;		/* units of each epoch, modulo @mask + 1 */
	u32 mask;		/* length of @in, minus 1 */
	u32 now;		/* epoch of what enters the buffer now */
	u32 oldest;		/* oldest epoch that may be in the buffer */
};

/* The buffer. */
struct flash_buffer {
	struct flash_entry *entry; /* all entries, used or free */
	u32 nr;			/* number of all entries */
	u32 room;		/* free ones, less those on the link */
	u32 free;		/* first free entry, or FLASH_NIL */
	u32 *hash;		/* first entry of each bucket, or FLASH_NIL */
	u32 hash_shift;		/* bits of a bucket's number */
	u64 merges;		/* units that replaced one in the buffer */
	struct flash_epochs epochs; /* what flushes wait for */
};

int flash_buffer_init(struct flash_buffer *buffer, u32 nr, u32 max_cmds);
void flash_buffer_destroy(struct flash_buffer *buffer);
u32 flash_find(struct flash_buffer *buffer, u32 unit);
void flash_put(struct flash *flash, u32 unit, struct vdisk_cmd *owner);
void flash_take_dirty(struct flash_buffer *buffer, struct flash_dirty *dirty,
		      u32 count);
void flash_forget(struct flash *flash, u32 nr, u64 at);
void flash_drop(struct flash *flash, u32 unit, u64 at);
void flash_press(struct flash *flash, u32 nr);
void flash_flush(struct flash *flash, struct vdisk_cmd *cmd, u64 at);

#endif /* ISOBLK_VDISK_FLASH_BUFFER_H */
