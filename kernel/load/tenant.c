// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attributes of a tenant's directory. Each has a field, which defines how
 * its option is parsed and printed; locking is common to all.
 */
#include <linux/configfs.h>
#include <linux/container_of.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "opts.h"
#include "parse.h"
#include "record.h"
#include "run.h"
#include "tenant.h"

/* The queue depth of the deepest devices, far beyond a tenant's need. */
#define BLKLOAD_IODEPTH_MAX	4096
/* Arrivals a second: one every ns. */
#define BLKLOAD_RATE_IOPS_MAX	NSEC_PER_SEC
/* It is spent spinning, with no other thread on that CPU. */
#define BLKLOAD_CPUTIME_NS_MAX	NSEC_PER_MSEC
/*
 * Thousandths of the recorded speed. The maximum corrects a trace whose
 * nanoseconds were taken for seconds; its thousandths fit in 64 bits.
 */
#define BLKLOAD_SPEED_MIN	1
#define BLKLOAD_SPEED_MAX	(NSEC_PER_SEC * BLKLOAD_SPEED_ONE)
/* Narrower windows hold too few requests. */
#define BLKLOAD_WINDOW_NS_MIN	NSEC_PER_MSEC

static struct blkload_tenant *to_tenant(struct config_item *item)
{
	return container_of(item, struct blkload_tenant, item);
}

/* A field: an option as an attribute. */
struct blkload_field {
	/* Set the option from text, or return a negative errno. */
	int (*parse)(const struct blkload_field *field,
		     struct blkload_opts *opts, char *s);
	/* Print the option as @parse reads it. Return characters printed. */
	int (*format)(const struct blkload_field *field,
		      const struct blkload_opts *opts, char *buf, size_t len);
	size_t offset;	/* offset of a number or path in struct blkload_opts */
	u64 min;	/* least value of a number */
	u64 max;	/* greatest value of a number */
	u64 unit;	/* unit of a time without a suffix, ns */
};

static ssize_t blkload_tenant_show(struct config_item *item, char *page,
				   const struct blkload_field *field)
{
	struct blkload_tenant *tenant = to_tenant(item);
	int n;

	mutex_lock(&blkload_lock);
	n = field->format(field, &tenant->opts, page, PAGE_SIZE - 1);
	mutex_unlock(&blkload_lock);
	page[n++] = '\n';
	return n;
}

static ssize_t blkload_tenant_store(struct config_item *item, const char *page,
				    size_t count,
				    const struct blkload_field *field)
{
	struct blkload_tenant *tenant = to_tenant(item);
	char *copy;
	int ret;

	copy = kmemdup_nul(page, count, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	mutex_lock(&blkload_lock);
	if (tenant->run && !blkload_run_is_done(tenant->run))
		ret = -EBUSY;
	else
		ret = field->parse(field, &tenant->opts, strim(copy));
	mutex_unlock(&blkload_lock);
	kfree(copy);
	return ret ?: count;
}

/* Define the attribute of a field called _name##_field. */
#define BLKLOAD_TENANT_ATTR(_name)					\
static ssize_t blkload_tenant_##_name##_show(struct config_item *item,	\
					     char *page)		\
{									\
	return blkload_tenant_show(item, page, &_name##_field);		\
}									\
static ssize_t blkload_tenant_##_name##_store(struct config_item *item,	\
					      const char *page,		\
					      size_t count)		\
{									\
	return blkload_tenant_store(item, page, count, &_name##_field);	\
}									\
CONFIGFS_ATTR(blkload_tenant_, _name)

static int blkload_field_parse_number(const struct blkload_field *field,
				      struct blkload_opts *opts, char *s)
{
	return blkload_parse_number(s, field->min, field->max,
				    (void *)opts + field->offset);
}

static int blkload_field_format_number(const struct blkload_field *field,
				       const struct blkload_opts *opts,
				       char *buf, size_t len)
{
	const u64 *value = (const void *)opts + field->offset;

	return scnprintf(buf, len, "%llu", *value);
}

static int blkload_field_parse_bytes(const struct blkload_field *field,
				     struct blkload_opts *opts, char *s)
{
	return blkload_parse_bytes(s, field->min, field->max,
				   (void *)opts + field->offset);
}

static int blkload_field_parse_time(const struct blkload_field *field,
				    struct blkload_opts *opts, char *s)
{
	return blkload_parse_time(s, field->unit, field->min, field->max,
				  (void *)opts + field->offset);
}

static int blkload_field_format_time(const struct blkload_field *field,
				     const struct blkload_opts *opts, char *buf,
				     size_t len)
{
	const u64 *ns = (const void *)opts + field->offset;

	return blkload_format_time(buf, len, *ns, field->unit);
}

/* Parse the width of a window, in whole ms, as windows are printed. */
static int blkload_field_parse_window(const struct blkload_field *field,
				      struct blkload_opts *opts, char *s)
{
	u64 ns;
	u32 rest;
	int ret;

	ret = blkload_parse_time(s, field->unit, field->min, field->max, &ns);
	if (ret)
		return ret;
	div_u64_rem(ns, NSEC_PER_MSEC, &rest);
	if (rest)
		return -EINVAL;
	opts->window = ns;
	return 0;
}

static int blkload_field_parse_path(const struct blkload_field *field,
				    struct blkload_opts *opts, char *s)
{
	return blkload_parse_path(s, (void *)opts + field->offset);
}

static int blkload_field_format_path(const struct blkload_field *field,
				     const struct blkload_opts *opts, char *buf,
				     size_t len)
{
	return scnprintf(buf, len, "%s", (const char *)opts + field->offset);
}

static int blkload_field_parse_rw(const struct blkload_field *field,
				  struct blkload_opts *opts, char *s)
{
	return blkload_parse_rw(s, &opts->rw);
}

static int blkload_field_format_rw(const struct blkload_field *field,
				   const struct blkload_opts *opts, char *buf,
				   size_t len)
{
	return scnprintf(buf, len, "%s", blkload_rw_name(opts->rw));
}

static int blkload_field_parse_bs(const struct blkload_field *field,
				  struct blkload_opts *opts, char *s)
{
	return blkload_parse_bs(s, opts);
}

static int blkload_field_parse_bsrange(const struct blkload_field *field,
				       struct blkload_opts *opts, char *s)
{
	return blkload_parse_range(s, opts);
}

static int blkload_field_format_bsrange(const struct blkload_field *field,
					const struct blkload_opts *opts,
					char *buf, size_t len)
{
	if (!opts->range_low)
		return 0;
	return scnprintf(buf, len, "%u-%u", opts->range_low, opts->range_high);
}

static int blkload_field_parse_bssplit(const struct blkload_field *field,
				       struct blkload_opts *opts, char *s)
{
	return blkload_parse_split(s, opts);
}

static int blkload_field_format_bssplit(const struct blkload_field *field,
					const struct blkload_opts *opts,
					char *buf, size_t len)
{
	return blkload_format_split(buf, len, opts);
}

static int blkload_field_parse_rate_process(const struct blkload_field *field,
					    struct blkload_opts *opts, char *s)
{
	if (!strcmp(s, "linear"))
		opts->poisson = false;
	else if (!strcmp(s, "poisson"))
		opts->poisson = true;
	else
		return -EINVAL;
	return 0;
}

static int blkload_field_format_rate_process(const struct blkload_field *field,
					     const struct blkload_opts *opts,
					     char *buf, size_t len)
{
	return scnprintf(buf, len, "%s", opts->poisson ? "poisson" : "linear");
}

static int blkload_field_parse_replay(const struct blkload_field *field,
				      struct blkload_opts *opts, char *s)
{
	if (!strcmp(s, "timed"))
		opts->timed = true;
	else if (!strcmp(s, "closed"))
		opts->timed = false;
	else
		return -EINVAL;
	return 0;
}

static int blkload_field_format_replay(const struct blkload_field *field,
				       const struct blkload_opts *opts,
				       char *buf, size_t len)
{
	return scnprintf(buf, len, "%s", opts->timed ? "timed" : "closed");
}

static int blkload_field_parse_trace_fit(const struct blkload_field *field,
					 struct blkload_opts *opts, char *s)
{
	if (!strcmp(s, "wrap"))
		opts->scale = false;
	else if (!strcmp(s, "scale"))
		opts->scale = true;
	else
		return -EINVAL;
	return 0;
}

static int blkload_field_format_trace_fit(const struct blkload_field *field,
					  const struct blkload_opts *opts,
					  char *buf, size_t len)
{
	return scnprintf(buf, len, "%s", opts->scale ? "scale" : "wrap");
}

static int blkload_field_parse_distribution(const struct blkload_field *field,
					    struct blkload_opts *opts, char *s)
{
	return blkload_parse_shape(s, opts);
}

static int blkload_field_format_distribution(const struct blkload_field *field,
					     const struct blkload_opts *opts,
					     char *buf, size_t len)
{
	return blkload_format_shape(buf, len, opts);
}

static int blkload_field_parse_ioprio(const struct blkload_field *field,
				      struct blkload_opts *opts, char *s)
{
	return blkload_parse_ioprio(s, &opts->ioprio);
}

static int blkload_field_format_ioprio(const struct blkload_field *field,
				       const struct blkload_opts *opts,
				       char *buf, size_t len)
{
	return blkload_format_ioprio(buf, len, opts->ioprio);
}

#define BLKLOAD_FIELD_NUMBER(_option, _min, _max)			\
	.parse = blkload_field_parse_number,				\
	.format = blkload_field_format_number,				\
	.offset = offsetof(struct blkload_opts, _option),		\
	.min = _min, .max = _max

#define BLKLOAD_FIELD_BYTES(_option)					\
	.parse = blkload_field_parse_bytes,				\
	.format = blkload_field_format_number,				\
	.offset = offsetof(struct blkload_opts, _option),		\
	.max = S64_MAX

#define BLKLOAD_FIELD_TIME(_option, _unit, _min, _max)			\
	.parse = blkload_field_parse_time,				\
	.format = blkload_field_format_time,				\
	.offset = offsetof(struct blkload_opts, _option),		\
	.min = _min, .max = _max, .unit = _unit

#define BLKLOAD_FIELD_PATH(_option)					\
	.parse = blkload_field_parse_path,				\
	.format = blkload_field_format_path,				\
	.offset = offsetof(struct blkload_opts, _option)

static const struct blkload_field device_field = {
	BLKLOAD_FIELD_PATH(device)
};
BLKLOAD_TENANT_ATTR(device);

static const struct blkload_field cgroup_field = {
	BLKLOAD_FIELD_PATH(cgroup)
};
BLKLOAD_TENANT_ATTR(cgroup);

static const struct blkload_field rw_field = {
	.parse = blkload_field_parse_rw,
	.format = blkload_field_format_rw
};
BLKLOAD_TENANT_ATTR(rw);

static const struct blkload_field rwmixread_field = {
	BLKLOAD_FIELD_NUMBER(rwmixread, 0, 100)
};
BLKLOAD_TENANT_ATTR(rwmixread);

static const struct blkload_field bs_field = {
	.parse = blkload_field_parse_bs,
	.format = blkload_field_format_number,
	.offset = offsetof(struct blkload_opts, bs)
};
BLKLOAD_TENANT_ATTR(bs);

static const struct blkload_field bsrange_field = {
	.parse = blkload_field_parse_bsrange,
	.format = blkload_field_format_bsrange
};
BLKLOAD_TENANT_ATTR(bsrange);

static const struct blkload_field bssplit_field = {
	.parse = blkload_field_parse_bssplit,
	.format = blkload_field_format_bssplit
};
BLKLOAD_TENANT_ATTR(bssplit);

static const struct blkload_field iodepth_field = {
	BLKLOAD_FIELD_NUMBER(iodepth, 1, BLKLOAD_IODEPTH_MAX)
};
BLKLOAD_TENANT_ATTR(iodepth);

static const struct blkload_field numjobs_field = {
	BLKLOAD_FIELD_NUMBER(numjobs, 1, BLKLOAD_JOBS_MAX)
};
BLKLOAD_TENANT_ATTR(numjobs);

static const struct blkload_field rate_iops_field = {
	BLKLOAD_FIELD_NUMBER(rate_iops, 0, BLKLOAD_RATE_IOPS_MAX)
};
BLKLOAD_TENANT_ATTR(rate_iops);

static const struct blkload_field rate_process_field = {
	.parse = blkload_field_parse_rate_process,
	.format = blkload_field_format_rate_process
};
BLKLOAD_TENANT_ATTR(rate_process);

static const struct blkload_field thinktime_field = {
	BLKLOAD_FIELD_TIME(thinktime, NSEC_PER_USEC, 0, BLKLOAD_TIME_NS_MAX)
};
BLKLOAD_TENANT_ATTR(thinktime);

static const struct blkload_field thinktime_blocks_field = {
	BLKLOAD_FIELD_NUMBER(thinktime_blocks, 1, U64_MAX)
};
BLKLOAD_TENANT_ATTR(thinktime_blocks);

static const struct blkload_field on_field = {
	BLKLOAD_FIELD_TIME(on, NSEC_PER_SEC, 0, BLKLOAD_TIME_NS_MAX)
};
BLKLOAD_TENANT_ATTR(on);

static const struct blkload_field off_field = {
	BLKLOAD_FIELD_TIME(off, NSEC_PER_SEC, 0, BLKLOAD_TIME_NS_MAX)
};
BLKLOAD_TENANT_ATTR(off);

static const struct blkload_field cputime_field = {
	BLKLOAD_FIELD_TIME(cputime, 1, 0, BLKLOAD_CPUTIME_NS_MAX)
};
BLKLOAD_TENANT_ATTR(cputime);

static const struct blkload_field cpus_field = {
	BLKLOAD_FIELD_NUMBER(cpus, 0, BLKLOAD_JOBS_MAX)
};
BLKLOAD_TENANT_ATTR(cpus);

static const struct blkload_field startdelay_field = {
	BLKLOAD_FIELD_TIME(startdelay, NSEC_PER_SEC, 0, BLKLOAD_TIME_NS_MAX)
};
BLKLOAD_TENANT_ATTR(startdelay);

static const struct blkload_field ramp_time_field = {
	BLKLOAD_FIELD_TIME(ramp_time, NSEC_PER_SEC, 0, BLKLOAD_TIME_NS_MAX)
};
BLKLOAD_TENANT_ATTR(ramp_time);

static const struct blkload_field runtime_field = {
	BLKLOAD_FIELD_TIME(runtime, NSEC_PER_SEC, 0, BLKLOAD_TIME_NS_MAX)
};
BLKLOAD_TENANT_ATTR(runtime);

static const struct blkload_field number_ios_field = {
	BLKLOAD_FIELD_NUMBER(number_ios, 0, U64_MAX)
};
BLKLOAD_TENANT_ATTR(number_ios);

static const struct blkload_field offset_field = {
	BLKLOAD_FIELD_BYTES(offset)
};
BLKLOAD_TENANT_ATTR(offset);

static const struct blkload_field size_field = {
	BLKLOAD_FIELD_BYTES(size)
};
BLKLOAD_TENANT_ATTR(size);

static const struct blkload_field random_distribution_field = {
	.parse = blkload_field_parse_distribution,
	.format = blkload_field_format_distribution
};
BLKLOAD_TENANT_ATTR(random_distribution);

static const struct blkload_field fsync_field = {
	BLKLOAD_FIELD_NUMBER(fsync, 0, U64_MAX)
};
BLKLOAD_TENANT_ATTR(fsync);

static const struct blkload_field fua_field = {
	BLKLOAD_FIELD_NUMBER(fua, 0, 1)
};
BLKLOAD_TENANT_ATTR(fua);

static const struct blkload_field meta_field = {
	BLKLOAD_FIELD_NUMBER(meta, 0, 1)
};
BLKLOAD_TENANT_ATTR(meta);

static const struct blkload_field background_field = {
	BLKLOAD_FIELD_NUMBER(background, 0, 1)
};
BLKLOAD_TENANT_ATTR(background);

static const struct blkload_field relay_field = {
	BLKLOAD_FIELD_NUMBER(relay, 0, 1)
};
BLKLOAD_TENANT_ATTR(relay);

static const struct blkload_field verify_field = {
	BLKLOAD_FIELD_NUMBER(verify, 0, 1)
};
BLKLOAD_TENANT_ATTR(verify);

static const struct blkload_field randseed_field = {
	BLKLOAD_FIELD_NUMBER(randseed, 0, U64_MAX)
};
BLKLOAD_TENANT_ATTR(randseed);

static const struct blkload_field ioprio_field = {
	.parse = blkload_field_parse_ioprio,
	.format = blkload_field_format_ioprio
};
BLKLOAD_TENANT_ATTR(ioprio);

static const struct blkload_field trace_field = {
	BLKLOAD_FIELD_PATH(trace)
};
BLKLOAD_TENANT_ATTR(trace);

static const struct blkload_field replay_field = {
	.parse = blkload_field_parse_replay,
	.format = blkload_field_format_replay
};
BLKLOAD_TENANT_ATTR(replay);

static const struct blkload_field speed_field = {
	BLKLOAD_FIELD_NUMBER(speed, BLKLOAD_SPEED_MIN, BLKLOAD_SPEED_MAX)
};
BLKLOAD_TENANT_ATTR(speed);

static const struct blkload_field trace_fit_field = {
	.parse = blkload_field_parse_trace_fit,
	.format = blkload_field_format_trace_fit
};
BLKLOAD_TENANT_ATTR(trace_fit);

static const struct blkload_field trace_loop_field = {
	BLKLOAD_FIELD_NUMBER(trace_loop, 0, 1)
};
BLKLOAD_TENANT_ATTR(trace_loop);

static const struct blkload_field window_field = {
	.parse = blkload_field_parse_window,
	.format = blkload_field_format_time,
	.offset = offsetof(struct blkload_opts, window),
	.min = BLKLOAD_WINDOW_NS_MIN, .max = BLKLOAD_TIME_NS_MAX, .unit = NSEC_PER_MSEC
};
BLKLOAD_TENANT_ATTR(window);

static struct configfs_attribute *blkload_tenant_attrs[] = {
	&blkload_tenant_attr_device,
	&blkload_tenant_attr_cgroup,
	&blkload_tenant_attr_rw,
	&blkload_tenant_attr_rwmixread,
	&blkload_tenant_attr_bs,
	&blkload_tenant_attr_bsrange,
	&blkload_tenant_attr_bssplit,
	&blkload_tenant_attr_iodepth,
	&blkload_tenant_attr_numjobs,
	&blkload_tenant_attr_rate_iops,
	&blkload_tenant_attr_rate_process,
	&blkload_tenant_attr_thinktime,
	&blkload_tenant_attr_thinktime_blocks,
	&blkload_tenant_attr_on,
	&blkload_tenant_attr_off,
	&blkload_tenant_attr_cputime,
	&blkload_tenant_attr_cpus,
	&blkload_tenant_attr_startdelay,
	&blkload_tenant_attr_ramp_time,
	&blkload_tenant_attr_runtime,
	&blkload_tenant_attr_number_ios,
	&blkload_tenant_attr_offset,
	&blkload_tenant_attr_size,
	&blkload_tenant_attr_random_distribution,
	&blkload_tenant_attr_fsync,
	&blkload_tenant_attr_fua,
	&blkload_tenant_attr_meta,
	&blkload_tenant_attr_background,
	&blkload_tenant_attr_relay,
	&blkload_tenant_attr_verify,
	&blkload_tenant_attr_randseed,
	&blkload_tenant_attr_ioprio,
	&blkload_tenant_attr_trace,
	&blkload_tenant_attr_replay,
	&blkload_tenant_attr_speed,
	&blkload_tenant_attr_trace_fit,
	&blkload_tenant_attr_trace_loop,
	&blkload_tenant_attr_window,
	NULL,
};

/* Free a tenant: the directory and the last open attribute are gone. */
static void blkload_tenant_release(struct config_item *item)
{
	kfree(to_tenant(item));
}

static struct configfs_item_operations blkload_tenant_item_ops = {
	.release	= blkload_tenant_release,
};

const struct config_item_type blkload_tenant_type = {
	.ct_owner	= THIS_MODULE,
	.ct_item_ops	= &blkload_tenant_item_ops,
	.ct_attrs	= blkload_tenant_attrs,
};
