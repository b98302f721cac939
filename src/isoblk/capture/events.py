# SPDX-License-Identifier: GPL-2.0-only
"""The events of a capture, and the BPF program that writes them.

The program runs at the tracepoint block_bio_queue: a bio has been submitted, and is not yet split,
merged or seen by the scheduler. Its cgroup is the bio's own, which the kernel charges. Offsets of
members are taken from the kernel's type information.
"""

import struct
from dataclasses import dataclass

import numpy as np

from isoblk.capture import bpf
from isoblk.capture.bpf import Helper, Label, Op
from isoblk.capture.btf import BtfError, Types

TRACEPOINT = "block_bio_queue"
TYPEDEFS = (f"btf_trace_{TRACEPOINT}",)  # type of the tracepoint's arguments
STRUCTS = (
    *("bio", "bvec_iter", "block_device", "gendisk"),
    *("blkcg_gq", "blkcg", "cgroup_subsys_state", "cgroup", "kernfs_node"),
)
ENUMS = ("req_op", "req_flag_bits")

# Layout in the ring buffer, after the kernel's header of 8 bytes. 64 bytes in total divide the
# ring, so no event wraps around its end.
EVENT = np.dtype(
    [
        ("length", "<u4"),  # length after the header; BUSY while it is being written
        ("pages", "<u4"),
        ("t", "<u8"),  # CLOCK_MONOTONIC, ns
        ("sector", "<u8"),  # relative to the whole disk
        ("cgroup", "<u8"),  # the kernel's id
        ("bytes", "<u4"),
        ("opf", "<u4"),  # operation and flags, in this kernel's numbers
        ("tgid", "<u4"),
        ("zero", "<u4"),
        ("comm", "S16"),
    ]
)
HEADER_BYTES = 8
EVENT_BYTES = EVENT.itemsize - HEADER_BYTES
BUSY = 1 << 31
_NO_WAKEUP = 1

_KEY = -4  # on the stack, relative to r10
_EVERY_SECTOR = (1 << 64) - 1


@dataclass(frozen=True)
class Range:
    """Sectors first..end-1 of the disk major:minor to capture."""

    major: int
    minor: int
    first: int = 0
    end: int = _EVERY_SECTOR


def program(types: Types, what: Range, ring: int, lost: int) -> bytes:
    """Return the program's code.

    Args:
        types: the kernel's type information.
        what: the sectors to capture.
        ring, lost: descriptors of the maps: a ring buffer for events, and an array of one u64 that
            counts events for which the ring had no room.

    Raises:
        BtfError: the kernel's structures are not as expected.
    """
    bio = {name: types.offset("bio", name) for name in ("bi_opf", "bi_bdev", "bi_iter", "bi_blkg")}
    sector = bio["bi_iter"] + types.offset("bvec_iter", "bi_sector")
    size = bio["bi_iter"] + types.offset("bvec_iter", "bi_size")
    to_id = (
        bio["bi_blkg"],
        types.offset("blkcg_gq", "blkcg"),
        types.offset("blkcg", "css") + types.offset("cgroup_subsys_state", "cgroup"),
        types.offset("cgroup", "kn"),
        types.offset("kernfs_node", "id"),
    )
    # r6: the bio. r8: the event.
    r0, r1, r2, r3, r6, r8, r10 = 0, 1, 2, 3, 6, 8, 10
    code: list[Op | Label] = [
        bpf.load(r6, r1, 0),
        # Is the bio for the device?
        bpf.load(r1, r6, bio["bi_bdev"]),
        bpf.load(r1, r1, types.offset("block_device", "bd_disk")),
        bpf.load(r2, r1, types.offset("gendisk", "major"), 4),
        bpf.jump_unlike(r2, what.major, "end"),
        bpf.load(r2, r1, types.offset("gendisk", "first_minor"), 4),
        bpf.jump_unlike(r2, what.minor, "end"),
    ]
    if (what.first, what.end) != (0, _EVERY_SECTOR):
        code += [
            # A flush concerns the whole disk, and has no sector.
            bpf.load(r1, r6, size, 4),
            bpf.jump_equal(r1, 0, "inside"),
            bpf.load(r1, r6, sector),
            bpf.constant(r2, what.end),
            bpf.jump_at_least(r1, r2, "end"),
            bpf.constant(r2, what.first),
            bpf.jump_at_least(r1, r2, "inside"),
            bpf.constant(r0, 0),
            bpf.leave(),
            Label("inside"),
        ]
    code += [
        bpf.map_address(r1, ring),
        bpf.constant(r2, EVENT_BYTES),
        bpf.constant(r3, 0),
        bpf.call(Helper.RINGBUF_RESERVE),
        bpf.jump_equal(r0, 0, "full"),
        bpf.move(r8, r0),
        bpf.call(Helper.KTIME_GET_NS),
        bpf.store(r8, _place("t"), r0),
        bpf.load(r1, r6, sector),
        bpf.store(r8, _place("sector"), r1),
        bpf.load(r1, r6, size, 4),
        bpf.store(r8, _place("bytes"), r1, 4),
        bpf.load(r1, r6, bio["bi_opf"], 4),
        bpf.store(r8, _place("opf"), r1, 4),
        # Without a cgroup the pointer is 0, and every read through it and the id are 0.
        *(bpf.load(r6, r6, offset) for offset in to_id),
    ]
    code += [
        bpf.store(r8, _place("cgroup"), r6),
        bpf.call(Helper.GET_CURRENT_PID_TGID),
        bpf.shift_right(r0, 32),
        bpf.store(r8, _place("tgid"), r0, 4),
        bpf.store_constant(r8, _place("zero"), 0, 4),
        bpf.move(r1, r8),
        bpf.add(r1, _place("comm")),
        bpf.constant(r2, 16),
        bpf.call(Helper.GET_CURRENT_COMM),
        bpf.move(r1, r8),
        bpf.constant(r2, _NO_WAKEUP),
        bpf.call(Helper.RINGBUF_SUBMIT),
        Label("end"),
        bpf.constant(r0, 0),
        bpf.leave(),
        Label("full"),
        bpf.store_constant(r10, _KEY, 0, 4),
        bpf.map_address(r1, lost),
        bpf.move(r2, r10),
        bpf.add(r2, _KEY),
        bpf.call(Helper.MAP_LOOKUP),
        bpf.jump_equal(r0, 0, "end"),
        bpf.constant(r1, 1),
        bpf.atomic_add(r0, 0, r1),
        bpf.constant(r0, 0),
        bpf.leave(),
    ]
    try:
        return bpf.assemble(code)
    except struct.error:
        raise BtfError("the kernel's structures are too large") from None


def _place(field: str) -> int:
    fields = EVENT.fields
    assert fields is not None
    return int(fields[field][1]) - HEADER_BYTES
