// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read-ahead of the model "flash".
 *
 * A read that begins at the end of an earlier read starts a stream. A read that
 * begins at the end of a stream, or in the units read ahead for it, continues
 * the stream. A stream is read ahead by as much as it has read so far, up to
 * the number of its slots: so two adjacent reads by chance cost the dies two
 * units, and not all slots. A new stream replaces the least recently used
 * stream, but only if that has missed FLASH_STREAM_MISSES_MIN reads: when there are
 * more streams than can be tracked, some of them stay tracked, instead of each
 * in turn without a hit. Reads that continue no stream are kept in a ring of
 * their own, so that random reads evict no stream.
 *
 * Read-ahead is queued at the dies behind the command's own units, as ordinary
 * reads: it keeps dies and channels busy, and may come too late or be useless.
 * Unit u of a stream has slot u % room of it. A read whose unit is being read
 * ahead waits for it.
 *
 * Units that are in the write buffer, or unmapped, are not read ahead. A write
 * or a trim invalidates a unit that has been read ahead; a unit that is still
 * being read serves the read that waits for it, which came before.
 */
#include <linux/errno.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "flash_ahead.h"
#include "flash_buffer.h"
#include "flash_die.h"
#include "flash_host.h"
#include "flash_model.h"
#include "ftl.h"
#include "model.h"

/* Initialize the read-ahead. The caller destroys it, even if that failed. */
int flash_ahead_init(struct flash_ahead *ahead, u32 room, u32 units)
{
	u32 i;

	ahead->room = room;
	ahead->units = units;
	/* No read begins at this position. */
	for (i = 0; i < FLASH_NR_RECENT; i++)
		ahead->recent_ends[i] = U64_MAX;
	if (!room)
		return 0;
	ahead->slots = kvcalloc(room, FLASH_NR_STREAMS * sizeof(*ahead->slots),
				GFP_KERNEL);
	return ahead->slots ? 0 : -ENOMEM;
}

/* Free the memory of the read-ahead. */
void flash_ahead_destroy(struct flash_ahead *ahead)
{
	kvfree(ahead->slots);
}

/* Return the index of the slot of a stream for a unit. */
static u32 flash_ahead_slot_index(const struct flash_ahead *ahead, u32 stream,
				  u32 unit)
{
	return stream * ahead->room + unit % ahead->room;
}

/*
 * Serve a unit of a read from a slot, or have the read wait for a slot's unit.
 * Return false if the unit has to be read: a slot has room for one waiting read.
 */
bool flash_ahead_serve(struct flash_ahead *ahead, struct vdisk_cmd *cmd,
		       u32 unit)
{
	struct flash_ahead_slot *slot;
	u32 i;

	if (!ahead->nr_used)
		return false;
	for (i = 0; i < FLASH_NR_STREAMS; i++) {
		slot = &ahead->slots[flash_ahead_slot_index(ahead, i, unit)];
		if (slot->unit != unit)
			continue;
		if (slot->state == FLASH_AHEAD_READY) {
			ahead->nr_hits++;
			return true;
		}
		if (slot->state == FLASH_AHEAD_READING && !slot->cmd) {
			slot->cmd = cmd;
			cmd->flash.nr_pending++;
			ahead->nr_hits++;
			return true;
		}
	}
	return false;
}

/* Return the stream that a read continues or starts, or NULL. */
static struct flash_stream *flash_ahead_find_stream(struct flash_ahead *ahead,
						    u64 pos)
{
	struct flash_stream *stream, *last = ahead->streams;
	u32 i;

	for (i = 0; i < FLASH_NR_STREAMS; i++) {
		stream = &ahead->streams[i];
		if (stream->last_read && pos >= stream->next_pos &&
		    pos <= max(stream->next_pos,
			       (u64)stream->ahead_end << FTL_UNIT_SHIFT))
			return stream;
		if (stream->last_read < last->last_read)
			last = stream;
	}
	for (i = 0; i < FLASH_NR_RECENT; i++) {
		if (ahead->recent_ends[i] != pos)
			continue;
		ahead->recent_ends[i] = U64_MAX;
		if (last->last_read &&
		    ahead->nr_reads - last->last_read < FLASH_STREAM_MISSES_MIN)
			return NULL;
		last->ahead_end = 0;
		last->run_units = 0;
		return last;
	}
	return NULL;
}

/* Queue the next read-ahead of a stream at the dies. */
static void flash_ahead_queue_reads(struct flash *flash,
				    struct flash_stream *stream)
{
	struct flash_ahead *ahead = &flash->ahead;
	u32 dies = flash->dies.nr;
	u32 next = stream->next_pos >> FTL_UNIT_SHIFT;
	u32 unit = max(stream->ahead_end, next);
	u32 end = min(next + stream->run_units, ahead->units);

	for (; unit < end; unit++) {
		u32 nr = flash_ahead_slot_index(ahead, stream - ahead->streams,
						unit);
		struct flash_ahead_slot *slot = &ahead->slots[nr];

		/* The slot's earlier unit is still being read. */
		if (slot->state == FLASH_AHEAD_READING ||
		    slot->state == FLASH_AHEAD_STALE)
			break;
		if (slot->state == FLASH_AHEAD_READY) {
			slot->state = FLASH_AHEAD_EMPTY;
			ahead->nr_used--;
		}
		if (flash_buffer_find(&flash->buffer, unit) != FLASH_NIL ||
		    ftl_lookup(flash->ftl, unit % dies, unit / dies) ==
			    FTL_NONE)
			continue;
		if (!flash_die_queue_read(&flash->dies, NULL, nr, unit % dies,
					  unit / dies))
			break;
		slot->unit = unit;
		slot->state = FLASH_AHEAD_READING;
		ahead->nr_used++;
		ahead->nr_asked++;
	}
	stream->ahead_end = unit;
}

/* Update streams after a read has issued all of its units; read ahead. */
void flash_ahead_update(struct flash *flash, const struct vdisk_cmd *cmd)
{
	struct flash_ahead *ahead = &flash->ahead;
	u64 end = cmd->pos + cmd->bytes;
	struct flash_stream *stream;

	if (!ahead->room)
		return;
	ahead->nr_reads++;
	stream = flash_ahead_find_stream(ahead, cmd->pos);
	if (!stream) {
		ahead->recent_ends[ahead->oldest_recent] = end;
		ahead->oldest_recent =
			(ahead->oldest_recent + 1) % FLASH_NR_RECENT;
		return;
	}
	/* Count the read that started the stream, too, as equally long. */
	if (!stream->run_units)
		stream->run_units = DIV_ROUND_UP(cmd->bytes, FTL_UNIT_BYTES);
	stream->run_units = min(stream->run_units + DIV_ROUND_UP(cmd->bytes, FTL_UNIT_BYTES),
				ahead->room);
	stream->next_pos = end;
	stream->last_read = ahead->nr_reads;
	flash_ahead_queue_reads(flash, stream);
}

/* A unit has been read ahead. */
void flash_ahead_end_read(struct flash *flash, u32 nr, u64 at)
{
	struct flash_ahead *ahead = &flash->ahead;
	struct flash_ahead_slot *slot = &ahead->slots[nr];
	struct vdisk_cmd *cmd = slot->cmd;

	slot->cmd = NULL;
	if (slot->state == FLASH_AHEAD_STALE) {
		slot->state = FLASH_AHEAD_EMPTY;
		ahead->nr_used--;
	} else {
		slot->state = FLASH_AHEAD_READY;
	}
	if (cmd)
		flash_end_count_unit(flash, cmd, at);
}

/* Invalidate a unit that is written or trimmed. */
void flash_ahead_invalidate(struct flash_ahead *ahead, u32 unit)
{
	u32 i;

	if (!ahead->nr_used)
		return;
	for (i = 0; i < FLASH_NR_STREAMS; i++) {
		struct flash_ahead_slot *slot;

		slot = &ahead->slots[flash_ahead_slot_index(ahead, i, unit)];
		if (slot->unit != unit)
			continue;
		if (slot->state == FLASH_AHEAD_READING) {
			slot->state = FLASH_AHEAD_STALE;
		} else if (slot->state == FLASH_AHEAD_READY) {
			slot->state = FLASH_AHEAD_EMPTY;
			ahead->nr_used--;
		}
	}
}
