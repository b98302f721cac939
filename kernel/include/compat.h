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

#endif /* ISOBLK_COMPAT_H */
