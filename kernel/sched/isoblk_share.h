/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the elevators share: groups with weights, and what the gate knows of them and of
 * hardware queues. share.c opens with the design.
 */
#ifndef ISOBLK_SHARE_H
#define ISOBLK_SHARE_H

#define ISOBLK_ELEVATOR
#include "compat.h"

#include <linux/atomic.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/refcount.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

/* As io.weight has them, so that one number means the same to both. */
#define ISOBLK_WEIGHT_MIN	1
#define ISOBLK_WEIGHT_MAX	10000
#define ISOBLK_WEIGHT_DFL	100

/* The whole device, as a fraction; a share below 1e-9 would be rounded away. */
#define ISOBLK_SHARE_SHIFT	30
#define ISOBLK_SHARE_ONE	((u32)BIT(ISOBLK_SHARE_SHIFT))

enum isoblk_op {
	ISOBLK_READ,
	ISOBLK_WRITE,
	ISOBLK_DISCARD,
	ISOBLK_NR_OPS,
};

struct isoblk_disk;
struct isoblk_gq;
struct isoblk_group;
struct isoblk_hq;

/**
 * struct isoblk_gq - one group on one hardware queue; isoblk_gq_own() follows
 * @group: constant
 * @hq: constant
 * @bytes: charged to the group here, an operation; the elevator's lock of the hardware
 *	queue, read without
 * @ios: likewise, requests
 * @held: requests inserted and not yet freed, each with a tag; if hardware
 *	queues share their tags, those of all of them, in the first gq
 * @peak: the highest @held since tags were last lent; any context
 * @gate: submitters that wait until @held is below the group's quota
 * @gate_node: in hq->gate_list while somebody or a bio waits; hq->gate_lock
 * @nr_waiting: how many do, and one if bios do; hq->gate_lock, read without
 * @bios: that wait until @held is below the quota; hq->gate_lock
 * @nr_bios: how many; hq->gate_lock, read without
 * @passing: bios that were let through and have not yet come; likewise
 * @waited_at: when @wait_ns was last brought up to date, jiffies; hq->gate_lock
 * @wait_ns: for how long bios waited, in all; hq->gate_lock, read without
 */
struct isoblk_gq {
	struct isoblk_group *group;
	struct isoblk_hq *hq;
	u64 bytes[ISOBLK_NR_OPS];
	u64 ios[ISOBLK_NR_OPS];
	atomic_t held ____cacheline_aligned_in_smp;
	int peak;
	wait_queue_head_t gate;
	struct list_head gate_node;
	unsigned int nr_waiting;
	struct bio_list bios;
	unsigned int nr_bios;
	unsigned int passing;
	u64 waited_at;
	u64 wait_ns;
};

/**
 * struct isoblk_group - a cgroup on a disk; isoblk_group_own() follows
 * @pd: the policy's data; first, for the kernel frees it by this address
 * @disk: constant
 * @parent: NULL for the root; constant, held by the kernel's reference
 * @weight: what counts: that of the device or else of the cgroup; disk->lock
 * @dev_weight: written for this device, 0: none; disk->lock, read without
 * @active: its own requests take part; disk->lock, a hint without
 * @was_active: has been @active; disk->lock, last read when it is freed
 * @sum: of the weights of active children and of itself; disk->lock
 * @nr_active: how many active children and itself; disk->lock
 * @subtree_share: of it and all below, of the device; disk->lock
 * @share_gen: disk->weights_gen that @subtree_share is of; disk->lock
 * @indebted: was served ahead of its time for so long that nothing of it is
 *	urgent but what is swapped out, says the elevator; any context
 * @share: of its own requests; disk->lock, read without by the gate
 * @active_node: in disk->active; disk->lock
 * @late_bytes: charged at completion, for requests that went past dispatch
 * @late_ios: likewise
 * @nr_gqs: the disk's hardware queues, when that may be gone; constant
 * @gq: by hardware queue, each allocated by itself; constant
 */
struct isoblk_group {
	struct blkg_policy_data pd;
	struct isoblk_disk *disk;
	struct isoblk_group *parent;
	u32 weight;
	u32 dev_weight;
	bool active;
	bool was_active;
	u32 sum;
	unsigned int nr_active;
	u32 subtree_share;
	u64 share_gen;
	bool indebted;
	u32 share;
	struct list_head active_node;
	atomic64_t late_bytes[ISOBLK_NR_OPS];
	atomic64_t late_ios[ISOBLK_NR_OPS];
	unsigned int nr_gqs;
	struct isoblk_gq **gq;
};

/**
 * struct isoblk_hq - a hardware queue
 * @disk: constant
 * @hctx: constant
 * @index: of the hardware queue; constant
 * @node: where memory for it is to be; constant
 * @own: the elevator's own; constant
 * @held: requests inserted and not yet freed; as a gq's if tags are shared
 * @lendable: tags that the groups that may have them do not use; disk->lock, read
 *	without
 * @gate_lock: guards the list of those who wait; taken in interrupts
 * @gate_list: groups of which somebody waits at the gate
 * @nr_gate: length of @gate_list, read without
 * @passing: sum of gq->passing; @gate_lock, read without
 * @outlet: where bios go that are let through; constant
 */
struct isoblk_hq {
	struct isoblk_disk *disk;
	struct blk_mq_hw_ctx *hctx;
	unsigned int index;
	int node;
	void *own;
	atomic_t held ____cacheline_aligned_in_smp;
	unsigned int lendable;
	/* Guards the list of those who wait: see above. */
	spinlock_t gate_lock;
	struct list_head gate_list;
	unsigned int nr_gate;
	unsigned int passing;
	struct isoblk_outlet *outlet;
};

/**
 * struct isoblk_outlet - bios on their way from the gate; outlet.c
 * @work: submits them
 * @lock: innermost
 * @bios: that are to be submitted; @lock
 * @nr: how many, and that which is being submitted; @lock, read without
 * @index: of the hardware queue; constant
 * @refs: the disk's, and the worker's while it is queued
 * @worker: that submits, NULL: none does; the worker's, read without
 * @bio: being submitted, until it has come to the gate; the worker's
 * @blkg: what that is charged to; the worker's
 */
struct isoblk_outlet {
	struct work_struct work;
	spinlock_t lock;
	struct bio_list bios;
	unsigned int nr;
	unsigned int index;
	refcount_t refs;
	struct task_struct *worker;
	struct bio *bio;
	struct blkcg_gq *blkg;
};

/**
 * struct isoblk_ops - what an elevator does its own way
 * @equal_quotas: at the gate all active groups are alike
 * @sender_sleeps: there, for nobody else can send its requests
 * @own_size: bytes of its own in each group, see isoblk_group_own()
 * @own_gq_size: and on each hardware queue, see isoblk_gq_own()
 * @group_init: these bytes are there, and zero; the group is not yet in use
 * @group_exit: a group that has taken part is about to be freed; disk->lock
 * @charge_flush: a flush was asked for, which is made with others; or NULL
 * @weight_changed: a group's weight is another now; interrupts are off; or NULL
 * @set_target: a group has a latency target of so many us, 0: none; or NULL
 * @target: which; NULL if @set_target is
 * @stat: what follows isoblk.used in io.stat; any context
 */
struct isoblk_ops {
	bool equal_quotas;
	bool sender_sleeps;
	size_t own_size;
	size_t own_gq_size;
	void (*group_init)(struct isoblk_group *group);
	void (*group_exit)(struct isoblk_group *group);
	void (*charge_flush)(struct isoblk_group *group);
	void (*weight_changed)(struct isoblk_group *group);
	void (*set_target)(struct isoblk_group *group, u32 us);
	u32 (*target)(struct isoblk_group *group);
	void (*stat)(struct isoblk_group *group, struct seq_file *s);
};

/**
 * struct isoblk_disk - a disk under one of our elevators: elevator_data
 * @q: constant
 * @ops: constant
 * @nr_hqs: constant
 * @hq: by index; constant once the hardware queues are set up
 * @lock: innermost but for wait queues; taken with interrupts off
 * @active: groups that take part; @lock
 * @nr_active: how many; @lock, read without
 * @weights_gen: changes with the active set and with a weight; @lock
 * @tags: of a hardware queue; read without
 * @gate_on: the gate is in use; read without
 * @gate_spare: tags divided by share, on top of one a group, or with
 *	equal_quotas each group's of them; @lock, read without
 * @served: the group whose turn it is, with equal_quotas; may be freed: only
 *	compared. @lock, read without
 * @gate_used: somebody waited since tags were last lent; any context
 * @shared_tags: the hardware queues have one set of tags; constant
 */
struct isoblk_disk {
	struct request_queue *q;
	const struct isoblk_ops *ops;
	unsigned int nr_hqs;
	struct isoblk_hq **hq;

	/* Guards shares and what is divided by them: see above. */
	spinlock_t lock;
	struct list_head active;
	unsigned int nr_active;
	u64 weights_gen;

	unsigned int tags;
	bool gate_on;
	unsigned int gate_spare;
	const struct isoblk_group *served;
	bool gate_used;
	bool shared_tags;
};

/* What a flush or a request without data costs, as one of 4 KiB: sectors. */
#define ISOBLK_NO_DATA_COST	8

/* How often an elevator has its say, if it has one. */
#define ISOBLK_TICK		msecs_to_jiffies(5)

/* target.c: io.isoblk.latency */
int isoblk_target_show(struct seq_file *sf, void *v);
ssize_t isoblk_target_write(struct kernfs_open_file *of, char *buf,
			    size_t nbytes, loff_t off);
int isoblk_target_stat_show(struct seq_file *sf, void *v);

/* share.c: groups, weights, who is active */
extern struct blkcg_policy isoblk_policy;
int isoblk_set_on_disk(struct blkcg *blkcg, char *buf,
		       int (*set)(struct isoblk_group *group, char *text));
struct isoblk_group *isoblk_bio_group(struct bio *bio);
void *isoblk_show_begin(struct request_queue *q,
			int (*show)(void *data, struct seq_file *m));
void isoblk_join(struct isoblk_group *group);
void isoblk_leave(struct isoblk_group *group);
u32 isoblk_group_share(struct isoblk_group *group);
bool isoblk_group_holds(const struct isoblk_group *group);
u64 isoblk_group_bytes(const struct isoblk_group *group, enum isoblk_op op);
u64 isoblk_group_ios(const struct isoblk_group *group, enum isoblk_op op);

/* What an elevator has of its own in a group: ops->own_size bytes. */
static inline void *isoblk_group_own(struct isoblk_group *group)
{
	return group + 1;
}

/* And in a group on a hardware queue: ops->own_gq_size bytes. */
static inline void *isoblk_gq_own(struct isoblk_gq *gq)
{
	return gq + 1;
}

/* disk.c: a disk's life, its timer, what all elevators show */
int isoblk_groups_init(struct isoblk_disk *disk, struct request_queue *q,
		       struct elevator_queue *eq, const struct isoblk_ops *ops);
void isoblk_groups_exit(struct isoblk_disk *disk, struct elevator_queue *eq);
int isoblk_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void isoblk_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void isoblk_depth_updated(struct request_queue *q);
void isoblk_set_shallow(struct request_queue *q, unsigned int depth);
ssize_t isoblk_gate_show(struct elevator_queue *e, char *page);
ssize_t isoblk_gate_store(struct elevator_queue *e, const char *page,
			  size_t count);
/**
 * isoblk_store_uint() - an attribute's store of a number within limits
 * @page: text
 * @count: its length
 * @value: where to
 * @low: least
 * @high: most
 */
static inline ssize_t isoblk_store_uint(const char *page, size_t count,
					unsigned int *value, unsigned int low,
					unsigned int high)
{
	unsigned int number;
	int ret = kstrtouint(page, 10, &number);

	if (ret)
		return ret;
	if (number < low || number > high)
		return -ERANGE;
	WRITE_ONCE(*value, number);
	return count;
}

/* gate.c: who may ask for a tag */
struct isoblk_gq *isoblk_gate_arrive(struct request_queue *q, struct bio *bio);
void isoblk_gate_through(struct isoblk_gq *gq);
struct isoblk_gq *isoblk_group_gq(struct isoblk_group *group, blk_opf_t opf);
bool isoblk_gate_pass(struct isoblk_gq *gq, struct bio *bio);
void isoblk_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void isoblk_gate_enter(struct isoblk_gq *gq);
void isoblk_gate_leave(struct isoblk_gq *gq);
void isoblk_gate_update(struct isoblk_disk *disk);
void isoblk_gate_serve(struct isoblk_group *group);
void isoblk_gate_tick(struct isoblk_disk *disk);
void isoblk_gate_exit(struct isoblk_disk *disk);

/* outlet.c: bios that waited at the gate are submitted again */
int isoblk_outlet_init(void);
void isoblk_outlet_exit(void);
struct isoblk_outlet *isoblk_outlet_alloc(int node);
void isoblk_outlet_put(struct isoblk_outlet *out);
void isoblk_outlet_add(struct isoblk_outlet *out, struct bio_list *bios,
		       unsigned int nr);
const struct isoblk_outlet *isoblk_outlet_arrived(struct isoblk_disk *disk,
						  struct bio *bio);
bool isoblk_outlet_allocates(struct isoblk_disk *disk);
const struct isoblk_outlet *
isoblk_outlet_inserts(const struct isoblk_disk *disk);
bool isoblk_outlet_idle(struct isoblk_outlet *out);

/* How many wait at the gate: bios, and tasks with one that may not be merged. */
static inline unsigned int isoblk_at_gate(const struct isoblk_gq *gq)
{
	unsigned int waiting = READ_ONCE(gq->nr_waiting);
	unsigned int bios = READ_ONCE(gq->nr_bios);

	return bios && waiting ? waiting - 1 + bios : waiting;
}

/* Where the tags of @gq's requests are counted. */
static inline struct isoblk_gq *isoblk_tags_gq(struct isoblk_gq *gq)
{
	return gq->group->disk->shared_tags ? gq->group->gq[0] : gq;
}

#endif /* ISOBLK_SHARE_H */
