// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is on a disk whose "store" is "memory", and what a power cut leaves.
 *
 * When. Reads and writes see and change the contents when they are queued, one
 * 4 KiB block after the other; when they end is the model's affair. Any instant
 * between a request's start and its end is right for that: a read that is
 * queued after a write has ended finds it, and of two requests in flight at a
 * time nobody may expect an order. As on a real disk, a logical block is never
 * half old and half new, but a request of several blocks may be.
 *
 * Memory. An xarray leads from the number of a 4 KiB block to its contents. A
 * block of zeros has none, and soon no entry either.
 *
 * Sleeping. A disk with contents is to be the same disk in time as one without,
 * so queue_rq() stays what it is, in atomic context: a queue that may sleep
 * (BLK_MQ_F_BLOCKING) hands requests to a worker. So a write takes all its
 * memory first, without waiting for any. If there is none, it has changed
 * nothing, the block layer tries it again some ms later, and kswapd was woken.
 * Nobody can promise that memory becomes free: after STORE_PATIENCE without, a
 * write fails with "no space", as on a thin disk whose pool is full. All disks
 * together take half of the machine's memory at most, as a tmpfs does: what
 * cannot be swapped must leave room for those who use it. What the volatile
 * cache keeps only for a cut gives way first.
 *
 * Power cuts. A write is unstable until it has ended, and in a volatile cache
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
 * A write that becomes stable takes its slots off the blocks. What older writes,
 * still unstable, have replaced there must not come back any more: their slots
 * lose these sectors. So FUA is never undone by what it has overwritten.
 *
 * A volatile cache is of finite size. Beyond STORE_CACHE_SLOTS, the writes that
 * ended first become stable by themselves.
 *
 * Whether a write is lost, kept or torn is a function of the seed and of its
 * number in the order of submission. A torn one keeps a part from its front,
 * up to the end of a logical block.
 *
 * Locking. The lock of the xarray protects the store's fields, the blocks and
 * the chains and masks of slots. It is taken with interrupts off, for a write may
 * end in the timer, and held for one block's contents, or for a write without
 * its contents. A write's list of slots does not change from its submission to
 * its end; the write is then freed, or after the cut that was at work on it.
 */
#include <linux/bits.h>
#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "random.h"
#include "store.h"

/* A block: the page of most machines. Sectors in it have a bit each. */
#define STORE_SHIFT		12
#define STORE_BLOCK		BIT(STORE_SHIFT)
#define STORE_SECTORS		(STORE_BLOCK >> SECTOR_SHIFT)
#define STORE_ALL		((u8)GENMASK(STORE_SECTORS - 1, 0))

/* Nothing waits for this memory, and its lack is no news. */
#define STORE_GFP		(GFP_NOWAIT | __GFP_NOWARN)

/* Long enough to write some gigabytes of dirty pages elsewhere. */
#define STORE_PATIENCE		(10 * HZ)

/* Contents of all disks at most: half of the memory. */
#define STORE_MAX_BLOCKS	((totalram_pages() / 2) << (PAGE_SHIFT - STORE_SHIFT))

/* 64 MiB: the volatile cache of a common disk. */
#define STORE_CACHE_SLOTS	(SZ_64M >> STORE_SHIFT)

/* A cut loses a write, keeps it, or tears it, if it has two blocks at least. */
enum store_fate {
	STORE_LOST,
	STORE_KEPT,
	STORE_TORN,
	STORE_NR_FATES,
};

/**
 * struct vdisk_block - 4 KiB of the disk
 * @index: position on the disk, in blocks
 * @data: contents, NULL for zeros
 * @slots: unstable writes to it, newest first
 * @users: slots that point here, on @slots or not
 */
struct vdisk_block {
	unsigned long index;
	void *data;
	struct hlist_head slots;
	u32 users;
};

/**
 * struct vdisk_slot - a block of a write
 * @next: of the write
 * @write: the write
 * @block: the block
 * @chain: on the block's slots, unless stable
 * @data: before the write the new contents, then the old ones; NULL for zeros,
 *	  undefined outside the mask
 * @mask: sectors that the write has changed, as far as that may be undone
 */
struct vdisk_slot {
	struct vdisk_slot *next;
	struct vdisk_write *write;
	struct vdisk_block *block;
	struct hlist_node chain;
	void *data;
	u8 mask;
};

/**
 * struct vdisk_write - a write or trim that is unstable
 * @link: on the store's flying or ended, or cutting if @cut
 * @slots: its blocks, in order
 * @nr_slots: how many
 * @pos: first byte
 * @bytes: length
 * @seq: in the order of submission
 * @ended: in the order of ending
 * @kept_to: byte up to which a cut has kept it
 * @cut: the power was cut before it ended
 * @users: one, and during a cut also that
 */
struct vdisk_write {
	struct list_head link;
	struct vdisk_slot *slots;
	u32 nr_slots;
	u64 pos;
	u32 bytes;
	u64 seq;
	u64 ended;
	u64 kept_to;
	bool cut;
	u8 users;
};

/**
 * struct vdisk_store - contents of a disk
 * @block_size: logical, bytes; constant
 * @cache: has a volatile cache; constant
 * @seed: of cuts; constant
 * @blocks: by index; its lock protects all that follows
 * @off: no power
 * @short_of: the last write found no memory
 * @short_since: jiffies at the first that did not
 * @seq: writes ever submitted
 * @nr_ended: writes ever ended
 * @cuts: power cuts ever
 * @flying: writes not ended
 * @ended: unstable writes that have, in that order
 * @cutting: those of both that a cut has yet to work off
 * @ended_slots: of those on @ended
 * @unstable: how many are on @ended
 * @fates: writes by what cuts have done to them
 * @held: contents in memory, of blocks and slots; atomic
 */
struct vdisk_store {
	u64 block_size;
	bool cache;
	u64 seed;

	struct xarray blocks;
	bool off;
	bool short_of;
	unsigned long short_since;
	u64 seq;
	u64 nr_ended;
	u64 cuts;
	struct list_head flying;
	struct list_head ended;
	struct list_head cutting;
	u64 ended_slots;
	u64 unstable;
	u64 fates[STORE_NR_FATES];
	atomic_long_t held;
};

/* Contents in memory, of all stores. */
static atomic_long_t all_held = ATOMIC_LONG_INIT(0);

/* Contents of undefined value, or NULL. */
static void *data_alloc(struct vdisk_store *store, gfp_t gfp)
{
	void *data = kmalloc(STORE_BLOCK, gfp);

	if (data) {
		atomic_long_inc(&store->held);
		atomic_long_inc(&all_held);
	}
	return data;
}

static void data_free(struct vdisk_store *store, void *data)
{
	if (data) {
		atomic_long_dec(&store->held);
		atomic_long_dec(&all_held);
	}
	kfree(data);
}

/* What the contents are in a sector. */
static void *sector(void *data, int i)
{
	return data + (i << SECTOR_SHIFT);
}

/*
 * Swap the sectors of a mask between a block and a slot. A spare is needed, and
 * then taken, only if the block has contents, the slot none and the mask holes.
 */
static void exchange(struct vdisk_block *block, struct vdisk_slot *slot,
		     u8 mask, void **spare)
{
	int i, j;

	if (mask == STORE_ALL) {
		swap(block->data, slot->data);
		return;
	}
	if (!mask || (!block->data && !slot->data))
		return;

	if (!block->data) {
		/* Zeros with the new sectors for zeros. */
		for (i = 0; i < STORE_SECTORS; i++) {
			if (!(mask & BIT(i)))
				memset(sector(slot->data, i), 0, SECTOR_SIZE);
		}
		swap(block->data, slot->data);
		return;
	}
	if (!slot->data) {
		slot->data = *spare;
		*spare = NULL;
		memset(slot->data, 0, STORE_BLOCK);
	}
	for (i = 0; i < STORE_SECTORS; i++) {
		u64 *a = sector(block->data, i);
		u64 *b = sector(slot->data, i);

		if (!(mask & BIT(i)))
			continue;
		for (j = 0; j < SECTOR_SIZE / sizeof(u64); j++)
			swap(a[j], b[j]);
	}
}

/* The sectors of a block that lie before a byte of the disk. */
static u8 sectors_before(const struct vdisk_block *block, u64 byte)
{
	u64 start = (u64)block->index << STORE_SHIFT;

	if (byte <= start)
		return 0;
	byte = min_t(u64, byte - start, STORE_BLOCK);
	return GENMASK_ULL(byte >> SECTOR_SHIFT, 0) >> 1;
}

/* The block of that number, for a slot. NULL if there is no memory. */
static struct vdisk_block *block_get(struct vdisk_store *store,
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
	block->users++;
unlock:
	xa_unlock_irqrestore(&store->blocks, flags);
	return block;
}

/* The first block from a number to another that exists, for a slot, or NULL. */
static struct vdisk_block *block_find(struct vdisk_store *store,
				      unsigned long index, unsigned long last)
{
	struct vdisk_block *block;
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	block = xa_find(&store->blocks, &index, last, XA_PRESENT);
	if (block)
		block->users++;
	xa_unlock_irqrestore(&store->blocks, flags);
	return block;
}

/* A slot is gone. A block of zeros goes with its last one. */
static void block_put(struct vdisk_store *store, struct vdisk_block *block)
{
	lockdep_assert_held(&store->blocks.xa_lock);

	if (--block->users || block->data)
		return;
	__xa_erase(&store->blocks, block->index);
	kfree(block);
}

/* Free a write whose slots are on no chain. */
static void write_free(struct vdisk_store *store, struct vdisk_write *write)
{
	struct vdisk_slot *slot;
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	for (slot = write->slots; slot; slot = slot->next)
		block_put(store, slot->block);
	xa_unlock_irqrestore(&store->blocks, flags);

	while ((slot = write->slots)) {
		write->slots = slot->next;
		data_free(store, slot->data);
		kfree(slot);
	}
	kfree(write);
}

static void write_put(struct vdisk_store *store, struct vdisk_write *write)
{
	unsigned long flags;
	bool last;

	xa_lock_irqsave(&store->blocks, flags);
	last = !--write->users;
	xa_unlock_irqrestore(&store->blocks, flags);
	if (last)
		write_free(store, write);
}

static void writes_free(struct vdisk_store *store, struct list_head *writes)
{
	struct vdisk_write *write, *next;

	list_for_each_entry_safe(write, next, writes, link)
		write_free(store, write);
}

/*
 * A slot for a block, which it takes over. Contents are of no value yet; of a
 * trim they are zeros.
 */
static struct vdisk_slot *slot_alloc(struct vdisk_store *store,
				     struct vdisk_write *write,
				     struct vdisk_block *block, bool trim)
{
	struct vdisk_slot *slot = kzalloc(sizeof(*slot), STORE_GFP);

	if (!slot)
		return NULL;

	slot->write = write;
	slot->block = block;
	slot->mask = sectors_before(block, write->pos + write->bytes) &
		     ~sectors_before(block, write->pos);
	if (trim && slot->mask == STORE_ALL)
		return slot;

	if (atomic_long_read(&all_held) < STORE_MAX_BLOCKS)
		slot->data = data_alloc(store, STORE_GFP);
	if (!slot->data) {
		kfree(slot);
		return NULL;
	}
	if (trim)
		memset(slot->data, 0, STORE_BLOCK);
	return slot;
}

/* A write with all the memory that it needs, or NULL. */
static struct vdisk_write *write_alloc(struct vdisk_store *store,
				       struct request *rq)
{
	bool trim = req_op(rq) == REQ_OP_DISCARD;
	struct vdisk_write *write;
	struct vdisk_slot **tail;
	unsigned long index, last;

	write = kzalloc(sizeof(*write), STORE_GFP);
	if (!write)
		return NULL;

	write->users = 1;
	write->pos = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	write->bytes = blk_rq_bytes(rq);
	index = write->pos >> STORE_SHIFT;
	last = (write->pos + write->bytes - 1) >> STORE_SHIFT;
	tail = &write->slots;
	for (; index <= last; index++) {
		struct vdisk_block *block;
		unsigned long flags;

		/* What is not there is zeros already. */
		block = trim ? block_find(store, index, last) :
			       block_get(store, index);
		if (trim && !block)
			break;
		if (!block)
			goto free;

		*tail = slot_alloc(store, write, block, trim);
		if (!*tail) {
			xa_lock_irqsave(&store->blocks, flags);
			block_put(store, block);
			xa_unlock_irqrestore(&store->blocks, flags);
			goto free;
		}
		tail = &(*tail)->next;
		write->nr_slots++;
		index = block->index;
	}
	return write;

free:
	write_free(store, write);
	return NULL;
}

/* Fill the slots with what is to be written. */
static void write_fill(struct vdisk_store *store, struct vdisk_write *write,
		       struct request *rq)
{
	struct vdisk_slot *slot = write->slots;
	u32 offset = write->pos & (STORE_BLOCK - 1);
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		u32 done, len;

		for (done = 0; done < bvec.bv_len; done += len) {
			len = min_t(u32, bvec.bv_len - done,
				    STORE_BLOCK - offset);
			memcpy_from_page(slot->data + offset, bvec.bv_page,
					 bvec.bv_offset + done, len);
			offset += len;
			if (offset == STORE_BLOCK) {
				offset = 0;
				slot = slot->next;
			}
		}
	}

	for (slot = write->slots; slot; slot = slot->next) {
		if (slot->mask == STORE_ALL &&
		    !memchr_inv(slot->data, 0, STORE_BLOCK)) {
			data_free(store, slot->data);
			slot->data = NULL;
		}
	}
}

/* A write found no memory: is it to be tried again? */
static blk_status_t no_memory(struct vdisk_store *store)
{
	unsigned long flags;
	bool over;

	xa_lock_irqsave(&store->blocks, flags);
	if (!store->short_of) {
		store->short_of = true;
		store->short_since = jiffies;
	}
	over = time_after(jiffies, store->short_since + STORE_PATIENCE);
	xa_unlock_irqrestore(&store->blocks, flags);
	return over ? BLK_STS_NOSPC : BLK_STS_RESOURCE;
}

/* Take a write off its blocks, for good. */
static void settle(struct vdisk_store *store, struct vdisk_write *write)
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

/* Settle the write that ended first, and put it on a list to be freed. */
static void settle_first(struct vdisk_store *store, struct list_head *freed)
{
	struct vdisk_write *write;

	write = list_first_entry(&store->ended, struct vdisk_write, link);
	settle(store, write);
	store->ended_slots -= write->nr_slots;
	store->unstable--;
	list_move(&write->link, freed);
}

/* Make memory free. False if the volatile cache has none. */
static bool shrink(struct vdisk_store *store)
{
	LIST_HEAD(freed);
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	if (!list_empty(&store->ended))
		settle_first(store, &freed);
	xa_unlock_irqrestore(&store->blocks, flags);
	if (list_empty(&freed))
		return false;
	writes_free(store, &freed);
	return true;
}

/**
 * vdisk_store_create - an empty store
 * @params: of the disk
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
	store->cache = params->write_cache;
	store->seed = params->seed;
	xa_init_flags(&store->blocks, XA_FLAGS_LOCK_IRQ);
	INIT_LIST_HEAD(&store->flying);
	INIT_LIST_HEAD(&store->ended);
	INIT_LIST_HEAD(&store->cutting);
	return store;
}

/**
 * vdisk_store_destroy - free a store
 * @store: no request is in flight
 *
 * Context: may sleep.
 */
void vdisk_store_destroy(struct vdisk_store *store)
{
	struct vdisk_block *block;
	unsigned long index;

	writes_free(store, &store->ended);
	xa_for_each(&store->blocks, index, block) {
		data_free(store, block->data);
		kfree(block);
		cond_resched();
	}
	xa_destroy(&store->blocks);
	kfree(store);
}

/**
 * vdisk_store_read - fill a read with what is stored
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
			u32 offset = pos & (STORE_BLOCK - 1);
			struct vdisk_block *block;

			len = min_t(u32, bvec.bv_len - done,
				    STORE_BLOCK - offset);
			xa_lock_irqsave(&store->blocks, flags);
			block = xa_load(&store->blocks, pos >> STORE_SHIFT);
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
 * vdisk_store_write - store what a write has, or what a trim has not
 * @store: the store
 * @rq: the write or trim
 * @write: set if the result is BLK_STS_OK; goes to vdisk_store_write_end()
 *
 * Return: BLK_STS_OK, or a status for the block layer, and nothing is changed:
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

	while (!(new = write_alloc(store, rq))) {
		if (!shrink(store))
			return no_memory(store);
	}
	if (req_op(rq) == REQ_OP_WRITE)
		write_fill(store, new, rq);

	xa_lock_irqsave(&store->blocks, flags);
	if (store->off) {
		xa_unlock_irqrestore(&store->blocks, flags);
		write_free(store, new);
		return BLK_STS_OFFLINE;
	}
	store->short_of = false;
	new->seq = store->seq++;
	list_add_tail(&new->link, &store->flying);
	xa_unlock_irqrestore(&store->blocks, flags);

	for (slot = new->slots; slot; slot = slot->next) {
		struct vdisk_block *block = slot->block;

		xa_lock_irqsave(&store->blocks, flags);
		cut = new->cut;
		if (!cut) {
			exchange(block, slot, slot->mask, NULL);
			hlist_add_head(&slot->chain, &block->slots);
			/* Sectors of zeros may be the last that were not. */
			if (slot->mask != STORE_ALL && block->data &&
			    !memchr_inv(block->data, 0, STORE_BLOCK))
				swap(emptied, block->data);
		}
		xa_unlock_irqrestore(&store->blocks, flags);
		data_free(store, emptied);
		emptied = NULL;
		if (cut)
			break;
	}
	*write = new;
	return BLK_STS_OK;
}

/**
 * vdisk_store_write_end - a write or trim ends
 * @store: the store
 * @write: of vdisk_store_write(); is gone afterwards
 * @fua: it is to be stable
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
	cut = write->cut;
	if (cut) {
		/* That may still be at work on it. */
	} else if (fua || !store->cache) {
		settle(store, write);
		list_move(&write->link, &freed);
	} else {
		write->ended = ++store->nr_ended;
		list_move_tail(&write->link, &store->ended);
		store->ended_slots += write->nr_slots;
		store->unstable++;
		while (store->ended_slots > STORE_CACHE_SLOTS)
			settle_first(store, &freed);
	}
	xa_unlock_irqrestore(&store->blocks, flags);

	if (cut)
		write_put(store, write);
	writes_free(store, &freed);
	return cut ? BLK_STS_OFFLINE : BLK_STS_OK;
}

/**
 * vdisk_store_mark - a flush comes
 * @store: the store
 *
 * Return: for vdisk_store_flush_end().
 */
struct vdisk_mark vdisk_store_mark(struct vdisk_store *store)
{
	struct vdisk_mark mark;
	unsigned long flags;

	xa_lock_irqsave(&store->blocks, flags);
	mark.ended = store->nr_ended;
	mark.cuts = store->cuts;
	xa_unlock_irqrestore(&store->blocks, flags);
	return mark;
}

/**
 * vdisk_store_flush_end - a flush ends
 * @store: the store
 * @mark: of when it came; what had ended then is stable now
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
		cut = store->cuts != mark.cuts;
		write = list_first_entry_or_null(&store->ended,
						 struct vdisk_write, link);
		if (cut || (write && write->ended > mark.ended))
			write = NULL;
		if (write)
			settle_first(store, &freed);
		xa_unlock_irqrestore(&store->blocks, flags);
		writes_free(store, &freed);
	} while (write);
	return cut ? BLK_STS_OFFLINE : BLK_STS_OK;
}

/* What a cut leaves of a write. */
static void cut_write(struct vdisk_store *store, struct vdisk_write *write)
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
	store->fates[fate]++;
}

/* A spare for exchange(), in process context. Such a small one is always had. */
static void spare_alloc(struct vdisk_store *store, void **spare)
{
	if (!*spare)
		*spare = data_alloc(store, GFP_KERNEL | __GFP_NOFAIL);
}

/*
 * What a cut leaves of a block, whose unstable writes are all cut: nobody else
 * changes it, but it may be read.
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
		exchange(block, slot, slot->mask, spare);
		hlist_del(&slot->chain);
		hlist_add_head(&slot->chain, &oldest_first);
		xa_unlock_irq(&store->blocks);
	}
	hlist_for_each_entry_safe(slot, next, &oldest_first, chain) {
		u8 kept = sectors_before(block, slot->write->kept_to);

		spare_alloc(store, spare);
		xa_lock_irq(&store->blocks);
		exchange(block, slot, slot->mask & kept, spare);
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
	store->cuts++;
	/* Those in flight go on pointing to their writes. */
	list_for_each_entry(write, &store->flying, link) {
		write->cut = true;
		write->users++;
	}
	list_splice_init(&store->ended, &writes);
	list_splice_tail_init(&store->flying, &writes);
	store->ended_slots = 0;
	store->unstable = 0;
	list_for_each_entry(write, &writes, link)
		cut_write(store, write);
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
	data_free(store, spare);

	list_for_each_entry_safe(write, next, &writes, link)
		write_put(store, write);
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

/**
 * vdisk_store_get_stats - figures as of now
 * @store: the store
 * @stats: where to
 */
void vdisk_store_get_stats(struct vdisk_store *store,
			   struct vdisk_store_stats *stats)
{
	stats->bytes = (u64)atomic_long_read(&store->held) << STORE_SHIFT;
	xa_lock_irq(&store->blocks);
	stats->unstable = store->unstable;
	stats->lost = store->fates[STORE_LOST];
	stats->torn = store->fates[STORE_TORN];
	stats->kept = store->fates[STORE_KEPT];
	xa_unlock_irq(&store->blocks);
}
