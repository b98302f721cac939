# SPDX-License-Identifier: GPL-2.0-only
"""Who uses a block device of this machine, as far as that can be seen: what is mounted of it in
any namespace, swap, what is made of it, to whom it is exported, who has it open."""

import contextlib
import fcntl
import os
import stat
import struct
from collections.abc import Collection, Iterator
from pathlib import Path

from isoblk.errors import UserError
from isoblk.machine import system
from isoblk.machine.blockdev import Disk, node_of

# include/uapi/linux/loop.h: the device that a file is on, its inode, and the device that it is.
_LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO = struct.Struct("=QQQ208x")
_LOOP_FILE = "loop/backing_file"
# Files that name a device which the kernel uses for others without holding it, and which of the
# directories above says for whom.
_EXPORTS = (
    ("kernel/config/target/core/*/*/udev_path", 0, "an export of the SCSI target"),
    ("kernel/config/nvmet/subsystems/*/namespaces/*/device_path", 2, "an export of NVMe subsystem"),
)
_DELETED = " (deleted)"


def refuse_in_use(
    disk: Disk,
    sys: Path = system.SYS,
    proc: Path = system.PROC,
    *,
    written: bool = True,
    own: Collection[int] = (),
    by: str = "",
) -> None:
    """Check that nobody uses the device, a part of it, or the disk that it is a part of.

    Args:
        disk: what to look at.
        sys: where sysfs is.
        proc: where procfs is.
        written: it is to be written.
        own: descriptors of this process that do not count.
        by: a loop device that does not count, either: it is what this is looked at for.

    Raises:
        UserError: somebody does, or it is empty, or is read-only and is to be written.
    """
    if (disk.sys / "size").read_text().strip() == "0":
        raise UserError("has no size: nothing is in it, or attached to it", where=disk.path)
    if written and (disk.sys / "ro").read_text().strip() == "1":
        raise UserError("is read-only", where=disk.path)
    for place in (*disk.parts(), *disk.above()):
        for what, following in _uses(place, sys, proc, by):
            raise UserError(f"{node_of(place)} {what}", where=disk.path, next=following)
    if (disk.whole / _LOOP_FILE).exists():
        _refuse_shared(disk, sys)
    if user := _opener(disk, proc, own):
        raise UserError(f"is open in {user}", where=disk.path, next="end it")


def _uses(place: Path, sys: Path, proc: Path, by: str) -> Iterator[tuple[str, str]]:
    """What the device is, and what its user has to do. place: its directory in sysfs."""
    device, number = node_of(place), (place / "dev").read_text().strip()
    for where, user in _mounted(device, number, proc):
        yield f"is mounted on {where}{user}", "unmount it"
    if any(_is(path, device, number) for path in _swaps(proc)):
        yield "is swap", f"swapoff {device}"
    for holder in sorted(path.name for path in (place / "holders").glob("*")):
        yield f"is held by {_mapper_name(holder, sys)}", "take it out"
    if (place / "bcache").exists():
        yield "is held by bcache", "take it out"
    for member in sorted((sys / "fs/btrfs").glob(f"*/devices/{place.name}")):
        yield f"is a member of the mounted btrfs {member.parents[1].name}", "unmount it"
    for file in sorted((sys / "block").glob(f"loop*/{_LOOP_FILE}")):
        loop = file.parents[1]
        if loop.name != by and _made_of(loop, device, number):
            yield f"is what {loop.name} is made of", f"losetup --detach /dev/{loop.name}"
    for pattern, above, what in _EXPORTS:
        for file in sorted(sys.glob(pattern)):
            with contextlib.suppress(OSError):
                if _is(file.read_text().strip(), device, number):
                    yield f"is {what} {file.parents[above].name}", "take it out"


def _is(path: str, device: str, number: str) -> bool:
    """Whether a path, as the kernel or another program keeps it, is of a device."""
    return path == device or (path.startswith("/") and number_at(path) == number)


def number_at(path: str) -> str:
    """MAJ:MIN of the block device at a path, "" if none is there."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return ""
    if not stat.S_ISBLK(found.st_mode):
        return ""
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"


def _mounted(device: str, number: str, proc: Path) -> Iterator[tuple[str, str]]:
    """Where it is mounted; and whose mounts these are, if they are not ours."""
    seen = set()
    for process in [proc / "self", *sorted(proc.glob("[0-9]*"))]:
        space = _namespace(process)
        if space in seen:
            continue
        seen.add(space)
        # A process may end meanwhile. What it had mounted is held, as a claim finds out.
        with contextlib.suppress(OSError):
            user = "" if process.name == "self" else f", as {_process(process)} sees it"
            for line in (process / "mountinfo").read_text().splitlines():
                before, _, after = line.partition(" - ")
                fields, source = before.split(), after.split()[1:2]
                # btrfs shows a number of its own, but names its device.
                if fields[2] == number or any(
                    _is(system.plain(one), device, number) for one in source
                ):
                    yield system.plain(fields[4]), user


def _namespace(process: Path) -> str:
    """Which mounts it sees; "" if it is not ours to know."""
    try:
        return str((process / "ns/mnt").readlink())
    except OSError:
        return ""


def _swaps(proc: Path) -> list[str]:
    try:
        lines = (proc / "swaps").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [str(Path(system.plain(line.split()[0])).resolve()) for line in lines[1:]]


def _mapper_name(holder: str, sys: Path) -> str:
    try:
        return f"{holder} ({(sys / 'block' / holder / 'dm/name').read_text().strip()})"
    except FileNotFoundError:
        return holder


def _process(place: Path) -> str:
    return f"process {place.name} ({(place / 'comm').read_text().strip()})"


# -- loop devices --


def below(disk: Disk) -> str:
    """MAJ:MIN of the device that a loop device is made of, "" if it is of a file, or is none."""
    try:
        path = (disk.whole / _LOOP_FILE).read_text().strip()
    except OSError:
        return ""
    return number_at(path) or ("" if Path(path).exists() else _asked(disk.whole.name))


def _made_of(loop: Path, device: str, number: str) -> bool:
    try:
        path = (loop / _LOOP_FILE).read_text().strip()
    except OSError:
        return False  # detached meanwhile
    if _is(path, device, number):
        return True
    # A path that leads nowhere was that of a node which was removed, or of another namespace.
    return not Path(path).exists() and _asked(loop.name) == number


def _asked(name: str) -> str:
    """MAJ:MIN of the device that a loop device is made of, as the kernel tells it."""
    try:
        descriptor = os.open(f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        told = bytearray(_LOOP_INFO.size)
        fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, told)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    on, _, is_ = _LOOP_INFO.unpack(told)
    # Of a file both are the device that it is on.
    return "" if on == is_ else f"{os.major(is_)}:{os.minor(is_)}"


def _refuse_shared(disk: Disk, sys: Path) -> None:
    """Check that no other loop device has bytes of the same file."""
    path = (disk.whole / _LOOP_FILE).read_text()
    first, last = _extent(disk.whole)
    for file in sorted((sys / "block").glob(f"loop*/{_LOOP_FILE}")):
        other = file.parents[1]
        with contextlib.suppress(OSError):
            begin, end = _extent(other)
            same = file.read_text() == path and not path.strip().endswith(_DELETED)
            if other.name != disk.whole.name and same and begin < last and first < end:
                raise UserError(
                    f"is made of {path.strip()}, and so is {other.name}",
                    where=disk.path,
                    next=f"losetup --detach /dev/{other.name}",
                )


def _extent(loop: Path) -> tuple[int, int]:
    """Bytes of its file."""
    first = int((loop / "loop/offset").read_text())
    return first, first + int((loop / "size").read_text()) * 512


# -- processes --


def _opener(disk: Disk, proc: Path, own: Collection[int]) -> str:
    """A process that has the device or a part of it open, or the disk that it is a part of open
    for writing; "" if none does."""
    numbers = {(place / "dev").read_text().strip() for place in disk.parts()}
    above = {(place / "dev").read_text().strip() for place in disk.above()}
    ours = {str(proc / str(os.getpid()) / "fd" / str(descriptor)) for descriptor in own}
    for link in proc.glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            number = number_at(str(link))
            if str(link) in ours or number not in numbers | above:
                continue
            if number in numbers or _writes(link):
                return _process(link.parents[1])
    return ""


def _writes(link: Path) -> bool:
    told = (link.parents[1] / "fdinfo" / link.name).read_text()
    flags = next(line.split()[1] for line in told.splitlines() if line.startswith("flags:"))
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
