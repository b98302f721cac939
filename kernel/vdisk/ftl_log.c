// SPDX-License-Identifier: GPL-2.0-only
/*
 * The blocks of a die: their lists, and the logs that are written into
 * them.
 */
#include <linux/minmax.h>

#include "ftl.h"
#include "ftl_die.h"
#include "ftl_map.h"

/* Add a closed block to the list for its number of valid units. */
static void ftl_closed_add(struct ftl_die *die, u16 nr)
{
	struct ftl_block *block = &die->blocks[nr];
	u16 *head = &die->closed.by_valid[block->valid];

	block->prev = FTL_NO_BLOCK;
	block->next = *head;
	if (*head != FTL_NO_BLOCK)
		die->blocks[*head].prev = nr;
	*head = nr;
	die->closed.valid_min = min_t(u32, die->closed.valid_min, block->valid);
}

/* Remove a closed block from its list. */
static void ftl_closed_del(struct ftl_die *die, u16 nr)
{
	struct ftl_block *block = &die->blocks[nr];

	if (block->prev != FTL_NO_BLOCK)
		die->blocks[block->prev].next = block->next;
	else
		die->closed.by_valid[block->valid] = block->next;
	if (block->next != FTL_NO_BLOCK)
		die->blocks[block->next].prev = block->prev;
}

/* Remove a closed block from its list, to make it the victim. */
void ftl_closed_take(const struct ftl *ftl, struct ftl_die *die, u16 nr)
{
	ftl_closed_del(die, nr);
	/* Advance to the next list that is not empty, or above all. */
	while (die->closed.valid_min <= ftl->geo.block_units &&
	       die->closed.by_valid[die->closed.valid_min] == FTL_NO_BLOCK)
		die->closed.valid_min++;
}

/* Insert a free block behind the blocks with no more wear: mostly at the end. */
void ftl_free_add(struct ftl_die *die, struct ftl_free *free, u16 nr)
{
	struct ftl_block *block = &die->blocks[nr];
	u16 before = free->tail;

	while (before != FTL_NO_BLOCK &&
	       die->blocks[before].erases > block->erases)
		before = die->blocks[before].prev;

	block->state = FTL_FREE;
	block->prev = before;
	if (before != FTL_NO_BLOCK) {
		block->next = die->blocks[before].next;
		die->blocks[before].next = nr;
	} else {
		block->next = free->head;
		free->head = nr;
	}
	if (block->next != FTL_NO_BLOCK)
		die->blocks[block->next].prev = nr;
	else
		free->tail = nr;
	free->count++;
}

/* Take the least worn free block. The caller has checked that there is one. */
static u16 ftl_free_take(struct ftl_die *die, struct ftl_free *free)
{
	u16 nr = free->head;

	free->head = die->blocks[nr].next;
	if (free->head != FTL_NO_BLOCK)
		die->blocks[free->head].prev = FTL_NO_BLOCK;
	else
		free->tail = FTL_NO_BLOCK;
	free->count--;
	return nr;
}

/* Continue a log in a free block. The caller has checked that there is one. */
void ftl_log_open(struct ftl_die *die, struct ftl_log *log, enum ftl_pool pool)
{
	log->block = ftl_free_take(die, &die->free[pool]);
	log->used_slots = 0;
	die->blocks[log->block].state = FTL_OPEN;
}

/* Use slots of a log. The block is closed when its last slot is used. */
void ftl_log_use(const struct ftl *ftl, struct ftl_die *die,
		 struct ftl_log *log, u32 slots)
{
	log->used_slots += slots;
	if (log->used_slots < ftl->geo.block_units)
		return;
	die->blocks[log->block].state = FTL_CLOSED;
	if (!ftl_block_is_slc(ftl, log->block))
		ftl_closed_add(die, log->block);
	log->block = FTL_NO_BLOCK;
}

/* Invalidate the unit in a slot. */
void ftl_slot_drop(const struct ftl *ftl, struct ftl_die *die, u32 slot)
{
	u16 nr = slot / ftl->geo.block_units;
	struct ftl_block *block = &die->blocks[nr];

	if (block->state != FTL_CLOSED || ftl_block_is_slc(ftl, nr)) {
		block->valid--;
		return;
	}
	ftl_closed_del(die, nr);
	block->valid--;
	ftl_closed_add(die, nr);
}

/* Put a unit into the next slot of a log, which is open or has a free block. */
void ftl_log_put(const struct ftl *ftl, struct ftl_die *die,
		 struct ftl_log *log, enum ftl_pool pool, u32 unit)
{
	u32 old = ftl_map_get_slot(&die->map, unit);
	u32 slot;

	if (!ftl_log_is_open(log))
		ftl_log_open(die, log, pool);
	if (old != FTL_NONE)
		ftl_slot_drop(ftl, die, old);
	slot = log->block * ftl->geo.block_units + log->used_slots;
	ftl_map_set_slot(&die->map, unit, slot);
	die->map.reverse[slot] = unit;
	die->blocks[log->block].valid++;
	ftl_log_use(ftl, die, log, 1);
}

/* Make all blocks of a die free, from the first one on. */
void ftl_die_clear(const struct ftl *ftl, struct ftl_die *die)
{
	u32 nr, pool;

	for (pool = 0; pool < FTL_NR_POOLS; pool++) {
		die->free[pool].head = FTL_NO_BLOCK;
		die->free[pool].tail = FTL_NO_BLOCK;
		die->host.log[pool].block = FTL_NO_BLOCK;
		die->gc.victim[pool].block = FTL_NO_BLOCK;
	}
	die->gc.log.block = FTL_NO_BLOCK;
	die->closed.valid_min = ftl->geo.block_units + 1;
	for (nr = 0; nr <= ftl->geo.block_units; nr++)
		die->closed.by_valid[nr] = FTL_NO_BLOCK;
	for (nr = 0; nr < ftl->nr_blocks[FTL_MAIN]; nr++)
		ftl_free_add(die, &die->free[FTL_MAIN], nr);
	for (; nr < ftl->nr_blocks[FTL_MAIN] + ftl->nr_blocks[FTL_SLC]; nr++)
		ftl_free_add(die, &die->free[FTL_SLC], nr);
}
