// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text interfaces of dm-setcache: options of the table line, the status, and
 * messages.
 */
#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/device-mapper.h>
#include <linux/kstrtox.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "setcache.h"
#include "setcache-clean.h"
#include "setcache-origin.h"
#include "setcache-slots.h"
#include "setcache-table.h"

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
	[SC_OPT_CLEAN_SET] = { "clean_set", 128, 1, SC_ASSOC_MAX },
	[SC_OPT_CLEAN_GATE] = { "clean_gate", 0, 0, 1 << 20 },
	[SC_OPT_COMMIT_MS] = { "commit_ms", 1000, 1, 60000 },
	[SC_OPT_ACCEPT_ORIGIN] = { "accept_origin", 0, 0, 1 },
	[SC_OPT_TRUST] = { "trust", 0, 0, 1 },
};

/* Set all options to their defaults. */
void sc_set_default_options(struct setcache *sc)
{
	int i;

	for (i = 0; i < SC_NR_OPTIONS; i++)
		sc->options[i] = sc_options[i].initial;
}

static int sc_find_name(const char * const *names, int count, const char *name)
{
	int i = match_string(names, count, name);

	return i < 0 ? -EINVAL : i;
}

/* Set the word of option origin_id. */
static int sc_set_origin_id(struct setcache *sc, const char *word)
{
	const char *c;

	for (c = word; *c; c++)
		if (!isascii(*c) || !isgraph(*c))
			return -EINVAL;
	if (c == word || strscpy(sc->known.origin_id, word) < 0)
		return -EINVAL;
	return 0;
}

/* Return whether no low mark is above its high mark. */
static bool sc_has_valid_marks(const struct setcache *sc)
{
	return sc_get_option(sc, SC_OPT_DIRTY_LOW) <=
		       sc_get_option(sc, SC_OPT_DIRTY_HIGH) &&
	       sc_get_option(sc, SC_OPT_SET_LOW) <=
		       sc_get_option(sc, SC_OPT_SET_HIGH);
}

/* Return whether an option may get a value while other options keep theirs. */
static bool sc_may_set_mark(const struct setcache *sc, int option, u32 value)
{
	switch (option) {
	case SC_OPT_DIRTY_HIGH:
		return value >= sc_get_option(sc, SC_OPT_DIRTY_LOW);
	case SC_OPT_DIRTY_LOW:
		return value <= sc_get_option(sc, SC_OPT_DIRTY_HIGH);
	case SC_OPT_SET_HIGH:
		return value >= sc_get_option(sc, SC_OPT_SET_LOW);
	case SC_OPT_SET_LOW:
		return value <= sc_get_option(sc, SC_OPT_SET_HIGH);
	default:
		return true;
	}
}

/*
 * Set an option, mode or policy from text. In a @live cache each new mark has
 * to fit the other marks; in a table line the marks are compared at the end.
 */
static int sc_set_option(struct setcache *sc, const char *key,
			 const char *value, bool live)
{
	int i, r;
	u32 number;

	if (!strcmp(key, "mode")) {
		i = sc_find_name(sc_modes, SC_NR_MODES, value);
		if (i >= 0)
			WRITE_ONCE(sc->mode, i);
		return min(i, 0);
	}
	if (!strcmp(key, "policy")) {
		i = sc_find_name(sc_policies, SC_NR_POLICIES, value);
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
		if (live && !sc_may_set_mark(sc, i, number))
			return -ERANGE;
		WRITE_ONCE(sc->options[i], number);
		return 0;
	}
	return -EINVAL;
}

int sc_parse_options(struct setcache *sc, struct dm_arg_set *as, char **error)
{
	static const struct dm_arg count_arg = {
		0, 2 * (SC_NR_OPTIONS + 1), "the number of options is wrong"
	};
	unsigned int count;
	const char *key;
	int r;

	*error = "mode: writeback, writethrough, writearound, readonly, writeonly";
	r = sc_set_option(sc, "mode", dm_shift_arg(as), false);
	if (r)
		return r;
	*error = "policy: fifo, lru or random";
	r = sc_set_option(sc, "policy", dm_shift_arg(as), false);
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
			r = sc_set_option(sc, key, dm_shift_arg(as), false);
		if (r)
			return r;
	}
	if (count || as->argc)
		return -EINVAL;
	*error = "a low mark is above its high one";
	return sc_has_valid_marks(sc) ? 0 : -EINVAL;
}

/*---------------------------------------------------------------------------*/

static u64 sc_sum_stat(const struct setcache *sc, enum sc_stat stat)
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
	       sc_policies[READ_ONCE(sc->policy)], READ_ONCE(sc->cleaning.all));
	DMEMIT(" block %u assoc %u sets %llu slots %llu used %ld dirty %ld stuck %ld retired %ld",
	       index->geo.block_sectors, index->geo.assoc, index->geo.nr_sets,
	       index->nr_slots, atomic_long_read(&index->nr_used),
	       atomic_long_read(&index->nr_dirty),
	       atomic_long_read(&index->nr_stuck),
	       atomic_long_read(&index->nr_retired));
	for (i = 0; i < SC_NR_STATS; i++)
		DMEMIT(" %s %llu", sc_stat_names[i], sc_sum_stat(sc, i));
}

static void sc_status_table(struct setcache *sc, char *result,
			    unsigned int maxlen)
{
	u32 options[SC_NR_OPTIONS];
	unsigned int sz = 0;
	int i, count = 0;

	/* A message may change options at any time: count and show one copy. */
	for (i = 0; i < SC_NR_OPTIONS; i++) {
		options[i] = sc_get_option(sc, i);
		count += 2 * (options[i] != sc_options[i].initial);
	}
	count += 2 * !!sc->known.origin_id[0];
	DMEMIT("%s %s %u %u %s %s %d", sc->origin->name, sc->ssd->name,
	       sc->index.geo.block_sectors, sc->index.geo.assoc,
	       sc_modes[READ_ONCE(sc->mode)],
	       sc_policies[READ_ONCE(sc->policy)], count);
	for (i = 0; i < SC_NR_OPTIONS; i++)
		if (options[i] != sc_options[i].initial)
			DMEMIT(" %s %u", sc_options[i].name, options[i]);
	if (sc->known.origin_id[0])
		DMEMIT(" origin_id %s", sc->known.origin_id);
}

void sc_status(struct dm_target *ti, status_type_t type, unsigned int flags,
	       char *result, unsigned int maxlen)
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
		       sc->origin->name, sc->ssd->name,
		       sc->index.geo.block_sectors, sc->index.geo.assoc,
		       sc_modes[READ_ONCE(sc->mode)]);
		break;
	}
}

/*---------------------------------------------------------------------------*/

/*
 * Mark the sets that exceed a mark which has just been lowered. No write may
 * come that would mark them.
 */
static void sc_check_marks(struct setcache *sc)
{
	struct sc_bucket *bucket;
	u32 set;

	for (set = 0; set < sc->index.geo.nr_sets; set++) {
		bucket = sc_get_bucket(&sc->index, set);
		spin_lock_irq(&bucket->lock);
		sc_check_dirty(sc, set);
		spin_unlock_irq(&bucket->lock);
		cond_resched();
	}
}

/* Set an option, mode or policy of a live cache. */
static int sc_message_set(struct setcache *sc, const char *key,
			  const char *value)
{
	int mode = sc_find_name(sc_modes, SC_NR_MODES, value);
	const char *error;

	if (strcmp(key, "mode") || mode < 0)
		return sc_set_option(sc, key, value, true);
	error = sc_origin_check_identity(sc, mode);
	if (error) {
		DMWARN("%s: %s", sc_device_name(sc), error);
		return -EINVAL;
	}
	return sc_change_mode(sc, mode);
}

int sc_message(struct dm_target *ti, unsigned int argc, char **argv,
	       char *result, unsigned int maxlen)
{
	struct setcache *sc = ti->private;
	int r = 0;

	if (argc == 2) {
		r = sc_message_set(sc, argv[0], argv[1]);
		if (!r)
			sc_check_marks(sc);
	} else if (argc == 1 && !strcmp(argv[0], "clean")) {
		sc_clean_set_all(sc, true);
	} else if (argc == 1 && !strcmp(argv[0], "stop_clean")) {
		sc_clean_set_all(sc, false);
	} else if (argc == 1 && !strcmp(argv[0], "clear_stats")) {
		sc_clear_stats(sc);
	} else {
		r = -EINVAL;
	}
	/* -ERESTARTSYS: the sender was killed while it waited; no warning. */
	if (r && r != -ERESTARTSYS)
		DMWARN("%s: message not understood, or out of range",
		       sc_device_name(sc));
	else
		sc_clean_kick(sc);
	return r;
}
