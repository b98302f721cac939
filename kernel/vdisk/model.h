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

#include <linux/limits.h>
#include <linux/types.h>

#include "flash.h"
#include "hdd.h"

/* What a command does. */
enum vdisk_op {
	VDISK_READ,	/* read bytes */
	VDISK_WRITE,	/* write bytes */
	VDISK_TRIM,	/* forget bytes */
	VDISK_FLUSH,	/* make stable what writes have ended before */
	VDISK_NR_OPS,
};

/* Where the data are. */
enum vdisk_store_kind {
	VDISK_STORE_NONE,	/* nowhere: reads give zeros */
	VDISK_STORE_MEMORY,	/* in memory (store.c) */
};

/* The time of an event that is not to come. */
#define VDISK_NEVER	U64_MAX

struct vdisk_model_ops;

/* What a user sets of a cloud volume, which "fixed" may be: volume.c. */
struct vdisk_volume_params {
	u64 iops;		/* requests a second; 0 = no limit */
	u64 bps;		/* bytes a second; 0 = no limit */
	u64 burst_ns;		/* time at these limits that may be saved up */
	u64 net_ns;		/* mean time in the network */
	u64 net_spread;		/* per mille of it that are a long tail */
};

/* What a user sets. */
struct vdisk_params {
	const struct vdisk_model_ops *ops; /* model */
	u64 size;		/* bytes */
	u64 logical_block_size;	/* bytes */
	u64 queue_depth;	/* tags of a hardware queue */
	u64 hw_queues;		/* hardware queues */
	u64 servers;		/* commands in service at once */
	u64 service_ns[VDISK_NR_OPS]; /* time of a command, by vdisk_op */
	u64 bps[VDISK_NR_OPS];	/* bytes a second over the link; 0 = no limit */
	u64 write_cache;	/* 1 = a write may end before it is stable */
	u64 seed;		/* seed of all random numbers */
	u64 jitter;		/* per mille that times vary by (random.h) */
	u64 store;		/* enum vdisk_store_kind: where the data are */
	struct vdisk_volume_params volume; /* parameters of a cloud volume */
	struct vdisk_flash_params flash; /* parameters of the model "flash" */
	struct vdisk_hdd_params hdd; /* parameters of the model "disk" */
};

/* What "fixed" keeps of a command. */
struct vdisk_fixed_cmd {
	u64 at_ns;	/* time at which it came, while it waits */
	u64 bps;	/* limit of the link, while it is still to be crossed */
	bool served;	/* whether it is past the servers */
};

/*
 * A command, as a model sees it. The caller sets @op to @pos, the model the
 * rest. It is not cleared for the model: what submit() does not set is what an
 * earlier command left.
 */
struct vdisk_cmd {
	enum vdisk_op op;	/* what it does */
	bool fua;		/* whether a write must be stable as it ends */
	u32 queue;		/* number of its hardware queue */
	u32 bytes;		/* length, 0 for a flush */
	u64 pos;		/* first byte on the disk, 0 for a flush */
	struct vdisk_cmd *next;	/* next command of the list that it is on */
	u64 seq;		/* position in the order of submission */
	union {
		struct vdisk_fixed_cmd fixed; /* part of the model "fixed" */
		struct vdisk_flash_cmd flash; /* part of the model "flash" */
		struct vdisk_hdd_cmd hdd; /* part of the model "disk" */
	};
};

/* Commands, first in first out. */
struct vdisk_list {
	struct vdisk_cmd *head;	/* first command, NULL if there is none */
	struct vdisk_cmd **tail; /* link that the next one is put into */
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
 * @list: the commands
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

/* Where commands are. */
struct vdisk_stats {
	u32 in_service;	/* commands held by a server now, or in a network */
	u32 waiting;	/* commands that wait for a server now */
	u32 waiting_max; /* most that ever waited */
	u64 busy_ns;	/* time that servers were held, over all of them */
};

/* A figure of one model only. */
struct vdisk_counter {
	const char *name;	/* name in the statistics, lower case */
	u64 value;		/* count */
};

/* Most counters that a model may have. */
#define VDISK_MAX_COUNTERS	1024

/* Base of every model. */
struct vdisk_model {
	const struct vdisk_model_ops *ops;	/* what it can do */
};

/**
 * struct vdisk_model_ops - the kinds of model
 * @name: value of the attribute "model"
 * @rotational: whether the kernel is told that it turns
 * @create: a new model that never holds more than max_cmds commands, or
 *	    ERR_PTR(). May sleep.
 * @destroy: frees a model that holds no command. May sleep.
 * @submit: takes a command, whose op to pos are set, that arrives
 *	    at now. Returns the time of the next event.
 * @run: does all events up to now, and adds the commands that ended to done, in
 *	 the order of the time at which they ended, and where that is equal in
 *	 the order in which they were submitted. Returns the time of the next
 *	 event, VDISK_NEVER if there is none.
 * @change: takes new parameters, for commands not yet in service. The caller
 *	    has called run() with the same now. Returns the time of the next
 *	    event.
 * @stats: fills in the figures as of now.
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
