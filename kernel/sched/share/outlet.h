/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bios that waited at the gate are submitted again.
 */
#ifndef ISOBLK_OUTLET_H
#define ISOBLK_OUTLET_H

#include <linux/blk_types.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct isoblk_disk;

/**
 * struct isoblk_outlet - bios on their way from the gate
 */
struct isoblk_outlet {
	struct work_struct work;	/* submits them */
	spinlock_t lock;		/* guards @bios; innermost */
	struct bio_list bios;		/* bios that are to be submitted; @lock */
	unsigned int nr;		/* these, and that being submitted; @lock, read without */
	unsigned int index;		/* of the hardware queue; constant */
	refcount_t refs;		/* the disk's, and the worker's while it is queued */
	struct task_struct *worker;	/* task that submits, or NULL; the worker's, read without */
	struct bio *bio;		/* on its way to the gate again; the worker's */
	struct blkcg_gq *blkg;		/* what @bio is charged to; the worker's */
	unsigned int pending;		/* bios taken, neither merged nor inserted; the worker's */
};

int isoblk_outlet_init(void);
void isoblk_outlet_exit(void);
struct isoblk_outlet *isoblk_outlet_alloc(int node);
void isoblk_outlet_put(struct isoblk_outlet *out);
void isoblk_outlet_add(struct isoblk_outlet *out, struct bio_list *bios,
		       unsigned int nr);
const struct isoblk_outlet *isoblk_outlet_arrived(struct isoblk_disk *disk,
						  struct bio *bio);
void isoblk_outlet_settled(struct isoblk_outlet *out);
bool isoblk_outlet_allocates(struct isoblk_disk *disk);
const struct isoblk_outlet *
isoblk_outlet_inserts(const struct isoblk_disk *disk);
bool isoblk_outlet_idle(struct isoblk_outlet *out);

#endif /* ISOBLK_OUTLET_H */
