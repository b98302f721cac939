// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contents of a disk whose "store" is "memory".
 *
 * Time. Reads and writes copy and change the contents when they are queued, one
 * 4 KiB block after the other; the model decides when they end. Any instant
 * between a request's start and its end is valid for that: a read that is
 * queued after a write has ended finds its data, and requests in flight
 * together have no defined order. As on a real disk, a logical block is never
 * half old and half new, but a request of several blocks may be.
 *
 * Memory. An xarray maps the number of a 4 KiB block to its contents. A block
 * of zeros has no contents, and without slots no entry either.
 *
 * Sleeping. Contents must not change a disk's timing, so queue_rq() stays in
 * atomic context: a queue that may sleep (BLK_MQ_F_BLOCKING) hands requests to
 * a worker. So a write first allocates all of its memory, without sleeping. If
 * that fails, the write has changed nothing, kswapd has been woken, and the
 * block layer queues the write again some ms later. Memory may never become
 * free: when allocations have failed for STORE_RETRY_JIFFIES, a write fails with "no
 * space", as on a thin disk whose pool is full. All disks together take half of
 * the machine's memory at most, as a tmpfs does, for contents cannot be
 * swapped. Under a shortage the contents that the volatile cache keeps for a
 * cut are freed first.
 *
 * store_cut.c has power cuts, and explains slots: until a write is stable it
 * keeps the contents that it has replaced.
 *
 * Locking. The lock of the xarray protects the store's fields, the blocks and
 * the chains and masks of slots. It is taken with interrupts off, for a write
 * may end in the timer. It is held while one block's contents are copied, or
 * while a write is processed without its contents. A write's list of slots does
 * not change from its submission to its end. The write is then freed, or after
 * the cut that still processes it.
 *
 * Where things are:
 *
 *	this file	reads, writes and flushes of the block device
 *	store_block.c	blocks, and the memory of contents
 *	store_write.c	writes that are not yet stable
 *	store_cut.c	power cuts
 */
#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/err.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "model.h"
#include "store.h"
#include "store_write.h"

/* Long enough to write back some gigabytes of dirty pages, in jiffies. */
#define STORE_RETRY_JIFFIES		(10 * HZ)

/* Blocks in 64 MiB, the volatile cache of a common disk. */
#define STORE_CACHE_SLOTS_MAX	(SZ_64M >> STORE_BLOCK_SHIFT)

/* Return the status of a write without memory: retry, or no space. */
static blk_status_t store_no_memory_status(struct vdisk_store *store)
{
	unsigned long flags;
	bool over;

	xa_lock_irqsave(&store->blocks, flags);
	if (!store->shortage.lasts) {
		store->shortage.lasts = true;
		store->shortage.since_jiffies = jiffies;
	}
	over = time_after(jiffies,
			  store->shortage.since_jiffies + STORE_RETRY_JIFFIES);
	xa_unlock_irqrestore(&store->blocks, flags);
	return over ? BLK_STS_NOSPC : BLK_STS_RESOURCE;
}

/* Free contents of the volatile cache. Return false if it has none. */
static bool store_shrink_cache(struct vdisk_store *store)
{
	LIST_HEAD(freed);
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	if (!list_empty(&store->cache.writes))
		store_make_first_stable(store, &freed);
	xa_unlock_irqrestore(&store->blocks, flags);
	if (list_empty(&freed))
		return false;
	store_writes_free(store, &freed);
	return true;
}

/**
 * vdisk_store_create - create an empty store
 * @params: parameters of the disk
 *
 * Context: may sleep.
 * Return: the store, or ERR_PTR(-ENOMEM).
 */
struct vdisk_store *vdisk_store_create(const struct vdisk_params *params)
{
	struct vdisk_store *store;

	store = kzalloc(sizeof(*store), GFP_KERNEL);
	if (!store)
		return ERR_PTR(-ENOMEM);

	store->block_size = params->logical_block_size;
	store->volatile_cache = params->write_cache;
	store->seed = params->seed;
	xa_init_flags(&store->blocks, XA_FLAGS_LOCK_IRQ);
	INIT_LIST_HEAD(&store->in_flight);
	INIT_LIST_HEAD(&store->cache.writes);
	INIT_LIST_HEAD(&store->cutting);
	return store;
}

/**
 * vdisk_store_destroy - free a store
 * @store: the store, without requests in flight
 *
 * Context: may sleep.
 */
void vdisk_store_destroy(struct vdisk_store *store)
{
	struct vdisk_block *block;
	unsigned long index;

	store_writes_free(store, &store->cache.writes);
	xa_for_each(&store->blocks, index, block) {
		store_data_free(store, block->data);
		kfree(block);
		cond_resched();
	}
	xa_destroy(&store->blocks);
	kfree(store);
}

/**
 * vdisk_store_read - copy the contents of the store to a read
 * @store: the store
 * @rq: the read
 */
void vdisk_store_read(struct vdisk_store *store, struct request *rq)
{
	u64 pos = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	struct req_iterator iter;
	struct bio_vec bvec;
	unsigned long flags;

	rq_for_each_segment(bvec, rq, iter) {
		u32 done, len;

		for (done = 0; done < bvec.bv_len; done += len) {
			u32 offset = pos & (STORE_BLOCK_BYTES - 1);
			struct vdisk_block *block;

			len = min_t(u32, bvec.bv_len - done,
				    STORE_BLOCK_BYTES - offset);
			xa_lock_irqsave(&store->blocks, flags);
			block = xa_load(&store->blocks,
					pos >> STORE_BLOCK_SHIFT);
			if (block && block->data)
				memcpy_to_page(bvec.bv_page,
					       bvec.bv_offset + done,
					       block->data + offset, len);
			else
				memzero_page(bvec.bv_page,
					     bvec.bv_offset + done, len);
			xa_unlock_irqrestore(&store->blocks, flags);
			pos += len;
		}
	}
}

/**
 * vdisk_store_write - store the data of a write, or the zeros of a trim
 * @store: the store
 * @rq: the write or trim
 * @write: set if the result is BLK_STS_OK; for vdisk_store_write_end()
 *
 * Return: BLK_STS_OK, or a status for the block layer, with nothing changed:
 * BLK_STS_RESOURCE without memory, BLK_STS_NOSPC if that lasts, BLK_STS_OFFLINE
 * without power.
 */
blk_status_t vdisk_store_write(struct vdisk_store *store, struct request *rq,
			       struct vdisk_write **write)
{
	struct vdisk_write *new;
	struct vdisk_slot *slot;
	void *emptied = NULL;
	unsigned long flags;
	bool cut;

	while (!(new = store_write_alloc(store, rq))) {
		if (!store_shrink_cache(store))
			return store_no_memory_status(store);
	}
	if (req_op(rq) == REQ_OP_WRITE)
		store_write_fill(store, new, rq);

	xa_lock_irqsave(&store->blocks, flags);
	if (store->powered_off) {
		xa_unlock_irqrestore(&store->blocks, flags);
		store_write_free(store, new);
		return BLK_STS_OFFLINE;
	}
	store->shortage.lasts = false;
	new->seq = store->counters.nr_submitted++;
	list_add_tail(&new->link, &store->in_flight);
	xa_unlock_irqrestore(&store->blocks, flags);

	for (slot = new->slots; slot; slot = slot->next) {
		struct vdisk_block *block = slot->block;

		xa_lock_irqsave(&store->blocks, flags);
		cut = new->power_cut;
		if (!cut) {
			store_exchange_sectors(block, slot, slot->mask, NULL);
			hlist_add_head(&slot->chain, &block->slots);
			/* A partial write may leave a block of zeros. */
			if (slot->mask != STORE_MASK_ALL && block->data &&
			    !memchr_inv(block->data, 0, STORE_BLOCK_BYTES))
				swap(emptied, block->data);
		}
		xa_unlock_irqrestore(&store->blocks, flags);
		store_data_free(store, emptied);
		emptied = NULL;
		if (cut)
			break;
	}
	*write = new;
	return BLK_STS_OK;
}

/**
 * vdisk_store_write_end - end a write or trim
 * @store: the store
 * @write: the write, from vdisk_store_write(); freed
 * @fua: whether the write becomes stable
 *
 * Context: any.
 * Return: BLK_STS_OK, or BLK_STS_OFFLINE if the power was cut in between.
 */
blk_status_t vdisk_store_write_end(struct vdisk_store *store,
				   struct vdisk_write *write, bool fua)
{
	LIST_HEAD(freed);
	unsigned long flags;
	bool cut;

	xa_lock_irqsave(&store->blocks, flags);
	cut = write->power_cut;
	if (cut) {
		/* The cut may still process it. */
	} else if (fua || !store->volatile_cache) {
		store_make_stable(store, write);
		list_move(&write->link, &freed);
	} else {
		write->end_seq = ++store->counters.nr_ended;
		list_move_tail(&write->link, &store->cache.writes);
		store->cache.nr_slots += write->nr_slots;
		store->cache.nr_writes++;
		while (store->cache.nr_slots > STORE_CACHE_SLOTS_MAX)
			store_make_first_stable(store, &freed);
	}
	xa_unlock_irqrestore(&store->blocks, flags);

	if (cut)
		store_write_put(store, write);
	store_writes_free(store, &freed);
	return cut ? BLK_STS_OFFLINE : BLK_STS_OK;
}

/**
 * vdisk_store_mark - record the state of the store when a flush comes
 * @store: the store
 *
 * Return: the mark, for vdisk_store_flush_end().
 */
struct vdisk_mark vdisk_store_mark(struct vdisk_store *store)
{
	struct vdisk_mark mark;
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	mark.nr_ended = store->counters.nr_ended;
	mark.nr_cuts = store->counters.nr_cuts;
	xa_unlock_irqrestore(&store->blocks, flags);
	return mark;
}

/**
 * vdisk_store_flush_end - end a flush
 * @store: the store
 * @mark: the flush's mark; writes that had ended then become stable
 *
 * Context: any.
 * Return: BLK_STS_OK, or BLK_STS_OFFLINE if the power was cut in between.
 */
blk_status_t vdisk_store_flush_end(struct vdisk_store *store,
				   struct vdisk_mark mark)
{
	struct vdisk_write *write;
	unsigned long flags;
	bool cut;

	do {
		LIST_HEAD(freed);

		xa_lock_irqsave(&store->blocks, flags);
		cut = store->counters.nr_cuts != mark.nr_cuts;
		write = list_first_entry_or_null(&store->cache.writes,
						 struct vdisk_write, link);
		if (cut || (write && write->end_seq > mark.nr_ended))
			write = NULL;
		if (write)
			store_make_first_stable(store, &freed);
		xa_unlock_irqrestore(&store->blocks, flags);
		store_writes_free(store, &freed);
	} while (write);
	return cut ? BLK_STS_OFFLINE : BLK_STS_OK;
}

/**
 * vdisk_store_get_stats - get the current statistics
 * @store: the store
 * @stats: set to the statistics
 */
void vdisk_store_get_stats(struct vdisk_store *store,
			   struct vdisk_store_stats *stats)
{
	stats->bytes = (u64)atomic_long_read(&store->nr_blocks)
		       << STORE_BLOCK_SHIFT;
	xa_lock_irq(&store->blocks);
	stats->unstable = store->cache.nr_writes;
	stats->lost = store->counters.fates[STORE_LOST];
	stats->torn = store->counters.fates[STORE_TORN];
	stats->kept = store->counters.fates[STORE_KEPT];
	xa_unlock_irq(&store->blocks);
}
