/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model "disk" (hdd.c), for config.c and model.h: its parameters, and its
 * fields in a command.
 */
#ifndef ISOBLK_VDISK_HDD_H
#define ISOBLK_VDISK_HDD_H

#include <linux/types.h>

/* Real disks have a few dozen. */
#define VDISK_HDD_ZONES_MAX	64

/* The attributes of a disk's group "disk". */
struct vdisk_hdd_params {
	u64 rpm;		/* rotations a minute */
	u64 seek_min_ns;	/* seek to the next cylinder */
	u64 seek_avg_ns;	/* seek over a third of all cylinders */
	u64 seek_max_ns;	/* seek over all cylinders */
	u64 head_switch_ns;	/* switch of heads within a cylinder */
	u64 heads;		/* tracks of a cylinder */
	u64 zones;		/* zones, from @outer_bps to @inner_bps */
	u64 outer_bps;		/* bytes a second in the outermost zone */
	u64 inner_bps;		/* bytes a second in the innermost zone */
	u64 cache;		/* bytes, half for reads and half for writes */
	u64 write_pieces;	/* maximum of pieces to be written */
	u64 readahead;		/* bytes read ahead behind a read */
	u64 ncq;		/* maximum of commands in the disk */
	u64 cmd_ns;		/* the controller's time for a command */
};

/* Defaults, for config.c; not of a particular drive. */
#define VDISK_HDD_DEFAULTS {			\
	.rpm = 7200,				\
	.seek_min_ns = 1000000,			\
	.seek_avg_ns = 8500000,			\
	.seek_max_ns = 18000000,		\
	.head_switch_ns = 800000,		\
	.heads = 2,				\
	.zones = 16,				\
	.outer_bps = 180000000,			\
	.inner_bps = 90000000,			\
	.cache = 64ULL << 20,			\
	.write_pieces = 256,			\
	.readahead = 1ULL << 20,		\
	.ncq = 32,				\
	.cmd_ns = 30000,			\
}

/* The place of a sector. */
struct vdisk_hdd_place {
	u32 cyl;	/* cylinder, outermost first */
	u32 head;	/* number of the track in the cylinder */
	u64 angle;	/* angle at which the sector begins, HDD_TURN_ANGLE a turn */
};

/* Fields of the model "disk" in a command. */
struct vdisk_hdd_cmd {
	u64 at_ns;	/* time of its arrival, then of its entry into the disk */
	u64 lba;	/* first sector for the arm */
	u64 end;	/* sector behind the last */
	struct vdisk_hdd_place place; /* place of @lba */
	bool write_through; /* whether a write ends on the platter */
	bool on_link;	/* whether a write's data are on the link */
};

#endif /* ISOBLK_VDISK_HDD_H */
