# SPDX-License-Identifier: GPL-2.0-only
"""Derive the output of tenants' programs from samples of the I/O that the disk completed for their
cgroups; or, if that is unknown, from samples of their charges."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from isoblk.campaign.charged import parse_charged, parse_completed
from isoblk.errors import RunError
from isoblk.programs.barrier import SAMPLES
from isoblk.programs.blkload import TenantOutput
from isoblk.run.record import IoStat, OpTotals
from isoblk.run.setting import parse_read_back
from isoblk.run.spec import RunSpec

_NOTHING = IoStat(rbytes=0, wbytes=0, rios=0, wios=0)
_FIELDS = {"read": ("rios", "rbytes"), "write": ("wios", "wbytes"), "trim": ("dios", "dbytes")}


@dataclass(frozen=True)
class Samples:
    """Samples in order. times_ns: after the barrier; read_back: path to content."""

    times_ns: Sequence[int]
    read_back: Sequence[Mapping[str, str]]

    def charges(self, cgroup: str, device: str) -> list[IoStat]:
        """Return the charges to one cgroup at each time."""
        return [parse_charged(one, cgroup, device) or _NOTHING for one in self.read_back]

    def completed(self, cgroup: str, file: str) -> list[IoStat]:
        """Return the I/O that the disk had completed for a cgroup, from the root of the hierarchy,
        at each time.

        Raises:
            RunError: some requests were not counted.
        """
        try:
            return [
                parse_completed(one.get(file, ""), cgroup) or _NOTHING for one in self.read_back
            ]
        except ValueError as error:
            raise RunError(str(error), where=SAMPLES) from None


def parse_samples(text: str, start_ns: int, files: Sequence[str]) -> Samples:
    """Parse the file of samples: a line with the time, in ns of Unix time, begins each.

    Args:
        text: the file.
        start_ns: time of the barrier.
        files: that were read each time.

    Raises:
        RunError: the text is malformed.
    """
    times: list[int] = []
    lines: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.isdigit():
            times.append(int(line) - start_ns)
            lines.append([])
        elif lines:
            lines[-1].append(line)
        else:
            raise RunError(f"not a time: {line[:80]!r}", where=f"{SAMPLES}:{number}")
    return Samples(times, [parse_read_back("\n".join(line), files) for line in lines])


def since_first(charges: Sequence[IoStat], tenant: str) -> list[IoStat]:
    """Return the charges to an existing cgroup since the first sample.

    Raises:
        RunError: the counters decreased: the cgroup was removed, and perhaps made anew.
    """
    values = [msgspec.structs.asdict(charge) for charge in charges]
    since = [{name: one[name] - values[0][name] for name in one} for one in values]
    for before, after in pairwise(since):
        if any(after[name] < before[name] for name in after):
            raise RunError(f"{tenant}: its cgroup was removed during the run")
    return [IoStat(**one) for one in since]


def sampled_output(
    times_ns: Sequence[int], charges: Sequence[IoStat], end_ns: int, spec: RunSpec
) -> TenantOutput:
    """Return a tenant's output in the format of a generator, without latency.

    Counters between two samples are interpolated linearly, because samples are not exactly at the
    windows' edges. The increase in the first sample after the program's end counts as before its
    end.

    Args:
        times_ns: of the samples, after the barrier.
        charges: completed or charged I/O at those times; 0 at the barrier.
        end_ns: end of the program.
        spec: the run.
    """
    times_ns = _until_end(times_ns, end_ns)
    until = min(max(end_ns, 0), spec.warmup_ns + spec.runtime_ns)
    begin = min(spec.warmup_ns, until)
    output = TenantOutput(jobs=1, error=0, measured_ns=(begin, until))
    for op, names in _FIELDS.items():
        ios, size = (
            _Counter([0, *times_ns], [0, *(getattr(charge, name) for charge in charges)])
            for name in names
        )
        if not ios.total:
            continue
        meas_ios, meas_bytes = (one.at(until) - one.at(begin) for one in (ios, size))
        output.ops[op] = OpTotals(
            ios=ios.total,
            bytes=size.total,
            errors=0,
            verify_errors=0,
            meas_ios=meas_ios,
            meas_bytes=meas_bytes,
            lat_sum_ns=0,
            lat_min_ns=0,
            lat_max_ns=0,
        )
        for t_ms, low, high in _windows(spec, times_ns[-1] if times_ns else 0):
            moved = ios.at(high) - ios.at(low), size.at(high) - size.at(low)
            if any(moved):
                output.windows[op, t_ms] = moved
    return output


def _until_end(times_ns: Sequence[int], end_ns: int) -> list[int]:
    """Return the times, with that of the first sample after the end replaced by the end."""
    times = list(times_ns)
    after = bisect_right(times, end_ns)
    if after < len(times) and end_ns > (times[after - 1] if after else 0):
        times[after] = end_ns
    return times


def _windows(spec: RunSpec, last_ns: int) -> Iterator[tuple[int, int, int]]:
    """Yield start in ms, from and to in ns, of every window of the run."""
    width = spec.window_ms * 1_000_000
    for low in range(0, min(spec.warmup_ns + spec.runtime_ns, last_ns + width), width):
        yield low // 1_000_000, low, low + width


class _Counter:
    """A monotonic counter with known values at some times."""

    def __init__(self, times_ns: Sequence[int], counts: Sequence[int]) -> None:
        self._times, self._counts = times_ns, counts

    @property
    def total(self) -> int:
        return self._counts[-1]

    def at(self, time_ns: int) -> int:
        """Return the interpolated count at a time, rounded."""
        after = bisect_right(self._times, time_ns)
        if after == 0:
            return 0
        if after == len(self._times):
            return self.total
        begin, end = self._times[after - 1 : after + 1]
        low, high = self._counts[after - 1 : after + 1]
        return low + round((high - low) * (time_ns - begin) / (end - begin))
