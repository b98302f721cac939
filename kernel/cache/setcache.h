/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dm-setcache in memory: what its parts share. README.md has the rules that
 * hold between memory and the SSD.
 */
#ifndef SETCACHE_H
#define SETCACHE_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/bits.h>
#include <linux/blk_types.h>
#include <linux/completion.h>
#include <linux/device-mapper.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "setcache-bio.h"
#include "setcache-metadata.h"

#define DM_MSG_PREFIX		"setcache"

/* Blocks in sectors, powers of two. */
#define SC_MIN_BLOCK		1
#define SC_MAX_BLOCK		128

/* Ways, powers of two. Slots of a set have 16 bits. */
#define SC_MIN_ASSOC		16
#define SC_MAX_ASSOC		4096
#define SC_NIL			0xffff

/*
 * A block is known in its set by an id: the round of the disk over the sets,
 * and its place in the set's stripe. A tag is the id and the slot's state.
 */
#define SC_ID_BITS		28
#define SC_ID_MASK		((u32)GENMASK(SC_ID_BITS - 1, 0))

/* Pages for the cache's own copies of a request; a larger one does not fill. */
#define SC_MAX_PAGES		1024

/* Pages that a round of cleaning takes. */
#define SC_ROUND_PAGES		512

/* A word of the table line, with the zero behind it. */
#define SC_WORD_SIZE		101

enum sc_mode {
	SC_MODE_WRITEBACK,
	SC_MODE_WRITETHROUGH,
	SC_MODE_WRITEAROUND,
	SC_MODE_READONLY,
	SC_MODE_WRITEONLY,
	SC_NR_MODES,
	SC_MODE_NONE = SC_NR_MODES,
};

enum sc_policy {
	SC_POLICY_FIFO,
	SC_POLICY_LRU,
	SC_POLICY_RANDOM,
	SC_NR_POLICIES,
};

/*
 * A slot. From SC_SLOT_DIRTY on, the record on the SSD may say dirty.
 *
 *	free -> filling -> clean <-> dirty -> cleaning -> cleaned -> clean
 *	                                  <-          <-
 *	                       stuck <-> dirty, ... -> discarded -> free
 *	filling, clean, discarded -> suspect -> free or retired
 *
 * cleaning: being written to the origin. cleaned: it has been, durably, and the
 * record is to say so. stuck: dirty, but cleaning it has failed. A write makes
 * all three dirty again. suspect: I/O there has failed, it is to be tried.
 * retired: never used again, for its place is bad, or holds records. These two
 * have no block, as free, and nothing is to be lost there.
 */
enum sc_slot_state {
	SC_SLOT_FREE,
	SC_SLOT_FILLING,
	SC_SLOT_CLEAN,
	SC_SLOT_DIRTY,
	SC_SLOT_CLEANING,
	SC_SLOT_CLEANED,
	SC_SLOT_DISCARDED,
	SC_SLOT_STUCK,
	SC_SLOT_SUSPECT,
	SC_SLOT_RETIRED,
};

enum sc_option {
	SC_OPT_SEQ_READ_KB,
	SC_OPT_SEQ_WRITE_KB,
	SC_OPT_DIRTY_HIGH,
	SC_OPT_DIRTY_LOW,
	SC_OPT_SET_HIGH,
	SC_OPT_SET_LOW,
	SC_OPT_IDLE_MS,
	SC_OPT_AGE_MS,
	SC_OPT_CLEAN_IOS,
	SC_OPT_CLEAN_SET,
	SC_OPT_CLEAN_GATE,
	SC_OPT_COMMIT_MS,
	SC_OPT_ACCEPT_ORIGIN,
	SC_OPT_TRUST,
	SC_NR_OPTIONS,
};

/* Whether there is an SSD, and what memory is: setcache-state.c has the moves. */
enum sc_phase {
	SC_PHASE_NEW,
	SC_PHASE_LIVE,
	SC_PHASE_STOPPED,
	SC_PHASE_LOST,
	SC_PHASE_TOLD,
	SC_NR_PHASES,
};

/* What moves a table from a phase to another. */
enum sc_event {
	SC_EVENT_READ,
	SC_EVENT_LOAD,
	SC_EVENT_RESUME,
	SC_EVENT_STOP,
	SC_EVENT_LOSE,
	SC_EVENT_TELL,
	SC_NR_EVENTS,
};

/**
 * struct sc_unsafe - what was acknowledged and may not be on the SSD for good
 * @data: data of dirty blocks, which are in the SSD's own cache
 * @records: what records are to say of them
 */
struct sc_unsafe {
	bool data;
	bool records;
};

/* What is known of the origin since the cache was stopped. */
enum sc_change {
	SC_ORIGIN_SAME,
	SC_ORIGIN_UNKNOWN,
	SC_ORIGIN_CHANGED,
};

/* Counters, in the order of the status; README.md says what adds up to what. */
enum sc_stat {
	SC_STAT_READ_REQUESTS,
	SC_STAT_WRITE_REQUESTS,
	SC_STAT_DISCARD_REQUESTS,
	SC_STAT_FLUSH_REQUESTS,
	SC_STAT_READ_SECTORS,
	SC_STAT_READ_HIT,
	SC_STAT_READ_MISS,
	SC_STAT_READ_BYPASS,
	SC_STAT_WRITE_SECTORS,
	SC_STAT_WRITE_HIT,
	SC_STAT_WRITE_NEW,
	SC_STAT_WRITE_BYPASS,
	SC_STAT_SEQ_READ,
	SC_STAT_SEQ_WRITE,
	SC_STAT_FILL,
	SC_STAT_FILL_EXTRA,
	SC_STAT_RMW_READ,
	SC_STAT_RMW_EXTRA,
	SC_STAT_THROUGH,
	SC_STAT_CLEAN_READ,
	SC_STAT_CLEAN_WRITE,
	SC_STAT_ORIGIN_READ,
	SC_STAT_ORIGIN_WRITE,
	SC_STAT_SSD_READ,
	SC_STAT_SSD_WRITE,
	SC_STAT_INSERTED,
	SC_STAT_REPLACED,
	SC_STAT_INVALIDATED,
	SC_STAT_DISCARDED,
	SC_STAT_NO_ROOM,
	SC_STAT_DIRTIED,
	SC_STAT_CLEANED,
	SC_STAT_DIRTY_HIT,
	SC_STAT_RECORD_UPDATES,
	SC_STAT_RECORD_BATCHED,
	SC_STAT_RECORD_BLOCKS,
	SC_STAT_COMMITS,
	SC_STAT_ROUNDS,
	SC_STAT_WAITED,
	SC_STAT_SSD_ERRORS,
	SC_STAT_ORIGIN_ERRORS,
	SC_STAT_LOST_ERRORS,
	SC_STAT_CLEAN_ERRORS,
	SC_NR_STATS,
};

struct sc_stats {
	u64 v[SC_NR_STATS];
};

/* Who may be at the same blocks at the same time: sc_conflict(). */
enum sc_class {
	/* Reads that change nothing. */
	SC_CLASS_SHARED,
	/* Writes, and reads that fill. */
	SC_CLASS_EXCLUSIVE,
	/* The cleaner at dirty blocks, which stay where they are. */
	SC_CLASS_CLEANER,
	/* The same, and nobody writes there until it is done. */
	SC_CLASS_HOLDER,
	/* The end of dirty blocks: discards, and writes the SSD refuses. */
	SC_CLASS_REMOVAL,
};

/**
 * struct sc_op - somebody at work on blocks of a set
 * @link: on the bucket's active or waiting ones; protected by its lock
 * @set: the set
 * @first: id of the first block
 * @last: id of the last block
 * @class: what it may meet
 * @mode: the cache's when it was planned; SC_MODE_NONE: it goes by none
 */
struct sc_op {
	struct list_head link;
	u32 set;
	u32 first;
	u32 last;
	enum sc_class class;
	u8 mode;
};

/**
 * struct sc_bucket - of sets
 * @lock: protects the sets, their slots, and the lists; taken with interrupts
 *	  off
 * @active: ops at work
 * @waiting: those that wait, in the order in which they came: of bios, and of the
 *	     cleaner as SC_CLASS_HOLDER
 */
struct sc_bucket {
	spinlock_t lock;		/* taken in interrupts */
	struct list_head active;
	struct list_head waiting;
} ____cacheline_aligned_in_smp;

/**
 * struct sc_set - a set; protected by its bucket's lock
 * @clock: uses, for stamps
 * @used: slots that are not free
 * @dirty: slots with dirty blocks: sc_is_dirty()
 * @free: the first free slot, or SC_NIL
 * @since: seconds (jiffies / HZ) when it had no dirty slot last
 */
struct sc_set {
	u16 clock;
	u16 used;
	u16 dirty;
	u16 free;
	u32 since;
};

/* Most likely one flow ends in a bucket; a few may. */
#define SC_FLOW_BUCKETS		64
#define SC_FLOW_WAYS		4

/**
 * struct sc_flow - a sequential stream
 * @next: sector at which it goes on
 * @length: sectors so far
 * @used: jiffies
 */
struct sc_flow {
	sector_t next;
	sector_t length;
	unsigned long used;
};

/* Flows of a hash; the lock protects them. */
struct sc_flow_bucket {
	/* Never held while another is. */
	spinlock_t lock;
	struct sc_flow flows[SC_FLOW_WAYS];
};

struct sc_flows {
	struct sc_flow_bucket buckets[SC_FLOW_BUCKETS];
};

/**
 * struct sc_index - what is where; constant but for what the arrays hold
 * @geo: geometry
 * @block_shift: sectors of a block
 * @assoc_shift: slots of a set
 * @blocks: whole blocks of the origin, those that may be cached
 * @slots: slots of the cache
 * @tags: a slot's state and id; these arrays: by the lock of the set's bucket
 * @stamps: a slot's time; of a free one, the free one before it, or SC_NIL
 * @nexts: the next slot with the same hash, or SC_NIL; of a free one, the next
 *	   free one
 * @heads: a hash's first slot, half as many as slots
 * @sets: the sets
 * @buckets: of sets
 * @bucket_mask: how many, less one
 * @nr_used: slots with a block; atomic
 * @nr_dirty: slots with a dirty block; atomic
 * @nr_retired: slots retired; atomic
 * @nr_stuck: of these, the stuck ones; atomic
 */
struct sc_index {
	struct sc_geometry geo;
	u32 block_shift;
	u32 assoc_shift;
	u64 blocks;
	u64 slots;
	u32 *tags;
	u16 *stamps;
	u16 *nexts;
	u16 *heads;
	struct sc_set *sets;
	struct sc_bucket *buckets;
	u32 bucket_mask;
	atomic_long_t nr_used;
	atomic_long_t nr_dirty;
	atomic_long_t nr_retired;
	atomic_long_t nr_stuck;
};

struct setcache;

/**
 * struct sc_waiter - waits for a commit
 * @link: on the cache's waiters
 * @fn: called when it is done, in process context
 * @error: of the commit, or of the flush of the origin
 * @origin: the origin is to be flushed, too
 */
struct sc_waiter {
	struct list_head link;
	void (*fn)(struct sc_waiter *waiter);
	blk_status_t error;
	bool origin;
};

/**
 * struct setcache - a cache
 * @ti: the target
 * @origin: the slow disk
 * @ssd: the fast one
 * @claim: on the list of claims (setcache-claim.c), which its mutex protects
 * @uuid: of the cache on the SSD, for other claims; by the same mutex
 * @bs: for bios of our own
 * @jobs: memory for struct sc_job
 * @index: what is where
 * @md: what is on the SSD
 * @flows: sequential streams read, and written
 * @stats: counters
 * @mode: enum sc_mode; this and the next two may change at any time, and are
 *	  read once by who needs them
 * @policy: enum sc_policy
 * @options: by enum sc_option
 * @origin_id: what the table line calls the origin; constant
 * @identity: what the origin is called; changes under suspension only
 * @phase: enum sc_phase; changed by sc_phase_move() alone, which has the rule
 * @seen: of the origin, when the cache was stopped last; under suspension
 * @unsafe: what was acknowledged and may not be on the SSD for good; this and
 *	    the next one are read and exchanged by setcache-state.c, without a
 *	    lock
 * @owing: the next flush is to fail
 * @error_lock: protects the next two
 * @errors: of data, not long ago
 * @errors_since: jiffies when they were halved last
 * @ask: they are many: write the superblock, to see whether there is an SSD
 * @last_io: jiffies of the last request
 * @origin_ios: requests at the origin
 * @wake: looks at who waits for blocks when somebody is done with some
 * @clean_wq: for the cleaner, which may wait for all that is on the others
 * @wq: for bios that have waited, trials, and the loss of the SSD; who is on it
 *	may wait for the two that follow
 * @job_wq: for jobs, which wait for devices alone
 * @commit_wq: for commits, one at a time, which do so, too
 * @nr_jobs: jobs; those of reads go on when their bio has ended
 * @idle: woken when there are none
 * @filling: pages of fills; atomic
 * @fill_lock: protects @fills
 * @fills: jobs of reads that have ended, to be sent by @fill_work
 * @fill_work: sends them
 * @mode_lock: of who changes the mode
 * @mode_wait: woken when a request ends while somebody waits for those of another
 *	mode
 * @defer_lock: protects @deferred
 * @deferred: bios to be started by @defer_work
 * @defer_work: starts them
 * @wait_lock: protects @waiters
 * @waiters: for the next commit
 * @commit_work: a commit, now
 * @commit_timer: a commit, later
 * @lost_work: drops all that is clean
 * @trial_work: tries slots that are suspect
 * @suspects: a bit a set that has some; atomic
 * @clean_work: the cleaner (setcache-clean.c), which owns what follows
 * @cleaner: its memory
 * @over: a bit a set with too many dirty slots; atomic
 * @clean_all: clean it all, a message said
 * @stopping: what goes on by itself is to stop; suspended
 * @over_global: too many dirty slots in all, not yet few enough
 */
struct setcache {
	struct dm_target *ti;
	struct dm_dev *origin;
	struct dm_dev *ssd;
	struct list_head claim;
	uuid_t uuid;
	struct bio_set bs;
	mempool_t jobs;
	struct sc_index index;
	struct sc_md *md;
	struct sc_flows *flows[2];
	struct sc_stats __percpu *stats;

	u8 mode;
	u8 policy;
	u32 options[SC_NR_OPTIONS];
	char origin_id[SC_WORD_SIZE];
	char identity[SC_IDENTITY_SIZE];

	int phase;
	struct sc_seen seen;
	struct sc_unsafe unsafe;
	bool owing;
	spinlock_t error_lock;		/* taken in interrupts */
	u32 errors;
	unsigned long errors_since;
	bool ask;
	unsigned long last_io;
	atomic_t origin_ios;

	void (*wake)(struct setcache *sc, struct sc_bucket *bucket,
		     struct sc_op *op);
	struct workqueue_struct *clean_wq;
	struct workqueue_struct *wq;
	struct workqueue_struct *job_wq;
	struct workqueue_struct *commit_wq;
	atomic_t nr_jobs;
	wait_queue_head_t idle;
	atomic_t filling;
	spinlock_t fill_lock;		/* of workers only */
	struct list_head fills;
	struct work_struct fill_work;
	struct mutex mode_lock;		/* not taken by requests */
	wait_queue_head_t mode_wait;
	spinlock_t defer_lock;		/* taken within a bucket's */
	struct list_head deferred;
	struct work_struct defer_work;
	spinlock_t wait_lock;		/* taken in interrupts */
	struct list_head waiters;
	struct work_struct commit_work;
	struct delayed_work commit_timer;
	struct work_struct lost_work;
	struct work_struct trial_work;
	unsigned long *suspects;

	struct delayed_work clean_work;
	struct sc_cleaner *cleaner;
	unsigned long *over;
	bool clean_all;
	bool stopping;
	bool over_global;
};

static inline void sc_count(struct setcache *sc, enum sc_stat stat, u64 n)
{
	this_cpu_add(sc->stats->v[stat], n);
}

/* Count sectors that go to or come from a device. */
static inline void sc_count_io(struct setcache *sc, bool ssd, bool read,
			       u32 sectors)
{
	if (ssd)
		sc_count(sc, read ? SC_STAT_SSD_READ : SC_STAT_SSD_WRITE,
			 sectors);
	else
		sc_count(sc, read ? SC_STAT_ORIGIN_READ : SC_STAT_ORIGIN_WRITE,
			 sectors);
}

static inline u32 sc_option(const struct setcache *sc, enum sc_option option)
{
	return READ_ONCE(sc->options[option]);
}

/* Return how many slots an option in per cent of all of them means. */
static inline u64 sc_slots_of(const struct setcache *sc, enum sc_option option)
{
	return div_u64(sc->index.slots * sc_option(sc, option), 100);
}

/* Return what device-mapper calls the cache, for messages. */
static inline const char *sc_device(const struct setcache *sc)
{
	return dm_table_device_name(sc->ti->table);
}

static inline bool sc_is_lost(const struct setcache *sc)
{
	return READ_ONCE(sc->phase) >= SC_PHASE_LOST;
}

/* Writes are cached and stay in the cache. */
static inline bool sc_mode_dirties(u8 mode)
{
	return mode == SC_MODE_WRITEBACK || mode == SC_MODE_WRITEONLY;
}

/* Something may be to be cleaned. Any context. */
static inline void sc_clean_kick(struct setcache *sc)
{
	if (!READ_ONCE(sc->stopping))
		mod_delayed_work(sc->clean_wq, &sc->clean_work, 0);
}

/* Too many slots are dirty, to be cleaned until few enough are. Any context. */
static inline void sc_clean_some(struct setcache *sc)
{
	WRITE_ONCE(sc->over_global, true);
	sc_clean_kick(sc);
}

/*
 * setcache-set.c. Of a block: number, set, id. The lock of the set's bucket is
 * held for all that take an id or a slot.
 */
int sc_index_init(struct sc_index *index);
void sc_index_exit(struct sc_index *index);
void sc_index_clear(struct sc_index *index);
bool sc_conflict(const struct sc_op *op, const struct sc_op *next);
bool sc_busy(struct sc_bucket *bucket, const struct sc_op *op,
	     const struct list_head *waiting_until);
bool sc_cut(struct sc_bucket *bucket, struct sc_op *op);
bool sc_slot_busy(struct sc_index *index, u32 set, u32 id,
		  const struct sc_op *but);
u16 sc_find(const struct sc_index *index, u32 set, u32 id);
void sc_insert(struct sc_index *index, u32 set, u16 slot, u32 id,
	       enum sc_slot_state state);
void sc_remove(struct sc_index *index, u32 set, u16 slot);
void sc_withdraw(struct sc_index *index, u32 set, u16 slot,
		 enum sc_slot_state state);
void sc_restore(struct sc_index *index, u32 set, u16 slot);
void sc_set_state(struct sc_index *index, u32 set, u16 slot,
		  enum sc_slot_state state);
void sc_locate(const struct sc_index *index, u64 block, u32 *set, u32 *id);
u64 sc_block_of(const struct sc_index *index, u32 set, u32 id);

static inline u64 sc_slot(const struct sc_index *index, u32 set, u16 slot)
{
	return ((u64)set << index->assoc_shift) + slot;
}

static inline enum sc_slot_state sc_state(const struct sc_index *index,
					  u32 set, u16 slot)
{
	return index->tags[sc_slot(index, set, slot)] >> SC_ID_BITS;
}

/* Whether a state means that the record on the SSD may say dirty. */
static inline bool sc_is_dirty(enum sc_slot_state state)
{
	return state >= SC_SLOT_DIRTY && state <= SC_SLOT_STUCK;
}

static inline u32 sc_id(const struct sc_index *index, u32 set, u16 slot)
{
	return index->tags[sc_slot(index, set, slot)] & SC_ID_MASK;
}

static inline struct sc_bucket *sc_bucket(const struct sc_index *index, u32 set)
{
	return &index->buckets[set & index->bucket_mask];
}

/* Where a slot's data are on the SSD. */
static inline sector_t sc_slot_sector(const struct sc_index *index, u32 set,
				      u16 slot)
{
	return index->geo.data + (sc_slot(index, set, slot) <<
				  index->block_shift);
}

/* setcache-policy.c; the lock of the set's bucket is held. */
void sc_touch(struct sc_index *index, u32 set, u16 slot, enum sc_policy policy,
	      bool inserted);
u16 sc_take(struct sc_index *index, u32 set, u32 id, u16 near,
	    enum sc_policy policy, bool *replaced);
bool sc_evictable(struct sc_index *index, u32 set, u16 slot);
u16 sc_age(const struct sc_index *index, u32 set, u16 slot);
/* Any context. */
struct sc_flows *sc_flows_create(void);
sector_t sc_flow(struct sc_flows *flows, sector_t sector, u32 count,
		 unsigned long now);

/* setcache-origin.c; may sleep. */
void sc_origin_identity(const struct setcache *sc, char *identity);
int sc_origin_see(struct setcache *sc, struct sc_seen *seen);
enum sc_change sc_origin_change(const struct setcache *sc,
				const struct sc_seen *was,
				const struct sc_seen *is);
bool sc_origin_written_since(const struct setcache *sc,
			     const struct sc_seen *was);
void sc_origin_init(void);

/* setcache-loss.c */
/* Any context. */
void sc_lose(struct setcache *sc);
void sc_lost_work(struct work_struct *work);

/* setcache-state.c */
/* Any context. */
bool sc_phase_move(struct setcache *sc, enum sc_event event);
bool sc_is_unsafe(struct setcache *sc);
void sc_set_unsafe_data(struct setcache *sc);
void sc_set_unsafe_records(struct setcache *sc);
/* Of the committer. */
struct sc_unsafe sc_take_unsafe(struct setcache *sc);
void sc_put_unsafe(struct setcache *sc, struct sc_unsafe unsafe);
bool sc_must_tell(struct setcache *sc, bool failed);
/* The table is suspended. */
void sc_begin_read(struct setcache *sc);
void sc_end_read(struct setcache *sc);
void sc_end_stop(struct setcache *sc);

/* setcache-claim.c; may sleep. */
const char *sc_claim(struct setcache *sc);
bool sc_claimed_twice(struct setcache *sc);
void sc_unclaim(struct setcache *sc);

/* setcache-io.c; any context. */
int sc_map(struct dm_target *ti, struct bio *bio);
int sc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error);
size_t sc_per_bio_size(void);
void sc_defer_work(struct work_struct *work);
void sc_wake(struct setcache *sc, struct sc_bucket *bucket, struct sc_op *op);

/* setcache-slots.c; any context, but where it says so. */
void sc_settle(struct setcache *sc, const struct sc_op *op, bool through);
void sc_drop(struct setcache *sc, const struct sc_op *op, bool failed);
/* May sleep. */
void sc_discarded(struct setcache *sc, const struct sc_op *op, bool recorded,
		  bool failed);
int sc_change_mode(struct setcache *sc, u8 mode);
/* The lock of the set's bucket is held. */
bool sc_is_over(const struct setcache *sc, u32 set);
void sc_check_dirty(struct setcache *sc, u32 set);
/* No lock is held. */
void sc_unlock(struct setcache *sc, struct sc_op *op);

/* setcache-trial.c; any context, but for the work. */
void sc_ssd_error(struct setcache *sc, blk_status_t error);
void sc_suspect(struct setcache *sc, u32 set, u16 slot);
void sc_trial_kick(struct setcache *sc);
void sc_trial_work(struct work_struct *work);

/* setcache-job.c */
size_t sc_job_size(u32 assoc);
void sc_fill_work(struct work_struct *work);

/* setcache-commit.c */
void sc_commit_work(struct work_struct *work);
void sc_commit_timer(struct work_struct *work);
/* The lock of the set's bucket is held. */
void sc_mark(struct setcache *sc, u32 set, u16 slot);
void sc_mark_retired(struct setcache *sc, u32 set, u16 slot);
void sc_wait_commit(struct setcache *sc, struct sc_waiter *waiter,
		    void (*fn)(struct sc_waiter *waiter), bool origin);
int sc_commit_now(struct setcache *sc);
extern const struct sc_md_ops sc_record_answers;

/* setcache-clean.c */
struct sc_cleaner *sc_cleaner_create(struct setcache *sc);
void sc_cleaner_destroy(struct sc_cleaner *cleaner);
void sc_clean_work(struct work_struct *work);
void sc_clean_all(struct setcache *sc, bool start);
/* The lock of the set's bucket is held. */
void sc_clean_wake(struct setcache *sc, struct sc_bucket *bucket,
		   struct sc_op *op);

#endif /* SETCACHE_H */
