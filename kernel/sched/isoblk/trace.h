/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM isoblk

#if !defined(ISOBLK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ISOBLK_TRACE_H

#include <linux/tracepoint.h>

#include "isoblk/group.h"

TRACE_DEFINE_ENUM(ISO_URGENT);
TRACE_DEFINE_ENUM(ISO_BOOSTED);
TRACE_DEFINE_ENUM(ISO_IN_ORDER);
TRACE_DEFINE_ENUM(ISO_NO_ROOM);
TRACE_DEFINE_ENUM(ISO_NO_TAG);
TRACE_DEFINE_ENUM(ISO_THROTTLED);
TRACE_DEFINE_ENUM(ISO_PACED);
TRACE_DEFINE_ENUM(ISO_TURN);

#define show_iso_why(why)						\
	__print_symbolic(why,						\
			 { ISO_URGENT, "urgent" },			\
			 { ISO_BOOSTED, "boosted" },			\
			 { ISO_IN_ORDER, "in-order" },			\
			 { ISO_NO_ROOM, "no-room" },			\
			 { ISO_NO_TAG, "no-tag" },			\
			 { ISO_THROTTLED, "throttled" },		\
			 { ISO_PACED, "paced" },			\
			 { ISO_TURN, "turn" })

DECLARE_EVENT_CLASS(isoblk_rq,
	TP_PROTO(const struct request *rq, const struct iso_group *g, int why,
		 u64 waited),
	TP_ARGS(rq, g, why, waited),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, cgroup)
		__field(sector_t, sector)
		__field(unsigned int, sectors)
		__field(int, why)
		__field(u64, waited)
		__field(s64, lead)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(rq->q->disk);
		__entry->cgroup = cgroup_id(g->group->pd.blkg->blkcg->css.cgroup);
		__entry->sector = blk_rq_pos(rq);
		__entry->sectors = blk_rq_sectors(rq);
		__entry->why = why;
		__entry->waited = waited;
		__entry->lead = atomic64_read(&g->vtime) -
			q_to_iso(rq->q)->clock.vnow;
	),
	TP_printk("%d,%d cgroup %llu %llu+%u %s waited_ns %llu lead %lld",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		  (unsigned long long)__entry->sector, __entry->sectors,
		  show_iso_why(__entry->why), __entry->waited, __entry->lead)
);

/* A request comes: it is to be boosted, or has its place in order. */
DEFINE_EVENT(isoblk_rq, isoblk_enqueue,
	TP_PROTO(const struct request *rq, const struct iso_group *g, int why,
		 u64 waited),
	TP_ARGS(rq, g, why, waited)
);

/* A request goes to the device, after it has waited here. */
DEFINE_EVENT(isoblk_rq, isoblk_send,
	TP_PROTO(const struct request *rq, const struct iso_group *g, int why,
		 u64 waited),
	TP_ARGS(rq, g, why, waited)
);

/* A hardware queue sends nothing though requests wait. */
TRACE_EVENT(isoblk_block,
	TP_PROTO(const struct iso_hq *hq, const struct iso_choice *c),
	TP_ARGS(hq, c),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned int, queue)
		__field(int, why)
		__field(unsigned int, waiting)
		__field(unsigned int, in_flight)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(hq->disk->disk.q->disk);
		__entry->queue = hq->index;
		__entry->why = c->why;
		__entry->waiting = hq->nr;
		__entry->in_flight = atomic_read(&hq->in_flight);
	),
	TP_printk("%d,%d queue %u %s waiting %u in_flight %u",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->queue,
		  show_iso_why(__entry->why), __entry->waiting,
		  __entry->in_flight)
);

TRACE_EVENT(isoblk_epoch,
	TP_PROTO(const struct iso_disk *d, u64 rate, bool limited),
	TP_ARGS(d, rate, limited),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, rate)
		__field(u64, window)
		__field(u64, floor)
		__field(bool, limited)
		__field(bool, window_trial)
		__field(bool, floor_trial)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(d->disk.q->disk);
		__entry->rate = rate;
		__entry->window = d->room.size;
		__entry->floor = d->floor_now;
		__entry->limited = limited;
		__entry->window_trial = d->window.phase == WINDOW_TRIAL;
		__entry->floor_trial = d->floor.phase == FLOOR_TRIAL;
	),
	TP_printk("%d,%d rate %llu window %llu floor %lld limited %d trials %d %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->rate,
		  __entry->window, (s64)__entry->floor, __entry->limited,
		  __entry->window_trial, __entry->floor_trial)
);

/* How long interrupts were disabled at an epoch's end. */
TRACE_EVENT(isoblk_epoch_end,
	TP_PROTO(const struct iso_disk *d, u64 ns),
	TP_ARGS(d, ns),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned int, groups)
		__field(unsigned int, queues)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(d->disk.q->disk);
		__entry->groups = READ_ONCE(d->members.nr);
		__entry->queues = d->disk.nr_hqs;
		__entry->ns = ns;
	),
	TP_printk("%d,%d groups %u queues %u ns %llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->groups,
		  __entry->queues, __entry->ns)
);

#endif /* ISOBLK_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH isoblk
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
