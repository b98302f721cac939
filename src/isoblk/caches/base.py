# SPDX-License-Identifier: GPL-2.0-only
"""What a cache must tell of itself so that a study can put it in front of a disk.

docs/guides/cache-studies.md is about such studies. A cache's commands are those of its own
documentation. Origin and SSD are partitions of two disks: each has counters of its own in sysfs,
and nothing is written to make them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isoblk.run.options import OptionError
from isoblk.run.record import Identity
from isoblk.run.setting import Setting
from isoblk.run.shell import DM_MAJOR, Command, Quoted, Statement, To, run
from isoblk.run.spec import Options
from isoblk.run.units import parse_size

SECTOR = 512
NAME = "cached"
"""Of the device-mapper device that a cache is, if it is one; its minor is 0."""
TABLE = f"{NAME}.table"
"""File in the run's directory: the device-mapper table as the kernel has it."""


@dataclass(frozen=True)
class Parts:
    """What a cache is made of.

    Attributes:
        origin: kernel's name of the slow partition.
        ssd: kernel's names of the SSD's partitions, as regions() asked for them.
        origin_bytes, ssd_bytes: their sizes.
        run: the run's directory as the script sees it.
    """

    origin: str
    ssd: tuple[str, ...]
    origin_bytes: int
    ssd_bytes: tuple[int, ...]
    run: str

    @property
    def origin_sectors(self) -> int:
        """Length of the origin in sectors of 512 bytes."""
        return self.origin_bytes // SECTOR


Counters = Mapping[str, int]
"""What was counted, by name. "top", "origin", "ssd" (all regions together), each with .reads,
.writes, .read_bytes, .write_bytes as in /sys/class/block/*/stat, where a device-mapper device
counts the pieces that it splits requests into; and what the cache itself counts."""


class Cache:
    """One way to use an SSD as a cache; `name` is what a study calls it.

    This is also the way not to use it: "none", the origin itself.
    """

    name = "none"

    @property
    def modules(self) -> tuple[str, ...]:
        """Those of the repository's that it needs."""
        return ()

    def needs(self) -> Mapping[str, str]:
        """Executables that its commands call, and the Debian packages that hold them."""
        return {}

    def check(self, options: Options, ssd_bytes: int) -> None:
        """Check the options, for an SSD of that size.

        Raises:
            OptionError: one is unknown, or has a value that cannot be used.
        """
        for name in options:
            raise OptionError(name, "no cache has no options", next="remove it")

    def regions(self, options: Options, ssd_bytes: int) -> tuple[int, ...]:
        """Sizes of the SSD's parts, in bytes; together ssd_bytes."""
        return (ssd_bytes,)

    def bare(self, options: Options, parts: Parts) -> tuple[list[Statement], str]:
        """Commands that make the origin usable without the SSD, and the device's path: there the
        files are made that a run begins with, so that none of them is cached."""
        return [], f"/dev/{parts.origin}"

    def attach(self, options: Options, parts: Parts) -> list[Statement]:
        """Commands that put the SSD, empty, in front of the origin, after bare()."""
        return []

    def device(self, parts: Parts) -> str:
        """Path of the cached device."""
        return f"/dev/{parts.origin}"

    def block(self, parts: Parts) -> str:
        """Its name in /sys/class/block."""
        return parts.origin

    def settings(self, options: Options, parts: Parts) -> list[Setting]:
        """Settings that are written once it is there."""
        return []

    def tables(self, options: Options, parts: Parts) -> list[Setting]:
        """What is to be read back besides, without having been written as a file."""
        return []

    def counter_files(self) -> Sequence[str]:
        """Files that it counts in, each with one figure."""
        return []

    def status(self) -> Command | None:
        """Command that prints its status line, if it has one."""
        return None

    def counters(self, files: Mapping[str, str], status: str) -> dict[str, int]:
        """What it has counted.

        Args:
            files: name of each of counter_files() -> what it held.
            status: what status() printed.

        Raises:
            ValueError: that is not what the cache's documentation says.
        """
        return {}

    def hits(self, change: Counters) -> tuple[int, int]:
        """Reads that the SSD answered, and all reads, by what the cache counted."""
        return 0, change["top.reads"]

    def bypassed(self, change: Counters) -> int | None:
        """Bytes that it chose not to cache, or had no room for; None if it does not tell."""
        return None

    def identities(self, change: Counters, after: Counters, options: Options) -> list[Identity]:
        """What must be equal, if its figures are right, in what was counted in a while, and by the
        end of that."""
        return []

    def detach(self, parts: Parts) -> list[Statement]:
        """Commands that take the cached device away, with what is dirty left on the SSD."""
        return []


class SsdAlone(Cache):
    """No disk: the SSD itself, which no cache can be faster than."""

    name = "ssd"

    def bare(self, options: Options, parts: Parts) -> tuple[list[Statement], str]:  # noqa: D102
        return [], self.device(parts)

    def device(self, parts: Parts) -> str:  # noqa: D102
        return f"/dev/{parts.ssd[0]}"

    def block(self, parts: Parts) -> str:  # noqa: D102
        return parts.ssd[0]

    def hits(self, change: Counters) -> tuple[int, int]:  # noqa: D102
        return change["top.reads"], change["top.reads"]


def size_option(options: Options, name: str, default: int | str) -> int:
    """Bytes, of an option that is a size.

    Raises:
        OptionError: it is none.
    """
    value = options.get(name, default)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise OptionError(name, f"{value!r} is not a size", next="allowed: 4096, 64k, 1m")
    try:
        return parse_size(value)
    except ValueError as error:
        raise OptionError(name, str(error), next="allowed: 4096, 64k, 1m") from None


def known(options: Options, names: Sequence[str]) -> None:
    """Check that no other option is there.

    Raises:
        OptionError: there is one.
    """
    for name in options:
        if name not in names:
            raise OptionError(name, "unknown option", next="allowed: " + ", ".join(names))


def choice(options: Options, name: str, allowed: Sequence[str]) -> str:
    """An option that is one of a few words, the first if it is not set.

    Raises:
        OptionError: it is another.
    """
    value = options.get(name, allowed[0])
    if value not in allowed:
        raise OptionError(name, f"unknown value {value!r}", next="allowed: " + ", ".join(allowed))
    return str(value)


def whole(options: Options, name: str, default: int, least: int, most: int) -> int:
    """An option that is a whole number.

    Raises:
        OptionError: it is none, or out of range.
    """
    value = options.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise OptionError(name, f"{value!r} is out of range", next=f"allowed: {least}..{most}")
    return value


def create(table: str) -> Command:
    """Command that makes the device-mapper device NAME."""
    return run(
        "dmsetup", "create", NAME, "--major", DM_MAJOR, "--minor", 0, "--table", Quoted(table)
    )


def save_table(parts: Parts) -> Command:
    """Command that keeps the table to be read back."""
    return run("dmsetup", "table", NAME, To(f"{parts.run}/{TABLE}"))


def sectors(size: int) -> int:
    """Bytes as sectors of 512 bytes."""
    return size // SECTOR
