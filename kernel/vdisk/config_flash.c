// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attributes of the model "flash": the directory flash of a disk.
 *
 * Times, and policies that need no memory, may change while the disk is on.
 * Conditions between parameters are checked when the disk is created (flash.c).
 */
#include <linux/configfs.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "config.h"
#include "ftl.h"

/* Larger than real drives, which have 16 channels of 16 dies, 8 planes. */
#define FLASH_MAX_CHANNELS	64
#define FLASH_MAX_DIES		64
#define FLASH_MAX_PLANES	16
#define FLASH_MAX_PAGE		SZ_64K

/* QLC. Its fastest page takes a positive time: 1000 - 2.75 * 300 > 0. */
#define FLASH_MAX_CELL_BITS	4
#define FLASH_MAX_READ_STEP	300

/* The host's queues hold no more. */
#define FLASH_MAX_WINDOW	65536

/* Free blocks that a die keeps; a few are usual. */
#define FLASH_MAX_FREE		1024

/* Per mille: ten times the size. */
#define FLASH_MAX_SPARE		10000

VDISK_NUMBER(channels, flash.channels, .min = 1, .max = FLASH_MAX_CHANNELS);
VDISK_NUMBER(dies, flash.dies, .min = 1, .max = FLASH_MAX_DIES);
VDISK_NUMBER(planes, flash.planes, .min = 1, .max = FLASH_MAX_PLANES);
VDISK_NUMBER(page_size, flash.page_size, .min = FTL_UNIT_BYTES,
	     .max = FLASH_MAX_PAGE, .multiple_of = FTL_UNIT_BYTES);
VDISK_NUMBER(block_pages, flash.block_pages, .min = 1, .max = U16_MAX);
VDISK_NUMBER(spare, flash.spare, .min = 0, .max = FLASH_MAX_SPARE);
VDISK_NUMBER(read_ns, flash.read_ns, .min = 1, .max = VDISK_SERVICE_NS_MAX,
	     .live = true);
VDISK_NUMBER(cell_bits, flash.cell_bits, .min = 1, .max = FLASH_MAX_CELL_BITS);
VDISK_NUMBER(read_step, flash.read_step, .max = FLASH_MAX_READ_STEP,
	     .live = true);
VDISK_NUMBER(program_ns, flash.program_ns, .min = 1,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(erase_ns, flash.erase_ns, .min = 1, .max = VDISK_SERVICE_NS_MAX,
	     .live = true);
VDISK_NUMBER(bus_bps, flash.bus_bps, .max = VDISK_BPS_MAX, .live = true);
VDISK_NUMBER(cmd_ns, flash.cmd_ns, .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(window, flash.window, .max = FLASH_MAX_WINDOW);
VDISK_NUMBER(table_updates, flash.table_updates, .max = U32_MAX,
	     .live = true);
VDISK_NUMBER(table_ns, flash.table_ns, .max = VDISK_SERVICE_NS_MAX,
	     .live = true);
VDISK_NUMBER(read_latency_ns, flash.read_latency_ns,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(write_latency_ns, flash.write_latency_ns,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(readahead, flash.readahead, .max = SZ_64M);
VDISK_NUMBER(buffer, flash.buffer, .min = FTL_UNIT_BYTES, .max = SZ_2G);
VDISK_NUMBER(gc_low, flash.gc_low, .min = 1, .max = FLASH_MAX_FREE);
VDISK_NUMBER(gc_high, flash.gc_high, .min = 2, .max = FLASH_MAX_FREE);
VDISK_NUMBER(wear_gap, flash.wear_gap, .max = U32_MAX, .live = true);
VDISK_NUMBER(copyback, flash.copyback, .max = 1, .live = true);
VDISK_NUMBER(slc, flash.slc, .max = U32_MAX * 4096ULL);
VDISK_NUMBER(slc_read_ns, flash.slc_read_ns, .min = 1,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(slc_program_ns, flash.slc_program_ns, .min = 1,
	     .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(fill, flash.fill, .max = 100);
VDISK_CHOICE(precondition, flash.precondition,
	     [VDISK_PRECONDITION_NONE] = "none",
	     [VDISK_PRECONDITION_SEQUENTIAL] = "sequential",
	     [VDISK_PRECONDITION_RANDOM] = "random");

static struct configfs_attribute *vdisk_flash_attrs[] = {
	&vdisk_attr_channels,
	&vdisk_attr_dies,
	&vdisk_attr_planes,
	&vdisk_attr_page_size,
	&vdisk_attr_block_pages,
	&vdisk_attr_spare,
	&vdisk_attr_read_ns,
	&vdisk_attr_cell_bits,
	&vdisk_attr_read_step,
	&vdisk_attr_program_ns,
	&vdisk_attr_erase_ns,
	&vdisk_attr_bus_bps,
	&vdisk_attr_cmd_ns,
	&vdisk_attr_window,
	&vdisk_attr_table_updates,
	&vdisk_attr_table_ns,
	&vdisk_attr_read_latency_ns,
	&vdisk_attr_write_latency_ns,
	&vdisk_attr_readahead,
	&vdisk_attr_buffer,
	&vdisk_attr_gc_low,
	&vdisk_attr_gc_high,
	&vdisk_attr_wear_gap,
	&vdisk_attr_copyback,
	&vdisk_attr_slc,
	&vdisk_attr_slc_read_ns,
	&vdisk_attr_slc_program_ns,
	&vdisk_attr_fill,
	&vdisk_attr_precondition,
	NULL,
};

const struct config_item_type vdisk_flash_type = {
	.ct_attrs = vdisk_flash_attrs,
	.ct_owner = THIS_MODULE,
};
