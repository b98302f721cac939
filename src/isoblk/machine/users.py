# SPDX-License-Identifier: GPL-2.0-only
"""Find the users of a block device of this machine that are visible: mounts in any namespace, swap,
devices made of it, exports, open files."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from isoblk.errors import UserError
from isoblk.machine import ground, system
from isoblk.machine.blockdev import Disk, node_of
from isoblk.machine.ground import Ground

_LOOP_FILE = "loop/backing_file"
# Files with the path of a device that the kernel exports without holding it, and the number of
# directories up to the export's name.
_EXPORTS = (
    ("kernel/config/target/core/*/*/udev_path", 0, "an export of the SCSI target"),
    ("kernel/config/nvmet/subsystems/*/namespaces/*/device_path", 2, "an export of NVMe subsystem"),
)


def refuse_in_use(
    disk: Disk,
    sys: Path = system.SYS,
    proc: Path = system.PROC,
    *,
    written: bool = True,
    own: Collection[int] = (),
    on: Ground | None = None,
) -> None:
    """Check that the device, its partitions, its disk and the sectors below it have no user.

    Args:
        disk: the device.
        sys: path of sysfs.
        proc: path of procfs.
        written: whether it is to be written.
        own: descriptors of this process that do not count.
        on: the devices of this machine.

    Raises:
        UserError: it has a user, or is empty, or is read-only and is to be written.
    """
    on = on or Ground(sys)
    if (disk.sys / "size").read_text().strip() == "0":
        raise UserError("has no size: it has no medium, or no file is attached", where=disk.path)
    if written and (disk.sys / "ro").read_text().strip() == "1":
        raise UserError("is read-only", where=disk.path)
    for place in (*disk.parts(), *disk.above()):
        for what, following in (*_uses(place, sys, proc), *_holders(place, sys)):
            raise UserError(f"{node_of(place)} {what}", where=disk.path, next=following)
    refuse_rivals(disk, sys, proc, on=on)
    if user := _opener(disk, proc, own, on):
        raise UserError(f"is open in {user}", where=disk.path, next="end it")


def refuse_rivals(
    disk: Disk, sys: Path = system.SYS, proc: Path = system.PROC, *, on: Ground | None = None
) -> None:
    """Check that the sectors below a device have no user other than the device: its disks
    themselves, another device of device-mapper, md or loop, another path.

    Raises:
        UserError: they have.
    """
    on = on or Ground(sys)
    for place in sorted(on.below(disk.sys)):
        for what, following in _uses(place, sys, proc):
            raise UserError(f"{node_of(place)} {what}", where=disk.path, next=following)
    for place in on.rivals(disk.sys):
        if made := _made(place, sys):
            what, following = made
            raise UserError(f"shares sectors with {what}", where=disk.path, next=following)
        for what, following in (*_uses(place, sys, proc), *_holders(place, sys)):
            raise UserError(
                f"shares sectors with {node_of(place)}, which {what}",
                where=disk.path,
                next=following,
            )


def _made(place: Path, sys: Path) -> tuple[str, str] | None:
    """Return the name of a device that is made of others, and the command that removes it; None for
    a disk or a partition."""
    if (place / "dm").exists():
        name = _mapper_name(place.name, sys)
        return name, f"dmsetup remove {name.partition('(')[2].rstrip(')') or place.name}"
    if (place / "loop").exists():
        file = (place / "loop/backing_file").read_text().strip()
        return f"{place.name} ({file})", f"losetup --detach {node_of(place)}"
    if (place / "md").exists():
        return place.name, f"mdadm --stop {node_of(place)}"
    return None


def _uses(place: Path, sys: Path, proc: Path) -> Iterator[tuple[str, str]]:
    """Yield each use of the device, and the step that ends it. place: its directory in sysfs."""
    device, number = node_of(place), (place / "dev").read_text().strip()
    for where, user in _mounted(device, number, proc):
        yield f"is mounted on {where}{user}", "unmount it"
    if any(_is(path, device, number) for path in _swaps(proc)):
        yield "is swap", f"swapoff {device}"
    if (place / "bcache").exists():
        yield "is held by bcache", "remove it from bcache"
    for member in sorted((sys / "fs/btrfs").glob(f"*/devices/{place.name}")):
        yield f"is a member of the mounted btrfs {member.parents[1].name}", "unmount it"
    for pattern, above, what in _EXPORTS:
        for file in sorted(sys.glob(pattern)):
            with contextlib.suppress(OSError):
                if _is(file.read_text().strip(), device, number):
                    yield f"is {what} {file.parents[above].name}", "remove it there"


def _holders(place: Path, sys: Path) -> Iterator[tuple[str, str]]:
    """Yield each device that the device is a part of, and the step that removes it from there."""
    device, number = node_of(place), (place / "dev").read_text().strip()
    for holder in sorted(path.name for path in (place / "holders").glob("*")):
        yield f"is held by {_mapper_name(holder, sys)}", "remove it from that device"
    for file in sorted((sys / "block").glob(f"loop*/{_LOOP_FILE}")):
        loop = file.parents[1]
        if _is_of(loop, device, number):
            yield f"is the backing of {loop.name}", f"losetup --detach /dev/{loop.name}"


def _is(path: str, device: str, number: str) -> bool:
    """Return whether a path that the kernel or another program stores is of a device."""
    return path == device or (path.startswith("/") and number_at(path) == number)


def number_at(path: str) -> str:
    """Return MAJ:MIN of the block device at a path, "" if there is none."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return ""
    if not stat.S_ISBLK(found.st_mode):
        return ""
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"


def _mounted(device: str, number: str, proc: Path) -> Iterator[tuple[str, str]]:
    """Yield each mount point, and the process that sees it if it is in another namespace."""
    seen = set()
    for process in [proc / "self", *sorted(proc.glob("[0-9]*"))]:
        space = _namespace(process)
        if space in seen:
            continue
        seen.add(space)
        # A process may end concurrently. Its mounts hold the device, which a claim detects.
        with contextlib.suppress(OSError):
            user = "" if process.name == "self" else f", as {_process(process)} sees it"
            for line in (process / "mountinfo").read_text().splitlines():
                before, _, after = line.partition(" - ")
                fields, source = before.split(), after.split()[1:2]
                # btrfs shows its own device number, and the device's path.
                if fields[2] == number or any(
                    _is(system.plain(one), device, number) for one in source
                ):
                    yield system.plain(fields[4]), user


def _namespace(process: Path) -> str:
    """Return the id of a process's mount namespace; "" without permission."""
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


def _is_of(loop: Path, device: str, number: str) -> bool:
    """Return whether a block device backs a loop device."""
    try:
        path = (loop / _LOOP_FILE).read_text().strip()
    except OSError:
        return False  # already detached
    if _is(path, device, number):
        return True
    # The path of a removed node, or of another namespace, does not exist.
    made_of = ground.backing(loop)
    return not Path(path).exists() and made_of == ground.Backing(number, 0)


# -- processes --


def _opener(disk: Disk, proc: Path, own: Collection[int], on: Ground) -> str:
    """Return a process that has the device, a part of it, or the backing of a loop device below it
    open, or a device with shared sectors open for writing; "" if there is none."""
    bearing = on.below(disk.sys)
    # A loop device does not hold its backing.
    free = [lower for one in (disk.sys, *bearing) if (lower := on.backing_of(one))]
    # A held device is its holder's: mdmon writes to members of its arrays.
    free_others = (one for one in (*bearing, *on.rivals(disk.sys)) if not _held(one))
    others = [*disk.above(), *free_others]
    numbers = {(place / "dev").read_text().strip() for place in (*disk.parts(), *free)}
    above = {(place / "dev").read_text().strip() for place in others}
    ours = {str(proc / str(os.getpid()) / "fd" / str(descriptor)) for descriptor in own}
    for link in proc.glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            number = number_at(str(link))
            if str(link) in ours or number not in numbers | above:
                continue
            if number in numbers or _writes(link):
                return _process(link.parents[1])
    return ""


def _held(place: Path) -> bool:
    return any((place / "holders").glob("*"))


def _writes(link: Path) -> bool:
    told = (link.parents[1] / "fdinfo" / link.name).read_text()
    flags = next(line.split()[1] for line in told.splitlines() if line.startswith("flags:"))
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
