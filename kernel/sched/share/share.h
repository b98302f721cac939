/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Active groups and their shares of a disk. share.c opens with the design.
 */
#ifndef ISOBLK_SHARE_H
#define ISOBLK_SHARE_H

#include "share/group.h"

void isoblk_group_activate(struct isoblk_group *group);
void isoblk_group_deactivate(struct isoblk_group *group);
void isoblk_group_end_idle_class(struct isoblk_group *group);
void isoblk_group_del_active(struct isoblk_group *group);
u32 isoblk_group_share(struct isoblk_group *group);
void isoblk_group_set_weight(struct isoblk_group *group, u32 dev_weight,
			     u32 weight);

#endif /* ISOBLK_SHARE_H */
