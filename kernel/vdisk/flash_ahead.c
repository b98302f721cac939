// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read-ahead of the model "flash".
 *
 * A read that begins at the end of an earlier read starts a stream. A read that
 * begins at the end of a stream, or in the units read ahead for it, continues
 * the stream. A stream is read ahead by as much as it has read so far, up to
 * the number of its slots: so two adjacent reads by chance cost the dies two
 * units, and not all slots. A new stream replaces the least recently used
 * stream, but only if that has missed FLASH_STREAM_AGE reads: when there are
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
	for (i = 0; i < FLASH_RECENT; i++)
		ahead->recent[i] = U64_MAX;
	if (!room)
		return 0;
	ahead->slot = kvcalloc(room, FLASH_STREAMS * sizeof(*ahead->slot),
			       GFP_KERNEL);
	return ahead->slot ? 0 : -ENOMEM;
}

/* Free the memory of the read-ahead. */
void flash_ahead_destroy(struct flash_ahead *ahead)
{
	kvfree(ahead->slot);
}

/* Return the index of the slot of a stream for a unit. */
static u32 slot_of(const struct flash_ahead *ahead, u32 stream, u32 unit)
{
	return stream * ahead->room + unit % ahead->room;
}

/*
 * Serve a unit of a read from a slot, or have the read wait for a slot's unit.
 * Return false if the unit has to be read: a slot has room for one waiting read.
 */
bool flash_ahead_take(struct flash_ahead *ahead, struct vdisk_cmd *cmd,
		      u32 unit)
{
	struct flash_ahead_slot *slot;
	u32 i;

	if (!ahead->used)
		return false;
	for (i = 0; i < FLASH_STREAMS; i++) {
		slot = &ahead->slot[slot_of(ahead, i, unit)];
		if (slot->unit != unit)
			continue;
		if (slot->state == FLASH_AHEAD_THERE) {
			ahead->hits++;
			return true;
		}
		if (slot->state == FLASH_AHEAD_COMING && !slot->cmd) {
			slot->cmd = cmd;
			cmd->flash.left++;
			ahead->hits++;
			return true;
		}
	}
	return false;
}

/* Return the stream that a read continues or starts, or NULL. */
static struct flash_stream *find_stream(struct flash_ahead *ahead, u64 pos)
{
	struct flash_stream *stream, *last = ahead->stream;
	u32 i;

	for (i = 0; i < FLASH_STREAMS; i++) {
		stream = &ahead->stream[i];
		if (stream->used && pos >= stream->next &&
		    pos <= max(stream->next,
			       (u64)stream->ahead << FTL_UNIT_SHIFT))
			return stream;
		if (stream->used < last->used)
			last = stream;
	}
	for (i = 0; i < FLASH_RECENT; i++) {
		if (ahead->recent[i] != pos)
			continue;
		ahead->recent[i] = U64_MAX;
		if (last->used && ahead->reads - last->used < FLASH_STREAM_AGE)
			return NULL;
		last->ahead = 0;
		last->run = 0;
		return last;
	}
	return NULL;
}

/* Queue the next read-ahead of a stream at the dies. */
static void ask(struct flash *flash, struct flash_stream *stream)
{
	struct flash_ahead *ahead = &flash->ahead;
	u32 dies = flash->dies.nr;
	u32 next = stream->next >> FTL_UNIT_SHIFT;
	u32 unit = max(stream->ahead, next);
	u32 end = min(next + stream->run, ahead->units);

	for (; unit < end; unit++) {
		u32 nr = slot_of(ahead, stream - ahead->stream, unit);
		struct flash_ahead_slot *slot = &ahead->slot[nr];

		/* The slot's earlier unit is still being read. */
		if (slot->state == FLASH_AHEAD_COMING ||
		    slot->state == FLASH_AHEAD_STALE)
			break;
		if (slot->state == FLASH_AHEAD_THERE) {
			slot->state = FLASH_AHEAD_EMPTY;
			ahead->used--;
		}
		if (flash_find(&flash->buffer, unit) != FLASH_NIL ||
		    ftl_lookup(flash->ftl, unit % dies, unit / dies) ==
		    FTL_NONE)
			continue;
		if (!flash_die_read(&flash->dies, NULL, nr, unit % dies,
				    unit / dies))
			break;
		slot->unit = unit;
		slot->state = FLASH_AHEAD_COMING;
		ahead->used++;
		ahead->asked++;
	}
	stream->ahead = unit;
}

/* Update streams after a read has issued all of its units; read ahead. */
void flash_ahead_follow(struct flash *flash, const struct vdisk_cmd *cmd)
{
	struct flash_ahead *ahead = &flash->ahead;
	u64 end = cmd->pos + cmd->bytes;
	struct flash_stream *stream;

	if (!ahead->room)
		return;
	ahead->reads++;
	stream = find_stream(ahead, cmd->pos);
	if (!stream) {
		ahead->recent[ahead->oldest] = end;
		ahead->oldest = (ahead->oldest + 1) % FLASH_RECENT;
		return;
	}
	/* Count the read that started the stream, too, as equally long. */
	if (!stream->run)
		stream->run = DIV_ROUND_UP(cmd->bytes, FTL_UNIT_BYTES);
	stream->run = min(stream->run + DIV_ROUND_UP(cmd->bytes,
						     FTL_UNIT_BYTES),
			  ahead->room);
	stream->next = end;
	stream->used = ahead->reads;
	ask(flash, stream);
}

/* A unit has been read ahead. */
void flash_ahead_done(struct flash *flash, u32 nr, u64 at)
{
	struct flash_ahead *ahead = &flash->ahead;
	struct flash_ahead_slot *slot = &ahead->slot[nr];
	struct vdisk_cmd *cmd = slot->cmd;

	slot->cmd = NULL;
	if (slot->state == FLASH_AHEAD_STALE) {
		slot->state = FLASH_AHEAD_EMPTY;
		ahead->used--;
	} else {
		slot->state = FLASH_AHEAD_THERE;
	}
	if (cmd)
		flash_read_done(flash, cmd, at);
}

/* Invalidate a unit that is written or trimmed. */
void flash_ahead_forget(struct flash_ahead *ahead, u32 unit)
{
	u32 i;

	if (!ahead->used)
		return;
	for (i = 0; i < FLASH_STREAMS; i++) {
		struct flash_ahead_slot *slot;

		slot = &ahead->slot[slot_of(ahead, i, unit)];
		if (slot->unit != unit)
			continue;
		if (slot->state == FLASH_AHEAD_COMING) {
			slot->state = FLASH_AHEAD_STALE;
		} else if (slot->state == FLASH_AHEAD_THERE) {
			slot->state = FLASH_AHEAD_EMPTY;
			ahead->used--;
		}
	}
}
