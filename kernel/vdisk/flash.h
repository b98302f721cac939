/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model "flash" (flash.c), for config.c and model.h: its parameters, and
 * its fields in a command.
 */
#ifndef ISOBLK_VDISK_FLASH_H
#define ISOBLK_VDISK_FLASH_H

#include <linux/types.h>

/* Contents of the flash before the first command. */
enum vdisk_precondition {
	VDISK_PRECONDITION_NONE,	/* nothing */
	VDISK_PRECONDITION_SEQUENTIAL,	/* data written once, in order */
	VDISK_PRECONDITION_RANDOM,	/* steady state of random writes */
};

/* Parameters of the model "flash". */
struct vdisk_flash_params {
	u64 channels;		/* buses between controller and dies */
	u64 dies;		/* dies of each channel */
	u64 planes;		/* planes of a die, which work together */
	u64 page_size;		/* bytes of a page of one plane, 4096 or more */
	u64 block_pages;	/* pages of a block of one plane */
	u64 spare;		/* flash beyond the size, per mille of the size */
	u64 read_ns;		/* mean time of a sense, from cells to die */
	u64 cell_bits;		/* bits of a cell, and kinds of pages */
	u64 read_step;		/* time of a further sensing, per mille of @read_ns */
	u64 program_ns;		/* time of a program, from die to cells */
	u64 erase_ns;		/* time of an erase of a block */
	u64 bus_bps;		/* bytes a second over a channel; 0 = no limit */
	u64 cmd_ns;		/* the controller's time for a command */
	u64 window;		/* commands in the controller; 0 = no limit */
	u64 table_updates;	/* updates before the table is written; 0 = never */
	u64 table_ns;		/* time of writing the table's updates */
	u64 read_latency_ns;	/* latency added to a read */
	u64 write_latency_ns;	/* latency of a write, trim or flush */
	u64 readahead;		/* bytes read ahead of a stream; 0 = none */
	u64 buffer;		/* bytes of writes in the controller's memory */
	u64 gc_low;		/* free blocks at which collection precedes programs */
	u64 gc_high;		/* free blocks below which collection runs */
	u64 wear_gap;		/* erases that blocks may differ by; 0 = no limit */
	u64 copyback;		/* 1 = collection does not use the channel */
	u64 slc;		/* bytes of fast blocks, in addition to all others */
	u64 slc_read_ns;	/* @read_ns of fast blocks */
	u64 slc_program_ns;	/* @program_ns of fast blocks */
	u64 fill;		/* part of the disk, from its start, with data, per cent */
	u64 precondition;	/* enum vdisk_precondition: how it was written */
};

/* Fields of the model "flash" in a command. */
struct vdisk_flash_cmd {
	u64 at_ns;	/* time at which it leaves its queue, ns */
	u32 next_unit;	/* number of the next unit to be issued */
	u32 nr_units;	/* number of units to be issued */
	u32 nr_pending;	/* number of issued units that it waits for */
	u32 epoch;	/* last epoch of the buffer that a flush waits for */
	bool started;	/* whether a write has had the link */
};

/* A mid-range NVMe disk of 16 GiB. */
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
