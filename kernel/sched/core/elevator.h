/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An elevator on the core: its hooks are these functions, or call them.
 */
#ifndef ISOBLK_CORE_ELEVATOR_H
#define ISOBLK_CORE_ELEVATOR_H

#include "core/disk.h"

int isoblk_core_init(struct iso_disk *d, struct request_queue *q,
		     struct elevator_queue *eq);
void isoblk_core_exit(struct iso_disk *d, struct elevator_queue *eq);
int isoblk_core_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void isoblk_prepare_request(struct request *rq);
bool isoblk_allow_merge(struct request_queue *q, struct request *rq,
			struct bio *bio);
bool isoblk_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs);
void isoblk_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			    blk_insert_t flags);
struct request *isoblk_dispatch_request(struct blk_mq_hw_ctx *hctx);
bool isoblk_has_work(struct blk_mq_hw_ctx *hctx);
void isoblk_completed_request(struct request *rq, u64 now);
void isoblk_requeue_request(struct request *rq);
void isoblk_finish_request(struct request *rq);

#endif /* ISOBLK_CORE_ELEVATOR_H */
