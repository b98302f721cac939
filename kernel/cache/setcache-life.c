// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resume and suspend of dm-setcache.
 *
 * The metadata are read when the device is resumed, and not earlier: while a
 * new table is loaded, the old table may still be live. Suspension leaves the
 * SSD in the state that the next table, or the next kernel, expects.
 */
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/jiffies.h>

#include "setcache.h"
#include "setcache-claim.h"
#include "setcache-commit.h"
#include "setcache-life.h"
#include "setcache-loss.h"
#include "setcache-origin.h"
#include "setcache-slots.h"
#include "setcache-trial.h"

/*
 * Check whether the cache's contents fit the origin as it is now. Return 0, and
 * set @keep if clean blocks are valid; or an error if the cache must not start.
 */
static int sc_check_origin(struct setcache *sc, const struct sc_super *super,
			   bool *keep, const char **error)
{
	const char *name = sc_device_name(sc);
	enum sc_change change;
	struct sc_origin_state now;
	int r;

	*keep = super->formatted;
	/* While the SSD was lost, the cache itself wrote to the origin. */
	if (!super->clean || super->formatted || sc_is_lost(sc))
		return 0;
	*error = "cannot read the origin";
	r = sc_origin_get_state(sc, &now);
	if (r)
		return r;
	change = sc_origin_compare(sc, &super->origin, &now);
	*error = "dirty blocks, but the origin has changed while detached";
	if (change == SC_ORIGIN_CHANGED && super->nr_dirty &&
	    !sc_get_option(sc, SC_OPT_ACCEPT_ORIGIN))
		return -EUCLEAN;
	*keep = change == SC_ORIGIN_SAME || (change == SC_ORIGIN_UNKNOWN &&
					     sc_get_option(sc, SC_OPT_TRUST));
	if (!*keep)
		DMWARN("%s: the origin %s changed: clean blocks dropped", name,
		       change == SC_ORIGIN_CHANGED ? "has" : "may have");
	return 0;
}

/* Load memory from the SSD, and record on the SSD that it is in use. */
static int sc_start_cache(struct setcache *sc)
{
	struct sc_index *index = &sc->index;
	const char *error;
	struct sc_super super;
	bool keep;
	u32 set;
	int r;

	sc_origin_get_identity(sc, sc->known.identity);
	r = -EINVAL;
	error = sc_origin_check_identity(sc, sc->mode);
	if (error)
		goto bad;
	r = sc_md_open(sc->md,
		       !sc_is_lost(sc) || !atomic_long_read(&index->nr_dirty),
		       sc->known.identity, &super, &error);
	if (r) {
		/*
		 * Without dirty blocks the cache works without its SSD. But if
		 * the SSD was lost while it may say clean, it must not be
		 * bypassed: see sc_preresume().
		 */
		if (sc_is_lost(sc) && !sc_md_may_be_clean(sc->md)) {
			DMWARN("%s: the SSD is still lost: %s",
			       sc_device_name(sc), error);
			return 0;
		}
		goto bad;
	}
	error = "the SSD is in use by another cache, under another name";
	r = -EBUSY;
	if (sc_is_claimed_twice(sc))
		goto bad;
	r = sc_check_origin(sc, &super, &keep, &error);
	if (r)
		goto bad;
	sc_phase_begin_read(sc);
	sc_index_clear(index);
	bitmap_zero(sc->cleaning.over_sets, index->geo.nr_sets);
	bitmap_zero(sc->trials.sets, index->geo.nr_sets);
	r = sc_md_load(sc->md, keep, &error);
	if (r)
		goto bad;
	error = "cannot write the superblock";
	r = sc_md_start(sc->md);
	if (r)
		goto bad;
	for (set = 0; set < index->geo.nr_sets; set++)
		if (sc_set_is_over(sc, set))
			set_bit(set, sc->cleaning.over_sets);
	sc->cleaning.over_all = true;
	sc->errors.nr_errors = 0;
	sc->errors.probe = false;
	sc_phase_end_read(sc);
	return 0;
bad:
	DMERR("%s: %s: %d", sc_device_name(sc), error, r);
	return r;
}

int sc_preresume(struct dm_target *ti)
{
	struct setcache *sc = ti->private;
	bool claimed = !list_empty(&sc->claim.link);
	const char *error = sc_claim_disks(sc);
	int r = 0;

	if (error) {
		DMERR("%s: %s", sc_device_name(sc), error);
		return -EBUSY;
	}
	if (sc->state.phase == SC_PHASE_NEW || sc_is_lost(sc)) {
		r = sc_start_cache(sc);
	} else if (sc->state.phase == SC_PHASE_STOPPED &&
		   sc_origin_is_written(sc, &sc->known.state)) {
		DMWARN("%s: the origin was written to while suspended",
		       sc_device_name(sc));
		r = sc_start_cache(sc);
	} else if (sc->state.phase == SC_PHASE_STOPPED) {
		/*
		 * The SSD must say in use before the first request, lost or not:
		 * its clean blocks would still count after the origin has changed.
		 */
		r = sc_md_start(sc->md);
		if (r)
			DMERR("%s: cannot write the superblock: %d",
			      sc_device_name(sc), r);
	}
	if (!r)
		sc_phase_move(sc, SC_EVENT_RESUME);
	if (r && !claimed)
		sc_unclaim_disks(sc);
	return r;
}

void sc_resume(struct dm_target *ti)
{
	struct setcache *sc = ti->private;

	WRITE_ONCE(sc->last_io_jiffies, jiffies);
	WRITE_ONCE(sc->stopping, false);
	sc_clean_kick(sc);
	sc_trial_kick(sc);
}

/*---------------------------------------------------------------------------*/

/* Stop background work and wait for it. All requests have ended. */
void sc_quiesce(struct setcache *sc)
{
	WRITE_ONCE(sc->stopping, true);
	cancel_delayed_work_sync(&sc->cleaning.work);
	wait_event(sc->jobs.idle, !atomic_read(&sc->jobs.nr_jobs));
	cancel_work_sync(&sc->trials.work);
	cancel_delayed_work_sync(&sc->commits.timer);
	flush_workqueue(sc->wq.commit);
	flush_work(&sc->lost_work);
}

void sc_postsuspend(struct dm_target *ti)
{
	struct setcache *sc = ti->private;
	u64 pending;
	int r;

	sc_quiesce(sc);
	if (sc->state.phase != SC_PHASE_LIVE)
		return;
	/* The SSD must not call blocks clean that the origin may still lose. */
	r = blkdev_issue_flush(sc->origin->bdev);
	if (!r)
		r = sc_origin_get_state(sc, &sc->known.state);
	if (r) {
		DMERR("%s: not stopped in order, for the origin fails: %d",
		      sc_device_name(sc), r);
		/*
		 * The SSD is not affected: make its data and records stable, as
		 * a flush does.
		 */
		sc_commit_now(sc);
		return;
	}
	r = sc_md_stop(sc->md, &sc->known.state,
		       atomic_long_read(&sc->index.nr_dirty), &pending);
	if (!r) {
		/* A stop writes all blocks of records anyway. */
		sc_add_stat(sc, SC_STAT_RECORD_BATCHED, pending);
		sc_phase_end_stop(sc);
		return;
	}
	DMERR("%s: not stopped in order: %d", sc_device_name(sc), r);
	sc_lose_ssd(sc);
	flush_work(&sc->lost_work);
}
