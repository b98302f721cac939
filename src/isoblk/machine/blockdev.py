# SPDX-License-Identifier: GPL-2.0-only
"""A disk of this machine: its identity, its attributes, and its schedulers."""

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from isoblk.errors import UserError
from isoblk.machine import system
from isoblk.run.spec import HostDevice

_SECTOR = 512
_IN_CONTAINER = "run as root; in a container: with --privileged"


@dataclass(frozen=True)
class Disk:
    """A block device. path: as given. name: the kernel's. number: MAJ:MIN. sys: its directory in
    sysfs."""

    path: str
    name: str
    number: str
    sys: Path

    def parts(self) -> list[Path]:
        """Return the directories of the disk and its partitions."""
        return [self.sys, *(path.parent for path in sorted(self.sys.glob("*/partition")))]

    @property
    def whole(self) -> Path:
        """Return the directory of the whole disk."""
        return self.sys.parent if (self.sys / "partition").exists() else self.sys

    def above(self) -> list[Path]:
        """Return the directory of a partition's disk in a list; empty for a whole disk."""
        return [] if self.whole == self.sys else [self.whole]

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return int((self.sys / "size").read_text()) * _SECTOR


def node_of(place: Path) -> str:
    """Return the path in /dev of a device, given its directory in sysfs."""
    # The kernel writes / as !.
    return f"/dev/{place.name.replace('!', '/')}"


def find_volume(path: str, sys: Path = system.SYS) -> Disk:
    """Return the block device at a path, whole or a partition.

    Raises:
        UserError: there is no block device.
    """
    return disk_numbered(number_of(path, "name one, such as /dev/sdb1"), path, sys)


def disk_numbered(number: str, path: str, sys: Path = system.SYS) -> Disk:
    """Return the block device MAJ:MIN. path: its path, for messages.

    Raises:
        UserError: there is no such device.
    """
    place = (sys / "dev/block" / number).resolve()
    if not (place / "size").exists():
        raise UserError("the kernel has no such device", where=path, next="lsblk lists them")
    return Disk(path, place.name, number, place)


def find_disk(path: str, sys: Path = system.SYS) -> Disk:
    """Return the disk at a path.

    Raises:
        UserError: there is no whole disk with a request queue.
    """
    return disk_of(path, number_of(path, "name a disk, such as /dev/sdb"), sys)


def number_of(path: str, hint: str) -> str:
    """Return MAJ:MIN of the block device at a path. hint: the next step for the error.

    Raises:
        UserError: there is no block device.
    """
    try:
        found = Path(path).stat()
    except OSError as error:
        raise UserError(f"no such device: {error.strerror}", where=path) from None
    except ValueError:
        raise UserError("the path contains a NUL", where=repr(path)) from None
    if not stat.S_ISBLK(found.st_mode):
        raise UserError("is not a block device", where=path, next=hint)
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"


def disk_of(path: str, number: str, sys: Path = system.SYS) -> Disk:
    """Return the disk with a device number.

    Raises:
        UserError: it is a partition, or has no request queue.
    """
    place = (sys / "dev/block" / number).resolve()
    if not place.exists():
        raise UserError("the kernel has no such device", where=path, next="lsblk lists them")
    if (place / "partition").exists():
        raise UserError(
            "is a partition; only a whole disk has a scheduler",
            where=path,
            next=f"name /dev/{place.parent.name}",
        )
    if not list(place.glob("mq/*")):
        # Its paths, as nvme0c0n1, have no device node, and udev does not see them.
        if list(
            (sys / "block").glob(re.sub(r"^(nvme\d+)(n\d+)$", r"\1c*\2", place.name) + "/mq/*")
        ):
            raise UserError(
                "is an NVMe multipath device, which has no scheduler",
                where=path,
                next="if it has a single path, boot with nvme_core.multipath=N",
            )
        raise UserError(
            "has no request queue, so no scheduler (like all of device mapper and md)",
            where=path,
            next="name the disk below it",
        )
    return Disk(path, place.name, number, place)


def describe(disk: Disk) -> HostDevice:
    """Return the disk's attributes for a study."""
    queue = disk.sys / "queue"
    tags = [int(path.read_text()) for path in disk.sys.glob("mq/*/nr_tags")]
    model = disk.sys / "device/model"
    return HostDevice(
        name=disk.name,
        what=" ".join(model.read_text().split()) if model.exists() else "unnamed",
        size=disk.size,
        logical_block_size=int((queue / "logical_block_size").read_text()),
        queue_depth=min(tags),
        hw_queues=len(tags),
        rotational=(queue / "rotational").read_text().strip() == "1",
        discard=int((queue / "discard_max_bytes").read_text()) > 0,
    )


def refuse_partitions(disk: Disk) -> None:
    """Check that the kernel knows no partition of the disk.

    Raises:
        UserError: it does.
    """
    if parts := [part.name for part in disk.parts() if part != disk.sys]:
        raise UserError(
            f"has partitions ({', '.join(parts)}), and [filesystem] needs a new one",
            where=disk.path,
            next=f"if its data may be lost: wipefs --all {disk.path}; partx --delete {disk.path}",
        )


def refuse_without_rights(disk: Disk, hierarchy: Path) -> None:
    """Check that this process may change what a run changes.

    Raises:
        UserError: a permission is missing.
    """
    needs = [
        (disk.sys / "queue/scheduler", "write"),
        (hierarchy, "make cgroups in"),
    ]
    for path, what in needs:
        if not os.access(path, os.W_OK):
            raise UserError(f"no permission to {what} it", where=str(path), next=_IN_CONTAINER)


def elevators(disk: Disk, modules: Path = Path("/lib/modules")) -> set[str]:
    """Return the possible schedulers of the disk: those that are loaded, and those that the kernel
    would load on request."""
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
