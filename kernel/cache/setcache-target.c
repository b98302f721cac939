// SPDX-License-Identifier: GPL-2.0-only
/*
 * dm-setcache: an SSD as a set-associative cache of a slow disk.
 *
 * The disk is cut into blocks, and consecutive blocks into stripes. Each stripe
 * belongs to a set of as many slots as it has blocks, and a block of it may be in
 * any of them. README.md says what is on the SSD, and what holds there and in
 * memory at any time; the parts are
 *
 *	-io		the way of a bio
 *	-job		bios that need more than one
 *	-plan		what a bio finds in its slots
 *	-clean		dirty blocks back to the disk
 *	-slots		what a request leaves in its slots, and to whom
 *	-trial		slots that have failed
 *	-commit		who waits for records, and gets them
 *	-loss		what becomes of memory when the SSD is lost
 *	-state		whether there is an SSD: one state machine
 *	-claim		nobody else has these disks
 *	-origin		which disk it is, and whether it has changed
 *	-policy		which slot gives way, which stream is sequential
 *	-set		what is where, and who is at work there
 *	-metadata	the format, and the order of writes
 *	-bio		bios of our own pages, and those that somebody waits for
 *
 * Each calls those below it alone. What goes up is called back: who waits for
 * blocks (@wake), the end of a job's bio (@end), of a commit (@fn), and what the
 * records are to say (struct sc_md_ops).
 *
 * This one is what device-mapper sees. The table line is read by the
 * constructor, but the SSD only when the device is resumed: while a new table is
 * loaded, the old one may still be at work. Suspension leaves everything on the
 * SSD as the next table, or the next kernel, expects it.
 */
#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/device-mapper.h>
#include <linux/kstrtox.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "setcache.h"

/* Jobs and bios that there is always memory for. */
#define SC_MIN_JOBS	16
#define SC_MIN_BIOS	64

#define SC_NR_ARGS	6

static const char * const sc_modes[] = {
	[SC_MODE_WRITEBACK] = "writeback",
	[SC_MODE_WRITETHROUGH] = "writethrough",
	[SC_MODE_WRITEAROUND] = "writearound",
	[SC_MODE_READONLY] = "readonly",
	[SC_MODE_WRITEONLY] = "writeonly",
};

static const char * const sc_policies[] = {
	[SC_POLICY_FIFO] = "fifo",
	[SC_POLICY_LRU] = "lru",
	[SC_POLICY_RANDOM] = "random",
};

static const char * const sc_stat_names[] = {
	[SC_STAT_READ_REQUESTS] = "reads",
	[SC_STAT_WRITE_REQUESTS] = "writes",
	[SC_STAT_DISCARD_REQUESTS] = "discards",
	[SC_STAT_FLUSH_REQUESTS] = "flushes",
	[SC_STAT_READ_SECTORS] = "read",
	[SC_STAT_READ_HIT] = "read_hit",
	[SC_STAT_READ_MISS] = "read_miss",
	[SC_STAT_READ_BYPASS] = "read_bypass",
	[SC_STAT_WRITE_SECTORS] = "write",
	[SC_STAT_WRITE_HIT] = "write_hit",
	[SC_STAT_WRITE_NEW] = "write_new",
	[SC_STAT_WRITE_BYPASS] = "write_bypass",
	[SC_STAT_SEQ_READ] = "seq_read",
	[SC_STAT_SEQ_WRITE] = "seq_write",
	[SC_STAT_FILL] = "fill",
	[SC_STAT_FILL_EXTRA] = "fill_extra",
	[SC_STAT_RMW_READ] = "rmw_read",
	[SC_STAT_RMW_EXTRA] = "rmw_extra",
	[SC_STAT_THROUGH] = "through",
	[SC_STAT_CLEAN_READ] = "clean_read",
	[SC_STAT_CLEAN_WRITE] = "clean",
	[SC_STAT_ORIGIN_READ] = "origin_read",
	[SC_STAT_ORIGIN_WRITE] = "origin_write",
	[SC_STAT_SSD_READ] = "ssd_read",
	[SC_STAT_SSD_WRITE] = "ssd_write",
	[SC_STAT_INSERTED] = "inserted",
	[SC_STAT_REPLACED] = "replaced",
	[SC_STAT_INVALIDATED] = "invalidated",
	[SC_STAT_DISCARDED] = "discarded",
	[SC_STAT_NO_ROOM] = "no_room",
	[SC_STAT_DIRTIED] = "dirtied",
	[SC_STAT_CLEANED] = "cleaned",
	[SC_STAT_DIRTY_HIT] = "dirty_hit",
	[SC_STAT_RECORD_UPDATES] = "record_updates",
	[SC_STAT_RECORD_BATCHED] = "record_batched",
	[SC_STAT_RECORD_BLOCKS] = "record_blocks",
	[SC_STAT_COMMITS] = "commits",
	[SC_STAT_ROUNDS] = "rounds",
	[SC_STAT_WAITED] = "waited",
	[SC_STAT_SSD_ERRORS] = "ssd_errors",
	[SC_STAT_ORIGIN_ERRORS] = "origin_errors",
	[SC_STAT_LOST_ERRORS] = "lost_errors",
	[SC_STAT_CLEAN_ERRORS] = "clean_errors",
};

static const struct {
	const char *name;
	u32 initial;
	u32 min;
	u32 max;
} sc_options[SC_NR_OPTIONS] = {
	[SC_OPT_SEQ_READ_KB] = { "seq_read_kb", 0, 0, 1 << 30 },
	[SC_OPT_SEQ_WRITE_KB] = { "seq_write_kb", 0, 0, 1 << 30 },
	[SC_OPT_DIRTY_HIGH] = { "dirty_high", 100, 0, 100 },
	[SC_OPT_DIRTY_LOW] = { "dirty_low", 90, 0, 100 },
	[SC_OPT_SET_HIGH] = { "set_high", 20, 0, 100 },
	[SC_OPT_SET_LOW] = { "set_low", 15, 0, 100 },
	[SC_OPT_IDLE_MS] = { "idle_ms", 0, 0, 1 << 30 },
	[SC_OPT_AGE_MS] = { "age_ms", 0, 0, 1 << 30 },
	[SC_OPT_CLEAN_IOS] = { "clean_ios", 16, 1, 1024 },
	[SC_OPT_CLEAN_SET] = { "clean_set", 128, 1, SC_MAX_ASSOC },
	[SC_OPT_CLEAN_GATE] = { "clean_gate", 0, 0, 1 << 20 },
	[SC_OPT_COMMIT_MS] = { "commit_ms", 1000, 1, 60000 },
	[SC_OPT_ACCEPT_ORIGIN] = { "accept_origin", 0, 0, 1 },
	[SC_OPT_TRUST] = { "trust", 0, 0, 1 },
};

static char sc_no_identity[] =
	"the kernel has no identity of the origin, and dirty blocks need one: option origin_id";

static int sc_name(const char * const *names, int count, const char *name)
{
	int i = match_string(names, count, name);

	return i < 0 ? -EINVAL : i;
}

/* A word that says which disk the origin is. */
static int sc_set_origin_id(struct setcache *sc, const char *word)
{
	const char *c;

	for (c = word; *c; c++)
		if (!isascii(*c) || !isgraph(*c))
			return -EINVAL;
	if (c == word || strscpy(sc->origin_id, word) < 0)
		return -EINVAL;
	return 0;
}

/* Set an option, mode or policy from text. */
static int sc_set(struct setcache *sc, const char *key, const char *value)
{
	int i, r;
	u32 number;

	if (!strcmp(key, "mode")) {
		i = sc_name(sc_modes, SC_NR_MODES, value);
		if (i >= 0)
			WRITE_ONCE(sc->mode, i);
		return min(i, 0);
	}
	if (!strcmp(key, "policy")) {
		i = sc_name(sc_policies, SC_NR_POLICIES, value);
		if (i >= 0)
			WRITE_ONCE(sc->policy, i);
		return min(i, 0);
	}
	for (i = 0; i < SC_NR_OPTIONS; i++) {
		if (strcmp(key, sc_options[i].name))
			continue;
		r = kstrtou32(value, 10, &number);
		if (r)
			return r;
		if (number < sc_options[i].min || number > sc_options[i].max)
			return -ERANGE;
		WRITE_ONCE(sc->options[i], number);
		return 0;
	}
	return -EINVAL;
}

/*---------------------------------------------------------------------------*/

/* Whether what the cache holds is of the origin as it is now. */
static int sc_check_origin(struct setcache *sc, const struct sc_super *super,
			   bool *keep, const char **error)
{
	const char *name = sc_device(sc);
	enum sc_change change;
	struct sc_seen now;
	int r;

	*keep = super->fresh;
	/* The origin was written to while the SSD was lost: by us. */
	if (!super->clean || super->fresh || sc_is_lost(sc))
		return 0;
	*error = "cannot read the origin";
	r = sc_origin_see(sc, &now);
	if (r)
		return r;
	change = sc_origin_change(sc, &super->seen, &now);
	*error = "dirty blocks, but the origin has changed while detached";
	if (change == SC_ORIGIN_CHANGED && super->dirty &&
	    !sc_option(sc, SC_OPT_ACCEPT_ORIGIN))
		return -EUCLEAN;
	*keep = change == SC_ORIGIN_SAME ||
			 (change == SC_ORIGIN_UNKNOWN &&
			  sc_option(sc, SC_OPT_TRUST));
	if (!*keep)
		DMWARN("%s: the origin %s changed: clean blocks dropped", name,
		       change == SC_ORIGIN_CHANGED ? "has" : "may have");
	return 0;
}

/* Make memory what the SSD says, and the SSD say that it is in use. */
static int sc_start(struct setcache *sc)
{
	struct sc_index *index = &sc->index;
	const char *error = "";
	struct sc_super super;
	bool keep;
	u32 set;
	int r;

	sc_origin_identity(sc, sc->identity);
	error = sc_no_identity;
	if (!sc->identity[0] && sc_mode_dirties(sc->mode)) {
		r = -EINVAL;
		goto bad;
	}
	r = sc_md_open(sc->md,
		       !sc_is_lost(sc) || !atomic_long_read(&index->nr_dirty),
		       sc->identity, &super, &error);
	if (r) {
		/*
		 * What is not dirty can do without. But the SSD may have been
		 * lost when it was to call itself clean: sc_preresume().
		 */
		if (sc_is_lost(sc) && !sc_md_may_be_clean(sc->md)) {
			DMWARN("%s: the SSD is still lost: %s",
			       sc_device(sc), error);
			return 0;
		}
		goto bad;
	}
	error = "the SSD is in use by another cache, under another name";
	r = -EBUSY;
	if (sc_claimed_twice(sc))
		goto bad;
	r = sc_check_origin(sc, &super, &keep, &error);
	if (r)
		goto bad;
	sc_begin_read(sc);
	sc_index_clear(index);
	bitmap_zero(sc->over, index->geo.sets);
	bitmap_zero(sc->suspects, index->geo.sets);
	r = sc_md_load(sc->md, keep, &error);
	if (r)
		goto bad;
	error = "cannot write the superblock";
	r = sc_md_start(sc->md);
	if (r)
		goto bad;
	for (set = 0; set < index->geo.sets; set++)
		if (sc_is_over(sc, set))
			set_bit(set, sc->over);
	sc->over_global = true;
	sc->errors = 0;
	sc->ask = false;
	sc_end_read(sc);
	return 0;
bad:
	DMERR("%s: %s: %d", sc_device(sc), error, r);
	return r;
}

static int sc_preresume(struct dm_target *ti)
{
	struct setcache *sc = ti->private;
	bool claimed = !list_empty(&sc->claim);
	const char *error = sc_claim(sc);
	int r = 0;

	if (error) {
		DMERR("%s: %s", sc_device(sc), error);
		return -EBUSY;
	}
	if (sc->phase == SC_PHASE_NEW || sc_is_lost(sc)) {
		r = sc_start(sc);
	} else if (sc->phase == SC_PHASE_STOPPED &&
		   sc_origin_written_since(sc, &sc->seen)) {
		DMWARN("%s: the origin was written to while suspended",
		       sc_device(sc));
		r = sc_start(sc);
	} else if (sc->phase == SC_PHASE_STOPPED) {
		/*
		 * Not even without the SSD: it says that what it holds of the
		 * origin is good, and would still say so afterwards.
		 */
		r = sc_md_start(sc->md);
		if (r)
			DMERR("%s: cannot write the superblock: %d",
			      sc_device(sc), r);
	}
	if (!r)
		sc_phase_move(sc, SC_EVENT_RESUME);
	if (r && !claimed)
		sc_unclaim(sc);
	return r;
}

static void sc_resume(struct dm_target *ti)
{
	struct setcache *sc = ti->private;

	WRITE_ONCE(sc->last_io, jiffies);
	WRITE_ONCE(sc->stopping, false);
	sc_clean_kick(sc);
	sc_trial_kick(sc);
}

/* The end of requests: whatever goes on has its own end, soon. */
static void sc_quiesce(struct setcache *sc)
{
	WRITE_ONCE(sc->stopping, true);
	cancel_delayed_work_sync(&sc->clean_work);
	wait_event(sc->idle, !atomic_read(&sc->nr_jobs));
	cancel_work_sync(&sc->trial_work);
	cancel_delayed_work_sync(&sc->commit_timer);
	flush_workqueue(sc->commit_wq);
	flush_work(&sc->lost_work);
}

static void sc_postsuspend(struct dm_target *ti)
{
	struct setcache *sc = ti->private;
	u64 pending;
	int r;

	sc_quiesce(sc);
	if (sc->phase != SC_PHASE_LIVE)
		return;
	/* What the SSD is to call clean must not be newer than the origin. */
	r = blkdev_issue_flush(sc->origin->bdev);
	if (!r)
		r = sc_origin_see(sc, &sc->seen);
	if (r) {
		DMERR("%s: not stopped in order, for the origin fails: %d",
		      sc_device(sc), r);
		/* Which takes nothing from what the SSD has: as by a flush. */
		sc_commit_now(sc);
		return;
	}
	r = sc_md_stop(sc->md, &sc->seen,
		       atomic_long_read(&sc->index.nr_dirty), &pending);
	if (!r) {
		/* Their blocks were to be written anyway. */
		sc_count(sc, SC_STAT_RECORD_BATCHED, pending);
		sc_end_stop(sc);
		return;
	}
	DMERR("%s: not stopped in order: %d", sc_device(sc), r);
	sc_lose(sc);
	flush_work(&sc->lost_work);
}

/*---------------------------------------------------------------------------*/

static u64 sc_stat(const struct setcache *sc, enum sc_stat stat)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(sc->stats, cpu)->v[stat];
	return sum;
}

static void sc_clear_stats(struct setcache *sc)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(sc->stats, cpu), 0, sizeof(*sc->stats));
}

static void sc_status_info(struct setcache *sc, char *result,
			   unsigned int maxlen)
{
	struct sc_index *index = &sc->index;
	unsigned int sz = 0;
	int i;

	DMEMIT("state %s mode %s policy %s cleaning %d",
	       sc_is_lost(sc) ? "lost" : "ok",
	       sc_modes[READ_ONCE(sc->mode)],
	       sc_policies[READ_ONCE(sc->policy)], READ_ONCE(sc->clean_all));
	DMEMIT(" block %u assoc %u sets %llu slots %llu used %ld dirty %ld stuck %ld retired %ld",
	       index->geo.block, index->geo.assoc, index->geo.sets,
	       index->slots, atomic_long_read(&index->nr_used),
	       atomic_long_read(&index->nr_dirty),
	       atomic_long_read(&index->nr_stuck),
	       atomic_long_read(&index->nr_retired));
	for (i = 0; i < SC_NR_STATS; i++)
		DMEMIT(" %s %llu", sc_stat_names[i], sc_stat(sc, i));
}

static void sc_status_table(struct setcache *sc, char *result,
			    unsigned int maxlen)
{
	u32 options[SC_NR_OPTIONS];
	unsigned int sz = 0;
	int i, count = 0;

	/* A message may change them at any time; what is counted is shown. */
	for (i = 0; i < SC_NR_OPTIONS; i++) {
		options[i] = sc_option(sc, i);
		count += 2 * (options[i] != sc_options[i].initial);
	}
	count += 2 * !!sc->origin_id[0];
	DMEMIT("%s %s %u %u %s %s %d", sc->origin->name, sc->ssd->name,
	       sc->index.geo.block, sc->index.geo.assoc,
	       sc_modes[READ_ONCE(sc->mode)],
	       sc_policies[READ_ONCE(sc->policy)], count);
	for (i = 0; i < SC_NR_OPTIONS; i++)
		if (options[i] != sc_options[i].initial)
			DMEMIT(" %s %u", sc_options[i].name, options[i]);
	if (sc->origin_id[0])
		DMEMIT(" origin_id %s", sc->origin_id);
}

static void sc_status(struct dm_target *ti, status_type_t type,
		      unsigned int flags, char *result, unsigned int maxlen)
{
	struct setcache *sc = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		sc_status_info(sc, result, maxlen);
		break;
	case STATUSTYPE_TABLE:
		sc_status_table(sc, result, maxlen);
		break;
	case STATUSTYPE_IMA:
		DMEMIT_TARGET_NAME_VERSION(ti->type);
		DMEMIT(",origin=%s,ssd=%s,block=%u,assoc=%u,mode=%s;",
		       sc->origin->name, sc->ssd->name, sc->index.geo.block,
		       sc->index.geo.assoc, sc_modes[READ_ONCE(sc->mode)]);
		break;
	}
}

/* Marks may be below what is dirty now, and no write comes to notice. */
static void sc_check_marks(struct setcache *sc)
{
	struct sc_bucket *bucket;
	u32 set;

	for (set = 0; set < sc->index.geo.sets; set++) {
		bucket = sc_bucket(&sc->index, set);
		spin_lock_irq(&bucket->lock);
		sc_check_dirty(sc, set);
		spin_unlock_irq(&bucket->lock);
		cond_resched();
	}
}

/* As sc_set(), of a cache that may be live. */
static int sc_message_set(struct setcache *sc, const char *key,
			  const char *value)
{
	int mode = sc_name(sc_modes, SC_NR_MODES, value);

	if (strcmp(key, "mode") || mode < 0)
		return sc_set(sc, key, value);
	if (sc_mode_dirties(mode) && !sc->identity[0]) {
		DMWARN("%s: %s", sc_device(sc),
		       sc_no_identity);
		return -EINVAL;
	}
	return sc_change_mode(sc, mode);
}

static int sc_message(struct dm_target *ti, unsigned int argc, char **argv,
		      char *result, unsigned int maxlen)
{
	struct setcache *sc = ti->private;
	int r = 0;

	if (argc == 2) {
		r = sc_message_set(sc, argv[0], argv[1]);
		if (!r)
			sc_check_marks(sc);
	} else if (argc == 1 && !strcmp(argv[0], "clean")) {
		sc_clean_all(sc, true);
	} else if (argc == 1 && !strcmp(argv[0], "stop_clean")) {
		sc_clean_all(sc, false);
	} else if (argc == 1 && !strcmp(argv[0], "clear_stats")) {
		sc_clear_stats(sc);
	} else {
		r = -EINVAL;
	}
	/* Killed while requests ended, it was understood. */
	if (r && r != -ERESTARTSYS)
		DMWARN("%s: message not understood, or out of range",
		       sc_device(sc));
	else
		sc_clean_kick(sc);
	return r;
}

static int sc_iterate_devices(struct dm_target *ti,
			      iterate_devices_callout_fn fn, void *data)
{
	struct setcache *sc = ti->private;
	int r = fn(ti, sc->ssd, 0, sc->index.geo.ssd, data);

	return r ? r : fn(ti, sc->origin, 0, ti->len, data);
}

static void sc_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct setcache *sc = ti->private;
	const struct sc_geometry *geo = &sc->index.geo;

	limits->io_min = max(limits->io_min, geo->block << SECTOR_SHIFT);
	limits->max_hw_discard_sectors = geo->block * geo->assoc;
	limits->discard_granularity = geo->block << SECTOR_SHIFT;
	/* Through to two devices: both have to see the same. */
	limits->features |= BLK_FEAT_STABLE_WRITES;
}

/*---------------------------------------------------------------------------*/

static void sc_free(struct setcache *sc)
{
	if (sc->clean_wq)
		destroy_workqueue(sc->clean_wq);
	if (sc->wq)
		destroy_workqueue(sc->wq);
	if (sc->job_wq)
		destroy_workqueue(sc->job_wq);
	if (sc->commit_wq)
		destroy_workqueue(sc->commit_wq);
	sc_cleaner_destroy(sc->cleaner);
	vfree(sc->over);
	vfree(sc->suspects);
	if (!IS_ERR_OR_NULL(sc->md))
		sc_md_destroy(sc->md);
	if (sc->index.tags)
		sc_index_exit(&sc->index);
	kvfree(sc->flows[0]);
	kvfree(sc->flows[1]);
	free_percpu(sc->stats);
	mempool_exit(&sc->jobs);
	bioset_exit(&sc->bs);
	if (sc->ssd)
		dm_put_device(sc->ti, sc->ssd);
	if (sc->origin)
		dm_put_device(sc->ti, sc->origin);
	kfree(sc);
}

static void sc_dtr(struct dm_target *ti)
{
	struct setcache *sc = ti->private;

	sc_quiesce(sc);
	sc_unclaim(sc);
	sc_free(sc);
}

static int sc_parse_devices(struct setcache *sc, struct dm_arg_set *as,
			    char **error)
{
	struct dm_target *ti = sc->ti;
	blk_mode_t mode = dm_table_get_mode(ti->table);
	int r;

	*error = "a cache is written to: the table must not be read-only";
	if (!(mode & BLK_OPEN_WRITE))
		return -EINVAL;
	*error = "cannot open the origin";
	r = dm_get_device(ti, dm_shift_arg(as), mode, &sc->origin);
	if (r)
		return r;
	*error = "cannot open the SSD";
	r = dm_get_device(ti, dm_shift_arg(as), mode, &sc->ssd);
	if (r)
		return r;
	*error = "origin and SSD are the same device";
	if (sc->origin->bdev == sc->ssd->bdev)
		return -EINVAL;
	*error = "zoned devices cannot be cached, nor be a cache";
	if (bdev_is_zoned(sc->origin->bdev) || bdev_is_zoned(sc->ssd->bdev))
		return -EINVAL;
	return 0;
}

static int sc_parse_geometry(struct setcache *sc, struct dm_arg_set *as,
			     char **error)
{
	struct sc_geometry *geo = &sc->index.geo;
	unsigned int lbs = max(bdev_logical_block_size(sc->origin->bdev),
			       bdev_logical_block_size(sc->ssd->bdev));

	*error = "logical blocks of a device are larger than 4096 bytes";
	if (lbs > SC_RECORD_BLOCK)
		return -EINVAL;
	*error = "block: a power of two, 1 to 128 sectors, no less than a logical block";
	if (kstrtou32(dm_shift_arg(as), 10, &geo->block) ||
	    !is_power_of_2(geo->block) || geo->block < SC_MIN_BLOCK ||
	    geo->block > SC_MAX_BLOCK || geo->block << SECTOR_SHIFT < lbs)
		return -EINVAL;
	*error = "associativity: 16 to 4096, a power of two";
	if (kstrtou32(dm_shift_arg(as), 10, &geo->assoc) ||
	    !is_power_of_2(geo->assoc) || geo->assoc < SC_MIN_ASSOC ||
	    geo->assoc > SC_MAX_ASSOC)
		return -EINVAL;
	*error = "the target has to be as long as the origin";
	geo->origin = sc->ti->len;
	geo->ssd = bdev_nr_sectors(sc->ssd->bdev);
	if (geo->origin != bdev_nr_sectors(sc->origin->bdev))
		return -EINVAL;
	*error = "the SSD is too small for one set";
	return sc_geometry_fit(geo);
}

static int sc_parse_options(struct setcache *sc, struct dm_arg_set *as,
			    char **error)
{
	static const struct dm_arg count_arg = {
		0, 2 * (SC_NR_OPTIONS + 1), "the number of options is wrong"
	};
	unsigned int count;
	const char *key;
	int r;

	*error = "mode: writeback, writethrough, writearound, readonly, writeonly";
	r = sc_set(sc, "mode", dm_shift_arg(as));
	if (r)
		return r;
	*error = "policy: fifo, lru or random";
	r = sc_set(sc, "policy", dm_shift_arg(as));
	if (r)
		return r;
	if (!as->argc)
		return 0;
	r = dm_read_arg_group(&count_arg, as, &count, error);
	if (r)
		return r;
	*error = "an option is not known, has no value, or one out of range";
	for (; count >= 2; count -= 2) {
		key = dm_shift_arg(as);
		if (!strcmp(key, "origin_id"))
			r = sc_set_origin_id(sc, dm_shift_arg(as));
		else
			r = sc_set(sc, key, dm_shift_arg(as));
		if (r)
			return r;
	}
	return count || as->argc ? -EINVAL : 0;
}

static int sc_allocate(struct setcache *sc)
{
	struct sc_index *index = &sc->index;
	int r;

	r = bioset_init(&sc->bs, SC_MIN_BIOS, 0,
			BIOSET_NEED_BVECS | BIOSET_NEED_RESCUER);
	if (r)
		return r;
	r = mempool_init_kmalloc_pool(&sc->jobs, SC_MIN_JOBS,
				      sc_job_size(index->geo.assoc));
	if (r)
		return r;
	r = sc_index_init(index);
	if (r)
		return r;
	sc->md = sc_md_create(sc->ssd->bdev, &sc->bs, &index->geo,
			      &sc_record_answers, sc);
	if (IS_ERR(sc->md))
		return PTR_ERR(sc->md);
	sc->stats = alloc_percpu(struct sc_stats);
	sc->flows[0] = sc_flows_create();
	sc->flows[1] = sc_flows_create();
	sc->over = vzalloc(BITS_TO_LONGS(index->geo.sets) * sizeof(long));
	sc->suspects = vzalloc(BITS_TO_LONGS(index->geo.sets) * sizeof(long));
	sc->cleaner = sc_cleaner_create(sc);
	sc->clean_wq = alloc_ordered_workqueue("setcache_clean",
					       WQ_MEM_RECLAIM);
	sc->wq = alloc_workqueue("setcache", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	sc->job_wq = alloc_workqueue("setcache_job",
				     WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	sc->commit_wq = alloc_ordered_workqueue("setcache_commit",
						WQ_MEM_RECLAIM);
	if (!sc->stats || !sc->flows[0] || !sc->flows[1] || !sc->over ||
	    !sc->suspects || !sc->cleaner || !sc->clean_wq || !sc->wq ||
	    !sc->job_wq || !sc->commit_wq)
		return -ENOMEM;
	return 0;
}

static int sc_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct dm_arg_set as = { .argc = argc, .argv = argv };
	struct setcache *sc;
	int i, r;

	ti->error = "usage: ORIGIN SSD BLOCK ASSOC MODE POLICY [#WORDS [OPTION VALUE]...]";
	if (argc < SC_NR_ARGS)
		return -EINVAL;
	ti->error = "no memory";
	sc = kzalloc(sizeof(*sc), GFP_KERNEL);
	if (!sc)
		return -ENOMEM;
	sc->ti = ti;
	INIT_LIST_HEAD(&sc->claim);
	sc->wake = sc_wake;
	sc->stopping = true;
	for (i = 0; i < SC_NR_OPTIONS; i++)
		sc->options[i] = sc_options[i].initial;
	init_waitqueue_head(&sc->idle);
	mutex_init(&sc->mode_lock);
	init_waitqueue_head(&sc->mode_wait);
	spin_lock_init(&sc->defer_lock);
	INIT_LIST_HEAD(&sc->deferred);
	INIT_WORK(&sc->defer_work, sc_defer_work);
	spin_lock_init(&sc->fill_lock);
	INIT_LIST_HEAD(&sc->fills);
	INIT_WORK(&sc->fill_work, sc_fill_work);
	spin_lock_init(&sc->wait_lock);
	INIT_LIST_HEAD(&sc->waiters);
	INIT_WORK(&sc->commit_work, sc_commit_work);
	INIT_DELAYED_WORK(&sc->commit_timer, sc_commit_timer);
	INIT_WORK(&sc->lost_work, sc_lost_work);
	INIT_WORK(&sc->trial_work, sc_trial_work);
	spin_lock_init(&sc->error_lock);
	sc->errors_since = jiffies;
	INIT_DELAYED_WORK(&sc->clean_work, sc_clean_work);

	r = sc_parse_devices(sc, &as, &ti->error);
	if (r)
		goto bad;
	r = sc_parse_geometry(sc, &as, &ti->error);
	if (r)
		goto bad;
	r = sc_parse_options(sc, &as, &ti->error);
	if (r)
		goto bad;
	r = -EINVAL;
	ti->error = sc_no_identity;
	sc_origin_identity(sc, sc->identity);
	if (!sc->identity[0] && sc_mode_dirties(sc->mode))
		goto bad;
	r = dm_set_target_max_io_len(ti, (sector_t)sc->index.geo.block *
					 sc->index.geo.assoc);
	if (r)
		goto bad;
	r = sc_allocate(sc);
	if (r) {
		ti->error = r != -EFBIG ? "no memory" :
			    "too many blocks on the SSD, or on the origin for so few sets";
		goto bad;
	}

	ti->error = NULL;
	ti->private = sc;
	ti->num_flush_bios = 1;
	ti->flush_supported = true;
	ti->num_discard_bios = 1;
	ti->discards_supported = true;
	ti->max_discard_granularity = true;
	ti->accounts_remapped_io = true;
	ti->per_io_data_size = sc_per_bio_size();
	return 0;
bad:
	sc_free(sc);
	return r;
}

static struct target_type setcache_target = {
	.name = "setcache",
	.version = { 1, 0, 0 },
	.module = THIS_MODULE,
	.ctr = sc_ctr,
	.dtr = sc_dtr,
	.map = sc_map,
	.end_io = sc_end_io,
	.preresume = sc_preresume,
	.resume = sc_resume,
	.postsuspend = sc_postsuspend,
	.status = sc_status,
	.message = sc_message,
	.iterate_devices = sc_iterate_devices,
	.io_hints = sc_io_hints,
};

static int __init sc_init(void)
{
	sc_origin_init();
	return dm_register_target(&setcache_target);
}
module_init(sc_init);

static void __exit sc_exit(void)
{
	dm_unregister_target(&setcache_target);
}
module_exit(sc_exit);

MODULE_DESCRIPTION("Set-associative cache of a slow disk on an SSD");
MODULE_LICENSE("GPL");
