// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of commands into the model "flash": through the controller, and from
 * there to the dies (reads), over the link to the buffer (writes), or nowhere.
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

/* Units that cross the write link at once: what a die may have earlier. */
#define FLASH_CHUNK		32

/* Make a controller. The caller destroys it, even if that failed. */
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

/* Make the way into a disk. The caller destroys it, even if that failed. */
int flash_host_init(struct flash_host *host, u32 units)
{
	vdisk_list_init(&host->reads);
	vdisk_list_init(&host->writes);
	host->table.empty = bitmap_zalloc(units / FLASH_TABLE_UNITS + 1,
					  GFP_KERNEL);
	return host->table.empty ? 0 : -ENOMEM;
}

/* Free the memory of the way into a disk. */
void flash_host_destroy(struct flash_host *host)
{
	bitmap_free(host->table.empty);
}

/* Return how many pages of the table a command touches. */
static u32 table_pages(const struct vdisk_cmd *cmd)
{
	u64 first = cmd->pos >> FTL_UNIT_SHIFT;
	u64 last = (cmd->pos + cmd->bytes - 1) >> FTL_UNIT_SHIFT;

	return last / FLASH_TABLE_UNITS - first / FLASH_TABLE_UNITS + 1;
}

/* Return how long the controller is at a command, ns on average. */
static u64 take_ns(const struct flash *flash, const struct vdisk_cmd *cmd)
{
	u64 ns = flash->p.cmd_ns;

	return cmd->op == VDISK_TRIM ? ns * table_pages(cmd) : ns;
}

/* Fetch a command: it has a slot until it ends. */
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

/* A command comes to its hardware queue. */
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
 * A command has ended: its slot is for the next one. The queues have turns. The
 * event may be dealt with late, when commands have come since: these are not
 * fetched before one that waited at its time.
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
 * Issue units of the first read to their dies, as long as there are slots.
 * Return false if it must wait for one.
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

/* Return how many bytes of a command some of its units cover. */
static u64 bytes_of(const struct vdisk_cmd *cmd, u32 unit, u32 units)
{
	u64 begin = (u64)unit << FTL_UNIT_SHIFT;
	u64 end = begin + ((u64)units << FTL_UNIT_SHIFT);

	return min(end, cmd->pos + cmd->bytes) - max(begin, cmd->pos);
}

/* Send as much of the first write as there is room for, or a trim. */
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

/* Make the map and the buffer forget the whole units of a trim. */
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
 * A write or a trim has changed the table. Updates by writes to fast blocks are
 * made when these are emptied, in the time of that.
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

/* Put what was on the link into the buffer, or do a trim. */
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
 * A write waits for room. A buffer smaller than a row for every die may hold
 * nothing but parts of rows: then the longest part is written.
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

/* Send on what waits for slots or for room, as far as there are any. */
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

/* The controller has taken a command. */
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

/* Make use of the time, if nothing has been asked for long. */
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
