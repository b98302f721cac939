// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cache of a hard disk: segments of read data, and pieces to be written.
 * hdd.c explains their use.
 */
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/slab.h>

#include "hdd.h"
#include "hdd_arm.h"
#include "hdd_cache.h"
#include "hdd_geo.h"
#include "hdd_model.h"
#include "model.h"

static void hdd_cache_init_reads(struct hdd_read_cache *cache, u64 half,
				 u64 readahead)
{
	cache->readahead_sectors = readahead;
	if (!half)
		return;
	/* Room for a stream's past sectors and for its read-ahead. */
	cache->segment_sectors_max =
		clamp(2 * readahead, max(half / HDD_SEGMENTS_MAX, 1), half);
	cache->readahead_sectors = min(readahead, cache->segment_sectors_max);
	cache->nr_segments = min(div64_u64(half, cache->segment_sectors_max),
				 HDD_SEGMENTS_MAX);
}

/* Create an empty cache. The caller destroys it, even if that failed. */
int hdd_cache_init(struct hdd *hdd, const struct vdisk_params *params)
{
	struct hdd_write_cache *writes = &hdd->writes;
	u64 half = div_u64(params->hdd.cache, 2 * HDD_SECTOR_BYTES);
	u64 i;

	hdd_cache_init_reads(&hdd->reads, half,
			     div_u64(params->hdd.readahead, HDD_SECTOR_BYTES));

	writes->pieces = RB_ROOT;
	vdisk_list_init(&writes->waiting);
	if (params->write_cache)
		writes->dirty_sectors_max = half;
	writes->all_pieces = kvcalloc(params->hdd.write_pieces,
				      sizeof(*writes->all_pieces), GFP_KERNEL);
	if (!writes->all_pieces)
		return -ENOMEM;
	for (i = 0; i < params->hdd.write_pieces; i++) {
		writes->all_pieces[i].free = writes->free;
		writes->free = &writes->all_pieces[i];
		writes->nr_free++;
	}
	return 0;
}

/* Free the memory of the cache. */
void hdd_cache_destroy(struct hdd *hdd)
{
	kvfree(hdd->writes.all_pieces);
}

/* The read cache. */

/* Use a segment, and drop its oldest sectors if it has become too long. */
void hdd_segment_trim(struct hdd_read_cache *cache, struct hdd_segment *segment)
{
	if (segment->end - segment->lba > cache->segment_sectors_max)
		segment->lba = segment->end - cache->segment_sectors_max;
	segment->last_use = ++cache->nr_uses;
}

/* Add a command's sectors to the cache. Read-ahead continues at their end. */
void hdd_segment_add(struct hdd *hdd, u64 lba, u64 end)
{
	struct hdd_read_cache *cache = &hdd->reads;
	struct hdd_segment *segment = NULL, *oldest = &cache->segments[0];
	u32 i;

	if (!cache->nr_segments)
		return;

	for (i = 0; i < cache->nr_segments && !segment; i++) {
		struct hdd_segment *one = &cache->segments[i];

		if (one->last_use < oldest->last_use)
			oldest = one;
		if (lba >= one->lba && lba <= one->end)
			segment = one;
	}
	if (!segment) {
		segment = oldest;
		segment->lba = lba;
		segment->end = lba;
	}
	segment->end = max(segment->end, end);
	hdd_segment_trim(cache, segment);
	hdd->arm.stream = segment;
	hdd->arm.ahead_end_lba =
		min(segment->end + cache->readahead_sectors, hdd->sectors);
}

/*
 * Return whether a read is in the cache. If only its front is, the read is
 * shortened to the rest.
 */
bool hdd_cache_has_read(struct hdd *hdd, struct vdisk_hdd_cmd *cmd)
{
	struct hdd_read_cache *cache = &hdd->reads;
	struct hdd_segment *segment;
	u32 i;

	for (i = 0; i < cache->nr_segments; i++) {
		segment = &cache->segments[i];
		if (cmd->lba < segment->lba || cmd->lba >= segment->end)
			continue;
		segment->last_use = ++cache->nr_uses;
		if (cmd->end > segment->end) {
			cmd->lba = segment->end;
			return false;
		}
		if (segment == hdd->arm.stream)
			hdd_arm_extend_ahead(hdd, cmd->end);
		return true;
	}
	return false;
}

/* The write cache. */

/* Return the first piece that ends at a sector or behind it. */
struct hdd_piece *hdd_piece_find(struct hdd_write_cache *cache, u64 lba)
{
	struct rb_node *node = cache->pieces.rb_node;
	struct hdd_piece *found = NULL;

	while (node) {
		struct hdd_piece *piece = rb_entry(node, struct hdd_piece,
						   node);

		if (piece->end >= lba) {
			found = piece;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

struct hdd_piece *hdd_piece_next(struct hdd_piece *piece)
{
	return rb_entry_safe(rb_next(&piece->node), struct hdd_piece, node);
}

struct hdd_piece *hdd_piece_prev(struct hdd_piece *piece)
{
	return rb_entry_safe(rb_prev(&piece->node), struct hdd_piece, node);
}

/* Remove a piece from the tree and free it. */
void hdd_piece_free(struct hdd_write_cache *cache, struct hdd_piece *piece)
{
	rb_erase(&piece->node, &cache->pieces);
	piece->free = cache->free;
	cache->free = piece;
	cache->nr_free++;
}

/*
 * Add a write's sectors to the tree. They have been counted, with a piece;
 * sectors that other pieces hold as well are uncounted.
 */
void hdd_piece_add(struct hdd *hdd, u64 lba, u64 end)
{
	struct hdd_write_cache *cache = &hdd->writes;
	struct rb_node **link = &cache->pieces.rb_node, *parent = NULL;
	struct hdd_piece *piece, *next;
	u64 sum = end - lba;

	for (piece = hdd_piece_find(cache, lba); piece && piece->lba <= end;
	     piece = next) {
		next = hdd_piece_next(piece);
		sum += piece->end - piece->lba;
		lba = min(lba, piece->lba);
		end = max(end, piece->end);
		hdd_piece_free(cache, piece);
	}
	cache->dirty_sectors -= sum - (end - lba);

	/* The write's reserved piece, or a piece just freed. */
	piece = cache->free;
	cache->free = piece->free;
	piece->lba = lba;
	piece->end = end;
	piece->place = hdd_geo_find_place(&hdd->geo, lba);
	while (*link) {
		parent = *link;
		if (lba < rb_entry(parent, struct hdd_piece, node)->lba)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&piece->node, parent, link);
	rb_insert_color(&piece->node, &cache->pieces);
}

/* Return whether a read lies within data to be written, or being written. */
bool hdd_cache_has_write(struct hdd *hdd, const struct vdisk_hdd_cmd *cmd)
{
	struct hdd_piece *piece = hdd_piece_find(&hdd->writes, cmd->end);
	const struct hdd_arm *arm = &hdd->arm;

	if (arm->task == HDD_DESTAGE && cmd->lba >= arm->pass.from &&
	    cmd->end <= arm->pass.to)
		return true;
	return piece && piece->lba <= cmd->lba;
}

/* Return whether the cache has room for a write. */
static bool hdd_cache_has_room(const struct hdd_write_cache *cache,
			       const struct vdisk_cmd *cmd)
{
	u64 sectors = cmd->hdd.end - cmd->hdd.lba;

	/* A write larger than the cache passes when the cache is empty. */
	return cache->nr_free &&
	       (!cache->dirty_sectors ||
		cache->dirty_sectors + sectors <= cache->dirty_sectors_max);
}

/* Reserve room for a write; its data begin to cross the link. */
static void hdd_cache_reserve(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	hdd->writes.nr_free--;
	hdd->writes.dirty_sectors += cmd->hdd.end - cmd->hdd.lba;
	hdd_link_send_write(hdd, cmd, at);
}

/* Admit a write, or have it wait for room. Return whether it is admitted. */
bool hdd_cache_admit(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at)
{
	struct hdd_write_cache *cache = &hdd->writes;

	if (cache->waiting.head || !hdd_cache_has_room(cache, cmd)) {
		vdisk_list_add(&cache->waiting, cmd);
		return false;
	}
	hdd_cache_reserve(hdd, cmd, at);
	return true;
}

/* Admit waiting writes while there is room. */
void hdd_cache_admit_waiting(struct hdd *hdd, u64 at)
{
	struct vdisk_list *waiting = &hdd->writes.waiting;

	while (waiting->head && hdd_cache_has_room(&hdd->writes, waiting->head))
		hdd_cache_reserve(hdd, vdisk_list_pop(waiting), at);
}
