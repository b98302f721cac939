// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text forms of a tenant's options. Every parser takes a string without
 * surrounding white space. It returns -EINVAL for text that it cannot parse,
 * and -ERANGE for a value out of bounds, and then has changed nothing. A parser
 * accepts all that its formatter prints.
 */
#include <linux/array_size.h>
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/ioprio.h>
#include <linux/kernel.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "parse.h"

/*
 * Ranges of theta and h. Near 0 and 1 powers leave the range of fixed point,
 * and measured loads have no such values.
 */
#define BLKLOAD_THETA_MIN	10000U		/* 0.01 */
#define BLKLOAD_THETA_MAX	10000000U	/* 10 */
#define BLKLOAD_H_MIN		10000U		/* 0.01 */
#define BLKLOAD_H_MAX		990000U		/* 0.99 */

static const char * const blkload_rw_names[BLKLOAD_NR_RWS] = {
	[BLKLOAD_RW_READ]	= "read",
	[BLKLOAD_RW_WRITE]	= "write",
	[BLKLOAD_RW_RANDREAD]	= "randread",
	[BLKLOAD_RW_RANDWRITE]	= "randwrite",
	[BLKLOAD_RW_RW]		= "rw",
	[BLKLOAD_RW_RANDRW]	= "randrw",
	[BLKLOAD_RW_TRIM]	= "trim",
	[BLKLOAD_RW_RANDTRIM]	= "randtrim",
};

/**
 * blkload_opts_init - set every option to its default
 * @opts: the options
 */
void blkload_opts_init(struct blkload_opts *opts)
{
	memset(opts, 0, sizeof(*opts));
	strscpy(opts->cgroup, "/", sizeof(opts->cgroup));
	opts->rw = BLKLOAD_RW_READ;
	opts->rwmixread = 50;
	opts->bs = 4096;
	opts->iodepth = 1;
	opts->numjobs = 1;
	opts->thinktime_blocks = 1;
	opts->randseed = 1;
	opts->timed = true;
	opts->speed = 1000;
	opts->window = 100 * NSEC_PER_MSEC;
}

/* Parse the decimal number at *s; *s then points behind its last digit. */
static int blkload_parse_digits(const char **s, u64 *value)
{
	u64 v = 0;

	if (!isdigit(**s))
		return -EINVAL;
	for (; isdigit(**s); (*s)++)
		if (check_mul_overflow(v, 10ULL, &v) ||
		    check_add_overflow(v, (u64)(**s - '0'), &v))
			return -ERANGE;
	*value = v;
	return 0;
}

/* Parse a number of bytes with its suffix, like blkload_parse_digits(). */
static int blkload_parse_bytes_at(const char **s, u64 *bytes)
{
	unsigned int shift = 0;
	u64 v;
	int ret;

	ret = blkload_parse_digits(s, &v);
	if (ret)
		return ret;
	switch (tolower(**s)) {
	case 'g':
		shift += 10;
		fallthrough;
	case 'm':
		shift += 10;
		fallthrough;
	case 'k':
		shift += 10;
		(*s)++;
	}
	if (check_mul_overflow(v, 1ULL << shift, &v))
		return -ERANGE;
	*bytes = v;
	return 0;
}

static int blkload_store_in_range(u64 v, u64 min, u64 max, u64 *value)
{
	if (v < min || v > max)
		return -ERANGE;
	*value = v;
	return 0;
}

/**
 * blkload_parse_number - parse a decimal number
 * @s: the text
 * @min: least value allowed
 * @max: greatest value allowed
 * @value: set to the number
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int blkload_parse_number(const char *s, u64 min, u64 max, u64 *value)
{
	u64 v;
	int ret;

	ret = blkload_parse_digits(&s, &v);
	if (ret)
		return ret;
	return *s ? -EINVAL : blkload_store_in_range(v, min, max, value);
}

/**
 * blkload_parse_bytes - parse a number of bytes, as "4096", "4k", "1m", "2g"
 * @s: the text
 * @min: least value allowed
 * @max: greatest value allowed
 * @bytes: set to the number
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int blkload_parse_bytes(const char *s, u64 min, u64 max, u64 *bytes)
{
	u64 v;
	int ret;

	ret = blkload_parse_bytes_at(&s, &v);
	if (ret)
		return ret;
	return *s ? -EINVAL : blkload_store_in_range(v, min, max, bytes);
}

/**
 * blkload_parse_time - parse a time, as "10", "80us", "1500ms"
 * @s: the text
 * @unit: unit of a number without a suffix, in ns
 * @min: least value allowed, ns
 * @max: greatest value allowed, ns
 * @ns: set to the time
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int blkload_parse_time(const char *s, u64 unit, u64 min, u64 max, u64 *ns)
{
	static const struct {
		const char *suffix;
		u64 ns;
	} units[] = {
		{ "ns", 1 },
		{ "us", NSEC_PER_USEC },
		{ "ms", NSEC_PER_MSEC },
		{ "s", NSEC_PER_SEC },
	};
	unsigned int i;
	u64 v;
	int ret;

	ret = blkload_parse_digits(&s, &v);
	if (ret)
		return ret;
	if (*s) {
		for (i = 0; i < ARRAY_SIZE(units); i++)
			if (!strcmp(s, units[i].suffix))
				break;
		if (i == ARRAY_SIZE(units))
			return -EINVAL;
		unit = units[i].ns;
	}
	if (check_mul_overflow(v, unit, &v))
		return -ERANGE;
	return blkload_store_in_range(v, min, max, ns);
}

/**
 * blkload_format_time - print a time as blkload_parse_time() reads it
 * @buf: where the text goes
 * @len: room in @buf
 * @ns: the time
 * @unit: the attribute's unit, in ns
 *
 * Return: characters printed.
 */
int blkload_format_time(char *buf, size_t len, u64 ns, u64 unit)
{
	u64 rest, v;

	v = div64_u64_rem(ns, unit, &rest);
	if (rest)
		return scnprintf(buf, len, "%lluns", ns);
	return scnprintf(buf, len, "%llu", v);
}

/**
 * blkload_parse_path - parse a path
 * @s: the text; an absolute path, or "" for none
 * @path: BLKLOAD_PATH_BYTES bytes
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int blkload_parse_path(const char *s, char *path)
{
	if (*s && *s != '/')
		return -EINVAL;
	if (strlen(s) >= BLKLOAD_PATH_BYTES)
		return -ERANGE;
	strscpy(path, s, BLKLOAD_PATH_BYTES);
	return 0;
}

/**
 * blkload_parse_rw - parse the kind of load
 * @s: the text
 * @rw: set to the kind of load
 *
 * Return: 0 or -EINVAL.
 */
int blkload_parse_rw(const char *s, enum blkload_rw *rw)
{
	int i = match_string(blkload_rw_names, ARRAY_SIZE(blkload_rw_names), s);

	if (i < 0)
		return -EINVAL;
	*rw = i;
	return 0;
}

/**
 * blkload_rw_name - return the name of a kind of load
 * @rw: the kind
 *
 * Return: fio's name.
 */
const char *blkload_rw_name(enum blkload_rw rw)
{
	return blkload_rw_names[rw];
}

/**
 * blkload_parse_ioprio - parse "none", "idle", "rt/LEVEL" or "be/LEVEL"
 * @s: the text
 * @ioprio: set to the priority, 0 for none
 *
 * Return: 0, -EINVAL, or -ERANGE for a level out of bounds.
 */
int blkload_parse_ioprio(const char *s, u16 *ioprio)
{
	u64 level = 0;
	int class, ret;

	if (!strcmp(s, "none")) {
		class = IOPRIO_CLASS_NONE;
	} else if (!strcmp(s, "idle")) {
		class = IOPRIO_CLASS_IDLE;
	} else {
		if (str_has_prefix(s, "rt/"))
			class = IOPRIO_CLASS_RT;
		else if (str_has_prefix(s, "be/"))
			class = IOPRIO_CLASS_BE;
		else
			return -EINVAL;
		ret = blkload_parse_number(s + strlen("be/"), 0,
					   IOPRIO_NR_LEVELS - 1, &level);
		if (ret)
			return ret;
	}
	*ioprio = IOPRIO_PRIO_VALUE(class, level);
	return 0;
}

/**
 * blkload_format_ioprio - print a priority as blkload_parse_ioprio() reads it
 * @buf: where the text goes
 * @len: room in @buf
 * @ioprio: priority, in the kernel's format
 *
 * Return: characters printed.
 */
int blkload_format_ioprio(char *buf, size_t len, u16 ioprio)
{
	switch (IOPRIO_PRIO_CLASS(ioprio)) {
	case IOPRIO_CLASS_NONE:
		return scnprintf(buf, len, "none");
	case IOPRIO_CLASS_IDLE:
		return scnprintf(buf, len, "idle");
	default:
		return scnprintf(buf, len, "%s/%u",
				 IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_RT ?
				 "rt" : "be",
				 (unsigned int)IOPRIO_PRIO_LEVEL(ioprio));
	}
}

/* Parse a request size, a multiple of the sector, like blkload_parse_digits(). */
static int blkload_parse_bs_at(const char **s, u32 *bs)
{
	u64 v;
	int ret;

	ret = blkload_parse_bytes_at(s, &v);
	if (ret)
		return ret;
	if (v < BLKLOAD_BS_MIN || v > BLKLOAD_BS_MAX)
		return -ERANGE;
	if (v % BLKLOAD_BS_MIN)
		return -EINVAL;
	*bs = v;
	return 0;
}

/**
 * blkload_parse_bs - parse bs, as "4k"
 * @s: the text
 * @opts: the options; a bsrange or bssplit is cleared
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int blkload_parse_bs(const char *s, struct blkload_opts *opts)
{
	u32 bs;
	int ret;

	ret = blkload_parse_bs_at(&s, &bs);
	if (ret)
		return ret;
	if (*s)
		return -EINVAL;
	opts->bs = bs;
	opts->range_low = 0;
	opts->range_high = 0;
	opts->nr_splits = 0;
	return 0;
}

/**
 * blkload_parse_range - parse bsrange, as "4k-64k"
 * @s: the text; "" goes back to the one size of bs
 * @opts: the options; a bssplit is cleared
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int blkload_parse_range(const char *s, struct blkload_opts *opts)
{
	u32 low = 0, high = 0;
	int ret;

	if (*s) {
		ret = blkload_parse_bs_at(&s, &low);
		if (ret)
			return ret;
		if (*s++ != '-')
			return -EINVAL;
		ret = blkload_parse_bs_at(&s, &high);
		if (ret)
			return ret;
		if (*s)
			return -EINVAL;
		if (high < low)
			return -ERANGE;
	}
	opts->range_low = low;
	opts->range_high = high;
	opts->nr_splits = 0;
	return 0;
}

/**
 * blkload_parse_split - parse bssplit, as "4k/90:64k/10"
 * @s: the text; "" goes back to the one size of bs
 * @opts: the options; a bsrange is cleared
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int blkload_parse_split(const char *s, struct blkload_opts *opts)
{
	struct blkload_split split[BLKLOAD_SPLITS_MAX] = {};
	u32 nr = 0, sum = 0;
	u64 percent;
	int ret;

	while (*s) {
		if (nr == ARRAY_SIZE(split))
			return -ERANGE;
		if (nr && *s++ != ':')
			return -EINVAL;
		ret = blkload_parse_bs_at(&s, &split[nr].bytes);
		if (ret)
			return ret;
		if (*s++ != '/')
			return -EINVAL;
		ret = blkload_parse_digits(&s, &percent);
		if (ret)
			return ret;
		if (!percent || percent > 100)
			return -ERANGE;
		split[nr++].percent = percent;
		sum += percent;
	}
	if (nr && sum != 100)
		return -ERANGE;
	memcpy(opts->split, split, sizeof(split));
	opts->nr_splits = nr;
	opts->range_low = 0;
	opts->range_high = 0;
	return 0;
}

/**
 * blkload_format_split - print bssplit as blkload_parse_split() reads it
 * @buf: where the text goes
 * @len: room in @buf
 * @opts: the options
 *
 * Return: characters printed.
 */
int blkload_format_split(char *buf, size_t len,
			 const struct blkload_opts *opts)
{
	int n = 0;
	u32 i;

	for (i = 0; i < opts->nr_splits; i++)
		n += scnprintf(buf + n, len - n, "%s%u/%u", i ? ":" : "",
			       opts->split[i].bytes, opts->split[i].percent);
	return n;
}

/* Parse a decimal number with at most six places, in millionths. */
static int blkload_parse_millionths(const char *s, u32 min, u32 max, u32 *value)
{
	u32 place = BLKLOAD_MILLION / 10;
	u64 v;
	int ret;

	ret = blkload_parse_digits(&s, &v);
	if (ret)
		return ret;
	if (v > max / BLKLOAD_MILLION)
		return -ERANGE;
	v *= BLKLOAD_MILLION;
	if (*s == '.') {
		s++;
		if (!isdigit(*s))
			return -EINVAL;
		for (; isdigit(*s) && place; s++, place /= 10)
			v += (*s - '0') * place;
	}
	if (*s)
		return -EINVAL;
	if (v < min || v > max)
		return -ERANGE;
	*value = v;
	return 0;
}

/**
 * blkload_parse_shape - parse "random", "zipf:1.2" or "pareto:0.2"
 * @s: the text
 * @opts: the options
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int blkload_parse_shape(const char *s, struct blkload_opts *opts)
{
	size_t n;
	int ret;

	if (!strcmp(s, "random")) {
		opts->shape = BLKLOAD_UNIFORM;
		return 0;
	}
	n = str_has_prefix(s, "zipf:");
	if (n) {
		ret = blkload_parse_millionths(s + n, BLKLOAD_THETA_MIN,
					       BLKLOAD_THETA_MAX,
					       &opts->shape_arg);
		if (!ret)
			opts->shape = BLKLOAD_ZIPF;
		return ret;
	}
	n = str_has_prefix(s, "pareto:");
	if (n) {
		ret = blkload_parse_millionths(s + n, BLKLOAD_H_MIN,
					       BLKLOAD_H_MAX, &opts->shape_arg);
		if (!ret)
			opts->shape = BLKLOAD_PARETO;
		return ret;
	}
	return -EINVAL;
}

/**
 * blkload_format_shape - print a shape as blkload_parse_shape() reads it
 * @buf: where the text goes
 * @len: room in @buf
 * @opts: the options
 *
 * Return: characters printed.
 */
int blkload_format_shape(char *buf, size_t len,
			 const struct blkload_opts *opts)
{
	int n;

	if (opts->shape == BLKLOAD_UNIFORM)
		return scnprintf(buf, len, "random");
	n = scnprintf(buf, len, "%s:%u.%06u",
		      opts->shape == BLKLOAD_ZIPF ? "zipf" : "pareto",
		      opts->shape_arg / BLKLOAD_MILLION,
		      opts->shape_arg % BLKLOAD_MILLION);
	while (buf[n - 1] == '0' && buf[n - 2] != '.')
		buf[--n] = '\0';
	return n;
}

/**
 * blkload_get_bs_min - return the smallest request size of the options
 * @opts: the options
 *
 * Return: bytes.
 */
u32 blkload_get_bs_min(const struct blkload_opts *opts)
{
	u32 i, bytes;

	if (opts->range_low)
		return opts->range_low;
	if (!opts->nr_splits)
		return opts->bs;
	bytes = opts->split[0].bytes;
	for (i = 1; i < opts->nr_splits; i++)
		bytes = min(bytes, opts->split[i].bytes);
	return bytes;
}

/**
 * blkload_get_bs_max - return the largest request size of the options
 * @opts: the options
 *
 * Return: bytes.
 */
u32 blkload_get_bs_max(const struct blkload_opts *opts)
{
	u32 i, bytes;

	if (opts->range_low)
		return rounddown(opts->range_high, opts->range_low);
	if (!opts->nr_splits)
		return opts->bs;
	bytes = opts->split[0].bytes;
	for (i = 1; i < opts->nr_splits; i++)
		bytes = max(bytes, opts->split[i].bytes);
	return bytes;
}
