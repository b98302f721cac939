// SPDX-License-Identifier: GPL-2.0-only
/*
 * A cloud volume: limits in front of a disk, and a network behind it.
 *
 * A bucket holds the tokens of burst_ns at its limit, and is refilled at that
 * limit. A command takes one token of the bucket of requests for each 256 KiB
 * or part of it (a trim one, a flush none), and its length from the bucket of
 * bytes. Commands are admitted in order of arrival, each when neither bucket is
 * in debt. A command may put a bucket into debt, so no command is too large. A
 * command that continues at the end of the last admitted command, and arrived
 * while that waited, is merged with it, up to 256 KiB: it takes only bytes.
 *
 * A bucket is stored as the time at which it is full: a link that carries
 * tokens, and becomes free then (link.h keeps remainders, so the limit is
 * exact). The bucket is in debt if that time is more than burst_ns away.
 *
 * The network takes net_ns on average. Of that, net_spread per mille are an
 * exponential tail above a fixed rest, for a quiet network has a minimum and
 * queues. The tail depends on the seed and the command's number.
 *
 * Context: the device's lock is held. The model that the volume is part of
 * calls everything, with the times of its events.
 */
#include <linux/int_log.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "link.h"
#include "model.h"
#include "random.h"
#include "volume.h"

/* Fraction bits of intlog2(). */
#define LOG_SHIFT	24
/* ln 2, in 2^-32 */
#define LN_2		2977044472ULL

/* Return whether the volume has a limit. */
static bool limited(const struct vdisk_volume *volume)
{
	return volume->p.iops || volume->p.bps;
}

/* Return whether a command merges with the last admitted one. */
static bool merges(const struct vdisk_volume *volume,
		   const struct vdisk_cmd *cmd)
{
	return cmd->bytes && cmd->op == volume->op && cmd->op != VDISK_TRIM &&
	       cmd->pos == volume->end &&
	       cmd->fixed.at_ns < volume->went_ns &&
	       cmd->bytes + (u64)volume->merged <= VDISK_VOLUME_IO;
}

/* Return the tokens that a command takes from the bucket of requests. */
static u32 ios_of(const struct vdisk_volume *volume,
		  const struct vdisk_cmd *cmd)
{
	if (cmd->op == VDISK_FLUSH || merges(volume, cmd))
		return 0;
	if (cmd->op == VDISK_TRIM)
		return 1;
	return DIV_ROUND_UP(cmd->bytes, VDISK_VOLUME_IO);
}

/* Return the tokens that a command takes from the bucket of bytes. */
static u32 bytes_of_data(const struct vdisk_cmd *cmd)
{
	return cmd->op == VDISK_TRIM ? 0 : cmd->bytes;
}

/* Return the first time from @at on at which a bucket is not in debt. */
static u64 out_of_debt(const struct vdisk_volume *volume,
		       const struct vdisk_link *bucket, u64 at)
{
	u64 burst = volume->p.burst_ns;

	return bucket->free_ns > at + burst ? bucket->free_ns - burst : at;
}

/* Return when a command, the first in order, is admitted. */
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

/* Admit a command: take its tokens. */
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
 * vdisk_volume_init - initialize a volume with full buckets
 * @volume: the volume
 * @params: its parameters
 */
void vdisk_volume_init(struct vdisk_volume *volume,
		       const struct vdisk_params *params)
{
	*volume = (struct vdisk_volume){
		.p = params->volume,
		/* Not the jitter's seed: it uses the same positions. */
		.seed = vdisk_random(params->seed, 0),
		.due_ns = VDISK_NEVER,
		.op = VDISK_FLUSH,
	};
	vdisk_list_init(&volume->held);
}

/**
 * vdisk_volume_change - change the parameters
 * @volume: the volume
 * @params: parameters, for commands that wait or arrive later
 * @now: time, ns; all events up to it have been processed
 */
void vdisk_volume_change(struct vdisk_volume *volume,
			 const struct vdisk_params *params, u64 now)
{
	volume->p = params->volume;
	set_due(volume);
	/* A higher limit holds from now on, not earlier. */
	if (volume->held.head)
		volume->due_ns = max(volume->due_ns, now);
}

/**
 * vdisk_volume_enter - admit a command that arrives, or have it wait
 * @volume: the volume
 * @cmd: the command
 * @now: time
 *
 * Return: whether it is admitted. If not, vdisk_volume_take() returns it at
 * due_ns or later.
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
 * vdisk_volume_take - admit the first command that waits
 * @volume: the volume, where a command waits
 *
 * Return: the command, with its time of arrival set to due_ns.
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
 * vdisk_volume_net_ns - return a command's time in the network
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
