/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cost of a request: cost.c opens with the model.
 */
#ifndef ISOBLK_COST_H
#define ISOBLK_COST_H

#include <linux/types.h>

#include "share/group.h"

/* Fraction bits of the cost of a sector: 73 ns a sector, a drive of 7 GB/s, to 0.1 %. */
#define COST_SHIFT	10

/* The longest cost, 34 s: it has so many bits in a request. */
#define COST_MAX	GENMASK_ULL(34, 0)

/* The linear model's coefficients, named and ordered as io.cost has them. */
enum cost_line {
	COST_RBPS, COST_RSEQIOPS, COST_RRANDIOPS,
	COST_WBPS, COST_WSEQIOPS, COST_WRANDIOPS,
	COST_LINES,
};

/* Where the model is from: the kind of the disk, the user, or only bytes count. */
enum cost_source { COST_AUTO, COST_USER, COST_BYTES };

/* Kinds of disks that have a generic model. */
enum cost_kind { COST_ROTATIONAL, COST_SATA, COST_FLASH, COST_KINDS };

/* Cost of requests of one direction. */
struct cost_of {
	u32 sequential;		/* ns of a request that begins where the last one ended */
	u32 random;		/* ns of any other */
	u32 sector;		/* ns of a sector, of 1 << COST_SHIFT */
};

/**
 * struct cost_model - what requests cost; disk lock, read without
 */
struct cost_model {
	enum cost_source source;
	u64 line[COST_LINES];	/* as it was given; 0 with COST_BYTES */
	struct cost_of of[2];	/* reads, writes */
};

void cost_set_auto(struct cost_model *m, enum cost_kind kind);
void cost_set_bytes(struct cost_model *m);
int cost_parse(struct cost_model *m, char *text);
int cost_print(const struct cost_model *m, char *text, size_t size);

/**
 * cost_of() - cost of a request, ns of a busy device
 * @m: model
 * @op: operation; a discard costs what a write without data does
 * @sectors: of it
 * @sequential: it begins where its group's last one ended
 */
static inline u64 cost_of(const struct cost_model *m, enum isoblk_op op,
			  u64 sectors, bool sequential)
{
	const struct cost_of *of = &m->of[op != ISOBLK_READ];
	u64 cost = READ_ONCE(of->random);

	if (sequential && op != ISOBLK_DISCARD)
		cost = READ_ONCE(of->sequential);
	if (op == ISOBLK_DISCARD || !sectors)
		sectors = ISOBLK_NO_DATA_COST;
	cost += sectors * READ_ONCE(of->sector) >> COST_SHIFT;
	return clamp(cost, 1ULL, COST_MAX);
}

#endif /* ISOBLK_COST_H */
