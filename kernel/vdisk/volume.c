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
#define VOLUME_LOG2_SHIFT	24
/* ln 2, in 2^-32 */
#define VOLUME_LN2		2977044472ULL

/* Return whether the volume has a limit. */
static bool vdisk_volume_has_limit(const struct vdisk_volume *volume)
{
	return volume->params.iops || volume->params.bps;
}

/* Return whether a command merges with the last admitted one. */
static bool vdisk_volume_may_merge(const struct vdisk_volume *volume,
				   const struct vdisk_cmd *cmd)
{
	return cmd->bytes && cmd->op == volume->last_op &&
	       cmd->op != VDISK_TRIM && cmd->pos == volume->end_pos &&
	       cmd->fixed.at_ns < volume->admitted_ns &&
	       cmd->bytes + (u64)volume->merged_bytes <= VDISK_VOLUME_IO_BYTES;
}

/* Return the tokens that a command takes from the bucket of requests. */
static u32 vdisk_volume_count_ios(const struct vdisk_volume *volume,
				  const struct vdisk_cmd *cmd)
{
	if (cmd->op == VDISK_FLUSH || vdisk_volume_may_merge(volume, cmd))
		return 0;
	if (cmd->op == VDISK_TRIM)
		return 1;
	return DIV_ROUND_UP(cmd->bytes, VDISK_VOLUME_IO_BYTES);
}

/* Return the tokens that a command takes from the bucket of bytes. */
static u32 vdisk_volume_count_bytes(const struct vdisk_cmd *cmd)
{
	return cmd->op == VDISK_TRIM ? 0 : cmd->bytes;
}

/* Return the first time from @at on at which a bucket is not in debt. */
static u64 vdisk_volume_debt_end_ns(const struct vdisk_volume *volume,
				    const struct vdisk_link *bucket, u64 at)
{
	u64 burst = volume->params.burst_ns;

	return bucket->free_ns > at + burst ? bucket->free_ns - burst : at;
}

/* Return when a command, the first in order, is admitted. */
static u64 vdisk_volume_admission_ns(const struct vdisk_volume *volume,
				     const struct vdisk_cmd *cmd)
{
	u64 at = max(cmd->fixed.at_ns, volume->admitted_ns);
	u64 ns = at;

	if (volume->params.iops && vdisk_volume_count_ios(volume, cmd))
		ns = max(ns, vdisk_volume_debt_end_ns(volume,
						      &volume->ios_bucket, at));
	if (volume->params.bps && vdisk_volume_count_bytes(cmd))
		ns = max(ns,
			 vdisk_volume_debt_end_ns(volume, &volume->bytes_bucket,
						  at));
	return ns;
}

/* Admit a command: take its tokens. */
static void vdisk_volume_admit(struct vdisk_volume *volume,
			       const struct vdisk_cmd *cmd, u64 at)
{
	u32 ios = vdisk_volume_count_ios(volume, cmd);
	u32 bytes = vdisk_volume_count_bytes(cmd);

	if (volume->params.iops && ios)
		vdisk_link_transfer(&volume->ios_bucket, volume->params.iops,
				    at, ios);
	if (volume->params.bps && bytes)
		vdisk_link_transfer(&volume->bytes_bucket, volume->params.bps,
				    at, bytes);
	volume->merged_bytes = ios ? cmd->bytes :
				     volume->merged_bytes + cmd->bytes;
	volume->last_op = cmd->op;
	volume->end_pos = cmd->pos + cmd->bytes;
	volume->admitted_ns = at;
}

static void vdisk_volume_set_due(struct vdisk_volume *volume)
{
	volume->due_ns = volume->waiting.head ?
			 vdisk_volume_admission_ns(volume, volume->waiting.head) :
			 VDISK_NEVER_NS;
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
		.params = params->volume,
		/* Not the jitter's seed: it uses the same positions. */
		.seed = vdisk_random(params->seed, 0),
		.due_ns = VDISK_NEVER_NS,
		.last_op = VDISK_FLUSH,
	};
	vdisk_list_init(&volume->waiting);
}

/**
 * vdisk_volume_change_params - change the parameters
 * @volume: the volume
 * @params: parameters, for commands that wait or arrive later
 * @now: time, ns; all events up to it have been processed
 */
void vdisk_volume_change_params(struct vdisk_volume *volume,
				const struct vdisk_params *params, u64 now)
{
	volume->params = params->volume;
	vdisk_volume_set_due(volume);
	/* A higher limit holds from now on, not earlier. */
	if (volume->waiting.head)
		volume->due_ns = max(volume->due_ns, now);
}

/**
 * vdisk_volume_submit - admit a command that arrives, or have it wait
 * @volume: the volume
 * @cmd: the command
 * @now: time
 *
 * Return: whether it is admitted. If not, vdisk_volume_pop() returns it at
 * due_ns or later.
 */
bool vdisk_volume_submit(struct vdisk_volume *volume, struct vdisk_cmd *cmd,
			 u64 now)
{
	cmd->fixed.at_ns = now;
	if (!volume->waiting.head) {
		if (!vdisk_volume_has_limit(volume))
			return true;
		if (vdisk_volume_admission_ns(volume, cmd) <= now) {
			vdisk_volume_admit(volume, cmd, now);
			return true;
		}
	}
	vdisk_list_add(&volume->waiting, cmd);
	if (!volume->nr_waiting++)
		vdisk_volume_set_due(volume);
	return false;
}

/**
 * vdisk_volume_pop - admit the first command that waits
 * @volume: the volume, where a command waits
 *
 * Return: the command, with its time of arrival set to due_ns.
 */
struct vdisk_cmd *vdisk_volume_pop(struct vdisk_volume *volume)
{
	struct vdisk_cmd *cmd = vdisk_list_pop(&volume->waiting);
	u64 at = volume->due_ns;

	volume->nr_waiting--;
	vdisk_volume_admit(volume, cmd, at);
	cmd->fixed.at_ns = at;
	vdisk_volume_set_due(volume);
	return cmd;
}

/**
 * vdisk_volume_draw_net_ns - return a command's time in the network
 * @volume: the volume
 * @seq: number of the command
 *
 * Return: ns, net_ns on average.
 */
u64 vdisk_volume_draw_net_ns(const struct vdisk_volume *volume, u64 seq)
{
	u64 tail = div_u64(volume->params.net_ns * volume->params.net_spread,
			   1000);
	u32 dice;
	u64 log;

	if (!tail)
		return volume->params.net_ns;
	/* -ln(dice / 2^32) has an exponential distribution with mean 1. */
	dice = max(vdisk_random(volume->seed, seq) >> 32, 1ULL);
	log = (32ULL << VOLUME_LOG2_SHIFT) - intlog2(dice);
	return volume->params.net_ns - tail +
	       mul_u64_u64_shr(tail, log * VOLUME_LN2, 32 + VOLUME_LOG2_SHIFT);
}
