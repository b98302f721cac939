/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flagship's parts: a disk, its hardware queues, groups, and a group on a
 * hardware queue. isoblk.c opens with the design.
 */
#ifndef ISOBLK_H
#define ISOBLK_H

#include <linux/hrtimer.h>
#include <linux/rbtree.h>

#include "isoblk_share.h"
#include "vtime.h"
#include "window.h"

/* Sizes of requests that are told apart, by the highest bit of their sectors. */
#define ISO_SIZES		24

/* Requests of a group in one word: those that wait below, in the device above. */
#define ISO_WAITS		1ULL
#define ISO_IN_DEVICE		BIT_ULL(32)

/* One request, in @busy_with. */
#define ISO_BUSY_ONE		16

struct iso_disk;
struct iso_group;
struct iso_hq;

/**
 * struct iso_gq - one group on one hardware queue
 * @node: in hq->tree while @nr is not 0; hq->lock
 * @fresh_node: in hq->fresh if it is to go before the others; hq->lock
 * @group: constant
 * @common: what the gate and the weights know of it; constant
 * @hq: constant
 * @key: group's time by which it is in the tree, may be another by now; hq->lock
 * @end: where the request ended that was taken last, a sector; hq->lock
 * @fifo: requests that wait; hq->lock
 * @nr: how many; hq->lock, read without
 * @wait_ns: from insertion to the device, in all; hq->lock, read without
 * @area: of what has completed, work x time since insertion; any context
 * @base_area: the same, had each taken the least time; any context
 */
struct iso_gq {
	struct rb_node node;
	struct list_head fresh_node;
	struct iso_group *group;
	struct isoblk_gq *common;
	struct iso_hq *hq;
	u64 key;
	sector_t end;
	struct list_head fifo;
	unsigned int nr;
	u64 wait_ns;
	atomic64_t area;
	atomic64_t base_area;
};

/**
 * struct iso_sums - @area and @base_area of a group, and the disk's area
 */
struct iso_sums {
	u64 area;
	u64 base;
	u64 all;
};

/**
 * struct iso_group - a cgroup on a disk: isoblk_group_own()
 * @group: constant
 * @node: in disk->groups while @joined; disk lock
 * @holder: in disk->holders while @held_for or @gated; disk lock
 * @joined: takes part; disk lock, a hint without
 * @held_for: others are held back for it; disk lock, read without
 * @gated: bios of it wait for tags; disk lock, read without
 * @share: of ISOBLK_SHARE_ONE; disk lock, read without
 * @share_gen: the weights that @share is of; disk lock, a hint without
 * @vtime: what it was charged over its share; any context
 * @has: its requests, see ISO_WAITS; any context
 * @ended_ns: when the last of them left the device; any context
 * @think_ns: how long it usually has none before the next comes; any context
 * @seen: sums at the last scan; disk lock
 * @recent: of the last scans, each weighing three quarters of the next; disk lock
 * @gain: of holding others back for it, of ISO_GAIN_ONE; disk lock
 * @gq: one a hardware queue
 */
struct iso_group {
	struct isoblk_group *group;
	struct list_head node;
	struct list_head holder;
	bool joined;
	bool held_for;
	bool gated;
	u32 share;
	u64 share_gen;
	atomic64_t vtime;
	atomic64_t has;
	u64 ended_ns;
	u64 think_ns;
	struct iso_sums seen;
	struct iso_sums recent;
	u32 gain;
	struct iso_gq gq[];
};

/**
 * struct iso_done - what has completed on a CPU so far; that CPU's
 * @nr: requests
 * @work: of all
 * @area: work x time in the device
 * @base_area: the same, had each taken the least time
 * @wait_area: work x time since insertion
 */
struct iso_done {
	u64 nr;
	u64 work;
	u64 area;
	u64 base_area;
	u64 wait_area;
};

/**
 * struct iso_hq - one hardware queue
 * @lock: guards what waits here; outside the disk lock, never in interrupts
 * @disk: constant
 * @hctx: constant once the hardware queues are set up
 * @index: constant
 * @tree: of struct iso_gq, who is furthest behind first; @lock
 * @fresh: those that go before; @lock
 * @urgent: requests that go before all; @lock
 * @turn: whose turn it is; @lock
 * @nr: requests that wait; @lock, a hint without
 * @blocked: nothing may go for now; set under @lock, cleared in any context
 * @wait_tag: the time of the group that would be next, if @blocked; @lock, a hint
 *	without
 * @now: when something was inserted or completed here last; any context
 * @in_device: requests that no longer wait; any context
 * @spare: of the window, work that may still go to the device from here; below
 *	0: more has gone than the window allows
 */
struct iso_hq {
	/* Guards what waits here: see above. */
	spinlock_t lock;
	struct iso_disk *disk;
	struct blk_mq_hw_ctx *hctx;
	unsigned int index;
	struct rb_root_cached tree;
	struct list_head fresh;
	struct list_head urgent;
	struct iso_gq *turn;
	unsigned int nr;
	bool blocked;
	u64 wait_tag;
	u64 now ____cacheline_aligned_in_smp;
	atomic_t in_device;
	atomic64_t spare;
};

/**
 * struct iso_disk - a disk: elevator_data
 * @disk: weights and the gate; its lock is "the disk lock" here. First.
 * @hq: by index; constant
 * @done: what has completed; see there
 * @tags: that the device takes from a hardware queue; constant
 * @rotational: it turns; constant
 * @groups: that take part; disk lock
 * @nr_groups: how many; disk lock, a hint without
 * @holders: for whom others are held back; disk lock
 * @window: how much the device has at once; disk lock
 * @window_mode: what the user wrote: 0 automatic, -1 off, else work; disk lock
 * @measuring: a CPU sees to the end of the epoch; any context
 * @epoch_ns: when the epoch began; disk lock
 * @look_ns: when it may be long enough; disk lock, a hint without
 * @scan_ns: when groups were looked at last; disk lock
 * @nr_scans: how often; disk lock
 * @seen: sums at the beginning of the epoch; disk lock
 * @rates: units a second in the last epochs; disk lock
 * @rate_at: where the next is put; disk lock
 * @rate: the highest of @rates; disk lock
 * @base: least time in the device by direction and size, of this span of time and
 *	the last, ns; written without a lock, where a lost update is the next one's
 * @base_ns: when this span began; disk lock
 * @trial: nobody is held back, to see what comes of it; disk lock
 * @trial_seen: sums when it began; disk lock
 * @own_queue_ns: for how long requests queued in the device in the last; disk lock
 * @trial_ns: when it began; disk lock
 * @hold_left: scans until the next; disk lock
 * @hold_len: scans from one to the next; disk lock
 * @hold_changed: @holders has, since this scan began; disk lock
 * @peak: the most work that the device had in this epoch; any context
 * @limited: the window was full in this epoch; any context
 * @mean_work: of a request; disk lock, read without
 * @busy_with: so many requests at once keep the device busy, smoothed, of
 *	ISO_BUSY_ONE; disk lock, read without
 * @hold_us: how much work, as time of the device, a group may be ahead; disk lock
 * @idle_us: somebody who is expected back is waited for so long; any context
 * @idle_loss: permille of time that may be lost by that; disk lock
 * @merge_kb: beside others a request grows to this; any context
 * @timer: ends such a wait
 * @tick: looks for idle groups
 * @vnow: the time of whoever was served last; any context
 * @behind: time of who is furthest behind of those for whom others are held
 *	back, or far ahead of all; any context
 * @slack: so far others may be ahead of that, @hold_us as virtual time; any context
 * @stream_slack: the same of a group that streams; any context
 * @ease: two requests, as virtual time; any context
 * @debt_max: a group that is further ahead has nothing urgent; any context
 * @size: the window's; disk lock, read without
 * @idle_ns: time that may be lost by waiting; any context
 * @idle_since: since when somebody is waited for, 0: nobody is; any context
 * @nr_blocked: hardware queues that are
 * @pool: of the window, work that no hardware queue has for itself
 */
struct iso_disk {
	struct isoblk_disk disk;
	struct iso_hq *hq;
	struct iso_done __percpu *done;
	unsigned int tags;
	bool rotational;

	struct list_head groups;
	unsigned int nr_groups;
	struct list_head holders;
	struct window window;
	s64 window_mode;
	atomic_t measuring;
	u64 epoch_ns;
	u64 look_ns;
	u64 scan_ns;
	unsigned int nr_scans;
	struct iso_done seen;
	u64 rates[32];
	unsigned int rate_at;
	u64 rate;
	u32 base[2][2][ISO_SIZES];
	u64 base_ns;
	bool trial;
	struct iso_done trial_seen;
	u64 own_queue_ns;
	u64 trial_ns;
	unsigned int hold_left;
	unsigned int hold_len;
	bool hold_changed;
	u64 peak;
	bool limited;
	u64 mean_work;
	u64 busy_with;
	unsigned int hold_us;
	unsigned int idle_us;
	unsigned int idle_loss;
	unsigned int merge_kb;
	struct hrtimer timer;
	struct timer_list tick;

	u64 vnow ____cacheline_aligned_in_smp;
	u64 behind;
	u64 slack;
	u64 stream_slack;
	u64 ease;
	u64 debt_max;
	u64 size;
	atomic64_t idle_ns;
	u64 idle_since;
	atomic_t nr_blocked;
	atomic64_t pool ____cacheline_aligned_in_smp;
};

static inline u32 iso_in_device(u64 has)
{
	return has >> 32;
}

static inline u32 iso_waits(u64 has)
{
	return has;
}

/* @g was served so far ahead of its time that nothing of it is urgent. */
static inline bool iso_indebted(const struct iso_disk *d,
				const struct iso_group *g)
{
	return vtime_before(READ_ONCE(d->vnow) + READ_ONCE(d->debt_max),
			    atomic64_read(&g->vtime));
}

/* isoblk-hold.c: for whom others are held back, and how far */
void iso_scan(struct iso_disk *d, u64 now);
void iso_find_idle(struct iso_disk *d, u64 now);
bool iso_beyond_horizon(struct iso_disk *d, struct iso_hq *hq, u64 tag,
			u64 slack, struct iso_gq **late);
void iso_update_horizon(struct iso_disk *d, u64 now);
u64 iso_patience(const struct iso_disk *d, const struct iso_group *g);
void iso_end_wait(struct iso_disk *d, u64 now);

/* isoblk-room.c: the window, divided among hardware queues */
bool iso_get_room(struct iso_disk *d, struct iso_hq *hq, u64 work);
void iso_put_room(struct iso_disk *d, struct iso_hq *hq, u64 work);
void iso_resize(struct iso_disk *d, u64 size);

/* isoblk-measure.c: what the device does */
void iso_first_request(struct iso_disk *d, u64 work);
void iso_account(struct iso_disk *d, struct iso_gq *gq,
		 const struct request *rq, unsigned int sectors, u64 work,
		 u64 now);
void iso_measure(struct iso_disk *d, u64 now);
void iso_measure_restart(struct iso_disk *d);

#endif /* ISOBLK_H */
