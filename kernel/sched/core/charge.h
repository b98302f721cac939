/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a request is charged.
 */
#ifndef ISOBLK_CORE_CHARGE_H
#define ISOBLK_CORE_CHARGE_H

#include "core/group.h"

/* What a request is charged at most; it has so many bits in the request. */
#define ISO_WORK_MOST		GENMASK(26, 0)

/**
 * iso_price_of() - what so much is charged
 * @d: disk
 * @op: operation
 * @sectors: of it; 0: it moves nothing
 */
static inline u64 iso_price_of(const struct iso_disk *d, enum isoblk_op op,
			       u64 sectors)
{
	const struct price *p = &d->tariff.of[op];
	u64 work = READ_ONCE(p->request) +
		(sectors ?: ISOBLK_NO_DATA_COST) * READ_ONCE(p->sector);

	return max(work >> PRICE_SHIFT, 1ULL);
}

/**
 * iso_work_of() - what a request is charged if it is sent now
 * @d: disk
 * @rq: request
 */
static inline u64 iso_work_of(const struct iso_disk *d,
			      const struct request *rq)
{
	return min_t(u64, iso_price_of(d, isoblk_rq_op(rq), blk_rq_sectors(rq)),
		     ISO_WORK_MOST);
}

/* Whether requests of one kind have the device for themselves: price.c. */
static inline bool iso_is_alone(const struct iso_disk *d)
{
	return READ_ONCE(d->tariff.alone) < PRICE_KINDS;
}

void iso_forget_debts(struct iso_group *g);
void iso_set_account(struct iso_disk *d, enum iso_account account);
void isoblk_change_account(struct iso_disk *d, enum iso_account account);
void iso_update_prices(struct iso_disk *d, const struct iso_done *sum,
		       u64 now);

#endif /* ISOBLK_CORE_CHARGE_H */
