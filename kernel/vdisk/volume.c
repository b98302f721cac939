// SPDX-License-Identifier: GPL-2.0-only
/*
 * A cloud volume: limits in front of a disk, and a network behind it.
 *
 * A bucket holds the tokens of burst_ns at its limit, and is filled at that
 * limit. A command takes one of the bucket of requests for each 256 KiB that it
 * has begun (a trim one, a flush none), and its length of that of bytes. In the
 * order of arrival, it goes on once neither bucket is in debt. It may leave
 * one, and so is never too large for a bucket. A command that goes on
 * where the one before it ends, and came while that had to wait, is merged with
 * it, up to 256 KiB: it takes bytes only.
 *
 * A bucket is the time at which it is full: a link that carries tokens, and is
 * free then (link.h keeps what divisions leave, so the limit is exact). It is
 * in debt if that time is more than burst_ns away.
 *
 * The network takes net_ns on average. Of that, net_spread per mille are an
 * exponential tail above a fixed rest, as a quiet network has a floor and
 * queues. The tail is a function of the seed and the command's number.
 *
 * Everything is called with the device's lock held, by the model that the
 * volume is part of, in the time of the model's events.
 */
#include <linux/int_log.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "link.h"
#include "model.h"
#include "random.h"
#include "volume.h"

/* intlog2() has so many fraction bits. */
#define LOG_SHIFT	24
/* ln 2, in 2^-32 */
#define LN_2		2977044472ULL

/* Return whether anything can make a command wait. */
static bool limited(const struct vdisk_volume *volume)
{
	return volume->p.iops || volume->p.bps;
}

/* Return whether a command is part of the one that went on before it. */
static bool merges(const struct vdisk_volume *volume,
		   const struct vdisk_cmd *cmd)
{
	return cmd->bytes && cmd->op == volume->op && cmd->op != VDISK_TRIM &&
	       cmd->pos == volume->end &&
	       cmd->fixed.at_ns < volume->went_ns &&
	       cmd->bytes + (u64)volume->merged <= VDISK_VOLUME_IO;
}

/* Return the requests that a command is, in front of its bucket. */
static u32 ios_of(const struct vdisk_volume *volume,
		  const struct vdisk_cmd *cmd)
{
	if (cmd->op == VDISK_FLUSH || merges(volume, cmd))
		return 0;
	if (cmd->op == VDISK_TRIM)
		return 1;
	return DIV_ROUND_UP(cmd->bytes, VDISK_VOLUME_IO);
}

/* Return the bytes that a command takes. */
static u32 bytes_of_data(const struct vdisk_cmd *cmd)
{
	return cmd->op == VDISK_TRIM ? 0 : cmd->bytes;
}

/* Return when a bucket is not in debt, from a time on. */
static u64 out_of_debt(const struct vdisk_volume *volume,
		       const struct vdisk_link *bucket, u64 at)
{
	u64 burst = volume->p.burst_ns;

	return bucket->free_ns > at + burst ? bucket->free_ns - burst : at;
}

/* Return when a command, which is the first, may go on. */
static u64 due(const struct vdisk_volume *volume, const struct vdisk_cmd *cmd)
{
	u64 at = max(cmd->fixed.at_ns, volume->went_ns);
	u64 ns = at;

	if (volume->p.iops && ios_of(volume, cmd))
		ns = max(ns, out_of_debt(volume, &volume->ios, at));
	if (volume->p.bps && bytes_of_data(cmd))
		ns = max(ns, out_of_debt(volume, &volume->bytes, at));
	return ns;
}

/* A command goes on: take its tokens. */
static void go_on(struct vdisk_volume *volume, const struct vdisk_cmd *cmd,
		  u64 at)
{
	u32 ios = ios_of(volume, cmd);
	u32 bytes = bytes_of_data(cmd);

	if (volume->p.iops && ios)
		vdisk_link_carry(&volume->ios, volume->p.iops, at, ios);
	if (volume->p.bps && bytes)
		vdisk_link_carry(&volume->bytes, volume->p.bps, at, bytes);
	volume->merged = ios ? cmd->bytes : volume->merged + cmd->bytes;
	volume->op = cmd->op;
	volume->end = cmd->pos + cmd->bytes;
	volume->went_ns = at;
}

static void set_due(struct vdisk_volume *volume)
{
	volume->due_ns = volume->held.head ? due(volume, volume->held.head) :
					     VDISK_NEVER;
}

/**
 * vdisk_volume_init - make a volume with full buckets
 * @volume: the volume
 * @params: its parameters
 */
void vdisk_volume_init(struct vdisk_volume *volume,
		       const struct vdisk_params *params)
{
	*volume = (struct vdisk_volume){
		.p = params->volume,
		/* Not that of the jitter, whose numbers are the same. */
		.seed = vdisk_random(params->seed, 0),
		.due_ns = VDISK_NEVER,
		.op = VDISK_FLUSH,
	};
	vdisk_list_init(&volume->held);
}

/**
 * vdisk_volume_change - take other parameters
 * @volume: the volume
 * @params: parameters, for what is held and what comes
 * @now: time, up to which all that was due has been done
 */
void vdisk_volume_change(struct vdisk_volume *volume,
			 const struct vdisk_params *params, u64 now)
{
	volume->p = params->volume;
	set_due(volume);
	/* A higher limit is for the time from now on. */
	if (volume->held.head)
		volume->due_ns = max(volume->due_ns, now);
}

/**
 * vdisk_volume_enter - a command arrives
 * @volume: the volume
 * @cmd: the command
 * @now: time
 *
 * Return: whether it may go on. If not, vdisk_volume_take() gives it at due_ns
 * or later.
 */
bool vdisk_volume_enter(struct vdisk_volume *volume, struct vdisk_cmd *cmd,
			u64 now)
{
	cmd->fixed.at_ns = now;
	if (!volume->held.head) {
		if (!limited(volume))
			return true;
		if (due(volume, cmd) <= now) {
			go_on(volume, cmd, now);
			return true;
		}
	}
	vdisk_list_add(&volume->held, cmd);
	if (!volume->nr_held++)
		set_due(volume);
	return false;
}

/**
 * vdisk_volume_take - let the first command that was held go on
 * @volume: the volume, which holds one
 *
 * Return: the command, whose time of arrival is that of now: due_ns.
 */
struct vdisk_cmd *vdisk_volume_take(struct vdisk_volume *volume)
{
	struct vdisk_cmd *cmd = vdisk_list_pop(&volume->held);
	u64 at = volume->due_ns;

	volume->nr_held--;
	go_on(volume, cmd, at);
	cmd->fixed.at_ns = at;
	set_due(volume);
	return cmd;
}

/**
 * vdisk_volume_net_ns - how long a command is in the network
 * @volume: the volume
 * @seq: number of the command
 *
 * Return: ns, net_ns on average.
 */
u64 vdisk_volume_net_ns(const struct vdisk_volume *volume, u64 seq)
{
	u64 tail = div_u64(volume->p.net_ns * volume->p.net_spread, 1000);
	u32 dice;
	u64 log;

	if (!tail)
		return volume->p.net_ns;
	/* -ln(dice / 2^32) has an exponential distribution with mean 1. */
	dice = max(vdisk_random(volume->seed, seq) >> 32, 1ULL);
	log = (32ULL << LOG_SHIFT) - intlog2(dice);
	return volume->p.net_ns - tail +
	       mul_u64_u64_shr(tail, log * LN_2, 32 + LOG_SHIFT);
}
