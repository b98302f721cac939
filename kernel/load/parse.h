/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text forms of a tenant's options. Pure: no state, no locks.
 */
#ifndef BLKLOAD_PARSE_H
#define BLKLOAD_PARSE_H

#include <linux/types.h>

#include "opts.h"

void blkload_opts_init(struct blkload_opts *opts);

int blkload_parse_number(const char *s, u64 min, u64 max, u64 *value);
int blkload_parse_bytes(const char *s, u64 min, u64 max, u64 *bytes);
int blkload_parse_time(const char *s, u64 unit, u64 min, u64 max, u64 *ns);
int blkload_parse_path(const char *s, char *path);
int blkload_parse_rw(const char *s, enum blkload_rw *rw);
int blkload_parse_bs(const char *s, struct blkload_opts *opts);
int blkload_parse_range(const char *s, struct blkload_opts *opts);
int blkload_parse_split(const char *s, struct blkload_opts *opts);
int blkload_parse_shape(const char *s, struct blkload_opts *opts);
int blkload_parse_ioprio(const char *s, u16 *ioprio);

int blkload_format_time(char *buf, size_t len, u64 ns, u64 unit);
const char *blkload_rw_name(enum blkload_rw rw);
int blkload_format_split(char *buf, size_t len,
			 const struct blkload_opts *opts);
int blkload_format_shape(char *buf, size_t len,
			 const struct blkload_opts *opts);
int blkload_format_ioprio(char *buf, size_t len, u16 ioprio);

u32 blkload_get_bs_min(const struct blkload_opts *opts);
u32 blkload_get_bs_max(const struct blkload_opts *opts);

#endif /* BLKLOAD_PARSE_H */
