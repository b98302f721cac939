/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernel/sched/predict.c takes from the kernel's header of this name. */
#ifndef SHIM_MATH64_H
#define SHIM_MATH64_H

#include <linux/types.h>

static inline u64 mul_u64_u32_shr(u64 a, u32 mul, unsigned int shift)
{
	return (unsigned __int128)a * mul >> shift;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

#endif
