/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The map of a die, from units to slots, and the reverse map. ftl.c explains
 * its format.
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FTL_MAP_H
#define ISOBLK_VDISK_FTL_MAP_H

#include <linux/limits.h>
#include <linux/types.h>
#include <linux/unaligned.h>

#include "ftl.h"

/* Bytes of an entry of the map. */
#define FTL_MAP_ENTRY_BYTES	3

/* A map. */
struct ftl_map {
	u8 *slots;	/* slot of each unit, FTL_MAP_ENTRY_BYTES each */
	u16 *reverse;	/* low bits of the unit last written to each slot */
	u32 units;	/* number of units that the host sees of the die */
};

/* Return the slot of a unit, FTL_NONE if it has none. */
static inline u32 ftl_map_get_slot(const struct ftl_map *map, u32 unit)
{
	/* Reads a byte too many: the array has one behind the last entry. */
	return get_unaligned_le32(map->slots +
				  (size_t)unit * FTL_MAP_ENTRY_BYTES) &
	       FTL_NONE;
}

static inline void ftl_map_set_slot(struct ftl_map *map, u32 unit, u32 slot)
{
	u8 *entry = map->slots + (size_t)unit * FTL_MAP_ENTRY_BYTES;

	put_unaligned_le16(slot & U16_MAX, entry);
	entry[2] = slot >> 16;
}

/* Return the unit in a slot, FTL_NONE if it has no valid unit. */
static inline u32 ftl_map_get_unit(const struct ftl_map *map, u32 slot)
{
	u32 unit;

	for (unit = map->reverse[slot]; unit < map->units;
	     unit += U16_MAX + 1) {
		if (ftl_map_get_slot(map, unit) == slot)
			return unit;
	}
	return FTL_NONE;
}

#endif /* ISOBLK_VDISK_FTL_MAP_H */
