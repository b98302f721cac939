/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dm-setcache in memory: a cache, and what all parts use of it. README.md has
 * the invariants between memory and the SSD.
 */
#ifndef SETCACHE_H
#define SETCACHE_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blk_types.h>
#include <linux/device-mapper.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "setcache-metadata.h"
#include "setcache-policy.h"
#include "setcache-set.h"
#include "setcache-state.h"

#define DM_MSG_PREFIX		"setcache"

/* Bytes of a word of the table line, with the zero behind it. */
#define SC_WORD_BYTES		101

enum sc_mode {
	SC_MODE_WRITEBACK,
	SC_MODE_WRITETHROUGH,
	SC_MODE_WRITEAROUND,
	SC_MODE_READONLY,
	SC_MODE_WRITEONLY,
	SC_NR_MODES,
	SC_MODE_NONE = SC_NR_MODES,
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

/* Counters, in the order of the status; README.md says which are sums of others. */
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

struct sc_cleaner;
struct sc_flows;

/* A cache. */
struct setcache {
	/* Devices; constant. */
	struct dm_target *ti;	/* the target */
	struct dm_dev *origin;	/* the slow disk */
	struct dm_dev *ssd;	/* the SSD */

	/* The origin's identity and state. */
	struct {
		/* Option origin_id of the table line, or ""; constant. */
		char origin_id[SC_WORD_BYTES];
		/* Identity of the origin; written while suspended. */
		char identity[SC_IDENTITY_BYTES];
		/* The origin at the last orderly stop; used while suspended. */
		struct sc_origin_state state;
	} known;

	/* The claim on both disks; under the mutex of setcache-claim.c. */
	struct {
		struct list_head link;	/* entry in the list of claims */
		uuid_t uuid;		/* UUID of the cache on the SSD */
	} claim;

	/* Blocks, records, streams and counters. */
	struct sc_index index;			/* sets and slots; under bucket locks */
	struct sc_md *md;			/* metadata; constant */
	struct sc_flows *flows[2];		/* streams of reads, of writes */
	struct sc_stats __percpu *stats;	/* counters, one set per CPU */

	/* A message may change these at any time: use READ_ONCE(). */
	u8 mode;			/* enum sc_mode */
	u8 policy;			/* enum sc_policy */
	u32 options[SC_NR_OPTIONS];	/* values, indexed by enum sc_option */

	/* A change of the mode. */
	struct {
		struct mutex lock;	/* held while the mode changes */
		wait_queue_head_t wait;	/* woken when a request ends */
	} mode_change;

	/* Whether the SSD is available: setcache-state.c has the moves. */
	struct {
		int phase;		/* enum sc_phase */
		struct sc_unsafe unsafe;	/* acknowledged, not stable */
		bool must_report;	/* the next flush fails */
	} state;
	/* Background work stops; written while suspending or resuming. */
	bool stopping;

	/* I/O errors of data on the SSD. */
	struct {
		spinlock_t lock;	/* protects the next two; any context */
		u32 nr_errors;		/* errors, halved every minute */
		unsigned long halved_at; /* jiffies when count was last halved */
		/* The next commit writes the superblock as a probe; xchg(). */
		bool probe;
	} errors;

	/* Recent load, for the cleaner. */
	unsigned long last_io_jiffies; /* jiffies of the last request; READ_ONCE() */
	atomic_t origin_ios;	/* bios in flight to the origin */

	/*
	 * Called for each waiting op when another op gives up its blocks. The
	 * lock of the bucket is held. Constant.
	 */
	void (*wake)(struct setcache *sc, struct sc_bucket *bucket,
		     struct sc_op *op);

	/*
	 * Workqueues; constant. Work on a queue may wait for all work on the
	 * queues below it: jobs and commits wait for devices alone.
	 */
	struct {
		struct workqueue_struct *clean;		/* the cleaner */
		struct workqueue_struct *common;	/* all other work */
		struct workqueue_struct *job;		/* jobs */
		struct workqueue_struct *commit;	/* commits, one at a time */
	} wq;

	/* Bios that go on in a worker: setcache-io.c. */
	struct {
		spinlock_t lock;	/* protects list; nests in a bucket's */
		struct list_head list;	/* of struct sc_io */
		struct work_struct work;	/* goes on with these bios */
	} deferred;

	/* Bios that need several bios: setcache-job.c. */
	struct bio_set bs;	/* memory for the cache's own bios */
	struct {
		mempool_t pool;		/* memory for jobs */
		atomic_t nr_jobs;	/* number of jobs, fills included */
		wait_queue_head_t idle;	/* woken when count is 0 */
	} jobs;

	/* Fills of reads that have ended: setcache-fill.c. */
	struct {
		atomic_t nr_pages;	/* pages of all fills */
		spinlock_t lock;	/* protects list; taken in workers only */
		struct list_head list;	/* jobs whose fill is not yet sent */
		struct work_struct work;	/* sends these fills */
	} fills;

	/* Commits of records: setcache-commit.c. */
	struct {
		spinlock_t lock;	/* protects waiters; any context */
		struct list_head waiters;	/* waiters for the next commit */
		struct work_struct work;	/* commits now */
		struct delayed_work timer;	/* commits after commit_ms */
	} commits;

	/* The loss of the SSD, and slots that have failed. */
	struct work_struct lost_work;	/* drops clean blocks */
	struct {
		unsigned long *sets;	/* a bit per set with suspects; atomic */
		struct work_struct work;	/* tests suspect slots */
	} trials;

	/* Cleaning of dirty blocks: setcache-clean.c. */
	struct {
		struct delayed_work work;	/* the cleaner */
		struct sc_cleaner *cleaner;	/* its memory; constant */
		/* A bit per set that exceeds set_high; atomic. */
		unsigned long *over_sets;
		/* These two: READ_ONCE() and WRITE_ONCE(), any context. */
		bool over_all;	/* beyond dirty_high, and not yet at dirty_low */
		bool all;	/* a message asked to clean everything */
	} cleaning;
};

static inline void sc_add_stat(struct setcache *sc, enum sc_stat stat, u64 n)
{
	this_cpu_add(sc->stats->v[stat], n);
}

/* Count sectors that go to or come from a device. */
static inline void sc_add_io_stat(struct setcache *sc, bool ssd, bool read,
				  u32 sectors)
{
	if (ssd)
		sc_add_stat(sc, read ? SC_STAT_SSD_READ : SC_STAT_SSD_WRITE,
			    sectors);
	else
		sc_add_stat(sc,
			    read ? SC_STAT_ORIGIN_READ : SC_STAT_ORIGIN_WRITE,
			    sectors);
}

static inline u32 sc_get_option(const struct setcache *sc,
				enum sc_option option)
{
	return READ_ONCE(sc->options[option]);
}

/* Return the number of slots that an option in per cent stands for. */
static inline u64 sc_option_slots(const struct setcache *sc,
				  enum sc_option option)
{
	return div_u64(sc->index.nr_slots * sc_get_option(sc, option), 100);
}

/* Return the device's name, for messages. */
static inline const char *sc_device_name(const struct setcache *sc)
{
	return dm_table_device_name(sc->ti->table);
}

static inline bool sc_is_lost(const struct setcache *sc)
{
	return READ_ONCE(sc->state.phase) >= SC_PHASE_LOST;
}

/* Return whether a mode makes blocks dirty. */
static inline bool sc_mode_dirties(u8 mode)
{
	return mode == SC_MODE_WRITEBACK || mode == SC_MODE_WRITEONLY;
}

/* Have the cleaner look for something to clean. Any context. */
static inline void sc_clean_kick(struct setcache *sc)
{
	if (!READ_ONCE(sc->stopping))
		mod_delayed_work(sc->wq.clean, &sc->cleaning.work, 0);
}

/* Have the cleaner clean until dirty_low is reached. Any context. */
static inline void sc_clean_start_all_over(struct setcache *sc)
{
	WRITE_ONCE(sc->cleaning.over_all, true);
	sc_clean_kick(sc);
}

#endif /* SETCACHE_H */
