// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "disk": a hard disk with one arm, rotating platters and a cache.
 *
 * The controller. Commands are taken one by one, cmd_ns each, while there are
 * fewer than ncq in the disk. A read that is in the cache ends when it has
 * crossed the link. All others wait for the arm, which takes the command that
 * it can begin first (shortest positioning time), seek and rotation counted;
 * but a command older than HDD_COMMAND_AGE_NS_MAX precedes all younger ones. A read's
 * data cross the link while they come off the platter; the crossing never ends
 * before the reading. There is a link for each direction.
 *
 * Reading. One half of the cache is divided into segments, each a range of
 * sectors; the least recently used is evicted. An idle arm reads on behind its
 * last read. A read of sectors that it is about to reach waits for them, and
 * extends the read-ahead; any other command for the arm ends it, at the end of
 * the sector under the head.
 *
 * Writing. With a write cache, a write ends when its data are in the other half
 * of the cache. Adjacent writes become one piece. Without room, of bytes or of
 * pieces, writes wait, first come first served. The arm writes pieces out, at
 * most HDD_DESTAGE_SECTORS_MAX at a time, the piece first that it can begin first (it looks
 * at pieces by distance, until a seek alone takes longer than the best): when
 * there is no command for it and nothing to read ahead; in turn with the
 * commands for it while a write waits for room; and exclusively for a flush.
 * With FUA, or without a write cache, the write's data cross the link, wait for
 * the arm, and the write ends when they are on the platter.
 *
 * A flush is not queued, as ATA's FLUSH CACHE: it waits until all earlier
 * commands have ended, and later commands wait until it ends, which it does
 * when no piece waits to be written. Thus no write can keep a flush from
 * ending.
 *
 * Time. submit() only adds the command to a list with its time. All else
 * happens in run(), in the order of time, and at one instant: the arm, then the
 * controller, then the links, in the order of submission. So results do not
 * depend on when run() is called.
 *
 * Not modelled: defects and their spare sectors, errors and retries, thermal
 * calibration, a write's longer settling, reading a track from its middle, the
 * read and second turn of a write of part of a 4096-byte sector, spin down,
 * shingled tracks. Written data stay readable from the cache only until they
 * are on the platter. A write that bypasses the cache does not cancel older
 * data for its sectors there: these are still written, at their cost. A trim
 * takes only cmd_ns.
 *
 * Where things are:
 *
 *	this file	the whole disk: its creation, events, statistics
 *	hdd_controller.c entry and end of commands, the link
 *	hdd_arm.c	tasks of the arm, and their order
 *	hdd_cache.c	read segments, and pieces to be written
 *	hdd_geo.c	the platters, seeks and rotation
 */
#include <linux/array_size.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "events.h"
#include "hdd.h"
#include "hdd_arm.h"
#include "hdd_cache.h"
#include "hdd_geo.h"
#include "hdd_model.h"
#include "model.h"
#include "random.h"

static struct hdd *to_hdd(struct vdisk_model *model)
{
	return container_of(model, struct hdd, model);
}

/* Return the time of the next event. */
static u64 hdd_next_event_ns(const struct hdd *hdd)
{
	return min3(hdd->arm.pass.end_ns, hdd_controller_take_ns(hdd),
		    vdisk_events_next_ns(hdd->link.crossings));
}

static u64 hdd_submit_cmd(struct vdisk_model *model, struct vdisk_cmd *cmd,
			  u64 now)
{
	struct hdd *hdd = to_hdd(model);

	hdd_controller_add(hdd, cmd, now);
	return hdd_next_event_ns(hdd);
}

static u64 hdd_run_events(struct vdisk_model *model, u64 now,
			  struct vdisk_list *done)
{
	struct hdd *hdd = to_hdd(model);
	u64 at;

	while ((at = hdd_next_event_ns(hdd)) <= now) {
		if (hdd->arm.pass.end_ns == at)
			hdd_arm_end_pass(hdd, at);
		else if (hdd_controller_take_ns(hdd) == at)
			hdd_controller_take(hdd, at);
		else
			hdd_link_end_transfer(hdd, at, done);
		hdd_arm_start_next(hdd, at);
	}
	return at;
}

/* Set the parameters that may change. */
static void hdd_set_params(struct hdd *hdd, const struct vdisk_params *params)
{
	hdd->controller.cmd_ns = params->hdd.cmd_ns;
	hdd->jitter = params->jitter;
	hdd->link.bps[VDISK_READ] = params->bps[VDISK_READ];
	hdd->link.bps[VDISK_WRITE] = params->bps[VDISK_WRITE];
}

static u64 hdd_change_params(struct vdisk_model *model,
			     const struct vdisk_params *params, u64 now)
{
	struct hdd *hdd = to_hdd(model);

	hdd_set_params(hdd, params);
	return hdd_next_event_ns(hdd);
}

static void hdd_get_stats(struct vdisk_model *model, u64 now,
			  struct vdisk_stats *stats)
{
	struct hdd *hdd = to_hdd(model);
	const struct hdd_controller *controller = &hdd->controller;
	const struct hdd_arm *arm = &hdd->arm;

	stats->nr_in_service = controller->nr_inside;
	stats->nr_waiting = controller->nr_inbox;
	stats->nr_waiting_max = controller->nr_inbox_max;
	stats->busy_ns = arm->counters.busy_ns;
	if (arm->task != HDD_IDLE)
		stats->busy_ns += now - arm->pass.begin_ns;
}

static u32 hdd_get_counters(struct vdisk_model *model, u64 now,
			    struct vdisk_counter *out, u32 room)
{
	struct hdd *hdd = to_hdd(model);
	const struct hdd_arm_counters *did = &hdd->arm.counters;
	const struct vdisk_counter counters[] = {
		{ "cache_hits", hdd->reads.nr_hits },
		{ "cache_misses", hdd->reads.nr_misses },
		{ "cache_dirty_bytes",
		  hdd->writes.dirty_sectors * HDD_SECTOR_BYTES },
		{ "destages", did->nr_destages },
		{ "readahead_bytes", did->ahead_sectors * HDD_SECTOR_BYTES },
		{ "aged", did->nr_aged },
		{ "seek_ns", did->seek_ns },
		{ "rotation_ns", did->wait_ns },
	};
	u32 count = min(room, ARRAY_SIZE(counters));

	memcpy(out, counters, count * sizeof(*out));
	return count;
}

static void hdd_destroy(struct vdisk_model *model)
{
	struct hdd *hdd = to_hdd(model);

	kvfree(hdd->link.crossings);
	hdd_cache_destroy(hdd);
	kvfree(hdd);
}

/* Create all parts of a disk. The caller destroys it, even if that failed. */
static int hdd_init(struct hdd *hdd, const struct vdisk_params *params,
		    u32 max_cmds)
{
	hdd->sectors = div_u64(params->size, HDD_SECTOR_BYTES);
	hdd->controller.ncq = params->hdd.ncq;
	hdd->controller.seed = vdisk_random(params->seed, 0);
	hdd->arm.seed = vdisk_random(params->seed, 1);
	hdd->arm.pass.end_ns = VDISK_NEVER_NS;
	vdisk_list_init(&hdd->controller.inbox);
	vdisk_list_init(&hdd->arm.pending);
	hdd_set_params(hdd, params);
	hdd->link.crossings = vdisk_events_create(max_cmds);
	if (!hdd->link.crossings)
		return -ENOMEM;
	return hdd_geo_init(&hdd->geo, params) ?: hdd_cache_init(hdd, params);
}

static struct vdisk_model *hdd_create(const struct vdisk_params *params,
				      u32 max_cmds)
{
	struct hdd *hdd;
	int err;

	hdd = kvzalloc(sizeof(*hdd), GFP_KERNEL);
	if (!hdd)
		return ERR_PTR(-ENOMEM);

	hdd->model.ops = &vdisk_hdd_ops;
	err = hdd_init(hdd, params, max_cmds);
	if (err) {
		hdd_destroy(&hdd->model);
		return ERR_PTR(err);
	}
	return &hdd->model;
}

const struct vdisk_model_ops vdisk_hdd_ops = {
	.name = "disk",
	.rotational = true,
	.create = hdd_create,
	.destroy = hdd_destroy,
	.submit = hdd_submit_cmd,
	.run = hdd_run_events,
	.change = hdd_change_params,
	.stats = hdd_get_stats,
	.counters = hdd_get_counters,
};
