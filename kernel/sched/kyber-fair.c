// SPDX-License-Identifier: GPL-2.0-only
/*
 * kyber-fair: Kyber Fairness, weights on top of Kyber.
 *
 * From Kyber: requests are of four domains (read, write, discard, other), and
 * a domain may have only so many with the device: each takes a token at
 * dispatch and gives it back at the end. Latencies steer the number of tokens.
 * Completions fall in eight buckets of a quarter of the domain's target. The device
 * is congested when the 90th percentile of a domain's time in it misses the
 * target; then a domain whose whole latency is well within its own, by the 99th
 * percentile, gives way, and has fewer. One that misses its own has more, and all
 * have while the device is not congested: then who waits, waits for its
 * share. Asynchronous requests may hold three quarters of the tags.
 *
 * From P3 ("I/O performance isolation framework for Linux containers", Pusan
 * National University, 2019): a queue a cgroup, a budget of sectors, and the next budget
 * from what was used:
 *
 *	B(k) = (sum of used * interval / T - sum of left) * w(k) / sum of w + left(k)
 *
 * with T the time since the last refill. The mechanics of budgets are those of
 * isoblk_share (queue.c); this file sizes the round.
 *
 * paper_mode is P3 to the letter: interval is refill_ms, a refill comes
 * when every active group has used its budget up, else when refill_ms is over;
 * a group that used nothing meanwhile is idle and is not counted. Its
 * troubles are known: a group with a small request now and then holds up all
 * others until refill_ms is over; a budget for 100 ms is spent in turns of one
 * request until the light groups have none, and wait out the rest.
 *
 * By default the interval is round_us, short, so that nobody waits long; a
 * refill comes as soon as the device has room and nobody who waits has
 * budget; what is left is bounded; and the device is not given more than it can
 * work on (depth.c). write_cost charges writes more than their size, where they
 * cost the device more: 100 percent, bytes, unless the user knows better.
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sbitmap.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "isoblk_share.h"

enum kf_domain {
	KF_READ,
	KF_WRITE,
	KF_DISCARD,
	KF_OTHER,
	KF_NR_DOMAINS,
};

static_assert(KF_NR_DOMAINS <= ISOBLK_MAX_DOMAINS);

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

/*
 * A round's length. Short enough that who is out of budget waits no longer
 * than a slow request takes; long enough that a refill's cost is spread.
 */
#define KF_ROUND_US		1000
#define KF_REFILL_MS		100

/* What completed on a CPU; that CPU's, reset by the timer. */
struct kf_latencies {
	u32 whole[KF_NR_TARGETS][KF_BUCKETS];
	u32 device[KF_NR_TARGETS][KF_BUCKETS];
};

/* A hardware queue. The waits have the locks of their wait queues. */
struct kf_hq {
	unsigned int domain;		/* served now; hq->lock */
	unsigned int batch;		/* requests of it so far; hq->lock */
	struct sbq_wait wait[KF_NR_DOMAINS];
	struct sbq_wait_state *ws[KF_NR_DOMAINS];	/* hq->lock */
	atomic_t wait_index[KF_NR_DOMAINS];
	struct isoblk_hq *hq;
};

struct kf_disk {
	struct isoblk_disk disk;	/* first: elevator_data is its address */
	struct sbitmap_queue tokens[KF_NR_DOMAINS];
	struct kf_hq *hq;
	unsigned int async_depth;	/* written while the queue is frozen */

	struct kf_latencies __percpu *latencies;
	u64 target_ns[KF_NR_TARGETS];	/* read without a lock */
	u64 adjusted_ns;		/* disk.lock */

	unsigned int round_us;		/* as below written by sysfs */
	unsigned int refill_ms;
};

static struct kf_disk *to_kf(struct isoblk_disk *disk)
{
	return container_of(disk, struct kf_disk, disk);
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

static u64 kf_round(struct isoblk_disk *disk, const struct isoblk_round *r)
{
	u64 shortest_ns = jiffies_to_nsecs(ISOBLK_TICK);
	struct kf_disk *kf = to_kf(disk);
	u64 interval_ns, round;

	if (disk->paper_mode) {
		interval_ns = (u64)kf->refill_ms * NSEC_PER_MSEC;
		if (!r->used)
			return isoblk_rate_round(disk, interval_ns);
		/* A rate means nothing over less than a tick. */
		round = mul_u64_u64_div_u64(r->used, interval_ns,
					    max(r->elapsed_ns, shortest_ns));
		/* The formula's bracket; nobody is taken anything away. */
		return r->remainder < (s64)round ? round - r->remainder : 0;
	}

	interval_ns = (u64)kf->round_us * NSEC_PER_USEC;
	return max(isoblk_rate_round(disk, interval_ns), r->floor);
}

/* ---- latencies ------------------------------------------------------- */

static void kf_count(u32 *buckets, u64 ns, u64 target_ns)
{
	u64 bucket = div64_u64(ns * KF_ON_TARGET, target_ns);

	buckets[min(bucket, KF_BUCKETS - 1)]++;
}

static void kf_completed_request(struct request *rq, u64 now)
{
	struct kf_disk *kf = rq->q->elevator->elevator_data;
	unsigned int domain = kf_domain(rq->cmd_flags);
	struct kf_latencies *lat;
	u64 target_ns;

	isoblk_completed_request(rq, now);
	if (domain >= KF_NR_TARGETS || !rq->io_start_time_ns)
		return;
	target_ns = READ_ONCE(kf->target_ns[domain]);
	/* An interrupt in between may cost a count. */
	lat = get_cpu_ptr(kf->latencies);
	kf_count(lat->whole[domain], now - rq->start_time_ns, target_ns);
	kf_count(lat->device[domain], now - rq->io_start_time_ns, target_ns);
	put_cpu_ptr(kf->latencies);
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

static void kf_gather(struct kf_disk *kf, struct kf_latencies *sum)
{
	struct kf_latencies *lat;
	unsigned int cpu, i;
	u32 *from, *to = (u32 *)sum;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		lat = per_cpu_ptr(kf->latencies, cpu);
		from = (u32 *)lat;
		for (i = 0; i < sizeof(*sum) / sizeof(u32); i++)
			to[i] += xchg(&from[i], 0);
	}
}

static void kf_set_depth(struct kf_disk *kf, unsigned int domain,
			 unsigned int depth)
{
	depth = clamp(depth, 1U, kf_max_depth[domain]);
	if (depth != kf->tokens[domain].sb.depth)
		sbitmap_queue_resize(&kf->tokens[domain], depth);
}

static void kf_tick(struct isoblk_disk *disk, u64 now)
{
	struct kf_disk *kf = to_kf(disk);
	struct kf_latencies sum;
	unsigned int domain, depth;
	bool congested = false;
	int bucket;

	if (now - kf->adjusted_ns < KF_ADJUST_NS)
		return;
	kf->adjusted_ns = now;
	kf_gather(kf, &sum);

	for (domain = 0; domain < KF_NR_TARGETS; domain++)
		if (kf_percentile(sum.device[domain], 90) >= KF_ON_TARGET)
			congested = true;

	for (domain = 0; domain < KF_NR_TARGETS; domain++) {
		depth = kf->tokens[domain].sb.depth;
		bucket = kf_percentile(sum.whole[domain], 99);
		if (!congested)
			depth += max(depth / KF_ON_TARGET, 1U);
		else if (bucket >= 0)
			depth = depth * (bucket + 1) / KF_ON_TARGET;
		kf_set_depth(kf, domain, depth);
	}
}

/* ---- tokens ---------------------------------------------------------- */

static unsigned int rq_token(const struct request *rq)
{
	return (u32)(unsigned long)rq->elv.priv[1] >> ISOBLK_RQ_SHIFT;
}

/* 0: none, else the number of the token and 1. */
static void rq_set_token(struct request *rq, unsigned int token)
{
	unsigned long state = (unsigned long)rq->elv.priv[1];

	state &= ~GENMASK(31, ISOBLK_RQ_SHIFT);
	rq->elv.priv[1] = (void *)(state | (unsigned long)token << ISOBLK_RQ_SHIFT);
}

static int kf_wake(wait_queue_entry_t *entry, unsigned int mode, int flags,
		   void *key)
{
	struct kf_hq *kh = READ_ONCE(entry->private);
	struct sbq_wait *wait = container_of(entry, struct sbq_wait, wait);

	sbitmap_del_wait_queue(wait);
	blk_mq_run_hw_queue(kh->hq->hctx, true);
	return 1;
}

static bool kf_waits(const struct kf_hq *kh, unsigned int domain)
{
	return !list_empty_careful(&kh->wait[domain].wait.entry);
}

/* A token for a request of @domain, or -1; then @kh is run when one is free. */
static int kf_get_token(struct kf_disk *kf, struct kf_hq *kh,
			unsigned int domain)
{
	struct sbitmap_queue *tokens = &kf->tokens[domain];
	struct sbq_wait *wait = &kh->wait[domain];
	int token = __sbitmap_queue_get(tokens);

	if (token < 0 && !kf_waits(kh, domain)) {
		kh->ws[domain] = sbq_wait_ptr(tokens, &kh->wait_index[domain]);
		sbitmap_add_wait_queue(tokens, kh->ws[domain], wait);
		/* One may have become free before we were seen to wait. */
		token = __sbitmap_queue_get(tokens);
	}
	if (token >= 0 && kf_waits(kh, domain)) {
		spin_lock_irq(&kh->ws[domain]->wait.lock);
		sbitmap_del_wait_queue(wait);
		spin_unlock_irq(&kh->ws[domain]->wait.lock);
	}
	return token;
}

static void kf_put_token(struct kf_disk *kf, struct request *rq)
{
	unsigned int token = rq_token(rq);

	if (!token)
		return;
	rq_set_token(rq, 0);
	sbitmap_queue_clear(&kf->tokens[kf_domain(rq->cmd_flags)], token - 1,
			    rq->mq_ctx->cpu);
}

/* ---- dispatch -------------------------------------------------------- */

static struct request *kf_take(struct kf_disk *kf, struct kf_hq *kh,
			       struct isoblk_hq *hq)
{
	struct request *rq;
	int token;

	if (!isoblk_ready(hq, kh->domain))
		return NULL;
	token = kf_get_token(kf, kh, kh->domain);
	if (token < 0)
		return NULL;
	rq = isoblk_take(hq, kh->domain);
	if (rq) {
		rq_set_token(rq, token + 1);
		kh->batch++;
	} else {
		sbitmap_queue_clear(&kf->tokens[kh->domain], token,
				    raw_smp_processor_id());
	}
	return rq;
}

static struct request *kf_pick(struct isoblk_hq *hq)
{
	struct kf_disk *kf = to_kf(hq->disk);
	struct kf_hq *kh = &kf->hq[hq->index];
	struct request *rq;
	unsigned int i;

	if (kh->batch < kf_batch[kh->domain]) {
		rq = kf_take(kf, kh, hq);
		if (rq)
			return rq;
	}
	for (i = 0; i < KF_NR_DOMAINS; i++) {
		kh->domain = (kh->domain + 1) % KF_NR_DOMAINS;
		kh->batch = 0;
		rq = kf_take(kf, kh, hq);
		if (rq)
			return rq;
	}
	return NULL;
}

static struct request *kf_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	return isoblk_dispatch(hctx, kf_pick);
}

static bool kf_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct isoblk_hq *hq = hctx->sched_data;
	bool waits = false;
	unsigned int domain;
	struct kf_hq *kh;

	/* See isoblk_has_work(). */
	if (unlikely(!hq))
		return false;
	kh = &to_kf(hq->disk)->hq[hq->index];
	for (domain = 0; domain < KF_NR_DOMAINS; domain++) {
		if (!isoblk_ready(hq, domain))
			continue;
		if (!kf_waits(kh, domain))
			return isoblk_has_work(hctx);
		waits = true;
	}
	if (!waits)
		return isoblk_has_work(hctx);
	/* Of those throttled, and now free to go, some may be of another domain. */
	return READ_ONCE(hq->nr_throttled) &&
		READ_ONCE(hq->gen) != READ_ONCE(hq->disk->gen) &&
		isoblk_depth_room(hq->disk, hq);
}

static void kf_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct kf_disk *kf = data->q->elevator->elevator_data;

	if (!op_is_sync(opf))
		data->shallow_depth = kf->async_depth;
	isoblk_limit_depth(opf, data);
}

static void kf_requeue_request(struct request *rq)
{
	kf_put_token(rq->q->elevator->elevator_data, rq);
	isoblk_requeue_request(rq);
}

static void kf_finish_request(struct request *rq)
{
	kf_put_token(rq->q->elevator->elevator_data, rq);
	isoblk_finish_request(rq);
}

/* ---- life ------------------------------------------------------------ */

static const struct isoblk_ops kf_ops = {
	.nr_domains	= KF_NR_DOMAINS,
	.stat_name	= "budget",
	.domain		= kf_domain,
	.round		= kf_round,
	.tick		= kf_tick,
};

static void kf_depth(struct request_queue *q)
{
	struct kf_disk *kf = q->elevator->elevator_data;

	isoblk_depth_updated(q);
	kf->async_depth = max(kf->disk.tags * KF_ASYNC_PERCENT / 100, 1U);
	isoblk_set_shallow(q, kf->async_depth);
}

static void kf_init_hq(struct kf_hq *kh)
{
	unsigned int domain;

	for (domain = 0; domain < KF_NR_DOMAINS; domain++) {
		INIT_LIST_HEAD(&kh->wait[domain].wait.entry);
		init_waitqueue_func_entry(&kh->wait[domain].wait, kf_wake);
		kh->wait[domain].wait.private = kh;
	}
}

static void kf_free(struct kf_disk *kf, unsigned int nr_tokens)
{
	while (nr_tokens--)
		sbitmap_queue_free(&kf->tokens[nr_tokens]);
	free_percpu(kf->latencies);
	kfree(kf->hq);
	kfree(kf);
}

static int kf_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct kf_disk *kf;
	unsigned int i = 0;
	int ret = -ENOMEM;

	kf = kzalloc_node(sizeof(*kf), GFP_KERNEL, q->node);
	if (!kf)
		return -ENOMEM;
	kf->hq = kcalloc_node(q->nr_hw_queues, sizeof(*kf->hq), GFP_KERNEL,
			      q->node);
	kf->latencies = alloc_percpu(struct kf_latencies);
	if (!kf->hq || !kf->latencies)
		goto free;
	for (i = 0; i < KF_NR_DOMAINS; i++) {
		ret = sbitmap_queue_init_node(&kf->tokens[i], kf_max_depth[i],
					      -1, false, GFP_KERNEL, q->node);
		if (ret)
			goto free;
	}
	memcpy(kf->target_ns, kf_target_ns, sizeof(kf->target_ns));
	kf->round_us = KF_ROUND_US;
	kf->refill_ms = KF_REFILL_MS;

	ret = isoblk_disk_init(&kf->disk, q, eq, &kf_ops);
	if (ret)
		goto free;
	for (i = 0; i < kf->disk.nr_hqs; i++) {
		kf_init_hq(&kf->hq[i]);
		kf->hq[i].hq = kf->disk.hq[i];
	}
	kf_depth(q);
	return 0;

free:
	kf_free(kf, i);
	return ret;
}

ISOBLK_ELEVATOR_HOOKS(kf, kf_init, kf_depth)

static void kf_exit_sched(struct elevator_queue *eq)
{
	struct kf_disk *kf = eq->elevator_data;

	isoblk_disk_exit(&kf->disk, eq);
	kf_free(kf, KF_NR_DOMAINS);
}

/* ---- sysfs ----------------------------------------------------------- */

#define KF_UINT(name, field, low, high)					\
static ssize_t kf_##name##_show(struct elevator_queue *e, char *page)	\
{									\
	struct kf_disk *kf = e->elevator_data;				\
									\
	return sysfs_emit(page, "%u\n", READ_ONCE(kf->field));		\
}									\
									\
static ssize_t kf_##name##_store(struct elevator_queue *e,		\
				 const char *page, size_t count)	\
{									\
	struct kf_disk *kf = e->elevator_data;				\
									\
	return isoblk_store_uint(page, count, &kf->field, low, high);	\
}

KF_UINT(round_us, round_us, 100, 1000000)
KF_UINT(write_cost, disk.write_cost, 1, 10000)

#define KF_TARGET(name, index)						\
static ssize_t kf_##name##_show(struct elevator_queue *e, char *page)	\
{									\
	struct kf_disk *kf = e->elevator_data;				\
									\
	return sysfs_emit(page, "%llu\n",				\
			  READ_ONCE(kf->target_ns[index]));		\
}									\
									\
static ssize_t kf_##name##_store(struct elevator_queue *e,		\
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

static ssize_t kf_refill_ms_show(struct elevator_queue *e, char *page)
{
	struct kf_disk *kf = e->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(kf->refill_ms));
}

static ssize_t kf_refill_ms_store(struct elevator_queue *e, const char *page,
				  size_t count)
{
	struct kf_disk *kf = e->elevator_data;
	ssize_t ret = isoblk_store_uint(page, count, &kf->refill_ms, 1, 10000);

	if (ret > 0)
		WRITE_ONCE(kf->disk.refill_ns,
			   (u64)kf->refill_ms * NSEC_PER_MSEC);
	return ret;
}

static ssize_t kf_paper_mode_show(struct elevator_queue *e, char *page)
{
	struct kf_disk *kf = e->elevator_data;

	return sysfs_emit(page, "%d\n", READ_ONCE(kf->disk.paper_mode));
}

static ssize_t kf_paper_mode_store(struct elevator_queue *e, const char *page,
				   size_t count)
{
	struct kf_disk *kf = e->elevator_data;
	bool on;
	int ret = kstrtobool(page, &on);

	if (ret)
		return ret;
	isoblk_set_paper_mode(&kf->disk, on);
	return count;
}

#define KF_ATTR(name) __ATTR(name, 0644, kf_##name##_show, kf_##name##_store)

static struct elv_fs_entry kf_attrs[] = {
	KF_ATTR(read_lat_nsec),
	KF_ATTR(write_lat_nsec),
	KF_ATTR(refill_ms),
	KF_ATTR(round_us),
	KF_ATTR(write_cost),
	KF_ATTR(paper_mode),
	ISOBLK_ATTRS,
	__ATTR_NULL
};

#ifdef CONFIG_BLK_DEBUG_FS
static int kf_debugfs_tokens(void *data, struct seq_file *m)
{
	struct request_queue *q = data;
	struct kf_disk *kf = q->elevator->elevator_data;
	unsigned int domain;

	for (domain = 0; domain < KF_NR_DOMAINS; domain++)
		seq_printf(m, "%s depth %u used %u\n", kf_name[domain],
			   kf->tokens[domain].sb.depth,
			   sbitmap_weight(&kf->tokens[domain].sb));
	seq_printf(m, "async_depth %u\n", kf->async_depth);
	return 0;
}

static const struct blk_mq_debugfs_attr kf_debugfs[] = {
	ISOBLK_DEBUGFS_ATTRS,
	{ "tokens", 0400, kf_debugfs_tokens },
	{ },
};
#endif

static struct elevator_type kyber_fair = {
	.ops = {
		.init_sched		= kf_init_sched,
		.exit_sched		= kf_exit_sched,
		.init_hctx		= isoblk_init_hctx,
		.exit_hctx		= isoblk_exit_hctx,
		.depth_updated		= kf_depth_updated,
		.limit_depth		= kf_limit_depth,
		.bio_merge		= isoblk_bio_merge,
		.prepare_request	= isoblk_prepare_request,
		.insert_requests	= isoblk_insert_requests,
		.dispatch_request	= kf_dispatch_request,
		.has_work		= kf_has_work,
		.completed_request	= kf_completed_request,
		.requeue_request	= kf_requeue_request,
		.finish_request		= kf_finish_request,
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
