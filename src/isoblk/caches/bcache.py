# SPDX-License-Identifier: GPL-2.0-only
"""bcache, set up as in the kernel's Documentation/admin-guide/bcache.rst.

The written bytes in /sys/block/bcache0/stat are not used: a request that is passed to the origin
unchanged has length 0 when it is counted at its end (request.c, bio_complete()).

The origin begins with a superblock of bcache: files are made through /dev/bcache0 while no cache
set is attached.
"""

from collections.abc import Mapping, Sequence

from isoblk.caches.base import SECTOR, Cache, Counters, Parts, choice, known, size_option, whole
from isoblk.run.options import OptionError
from isoblk.run.record import Identity
from isoblk.run.setting import Setting
from isoblk.run.shell import Form, Statement, To, fill, run, write
from isoblk.run.spec import Options
from isoblk.run.units import format_size

_SET = "69736f62-6c6b-4000-8000-000000000002"
_DIR = "/sys/block/bcache0/bcache"
_REGISTER = "/sys/fs/bcache/register"
_MODES = ("writethrough", "writeback", "writearound", "none")
_POLICIES = ("lru", "fifo", "random")
# Numeric files in _DIR and in the cache set, with their ranges.
_NUMBERS = {
    "writeback_percent": (0, 40),
    "writeback_delay": (0, 86_400),
    "writeback_running": (0, 1),
}
_OF_SET = {
    "congested_read_threshold_us": (0, 10_000_000),
    "congested_write_threshold_us": (0, 10_000_000),
}
_OPTIONS = ("mode", "bucket", "replacement", "sequential_cutoff", *_NUMBERS, *_OF_SET)
_COUNTS = ("cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses")
# Modulus of the 16-bit counters between two updates of these files (stats.c, move_stat()).
_WRAPS = 1 << 16
# It needs at least one bucket in 1,024 for each of its reserves, and rounds up (super.c).
_BUCKETS = 513
_SUFFIX = {"k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class _Line(Form):
    WAIT_FOR_DEVICE = "until [ -b /dev/bcache0 ]; do sleep 0.1; done"
    # The disks are released a moment after the directories disappear.
    WAIT_UNTIL_GONE = "while [ -e {device} ] || [ -e {set} ]; do sleep 0.1; done; sleep 0.1"


class Bcache(Cache):
    """Options: mode, bucket and replacement, in the words of make-bcache and cache_mode; and files
    of sysfs: sequential_cutoff, writeback_*, congested_*_threshold_us."""

    name = "bcache"

    def needs(self) -> Mapping[str, str]:  # noqa: D102
        return {"make-bcache": "bcache-tools"}

    def check(self, options: Options, ssd_bytes: int) -> None:  # noqa: D102
        known(options, _OPTIONS)
        choice(options, "mode", _MODES)
        choice(options, "replacement", _POLICIES)
        size_option(options, "sequential_cutoff", 0)
        for name, (least, most) in {**_NUMBERS, **_OF_SET}.items():
            whole(options, name, least, least, most)
        bucket = _bucket(options)
        if bucket < 4096 or bucket & (bucket - 1):
            raise OptionError(
                "bucket", f"{bucket} bytes", next="allowed: powers of two from 4k to 16m"
            )
        if ssd_bytes // bucket < _BUCKETS:
            raise OptionError(
                "bucket",
                f"the SSD has {ssd_bytes // bucket} buckets of {format_size(bucket)},"
                f" bcache needs {_BUCKETS}",
                next="set a smaller bucket",
            )

    def bare(self, options: Options, parts: Parts) -> tuple[list[Statement], str]:  # noqa: D102
        device = f"/dev/{parts.origin}"
        return [
            run("make-bcache", "-B", device, To("/dev/null")),
            write(device, _REGISTER),
            _Line.WAIT_FOR_DEVICE,
        ], self.device(parts)

    def attach(self, options: Options, parts: Parts) -> list[Statement]:  # noqa: D102
        policy = choice(options, "replacement", _POLICIES)
        device = f"/dev/{parts.ssd[0]}"
        made = ("--cset-uuid", _SET, "--bucket", _bucket(options))
        with_policy = f"--cache_replacement_policy={policy}"
        return [
            run("make-bcache", *made, with_policy, "-C", device, To("/dev/null")),
            write(device, _REGISTER),
            write(_SET, f"{_DIR}/attach"),
        ]

    def device(self, parts: Parts) -> str:  # noqa: D102
        return "/dev/bcache0"

    def block(self, parts: Parts) -> str:  # noqa: D102
        return "bcache0"

    def settings(self, options: Options, parts: Parts) -> list[Setting]:  # noqa: D102
        found = [Setting(f"{_DIR}/cache_mode", choice(options, "mode", _MODES), "choice")]
        if "sequential_cutoff" in options:
            cutoff = size_option(options, "sequential_cutoff", 0)
            found.append(Setting(f"{_DIR}/sequential_cutoff", str(cutoff), "rounded"))
        found += [Setting(f"{_DIR}/{n}", str(options[n])) for n in _NUMBERS if n in options]
        found += [Setting(f"{_DIR}/cache/{n}", str(options[n])) for n in _OF_SET if n in options]
        return found

    def tables(self, options: Options, parts: Parts) -> list[Setting]:  # noqa: D102
        policy = choice(options, "replacement", _POLICIES)
        return [Setting(f"{_DIR}/cache/cache0/cache_replacement_policy", policy, "choice")]

    def counter_files(self) -> Sequence[str]:  # noqa: D102
        return [
            *(f"{_DIR}/stats_total/{name}" for name in (*_COUNTS, "bypassed")),
            *(f"{_DIR}/cache/cache0/{name}" for name in ("written", "metadata_written")),
            f"{_DIR}/dirty_data",
        ]

    def counters(self, files: Mapping[str, str], status: str) -> dict[str, int]:  # noqa: D102
        return {name: _bytes(text) for name, text in files.items()}

    def hits(self, change: Counters) -> tuple[int, int]:  # noqa: D102
        # Counts lost by overflow are hits: no other counter overflows in ten seconds.
        others = sum(change[name] for name in _COUNTS) - change["cache_hits"]
        return max(0, change["top.reads"] - others), change["top.reads"]

    def bypassed(self, change: Counters) -> int | None:  # noqa: D102
        if change["top.writes"] > change["top.reads"] // 10:
            return None  # writes are counted only in bytes, and incompletely
        # Sectors of hits overflow in multiples of _WRAPS, but those of bypassing requests, which
        # are fewer, do not.
        requests = change["cache_bypass_hits"] + change["cache_bypass_misses"]
        read = change["origin.read_bytes"] + change["ssd.read_bytes"]
        about = requests * read / max(1, change["top.reads"])
        lost = max(0, round((about - change["bypassed"]) / (_WRAPS * SECTOR)))
        return change["bypassed"] + lost * _WRAPS * SECTOR

    def identities(self, change: Counters, after: Counters, options: Options) -> list[Identity]:  # noqa: D102
        lost = change["top.reads"] - sum(change[name] for name in _COUNTS)
        return [
            Identity(
                text=f"reads - hits - misses - bypassed ones = 0, modulo {_WRAPS}",
                left=lost % _WRAPS,
                right=0,
            ),
            Identity(
                text="bytes written to the SSD = data + metadata that bcache wrote",
                left=change["ssd.write_bytes"],
                right=change["written"] + change["metadata_written"],
                # Superblocks are not counted.
                slack=4096 + _rounding(after["written"]) + _rounding(after["metadata_written"]),
            ),
        ]

    def detach(self, parts: Parts) -> list[Statement]:  # noqa: D102
        own = f"/sys/fs/bcache/{_SET}"
        return [
            write(1, f"{_DIR}/stop"),
            write(1, f"{own}/stop"),
            fill(_Line.WAIT_UNTIL_GONE, device="/sys/block/bcache0", set=own),
        ]


def _bucket(options: Options) -> int:
    return size_option(options, "bucket", "512k")


def _bytes(text: str) -> int:
    """Parse a figure of bcache: 26, 0.0k, 32.1M."""
    text = text.strip()
    factor = _SUFFIX.get(text[-1:], 1)
    return round(float(text.rstrip("kMGT")) * factor)


def _rounding(figure: int) -> int:
    """Return the maximum error of a difference of two figures, of which this is the larger: each is
    rounded to one decimal."""
    unit = 1 << 10
    while figure >= 1000 * unit:
        unit <<= 10
    return 2 * unit // 10
