// SPDX-License-Identifier: GPL-2.0-only
/*
 * The metadata of dm-setcache, from start to stop: the interface of the cache.
 * Below are the superblock (-super), the records (-records), and the location
 * of records (-place).
 */
#include <linux/blkdev.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "setcache-md.h"

struct sc_md *sc_md_create(struct block_device *bdev, struct bio_set *bs,
			   const struct sc_geometry *geo,
			   const struct sc_md_ops *ops, void *context)
{
	struct sc_md *md = kvzalloc(sizeof(*md), GFP_KERNEL);
	u32 i;

	if (!md)
		return ERR_PTR(-ENOMEM);
	md->bdev = bdev;
	md->bs = bs;
	md->geo = *geo;
	md->ops = ops;
	md->context = context;
	md->nr_slots = geo->nr_sets * geo->assoc;
	md->nr_blocks = DIV_ROUND_UP_ULL(md->nr_slots, SC_RECORDS_PER_BLOCK);
	md->changed = vzalloc(BITS_TO_LONGS(md->nr_blocks) * sizeof(long));
	md->writing = vzalloc(BITS_TO_LONGS(md->nr_blocks) * sizeof(long));
	if (!md->changed || !md->writing)
		goto bad;
	for (i = 0; i < SC_BATCH_BLOCKS; i++) {
		md->batch.pages[i] = alloc_page(GFP_KERNEL);
		if (!md->batch.pages[i])
			goto bad;
	}
	return md;
bad:
	sc_md_destroy(md);
	return ERR_PTR(-ENOMEM);
}

void sc_md_destroy(struct sc_md *md)
{
	u32 i;

	for (i = 0; i < SC_BATCH_BLOCKS; i++)
		if (md->batch.pages[i])
			__free_page(md->batch.pages[i]);
	vfree(md->writing);
	vfree(md->changed);
	kvfree(md);
}

static int sc_md_format(struct sc_md *md, const char *identity,
			struct sc_super *super, const char **error)
{
	int r;

	uuid_gen(&md->super.uuid);
	sc_super_set_seed(md);
	strscpy_pad(md->super.identity, identity);
	md->super.seq = 0;
	md->super.commits = 0;
	md->moved.nr = 0;
	md->super.must_write = false;
	*error = "cannot format the SSD";
	r = sc_md_write_all(md, false);
	if (!r)
		r = sc_super_write_everywhere(md);
	memset(super, 0, sizeof(*super));
	super->clean = true;
	super->formatted = true;
	return r;
}

int sc_md_open(struct sc_md *md, bool format, const char *identity,
	       struct sc_super *super, const char **error)
{
	u32 hidden;
	int r;

	*error = "cannot read two copies of the superblock";
	r = sc_super_read(md, &hidden);
	if (r)
		return r;
	if (!sc_super_is_empty(md))
		return sc_super_open(md, hidden, identity, super, error);
	if (format)
		return sc_md_format(md, identity, super, error);
	*error = "the SSD is empty, but there were dirty blocks";
	return -EINVAL;
}

const uuid_t *sc_md_get_uuid(const struct sc_md *md)
{
	return &md->super.uuid;
}

bool sc_md_may_be_clean(struct sc_md *md)
{
	return md->super.may_be_clean;
}

int sc_md_start(struct sc_md *md)
{
	if (md->super.must_write)
		return sc_super_write_everywhere(md);
	return sc_super_write(md, SC_SUPER_IN_USE, NULL, 0);
}

int sc_md_probe(struct sc_md *md)
{
	return sc_super_write(md, SC_SUPER_IN_USE, NULL, 0);
}

int sc_md_stop(struct sc_md *md, const struct sc_origin_state *origin, u64 dirty,
	       u64 *pending)
{
	int r;

	*pending = atomic_long_read(&md->nr_changed);
	md->super.commits++;
	/* The data come first, as in every commit. */
	r = sc_md_flush(md);
	if (r)
		return r;
	/*
	 * Moving a block retires slots, whose records may have been written
	 * before: write all records again.
	 */
	do {
		sc_md_clear_marks(md);
		r = sc_md_write_all(md, true);
	} while (!r && sc_md_is_pending(md));
	if (r)
		return r;
	return sc_super_write(md, SC_SUPER_CLEAN, origin, dirty);
}
