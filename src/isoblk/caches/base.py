# SPDX-License-Identifier: GPL-2.0-only
"""The interface of a cache that a study can put in front of a disk.

docs/guides/cache-studies.md is about such studies. A cache's commands are those of its own
documentation. Origin and SSD are partitions of two disks: each has its own counters in sysfs, and
making one writes nothing.
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
"""Name of a cache's device-mapper device, if it has one; its minor is 0."""
TABLE = f"{NAME}.table"
"""File in the run's directory: the kernel's device-mapper table."""


@dataclass(frozen=True)
class Parts:
    """The devices of a cache.

    Attributes:
        origin: kernel's name of the slow partition.
        ssd: kernel's names of the SSD's partitions, as returned by regions().
        origin_bytes, ssd_bytes: their sizes.
        run: the run's directory in the script.
    """

    origin: str
    ssd: tuple[str, ...]
    origin_bytes: int
    ssd_bytes: tuple[int, ...]
    run: str

    @property
    def origin_sectors(self) -> int:
        """Return the length of the origin in sectors of 512 bytes."""
        return self.origin_bytes // SECTOR


Counters = Mapping[str, int]
"""Counters by name: "top", "origin", "ssd" (all regions together), each with .reads, .writes,
.read_bytes, .write_bytes as in /sys/class/block/*/stat, where a device-mapper device counts the
pieces of split requests; and the cache's own counters."""


class Cache:
    """A way to use an SSD as a cache. `name` is its name in studies.

    This class itself is "none": the origin without a cache.
    """

    name = "none"

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the repository's modules that it needs."""
        return ()

    def needs(self) -> Mapping[str, str]:
        """Return executables that its commands call, and the Debian packages that contain them."""
        return {}

    def check(self, options: Options, ssd_bytes: int) -> None:
        """Check the options, for an SSD of that size.

        Raises:
            OptionError: an option is unknown, or has an invalid value.
        """
        for name in options:
            raise OptionError(name, 'cache "none" has no options', next="remove it")

    def regions(self, options: Options, ssd_bytes: int) -> tuple[int, ...]:
        """Return the sizes of the SSD's partitions in bytes, together ssd_bytes."""
        return (ssd_bytes,)

    def bare(self, options: Options, parts: Parts) -> tuple[list[Statement], str]:
        """Return the commands that make the origin usable without the SSD, and the device's path.
        The files of a run are made there, so that none is cached."""
        return [], f"/dev/{parts.origin}"

    def attach(self, options: Options, parts: Parts) -> list[Statement]:
        """Return the commands that attach the empty SSD to the origin, after bare()."""
        return []

    def device(self, parts: Parts) -> str:
        """Return the path of the cached device."""
        return f"/dev/{parts.origin}"

    def block(self, parts: Parts) -> str:
        """Return the device's name in /sys/class/block."""
        return parts.origin

    def settings(self, options: Options, parts: Parts) -> list[Setting]:
        """Return the settings that are written after it is attached."""
        return []

    def tables(self, options: Options, parts: Parts) -> list[Setting]:
        """Return further values to read back, which are not written as a file."""
        return []

    def counter_files(self) -> Sequence[str]:
        """Return the files of its counters, each with one figure."""
        return []

    def status(self) -> Command | None:
        """Return the command that prints its status line, if it has one."""
        return None

    def counters(self, files: Mapping[str, str], status: str) -> dict[str, int]:
        """Parse the counters.

        Args:
            files: contents by name of counter_files().
            status: output of status().

        Raises:
            ValueError: the text does not match the cache's documentation.
        """
        return {}

    def hits(self, change: Counters) -> tuple[int, int]:
        """Return reads that the SSD served, and all reads, from the change of the counters."""
        return 0, change["top.reads"]

    def bypassed(self, change: Counters) -> int | None:
        """Return the bytes that were not cached by choice or for lack of room; None if unknown."""
        return None

    def identities(self, change: Counters, after: Counters, options: Options) -> list[Identity]:
        """Return pairs of figures that must be equal if the counters are correct, from their change
        in a period and their values at its end."""
        return []

    def detach(self, parts: Parts) -> list[Statement]:
        """Return the commands that remove the cached device, with dirty blocks left on the SSD."""
        return []


class SsdAlone(Cache):
    """The SSD itself without a disk: the upper bound of any cache."""

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
    """Return an option that is a size, bytes.

    Raises:
        OptionError: it is not a size.
    """
    value = options.get(name, default)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise OptionError(name, f"{value!r} is not a size", next="allowed: 4096, 64k, 1m")
    try:
        return parse_size(value)
    except ValueError as error:
        raise OptionError(name, str(error), next="allowed: 4096, 64k, 1m") from None


def known(options: Options, names: Sequence[str]) -> None:
    """Check that there is no other option.

    Raises:
        OptionError: there is one.
    """
    for name in options:
        if name not in names:
            raise OptionError(name, "unknown option", next="allowed: " + ", ".join(names))


def choice(options: Options, name: str, allowed: Sequence[str]) -> str:
    """Return an option that is one of a few words, by default the first.

    Raises:
        OptionError: it is another word.
    """
    value = options.get(name, allowed[0])
    if value not in allowed:
        raise OptionError(name, f"unknown value {value!r}", next="allowed: " + ", ".join(allowed))
    return str(value)


def whole(options: Options, name: str, default: int, least: int, most: int) -> int:
    """Return an option that is an integer.

    Raises:
        OptionError: it is not an integer, or is out of range.
    """
    value = options.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise OptionError(name, f"{value!r} is out of range", next=f"allowed: {least}..{most}")
    return value


def create(table: str) -> Command:
    """Return the command that makes the device-mapper device NAME."""
    return run(
        "dmsetup", "create", NAME, "--major", DM_MAJOR, "--minor", 0, "--table", Quoted(table)
    )


def save_table(parts: Parts) -> Command:
    """Return the command that saves the table, for a comparison."""
    return run("dmsetup", "table", NAME, To(f"{parts.run}/{TABLE}"))


def sectors(size: int) -> int:
    """Convert bytes to sectors of 512 bytes."""
    return size // SECTOR
