/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io.isoblk.latency: what is written there, and what it shows.
 */
#ifndef ISOBLK_TARGET_H
#define ISOBLK_TARGET_H

#include <linux/kernfs.h>
#include <linux/seq_file.h>

int isoblk_target_show(struct seq_file *sf, void *v);
ssize_t isoblk_target_write(struct kernfs_open_file *of, char *buf,
			    size_t nbytes, loff_t off);
int isoblk_target_stat_show(struct seq_file *sf, void *v);

#endif /* ISOBLK_TARGET_H */
