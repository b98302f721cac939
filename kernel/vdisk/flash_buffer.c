// SPDX-License-Identifier: GPL-2.0-only
/*
 * The buffer of the model "flash".
 *
 * An entry is free, or holds a unit. An entry with a unit is in a bucket of the
 * hash, and in the queue of its die until a program takes it. A unit may have
 * several entries, newest first in the bucket: a newer entry than that being
 * programmed, and one for each FUA write.
 *
 * Each flush begins another epoch, and ends when the buffer holds no unit of
 * its own epoch or an older one. There is an epoch for each waiting flush and a
 * current one, so a ring with room for all commands never overflows.
 */
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "flash_buffer.h"
#include "flash_die.h"
#include "flash_host.h"
#include "flash_model.h"
#include "model.h"

/* Create an empty buffer. The caller destroys it, even if that failed. */
int flash_buffer_init(struct flash_buffer *buffer, u32 nr, u32 max_cmds)
{
	struct flash_epochs *epochs = &buffer->epochs;
	u32 ring = roundup_pow_of_two(max_cmds + 2);
	u32 i;

	buffer->nr = nr;
	buffer->room = nr;
	/* At least one bit, for hash_32(). */
	buffer->hash_shift = max(ilog2(roundup_pow_of_two(nr)), 1);
	epochs->mask = ring - 1;
	vdisk_list_init(&epochs->flushes);

	buffer->entry = kvcalloc(nr, sizeof(*buffer->entry), GFP_KERNEL);
	buffer->hash = kvmalloc_array(1U << buffer->hash_shift,
				      sizeof(*buffer->hash), GFP_KERNEL);
	epochs->in = kvcalloc(ring, sizeof(*epochs->in), GFP_KERNEL);
	if (!buffer->entry || !buffer->hash || !epochs->in)
		return -ENOMEM;

	for (i = 0; i < nr; i++)
		buffer->entry[i].next = i + 1 < nr ? i + 1 : FLASH_NIL;
	for (i = 0; i < 1U << buffer->hash_shift; i++)
		buffer->hash[i] = FLASH_NIL;
	return 0;
}

/* Free the memory of a buffer. */
void flash_buffer_destroy(struct flash_buffer *buffer)
{
	kvfree(buffer->epochs.in);
	kvfree(buffer->hash);
	kvfree(buffer->entry);
}

static u32 *bucket(struct flash_buffer *buffer, u32 unit)
{
	return &buffer->hash[hash_32(unit, buffer->hash_shift)];
}

/* Return the newest entry of a unit, FLASH_NIL if the buffer has none. */
u32 flash_find(struct flash_buffer *buffer, u32 unit)
{
	u32 entry = *bucket(buffer, unit);

	while (entry != FLASH_NIL && buffer->entry[entry].unit != unit)
		entry = buffer->entry[entry].chain;
	return entry;
}

/* End the flushes whose epochs have no unit in the buffer. */
static void end_flushes(struct flash *flash, u64 at)
{
	struct flash_epochs *epochs = &flash->buffer.epochs;

	while (epochs->oldest != epochs->now &&
	       !epochs->in[epochs->oldest & epochs->mask])
		epochs->oldest++;
	/* Epochs wrap. */
	while (epochs->flushes.head &&
	       (s32)(epochs->flushes.head->flash.epoch - epochs->oldest) < 0)
		flash_end_soon(flash, vdisk_list_pop(&epochs->flushes), at);
}

/* Free an entry whose unit is stable, or not needed any more. */
void flash_forget(struct flash *flash, u32 nr, u64 at)
{
	struct flash_buffer *buffer = &flash->buffer;
	struct flash_entry *entry = &buffer->entry[nr];
	u32 *link = bucket(buffer, entry->unit);
	struct vdisk_cmd *owner = entry->owner;

	while (*link != nr)
		link = &buffer->entry[*link].chain;
	*link = entry->chain;

	entry->next = buffer->free;
	buffer->free = nr;
	buffer->room++;

	if (owner && !--owner->flash.left && !owner->flash.units)
		flash_end_soon(flash, owner, at);
	buffer->epochs.in[entry->epoch & buffer->epochs.mask]--;
	end_flushes(flash, at);
}

/* Add an entry to the end of its die's queue. */
static void add_dirty(struct flash_buffer *buffer, struct flash_dirty *dirty,
		      u32 nr)
{
	struct flash_entry *entry = &buffer->entry[nr];

	entry->next = FLASH_NIL;
	entry->prev = dirty->last;
	if (dirty->last != FLASH_NIL)
		buffer->entry[dirty->last].next = nr;
	else
		dirty->first = nr;
	dirty->last = nr;
	dirty->count++;
}

/* Remove an entry from its die's queue. */
static void del_dirty(struct flash_buffer *buffer, struct flash_dirty *dirty,
		      u32 nr)
{
	const struct flash_entry *entry = &buffer->entry[nr];

	if (entry->prev != FLASH_NIL)
		buffer->entry[entry->prev].next = entry->next;
	else
		dirty->first = entry->next;
	if (entry->next != FLASH_NIL)
		buffer->entry[entry->next].prev = entry->prev;
	else
		dirty->last = entry->prev;
	dirty->count--;
	dirty->urgent = min(dirty->urgent, dirty->count);
}

/*
 * Take the first entries off their die's queue, for a program. They stay linked
 * to each other.
 */
void flash_take_dirty(struct flash_buffer *buffer, struct flash_dirty *dirty,
		      u32 count)
{
	u32 entry = dirty->first;
	u32 i;

	for (i = 0; i < count; i++) {
		buffer->entry[entry].flying = true;
		entry = buffer->entry[entry].next;
	}
	dirty->first = entry;
	if (entry == FLASH_NIL)
		dirty->last = FLASH_NIL;
	else
		buffer->entry[entry].prev = FLASH_NIL;
	dirty->count -= count;
	dirty->urgent -= min(dirty->urgent, count);
}

/* Have a die program all units of its queue, even without a full row. */
void flash_press(struct flash *flash, u32 nr)
{
	struct flash_dirty *dirty = &flash->dies.die[nr].dirty;

	dirty->urgent = dirty->count;
	if (dirty->urgent)
		flash_kick(&flash->dies, nr);
}

/*
 * Add a unit to the buffer, which has room for it. The unit replaces an entry
 * of the same unit, unless that entry is being programmed, or both have a FUA
 * write that waits for it.
 */
void flash_put(struct flash *flash, u32 unit, struct vdisk_cmd *owner)
{
	struct flash_buffer *buffer = &flash->buffer;
	struct flash_epochs *epochs = &buffer->epochs;
	u32 nr = flash_find(buffer, unit);
	struct flash_entry *entry;
	u32 *first;

	if (nr != FLASH_NIL) {
		entry = &buffer->entry[nr];
		if (!entry->flying && !(owner && entry->owner)) {
			if (owner)
				entry->owner = owner;
			buffer->merges++;
			buffer->room++;
			return;
		}
	}

	nr = buffer->free;
	entry = &buffer->entry[nr];
	buffer->free = entry->next;

	first = bucket(buffer, unit);
	*entry = (struct flash_entry){
		.owner = owner,
		.unit = unit,
		.epoch = epochs->now,
		.chain = *first,
	};
	*first = nr;
	add_dirty(buffer, &flash->dies.die[unit % flash->dies.nr].dirty, nr);
	epochs->in[epochs->now & epochs->mask]++;
}

/* Drop the entries of a unit that are not being programmed. */
void flash_drop(struct flash *flash, u32 unit, u64 at)
{
	struct flash_buffer *buffer = &flash->buffer;
	struct flash_dirty *dirty;
	u32 nr;

	dirty = &flash->dies.die[unit % flash->dies.nr].dirty;
	while ((nr = flash_find(buffer, unit)) != FLASH_NIL) {
		if (buffer->entry[nr].flying)
			return;
		del_dirty(buffer, dirty, nr);
		flash_forget(flash, nr, at);
	}
}

/* Queue a flush: it ends when all units that are in the buffer now have left it. */
void flash_flush(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	struct flash_epochs *epochs = &flash->buffer.epochs;
	u32 nr;

	cmd->flash.epoch = epochs->now++;
	vdisk_list_add(&epochs->flushes, cmd);
	for (nr = 0; nr < flash->dies.nr; nr++)
		flash_press(flash, nr);
	end_flushes(flash, at);
}
