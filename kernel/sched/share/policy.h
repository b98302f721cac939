/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The blkcg policy, and how to find a group.
 */
#ifndef ISOBLK_POLICY_H
#define ISOBLK_POLICY_H

#include "share/group.h"

/* The policy's data of a cgroup, independent of disks. */
struct isoblk_cgroup {
	struct blkcg_policy_data cpd;	/* first: the kernel has this address */
	u32 weight;			/* default weight on all disks; blkcg->lock, read without */
};

extern struct blkcg_policy isoblk_policy;

static inline struct isoblk_cgroup *isoblk_blkcg_cgroup(struct blkcg *blkcg)
{
	return container_of(blkcg_to_cpd(blkcg, &isoblk_policy),
			    struct isoblk_cgroup, cpd);
}

static inline struct isoblk_group *
isoblk_pd_group(struct blkg_policy_data *pd)
{
	return pd ? container_of(pd, struct isoblk_group, pd) : NULL;
}

struct isoblk_group *isoblk_blkg_group(struct blkcg_gq *blkg);
struct isoblk_group *isoblk_bio_group(struct bio *bio);
int isoblk_set_device_conf(struct blkcg *blkcg, char *buf,
			   int (*set)(struct isoblk_group *group, char *text));

#endif /* ISOBLK_POLICY_H */
