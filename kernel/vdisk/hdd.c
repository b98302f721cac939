// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "disk": a hard disk. One arm, platters that turn, a cache.
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
 * which it does when nothing waits to be written. Thus no write can keep a
 * flush from ending.
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
 *
 * Where things are:
 *
 *	this file	the disk as a whole: how it is made, its events, figures
 *	hdd_controller.c how commands come in and end, the link
 *	hdd_arm.c	what the arm does, and in which order
 *	hdd_cache.c	what was read, and what is to be written
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

/* Return when something happens next. */
static u64 hdd_next(const struct hdd *hdd)
{
	return min3(hdd->arm.pass.end_ns, hdd_take_ns(hdd),
		    vdisk_events_next(hdd->link.crossings));
}

static u64 hdd_submit(struct vdisk_model *model, struct vdisk_cmd *cmd,
		      u64 now)
{
	struct hdd *hdd = to_hdd(model);

	hdd_arrive(hdd, cmd, now);
	return hdd_next(hdd);
}

static u64 hdd_run(struct vdisk_model *model, u64 now, struct vdisk_list *done)
{
	struct hdd *hdd = to_hdd(model);
	u64 at;

	while ((at = hdd_next(hdd)) <= now) {
		if (hdd->arm.pass.end_ns == at)
			hdd_arm_done(hdd, at);
		else if (hdd_take_ns(hdd) == at)
			hdd_take(hdd, at);
		else
			hdd_crossed(hdd, at, done);
		hdd_work(hdd, at);
	}
	return at;
}

/* Take the parameters that may change. */
static void hdd_set(struct hdd *hdd, const struct vdisk_params *params)
{
	hdd->controller.cmd_ns = params->hdd.cmd_ns;
	hdd->jitter = params->jitter;
	hdd->link.bps[VDISK_READ] = params->bps[VDISK_READ];
	hdd->link.bps[VDISK_WRITE] = params->bps[VDISK_WRITE];
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
	const struct hdd_controller *controller = &hdd->controller;
	const struct hdd_arm *arm = &hdd->arm;

	stats->in_service = controller->inside;
	stats->waiting = controller->nr_inbox;
	stats->waiting_max = controller->max_inbox;
	stats->busy_ns = arm->did.busy_ns;
	if (arm->task != HDD_IDLE)
		stats->busy_ns += now - arm->pass.begin_ns;
}

static u32 hdd_counters(struct vdisk_model *model, u64 now,
			struct vdisk_counter *out, u32 room)
{
	struct hdd *hdd = to_hdd(model);
	const struct hdd_arm_counters *did = &hdd->arm.did;
	const struct vdisk_counter counters[] = {
		{ "cache_hits", hdd->reads.hits },
		{ "cache_misses", hdd->reads.misses },
		{ "cache_dirty_bytes", hdd->writes.dirty * HDD_SECTOR },
		{ "destages", did->destages },
		{ "readahead_bytes", did->ahead * HDD_SECTOR },
		{ "aged", did->aged },
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

/* Make all parts of a disk, which the caller destroys even if that failed. */
static int hdd_init(struct hdd *hdd, const struct vdisk_params *params,
		    u32 max_cmds)
{
	hdd->sectors = div_u64(params->size, HDD_SECTOR);
	hdd->controller.ncq = params->hdd.ncq;
	hdd->controller.seed = vdisk_random(params->seed, 0);
	hdd->arm.seed = vdisk_random(params->seed, 1);
	hdd->arm.pass.end_ns = VDISK_NEVER;
	vdisk_list_init(&hdd->controller.inbox);
	vdisk_list_init(&hdd->arm.pending);
	hdd_set(hdd, params);
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
	.submit = hdd_submit,
	.run = hdd_run,
	.change = hdd_change,
	.stats = hdd_stats,
	.counters = hdd_counters,
};
