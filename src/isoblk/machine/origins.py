# SPDX-License-Identifier: GPL-2.0-only
"""Which disk an origin is: the identity by which dm-setcache knows it, and a word where the kernel
has none, as of loop devices, virtio disks, md arrays, and device-mapper devices without a UUID.

A word has to be the same after a reboot, and another for another disk. So it comes from what names
the disk or what it is made of, never from what is on it, which a copy has as well.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from isoblk.errors import UserError
from isoblk.machine import system
from isoblk.machine.blockdev import node_of
from isoblk.machine.mapper import Mapper

DEV: Final = Path("/dev")
_WORD: Final = re.compile(r"[A-Za-z0-9_.:+=@/-]{1,100}", re.ASCII)
# What udev makes of what is on a device, or of a name that can be given to another one.
_OF_CONTENTS: Final = ("lvm-pv-", "dm-name-", "dm-uuid-", "md-name-")
_WWID: Final = re.compile(r"(?:eui|naa)\.[0-9a-f]+")
_NUMBER: Final = re.compile(r"\d+:\d+")


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


def identity(place: Path, dev: Path = DEV) -> str:
    """What the kernel calls a device by itself; "" if it has no identity, as far as is seen here.

    Args:
        place: the device's directory in sysfs.
        dev: where udev keeps names of devices.
    """
    if not (place / "partition").exists():
        return _disk_identity(place)
    disk, uuid = _disk_identity(place.parent), _part_uuid(place, dev)
    if uuid:
        return f"{disk}/part:{uuid}" if disk else f"part:{uuid}"
    return f"{disk}/start:{_read(place / 'start')}" if disk else ""


def _disk_identity(place: Path) -> str:
    if (place / "dm").exists():
        uuid = _read(place / "dm/uuid")
        return f"dm:{uuid}" if uuid else ""
    for name in ("wwid", "device/wwid"):
        if _WWID.fullmatch(wwid := _read(place / name)):
            return f"wwid:{wwid}"
    # NVMe shows another one as its wwid if it has that, too.
    for name in ("nguid", "eui"):
        number = re.sub("[^0-9a-f]", "", _read(place / name).lower())
        if number.strip("0"):
            return f"wwid:eui.{number}"
    return ""


def _part_uuid(place: Path, dev: Path) -> str:
    for line in _read(place / "uevent").splitlines():
        if line.startswith("PARTUUID="):
            return line.partition("=")[2]
    return next(_links(place, dev / "disk/by-partuuid"), "")


def word(place: Path, mapper: Mapper, sys: Path = system.SYS, dev: Path = DEV) -> str:
    """A word for a device; "" if the kernel can name it, or nothing can.

    Args:
        place: the device's directory in sysfs.
        mapper: dmsetup.
        sys: where sysfs is.
        dev: where udev keeps names of devices.
    """
    return "" if identity(place, dev) else _word(place, mapper, sys, dev)


def _word(place: Path, mapper: Mapper, sys: Path, dev: Path) -> str:
    if (place / "partition").exists():
        disk = _word(place.parent, mapper, sys, dev)
        return _fit(f"{disk}/start:{_read(place / 'start')}") if disk else ""
    if (place / "dm").exists():
        return _made_of(place, mapper, sys, dev)
    if file := _read(place / "loop/backing_file"):
        with suppress(OSError):
            return f"loop:{_digest(file)}-{Path(file).stat().st_ino}"
        return ""
    # Not a controller's serial number, which all disks behind it share.
    for name in ("wwid", "device/wwid", "md/uuid", "serial"):
        if value := _read(place / name):
            return _fit(f"{Path(name).name}:{value}")
    links = _links(place, dev / "disk/by-id")
    return next((_fit(one) for one in links if not one.startswith(_OF_CONTENTS)), "")


def _made_of(place: Path, mapper: Mapper, sys: Path, dev: Path) -> str:
    """Of a device-mapper device without a UUID: its table, with what the devices in it are."""
    table = mapper("table", _read(place / "dm/name"))
    for number in sorted(set(_NUMBER.findall(table))):
        below = (sys / "dev/block" / number).resolve()
        if not (below / "size").exists():
            continue
        known = identity(below, dev) or _word(below, mapper, sys, dev)
        if not known:
            return ""
        table = re.sub(rf"(?<![\d:]){number}(?![\d:])", known, table)
    return f"dm:{_digest(table)}"


def mapped(name: str, sys: Path = system.SYS) -> Path | None:
    """Directory in sysfs of a device-mapper device; None if there is none of that name."""
    return next(
        (one for one in (sys / "block").glob("dm-*") if _read(one / "dm/name") == name), None
    )


def is_named(
    place: Path, named: str, mapper: Mapper, sys: Path = system.SYS, dev: Path = DEV
) -> bool:
    """Whether a device has an identity, as a superblock names it.

    Args:
        place: the device's directory in sysfs.
        named: the identity; "" is nobody's.
        mapper: dmsetup.
        sys: where sysfs is.
        dev: where udev keeps names of devices.
    """
    if own := identity(place, dev):
        return own == named
    return named.startswith("id:") and f"id:{_word(place, mapper, sys, dev)}" == named


def whose(named: str, mapper: Mapper, sys: Path = system.SYS, dev: Path = DEV) -> str:
    """Path of the device here that has an identity, as a superblock names it; "": none has."""
    for place in sorted((sys / "class/block").glob("*")):
        real = place.resolve()
        if is_named(real, named, mapper, sys, dev):
            return node_of(real)
    return ""


def _links(place: Path, directory: Path) -> Iterator[str]:
    """Names that udev has for a device in a directory of its own."""
    for link in sorted(directory.glob("*")):
        if link.is_symlink() and link.resolve().name == place.name.replace("!", "/"):
            yield link.name


def _fit(text: str) -> str:
    """A word that the target takes."""
    return text if _WORD.fullmatch(text) else f"sha256:{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace").strip()
    return ""
