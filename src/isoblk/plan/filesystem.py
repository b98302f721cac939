# SPDX-License-Identifier: GPL-2.0-only
"""The parts of a plan that concern the file system of programs."""

from isoblk.run.shell import Command, Statement, run, write
from isoblk.run.spec import Filesystem, RunSpec
from isoblk.run.tier import Place

# Options that remove randomness, and work that would be deferred until the file system is in use.
_UUID = "69736f62-6c6b-4000-8000-000000000001"
_MKFS = {
    "ext4": (
        *("mkfs.ext4", "-q", "-F", "-U", _UUID, "-E"),
        f"nodiscard,lazy_itable_init=0,lazy_journal_init=0,hash_seed={_UUID}",
    ),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K", "-m", f"uuid={_UUID}"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-K", "-U", _UUID),
}
_SECTOR = 512

DROP_CACHES = write(3, "/proc/sys/vm/drop_caches")


def mount_point(place: Place) -> str:
    """Return the mount point: outside of the run's directory, except on the host machine."""
    return "/run/fs" if place.run.startswith("/") else "fs"


def partition(disk: str) -> str:
    """Return the kernel's name of a disk's first partition."""
    return f"{disk}p1" if disk[-1].isdigit() else f"{disk}1"


def make_filesystem(filesystem: Filesystem, place: Place) -> list[Statement]:
    """Return the commands that make and mount the file system.

    Its partition uses the disk's own request queue. It is added without a partition table, so
    nothing is written for it.
    """
    start, length = filesystem.offset // _SECTOR, filesystem.size // _SECTOR
    return [
        run("addpart", f"/dev/{place.disk}", 1, start, length),
        *make_on(filesystem, place, f"/dev/{partition(place.disk)}"),
    ]


def make_on(filesystem: Filesystem, place: Place, device: str) -> list[Statement]:
    """Return the commands that make and mount the file system on a device."""
    return [
        run(*_MKFS[filesystem.type], *filesystem.mkfs, device),
        run("mkdir", mount_point(place)),
        mount(filesystem, place, device),
    ]


def mount(filesystem: Filesystem, place: Place, device: str) -> Command:
    """Return the command that mounts the file system from a device."""
    options = ("-o", filesystem.mount) if filesystem.mount else ()
    return run("mount", "-t", filesystem.type, *options, device, mount_point(place))


def drop_pages(spec: RunSpec, place: Place, device: str) -> list[Statement]:
    """Return the commands that remove the file system from the page cache."""
    if spec.filesystem is None:
        return []
    return [
        run("umount", mount_point(place)),
        DROP_CACHES,
        mount(spec.filesystem, place, device),
    ]


def unmount(spec: RunSpec, place: Place) -> list[Statement]:
    """Return the commands that remove the file system."""
    if spec.filesystem is None:
        return []
    if spec.caching is not None or spec.stack:
        return [run("umount", mount_point(place))]
    return [run("umount", mount_point(place)), run("delpart", f"/dev/{place.disk}", 1)]
