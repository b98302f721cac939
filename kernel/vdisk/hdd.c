// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "disk": a hard disk. One arm, platters that turn, a cache.
 *
 * The platters. A sector has 512 bytes and lies at a cylinder, a head and an
 * angle. Zones have equal numbers of cylinders, and bandwidths in equal steps
 * from the outermost to the innermost, as bandwidth goes with the radius. A
 * track begins where the head is when it comes from the end of the track before
 * (skew), so a stream loses the switch and no more. outer_bps and inner_bps are
 * those of such a stream, switches counted:
 *
 *	track bytes = bps * (turn + mean switch), rounded to a sector
 *
 * The angle is exact at any time. The unit is the 60 * 10^9th of a turn, what a
 * disk of 1 rpm turns in 1 ns, so at time t it is t * rpm modulo a turn, without
 * a fraction. To wait for an angle, and to pass over sectors, is rounded up to a
 * ns, each from where the head really is; so errors stay below 1 ns and never
 * add up. A head that comes up to 1 ns late for a sector still catches it.
 *
 * The arm. A seek over d of C cylinders takes
 *
 *	0					d = 0
 *	min + (avg - min) * sqrt((d-1)/(C/3-1))	up to a third of the disk
 *	avg + (max - avg) * (d-C/3)/(C-1-C/3)	beyond
 *
 * as in Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994:
 * an arm that only speeds up and slows down, and one at full speed on the way.
 * The root is good to 2^-18 of avg - min. A data sheet's "average" is, by
 * custom, the seek over a third. A head switch of the same length or less is
 * hidden in a seek.
 *
 * The controller. Commands come in one by one, cmd_ns each, as long as there
 * are fewer than ncq in the disk. A read that is in the cache ends when it has
 * crossed the link. All others wait for the arm, which takes the one that it
 * can begin first (shortest positioning time), seek and rotation counted; but
 * one that is older than HDD_MAX_AGE_NS goes before all that are younger. A
 * read's data cross the link while they come off the platter; the end of the
 * crossing is never before that of the reading. The link is one a direction.
 *
 * Reading. One half of the cache is cut into segments, each a stretch of
 * sectors; the least recently used goes first. With nothing else to do, the arm
 * reads on behind its last read. A read of what it is about to reach waits for
 * that, and makes it go on; any other command that wants the arm ends it, at
 * the end of the sector under the head.
 *
 * Writing. With a write cache, a write ends when its data are in the other half
 * of the cache. Adjacent writes become one piece. When there is no room, of
 * bytes or of pieces, writes wait, first come first served. The arm writes the
 * pieces out, at most HDD_CHUNK at a time, the one it can begin first (all are
 * looked at, by distance, until a seek alone takes longer than the best): when
 * it has nothing else to do and nothing more to read ahead; in turns with the
 * commands that want it while a write waits for room; and alone for a flush.
 * FUA, or no write cache: the write's data cross the link, wait for the arm,
 * and the write ends when they are on the platter.
 *
 * A flush is a command that is not queued, as ATA's FLUSH CACHE: it waits until
 * all commands before it have ended, and those behind it wait until it ends,
 * which it does when nothing waits to be written. Thus no write can keep a flush
 * from ending.
 *
 * Time. submit() only puts the command into a list with its time. Everything
 * happens in run(), in the order of time, and at one instant: the arm, then the
 * controller, then what crosses a link, in the order of submission. So results
 * do not depend on when run() is called.
 *
 * Not modelled: defects and their spare sectors, errors and retries, thermal
 * calibration, a write's longer settling, reading a track from its middle, the
 * read and second turn that a write of part of a 4096-byte sector needs, spin
 * down, shingled tracks. Data written stay readable from the cache until they
 * are on the platter only. A write that passes by the cache does not cancel
 * older data for the same sectors in it: they cost their time. A trim does
 * nothing but take cmd_ns.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/array_size.h>
#include <linux/bits.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/rbtree.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "events.h"
#include "hdd.h"
#include "link.h"
#include "model.h"
#include "random.h"

#define HDD_SECTOR	512

/* A turn, in units of angle. */
#define HDD_TURN	(60ULL * NSEC_PER_SEC)

/* An angle times the cylinders has to fit 63 bits. Real disks have 2^19. */
#define HDD_MAX_CYLS	BIT(27)

/*
 * How long the nearest may go first. Well above the mean wait at 32 commands,
 * 0.2 s, and below what anybody takes for a dead disk.
 */
#define HDD_MAX_AGE_NS	NSEC_PER_SEC

/*
 * Written in one go, some 3 ms on a disk of today: longer ones make reads wait,
 * and a stream does not notice.
 */
#define HDD_CHUNK	(SZ_512K / HDD_SECTOR)

/* Segments of the read cache; real disks have 16 to 64. */
#define HDD_SEGMENTS	32

/**
 * struct hdd_zone - cylinders with tracks of one length
 * @lba: first sector
 * @cyl: first cylinder
 * @track: sectors a track
 */
struct hdd_zone {
	u64 lba;
	u32 cyl;
	u32 track;
};

/**
 * struct hdd_geo - the platters and the way of the arm. Never changes.
 * @rpm: units of angle a ns
 * @heads: tracks a cylinder
 * @cyls: cylinders in use
 * @knee: a third of them, at least 1: where the seek curve becomes a line
 * @min_ns: seek over 1 cylinder
 * @avg_ns: over @knee
 * @max_ns: over @cyls - 1
 * @head_ns: switch of heads
 * @head_skew: the angle that goes by in it
 * @cyl_skew: that goes by from the last track of a cylinder to the next one
 * @zones: how many of @zone
 * @zone: outermost first
 */
struct hdd_geo {
	u32 rpm;
	u32 heads;
	u32 cyls;
	u32 knee;
	u64 min_ns;
	u64 avg_ns;
	u64 max_ns;
	u64 head_ns;
	u64 head_skew;
	u64 cyl_skew;
	u32 zones;
	struct hdd_zone zone[VDISK_HDD_MAX_ZONES];
};

/**
 * struct hdd_span - sectors one behind the other in a track
 * @first: number of the first in the track
 * @count: how many
 * @track: sectors of the track
 * @lag: how far into the first the head is when the span begins, below 1 ns
 * @place: of the first
 */
struct hdd_span {
	u32 first;
	u32 count;
	u32 track;
	u64 lag;
	struct vdisk_hdd_place place;
};

/**
 * struct hdd_segment - a stretch of sectors in the read cache
 * @lba: first one
 * @end: behind the last one; @lba if the segment is empty
 * @used: when it was last used, by struct hdd's count
 */
struct hdd_segment {
	u64 lba;
	u64 end;
	u64 used;
};

/**
 * struct hdd_piece - a stretch of sectors that waits to be written
 * @node: in the tree, by @lba; no two touch
 * @free: next one that is not in use
 * @lba: first one
 * @end: behind the last one
 * @place: of @lba
 */
struct hdd_piece {
	union {
		struct rb_node node;
		struct hdd_piece *free;
	};
	u64 lba;
	u64 end;
	struct vdisk_hdd_place place;
};

enum hdd_arm {
	HDD_IDLE,
	HDD_COMMAND,	/* reads or writes for a command */
	HDD_AHEAD,	/* reads ahead */
	HDD_DESTAGE,	/* writes from the cache */
};

/**
 * struct hdd - a disk of this model
 * @model: base
 * @geo: its platters
 * @sectors: of the disk
 * @ncq: commands that may be in the disk
 * @cmd_ns: controller's time a command
 * @bps: of the link, by vdisk_op
 * @jitter: of @cmd_ns and of seeks, per mille
 * @cmd_seed: of the jitter of @cmd_ns
 * @seek_seed: of that of seeks
 * @seq: commands ever submitted
 * @inbox: not yet in the disk, in order of arrival
 * @nr_inbox: how many
 * @max_inbox: the most there ever were
 * @inside: commands in the disk
 * @free_ns: since when the controller takes commands, if it does (hdd_shut())
 * @flush: flush that is in the disk, then alone; or NULL
 * @pending: commands that wait for the arm, in the order in which they came to
 *	     do so
 * @full: writes that wait for room in the cache, in order of arrival
 * @crossings: commands on a link, and when they have crossed
 * @link_ns: when the link is free, by vdisk_op
 * @arm: what the arm does
 * @command: for whom, if HDD_COMMAND
 * @place: track that the arm comes from; angle unused
 * @from: first sector that it passes
 * @to: behind the last one; if the arm is idle, these are of its last pass
 * @begin_ns: when it set out
 * @pass_ns: when @from comes under the head
 * @end_ns: when it has passed them; VDISK_NEVER if it is idle
 * @stream: where its last pass was read to, NULL if it did not read
 * @ahead_end: how far to read on from the end of @stream
 * @destage_next: whose turn it is when both want the arm
 * @moves: times that it left its stream
 * @segments: how many of @segment; 0 = no read cache
 * @segment: the read cache
 * @segment_room: sectors a segment
 * @readahead: sectors
 * @used: uses of segments
 * @pieces: what is to be written, without what HDD_DESTAGE is at; by sector,
 *	    no two touch
 * @free: pieces not in @pieces
 * @nr_free: how many, less one for each write that crosses into the cache
 * @dirty: sectors in the write half, including both of these
 * @dirty_room: the most there may be; 0 = every write ends on the platter
 * @busy_ns: time of the arm, up to @begin_ns
 * @hits: reads that the cache had, or was about to have
 * @misses: reads that it did not have
 * @destages: writes from the cache
 * @aged: times that a command went first because of its age
 * @ahead_sectors: read ahead
 * @seek_ns: time of the arm between tracks, on the way to where it is sent
 * @wait_ns: time that it then waited for the sector
 * @piece: memory of the pieces
 *
 * The device's lock protects all of it.
 */
struct hdd {
	struct vdisk_model model;
	struct hdd_geo geo;
	u64 sectors;
	u32 ncq;
	u64 cmd_ns;
	u64 bps[VDISK_NR_OPS];
	u64 jitter;
	u64 cmd_seed;
	u64 seek_seed;

	u64 seq;
	struct vdisk_list inbox;
	u32 nr_inbox;
	u32 max_inbox;
	u32 inside;
	u64 free_ns;
	struct vdisk_cmd *flush;
	struct vdisk_list pending;
	struct vdisk_list full;
	struct vdisk_events *crossings;
	u64 link_ns[VDISK_NR_OPS];

	enum hdd_arm arm;
	struct vdisk_cmd *command;
	struct vdisk_hdd_place place;
	u64 from;
	u64 to;
	u64 begin_ns;
	u64 pass_ns;
	u64 end_ns;
	struct hdd_segment *stream;
	u64 ahead_end;
	bool destage_next;
	u64 moves;

	u32 segments;
	struct hdd_segment segment[HDD_SEGMENTS];
	u64 segment_room;
	u64 readahead;
	u64 used;

	struct rb_root pieces;
	struct hdd_piece *free;
	u32 nr_free;
	u64 dirty;
	u64 dirty_room;

	u64 busy_ns;
	u64 hits;
	u64 misses;
	u64 destages;
	u64 aged;
	u64 ahead_sectors;
	u64 seek_ns;
	u64 wait_ns;

	struct hdd_piece *piece;
};

static struct hdd *to_hdd(struct vdisk_model *model)
{
	return container_of(model, struct hdd, model);
}

/* The places and times of sectors, functions of the geometry alone. */

/* An angle without its whole turns. */
static u64 hdd_part_turn(u64 angle)
{
	u64 part;

	div64_u64_rem(angle, HDD_TURN, &part);
	return part;
}

/* Sectors of a track that gives a bandwidth, with mean_ns lost a track. */
static u32 hdd_track(const struct vdisk_hdd_params *params, u64 bps,
		     u64 mean_ns)
{
	u64 ns = div_u64(HDD_TURN, params->rpm) + mean_ns;

	/* 1.06 s at most, times 4 * 10^9. */
	return max(DIV64_U64_ROUND_CLOSEST(bps * ns, 1ULL * HDD_SECTOR *
					   NSEC_PER_SEC), 1);
}

static int hdd_geo_zones(struct hdd_geo *geo, const struct vdisk_params *params,
			 u64 cyl_ns)
{
	const struct vdisk_hdd_params *hdd = &params->hdd;
	u64 slower = hdd->outer_bps - hdd->inner_bps;
	u64 size = params->size / HDD_SECTOR;
	u64 per_cyl = 0, lba = 0, cyls;
	u64 mean_ns;
	u32 i;

	mean_ns = div64_u64((hdd->heads - 1) * hdd->head_switch_ns + cyl_ns,
			    hdd->heads);
	geo->zones = hdd->zones;
	for (i = 0; i < geo->zones; i++) {
		u64 bps = hdd->outer_bps;

		if (i)
			bps -= div_u64(slower * i, geo->zones - 1);
		geo->zone[i].track = hdd_track(hdd, bps, mean_ns);
		per_cyl += (u64)geo->zone[i].track * geo->heads;
	}

	cyls = DIV64_U64_ROUND_UP(size, per_cyl);
	if (cyls * geo->zones > HDD_MAX_CYLS) {
		pr_err("more than %lu cylinders: the size is too large for the bandwidth\n",
		       HDD_MAX_CYLS);
		return -EINVAL;
	}
	for (i = 0; i < geo->zones; i++) {
		geo->zone[i].lba = lba;
		geo->zone[i].cyl = i * cyls;
		lba += cyls * geo->heads * geo->zone[i].track;
	}
	return 0;
}

static const struct hdd_zone *hdd_zone(const struct hdd_geo *geo, u64 lba)
{
	u32 low = 0, high = geo->zones;

	while (high - low > 1) {
		u32 middle = (low + high) / 2;

		if (geo->zone[middle].lba <= lba)
			low = middle;
		else
			high = middle;
	}
	return &geo->zone[low];
}

/* The angle from the start of a track to that of a sector of it. */
static u64 hdd_arc(u32 track, u32 sector)
{
	/* 2^36 times 2^23 */
	return div_u64(HDD_TURN * sector, track);
}

/* Where a sector is, and the sectors behind it in its track. */
static void hdd_locate(const struct hdd_geo *geo, u64 lba,
		       struct hdd_span *span)
{
	const struct hdd_zone *zone = hdd_zone(geo, lba);
	struct vdisk_hdd_place *place = &span->place;
	u64 track, angle;
	u32 head;

	track = div_u64_rem(lba - zone->lba, zone->track, &span->first);
	place->cyl = zone->cyl + div_u64_rem(track, geo->heads, &head);
	place->head = head;
	span->track = zone->track;
	span->count = zone->track - span->first;

	/* 2^27 times 2^36, 2^6 times 2^36 */
	angle = hdd_part_turn(place->cyl * geo->cyl_skew) +
		place->head * geo->head_skew +
		hdd_arc(span->track, span->first);
	place->angle = hdd_part_turn(angle);
}

static struct vdisk_hdd_place hdd_place(const struct hdd_geo *geo, u64 lba)
{
	struct hdd_span span;

	hdd_locate(geo, lba, &span);
	return span.place;
}

static int hdd_geo_init(struct hdd_geo *geo, const struct vdisk_params *params)
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
	geo->min_ns = hdd->seek_min_ns;
	geo->avg_ns = hdd->seek_avg_ns;
	geo->max_ns = hdd->seek_max_ns;
	geo->head_ns = hdd->head_switch_ns;
	if (geo->heads > 1)
		cyl_ns = max(cyl_ns, geo->head_ns);
	err = hdd_geo_zones(geo, params, cyl_ns);
	if (err)
		return err;

	geo->head_skew = hdd_part_turn(geo->head_ns * geo->rpm);
	geo->cyl_skew = hdd_part_turn((geo->heads - 1) * geo->head_skew +
				      cyl_ns * geo->rpm);
	geo->cyls = hdd_place(geo, params->size / HDD_SECTOR - 1).cyl + 1;
	geo->knee = max(geo->cyls / 3, 1);
	return 0;
}

/* Time of a seek over that many cylinders. */
static u64 hdd_seek(const struct hdd_geo *geo, u32 cyls)
{
	u64 part;

	if (!cyls)
		return 0;
	if (cyls > geo->knee)
		return geo->avg_ns +
		       div_u64((geo->max_ns - geo->avg_ns) *
			       (cyls - geo->knee), geo->cyls - 1 - geo->knee);
	if (cyls == 1)
		return geo->min_ns;
	/* 1 is 2^32, and of its root 2^31; the times are below 2^30. */
	part = div_u64((u64)(cyls - 1) << 32, geo->knee - 1);
	return geo->min_ns +
	       ((geo->avg_ns - geo->min_ns) * int_sqrt64(part << 30) >> 31);
}

/* Time of the arm from one track to another. */
static u64 hdd_move(const struct hdd_geo *geo,
		    const struct vdisk_hdd_place *from,
		    const struct vdisk_hdd_place *to)
{
	u32 cyls = from->cyl > to->cyl ? from->cyl - to->cyl :
					 to->cyl - from->cyl;

	return max(hdd_seek(geo, cyls),
		   from->head == to->head ? 0 : geo->head_ns);
}

/* How far the platters have turned beyond an angle at a time. */
static u64 hdd_beyond(const struct hdd_geo *geo, u64 at, u64 angle)
{
	/* A minute has no part of a turn, at any number of turns a minute. */
	u64 turned = hdd_part_turn(hdd_part_turn(at) * geo->rpm);

	return turned >= angle ? turned - angle : turned + HDD_TURN - angle;
}

/* When an angle is under the head, or has been for less than a ns. */
static u64 hdd_wait(const struct hdd_geo *geo, u64 at, u64 angle)
{
	u64 beyond = hdd_beyond(geo, at, angle);

	if (beyond < geo->rpm)
		return at;
	return at + DIV_ROUND_UP_ULL(HDD_TURN - beyond, geo->rpm);
}

/* Time from the start of a span until that many of its sectors have passed. */
static u64 hdd_span_ns(const struct hdd_geo *geo, const struct hdd_span *span,
		       u32 sectors)
{
	u64 arc = hdd_arc(span->track, span->first + sectors) -
		  hdd_arc(span->track, span->first);

	return arc > span->lag ? DIV_ROUND_UP_ULL(arc - span->lag, geo->rpm) :
				 0;
}

/* How many sectors of a span have begun to pass after some time. */
static u32 hdd_span_sectors(const struct hdd_geo *geo,
			    const struct hdd_span *span, u64 ns)
{
	/* Within a span, ns is less than a turn: 2^36 times 2^23 */
	u64 arc = ns * geo->rpm + span->lag;

	return min(DIV64_U64_ROUND_UP(arc * span->track, HDD_TURN),
		   span->count);
}

/*
 * The head passes over the sectors from *lba, which comes under it at a time.
 * It stops before end, or behind the sector that is under it at until, if that
 * is sooner; *lba is then where it stopped. Returns when.
 */
static u64 hdd_pass(const struct hdd_geo *geo, u64 *lba, u64 end, u64 at,
		    u64 until)
{
	struct vdisk_hdd_place last;
	struct hdd_span span;
	u64 next;

	if (*lba == end)
		return at;
	if (at >= until)
		return until;

	hdd_locate(geo, *lba, &span);
	for (;;) {
		span.lag = hdd_beyond(geo, at, span.place.angle);
		span.count = min(span.count, end - *lba);
		if (hdd_span_ns(geo, &span, span.count) > until - at) {
			span.count = hdd_span_sectors(geo, &span, until - at);
			end = *lba + span.count;
		}
		at += hdd_span_ns(geo, &span, span.count);
		*lba += span.count;
		if (*lba == end)
			return at;

		last = span.place;
		hdd_locate(geo, *lba, &span);
		next = at + hdd_move(geo, &last, &span.place);
		next = hdd_wait(geo, next, span.place.angle);
		if (next >= until)
			return max(at, until);
		at = next;
	}
}

/* The link. */

/*
 * A command's data cross from a time on, and not before they have all come to
 * the link, which they do until ready. Returns when they have crossed.
 */
static u64 hdd_cross(struct hdd *hdd, const struct vdisk_cmd *cmd, u64 from,
		     u64 ready)
{
	u64 *link_ns = &hdd->link_ns[cmd->op];
	u64 bps = hdd->bps[cmd->op];
	u64 ns;

	if (!bps)
		return ready;
	if (*link_ns >= VDISK_FAR_NS)
		return max(*link_ns, ready);
	/* 2^32 * 10^9 is below 2^62. */
	ns = DIV64_U64_ROUND_UP((u64)cmd->bytes * NSEC_PER_SEC, bps);
	if (ready > from && ready - from > ns)
		from = ready - ns;
	*link_ns = max(*link_ns, from) + ns;
	return *link_ns;
}

static void hdd_end(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	vdisk_events_add(hdd->crossings, at, cmd);
}

/* The read cache. */

/* Makes a segment no longer than there is room, by its oldest sectors. */
static void hdd_segment_trim(struct hdd *hdd, struct hdd_segment *segment)
{
	if (segment->end - segment->lba > hdd->segment_room)
		segment->lba = segment->end - hdd->segment_room;
	segment->used = ++hdd->used;
}

/* Sectors have been read for a command. It is from their end to read on. */
static void hdd_segment_add(struct hdd *hdd, u64 lba, u64 end)
{
	struct hdd_segment *segment = NULL, *oldest = &hdd->segment[0];
	u32 i;

	if (!hdd->segments)
		return;

	for (i = 0; i < hdd->segments && !segment; i++) {
		if (hdd->segment[i].used < oldest->used)
			oldest = &hdd->segment[i];
		if (lba >= hdd->segment[i].lba && lba <= hdd->segment[i].end)
			segment = &hdd->segment[i];
	}
	if (!segment) {
		segment = oldest;
		segment->lba = lba;
		segment->end = lba;
	}
	segment->end = max(segment->end, end);
	hdd_segment_trim(hdd, segment);
	hdd->stream = segment;
	hdd->ahead_end = min(segment->end + hdd->readahead, hdd->sectors);
}

/* Whether a read is in the cache. If its front is, it needs only the rest. */
static bool hdd_segment_hit(struct hdd *hdd, struct vdisk_hdd_cmd *cmd)
{
	struct hdd_segment *segment;
	u32 i;

	for (i = 0; i < hdd->segments; i++) {
		segment = &hdd->segment[i];
		if (cmd->lba < segment->lba || cmd->lba >= segment->end)
			continue;
		segment->used = ++hdd->used;
		if (cmd->end > segment->end) {
			cmd->lba = segment->end;
			return false;
		}
		if (segment == hdd->stream)
			hdd->ahead_end = min(max(hdd->ahead_end,
						 cmd->end + hdd->readahead),
					     hdd->sectors);
		return true;
	}
	return false;
}

/* The write cache. */

/* The first piece that ends at a sector or behind it. */
static struct hdd_piece *hdd_piece_from(struct hdd *hdd, u64 lba)
{
	struct rb_node *node = hdd->pieces.rb_node;
	struct hdd_piece *found = NULL;

	while (node) {
		struct hdd_piece *piece = rb_entry(node, struct hdd_piece,
						   node);

		if (piece->end >= lba) {
			found = piece;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

static struct hdd_piece *hdd_piece_next(struct hdd_piece *piece)
{
	return rb_entry_safe(rb_next(&piece->node), struct hdd_piece, node);
}

static struct hdd_piece *hdd_piece_prev(struct hdd_piece *piece)
{
	return rb_entry_safe(rb_prev(&piece->node), struct hdd_piece, node);
}

static void hdd_piece_free(struct hdd *hdd, struct hdd_piece *piece)
{
	rb_erase(&piece->node, &hdd->pieces);
	piece->free = hdd->free;
	hdd->free = piece;
	hdd->nr_free++;
}

/*
 * A write's data are in the cache. It has room for all its sectors and a piece;
 * what it has in common with others is given back.
 */
static void hdd_piece_add(struct hdd *hdd, u64 lba, u64 end)
{
	struct rb_node **link = &hdd->pieces.rb_node, *parent = NULL;
	struct hdd_piece *piece, *next;
	u64 sum = end - lba;

	for (piece = hdd_piece_from(hdd, lba); piece && piece->lba <= end;
	     piece = next) {
		next = hdd_piece_next(piece);
		sum += piece->end - piece->lba;
		lba = min(lba, piece->lba);
		end = max(end, piece->end);
		hdd_piece_free(hdd, piece);
	}
	hdd->dirty -= sum - (end - lba);

	/* The one that it has, or one given back: there is one. */
	piece = hdd->free;
	hdd->free = piece->free;
	piece->lba = lba;
	piece->end = end;
	piece->place = hdd_place(&hdd->geo, lba);
	while (*link) {
		parent = *link;
		if (lba < rb_entry(parent, struct hdd_piece, node)->lba)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&piece->node, parent, link);
	rb_insert_color(&piece->node, &hdd->pieces);
}

static bool hdd_piece_hit(struct hdd *hdd, const struct vdisk_hdd_cmd *cmd)
{
	struct hdd_piece *piece = hdd_piece_from(hdd, cmd->end);

	if (hdd->arm == HDD_DESTAGE && cmd->lba >= hdd->from &&
	    cmd->end <= hdd->to)
		return true;
	return piece && piece->lba <= cmd->lba;
}

static bool hdd_has_room(struct hdd *hdd, const struct vdisk_cmd *cmd)
{
	u64 sectors = cmd->hdd.end - cmd->hdd.lba;

	/* One that is larger than the cache goes through it alone. */
	return hdd->nr_free && (!hdd->dirty ||
				hdd->dirty + sectors <= hdd->dirty_room);
}

/* A write has room in the cache, and its data begin to cross. */
static void hdd_admit(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	hdd->nr_free--;
	hdd->dirty += cmd->hdd.end - cmd->hdd.lba;
	cmd->hdd.crossing = true;
	vdisk_events_add(hdd->crossings, hdd_cross(hdd, cmd, at, at), cmd);
}

/* There may be more room. */
static void hdd_admit_full(struct hdd *hdd, u64 at)
{
	while (hdd->full.head && hdd_has_room(hdd, hdd->full.head))
		hdd_admit(hdd, vdisk_list_pop(&hdd->full), at);
}

/* The arm. */

/* It sets out to pass over some sectors, the first of which is at a place. */
static void hdd_go(struct hdd *hdd, enum hdd_arm arm,
		   const struct vdisk_hdd_place *place, u64 lba, u64 end,
		   u64 at)
{
	u64 move_ns = hdd_move(&hdd->geo, &hdd->place, place);

	/* On a stream, the switch is what the skew was laid out for. */
	if (lba != hdd->to)
		move_ns = vdisk_jitter(move_ns, hdd->jitter, hdd->seek_seed,
				       hdd->moves++);
	hdd->arm = arm;
	hdd->begin_ns = at;
	hdd->pass_ns = hdd_wait(&hdd->geo, at + move_ns, place->angle);
	hdd->seek_ns += move_ns;
	hdd->wait_ns += hdd->pass_ns - at - move_ns;
	hdd->from = lba;
	hdd->to = end;
	hdd->end_ns = hdd_pass(&hdd->geo, &lba, end, hdd->pass_ns,
			       VDISK_NEVER);
}

/* Something else wants the arm: it stops behind the sector under the head. */
static void hdd_interrupt(struct hdd *hdd, u64 at)
{
	u64 lba = hdd->from;

	if (hdd->arm != HDD_AHEAD)
		return;
	hdd->end_ns = hdd_pass(&hdd->geo, &lba, hdd->to, hdd->pass_ns, at);
	hdd->to = lba;
	hdd->ahead_end = lba;
}

/* When the arm could begin with a sector, if it set out at a time. */
static u64 hdd_reach(struct hdd *hdd, const struct vdisk_hdd_place *place,
		     u64 at)
{
	return hdd_wait(&hdd->geo,
			at + hdd_move(&hdd->geo, &hdd->place, place),
			place->angle);
}

/* Takes the command that is next off pending, which is not empty. */
static struct vdisk_cmd *hdd_next_command(struct hdd *hdd, u64 at)
{
	struct vdisk_cmd **link, **first = NULL, **oldest = NULL;
	u64 reach, best = VDISK_NEVER;
	struct vdisk_cmd *cmd;

	for (link = &hdd->pending.head; *link; link = &(*link)->next) {
		cmd = *link;
		if (!oldest || cmd->hdd.at_ns < (*oldest)->hdd.at_ns)
			oldest = link;
		reach = hdd_reach(hdd, &cmd->hdd.place, at);
		if (reach < best) {
			best = reach;
			first = link;
		}
	}
	if (first != oldest && at - (*oldest)->hdd.at_ns > HDD_MAX_AGE_NS) {
		first = oldest;
		hdd->aged++;
	}

	cmd = *first;
	*first = cmd->next;
	if (!cmd->next)
		hdd->pending.tail = first;
	return cmd;
}

/*
 * The piece that the arm can begin first. From where it is, both ways, until
 * the seek alone takes longer than the best.
 */
static struct hdd_piece *hdd_next_piece(struct hdd *hdd, u64 at)
{
	struct rb_node *last = rb_last(&hdd->pieces);
	struct hdd_piece *up = hdd_piece_from(hdd, hdd->to);
	struct hdd_piece *down, *first = NULL;
	u64 reach, best = VDISK_NEVER;

	down = up ? hdd_piece_prev(up) :
		    rb_entry_safe(last, struct hdd_piece, node);
	while (up || down) {
		struct hdd_piece **way = up ? &up : &down;
		struct hdd_piece *piece = *way;

		reach = at + hdd_move(&hdd->geo, &hdd->place, &piece->place);
		if (reach >= best) {
			*way = NULL;
			continue;
		}
		reach = hdd_wait(&hdd->geo, reach, piece->place.angle);
		if (reach < best) {
			best = reach;
			first = piece;
		}
		*way = up ? hdd_piece_next(piece) : hdd_piece_prev(piece);
	}
	return first;
}

static void hdd_destage(struct hdd *hdd, u64 at)
{
	struct hdd_piece *piece = hdd_next_piece(hdd, at);
	struct vdisk_hdd_place place = piece->place;
	u64 lba = piece->lba;
	u64 end = min(piece->end, lba + HDD_CHUNK);

	if (end == piece->end) {
		hdd_piece_free(hdd, piece);
	} else {
		piece->lba = end;
		piece->place = hdd_place(&hdd->geo, end);
	}
	hdd->stream = NULL;
	hdd->destages++;
	hdd_go(hdd, HDD_DESTAGE, &place, lba, end, at);
}

static void hdd_serve(struct hdd *hdd, u64 at)
{
	struct vdisk_cmd *cmd = hdd_next_command(hdd, at);

	hdd->command = cmd;
	hdd->stream = NULL;
	hdd_go(hdd, HDD_COMMAND, &cmd->hdd.place, cmd->hdd.lba, cmd->hdd.end,
	       at);
}

static void hdd_read_ahead(struct hdd *hdd, u64 at)
{
	u64 lba = hdd->stream->end;
	struct vdisk_hdd_place place = hdd_place(&hdd->geo, lba);

	hdd_go(hdd, HDD_AHEAD, &place, lba, hdd->ahead_end, at);
}

/* Gives an idle arm something to do. */
static void hdd_work(struct hdd *hdd, u64 at)
{
	bool dirty = !RB_EMPTY_ROOT(&hdd->pieces);
	bool wanted = dirty && (hdd->flush || hdd->full.head);

	if (hdd->arm != HDD_IDLE)
		return;
	if (wanted && (hdd->destage_next || !hdd->pending.head)) {
		hdd->destage_next = false;
		hdd_destage(hdd, at);
	} else if (hdd->pending.head) {
		hdd->destage_next = true;
		hdd_serve(hdd, at);
	} else if (hdd->flush) {
		hdd_end(hdd, hdd->flush, at);
	} else if (hdd->stream && hdd->stream->end < hdd->ahead_end) {
		hdd_read_ahead(hdd, at);
	} else if (dirty) {
		hdd_destage(hdd, at);
	}
}

static void hdd_command_done(struct hdd *hdd, u64 at)
{
	struct vdisk_cmd *cmd = hdd->command;

	hdd->command = NULL;
	if (cmd->op == VDISK_READ) {
		hdd_segment_add(hdd, hdd->from, hdd->to);
		at = hdd_cross(hdd, cmd, max(hdd->pass_ns, cmd->hdd.at_ns),
			       at);
	}
	hdd_end(hdd, cmd, at);
}

/* The arm has passed over what it was sent to. */
static void hdd_arm_done(struct hdd *hdd, u64 at)
{
	enum hdd_arm arm = hdd->arm;

	hdd->arm = HDD_IDLE;
	hdd->end_ns = VDISK_NEVER;
	hdd->busy_ns += at - hdd->begin_ns;
	if (hdd->to > hdd->from)
		hdd->place = hdd_place(&hdd->geo, hdd->to - 1);

	switch (arm) {
	case HDD_COMMAND:
		hdd_command_done(hdd, at);
		break;
	case HDD_AHEAD:
		hdd->ahead_sectors += hdd->to - hdd->from;
		hdd->stream->end = hdd->to;
		hdd_segment_trim(hdd, hdd->stream);
		break;
	case HDD_DESTAGE:
		hdd->dirty -= hdd->to - hdd->from;
		hdd_admit_full(hdd, at);
		break;
	case HDD_IDLE:
		break;
	}
}

/* The controller. */

static void hdd_pend(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	cmd->hdd.place = hdd_place(&hdd->geo, cmd->hdd.lba);
	vdisk_list_add(&hdd->pending, cmd);
	hdd_interrupt(hdd, at);
}

/*
 * A read while the arm reads ahead. If it is of what has been read, or is about
 * to be, it need not wait for the end of that, nor for the arm to come back.
 */
static bool hdd_join(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	u64 passed = hdd->from;
	u64 stop;

	if (cmd->hdd.lba < hdd->stream->lba || cmd->hdd.lba > hdd->to)
		return false;

	hdd->ahead_end = min(max(hdd->ahead_end,
				 cmd->hdd.end + hdd->readahead), hdd->sectors);
	stop = hdd_pass(&hdd->geo, &passed, hdd->to, hdd->pass_ns, at);
	/* The last that passed may still be under the head. */
	if (cmd->hdd.end < passed || (cmd->hdd.end == passed && stop == at)) {
		hdd_end(hdd, cmd, hdd_cross(hdd, cmd, at, at));
		return true;
	}

	/* The pass becomes that of the command, up to its end. */
	hdd->ahead_sectors += passed - hdd->from;
	hdd->arm = HDD_COMMAND;
	hdd->command = cmd;
	hdd->to = max(cmd->hdd.end, passed);
	passed = hdd->from;
	hdd->end_ns = hdd_pass(&hdd->geo, &passed, hdd->to, hdd->pass_ns,
			       VDISK_NEVER);
	return true;
}

static void hdd_read(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	if (hdd->arm == HDD_AHEAD && hdd_join(hdd, cmd, at)) {
		hdd->hits++;
	} else if (hdd_segment_hit(hdd, &cmd->hdd) ||
		   hdd_piece_hit(hdd, &cmd->hdd)) {
		hdd->hits++;
		hdd_end(hdd, cmd, hdd_cross(hdd, cmd, at, at));
	} else {
		hdd->misses++;
		hdd_pend(hdd, cmd, at);
	}
}

static void hdd_write(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	cmd->hdd.through = cmd->fua || !hdd->dirty_room;
	if (cmd->hdd.through) {
		cmd->hdd.crossing = true;
		vdisk_events_add(hdd->crossings, hdd_cross(hdd, cmd, at, at),
				 cmd);
	} else if (!hdd->full.head && hdd_has_room(hdd, cmd)) {
		hdd_admit(hdd, cmd, at);
	} else {
		vdisk_list_add(&hdd->full, cmd);
		hdd_interrupt(hdd, at);
	}
}

/* Whether the next command has to stay outside. */
static bool hdd_shut(struct hdd *hdd)
{
	struct vdisk_cmd *cmd = hdd->inbox.head;

	return hdd->inside >= hdd->ncq || hdd->flush ||
	       (cmd && cmd->op == VDISK_FLUSH && hdd->inside);
}

/* When the controller has taken the next command. */
static u64 hdd_take_ns(struct hdd *hdd)
{
	struct vdisk_cmd *cmd = hdd->inbox.head;
	u64 ns;

	if (!cmd || hdd_shut(hdd))
		return VDISK_NEVER;
	ns = vdisk_jitter(hdd->cmd_ns, hdd->jitter, hdd->cmd_seed, cmd->seq);
	/* See cmd_ns in config_hdd.c. */
	return max(hdd->free_ns, cmd->hdd.at_ns) + max(ns, 1);
}

static void hdd_take(struct hdd *hdd, u64 at)
{
	struct vdisk_cmd *cmd = vdisk_list_pop(&hdd->inbox);

	hdd->nr_inbox--;
	hdd->inside++;
	hdd->free_ns = at;
	cmd->hdd.at_ns = at;
	switch (cmd->op) {
	case VDISK_READ:
		hdd_read(hdd, cmd, at);
		break;
	case VDISK_WRITE:
		hdd_write(hdd, cmd, at);
		break;
	case VDISK_FLUSH:
		hdd->flush = cmd;
		hdd_interrupt(hdd, at);
		break;
	default:
		hdd_end(hdd, cmd, at);
	}
}

/* The first on a link has crossed. */
static void hdd_crossed(struct hdd *hdd, u64 at, struct vdisk_list *done)
{
	struct vdisk_cmd *cmd = hdd->crossings->heap[0].cmd;
	bool shut;

	vdisk_events_drop(hdd->crossings);
	if (cmd->hdd.crossing) {
		cmd->hdd.crossing = false;
		if (cmd->hdd.through) {
			hdd_pend(hdd, cmd, at);
			return;
		}
		hdd_piece_add(hdd, cmd->hdd.lba, cmd->hdd.end);
		hdd_admit_full(hdd, at);
	}

	vdisk_list_add(done, cmd);
	shut = hdd_shut(hdd);
	hdd->inside--;
	if (cmd == hdd->flush)
		hdd->flush = NULL;
	if (shut)
		hdd->free_ns = max(hdd->free_ns, at);
}

/* What the block device calls. */

static u64 hdd_next(struct hdd *hdd)
{
	return min3(hdd->end_ns, hdd_take_ns(hdd),
		    vdisk_events_next(hdd->crossings));
}

static u64 hdd_submit(struct vdisk_model *model, struct vdisk_cmd *cmd,
		      u64 now)
{
	struct hdd *hdd = to_hdd(model);

	cmd->seq = hdd->seq++;
	cmd->hdd = (struct vdisk_hdd_cmd){
		.at_ns = now,
		.lba = div_u64(cmd->pos, HDD_SECTOR),
		.end = div_u64(cmd->pos + cmd->bytes, HDD_SECTOR),
	};
	vdisk_list_add(&hdd->inbox, cmd);
	hdd->max_inbox = max(hdd->max_inbox, ++hdd->nr_inbox);
	return hdd_next(hdd);
}

static u64 hdd_run(struct vdisk_model *model, u64 now, struct vdisk_list *done)
{
	struct hdd *hdd = to_hdd(model);
	u64 at;

	while ((at = hdd_next(hdd)) <= now) {
		if (hdd->end_ns == at)
			hdd_arm_done(hdd, at);
		else if (hdd_take_ns(hdd) == at)
			hdd_take(hdd, at);
		else
			hdd_crossed(hdd, at, done);
		hdd_work(hdd, at);
	}
	return at;
}

static void hdd_set(struct hdd *hdd, const struct vdisk_params *params)
{
	hdd->cmd_ns = params->hdd.cmd_ns;
	hdd->jitter = params->jitter;
	hdd->bps[VDISK_READ] = params->bps[VDISK_READ];
	hdd->bps[VDISK_WRITE] = params->bps[VDISK_WRITE];
}

static u64 hdd_change(struct vdisk_model *model,
		      const struct vdisk_params *params, u64 now)
{
	struct hdd *hdd = to_hdd(model);

	hdd_set(hdd, params);
	return hdd_next(hdd);
}

static void hdd_stats(struct vdisk_model *model, u64 now,
		      struct vdisk_stats *stats)
{
	struct hdd *hdd = to_hdd(model);

	stats->in_service = hdd->inside;
	stats->waiting = hdd->nr_inbox;
	stats->waiting_max = hdd->max_inbox;
	stats->busy_ns = hdd->busy_ns;
	if (hdd->arm != HDD_IDLE)
		stats->busy_ns += now - hdd->begin_ns;
}

static u32 hdd_counters(struct vdisk_model *model, u64 now,
			struct vdisk_counter *out, u32 room)
{
	struct hdd *hdd = to_hdd(model);
	const struct vdisk_counter counters[] = {
		{ "cache_hits", hdd->hits },
		{ "cache_misses", hdd->misses },
		{ "cache_dirty_bytes", hdd->dirty * HDD_SECTOR },
		{ "destages", hdd->destages },
		{ "readahead_bytes", hdd->ahead_sectors * HDD_SECTOR },
		{ "aged", hdd->aged },
		{ "seek_ns", hdd->seek_ns },
		{ "rotation_ns", hdd->wait_ns },
	};
	u32 count = min(room, ARRAY_SIZE(counters));

	memcpy(out, counters, count * sizeof(*out));
	return count;
}

static void hdd_cache_init(struct hdd *hdd, const struct vdisk_params *params)
{
	u64 half = div_u64(params->hdd.cache, 2 * HDD_SECTOR);
	u64 i;

	hdd->readahead = div_u64(params->hdd.readahead, HDD_SECTOR);
	if (half) {
		/* Room for what a stream has had, and for what comes. */
		hdd->segment_room = clamp(2 * hdd->readahead,
					  max(half / HDD_SEGMENTS, 1), half);
		hdd->readahead = min(hdd->readahead, hdd->segment_room);
		hdd->segments = min(div64_u64(half, hdd->segment_room),
				    HDD_SEGMENTS);
	}

	if (params->write_cache)
		hdd->dirty_room = half;
	for (i = 0; i < params->hdd.write_pieces; i++) {
		hdd->piece[i].free = hdd->free;
		hdd->free = &hdd->piece[i];
		hdd->nr_free++;
	}
}

static struct vdisk_model *hdd_create(const struct vdisk_params *params,
				      u32 max_cmds)
{
	struct hdd *hdd;
	int err = -ENOMEM;

	hdd = kvzalloc(sizeof(*hdd), GFP_KERNEL);
	if (!hdd)
		return ERR_PTR(-ENOMEM);

	hdd->piece = kvcalloc(params->hdd.write_pieces, sizeof(*hdd->piece),
			      GFP_KERNEL);
	if (!hdd->piece)
		goto free;
	hdd->crossings = vdisk_events_create(max_cmds);
	if (!hdd->crossings)
		goto free;
	err = hdd_geo_init(&hdd->geo, params);
	if (err)
		goto free;

	hdd->model.ops = &vdisk_hdd_ops;
	hdd->sectors = div_u64(params->size, HDD_SECTOR);
	hdd->ncq = params->hdd.ncq;
	hdd->cmd_seed = vdisk_random(params->seed, 0);
	hdd->seek_seed = vdisk_random(params->seed, 1);
	hdd->end_ns = VDISK_NEVER;
	hdd->pieces = RB_ROOT;
	vdisk_list_init(&hdd->inbox);
	vdisk_list_init(&hdd->pending);
	vdisk_list_init(&hdd->full);
	hdd_cache_init(hdd, params);
	hdd_set(hdd, params);
	return &hdd->model;

free:
	kvfree(hdd->crossings);
	kvfree(hdd->piece);
	kvfree(hdd);
	return ERR_PTR(err);
}

static void hdd_destroy(struct vdisk_model *model)
{
	struct hdd *hdd = to_hdd(model);

	kvfree(hdd->crossings);
	kvfree(hdd->piece);
	kvfree(hdd);
}

const struct vdisk_model_ops vdisk_hdd_ops = {
	.name = "disk",
	.rotational = true,
	.create = hdd_create,
	.destroy = hdd_destroy,
	.submit = hdd_submit,
	.run = hdd_run,
	.change = hdd_change,
	.stats = hdd_stats,
	.counters = hdd_counters,
};
