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
#define MAX_IODEPTH	4096
/* Arrivals a second: one every ns. */
#define MAX_RATE	NSEC_PER_SEC
/* It is spent spinning, with no other thread on that CPU. */
#define MAX_CPUTIME_NS	NSEC_PER_MSEC
/*
 * Thousandths of the recorded speed. The maximum corrects a trace whose
 * nanoseconds were taken for seconds; its thousandths fit in 64 bits.
 */
#define MIN_SPEED	1
#define MAX_SPEED	(NSEC_PER_SEC * BLKLOAD_SPEED_ONE)
/* Narrower windows hold too few requests. */
#define MIN_WINDOW_NS	NSEC_PER_MSEC

static struct blkload_tenant *to_tenant(struct config_item *item)
{
	return container_of(item, struct blkload_tenant, item);
}

/* A field: an option as an attribute. */
struct tenant_field {
	/* Set the option from text, or return a negative errno. */
	int (*parse)(const struct tenant_field *field,
		     struct blkload_opts *opts, char *s);
	/* Print the option as @parse reads it. Return characters printed. */
	int (*format)(const struct tenant_field *field,
		      const struct blkload_opts *opts, char *buf, size_t len);
	size_t offset;	/* offset of a number or path in struct blkload_opts */
	u64 min;	/* least value of a number */
	u64 max;	/* greatest value of a number */
	u64 unit;	/* unit of a time without a suffix, ns */
};

static ssize_t tenant_show(struct config_item *item, char *page,
			   const struct tenant_field *field)
{
	struct blkload_tenant *tenant = to_tenant(item);
	int n;

	mutex_lock(&blkload_lock);
	n = field->format(field, &tenant->opts, page, PAGE_SIZE - 1);
	mutex_unlock(&blkload_lock);
	page[n++] = '\n';
	return n;
}

static ssize_t tenant_store(struct config_item *item, const char *page,
			    size_t count, const struct tenant_field *field)
{
	struct blkload_tenant *tenant = to_tenant(item);
	char *copy;
	int ret;

	copy = kmemdup_nul(page, count, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	mutex_lock(&blkload_lock);
	if (tenant->run && !blkload_run_done(tenant->run))
		ret = -EBUSY;
	else
		ret = field->parse(field, &tenant->opts, strim(copy));
	mutex_unlock(&blkload_lock);
	kfree(copy);
	return ret ?: count;
}

/* Define the attribute of a field called _name##_field. */
#define TENANT_ATTR(_name)						\
static ssize_t tenant_##_name##_show(struct config_item *item,		\
				     char *page)			\
{									\
	return tenant_show(item, page, &_name##_field);			\
}									\
static ssize_t tenant_##_name##_store(struct config_item *item,		\
				      const char *page, size_t count)	\
{									\
	return tenant_store(item, page, count, &_name##_field);		\
}									\
CONFIGFS_ATTR(tenant_, _name)

static int number_parse(const struct tenant_field *field,
			struct blkload_opts *opts, char *s)
{
	return blkload_parse_number(s, field->min, field->max,
				    (void *)opts + field->offset);
}

static int number_format(const struct tenant_field *field,
			 const struct blkload_opts *opts, char *buf,
			 size_t len)
{
	const u64 *value = (const void *)opts + field->offset;

	return scnprintf(buf, len, "%llu", *value);
}

static int bytes_parse(const struct tenant_field *field,
		       struct blkload_opts *opts, char *s)
{
	return blkload_parse_bytes(s, field->min, field->max,
				   (void *)opts + field->offset);
}

static int time_parse(const struct tenant_field *field,
		      struct blkload_opts *opts, char *s)
{
	return blkload_parse_time(s, field->unit, field->min, field->max,
				  (void *)opts + field->offset);
}

static int time_format(const struct tenant_field *field,
		       const struct blkload_opts *opts, char *buf, size_t len)
{
	const u64 *ns = (const void *)opts + field->offset;

	return blkload_format_time(buf, len, *ns, field->unit);
}

/* Parse the width of a window, in whole ms, as windows are printed. */
static int window_parse(const struct tenant_field *field,
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

static int path_parse(const struct tenant_field *field,
		      struct blkload_opts *opts, char *s)
{
	return blkload_parse_path(s, (void *)opts + field->offset);
}

static int path_format(const struct tenant_field *field,
		       const struct blkload_opts *opts, char *buf, size_t len)
{
	return scnprintf(buf, len, "%s", (const char *)opts + field->offset);
}

static int rw_parse(const struct tenant_field *field,
		    struct blkload_opts *opts, char *s)
{
	return blkload_parse_rw(s, &opts->rw);
}

static int rw_format(const struct tenant_field *field,
		     const struct blkload_opts *opts, char *buf, size_t len)
{
	return scnprintf(buf, len, "%s", blkload_rw_name(opts->rw));
}

static int bs_parse(const struct tenant_field *field,
		    struct blkload_opts *opts, char *s)
{
	return blkload_parse_bs(s, opts);
}

static int bsrange_parse(const struct tenant_field *field,
			 struct blkload_opts *opts, char *s)
{
	return blkload_parse_range(s, opts);
}

static int bsrange_format(const struct tenant_field *field,
			  const struct blkload_opts *opts, char *buf,
			  size_t len)
{
	if (!opts->range_low)
		return 0;
	return scnprintf(buf, len, "%u-%u", opts->range_low, opts->range_high);
}

static int bssplit_parse(const struct tenant_field *field,
			 struct blkload_opts *opts, char *s)
{
	return blkload_parse_split(s, opts);
}

static int bssplit_format(const struct tenant_field *field,
			  const struct blkload_opts *opts, char *buf,
			  size_t len)
{
	return blkload_format_split(buf, len, opts);
}

static int rate_process_parse(const struct tenant_field *field,
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

static int rate_process_format(const struct tenant_field *field,
			       const struct blkload_opts *opts, char *buf,
			       size_t len)
{
	return scnprintf(buf, len, "%s", opts->poisson ? "poisson" : "linear");
}

static int replay_parse(const struct tenant_field *field,
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

static int replay_format(const struct tenant_field *field,
			 const struct blkload_opts *opts, char *buf,
			 size_t len)
{
	return scnprintf(buf, len, "%s", opts->timed ? "timed" : "closed");
}

static int trace_fit_parse(const struct tenant_field *field,
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

static int trace_fit_format(const struct tenant_field *field,
			    const struct blkload_opts *opts, char *buf,
			    size_t len)
{
	return scnprintf(buf, len, "%s", opts->scale ? "scale" : "wrap");
}

static int random_distribution_parse(const struct tenant_field *field,
				     struct blkload_opts *opts, char *s)
{
	return blkload_parse_shape(s, opts);
}

static int random_distribution_format(const struct tenant_field *field,
				      const struct blkload_opts *opts,
				      char *buf, size_t len)
{
	return blkload_format_shape(buf, len, opts);
}

static int ioprio_parse(const struct tenant_field *field,
			struct blkload_opts *opts, char *s)
{
	return blkload_parse_ioprio(s, &opts->ioprio);
}

static int ioprio_format(const struct tenant_field *field,
			 const struct blkload_opts *opts, char *buf,
			 size_t len)
{
	return blkload_format_ioprio(buf, len, opts->ioprio);
}

#define FIELD_NUMBER(_option, _min, _max)				\
	.parse = number_parse, .format = number_format,			\
	.offset = offsetof(struct blkload_opts, _option),		\
	.min = _min, .max = _max

#define FIELD_BYTES(_option)						\
	.parse = bytes_parse, .format = number_format,			\
	.offset = offsetof(struct blkload_opts, _option),		\
	.max = S64_MAX

#define FIELD_TIME(_option, _unit, _min, _max)				\
	.parse = time_parse, .format = time_format,			\
	.offset = offsetof(struct blkload_opts, _option),		\
	.min = _min, .max = _max, .unit = _unit

#define FIELD_PATH(_option)						\
	.parse = path_parse, .format = path_format,			\
	.offset = offsetof(struct blkload_opts, _option)

static const struct tenant_field device_field = {
	FIELD_PATH(device)
};
TENANT_ATTR(device);

static const struct tenant_field cgroup_field = {
	FIELD_PATH(cgroup)
};
TENANT_ATTR(cgroup);

static const struct tenant_field rw_field = {
	.parse = rw_parse, .format = rw_format
};
TENANT_ATTR(rw);

static const struct tenant_field rwmixread_field = {
	FIELD_NUMBER(rwmixread, 0, 100)
};
TENANT_ATTR(rwmixread);

static const struct tenant_field bs_field = {
	.parse = bs_parse, .format = number_format,
	.offset = offsetof(struct blkload_opts, bs)
};
TENANT_ATTR(bs);

static const struct tenant_field bsrange_field = {
	.parse = bsrange_parse, .format = bsrange_format
};
TENANT_ATTR(bsrange);

static const struct tenant_field bssplit_field = {
	.parse = bssplit_parse, .format = bssplit_format
};
TENANT_ATTR(bssplit);

static const struct tenant_field iodepth_field = {
	FIELD_NUMBER(iodepth, 1, MAX_IODEPTH)
};
TENANT_ATTR(iodepth);

static const struct tenant_field numjobs_field = {
	FIELD_NUMBER(numjobs, 1, BLKLOAD_MAX_JOBS)
};
TENANT_ATTR(numjobs);

static const struct tenant_field rate_iops_field = {
	FIELD_NUMBER(rate_iops, 0, MAX_RATE)
};
TENANT_ATTR(rate_iops);

static const struct tenant_field rate_process_field = {
	.parse = rate_process_parse, .format = rate_process_format
};
TENANT_ATTR(rate_process);

static const struct tenant_field thinktime_field = {
	FIELD_TIME(thinktime, NSEC_PER_USEC, 0, BLKLOAD_MAX_NS)
};
TENANT_ATTR(thinktime);

static const struct tenant_field thinktime_blocks_field = {
	FIELD_NUMBER(thinktime_blocks, 1, U64_MAX)
};
TENANT_ATTR(thinktime_blocks);

static const struct tenant_field on_field = {
	FIELD_TIME(on, NSEC_PER_SEC, 0, BLKLOAD_MAX_NS)
};
TENANT_ATTR(on);

static const struct tenant_field off_field = {
	FIELD_TIME(off, NSEC_PER_SEC, 0, BLKLOAD_MAX_NS)
};
TENANT_ATTR(off);

static const struct tenant_field cputime_field = {
	FIELD_TIME(cputime, 1, 0, MAX_CPUTIME_NS)
};
TENANT_ATTR(cputime);

static const struct tenant_field cpus_field = {
	FIELD_NUMBER(cpus, 0, BLKLOAD_MAX_JOBS)
};
TENANT_ATTR(cpus);

static const struct tenant_field startdelay_field = {
	FIELD_TIME(startdelay, NSEC_PER_SEC, 0, BLKLOAD_MAX_NS)
};
TENANT_ATTR(startdelay);

static const struct tenant_field ramp_time_field = {
	FIELD_TIME(ramp_time, NSEC_PER_SEC, 0, BLKLOAD_MAX_NS)
};
TENANT_ATTR(ramp_time);

static const struct tenant_field runtime_field = {
	FIELD_TIME(runtime, NSEC_PER_SEC, 0, BLKLOAD_MAX_NS)
};
TENANT_ATTR(runtime);

static const struct tenant_field number_ios_field = {
	FIELD_NUMBER(number_ios, 0, U64_MAX)
};
TENANT_ATTR(number_ios);

static const struct tenant_field offset_field = {
	FIELD_BYTES(offset)
};
TENANT_ATTR(offset);

static const struct tenant_field size_field = {
	FIELD_BYTES(size)
};
TENANT_ATTR(size);

static const struct tenant_field random_distribution_field = {
	.parse = random_distribution_parse, .format = random_distribution_format
};
TENANT_ATTR(random_distribution);

static const struct tenant_field fsync_field = {
	FIELD_NUMBER(fsync, 0, U64_MAX)
};
TENANT_ATTR(fsync);

static const struct tenant_field fua_field = {
	FIELD_NUMBER(fua, 0, 1)
};
TENANT_ATTR(fua);

static const struct tenant_field meta_field = {
	FIELD_NUMBER(meta, 0, 1)
};
TENANT_ATTR(meta);

static const struct tenant_field background_field = {
	FIELD_NUMBER(background, 0, 1)
};
TENANT_ATTR(background);

static const struct tenant_field relay_field = {
	FIELD_NUMBER(relay, 0, 1)
};
TENANT_ATTR(relay);

static const struct tenant_field verify_field = {
	FIELD_NUMBER(verify, 0, 1)
};
TENANT_ATTR(verify);

static const struct tenant_field randseed_field = {
	FIELD_NUMBER(randseed, 0, U64_MAX)
};
TENANT_ATTR(randseed);

static const struct tenant_field ioprio_field = {
	.parse = ioprio_parse, .format = ioprio_format
};
TENANT_ATTR(ioprio);

static const struct tenant_field trace_field = {
	FIELD_PATH(trace)
};
TENANT_ATTR(trace);

static const struct tenant_field replay_field = {
	.parse = replay_parse, .format = replay_format
};
TENANT_ATTR(replay);

static const struct tenant_field speed_field = {
	FIELD_NUMBER(speed, MIN_SPEED, MAX_SPEED)
};
TENANT_ATTR(speed);

static const struct tenant_field trace_fit_field = {
	.parse = trace_fit_parse, .format = trace_fit_format
};
TENANT_ATTR(trace_fit);

static const struct tenant_field trace_loop_field = {
	FIELD_NUMBER(trace_loop, 0, 1)
};
TENANT_ATTR(trace_loop);

static const struct tenant_field window_field = {
	.parse = window_parse, .format = time_format,
	.offset = offsetof(struct blkload_opts, window),
	.min = MIN_WINDOW_NS, .max = BLKLOAD_MAX_NS, .unit = NSEC_PER_MSEC
};
TENANT_ATTR(window);

static struct configfs_attribute *tenant_attrs[] = {
	&tenant_attr_device,
	&tenant_attr_cgroup,
	&tenant_attr_rw,
	&tenant_attr_rwmixread,
	&tenant_attr_bs,
	&tenant_attr_bsrange,
	&tenant_attr_bssplit,
	&tenant_attr_iodepth,
	&tenant_attr_numjobs,
	&tenant_attr_rate_iops,
	&tenant_attr_rate_process,
	&tenant_attr_thinktime,
	&tenant_attr_thinktime_blocks,
	&tenant_attr_on,
	&tenant_attr_off,
	&tenant_attr_cputime,
	&tenant_attr_cpus,
	&tenant_attr_startdelay,
	&tenant_attr_ramp_time,
	&tenant_attr_runtime,
	&tenant_attr_number_ios,
	&tenant_attr_offset,
	&tenant_attr_size,
	&tenant_attr_random_distribution,
	&tenant_attr_fsync,
	&tenant_attr_fua,
	&tenant_attr_meta,
	&tenant_attr_background,
	&tenant_attr_relay,
	&tenant_attr_verify,
	&tenant_attr_randseed,
	&tenant_attr_ioprio,
	&tenant_attr_trace,
	&tenant_attr_replay,
	&tenant_attr_speed,
	&tenant_attr_trace_fit,
	&tenant_attr_trace_loop,
	&tenant_attr_window,
	NULL,
};

/* Free a tenant: the directory and the last open attribute are gone. */
static void tenant_release(struct config_item *item)
{
	kfree(to_tenant(item));
}

static struct configfs_item_operations tenant_item_ops = {
	.release	= tenant_release,
};

const struct config_item_type blkload_tenant_type = {
	.ct_owner	= THIS_MODULE,
	.ct_item_ops	= &tenant_item_ops,
	.ct_attrs	= tenant_attrs,
};
