// SPDX-License-Identifier: GPL-2.0-only
/*
 * The path of commands out of the model "flash". Their ends wait in two queues,
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
 * Add a command to the end of a queue. It leaves the queue at time @at, or
 * with its predecessor if that leaves later: a latency may have been
 * reduced.
 */
void flash_end_queue(struct flash *flash, struct vdisk_list *list,
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
		flash_tree_set_due(&flash->tree, flash_leaf(flash, leaf), at);
}

/* Remove and return the first command of a queue. */
struct vdisk_cmd *flash_end_dequeue(struct flash *flash,
				    struct vdisk_list *list,
				    enum flash_leaf leaf)
{
	struct vdisk_cmd *cmd = vdisk_list_pop(list);

	flash_tree_set_due(&flash->tree, flash_leaf(flash, leaf),
			   list->head ? list->head->flash.at_ns :
					VDISK_NEVER_NS);
	return cmd;
}

/* Send a read over the link to the host: all of its units are there. */
void flash_end_send_read(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	at = vdisk_link_transfer(&flash->ends.link,
				 flash->settings.bps[VDISK_READ],
				 at + flash->params.read_latency_ns,
				 cmd->bytes);
	flash_end_queue(flash, &flash->ends.reads, FLASH_READ_END, cmd, at);
}

/* End a write, a trim or a flush after write_latency_ns. */
void flash_end_delay(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	flash_end_queue(flash, &flash->ends.others, FLASH_WRITE_END, cmd,
			at + flash->params.write_latency_ns);
}

/*
 * Report the end of a command. Commands that end at one instant are sorted by
 * submission.
 */
static void flash_end_report(struct flash *flash, struct vdisk_cmd *cmd, u64 at,
			     struct vdisk_list *done)
{
	struct flash_ends *ends = &flash->ends;
	struct flash_load *load = &flash->load;
	struct vdisk_cmd **link;

	load->nr_cmds--;
	flash_host_free_slot(flash, at);
	if (!--load->nr_active) {
		u32 timer = flash_leaf(flash, FLASH_IDLE_TIMER);

		load->idle_since_ns = at;
		if (flash_tree_get_due(&flash->tree, timer) == VDISK_NEVER_NS)
			flash_tree_set_due(&flash->tree, timer,
					   at + FLASH_IDLE_NS);
	}

	if (at != ends->last_ns || !ends->instant_first) {
		ends->instant_first = done->tail;
		ends->last_ns = at;
	} else if (cmd->seq < ends->last_seq) {
		link = ends->instant_first;
		while ((*link)->seq < cmd->seq)
			link = &(*link)->next;
		cmd->next = *link;
		*link = cmd;
		return;
	}
	ends->last_seq = cmd->seq;
	vdisk_list_add(done, cmd);
}

/* Count a unit of a read that has arrived. */
void flash_end_count_unit(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	if (!--cmd->flash.nr_pending && !cmd->flash.nr_units)
		flash_end_send_read(flash, cmd, at);
}

/* End the first read on the link, which has crossed it. */
void flash_end_first_read(struct flash *flash, u64 at, struct vdisk_list *done)
{
	flash_end_report(flash,
			 flash_end_dequeue(flash, &flash->ends.reads,
					   FLASH_READ_END),
			 at, done);
}

/* End the first other command, whose latency is over. */
void flash_end_first_other(struct flash *flash, u64 at, struct vdisk_list *done)
{
	flash_end_report(flash,
			 flash_end_dequeue(flash, &flash->ends.others,
					   FLASH_WRITE_END),
			 at, done);
}
