/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The next event of each part of a flash disk: a tournament tree with a leaf
 * for each part. Of the events of one instant the first leaf wins.
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FLASH_TREE_H
#define ISOBLK_VDISK_FLASH_TREE_H

#include <linux/types.h>

/* Leaves of the tree behind those of the dies. */
enum flash_leaf {
	FLASH_CONTROLLER,	/* the controller has taken a command */
	FLASH_LINK,		/* the link has carried units to the buffer */
	FLASH_READ_END,		/* a read has crossed the link to the host */
	FLASH_WRITE_END,	/* another command ends */
	FLASH_IDLE_TIMER,	/* the disk may be idle for FLASH_IDLE_NS */
	FLASH_NR_LEAVES,
};

/* A node of the tree. */
struct flash_event {
	u64 due_ns;	/* time of the event, VDISK_NEVER_NS if there is none */
	u32 leaf;	/* number of the event's leaf */
};

/* A tree. */
struct flash_tree {
	struct flash_event *nodes;	/* root at 1, children at 2n, 2n + 1 */
	u32 first_leaf;			/* number of leaf 0's node */
};

int flash_tree_init(struct flash_tree *tree, u32 leaves);
void flash_tree_destroy(struct flash_tree *tree);
void flash_tree_set_due(struct flash_tree *tree, u32 leaf, u64 due);

/* Return the event that comes first. */
static inline const struct flash_event *
flash_tree_get_first(const struct flash_tree *tree)
{
	return &tree->nodes[1];
}

/* Return the time of a leaf's event. */
static inline u64 flash_tree_get_due(const struct flash_tree *tree, u32 leaf)
{
	return tree->nodes[tree->first_leaf + leaf].due_ns;
}

#endif /* ISOBLK_VDISK_FLASH_TREE_H */
