# SPDX-License-Identifier: GPL-2.0-only
"""A disk of this machine: what it is, and whether a load may be let loose on it."""

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isoblk.errors import UserError
from isoblk.machine import system
from isoblk.study.model import HostDevice

_SECTOR = 512
_ROOT = "run as root"
_IN_CONTAINER = "run as root; in a container: with --privileged"


@dataclass(frozen=True)
class Disk:
    """A whole disk. path: as it was named. name: the kernel's. number: MAJ:MIN. sys: its
    directory."""

    path: str
    name: str
    number: str
    sys: Path

    def parts(self) -> list[Path]:
        """Directories of the disk and its partitions."""
        return [self.sys, *(path.parent for path in sorted(self.sys.glob("*/partition")))]


def find_disk(path: str, sys: Path = system.SYS) -> Disk:
    """The disk that a path names.

    Raises:
        UserError: it names no whole disk with a request queue.
    """
    try:
        mode = Path(path).stat()
    except OSError as error:
        raise UserError(f"no such device: {error.strerror}", where=path) from None
    if not stat.S_ISBLK(mode.st_mode):
        raise UserError("is not a block device", where=path, next="name a disk, such as /dev/sdb")
    number = f"{os.major(mode.st_rdev)}:{os.minor(mode.st_rdev)}"
    return disk_of(path, number, sys)


def disk_of(path: str, number: str, sys: Path = system.SYS) -> Disk:
    """The disk with a device number.

    Raises:
        UserError: it is a part of a disk, or has no request queue.
    """
    place = (sys / "dev/block" / number).resolve()
    if (place / "partition").exists():
        raise UserError(
            "is a partition, and a scheduler is a whole disk's",
            where=path,
            next=f"name /dev/{place.parent.name}",
        )
    if not list(place.glob("mq/*")):
        raise UserError(
            "has no request queue, so no scheduler (as device mapper and md)",
            where=path,
            next="name the disk below it",
        )
    return Disk(path, place.name, number, place)


def describe(disk: Disk) -> HostDevice:
    """What a study is told of the disk."""
    queue = disk.sys / "queue"
    tags = [int(path.read_text()) for path in disk.sys.glob("mq/*/nr_tags")]
    model = disk.sys / "device/model"
    return HostDevice(
        name=disk.name,
        what=" ".join(model.read_text().split()) if model.exists() else "unnamed",
        size=int((disk.sys / "size").read_text()) * _SECTOR,
        logical_block_size=int((queue / "logical_block_size").read_text()),
        queue_depth=min(tags),
        hw_queues=len(tags),
        rotational=(queue / "rotational").read_text().strip() == "1",
        discard=int((queue / "discard_max_bytes").read_text()) > 0,
    )


def refuse_in_use(
    disk: Disk, sys: Path = system.SYS, proc: Path = system.PROC, *, written: bool = True
) -> None:
    """Check that nobody uses the disk or a part of it, as far as that can be seen.

    hold() finds what holds it exclusively and cannot be seen from here.

    Args:
        disk: what to look at.
        sys: where sysfs is.
        proc: where procfs is.
        written: it is to be written.

    Raises:
        UserError: somebody does, or it is read-only and is to be written.
    """
    if (disk.sys / "size").read_text().strip() == "0":
        raise UserError("has no size: nothing is in it, or attached to it", where=disk.path)
    if written and (disk.sys / "ro").read_text().strip() == "1":
        raise UserError("is read-only", where=disk.path)
    for part in disk.parts():
        device = f"/dev/{part.name}"
        numbers = (part / "dev").read_text().strip()
        if place := _mounted(device, numbers, proc):
            raise UserError(f"{device} is mounted on {place}", where=disk.path, next="unmount it")
        if device in _swaps(proc):
            raise UserError(f"{device} is swap", where=disk.path, next=f"swapoff {device}")
        for holder in sorted(path.name for path in (part / "holders").glob("*")):
            name = _mapper_name(holder, sys)
            raise UserError(f"{device} is held by {name}", where=disk.path, next="take it out")
        for loop in sorted((sys / "block").glob("loop*/loop/backing_file")):
            if loop.read_text().strip() == device:
                raise UserError(
                    f"{device} is what {loop.parents[1].name} is made of", where=disk.path
                )
    if user := _opener(disk, proc):
        raise UserError(f"is open in {user}", where=disk.path, next="end it")


def _mounted(device: str, number: str, proc: Path) -> str:
    """Where it is mounted, "" if nowhere that this process sees."""
    for line in (proc / "self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        # btrfs shows a number of its own, but names its device.
        if fields[2] == number or after.split()[1] == device:
            return fields[4]
    return ""


def _swaps(proc: Path) -> list[str]:
    try:
        lines = (proc / "swaps").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [str(Path(line.split()[0]).resolve()) for line in lines[1:]]


def _mapper_name(holder: str, sys: Path) -> str:
    try:
        return f"{holder} ({(sys / 'block' / holder / 'dm/name').read_text().strip()})"
    except FileNotFoundError:
        return holder


def _opener(disk: Disk, proc: Path) -> str:
    """A process that has the disk or a part of it open, "" if none does."""
    numbers = {(part / "dev").read_text().strip() for part in disk.parts()}
    for link in proc.glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            found = link.stat()
            number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
            if stat.S_ISBLK(found.st_mode) and number in numbers:
                process = link.parents[1]
                return f"process {process.name} ({(process / 'comm').read_text().strip()})"
    return ""


def refuse_partitions(disk: Disk) -> None:
    """Check that the kernel knows of no partition of the disk.

    Raises:
        UserError: it does.
    """
    if parts := [part.name for part in disk.parts() if part != disk.sys]:
        raise UserError(
            f"has partitions ({', '.join(parts)}), and [filesystem] is to be one",
            where=disk.path,
            next=f"if all on it may be lost: wipefs --all {disk.path}; partx --delete {disk.path}",
        )


def refuse_signed(disk: Disk, wipe: str | None) -> None:
    """Check that the disk bears no signature of anything kept on it.

    Args:
        disk: what to look at.
        wipe: the disk whose contents may be lost, as the user names it.

    Raises:
        UserError: it bears one, and `wipe` does not name it.
    """
    if wipe not in (None, disk.path):
        raise UserError(
            f"--wipe names {wipe}, and --device {disk.path}", next="name the same, or leave --wipe"
        )
    what = signatures(disk)
    if what and wipe is None:
        raise UserError(
            f"bears a signature: {', '.join(what)}",
            where=disk.path,
            next=f"if all on it may be lost: --wipe {disk.path}",
        )


def signatures(disk: Disk) -> list[str]:
    """Types of what the disk says that it holds: file systems, partition tables, members."""
    found = json.loads(system.run_tool("wipefs", "--json", disk.path) or "{}")
    return [entry["type"] for entry in found.get("signatures", [])]


def wipe_signatures(disk: Disk) -> None:
    """Remove the disk's signatures, while this process holds it."""
    system.run_tool("wipefs", "--all", "--force", disk.path)


@contextmanager
def hold(disk: Disk, way: int = os.O_RDWR) -> Iterator[int]:
    """Keep everybody else from mounting or claiming the disk. Yields its descriptor.

    Args:
        disk: what to hold.
        way: flags of open(2).

    Raises:
        UserError: somebody has claimed it, or it may not be opened.
    """
    try:
        descriptor = os.open(disk.path, way | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        if isinstance(error, PermissionError):
            raise UserError("no right to open it", where=disk.path, next=_ROOT) from None
        raise UserError(
            f"is held, by the kernel or a program: {error.strerror}",
            where=disk.path,
            next="free it",
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def refuse_without_rights(disk: Disk, hierarchy: Path) -> None:
    """Check that this process may change what a run changes.

    Raises:
        UserError: it may not; says what.
    """
    needs = [
        (disk.sys / "queue/scheduler", "write"),
        (hierarchy, "make cgroups in"),
    ]
    for path, what in needs:
        if not os.access(path, os.W_OK):
            raise UserError(f"no right to {what} it", where=str(path), next=_IN_CONTAINER)


def elevators(disk: Disk, modules: Path = Path("/lib/modules")) -> set[str]:
    """What the disk's scheduler can be set to: what is loaded, and what the kernel would load
    when it is asked for."""
    listed = (disk.sys / "queue/scheduler").read_text().split()
    loaded = {word.strip("[]") for word in listed}
    aliases = modules / os.uname().release / "modules.alias"
    dependencies = modules / os.uname().release / "modules.dep"
    found = set()
    with contextlib.suppress(OSError):
        for line in aliases.read_text().splitlines():
            words = line.split()
            if len(words) == 3 and words[1].endswith("-iosched"):
                found.add(words[1].removesuffix("-iosched"))
    with contextlib.suppress(OSError):
        for line in dependencies.read_text().splitlines():
            name = Path(line.partition(":")[0]).name.partition(".")[0]
            if name.endswith("-iosched"):
                found.add(name.removesuffix("-iosched"))
    return loaded | found
