/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buffers, and the check that what was written is read.
 */
#ifndef BLKLOAD_VERIFY_H
#define BLKLOAD_VERIFY_H

#include <linux/bvec.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/**
 * struct blkload_buf - memory for the data of one request
 * @chunk: bytes of a piece of contiguous memory, a power of 2
 * @nr: entries of @vecs
 * @repeated: all entries are the same piece
 * @vecs: the pieces
 *
 * A repeated buffer has no content that matters, and serves any number of
 * requests at once.
 */
struct blkload_buf {
	u32 chunk;
	u32 nr;
	bool repeated;
	struct bio_vec *vecs;
};

int blkload_buf_init(struct blkload_buf *buf, u32 bytes, bool repeated);
void blkload_buf_free(struct blkload_buf *buf);

/**
 * struct blkload_verify - what a tenant knows of the content of its region
 * @lock: protects @gen
 * @gen: a word a unit, see verify.c
 * @units: entries of @gen
 * @unit: bytes of a unit, the smallest request
 * @block: bytes of a logical block of the device
 * @base: first byte of the region
 * @seed: the tenant's randseed
 *
 * All but @gen is constant during a run.
 */
struct blkload_verify {
	spinlock_t lock;	/* protects @gen */
	u32 *gen;
	u64 units;
	u32 unit;
	u32 block;
	u64 base;
	u64 seed;
};

int blkload_verify_init(struct blkload_verify *v, u64 base, u64 bytes,
			u32 unit, u32 block, u64 seed);
void blkload_verify_free(struct blkload_verify *v);
u64 blkload_verify_begin_write(struct blkload_verify *v, u64 offset,
			       u32 bytes, struct blkload_buf *buf);
void blkload_verify_end_write(struct blkload_verify *v, u64 offset,
			      u32 bytes, bool ok);
void blkload_verify_begin_read(struct blkload_verify *v, u64 offset,
			       u32 bytes, u32 *seen);
bool blkload_verify_end_read(struct blkload_verify *v, u64 offset, u32 bytes,
			     const u32 *seen, const struct blkload_buf *buf);

#endif /* BLKLOAD_VERIFY_H */
