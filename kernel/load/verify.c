// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verification. The region consists of units, each the size of the smallest
 * request. Each unit has a word with the number of writes to it in this run,
 * and whether its content is known:
 *
 *	generation (30 bits, 0 = never written) | BUSY | UNKNOWN
 *
 * BUSY units are being written. No two writes overlap: a write that would
 * overlap is moved to the next free place. A failed write leaves UNKNOWN, until
 * the next write. A read verifies a written unit if its word has neither flag,
 * and is the same when the read is issued and when it has ended.
 *
 * Every logical block of a written unit begins with a stamp: its address, its
 * unit's generation, the tenant's seed. The rest is zero.
 */
#include <linux/bits.h>
#include <linux/bvec.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "verify.h"

#define BLKLOAD_GEN_BUSY	BIT(31)
#define BLKLOAD_GEN_UNKNOWN	BIT(30)
#define BLKLOAD_GEN_MASK	(BLKLOAD_GEN_UNKNOWN - 1)

/*
 * Size of a buffer's pieces: large enough that 1 MiB has fewer than the 128
 * segments of a usual device, small enough for fragmented memory.
 */
#define BLKLOAD_PIECE_BYTES_MAX	(64U << 10)

/* The stamp at the begin of every logical block of a written unit. */
struct blkload_stamp {
	u64 address;	/* the block's first byte on the device */
	u64 gen;	/* generation of the block's unit */
	u64 seed;	/* the tenant's randseed */
};

/**
 * blkload_buf_init - allocate a zeroed buffer
 * @buf: the buffer, zeroed
 * @bytes: size of the largest request, bytes
 * @repeated: whether all entries share one piece
 *
 * Context: May sleep.
 * Return: 0 or -ENOMEM; blkload_buf_free() cleans up in both cases.
 */
int blkload_buf_init(struct blkload_buf *buf, u32 bytes, bool repeated)
{
	u32 chunk = clamp(roundup_pow_of_two(bytes), (u32)PAGE_SIZE,
			  max_t(u32, BLKLOAD_PIECE_BYTES_MAX, PAGE_SIZE));
	u32 nr = DIV_ROUND_UP(bytes, chunk), i;
	struct page *page = NULL;

	buf->vecs = kvcalloc(nr, sizeof(*buf->vecs), GFP_KERNEL);
	if (!buf->vecs)
		return -ENOMEM;
	buf->piece_bytes = chunk;
	buf->repeated = repeated;
	for (i = 0; i < nr; i++) {
		if (!page || !repeated)
			page = alloc_pages(GFP_KERNEL | __GFP_ZERO |
					   __GFP_COMP | __GFP_NOWARN,
					   get_order(chunk));
		if (!page)
			return -ENOMEM;
		bvec_set_page(&buf->vecs[i], page, chunk, 0);
		buf->nr_vecs = i + 1;
	}
	return 0;
}

/**
 * blkload_buf_free - free a buffer
 * @buf: the buffer, initialised or zeroed
 */
void blkload_buf_free(struct blkload_buf *buf)
{
	u32 i, pieces = buf->repeated ? min(buf->nr_vecs, 1U) : buf->nr_vecs;

	for (i = 0; i < pieces; i++)
		__free_pages(buf->vecs[i].bv_page, get_order(buf->piece_bytes));
	kvfree(buf->vecs);
	*buf = (struct blkload_buf) {};
}

/**
 * blkload_verify_init - initialize verification, without known content
 * @v: the verification, zeroed
 * @base: first byte of the region
 * @bytes: size of the region
 * @unit: size of the smallest request; all others are multiples of it
 * @block: logical block size of the device
 * @seed: the tenant's randseed
 *
 * Context: May sleep.
 * Return: 0 or -ENOMEM.
 */
int blkload_verify_init(struct blkload_verify *v, u64 base, u64 bytes,
			u32 unit, u32 block, u64 seed)
{
	spin_lock_init(&v->lock);
	v->nr_units = div_u64(bytes, unit);
	v->unit_bytes = unit;
	v->block_bytes = block;
	v->base_pos = base;
	v->seed = seed;
	v->gens = kvcalloc(v->nr_units, sizeof(*v->gens),
			   GFP_KERNEL | __GFP_NOWARN);
	return v->gens ? 0 : -ENOMEM;
}

/**
 * blkload_verify_free - free the knowledge of the content
 * @v: the verification, initialised or zeroed
 */
void blkload_verify_free(struct blkload_verify *v)
{
	kvfree(v->gens);
	v->gens = NULL;
}

/* Return the stamp of the block at offset @at of a buffer. */
static struct blkload_stamp *
blkload_verify_get_stamp(const struct blkload_buf *buf, u32 at)
{
	const struct bio_vec *bv = &buf->vecs[at / buf->piece_bytes];

	return page_address(bv->bv_page) + at % buf->piece_bytes;
}

/*
 * Return the first place from unit @from on, wrapping around, with @n free
 * units. It exists: the region is at least twice the requests in flight.
 */
static u64 blkload_verify_find_free(const struct blkload_verify *v, u64 from,
				    u32 n)
{
	u64 at = from;
	u32 i;

again:
	if (at + n > v->nr_units)
		at = 0;
	for (i = 0; i < n; i++) {
		if (v->gens[at + i] & BLKLOAD_GEN_BUSY) {
			at += i + 1;
			goto again;
		}
	}
	return at;
}

/**
 * blkload_verify_begin_write - claim a place for a write and stamp its data
 * @v: the verification
 * @offset: requested place, relative to the region, a multiple of the unit
 * @bytes: its size, a multiple of the unit
 * @buf: its data
 *
 * Context: The job's thread.
 * Return: the write's place, relative to the region.
 */
u64 blkload_verify_begin_write(struct blkload_verify *v, u64 offset,
			       u32 bytes, struct blkload_buf *buf)
{
	u32 n = bytes / v->unit_bytes, i, at;
	u64 first;

	spin_lock(&v->lock);
	first = blkload_verify_find_free(v, div_u64(offset, v->unit_bytes), n);
	for (i = 0; i < n; i++) {
		u32 gen = (v->gens[first + i] + 1) & BLKLOAD_GEN_MASK;

		/* 0 means never written. */
		v->gens[first + i] = BLKLOAD_GEN_BUSY | (gen ?: 1);
	}
	spin_unlock(&v->lock);

	/* This write owns the words until blkload_verify_end_write(). */
	offset = first * v->unit_bytes;
	for (at = 0; at < bytes; at += v->block_bytes)
		*blkload_verify_get_stamp(buf, at) = (struct blkload_stamp){
			.address = v->base_pos + offset + at,
			.gen = v->gens[first + at / v->unit_bytes] &
			       BLKLOAD_GEN_MASK,
			.seed = v->seed,
		};
	return offset;
}

/**
 * blkload_verify_end_write - release the place of a write
 * @v: the verification
 * @offset: place from blkload_verify_begin_write()
 * @bytes: its size
 * @ok: whether it succeeded
 *
 * Context: The job's thread.
 */
void blkload_verify_end_write(struct blkload_verify *v, u64 offset,
			      u32 bytes, bool ok)
{
	u64 first = div_u64(offset, v->unit_bytes);
	u32 n = bytes / v->unit_bytes, i;

	spin_lock(&v->lock);
	for (i = 0; i < n; i++) {
		v->gens[first + i] &= BLKLOAD_GEN_MASK;
		if (!ok)
			v->gens[first + i] |= BLKLOAD_GEN_UNKNOWN;
	}
	spin_unlock(&v->lock);
}

/**
 * blkload_verify_begin_read - record the words of a read's units
 * @v: the verification
 * @offset: relative to the region, a multiple of the unit
 * @bytes: its size, a multiple of the unit
 * @seen: a word for each unit
 *
 * Context: The job's thread.
 */
void blkload_verify_begin_read(struct blkload_verify *v, u64 offset,
			       u32 bytes, u32 *seen)
{
	spin_lock(&v->lock);
	memcpy(seen, &v->gens[div_u64(offset, v->unit_bytes)],
	       bytes / v->unit_bytes * sizeof(*seen));
	spin_unlock(&v->lock);
}

/**
 * blkload_verify_end_read - verify the data of a read
 * @v: the verification
 * @offset: relative to the region
 * @bytes: its size
 * @seen: words from blkload_verify_begin_read()
 * @buf: the data
 *
 * Context: The job's thread.
 * Return: whether all blocks that could be verified are right.
 */
bool blkload_verify_end_read(struct blkload_verify *v, u64 offset, u32 bytes,
			     const u32 *seen, const struct blkload_buf *buf)
{
	u64 first = div_u64(offset, v->unit_bytes);
	u32 at, gen = 0;

	for (at = 0; at < bytes; at += v->block_bytes) {
		const struct blkload_stamp *stamp;

		if (at % v->unit_bytes == 0) {
			u32 i = at / v->unit_bytes;

			spin_lock(&v->lock);
			gen = v->gens[first + i];
			spin_unlock(&v->lock);
			if (gen != seen[i] ||
			    gen & (BLKLOAD_GEN_BUSY | BLKLOAD_GEN_UNKNOWN))
				gen = 0;
		}
		if (!gen)
			continue;
		stamp = blkload_verify_get_stamp(buf, at);
		if (stamp->address != v->base_pos + offset + at ||
		    stamp->gen != gen || stamp->seed != v->seed)
			return false;
	}
	return true;
}
