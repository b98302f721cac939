/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM isoblk

#if !defined(ISOBLK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ISOBLK_TRACE_H

#include <linux/tracepoint.h>

#include "core/disk.h"

TRACE_EVENT(isoblk_epoch,
	TP_PROTO(const struct iso_disk *d, const struct window_epoch *e),
	TP_ARGS(d, e),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, rate)
		__field(u64, peak)
		__field(u64, busy)
		__field(u64, size)
		__field(bool, limited)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(d->disk.q->disk);
		__entry->rate = e->rate;
		__entry->peak = e->peak;
		__entry->busy = e->busy;
		__entry->size = d->room.size;
		__entry->limited = e->limited;
	),
	TP_printk("%d,%d rate %llu peak %llu busy %llu window %llu limited %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->rate,
		  __entry->peak, __entry->busy, __entry->size,
		  __entry->limited)
);

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
#define TRACE_INCLUDE_PATH core
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
