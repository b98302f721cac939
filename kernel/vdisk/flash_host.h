/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands in a flash disk: their way from the host to the dies and the
 * buffer (flash_host.c), and back (flash_end.c).
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_FLASH_HOST_H
#define ISOBLK_VDISK_FLASH_HOST_H

#include <linux/types.h>

#include "flash_tree.h"
#include "link.h"
#include "model.h"

struct flash;

/*
 * The controller: it fetches commands from the host's queues, as long as it has
 * slots for them, and takes one after the other.
 */
struct flash_controller {
	struct vdisk_list *submitted; /* not fetched, by hardware queue */
	u32 queues;		/* number of hardware queues; constant */
	u32 turn;		/* queue that is asked first for the next one */
	u32 nr_submitted;	/* commands not fetched */
	u32 fetched;		/* commands fetched and not ended: slots used */
	struct vdisk_list queue; /* fetched ones to be taken, and when */
	u64 free_ns;		/* time at which it has taken all of them */
	u64 seq;		/* commands ever submitted */
	u64 seed;		/* seed of the jitter of its time; constant */
};

/* Units whose entries of the table share a page of it: 4 KiB, of 4 bytes. */
#define FLASH_TABLE_UNITS	1024

/* What the controller holds of the table that says where the data are. */
struct flash_table {
	unsigned long *empty;	/* pages known to have no entry, a bit each */
	u64 updates;		/* updates since it was last written out */
	u64 written;		/* times that it was written out */
};

/* The commands that are to be sent to the dies and to the buffer. */
struct flash_host {
	struct vdisk_list reads; /* reads with units to be issued */
	struct vdisk_list writes; /* writes and trims, in order, for @link */
	struct vdisk_link link;	/* link from the host */
	bool busy;		/* whether the first of @writes is on @link */
	u32 crossing;		/* units of it that are */
	struct flash_table table; /* updates of the table by @writes */
	bool stalled;		/* whether the first write has found no room */
	u64 stalls;		/* times that this happened */
	u64 hits;		/* units read from the buffer */
};

/* The commands whose end is known, and how far they were reported. */
struct flash_ends {
	struct vdisk_list reading; /* reads on @link, each with its end */
	struct vdisk_link link;	/* link to the host */
	struct vdisk_list others; /* other commands, each with its end */
	struct vdisk_cmd **instant; /* link to the first done at @at_ns */
	u64 at_ns;		/* time at which the last command ended */
	u64 seq;		/* position of that command (vdisk_cmd) */
};

/* How many commands the disk has, and whether it has had none for long. */
struct flash_load {
	u32 held;		/* commands submitted and not ended */
	u32 waiting;		/* those that wait to be taken or to go on */
	u32 waiting_max;	/* most that ever waited */
	u32 active;		/* commands taken and not ended */
	u64 idle_since;		/* time at which @active became 0, ns */
	bool idle;		/* whether that is FLASH_IDLE_NS ago */
};

/* flash_host.c */
int flash_controller_init(struct flash_controller *controller, u32 queues,
			  u64 seed);
void flash_controller_destroy(struct flash_controller *controller);
int flash_host_init(struct flash_host *host, u32 units);
void flash_host_destroy(struct flash_host *host);
void flash_arrive(struct flash *flash, struct vdisk_cmd *cmd, u64 now);
void flash_free_slot(struct flash *flash, u64 at);
void flash_take(struct flash *flash, u64 at);
void flash_crossed(struct flash *flash, u64 at);
void flash_send(struct flash *flash, u64 at);
void flash_idle(struct flash *flash, u64 at);

/* flash_end.c */
void flash_queue(struct flash *flash, struct vdisk_list *list,
		 enum flash_leaf leaf, struct vdisk_cmd *cmd, u64 at);
struct vdisk_cmd *flash_dequeue(struct flash *flash, struct vdisk_list *list,
				enum flash_leaf leaf);
void flash_read_done(struct flash *flash, struct vdisk_cmd *cmd, u64 at);
void flash_read_ready(struct flash *flash, struct vdisk_cmd *cmd, u64 at);
void flash_end_soon(struct flash *flash, struct vdisk_cmd *cmd, u64 at);
void flash_end_read(struct flash *flash, u64 at, struct vdisk_list *done);
void flash_end_other(struct flash *flash, u64 at, struct vdisk_list *done);

#endif /* ISOBLK_VDISK_FLASH_HOST_H */
