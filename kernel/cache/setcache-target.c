// SPDX-License-Identifier: GPL-2.0-only
/*
 * dm-setcache: an SSD as a set-associative cache of a slow disk.
 *
 * The disk is divided into blocks, and consecutive blocks form stripes. Each
 * stripe belongs to a set of as many slots as it has blocks, and a block may be
 * in any slot of its set. README.md has the format on the SSD, and the
 * invariants between memory and the SSD. The parts are
 *
 *	-target		what device-mapper sees
 *	-table		options, messages, status
 *	-life		resume and suspend
 *
 *	-io		the path of a bio
 *	-job		bios that need several bios
 *	-fill		jobs that read
 *	-write		jobs that write
 *	-step		operations that steps of jobs consist of
 *	-plan		looks up a bio's blocks and decides how to serve it
 *
 *	-clean		writes dirty blocks back to the disk, in rounds
 *	-round		selects the blocks of a round
 *	-copy		the I/O of a round
 *
 *	-slots		slot states after a request; wakes waiting requests
 *	-trial		tests slots after I/O errors
 *	-commit		commits of records, and the requests that wait for them
 *	-loss		drops clean blocks from memory when the SSD is lost
 *	-state		state machine: is the SSD available?
 *	-claim		exclusive use of both disks
 *	-origin		the origin's identity, and whether it has changed
 *
 *	-policy		which slot is evicted
 *	-flow		detects sequential streams
 *	-set		which block is in which slot, and which requests use it
 *	-metadata	the metadata on the SSD, from a start to a stop
 *	-records	which records are written, and in what order
 *	-super		the superblock
 *	-place		the location of records on the SSD
 *	-format		the format on the SSD, byte for byte
 *	-bio		bios of the cache's own pages, and synchronous bios
 *
 * A part calls only the parts below it. Kbuild lists the parts in this order, and a
 * unit test checks the calls in the sources. Calls upwards are callbacks: an op
 * waits for blocks (@wake), a job's bio ends (@end_job), a commit ends (@fn), the
 * metadata ask for the contents of records (struct sc_md_ops). A part's header
 * declares what other parts may call; setcache.h declares the cache itself, and the
 * headers -md, -step and -cleaner declare what a few parts share among themselves.
 *
 * This part creates a cache from a table line, and destroys it.
 */
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/kstrtox.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "setcache.h"
#include "setcache-claim.h"
#include "setcache-clean.h"
#include "setcache-commit.h"
#include "setcache-fill.h"
#include "setcache-flow.h"
#include "setcache-io.h"
#include "setcache-job.h"
#include "setcache-life.h"
#include "setcache-loss.h"
#include "setcache-origin.h"
#include "setcache-table.h"
#include "setcache-trial.h"

/* Jobs and bios in the mempools: memory for these is always available. */
#define SC_JOBS_MIN	16
#define SC_BIOS_MIN	64

#define SC_NR_ARGS	6

static int sc_iterate_devices(struct dm_target *ti,
			      iterate_devices_callout_fn fn, void *data)
{
	struct setcache *sc = ti->private;
	int r = fn(ti, sc->ssd, 0, sc->index.geo.ssd_sectors, data);

	return r ? r : fn(ti, sc->origin, 0, ti->len, data);
}

static void sc_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct setcache *sc = ti->private;
	const struct sc_geometry *geo = &sc->index.geo;

	limits->io_min =
		max(limits->io_min, geo->block_sectors << SECTOR_SHIFT);
	limits->max_hw_discard_sectors = geo->block_sectors * geo->assoc;
	limits->discard_granularity = geo->block_sectors << SECTOR_SHIFT;
	/* Write-through sends the same pages to two devices: keep them stable. */
	limits->features |= BLK_FEAT_STABLE_WRITES;
}

/*---------------------------------------------------------------------------*/

static void sc_free_cache(struct setcache *sc)
{
	if (sc->wq.clean)
		destroy_workqueue(sc->wq.clean);
	if (sc->wq.common)
		destroy_workqueue(sc->wq.common);
	if (sc->wq.job)
		destroy_workqueue(sc->wq.job);
	if (sc->wq.commit)
		destroy_workqueue(sc->wq.commit);
	sc_cleaner_destroy(sc->cleaning.cleaner);
	vfree(sc->cleaning.over_sets);
	vfree(sc->trials.sets);
	if (!IS_ERR_OR_NULL(sc->md))
		sc_md_destroy(sc->md);
	if (sc->index.tags)
		sc_index_exit(&sc->index);
	kvfree(sc->flows[0]);
	kvfree(sc->flows[1]);
	free_percpu(sc->stats);
	mempool_exit(&sc->jobs.pool);
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
	sc_unclaim_disks(sc);
	sc_free_cache(sc);
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
	if (lbs > SC_RECORD_BLOCK_BYTES)
		return -EINVAL;
	*error = "block: a power of two, 1 to 128 sectors, no less than a logical block";
	if (kstrtou32(dm_shift_arg(as), 10, &geo->block_sectors) ||
	    !is_power_of_2(geo->block_sectors) ||
	    geo->block_sectors < SC_BLOCK_SECTORS_MIN ||
	    geo->block_sectors > SC_BLOCK_SECTORS_MAX ||
	    geo->block_sectors << SECTOR_SHIFT < lbs)
		return -EINVAL;
	*error = "associativity: 16 to 4096, a power of two";
	if (kstrtou32(dm_shift_arg(as), 10, &geo->assoc) ||
	    !is_power_of_2(geo->assoc) || geo->assoc < SC_ASSOC_MIN ||
	    geo->assoc > SC_ASSOC_MAX)
		return -EINVAL;
	*error = "the target has to be as long as the origin";
	geo->origin_sectors = sc->ti->len;
	geo->ssd_sectors = bdev_nr_sectors(sc->ssd->bdev);
	if (geo->origin_sectors != bdev_nr_sectors(sc->origin->bdev))
		return -EINVAL;
	*error = "the SSD is too small for one set";
	return sc_geometry_fit_sets(geo);
}

static int sc_alloc_cache(struct setcache *sc)
{
	struct sc_index *index = &sc->index;
	int r;

	r = bioset_init(&sc->bs, SC_BIOS_MIN, 0,
			BIOSET_NEED_BVECS | BIOSET_NEED_RESCUER);
	if (r)
		return r;
	r = mempool_init_kmalloc_pool(&sc->jobs.pool, SC_JOBS_MIN,
				      sc_job_size(index->geo.assoc));
	if (r)
		return r;
	r = sc_index_init(index);
	if (r)
		return r;
	sc->md = sc_md_create(sc->ssd->bdev, &sc->bs, &index->geo,
			      &sc_commit_md_ops, sc);
	if (IS_ERR(sc->md))
		return PTR_ERR(sc->md);
	sc->stats = alloc_percpu(struct sc_stats);
	sc->flows[0] = sc_flows_create();
	sc->flows[1] = sc_flows_create();
	sc->cleaning.over_sets =
		vzalloc(BITS_TO_LONGS(index->geo.nr_sets) * sizeof(long));
	sc->trials.sets =
		vzalloc(BITS_TO_LONGS(index->geo.nr_sets) * sizeof(long));
	sc->cleaning.cleaner = sc_cleaner_create(sc);
	sc->wq.clean = alloc_ordered_workqueue("setcache_clean",
					       WQ_MEM_RECLAIM);
	sc->wq.common = alloc_workqueue("setcache",
					WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	sc->wq.job = alloc_workqueue("setcache_job",
				     WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	sc->wq.commit = alloc_ordered_workqueue("setcache_commit",
						WQ_MEM_RECLAIM);
	if (!sc->stats || !sc->flows[0] || !sc->flows[1] ||
	    !sc->cleaning.over_sets || !sc->trials.sets ||
	    !sc->cleaning.cleaner || !sc->wq.clean || !sc->wq.common ||
	    !sc->wq.job || !sc->wq.commit)
		return -ENOMEM;
	return 0;
}

static int sc_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct dm_arg_set as = { .argc = argc, .argv = argv };
	struct setcache *sc;
	int r;

	ti->error = "usage: ORIGIN SSD BLOCK ASSOC MODE POLICY [#WORDS [OPTION VALUE]...]";
	if (argc < SC_NR_ARGS)
		return -EINVAL;
	ti->error = "no memory";
	sc = kzalloc(sizeof(*sc), GFP_KERNEL);
	if (!sc)
		return -ENOMEM;
	sc->ti = ti;
	INIT_LIST_HEAD(&sc->claim.link);
	sc->wake = sc_wake_op;
	sc->stopping = true;
	sc_set_default_options(sc);
	init_waitqueue_head(&sc->jobs.idle);
	mutex_init(&sc->mode_change.lock);
	init_waitqueue_head(&sc->mode_change.wait);
	spin_lock_init(&sc->deferred.lock);
	INIT_LIST_HEAD(&sc->deferred.list);
	INIT_WORK(&sc->deferred.work, sc_defer_work);
	spin_lock_init(&sc->fills.lock);
	INIT_LIST_HEAD(&sc->fills.list);
	INIT_WORK(&sc->fills.work, sc_fill_work);
	spin_lock_init(&sc->commits.lock);
	INIT_LIST_HEAD(&sc->commits.waiters);
	INIT_WORK(&sc->commits.work, sc_commit_work);
	INIT_DELAYED_WORK(&sc->commits.timer, sc_commit_timer);
	INIT_WORK(&sc->lost_work, sc_lost_work);
	INIT_WORK(&sc->trials.work, sc_trial_work);
	spin_lock_init(&sc->errors.lock);
	sc->errors.halved_at = jiffies;
	INIT_DELAYED_WORK(&sc->cleaning.work, sc_clean_work);

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
	sc_origin_get_identity(sc, sc->known.identity);
	ti->error = sc_origin_check_identity(sc, sc->mode);
	if (ti->error)
		goto bad;
	r = dm_set_target_max_io_len(ti, (sector_t)sc->index.geo.block_sectors *
						 sc->index.geo.assoc);
	if (r)
		goto bad;
	r = sc_alloc_cache(sc);
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
	sc_free_cache(sc);
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
