// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way back of commands in the model "flash". Their ends wait in two queues,
 * behind the link to the host and behind write_latency_ns, each in the order of
 * time, so that each queue needs one event.
 */
#include <linux/container_of.h>
#include <linux/minmax.h>

#include "flash_host.h"
#include "flash_model.h"
#include "flash_tree.h"
#include "link.h"
#include "model.h"

/*
 * Put a command behind the others of a queue. It leaves the queue at a time, or
 * with the one before it, if that leaves later: a latency may have been made
 * shorter.
 */
void flash_queue(struct flash *flash, struct vdisk_list *list,
		 enum flash_leaf leaf, struct vdisk_cmd *cmd, u64 at)
{
	if (list->head) {
		struct vdisk_cmd *last = container_of(list->tail,
						      struct vdisk_cmd, next);

		at = max(at, last->flash.at_ns);
	}
	cmd->flash.at_ns = at;
	vdisk_list_add(list, cmd);
	if (list->head == cmd)
		flash_tree_set(&flash->tree, flash_leaf(flash, leaf), at);
}

/* Take the first command off a queue. */
struct vdisk_cmd *flash_dequeue(struct flash *flash, struct vdisk_list *list,
				enum flash_leaf leaf)
{
	struct vdisk_cmd *cmd = vdisk_list_pop(list);

	flash_tree_set(&flash->tree, flash_leaf(flash, leaf),
		       list->head ? list->head->flash.at_ns : VDISK_NEVER);
	return cmd;
}

/* All units of a read are there: it crosses the link to the host. */
void flash_read_ready(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	at = vdisk_link_carry(&flash->ends.link, flash->set.bps[VDISK_READ],
			      at + flash->p.read_latency_ns, cmd->bytes);
	flash_queue(flash, &flash->ends.reading, FLASH_READ_END, cmd, at);
}

/* A write, a trim or a flush has nothing more to wait for but its latency. */
void flash_end_soon(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	flash_queue(flash, &flash->ends.others, FLASH_WRITE_END, cmd,
		    at + flash->p.write_latency_ns);
}

/*
 * Report the end of a command. Those that end at one instant are put in the
 * order of submission.
 */
static void end(struct flash *flash, struct vdisk_cmd *cmd, u64 at,
		struct vdisk_list *done)
{
	struct flash_ends *ends = &flash->ends;
	struct flash_load *load = &flash->load;
	struct vdisk_cmd **link;

	load->held--;
	flash_free_slot(flash, at);
	if (!--load->active) {
		u32 timer = flash_leaf(flash, FLASH_IDLE_TIMER);

		load->idle_since = at;
		if (flash_tree_due(&flash->tree, timer) == VDISK_NEVER)
			flash_tree_set(&flash->tree, timer, at + FLASH_IDLE_NS);
	}

	if (at != ends->at_ns || !ends->instant) {
		ends->instant = done->tail;
		ends->at_ns = at;
	} else if (cmd->seq < ends->seq) {
		link = ends->instant;
		while ((*link)->seq < cmd->seq)
			link = &(*link)->next;
		cmd->next = *link;
		*link = cmd;
		return;
	}
	ends->seq = cmd->seq;
	vdisk_list_add(done, cmd);
}

/* A unit of a read is there. */
void flash_read_done(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	if (!--cmd->flash.left && !cmd->flash.units)
		flash_read_ready(flash, cmd, at);
}

/* The first read on the link has crossed it. */
void flash_end_read(struct flash *flash, u64 at, struct vdisk_list *done)
{
	end(flash, flash_dequeue(flash, &flash->ends.reading, FLASH_READ_END),
	    at, done);
}

/* The latency of the first other command is over. */
void flash_end_other(struct flash *flash, u64 at, struct vdisk_list *done)
{
	end(flash, flash_dequeue(flash, &flash->ends.others, FLASH_WRITE_END),
	    at, done);
}
