/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM isoblk

#if !defined(ISOBLK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ISOBLK_TRACE_H

#include <linux/tracepoint.h>

struct isoblk_disk;
struct isoblk_gq;
struct isoblk_round;

TRACE_EVENT(isoblk_refill,
	TP_PROTO(const struct isoblk_disk *disk, const struct isoblk_round *r,
		 u64 sectors, unsigned int rounds),
	TP_ARGS(disk, r, sectors, rounds),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned int, groups)
		__field(u64, used)
		__field(u64, elapsed_ns)
		__field(s64, remainder)
		__field(u64, sectors)
		__field(unsigned int, rounds)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(disk->q->disk);
		__entry->groups = disk->nr_active;
		__entry->used = r->used;
		__entry->elapsed_ns = r->elapsed_ns;
		__entry->remainder = r->remainder;
		__entry->sectors = sectors;
		__entry->rounds = rounds;
	),
	TP_printk("%d,%d groups %u used %llu in %llu ns left %lld: gives %llu x %u",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->groups,
		  __entry->used, __entry->elapsed_ns, __entry->remainder,
		  __entry->sectors, __entry->rounds)
);

TRACE_EVENT(isoblk_throttle,
	TP_PROTO(const struct isoblk_gq *gq),
	TP_ARGS(gq),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, cgroup)
		__field(unsigned int, hctx)
		__field(int, held)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(gq->group->disk->q->disk);
		__entry->cgroup =
			cgroup_id(gq->group->pd.blkg->blkcg->css.cgroup);
		__entry->hctx = gq->hq->index;
		__entry->held = atomic_read(&gq->held);
	),
	TP_printk("%d,%d cgroup %llu hctx %u holds %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		  __entry->hctx, __entry->held)
);

TRACE_EVENT(isoblk_depth,
	TP_PROTO(const struct isoblk_disk *disk, int limit, u64 busy_permille,
		 u64 latency_ns),
	TP_ARGS(disk, limit, busy_permille, latency_ns),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(int, limit)
		__field(u64, busy_permille)
		__field(u64, latency_ns)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(disk->q->disk);
		__entry->limit = limit;
		__entry->busy_permille = busy_permille;
		__entry->latency_ns = latency_ns;
	),
	TP_printk("%d,%d limit %d busy %llu/1000 latency %llu ns",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->limit,
		  __entry->busy_permille, __entry->latency_ns)
);

#endif /* ISOBLK_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
