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

enum vdisk_op {
	VDISK_READ,
	VDISK_WRITE,
	VDISK_TRIM,
	VDISK_NR_OPS,
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
 *	 VDISK_TRIM, which carries no data
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
};

/**
 * struct vdisk_cmd - a command, as a model sees it
 * @op: set by the caller
 * @bytes: set by the caller
 * @next: link of the list that the command is on
 * @seq: position in the order of submission, the model's
 * @at_ns: the model's
 * @bps: the model's
 */
struct vdisk_cmd {
	enum vdisk_op op;
	u32 bytes;
	struct vdisk_cmd *next;
	u64 seq;
	u64 at_ns;
	u64 bps;
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
 * struct vdisk_model - base of every model
 * @ops: what it can do
 */
struct vdisk_model {
	const struct vdisk_model_ops *ops;
};

/**
 * struct vdisk_model_ops - the kinds of model
 * @name: value of the attribute "model"
 * @create: a new model that never holds more than max_cmds commands, or
 *	    ERR_PTR(). May sleep.
 * @destroy: frees a model that holds no command. May sleep.
 * @submit: takes a command, whose op and bytes are set, that arrives at now.
 *	    Returns the time of the next event.
 * @run: does all events up to now, and adds the commands that ended to done, in
 *	 the order of the time at which they ended, and where that is equal in
 *	 the order in which they were submitted. Returns the time of the next
 *	 event, VDISK_NEVER if there is none.
 * @change: takes new parameters, for commands not yet in service. The caller
 *	    has called run() with the same now. Returns the time of the next
 *	    event.
 * @stats: fills in stats as of now.
 */
struct vdisk_model_ops {
	const char *name;
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
};

extern const struct vdisk_model_ops vdisk_fixed_ops;

#endif /* ISOBLK_VDISK_MODEL_H */
