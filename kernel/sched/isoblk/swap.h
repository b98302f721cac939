/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is swapped out.
 */
#ifndef ISOBLK_ISO_SWAP_H
#define ISOBLK_ISO_SWAP_H

#include "isoblk/group.h"

void iso_swapped_out(struct iso_disk *d, struct iso_hq *hq, struct iso_group *g,
		     u64 from);
void iso_swap_end(struct iso_disk *d, struct iso_group *g);
void iso_look_at_swappers(struct iso_disk *d);

#endif /* ISOBLK_ISO_SWAP_H */
