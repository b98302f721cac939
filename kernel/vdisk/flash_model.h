/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk of the model "flash", as its parts see it. The design is in flash.c.
 */
#ifndef ISOBLK_VDISK_FLASH_MODEL_H
#define ISOBLK_VDISK_FLASH_MODEL_H

#include <linux/time64.h>
#include <linux/types.h>

#include "flash.h"
#include "flash_ahead.h"
#include "flash_buffer.h"
#include "flash_die.h"
#include "flash_host.h"
#include "flash_tree.h"
#include "model.h"

struct ftl;

/* Longer than the pauses of a busy host, shorter than pauses of a user. */
#define FLASH_IDLE_NS		(100 * NSEC_PER_MSEC)

/* Parameters outside of the group "flash". */
struct flash_settings {
	u64 bps[VDISK_NR_OPS];	/* limits of the links, bytes a second */
	u64 jitter;		/* jitter of dies and controller, per mille */
	bool write_cache;	/* whether the buffer is volatile; constant */
};

/* A disk of this model. The device's lock protects all of it. */
struct flash {
	struct vdisk_model model;	/* base */
	struct vdisk_flash_params params; /* parameters of the group "flash" */
	struct flash_settings settings;	/* other parameters */
	struct ftl *ftl;		/* translation layer */
	struct flash_tree tree;		/* next event of each part */
	struct flash_load load;		/* numbers of commands in the disk */
	struct flash_controller controller; /* commands to be fetched and taken */
	struct flash_host host;		/* commands to be sent to dies and buffer */
	struct flash_buffer buffer;	/* writes in the controller's memory */
	struct flash_ahead ahead;	/* units that are read ahead */
	struct flash_dies dies;		/* dies and channels */
	struct flash_ends ends;		/* commands on the way back */
};

/* Return the number of a leaf that does not belong to a die. */
static inline u32 flash_leaf(const struct flash *flash, enum flash_leaf leaf)
{
	return flash->dies.nr + leaf;
}

#endif /* ISOBLK_VDISK_FLASH_MODEL_H */
