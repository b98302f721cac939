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
#define FLASH_CHUNK		32

/* Create a controller. The caller destroys it, even if that failed. */
int flash_controller_init(struct flash_controller *controller, u32 queues,
			  u64 seed)
{
	u32 nr;

	controller->queues = queues;
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
	host->table.empty = bitmap_zalloc(units / FLASH_TABLE_UNITS + 1,
					  GFP_KERNEL);
	return host->table.empty ? 0 : -ENOMEM;
}

/* Free the memory of the path into a disk. */
void flash_host_destroy(struct flash_host *host)
{
	bitmap_free(host->table.empty);
}

/* Return the number of the table's pages that a command touches. */
static u32 table_pages(const struct vdisk_cmd *cmd)
{
	u64 first = cmd->pos >> FTL_UNIT_SHIFT;
	u64 last = (cmd->pos + cmd->bytes - 1) >> FTL_UNIT_SHIFT;

	return last / FLASH_TABLE_UNITS - first / FLASH_TABLE_UNITS + 1;
}

/* Return the controller's time for a command, ns on average. */
static u64 take_ns(const struct flash *flash, const struct vdisk_cmd *cmd)
{
	u64 ns = flash->p.cmd_ns;

	return cmd->op == VDISK_TRIM ? ns * table_pages(cmd) : ns;
}

/* Fetch a command. It occupies a slot until it ends. */
static void fetch(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	struct flash_controller *controller = &flash->controller;

	controller->fetched++;
	at = max(at, controller->free_ns);
	at += vdisk_jitter(take_ns(flash, cmd), flash->set.jitter,
			   controller->seed, cmd->seq);
	controller->free_ns = at;
	flash_queue(flash, &controller->queue, FLASH_CONTROLLER, cmd, at);
}

/* Process the arrival of a command at its hardware queue. */
void flash_arrive(struct flash *flash, struct vdisk_cmd *cmd, u64 now)
{
	struct flash_controller *controller = &flash->controller;
	struct flash_load *load = &flash->load;

	cmd->seq = controller->seq++;
	load->held++;
	if (++load->waiting > load->waiting_max)
		load->waiting_max = load->waiting;
	if (!flash->p.window || controller->fetched < flash->p.window) {
		fetch(flash, cmd, now);
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
void flash_free_slot(struct flash *flash, u64 at)
{
	struct flash_controller *controller = &flash->controller;
	u64 first = VDISK_NEVER;
	u32 i, nr, found = 0;

	controller->fetched--;
	if (!controller->nr_submitted)
		return;
	for (i = 0; i < controller->queues; i++) {
		const struct vdisk_cmd *cmd;

		nr = (controller->turn + i) % controller->queues;
		cmd = controller->submitted[nr].head;
		if (cmd && max(cmd->flash.at_ns, at) < first) {
			first = max(cmd->flash.at_ns, at);
			found = nr;
		}
	}
	controller->turn = (found + 1) % controller->queues;
	controller->nr_submitted--;
	fetch(flash, vdisk_list_pop(&controller->submitted[found]), first);
}

/*
 * Issue units of the first read to their dies, while slots are free. Return
 * false if the read must wait for a slot.
 */
static bool issue(struct flash *flash, u64 at)
{
	struct vdisk_cmd *cmd = flash->host.reads.head;
	u32 dies = flash->dies.nr;
	u32 unit = cmd->flash.unit;

	while (cmd->flash.units) {
		u32 nr = unit % dies;

		if (flash_find(&flash->buffer, unit) != FLASH_NIL) {
			flash->host.hits++;
		} else if (!flash_ahead_take(&flash->ahead, cmd, unit) &&
			   ftl_lookup(flash->ftl, nr, unit / dies) !=
			   FTL_NONE) {
			if (!flash_die_read(&flash->dies, cmd, FLASH_NIL, nr,
					    unit / dies))
				break;
			cmd->flash.left++;
		}
		unit++;
		cmd->flash.units--;
	}
	cmd->flash.unit = unit;
	if (cmd->flash.units)
		return false;

	vdisk_list_pop(&flash->host.reads);
	flash->load.waiting--;
	if (!cmd->flash.left)
		flash_read_ready(flash, cmd, at);
	flash_ahead_follow(flash, cmd);
	return true;
}

/* Return the bytes of a command that a range of its units covers. */
static u64 bytes_of(const struct vdisk_cmd *cmd, u32 unit, u32 units)
{
	u64 begin = (u64)unit << FTL_UNIT_SHIFT;
	u64 end = begin + ((u64)units << FTL_UNIT_SHIFT);

	return min(end, cmd->pos + cmd->bytes) - max(begin, cmd->pos);
}

/* Send the units of the first write for which there is room, or a trim. */
static void cross(struct flash *flash, u64 at)
{
	struct flash_host *host = &flash->host;
	struct vdisk_cmd *cmd = host->writes.head;
	u32 units = 0;

	if (cmd->op == VDISK_WRITE)
		units = min3(cmd->flash.units, flash->buffer.room,
			     (u32)FLASH_CHUNK);
	if (cmd->op == VDISK_WRITE && !units) {
		host->stalls += !host->stalled;
		host->stalled = true;
		return;
	}
	host->stalled = false;
	if (!cmd->flash.started) {
		cmd->flash.started = true;
		flash->load.waiting--;
	}
	host->busy = true;
	host->crossing = units;
	flash->buffer.room -= units;
	at = vdisk_link_carry(&host->link, flash->set.bps[VDISK_WRITE], at,
			      units ? bytes_of(cmd, cmd->flash.unit, units) : 0);
	flash_tree_set(&flash->tree, flash_leaf(flash, FLASH_LINK), at);
}

/* Unmap the whole units of a trim, and drop them from the buffer. */
static void trim(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	unsigned long *empty = flash->host.table.empty;
	u32 unit = DIV_ROUND_UP_ULL(cmd->pos, FTL_UNIT_BYTES);
	u32 end = (cmd->pos + cmd->bytes) >> FTL_UNIT_SHIFT;

	while (unit < end) {
		u32 page = unit / FLASH_TABLE_UNITS;
		u32 next = (page + 1) * FLASH_TABLE_UNITS;

		if (test_bit(page, empty)) {
			unit = next;
			continue;
		}
		if (unit % FLASH_TABLE_UNITS == 0 && next <= end)
			__set_bit(page, empty);
		for (next = min(next, end); unit < next; unit++) {
			if (flash->buffer.room < flash->buffer.nr)
				flash_drop(flash, unit, at);
			flash_ahead_forget(&flash->ahead, unit);
			ftl_trim(flash->ftl, unit % flash->dies.nr,
				 unit / flash->dies.nr);
		}
	}
}

/*
 * Count the table's updates by a write or a trim. The updates of writes to fast
 * blocks are part of the time for emptying these.
 */
static void update_table(struct flash *flash, const struct vdisk_cmd *cmd,
			 u64 at)
{
	struct flash_host *host = &flash->host;
	struct flash_table *table = &host->table;
	u32 die = (cmd->pos >> FTL_UNIT_SHIFT) % flash->dies.nr;

	if (!flash->p.table_updates ||
	    (cmd->op == VDISK_WRITE && ftl_host_room(flash->ftl, die).slc))
		return;
	table->updates += table_pages(cmd);
	for (; table->updates >= flash->p.table_updates;
	     table->updates -= flash->p.table_updates) {
		host->link.free_ns = max(host->link.free_ns, at) +
				     flash->p.table_ns;
		table->written++;
	}
}

/* Add the units on the link to the buffer, or execute a trim. */
void flash_crossed(struct flash *flash, u64 at)
{
	struct flash_host *host = &flash->host;
	struct vdisk_cmd *cmd = host->writes.head;
	bool fua = cmd->fua && flash->set.write_cache;

	host->busy = false;
	flash_tree_set(&flash->tree, flash_leaf(flash, FLASH_LINK),
		       VDISK_NEVER);
	if (cmd->op == VDISK_TRIM) {
		trim(flash, cmd, at);
		cmd->flash.units = 0;
	}
	for (; host->crossing; host->crossing--) {
		u32 unit = cmd->flash.unit++;
		u32 nr = unit % flash->dies.nr;

		cmd->flash.units--;
		if (fua)
			cmd->flash.left++;
		__clear_bit(unit / FLASH_TABLE_UNITS, host->table.empty);
		flash_ahead_forget(&flash->ahead, unit);
		flash_put(flash, unit, fua ? cmd : NULL);
		if (fua)
			flash_press(flash, nr);
		else
			flash_kick(&flash->dies, nr);
	}
	if (cmd->flash.units)
		return;
	vdisk_list_pop(&host->writes);
	update_table(flash, cmd, at);
	if (!cmd->flash.left)
		flash_end_soon(flash, cmd, at);
}

/*
 * Make room for a waiting write. A buffer smaller than a row of every die may
 * hold only partial rows: then the longest of these is programmed.
 */
static void unblock(struct flash *flash)
{
	const struct flash_dies *dies = &flash->dies;
	u32 nr, longest = 0;

	if (dies->programming)
		return;
	for (nr = 0; nr < dies->nr; nr++) {
		const struct flash_dirty *dirty = &dies->die[nr].dirty;

		if (dirty->urgent || dirty->count >= dies->row)
			return;
		if (dirty->count > dies->die[longest].dirty.count)
			longest = nr;
	}
	flash_press(flash, longest);
}

/* Send reads that wait for slots, and writes that wait for room. */
void flash_send(struct flash *flash, u64 at)
{
	struct flash_host *host = &flash->host;

	while (host->reads.head && issue(flash, at))
		;
	if (!host->writes.head || host->busy)
		return;
	cross(flash, at);
	if (!host->busy && !flash->dies.nr_kicked)
		unblock(flash);
}

/* Process a command that the controller has taken. */
void flash_take(struct flash *flash, u64 at)
{
	struct vdisk_cmd *cmd = flash_dequeue(flash, &flash->controller.queue,
					      FLASH_CONTROLLER);
	struct flash_load *load = &flash->load;

	load->active++;
	load->idle = false;
	cmd->flash.left = 0;
	cmd->flash.started = false;
	cmd->flash.unit = cmd->pos >> FTL_UNIT_SHIFT;
	cmd->flash.units = ((cmd->pos + cmd->bytes + FTL_UNIT_BYTES - 1) >>
			    FTL_UNIT_SHIFT) - cmd->flash.unit;
	switch (cmd->op) {
	case VDISK_READ:
		vdisk_list_add(&flash->host.reads, cmd);
		break;
	case VDISK_WRITE:
	case VDISK_TRIM:
		vdisk_list_add(&flash->host.writes, cmd);
		break;
	default:
		load->waiting--;
		if (flash->set.write_cache)
			flash_flush(flash, cmd, at);
		else
			flash_end_soon(flash, cmd, at);
		break;
	}
}

/* Start idle work after FLASH_IDLE_NS without commands. */
void flash_idle(struct flash *flash, u64 at)
{
	u32 timer = flash_leaf(flash, FLASH_IDLE_TIMER);
	struct flash_load *load = &flash->load;
	u32 nr;

	if (load->active) {
		flash_tree_set(&flash->tree, timer, VDISK_NEVER);
		return;
	}
	if (at < load->idle_since + FLASH_IDLE_NS) {
		flash_tree_set(&flash->tree, timer,
			       load->idle_since + FLASH_IDLE_NS);
		return;
	}
	flash_tree_set(&flash->tree, timer, VDISK_NEVER);
	load->idle = true;
	for (nr = 0; nr < flash->dies.nr; nr++) {
		if (flash->set.write_cache)
			flash_press(flash, nr);
		flash_kick(&flash->dies, nr);
	}
}
