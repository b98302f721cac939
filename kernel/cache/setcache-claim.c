// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exclusive use of disks: device-mapper opens a device for any number of
 * tables, so only this part keeps two caches from one SSD, or from one origin.
 *
 * A table that goes live claims its two disks for its device, and holds the
 * claim until it is destroyed: even while it is suspended, the SSD is to be
 * written from its memory. Tables of one device do not exclude each other, for
 * only one of these is live; two caches in one table do. A disk and its
 * partition are never both open for device-mapper.
 *
 * One disk under two names, such as a linear device on the SSD, is recognized
 * by the UUID of the cache on it.
 */
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/mutex.h>

#include "setcache.h"
#include "setcache-claim.h"

/* All claims; the mutex protects the list. */
static LIST_HEAD(sc_claims);
static DEFINE_MUTEX(sc_claims_lock);

/*
 * Return whether two caches are never live together: tables of one device are not.
 */
static bool sc_claim_may_share(const struct setcache *sc,
			       const struct setcache *other)
{
	return sc == other ||
	       (sc->ti->table != other->ti->table &&
		dm_table_get_md(sc->ti->table) ==
		dm_table_get_md(other->ti->table));
}

/* Return why two caches cannot both be live, or NULL. */
static const char *sc_claim_find_conflict(const struct setcache *sc,
					  const struct setcache *other)
{
	if (sc_claim_may_share(sc, other))
		return NULL;
	if (sc->ssd->bdev == other->ssd->bdev)
		return "the SSD is in use by another cache";
	if (sc->ssd->bdev == other->origin->bdev)
		return "the SSD is the origin of another cache";
	if (sc->origin->bdev == other->origin->bdev)
		return "the origin has another cache";
	if (sc->origin->bdev == other->ssd->bdev)
		return "the origin is the SSD of another cache";
	return NULL;
}

/*
 * Claim the disks of a cache, unless it has done so. Return NULL, or why they
 * cannot be claimed.
 */
const char *sc_claim_disks(struct setcache *sc)
{
	const char *error = NULL;
	struct setcache *other;

	mutex_lock(&sc_claims_lock);
	if (list_empty(&sc->claim.link)) {
		list_for_each_entry(other, &sc_claims, claim.link) {
			error = sc_claim_find_conflict(sc, other);
			if (error)
				break;
		}
		if (!error)
			list_add_tail(&sc->claim.link, &sc_claims);
	}
	mutex_unlock(&sc_claims_lock);
	return error;
}

/*
 * Return whether another device's table has claimed a cache with the same UUID.
 */
bool sc_is_claimed_twice(struct setcache *sc)
{
	struct setcache *other;
	bool found = false;

	mutex_lock(&sc_claims_lock);
	uuid_copy(&sc->claim.uuid, sc_md_get_uuid(sc->md));
	list_for_each_entry(other, &sc_claims, claim.link)
		found |= !sc_claim_may_share(sc, other) &&
			 uuid_equal(&sc->claim.uuid, &other->claim.uuid);
	mutex_unlock(&sc_claims_lock);
	return found;
}

/* Give up a cache's claim, if it has one. */
void sc_unclaim_disks(struct setcache *sc)
{
	mutex_lock(&sc_claims_lock);
	list_del_init(&sc->claim.link);
	mutex_unlock(&sc_claims_lock);
}
