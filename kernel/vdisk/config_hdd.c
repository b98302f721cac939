// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attributes of the model "disk": the group "disk" of a directory.
 */
#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/time64.h>

#include "config.h"

/*
 * The ranges keep the arithmetic of hdd_geo.c within 64 bits, and include all
 * real disks except floppy disks.
 */
#define HDD_MAX_TIME_NS		NSEC_PER_SEC
#define HDD_MIN_BPS		1000000
#define HDD_MAX_BPS		4000000000ULL

VDISK_NUMBER(rpm, hdd.rpm, .min = 1000, .max = 30000);
VDISK_NUMBER(seek_min_ns, hdd.seek_min_ns, .max = HDD_MAX_TIME_NS);
VDISK_NUMBER(seek_avg_ns, hdd.seek_avg_ns, .max = HDD_MAX_TIME_NS);
VDISK_NUMBER(seek_max_ns, hdd.seek_max_ns, .max = HDD_MAX_TIME_NS);
VDISK_NUMBER(head_switch_ns, hdd.head_switch_ns, .max = HDD_MAX_TIME_NS);
VDISK_NUMBER(heads, hdd.heads, .min = 1, .max = 64);
VDISK_NUMBER(zones, hdd.zones, .min = 1, .max = VDISK_HDD_ZONES_MAX);
VDISK_NUMBER(outer_bps, hdd.outer_bps, .min = HDD_MIN_BPS, .max = HDD_MAX_BPS);
VDISK_NUMBER(inner_bps, hdd.inner_bps, .min = HDD_MIN_BPS, .max = HDD_MAX_BPS);
VDISK_NUMBER(cache, hdd.cache, .max = 4ULL * SZ_1G);
VDISK_NUMBER(write_pieces, hdd.write_pieces, .min = 1, .max = SZ_64K);
VDISK_NUMBER(readahead, hdd.readahead, .max = SZ_64M);
VDISK_NUMBER(ncq, hdd.ncq, .min = 1, .max = 256);
/* Not 0: a command is taken later than the instant of its arrival. */
VDISK_NUMBER(cmd_ns, hdd.cmd_ns, .min = 1, .max = HDD_MAX_TIME_NS,
	     .live = true);

static struct configfs_attribute *vdisk_hdd_attrs[] = {
	&vdisk_attr_rpm,
	&vdisk_attr_seek_min_ns,
	&vdisk_attr_seek_avg_ns,
	&vdisk_attr_seek_max_ns,
	&vdisk_attr_head_switch_ns,
	&vdisk_attr_heads,
	&vdisk_attr_zones,
	&vdisk_attr_outer_bps,
	&vdisk_attr_inner_bps,
	&vdisk_attr_cache,
	&vdisk_attr_write_pieces,
	&vdisk_attr_readahead,
	&vdisk_attr_ncq,
	&vdisk_attr_cmd_ns,
	NULL,
};

const struct config_item_type vdisk_hdd_type = {
	.ct_attrs = vdisk_hdd_attrs,
	.ct_owner = THIS_MODULE,
};
