/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model "flash": what its users set, and what it keeps in a command.
 */
#ifndef ISOBLK_VDISK_FLASH_H
#define ISOBLK_VDISK_FLASH_H

#include <linux/types.h>

/* What the flash holds before the first command. */
enum vdisk_precondition {
	VDISK_PRECONDITION_NONE,
	VDISK_PRECONDITION_SEQUENTIAL,
	VDISK_PRECONDITION_RANDOM,
};

/**
 * struct vdisk_flash_params - what a user sets, beside what all models have
 * @channels: buses between controller and dies
 * @dies: on each channel
 * @planes: of a die, which read, program and erase together
 * @page_size: bytes of a flash page of one plane; a multiple of 4096
 * @block_pages: flash pages of a block of one plane
 * @spare: flash beyond the size, per mille of it
 * @read_ns: a page from the cells into the die's register
 * @program_ns: a page from the register into the cells
 * @erase_ns: a block
 * @bus_bps: bytes a second over a channel; 0 = no limit
 * @cmd_ns: the controller's time for a command, one after the other
 * @read_latency_ns: added to a read, all at the same time
 * @write_latency_ns: added to a write, a trim and a flush
 * @buffer: bytes of writes that the controller's memory holds
 * @gc_low: free blocks of a die at which garbage collection goes before host
 *	    writes
 * @gc_high: free blocks of a die below which there is garbage collection
 * @wear_gap: erases by which blocks may differ before cold data is moved; 0 =
 *	      never
 * @copyback: 1 = garbage collection moves pages within the die, off the bus
 * @slc: bytes of flash, on top of all other, that is written in the fast mode
 * @slc_read_ns: as @read_ns, there
 * @slc_program_ns: as @program_ns, there
 * @fill: per cent of the size that holds data, from the first byte on
 * @precondition: how it came there, enum vdisk_precondition
 */
struct vdisk_flash_params {
	u64 channels;
	u64 dies;
	u64 planes;
	u64 page_size;
	u64 block_pages;
	u64 spare;
	u64 read_ns;
	u64 program_ns;
	u64 erase_ns;
	u64 bus_bps;
	u64 cmd_ns;
	u64 read_latency_ns;
	u64 write_latency_ns;
	u64 buffer;
	u64 gc_low;
	u64 gc_high;
	u64 wear_gap;
	u64 copyback;
	u64 slc;
	u64 slc_read_ns;
	u64 slc_program_ns;
	u64 fill;
	u64 precondition;
};

/**
 * struct vdisk_flash_cmd - the model's part of a command
 * @at_ns: when it leaves the queue it is in
 * @unit: the next unit to be issued
 * @units: how many are still to be issued
 * @left: units that were issued, and that it waits for
 * @epoch: of a flush: the last epoch of the buffer that it waits for
 * @started: a write that had the link
 */
struct vdisk_flash_cmd {
	u64 at_ns;
	u32 unit;
	u32 units;
	u32 left;
	u32 epoch;
	bool started;
};

/* A middling NVMe disk of 16 GiB. */
#define VDISK_FLASH_DEFAULTS {						\
	.channels = 8,							\
	.dies = 4,							\
	.planes = 2,							\
	.page_size = 16384,						\
	.block_pages = 64,						\
	.spare = 70,							\
	.read_ns = 60000,						\
	.program_ns = 600000,						\
	.erase_ns = 4000000,						\
	.bus_bps = 800000000,						\
	.cmd_ns = 1000,							\
	.read_latency_ns = 5000,					\
	.write_latency_ns = 8000,					\
	.buffer = 16777216,						\
	.gc_low = 2,							\
	.gc_high = 4,							\
	.wear_gap = 100,						\
	.copyback = 0,							\
	.slc = 0,							\
	.slc_read_ns = 30000,						\
	.slc_program_ns = 200000,					\
	.fill = 100,							\
	.precondition = 0,						\
}

#endif /* ISOBLK_VDISK_FLASH_H */
