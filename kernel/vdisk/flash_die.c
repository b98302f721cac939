// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dies of the model "flash": their operations, and the order of these.
 *
 * A die is idle or executes one operation, which has one event in the tree: the
 * end of its work in the cells, or of its transfer over the channel. Any change
 * that may give an idle die an operation kicks the die. After each event all
 * kicked dies are processed.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/types.h>

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

/* Reads of a die in a row before one of its waiting writes. */
#define FLASH_READ_STREAK_MAX	16

/* Create idle dies. The caller destroys them, even if that failed. */
int flash_dies_init(struct flash_dies *dies, u32 nr, u32 row, u32 channels,
		    u64 seed)
{
	u32 reads = nr * FLASH_READS_PER_DIE;
	u32 i;

	dies->nr = nr;
	dies->row_units = row;
	dies->dies = kvcalloc(nr, sizeof(*dies->dies), GFP_KERNEL);
	dies->channels =
		kvcalloc(channels, sizeof(*dies->channels), GFP_KERNEL);
	dies->reads.slots =
		kvcalloc(reads, sizeof(*dies->reads.slots), GFP_KERNEL);
	dies->kicked = kvcalloc(nr, sizeof(*dies->kicked), GFP_KERNEL);
	if (!dies->dies || !dies->channels || !dies->reads.slots ||
	    !dies->kicked)
		return -ENOMEM;

	for (i = 0; i < nr; i++) {
		struct flash_die *die = &dies->dies[i];

		die->latched_row = FLASH_NIL;
		die->first_read = FLASH_NIL;
		die->dirty.first = FLASH_NIL;
		die->dirty.last = FLASH_NIL;
		die->op.seed = vdisk_random(seed, i);
	}
	for (i = 0; i < reads; i++)
		dies->reads.slots[i].next = i + 1 < reads ? i + 1 : FLASH_NIL;
	return 0;
}

/* Free the memory of all dies. */
void flash_dies_destroy(struct flash_dies *dies)
{
	kvfree(dies->kicked);
	kvfree(dies->reads.slots);
	kvfree(dies->channels);
	kvfree(dies->dies);
}

/* Kick a die: it may now have an operation to start. */
void flash_die_kick(struct flash_dies *dies, u32 nr)
{
	struct flash_die *die = &dies->dies[nr];

	if (die->kicked || die->op.state != FLASH_IDLE)
		return;
	die->kicked = true;
	dies->kicked[dies->nr_kicked++] = nr;
}

/* Start an operation of a die at time @at. The caller sets its event. */
static void flash_die_begin_op(struct flash_dies *dies, struct flash_die *die,
			       enum flash_state state, u64 at)
{
	die->op.state = state;
	die->op.start_ns = at;
	die->op.nr_started++;
	die->latched_row = FLASH_NIL;
	dies->nr_busy++;
	dies->service_ns_sum -= at;
}

/* End the operation of a die. */
static void flash_die_end_op(struct flash *flash, u32 nr, u64 at)
{
	struct flash_dies *dies = &flash->dies;
	struct flash_op *op = &dies->dies[nr].op;

	op->state = FLASH_IDLE;
	op->busy_ns += at - op->start_ns;
	dies->nr_busy--;
	dies->service_ns_sum += at;
	flash_tree_set_due(&flash->tree, nr, VDISK_NEVER_NS);
	flash_die_kick(dies, nr);
}

/* Return the time of a die's current operation, of average @ns, with jitter. */
static u64 flash_die_op_ns(const struct flash *flash, const struct flash_op *op,
			   u64 ns)
{
	return vdisk_jitter(ns, flash->settings.jitter, op->seed,
			    op->nr_started);
}

/*
 * Return the time of a sense of a slot's row, without jitter.
 *
 * A cell of n bits holds a bit of n pages, and bit k, from 0, is found by
 * comparing with 2^k levels. So pages are of n kinds, row after row, with
 * different numbers of sensings. The mean of these, (2^n - 1) / n, takes read_ns.
 */
static u64 flash_die_sense_ns(const struct flash *flash, u32 slot)
{
	const struct vdisk_flash_params *p = &flash->params;
	u32 bits = p->cell_bits;
	s64 more;

	if (ftl_slot_is_slc(flash->ftl, slot))
		return p->slc_read_ns;
	if (bits == 1)
		return p->read_ns;
	/* In units of 1 / n: sensings of this kind, less the mean. */
	more = (s64)(bits << slot / flash->dies.row_units % bits) -
	       (BIT(bits) - 1);
	return p->read_ns + div_s64(more * (s64)(p->read_ns * p->read_step),
				    1000 * bits);
}

/* Transfer units over a die's channel. Return the time at which that ends. */
static u64 flash_die_transfer(struct flash *flash, u32 nr, u64 at, u32 units)
{
	u32 channel = nr % (u32)flash->params.channels;

	return vdisk_link_transfer(&flash->dies.channels[channel],
				   flash->params.bus_bps, at,
				   (u64)units << FTL_UNIT_SHIFT);
}

/*
 * Queue a read of a unit at its die, for a command or a slot of read-ahead.
 * Return false if no slot for the read is free.
 */
bool flash_die_queue_read(struct flash_dies *dies, struct vdisk_cmd *cmd,
			  u32 ahead, u32 nr, u32 unit)
{
	struct flash_reads *reads = &dies->reads;
	struct flash_die *die = &dies->dies[nr];
	u32 slot = reads->first_free;

	if (slot == FLASH_NIL)
		return false;
	reads->first_free = reads->slots[slot].next;
	reads->slots[slot] = (struct flash_read){
		.cmd = cmd,
		.ahead_slot = ahead,
		.unit = unit,
		.next = FLASH_NIL,
	};
	if (die->first_read == FLASH_NIL)
		die->first_read = slot;
	else
		reads->slots[die->last_read].next = slot;
	die->last_read = slot;
	flash_die_kick(dies, nr);
	return true;
}

/* Finish a read: pass it to its command, or to read-ahead. */
static void flash_die_end_read(struct flash *flash, u32 slot, u64 at)
{
	struct flash_reads *reads = &flash->dies.reads;
	const struct flash_read *read = &reads->slots[slot];

	if (read->cmd)
		flash_end_count_unit(flash, read->cmd, at);
	else
		flash_ahead_end_read(flash, read->ahead_slot, at);
	reads->slots[slot].next = reads->first_free;
	reads->first_free = slot;
}

/* Take the first read off the queue of a die. */
static u32 flash_die_pop_read(struct flash_reads *reads, struct flash_die *die)
{
	u32 slot = die->first_read;

	die->first_read = reads->slots[slot].next;
	return slot;
}

/*
 * Start a sense of a row, for all reads of that row at the head of the queue.
 * Return false if the units of all queued reads have been trimmed.
 */
static bool flash_die_start_sense(struct flash *flash, u32 nr, u64 at)
{
	struct flash_reads *reads = &flash->dies.reads;
	struct flash_die *die = &flash->dies.dies[nr];
	u32 units_a_row = flash->dies.row_units;
	u32 row = FLASH_NIL;
	u64 ns = 0;

	die->op.nr_units = 0;
	die->op.first = FLASH_NIL;
	while (die->first_read != FLASH_NIL && die->op.nr_units < units_a_row) {
		struct flash_read *read = &reads->slots[die->first_read];
		u32 slot = ftl_lookup(flash->ftl, nr, read->unit);
		u32 taken;

		if (slot != FTL_NONE && row != FLASH_NIL &&
		    slot / units_a_row != row)
			break;
		taken = flash_die_pop_read(reads, die);
		if (slot == FTL_NONE) {
			flash_die_end_read(flash, taken, at);
			continue;
		}
		if (row == FLASH_NIL) {
			row = slot / units_a_row;
			ns = flash_die_sense_ns(flash, slot);
		}
		read->next = die->op.first;
		die->op.first = taken;
		die->op.nr_units++;
	}
	if (!die->op.nr_units)
		return false;

	/* The row is still in the registers: no sense is needed. */
	if (row == die->latched_row)
		ns = 0;
	flash_die_begin_op(&flash->dies, die, FLASH_SENSE, at);
	if (flash->ahead.room)
		die->latched_row = row;
	flash_tree_set_due(&flash->tree, nr,
			   at + flash_die_op_ns(flash, &die->op, ns));
	return true;
}

/* End a transfer: a die's data have reached the controller. */
static void flash_die_end_transfer(struct flash *flash, u32 nr, u64 at)
{
	struct flash_reads *reads = &flash->dies.reads;
	u32 slot = flash->dies.dies[nr].op.first;

	while (slot != FLASH_NIL) {
		u32 next = reads->slots[slot].next;

		flash_die_end_read(flash, slot, at);
		slot = next;
	}
	flash_die_end_op(flash, nr, at);
}

/* Program the oldest units that the buffer holds for a die. */
static void flash_die_start_program(struct flash *flash, u32 nr,
				    struct ftl_room room, u64 at)
{
	struct flash_dies *dies = &flash->dies;
	struct flash_die *die = &dies->dies[nr];
	u32 count = min(room.units, die->dirty.nr);
	u32 entry = die->dirty.first;
	u32 i;
	u64 ns;

	die->op.first = entry;
	die->op.nr_units = count;
	for (i = 0; i < count; i++) {
		const struct flash_entry *e = &flash->buffer.entries[entry];

		ftl_host_write(flash->ftl, nr, e->unit / dies->nr);
		entry = e->next;
	}
	ftl_host_end_program(flash->ftl, nr);
	flash_dirty_take(&flash->buffer, &die->dirty, count);

	dies->nr_programming++;
	flash_die_begin_op(dies, die, FLASH_PROGRAM, at);
	ns = room.slc ? flash->params.slc_program_ns : flash->params.program_ns;
	at = flash_die_transfer(flash, nr, at, count);
	flash_tree_set_due(&flash->tree, nr,
			   at + flash_die_op_ns(flash, &die->op, ns));
}

/* End a program: its entries leave the buffer. */
static void flash_die_end_program(struct flash *flash, u32 nr, u64 at)
{
	struct flash_op *op = &flash->dies.dies[nr].op;
	u32 entry = op->first;
	u32 i;

	for (i = 0; i < op->nr_units; i++) {
		u32 next = flash->buffer.entries[entry].next;

		flash_buffer_free_entry(flash, entry, at);
		entry = next;
	}
	flash->dies.nr_programming--;
	flash_die_end_op(flash, nr, at);
}

/* Start the next operation of garbage collection. */
static void flash_die_start_gc(struct flash *flash, u32 nr, enum ftl_pool from,
			       u64 at)
{
	struct flash_dies *dies = &flash->dies;
	struct flash_die *die = &dies->dies[nr];
	struct ftl_step step = ftl_step(flash->ftl, nr, from);
	u64 ns = 0;

	switch (step.work) {
	case FTL_READ:
		die->op.nr_units = step.units;
		flash_die_begin_op(dies, die, FLASH_GC_SENSE, at);
		ns = flash_die_sense_ns(flash, step.slot);
		break;
	case FTL_PROGRAM:
		flash_die_begin_op(dies, die, FLASH_GC_PROGRAM, at);
		ns = flash->params.program_ns;
		if (!flash->params.copyback)
			at = flash_die_transfer(flash, nr, at, dies->row_units);
		break;
	case FTL_ERASE:
		flash_die_begin_op(dies, die, FLASH_ERASE, at);
		ns = flash->params.erase_ns;
		break;
	}
	flash_tree_set_due(&flash->tree, nr,
			   at + flash_die_op_ns(flash, &die->op, ns));
}

/* Start the next operation of an idle die, if there is one (flash.c). */
static void flash_die_start_next(struct flash *flash, u32 nr, u64 at)
{
	struct flash_die *die = &flash->dies.dies[nr];
	bool gc_first = ftl_gc_is_urgent(flash->ftl, nr);
	struct ftl_room room = {};
	bool program = false;

	if (die->dirty.nr) {
		room = ftl_get_host_room(flash->ftl, nr);
		program = room.units &&
			  (die->dirty.nr_urgent || die->dirty.nr >= room.units);
	}

	if (die->first_read != FLASH_NIL &&
	    (die->read_streak < FLASH_READ_STREAK_MAX ||
	     !(program || gc_first)) &&
	    flash_die_start_sense(flash, nr, at)) {
		die->read_streak++;
		return;
	}
	die->read_streak = 0;

	if (gc_first)
		flash_die_start_gc(flash, nr, FTL_MAIN, at);
	else if (program)
		flash_die_start_program(flash, nr, room, at);
	else if (ftl_gc_has_work(flash->ftl, nr))
		flash_die_start_gc(flash, nr, FTL_MAIN, at);
	else if (flash->load.idle && ftl_may_fold(flash->ftl, nr))
		flash_die_start_gc(flash, nr, FTL_SLC, at);
}

/* Start the next operation of every kicked die. */
void flash_dies_start_next(struct flash *flash, u64 at)
{
	struct flash_dies *dies = &flash->dies;
	u32 i;

	for (i = 0; i < dies->nr_kicked; i++) {
		dies->dies[dies->kicked[i]].kicked = false;
		flash_die_start_next(flash, dies->kicked[i], at);
	}
	dies->nr_kicked = 0;
}

/* Process the event of a die: a step of its operation, or the end. */
void flash_die_handle_event(struct flash *flash, u32 nr, u64 at)
{
	struct flash_op *op = &flash->dies.dies[nr].op;

	switch (op->state) {
	case FLASH_SENSE:
		op->state = FLASH_TRANSFER;
		flash_tree_set_due(&flash->tree, nr,
				   flash_die_transfer(flash, nr, at,
						      op->nr_units));
		break;
	case FLASH_TRANSFER:
		flash_die_end_transfer(flash, nr, at);
		break;
	case FLASH_PROGRAM:
		flash_die_end_program(flash, nr, at);
		break;
	case FLASH_GC_SENSE:
		if (!flash->params.copyback) {
			op->state = FLASH_GC_TRANSFER;
			flash_tree_set_due(&flash->tree, nr,
					   flash_die_transfer(flash, nr, at,
							      op->nr_units));
			break;
		}
		fallthrough;
	case FLASH_GC_TRANSFER:
	case FLASH_GC_PROGRAM:
	case FLASH_ERASE:
	case FLASH_IDLE:
		flash_die_end_op(flash, nr, at);
		break;
	}
}
