/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The elevator's hooks, and its files.
 */
#ifndef ISOBLK_ISO_ISOBLK_H
#define ISOBLK_ISO_ISOBLK_H

#include "isoblk/disk.h"

void iso_prepare_request(struct request *rq);
bool iso_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio);
bool iso_bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs);
void iso_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			 blk_insert_t flags);
struct request *iso_dispatch_request(struct blk_mq_hw_ctx *hctx);
bool iso_has_work(struct blk_mq_hw_ctx *hctx);
void iso_completed_request(struct request *rq, u64 now);
void iso_requeue_request(struct request *rq);
void iso_finish_request(struct request *rq);

extern struct elv_fs_entry iso_attrs[];
#ifdef CONFIG_BLK_DEBUG_FS
extern const struct blk_mq_debugfs_attr iso_debugfs[];
#endif

#endif /* ISOBLK_ISO_ISOBLK_H */
