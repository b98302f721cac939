// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arm of a hard disk: its next task, and the end of a task. hdd.c explains
 * the order.
 */
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/sizes.h>
#include <linux/time64.h>

#include "hdd.h"
#include "hdd_arm.h"
#include "hdd_cache.h"
#include "hdd_geo.h"
#include "hdd_model.h"
#include "model.h"
#include "random.h"

/*
 * Age above which a command precedes nearer ones. Well above the mean wait at
 * 32 commands, 0.2 s, and below the time after which a disk seems dead.
 */
#define HDD_COMMAND_AGE_NS_MAX	NSEC_PER_SEC

/*
 * Sectors of a write from the cache, some 3 ms on a current disk: longer writes
 * delay reads, and a stream gains nothing.
 */
#define HDD_DESTAGE_SECTORS_MAX	(SZ_512K / HDD_SECTOR_BYTES)

/* Start a pass of the arm over sectors @lba to @end; @place is that of @lba. */
static void hdd_arm_start_pass(struct hdd *hdd, enum hdd_task task,
			       const struct vdisk_hdd_place *place, u64 lba,
			       u64 end, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	u64 move_ns = hdd_geo_move_ns(&hdd->geo, &arm->place, place);

	/* On a stream the skew matches the switch exactly: no jitter. */
	if (lba != arm->pass.to)
		move_ns = vdisk_jitter(move_ns, hdd->jitter, arm->seed,
				       arm->counters.nr_moves++);
	arm->task = task;
	arm->pass.begin_ns = at;
	arm->pass.pass_ns =
		hdd_geo_wait_ns(&hdd->geo, at + move_ns, place->angle);
	arm->counters.seek_ns += move_ns;
	arm->counters.wait_ns += arm->pass.pass_ns - at - move_ns;
	arm->pass.from = lba;
	arm->pass.to = end;
	arm->pass.end_ns = hdd_pass(&hdd->geo, &lba, end, arm->pass.pass_ns,
				    VDISK_NEVER_NS);
}

/*
 * Stop reading ahead, behind the sector under the head: a command needs the
 * arm.
 */
void hdd_arm_interrupt(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	u64 lba = arm->pass.from;

	if (arm->task != HDD_AHEAD)
		return;
	arm->pass.end_ns = hdd_pass(&hdd->geo, &lba, arm->pass.to,
				    arm->pass.pass_ns, at);
	arm->pass.to = lba;
	arm->ahead_end_lba = lba;
}

/* Return when the arm reaches a sector if it starts at time @at. */
static u64 hdd_arm_reach_ns(struct hdd *hdd,
			    const struct vdisk_hdd_place *place, u64 at)
{
	return hdd_geo_wait_ns(&hdd->geo,
			       at + hdd_geo_move_ns(&hdd->geo, &hdd->arm.place,
						    place),
			       place->angle);
}

/* Remove and return the next of the pending commands, which are not empty. */
static struct vdisk_cmd *hdd_arm_pop_command(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	struct vdisk_cmd **link, **first = NULL, **oldest = NULL;
	u64 reach, best = VDISK_NEVER_NS;
	struct vdisk_cmd *cmd;

	for (link = &arm->pending.head; *link; link = &(*link)->next) {
		cmd = *link;
		if (!oldest || cmd->hdd.at_ns < (*oldest)->hdd.at_ns)
			oldest = link;
		reach = hdd_arm_reach_ns(hdd, &cmd->hdd.place, at);
		if (reach < best) {
			best = reach;
			first = link;
		}
	}
	if (first != oldest &&
	    at - (*oldest)->hdd.at_ns > HDD_COMMAND_AGE_NS_MAX) {
		first = oldest;
		arm->counters.nr_aged++;
	}

	cmd = *first;
	*first = cmd->next;
	if (!cmd->next)
		arm->pending.tail = first;
	return cmd;
}

/*
 * Return the piece that the arm can begin first. Look at pieces from the arm
 * on, in both directions, until the seek alone takes longer than the best.
 */
static struct hdd_piece *hdd_arm_find_piece(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	struct rb_node *last = rb_last(&hdd->writes.pieces);
	struct hdd_piece *up = hdd_piece_find(&hdd->writes, arm->pass.to);
	struct hdd_piece *down, *first = NULL;
	u64 reach, best = VDISK_NEVER_NS;

	down = up ? hdd_piece_prev(up) :
		    rb_entry_safe(last, struct hdd_piece, node);
	while (up || down) {
		struct hdd_piece **way = up ? &up : &down;
		struct hdd_piece *piece = *way;

		reach = at +
			hdd_geo_move_ns(&hdd->geo, &arm->place, &piece->place);
		if (reach >= best) {
			*way = NULL;
			continue;
		}
		reach = hdd_geo_wait_ns(&hdd->geo, reach, piece->place.angle);
		if (reach < best) {
			best = reach;
			first = piece;
		}
		*way = up ? hdd_piece_next(piece) : hdd_piece_prev(piece);
	}
	return first;
}

/* Write the next piece, or a part of it. */
static void hdd_arm_destage(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	struct hdd_piece *piece = hdd_arm_find_piece(hdd, at);
	struct vdisk_hdd_place place = piece->place;
	u64 lba = piece->lba;
	u64 end = min(piece->end, lba + HDD_DESTAGE_SECTORS_MAX);

	if (end == piece->end) {
		hdd_piece_free(&hdd->writes, piece);
	} else {
		piece->lba = end;
		piece->place = hdd_geo_find_place(&hdd->geo, end);
	}
	arm->stream = NULL;
	arm->counters.nr_destages++;
	hdd_arm_start_pass(hdd, HDD_DESTAGE, &place, lba, end, at);
}

/* Start the pass of the next command. */
static void hdd_arm_serve(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	struct vdisk_cmd *cmd = hdd_arm_pop_command(hdd, at);

	arm->command = cmd;
	arm->stream = NULL;
	hdd_arm_start_pass(hdd, HDD_COMMAND, &cmd->hdd.place, cmd->hdd.lba,
			   cmd->hdd.end, at);
}

/* Extend read-ahead to the usual distance behind a sector. */
void hdd_arm_extend_ahead(struct hdd *hdd, u64 lba)
{
	u64 end =
		max(hdd->arm.ahead_end_lba, lba + hdd->reads.readahead_sectors);

	hdd->arm.ahead_end_lba = min(end, hdd->sectors);
}

/* Read ahead behind the last read. */
static void hdd_arm_read_ahead(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	u64 lba = arm->stream->end;
	struct vdisk_hdd_place place = hdd_geo_find_place(&hdd->geo, lba);

	hdd_arm_start_pass(hdd, HDD_AHEAD, &place, lba, arm->ahead_end_lba, at);
}

/* Start the next task of an idle arm, if there is one. */
void hdd_arm_start_next(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	bool dirty = !RB_EMPTY_ROOT(&hdd->writes.pieces);
	bool wanted = dirty &&
		      (hdd->controller.flush || hdd->writes.waiting.head);

	if (arm->task != HDD_IDLE)
		return;
	if (wanted && (arm->destage_next || !arm->pending.head)) {
		arm->destage_next = false;
		hdd_arm_destage(hdd, at);
	} else if (arm->pending.head) {
		arm->destage_next = true;
		hdd_arm_serve(hdd, at);
	} else if (hdd->controller.flush) {
		hdd_link_add_end(hdd, hdd->controller.flush, at);
	} else if (arm->stream && arm->stream->end < arm->ahead_end_lba) {
		hdd_arm_read_ahead(hdd, at);
	} else if (dirty) {
		hdd_arm_destage(hdd, at);
	}
}

/* Process the end of a command's pass. */
static void hdd_arm_end_command(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	struct vdisk_cmd *cmd = arm->command;

	arm->command = NULL;
	if (cmd->op == VDISK_READ) {
		hdd_segment_add(hdd, arm->pass.from, arm->pass.to);
		at = hdd_link_transfer(hdd, cmd, max(arm->pass.pass_ns, cmd->hdd.at_ns), at);
	}
	hdd_link_add_end(hdd, cmd, at);
}

/* Process the end of a pass. */
void hdd_arm_end_pass(struct hdd *hdd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	enum hdd_task task = arm->task;

	arm->task = HDD_IDLE;
	arm->pass.end_ns = VDISK_NEVER_NS;
	arm->counters.busy_ns += at - arm->pass.begin_ns;
	if (arm->pass.to > arm->pass.from)
		arm->place = hdd_geo_find_place(&hdd->geo, arm->pass.to - 1);

	switch (task) {
	case HDD_COMMAND:
		hdd_arm_end_command(hdd, at);
		break;
	case HDD_AHEAD:
		arm->counters.ahead_sectors += arm->pass.to - arm->pass.from;
		arm->stream->end = arm->pass.to;
		hdd_segment_trim(&hdd->reads, arm->stream);
		break;
	case HDD_DESTAGE:
		hdd->writes.dirty_sectors -= arm->pass.to - arm->pass.from;
		hdd_cache_admit_waiting(hdd, at);
		break;
	case HDD_IDLE:
		break;
	}
}

/* Have a command wait for the arm. */
void hdd_arm_queue(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	cmd->hdd.place = hdd_geo_find_place(&hdd->geo, cmd->hdd.lba);
	vdisk_list_add(&hdd->arm.pending, cmd);
	hdd_arm_interrupt(hdd, at);
}

/*
 * Let a read join the read-ahead of the arm. A read of sectors that have been
 * read ahead, or are about to be, waits neither for the end of the read-ahead
 * nor for the arm to return. Return whether it has joined.
 */
bool hdd_arm_join(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	struct hdd_arm *arm = &hdd->arm;
	u64 passed = arm->pass.from;
	u64 stop;

	if (cmd->hdd.lba < arm->stream->lba || cmd->hdd.lba > arm->pass.to)
		return false;

	hdd_arm_extend_ahead(hdd, cmd->hdd.end);
	stop = hdd_pass(&hdd->geo, &passed, arm->pass.to, arm->pass.pass_ns,
			at);
	/* The last sector may still be under the head. */
	if (cmd->hdd.end < passed || (cmd->hdd.end == passed && stop == at)) {
		hdd_link_add_end(hdd, cmd, hdd_link_transfer(hdd, cmd, at, at));
		return true;
	}

	/* The pass becomes the command's, up to the command's end. */
	arm->counters.ahead_sectors += passed - arm->pass.from;
	arm->task = HDD_COMMAND;
	arm->command = cmd;
	arm->pass.to = max(cmd->hdd.end, passed);
	passed = arm->pass.from;
	arm->pass.end_ns = hdd_pass(&hdd->geo, &passed, arm->pass.to,
				    arm->pass.pass_ns, VDISK_NEVER_NS);
	return true;
}
