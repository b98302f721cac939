/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM feedbac

#if !defined(FEEDBAC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FEEDBAC_TRACE_H

#include <linux/tracepoint.h>

struct isoblk_disk;

TRACE_EVENT(feedbac_predict,
	TP_PROTO(const struct isoblk_disk *disk, u64 predicted, u64 used,
		 u32 error_permille, u32 a),
	TP_ARGS(disk, predicted, used, error_permille, a),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, predicted)
		__field(u64, used)
		__field(u32, error_permille)
		__field(u32, a)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(disk->q->disk);
		__entry->predicted = predicted;
		__entry->used = used;
		__entry->error_permille = error_permille;
		__entry->a = a;
	),
	TP_printk("%d,%d predicted %llu used %llu error %u/1000 a %u/65536",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->predicted,
		  __entry->used, __entry->error_permille, __entry->a)
);

#endif /* FEEDBAC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE feedbac_trace
#include <trace/define_trace.h>
