/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tenant: its directory in configfs (tenant.c), an entry of main.c's list.
 */
#ifndef BLKLOAD_TENANT_H
#define BLKLOAD_TENANT_H

#include <linux/configfs.h>
#include <linux/list.h>
#include <linux/mutex.h>

#include "opts.h"

struct blkload_run;

/* A tenant. blkload_lock protects all but @item. */
struct blkload_tenant {
	struct config_item item; /* directory */
	struct list_head link;	/* entry in the list, which is sorted by name */
	struct blkload_opts opts; /* values of the attributes */
	struct blkload_run *run; /* its last run, or NULL */
};

/* main.c */
extern struct mutex blkload_lock;
struct blkload_run *blkload_find_run_after(const char *name);

/* tenant.c */
extern const struct config_item_type blkload_tenant_type;

#endif /* BLKLOAD_TENANT_H */
