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
u64 hdd_link_transfer(struct hdd *hdd, const struct vdisk_cmd *cmd, u64 from,
		      u64 ready)
{
	u64 *link_ns = &hdd->link.free_ns[cmd->op];
	u64 bps = hdd->link.bps[cmd->op];
	u64 ns;

	if (!bps)
		return ready;
	if (*link_ns >= VDISK_LINK_NS_MAX)
		return max(*link_ns, ready);
	/* 2^32 * 10^9 is below 2^62. */
	ns = DIV64_U64_ROUND_UP((u64)cmd->bytes * NSEC_PER_SEC, bps);
	if (ready > from && ready - from > ns)
		from = ready - ns;
	*link_ns = max(*link_ns, from) + ns;
	return *link_ns;
}

/* Schedule the end of a command. */
void hdd_link_add_end(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	vdisk_events_add(hdd->link.crossings, at, cmd);
}

/* Send a write's data over the link, to the cache or for the arm. */
void hdd_link_send_write(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	cmd->hdd.on_link = true;
	hdd_link_add_end(hdd, cmd, hdd_link_transfer(hdd, cmd, at, at));
}

/* Process the arrival of a command. */
void hdd_controller_add(struct hdd *hdd, struct vdisk_cmd *cmd, u64 now)
{
	struct hdd_controller *controller = &hdd->controller;

	cmd->seq = controller->seq++;
	cmd->hdd = (struct vdisk_hdd_cmd){
		.at_ns = now,
		.lba = div_u64(cmd->pos, HDD_SECTOR_BYTES),
		.end = div_u64(cmd->pos + cmd->bytes, HDD_SECTOR_BYTES),
	};
	vdisk_list_add(&controller->inbox, cmd);
	controller->nr_inbox_max =
		max(controller->nr_inbox_max, ++controller->nr_inbox);
}

static void hdd_route_read(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	if (hdd->arm.task == HDD_AHEAD && hdd_arm_join(hdd, cmd, at)) {
		hdd->reads.nr_hits++;
	} else if (hdd_cache_has_read(hdd, &cmd->hdd) ||
		   hdd_cache_has_write(hdd, &cmd->hdd)) {
		hdd->reads.nr_hits++;
		hdd_link_add_end(hdd, cmd, hdd_link_transfer(hdd, cmd, at, at));
	} else {
		hdd->reads.nr_misses++;
		hdd_arm_queue(hdd, cmd, at);
	}
}

static void hdd_route_write(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	cmd->hdd.write_through = cmd->fua || !hdd->writes.dirty_sectors_max;
	if (cmd->hdd.write_through)
		hdd_link_send_write(hdd, cmd, at);
	else if (!hdd_cache_admit(hdd, cmd, at))
		hdd_arm_interrupt(hdd, at);
}

/* Return whether the next command has to stay outside. */
static bool hdd_controller_is_closed(const struct hdd *hdd)
{
	const struct hdd_controller *controller = &hdd->controller;
	const struct vdisk_cmd *cmd = controller->inbox.head;

	return controller->nr_inside >= controller->ncq || controller->flush ||
	       (cmd && cmd->op == VDISK_FLUSH && controller->nr_inside);
}

/* Return when the controller has taken the next command. */
u64 hdd_controller_take_ns(const struct hdd *hdd)
{
	const struct hdd_controller *controller = &hdd->controller;
	const struct vdisk_cmd *cmd = controller->inbox.head;
	u64 ns;

	if (!cmd || hdd_controller_is_closed(hdd))
		return VDISK_NEVER_NS;
	ns = vdisk_jitter(controller->cmd_ns, hdd->jitter, controller->seed,
			  cmd->seq);
	/* See cmd_ns in config_hdd.c. */
	return max(controller->free_ns, cmd->hdd.at_ns) + max(ns, 1);
}

/* Process the next command, which the controller has taken. */
void hdd_controller_take(struct hdd *hdd, u64 at)
{
	struct hdd_controller *controller = &hdd->controller;
	struct vdisk_cmd *cmd = vdisk_list_pop(&controller->inbox);

	controller->nr_inbox--;
	controller->nr_inside++;
	controller->free_ns = at;
	cmd->hdd.at_ns = at;
	switch (cmd->op) {
	case VDISK_READ:
		hdd_route_read(hdd, cmd, at);
		break;
	case VDISK_WRITE:
		hdd_route_write(hdd, cmd, at);
		break;
	case VDISK_FLUSH:
		controller->flush = cmd;
		hdd_arm_interrupt(hdd, at);
		break;
	default:
		hdd_link_add_end(hdd, cmd, at);
	}
}

/* Process the first command on the link, which has crossed it. */
void hdd_link_end_transfer(struct hdd *hdd, u64 at, struct vdisk_list *done)
{
	struct hdd_controller *controller = &hdd->controller;
	struct vdisk_events *crossings = hdd->link.crossings;
	struct vdisk_cmd *cmd = crossings->heap[0].cmd;
	bool shut;

	vdisk_events_del_first(crossings);
	if (cmd->hdd.on_link) {
		cmd->hdd.on_link = false;
		if (cmd->hdd.write_through) {
			hdd_arm_queue(hdd, cmd, at);
			return;
		}
		hdd_piece_add(hdd, cmd->hdd.lba, cmd->hdd.end);
		hdd_cache_admit_waiting(hdd, at);
	}

	vdisk_list_add(done, cmd);
	shut = hdd_controller_is_closed(hdd);
	controller->nr_inside--;
	if (cmd == controller->flush)
		controller->flush = NULL;
	if (shut)
		controller->free_ns = max(controller->free_ns, at);
}
