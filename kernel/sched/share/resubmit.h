/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios that waited at the gate are submitted again.
 */
#ifndef ISOBLK_RESUBMIT_H
#define ISOBLK_RESUBMIT_H

#include <linux/blk_types.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct isoblk_disk;

/**
 * struct isoblk_resubmit - bios on their way from the gate
 */
struct isoblk_resubmit {
	struct work_struct work;	/* submits them */
	spinlock_t lock;		/* guards @bios; innermost */
	struct bio_list bios;		/* bios that are to be submitted; @lock */
	unsigned int nr_bios;		/* these, and that being submitted; @lock, read without */
	unsigned int index;		/* of the hardware queue; constant */
	refcount_t refs;		/* the disk's, and the worker's while it is queued */
	struct task_struct *worker;	/* task that submits, or NULL; the worker's, read without */
	struct bio *bio;		/* on its way to the gate again; the worker's */
	struct blkcg_gq *blkg;		/* what @bio is charged to; the worker's */
	unsigned int nr_pending;	/* bios taken, neither merged nor inserted; worker only */
};

int isoblk_resubmit_init(void);
void isoblk_resubmit_exit(void);
struct isoblk_resubmit *isoblk_resubmit_alloc(int node);
void isoblk_resubmit_put(struct isoblk_resubmit *rs);
void isoblk_resubmit_add(struct isoblk_resubmit *rs, struct bio_list *bios,
			 unsigned int nr);
const struct isoblk_resubmit *isoblk_resubmit_recognize(struct isoblk_disk *disk,
							struct bio *bio);
void isoblk_resubmit_end_transit(struct isoblk_resubmit *rs);
bool isoblk_resubmit_recognize_alloc(struct isoblk_disk *disk);
struct isoblk_resubmit *isoblk_resubmit_of_current(const struct isoblk_disk *disk);
bool isoblk_resubmit_is_idle(struct isoblk_resubmit *rs);

#endif /* ISOBLK_RESUBMIT_H */
