# SPDX-License-Identifier: GPL-2.0-only
"""Write a systemd unit that creates a cache again after a reboot, with dmsetup alone.

The kernel keeps no list of caches. A file system has the same UUID on the cache and on the origin,
so a mount by UUID may use the origin, which lacks the dirty blocks.
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

# Directories of udev's persistent names, the best first: names of the hardware, which no copy has.
# Excludes by-uuid and by-label, because the cache has the same names.
_BY_ID = "disk/by-id"
_LASTING = (_BY_ID, "mapper", "disk/by-path", "disk/by-partuuid")
# Prefixes of names from the contents of a device, or of names that can move to another device.
_OF_CONTENTS = ("lvm-pv-", "dm-name-", "dm-uuid-", "md-name-", "md-uuid-")
# Characters that separate words for device-mapper, and its escape. The kernel takes the byte 0xa0
# for a blank, also within a UTF-8 character.
_UNSPLIT = re.compile(rb"[\t-\r \xa0\\]")
# Bytes that need no escape within quotes of systemd.
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
    """Return the unit of a cache, with its current options.

    Raises:
        UserError: there is no such cache; it was attached; or one of its devices has no persistent
            name, or only one that a copy has too.
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
            next="create it again after each boot with isoblk cache create; or, for a cache with"
            " no dirty blocks, isoblk cache edit --mode writethrough",
        )
    options = dict(zip(words[10::2], words[11::2], strict=True))
    # It applied to one change, and must not apply at a later boot.
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
    """Return a line that fails for another device than the origin; the kernel accepts any word."""
    command = [shutil.which("isoblk")] if shutil.which("isoblk") else [executable, "-m", "isoblk"]
    words = [*command, "cache", "origin", "--is", f"id:{word}", origin]
    return f"ExecStart={' '.join(quoted(os.fsencode(str(one))) for one in words)}\n"


def unit_name(name: str) -> str:
    """Return the name of a cache's unit."""
    return f"isoblk-cache-{name}.service"


def lasting(path: str, dev: Path = DEV) -> str:
    """Return a path of a device that is persistent across reboots. path: the kernel's name in dev.

    Raises:
        UserError: there is no such path.
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
    """Return whether udev made the name from the device's own identity."""
    link = Path(path)
    return str(link.parent).endswith(_BY_ID) and not link.name.startswith(_OF_CONTENTS)


def escape(path: str) -> str:
    """Return a path as a unit's name, as systemd-escape --path does."""
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
    """Return text as one word of a systemd command line, without replacements."""
    twice = {b"%": "%%", b"$": "$$"}
    found = (bytes([byte]) for byte in text)
    inner = "".join(
        one.decode() if _BARE.fullmatch(one) else twice.get(one, f"\\x{one[0]:02x}")
        for one in found
    )
    return f'"{inner}"'


def _plain(text: str) -> str:
    """Return text for a description, without systemd's specifiers and line ends."""
    return _CONTROL.sub("?", text).replace("%", "%%")
