/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The generator of host.c: splitmix64 (Steele, Lea, Flood: "Fast splittable
 * pseudorandom number generators", OOPSLA 2014).
 *
 * Declarations only: the key of a library that was built does not hold them.
 */
#ifndef ISOBLK_UML_SPLITMIX_H
#define ISOBLK_UML_SPLITMIX_H

#include <stdint.h>

/* The next number of the stream that has this state. */
uint64_t isoblk_next(uint64_t *state);

/* A number whose bits all depend on all bits of @z. */
uint64_t isoblk_mix(uint64_t z);

#endif /* ISOBLK_UML_SPLITMIX_H */
