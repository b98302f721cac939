/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the elevators share: groups with weights, queues a group, the admission
 * gate, and the depth of the device. share.c opens with the design.
 */
#ifndef ISOBLK_SHARE_H
#define ISOBLK_SHARE_H

#define ISOBLK_ELEVATOR
#include "compat.h"

#include <linux/atomic.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
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

/* Kyber's: read, write, discard, other. */
#define ISOBLK_MAX_DOMAINS	4

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
 * struct isoblk_fifo - waiting requests of one group, hardware queue and domain
 * @rqs: in order of arrival; gq->lock
 * @node: in a list of the hardware queue unless @rqs is empty; hq->lock
 * @turn: sectors that it may still send in its turn; hq->lock
 * @gq: what it is part of; constant
 */
struct isoblk_fifo {
	struct list_head rqs;
	struct list_head node;
	s64 turn;
	struct isoblk_gq *gq;
};

/**
 * struct isoblk_gq - one group on one hardware queue
 * @lock: guards the requests of @fifo; inside hq->lock
 * @group: constant
 * @hq: constant
 * @slice: sectors it may still send, taken from group->pool in pieces, so that
 *	the pool's cache line is not touched by every request; hq->lock
 * @bytes: charged to the group here, an operation; hq->lock, read without
 * @ios: likewise, requests
 * @nr_fifos: members of @fifo that hold requests; hq->lock
 * @nr_throttled: those of them that are throttled; hq->lock
 * @throttled_at: since when one is; hq->lock
 * @throttled_ns: for how long one was, in all; hq->lock, read without
 * @held: requests inserted and not yet freed, each with a tag; if hardware
 *	queues share their tags, those of all of them, in the first gq
 * @peak: the highest @held since tags were last lent; any context
 * @alone: the request inserted last was the only one; any context
 * @gate: submitters that wait until @held is below the group's quota
 * @gate_node: in hq->gate_list while somebody or a bio waits; hq->gate_lock
 * @nr_waiting: how many do, and one if bios do; hq->gate_lock, read without
 * @bios: that wait until @held is below the quota; hq->gate_lock
 * @nr_bios: how many; hq->gate_lock, read without
 * @passing: bios that were let through and have not yet come; likewise
 * @waited_at: when @wait_ns was last brought up to date, jiffies; hq->gate_lock
 * @wait_ns: for how long bios waited, in all; hq->gate_lock, read without
 * @fifo: one a domain
 */
struct isoblk_gq {
	spinlock_t lock;
	struct isoblk_group *group;
	struct isoblk_hq *hq;
	s64 slice;
	u64 bytes[ISOBLK_NR_OPS];
	u64 ios[ISOBLK_NR_OPS];
	unsigned int nr_fifos;
	unsigned int nr_throttled;
	u64 throttled_at;
	u64 throttled_ns;
	atomic_t held ____cacheline_aligned_in_smp;
	int peak;
	bool alone;
	wait_queue_head_t gate;
	struct list_head gate_node;
	unsigned int nr_waiting;
	struct bio_list bios;
	unsigned int nr_bios;
	unsigned int passing;
	u64 waited_at;
	u64 wait_ns;
	struct isoblk_fifo fifo[ISOBLK_MAX_DOMAINS];
};

/**
 * struct isoblk_group - a cgroup on a disk
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
 *	urgent, says the elevator; any context
 * @share: of its own requests; disk->lock, read without by the gate
 * @fraction: of a sector that grants have not given yet, of ISOBLK_SHARE_ONE;
 *	disk->lock
 * @active_node: in disk->active; disk->lock
 * @touched: has sent something since the last refill; any context
 * @busy: has sent something since the last tick; any context
 * @idle_scans: for how many it has been given no request; any context
 * @pool: sectors it may send and has not taken yet; below 0: a debt
 * @broke_gen: the refill after which it was found without budget
 * @late_bytes: charged at completion, for requests that went past dispatch
 * @late_ios: likewise
 * @gq: one a hardware queue
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
	u32 fraction;
	struct list_head active_node;
	bool touched;
	bool busy;
	unsigned int idle_scans;
	atomic64_t pool ____cacheline_aligned_in_smp;
	atomic64_t broke_gen;
	atomic64_t late_bytes[ISOBLK_NR_OPS];
	atomic64_t late_ios[ISOBLK_NR_OPS];
	struct isoblk_gq gq[];
};

/**
 * struct isoblk_hq - a hardware queue
 * @lock: guards what says so, and the order of everything that waits here
 * @disk: constant
 * @hctx: constant
 * @index: of the hardware queue; constant
 * @fresh: fifos that were empty and whose group has budget, a domain: they come
 *	before those in @ready; @lock
 * @ready: other fifos whose group has budget, a domain, next first; @lock
 * @throttled: fifos whose group has none; @lock
 * @nr_ready: length of all lists in @fresh and @ready; @lock, read without
 * @nr_throttled: length of @throttled; @lock, read without
 * @gen: the refill that @throttled has been told of; @lock, read without
 * @sectors: charged here; @lock, read without
 * @ios: likewise, requests
 * @bios: likewise, what they were made of
 * @held: requests inserted and not yet freed; as a gq's if tags are shared
 * @lone: requests that came as their group's only one, with none at the gate;
 *	any context, may be a few short
 * @lendable: tags that the groups that may have them do not use; disk->lock, read
 *	without
 * @gate_lock: guards the list of those who wait; taken in interrupts
 * @gate_list: groups of which somebody waits at the gate
 * @nr_gate: length of @gate_list, read without
 * @passing: sum of gq->passing; @gate_lock, read without
 * @outlet: where bios go that are let through; constant
 */
struct isoblk_hq {
	spinlock_t lock;
	struct isoblk_disk *disk;
	struct blk_mq_hw_ctx *hctx;
	unsigned int index;
	struct list_head fresh[ISOBLK_MAX_DOMAINS];
	struct list_head ready[ISOBLK_MAX_DOMAINS];
	struct list_head throttled;
	unsigned int nr_ready;
	unsigned int nr_throttled;
	u64 gen;
	u64 sectors;
	u64 ios;
	u64 bios;
	atomic_t held ____cacheline_aligned_in_smp;
	u64 lone;
	unsigned int lendable;
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
 * @disk: whose gate they were at, NULL: its elevator has gone; read without
 * @index: of the hardware queue; constant
 * @refs: the disk's, and the worker's while it is queued
 * @bio: being submitted, until it has come to the gate; the worker's
 * @blkg: what that is charged to; the worker's
 */
struct isoblk_outlet {
	struct work_struct work;
	spinlock_t lock;
	struct bio_list bios;
	unsigned int nr;
	struct isoblk_disk *disk;
	unsigned int index;
	refcount_t refs;
	struct bio *bio;
	struct blkcg_gq *blkg;
};

/* Reads apart from the rest, sizes from 4 KiB to 1 MiB and more. */
#define ISOBLK_LAT_SIZES	10
#define ISOBLK_LAT_CLASSES	(2 * ISOBLK_LAT_SIZES)

/**
 * struct isoblk_lat - what completed on a CPU, by class; that CPU's interrupts
 * @nr: requests
 * @min: the shortest time in the device since it was last read, ns
 * @sum: all times in the device, ns
 * @sectors: of all
 */
struct isoblk_lat {
	u64 nr[ISOBLK_LAT_CLASSES];
	u32 min[ISOBLK_LAT_CLASSES];
	u64 sum;
	u64 sectors;
};

/* What completed in a span of time: disk->lock, see depth.c. */
struct isoblk_sample {
	u64 nr[ISOBLK_LAT_CLASSES];
	u64 lat_ns;
	u64 sectors;
	u64 bios;
	u64 span_ns;
};

enum isoblk_probe { ISOBLK_PROBE_NONE, ISOBLK_PROBE_DOWN, ISOBLK_PROBE_UP };

/**
 * struct isoblk_depth - how many requests the device is given at once
 * @inflight: given and not yet back
 * @limit: at most so many; INT_MAX: no limit. disk->lock, read without
 * @enough: with so many it is busy: who is without budget waits; likewise
 * @wake: when there are so many left, @starved queues are run; likewise
 * @starved: hardware queues that wait for fewer to be there
 * @full: one has begun to since the last tick
 * @mode: what the user wrote: 0 automatic, -1 off, else fixed; disk->lock
 * @loss_permille: of speed that may be given up; disk->lock
 * @lat: completions, counted a CPU
 * @tick_ns: when the last tick was; as all below disk->lock
 * @seen: sums of @lat at the last sample
 * @seen_bios: and of bios that were given to the device
 * @seen_ns: when that was
 * @base_ns: the shortest time in the device, by class, this window and the last
 * @window_ns: when this window began
 * @before: the sample that a probe is judged against
 * @top: and the one at which the way down began; span_ns 0: none
 * @probe: under way
 * @tolerance: how much slower a probe down may be, permille
 * @down_next: without a reason for either, the next probe is down
 * @settle: ticks to let pass before the probe counts
 * @known: the depth last found, 0: none yet
 * @guess: servers seen busy, INT_MAX: not known
 * @tight: @known is a limit, not only enough
 * @lone: sum of hq->lone at the last tick
 * @changed: the limits have, and @starved queues are to be run; read without
 * @slower: the limit that was last found too low, 0: none
 * @slower_ns: when that was
 * @up_percent: by how much more is tried next
 * @too_low: limit that was found to cost speed, 0: none
 * @pause_ns: between probes that failed
 * @next_ns: when the next probe may begin
 */
struct isoblk_depth {
	atomic_t inflight ____cacheline_aligned_in_smp;
	int limit ____cacheline_aligned_in_smp;
	int enough;
	int wake;
	unsigned long *starved;
	bool full;
	int mode;
	unsigned int loss_permille;
	struct isoblk_lat __percpu *lat;
	u64 tick_ns;
	struct isoblk_lat seen;
	u64 seen_bios;
	u64 seen_ns;
	u32 base_ns[2][ISOBLK_LAT_CLASSES];
	u64 window_ns;
	struct isoblk_sample before;
	struct isoblk_sample top;
	enum isoblk_probe probe;
	unsigned int tolerance;
	bool down_next;
	unsigned int settle;
	int known;
	int guess;
	bool tight;
	u64 lone;
	bool changed;
	int too_low;
	int slower;
	u64 slower_ns;
	int up_percent;
	u64 pause_ns;
	u64 next_ns;
};

/**
 * struct isoblk_round - what an elevator sizes the next round by
 * @used: sectors charged since the last refill
 * @elapsed_ns: time since then
 * @remainder: sum of what groups have left, sectors
 * @floor: enough for a request of the lightest group, sectors
 */
struct isoblk_round {
	u64 used;
	u64 elapsed_ns;
	s64 remainder;
	u64 floor;
};

/**
 * struct isoblk_ops - what an elevator does its own way
 * @nr_domains: fifos a group and hardware queue, at most ISOBLK_MAX_DOMAINS
 * @stat_name: of a group's remaining budget in io.stat
 * @domain: of an operation; NULL: 0
 * @round: sectors that the groups get together at a refill; disk->lock
 * @tick: every ISOBLK_TICK while the disk is in use, with the time; disk->lock
 *
 * And by one that has its own queues, and takes part by isoblk_groups_init():
 *
 * @equal_quotas: at the gate all active groups are alike
 * @sender_sleeps: there, for nobody else can send its requests
 * @own_size: bytes of its own in each group, see isoblk_group_own()
 * @own_gq_size: and of each of its hardware queues, after those
 * @group_init: these bytes are there, and zero; the group is not yet in use
 * @group_exit: a group that has taken part is about to be freed; disk->lock
 * @stat: what follows isoblk.used in io.stat, in place of a budget; any context
 */
struct isoblk_ops {
	unsigned int nr_domains;
	const char *stat_name;
	unsigned int (*domain)(blk_opf_t opf);
	u64 (*round)(struct isoblk_disk *disk, const struct isoblk_round *r);
	void (*tick)(struct isoblk_disk *disk, u64 now);

	bool equal_quotas;
	bool sender_sleeps;
	size_t own_size;
	size_t own_gq_size;
	void (*group_init)(struct isoblk_group *group);
	void (*group_exit)(struct isoblk_group *group);
	void (*stat)(struct isoblk_group *group, struct seq_file *s);
};

/**
 * struct isoblk_disk - a disk under one of our elevators: elevator_data
 * @q: constant
 * @ops: constant
 * @nr_hqs: constant
 * @hq: by index; constant once the hardware queues are set up
 * @lock: innermost but for wait queues; taken with interrupts off
 * @gen: refills so far; @lock, read without
 * @refilled_ns: when the last was; @lock
 * @refilled_sectors: charged until then; @lock
 * @refilled_ios: likewise, requests
 * @mean_sectors: of a request, as last seen; @lock
 * @active: groups that take part; @lock
 * @nr_active: how many; @lock, read without
 * @weights_gen: changes with the active set and with a weight; @lock
 * @shares_gen: the @weights_gen that the active groups' shares are of; @lock
 * @rate: sectors a second that were charged in the last tick, 0: none; @lock
 * @rate_ns: when that was taken; @lock
 * @rate_sectors: charged until then; @lock
 * @turn: sectors that one turn of a share of the whole device has; @lock, read
 *	without
 * @total: sectors that the last refill was to give out; @lock
 * @round: those that it gives to a share of the whole device; @lock
 * @busy_share: of the groups that sent something in the last tick; @lock
 * @lightest_share: the least of them; @lock
 * @nr_broke: active groups without budget since the last refill; may be one
 *	too high for a moment, which costs one refill too early
 * @paper_mode: groups wait until all active ones are without budget; @lock,
 *	read without
 * @refill_ns: a refill is made at the latest so long after the last; likewise
 * @write_cost: percent of its size that a write is charged; read without
 * @tags: of a hardware queue; read without
 * @gate_on: the gate is in use; read without
 * @gate_spare: tags divided by share, on top of one a group, or with
 *	equal_quotas each group's of them; @lock, read without
 * @served: the group whose turn it is, with equal_quotas; may be freed: only
 *	compared. @lock, read without
 * @gate_used: somebody waited since tags were last lent; any context
 * @tags_short: somebody waited in the last tick; @lock
 * @shared_tags: the hardware queues have one set of tags; constant
 * @scanned_ns: when idle groups were last looked for; @lock
 * @timer: the tick
 * @used: something was inserted since the last tick
 * @depth: see there
 */
struct isoblk_disk {
	struct request_queue *q;
	const struct isoblk_ops *ops;
	unsigned int nr_hqs;
	struct isoblk_hq **hq;

	spinlock_t lock;
	u64 gen;
	u64 refilled_ns;
	u64 refilled_sectors;
	u64 refilled_ios;
	u64 mean_sectors;
	struct list_head active;
	unsigned int nr_active;
	u64 weights_gen;
	u64 shares_gen;
	u64 rate;
	u64 rate_ns;
	u64 rate_sectors;
	u64 turn;
	u64 total;
	u64 round;
	u64 busy_share;
	u32 lightest_share;
	atomic_t nr_broke;
	bool paper_mode;
	u64 refill_ns;

	unsigned int write_cost;
	unsigned int tags;
	bool gate_on;
	unsigned int gate_spare;
	const struct isoblk_group *served;
	bool gate_used;
	bool tags_short;
	bool shared_tags;

	u64 scanned_ns;
	struct timer_list timer;
	bool used;
	struct isoblk_depth depth;
};

/*
 * Bits ISOBLK_RQ_SHIFT to 31 of rq->elv.priv[1] are the elevator's own, zero in a
 * new request.
 */
#define ISOBLK_RQ_SHIFT		8

/* What a flush or a request without data costs, as one of 4 KiB: sectors. */
#define ISOBLK_NO_DATA_COST	8

/* How often the depth is judged, and how often idle groups are looked for. */
#define ISOBLK_TICK		msecs_to_jiffies(5)
#define ISOBLK_IDLE_SCAN	(50ULL * NSEC_PER_MSEC)

/* share.c: groups, weights, who is active */
extern struct blkcg_policy isoblk_policy;
struct isoblk_group *isoblk_bio_group(struct bio *bio);
void __isoblk_activate(struct isoblk_group *group);
void isoblk_deactivate(struct isoblk_group *group);
s64 isoblk_grant(struct isoblk_group *group);
void isoblk_measure_busy(struct isoblk_disk *disk);
void isoblk_find_idle(struct isoblk_disk *disk);
void isoblk_update_shares(struct isoblk_disk *disk);
void isoblk_join(struct isoblk_group *group);
void isoblk_leave(struct isoblk_group *group);
u32 isoblk_group_share(struct isoblk_group *group);
bool isoblk_group_holds(const struct isoblk_group *group);
u64 isoblk_group_bytes(const struct isoblk_group *group, enum isoblk_op op);
u64 isoblk_group_ios(const struct isoblk_group *group, enum isoblk_op op);
s64 isoblk_group_budget(const struct isoblk_group *group);
u64 isoblk_group_throttled_ns(const struct isoblk_group *group);

/*
 * isoblk_activate() - a request of @group has been counted in held: take part
 */
static inline void isoblk_activate(struct isoblk_group *group)
{
	if (READ_ONCE(group->idle_scans))
		WRITE_ONCE(group->idle_scans, 0);
	/* Our count before their flag; pairs with isoblk_deactivate(). */
	smp_mb__after_atomic();
	if (!READ_ONCE(group->active))
		__isoblk_activate(group);
}

/* What an elevator has of its own in a group: ops->own_size bytes. */
static inline void *isoblk_group_own(struct isoblk_group *group)
{
	return &group->gq[group->disk->nr_hqs];
}

/* disk.c: a disk's life, its timer, what all elevators show */
int isoblk_groups_init(struct isoblk_disk *disk, struct request_queue *q,
		       struct elevator_queue *eq, const struct isoblk_ops *ops);
void isoblk_groups_exit(struct isoblk_disk *disk, struct elevator_queue *eq);
int isoblk_disk_init(struct isoblk_disk *disk, struct request_queue *q,
		     struct elevator_queue *eq, const struct isoblk_ops *ops);
void isoblk_disk_exit(struct isoblk_disk *disk, struct elevator_queue *eq);
void isoblk_set_paper_mode(struct isoblk_disk *disk, bool on);
int isoblk_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void isoblk_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void isoblk_depth_updated(struct request_queue *q);
void isoblk_set_shallow(struct request_queue *q, unsigned int depth);
ssize_t isoblk_depth_show(struct elevator_queue *e, char *page);
ssize_t isoblk_depth_store(struct elevator_queue *e, const char *page,
			   size_t count);
ssize_t isoblk_depth_loss_show(struct elevator_queue *e, char *page);
ssize_t isoblk_depth_loss_store(struct elevator_queue *e, const char *page,
				size_t count);
ssize_t isoblk_gate_show(struct elevator_queue *e, char *page);
ssize_t isoblk_gate_store(struct elevator_queue *e, const char *page,
			  size_t count);
int isoblk_debugfs_depth(void *data, struct seq_file *m);
int isoblk_debugfs_groups(void *data, struct seq_file *m);

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

#define ISOBLK_ATTRS							\
	__ATTR(depth, 0644, isoblk_depth_show, isoblk_depth_store),	\
	__ATTR(depth_loss, 0644, isoblk_depth_loss_show,		\
	       isoblk_depth_loss_store),				\
	__ATTR(gate, 0644, isoblk_gate_show, isoblk_gate_store)

#define ISOBLK_DEBUGFS_ATTRS						\
	{ "depth", 0400, isoblk_debugfs_depth },			\
	{ "groups", 0400, isoblk_debugfs_groups }

u64 isoblk_sectors(const struct isoblk_disk *disk);
u64 isoblk_rate_round(const struct isoblk_disk *disk, u64 interval_ns);

/* queue.c: requests wait, are chosen, charged and given back */
bool isoblk_bio_merge(struct request_queue *q, struct bio *bio,
		      unsigned int nr_segs);
void isoblk_prepare_request(struct request *rq);
void isoblk_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			    blk_insert_t flags);
struct request *isoblk_take(struct isoblk_hq *hq, unsigned int domain);
struct request *isoblk_dispatch(struct blk_mq_hw_ctx *hctx,
				struct request *(*pick)(struct isoblk_hq *hq));
bool isoblk_has_work(struct blk_mq_hw_ctx *hctx);
void isoblk_completed_request(struct request *rq, u64 now);
void isoblk_requeue_request(struct request *rq);
void isoblk_finish_request(struct request *rq);
void isoblk_refill(struct isoblk_disk *disk, unsigned int rounds);
void isoblk_run_throttled(struct isoblk_disk *disk,
			  const struct isoblk_hq *except);

/* gate.c: who may ask for a tag */
struct isoblk_gq *isoblk_gate_arrive(struct request_queue *q, struct bio *bio);
void isoblk_gate_merged(struct isoblk_gq *gq);
bool isoblk_gate_pass(struct request_queue *q, struct bio *bio);
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
struct isoblk_outlet *isoblk_outlet_alloc(struct isoblk_disk *disk);
void isoblk_outlet_leave(struct isoblk_outlet *out);
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
	return gq->group->disk->shared_tags ? &gq->group->gq[0] : gq;
}

/* Whether a request of @domain is ready; hq->lock, or a hint without. */
static inline bool isoblk_ready(const struct isoblk_hq *hq, unsigned int domain)
{
	return !list_empty_careful(&hq->fresh[domain]) ||
		!list_empty_careful(&hq->ready[domain]);
}

/* depth.c: how much the device gets */
int isoblk_depth_init(struct isoblk_disk *disk);
void isoblk_depth_exit(struct isoblk_disk *disk);
bool isoblk_depth_room(struct isoblk_disk *disk, struct isoblk_hq *hq);
bool isoblk_depth_short(struct isoblk_disk *disk, struct isoblk_hq *hq,
			int mine);
bool isoblk_depth_get(struct isoblk_disk *disk, struct isoblk_hq *hq);
void isoblk_depth_put(struct isoblk_disk *disk);
void isoblk_depth_account(struct isoblk_disk *disk, const struct request *rq,
			  u64 now);
void isoblk_depth_run(struct isoblk_disk *disk);
void isoblk_depth_tick(struct isoblk_disk *disk, u64 now);
void isoblk_depth_restart(struct isoblk_disk *disk);

#endif /* ISOBLK_SHARE_H */
