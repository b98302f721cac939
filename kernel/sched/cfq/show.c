// SPDX-License-Identifier: GPL-2.0-only
/* Tunables in sysfs, and files in debugfs. */
#include <linux/module.h>
#include <linux/seq_file.h>

#include "cfq/cfq.h"
#include "cfq/show.h"

/* ---- sysfs ------------------------------------------------------------ */

#define CFQ_UINT(name, low, high)					\
static ssize_t cfq_##name##_show(struct elevator_queue *e, char *page)	\
{									\
	struct cfq_disk *cd = e->elevator_data;				\
									\
	return sysfs_emit(page, "%u\n", READ_ONCE(cd->tunables.name));	\
}									\
									\
static ssize_t cfq_##name##_store(struct elevator_queue *e,		\
				  const char *page, size_t count)	\
{									\
	struct cfq_disk *cd = e->elevator_data;				\
									\
	return isoblk_store_uint(page, count, &cd->tunables.name, low,	\
				 high);					\
}

/* Upper bound of the tunables in ms. */
#define CFQ_TUNABLE_MAX_MS	10000

CFQ_UINT(quantum, 1, 4096)
CFQ_UINT(fifo_expire_sync, 1, CFQ_TUNABLE_MAX_MS)
CFQ_UINT(fifo_expire_async, 1, CFQ_TUNABLE_MAX_MS)
CFQ_UINT(back_seek_max, 0, UINT_MAX)
CFQ_UINT(back_seek_penalty, 1, 1000)
CFQ_UINT(slice_sync, 1, CFQ_TUNABLE_MAX_MS)
CFQ_UINT(slice_async, 1, CFQ_TUNABLE_MAX_MS)
CFQ_UINT(slice_async_rq, 1, 4096)
CFQ_UINT(slice_idle, 0, CFQ_TUNABLE_MAX_MS)
CFQ_UINT(group_idle, 0, CFQ_TUNABLE_MAX_MS)
CFQ_UINT(low_latency, 0, 1)
CFQ_UINT(target_latency, 1, CFQ_TUNABLE_MAX_MS)

#define CFQ_ATTR(name) __ATTR(name, 0644, cfq_##name##_show, cfq_##name##_store)

struct elv_fs_entry cfq_attrs[] = {
	CFQ_ATTR(quantum),
	CFQ_ATTR(fifo_expire_sync),
	CFQ_ATTR(fifo_expire_async),
	CFQ_ATTR(back_seek_max),
	CFQ_ATTR(back_seek_penalty),
	CFQ_ATTR(slice_sync),
	CFQ_ATTR(slice_async),
	CFQ_ATTR(slice_async_rq),
	CFQ_ATTR(slice_idle),
	CFQ_ATTR(group_idle),
	CFQ_ATTR(low_latency),
	CFQ_ATTR(target_latency),
	__ATTR(gate, 0644, isoblk_gate_show, isoblk_gate_store),
	__ATTR_NULL
};

/* ---- debugfs ---------------------------------------------------------- */

#ifdef CONFIG_BLK_DEBUG_FS
static int cfq_debugfs_state(void *data, struct seq_file *m)
{
	struct cfq_disk *cd = isoblk_show_begin(data, cfq_debugfs_state);

	if (!cd)
		return 0;
	spin_lock_irq(&cd->disk.lock);
	seq_printf(m, "inflight %u queued %u busy %u idling %d blocked %d vclock %llu\n",
		   cd->in_flight[true] + cd->in_flight[false], cd->queued,
		   cd->nr_busy, cd->idling, cd->blocked, cd->min_vdisktime);
	spin_unlock_irq(&cd->disk.lock);
	isoblk_show_end(data);
	return 0;
}

static void cfq_show_queue(struct seq_file *m, const struct cfq_disk *cd,
			   const struct cfq_queue *queue)
{
	static const char *const class[CFQ_NR_CLASSES] = {
		[CFQ_RT] = "rt",
		[CFQ_BE] = "be",
		[CFQ_IDLE] = "idle",
	};
	static const char *const load[CFQ_NR_WORKLOADS] = {
		[CFQ_SYNC_IDLE] = "sync",
		[CFQ_SYNC_NOIDLE] = "sync-noidle",
		[CFQ_ASYNC] = "async",
	};

	seq_printf(m, "  %s/%u %s%s queued %u held %u think_us %llu seeks %u\n",
		   class[cfq_class_of(queue)], cfq_level(queue->prio),
		   load[queue->workload], queue == cd->active ? " active" : "",
		   queue->queued, queue->dispatched,
		   div_u64(queue->habits.think_ns, NSEC_PER_USEC),
		   hweight32(queue->habits.seek_history));
}

static int cfq_debugfs_groups(void *data, struct seq_file *m)
{
	struct cfq_disk *cd = isoblk_show_begin(data, cfq_debugfs_groups);
	struct isoblk_group *group;
	struct cfq_queue *queue;
	struct cfq_group *cg;
	unsigned int i, held;

	if (!cd)
		return 0;
	spin_lock_irq(&cd->disk.lock);
	list_for_each_entry(group, &cd->disk.weights.active, active_node) {
		cg = cfq_group_of(group);
		held = 0;
		for (i = 0; i < cd->disk.nr_hqs; i++)
			held += atomic_read(&group->gq[i]->allocated);
		isoblk_show_group(m, group);
		seq_printf(m, " vdisktime %llu time_us %llu busy %u held %u at_gate %u\n",
			   cg->vdisktime, div_u64(cg->time_ns, NSEC_PER_USEC),
			   cg->nr_busy, held, isoblk_group_nr_waiting(group));
		list_for_each_entry(queue, &cg->queues, group_node)
			if (queue->busy)
				cfq_show_queue(m, cd, queue);
	}
	spin_unlock_irq(&cd->disk.lock);
	isoblk_show_end(data);
	return 0;
}

const struct blk_mq_debugfs_attr cfq_debugfs[] = {
	{ "state", 0400, cfq_debugfs_state },
	{ "groups", 0400, cfq_debugfs_groups },
	{ "gate", 0400, isoblk_debugfs_gate },
	{ },
};
#endif
