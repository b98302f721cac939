// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller of a hard disk and its link to the host: entry, routing and
 * end of commands.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "events.h"
#include "hdd.h"
#include "hdd_arm.h"
#include "hdd_cache.h"
#include "hdd_geo.h"
#include "hdd_model.h"
#include "link.h"
#include "model.h"
#include "random.h"

/*
 * Send a command's data over the link. They may cross from @from on, and reach
 * the link until @ready. Return when they have crossed.
 */
u64 hdd_cross(struct hdd *hdd, const struct vdisk_cmd *cmd, u64 from, u64 ready)
{
	u64 *link_ns = &hdd->link.free_ns[cmd->op];
	u64 bps = hdd->link.bps[cmd->op];
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

/* Schedule the end of a command. */
void hdd_end(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	vdisk_events_add(hdd->link.crossings, at, cmd);
}

/* Send a write's data over the link, to the cache or for the arm. */
void hdd_cross_in(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	cmd->hdd.crossing = true;
	hdd_end(hdd, cmd, hdd_cross(hdd, cmd, at, at));
}

/* Process the arrival of a command. */
void hdd_arrive(struct hdd *hdd, struct vdisk_cmd *cmd, u64 now)
{
	struct hdd_controller *controller = &hdd->controller;

	cmd->seq = controller->seq++;
	cmd->hdd = (struct vdisk_hdd_cmd){
		.at_ns = now,
		.lba = div_u64(cmd->pos, HDD_SECTOR),
		.end = div_u64(cmd->pos + cmd->bytes, HDD_SECTOR),
	};
	vdisk_list_add(&controller->inbox, cmd);
	controller->max_inbox = max(controller->max_inbox,
				    ++controller->nr_inbox);
}

static void hdd_read(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	if (hdd->arm.task == HDD_AHEAD && hdd_join(hdd, cmd, at)) {
		hdd->reads.hits++;
	} else if (hdd_segment_hit(hdd, &cmd->hdd) ||
		   hdd_piece_hit(hdd, &cmd->hdd)) {
		hdd->reads.hits++;
		hdd_end(hdd, cmd, hdd_cross(hdd, cmd, at, at));
	} else {
		hdd->reads.misses++;
		hdd_pend(hdd, cmd, at);
	}
}

static void hdd_write(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	cmd->hdd.through = cmd->fua || !hdd->writes.room;
	if (cmd->hdd.through)
		hdd_cross_in(hdd, cmd, at);
	else if (!hdd_admit(hdd, cmd, at))
		hdd_interrupt(hdd, at);
}

/* Return whether the next command has to stay outside. */
static bool hdd_shut(const struct hdd *hdd)
{
	const struct hdd_controller *controller = &hdd->controller;
	const struct vdisk_cmd *cmd = controller->inbox.head;

	return controller->inside >= controller->ncq || controller->flush ||
	       (cmd && cmd->op == VDISK_FLUSH && controller->inside);
}

/* Return when the controller has taken the next command. */
u64 hdd_take_ns(const struct hdd *hdd)
{
	const struct hdd_controller *controller = &hdd->controller;
	const struct vdisk_cmd *cmd = controller->inbox.head;
	u64 ns;

	if (!cmd || hdd_shut(hdd))
		return VDISK_NEVER;
	ns = vdisk_jitter(controller->cmd_ns, hdd->jitter, controller->seed,
			  cmd->seq);
	/* See cmd_ns in config_hdd.c. */
	return max(controller->free_ns, cmd->hdd.at_ns) + max(ns, 1);
}

/* Process the next command, which the controller has taken. */
void hdd_take(struct hdd *hdd, u64 at)
{
	struct hdd_controller *controller = &hdd->controller;
	struct vdisk_cmd *cmd = vdisk_list_pop(&controller->inbox);

	controller->nr_inbox--;
	controller->inside++;
	controller->free_ns = at;
	cmd->hdd.at_ns = at;
	switch (cmd->op) {
	case VDISK_READ:
		hdd_read(hdd, cmd, at);
		break;
	case VDISK_WRITE:
		hdd_write(hdd, cmd, at);
		break;
	case VDISK_FLUSH:
		controller->flush = cmd;
		hdd_interrupt(hdd, at);
		break;
	default:
		hdd_end(hdd, cmd, at);
	}
}

/* Process the first command on the link, which has crossed it. */
void hdd_crossed(struct hdd *hdd, u64 at, struct vdisk_list *done)
{
	struct hdd_controller *controller = &hdd->controller;
	struct vdisk_events *crossings = hdd->link.crossings;
	struct vdisk_cmd *cmd = crossings->heap[0].cmd;
	bool shut;

	vdisk_events_drop(crossings);
	if (cmd->hdd.crossing) {
		cmd->hdd.crossing = false;
		if (cmd->hdd.through) {
			hdd_pend(hdd, cmd, at);
			return;
		}
		hdd_piece_add(hdd, cmd->hdd.lba, cmd->hdd.end);
		hdd_admit_waiting(hdd, at);
	}

	vdisk_list_add(done, cmd);
	shut = hdd_shut(hdd);
	controller->inside--;
	if (cmd == controller->flush)
		controller->flush = NULL;
	if (shut)
		controller->free_ns = max(controller->free_ns, at);
}
