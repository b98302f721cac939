/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What isoblk shows in sysfs and debugfs, and takes.
 */
#ifndef ISOBLK_CORE_SHOW_H
#define ISOBLK_CORE_SHOW_H

#include "core/disk.h"

ssize_t isoblk_window_show(struct elevator_queue *e, char *page);
ssize_t isoblk_window_store(struct elevator_queue *e, const char *page,
			    size_t count);
ssize_t isoblk_account_show(struct elevator_queue *e, char *page);
ssize_t isoblk_account_store(struct elevator_queue *e, const char *page,
			     size_t count);
int isoblk_debugfs_window(void *data, struct seq_file *m);
int isoblk_debugfs_groups(void *data, struct seq_file *m);
int isoblk_debugfs_prices(void *data, struct seq_file *m);
int isoblk_debugfs_rescue(void *data, struct seq_file *m);
ssize_t isoblk_debugfs_set_rescue(void *data, const char __user *text,
				  size_t count, loff_t *pos);

#endif /* ISOBLK_CORE_SHOW_H */
