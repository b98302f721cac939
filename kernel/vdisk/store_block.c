// SPDX-License-Identifier: GPL-2.0-only
/*
 * The blocks of a disk and the memory of their contents. The design is in
 * store.c.
 */
#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "store_write.h"

/* Limit of the contents of all disks, in blocks: half of the memory. */
#define STORE_BLOCKS_MAX \
	((totalram_pages() / 2) << (PAGE_SHIFT - STORE_BLOCK_SHIFT))

/* Contents of all disks in memory, in blocks; atomic. */
static atomic_long_t store_nr_blocks = ATOMIC_LONG_INIT(0);

/* Return whether all disks together may take more memory. */
bool store_may_grow(void)
{
	return atomic_long_read(&store_nr_blocks) < STORE_BLOCKS_MAX;
}

/* Allocate contents, uninitialized. Return NULL without memory. */
void *store_data_alloc(struct vdisk_store *store, gfp_t gfp)
{
	void *data = kmalloc(STORE_BLOCK_BYTES, gfp);

	if (data) {
		atomic_long_inc(&store->nr_blocks);
		atomic_long_inc(&store_nr_blocks);
	}
	return data;
}

/* Free contents, if there are any. */
void store_data_free(struct vdisk_store *store, void *data)
{
	if (data) {
		atomic_long_dec(&store->nr_blocks);
		atomic_long_dec(&store_nr_blocks);
	}
	kfree(data);
}

/*
 * Swap the sectors of @mask between a block and a slot. A spare is needed, and then
 * used up, only if the block has contents, the slot has none and the mask is partial.
 */
void store_exchange_sectors(struct vdisk_block *block, struct vdisk_slot *slot,
			    u8 mask, void **spare)
{
	int i, j;

	if (mask == STORE_MASK_ALL) {
		swap(block->data, slot->data);
		return;
	}
	if (!mask || (!block->data && !slot->data))
		return;

	if (!block->data) {
		/* The block is zeros: zero the other sectors, and swap all. */
		for (i = 0; i < STORE_BLOCK_SECTORS; i++) {
			if (!(mask & BIT(i)))
				memset(store_sector(slot->data, i), 0,
				       SECTOR_SIZE);
		}
		swap(block->data, slot->data);
		return;
	}
	if (!slot->data) {
		slot->data = *spare;
		*spare = NULL;
		memset(slot->data, 0, STORE_BLOCK_BYTES);
	}
	for (i = 0; i < STORE_BLOCK_SECTORS; i++) {
		u64 *a = store_sector(block->data, i);
		u64 *b = store_sector(slot->data, i);

		if (!(mask & BIT(i)))
			continue;
		for (j = 0; j < SECTOR_SIZE / sizeof(u64); j++)
			swap(a[j], b[j]);
	}
}

/* Return the mask of a block's sectors that lie before a byte of the disk. */
u8 store_mask_before(const struct vdisk_block *block, u64 byte)
{
	u64 start = (u64)block->index << STORE_BLOCK_SHIFT;

	if (byte <= start)
		return 0;
	byte = min_t(u64, byte - start, STORE_BLOCK_BYTES);
	return GENMASK_ULL(byte >> SECTOR_SHIFT, 0) >> 1;
}

/* Return block @index with a reference for a slot, or NULL without memory. */
struct vdisk_block *store_block_get(struct vdisk_store *store,
				    unsigned long index)
{
	struct vdisk_block *block;
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	block = xa_load(&store->blocks, index);
	if (!block) {
		block = kzalloc(sizeof(*block), STORE_GFP);
		if (!block)
			goto unlock;
		block->index = index;
		if (xa_err(__xa_store(&store->blocks, index, block,
				      STORE_GFP))) {
			kfree(block);
			block = NULL;
			goto unlock;
		}
	}
	block->nr_slots++;
unlock:
	xa_unlock_irqrestore(&store->blocks, flags);
	return block;
}

/*
 * Return the first existing block from @index to @last, with a reference for a
 * slot, or NULL.
 */
struct vdisk_block *store_block_find(struct vdisk_store *store,
				     unsigned long index, unsigned long last)
{
	struct vdisk_block *block;
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	block = xa_find(&store->blocks, &index, last, XA_PRESENT);
	if (block)
		block->nr_slots++;
	xa_unlock_irqrestore(&store->blocks, flags);
	return block;
}

/* Drop a slot's reference. A block of zeros is freed with its last slot. */
void store_block_put(struct vdisk_store *store, struct vdisk_block *block)
{
	lockdep_assert_held(&store->blocks.xa_lock);

	if (--block->nr_slots || block->data)
		return;
	__xa_erase(&store->blocks, block->index);
	kfree(block);
}
