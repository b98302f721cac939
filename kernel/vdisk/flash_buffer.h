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
	struct vdisk_cmd *fua_write; /* write with FUA that waits for it, or NULL */
	u32 unit;		/* number of the unit, on the disk */
	u32 epoch;		/* epoch: its flush and later flushes wait for it */
	u32 hash_next;		/* next entry of the hash bucket */
	u32 next;		/* next entry of a queue, a program, or the free list */
	u32 prev;		/* previous entry of the die's queue */
	bool programming;	/* whether it is being programmed */
};

/* A die's queue: units of the buffer that it has to program, oldest first. */
struct flash_dirty {
	u32 first;		/* first entry, or FLASH_NIL */
	u32 last;		/* last entry, or FLASH_NIL */
	u32 nr;			/* number of entries */
	u32 nr_urgent;		/* first entries that are programmed without a full row */
};

/* Epochs of the buffer: each flush begins another epoch. */
struct flash_epochs {
	struct vdisk_list flushes; /* flushes that wait for the buffer */
	u32 *nr_units;		/* units of each epoch, a ring of @mask + 1 */
	u32 mask;		/* length of @nr_units, minus 1 */
	u32 newest;		/* current epoch, of units that enter now */
	u32 oldest;		/* oldest epoch that may have units in the buffer */
};

/* The buffer. */
struct flash_buffer {
	struct flash_entry *entries; /* all entries, used or free */
	u32 nr_entries;		/* number of all entries */
	u32 room;		/* free entries, less units on the link */
	u32 first_free;		/* first free entry, or FLASH_NIL */
	u32 *hash;		/* first entry of each bucket, or FLASH_NIL */
	u32 hash_shift;		/* bits of a bucket's number */
	u64 nr_merges;		/* units that replaced an entry of the buffer */
	struct flash_epochs epochs; /* epochs, for flushes */
};

int flash_buffer_init(struct flash_buffer *buffer, u32 nr, u32 max_cmds);
void flash_buffer_destroy(struct flash_buffer *buffer);
u32 flash_buffer_find(struct flash_buffer *buffer, u32 unit);
void flash_buffer_add(struct flash *flash, u32 unit, struct vdisk_cmd *owner);
void flash_dirty_take(struct flash_buffer *buffer, struct flash_dirty *dirty,
		      u32 count);
void flash_buffer_free_entry(struct flash *flash, u32 nr, u64 at);
void flash_buffer_drop(struct flash *flash, u32 unit, u64 at);
void flash_buffer_force_out(struct flash *flash, u32 nr);
void flash_buffer_flush(struct flash *flash, struct vdisk_cmd *cmd, u64 at);

#endif /* ISOBLK_VDISK_FLASH_BUFFER_H */
