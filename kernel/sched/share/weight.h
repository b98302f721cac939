/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cgroup file io.isoblk.weight.
 */
#ifndef ISOBLK_WEIGHT_H
#define ISOBLK_WEIGHT_H

#include <linux/kernfs.h>
#include <linux/seq_file.h>

int isoblk_weight_show(struct seq_file *sf, void *v);
ssize_t isoblk_weight_write(struct kernfs_open_file *of, char *buf,
			    size_t nbytes, loff_t off);

#endif /* ISOBLK_WEIGHT_H */
