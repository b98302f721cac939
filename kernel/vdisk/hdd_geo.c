// SPDX-License-Identifier: GPL-2.0-only
/*
 * The geometry of a hard disk: places of sectors, and times of the arm.
 *
 * The platters. A sector has 512 bytes and lies at a cylinder, a head and an
 * angle. Zones have equal numbers of cylinders, and bandwidths in equal steps
 * from the outermost to the innermost, for bandwidth is proportional to the
 * radius. A track begins where the head arrives from the end of the track
 * before (skew), so a stream loses only the time of the switch. outer_bps and
 * inner_bps are those of such a stream, with switches:
 *
 *	track bytes = bps * (turn + mean switch), rounded to a sector
 *
 * The angle is exact at any time. The unit is 1 / (60 * 10^9) of a turn, which
 * a disk of 1 rpm turns in 1 ns, so the angle at time t is t * rpm modulo a
 * turn, without a fraction. Waits for an angle, and passes over sectors, are
 * rounded up to a ns, each from the head's exact position; so errors stay below
 * 1 ns and never add up. A head that is up to 1 ns late for a sector still
 * catches it.
 *
 * The arm. A seek over d of C cylinders takes
 *
 *	0					d = 0
 *	min + (avg - min) * sqrt((d-1)/(C/3-1))	up to a third of the disk
 *	avg + (max - avg) * (d-C/3)/(C-1-C/3)	beyond
 *
 * as in Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994: a
 * short seek only accelerates and brakes, a long one moves at full speed in
 * between. The root is exact to 2^-18 of avg - min. A data sheet's "average"
 * is, by convention, the seek over a third. A head switch of the same length or
 * less is hidden in a seek.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/time64.h>

#include "hdd.h"
#include "hdd_geo.h"
#include "model.h"

/* An angle times the cylinders has to fit 63 bits. Real disks have 2^19. */
#define HDD_CYLS_MAX	BIT(27)

/* Return an angle without its whole turns. */
static u64 hdd_geo_reduce_angle(u64 angle)
{
	u64 part;

	div64_u64_rem(angle, HDD_TURN_ANGLE, &part);
	return part;
}

/*
 * Return the sectors of a track for a bandwidth, with mean_ns lost per
 * track.
 */
static u32 hdd_geo_track_sectors(const struct vdisk_hdd_params *params, u64 bps,
				 u64 mean_ns)
{
	u64 ns = div_u64(HDD_TURN_ANGLE, params->rpm) + mean_ns;

	/* 1.06 s at most, times 4 * 10^9. */
	return max(DIV64_U64_ROUND_CLOSEST(bps * ns, 1ULL * HDD_SECTOR_BYTES *
							     NSEC_PER_SEC),
		   1);
}

/* Compute the zones, with @cyl_ns for a switch of cylinders. */
static int hdd_geo_init_zones(struct hdd_geo *geo,
			      const struct vdisk_params *params, u64 cyl_ns)
{
	const struct vdisk_hdd_params *hdd = &params->hdd;
	u64 slower = hdd->outer_bps - hdd->inner_bps;
	u64 size = params->size / HDD_SECTOR_BYTES;
	u64 per_cyl = 0, lba = 0, cyls;
	u64 mean_ns;
	u32 i;

	mean_ns = div64_u64((hdd->heads - 1) * hdd->head_switch_ns + cyl_ns,
			    hdd->heads);
	geo->nr_zones = hdd->zones;
	for (i = 0; i < geo->nr_zones; i++) {
		u64 bps = hdd->outer_bps;

		if (i)
			bps -= div_u64(slower * i, geo->nr_zones - 1);
		geo->zones[i].track_sectors =
			hdd_geo_track_sectors(hdd, bps, mean_ns);
		per_cyl += (u64)geo->zones[i].track_sectors * geo->heads;
	}

	cyls = DIV64_U64_ROUND_UP(size, per_cyl);
	if (cyls * geo->nr_zones > HDD_CYLS_MAX) {
		pr_err("more than %lu cylinders: the size is too large for the bandwidth\n",
		       HDD_CYLS_MAX);
		return -EINVAL;
	}
	for (i = 0; i < geo->nr_zones; i++) {
		geo->zones[i].lba = lba;
		geo->zones[i].cyl = i * cyls;
		lba += cyls * geo->heads * geo->zones[i].track_sectors;
	}
	return 0;
}

/* Return the zone of a sector. */
static const struct hdd_zone *hdd_geo_find_zone(const struct hdd_geo *geo,
						u64 lba)
{
	u32 low = 0, high = geo->nr_zones;

	while (high - low > 1) {
		u32 middle = (low + high) / 2;

		if (geo->zones[middle].lba <= lba)
			low = middle;
		else
			high = middle;
	}
	return &geo->zones[low];
}

/* Return the angle from the start of a track to its sector @sector. */
static u64 hdd_geo_sector_angle(u32 track, u32 sector)
{
	/* 2^36 times 2^23 */
	return div_u64(HDD_TURN_ANGLE * sector, track);
}

/* Find the place of a sector, and the span from it to the end of its track. */
static void hdd_geo_locate(const struct hdd_geo *geo, u64 lba,
			   struct hdd_span *span)
{
	const struct hdd_zone *zone = hdd_geo_find_zone(geo, lba);
	struct vdisk_hdd_place *place = &span->place;
	u64 track, angle;
	u32 head;

	track = div_u64_rem(lba - zone->lba, zone->track_sectors, &span->first);
	place->cyl = zone->cyl + div_u64_rem(track, geo->heads, &head);
	place->head = head;
	span->track_sectors = zone->track_sectors;
	span->count = zone->track_sectors - span->first;

	/* 2^27 times 2^36, 2^6 times 2^36 */
	angle = hdd_geo_reduce_angle(place->cyl * geo->cyl_skew) +
		place->head * geo->head_skew +
		hdd_geo_sector_angle(span->track_sectors, span->first);
	place->angle = hdd_geo_reduce_angle(angle);
}

/* Return the place of a sector. */
struct vdisk_hdd_place hdd_geo_find_place(const struct hdd_geo *geo, u64 lba)
{
	struct hdd_span span;

	hdd_geo_locate(geo, lba, &span);
	return span.place;
}

/* Compute the geometry of a disk from its parameters. */
int hdd_geo_init(struct hdd_geo *geo, const struct vdisk_params *params)
{
	const struct vdisk_hdd_params *hdd = &params->hdd;
	u64 cyl_ns = hdd->seek_min_ns;
	int err;

	if (hdd->seek_min_ns > hdd->seek_avg_ns ||
	    hdd->seek_avg_ns > hdd->seek_max_ns) {
		pr_err("seek times must not decrease: min %llu, avg %llu, max %llu ns\n",
		       hdd->seek_min_ns, hdd->seek_avg_ns, hdd->seek_max_ns);
		return -EINVAL;
	}
	if (hdd->inner_bps > hdd->outer_bps) {
		pr_err("inner_bps %llu is above outer_bps %llu\n",
		       hdd->inner_bps, hdd->outer_bps);
		return -EINVAL;
	}

	geo->rpm = hdd->rpm;
	geo->heads = hdd->heads;
	geo->seek.min_ns = hdd->seek_min_ns;
	geo->seek.avg_ns = hdd->seek_avg_ns;
	geo->seek.max_ns = hdd->seek_max_ns;
	geo->seek.head_switch_ns = hdd->head_switch_ns;
	if (geo->heads > 1)
		cyl_ns = max(cyl_ns, geo->seek.head_switch_ns);
	err = hdd_geo_init_zones(geo, params, cyl_ns);
	if (err)
		return err;

	geo->head_skew =
		hdd_geo_reduce_angle(geo->seek.head_switch_ns * geo->rpm);
	geo->cyl_skew = hdd_geo_reduce_angle((geo->heads - 1) * geo->head_skew +
					     cyl_ns * geo->rpm);
	geo->seek.cyls = 1 +
		hdd_geo_find_place(geo, params->size / HDD_SECTOR_BYTES - 1).cyl;
	geo->seek.knee = max(geo->seek.cyls / 3, 1);
	return 0;
}

/* Return the time of a seek over @cyls cylinders. */
static u64 hdd_geo_seek_ns(const struct hdd_seek *seek, u32 cyls)
{
	u64 part;

	if (!cyls)
		return 0;
	if (cyls > seek->knee)
		return seek->avg_ns +
		       div_u64((seek->max_ns - seek->avg_ns) *
			       (cyls - seek->knee),
			       seek->cyls - 1 - seek->knee);
	if (cyls == 1)
		return seek->min_ns;
	/* 1 is 2^32, and of its root 2^31; the times are below 2^30. */
	part = div_u64((u64)(cyls - 1) << 32, seek->knee - 1);
	return seek->min_ns +
	       ((seek->avg_ns - seek->min_ns) * int_sqrt64(part << 30) >> 31);
}

/* Return the time of the arm from one track to another. */
u64 hdd_geo_move_ns(const struct hdd_geo *geo,
		    const struct vdisk_hdd_place *from,
		    const struct vdisk_hdd_place *to)
{
	u32 cyls = from->cyl > to->cyl ? from->cyl - to->cyl :
					 to->cyl - from->cyl;

	return max(hdd_geo_seek_ns(&geo->seek, cyls),
		   from->head == to->head ? 0 : geo->seek.head_switch_ns);
}

/* Return the angle by which the platters have turned beyond @angle at a time. */
static u64 hdd_geo_angle_beyond(const struct hdd_geo *geo, u64 at, u64 angle)
{
	/* A minute is a whole number of turns at any rpm. */
	u64 turned = hdd_geo_reduce_angle(hdd_geo_reduce_angle(at) * geo->rpm);

	return turned >= angle ? turned - angle :
				 turned + HDD_TURN_ANGLE - angle;
}

/*
 * Return when an angle is under the head, from time @at on, or has been for
 * less than a ns.
 */
u64 hdd_geo_wait_ns(const struct hdd_geo *geo, u64 at, u64 angle)
{
	u64 beyond = hdd_geo_angle_beyond(geo, at, angle);

	if (beyond < geo->rpm)
		return at;
	return at + DIV_ROUND_UP_ULL(HDD_TURN_ANGLE - beyond, geo->rpm);
}

/*
 * Return the time from the start of a span until @sectors of its sectors have
 * passed.
 */
static u64 hdd_geo_span_ns(const struct hdd_geo *geo,
			   const struct hdd_span *span, u32 sectors)
{
	u64 arc = hdd_geo_sector_angle(span->track_sectors,
				       span->first + sectors) -
		  hdd_geo_sector_angle(span->track_sectors, span->first);

	return arc > span->lag_angle ?
		       DIV_ROUND_UP_ULL(arc - span->lag_angle, geo->rpm) :
		       0;
}

/* Return how many sectors of a span have begun to pass after @ns. */
static u32 hdd_geo_span_sectors(const struct hdd_geo *geo,
				const struct hdd_span *span, u64 ns)
{
	/* Within a span, ns is less than a turn: 2^36 times 2^23 */
	u64 arc = ns * geo->rpm + span->lag_angle;

	return min(DIV64_U64_ROUND_UP(arc * span->track_sectors,
				      HDD_TURN_ANGLE),
		   span->count);
}

/*
 * Move the head over the sectors from *lba, which is under it at time @at. It
 * stops before @end, or behind the sector that is under it at @until, if that
 * is sooner; *lba becomes the sector at which it stops. Return when it stops.
 */
u64 hdd_pass(const struct hdd_geo *geo, u64 *lba, u64 end, u64 at, u64 until)
{
	struct vdisk_hdd_place last;
	struct hdd_span span;
	u64 next;

	if (*lba == end)
		return at;
	if (at >= until)
		return until;

	hdd_geo_locate(geo, *lba, &span);
	for (;;) {
		span.lag_angle =
			hdd_geo_angle_beyond(geo, at, span.place.angle);
		span.count = min(span.count, end - *lba);
		if (hdd_geo_span_ns(geo, &span, span.count) > until - at) {
			span.count =
				hdd_geo_span_sectors(geo, &span, until - at);
			end = *lba + span.count;
		}
		at += hdd_geo_span_ns(geo, &span, span.count);
		*lba += span.count;
		if (*lba == end)
			return at;

		last = span.place;
		hdd_geo_locate(geo, *lba, &span);
		next = at + hdd_geo_move_ns(geo, &last, &span.place);
		next = hdd_geo_wait_ns(geo, next, span.place.angle);
		if (next >= until)
			return max(at, until);
		at = next;
	}
}
