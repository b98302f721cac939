// SPDX-License-Identifier: GPL-2.0-only
/*
 * The path of commands into the model "flash": through the controller, and then
 * to the dies (reads), over the link to the buffer (writes), or to the end.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "flash_ahead.h"
#include "flash_buffer.h"
#include "flash_die.h"
#include "flash_host.h"
#include "flash_model.h"
#include "flash_tree.h"
#include "ftl.h"
#include "link.h"
#include "model.h"
#include "random.h"

/* Units that cross the write link together; dies get earlier chunks sooner. */
#define FLASH_CHUNK_UNITS		32

/* Create a controller. The caller destroys it, even if that failed. */
int flash_controller_init(struct flash_controller *controller, u32 queues,
			  u64 seed)
{
	u32 nr;

	controller->nr_queues = queues;
	controller->seed = seed;
	vdisk_list_init(&controller->queue);
	controller->submitted = kvcalloc(queues, sizeof(*controller->submitted),
					 GFP_KERNEL);
	if (!controller->submitted)
		return -ENOMEM;
	for (nr = 0; nr < queues; nr++)
		vdisk_list_init(&controller->submitted[nr]);
	return 0;
}

/* Free the memory of a controller. */
void flash_controller_destroy(struct flash_controller *controller)
{
	kvfree(controller->submitted);
}

/* Create the path into a disk. The caller destroys it, even if that failed. */
int flash_host_init(struct flash_host *host, u32 units)
{
	vdisk_list_init(&host->reads);
	vdisk_list_init(&host->writes);
	host->table.empty_pages =
		bitmap_zalloc(units / FLASH_UNITS_PER_TABLE_PAGE + 1,
			      GFP_KERNEL);
	return host->table.empty_pages ? 0 : -ENOMEM;
}

/* Free the memory of the path into a disk. */
void flash_host_destroy(struct flash_host *host)
{
	bitmap_free(host->table.empty_pages);
}

/* Return the number of the table's pages that a command touches. */
static u32 flash_host_count_pages(const struct vdisk_cmd *cmd)
{
	u64 first = cmd->pos >> FTL_UNIT_SHIFT;
	u64 last = (cmd->pos + cmd->bytes - 1) >> FTL_UNIT_SHIFT;

	return last / FLASH_UNITS_PER_TABLE_PAGE -
	       first / FLASH_UNITS_PER_TABLE_PAGE + 1;
}

/* Return the controller's time for a command, ns on average. */
static u64 flash_host_cmd_ns(const struct flash *flash,
			     const struct vdisk_cmd *cmd)
{
	u64 ns = flash->params.cmd_ns;

	return cmd->op == VDISK_TRIM ? ns * flash_host_count_pages(cmd) : ns;
}

/* Fetch a command. It occupies a slot until it ends. */
static void flash_host_fetch(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	struct flash_controller *controller = &flash->controller;

	controller->nr_fetched++;
	at = max(at, controller->free_ns);
	at += vdisk_jitter(flash_host_cmd_ns(flash, cmd),
			   flash->settings.jitter, controller->seed, cmd->seq);
	controller->free_ns = at;
	flash_end_queue(flash, &controller->queue, FLASH_CONTROLLER, cmd, at);
}

/* Process the arrival of a command at its hardware queue. */
void flash_host_submit(struct flash *flash, struct vdisk_cmd *cmd, u64 now)
{
	struct flash_controller *controller = &flash->controller;
	struct flash_load *load = &flash->load;

	cmd->seq = controller->seq++;
	load->nr_cmds++;
	if (++load->nr_waiting > load->nr_waiting_max)
		load->nr_waiting_max = load->nr_waiting;
	if (!flash->params.window ||
	    controller->nr_fetched < flash->params.window) {
		flash_host_fetch(flash, cmd, now);
		return;
	}
	cmd->flash.at_ns = now;
	vdisk_list_add(&controller->submitted[cmd->queue], cmd);
	controller->nr_submitted++;
}

/*
 * Free the slot of a command that has ended, and fetch the next command; the
 * queues take turns. If the event is processed late, further commands may have
 * come since: a command that waited at the event's time precedes them.
 */
void flash_host_free_slot(struct flash *flash, u64 at)
{
	struct flash_controller *controller = &flash->controller;
	u64 first = VDISK_NEVER_NS;
	u32 i, nr, found = 0;

	controller->nr_fetched--;
	if (!controller->nr_submitted)
		return;
	for (i = 0; i < controller->nr_queues; i++) {
		const struct vdisk_cmd *cmd;

		nr = (controller->next_queue + i) % controller->nr_queues;
		cmd = controller->submitted[nr].head;
		if (cmd && max(cmd->flash.at_ns, at) < first) {
			first = max(cmd->flash.at_ns, at);
			found = nr;
		}
	}
	controller->next_queue = (found + 1) % controller->nr_queues;
	controller->nr_submitted--;
	flash_host_fetch(flash, vdisk_list_pop(&controller->submitted[found]),
			 first);
}

/*
 * Issue units of the first read to their dies, while slots are free. Return
 * false if the read must wait for a slot.
 */
static bool flash_host_issue_read(struct flash *flash, u64 at)
{
	struct vdisk_cmd *cmd = flash->host.reads.head;
	u32 dies = flash->dies.nr;
	u32 unit = cmd->flash.next_unit;

	while (cmd->flash.nr_units) {
		u32 nr = unit % dies;

		if (flash_buffer_find(&flash->buffer, unit) != FLASH_NIL) {
			flash->host.nr_hits++;
		} else if (!flash_ahead_serve(&flash->ahead, cmd, unit) &&
			   ftl_lookup(flash->ftl, nr, unit / dies) !=
				   FTL_NONE) {
			if (!flash_die_queue_read(&flash->dies, cmd, FLASH_NIL,
						  nr, unit / dies))
				break;
			cmd->flash.nr_pending++;
		}
		unit++;
		cmd->flash.nr_units--;
	}
	cmd->flash.next_unit = unit;
	if (cmd->flash.nr_units)
		return false;

	vdisk_list_pop(&flash->host.reads);
	flash->load.nr_waiting--;
	if (!cmd->flash.nr_pending)
		flash_end_send_read(flash, cmd, at);
	flash_ahead_update(flash, cmd);
	return true;
}

/* Return the bytes of a command that a range of its units covers. */
static u64 flash_host_unit_bytes(const struct vdisk_cmd *cmd, u32 unit,
				 u32 units)
{
	u64 begin = (u64)unit << FTL_UNIT_SHIFT;
	u64 end = begin + ((u64)units << FTL_UNIT_SHIFT);

	return min(end, cmd->pos + cmd->bytes) - max(begin, cmd->pos);
}

/* Send the units of the first write for which there is room, or a trim. */
static void flash_host_send_write(struct flash *flash, u64 at)
{
	struct flash_host *host = &flash->host;
	struct vdisk_cmd *cmd = host->writes.head;
	u32 units = 0;

	if (cmd->op == VDISK_WRITE)
		units = min3(cmd->flash.nr_units, flash->buffer.room,
			     (u32)FLASH_CHUNK_UNITS);
	if (cmd->op == VDISK_WRITE && !units) {
		host->nr_stalls += !host->stalled;
		host->stalled = true;
		return;
	}
	host->stalled = false;
	if (!cmd->flash.started) {
		cmd->flash.started = true;
		flash->load.nr_waiting--;
	}
	host->link_busy = true;
	host->link_units = units;
	flash->buffer.room -= units;
	at = vdisk_link_transfer(&host->link, flash->settings.bps[VDISK_WRITE], at,
				 units ? flash_host_unit_bytes(cmd, cmd->flash.next_unit, units) :
					 0);
	flash_tree_set_due(&flash->tree, flash_leaf(flash, FLASH_LINK), at);
}

/* Unmap the whole units of a trim, and drop them from the buffer. */
static void flash_host_trim(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	unsigned long *empty = flash->host.table.empty_pages;
	u32 unit = DIV_ROUND_UP_ULL(cmd->pos, FTL_UNIT_BYTES);
	u32 end = (cmd->pos + cmd->bytes) >> FTL_UNIT_SHIFT;

	while (unit < end) {
		u32 page = unit / FLASH_UNITS_PER_TABLE_PAGE;
		u32 next = (page + 1) * FLASH_UNITS_PER_TABLE_PAGE;

		if (test_bit(page, empty)) {
			unit = next;
			continue;
		}
		if (unit % FLASH_UNITS_PER_TABLE_PAGE == 0 && next <= end)
			__set_bit(page, empty);
		for (next = min(next, end); unit < next; unit++) {
			if (flash->buffer.room < flash->buffer.nr_entries)
				flash_buffer_drop(flash, unit, at);
			flash_ahead_invalidate(&flash->ahead, unit);
			ftl_trim(flash->ftl, unit % flash->dies.nr,
				 unit / flash->dies.nr);
		}
	}
}

/*
 * Count the table's updates by a write or a trim. The updates of writes to fast
 * blocks are part of the time for emptying these.
 */
static void flash_host_update_table(struct flash *flash,
				    const struct vdisk_cmd *cmd, u64 at)
{
	struct flash_host *host = &flash->host;
	struct flash_table *table = &host->table;
	u32 die = (cmd->pos >> FTL_UNIT_SHIFT) % flash->dies.nr;

	if (!flash->params.table_updates ||
	    (cmd->op == VDISK_WRITE && ftl_get_host_room(flash->ftl, die).slc))
		return;
	table->nr_updates += flash_host_count_pages(cmd);
	for (; table->nr_updates >= flash->params.table_updates;
	     table->nr_updates -= flash->params.table_updates) {
		host->link.free_ns =
			max(host->link.free_ns, at) + flash->params.table_ns;
		table->nr_written++;
	}
}

/* Add the units on the link to the buffer, or execute a trim. */
void flash_host_end_transfer(struct flash *flash, u64 at)
{
	struct flash_host *host = &flash->host;
	struct vdisk_cmd *cmd = host->writes.head;
	bool fua = cmd->fua && flash->settings.write_cache;

	host->link_busy = false;
	flash_tree_set_due(&flash->tree, flash_leaf(flash, FLASH_LINK),
			   VDISK_NEVER_NS);
	if (cmd->op == VDISK_TRIM) {
		flash_host_trim(flash, cmd, at);
		cmd->flash.nr_units = 0;
	}
	for (; host->link_units; host->link_units--) {
		u32 unit = cmd->flash.next_unit++;
		u32 nr = unit % flash->dies.nr;

		cmd->flash.nr_units--;
		if (fua)
			cmd->flash.nr_pending++;
		__clear_bit(unit / FLASH_UNITS_PER_TABLE_PAGE,
			    host->table.empty_pages);
		flash_ahead_invalidate(&flash->ahead, unit);
		flash_buffer_add(flash, unit, fua ? cmd : NULL);
		if (fua)
			flash_buffer_force_out(flash, nr);
		else
			flash_die_kick(&flash->dies, nr);
	}
	if (cmd->flash.nr_units)
		return;
	vdisk_list_pop(&host->writes);
	flash_host_update_table(flash, cmd, at);
	if (!cmd->flash.nr_pending)
		flash_end_delay(flash, cmd, at);
}

/*
 * Make room for a waiting write. A buffer smaller than a row of every die may
 * hold only partial rows: then the longest of these is programmed.
 */
static void flash_host_make_room(struct flash *flash)
{
	const struct flash_dies *dies = &flash->dies;
	u32 nr, longest = 0;

	if (dies->nr_programming)
		return;
	for (nr = 0; nr < dies->nr; nr++) {
		const struct flash_dirty *dirty = &dies->dies[nr].dirty;

		if (dirty->nr_urgent || dirty->nr >= dies->row_units)
			return;
		if (dirty->nr > dies->dies[longest].dirty.nr)
			longest = nr;
	}
	flash_buffer_force_out(flash, longest);
}

/* Send reads that wait for slots, and writes that wait for room. */
void flash_host_send(struct flash *flash, u64 at)
{
	struct flash_host *host = &flash->host;

	while (host->reads.head && flash_host_issue_read(flash, at))
		;
	if (!host->writes.head || host->link_busy)
		return;
	flash_host_send_write(flash, at);
	if (!host->link_busy && !flash->dies.nr_kicked)
		flash_host_make_room(flash);
}

/* Process a command that the controller has taken. */
void flash_host_take(struct flash *flash, u64 at)
{
	struct vdisk_cmd *cmd = flash_end_dequeue(flash,
						  &flash->controller.queue,
						  FLASH_CONTROLLER);
	struct flash_load *load = &flash->load;

	load->nr_active++;
	load->idle = false;
	cmd->flash.nr_pending = 0;
	cmd->flash.started = false;
	cmd->flash.next_unit = cmd->pos >> FTL_UNIT_SHIFT;
	cmd->flash.nr_units = ((cmd->pos + cmd->bytes + FTL_UNIT_BYTES - 1) >>
			       FTL_UNIT_SHIFT) -
			      cmd->flash.next_unit;
	switch (cmd->op) {
	case VDISK_READ:
		vdisk_list_add(&flash->host.reads, cmd);
		break;
	case VDISK_WRITE:
	case VDISK_TRIM:
		vdisk_list_add(&flash->host.writes, cmd);
		break;
	default:
		load->nr_waiting--;
		if (flash->settings.write_cache)
			flash_buffer_flush(flash, cmd, at);
		else
			flash_end_delay(flash, cmd, at);
		break;
	}
}

/* Start idle work after FLASH_IDLE_NS without commands. */
void flash_host_start_idle(struct flash *flash, u64 at)
{
	u32 timer = flash_leaf(flash, FLASH_IDLE_TIMER);
	struct flash_load *load = &flash->load;
	u32 nr;

	if (load->nr_active) {
		flash_tree_set_due(&flash->tree, timer, VDISK_NEVER_NS);
		return;
	}
	if (at < load->idle_since_ns + FLASH_IDLE_NS) {
		flash_tree_set_due(&flash->tree, timer,
				   load->idle_since_ns + FLASH_IDLE_NS);
		return;
	}
	flash_tree_set_due(&flash->tree, timer, VDISK_NEVER_NS);
	load->idle = true;
	for (nr = 0; nr < flash->dies.nr; nr++) {
		if (flash->settings.write_cache)
			flash_buffer_force_out(flash, nr);
		flash_die_kick(&flash->dies, nr);
	}
}
