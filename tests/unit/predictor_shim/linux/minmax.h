/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernel/sched/predict.c takes from the kernel's header of this name. */
#ifndef SHIM_MINMAX_H
#define SHIM_MINMAX_H

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define clamp(value, low, high) min(max(value, low), high)

#endif
