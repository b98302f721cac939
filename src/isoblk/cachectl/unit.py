# SPDX-License-Identifier: GPL-2.0-only
"""A systemd unit that brings a cache back after a reboot, with dmsetup alone.

The kernel keeps no list of caches, and a file system has the same UUID on the cache and on the
origin: whatever mounts by UUID may take the origin, which lacks all that is dirty.
"""

import os
import re
import shutil
from pathlib import Path
from sys import executable

from isoblk.cachectl.manage import DIRTYING, ORIGIN_SUFFIX, find, names
from isoblk.cachectl.volumes import path_of
from isoblk.errors import UserError
from isoblk.machine import origins, system
from isoblk.machine.mapper import Mapper

DEV = Path("/dev")

# Where udev keeps names of devices that outlive a reboot, the best first: those of the hardware,
# which no copy has. Not by-uuid and by-label: the cache has the same.
_BY_ID = "disk/by-id"
_LASTING = (_BY_ID, "mapper", "disk/by-path", "disk/by-partuuid")
# What udev makes of what is on a device, or of a name that can be given to another one.
_OF_CONTENTS = ("lvm-pv-", "dm-name-", "dm-uuid-", "md-name-", "md-uuid-")
# Where device-mapper would begin another word, and its escape. To the kernel 0xa0 is a blank, also
# within a letter of UTF-8.
_UNSPLIT = re.compile(rb"[\t-\r \xa0\\]")
# Bytes that stand for themselves between the quotes of systemd.
_BARE = re.compile(rb"[^\0-\x1f\x7f-\xff\"\\%$]")
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_PLAIN = re.compile(rb"[A-Za-z0-9:_.]")

_UNIT = """\
# /etc/systemd/system/{unit}
[Unit]
Description=Cache of {origin} on {ssd}, as {name}
DefaultDependencies=no
Requires={devices}
After={devices}
Wants=local-fs-pre.target
Before=local-fs-pre.target shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/modprobe dm-setcache
{check}ExecStart=/sbin/dmsetup create {name} --table {table}
ExecStop=/sbin/dmsetup remove --retry {name}

[Install]
WantedBy=sysinit.target
"""


def unit(name: str, mapper: Mapper, dev: Path = DEV, sys: Path = system.SYS) -> str:
    """The unit of a cache, with the options that it has now.

    Raises:
        UserError: there is no such cache, it was attached, or one of its devices has no name that
            outlives a reboot, or none but one that a copy has as well.
    """
    state = find(name, mapper)
    if f"{name}{ORIGIN_SUFFIX}" in names(mapper):
        raise UserError(
            "the cache was attached, so the device comes up without it at boot",
            where=name,
            next="delete it, and create a cache on the device instead",
        )
    words = mapper("table", name).split()
    origin, ssd = (lasting(path_of(number, sys), dev) for number in (state.origin, state.ssd))
    words[3:5] = [origin, ssd]
    place = (sys / "dev/block" / state.origin).resolve()
    told = state.origin_id == origins.word(place, mapper, sys, dev)
    if state.origin_id and not told and state.mode in DIRTYING and not _is_of_hardware(origin):
        raise UserError(
            f"a copy of its origin would have the name {origin}, and the word {state.origin_id}",
            where=name,
            next="make it anew after each boot, with isoblk cache create; or, for one that keeps"
            " nothing dirty, isoblk cache edit --mode writethrough",
        )
    options = dict(zip(words[10::2], words[11::2], strict=True))
    # It is said once, of one change, not of whatever a later boot finds.
    options.pop("accept_origin", None)
    words[9:] = [str(2 * len(options)), *(word for pair in options.items() for word in pair)]
    return _UNIT.format(
        unit=unit_name(name),
        name=name,
        origin=_plain(origin),
        ssd=_plain(ssd),
        devices=" ".join(escape(path) + ".device" for path in (origin, ssd)),
        check=_check(state.origin_id, origin) if state.origin_id and told else "",
        table=quoted(b" ".join(_UNSPLIT.sub(rb"\\\g<0>", os.fsencode(word)) for word in words)),
    )


def _check(word: str, origin: str) -> str:
    """A line that fails if the device is another one; the kernel believes any word."""
    command = [shutil.which("isoblk")] if shutil.which("isoblk") else [executable, "-m", "isoblk"]
    words = [*command, "cache", "origin", "--is", f"id:{word}", origin]
    return f"ExecStart={' '.join(quoted(os.fsencode(str(one))) for one in words)}\n"


def unit_name(name: str) -> str:
    """What the unit of a cache is called."""
    return f"isoblk-cache-{name}.service"


def lasting(path: str, dev: Path = DEV) -> str:
    """A path of a device that is its own after a reboot, too. path: the kernel's name in dev.

    Raises:
        UserError: there is none.
    """
    node = dev / Path(path).relative_to("/dev")
    links = [link for directory in _LASTING for link in sorted((dev / directory).glob("*"))]
    own = [str(one) for one in links if one.is_symlink() and one.resolve() == node.resolve()]
    for link in (*filter(_is_of_hardware, own), *own):
        return link
    raise UserError(
        "the device has no name that survives a reboot",
        where=path,
        next="put it on a partition of a GPT, or on a logical volume",
    )


def _is_of_hardware(path: str) -> bool:
    """Whether udev made a name of a device of what the device says of itself."""
    link = Path(path)
    return str(link.parent).endswith(_BY_ID) and not link.name.startswith(_OF_CONTENTS)


def escape(path: str) -> str:
    """A path as the name of a unit, as systemd-escape --path has it."""
    parts = [part for part in path.split("/") if part]
    return "-".join(
        "".join(
            chr(byte)
            if _PLAIN.fullmatch(bytes([byte])) and not (byte == ord(".") and first and at == 0)
            else f"\\x{byte:02x}"
            for at, byte in enumerate(part.encode())
        )
        for first, part in ((index == 0, part) for index, part in enumerate(parts))
    )


def quoted(text: bytes) -> str:
    """Text as one word of a command line of systemd, which replaces nothing in it."""
    twice = {b"%": "%%", b"$": "$$"}
    found = (bytes([byte]) for byte in text)
    inner = "".join(
        one.decode() if _BARE.fullmatch(one) else twice.get(one, f"\\x{one[0]:02x}")
        for one in found
    )
    return f'"{inner}"'


def _plain(text: str) -> str:
    """Text for people, in which systemd finds nothing to replace, and no end of the line."""
    return _CONTROL.sub("?", text).replace("%", "%%")
