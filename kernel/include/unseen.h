/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads whose data the sender does not look at, as those of the load generator: a virtual disk
 * without a store need not fill their pages with zeros, which for large reads takes most of a
 * run's time. The mark is a hint that only writes have a use for; it stays with a bio that is
 * cloned.
 */
#ifndef ISOBLK_UNSEEN_H
#define ISOBLK_UNSEEN_H

#include <linux/bio.h>
#include <linux/rw_hint.h>

static inline void bio_set_unseen(struct bio *bio)
{
	bio->bi_write_hint = WRITE_LIFE_EXTREME;
}

static inline bool bio_is_unseen(const struct bio *bio)
{
	return bio->bi_write_hint == WRITE_LIFE_EXTREME;
}

#endif /* ISOBLK_UNSEEN_H */
