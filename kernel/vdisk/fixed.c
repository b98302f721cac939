// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model "fixed": c servers, a fixed service time, and a link.
 *
 * A command waits, first come first served, until a server is free. It is
 * served for the time of its kind, and then, if the link of its direction has a
 * limit, crosses the link. A link carries one command at a time, in the order
 * in which their services ended. The server stays busy until the command has
 * crossed:
 *
 *	start = max(arrival, time at which a server became free)
 *	served = start + service_ns[op]
 *	done = served                                           without a limit
 *	done = max(served, link free) + bytes * 10^9 / bps	with one
 *
 * This is a coarse model of NVMe flash: a limited number of dies behind a deep
 * queue, and a bus. Reads and writes have a link each; a trim carries no data.
 * A command's service time and limit are those at its start. Jitter varies the
 * service time of each command.
 *
 * A disk may be a cloud volume (volume.c). Then a command beyond a limit waits
 * before it may wait for a server, and its end is delayed by the time in the
 * network, which keeps no server busy.
 *
 * A write is stable when it ends, so a flush is only a command with a service
 * time, and FUA costs nothing.
 *
 * A busy server has one event in the heap: the end of service, or, if the link
 * has a limit, first that and then the end of the crossing. A command in the
 * network has one event, too. The admission of a waiting command is an event of
 * its own, before other events of its instant.
 */
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "events.h"
#include "link.h"
#include "model.h"
#include "random.h"
#include "volume.h"

/*
 * A disk of this model. The device's lock protects all of it.
 *
 * Commands wait only while @servers or more are busy: after a decrease of
 * @servers, more may be. @service_ns_sum lacks the ends of running services: as of
 * now, add @nr_busy * now. The value wraps, but the sum is right.
 */
struct fixed {
	struct vdisk_model model;	/* base */
	u64 servers;			/* maximum of commands in service */
	u64 service_ns[VDISK_NR_OPS];	/* service time, ns, by vdisk_op */
	u64 bps[VDISK_NR_OPS];		/* limit of each link, bytes a second */
	u64 jitter;			/* jitter of service times, per mille */
	u64 seed;			/* seed of the jitter */
	struct vdisk_link link[VDISK_NR_OPS]; /* links of reads and of writes */
	u64 seq;			/* commands ever submitted */
	u32 nr_busy;			/* servers that hold a command */
	u32 nr_in_net;			/* commands in the network */
	struct vdisk_list waiting;	/* commands that wait */
	u32 nr_waiting;			/* number of commands in @waiting */
	u32 nr_waiting_max;		/* maximum of waiting commands */
	u64 service_ns_sum;		/* sum of ends minus starts of services, ns */
	struct vdisk_events *events;	/* events of commands not waiting */
	struct vdisk_volume volume;	/* limits and network */
};

static struct fixed *to_fixed(struct vdisk_model *model)
{
	return container_of(model, struct fixed, model);
}

static void fixed_set_params(struct fixed *fixed,
			     const struct vdisk_params *params)
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
	vdisk_volume_init(&fixed->volume, params);
	fixed_set_params(fixed, params);
	return &fixed->model;
}

static void fixed_destroy(struct vdisk_model *model)
{
	struct fixed *fixed = to_fixed(model);

	kvfree(fixed->events);
	kfree(fixed);
}

/* Start a command's service at time @at. Return when the service ends. */
static u64 fixed_start_cmd(struct fixed *fixed, struct vdisk_cmd *cmd, u64 at)
{
	fixed->nr_busy++;
	fixed->service_ns_sum -= at;
	cmd->fixed.bps = fixed->bps[cmd->op];
	cmd->fixed.served = false;
	return at + vdisk_jitter(fixed->service_ns[cmd->op], fixed->jitter,
				 fixed->seed, cmd->seq);
}

static struct vdisk_cmd *fixed_pop_waiting(struct fixed *fixed)
{
	struct vdisk_cmd *cmd = NULL;

	if (fixed->nr_busy < fixed->servers)
		cmd = vdisk_list_pop(&fixed->waiting);
	if (cmd)
		fixed->nr_waiting--;
	return cmd;
}

/* Return the time of the next event. */
static u64 fixed_next_event_ns(const struct fixed *fixed)
{
	return min(vdisk_events_next_ns(fixed->events), fixed->volume.due_ns);
}

/* Return the number of commands that wait, for tokens or for a server. */
static u32 fixed_count_waiting(const struct fixed *fixed)
{
	return fixed->nr_waiting + fixed->volume.nr_waiting;
}

/* Process a command that arrives at the servers, past all limits. */
static void fixed_add_cmd(struct fixed *fixed, struct vdisk_cmd *cmd, u64 at)
{
	if (fixed->nr_busy < fixed->servers) {
		vdisk_events_add(fixed->events, fixed_start_cmd(fixed, cmd, at),
				 cmd);
	} else {
		cmd->fixed.at_ns = at;
		vdisk_list_add(&fixed->waiting, cmd);
		fixed->nr_waiting++;
	}
}

static u64 fixed_submit_cmd(struct vdisk_model *model, struct vdisk_cmd *cmd,
			    u64 now)
{
	struct fixed *fixed = to_fixed(model);

	cmd->seq = fixed->seq++;
	if (vdisk_volume_submit(&fixed->volume, cmd, now))
		fixed_add_cmd(fixed, cmd, now);
	fixed->nr_waiting_max =
		max(fixed->nr_waiting_max, fixed_count_waiting(fixed));
	return fixed_next_event_ns(fixed);
}

/* Free a server, which takes the next command if there is one. */
static void fixed_free_server(struct fixed *fixed, u64 at)
{
	struct vdisk_cmd *next;

	fixed->nr_busy--;
	fixed->service_ns_sum += at;
	next = fixed_pop_waiting(fixed);
	if (!next)
		return;
	/* If run() is late, it may have arrived after the server was free. */
	at = fixed_start_cmd(fixed, next, max(at, next->fixed.at_ns));
	vdisk_events_add(fixed->events, at, next);
}

/* Process the first event. */
static void fixed_handle_event(struct fixed *fixed, struct vdisk_list *done)
{
	struct vdisk_events *events = fixed->events;
	u64 at = events->heap[0].due_ns;
	struct vdisk_cmd *cmd = events->heap[0].cmd;
	u64 net_ns;

	if (cmd->fixed.bps) {
		at = vdisk_link_transfer(&fixed->link[cmd->op], cmd->fixed.bps,
					 at, cmd->bytes);
		cmd->fixed.bps = 0;
		vdisk_events_replace_first(events, at, cmd);
		return;
	}

	vdisk_events_del_first(events);
	if (!cmd->fixed.served) {
		cmd->fixed.served = true;
		fixed_free_server(fixed, at);
		net_ns = vdisk_volume_draw_net_ns(&fixed->volume, cmd->seq);
		if (net_ns) {
			fixed->nr_in_net++;
			vdisk_events_add(events, at + net_ns, cmd);
			return;
		}
	} else {
		fixed->nr_in_net--;
	}
	vdisk_list_add(done, cmd);
}

static u64 fixed_run_events(struct vdisk_model *model, u64 now,
			    struct vdisk_list *done)
{
	struct fixed *fixed = to_fixed(model);
	u64 next;

	while ((next = fixed_next_event_ns(fixed)) <= now) {
		if (next == fixed->volume.due_ns)
			fixed_add_cmd(fixed, vdisk_volume_pop(&fixed->volume),
				      next);
		else
			fixed_handle_event(fixed, done);
	}
	return next;
}

static u64 fixed_change_params(struct vdisk_model *model,
			       const struct vdisk_params *params, u64 now)
{
	struct fixed *fixed = to_fixed(model);
	struct vdisk_cmd *cmd;

	fixed_set_params(fixed, params);
	vdisk_volume_change_params(&fixed->volume, params, now);
	while ((cmd = fixed_pop_waiting(fixed)))
		vdisk_events_add(fixed->events,
				 fixed_start_cmd(fixed, cmd, now), cmd);
	return fixed_next_event_ns(fixed);
}

static void fixed_get_stats(struct vdisk_model *model, u64 now,
			    struct vdisk_stats *stats)
{
	struct fixed *fixed = to_fixed(model);

	stats->nr_in_service = fixed->nr_busy + fixed->nr_in_net;
	stats->nr_waiting = fixed_count_waiting(fixed);
	stats->nr_waiting_max = fixed->nr_waiting_max;
	stats->busy_ns = fixed->service_ns_sum + fixed->nr_busy * now;
}

const struct vdisk_model_ops vdisk_fixed_ops = {
	.name = "fixed",
	.create = fixed_create,
	.destroy = fixed_destroy,
	.submit = fixed_submit_cmd,
	.run = fixed_run_events,
	.change = fixed_change_params,
	.stats = fixed_get_stats,
};
