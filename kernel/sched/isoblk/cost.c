// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a request costs: the time for which it keeps a busy device from all others.
 *
 * The model is io.cost's linear one: bytes a second, and sequential and random requests of 4 KiB
 * a second, for reads and writes. A request costs its sectors at the rate of bytes, and what a
 * request of 4 KiB takes beyond that. It is known beforehand and stays: nothing experiments with
 * it. It is set by the user (queue/iosched/cost_model), or else that of the disk's kind.
 *
 * A rotational disk's time depends on where its arm is. There the model orders and sizes; a
 * request is charged the time that it took when it has completed (complete.c).
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "isoblk/cost.h"

/* Bytes of the requests that the model's rates of requests are of. */
#define COST_RQ_BYTES	4096

/* Cost of a sector where only bytes count: a disk of 512 MB/s. */
#define COST_BYTES_SECTOR	(1000 << COST_SHIFT)

static const char *const line_names[COST_LINES] = {
	[COST_RBPS] = "rbps",
	[COST_RSEQIOPS] = "rseqiops",
	[COST_RRANDIOPS] = "rrandiops",
	[COST_WBPS] = "wbps",
	[COST_WSEQIOPS] = "wseqiops",
	[COST_WRANDIOPS] = "wrandiops",
};

/*
 * Flash: medians of the public iocost-benchmarks database, 34 NVMe and two SATA drives. Rotational:
 * a disk of 7200 turns a minute.
 */
static const u64 auto_lines[COST_KINDS][COST_LINES] = {
	[COST_ROTATIONAL] = { 180000000, 40000, 200, 180000000, 40000, 200 },
	[COST_SATA] = { 570000000, 96000, 98000, 460000000, 92000, 92000 },
	[COST_FLASH] = { 2300000000, 165000, 155000, 720000000, 24000, 22000 },
};

/* ns of one in @rate a second beyond @part ns; a request costs 1 at least. */
static u32 cost_is_beyond(u64 rate, u64 part)
{
	u64 ns = div64_u64(NSEC_PER_SEC, rate);

	return ns > part ? ns - part : 1;
}

static struct cost_of cost_of_line(const u64 *line)
{
	u64 sector = div64_u64((u64)NSEC_PER_SEC << (SECTOR_SHIFT + COST_SHIFT),
			       line[0]);
	u64 data;

	sector = clamp_t(u64, sector, 1, U32_MAX);
	data = sector * (COST_RQ_BYTES >> SECTOR_SHIFT) >> COST_SHIFT;
	return (struct cost_of){
		.sequential = cost_is_beyond(line[1], data),
		.random = cost_is_beyond(line[2], data),
		.sector = sector,
	};
}

static void cost_set_line(struct cost_model *m, enum cost_source source,
			  const u64 *line)
{
	m->source = source;
	memcpy(m->line, line, sizeof(m->line));
	m->of[0] = cost_of_line(&line[COST_RBPS]);
	m->of[1] = cost_of_line(&line[COST_WBPS]);
}

/**
 * cost_set_auto() - the generic model of a kind of disks
 * @m: model
 * @kind: of the disk
 */
void cost_set_auto(struct cost_model *m, enum cost_kind kind)
{
	cost_set_line(m, COST_AUTO, auto_lines[kind]);
}

/**
 * cost_set_bytes() - a sector costs the same whatever it is part of
 * @m: model
 */
void cost_set_bytes(struct cost_model *m)
{
	static const struct cost_of of = { .sector = COST_BYTES_SECTOR };

	*m = (struct cost_model){ .source = COST_BYTES, .of = { of, of } };
}

/**
 * cost_parse() - the model that a user gives: all six "NAME=NUMBER", in any order
 * @m: model; unchanged if it fails
 * @text: is changed
 *
 * Return: 0, -EINVAL, or -ERANGE for a number beyond what the arithmetic holds.
 */
int cost_parse(struct cost_model *m, char *text)
{
	u64 line[COST_LINES] = {};
	char *pair, *number;
	int i, ret;

	while ((pair = strsep(&text, " \t\n"))) {
		if (!*pair)
			continue;
		number = strchr(pair, '=');
		if (!number)
			return -EINVAL;
		*number++ = '\0';
		i = match_string(line_names, COST_LINES, pair);
		if (i < 0 || line[i])
			return -EINVAL;
		ret = kstrtou64(number, 10, &line[i]);
		if (ret)
			return ret;
		if (!line[i] || line[i] > S64_MAX >> COST_SHIFT)
			return -ERANGE;
	}
	for (i = 0; i < COST_LINES; i++)
		if (!line[i])
			return -EINVAL;
	cost_set_line(m, COST_USER, line);
	return 0;
}

/**
 * cost_print() - a model as text, without the end of a line
 * @m: model
 * @text: where to
 * @size: of it
 *
 * Return: length of the text.
 */
int cost_print(const struct cost_model *m, char *text, size_t size)
{
	int i, len;

	if (m->source == COST_BYTES)
		return scnprintf(text, size, "bytes");
	len = scnprintf(text, size, m->source == COST_AUTO ? "auto" : "user");
	for (i = 0; i < COST_LINES; i++)
		len += scnprintf(text + len, size - len, " %s=%llu",
				 line_names[i], m->line[i]);
	return len;
}
