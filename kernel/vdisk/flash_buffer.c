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

	buffer->nr_entries = nr;
	buffer->room = nr;
	/* At least one bit, for hash_32(). */
	buffer->hash_shift = max(ilog2(roundup_pow_of_two(nr)), 1);
	epochs->mask = ring - 1;
	vdisk_list_init(&epochs->flushes);

	buffer->entries = kvcalloc(nr, sizeof(*buffer->entries), GFP_KERNEL);
	buffer->hash = kvmalloc_array(1U << buffer->hash_shift,
				      sizeof(*buffer->hash), GFP_KERNEL);
	epochs->nr_units =
		kvcalloc(ring, sizeof(*epochs->nr_units), GFP_KERNEL);
	if (!buffer->entries || !buffer->hash || !epochs->nr_units)
		return -ENOMEM;

	for (i = 0; i < nr; i++)
		buffer->entries[i].next = i + 1 < nr ? i + 1 : FLASH_NIL;
	for (i = 0; i < 1U << buffer->hash_shift; i++)
		buffer->hash[i] = FLASH_NIL;
	return 0;
}

/* Free the memory of a buffer. */
void flash_buffer_destroy(struct flash_buffer *buffer)
{
	kvfree(buffer->epochs.nr_units);
	kvfree(buffer->hash);
	kvfree(buffer->entries);
}

static u32 *flash_buffer_bucket(struct flash_buffer *buffer, u32 unit)
{
	return &buffer->hash[hash_32(unit, buffer->hash_shift)];
}

/* Return the newest entry of a unit, FLASH_NIL if the buffer has none. */
u32 flash_buffer_find(struct flash_buffer *buffer, u32 unit)
{
	u32 entry = *flash_buffer_bucket(buffer, unit);

	while (entry != FLASH_NIL && buffer->entries[entry].unit != unit)
		entry = buffer->entries[entry].hash_next;
	return entry;
}

/* End the flushes whose epochs have no unit in the buffer. */
static void flash_buffer_end_flushes(struct flash *flash, u64 at)
{
	struct flash_epochs *epochs = &flash->buffer.epochs;

	while (epochs->oldest != epochs->newest &&
	       !epochs->nr_units[epochs->oldest & epochs->mask])
		epochs->oldest++;
	/* Epochs wrap. */
	while (epochs->flushes.head &&
	       (s32)(epochs->flushes.head->flash.epoch - epochs->oldest) < 0)
		flash_end_delay(flash, vdisk_list_pop(&epochs->flushes), at);
}

/* Free an entry whose unit is stable, or not needed any more. */
void flash_buffer_free_entry(struct flash *flash, u32 nr, u64 at)
{
	struct flash_buffer *buffer = &flash->buffer;
	struct flash_entry *entry = &buffer->entries[nr];
	u32 *link = flash_buffer_bucket(buffer, entry->unit);
	struct vdisk_cmd *owner = entry->fua_write;

	while (*link != nr)
		link = &buffer->entries[*link].hash_next;
	*link = entry->hash_next;

	entry->next = buffer->first_free;
	buffer->first_free = nr;
	buffer->room++;

	if (owner && !--owner->flash.nr_pending && !owner->flash.nr_units)
		flash_end_delay(flash, owner, at);
	buffer->epochs.nr_units[entry->epoch & buffer->epochs.mask]--;
	flash_buffer_end_flushes(flash, at);
}

/* Add an entry to the end of its die's queue. */
static void flash_dirty_add(struct flash_buffer *buffer,
			    struct flash_dirty *dirty, u32 nr)
{
	struct flash_entry *entry = &buffer->entries[nr];

	entry->next = FLASH_NIL;
	entry->prev = dirty->last;
	if (dirty->last != FLASH_NIL)
		buffer->entries[dirty->last].next = nr;
	else
		dirty->first = nr;
	dirty->last = nr;
	dirty->nr++;
}

/* Remove an entry from its die's queue. */
static void flash_dirty_del(struct flash_buffer *buffer,
			    struct flash_dirty *dirty, u32 nr)
{
	const struct flash_entry *entry = &buffer->entries[nr];

	if (entry->prev != FLASH_NIL)
		buffer->entries[entry->prev].next = entry->next;
	else
		dirty->first = entry->next;
	if (entry->next != FLASH_NIL)
		buffer->entries[entry->next].prev = entry->prev;
	else
		dirty->last = entry->prev;
	dirty->nr--;
	dirty->nr_urgent = min(dirty->nr_urgent, dirty->nr);
}

/*
 * Take the first entries off their die's queue, for a program. They stay linked
 * to each other.
 */
void flash_dirty_take(struct flash_buffer *buffer, struct flash_dirty *dirty,
		      u32 count)
{
	u32 entry = dirty->first;
	u32 i;

	for (i = 0; i < count; i++) {
		buffer->entries[entry].programming = true;
		entry = buffer->entries[entry].next;
	}
	dirty->first = entry;
	if (entry == FLASH_NIL)
		dirty->last = FLASH_NIL;
	else
		buffer->entries[entry].prev = FLASH_NIL;
	dirty->nr -= count;
	dirty->nr_urgent -= min(dirty->nr_urgent, count);
}

/* Have a die program all units of its queue, even without a full row. */
void flash_buffer_force_out(struct flash *flash, u32 nr)
{
	struct flash_dirty *dirty = &flash->dies.dies[nr].dirty;

	dirty->nr_urgent = dirty->nr;
	if (dirty->nr_urgent)
		flash_die_kick(&flash->dies, nr);
}

/*
 * Add a unit to the buffer, which has room for it. The unit replaces an entry
 * of the same unit, unless that entry is being programmed, or both have a FUA
 * write that waits for it.
 */
void flash_buffer_add(struct flash *flash, u32 unit, struct vdisk_cmd *owner)
{
	struct flash_buffer *buffer = &flash->buffer;
	struct flash_epochs *epochs = &buffer->epochs;
	u32 nr = flash_buffer_find(buffer, unit);
	struct flash_entry *entry;
	u32 *first;

	if (nr != FLASH_NIL) {
		entry = &buffer->entries[nr];
		if (!entry->programming && !(owner && entry->fua_write)) {
			if (owner)
				entry->fua_write = owner;
			buffer->nr_merges++;
			buffer->room++;
			return;
		}
	}

	nr = buffer->first_free;
	entry = &buffer->entries[nr];
	buffer->first_free = entry->next;

	first = flash_buffer_bucket(buffer, unit);
	*entry = (struct flash_entry){
		.fua_write = owner,
		.unit = unit,
		.epoch = epochs->newest,
		.hash_next = *first,
	};
	*first = nr;
	flash_dirty_add(buffer, &flash->dies.dies[unit % flash->dies.nr].dirty,
			nr);
	epochs->nr_units[epochs->newest & epochs->mask]++;
}

/* Drop the entries of a unit that are not being programmed. */
void flash_buffer_drop(struct flash *flash, u32 unit, u64 at)
{
	struct flash_buffer *buffer = &flash->buffer;
	struct flash_dirty *dirty;
	u32 nr;

	dirty = &flash->dies.dies[unit % flash->dies.nr].dirty;
	while ((nr = flash_buffer_find(buffer, unit)) != FLASH_NIL) {
		if (buffer->entries[nr].programming)
			return;
		flash_dirty_del(buffer, dirty, nr);
		flash_buffer_free_entry(flash, nr, at);
	}
}

/* Queue a flush: it ends when all units that are in the buffer now have left it. */
void flash_buffer_flush(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	struct flash_epochs *epochs = &flash->buffer.epochs;
	u32 nr;

	cmd->flash.epoch = epochs->newest++;
	vdisk_list_add(&epochs->flushes, cmd);
	for (nr = 0; nr < flash->dies.nr; nr++)
		flash_buffer_force_out(flash, nr);
	flash_buffer_end_flushes(flash, at);
}
