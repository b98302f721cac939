// SPDX-License-Identifier: GPL-2.0-only
/*
 * The relay: one thread that submits for many tenants.
 *
 * Some drivers above a disk collect the bios of all their users and submit them from
 * a thread of their own (dm-crypt's writes, dm-thin). Each bio names the cgroup to
 * charge; the thread belongs to no tenant. If a scheduler makes the submitter wait,
 * all bios behind wait as well. The requests of tenants with the option relay are
 * submitted so: their jobs hand them over, and the relay submits in that order.
 *
 * The thread exists only while a run with the option needs it, so other loads
 * run without it.
 */
#define pr_fmt(fmt) "blkload: " fmt

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "relay.h"

/* Protects blkload_relay_task and blkload_relay_users. */
static DEFINE_MUTEX(blkload_relay_lock);
static struct task_struct *blkload_relay_task;
static unsigned int blkload_relay_users;

/* Protects blkload_relay_bios; jobs that hand over must not sleep. */
static DEFINE_SPINLOCK(blkload_relay_bios_lock);
static struct bio_list blkload_relay_bios = BIO_EMPTY_LIST;

/* The relay sleeps here; in submit_bio() it must not be woken. */
static DECLARE_WAIT_QUEUE_HEAD(blkload_relay_wait);

static void blkload_relay_submit_all(struct bio_list *bios)
{
	struct blk_plug plug;
	struct bio *bio;

	blk_start_plug(&plug);
	while ((bio = bio_list_pop(bios)))
		submit_bio(bio);
	blk_finish_plug(&plug);
}

/* A hint without the lock: adding a bio wakes the relay afterwards. */
static bool blkload_relay_has_work(void)
{
	return READ_ONCE(blkload_relay_bios.head);
}

static int blkload_relay_thread(void *data)
{
	struct bio_list mine = BIO_EMPTY_LIST;

	/* Without users no job hands over bios. */
	while (!kthread_should_stop()) {
		wait_event_idle(blkload_relay_wait,
				blkload_relay_has_work() ||
					kthread_should_stop());
		spin_lock(&blkload_relay_bios_lock);
		bio_list_merge_init(&mine, &blkload_relay_bios);
		spin_unlock(&blkload_relay_bios_lock);
		blkload_relay_submit_all(&mine);
	}
	return 0;
}

/**
 * blkload_relay_get - start the relay, or take a reference to it
 *
 * Context: May sleep.
 * Return: 0 or a negative errno.
 */
int blkload_relay_get(void)
{
	int ret = 0;

	mutex_lock(&blkload_relay_lock);
	if (!blkload_relay_users) {
		blkload_relay_task = kthread_run(blkload_relay_thread, NULL,
						 "blkload/relay");
		if (IS_ERR(blkload_relay_task))
			ret = PTR_ERR(blkload_relay_task);
	}
	if (!ret)
		blkload_relay_users++;
	mutex_unlock(&blkload_relay_lock);
	return ret;
}

/**
 * blkload_relay_put - undo blkload_relay_get()
 *
 * The caller has no bio in the relay any more.
 *
 * Context: May sleep.
 */
void blkload_relay_put(void)
{
	mutex_lock(&blkload_relay_lock);
	if (!--blkload_relay_users)
		kthread_stop(blkload_relay_task);
	mutex_unlock(&blkload_relay_lock);
}

/**
 * blkload_relay_submit - have a bio submitted by the relay
 * @bio: the bio, associated with its blkg
 *
 * Context: A job's thread, between blkload_relay_get() and _put().
 */
void blkload_relay_submit(struct bio *bio)
{
	bool first;

	spin_lock(&blkload_relay_bios_lock);
	first = bio_list_empty(&blkload_relay_bios);
	bio_list_add(&blkload_relay_bios, bio);
	spin_unlock(&blkload_relay_bios_lock);
	if (first)
		wake_up(&blkload_relay_wait);
}
