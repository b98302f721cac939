/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The worker that resubmits admitted bios. resubmit.c opens with the design.
 */
#ifndef ISOBLK_RESUBMIT_H
#define ISOBLK_RESUBMIT_H

#include <linux/blk_types.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct isoblk_disk;

/**
 * struct isoblk_resubmit - the worker of a hardware queue, and its bios
 */
struct isoblk_resubmit {
	struct work_struct work;	/* resubmits @bios */
	spinlock_t lock;		/* guards @bios; innermost */
	struct bio_list bios;		/* admitted bios, not yet submitted; @lock */
	unsigned int nr_bios;		/* @bios and those of the run; @lock, read without */
	unsigned int index;		/* of the hardware queue; constant */
	refcount_t refs;		/* the disk's, and the worker's while it is queued */
	struct task_struct *worker;	/* running worker, or NULL; written by it, read without */
	struct bio *bio;		/* submitted, not yet at the gate; worker only */
	struct blkcg_gq *blkg;		/* own blkg of @bio, with a reference; worker only */
	unsigned int nr_pending;	/* bios of the run still in transit; worker only */
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
