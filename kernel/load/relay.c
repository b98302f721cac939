// SPDX-License-Identifier: GPL-2.0-only
/*
 * One thread that submits for many.
 *
 * Some drivers above a disk take the bios of all their users and submit them
 * from a thread of their own (dm-crypt's writes, dm-thin): each bio says whom
 * it is charged to, the thread is nobody's. Where a scheduler makes the
 * submitter wait, everybody behind waits as well. Tenants with the option relay
 * are submitted so: their jobs hand over, the relay submits in that order.
 *
 * The thread is there while a run needs it, and so does not exist for loads
 * that do without.
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

/* Protects relay_bios; those who hand over may not sleep. */
static DEFINE_SPINLOCK(relay_bios_lock);
static struct bio_list relay_bios = BIO_EMPTY_LIST;

/* Where the relay sleeps; elsewhere, in submit_bio(), it must not be woken. */
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

/* A hint without the lock: who adds a bio wakes us afterwards. */
static bool relay_has_work(void)
{
	return READ_ONCE(relay_bios.head);
}

static int relay_thread(void *data)
{
	struct bio_list mine = BIO_EMPTY_LIST;

	/* Nobody hands over once there are no users. */
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
 * blkload_relay_get - have the relay run
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
 * No bio of the caller's is on its way any more.
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
 * @bio: says itself whom it is charged to
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
