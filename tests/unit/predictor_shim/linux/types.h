/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernel/sched/predict.[ch] take from the kernel's header of this name. */
#ifndef SHIM_TYPES_H
#define SHIM_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef int8_t s8;
typedef uint32_t u32;
typedef uint64_t u64;

#endif
