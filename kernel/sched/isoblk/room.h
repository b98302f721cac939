/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * So much of something as a disk may have at once: room.c opens with the design.
 */
#ifndef ISOBLK_ROOM_H
#define ISOBLK_ROOM_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/types.h>

/**
 * struct iso_lease - a hardware queue's part of a room
 */
struct iso_lease {
	atomic64_t spare;	/* what may be taken; below 0: more was than there is */
} ____cacheline_aligned_in_smp;

/**
 * struct iso_room - so much as a disk may have at once
 */
struct iso_room {
	atomic64_t pool;	/* what no hardware queue has for itself; any context */
	u64 size;		/* how much there is; one at a time writes it, read without */
	unsigned int nr;	/* hardware queues; constant */
	struct iso_lease *lease; /* by hardware queue; constant */
};

int iso_room_init(struct iso_room *r, unsigned int nr, int node);
void iso_room_exit(struct iso_room *r);
bool iso_room_get(struct iso_room *r, unsigned int i, u64 much);
bool iso_room_has(const struct iso_room *r, unsigned int i, u64 much);
void iso_room_force(struct iso_room *r, unsigned int i, u64 much);
void iso_room_put(struct iso_room *r, unsigned int i, u64 much, bool wanted);
s64 iso_room_used(const struct iso_room *r);
void iso_room_resize(struct iso_room *r, u64 size);

#endif /* ISOBLK_ROOM_H */
