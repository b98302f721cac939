# SPDX-License-Identifier: GPL-2.0-only
"""Identify the disk of an origin: by dm-setcache's identity, or by a word if the kernel has none,
as for virtio disks, and for devices that device-mapper and loop devices are made of.

A copy of a disk has the same bytes, so an identity comes from the disk itself, never from its
contents: neither from a PARTUUID nor from a UUID of LVM, LUKS or md alone. A partition is
identified by its disk and its first sector.
"""

import fcntl
import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from isoblk.caches.base import SECTOR
from isoblk.errors import UserError
from isoblk.machine import ground, system
from isoblk.machine.blockdev import node_of
from isoblk.machine.ground import Ground
from isoblk.machine.mapper import Mapper

_WORD: Final = re.compile(r"[A-Za-z0-9_.:+=@/-]{1,100}", re.ASCII)
# Maximum length of a disk's name, so that a word also has room for a sector.
_LENGTH: Final = 60
_NAMED: Final = re.compile(r"(?:id:)?(?P<disk>.+?)(?:/start:(?P<first>\d+))?(?:/dm:[0-9a-f]+)?")
_NUMBER: Final = re.compile(r"\d+:\d+")
# Serial numbers that QEMU makes up from the slot of a disk.
_PLACES: Final = re.compile(r"\bQM\d{5}\b|\bdrive-\w")
# Words of a target's line that determine the place of the data; all others may change.
_PLACED: Final = {"crypt": (0, 2, 3, 4), "thin-pool": (0, 1, 2)}
# include/uapi/linux/fs.h: the generation of an inode, whose number can be reused.
_FS_IOC_GETVERSION: Final = 0x80087601


def refuse_word(word: str) -> None:
    """Check that a user's word can name an origin.

    Raises:
        UserError: it cannot.
    """
    if not _WORD.fullmatch(word):
        raise UserError(
            f"--origin-id {word!r}: not a word for a disk",
            next="allowed: 1 to 100 letters, digits, and _ . : + = @ / -",
        )


def identity(place: Path) -> str:
    """Return the kernel's own name of a device; "" if it has no visible identity.

    Args:
        place: the device's directory in sysfs.
    """
    if not (place / "partition").exists():
        return _disk_identity(place)
    disk = _disk_identity(place.parent)
    return f"{disk}/start:{_read(place / 'start')}" if disk else ""


def _disk_identity(place: Path) -> str:
    if wwid := ground.wwid(place):
        return f"wwid:{wwid}"
    return ""


def word(place: Path, mapper: Mapper, sys: Path = system.SYS, dev: Path = ground.DEV) -> str:
    """Return a word for a device; "" if the kernel can name it, or no word is possible.

    If the device's sectors have the order of a disk's, the word begins with that disk and the first
    sector.

    Args:
        place: the device's directory in sysfs.
        mapper: dmsetup.
        sys: path of sysfs.
        dev: path of /dev.
    """
    return "" if identity(place) else _word(place, mapper, sys, dev)


def _word(place: Path, mapper: Mapper, sys: Path, dev: Path) -> str:
    seat = _seat(place, mapper, sys, dev)
    if (place / "dm").exists():
        made = _digest_of_mapped(place, mapper, sys, dev)
        if made and seat:
            return f"{seat[0]}/start:{seat[1]}/dm:{made[:16]}"
        return f"dm:{made}" if made else ""
    if seat is None:
        return ""
    return f"{seat[0]}/start:{seat[1]}" if seat[1] else seat[0]


def _seat(place: Path, mapper: Mapper, sys: Path, dev: Path) -> tuple[str, int] | None:
    """Return the name of the disk that has the device's sectors in order, and the first of them;
    None if there is no such disk, or it has no identity."""
    lower, first = place, 0
    if (place / "partition").exists():
        lower, first = place.parent, int(_read(place / "start") or 0)
    elif (place / "dm").exists():
        rows = mapper("table", _read(place / "dm/name")).splitlines()
        row = rows[0].split() if len(rows) == 1 else []
        if len(row) > 2 and row[2] == "multipath":
            row = ["0", row[1], "linear", *[one for one in row if _is_device(one, sys)][:1], "0"]
        at = ground.IN_ORDER.get(row[2]) if len(row) > 2 else None
        if at is None or len(row) < at + 5 or not _is_device(row[at + 3], sys):
            return None
        lower, first = (sys / "dev/block" / row[at + 3]).resolve(), int(row[at + 4])
    elif (place / "loop").exists():
        return _seat_of_loop(place, mapper, sys, dev)
    if lower == place:
        name = _disk_identity(place) or _disk_word(place)
        return (name, 0) if name else None
    below = _seat(lower, mapper, sys, dev)
    return (below[0], below[1] + first) if below else None


def _disk_word(place: Path) -> str:
    # Excludes a controller's serial number, which all disks behind it share, and that of a USB
    # bridge.
    for name in ("wwid", "device/wwid", "serial", "device/cid"):
        value = _read(place / name)
        if value.strip("0 .") and not _PLACES.search(value):
            text = f"{Path(name).name}:{value}"
            fits = len(text) <= _LENGTH and _WORD.fullmatch(text) and "/" not in text
            return text if fits else f"sha256:{_digest(text)}"
    return ""


def _known(place: Path, mapper: Mapper, sys: Path, dev: Path) -> str:
    """Return the identity or word of a device; "" if it has none."""
    return identity(place) or _word(place, mapper, sys, dev)


def _digest_of_mapped(place: Path, mapper: Mapper, sys: Path, dev: Path) -> str:
    """Hash a device-mapper device: its UUID, and its table with the identities of its devices."""
    rows = [_read(place / "dm/uuid")]
    devices = 0
    for line in mapper("table", _read(place / "dm/name")).splitlines():
        start, length, target, *words = line.split()
        numbers = [word for word in words if _is_device(word, sys)]
        known = {
            number: _known((sys / "dev/block" / number).resolve(), mapper, sys, dev)
            for number in numbers
        }
        if not all(known.values()):
            return ""
        if target == "multipath":
            # All paths lead to one disk, and come and go.
            placed = sorted(set(known.values()))
        else:
            chosen = _PLACED.get(target, range(len(words)))
            placed = [known.get(words[i], words[i]) for i in chosen if i < len(words)]
        rows.append(" ".join([start, length, target, *placed]))
        devices += len(numbers)
    return _digest("\n".join(rows)) if devices else ""


def _is_device(word: str, sys: Path) -> bool:
    return bool(_NUMBER.fullmatch(word)) and (sys / "dev/block" / word / "size").exists()


def _seat_of_loop(place: Path, mapper: Mapper, sys: Path, dev: Path) -> tuple[str, int] | None:
    """Return the block device of a loop device; for a file the disk of its file system, and its
    inode."""
    backing = ground.backing(place, dev)
    first = int(_read(place / "loop/offset") or 0) // SECTOR
    if backing is None:
        return None
    lower = (sys / "dev/block" / backing.number).resolve()
    if not backing.inode:
        below = _seat(lower, mapper, sys, dev)
        return (below[0], below[1] + first) if below else None
    on = _known(lower, mapper, sys, dev) if (lower / "size").exists() else ""
    if not on and backing.number.startswith("0:"):
        # A file system without a disk, such as tmpfs: its files are distinct until the reboot.
        on = f"{system.boot_id()}:{backing.number}"
    generation = _generation(_read(place / "loop/backing_file"), backing.inode)
    if not on or generation is None:
        return None
    return f"loop:{_digest(f'{on}/{backing.inode}.{generation}')}", first


def _generation(path: str, inode: int) -> int | None:
    """Return the generation of an inode, which changes when its number is reused. 0: the file
    system has none; None: the inode is not at the path."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_ino != inode:
            return None
        told = fcntl.ioctl(descriptor, _FS_IOC_GETVERSION, bytes(8))
        return int.from_bytes(told[:4], "little")
    except OSError:
        return 0
    finally:
        os.close(descriptor)


def refuse_alike(
    place: Path, path: str, mapper: Mapper, sys: Path = system.SYS, dev: Path = ground.DEV
) -> None:
    """Check that no other disk has the name of the device's disk. path: of the device.

    Raises:
        UserError: another disk has: a second path to it, or a copy that claims to be it.
    """
    own, bearing = _seat(place, mapper, sys, dev), {place, *Ground(sys, mapper, dev).below(place)}
    for other in sorted((sys / "block").glob("*")):
        name = _disk_identity(other) or _disk_word(other)
        hidden = not (other / "dev").exists()
        if own and name == own[0] and other.resolve() not in bearing and not hidden:
            raise UserError(
                f"{node_of(other)} has the same name {name}",
                where=path,
                next="if both are one disk, name the multipath device above them; if not:"
                " --origin-id WORD",
            )


def mapped(name: str, sys: Path = system.SYS) -> Path | None:
    """Return the sysfs directory of a device-mapper device; None if it does not exist."""
    return next(
        (one for one in (sys / "block").glob("dm-*") if _read(one / "dm/name") == name), None
    )


def is_named(
    place: Path, named: str, mapper: Mapper, sys: Path = system.SYS, dev: Path = ground.DEV
) -> bool:
    """Return whether a device has the identity in a superblock.

    Args:
        place: the device's directory in sysfs.
        named: the identity; "" matches no device.
        mapper: dmsetup.
        sys: path of sysfs.
        dev: path of /dev.
    """
    if own := identity(place):
        return own == named
    return named.startswith("id:") and f"id:{_word(place, mapper, sys, dev)}" == named


def stands_on(
    place: Path,
    named: str,
    sectors: int,
    mapper: Mapper,
    sys: Path = system.SYS,
    dev: Path = ground.DEV,
) -> bool:
    """Return whether a device shares sectors with the device of an identity, which need not be
    present. sectors: length of that device."""
    found = _NAMED.fullmatch(named)
    if not found:
        return False
    first = int(found["first"] or 0)
    wanted = ground.Region(found["disk"], first, first + sectors)
    for base, region in Ground(sys, mapper, dev).footing(place):
        if (seat := _seat(base, mapper, sys, dev)) and (
            wanted.meets(ground.Region(seat[0], region.first, region.end))
        ):
            return True
    return False


def whose(named: str, mapper: Mapper, sys: Path = system.SYS, dev: Path = ground.DEV) -> str:
    """Return the path of the device with an identity of a superblock; "" if none has it."""
    for place in sorted((sys / "class/block").glob("*")):
        real = place.resolve()
        if is_named(real, named, mapper, sys, dev):
            return node_of(real)
    return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace").strip()
    return ""
