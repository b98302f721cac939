/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulated devices for the tests of isoblk's loops. Their rate is a known function of the cost in
 * flight, with noise.
 */
#ifndef ISOBLK_TESTS_ISOBLK_DEVICES_H
#define ISOBLK_TESTS_ISOBLK_DEVICES_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/prandom.h>

/* Largest rate of a device, cost per second: a true model gives 1 s per second. */
#define DEVICE_RATE	1000000000ULL

/* Unit of noise, and of relative rates. */
#define DEVICE_ONE	1000

/**
 * struct device - a simulated device
 */
struct device {
	struct rnd_state rnd;
	unsigned int noise;	/* standard deviation of a span's rate, permille */
	u64 knee;		/* cost in flight from which on the rate is the largest */
	u64 (*get_rate)(const struct device *dev, u64 in_flight); /* rate without noise */
};

/* The rate is proportional to the cost in flight, up to the knee. */
static inline u64 device_get_knee_rate(const struct device *dev, u64 in_flight)
{
	return div64_u64(DEVICE_RATE * min(in_flight, dev->knee), dev->knee);
}

/* @rate with noise: the sum of twelve uniform deviates has a variance of twelve. */
static inline u64 device_add_noise(struct device *dev, u64 rate)
{
	const u32 one = 1 << 16;
	s64 sum = 0, part;
	unsigned int i;

	for (i = 0; i < 12; i++)
		sum += prandom_u32_state(&dev->rnd) % one;
	sum -= 12 / 2 * one;
	/* Of a part of DEVICE_ONE, 1 << 16 times. */
	part = DEVICE_ONE * (s64)one + sum * dev->noise;
	if (part < 0)
		part = 0;
	return div_u64(rate * (part >> 6), DEVICE_ONE) >> 10;
}

static inline u64 device_get_rate(struct device *dev, u64 in_flight)
{
	return device_add_noise(dev, dev->get_rate(dev, in_flight));
}

static inline struct device device_make(u64 knee, unsigned int noise, u64 seed)
{
	struct device dev = {
		.noise = noise,
		.knee = knee,
		.get_rate = device_get_knee_rate,
	};

	prandom_seed_state(&dev.rnd, seed);
	return dev;
}

#endif /* ISOBLK_TESTS_ISOBLK_DEVICES_H */
