// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "flash": a solid-state disk, from the host link to the cells.
 *
 * The stages of a command, in this order:
 *
 *	window		a slot of the controller, of which there are window;
 *			until one is free, the command waits in its hardware
 *			queue, and the queues have turns
 *	controller	one command after the other, cmd_ns each
 *	read		each unit of 4 KiB from the buffer, if it is there, or
 *			from what was read ahead (flash_ahead.c);
 *			else a sense on its die (read_ns), then the channel
 *			(bus_bps). When all are there: read_latency_ns, then
 *			the link
 *	write		room in the buffer, then the link, then
 *			write_latency_ns, and it ends; the rest happens
 *			behind it
 *	trim		behind the writes before it, and no more than the
 *			controller's time for each page of the table that it
 *			changes; the map forgets the units; write_latency_ns
 *	flush		ends write_latency_ns after the buffer holds nothing
 *			that it held before
 *
 * A die does one thing at a time: a sense and the transfer of what it read, a
 * program behind the transfer of what it writes, or an erase. Channels and
 * links carry one transfer at a time, first come first served. A sense takes a
 * row, the same page of every plane, and serves all reads at the head of the
 * die's queue that are for it; so do programs. So sequential reads get the
 * bandwidth of all planes, and random ones one unit a sense. How long it takes
 * depends on which bits of the cells the page has (cell_bits); programs do not,
 * for all pages of a cell are programmed together.
 *
 * When a die becomes free it takes, in this order: a read of the host; garbage
 * collection, if that has to precede programs (ftl.c); a program of the host, if
 * there is a full row, or part of one that has to be written; other collection. No
 * operation is interrupted: a read waits for the running one, which makes the tail
 * of reads alongside writes. After FLASH_READ_STREAK_MAX reads in a row one write
 * operation has its turn, or a deep queue of reads would stop writes for ever.
 *
 * The buffer is made of units, and a unit stays until its program has ended. A
 * write to a unit that waits there replaces it, and takes no room. A write that
 * finds no room waits, and so do all behind it: so sustained writes run at the
 * pace of programs, and of the garbage collection between them. A unit goes to
 * its die in the order in which it came. With write_cache the buffer is
 * volatile: a flush, or a write with FUA, makes dies program parts of rows,
 * whose rest stays empty until collected, and a disk without commands for
 * FLASH_IDLE_NS writes out what it holds. Without it, the buffer is backed by
 * capacitors: everything in it is stable.
 *
 * The table. Writes and trims change the table that locates the data, by an
 * update for each page of 4 MiB that a command touches. The controller collects
 * updates, and writes table_updates of them out together. That takes table_ns,
 * in which all writes and trims stop, while reads and the dies continue. So
 * sustained small writes come in bursts with stalls between them, and large
 * writes, with fewer updates for the same data, hardly stall. Writes to fast
 * blocks cause no update until these blocks are emptied.
 *
 * Garbage collection reads each row of the victim that has valid units, and
 * programs a row when it has moved enough units; with copyback neither crosses
 * the channel. With fast (SLC) blocks, the host's programs take slc_program_ns
 * while one is free; on an idle disk, they are emptied into the others.
 *
 * Placement is static, unit modulo die (ftl.c says why), and the dies of
 * neighbours are on different channels.
 *
 * A disk that reads ahead also uses the registers of its dies: a read of the
 * row that was sensed last there needs no sense, if the die has executed no
 * other operation since.
 *
 * Not modelled: read-modify-write of units that are written in part, which take
 * a whole unit; suspended programs and erases; caches for the map; errors,
 * retries and refresh; a limit for power or heat; one data path for both
 * directions, as that of SATA; compression.
 *
 * The ideas are those of published simulators; the code is new: dies and
 * channels as the two resources of a read (Agrawal et al., "Design tradeoffs
 * for SSD performance", USENIX ATC 2008), multi-queue front end, write cache
 * and priorities (Tavakkol et al., "MQSim", FAST 2018), the visible effect of
 * buffer, SLC and internal collection (Li et al., "FEMU", FAST 2018). ftl.c
 * names those for the translation layer.
 *
 * Events. Their sources are fixed: each die, the controller, the two links, the
 * idle timer. Each has at most one event, in a tournament tree with a leaf each;
 * of the events of one instant, the first leaf wins. Commands end in two queues,
 * behind the read link and behind write_latency_ns, each in the order of time.
 * So run() returns as the next event the first that can end a command: the head
 * of these queues, or the next other event and the latency that still follows
 * it. The timer need not fire in between: run() makes up for skipped events.
 *
 * Where things are:
 *
 *	this file	the whole disk: its creation, events, statistics
 *	flash_host.c	the path of commands in: controller, link from the host
 *	flash_buffer.c	units in the controller's memory, and flushes
 *	flash_ahead.c	read-ahead
 *	flash_die.c	operations of the dies, and their order
 *	flash_end.c	the path of commands out: latencies, link to the host
 *	flash_tree.c	the tournament tree
 *	ftl.c		the translation layer: where the data are
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/array_size.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "flash.h"
#include "flash_ahead.h"
#include "flash_buffer.h"
#include "flash_die.h"
#include "flash_host.h"
#include "flash_model.h"
#include "flash_tree.h"
#include "ftl.h"
#include "model.h"

static struct flash *to_flash(struct vdisk_model *model)
{
	return container_of(model, struct flash, model);
}

/* Start all operations that an event has made possible. */
static void flash_start_ops(struct flash *flash, u64 at)
{
	flash_host_send(flash, at);
	while (flash->dies.nr_kicked) {
		flash_dies_start_next(flash, at);
		flash_host_send(flash, at);
	}
}

/* Process the event of a leaf of the tree. */
static void flash_handle_event(struct flash *flash, u32 leaf, u64 at,
			       struct vdisk_list *done)
{
	if (leaf < flash->dies.nr) {
		flash_die_handle_event(flash, leaf, at);
		return;
	}
	switch ((enum flash_leaf)(leaf - flash->dies.nr)) {
	case FLASH_CONTROLLER:
		flash_host_take(flash, at);
		break;
	case FLASH_LINK:
		flash_host_end_transfer(flash, at);
		break;
	case FLASH_READ_END:
		flash_end_first_read(flash, at, done);
		break;
	case FLASH_WRITE_END:
		flash_end_first_other(flash, at, done);
		break;
	default:
		flash_host_start_idle(flash, at);
		break;
	}
}

/* Return when a command can end next: see the head of this file. */
static u64 flash_next_end_ns(const struct flash *flash)
{
	const struct flash_tree *tree = &flash->tree;
	u64 latency = min(flash->params.read_latency_ns,
			  flash->params.write_latency_ns);
	u64 first = flash_tree_get_first(tree)->due_ns;

	if (first == VDISK_NEVER_NS)
		return first;
	return min3(flash_tree_get_due(tree, flash_leaf(flash, FLASH_READ_END)),
		    flash_tree_get_due(tree,
				       flash_leaf(flash, FLASH_WRITE_END)),
		    first + latency);
}

static u64 flash_submit_cmd(struct vdisk_model *model, struct vdisk_cmd *cmd,
			    u64 now)
{
	struct flash *flash = to_flash(model);

	flash_host_submit(flash, cmd, now);
	return flash_next_end_ns(flash);
}

static u64 flash_run_events(struct vdisk_model *model, u64 now,
			    struct vdisk_list *done)
{
	struct flash *flash = to_flash(model);
	const struct flash_event *first = flash_tree_get_first(&flash->tree);

	flash->ends.instant_first = NULL;
	while (first->due_ns <= now) {
		u64 at = first->due_ns;

		flash_handle_event(flash, first->leaf, at, done);
		/* First process all commands of one instant. */
		if (first->due_ns != at ||
		    first->leaf != flash_leaf(flash, FLASH_CONTROLLER))
			flash_start_ops(flash, at);
	}
	return flash_next_end_ns(flash);
}

/* Set the parameters that may change. */
static void flash_set_params(struct flash *flash,
			     const struct vdisk_params *params)
{
	flash->params = params->flash;
	flash->settings.bps[VDISK_READ] = params->bps[VDISK_READ];
	flash->settings.bps[VDISK_WRITE] = params->bps[VDISK_WRITE];
	flash->settings.write_cache = params->write_cache;
	flash->settings.jitter = params->jitter;
}

static u64 flash_change_params(struct vdisk_model *model,
			       const struct vdisk_params *params, u64 now)
{
	struct flash *flash = to_flash(model);

	flash_set_params(flash, params);
	ftl_set_wear_gap(flash->ftl, flash->params.wear_gap);
	return flash_next_end_ns(flash);
}

static void flash_get_stats(struct vdisk_model *model, u64 now,
			    struct vdisk_stats *stats)
{
	struct flash *flash = to_flash(model);
	const struct flash_load *load = &flash->load;

	stats->nr_in_service = load->nr_cmds - load->nr_waiting;
	stats->nr_waiting = load->nr_waiting;
	stats->nr_waiting_max = load->nr_waiting_max;
	stats->busy_ns = flash->dies.service_ns_sum + flash->dies.nr_busy * now;
}

static u32 flash_get_counters(struct vdisk_model *model, u64 now,
			      struct vdisk_counter *out, u32 room)
{
	struct flash *flash = to_flash(model);
	const struct ftl_counters *ftl = ftl_counters(flash->ftl);
	u64 busy_sum = 0, busy_min = U64_MAX, busy_max = 0;
	u32 wear_min, wear_max, i;

	ftl_wear(flash->ftl, &wear_min, &wear_max);
	for (i = 0; i < flash->dies.nr; i++) {
		const struct flash_op *op = &flash->dies.dies[i].op;
		u64 busy = op->busy_ns;

		if (op->state != FLASH_IDLE)
			busy += now - op->start_ns;
		busy_sum += busy;
		busy_min = min(busy_min, busy);
		busy_max = max(busy_max, busy);
	}

	const struct vdisk_counter counters[] = {
		{ "host_pages", ftl->host_pages },
		{ "gc_pages", ftl->gc_pages },
		{ "slc_pages", ftl->slc_pages },
		{ "padded_pages", ftl->padded_pages },
		{ "trimmed_pages", ftl->trimmed_pages },
		{ "erases", ftl->erases },
		{ "wear_moves", ftl->wear_moves },
		{ "wear_min", wear_min },
		{ "wear_max", wear_max },
		{ "buffer_reads", flash->host.nr_hits },
		{ "buffer_merges", flash->buffer.nr_merges },
		{ "buffer_used",
		  flash->buffer.nr_entries - flash->buffer.room },
		{ "write_stalls", flash->host.nr_stalls },
		{ "table_writes", flash->host.table.nr_written },
		{ "readahead_pages", flash->ahead.nr_asked },
		{ "readahead_hits", flash->ahead.nr_hits },
		{ "die_busy_ns", busy_sum },
		{ "die_busy_min_ns", busy_min },
		{ "die_busy_max_ns", busy_max },
		{ "flash_pages", ftl_get_flash_units(flash->ftl) },
		{ "map_bytes", ftl_memory(flash->ftl) },
	};

	room = min_t(u32, room, ARRAY_SIZE(counters));
	memcpy(out, counters, room * sizeof(*out));
	return room;
}

static void flash_destroy(struct vdisk_model *model)
{
	struct flash *flash = to_flash(model);

	flash_host_destroy(&flash->host);
	flash_controller_destroy(&flash->controller);
	flash_dies_destroy(&flash->dies);
	flash_ahead_destroy(&flash->ahead);
	flash_buffer_destroy(&flash->buffer);
	flash_tree_destroy(&flash->tree);
	if (flash->ftl)
		ftl_destroy(flash->ftl);
	kfree(flash);
}

/* Check conditions between parameters, and compute the sizes. */
static int flash_compute_geometry(const struct vdisk_params *params,
				  struct ftl_geometry *geo)
{
	const struct vdisk_flash_params *p = &params->flash;
	u64 units = DIV_ROUND_UP_ULL(params->size, FTL_UNIT_BYTES);
	u64 dies = p->channels * p->dies;
	u64 page = p->page_size >> FTL_UNIT_SHIFT;
	u64 block = page * p->planes * p->block_pages;

	if (units >= U32_MAX || units < dies) {
		pr_err("flash: %llu pages of 4 KiB on %llu dies: at least one each, less than %u in all\n",
		       units, dies, U32_MAX);
		return -EINVAL;
	}
	if (block > U16_MAX) {
		pr_err("flash: a block has %llu pages of 4 KiB over its planes, more than %u\n",
		       block, U16_MAX);
		return -EINVAL;
	}
	if (p->gc_low >= p->gc_high) {
		pr_err("flash: gc_low %llu is not below gc_high %llu\n",
		       p->gc_low, p->gc_high);
		return -EINVAL;
	}
	if (DIV_ROUND_UP_ULL(p->slc, FTL_UNIT_BYTES) >= U32_MAX ||
	    p->buffer >> FTL_UNIT_SHIFT >= U32_MAX) {
		pr_err("flash: slc or buffer is 16 TiB or more\n");
		return -EINVAL;
	}
	*geo = (struct ftl_geometry){
		.dies = dies,
		.units = units,
		.page_units = page,
		.row_units = page * p->planes,
		.block_units = block,
		.spare_per_mille = p->spare,
		.slc_units = DIV_ROUND_UP_ULL(p->slc, FTL_UNIT_BYTES),
		.gc_low = p->gc_low,
		.gc_high = p->gc_high,
	};
	return 0;
}

static void flash_init_lists(struct flash *flash)
{
	vdisk_list_init(&flash->ends.reads);
	vdisk_list_init(&flash->ends.others);
}

/* Create all parts of a disk. The caller destroys it, even if that failed. */
static int flash_init(struct flash *flash, const struct vdisk_params *params,
		      const struct ftl_geometry *geo, u32 max_cmds)
{
	const struct vdisk_flash_params *p = &params->flash;
	struct ftl *ftl;
	int err;

	flash_set_params(flash, params);
	flash_init_lists(flash);
	err = flash_tree_init(&flash->tree, geo->dies + FLASH_NR_LEAVES) ?:
	      flash_controller_init(&flash->controller, params->hw_queues,
				    params->seed) ?:
	      flash_host_init(&flash->host, geo->units) ?:
	      flash_dies_init(&flash->dies, geo->dies, geo->row_units,
			      p->channels, params->seed) ?:
	      flash_buffer_init(&flash->buffer,
				max_t(u64, p->buffer >> FTL_UNIT_SHIFT, 1),
				max_cmds) ?:
	      flash_ahead_init(&flash->ahead, p->readahead >> FTL_UNIT_SHIFT,
			       geo->units);
	if (err)
		return err;

	ftl = ftl_create(geo, p->wear_gap);
	if (IS_ERR(ftl))
		return PTR_ERR(ftl);
	flash->ftl = ftl;
	if (p->precondition == VDISK_PRECONDITION_NONE)
		return 0;
	return ftl_precondition(ftl, p->fill, p->precondition ==
				VDISK_PRECONDITION_RANDOM, params->seed);
}

static struct vdisk_model *flash_create(const struct vdisk_params *params,
					u32 max_cmds)
{
	struct ftl_geometry geo;
	struct flash *flash;
	int err;

	err = flash_compute_geometry(params, &geo);
	if (err)
		return ERR_PTR(err);

	flash = kzalloc(sizeof(*flash), GFP_KERNEL);
	if (!flash)
		return ERR_PTR(-ENOMEM);

	flash->model.ops = &vdisk_flash_ops;
	err = flash_init(flash, params, &geo, max_cmds);
	if (err) {
		flash_destroy(&flash->model);
		return ERR_PTR(err);
	}
	return &flash->model;
}

const struct vdisk_model_ops vdisk_flash_ops = {
	.name = "flash",
	.create = flash_create,
	.destroy = flash_destroy,
	.submit = flash_submit_cmd,
	.run = flash_run_events,
	.change = flash_change_params,
	.stats = flash_get_stats,
	.counters = flash_get_counters,
};
