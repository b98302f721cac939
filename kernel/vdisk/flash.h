/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What others see of the model "flash" (flash.c): its parameters, and what it
 * keeps in a command.
 */
#ifndef ISOBLK_VDISK_FLASH_H
#define ISOBLK_VDISK_FLASH_H

#include <linux/types.h>

/* What the flash holds before the first command. */
enum vdisk_precondition {
	VDISK_PRECONDITION_NONE,	/* nothing */
	VDISK_PRECONDITION_SEQUENTIAL,	/* data written once, in order */
	VDISK_PRECONDITION_RANDOM,	/* steady state of random writes */
};

/* What a user sets, beside what all models have. */
struct vdisk_flash_params {
	u64 channels;		/* buses between controller and dies */
	u64 dies;		/* dies of each channel */
	u64 planes;		/* planes of a die, which work together */
	u64 page_size;		/* bytes of a page of one plane, 4096 or more */
	u64 block_pages;	/* pages of a block of one plane */
	u64 spare;		/* flash beyond the size, per mille of it */
	u64 read_ns;		/* mean time of a page from cells to die */
	u64 cell_bits;		/* bits of a cell, so kinds of pages */
	u64 read_step;		/* per mille of @read_ns for a sensing more */
	u64 program_ns;		/* time of a page from the die to the cells */
	u64 erase_ns;		/* time of erasing a block */
	u64 bus_bps;		/* bytes a second over a channel; 0 = any */
	u64 cmd_ns;		/* the controller's time for a command */
	u64 window;		/* commands that it holds; 0 = any number */
	u64 table_updates;	/* updates of the table held; 0 = any number */
	u64 table_ns;		/* time of writing out so many */
	u64 read_latency_ns;	/* latency added to a read */
	u64 write_latency_ns;	/* latency of a write, trim or flush */
	u64 readahead;		/* bytes that a stream of reads is ahead of */
	u64 buffer;		/* bytes of writes in the controller's memory */
	u64 gc_low;		/* free blocks at which collection goes first */
	u64 gc_high;		/* free blocks below which there is any */
	u64 wear_gap;		/* erases that blocks may differ by; 0 = any */
	u64 copyback;		/* 1 = collection moves pages off the bus */
	u64 slc;		/* bytes in the fast mode, on top of all */
	u64 slc_read_ns;	/* as @read_ns, in the fast mode */
	u64 slc_program_ns;	/* as @program_ns, in the fast mode */
	u64 fill;		/* per cent of the size with data, in front */
	u64 precondition;	/* enum vdisk_precondition: how it came there */
};

/* What the model keeps in a command. */
struct vdisk_flash_cmd {
	u64 at_ns;	/* time at which it leaves the queue it is in */
	u32 unit;	/* number of the next unit to be issued */
	u32 units;	/* number of units still to be issued */
	u32 left;	/* number of units issued that it waits for */
	u32 epoch;	/* last epoch of the buffer that a flush waits for */
	bool started;	/* whether a write has had the link */
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
	.cell_bits = 1,							\
	.read_step = 130,						\
	.program_ns = 600000,						\
	.erase_ns = 4000000,						\
	.bus_bps = 800000000,						\
	.cmd_ns = 1000,							\
	.window = 0,							\
	.table_updates = 0,						\
	.table_ns = 10000000,						\
	.read_latency_ns = 5000,					\
	.write_latency_ns = 8000,					\
	.readahead = 0,							\
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
