/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random numbers that are a function of a seed and a position.
 *
 * The sequence has no state that calls must advance in order: the number of
 * command 7 is the same whether its service starts early or late, so a late
 * timer does not change the disk's behaviour.
 *
 * The function is the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA 2014) over a counter.
 */
#ifndef ISOBLK_VDISK_RANDOM_H
#define ISOBLK_VDISK_RANDOM_H

#include <linux/math64.h>
#include <linux/types.h>

/* Per mille: service times between 0 and twice the average. */
#define VDISK_JITTER_MAX	1000

/**
 * vdisk_random - return number @n of a sequence
 * @seed: seed of the sequence
 * @n: position in it
 *
 * For several sequences, use numbers of one sequence as seeds of the others.
 *
 * Return: 64 uniform bits.
 */
static inline u64 vdisk_random(u64 seed, u64 n)
{
	u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/**
 * vdisk_random_below - return number @n of a sequence, in a range
 * @seed: seed of the sequence
 * @n: position in it
 * @below: exclusive bound of the numbers, not 0
 *
 * Return: uniform in 0 .. @below - 1, up to 2^-64.
 */
static inline u64 vdisk_random_below(u64 seed, u64 n, u64 below)
{
	return mul_u64_u64_shr(vdisk_random(seed, n), below, 64);
}

/**
 * vdisk_jitter - vary a service time
 * @ns: average, ns, below 2^50
 * @per_mille: maximum deviation, per mille of @ns; 0 = it is exactly @ns
 * @seed: seed of the sequence
 * @n: position in it
 *
 * Return: uniform in @ns -+ @per_mille.
 */
static inline u64 vdisk_jitter(u64 ns, u64 per_mille, u64 seed, u64 n)
{
	u64 most;

	if (!per_mille)
		return ns;
	most = div_u64(ns * per_mille, 1000);
	return ns - most + vdisk_random_below(seed, n, 2 * most + 1);
}

#endif /* ISOBLK_VDISK_RANDOM_H */
