/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests completed by disks, by cgroup (completed.c).
 */
#ifndef BLKLOAD_COMPLETED_H
#define BLKLOAD_COMPLETED_H

struct dentry;

void blkload_completed_init(struct dentry *dir);
void blkload_completed_exit(void);

#endif /* BLKLOAD_COMPLETED_H */
