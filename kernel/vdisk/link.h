/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A link or a bus of a model: it carries one transfer at a time, first come
 * first served, with a limit in bytes a second.
 *
 * The remainder of the division is carried to the next transfer of an unbroken
 * stream, so that a stream runs at exactly the limit.
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_LINK_H
#define ISOBLK_VDISK_LINK_H

#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
#include <linux/types.h>

/*
 * 146 years. On a link that is busy beyond this time a transfer takes no time:
 * at a few bytes a second a deep queue would otherwise overflow 63 bits.
 */
#define VDISK_LINK_NS_MAX	BIT_ULL(62)

/* A link or a bus. */
struct vdisk_link {
	u64 free_ns;	/* time at which it becomes free, ns */
	u64 bps;	/* limit of the last transfer, bytes a second; 0 = none */
	u64 remainder;	/* remainder of the last division by bps, bytes * 10^9 */
};

/**
 * vdisk_link_transfer - carry a transfer
 * @link: link or bus that carries it
 * @bps: limit, bytes a second, 0 = none
 * @at: earliest time at which it may begin, ns
 * @bytes: length, below 2^32
 *
 * Return: time at which it ends, ns.
 */
static inline u64 vdisk_link_transfer(struct vdisk_link *link, u64 bps, u64 at,
				      u64 bytes)
{
	if (link->free_ns < at || link->bps != bps) {
		link->free_ns = max(link->free_ns, at);
		link->bps = bps;
		link->remainder = 0;
	}
	/* Fits: 2^32 * 10^9 is below 2^62, and the rest is below bps. */
	if (bps && link->free_ns < VDISK_LINK_NS_MAX)
		link->free_ns +=
			div64_u64_rem(bytes * NSEC_PER_SEC + link->remainder,
				      bps, &link->remainder);
	return link->free_ns;
}

#endif /* ISOBLK_VDISK_LINK_H */
