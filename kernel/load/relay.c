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

/* Protects relay_task and relay_users. */
static DEFINE_MUTEX(relay_lock);
static struct task_struct *relay_task;
static unsigned int relay_users;

/* Protects relay_bios; jobs that hand over must not sleep. */
static DEFINE_SPINLOCK(relay_bios_lock);
static struct bio_list relay_bios = BIO_EMPTY_LIST;

/* The relay sleeps here; in submit_bio() it must not be woken. */
static DECLARE_WAIT_QUEUE_HEAD(relay_wait);

static void relay_submit_all(struct bio_list *bios)
{
	struct blk_plug plug;
	struct bio *bio;

	blk_start_plug(&plug);
	while ((bio = bio_list_pop(bios)))
		submit_bio(bio);
	blk_finish_plug(&plug);
}

/* A hint without the lock: adding a bio wakes the relay afterwards. */
static bool relay_has_work(void)
{
	return READ_ONCE(relay_bios.head);
}

static int relay_thread(void *data)
{
	struct bio_list mine = BIO_EMPTY_LIST;

	/* Without users no job hands over bios. */
	while (!kthread_should_stop()) {
		wait_event_idle(relay_wait,
				relay_has_work() || kthread_should_stop());
		spin_lock(&relay_bios_lock);
		bio_list_merge_init(&mine, &relay_bios);
		spin_unlock(&relay_bios_lock);
		relay_submit_all(&mine);
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

	mutex_lock(&relay_lock);
	if (!relay_users) {
		relay_task = kthread_run(relay_thread, NULL, "blkload/relay");
		if (IS_ERR(relay_task))
			ret = PTR_ERR(relay_task);
	}
	if (!ret)
		relay_users++;
	mutex_unlock(&relay_lock);
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
	mutex_lock(&relay_lock);
	if (!--relay_users)
		kthread_stop(relay_task);
	mutex_unlock(&relay_lock);
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

	spin_lock(&relay_bios_lock);
	first = bio_list_empty(&relay_bios);
	bio_list_add(&relay_bios, bio);
	spin_unlock(&relay_bios_lock);
	if (first)
		wake_up(&relay_wait);
}
