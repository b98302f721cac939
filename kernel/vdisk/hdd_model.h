/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk of the model "disk", as its parts see it. The design is in hdd.c.
 */
#ifndef ISOBLK_VDISK_HDD_MODEL_H
#define ISOBLK_VDISK_HDD_MODEL_H

#include <linux/types.h>

#include "events.h"
#include "hdd_arm.h"
#include "hdd_cache.h"
#include "hdd_geo.h"
#include "model.h"

/* The controller: entry of commands into the disk. */
struct hdd_controller {
	struct vdisk_list inbox; /* commands to be taken, oldest first */
	u32 nr_inbox;		/* number of commands in @inbox */
	u32 nr_inbox_max;	/* maximum of @nr_inbox */
	u32 nr_inside;		/* number of commands in the disk */
	u32 ncq;		/* maximum of @nr_inside; constant */
	struct vdisk_cmd *flush; /* flush, then the only command inside; or NULL */
	u64 cmd_ns;		/* time to take a command, ns */
	u64 free_ns;		/* time since which it can take a command, ns */
	u64 seq;		/* commands ever submitted */
	u64 seed;		/* seed of the jitter of @cmd_ns; constant */
};

/* The link to the host, one for each direction. */
struct hdd_link {
	struct vdisk_events *crossings; /* commands on the link, with their ends */
	u64 free_ns[VDISK_NR_OPS]; /* time at which it is free, ns, by vdisk_op */
	u64 bps[VDISK_NR_OPS];	/* limit, bytes a second; 0 = no limit */
};

/* A disk of this model. The device's lock protects all of it. */
struct hdd {
	struct vdisk_model model;	/* base */
	struct hdd_geo geo;		/* geometry and times of the arm */
	u64 sectors;			/* sectors of the disk; constant */
	u64 jitter;			/* jitter of times, per mille */
	struct hdd_controller controller; /* entry of commands */
	struct hdd_link link;		/* link to the host */
	struct hdd_arm arm;		/* arm */
	struct hdd_read_cache reads;	/* cache of read data */
	struct hdd_write_cache writes;	/* cache of data to be written */
};

/* hdd_controller.c */
u64 hdd_link_transfer(struct hdd *hdd, const struct vdisk_cmd *cmd, u64 from,
		      u64 ready);
void hdd_link_send_write(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at);
void hdd_link_add_end(struct hdd *hdd, struct vdisk_cmd *cmd, u64 at);
void hdd_controller_add(struct hdd *hdd, struct vdisk_cmd *cmd, u64 now);
u64 hdd_controller_take_ns(const struct hdd *hdd);
void hdd_controller_take(struct hdd *hdd, u64 at);
void hdd_link_end_transfer(struct hdd *hdd, u64 at, struct vdisk_list *done);

#endif /* ISOBLK_VDISK_HDD_MODEL_H */
