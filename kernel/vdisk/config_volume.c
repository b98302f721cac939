// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attributes of a cloud volume: the group "volume" of a directory. All may
 * change while the disk is on.
 */
#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/time64.h>

#include "config.h"

/* 10^9 requests a second take a ns each. */
#define VOLUME_MAX_IOPS		NSEC_PER_SEC
/* Some clouds have credits for hours: allow a day, far from overflow. */
#define VOLUME_MAX_BURST_NS	(86400ULL * NSEC_PER_SEC)

VDISK_NUMBER(iops, volume.iops, .max = VOLUME_MAX_IOPS, .live = true);
VDISK_NUMBER(bps, volume.bps, .max = VDISK_BPS_MAX, .live = true);
VDISK_NUMBER(burst_ns, volume.burst_ns, .max = VOLUME_MAX_BURST_NS,
	     .live = true);
VDISK_NUMBER(net_ns, volume.net_ns, .max = VDISK_SERVICE_NS_MAX, .live = true);
VDISK_NUMBER(net_spread, volume.net_spread, .max = 1000, .live = true);

static struct configfs_attribute *vdisk_volume_attrs[] = {
	&vdisk_attr_iops,
	&vdisk_attr_bps,
	&vdisk_attr_burst_ns,
	&vdisk_attr_net_ns,
	&vdisk_attr_net_spread,
	NULL,
};

const struct config_item_type vdisk_volume_type = {
	.ct_attrs = vdisk_volume_attrs,
	.ct_owner = THIS_MODULE,
};
