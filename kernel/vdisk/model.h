/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a model of a disk is.
 *
 * A model is a machine of events and nothing else. It is told that a command
 * has arrived and what time it is, and says when it next has something to do;
 * it never reads a clock, sleeps, takes a lock or sees a request. So the same
 * calls give the same results, in a guest and in a KUnit test.
 *
 * Times are ns on one clock that does not go back. A model lives in the time of
 * its events, not in the time at which it is called: when run() is called late,
 * what it does is what it would have done when called in time. A late timer
 * delays a completion, but does not slow the disk down.
 *
 * Context: the caller holds the device's lock, interrupts off, around every
 * call but create() and destroy(), which may sleep.
 */
#ifndef ISOBLK_VDISK_MODEL_H
#define ISOBLK_VDISK_MODEL_H

#include <linux/types.h>

#include "flash.h"
#include "hdd.h"

enum vdisk_op {
	VDISK_READ,
	VDISK_WRITE,
	VDISK_TRIM,
	VDISK_FLUSH,
	VDISK_NR_OPS,
};

/* Where the data are: nowhere, so that reads give zeros, or in memory. */
enum vdisk_store_kind {
	VDISK_STORE_NONE,
	VDISK_STORE_MEMORY,
};

/* No event is to come. */
#define VDISK_NEVER	U64_MAX

struct vdisk_model_ops;

/**
 * struct vdisk_params - what a user sets
 * @ops: the model
 * @size: bytes
 * @logical_block_size: bytes
 * @queue_depth: tags a hardware queue
 * @hw_queues: hardware queues
 * @servers: commands in service at once
 * @service_ns: service time of a command, by vdisk_op
 * @bps: bytes a second over the link, by vdisk_op; 0 = no limit, and none for
 *	 VDISK_TRIM and VDISK_FLUSH, which carry no data
 * @write_cache: 1 if a write may end before it is stable: flushes and FUA count
 * @seed: of all random numbers (random.h)
 * @jitter: per mille by which a service time is longer or shorter (random.h)
 * @store: enum vdisk_store_kind
 * @flash: of the model "flash"
 * @hdd: of the model "disk"
 */
struct vdisk_params {
	const struct vdisk_model_ops *ops;
	u64 size;
	u64 logical_block_size;
	u64 queue_depth;
	u64 hw_queues;
	u64 servers;
	u64 service_ns[VDISK_NR_OPS];
	u64 bps[VDISK_NR_OPS];
	u64 write_cache;
	u64 seed;
	u64 jitter;
	u64 store;
	struct vdisk_flash_params flash;
	struct vdisk_hdd_params hdd;
};

/**
 * struct vdisk_fixed_cmd - what "fixed" keeps of a command
 * @at_ns: when it came, while it waits
 * @bps: limit of the link, while it is still to be crossed
 */
struct vdisk_fixed_cmd {
	u64 at_ns;
	u64 bps;
};

/**
 * struct vdisk_cmd - a command, as a model sees it
 * @op: set by the caller
 * @fua: a write that must be stable before it ends; set by the caller
 * @bytes: 0 for a flush; set by the caller
 * @pos: first byte on the disk, 0 for a flush; set by the caller
 * @next: link of the list that the command is on
 * @seq: position in the order of submission, the model's
 * @fixed: the model's, as what follows
 * @flash: see there
 * @hdd: see there
 *
 * A command is not cleared for the model: what submit() does not set is what
 * an earlier command left.
 */
struct vdisk_cmd {
	enum vdisk_op op;
	bool fua;
	u32 bytes;
	u64 pos;
	struct vdisk_cmd *next;
	u64 seq;
	union {
		struct vdisk_fixed_cmd fixed;
		struct vdisk_flash_cmd flash;
		struct vdisk_hdd_cmd hdd;
	};
};

/**
 * struct vdisk_list - commands, first in first out
 * @head: first, NULL if empty
 * @tail: where the next one is linked
 */
struct vdisk_list {
	struct vdisk_cmd *head;
	struct vdisk_cmd **tail;
};

static inline void vdisk_list_init(struct vdisk_list *list)
{
	list->head = NULL;
	list->tail = &list->head;
}

static inline void vdisk_list_add(struct vdisk_list *list,
				  struct vdisk_cmd *cmd)
{
	cmd->next = NULL;
	*list->tail = cmd;
	list->tail = &cmd->next;
}

/**
 * vdisk_list_pop - take the first command
 * @list: where from
 *
 * Return: the command, NULL if there is none.
 */
static inline struct vdisk_cmd *vdisk_list_pop(struct vdisk_list *list)
{
	struct vdisk_cmd *cmd = list->head;

	if (cmd) {
		list->head = cmd->next;
		if (!list->head)
			list->tail = &list->head;
	}
	return cmd;
}

/**
 * struct vdisk_stats - where commands are
 * @in_service: held by a server now
 * @waiting: for a server now
 * @waiting_max: the most that ever waited
 * @busy_ns: time that servers were held, added up over all of them
 */
struct vdisk_stats {
	u32 in_service;
	u32 waiting;
	u32 waiting_max;
	u64 busy_ns;
};

/**
 * struct vdisk_counter - a figure of one model only
 * @name: in the statistics file; lower case, without a space
 * @value: a count
 */
struct vdisk_counter {
	const char *name;
	u64 value;
};

/* Counters of a model at most: some of the whole and a few of each die. */
#define VDISK_MAX_COUNTERS	1024

/**
 * struct vdisk_model - base of every model
 * @ops: what it can do
 */
struct vdisk_model {
	const struct vdisk_model_ops *ops;
};

/**
 * struct vdisk_model_ops - the kinds of model
 * @name: value of the attribute "model"
 * @rotational: as the kernel is to be told
 * @create: a new model that never holds more than max_cmds commands, or
 *	    ERR_PTR(). May sleep.
 * @destroy: frees a model that holds no command. May sleep.
 * @submit: takes a command, whose op, fua, bytes and pos are set, that arrives
 *	    at now. Returns the time of the next event.
 * @run: does all events up to now, and adds the commands that ended to done, in
 *	 the order of the time at which they ended, and where that is equal in
 *	 the order in which they were submitted. Returns the time of the next
 *	 event, VDISK_NEVER if there is none.
 * @change: takes new parameters, for commands not yet in service. The caller
 *	    has called run() with the same now. Returns the time of the next
 *	    event.
 * @stats: fills in stats as of now.
 * @counters: writes at most room figures of its own as of now, and returns how
 *	      many; may be NULL.
 *
 * Flushes and FUA come only with write_cache. A flush ends once every write
 * that had ended when it was submitted is stable.
 */
struct vdisk_model_ops {
	const char *name;
	bool rotational;
	struct vdisk_model *(*create)(const struct vdisk_params *params,
				      u32 max_cmds);
	void (*destroy)(struct vdisk_model *model);
	u64 (*submit)(struct vdisk_model *model, struct vdisk_cmd *cmd,
		      u64 now);
	u64 (*run)(struct vdisk_model *model, u64 now,
		   struct vdisk_list *done);
	u64 (*change)(struct vdisk_model *model,
		      const struct vdisk_params *params, u64 now);
	void (*stats)(struct vdisk_model *model, u64 now,
		      struct vdisk_stats *stats);
	u32 (*counters)(struct vdisk_model *model, u64 now,
			struct vdisk_counter *out, u32 room);
};

extern const struct vdisk_model_ops vdisk_fixed_ops;
extern const struct vdisk_model_ops vdisk_flash_ops;
extern const struct vdisk_model_ops vdisk_hdd_ops;

#endif /* ISOBLK_VDISK_MODEL_H */
