// SPDX-License-Identifier: GPL-2.0-only
/*
 * kyber-fair: Kyber Fairness, weights and Kyber's domains.
 *
 * From Kyber: requests are of four domains (read, write, discard, other), and
 * a domain may have only so many with the device. Latencies steer how many.
 * Completions fall in eight buckets of a quarter of the domain's target. The device
 * is congested when the 90th percentile of a domain's time in it misses the
 * target; then a domain whose whole latency is well within its own, by the 99th
 * percentile, gives way, and has fewer. One that misses its own has more, and all
 * have while the device is not congested: then who waits, waits for its
 * share. Asynchronous requests may hold three quarters of the tags. All else is the
 * core's (core.c), whose rounds are round_us of the device's time; a domain is one of
 * its classes, and what it may have its tokens.
 *
 * From P3 ("I/O performance isolation framework for Linux containers", Pusan
 * National University, 2019), in paper_mode (paper.c): a budget of sectors a cgroup,
 * and the next budget from what was used:
 *
 *	B(k) = (sum of used * interval / T - sum of left) * w(k) / sum of w + left(k)
 *
 * with T the time since the last refill. A refill comes when every active group has
 * used its budget up, else when refill_ms is over. Its troubles are known: a group with
 * a small request now and then holds up all others until refill_ms is over; a budget
 * for 100 ms is spent in turns of one request until the light groups have none, and
 * wait out the rest.
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "core/charge.h"
#include "core/elevator.h"
#include "core/show.h"
#include "core/size.h"
#include "muldiv.h"
#include "share/sleep.h"

enum kf_domain {
	KF_READ,
	KF_WRITE,
	KF_DISCARD,
	KF_OTHER,
	KF_NR_DOMAINS,
};

static_assert(KF_NR_DOMAINS <= ISO_CLASSES);

static const char *const kf_name[KF_NR_DOMAINS] = {
	[KF_READ] = "read",
	[KF_WRITE] = "write",
	[KF_DISCARD] = "discard",
	[KF_OTHER] = "other",
};

/*
 * Tokens at most: reads are what people wait for; writes fill a device's buffer
 * with fewer; discards are large and slow; the rest is rare.
 */
static const unsigned int kf_max_depth[KF_NR_DOMAINS] = {
	[KF_READ] = 256,
	[KF_WRITE] = 128,
	[KF_DISCARD] = 64,
	[KF_OTHER] = 16,
};

/* Requests of a domain in a row, while others wait: in the same proportion. */
static const unsigned int kf_batch[KF_NR_DOMAINS] = {
	[KF_READ] = 16,
	[KF_WRITE] = 8,
	[KF_DISCARD] = 1,
	[KF_OTHER] = 1,
};

/* Domains with a target; a discard's is only to be noticed if it hangs. */
#define KF_NR_TARGETS		3

static const u64 kf_target_ns[KF_NR_TARGETS] = {
	[KF_READ] = 2ULL * NSEC_PER_MSEC,
	[KF_WRITE] = 10ULL * NSEC_PER_MSEC,
	[KF_DISCARD] = 5ULL * NSEC_PER_SEC,
};

/* The target ends with bucket KF_ON_TARGET - 1; the last bucket is open. */
#define KF_BUCKETS		8
#define KF_ON_TARGET		4

/* Percentiles need so many completions, and are taken so often. */
#define KF_MIN_COMPLETIONS	500
#define KF_ADJUST_NS		(100ULL * NSEC_PER_MSEC)

/* Of the tags, for asynchronous requests: percent. */
#define KF_ASYNC_PERCENT	75

/* A refill comes at the latest after this, as in P3. */
#define KF_REFILL_MS		100

struct kf_latencies {
	u32 whole[KF_NR_TARGETS][KF_BUCKETS];
	u32 device[KF_NR_TARGETS][KF_BUCKETS];
};

/*
 * What completed on a CPU so far. Atomic, for a task may count that an interrupt finds
 * counting; and cheaper than to hold that off where per-CPU arithmetic is no instruction.
 */
struct kf_counts {
	atomic_t whole[KF_NR_TARGETS][KF_BUCKETS];
	atomic_t device[KF_NR_TARGETS][KF_BUCKETS];
};

static_assert(sizeof(struct kf_counts) == sizeof(struct kf_latencies));

struct kf_disk {
	struct iso_disk core;		/* first: elevator_data is its address */
	unsigned int async_depth;	/* written while the queue is frozen */

	struct kf_counts __percpu *counts;
	struct kf_latencies seen;	/* of all CPUs, at the last look; disk lock */
	u64 target_ns[KF_NR_TARGETS];	/* read without a lock */
	u64 adjusted_ns;		/* disk lock */
	unsigned int refill_ms;		/* written by sysfs */
};

static struct kf_disk *to_kf(struct iso_disk *d)
{
	return container_of(d, struct kf_disk, core);
}

static unsigned int kf_domain(blk_opf_t opf)
{
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		return KF_READ;
	case REQ_OP_WRITE:
		return KF_WRITE;
	case REQ_OP_DISCARD:
		return KF_DISCARD;
	default:
		return KF_OTHER;
	}
}

/* ---- budgets --------------------------------------------------------- */

/* P3's bracket. */
static u64 kf_refill(struct iso_disk *d, const struct iso_round *r)
{
	u64 interval_ns = (u64)READ_ONCE(to_kf(d)->refill_ms) * NSEC_PER_MSEC;
	u64 shortest_ns = jiffies_to_nsecs(ISOBLK_TICK), round;

	if (!r->used)
		round = max(iso_work_in(d, interval_ns), d->device.mean_work);
	else
		/* A rate means nothing over less than a tick. */
		round = mul_div(r->used, interval_ns,
				max(r->elapsed_ns, shortest_ns));
	/* Nobody is taken anything away. */
	return r->left < (s64)round ? round - r->left : 0;
}

/* ---- latencies ------------------------------------------------------- */

static unsigned int kf_bucket(u64 ns, u64 target_ns)
{
	return min(div64_u64(ns * KF_ON_TARGET, target_ns), KF_BUCKETS - 1);
}

static void kf_completed_request(struct request *rq, u64 now)
{
	struct kf_disk *kf = rq->q->elevator->elevator_data;
	unsigned int domain = kf_domain(rq->cmd_flags);
	struct kf_counts *counts;
	u64 target_ns;

	isoblk_completed_request(rq, now);
	if (domain >= KF_NR_TARGETS || !rq->io_start_time_ns)
		return;
	target_ns = READ_ONCE(kf->target_ns[domain]);
	/* Whoever is moved to another CPU meanwhile may count on the former's. */
	counts = raw_cpu_ptr(kf->counts);
	atomic_inc(&counts->whole[domain][kf_bucket(now - rq->start_time_ns,
						    target_ns)]);
	atomic_inc(&counts->device[domain][kf_bucket(now - rq->io_start_time_ns,
						     target_ns)]);
}

/* The bucket that holds the percentile, or -1: too few. */
static int kf_percentile(const u32 *buckets, unsigned int percent)
{
	unsigned int bucket, all = 0, below = 0;

	for (bucket = 0; bucket < KF_BUCKETS; bucket++)
		all += buckets[bucket];
	if (all < KF_MIN_COMPLETIONS)
		return -1;
	for (bucket = 0; bucket < KF_BUCKETS - 1; bucket++) {
		below += buckets[bucket];
		if (below * 100ULL >= (u64)all * percent)
			break;
	}
	return bucket;
}

/*
 * What has completed since the last look. Counts are never reset: a CPU that is just
 * counting would write the old one back.
 */
static void kf_gather(struct kf_disk *kf, struct kf_latencies *since)
{
	u32 *to = (u32 *)since, *seen = (u32 *)&kf->seen, sum;
	unsigned int cpu, i;
	const atomic_t *from;

	memset(since, 0, sizeof(*since));
	for_each_possible_cpu(cpu) {
		from = (const atomic_t *)per_cpu_ptr(kf->counts, cpu);
		for (i = 0; i < sizeof(*since) / sizeof(u32); i++)
			to[i] += atomic_read(&from[i]);
	}
	for (i = 0; i < sizeof(*since) / sizeof(u32); i++) {
		sum = to[i];
		to[i] = sum - seen[i];
		seen[i] = sum;
	}
}

static void kf_tick(struct iso_disk *d, u64 now)
{
	struct kf_disk *kf = to_kf(d);
	struct kf_latencies sum;
	unsigned int domain;
	bool congested = false;
	int bucket;
	u64 depth;

	if (now - kf->adjusted_ns < KF_ADJUST_NS)
		return;
	kf->adjusted_ns = now;
	kf_gather(kf, &sum);

	for (domain = 0; domain < KF_NR_TARGETS; domain++)
		if (kf_percentile(sum.device[domain], 90) >= KF_ON_TARGET)
			congested = true;

	for (domain = 0; domain < KF_NR_TARGETS; domain++) {
		depth = d->tokens[domain].size;
		bucket = kf_percentile(sum.whole[domain], 99);
		if (!congested)
			depth += max(depth / KF_ON_TARGET, 1ULL);
		else if (bucket >= 0)
			depth = depth * (bucket + 1) / KF_ON_TARGET;
		iso_room_resize(&d->tokens[domain],
				clamp(depth, 1ULL, kf_max_depth[domain]));
	}
}

/* ---- life ------------------------------------------------------------ */

static void kf_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	const struct kf_disk *kf = data->q->elevator->elevator_data;

	if (!op_is_sync(opf))
		data->shallow_depth = kf->async_depth;
	isoblk_limit_depth(opf, data);
}

static const struct iso_policy kf_policy = {
	.left_name	= "budget",
	.nr_classes	= KF_NR_DOMAINS,
	.class		= kf_domain,
	.batch		= kf_batch,
	.refill		= kf_refill,
	.tick		= kf_tick,
};

static void kf_depth(struct request_queue *q)
{
	struct kf_disk *kf = q->elevator->elevator_data;

	isoblk_depth_updated(q);
	WRITE_ONCE(kf->async_depth,
		   max(kf->core.disk.tags * KF_ASYNC_PERCENT / 100, 1U));
	isoblk_set_shallow(q, kf->async_depth);
}

static void kf_free(struct kf_disk *kf)
{
	free_percpu(kf->counts);
	kfree(kf);
}

static int kf_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct kf_disk *kf;
	unsigned int i;
	int ret = -ENOMEM;

	kf = kzalloc_node(sizeof(*kf), GFP_KERNEL, q->node);
	if (!kf)
		return -ENOMEM;
	kf->counts = alloc_percpu(struct kf_counts);
	if (!kf->counts)
		goto free;
	memcpy(kf->target_ns, kf_target_ns, sizeof(kf->target_ns));
	kf->refill_ms = KF_REFILL_MS;
	kf->core.rounds.refill_ns = KF_REFILL_MS * NSEC_PER_MSEC;

	ret = isoblk_core_init(&kf->core, q, eq, &kf_policy);
	if (ret)
		goto free;
	for (i = 0; i < KF_NR_DOMAINS; i++)
		iso_room_resize(&kf->core.tokens[i], kf_max_depth[i]);
	kf_depth(q);
	return 0;

free:
	kf_free(kf);
	return ret;
}

ISOBLK_ELEVATOR_HOOKS(kf, kf_init, kf_depth)

static void kf_exit_sched(struct elevator_queue *eq)
{
	struct kf_disk *kf = eq->elevator_data;

	isoblk_core_exit(&kf->core, eq);
	kf_free(kf);
}

/* ---- sysfs ----------------------------------------------------------- */

ISOBLK_UINT(kf_disk, round_us, core.tunables.hold_us, 100, 1000000)
static ssize_t write_cost_show(struct elevator_queue *e, char *page)
{
	struct kf_disk *kf = e->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(kf->core.tunables.write_cost));
}

static ssize_t write_cost_store(struct elevator_queue *e, const char *page,
				size_t count)
{
	struct kf_disk *kf = e->elevator_data;
	ssize_t ret = isoblk_store_uint(page, count,
					&kf->core.tunables.write_cost,
					1, 10000);

	if (ret > 0)
		isoblk_change_account(&kf->core, kf->core.tariff.account);
	return ret;
}

#define KF_TARGET(name, index)						\
static ssize_t name##_show(struct elevator_queue *e, char *page)	\
{									\
	struct kf_disk *kf = e->elevator_data;				\
									\
	return sysfs_emit(page, "%llu\n",				\
			  READ_ONCE(kf->target_ns[index]));		\
}									\
									\
static ssize_t name##_store(struct elevator_queue *e,		\
				 const char *page, size_t count)	\
{									\
	struct kf_disk *kf = e->elevator_data;				\
	u64 ns;								\
	int ret = kstrtou64(page, 10, &ns);				\
									\
	if (ret)							\
		return ret;						\
	if (!ns || ns > NSEC_PER_SEC * 60ULL)				\
		return -ERANGE;						\
	WRITE_ONCE(kf->target_ns[index], ns);				\
	return count;							\
}

KF_TARGET(read_lat_nsec, KF_READ)
KF_TARGET(write_lat_nsec, KF_WRITE)

static ssize_t refill_ms_show(struct elevator_queue *e, char *page)
{
	struct kf_disk *kf = e->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(kf->refill_ms));
}

static ssize_t refill_ms_store(struct elevator_queue *e, const char *page,
			       size_t count)
{
	struct kf_disk *kf = e->elevator_data;
	ssize_t ret = isoblk_store_uint(page, count, &kf->refill_ms, 1, 10000);

	if (ret > 0)
		WRITE_ONCE(kf->core.rounds.refill_ns,
			   (u64)kf->refill_ms * NSEC_PER_MSEC);
	return ret;
}

#define KF_ATTR(name) __ATTR(name, 0644, name##_show, name##_store)

static struct elv_fs_entry kf_attrs[] = {
	KF_ATTR(read_lat_nsec),
	KF_ATTR(write_lat_nsec),
	KF_ATTR(refill_ms),
	KF_ATTR(round_us),
	KF_ATTR(write_cost),
	__ATTR(paper_mode, 0644, isoblk_paper_mode_show,
	       isoblk_paper_mode_store),
	ISOBLK_CORE_ATTRS,
	__ATTR_NULL
};

#ifdef CONFIG_BLK_DEBUG_FS
static int kf_debugfs_tokens(void *data, struct seq_file *m)
{
	struct kf_disk *kf = isoblk_show_begin(data, kf_debugfs_tokens);
	unsigned int domain;

	if (!kf)
		return 0;
	for (domain = 0; domain < KF_NR_DOMAINS; domain++)
		seq_printf(m, "%s depth %llu used %lld\n", kf_name[domain],
			   READ_ONCE(kf->core.tokens[domain].size),
			   iso_room_used(&kf->core.tokens[domain]));
	seq_printf(m, "async_depth %u\n", READ_ONCE(kf->async_depth));
	isoblk_show_end(data);
	return 0;
}

static const struct blk_mq_debugfs_attr kf_debugfs[] = {
	ISOBLK_CORE_DEBUGFS,
	{ "tokens", 0400, kf_debugfs_tokens },
	{ },
};
#endif

static struct elevator_type kyber_fair = {
	.ops = {
		.init_sched		= kf_init_sched,
		.exit_sched		= kf_exit_sched,
		.init_hctx		= isoblk_core_init_hctx,
		.depth_updated		= kf_depth_updated,
		.exit_hctx		= isoblk_exit_hctx,
		.limit_depth		= kf_limit_depth,
		.allow_merge		= isoblk_allow_merge,
		.bio_merge		= isoblk_bio_merge,
		.prepare_request	= isoblk_prepare_request,
		.insert_requests	= isoblk_insert_requests,
		.dispatch_request	= isoblk_dispatch_request,
		.has_work		= isoblk_has_work,
		.completed_request	= kf_completed_request,
		.requeue_request	= isoblk_requeue_request,
		.finish_request		= isoblk_finish_request,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = kf_debugfs,
#endif
	.elevator_attrs = kf_attrs,
	.elevator_name = "kyber-fair",
	.elevator_owner = THIS_MODULE,
};

static int __init kf_module_init(void)
{
	return elv_register(&kyber_fair);
}

static void __exit kf_module_exit(void)
{
	elv_unregister(&kyber_fair);
}

module_init(kf_module_init);
module_exit(kf_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Kyber Fairness: cgroup weights on top of Kyber");
