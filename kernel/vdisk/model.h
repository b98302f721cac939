/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface of a model of a disk.
 *
 * A model is an event machine. The caller tells it that a command has arrived
 * and the current time, and the model returns the time of its next event. It
 * never reads a clock, sleeps, takes a lock or sees a request. So the same
 * calls give the same results, in a guest and in a KUnit test.
 *
 * Times are ns on one monotonic clock. A model computes with the times of its
 * events, not with the time of the call: a late run() gives the same result as
 * a timely one. A late timer delays a completion, but does not slow the disk
 * down.
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

/* Operations of commands. */
enum vdisk_op {
	VDISK_READ,	/* read bytes */
	VDISK_WRITE,	/* write bytes */
	VDISK_TRIM,	/* discard bytes */
	VDISK_FLUSH,	/* make all writes stable that have ended before */
	VDISK_NR_OPS,
};

/* Kinds of stores. */
enum vdisk_store_kind {
	VDISK_STORE_NONE,	/* no store: reads return zeros */
	VDISK_STORE_MEMORY,	/* data in memory (store.c) */
};

/* The time of an event that does not happen. */
#define VDISK_NEVER_NS	U64_MAX

struct vdisk_model_ops;

/* Parameters of a cloud volume, part of the model "fixed" (volume.c). */
struct vdisk_volume_params {
	u64 iops;		/* requests a second; 0 = no limit */
	u64 bps;		/* bytes a second; 0 = no limit */
	u64 burst_ns;		/* size of the buckets: time at the limits, ns */
	u64 net_ns;		/* mean time in the network */
	u64 net_spread;		/* part of net_ns in the long tail, per mille */
};

/* Parameters of a disk. */
struct vdisk_params {
	const struct vdisk_model_ops *ops; /* model */
	u64 size;		/* bytes */
	u64 logical_block_size;	/* bytes */
	u64 queue_depth;	/* tags of a hardware queue */
	u64 hw_queues;		/* hardware queues */
	u64 servers;		/* commands in service at once */
	u64 service_ns[VDISK_NR_OPS]; /* service time, ns, by vdisk_op */
	u64 bps[VDISK_NR_OPS];	/* bytes a second over the link; 0 = no limit */
	u64 write_cache;	/* 1 = a write may end before it is stable */
	u64 seed;		/* seed of all random numbers */
	u64 jitter;		/* variation of times, per mille (random.h) */
	u64 store;		/* enum vdisk_store_kind */
	struct vdisk_volume_params volume; /* parameters of a cloud volume */
	struct vdisk_flash_params flash; /* parameters of the model "flash" */
	struct vdisk_hdd_params hdd; /* parameters of the model "disk" */
};

/* Fields of the model "fixed" in a command. */
struct vdisk_fixed_cmd {
	u64 at_ns;	/* time of its arrival, while it waits, ns */
	u64 bps;	/* limit of the link until it is crossed, bytes a second */
	bool served;	/* whether it has left its server */
};

/*
 * A command. The caller sets @op to @pos, the model the rest. Fields of the
 * model are not cleared: those that submit() does not set keep the values of an
 * earlier command.
 */
struct vdisk_cmd {
	enum vdisk_op op;	/* operation */
	bool fua;		/* whether a write must be stable as it ends */
	u32 queue;		/* number of its hardware queue */
	u32 bytes;		/* length, bytes; 0 for a flush */
	u64 pos;		/* first byte on the disk; 0 for a flush */
	struct vdisk_cmd *next;	/* next command of its list */
	u64 seq;		/* position in the order of submission */
	union {
		struct vdisk_fixed_cmd fixed; /* part of the model "fixed" */
		struct vdisk_flash_cmd flash; /* part of the model "flash" */
		struct vdisk_hdd_cmd hdd; /* part of the model "disk" */
	};
};

/* A queue of commands, first in first out. */
struct vdisk_list {
	struct vdisk_cmd *head;	/* first command, NULL if there is none */
	struct vdisk_cmd **tail; /* pointer that the next command is put into */
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
 * vdisk_list_pop - remove and return the first command
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

/* Numbers of commands by state, and utilization. */
struct vdisk_stats {
	u32 nr_in_service; /* commands at a server or in the network */
	u32 nr_waiting;	/* commands that wait for a server */
	u32 nr_waiting_max; /* maximum of @nr_waiting */
	u64 busy_ns;	/* busy time, summed over all servers, ns */
};

/* A counter of a model. */
struct vdisk_counter {
	const char *name;	/* name in the statistics, lower case */
	u64 value;		/* value of the counter */
};

/* Maximum number of counters of a model. */
#define VDISK_COUNTERS_MAX	1024

/* Base of every model. */
struct vdisk_model {
	const struct vdisk_model_ops *ops;	/* operations */
};

/**
 * struct vdisk_model_ops - operations of a model
 * @name: value of the attribute "model"
 * @rotational: value of queue/rotational
 * @create: returns a new model for at most max_cmds commands at a time, or
 *	    ERR_PTR(). May sleep.
 * @destroy: frees a model that holds no command. May sleep.
 * @submit: takes a command, whose op to pos are set, that arrives
 *	    at now. Returns the time of the next event.
 * @run: does all events up to now, and adds the commands that ended to done, in
 *	 the order of the time at which they ended, and where that is equal in
 *	 the order in which they were submitted. Returns the time of the next
 *	 event, VDISK_NEVER_NS if there is none.
 * @change: takes new parameters, for commands not yet in service. The caller
 *	    has called run() with the same now. Returns the time of the next
 *	    event.
 * @stats: fills in the statistics as of now.
 * @counters: writes at most room counters of the model as of now, and returns how
 *	      many; may be NULL.
 *
 * Flushes and FUA come only with write_cache. A flush ends once every write is
 * stable that had ended before the flush was submitted.
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
