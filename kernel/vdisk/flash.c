// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "flash": a solid-state disk, from the host link to the cells.
 *
 * What a command meets, in this order:
 *
 *	controller	one command after the other, cmd_ns each
 *	read		each unit of 4 KiB from the buffer, if it is there; else a
 *			sense on its die (read_ns), then the channel (bus_bps).
 *			When all are there: read_latency_ns, then the link
 *	write		room in the buffer, then the link, then
 *			write_latency_ns, and it ends; the rest happens behind it
 *	trim		the map forgets the units; write_latency_ns
 *	flush		ends write_latency_ns after the buffer holds nothing that
 *			it held before
 *
 * A die does one thing at a time: a sense and the transfer of what it read, a
 * program behind the transfer of what it writes, or an erase. Channels and
 * links carry one transfer at a time, first come first served. A sense takes a
 * row, the same page of every plane, and serves all reads at the head of the
 * die's queue that are for it; so do programs. So sequential reads get the
 * bandwidth of all planes, and random ones one unit a sense.
 *
 * When a die becomes free it takes, in this order: a read of the host; garbage
 * collection, if it must go first (ftl.c says); a program of the host, if there
 * is a full row, or part of one that has to be written; other collection. No
 * operation is interrupted: a read waits for what runs, which is what makes the
 * tail of reads beside writes. After FLASH_READS_FIRST reads in a row one write
 * operation has its turn, or a deep queue of reads would stop writes for ever.
 *
 * The buffer is made of units, and a unit stays until its program has ended. A
 * write to a unit that waits there replaces it, and takes no room. A write that
 * finds no room waits, and so do all behind it: so sustained writes run at the
 * pace of programs, and of the garbage collection between them. A unit goes to
 * its die in the order in which it came. With write_cache the buffer is
 * volatile: a flush, or a write with FUA, makes dies program parts of rows,
 * whose rest stays empty until collected, and a disk without commands for
 * FLASH_IDLE_NS writes out what it holds. Without, the buffer is backed by
 * capacitors: everything in it is stable.
 *
 * Garbage collection reads a row of the victim that has anything valid, and
 * programs a row when it has moved so much; with copyback neither crosses the
 * channel. With fast (SLC) blocks, the host's programs take slc_program_ns
 * while one is free; on an idle disk, they are emptied into the others.
 *
 * Placement is static, unit modulo die (ftl.c says why), and the dies of
 * neighbours are on different channels.
 *
 * What is not modelled: read-ahead by the drive; read-modify-write of units
 * that are written in part, which take a whole unit; suspended programs and
 * erases; caches for the map; errors, retries and refresh; a limit for power or
 * heat; one data path for both directions, as SATA's. Compression neither.
 *
 * The ideas are those of the published simulators, put in words and written
 * anew: dies and channels as the two resources of a read (Agrawal et al.,
 * "Design tradeoffs for SSD performance", USENIX ATC 2008), multi-queue
 * front end, write cache and priorities (Tavakkol et al., "MQSim", FAST 2018),
 * the visible effect of buffer, SLC and internal collection (Li et al.,
 * "FEMU", FAST 2018). Those about the translation are in ftl.c.
 *
 * Events. Who can have one is fixed: each die, the controller, the two links,
 * the idle timer. Each has at most one, in a tournament tree with a leaf each;
 * of those of one instant, the first leaf wins. Commands end in two queues,
 * behind the read link and behind write_latency_ns, each in the order of time.
 * So run() says as the next event the first that can end a command: the head of
 * these queues, or the next other event and the latency that still follows it.
 * The timer need not fire in between; what happened, run() makes up for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/time64.h>

#include "ftl.h"
#include "link.h"
#include "model.h"
#include "random.h"

/* Reads of a die before one of its writes that wait has its turn. */
#define FLASH_READS_FIRST	16

/*
 * Reads that dies hold at once, for each die. More wait at the controller: it
 * has as many slots.
 */
#define FLASH_READS_A_DIE	64

/* Units that cross the write link at once: what a die may have earlier. */
#define FLASH_CHUNK		32

/* Longer than pauses of a host at work, shorter than those that people see. */
#define FLASH_IDLE_NS		(100 * NSEC_PER_MSEC)

/* Of an index: there is none. */
#define FLASH_NIL		U32_MAX

/* Leaves behind those of the dies. */
enum flash_leaf {
	FLASH_CONTROLLER,
	FLASH_LINK,
	FLASH_READ_END,
	FLASH_WRITE_END,
	FLASH_IDLE_TIMER,
	FLASH_NR_LEAVES,
};

/* What a die is doing. */
enum flash_state {
	FLASH_IDLE,
	FLASH_SENSE,
	FLASH_TRANSFER,
	FLASH_PROGRAM,
	FLASH_GC_SENSE,
	FLASH_GC_TRANSFER,
	FLASH_GC_PROGRAM,
	FLASH_ERASE,
};

/**
 * struct flash_event - a node of the tournament tree
 * @due: when
 * @leaf: whose
 */
struct flash_event {
	u64 due;
	u32 leaf;
};

/**
 * struct flash_read - a unit that is read from a die
 * @cmd: for which command
 * @unit: which, on the die
 * @next: in the die's queue, in its transfer, or of the free ones
 */
struct flash_read {
	struct vdisk_cmd *cmd;
	u32 unit;
	u32 next;
};

/**
 * struct flash_entry - a unit in the buffer
 * @owner: the write with FUA that waits for it, or NULL
 * @unit: which, of the disk
 * @epoch: flushes of this epoch and later wait for it
 * @chain: next of the hash
 * @next: in the die's queue, in its program, or of the free ones
 * @prev: in the die's queue
 * @flying: being programmed
 */
struct flash_entry {
	struct vdisk_cmd *owner;
	u32 unit;
	u32 epoch;
	u32 chain;
	u32 next;
	u32 prev;
	bool flying;
};

/**
 * struct flash_die - a die
 * @state: what it does
 * @kicked: is on the list of those that may have something to do
 * @streak: reads since the last other operation
 * @reads: queue; first
 * @reads_tail: last
 * @dirty: units of the buffer to be programmed; first
 * @dirty_tail: last
 * @nr_dirty: how many
 * @urgent: how many of them must be written even if they are no row
 * @active: reads or units of the operation; first
 * @nr_active: how many, also of garbage collection
 * @ops: operations that were started; position of the jitter
 * @seed: of the jitter
 * @since: when the operation was started
 * @busy_ns: of all operations that have ended
 */
struct flash_die {
	enum flash_state state;
	bool kicked;
	u32 streak;
	u32 reads;
	u32 reads_tail;
	u32 dirty;
	u32 dirty_tail;
	u32 nr_dirty;
	u32 urgent;
	u32 active;
	u32 nr_active;
	u64 ops;
	u64 seed;
	u64 since;
	u64 busy_ns;
};

/**
 * struct flash - a disk of this model
 * @model: base
 * @ftl: where data are
 * @p: parameters
 * @bps: of the links, by vdisk_op
 * @write_cache: the buffer is volatile
 * @jitter: of times of dies and of the controller, per mille
 * @seed: of the controller's jitter
 * @row: units of a row
 * @nr_dies: how many
 * @seq: commands ever submitted
 * @controller: commands that it has yet to take, each with its time
 * @controller_free: when it is
 * @reads: commands with units that are still to be issued
 * @writes: commands with units that are still to cross the link
 * @flushes: commands that wait for the buffer
 * @reading: commands on the read link, each with its end
 * @ending: other commands whose end is known, each with it
 * @read_link: to the host
 * @write_link: from the host
 * @crossing: units on @write_link now
 * @held: commands submitted and not ended
 * @waiting: those that wait for the controller, for slots or for room
 * @waiting_max: the most that ever did
 * @active: commands that the controller has taken, not ended
 * @idle_since: when @active became 0
 * @idle: nothing was asked for FLASH_IDLE_NS
 * @busy: dies that do something
 * @held_ns: ends minus starts of their operations, as in fixed.c
 * @programming: dies that program for the host
 * @room: free units of the buffer, less those on the link
 * @nr_entries: units of the buffer
 * @free_entry: first free one
 * @free_read: first free one
 * @hash_shift: bits of the hash
 * @epoch: of what enters the buffer now
 * @oldest: no unit of an epoch before is in the buffer
 * @epoch_mask: length of @in_epoch, minus 1
 * @nr_kicks: dies in @kicks
 * @instant: where commands that ended at @instant_ns begin on the done list
 * @instant_ns: when the last command ended
 * @instant_seq: which it was
 * @hit_reads: units read from the buffer
 * @merges: units that replaced one in the buffer
 * @stalled: the first of @writes has found no room
 * @stalls: how often that was
 * @first_leaf: of the tree, that of die 0
 * @tree: root at 1, children of n at 2n and 2n + 1
 * @dies: nr_dies
 * @channels: as set
 * @entries: nr_entries
 * @hash: first entry
 * @in_epoch: units in the buffer, by epoch modulo its length
 * @read_slots: FLASH_READS_A_DIE for each die
 * @kicks: dies to be looked at
 *
 * The device's lock protects all of it.
 */
struct flash {
	struct vdisk_model model;
	struct ftl *ftl;
	struct vdisk_flash_params p;
	u64 bps[VDISK_NR_OPS];
	bool write_cache;
	u64 jitter;
	u64 seed;
	u32 row;
	u32 nr_dies;
	u64 seq;
	struct vdisk_list controller;
	u64 controller_free;
	struct vdisk_list reads;
	struct vdisk_list writes;
	struct vdisk_list flushes;
	struct vdisk_list reading;
	struct vdisk_list ending;
	struct vdisk_link read_link;
	struct vdisk_link write_link;
	u32 crossing;
	u32 held;
	u32 waiting;
	u32 waiting_max;
	u32 active;
	u64 idle_since;
	bool idle;
	u32 busy;
	u64 held_ns;
	u32 programming;
	u32 room;
	u32 nr_entries;
	u32 free_entry;
	u32 free_read;
	u32 hash_shift;
	u32 epoch;
	u32 oldest;
	u32 epoch_mask;
	u32 nr_kicks;
	struct vdisk_cmd **instant;
	u64 instant_ns;
	u64 instant_seq;
	u64 hit_reads;
	u64 merges;
	bool stalled;
	u64 stalls;
	u32 first_leaf;
	struct flash_event *tree;
	struct flash_die *dies;
	struct vdisk_link *channels;
	struct flash_entry *entries;
	u32 *hash;
	u32 *in_epoch;
	struct flash_read *read_slots;
	u32 *kicks;
};

static struct flash *to_flash(struct vdisk_model *model)
{
	return container_of(model, struct flash, model);
}

/* ---- events ---- */

static u64 flash_due(const struct flash *flash, u32 leaf)
{
	return flash->tree[flash->first_leaf + leaf].due;
}

/* A leaf has its event at another time. */
static void flash_set_due(struct flash *flash, u32 leaf, u64 due)
{
	struct flash_event *tree = flash->tree;
	u32 node = flash->first_leaf + leaf;

	tree[node].due = due;
	while (node > 1) {
		const struct flash_event *left = &tree[node & ~1U];
		const struct flash_event *right = &tree[node | 1];
		const struct flash_event *win;

		win = right->due < left->due ? right : left;
		node /= 2;
		if (tree[node].due == win->due && tree[node].leaf == win->leaf)
			return;
		tree[node] = *win;
	}
}

static u32 flash_leaf(const struct flash *flash, enum flash_leaf leaf)
{
	return flash->nr_dies + leaf;
}

/* ---- links ---- */

static u64 flash_carry_units(struct flash *flash, u32 die, u64 at, u32 units)
{
	return vdisk_link_carry(&flash->channels[die % (u32)flash->p.channels],
				flash->p.bus_bps, at,
				(u64)units << FTL_UNIT_SHIFT);
}

/* ---- ends of commands ---- */

/* Puts a command behind the others of a queue, at a time not before theirs. */
static void flash_queue(struct flash *flash, struct vdisk_list *list,
			enum flash_leaf leaf, struct vdisk_cmd *cmd, u64 at)
{
	if (list->head) {
		struct vdisk_cmd *last = container_of(list->tail,
						      struct vdisk_cmd, next);

		/* A latency may have been made shorter. */
		at = max(at, last->flash.at_ns);
	}
	cmd->flash.at_ns = at;
	vdisk_list_add(list, cmd);
	if (list->head == cmd)
		flash_set_due(flash, flash_leaf(flash, leaf), at);
}

/* The first command of a queue leaves it. */
static struct vdisk_cmd *flash_dequeue(struct flash *flash,
				       struct vdisk_list *list,
				       enum flash_leaf leaf)
{
	struct vdisk_cmd *cmd = vdisk_list_pop(list);

	flash_set_due(flash, flash_leaf(flash, leaf),
		      list->head ? list->head->flash.at_ns : VDISK_NEVER);
	return cmd;
}

/* All units of a read are there. */
static void flash_read_ready(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	at = vdisk_link_carry(&flash->read_link, flash->bps[VDISK_READ],
			      at + flash->p.read_latency_ns, cmd->bytes);
	flash_queue(flash, &flash->reading, FLASH_READ_END, cmd, at);
}

/* Nothing is left to be done for a write, a trim or a flush. */
static void flash_end_soon(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	flash_queue(flash, &flash->ending, FLASH_WRITE_END, cmd,
		    at + flash->p.write_latency_ns);
}

/* A command ends. Those of one instant are in the order of submission. */
static void flash_end(struct flash *flash, struct vdisk_cmd *cmd, u64 at,
		      struct vdisk_list *done)
{
	struct vdisk_cmd **link;

	flash->held--;
	if (!--flash->active) {
		u32 timer = flash_leaf(flash, FLASH_IDLE_TIMER);

		flash->idle_since = at;
		if (flash_due(flash, timer) == VDISK_NEVER)
			flash_set_due(flash, timer, at + FLASH_IDLE_NS);
	}

	if (at != flash->instant_ns || !flash->instant) {
		flash->instant = done->tail;
		flash->instant_ns = at;
	} else if (cmd->seq < flash->instant_seq) {
		link = flash->instant;
		while ((*link)->seq < cmd->seq)
			link = &(*link)->next;
		cmd->next = *link;
		*link = cmd;
		return;
	}
	flash->instant_seq = cmd->seq;
	vdisk_list_add(done, cmd);
}

/* A unit of a command is done. */
static void flash_read_done(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	if (!--cmd->flash.left && !cmd->flash.units)
		flash_read_ready(flash, cmd, at);
}

/* ---- dies: start and end of operations ---- */

static void flash_kick(struct flash *flash, u32 nr)
{
	struct flash_die *die = &flash->dies[nr];

	if (die->kicked || die->state != FLASH_IDLE)
		return;
	die->kicked = true;
	flash->kicks[flash->nr_kicks++] = nr;
}

/* The die is held from a time on; the event follows. */
static void flash_hold(struct flash *flash, struct flash_die *die,
		       enum flash_state state, u64 at)
{
	die->state = state;
	die->since = at;
	die->ops++;
	flash->busy++;
	flash->held_ns -= at;
}

static void flash_release(struct flash *flash, u32 nr, u64 at)
{
	struct flash_die *die = &flash->dies[nr];

	die->state = FLASH_IDLE;
	die->busy_ns += at - die->since;
	flash->busy--;
	flash->held_ns += at;
	flash_set_due(flash, nr, VDISK_NEVER);
	flash_kick(flash, nr);
}

static u64 flash_jitter(const struct flash *flash, const struct flash_die *die,
			u64 ns)
{
	return vdisk_jitter(ns, flash->jitter, die->seed, die->ops);
}

static void flash_read_free(struct flash *flash, u32 nr)
{
	flash->read_slots[nr].next = flash->free_read;
	flash->free_read = nr;
}

/* Takes the first read of a die's queue. */
static u32 flash_read_pop(struct flash *flash, struct flash_die *die)
{
	u32 nr = die->reads;

	die->reads = flash->read_slots[nr].next;
	return nr;
}

/* Starts a sense, unless all that was to be read has been trimmed. */
static bool flash_start_sense(struct flash *flash, u32 nr, u64 at)
{
	struct flash_die *die = &flash->dies[nr];
	u32 row = FLASH_NIL;
	u64 ns = 0;

	die->nr_active = 0;
	die->active = FLASH_NIL;
	while (die->reads != FLASH_NIL && die->nr_active < flash->row) {
		struct flash_read *read = &flash->read_slots[die->reads];
		u32 slot = ftl_lookup(flash->ftl, nr, read->unit);
		u32 taken;

		if (slot != FTL_NONE && row != FLASH_NIL &&
		    slot / flash->row != row)
			break;
		taken = flash_read_pop(flash, die);
		if (slot == FTL_NONE) {
			flash_read_done(flash, read->cmd, at);
			flash_read_free(flash, taken);
			continue;
		}
		if (row == FLASH_NIL) {
			row = slot / flash->row;
			ns = ftl_is_slc(flash->ftl, slot) ?
			     flash->p.slc_read_ns : flash->p.read_ns;
		}
		read->next = die->active;
		die->active = taken;
		die->nr_active++;
	}
	if (!die->nr_active)
		return false;

	flash_hold(flash, die, FLASH_SENSE, at);
	flash_set_due(flash, nr, at + flash_jitter(flash, die, ns));
	return true;
}

static void flash_end_transfer(struct flash *flash, u32 nr, u64 at)
{
	u32 slot = flash->dies[nr].active;

	while (slot != FLASH_NIL) {
		struct flash_read *read = &flash->read_slots[slot];
		u32 next = read->next;

		flash_read_done(flash, read->cmd, at);
		flash_read_free(flash, slot);
		slot = next;
	}
	flash_release(flash, nr, at);
}

static void flash_start_program(struct flash *flash, u32 nr,
				struct ftl_room room, u64 at)
{
	struct flash_die *die = &flash->dies[nr];
	u32 count = min(room.units, die->nr_dirty);
	u32 entry, i;
	u64 ns;

	die->active = die->dirty;
	die->nr_active = count;
	entry = die->dirty;
	for (i = 0; i < count; i++) {
		struct flash_entry *e = &flash->entries[entry];

		e->flying = true;
		ftl_host_write(flash->ftl, nr, e->unit / flash->nr_dies);
		entry = e->next;
	}
	ftl_host_end(flash->ftl, nr);
	die->dirty = entry;
	if (entry == FLASH_NIL)
		die->dirty_tail = FLASH_NIL;
	else
		flash->entries[entry].prev = FLASH_NIL;
	die->nr_dirty -= count;
	die->urgent -= min(die->urgent, count);

	flash->programming++;
	flash_hold(flash, die, FLASH_PROGRAM, at);
	ns = room.slc ? flash->p.slc_program_ns : flash->p.program_ns;
	at = flash_carry_units(flash, nr, at, count);
	flash_set_due(flash, nr, at + flash_jitter(flash, die, ns));
}

static void flash_start_gc(struct flash *flash, u32 nr, enum ftl_pool from,
			   u64 at)
{
	struct flash_die *die = &flash->dies[nr];
	struct ftl_step step = ftl_step(flash->ftl, nr, from);
	u64 ns = 0;

	switch (step.work) {
	case FTL_READ:
		die->nr_active = step.units;
		flash_hold(flash, die, FLASH_GC_SENSE, at);
		ns = step.slc ? flash->p.slc_read_ns : flash->p.read_ns;
		break;
	case FTL_PROGRAM:
		flash_hold(flash, die, FLASH_GC_PROGRAM, at);
		ns = flash->p.program_ns;
		if (!flash->p.copyback)
			at = flash_carry_units(flash, nr, at, flash->row);
		break;
	case FTL_ERASE:
		flash_hold(flash, die, FLASH_ERASE, at);
		ns = flash->p.erase_ns;
		break;
	}
	flash_set_due(flash, nr, at + flash_jitter(flash, die, ns));
}

/* An idle die takes what is next, if there is anything. */
static void flash_die_next(struct flash *flash, u32 nr, u64 at)
{
	struct flash_die *die = &flash->dies[nr];
	struct ftl_room room = {};
	bool program = false;
	bool gc_first = ftl_gc_first(flash->ftl, nr);

	if (die->nr_dirty) {
		room = ftl_host_room(flash->ftl, nr);
		program = room.units &&
			  (die->urgent || die->nr_dirty >= room.units);
	}

	if (die->reads != FLASH_NIL &&
	    (die->streak < FLASH_READS_FIRST || !(program || gc_first)) &&
	    flash_start_sense(flash, nr, at)) {
		die->streak++;
		return;
	}
	die->streak = 0;

	if (gc_first)
		flash_start_gc(flash, nr, FTL_MAIN, at);
	else if (program)
		flash_start_program(flash, nr, room, at);
	else if (ftl_gc_on(flash->ftl, nr))
		flash_start_gc(flash, nr, FTL_MAIN, at);
	else if (flash->idle && ftl_fold_on(flash->ftl, nr))
		flash_start_gc(flash, nr, FTL_SLC, at);
}

/* ---- buffer ---- */

static u32 *flash_bucket(struct flash *flash, u32 unit)
{
	return &flash->hash[hash_32(unit, flash->hash_shift)];
}

/* The newest entry of a unit, FLASH_NIL if the buffer has none. */
static u32 flash_find(struct flash *flash, u32 unit)
{
	u32 entry = *flash_bucket(flash, unit);

	while (entry != FLASH_NIL && flash->entries[entry].unit != unit)
		entry = flash->entries[entry].chain;
	return entry;
}

/* Flushes end whose epochs have left the buffer. */
static void flash_epochs(struct flash *flash, u64 at)
{
	while (flash->oldest != flash->epoch &&
	       !flash->in_epoch[flash->oldest & flash->epoch_mask])
		flash->oldest++;
	/* Epochs wrap. */
	while (flash->flushes.head &&
	       (s32)(flash->flushes.head->flash.epoch - flash->oldest) < 0)
		flash_end_soon(flash, vdisk_list_pop(&flash->flushes), at);
}

/* An entry leaves the buffer: it is stable, or no longer wanted. */
static void flash_forget(struct flash *flash, u32 nr, u64 at)
{
	struct flash_entry *entry = &flash->entries[nr];
	u32 *link = flash_bucket(flash, entry->unit);
	struct vdisk_cmd *owner = entry->owner;

	while (*link != nr)
		link = &flash->entries[*link].chain;
	*link = entry->chain;

	entry->next = flash->free_entry;
	flash->free_entry = nr;
	flash->room++;

	if (owner && !--owner->flash.left && !owner->flash.units)
		flash_end_soon(flash, owner, at);
	flash->in_epoch[entry->epoch & flash->epoch_mask]--;
	flash_epochs(flash, at);
}

static void flash_end_program(struct flash *flash, u32 nr, u64 at)
{
	struct flash_die *die = &flash->dies[nr];
	u32 entry = die->active;
	u32 i;

	for (i = 0; i < die->nr_active; i++) {
		u32 next = flash->entries[entry].next;

		flash_forget(flash, entry, at);
		entry = next;
	}
	flash->programming--;
	flash_release(flash, nr, at);
}

/* All that a die holds in the buffer is to be written. */
static void flash_press(struct flash *flash, u32 nr)
{
	flash->dies[nr].urgent = flash->dies[nr].nr_dirty;
	if (flash->dies[nr].urgent)
		flash_kick(flash, nr);
}

/* A unit enters the buffer, for which there is room. */
static void flash_buffer(struct flash *flash, u32 unit, struct vdisk_cmd *owner)
{
	u32 nr = flash_find(flash, unit);
	struct flash_entry *entry;
	struct flash_die *die;
	u32 *bucket;

	if (nr != FLASH_NIL) {
		entry = &flash->entries[nr];
		if (!entry->flying && !(owner && entry->owner)) {
			if (owner)
				entry->owner = owner;
			flash->merges++;
			flash->room++;
			return;
		}
	}

	nr = flash->free_entry;
	entry = &flash->entries[nr];
	flash->free_entry = entry->next;

	bucket = flash_bucket(flash, unit);
	die = &flash->dies[unit % flash->nr_dies];
	*entry = (struct flash_entry){
		.owner = owner,
		.unit = unit,
		.epoch = flash->epoch,
		.chain = *bucket,
		.next = FLASH_NIL,
		.prev = die->dirty_tail,
	};
	*bucket = nr;
	if (die->dirty_tail != FLASH_NIL)
		flash->entries[die->dirty_tail].next = nr;
	else
		die->dirty = nr;
	die->dirty_tail = nr;
	die->nr_dirty++;
	flash->in_epoch[flash->epoch & flash->epoch_mask]++;
}

/* Drops all of a unit that is not being programmed. */
static void flash_drop(struct flash *flash, u32 unit, u64 at)
{
	struct flash_die *die = &flash->dies[unit % flash->nr_dies];
	u32 nr;

	while ((nr = flash_find(flash, unit)) != FLASH_NIL) {
		struct flash_entry *entry = &flash->entries[nr];

		if (entry->flying)
			return;
		if (entry->prev != FLASH_NIL)
			flash->entries[entry->prev].next = entry->next;
		else
			die->dirty = entry->next;
		if (entry->next != FLASH_NIL)
			flash->entries[entry->next].prev = entry->prev;
		else
			die->dirty_tail = entry->prev;
		die->nr_dirty--;
		die->urgent = min(die->urgent, die->nr_dirty);
		flash_forget(flash, nr, at);
	}
}

/* ---- commands ---- */

/* Issues units of reads to their dies, as long as there are slots. */
static void flash_issue(struct flash *flash, u64 at)
{
	struct vdisk_cmd *cmd = flash->reads.head;
	u32 unit = cmd->flash.unit;

	while (cmd->flash.units) {
		u32 nr = unit % flash->nr_dies;
		struct flash_die *die = &flash->dies[nr];
		u32 slot;

		if (flash_find(flash, unit) != FLASH_NIL) {
			flash->hit_reads++;
		} else if (ftl_lookup(flash->ftl, nr, unit / flash->nr_dies) !=
			   FTL_NONE) {
			slot = flash->free_read;
			if (slot == FLASH_NIL)
				break;
			flash->free_read = flash->read_slots[slot].next;
			flash->read_slots[slot] = (struct flash_read){
				.cmd = cmd,
				.unit = unit / flash->nr_dies,
				.next = FLASH_NIL,
			};
			if (die->reads == FLASH_NIL)
				die->reads = slot;
			else
				flash->read_slots[die->reads_tail].next = slot;
			die->reads_tail = slot;
			cmd->flash.left++;
			flash_kick(flash, nr);
		}
		unit++;
		cmd->flash.units--;
	}
	cmd->flash.unit = unit;
	if (cmd->flash.units)
		return;

	vdisk_list_pop(&flash->reads);
	flash->waiting--;
	if (!cmd->flash.left)
		flash_read_ready(flash, cmd, at);
}

/* Bytes of a command that some of its units cover. */
static u64 flash_bytes(const struct vdisk_cmd *cmd, u32 unit, u32 units)
{
	u64 begin = (u64)unit << FTL_UNIT_SHIFT;
	u64 end = begin + ((u64)units << FTL_UNIT_SHIFT);

	return min(end, cmd->pos + cmd->bytes) - max(begin, cmd->pos);
}

/* The first write that waits sends what there is room for over the link. */
static void flash_cross(struct flash *flash, u64 at)
{
	struct vdisk_cmd *cmd = flash->writes.head;
	u32 units;

	units = min3(cmd->flash.units, flash->room, (u32)FLASH_CHUNK);
	if (!units) {
		flash->stalls += !flash->stalled;
		flash->stalled = true;
		return;
	}
	flash->stalled = false;
	if (!cmd->flash.started) {
		cmd->flash.started = true;
		flash->waiting--;
	}
	flash->crossing = units;
	flash->room -= units;
	at = vdisk_link_carry(&flash->write_link, flash->bps[VDISK_WRITE], at,
			      flash_bytes(cmd, cmd->flash.unit, units));
	flash_set_due(flash, flash_leaf(flash, FLASH_LINK), at);
}

/* What was on the link is in the buffer. */
static void flash_crossed(struct flash *flash, u64 at)
{
	struct vdisk_cmd *cmd = flash->writes.head;
	bool fua = cmd->fua && flash->write_cache;

	flash_set_due(flash, flash_leaf(flash, FLASH_LINK), VDISK_NEVER);
	for (; flash->crossing; flash->crossing--) {
		u32 unit = cmd->flash.unit++;
		u32 nr = unit % flash->nr_dies;

		cmd->flash.units--;
		if (fua)
			cmd->flash.left++;
		flash_buffer(flash, unit, fua ? cmd : NULL);
		if (fua)
			flash_press(flash, nr);
		else
			flash_kick(flash, nr);
	}
	if (cmd->flash.units)
		return;
	vdisk_list_pop(&flash->writes);
	if (!cmd->flash.left)
		flash_end_soon(flash, cmd, at);
}

static void flash_trim(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	/* Only whole units. */
	u32 unit = DIV_ROUND_UP_ULL(cmd->pos, FTL_UNIT_BYTES);
	u32 end = (cmd->pos + cmd->bytes) >> FTL_UNIT_SHIFT;

	for (; unit < end; unit++) {
		if (flash->room < flash->nr_entries)
			flash_drop(flash, unit, at);
		ftl_trim(flash->ftl, unit % flash->nr_dies,
			 unit / flash->nr_dies);
	}
	flash_end_soon(flash, cmd, at);
}

static void flash_flush(struct flash *flash, struct vdisk_cmd *cmd, u64 at)
{
	u32 nr;

	if (!flash->write_cache) {
		flash_end_soon(flash, cmd, at);
		return;
	}
	cmd->flash.epoch = flash->epoch++;
	vdisk_list_add(&flash->flushes, cmd);
	for (nr = 0; nr < flash->nr_dies; nr++)
		flash_press(flash, nr);
	flash_epochs(flash, at);
}

/* The controller has taken a command. */
static void flash_take(struct flash *flash, u64 at)
{
	struct vdisk_cmd *cmd = flash_dequeue(flash, &flash->controller,
					      FLASH_CONTROLLER);

	flash->active++;
	flash->idle = false;
	cmd->flash.left = 0;
	cmd->flash.started = false;
	cmd->flash.unit = cmd->pos >> FTL_UNIT_SHIFT;
	cmd->flash.units = ((cmd->pos + cmd->bytes + FTL_UNIT_BYTES - 1) >>
			    FTL_UNIT_SHIFT) - cmd->flash.unit;
	switch (cmd->op) {
	case VDISK_READ:
		vdisk_list_add(&flash->reads, cmd);
		break;
	case VDISK_WRITE:
		vdisk_list_add(&flash->writes, cmd);
		break;
	case VDISK_TRIM:
		flash->waiting--;
		flash_trim(flash, cmd, at);
		break;
	default:
		flash->waiting--;
		flash_flush(flash, cmd, at);
		break;
	}
}

/* Nothing was asked for long, if it is still so. */
static void flash_idle(struct flash *flash, u64 at)
{
	u32 timer = flash_leaf(flash, FLASH_IDLE_TIMER);
	u32 nr;

	if (flash->active) {
		flash_set_due(flash, timer, VDISK_NEVER);
		return;
	}
	if (at < flash->idle_since + FLASH_IDLE_NS) {
		flash_set_due(flash, timer, flash->idle_since + FLASH_IDLE_NS);
		return;
	}
	flash_set_due(flash, timer, VDISK_NEVER);
	flash->idle = true;
	for (nr = 0; nr < flash->nr_dies; nr++) {
		if (flash->write_cache)
			flash_press(flash, nr);
		flash_kick(flash, nr);
	}
}

/*
 * A write waits for room. A buffer smaller than a row for every die may hold
 * nothing but parts of rows: then the longest part is written.
 */
static void flash_unblock(struct flash *flash)
{
	u32 nr, longest = 0;

	if (flash->programming)
		return;
	for (nr = 0; nr < flash->nr_dies; nr++) {
		struct flash_die *die = &flash->dies[nr];

		if (die->urgent || die->nr_dirty >= flash->row)
			return;
		if (die->nr_dirty > flash->dies[longest].nr_dirty)
			longest = nr;
	}
	flash_press(flash, longest);
}

/* ---- the model's operations ---- */

/* Whatever an event has made possible. */
static void flash_settle(struct flash *flash, u64 at)
{
	u32 i;

	for (;;) {
		while (flash->reads.head) {
			u32 units = flash->reads.head->flash.units;
			struct vdisk_cmd *cmd = flash->reads.head;

			flash_issue(flash, at);
			if (flash->reads.head == cmd &&
			    cmd->flash.units == units)
				break;
		}
		if (flash->writes.head && !flash->crossing) {
			flash_cross(flash, at);
			if (!flash->crossing && !flash->nr_kicks)
				flash_unblock(flash);
		}
		if (!flash->nr_kicks)
			return;
		for (i = 0; i < flash->nr_kicks; i++) {
			flash->dies[flash->kicks[i]].kicked = false;
			flash_die_next(flash, flash->kicks[i], at);
		}
		flash->nr_kicks = 0;
	}
}

/* The event of a die. */
static void flash_die_event(struct flash *flash, u32 nr, u64 at)
{
	struct flash_die *die = &flash->dies[nr];

	switch (die->state) {
	case FLASH_SENSE:
		die->state = FLASH_TRANSFER;
		flash_set_due(flash, nr,
			      flash_carry_units(flash, nr, at, die->nr_active));
		break;
	case FLASH_TRANSFER:
		flash_end_transfer(flash, nr, at);
		break;
	case FLASH_PROGRAM:
		flash_end_program(flash, nr, at);
		break;
	case FLASH_GC_SENSE:
		if (!flash->p.copyback) {
			die->state = FLASH_GC_TRANSFER;
			flash_set_due(flash, nr,
				      flash_carry_units(flash, nr, at,
							die->nr_active));
			break;
		}
		fallthrough;
	case FLASH_GC_TRANSFER:
	case FLASH_GC_PROGRAM:
	case FLASH_ERASE:
	case FLASH_IDLE:
		flash_release(flash, nr, at);
		break;
	}
}

static void flash_event(struct flash *flash, u32 leaf, u64 at,
			struct vdisk_list *done)
{
	if (leaf < flash->nr_dies) {
		flash_die_event(flash, leaf, at);
		return;
	}
	switch ((enum flash_leaf)(leaf - flash->nr_dies)) {
	case FLASH_CONTROLLER:
		flash_take(flash, at);
		break;
	case FLASH_LINK:
		flash_crossed(flash, at);
		break;
	case FLASH_READ_END:
		flash_end(flash, flash_dequeue(flash, &flash->reading,
					       FLASH_READ_END), at, done);
		break;
	case FLASH_WRITE_END:
		flash_end(flash, flash_dequeue(flash, &flash->ending,
					       FLASH_WRITE_END), at, done);
		break;
	default:
		flash_idle(flash, at);
		break;
	}
}

/* When a command can end next: see the top. */
static u64 flash_next(const struct flash *flash)
{
	u64 latency = min(flash->p.read_latency_ns, flash->p.write_latency_ns);
	u64 first = flash->tree[1].due;

	if (first == VDISK_NEVER)
		return first;
	return min3(flash_due(flash, flash_leaf(flash, FLASH_READ_END)),
		    flash_due(flash, flash_leaf(flash, FLASH_WRITE_END)),
		    first + latency);
}

static u64 flash_submit(struct vdisk_model *model, struct vdisk_cmd *cmd,
			u64 now)
{
	struct flash *flash = to_flash(model);
	u64 at = max(now, flash->controller_free);

	cmd->seq = flash->seq++;
	flash->held++;
	if (++flash->waiting > flash->waiting_max)
		flash->waiting_max = flash->waiting;
	at += vdisk_jitter(flash->p.cmd_ns, flash->jitter, flash->seed,
			   cmd->seq);
	flash->controller_free = at;
	flash_queue(flash, &flash->controller, FLASH_CONTROLLER, cmd, at);
	return flash_next(flash);
}

static u64 flash_run(struct vdisk_model *model, u64 now,
		     struct vdisk_list *done)
{
	struct flash *flash = to_flash(model);

	flash->instant = NULL;
	while (flash->tree[1].due <= now) {
		u64 at = flash->tree[1].due;

		flash_event(flash, flash->tree[1].leaf, at, done);
		/* What came at once is looked at together. */
		if (flash->tree[1].due != at ||
		    flash->tree[1].leaf !=
		    flash_leaf(flash, FLASH_CONTROLLER))
			flash_settle(flash, at);
	}
	return flash_next(flash);
}

static void flash_set(struct flash *flash, const struct vdisk_params *params)
{
	flash->p = params->flash;
	flash->bps[VDISK_READ] = params->bps[VDISK_READ];
	flash->bps[VDISK_WRITE] = params->bps[VDISK_WRITE];
	flash->write_cache = params->write_cache;
	flash->jitter = params->jitter;
}

static u64 flash_change(struct vdisk_model *model,
			const struct vdisk_params *params, u64 now)
{
	struct flash *flash = to_flash(model);

	flash_set(flash, params);
	ftl_set_wear_gap(flash->ftl, flash->p.wear_gap);
	return flash_next(flash);
}

static void flash_stats(struct vdisk_model *model, u64 now,
			struct vdisk_stats *stats)
{
	struct flash *flash = to_flash(model);

	stats->in_service = flash->held - flash->waiting;
	stats->waiting = flash->waiting;
	stats->waiting_max = flash->waiting_max;
	stats->busy_ns = flash->held_ns + flash->busy * now;
}

static u32 flash_counters(struct vdisk_model *model, u64 now,
			  struct vdisk_counter *out, u32 room)
{
	struct flash *flash = to_flash(model);
	const struct ftl_counters *ftl = ftl_counters(flash->ftl);
	u64 busy_sum = 0, busy_min = U64_MAX, busy_max = 0;
	u32 wear_min, wear_max, i;

	ftl_wear(flash->ftl, &wear_min, &wear_max);
	for (i = 0; i < flash->nr_dies; i++) {
		const struct flash_die *die = &flash->dies[i];
		u64 busy = die->busy_ns;

		if (die->state != FLASH_IDLE)
			busy += now - die->since;
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
		{ "buffer_reads", flash->hit_reads },
		{ "buffer_merges", flash->merges },
		{ "buffer_used", flash->nr_entries - flash->room },
		{ "write_stalls", flash->stalls },
		{ "die_busy_ns", busy_sum },
		{ "die_busy_min_ns", busy_min },
		{ "die_busy_max_ns", busy_max },
		{ "flash_pages", ftl_flash_units(flash->ftl) },
		{ "map_bytes", ftl_memory(flash->ftl) },
	};

	room = min_t(u32, room, ARRAY_SIZE(counters));
	memcpy(out, counters, room * sizeof(*out));
	return room;
}

static void flash_destroy(struct vdisk_model *model)
{
	struct flash *flash = to_flash(model);

	kvfree(flash->kicks);
	kvfree(flash->read_slots);
	kvfree(flash->in_epoch);
	kvfree(flash->hash);
	kvfree(flash->entries);
	kvfree(flash->channels);
	kvfree(flash->dies);
	kvfree(flash->tree);
	if (flash->ftl)
		ftl_destroy(flash->ftl);
	kfree(flash);
}

/* What must hold between parameters, and what follows for the flash. */
static int flash_geometry(const struct vdisk_params *params,
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
		.page = page,
		.row = page * p->planes,
		.block = block,
		.spare = p->spare,
		.slc = DIV_ROUND_UP_ULL(p->slc, FTL_UNIT_BYTES),
		.gc_low = p->gc_low,
		.gc_high = p->gc_high,
	};
	return 0;
}

static int flash_alloc(struct flash *flash, u32 max_cmds)
{
	u32 dies = flash->nr_dies;
	u32 reads = dies * FLASH_READS_A_DIE;
	u32 epochs = roundup_pow_of_two(max_cmds + 2);

	flash->first_leaf = roundup_pow_of_two(dies + FLASH_NR_LEAVES);
	flash->epoch_mask = epochs - 1;
	/* At least one bit, for hash_32(). */
	flash->hash_shift = max(ilog2(roundup_pow_of_two(flash->nr_entries)),
				1);

	flash->tree = kvmalloc_array(2 * flash->first_leaf,
				     sizeof(*flash->tree), GFP_KERNEL);
	flash->dies = kvcalloc(dies, sizeof(*flash->dies), GFP_KERNEL);
	flash->channels = kvcalloc(flash->p.channels, sizeof(*flash->channels),
				   GFP_KERNEL);
	flash->entries = kvcalloc(flash->nr_entries, sizeof(*flash->entries),
				  GFP_KERNEL);
	flash->hash = kvmalloc_array(1U << flash->hash_shift,
				     sizeof(*flash->hash), GFP_KERNEL);
	flash->in_epoch = kvcalloc(epochs, sizeof(*flash->in_epoch),
				   GFP_KERNEL);
	flash->read_slots = kvcalloc(reads, sizeof(*flash->read_slots),
				     GFP_KERNEL);
	flash->kicks = kvcalloc(dies, sizeof(*flash->kicks), GFP_KERNEL);
	if (!flash->tree || !flash->dies || !flash->channels ||
	    !flash->entries || !flash->hash || !flash->in_epoch ||
	    !flash->read_slots || !flash->kicks)
		return -ENOMEM;
	return 0;
}

static void flash_init(struct flash *flash)
{
	u32 reads = flash->nr_dies * FLASH_READS_A_DIE;
	u32 i;

	vdisk_list_init(&flash->controller);
	vdisk_list_init(&flash->reads);
	vdisk_list_init(&flash->writes);
	vdisk_list_init(&flash->flushes);
	vdisk_list_init(&flash->reading);
	vdisk_list_init(&flash->ending);

	for (i = 0; i < 2 * flash->first_leaf; i++) {
		flash->tree[i].due = VDISK_NEVER;
		flash->tree[i].leaf = i >= flash->first_leaf ?
				      i - flash->first_leaf : 0;
	}
	for (i = 0; i < flash->nr_dies; i++) {
		flash->dies[i].reads = FLASH_NIL;
		flash->dies[i].dirty = FLASH_NIL;
		flash->dies[i].dirty_tail = FLASH_NIL;
		flash->dies[i].seed = vdisk_random(flash->seed, i);
	}
	for (i = 0; i < flash->nr_entries; i++)
		flash->entries[i].next = i + 1 < flash->nr_entries ?
					 i + 1 : FLASH_NIL;
	for (i = 0; i < 1U << flash->hash_shift; i++)
		flash->hash[i] = FLASH_NIL;
	for (i = 0; i < reads; i++)
		flash->read_slots[i].next = i + 1 < reads ? i + 1 : FLASH_NIL;
	flash->room = flash->nr_entries;
}

static struct vdisk_model *flash_create(const struct vdisk_params *params,
					u32 max_cmds)
{
	const struct vdisk_flash_params *p = &params->flash;
	struct ftl_geometry geo;
	struct flash *flash;
	int err;

	err = flash_geometry(params, &geo);
	if (err)
		return ERR_PTR(err);

	flash = kzalloc(sizeof(*flash), GFP_KERNEL);
	if (!flash)
		return ERR_PTR(-ENOMEM);

	flash->model.ops = &vdisk_flash_ops;
	flash_set(flash, params);
	flash->seed = params->seed;
	flash->row = geo.row;
	flash->nr_dies = geo.dies;
	flash->nr_entries = max_t(u64, p->buffer >> FTL_UNIT_SHIFT, 1);
	err = flash_alloc(flash, max_cmds);
	if (err)
		goto destroy;
	flash_init(flash);

	flash->ftl = ftl_create(&geo, p->wear_gap);
	if (IS_ERR(flash->ftl)) {
		err = PTR_ERR(flash->ftl);
		flash->ftl = NULL;
		goto destroy;
	}
	if (p->precondition != VDISK_PRECONDITION_NONE)
		err = ftl_precondition(flash->ftl, p->fill,
				       p->precondition ==
				       VDISK_PRECONDITION_RANDOM, params->seed);
	if (!err)
		return &flash->model;

destroy:
	flash_destroy(&flash->model);
	return ERR_PTR(err);
}

const struct vdisk_model_ops vdisk_flash_ops = {
	.name = "flash",
	.create = flash_create,
	.destroy = flash_destroy,
	.submit = flash_submit,
	.run = flash_run,
	.change = flash_change,
	.stats = flash_stats,
	.counters = flash_counters,
};
