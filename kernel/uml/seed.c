// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random numbers that repeat, for User Mode Linux.
 *
 * UML fills its entropy pool from the host with the C library's getrandom().
 * Where the kernel rolls dice (hash seeds, the first hints of its tag maps,
 * ASLR), two runs of one experiment would differ. Loaded with LD_PRELOAD, this
 * library answers getrandom() from a generator that starts at $ISOBLK_SEED, a
 * number; without that variable it asks the host as ever. The kernel also mixes
 * the wall clock in: runs repeat only with time-travel-start= on the command line.
 *
 * The generator is splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
 * number generators", OOPSLA 2014): enough to seed the kernel's own ChaCha20.
 * Not for secrets. UML calls from one thread only, so the state has no lock.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t state;
static enum { UNKNOWN, SEEDED, HOST } mode;

static uint64_t next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	unsigned char *out = buf;
	uint64_t word = 0;
	size_t i;

	if (mode == UNKNOWN) {
		const char *seed = getenv("ISOBLK_SEED");

		mode = seed ? SEEDED : HOST;
		if (seed)
			state = strtoull(seed, NULL, 0);
	}
	if (mode == HOST)
		return syscall(SYS_getrandom, buf, len, flags);

	for (i = 0; i < len; i++) {
		if (i % sizeof(word) == 0)
			word = next();
		out[i] = (unsigned char)word;
		word >>= 8;
	}
	return (ssize_t)len;
}
