/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface between configfs (config.c) and the block device (disk.c).
 */
#ifndef ISOBLK_VDISK_H
#define ISOBLK_VDISK_H

#include "fault.h"
#include "model.h"

/*
 * The physical block size that a disk reports: that of a flash page and of a current hard
 * disk's sector. The disk's size is a multiple of it, so any logical block size fits.
 */
#define VDISK_PHYSICAL_BLOCK_BYTES	4096

struct vdisk;

void vdisk_init(void);
void vdisk_exit(void);
struct vdisk *vdisk_create(const char *name, const struct vdisk_params *params);
void vdisk_destroy(struct vdisk *vdisk);
void vdisk_change_params(struct vdisk *vdisk,
			 const struct vdisk_params *params);
struct vdisk_medium *vdisk_get_medium(struct vdisk *vdisk);
enum vdisk_state vdisk_get_state(const struct vdisk *vdisk);
void vdisk_set_state(struct vdisk *vdisk, enum vdisk_state state);

#endif /* ISOBLK_VDISK_H */
