/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What groups were charged.
 */
#ifndef ISOBLK_STAT_H
#define ISOBLK_STAT_H

#include <linux/seq_file.h>

#include "share/group.h"

bool isoblk_group_holds(const struct isoblk_group *group);
u64 isoblk_group_bytes(const struct isoblk_group *group, enum isoblk_op op);
u64 isoblk_group_ios(const struct isoblk_group *group, enum isoblk_op op);
void isoblk_pd_stat(struct blkg_policy_data *pd, struct seq_file *s);
int isoblk_stat_show(struct seq_file *sf, void *v);

#endif /* ISOBLK_STAT_H */
