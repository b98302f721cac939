/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that differs between the kernel versions the modules build on: 6.12 LTS
 * and newer. The code outside this file is written for the newest of them.
 */
#ifndef ISOBLK_COMPAT_H
#define ISOBLK_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/version.h>

/* 6.13 joined hrtimer_init() and the assignment of the function. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

/* Since 6.14 requests merge without being asked. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define ISOBLK_TAG_SET_FLAGS	BLK_MQ_F_SHOULD_MERGE
#else
#define ISOBLK_TAG_SET_FLAGS	0
#endif

/* 6.16 renamed from_timer(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define timer_container_of(var, callback_timer, timer_fieldname)	\
	from_timer(var, callback_timer, timer_fieldname)
#endif

/* What follows is for elevators, which see the private headers of block/. */
#ifdef ISOBLK_ELEVATOR
#include <linux/sched/mm.h>

#include "elevator.h"
#include "blk.h"
#include "blk-cgroup.h"
#include "blk-mq.h"
#include "blk-mq-debugfs.h"
#include "blk-mq-sched.h"
#include "blk-stat.h"
#include "blk-wbt.h"

/* Later kernels ask the other way round. */
#ifdef blk_queue_nonrot
#define blk_queue_rot(q)	(!blk_queue_nonrot(q))
#endif

/*
 * blkg_conf_prep() allocates under a mutex that is taken with the queue frozen
 * when an elevator comes. So what it allocates must not wait for I/O.
 */
static inline int isoblk_conf_find(struct blkcg *blkcg,
				   const struct blkcg_policy *pol,
				   struct blkg_conf_ctx *ctx)
{
	unsigned int flags = memalloc_noio_save();
	int ret = blkg_conf_prep(blkcg, pol, ctx);

	memalloc_noio_restore(flags);
	return ret;
}

/*
 * Since 6.16 an elevator's files in debugfs go later than itself, when another
 * may be in its place. From here to isoblk_show_end() a reader of such a file
 * keeps the disk from changing its elevator.
 */
static inline void isoblk_show_lock(struct request_queue *q)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	mutex_lock(&q->elevator_lock);
#endif
}

static inline void isoblk_show_end(struct request_queue *q)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	mutex_unlock(&q->elevator_lock);
#endif
}

/* Since 6.17, and in the stable releases of 6.17, a disk is told, not a hardware queue. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define ISOBLK_DEPTH_UPDATED(name, depth)				\
static void name##_depth_updated(struct blk_mq_hw_ctx *hctx)		\
{									\
	depth(hctx->queue);						\
}
#else
#define ISOBLK_DEPTH_UPDATED(name, depth)				\
static void name##_depth_updated(struct request_queue *q)		\
{									\
	depth(q);							\
}
#endif

/*
 * ISOBLK_ELEVATOR_HOOKS() - define @name_init_sched and @name_depth_updated
 * from init(q, eq) and depth(q). As long as an elevator had a flag against
 * write-back throttling, until 6.16, it allocated its own elevator_queue, and
 * was told of a new depth once a hardware queue, when it had asked for it at
 * the queue's start as well.
 */
#ifdef ELEVATOR_FLAG_DISABLE_WBT
#define ISOBLK_ELEVATOR_HOOKS(name, init, depth)			\
static int name##_init_sched(struct request_queue *q,			\
			     struct elevator_type *e)			\
{									\
	struct elevator_queue *eq = elevator_alloc(q, e);		\
	int ret;							\
									\
	if (!eq)							\
		return -ENOMEM;						\
	ret = init(q, eq);						\
	if (ret)							\
		kobject_put(&eq->kobj);					\
	return ret;							\
}									\
									\
ISOBLK_DEPTH_UPDATED(name, depth)

static inline struct blk_mq_hw_ctx *
isoblk_map_queue(struct request_queue *q, blk_opf_t opf)
{
	return blk_mq_map_queue(q, opf, blk_mq_get_ctx(q));
}

/* Write-back throttling knows no weights: it must not decide before us. */
static inline void isoblk_wbt_off(struct request_queue *q,
				  struct elevator_queue *eq)
{
	set_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
	wbt_disable_default(q->disk);
}

static inline void isoblk_wbt_on(struct request_queue *q,
				 struct elevator_queue *eq)
{
	clear_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
	wbt_enable_default(q->disk);
}
#else
#define ISOBLK_ELEVATOR_HOOKS(name, init, depth)			\
static int name##_init_sched(struct request_queue *q,			\
			     struct elevator_queue *eq)			\
{									\
	return init(q, eq);						\
}									\
									\
ISOBLK_DEPTH_UPDATED(name, depth)

static inline struct blk_mq_hw_ctx *
isoblk_map_queue(struct request_queue *q, blk_opf_t opf)
{
	return blk_mq_map_queue(opf, blk_mq_get_ctx(q));
}

static inline void isoblk_wbt_off(struct request_queue *q,
				  struct elevator_queue *eq)
{
	blk_queue_flag_set(QUEUE_FLAG_DISABLE_WBT_DEF, q);
	wbt_disable_default(q->disk);
}

static inline void isoblk_wbt_on(struct request_queue *q,
				 struct elevator_queue *eq)
{
	blk_queue_flag_clear(QUEUE_FLAG_DISABLE_WBT_DEF, q);
	wbt_enable_default(q->disk);
}
#endif

/* On success the blkg of the disk that @input names is held and locked. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
static inline int isoblk_conf_prep(struct blkcg *blkcg,
				   const struct blkcg_policy *pol,
				   struct blkg_conf_ctx *ctx, char *input)
{
	int ret;

	blkg_conf_init(ctx, input);
	ret = isoblk_conf_find(blkcg, pol, ctx);
	if (ret)
		blkg_conf_exit(ctx);
	return ret;
}

static inline void isoblk_conf_finish(struct blkg_conf_ctx *ctx)
{
	blkg_conf_exit(ctx);
}
#else
static inline int isoblk_conf_prep(struct blkcg *blkcg,
				   const struct blkcg_policy *pol,
				   struct blkg_conf_ctx *ctx, char *input)
{
	int ret;

	blkg_conf_init(ctx, input);
	ret = blkg_conf_open_bdev(ctx);
	if (ret)
		return ret;
	ret = isoblk_conf_find(blkcg, pol, ctx);
	if (ret)
		blkg_conf_close_bdev(ctx);
	return ret;
}

static inline void isoblk_conf_finish(struct blkg_conf_ctx *ctx)
{
	blkg_conf_unprep(ctx);
	blkg_conf_close_bdev(ctx);
}
#endif

/*
 * Since 7.3 the kernel's own of these two also count congested cgroups, in a
 * variable that no module sees. That is for read-ahead; who is to wait is found
 * by what is set here.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
static inline void isoblk_set_delay(struct blkcg_gq *blkg, u64 ns)
{
	blkcg_set_delay(blkg, ns);
}

static inline void isoblk_clear_delay(struct blkcg_gq *blkg)
{
	blkcg_clear_delay(blkg);
}
#else
static inline void isoblk_set_delay(struct blkcg_gq *blkg, u64 ns)
{
	atomic_cmpxchg(&blkg->use_delay, 0, -1);
	atomic64_set(&blkg->delay_nsec, ns);
}

static inline void isoblk_clear_delay(struct blkcg_gq *blkg)
{
	atomic_cmpxchg(&blkg->use_delay, -1, 0);
}
#endif
#endif /* ISOBLK_ELEVATOR */

#endif /* ISOBLK_COMPAT_H */
