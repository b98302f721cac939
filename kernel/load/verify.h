/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data buffers, and verification of written data.
 */
#ifndef BLKLOAD_VERIFY_H
#define BLKLOAD_VERIFY_H

#include <linux/bvec.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/*
 * Memory for the data of one request. The content of a repeated buffer does not
 * matter, and any number of requests may use it at once.
 */
struct blkload_buf {
	u32 piece_bytes;	/* bytes of a contiguous piece, a power of 2 */
	u32 nr_vecs;		/* number of entries of @vecs */
	bool repeated;		/* whether all entries are the same piece */
	struct bio_vec *vecs;	/* pieces */
};

int blkload_buf_init(struct blkload_buf *buf, u32 bytes, bool repeated);
void blkload_buf_free(struct blkload_buf *buf);

/*
 * Knowledge of the content of a tenant's region. All fields but @gens are
 * constant during a run.
 */
struct blkload_verify {
	spinlock_t lock;	/* protects @gens */
	u32 *gens;		/* a word for each unit, see verify.c */
	u64 nr_units;		/* number of units in the region */
	u32 unit_bytes;		/* bytes of a unit, the smallest request */
	u32 block_bytes;	/* bytes of a logical block of the device */
	u64 base_pos;		/* first byte of the region */
	u64 seed;		/* the tenant's randseed */
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
