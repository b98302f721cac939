// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power cuts: their effect on a disk's contents.
 *
 * A write is unstable until it has ended, and with a volatile cache until a later
 * flush has ended. A cut may keep an unstable write, lose it, or keep a part. So
 * each keeps the contents that it has replaced. A write has a "slot" for each
 * block that it covers, and the slot holds the other version of the block:
 *
 *	write: exchange the block's contents with the slot's. The slot then has
 *	       the old contents.
 *	cut:   for each block, newest slot first, exchange: the block is as it
 *	       was when all was stable, and the slots have the new contents.
 *	       Then, oldest slot first, exchange the sectors that are kept.
 *
 * For whole blocks an exchange swaps two pointers. A trim is a write of zeros
 * that needs no memory for them.
 *
 * When a write becomes stable its slots leave their blocks. The sectors that
 * older, still unstable writes have replaced there must not be restored: these
 * writes' slots lose the sectors. So a cut never undoes a FUA write by
 * restoring the contents from before an older write.
 *
 * The volatile cache has STORE_CACHE_SLOTS_MAX blocks. Beyond that, the writes that
 * ended first become stable.
 *
 * Whether a write is lost, kept or torn depends on the seed and on its number
 * in the order of submission. A torn write keeps a part at its front, up to the
 * end of a logical block.
 */
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "random.h"
#include "store.h"
#include "store_write.h"

/* Decide which part of a write a cut keeps. */
static void store_decide_fate(struct vdisk_store *store,
			      struct vdisk_write *write)
{
	u64 seed = vdisk_random(store->seed, write->seq);
	u32 blocks = write->bytes / store->block_size;
	enum store_fate fate;

	fate = vdisk_random_below(seed, 0, blocks > 1 ? STORE_NR_FATES :
							STORE_TORN);
	write->kept_end = write->pos;
	if (fate == STORE_KEPT)
		write->kept_end += write->bytes;
	else if (fate == STORE_TORN)
		write->kept_end +=
			store->block_size *
			(1 + vdisk_random_below(seed, 1, blocks - 1));
	store->counters.fates[fate]++;
}

/* Allocate a spare for store_exchange_sectors(). So small an allocation succeeds. */
static void store_spare_alloc(struct vdisk_store *store, void **spare)
{
	if (!*spare)
		*spare = store_data_alloc(store, GFP_KERNEL | __GFP_NOFAIL);
}

/*
 * Apply a cut to a block. All of its unstable writes are cut, so no write
 * changes it, but reads may come.
 */
static void store_cut_block(struct vdisk_store *store,
			    struct vdisk_block *block, void **spare)
{
	HLIST_HEAD(oldest_first);
	struct vdisk_slot *slot;
	struct hlist_node *next;

	hlist_for_each_entry_safe(slot, next, &block->slots, chain) {
		store_spare_alloc(store, spare);
		xa_lock_irq(&store->blocks);
		store_exchange_sectors(block, slot, slot->mask, spare);
		hlist_del(&slot->chain);
		hlist_add_head(&slot->chain, &oldest_first);
		xa_unlock_irq(&store->blocks);
	}
	hlist_for_each_entry_safe(slot, next, &oldest_first, chain) {
		u8 kept = store_mask_before(block, slot->write->kept_end);

		store_spare_alloc(store, spare);
		xa_lock_irq(&store->blocks);
		store_exchange_sectors(block, slot, slot->mask & kept, spare);
		hlist_del_init(&slot->chain);
		xa_unlock_irq(&store->blocks);
	}
}

/**
 * vdisk_store_begin_cut - cut the power
 * @store: the store
 *
 * From now on writes fail. The fate of each unstable write is decided here;
 * vdisk_store_apply_cut() applies it.
 *
 * Context: any. The caller serializes it with vdisk_store_restore_power().
 */
void vdisk_store_begin_cut(struct vdisk_store *store)
{
	struct vdisk_write *write;
	unsigned long flags;
	LIST_HEAD(writes);

	xa_lock_irqsave(&store->blocks, flags);
	store->powered_off = true;
	store->counters.nr_cuts++;
	/* Requests in flight keep pointing to their writes. */
	list_for_each_entry(write, &store->in_flight, link) {
		write->power_cut = true;
		write->refs++;
	}
	list_splice_init(&store->cache.writes, &writes);
	list_splice_tail_init(&store->in_flight, &writes);
	store->cache.nr_slots = 0;
	store->cache.nr_writes = 0;
	list_for_each_entry(write, &writes, link)
		store_decide_fate(store, write);
	list_splice_tail(&writes, &store->cutting);
	xa_unlock_irqrestore(&store->blocks, flags);
}

/**
 * vdisk_store_apply_cut - lose, keep or tear the unstable writes
 * @store: the store, after vdisk_store_begin_cut()
 *
 * Context: may sleep. The caller serializes it with itself and with
 * vdisk_store_restore_power().
 */
void vdisk_store_apply_cut(struct vdisk_store *store)
{
	struct vdisk_write *write, *next;
	struct vdisk_slot *slot;
	void *spare = NULL;
	LIST_HEAD(writes);

	xa_lock_irq(&store->blocks);
	list_splice_init(&store->cutting, &writes);
	xa_unlock_irq(&store->blocks);

	list_for_each_entry(write, &writes, link) {
		for (slot = write->slots; slot; slot = slot->next) {
			/* Unhashed: the block was processed for an earlier write, or
			 * this write had not reached it yet.
			 */
			if (!hlist_unhashed(&slot->chain))
				store_cut_block(store, slot->block, &spare);
		}
		cond_resched();
	}
	store_data_free(store, spare);

	list_for_each_entry_safe(write, next, &writes, link)
		store_write_put(store, write);
}

/**
 * vdisk_store_restore_power - restore the power
 * @store: the store
 */
void vdisk_store_restore_power(struct vdisk_store *store)
{
	xa_lock_irq(&store->blocks);
	store->powered_off = false;
	xa_unlock_irq(&store->blocks);
}
