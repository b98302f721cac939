// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "fixed": c servers, a fixed service time, and a link.
 *
 * A command waits, first come first served, until one of the servers is free,
 * is served for the time of its kind, and then, if the link of its direction
 * has a limit, crosses it. A link carries one command at a time, in the order
 * in which their services ended. The server is held until the command has
 * crossed:
 *
 *	start = max(arrival, time at which a server became free)
 *	served = start + service_ns[op]
 *	done = served                                           without a limit
 *	done = max(served, link free) + bytes * 10^9 / bps	with one
 *
 * That is what NVMe flash looks like from far: a limited number of dies behind
 * a deep queue, and a bus. Reads and writes have a link each; a trim carries no
 * data. A command's service time and limit are those at its start. Jitter makes
 * the service time of each command another one.
 *
 * A write is stable when it ends, so a flush is but a command with a service
 * time, and FUA costs nothing.
 *
 * A busy server has one event in the heap: the end of service, or, when the
 * link is not free of limits, first that and then the end of the crossing.
 */
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "events.h"
#include "link.h"
#include "model.h"
#include "random.h"

/*
 * A disk of this model. The device's lock protects all of it.
 *
 * Commands wait only while @servers or more are busy: after a change of
 * @servers, more may be. A server that is held has no end yet in @held_ns: as
 * of now, add @busy times now. That wraps, but the sum does not.
 */
struct fixed {
	struct vdisk_model model;	/* base */
	u64 servers;			/* most commands in service at once */
	u64 service_ns[VDISK_NR_OPS];	/* time of a command, by vdisk_op */
	u64 bps[VDISK_NR_OPS];		/* limit of each link, bytes a second */
	u64 jitter;			/* jitter of service times, per mille */
	u64 seed;			/* seed of the jitter */
	struct vdisk_link link[VDISK_NR_OPS]; /* links of reads and of writes */
	u64 seq;			/* commands ever submitted */
	u32 busy;			/* servers that hold a command */
	struct vdisk_list waiting;	/* commands that wait */
	u32 nr_waiting;			/* number of these */
	u32 max_waiting;		/* most there ever were */
	u64 held_ns;			/* ends minus starts of service */
	struct vdisk_events *events;	/* events of the busy servers */
};

static struct fixed *to_fixed(struct vdisk_model *model)
{
	return container_of(model, struct fixed, model);
}

static void fixed_set(struct fixed *fixed, const struct vdisk_params *params)
{
	int op;

	fixed->servers = params->servers;
	fixed->jitter = params->jitter;
	fixed->seed = params->seed;
	for (op = 0; op < VDISK_NR_OPS; op++) {
		fixed->service_ns[op] = params->service_ns[op];
		fixed->bps[op] = params->bps[op];
	}
}

static struct vdisk_model *fixed_create(const struct vdisk_params *params,
					u32 max_cmds)
{
	struct fixed *fixed;

	fixed = kzalloc(sizeof(*fixed), GFP_KERNEL);
	if (!fixed)
		return ERR_PTR(-ENOMEM);

	fixed->events = vdisk_events_create(max_cmds);
	if (!fixed->events) {
		kfree(fixed);
		return ERR_PTR(-ENOMEM);
	}

	fixed->model.ops = &vdisk_fixed_ops;
	vdisk_list_init(&fixed->waiting);
	fixed_set(fixed, params);
	return &fixed->model;
}

static void fixed_destroy(struct vdisk_model *model)
{
	struct fixed *fixed = to_fixed(model);

	kvfree(fixed->events);
	kfree(fixed);
}

/* Let a server take a command at a time. Return when its service ends. */
static u64 fixed_start(struct fixed *fixed, struct vdisk_cmd *cmd, u64 at)
{
	fixed->busy++;
	fixed->held_ns -= at;
	cmd->fixed.bps = fixed->bps[cmd->op];
	return at + vdisk_jitter(fixed->service_ns[cmd->op], fixed->jitter,
				 fixed->seed, cmd->seq);
}

static struct vdisk_cmd *fixed_next_waiting(struct fixed *fixed)
{
	struct vdisk_cmd *cmd = NULL;

	if (fixed->busy < fixed->servers)
		cmd = vdisk_list_pop(&fixed->waiting);
	if (cmd)
		fixed->nr_waiting--;
	return cmd;
}

static u64 fixed_submit(struct vdisk_model *model, struct vdisk_cmd *cmd,
			u64 now)
{
	struct fixed *fixed = to_fixed(model);

	cmd->seq = fixed->seq++;
	if (fixed->busy < fixed->servers) {
		vdisk_events_add(fixed->events, fixed_start(fixed, cmd, now),
				 cmd);
	} else {
		cmd->fixed.at_ns = now;
		vdisk_list_add(&fixed->waiting, cmd);
		if (++fixed->nr_waiting > fixed->max_waiting)
			fixed->max_waiting = fixed->nr_waiting;
	}
	return vdisk_events_next(fixed->events);
}

static u64 fixed_run(struct vdisk_model *model, u64 now,
		     struct vdisk_list *done)
{
	struct fixed *fixed = to_fixed(model);
	struct vdisk_events *events = fixed->events;

	while (vdisk_events_next(events) <= now) {
		u64 at = events->heap[0].due;
		struct vdisk_cmd *cmd = events->heap[0].cmd;
		struct vdisk_cmd *next;

		if (cmd->fixed.bps) {
			at = vdisk_link_carry(&fixed->link[cmd->op],
					      cmd->fixed.bps, at, cmd->bytes);
			cmd->fixed.bps = 0;
			vdisk_events_replace(events, at, cmd);
			continue;
		}

		vdisk_list_add(done, cmd);
		fixed->busy--;
		fixed->held_ns += at;

		next = fixed_next_waiting(fixed);
		if (next) {
			/* It may have come after the server became free, if
			 * this call is late.
			 */
			at = fixed_start(fixed, next, max(at, next->fixed.at_ns));
			vdisk_events_replace(events, at, next);
		} else {
			vdisk_events_drop(events);
		}
	}
	return vdisk_events_next(events);
}

static u64 fixed_change(struct vdisk_model *model,
			const struct vdisk_params *params, u64 now)
{
	struct fixed *fixed = to_fixed(model);
	struct vdisk_cmd *cmd;

	fixed_set(fixed, params);
	while ((cmd = fixed_next_waiting(fixed)))
		vdisk_events_add(fixed->events, fixed_start(fixed, cmd, now),
				 cmd);
	return vdisk_events_next(fixed->events);
}

static void fixed_stats(struct vdisk_model *model, u64 now,
			struct vdisk_stats *stats)
{
	struct fixed *fixed = to_fixed(model);

	stats->in_service = fixed->busy;
	stats->waiting = fixed->nr_waiting;
	stats->waiting_max = fixed->max_waiting;
	stats->busy_ns = fixed->held_ns + fixed->busy * now;
}

const struct vdisk_model_ops vdisk_fixed_ops = {
	.name = "fixed",
	.create = fixed_create,
	.destroy = fixed_destroy,
	.submit = fixed_submit,
	.run = fixed_run,
	.change = fixed_change,
	.stats = fixed_stats,
};
