/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands in a flash disk: their path from the host to dies and buffer
 * (flash_host.c), and back (flash_end.c).
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
 * The controller: it fetches commands from the host's queues while it has free
 * slots, and takes them one after the other.
 */
struct flash_controller {
	struct vdisk_list *submitted; /* commands not fetched, by hardware queue */
	u32 nr_queues;		/* number of hardware queues; constant */
	u32 next_queue;		/* queue that is next in turn */
	u32 nr_submitted;	/* number of commands not fetched */
	u32 nr_fetched;		/* commands fetched and not ended: slots used */
	struct vdisk_list queue; /* fetched commands, each with the time of its taking */
	u64 free_ns;		/* time at which it has taken all of @queue, ns */
	u64 seq;		/* commands ever submitted */
	u64 seed;		/* seed of the jitter of cmd_ns; constant */
};

/* Units whose entries share a page of the table: 4 KiB, 4 bytes each. */
#define FLASH_UNITS_PER_TABLE_PAGE	1024

/* The controller's view of the table that locates the data. */
struct flash_table {
	unsigned long *empty_pages; /* pages known to have no entry, a bit each */
	u64 nr_updates;		/* updates since the table was last written out */
	u64 nr_written;		/* number of times that it was written out */
};

/* Commands to be sent to the dies and to the buffer. */
struct flash_host {
	struct vdisk_list reads; /* reads with units to be issued */
	struct vdisk_list writes; /* writes and trims, in order, for @link */
	struct vdisk_link link;	/* link from the host */
	bool link_busy;		/* whether the first of @writes uses @link */
	u32 link_units;		/* units of it on @link */
	struct flash_table table; /* updates of the table by @writes */
	bool stalled;		/* whether the first write waits for room */
	u64 nr_stalls;		/* number of times that a write had to wait */
	u64 nr_hits;		/* units read from the buffer */
};

/* Commands whose end is known, and the last reported end. */
struct flash_ends {
	struct vdisk_list reads; /* reads on @link, each with its end */
	struct vdisk_link link;	/* link to the host */
	struct vdisk_list others; /* other commands, each with its end */
	struct vdisk_cmd **instant_first; /* pointer to the first that ended at @last_ns */
	u64 last_ns;		/* time at which the last command ended, ns */
	u64 last_seq;		/* position of that command (vdisk_cmd) */
};

/* Numbers of commands in the disk, and whether it is idle. */
struct flash_load {
	u32 nr_cmds;		/* commands submitted and not ended */
	u32 nr_waiting;		/* commands that wait to be taken, or sent on */
	u32 nr_waiting_max;	/* maximum of @nr_waiting */
	u32 nr_active;		/* commands taken and not ended */
	u64 idle_since_ns;	/* time at which @nr_active became 0, ns */
	bool idle;		/* whether @idle_since_ns is FLASH_IDLE_NS ago */
};

/* flash_host.c */
int flash_controller_init(struct flash_controller *controller, u32 queues,
			  u64 seed);
void flash_controller_destroy(struct flash_controller *controller);
int flash_host_init(struct flash_host *host, u32 units);
void flash_host_destroy(struct flash_host *host);
void flash_host_submit(struct flash *flash, struct vdisk_cmd *cmd, u64 now);
void flash_host_free_slot(struct flash *flash, u64 at);
void flash_host_take(struct flash *flash, u64 at);
void flash_host_end_transfer(struct flash *flash, u64 at);
void flash_host_send(struct flash *flash, u64 at);
void flash_host_start_idle(struct flash *flash, u64 at);

/* flash_end.c */
void flash_end_queue(struct flash *flash, struct vdisk_list *list,
		     enum flash_leaf leaf, struct vdisk_cmd *cmd, u64 at);
struct vdisk_cmd *flash_end_dequeue(struct flash *flash,
				    struct vdisk_list *list,
				    enum flash_leaf leaf);
void flash_end_count_unit(struct flash *flash, struct vdisk_cmd *cmd, u64 at);
void flash_end_send_read(struct flash *flash, struct vdisk_cmd *cmd, u64 at);
void flash_end_delay(struct flash *flash, struct vdisk_cmd *cmd, u64 at);
void flash_end_first_read(struct flash *flash, u64 at, struct vdisk_list *done);
void flash_end_first_other(struct flash *flash, u64 at,
			   struct vdisk_list *done);

#endif /* ISOBLK_VDISK_FLASH_HOST_H */
