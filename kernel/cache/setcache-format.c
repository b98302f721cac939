// SPDX-License-Identifier: GPL-2.0-only
/*
 * The format of dm-setcache on the SSD: its layout, and the coding of records.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "setcache-format.h"

/* Return the sector of a copy of the superblock. */
sector_t sc_super_sector(const struct sc_geometry *geo, u32 copy)
{
	if (copy < SC_NR_TURN_COPIES)
		return copy * SC_RECORD_BLOCK_SECTORS;
	return round_down(geo->ssd_sectors, SC_RECORD_BLOCK_SECTORS) -
	       SC_RECORD_BLOCK_SECTORS;
}

int sc_geometry_fit_sets(struct sc_geometry *geo)
{
	u64 set = (u64)geo->assoc * geo->block_sectors;
	u64 slots, records, missing, end;

	if (geo->ssd_sectors <=
	    SC_RECORD_START_SECTOR + SC_RECORD_BLOCK_SECTORS)
		return -ENOSPC;
	end = sc_super_sector(geo, SC_NR_TURN_COPIES);
	geo->nr_sets = div64_u64(end - SC_RECORD_START_SECTOR, set);
	while (geo->nr_sets) {
		slots = geo->nr_sets * geo->assoc;
		records = DIV_ROUND_UP_ULL(slots, SC_RECORDS_PER_BLOCK);
		geo->data_sector = SC_RECORD_START_SECTOR +
				   records * SC_RECORD_BLOCK_SECTORS;
		geo->data_sector =
			round_up(geo->data_sector, SC_DATA_ALIGN_SECTORS);
		if (geo->data_sector + geo->nr_sets * set <= end)
			return 0;
		/* Removing a set frees less than twice its size, aligned. */
		missing = geo->data_sector + geo->nr_sets * set - end;
		missing = DIV64_U64_ROUND_UP(missing,
					     2 * (set + SC_DATA_ALIGN_SECTORS));
		geo->nr_sets -= min(geo->nr_sets, missing);
	}
	return -ENOSPC;
}

void sc_record_encode(struct sc_record *record, u32 seed, u64 slot,
		      enum sc_record_state state, u64 block, u32 seq)
{
	__le64 number = cpu_to_le64(slot);
	u32 sum;

	record->where = cpu_to_le64((block & SC_BLOCK_MASK) |
				    (u64)state << SC_STATE_SHIFT);
	record->seq = cpu_to_le32(seq);
	sum = crc32c(seed, &number, sizeof(number));
	sum = crc32c(sum, record, offsetof(struct sc_record, csum));
	record->csum = cpu_to_le32(sum);
}

bool sc_record_decode(const struct sc_record *record, u32 seed, u64 slot,
		      enum sc_record_state *state, u64 *block)
{
	__le64 number = cpu_to_le64(slot);
	u64 where = le64_to_cpu(record->where);
	u32 sum;

	sum = crc32c(seed, &number, sizeof(number));
	sum = crc32c(sum, record, offsetof(struct sc_record, csum));
	*state = where >> SC_STATE_SHIFT;
	*block = where & SC_BLOCK_MASK;
	return le32_to_cpu(record->csum) == sum && *state < SC_NR_RECORD_STATES;
}
