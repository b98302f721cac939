/* SPDX-License-Identifier: GPL-2.0-only */
/* A product over a divisor, right for factors of any size. */
#ifndef ISOBLK_MULDIV_H
#define ISOBLK_MULDIV_H

#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>

/**
 * mul_div() - @a * @b / @div, or U64_MAX if it is larger
 * @a: factor
 * @b: factor
 * @div: not 0
 *
 * mul_u64_u64_div_u64() may be one instruction, which raises an exception if the quotient has more
 * than 64 bits. That of 6.12 also divides by the low half of the product if the compiler knows that
 * @a and @div are equal: both are in one register.
 */
static inline u64 mul_div(u64 a, u64 b, u64 div)
{
	if (unlikely(mul_u64_u64_shr(a, b, 64) >= div))
		return U64_MAX;
	OPTIMIZER_HIDE_VAR(div);
	return mul_u64_u64_div_u64(a, b, div);
}

#endif /* ISOBLK_MULDIV_H */
