/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Between configfs (config.c) and the block device (disk.c).
 */
#ifndef ISOBLK_VDISK_H
#define ISOBLK_VDISK_H

#include "fault.h"
#include "model.h"

/*
 * What a disk calls physical: the page of flash and the sector of a hard disk
 * of today. Its size is a multiple, so that any logical block fits.
 */
#define VDISK_PHYSICAL_BLOCK	4096

struct vdisk;

void vdisk_init(void);
void vdisk_exit(void);
struct vdisk *vdisk_create(const char *name, const struct vdisk_params *params);
void vdisk_destroy(struct vdisk *vdisk);
void vdisk_change(struct vdisk *vdisk, const struct vdisk_params *params);
struct vdisk_medium *vdisk_get_medium(struct vdisk *vdisk);
enum vdisk_state vdisk_get_state(const struct vdisk *vdisk);
void vdisk_set_state(struct vdisk *vdisk, enum vdisk_state state);

#endif /* ISOBLK_VDISK_H */
