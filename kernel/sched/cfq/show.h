/* SPDX-License-Identifier: GPL-2.0-only */
/* Tunables in sysfs, and files in debugfs. */
#ifndef ISOBLK_CFQ_SHOW_H
#define ISOBLK_CFQ_SHOW_H

#include "cfq/cfq.h"

extern struct elv_fs_entry cfq_attrs[];
extern const struct blk_mq_debugfs_attr cfq_debugfs[];

#endif /* ISOBLK_CFQ_SHOW_H */
