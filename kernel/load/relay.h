/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The relay: one thread that submits for many tenants (relay.c).
 */
#ifndef BLKLOAD_RELAY_H
#define BLKLOAD_RELAY_H

struct bio;

int blkload_relay_get(void);
void blkload_relay_put(void);
void blkload_relay_submit(struct bio *bio);

#endif /* BLKLOAD_RELAY_H */
