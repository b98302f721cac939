/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What others see of the model "disk" (hdd.c): its parameters, and what it
 * keeps in a command.
 */
#ifndef ISOBLK_VDISK_HDD_H
#define ISOBLK_VDISK_HDD_H

#include <linux/types.h>

/* Real disks have a few dozen. */
#define VDISK_HDD_MAX_ZONES	64

/**
 * struct vdisk_hdd_params - the attributes of a disk's group "disk"
 * @rpm: turns a minute
 * @seek_min_ns: seek to the next cylinder
 * @seek_avg_ns: seek over a third of all cylinders
 * @seek_max_ns: seek over all cylinders
 * @head_switch_ns: from one head to another of the same cylinder
 * @heads: tracks a cylinder
 * @zones: with bandwidths in equal steps from @outer_bps to @inner_bps
 * @outer_bps: bytes a second of a sequential stream in the outermost zone,
 *	       switches of tracks counted
 * @inner_bps: same, innermost zone
 * @cache: bytes; one half holds what was read, the other what is to be written
 * @write_pieces: most pieces of adjacent bytes that wait to be written
 * @readahead: bytes read behind what was asked for
 * @ncq: commands that the disk chooses from
 * @cmd_ns: time that the controller takes for a command, one after the other
 */
struct vdisk_hdd_params {
	u64 rpm;
	u64 seek_min_ns;
	u64 seek_avg_ns;
	u64 seek_max_ns;
	u64 head_switch_ns;
	u64 heads;
	u64 zones;
	u64 outer_bps;
	u64 inner_bps;
	u64 cache;
	u64 write_pieces;
	u64 readahead;
	u64 ncq;
	u64 cmd_ns;
};

/* Defaults, those of no drive in particular: config.c's initializer. */
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

/**
 * struct vdisk_hdd_place - where a sector is
 * @cyl: cylinder, outermost first
 * @head: which track of the cylinder
 * @angle: at which the sector begins
 */
struct vdisk_hdd_place {
	u32 cyl;
	u32 head;
	u64 angle;
};

/**
 * struct vdisk_hdd_cmd - what the model keeps in a command
 * @at_ns: when it came; once in the disk, when it came in
 * @lba: first sector that the arm has to visit
 * @end: sector behind the last one
 * @place: of @lba
 * @through: a write that ends on the platter
 * @crossing: a write whose data are on the link
 */
struct vdisk_hdd_cmd {
	u64 at_ns;
	u64 lba;
	u64 end;
	struct vdisk_hdd_place place;
	bool through;
	bool crossing;
};

#endif /* ISOBLK_VDISK_HDD_H */
