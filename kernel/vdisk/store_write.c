// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unstable writes: their memory, and how they become stable. The design is in
 * store.c.
 */
#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "store_write.h"

/* Free a write whose slots are off all chains. */
void store_write_free(struct vdisk_store *store, struct vdisk_write *write)
{
	struct vdisk_slot *slot;
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	for (slot = write->slots; slot; slot = slot->next)
		store_block_put(store, slot->block);
	xa_unlock_irqrestore(&store->blocks, flags);

	while ((slot = write->slots)) {
		write->slots = slot->next;
		store_data_free(store, slot->data);
		kfree(slot);
	}
	kfree(write);
}

/* Drop a reference to a write. The last one frees it. */
void store_write_put(struct vdisk_store *store, struct vdisk_write *write)
{
	unsigned long flags;
	bool last;

	xa_lock_irqsave(&store->blocks, flags);
	last = !--write->refs;
	xa_unlock_irqrestore(&store->blocks, flags);
	if (last)
		store_write_free(store, write);
}

/* Free a list of writes. */
void store_writes_free(struct vdisk_store *store, struct list_head *writes)
{
	struct vdisk_write *write, *next;

	list_for_each_entry_safe(write, next, writes, link)
		store_write_free(store, write);
}

/*
 * Allocate a slot that takes over a reference to a block; NULL without memory.
 * Its contents are uninitialized; for a trim they are zeros.
 */
static struct vdisk_slot *store_slot_alloc(struct vdisk_store *store,
					   struct vdisk_write *write,
					   struct vdisk_block *block, bool trim)
{
	struct vdisk_slot *slot = kzalloc(sizeof(*slot), STORE_GFP);

	if (!slot)
		return NULL;

	slot->write = write;
	slot->block = block;
	slot->mask = store_mask_before(block, write->pos + write->bytes) &
		     ~store_mask_before(block, write->pos);
	if (trim && slot->mask == STORE_MASK_ALL)
		return slot;

	if (store_may_grow())
		slot->data = store_data_alloc(store, STORE_GFP);
	if (!slot->data) {
		kfree(slot);
		return NULL;
	}
	if (trim)
		memset(slot->data, 0, STORE_BLOCK_BYTES);
	return slot;
}

/* Allocate a write with all memory that it needs. Return NULL if that fails. */
struct vdisk_write *store_write_alloc(struct vdisk_store *store,
				      struct request *rq)
{
	bool trim = req_op(rq) == REQ_OP_DISCARD;
	struct vdisk_write *write;
	struct vdisk_slot **tail;
	unsigned long index, last;

	write = kzalloc(sizeof(*write), STORE_GFP);
	if (!write)
		return NULL;

	write->refs = 1;
	write->pos = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	write->bytes = blk_rq_bytes(rq);
	index = write->pos >> STORE_BLOCK_SHIFT;
	last = (write->pos + write->bytes - 1) >> STORE_BLOCK_SHIFT;
	tail = &write->slots;
	for (; index <= last; index++) {
		struct vdisk_block *block;
		unsigned long flags;

		/* A trim skips missing blocks: these are zeros already. */
		block = trim ? store_block_find(store, index, last) :
			       store_block_get(store, index);
		if (trim && !block)
			break;
		if (!block)
			goto free;

		*tail = store_slot_alloc(store, write, block, trim);
		if (!*tail) {
			xa_lock_irqsave(&store->blocks, flags);
			store_block_put(store, block);
			xa_unlock_irqrestore(&store->blocks, flags);
			goto free;
		}
		tail = &(*tail)->next;
		write->nr_slots++;
		index = block->index;
	}
	return write;

free:
	store_write_free(store, write);
	return NULL;
}

/* Fill the slots with the data of the request. */
void store_write_fill(struct vdisk_store *store, struct vdisk_write *write,
		      struct request *rq)
{
	struct vdisk_slot *slot = write->slots;
	u32 offset = write->pos & (STORE_BLOCK_BYTES - 1);
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		u32 done, len;

		for (done = 0; done < bvec.bv_len; done += len) {
			len = min_t(u32, bvec.bv_len - done,
				    STORE_BLOCK_BYTES - offset);
			memcpy_from_page(slot->data + offset, bvec.bv_page,
					 bvec.bv_offset + done, len);
			offset += len;
			if (offset == STORE_BLOCK_BYTES) {
				offset = 0;
				slot = slot->next;
			}
		}
	}

	for (slot = write->slots; slot; slot = slot->next) {
		if (slot->mask == STORE_MASK_ALL &&
		    !memchr_inv(slot->data, 0, STORE_BLOCK_BYTES)) {
			store_data_free(store, slot->data);
			slot->data = NULL;
		}
	}
}

/* Make a write stable: remove its slots from their blocks. */
void store_make_stable(struct vdisk_store *store, struct vdisk_write *write)
{
	struct vdisk_slot *slot;

	lockdep_assert_held(&store->blocks.xa_lock);

	for (slot = write->slots; slot; slot = slot->next) {
		struct hlist_node *node, *next;

		if (hlist_unhashed(&slot->chain))
			continue;
		for (node = slot->chain.next; node; node = next) {
			struct vdisk_slot *older;

			next = node->next;
			older = hlist_entry(node, struct vdisk_slot, chain);
			older->mask &= ~slot->mask;
			if (!older->mask)
				hlist_del_init(&older->chain);
		}
		hlist_del_init(&slot->chain);
	}
}

/* Make the write stable that ended first, and add it to a list to be freed. */
void store_make_first_stable(struct vdisk_store *store, struct list_head *freed)
{
	struct store_cache *cache = &store->cache;
	struct vdisk_write *write;

	write = list_first_entry(&cache->writes, struct vdisk_write, link);
	store_make_stable(store, write);
	cache->nr_slots -= write->nr_slots;
	cache->nr_writes--;
	list_move(&write->link, freed);
}
