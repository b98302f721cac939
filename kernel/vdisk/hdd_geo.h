/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The geometry of the model "disk": places of sectors, and times of the arm
 * between them (hdd_geo.c). It never changes.
 */
#ifndef ISOBLK_VDISK_HDD_GEO_H
#define ISOBLK_VDISK_HDD_GEO_H

#include <linux/time64.h>
#include <linux/types.h>

#include "hdd.h"
#include "model.h"

#define HDD_SECTOR_BYTES	512

/* A turn, in units of angle. */
#define HDD_TURN_ANGLE	(60ULL * NSEC_PER_SEC)

/* Cylinders with tracks of one length. */
struct hdd_zone {
	u64 lba;	/* first sector */
	u32 cyl;	/* first cylinder */
	u32 track_sectors; /* sectors of a track */
};

/* Times of the arm. */
struct hdd_seek {
	u32 cyls;	/* number of cylinders in use */
	u32 knee;	/* a third of @cyls, at least 1: end of the curve */
	u64 min_ns;	/* time of a seek over 1 cylinder */
	u64 avg_ns;	/* time of a seek over @knee cylinders */
	u64 max_ns;	/* time of a seek over all */
	u64 head_switch_ns; /* time of a switch of heads */
};

/* The geometry and the times of the arm. */
struct hdd_geo {
	u32 rpm;	/* rotations a minute: units of angle a ns */
	u32 heads;	/* tracks of a cylinder */
	u64 head_skew;	/* angle between the beginnings of two tracks */
	u64 cyl_skew;	/* angle between the beginnings of two cylinders */
	struct hdd_seek seek; /* times of the arm */
	u32 nr_zones;	/* number of zones */
	struct hdd_zone zones[VDISK_HDD_ZONES_MAX]; /* zones, outermost first */
};

/* A span: consecutive sectors of a track. */
struct hdd_span {
	u32 first;	/* number of the first sector in the track */
	u32 count;	/* number of sectors */
	u32 track_sectors; /* sectors of the track */
	u64 lag_angle;	/* angle by which the head is late, below 1 ns */
	struct vdisk_hdd_place place; /* place of the first sector */
};

int hdd_geo_init(struct hdd_geo *geo, const struct vdisk_params *params);
struct vdisk_hdd_place hdd_geo_find_place(const struct hdd_geo *geo, u64 lba);
u64 hdd_geo_move_ns(const struct hdd_geo *geo,
		    const struct vdisk_hdd_place *from,
		    const struct vdisk_hdd_place *to);
u64 hdd_geo_wait_ns(const struct hdd_geo *geo, u64 at, u64 angle);
u64 hdd_pass(const struct hdd_geo *geo, u64 *lba, u64 end, u64 at, u64 until);

#endif /* ISOBLK_VDISK_HDD_GEO_H */
