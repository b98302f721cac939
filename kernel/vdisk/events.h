/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of a model: a binary heap, earliest first, allocated with room for
 * all commands. Events of one instant are ordered by the submission of their
 * commands, not by insertion.
 *
 * Not locked: the device's lock covers it.
 */
#ifndef ISOBLK_VDISK_EVENTS_H
#define ISOBLK_VDISK_EVENTS_H

#include <linux/bug.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "model.h"

/* An event of a command. */
struct vdisk_event {
	u64 due_ns;	/* time of the event, ns */
	u64 seq;	/* position of the command in the order of submission */
	struct vdisk_cmd *cmd; /* command */
};

/* Pending events. */
struct vdisk_events {
	u32 count;	/* number of events */
	u32 room;	/* size of the heap */
	/* events; heap[0] is the first */
	struct vdisk_event heap[] __counted_by(room);
};

/**
 * vdisk_events_create - allocate an empty heap
 * @room: maximum number of events
 *
 * Return: the heap, to be freed with kvfree(), or NULL. May sleep.
 */
static inline struct vdisk_events *vdisk_events_create(u32 room)
{
	struct vdisk_events *events;

	events = kvzalloc(struct_size(events, heap, room), GFP_KERNEL);
	if (events)
		events->room = room;
	return events;
}

/**
 * vdisk_events_next_ns - return the time of the first event
 * @events: the events
 *
 * Return: time of the first event, VDISK_NEVER_NS if there is none.
 */
static inline u64 vdisk_events_next_ns(const struct vdisk_events *events)
{
	return events->count ? events->heap[0].due_ns : VDISK_NEVER_NS;
}

static inline bool vdisk_event_is_before(const struct vdisk_event *a,
					 const struct vdisk_event *b)
{
	return a->due_ns < b->due_ns ||
	       (a->due_ns == b->due_ns && a->seq < b->seq);
}

/**
 * vdisk_events_add - add an event
 * @events: the events
 * @due: time of the event
 * @cmd: command of the event
 */
static inline void vdisk_events_add(struct vdisk_events *events, u64 due,
				    struct vdisk_cmd *cmd)
{
	struct vdisk_event new = { .due_ns = due, .seq = cmd->seq, .cmd = cmd };
	u32 hole = events->count;

	/* A command has one event at most: the caller exceeded max_cmds. */
	if (WARN_ON_ONCE(hole == events->room))
		return;

	events->count++;
	while (hole) {
		u32 parent = (hole - 1) / 2;

		if (!vdisk_event_is_before(&new, &events->heap[parent]))
			break;
		events->heap[hole] = events->heap[parent];
		hole = parent;
	}
	events->heap[hole] = new;
}

/* Replace the first event, which has been removed. */
static inline void vdisk_events_sift_down(struct vdisk_events *events,
					  struct vdisk_event new)
{
	u32 count = events->count;
	u32 hole = 0;
	u32 child;

	while ((child = 2 * hole + 1) < count) {
		if (child + 1 < count &&
		    vdisk_event_is_before(&events->heap[child + 1],
					  &events->heap[child]))
			child++;
		if (!vdisk_event_is_before(&events->heap[child], &new))
			break;
		events->heap[hole] = events->heap[child];
		hole = child;
	}
	events->heap[hole] = new;
}

/**
 * vdisk_events_del_first - remove the first event
 * @events: the events, not empty
 */
static inline void vdisk_events_del_first(struct vdisk_events *events)
{
	events->count--;
	if (events->count)
		vdisk_events_sift_down(events, events->heap[events->count]);
}

/**
 * vdisk_events_replace_first - remove the first event and add another
 * @events: the events, not empty
 * @due: time of the new event
 * @cmd: command of the event
 */
static inline void vdisk_events_replace_first(struct vdisk_events *events,
					      u64 due, struct vdisk_cmd *cmd)
{
	vdisk_events_sift_down(events, (struct vdisk_event){
		.due_ns = due, .seq = cmd->seq, .cmd = cmd,
	});
}

#endif /* ISOBLK_VDISK_EVENTS_H */
