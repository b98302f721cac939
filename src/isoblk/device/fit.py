# SPDX-License-Identifier: GPL-2.0-only
"""Fit a device of the lab to the measured figures of a drive.

Formulas give a first estimate, in which each figure decides one attribute: the controller's cost of
a request, the number and speed of dies, the time of a program operation, the spare area. Then the
device is run, its attributes are corrected by the differences, and this is repeated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

import msgspec

from isoblk.device.greedy import spare_for, write_amplification
from isoblk.device.measure import Measured
from isoblk.errors import UserError
from isoblk.run import limits
from isoblk.run.spec import DiskModel, FlashModel, VdiskDevice
from isoblk.run.units import parse_size
from isoblk.study.model import ExpectEntry

# A lone request of flash takes less than this; one of a hard disk takes more.
_HARD_DISK_NS = 2_000_000
# Size of the flash: small, so that it is filled quickly. Its blocks are scaled down too, so that a
# die has many and collecting one takes a small part of its time.
_FLASH_SIZE = 8 << 30
_BLOCKS = 256
# A usual size; the lab needs no memory for it.
_DISK_SIZE = 1 << 40
_DIES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# Usual numbers of channels; for the number of dies, one that divides it.
_CHANNELS = (8, 12, 6, 4)
_PLANES = (2, 4, 8, 16)
_LARGE = 64 << 10
# Fraction of a lone read's time in the flash; the rest is in the controller, the buses and the
# host. A usual value, and the centre of the search.
_FLASH_PART = 0.7
_FLASH_PARTS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
# Tolerance within which a figure counts as limited by the controller.
_AT_LIMIT = 0.03
# A controller whose load is below this fraction is not the limit.
_SPARE_TIME = 0.7
# A lower write amplification has no spare area that causes it.
_LEAST_AMPLIFICATION = 1.01
_STEPS = 50  # halvings, to the precision of a float
# Relative difference at which the search ends.
_CLOSE = 0.005

How = Literal["add", "time", "speed", "spare", "seek"]


@dataclass(frozen=True)
class Attribute:
    """An attribute that a figure decides.

    how: "add": a latency, to which the difference is added. "time": inverse to the throughput.
    "speed": proportional to the throughput. "spare": by the cost of garbage collection. "seek": all
    three seek times, by the difference of a request's time.
    """

    part: Literal["", "flash", "disk"]
    name: str
    how: How


@dataclass(frozen=True)
class Fit:
    """The best device, and its measured figures."""

    device: VdiskDevice
    measured: tuple[Measured, ...]


def distance(measured: Sequence[Measured]) -> float:
    """Return the mean square of the logarithms of the ratios of model and source. 0 without
    figures."""
    off = [log(one.value / one.expect.value) ** 2 for one in measured if one.expect.fitted]
    return sum(off) / max(1, len(off))


def refine(
    device: VdiskDevice,
    expect: Sequence[ExpectEntry],
    measure: Callable[[VdiskDevice], Sequence[Measured]],
    rounds: int,
) -> Fit:
    """Measure the device and correct its attributes, at most `rounds` times.

    Args:
        device: the first estimate.
        expect: the figures of the source.
        measure: measures a device, in the order of `expect`.
        rounds: 0 only measures.
    """
    best = now = Fit(device, tuple(measure(device)))
    for _ in range(rounds):
        if distance(best.measured) <= _CLOSE**2:
            break
        turned = _turned(now, attributes(now.device, expect))
        if turned == now.device:
            break
        now = Fit(turned, tuple(measure(turned)))
        if distance(now.measured) < distance(best.measured):
            best = now
    return best


# ---- attributes of figures -----------------------------------------------------------


def _depth(entry: ExpectEntry) -> int:
    return entry.iodepth * entry.numjobs


def _block(entry: ExpectEntry) -> int:
    return parse_size(entry.bs)


def _small(entry: ExpectEntry) -> bool:
    """Return whether the figure counts requests rather than bytes."""
    return entry.metric == "iops" and _block(entry) < _LARGE


def _of(expect: Sequence[ExpectEntry], *modes: str) -> list[ExpectEntry]:
    return [entry for entry in expect if entry.rw in modes]


def _deepest(entries: Sequence[ExpectEntry]) -> ExpectEntry | None:
    """Return the throughput with most requests in flight."""
    rates = [entry for entry in entries if not entry.metric.startswith("lat_")]
    return max(rates, key=_depth, default=None)


def _stream(entries: Sequence[ExpectEntry]) -> ExpectEntry | None:
    """Return the bandwidth with most requests in flight, or the throughput if there is none."""
    return _deepest([entry for entry in entries if not _small(entry)]) or _deepest(entries)


def _lone(entries: Sequence[ExpectEntry]) -> ExpectEntry | None:
    """Return the latency of small requests with one in flight."""
    found = [
        entry
        for entry in entries
        if entry.metric.startswith("lat_") and _depth(entry) == 1 and _block(entry) < _LARGE
    ]
    # Random requests first: sequential ones may be read ahead.
    return min(found, key=lambda entry: not entry.rw.startswith("rand"), default=None)


def attributes(device: VdiskDevice, every: Sequence[ExpectEntry]) -> dict[int, Attribute]:
    """Return the attribute of each figure, by index. Figures that are not fitted, and some others,
    have none."""
    expect = [entry for entry in every if entry.fitted]
    found: list[tuple[ExpectEntry | None, Attribute]]
    if device.model == "disk":
        found = [
            (
                _lone(_of(expect, "randread")) or _deepest(_of(expect, "randread")),
                Attribute("disk", "seek_avg_ns", "seek"),
            ),
            (_stream(_of(expect, "read")), Attribute("disk", "outer_bps", "speed")),
        ]
    elif device.model == "flash":
        found = list(_flash_attributes(device.flash, expect))
    else:
        found = []
    return {
        next(i for i, one in enumerate(every) if one is entry): attribute
        for entry, attribute in reversed(found)
        if entry is not None
    }


def _flash_attributes(
    flash: FlashModel, expect: Sequence[ExpectEntry]
) -> list[tuple[ExpectEntry | None, Attribute]]:
    reads, writes = _deepest(_of(expect, "randread")), _deepest(_of(expect, "randwrite"))

    def limited(entry: ExpectEntry) -> bool:
        """Return whether the controller limits the figure."""
        return abs(entry.value * flash.cmd_ns / 1e9 - 1) < _AT_LIMIT

    found: list[tuple[ExpectEntry | None, Attribute]] = [
        (_lone(_of(expect, "randread", "read")), Attribute("flash", "read_latency_ns", "add")),
        (_lone(_of(expect, "randwrite", "write")), Attribute("flash", "write_latency_ns", "add")),
        (_stream(_of(expect, "read")), Attribute("", "read_bps", "speed")),
    ]
    if reads and _small(reads):
        name = "cmd_ns" if limited(reads) else "read_ns"
        found.append((reads, Attribute("flash", name, "time")))
    if writes and _small(writes):
        if writes.state == "steady":
            found.append((writes, Attribute("flash", "spare", "spare")))
        elif limited(writes):
            found.append((writes, Attribute("flash", "cmd_ns", "time")))
    program = "slc_program_ns" if flash.slc else "program_ns"
    found.append((_stream(_of(expect, "write")), Attribute("flash", program, "time")))
    return found


def _turned(fit: Fit, chosen: dict[int, Attribute]) -> VdiskDevice:
    device = fit.device
    for index, attribute in chosen.items():
        one = fit.measured[index]
        part = getattr(device, attribute.part) if attribute.part else device
        values = _new_values(part, attribute, one)
        if attribute.part:
            part = msgspec.structs.replace(part, **values)
            device = msgspec.structs.replace(device, **{attribute.part: part})
        else:
            device = msgspec.structs.replace(device, **values)
    return device


def _new_values(part: msgspec.Struct, attribute: Attribute, one: Measured) -> dict[str, int]:
    """Return the values of the attribute, and of those coupled to it, that give the figure."""
    old = getattr(part, attribute.name)
    ratio = one.value / one.expect.value
    match attribute.how:
        case "add":
            new = max(0, round(old + one.expect.value - one.value))
        case "time":
            new = max(1, round(old * ratio))
        case "speed":
            new = max(1, round(old / ratio))
        case "spare":
            new = _spare(max(_LEAST_AMPLIFICATION, write_amplification(old / 1000) * ratio))
        case "seek":
            assert isinstance(part, DiskModel)
            mean = 0.2 * part.seek_min_ns + 0.652 * part.seek_avg_ns + 0.148 * part.seek_max_ns
            slower = _each_ns(one.expect, one.expect.value) - _each_ns(one.expect, one.value)
            factor = max(0.05, (mean + slower) / mean)
            names = ("seek_min_ns", "seek_avg_ns", "seek_max_ns")
            return {name: round(getattr(part, name) * factor) for name in names}
    return {attribute.name: new}


def _each_ns(entry: ExpectEntry, value: float) -> float:
    """Return the time of a request, from a latency or a rate."""
    return value if entry.metric.startswith("lat_") else _block(entry) * 1e9 / _bps_of(entry, value)


# ---- first estimate ------------------------------------------------------------------


def estimate(expect: Sequence[ExpectEntry]) -> VdiskDevice:
    """Estimate a device from the figures, by formulas alone.

    Raises:
        UserError: there is no random read, or there are too few figures.
    """
    expect = [entry for entry in expect if entry.fitted]
    if not _of(expect, "randread"):
        raise UserError(
            "no usable job of random reads",
            next="measure rw=randread, bs=4k, iodepth=1 at least",
        )
    lone = _lone(_of(expect, "randread"))
    deepest = _deepest(_of(expect, "randread"))
    if lone:
        alone_ns = lone.value
    else:
        assert deepest is not None  # a random read is a latency or a throughput
        alone_ns = _depth(deepest) * 1e9 / deepest.value / max(1, _depth(deepest) / 4)
    return _disk(expect) if alone_ns >= _HARD_DISK_NS else _flash(expect, alone_ns)


def _disk(expect: Sequence[ExpectEntry]) -> VdiskDevice:
    usual = DiskModel()
    stream = _stream(_of(expect, "read")) or _stream(_of(expect, "write"))
    outer = usual.outer_bps if stream is None else _bps(stream)
    write = _lone(_of(expect, "randwrite"))
    read = _lone(_of(expect, "randread"))
    return VdiskDevice(
        model="disk",
        size=_DISK_SIZE,
        queue_depth=32,
        # Only a cache completes a write before the arm can reach its position.
        write_cache=bool(write and read and write.value < 0.7 * read.value),
        disk=msgspec.structs.replace(usual, outer_bps=round(outer), inner_bps=round(outer / 2)),
    )


def _flash(expect: Sequence[ExpectEntry], alone_ns: float) -> VdiskDevice:
    usual = FlashModel()
    dies, read_ns, cmd_ns = _reading(expect, alone_ns)
    channels = next(one for one in _CHANNELS if dies % one == 0)
    streams = {rw: _stream(_of(expect, rw)) for rw in ("read", "write")}
    fastest = max((_bps(one) for one in streams.values() if one), default=0.0)
    # A channel that is idle half of the time does not limit.
    bus_bps = max(usual.bus_bps, round(2 * fastest / channels))
    pages = [planes * usual.page_size for planes in _PLANES]
    # All planes of a die read in parallel, and sequential reads need their combined bandwidth.
    row = next(
        (row for row in pages if dies * row >= 1.2 * fastest * (read_ns / 1e9 + row / bus_bps)),
        pages[-1],
    )
    program_ns, spare = _writing(expect, dies * row)
    write = _lone(_of(expect, "randwrite", "write"))
    bus_ns = round(4096e9 / bus_bps)
    block_pages = min(usual.block_pages, max(1, _FLASH_SIZE // (dies * row * _BLOCKS)))
    flash = FlashModel(
        channels=channels,
        dies=dies // channels,
        planes=row // usual.page_size,
        block_pages=block_pages,
        spare=spare,
        read_ns=max(1, read_ns - bus_ns),
        program_ns=program_ns,
        # Smaller blocks are erased more often; keep the erase time per page.
        erase_ns=usual.erase_ns * block_pages // usual.block_pages,
        bus_bps=bus_bps,
        cmd_ns=cmd_ns,
        read_latency_ns=max(0, round(alone_ns - read_ns - cmd_ns)),
        write_latency_ns=max(0, round(write.value - cmd_ns)) if write else usual.write_latency_ns,
        # State at the start of a study.
        precondition="random" if any(one.state == "steady" for one in expect) else "sequential",
    )
    read_bps = round(_bps(streams["read"])) if streams["read"] else 0
    return VdiskDevice(model="flash", size=_FLASH_SIZE, read_bps=read_bps, flash=flash)


def _reading(expect: Sequence[ExpectEntry], alone_ns: float) -> tuple[int, int, int]:
    """Return the number of dies, the time of a read in a die with its transfer, and the cost of a
    command."""
    usual = FlashModel()
    small = [entry for entry in expect if _small(entry)]
    reads = _of(small, "randread")
    if not small:
        return usual.channels * usual.dies, round(_FLASH_PART * alone_ns), usual.cmd_ns
    most = max(entry.value for entry in small)
    dies, read_ns = _dies(reads, alone_ns, most)
    busiest = _deepest(reads)
    of_dies = (
        busiest is not None
        and busiest.value == most
        and random_reads(_depth(busiest), dies, alone_ns - read_ns, read_ns)
        < most * (1 + _AT_LIMIT)
    )
    # A lone command also takes its controller's time.
    lone = _lone(_of(expect, "randwrite", "write"))
    shortest = min(alone_ns, lone.value) if lone else alone_ns
    at_limit = 1e9 / most
    # The dies' limit if they have one near the measured value, else the controller's.
    if of_dies or at_limit > shortest / 2:
        return dies, read_ns, round(min(_SPARE_TIME * at_limit, shortest / 2))
    return dies, read_ns, round(at_limit)


def _writing(expect: Sequence[ExpectEntry], rows: int) -> tuple[int, int]:
    """Return the time of a program operation, and the spare area in per mille.

    Args:
        expect: the figures.
        rows: bytes that all dies program in parallel.
    """
    usual = FlashModel()
    stream, scattered = _stream(_of(expect, "write")), _deepest(_of(expect, "randwrite"))
    rate = max((_bps(one) for one in (stream, scattered) if one), default=0.0)
    if not rate:
        return usual.program_ns, usual.spare
    program_ns = round(rows * 1e9 / rate)
    if not scattered or scattered.state == "fresh" or not _small(scattered):
        return program_ns, usual.spare
    return program_ns, _spare(max(_LEAST_AMPLIFICATION, rate / _bps(scattered)))


def _spare(amplification: float) -> int:
    """Return the spare area, per mille, that gives a write amplification."""
    allowed = limits.FLASH["spare"]
    return min(allowed.high, max(1, round(spare_for(amplification) * 1000)))


def _bps(entry: ExpectEntry) -> float:
    """Return a throughput in bytes per second."""
    return _bps_of(entry, entry.value)


def _bps_of(entry: ExpectEntry, value: float) -> float:
    return value if entry.metric == "bps" else value * _block(entry)


def _dies(reads: Sequence[ExpectEntry], alone_ns: float, most: float) -> tuple[int, int]:
    """Return the number of dies and the time of a read that fit the random reads best, with a
    controller that admits at most `most` per second."""

    def error(choice: tuple[int, float]) -> float:
        dies, part = choice
        read_ns = part * alone_ns
        rates = (
            min(most, random_reads(_depth(one), dies, alone_ns - read_ns, read_ns)) for one in reads
        )
        off = (log(rate / one.value) for rate, one in zip(rates, reads, strict=True))
        # If the figures do not decide: the usual fraction, and no more dies than needed.
        return sum(one**2 for one in off) + 0.02 * log(part / _FLASH_PART) ** 2 + 1e-5 * dies

    dies, part = min(((dies, part) for dies in _DIES for part in _FLASH_PARTS), key=error)
    return dies, round(part * alone_ns)


def random_reads(depth: int, dies: int, delay_ns: float, read_ns: float) -> float:
    """Return the reads per second with `depth` in flight over `dies` that read one at a time each,
    and a delay that all reads share in parallel.

    A die with utilisation u and constant service time has u + u^2 / (2 (1 - u)) reads (Pollaczek
    and Khinchine, for random arrivals). The reads in all dies and in the delay add up to the depth.
    """
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        busy = (low + high) / 2
        at_dies = dies * (busy + busy**2 / (2 * (1 - busy)))
        if at_dies + busy * dies / read_ns * delay_ns < depth:
            low = busy
        else:
            high = busy
    return min(low * dies / read_ns, depth / (delay_ns + read_ns)) * 1e9
