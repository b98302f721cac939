# SPDX-License-Identifier: GPL-2.0-only
"""The sectors and disks below a block device, through device-mapper, md, loop devices and
partitions, whatever the names of the layers.

A disk is identified by its world-wide id if it has one: two paths to one disk are one disk. A
device-mapper target with unknown layout counts as using all devices in its table. Volumes of a thin
pool, and snapshots, are distinguished by their targets.
"""

import fcntl
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from isoblk.errors import IsoblkError
from isoblk.machine import node, system
from isoblk.machine.mapper import Mapper, dmsetup

DEV: Final = Path("/dev")
_WWID: Final = re.compile(r"(?:eui|naa)\.(?=.*[1-9a-f])[0-9a-f]+")
_NUMBER: Final = re.compile(r"\d+:\d+")
_ROW: Final = re.compile(r"(.+?): (\d+) (\d+) (\S+) ?(.*)")
# Targets that keep the order of sectors: index of the device's word, which the first sector
# follows.
IN_ORDER: Final = {"linear": 0, "crypt": 3, "flakey": 0}
# Targets that share a device with other targets: index of the word with the device of their own.
_OWN: Final = {"snapshot": 1}
# include/uapi/linux/loop.h: the file's device, its inode, and the device number if the file is a
# block device's node.
_LOOP_GET_STATUS64: Final = 0x4C05
_LOOP_INFO: Final = struct.Struct("=QQQ208x")
_SECTOR: Final = 512
_DELETED: Final = " (deleted)"


@dataclass(frozen=True)
class Region:
    """Sectors from `first` up to `end` of a disk or a file. base: its identity."""

    base: str
    first: int
    end: int

    def meets(self, other: "Region") -> bool:
        """Return whether the regions share a sector."""
        return self.base == other.base and self.first < other.end and other.first < self.end


@dataclass(frozen=True)
class Backing:
    """The backing of a loop device. number: MAJ:MIN of the block device, or of the file's file
    system. inode: of the file; 0: a block device."""

    number: str
    inode: int


def wwid(place: Path) -> str:
    """Return the kernel's world-wide id of a disk, "" without one. place: its directory in
    sysfs."""
    # A device of device-mapper may show that of a disk below it.
    if (place / "dm").exists():
        return ""
    for name in ("wwid", "device/wwid"):
        if _WWID.fullmatch(found := _read(place / name)):
            return found
    # NVMe shows another id as its wwid if it has both.
    for name in ("nguid", "eui"):
        number = re.sub("[^0-9a-f]", "", _read(place / name).lower())
        if number.strip("0"):
            return f"eui.{number}"
    return ""


def backing(loop: Path, dev: Path = DEV) -> Backing | None:
    """Return the backing of a loop device as the kernel knows it, even if its path has changed;
    None if it is unknown. loop: its directory in sysfs."""
    asked = _asked(str(dev / loop.name), _read(loop / "dev"))
    if asked is not None:
        return asked
    # The node of a loop device may be missing, as in a container.
    path = _read(loop / "loop/backing_file")
    try:
        found = Path(path).stat() if path else None
    except OSError:
        return None
    if found is None:
        return None
    if stat.S_ISBLK(found.st_mode):
        return Backing(_number(found.st_rdev), 0)
    return Backing(_number(found.st_dev), found.st_ino)


def _asked(path: str, number: str) -> Backing | None:
    told = bytearray(_LOOP_INFO.size)
    with ExitStack() as stack:
        try:
            # In a container the path may be of another device.
            located = node.locate(path, number)
            stack.callback(os.close, located)
            descriptor = node.reopen(located, os.O_RDONLY | os.O_NONBLOCK)
            stack.callback(os.close, descriptor)
            fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, told)
        except (OSError, node.ChangedError):
            return None
    on, inode, is_ = _LOOP_INFO.unpack(told)
    return Backing(_number(is_), 0) if is_ else Backing(_number(on), inode)


class Ground:
    """The block devices of this machine at one moment.

    Args:
        sys: path of sysfs.
        mapper: dmsetup; not called if there is no device of device-mapper.
        dev: path of /dev.
    """

    def __init__(self, sys: Path = system.SYS, mapper: Mapper = dmsetup, dev: Path = DEV) -> None:
        self._sys, self._mapper, self._dev = sys, mapper, dev

    @cached_property
    def devices(self) -> list[Path]:
        """Return the sysfs directories of all devices with a size. Paths that the kernel joins
        itself, as nvme0c0n1, have no number and are omitted."""
        found = sorted((self._sys / "class/block").glob("*"))
        places = (link.resolve() for link in found if (link / "dev").exists())
        return [place for place in places if _read(place / "size") not in ("", "0")]

    @cached_property
    def _tables(self) -> dict[str, list[tuple[int, int, str, list[str]]]]:
        """Return the tables of all devices of device-mapper, by name."""
        found: dict[str, list[tuple[int, int, str, list[str]]]] = {}
        try:
            told = self._mapper("table")
        except IsoblkError:
            # As in a container, which sees devices and has no permission. A partly unknown device
            # counts as using all of its devices.
            return found
        for line in told.splitlines():
            if row := _ROW.fullmatch(line.rstrip()):
                name, start, length, target, words = row.groups()
                found.setdefault(name, []).append((int(start), int(length), target, words.split()))
        return found

    def footing(self, place: Path) -> list[tuple[Path, Region]]:
        """Return the disks, or loop devices of a file, below a device, with its regions there.
        place: its directory in sysfs."""
        found = self._walk(place, 0, _sectors(place))
        return [(base, region) for base, region in found if region is not None]

    def regions(self, place: Path) -> list[Region]:
        """Return the regions of footing()."""
        return [region for _, region in self.footing(place)]

    def below(self, place: Path) -> set[Path]:
        """Return all devices below a device, at every level."""
        return {one for one, _ in self._walk(place, 0, _sectors(place))} - {place}

    def backing_of(self, place: Path) -> Path | None:
        """Return the block device that backs a loop device, if there is one. A loop device does not
        hold it."""
        made_of = backing(place, self._dev) if (place / "loop").exists() else None
        return self._numbered(made_of.number) if made_of and not made_of.inode else None

    def sharing(self, place: Path) -> Iterator[Path]:
        """Yield all devices that share sectors with one, including it."""
        own = self.regions(place)
        for other in self.devices:
            others = self.regions(other)
            if any(a.meets(b) for a in own for b in others):
                yield other

    def rivals(self, place: Path) -> Iterator[Path]:
        """Yield devices that share sectors with one, and are neither above nor below it."""
        bearing = self.below(place)
        for other in self.sharing(place):
            if other != place and other not in bearing and place not in self.below(other):
                yield other

    def _walk(self, place: Path, first: int, end: int) -> Iterator[tuple[Path, Region | None]]:
        """Yield the devices from one down for its sectors, with the region at the lowest."""
        end = min(end, _sectors(place))
        if first >= end:
            return
        if (place / "partition").exists():
            start = int(_read(place / "start") or 0)
            yield place, None
            yield from self._walk(place.parent, first + start, end + start)
        elif (place / "loop").exists():
            yield from self._walk_loop(place, first, end)
        elif (place / "dm").exists():
            yield from self._walk_mapped(place, first, end)
        elif (place / "bcache").is_symlink():
            # All targets of the set share the SSD.
            yield place, None
            lower = (place / "bcache").resolve().parent
            yield from self._walk(lower, 0, _sectors(lower))
        elif slaves := sorted((place / "slaves").glob("*")):
            yield place, None
            for slave in slaves:
                yield from self._walk(slave.resolve(), *_part_of(place, slave.name))
        else:
            yield place, Region(wwid(place) or _read(place / "dev"), first, end)

    def _walk_loop(self, place: Path, first: int, end: int) -> Iterator[tuple[Path, Region | None]]:
        start = int(_read(place / "loop/offset") or 0) // _SECTOR
        lower, made_of = self.backing_of(place), backing(place, self._dev)
        if lower is not None:
            yield place, None
            yield from self._walk(lower, first + start, end + start)
            return
        path = _read(place / "loop/backing_file")
        if made_of is not None:
            base = f"file {made_of.number} {made_of.inode}"
        elif path and not path.endswith(_DELETED):
            base = f"file {path}"
        else:
            base = _read(place / "dev")
        yield place, Region(base, first + start, end + start)

    def _walk_mapped(
        self, place: Path, first: int, end: int
    ) -> Iterator[tuple[Path, Region | None]]:
        yield place, None
        rows = self._tables.get(_read(place / "dm/name"))
        if rows is None:
            for slave in (place / "slaves").glob("*"):
                yield from self._walk(slave.resolve(), 0, 1 << 62)
        for start, length, target, words in rows or []:
            low, high = max(first, start) - start, min(end, start + length) - start
            if low >= high:
                continue
            numbers = [word for word in words if _NUMBER.fullmatch(word)]
            at = IN_ORDER.get(target)
            if target == "thin" and len(words) > 1:
                yield place, Region(f"thin {words[0]} {words[1]}", low, high)
            elif at is not None and len(words) > at + 1 and words[at + 1].isdecimal():
                offset = int(words[at + 1])
                if lower := self._numbered(words[at]):
                    yield from self._walk(lower, low + offset, high + offset)
            elif target == "striped":
                yield from self._walk_stripes(words, length)
            else:
                own = _OWN.get(target)
                for number in numbers if own is None else words[own : own + 1]:
                    if lower := self._numbered(number):
                        yield from self._walk(lower, 0, _sectors(lower))

    def _walk_stripes(self, words: list[str], length: int) -> Iterator[tuple[Path, Region | None]]:
        """Walk all stripes: each has a part of any part of the device."""
        count = int(words[0])
        for number, offset in zip(words[2::2], words[3::2], strict=False):
            if lower := self._numbered(number):
                yield from self._walk(lower, int(offset), int(offset) + length // count)

    def _numbered(self, number: str) -> Path | None:
        place = (self._sys / "dev/block" / number).resolve()
        return place if (place / "size").exists() else None


def _part_of(array: Path, member: str) -> tuple[int, int]:
    """Return the sectors of a member that an md array uses; all if they are unknown."""
    place = array / "md" / f"dev-{member}"
    offset, kib = _read(place / "offset"), _read(place / "size")
    if offset.isdecimal() and kib.isdecimal():
        return int(offset), int(offset) + 2 * int(kib)
    return 0, 1 << 62


def _sectors(place: Path) -> int:
    return int(_read(place / "size") or 0)


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace").strip()
    return ""
