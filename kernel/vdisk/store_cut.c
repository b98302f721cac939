// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a power cut leaves of a disk.
 *
 * A write is unstable until it has ended, and in a volatile cache
 * until a flush that came later has. Of an unstable write a cut may leave all,
 * nothing, or a part. So each keeps what it has replaced. A write and a block
 * that it touches meet in a "slot", which holds the other version of the block:
 *
 *	write: exchange the block's contents with the slot's. The slot now has
 *	       the old ones.
 *	cut:   for each block, newest slot first, exchange: the block is as it
 *	       was when all was stable, and the slots have the new contents.
 *	       Then, oldest slot first, exchange for what is kept of its write.
 *
 * Exchanging is all there is, for whole blocks of two pointers. A trim is a
 * write of zeros that needs no memory for them.
 *
 * A write that becomes stable takes its slots off the blocks. What older
 * writes, still unstable, have replaced there must not come back any more:
 * their slots lose these sectors. So FUA is never undone by what it has
 * overwritten.
 *
 * A volatile cache is of finite size. Beyond STORE_CACHE_SLOTS, the writes that
 * ended first become stable by themselves.
 *
 * Whether a write is lost, kept or torn is a function of the seed and of its
 * number in the order of submission. A torn one keeps a part from its front,
 * up to the end of a logical block.
 */
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "random.h"
#include "store.h"
#include "store_write.h"

/* Decide what a cut leaves of a write. */
static void decide(struct vdisk_store *store, struct vdisk_write *write)
{
	u64 seed = vdisk_random(store->seed, write->seq);
	u32 blocks = write->bytes / store->block_size;
	enum store_fate fate;

	fate = vdisk_random_below(seed, 0, blocks > 1 ? STORE_NR_FATES :
							STORE_TORN);
	write->kept_to = write->pos;
	if (fate == STORE_KEPT)
		write->kept_to += write->bytes;
	else if (fate == STORE_TORN)
		write->kept_to += store->block_size *
			(1 + vdisk_random_below(seed, 1, blocks - 1));
	store->did.fates[fate]++;
}

/* Have a spare for store_exchange(). One so small is always to be had. */
static void spare_alloc(struct vdisk_store *store, void **spare)
{
	if (!*spare)
		*spare = store_data_alloc(store, GFP_KERNEL | __GFP_NOFAIL);
}

/*
 * Leave of a block what the cut does, whose unstable writes are all cut: nobody
 * else changes it, but it may be read.
 */
static void cut_block(struct vdisk_store *store, struct vdisk_block *block,
		      void **spare)
{
	HLIST_HEAD(oldest_first);
	struct vdisk_slot *slot;
	struct hlist_node *next;

	hlist_for_each_entry_safe(slot, next, &block->slots, chain) {
		spare_alloc(store, spare);
		xa_lock_irq(&store->blocks);
		store_exchange(block, slot, slot->mask, spare);
		hlist_del(&slot->chain);
		hlist_add_head(&slot->chain, &oldest_first);
		xa_unlock_irq(&store->blocks);
	}
	hlist_for_each_entry_safe(slot, next, &oldest_first, chain) {
		u8 kept = store_sectors_before(block, slot->write->kept_to);

		spare_alloc(store, spare);
		xa_lock_irq(&store->blocks);
		store_exchange(block, slot, slot->mask & kept, spare);
		hlist_del_init(&slot->chain);
		xa_unlock_irq(&store->blocks);
	}
}

/**
 * vdisk_store_stop - cut the power
 * @store: the store
 *
 * From now on nothing is written, and what becomes of that which was unstable
 * is decided; vdisk_store_cut() does it.
 *
 * Context: any. The caller serializes it with vdisk_store_restore().
 */
void vdisk_store_stop(struct vdisk_store *store)
{
	struct vdisk_write *write;
	unsigned long flags;
	LIST_HEAD(writes);

	xa_lock_irqsave(&store->blocks, flags);
	store->off = true;
	store->did.cuts++;
	/* Those in flight go on pointing to their writes. */
	list_for_each_entry(write, &store->flying, link) {
		write->cut = true;
		write->users++;
	}
	list_splice_init(&store->cache.writes, &writes);
	list_splice_tail_init(&store->flying, &writes);
	store->cache.slots = 0;
	store->cache.nr = 0;
	list_for_each_entry(write, &writes, link)
		decide(store, write);
	list_splice_tail(&writes, &store->cutting);
	xa_unlock_irqrestore(&store->blocks, flags);
}

/**
 * vdisk_store_cut - lose, keep or tear what was unstable
 * @store: the store; vdisk_store_stop() was called
 *
 * Context: may sleep. The caller serializes it with itself and with
 * vdisk_store_restore().
 */
void vdisk_store_cut(struct vdisk_store *store)
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
			/* It may be of an earlier write's blocks, or not have
			 * come that far.
			 */
			if (!hlist_unhashed(&slot->chain))
				cut_block(store, slot->block, &spare);
		}
		cond_resched();
	}
	store_data_free(store, spare);

	list_for_each_entry_safe(write, next, &writes, link)
		store_write_put(store, write);
}

/**
 * vdisk_store_restore - the power is back
 * @store: the store
 */
void vdisk_store_restore(struct vdisk_store *store)
{
	xa_lock_irq(&store->blocks);
	store->off = false;
	xa_unlock_irq(&store->blocks);
}
