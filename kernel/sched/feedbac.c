// SPDX-License-Identifier: GPL-2.0-only
/*
 * feedbac: FeedBAC, feedback-based allocation of credits.
 *
 * From P2 ("Dynamic Bandwidth Distribution Method for High Performance Non-volatile Memory in Cloud
 * Computing Environment", IIBC 20(3), 2020):
 *
 *  - The credit allocator gives each group credit by weight, once per allocation period. A group's
 *    requests are sent in their order while it has credit. The disk never idles.
 *  - The credit predictor estimates the credit to give, by double exponential smoothing of the rate
 *    at which credit was used (predict.c). An SSD's speed changes with garbage collection and as it
 *    fills, and the prediction follows it.
 *  - Correction 1: the prediction is less than the device can do. Credit is allocated again as soon
 *    as it is used up.
 *  - Correction 2: the prediction is more than the device can do. Unused credit is kept.
 *
 * Credit is a budget; budget.c handles its use and its refill. In paper_mode the allocation period
 * is alloc_us, and ends at a tick. By default no period ends: correction 1 applies as soon as all
 * groups with requests, waiting or in flight, have used up their credit.
 */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "budget/budget.h"
#include "muldiv.h"
#include "predict.h"
#include "share/sleep.h"

#define CREATE_TRACE_POINTS
#include "feedbac_trace.h"

/* Prediction period: averages the noise of a device, and follows changes of its state. */
#define FB_PREDICT_MS		100

/* Allocation period: several requests of the lightest of a few groups. */
#define FB_ALLOC_US		1000
#define FB_ALLOC_US_ROTATIONAL	100000

/* The first credit, before the speed of the disk is known. */
#define FB_FIRST_CREDIT_SECTORS	2048

/* Predictions kept for debugfs: half a minute of them. */
#define FB_HISTORY_MAX		300

/* In sysfs, limits of a are per mille. */
#define FB_PERMILLE(a)		DIV_ROUND_CLOSEST((a) * 1000U, PREDICT_ONE)

/* A prediction and its outcome: sectors per prediction period. */
struct fb_outcome {
	u64 at_ns;
	u64 predicted;
	u64 used;
	u32 error_permille;
	u32 a;
};

struct fb_disk {
	struct budget_disk budget;	/* first: elevator_data is its address */

	unsigned int alloc_us;		/* this and the next three: written by sysfs */
	unsigned int predict_ms;
	unsigned int a_min;		/* per mille */
	unsigned int a_max;

	/* Under the disk lock: */
	struct predict predict;
	u64 credit;			/* predicted credit of an allocation, sectors */
	u64 period_start_ns;		/* start of the prediction period, ns */
	u64 period_start_sectors;	/* done_sectors at that time */
	u64 allocations;		/* number of allocations in this prediction period */
	struct fb_outcome history[FB_HISTORY_MAX];
	unsigned int nr_history;	/* outcomes so far; the newest is the one before */
};

static struct fb_disk *to_fb(struct budget_disk *bd)
{
	return container_of(bd, struct fb_disk, budget);
}

/* ---- allocator ------------------------------------------------------- */

static u64 fb_alloc_ns(const struct fb_disk *fb)
{
	return (u64)READ_ONCE(fb->alloc_us) * NSEC_PER_USEC;
}

static u64 fb_period_ns(const struct budget_disk *bd)
{
	return fb_alloc_ns(container_of(bd, struct fb_disk, budget));
}

/* A round is the predicted credit, or a constant before the first prediction. */
static u64 fb_round(struct budget_disk *bd, const struct budget_round *r)
{
	struct fb_disk *fb = to_fb(bd);

	fb->allocations++;
	return fb->credit ?: FB_FIRST_CREDIT_SECTORS;
}

/* ---- predictor ------------------------------------------------------- */

static void fb_record_outcome(struct fb_disk *fb, u64 now, u64 predicted, u64 used)
{
	struct fb_outcome *o = &fb->history[fb->nr_history++ % FB_HISTORY_MAX];

	o->at_ns = now;
	o->predicted = predicted;
	o->used = used;
	o->error_permille = predict_error_permille(&fb->predict);
	o->a = fb->predict.a;
	trace_feedbac_predict(&fb->budget.disk, predicted, used, o->error_permille,
			      o->a);
}

/*
 * End a prediction period. The credit used is the rate at which its allocations were used, scaled
 * to the configured length of the period. A period in which no request completed shows nothing
 * about the device, and is left out.
 */
static void fb_tick(struct budget_disk *bd, u64 now)
{
	struct fb_disk *fb = to_fb(bd);
	u64 length_ns = (u64)fb->predict_ms * NSEC_PER_MSEC;
	u64 span_ns = now - fb->period_start_ns;
	u64 sectors, used, predicted = fb->predict.next;

	if (span_ns < length_ns)
		return;
	sectors = bd->done_sectors;
	/* Skip the first period, and one that is twice too long: the timer did not run. */
	if (span_ns < 2 * length_ns && sectors != fb->period_start_sectors) {
		used = mul_div(sectors - fb->period_start_sectors, length_ns,
			       span_ns);
		predict_next(&fb->predict, used);
		fb_record_outcome(fb, now, predicted, used);
		fb->credit = mul_div(fb->predict.next, fb_alloc_ns(fb),
				     length_ns);
	}
	fb->period_start_ns = now;
	fb->period_start_sectors = sectors;
	fb->allocations = 0;
}

static void fb_restart_predictor(struct fb_disk *fb)
{
	predict_init(&fb->predict, fb->a_min * (u64)PREDICT_ONE / 1000,
		     fb->a_max * (u64)PREDICT_ONE / 1000);
	fb->credit = 0;
}

/* ---- init, exit ------------------------------------------------------- */

static const struct budget_policy fb_policy = {
	.left_name	= "credit",
	.round		= fb_round,
	.period_ns	= fb_period_ns,
	.tick		= fb_tick,
};

static int fb_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct fb_disk *fb;
	int ret;

	fb = kzalloc_node(sizeof(*fb), GFP_KERNEL, q->node);
	if (!fb)
		return -ENOMEM;
	fb->alloc_us = blk_queue_rot(q) ? FB_ALLOC_US_ROTATIONAL : FB_ALLOC_US;
	fb->predict_ms = FB_PREDICT_MS;
	fb->a_min = FB_PERMILLE(PREDICT_A_MIN);
	fb->a_max = FB_PERMILLE(PREDICT_A_MAX);

	ret = budget_init(&fb->budget, q, eq, &fb_policy);
	if (ret) {
		kfree(fb);
		return ret;
	}
	fb_restart_predictor(fb);
	return 0;
}

ISOBLK_ELEVATOR_HOOKS(fb, fb_init, isoblk_depth_updated)

static void fb_exit_sched(struct elevator_queue *eq)
{
	struct fb_disk *fb = eq->elevator_data;

	budget_exit(&fb->budget, eq);
	kfree(fb);
}

/* ---- sysfs ----------------------------------------------------------- */

#define FB_SHOW(name, field)						\
static ssize_t fb_##name##_show(struct elevator_queue *e, char *page)	\
{									\
	struct fb_disk *fb = e->elevator_data;				\
									\
	return sysfs_emit(page, "%u\n", READ_ONCE(fb->field));		\
}

/* A new value invalidates what the predictor has learnt. */
#define FB_STORE(name, field, low, high)				\
static ssize_t fb_##name##_store(struct elevator_queue *e,		\
				 const char *page, size_t count)	\
{									\
	struct fb_disk *fb = e->elevator_data;				\
	ssize_t ret;							\
									\
	spin_lock_irq(&fb->budget.disk.lock);					\
	ret = isoblk_store_uint(page, count, &fb->field, low, high);	\
	if (ret > 0)							\
		fb_restart_predictor(fb);						\
	spin_unlock_irq(&fb->budget.disk.lock);				\
	return ret;							\
}

FB_SHOW(alloc_us, alloc_us)
FB_STORE(alloc_us, alloc_us, 100, 1000000)
FB_SHOW(predict_ms, predict_ms)
FB_STORE(predict_ms, predict_ms, 10, 10000)
FB_SHOW(a_min, a_min)
FB_STORE(a_min, a_min, FB_PERMILLE(PREDICT_A_FLOOR), fb->a_max)
FB_SHOW(a_max, a_max)
FB_STORE(a_max, a_max, fb->a_min, FB_PERMILLE(PREDICT_A_CEILING))

#define FB_ATTR(name) __ATTR(name, 0644, fb_##name##_show, fb_##name##_store)

static struct elv_fs_entry fb_attrs[] = {
	FB_ATTR(alloc_us),
	FB_ATTR(predict_ms),
	FB_ATTR(a_min),
	FB_ATTR(a_max),
	__ATTR(paper_mode, 0644, budget_paper_mode_show,
	       budget_paper_mode_store),
	__ATTR(gate, 0644, isoblk_gate_show, isoblk_gate_store),
	__ATTR_NULL
};

/* ---- debugfs --------------------------------------------------------- */

#ifdef CONFIG_BLK_DEBUG_FS
static int fb_debugfs_predict(void *data, struct seq_file *m)
{
	struct fb_disk *fb = isoblk_show_begin(data, fb_debugfs_predict);

	if (!fb)
		return 0;
	spin_lock_irq(&fb->budget.disk.lock);
	seq_printf(m, "next %llu credit %llu a_permille %u error_permille %u allocations %llu\n",
		   fb->predict.next, fb->credit, FB_PERMILLE(fb->predict.a),
		   predict_error_permille(&fb->predict), fb->allocations);
	spin_unlock_irq(&fb->budget.disk.lock);
	isoblk_show_end(data);
	return 0;
}

/* Oldest first: time, predicted and used sectors, error, a. */
static int fb_debugfs_history(void *data, struct seq_file *m)
{
	struct fb_disk *fb = isoblk_show_begin(data, fb_debugfs_history);
	const struct fb_outcome *o;
	unsigned int i;

	if (!fb)
		return 0;
	spin_lock_irq(&fb->budget.disk.lock);
	i = fb->nr_history > FB_HISTORY_MAX ? fb->nr_history - FB_HISTORY_MAX : 0;
	for (; i < fb->nr_history; i++) {
		o = &fb->history[i % FB_HISTORY_MAX];
		seq_printf(m, "at_ns %llu predicted %llu used %llu error_permille %u a_permille %u\n",
			   o->at_ns, o->predicted, o->used, o->error_permille,
			   FB_PERMILLE(o->a));
	}
	spin_unlock_irq(&fb->budget.disk.lock);
	isoblk_show_end(data);
	return 0;
}

static const struct blk_mq_debugfs_attr fb_debugfs[] = {
	{ "groups", 0400, budget_debugfs_groups },
	{ "gate", 0400, isoblk_debugfs_gate },
	{ "predict", 0400, fb_debugfs_predict },
	{ "history", 0400, fb_debugfs_history },
	{ },
};
#endif

static struct elevator_type feedbac = {
	.ops = {
		.init_sched		= fb_init_sched,
		.exit_sched		= fb_exit_sched,
		.init_hctx		= isoblk_init_hctx,
		.depth_updated		= fb_depth_updated,
		.exit_hctx		= isoblk_exit_hctx,
		.limit_depth		= isoblk_limit_depth,
		.bio_merge		= budget_bio_merge,
		.prepare_request	= budget_prepare_request,
		.insert_requests	= budget_insert_requests,
		.dispatch_request	= budget_dispatch_request,
		.has_work		= budget_has_work,
		.completed_request	= budget_completed_request,
		.requeue_request	= budget_requeue_request,
		.finish_request		= budget_finish_request,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = fb_debugfs,
#endif
	.elevator_attrs = fb_attrs,
	.elevator_name = "feedbac",
	.elevator_owner = THIS_MODULE,
};

static int __init fb_module_init(void)
{
	return elv_register(&feedbac);
}

static void __exit fb_module_exit(void)
{
	elv_unregister(&feedbac);
}

module_init(fb_module_init);
module_exit(fb_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("FeedBAC: cgroup weights by predicted credit");
