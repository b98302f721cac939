// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tournament tree of a flash disk's events: see flash_tree.h.
 */
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "flash_tree.h"
#include "model.h"

/* Create a tree without events. The caller destroys it, even if that failed. */
int flash_tree_init(struct flash_tree *tree, u32 leaves)
{
	u32 i;

	tree->first_leaf = roundup_pow_of_two(leaves);
	tree->nodes = kvmalloc_array(2 * tree->first_leaf, sizeof(*tree->nodes),
				     GFP_KERNEL);
	if (!tree->nodes)
		return -ENOMEM;
	for (i = 0; i < 2 * tree->first_leaf; i++) {
		tree->nodes[i].due_ns = VDISK_NEVER_NS;
		tree->nodes[i].leaf =
			i >= tree->first_leaf ? i - tree->first_leaf : 0;
	}
	return 0;
}

/* Free the memory of a tree. */
void flash_tree_destroy(struct flash_tree *tree)
{
	kvfree(tree->nodes);
}

/* Set the time of a leaf's event. */
void flash_tree_set_due(struct flash_tree *tree, u32 leaf, u64 due)
{
	struct flash_event *nodes = tree->nodes;
	u32 node = tree->first_leaf + leaf;

	nodes[node].due_ns = due;
	while (node > 1) {
		const struct flash_event *left = &nodes[node & ~1U];
		const struct flash_event *right = &nodes[node | 1];
		const struct flash_event *win;

		win = right->due_ns < left->due_ns ? right : left;
		node /= 2;
		if (nodes[node].due_ns == win->due_ns &&
		    nodes[node].leaf == win->leaf)
			return;
		nodes[node] = *win;
	}
}
