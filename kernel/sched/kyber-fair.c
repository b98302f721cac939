// SPDX-License-Identifier: GPL-2.0-only
/*
 * kyber-fair: Kyber Fairness, weights on top of Kyber's domains.
 *
 * From P3 ("I/O performance isolation framework for Linux containers", Pusan National University,
 * 2019): each cgroup has a budget of sectors (budget.c). The next budget follows from the sectors
 * used:
 *
 *	B(k) = (sum of used * interval / T - sum of left) * w(k) / sum of w + left(k)
 *
 * T is the time since the last refill. In paper_mode the interval is refill_ms, which is also the
 * longest time between refills; else it is round_us.
 *
 * From Kyber: a request has one of four domains (read, write, discard, other), and takes a token of
 * its domain while in flight. Latencies set the number of tokens. A completion falls in one of
 * eight buckets, each a quarter of the domain's target wide. The device is congested if the 90th
 * percentile of the I/O latency of any domain misses its target. A congested device takes tokens
 * from each domain whose 99th percentile of total latency is well within its target, and gives
 * tokens to each domain that misses its target. While the device is not congested, all domains gain
 * tokens. Asynchronous requests may have three quarters of the tags.
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "budget/budget.h"
#include "muldiv.h"
#include "share/sleep.h"

enum kf_domain {
	KF_READ,
	KF_WRITE,
	KF_DISCARD,
	KF_OTHER,
	KF_NR_DOMAINS,
};

static_assert(KF_NR_DOMAINS <= BUDGET_NR_CLASSES);

static const char *const kf_domain_name[KF_NR_DOMAINS] = {
	[KF_READ] = "read",
	[KF_WRITE] = "write",
	[KF_DISCARD] = "discard",
	[KF_OTHER] = "other",
};

/*
 * Largest number of tokens. Tasks wait for reads; fewer writes fill the cache of a device; discards
 * are large and slow; other requests are rare.
 */
static const unsigned int kf_depth_max[KF_NR_DOMAINS] = {
	[KF_READ] = 256,
	[KF_WRITE] = 128,
	[KF_DISCARD] = 64,
	[KF_OTHER] = 16,
};

/* Requests of a domain in a row while other domains wait, in proportion to the tokens. */
static const unsigned int kf_batch[KF_NR_DOMAINS] = {
	[KF_READ] = 16,
	[KF_WRITE] = 8,
	[KF_DISCARD] = 1,
	[KF_OTHER] = 1,
};

/* Domains with a target. That of discards is so long that it shows a hang only. */
#define KF_NR_TARGETS		3

static const u64 kf_target_ns[KF_NR_TARGETS] = {
	[KF_READ] = 2ULL * NSEC_PER_MSEC,
	[KF_WRITE] = 10ULL * NSEC_PER_MSEC,
	[KF_DISCARD] = 5ULL * NSEC_PER_SEC,
};

/* Buckets below KF_GOOD_BUCKETS are within the target; the last bucket has no upper bound. */
#define KF_BUCKETS		8
#define KF_GOOD_BUCKETS		4

/* A percentile needs this number of completions; tokens are adjusted at this interval. */
#define KF_COMPLETIONS_MIN	500
#define KF_ADJUST_NS		(100ULL * NSEC_PER_MSEC)

/* Percentage of the tags that asynchronous requests may have. */
#define KF_ASYNC_PERCENT	75

/* Longest time between refills in paper mode, as in P3. */
#define KF_REFILL_MS		100

/* Device time of a round: several requests of the lightest of a few groups. */
#define KF_ROUND_US		1000
#define KF_ROUND_US_ROTATIONAL	100000

/* The first round, before the rate of the disk is known. */
#define KF_FIRST_ROUND_SECTORS	2048

/* Shortest time since the last refill from which the rate is taken. */
#define KF_RATE_SPAN_MIN_NS	(100ULL * NSEC_PER_USEC)

struct kf_latencies {
	u32 total[KF_NR_TARGETS][KF_BUCKETS];
	u32 io[KF_NR_TARGETS][KF_BUCKETS];
};

/*
 * Completions on a CPU so far. They are atomic because an interrupt may count while a task counts.
 * Where per-CPU arithmetic is not one instruction, that is cheaper than disabling interrupts.
 */
struct kf_counts {
	atomic_t total[KF_NR_TARGETS][KF_BUCKETS];
	atomic_t io[KF_NR_TARGETS][KF_BUCKETS];
};

static_assert(sizeof(struct kf_counts) == sizeof(struct kf_latencies));

struct kf_disk {
	struct budget_disk budget;	/* first: elevator_data is its address */
	unsigned int async_depth;	/* for asynchronous requests; written while frozen */

	struct kf_counts __percpu *counts;
	struct kf_latencies collected;	/* of all CPUs, at the last adjustment; disk lock */
	u64 target_ns[KF_NR_TARGETS];	/* target latency; read without a lock */
	u64 adjusted_ns;		/* time of the last adjustment of tokens, ns; disk lock */
	unsigned int refill_ms;		/* period in paper mode; written by sysfs */
	unsigned int round_us;		/* device time of a round; written by sysfs */
	u64 sectors_per_sec;		/* rate seen at the last refill; disk lock */
};

static struct kf_disk *to_kf(struct budget_disk *bd)
{
	return container_of(bd, struct kf_disk, budget);
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

static u64 kf_period_ns(const struct budget_disk *bd)
{
	const struct kf_disk *kf = container_of(bd, struct kf_disk, budget);

	return (u64)READ_ONCE(kf->refill_ms) * NSEC_PER_MSEC;
}

/* The bracket of P3's formula. */
static u64 kf_round(struct budget_disk *bd, const struct budget_round *r)
{
	struct kf_disk *kf = to_kf(bd);
	u64 interval_ns = READ_ONCE(bd->paper_mode) ? kf_period_ns(bd) :
		(u64)READ_ONCE(kf->round_us) * NSEC_PER_USEC;
	u64 round;

	if (r->used && r->elapsed_ns >= KF_RATE_SPAN_MIN_NS)
		kf->sectors_per_sec = mul_div(r->used, NSEC_PER_SEC, r->elapsed_ns);
	round = kf->sectors_per_sec ? mul_div(kf->sectors_per_sec, interval_ns, NSEC_PER_SEC) :
		KF_FIRST_ROUND_SECTORS;
	/* A round is never negative: no group loses what it has left. */
	return r->left < (s64)round ? round - r->left : 0;
}

/* ---- latencies ------------------------------------------------------- */

static unsigned int kf_bucket(u64 ns, u64 target_ns)
{
	return min(div64_u64(ns * KF_GOOD_BUCKETS, target_ns), KF_BUCKETS - 1);
}

static void kf_completed_request(struct request *rq, u64 now)
{
	struct kf_disk *kf = rq->q->elevator->elevator_data;
	unsigned int domain = kf_domain(rq->cmd_flags);
	struct kf_counts *counts;
	u64 target_ns;

	budget_completed_request(rq, now);
	if (domain >= KF_NR_TARGETS || !rq->io_start_time_ns)
		return;
	target_ns = READ_ONCE(kf->target_ns[domain]);
	/* A task that migrates here may count on its old CPU, which is harmless. */
	counts = raw_cpu_ptr(kf->counts);
	atomic_inc(&counts->total[domain][kf_bucket(now - rq->start_time_ns,
						    target_ns)]);
	atomic_inc(&counts->io[domain][kf_bucket(now - rq->io_start_time_ns,
						 target_ns)]);
}

/* The bucket that contains the percentile; -1: too few completions. */
static int kf_percentile(const u32 *buckets, unsigned int percent)
{
	unsigned int bucket, all = 0, below = 0;

	for (bucket = 0; bucket < KF_BUCKETS; bucket++)
		all += buckets[bucket];
	if (all < KF_COMPLETIONS_MIN)
		return -1;
	for (bucket = 0; bucket < KF_BUCKETS - 1; bucket++) {
		below += buckets[bucket];
		if (below * 100ULL >= (u64)all * percent)
			break;
	}
	return bucket;
}

/*
 * Collect the completions since the last call. Counters are never reset: a CPU that counts at the
 * same time must not lose the reset.
 */
static void kf_collect_latencies(struct kf_disk *kf, struct kf_latencies *since)
{
	u32 *to = (u32 *)since, *seen = (u32 *)&kf->collected, sum;
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

static void kf_tick(struct budget_disk *bd, u64 now)
{
	struct kf_disk *kf = to_kf(bd);
	struct kf_latencies sum;
	unsigned int domain;
	bool congested = false;
	int bucket;
	u64 depth;

	if (now - kf->adjusted_ns < KF_ADJUST_NS)
		return;
	kf->adjusted_ns = now;
	kf_collect_latencies(kf, &sum);

	for (domain = 0; domain < KF_NR_TARGETS; domain++)
		if (kf_percentile(sum.io[domain], 90) >= KF_GOOD_BUCKETS)
			congested = true;

	for (domain = 0; domain < KF_NR_TARGETS; domain++) {
		depth = bd->depth[domain];
		bucket = kf_percentile(sum.total[domain], 99);
		if (!congested)
			depth += max(depth / KF_GOOD_BUCKETS, 1ULL);
		else if (bucket >= 0)
			depth = depth * (bucket + 1) / KF_GOOD_BUCKETS;
		bd->depth[domain] = clamp(depth, 1ULL, kf_depth_max[domain]);
	}
}

/* ---- init, exit ------------------------------------------------------- */

static void kf_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	const struct kf_disk *kf = data->q->elevator->elevator_data;

	if (!op_is_sync(opf))
		data->shallow_depth = kf->async_depth;
	isoblk_limit_depth(opf, data);
}

static const struct budget_policy kf_policy = {
	.left_name	= "budget",
	.nr_classes	= KF_NR_DOMAINS,
	.class		= kf_domain,
	.batch		= kf_batch,
	.round		= kf_round,
	.period_ns	= kf_period_ns,
	.tick		= kf_tick,
};

static void kf_update_depth(struct request_queue *q)
{
	struct kf_disk *kf = q->elevator->elevator_data;

	isoblk_depth_updated(q);
	WRITE_ONCE(kf->async_depth,
		   max(kf->budget.disk.tags * KF_ASYNC_PERCENT / 100, 1U));
	isoblk_set_min_shallow_depth(q, kf->async_depth);
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
	kf->round_us = blk_queue_rot(q) ? KF_ROUND_US_ROTATIONAL : KF_ROUND_US;

	ret = budget_init(&kf->budget, q, eq, &kf_policy);
	if (ret)
		goto free;
	for (i = 0; i < KF_NR_DOMAINS; i++)
		kf->budget.depth[i] = kf_depth_max[i];
	kf_update_depth(q);
	return 0;

free:
	kf_free(kf);
	return ret;
}

ISOBLK_ELEVATOR_HOOKS(kf, kf_init, kf_update_depth)

static void kf_exit_sched(struct elevator_queue *eq)
{
	struct kf_disk *kf = eq->elevator_data;

	budget_exit(&kf->budget, eq);
	kf_free(kf);
}

/* ---- sysfs ----------------------------------------------------------- */

ISOBLK_UINT(kf_disk, refill_ms, refill_ms, 1, 10000)
ISOBLK_UINT(kf_disk, round_us, round_us, 100, 1000000)

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

#define KF_ATTR(name) __ATTR(name, 0644, name##_show, name##_store)

static struct elv_fs_entry kf_attrs[] = {
	KF_ATTR(read_lat_nsec),
	KF_ATTR(write_lat_nsec),
	KF_ATTR(refill_ms),
	KF_ATTR(round_us),
	__ATTR(paper_mode, 0644, budget_paper_mode_show,
	       budget_paper_mode_store),
	__ATTR(gate, 0644, isoblk_gate_show, isoblk_gate_store),
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
		seq_printf(m, "%s depth %u used %u\n", kf_domain_name[domain],
			   READ_ONCE(kf->budget.depth[domain]),
			   READ_ONCE(kf->budget.in_flight[domain]));
	seq_printf(m, "async_depth %u\n", READ_ONCE(kf->async_depth));
	isoblk_show_end(data);
	return 0;
}

static const struct blk_mq_debugfs_attr kf_debugfs[] = {
	{ "groups", 0400, budget_debugfs_groups },
	{ "gate", 0400, isoblk_debugfs_gate },
	{ "tokens", 0400, kf_debugfs_tokens },
	{ },
};
#endif

static struct elevator_type kyber_fair = {
	.ops = {
		.init_sched		= kf_init_sched,
		.exit_sched		= kf_exit_sched,
		.init_hctx		= isoblk_init_hctx,
		.depth_updated		= kf_depth_updated,
		.exit_hctx		= isoblk_exit_hctx,
		.limit_depth		= kf_limit_depth,
		.bio_merge		= budget_bio_merge,
		.prepare_request	= budget_prepare_request,
		.insert_requests	= budget_insert_requests,
		.dispatch_request	= budget_dispatch_request,
		.has_work		= budget_has_work,
		.completed_request	= kf_completed_request,
		.requeue_request	= budget_requeue_request,
		.finish_request		= budget_finish_request,
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
