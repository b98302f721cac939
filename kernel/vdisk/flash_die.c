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
#define FLASH_READS_FIRST	16

/* Create idle dies. The caller destroys them, even if that failed. */
int flash_dies_init(struct flash_dies *dies, u32 nr, u32 row, u32 channels,
		    u64 seed)
{
	u32 reads = nr * FLASH_READS_A_DIE;
	u32 i;

	dies->nr = nr;
	dies->row = row;
	dies->die = kvcalloc(nr, sizeof(*dies->die), GFP_KERNEL);
	dies->channel = kvcalloc(channels, sizeof(*dies->channel), GFP_KERNEL);
	dies->reads.slot = kvcalloc(reads, sizeof(*dies->reads.slot),
				    GFP_KERNEL);
	dies->kicked = kvcalloc(nr, sizeof(*dies->kicked), GFP_KERNEL);
	if (!dies->die || !dies->channel || !dies->reads.slot || !dies->kicked)
		return -ENOMEM;

	for (i = 0; i < nr; i++) {
		struct flash_die *die = &dies->die[i];

		die->latched = FLASH_NIL;
		die->reads = FLASH_NIL;
		die->dirty.first = FLASH_NIL;
		die->dirty.last = FLASH_NIL;
		die->op.seed = vdisk_random(seed, i);
	}
	for (i = 0; i < reads; i++)
		dies->reads.slot[i].next = i + 1 < reads ? i + 1 : FLASH_NIL;
	return 0;
}

/* Free the memory of all dies. */
void flash_dies_destroy(struct flash_dies *dies)
{
	kvfree(dies->kicked);
	kvfree(dies->reads.slot);
	kvfree(dies->channel);
	kvfree(dies->die);
}

/* Kick a die: it may now have an operation to start. */
void flash_kick(struct flash_dies *dies, u32 nr)
{
	struct flash_die *die = &dies->die[nr];

	if (die->kicked || die->op.state != FLASH_IDLE)
		return;
	die->kicked = true;
	dies->kicked[dies->nr_kicked++] = nr;
}

/* Start an operation of a die at time @at. The caller sets its event. */
static void hold(struct flash_dies *dies, struct flash_die *die,
		 enum flash_state state, u64 at)
{
	die->op.state = state;
	die->op.since = at;
	die->op.number++;
	die->latched = FLASH_NIL;
	dies->busy++;
	dies->held_ns -= at;
}

/* End the operation of a die. */
static void release(struct flash *flash, u32 nr, u64 at)
{
	struct flash_dies *dies = &flash->dies;
	struct flash_op *op = &dies->die[nr].op;

	op->state = FLASH_IDLE;
	op->busy_ns += at - op->since;
	dies->busy--;
	dies->held_ns += at;
	flash_tree_set(&flash->tree, nr, VDISK_NEVER);
	flash_kick(dies, nr);
}

/* Return the time of a die's current operation, of average @ns, with jitter. */
static u64 jitter(const struct flash *flash, const struct flash_op *op, u64 ns)
{
	return vdisk_jitter(ns, flash->set.jitter, op->seed, op->number);
}

/*
 * Return the time of a sense of a slot's row, without jitter.
 *
 * A cell of n bits holds a bit of n pages, and bit k, from 0, is found by
 * comparing with 2^k levels. So pages are of n kinds, row after row, with
 * different numbers of sensings. The mean of these, (2^n - 1) / n, takes read_ns.
 */
static u64 sense_ns(const struct flash *flash, u32 slot)
{
	const struct vdisk_flash_params *p = &flash->p;
	u32 bits = p->cell_bits;
	s64 more;

	if (ftl_is_slc(flash->ftl, slot))
		return p->slc_read_ns;
	if (bits == 1)
		return p->read_ns;
	/* In units of 1 / n: sensings of this kind, less the mean. */
	more = (s64)(bits << slot / flash->dies.row % bits) - (BIT(bits) - 1);
	return p->read_ns + div_s64(more * (s64)(p->read_ns * p->read_step),
				    1000 * bits);
}

/* Transfer units over a die's channel. Return the time at which that ends. */
static u64 carry(struct flash *flash, u32 nr, u64 at, u32 units)
{
	u32 channel = nr % (u32)flash->p.channels;

	return vdisk_link_carry(&flash->dies.channel[channel],
				flash->p.bus_bps, at,
				(u64)units << FTL_UNIT_SHIFT);
}

/*
 * Queue a read of a unit at its die, for a command or a slot of read-ahead.
 * Return false if no slot for the read is free.
 */
bool flash_die_read(struct flash_dies *dies, struct vdisk_cmd *cmd, u32 ahead,
		    u32 nr, u32 unit)
{
	struct flash_reads *reads = &dies->reads;
	struct flash_die *die = &dies->die[nr];
	u32 slot = reads->free;

	if (slot == FLASH_NIL)
		return false;
	reads->free = reads->slot[slot].next;
	reads->slot[slot] = (struct flash_read){
		.cmd = cmd,
		.ahead = ahead,
		.unit = unit,
		.next = FLASH_NIL,
	};
	if (die->reads == FLASH_NIL)
		die->reads = slot;
	else
		reads->slot[die->reads_tail].next = slot;
	die->reads_tail = slot;
	flash_kick(dies, nr);
	return true;
}

/* Finish a read: pass it to its command, or to read-ahead. */
static void read_end(struct flash *flash, u32 slot, u64 at)
{
	struct flash_reads *reads = &flash->dies.reads;
	const struct flash_read *read = &reads->slot[slot];

	if (read->cmd)
		flash_read_done(flash, read->cmd, at);
	else
		flash_ahead_done(flash, read->ahead, at);
	reads->slot[slot].next = reads->free;
	reads->free = slot;
}

/* Take the first read off the queue of a die. */
static u32 read_pop(struct flash_reads *reads, struct flash_die *die)
{
	u32 slot = die->reads;

	die->reads = reads->slot[slot].next;
	return slot;
}

/*
 * Start a sense of a row, for all reads of that row at the head of the queue.
 * Return false if the units of all queued reads have been trimmed.
 */
static bool start_sense(struct flash *flash, u32 nr, u64 at)
{
	struct flash_reads *reads = &flash->dies.reads;
	struct flash_die *die = &flash->dies.die[nr];
	u32 units_a_row = flash->dies.row;
	u32 row = FLASH_NIL;
	u64 ns = 0;

	die->op.count = 0;
	die->op.first = FLASH_NIL;
	while (die->reads != FLASH_NIL && die->op.count < units_a_row) {
		struct flash_read *read = &reads->slot[die->reads];
		u32 slot = ftl_lookup(flash->ftl, nr, read->unit);
		u32 taken;

		if (slot != FTL_NONE && row != FLASH_NIL &&
		    slot / units_a_row != row)
			break;
		taken = read_pop(reads, die);
		if (slot == FTL_NONE) {
			read_end(flash, taken, at);
			continue;
		}
		if (row == FLASH_NIL) {
			row = slot / units_a_row;
			ns = sense_ns(flash, slot);
		}
		read->next = die->op.first;
		die->op.first = taken;
		die->op.count++;
	}
	if (!die->op.count)
		return false;

	/* The row is still in the registers: no sense is needed. */
	if (row == die->latched)
		ns = 0;
	hold(&flash->dies, die, FLASH_SENSE, at);
	if (flash->ahead.room)
		die->latched = row;
	flash_tree_set(&flash->tree, nr, at + jitter(flash, &die->op, ns));
	return true;
}

/* End a transfer: a die's data have reached the controller. */
static void end_transfer(struct flash *flash, u32 nr, u64 at)
{
	struct flash_reads *reads = &flash->dies.reads;
	u32 slot = flash->dies.die[nr].op.first;

	while (slot != FLASH_NIL) {
		u32 next = reads->slot[slot].next;

		read_end(flash, slot, at);
		slot = next;
	}
	release(flash, nr, at);
}

/* Program the oldest units that the buffer holds for a die. */
static void start_program(struct flash *flash, u32 nr, struct ftl_room room,
			  u64 at)
{
	struct flash_dies *dies = &flash->dies;
	struct flash_die *die = &dies->die[nr];
	u32 count = min(room.units, die->dirty.count);
	u32 entry = die->dirty.first;
	u32 i;
	u64 ns;

	die->op.first = entry;
	die->op.count = count;
	for (i = 0; i < count; i++) {
		const struct flash_entry *e = &flash->buffer.entry[entry];

		ftl_host_write(flash->ftl, nr, e->unit / dies->nr);
		entry = e->next;
	}
	ftl_host_end(flash->ftl, nr);
	flash_take_dirty(&flash->buffer, &die->dirty, count);

	dies->programming++;
	hold(dies, die, FLASH_PROGRAM, at);
	ns = room.slc ? flash->p.slc_program_ns : flash->p.program_ns;
	at = carry(flash, nr, at, count);
	flash_tree_set(&flash->tree, nr, at + jitter(flash, &die->op, ns));
}

/* End a program: its entries leave the buffer. */
static void end_program(struct flash *flash, u32 nr, u64 at)
{
	struct flash_op *op = &flash->dies.die[nr].op;
	u32 entry = op->first;
	u32 i;

	for (i = 0; i < op->count; i++) {
		u32 next = flash->buffer.entry[entry].next;

		flash_forget(flash, entry, at);
		entry = next;
	}
	flash->dies.programming--;
	release(flash, nr, at);
}

/* Start the next operation of garbage collection. */
static void start_gc(struct flash *flash, u32 nr, enum ftl_pool from, u64 at)
{
	struct flash_dies *dies = &flash->dies;
	struct flash_die *die = &dies->die[nr];
	struct ftl_step step = ftl_step(flash->ftl, nr, from);
	u64 ns = 0;

	switch (step.work) {
	case FTL_READ:
		die->op.count = step.units;
		hold(dies, die, FLASH_GC_SENSE, at);
		ns = sense_ns(flash, step.slot);
		break;
	case FTL_PROGRAM:
		hold(dies, die, FLASH_GC_PROGRAM, at);
		ns = flash->p.program_ns;
		if (!flash->p.copyback)
			at = carry(flash, nr, at, dies->row);
		break;
	case FTL_ERASE:
		hold(dies, die, FLASH_ERASE, at);
		ns = flash->p.erase_ns;
		break;
	}
	flash_tree_set(&flash->tree, nr, at + jitter(flash, &die->op, ns));
}

/* Start the next operation of an idle die, if there is one (flash.c). */
static void die_next(struct flash *flash, u32 nr, u64 at)
{
	struct flash_die *die = &flash->dies.die[nr];
	bool gc_first = ftl_gc_first(flash->ftl, nr);
	struct ftl_room room = {};
	bool program = false;

	if (die->dirty.count) {
		room = ftl_host_room(flash->ftl, nr);
		program = room.units && (die->dirty.urgent ||
					 die->dirty.count >= room.units);
	}

	if (die->reads != FLASH_NIL &&
	    (die->streak < FLASH_READS_FIRST || !(program || gc_first)) &&
	    start_sense(flash, nr, at)) {
		die->streak++;
		return;
	}
	die->streak = 0;

	if (gc_first)
		start_gc(flash, nr, FTL_MAIN, at);
	else if (program)
		start_program(flash, nr, room, at);
	else if (ftl_gc_on(flash->ftl, nr))
		start_gc(flash, nr, FTL_MAIN, at);
	else if (flash->load.idle && ftl_fold_on(flash->ftl, nr))
		start_gc(flash, nr, FTL_SLC, at);
}

/* Start the next operation of every kicked die. */
void flash_dies_next(struct flash *flash, u64 at)
{
	struct flash_dies *dies = &flash->dies;
	u32 i;

	for (i = 0; i < dies->nr_kicked; i++) {
		dies->die[dies->kicked[i]].kicked = false;
		die_next(flash, dies->kicked[i], at);
	}
	dies->nr_kicked = 0;
}

/* Process the event of a die: a step of its operation, or the end. */
void flash_die_event(struct flash *flash, u32 nr, u64 at)
{
	struct flash_op *op = &flash->dies.die[nr].op;

	switch (op->state) {
	case FLASH_SENSE:
		op->state = FLASH_TRANSFER;
		flash_tree_set(&flash->tree, nr,
			       carry(flash, nr, at, op->count));
		break;
	case FLASH_TRANSFER:
		end_transfer(flash, nr, at);
		break;
	case FLASH_PROGRAM:
		end_program(flash, nr, at);
		break;
	case FLASH_GC_SENSE:
		if (!flash->p.copyback) {
			op->state = FLASH_GC_TRANSFER;
			flash_tree_set(&flash->tree, nr,
				       carry(flash, nr, at, op->count));
			break;
		}
		fallthrough;
	case FLASH_GC_TRANSFER:
	case FLASH_GC_PROGRAM:
	case FLASH_ERASE:
	case FLASH_IDLE:
		release(flash, nr, at);
		break;
	}
}
