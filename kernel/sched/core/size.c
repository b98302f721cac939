// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much the device has at once.
 */
#include "core/charge.h"
#include "core/size.h"
#include "muldiv.h"

/* The window to begin with: so much work, or so many requests. */
#define FIRST_WORK		256ULL
#define FIRST_REQUESTS		4

/* A kind of requests that has the device for itself may want more at once than all did. */
#define ALONE_WINDOWS		4

/* Of the window, what is on top of it and may be free before a completion has it used. */
#define GATHER_FRACTION		8

/**
 * iso_work_in() - how much the device does in a span of time, units
 * @d: disk
 * @ns: length
 */
u64 iso_work_in(const struct iso_disk *d, u64 ns)
{
	return mul_div(READ_ONCE(d->device.rate), ns, NSEC_PER_SEC);
}

/**
 * iso_set_window() - give the device as much as the user wrote, or has been found
 * @d: its disk lock is held
 *
 * Less if somebody's latency asks for it. What is found has on top what may gather.
 */
void iso_set_window(struct iso_disk *d)
{
	s64 wanted = d->tunables.window;
	u64 size = wanted > 0 ? wanted * d->tariff.unit : S32_MAX;
	u64 gather = 0;

	/* What answers at once has no queue to be kept short. */
	if (!wanted && !d->device.no_queue) {
		size = window_now(&d->window) *
			(iso_is_alone(d) ? ALONE_WINDOWS : 1) +
			d->device.beside +
			iso_work_in(d, READ_ONCE(d->late.ns));
		gather = d->rotational ? 0 : size / GATHER_FRACTION;
		size += gather;
	}
	WRITE_ONCE(d->size.free, size);
	if (unlikely(d->squeeze.window)) {
		size = min(size, d->squeeze.window);
		gather = 0;
	}
	WRITE_ONCE(d->size.gather, gather);
	iso_room_resize(&d->room, size);
}

/**
 * iso_measure_restart() - forget how much the device may have at once
 * @d: its disk lock is held
 */
void iso_measure_restart(struct iso_disk *d)
{
	lockdep_assert_held(&d->disk.lock);

	window_init(&d->window, max(FIRST_WORK * d->tariff.unit,
				    FIRST_REQUESTS * d->device.mean_work));
	iso_set_window(d);
}

/**
 * iso_first_request() - the disk is used for the first time
 * @d: disk
 * @work: of a request
 */
void iso_first_request(struct iso_disk *d, u64 work)
{
	unsigned long flags;

	spin_lock_irqsave(&d->disk.lock, flags);
	if (!d->room.size) {
		WRITE_ONCE(d->device.mean_work, work);
		WRITE_ONCE(d->clock.ease,
			   ISO_LEAST_REQUESTS * work << VTIME_SHIFT);
		WRITE_ONCE(d->clock.slack, d->clock.ease);
		WRITE_ONCE(d->clock.stream_slack, d->clock.ease);
		iso_measure_restart(d);
	}
	spin_unlock_irqrestore(&d->disk.lock, flags);
}
