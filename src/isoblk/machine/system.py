# SPDX-License-Identifier: GPL-2.0-only
"""Read /proc and /sys of this machine, and run its tools."""

import errno
import fcntl
import os
import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from isoblk.errors import RunError, UserError
from isoblk.kernel.tools import install_command
from isoblk.machine.process import PATH
from isoblk.run.spec import CgroupVersion

SYS = Path("/sys")
PROC = Path("/proc")

# include/uapi/linux/loop.h: the ioctls, a descriptor, and the flags of struct loop_info64.
_LOOP_CTL_GET_FREE, _LOOP_CONFIGURE = 0x4C82, 0x4C0A
_LOOP_CONFIG = struct.Struct("=I4x52xI176x64x")
_LO_FLAGS_DIRECT_IO = 16
_ATTEMPTS = 64
_ESCAPED = re.compile(r"\\([0-7]{3})")


def boot_id() -> str:
    """Return the id of the machine's boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def chosen(text: str) -> str:
    """Return the choice in brackets, else the text."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return text


def line_of(device: str, path: Path) -> str:
    """Return a device's line in a file with a line per device; "" without one."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return ""
    return next((line for line in lines if line.split()[:1] == [device]), "")


def default_weight(path: Path) -> str:
    """Return a cgroup's weight, from the first line of its file: "100", or "default 100".

    Raises:
        FileNotFoundError: there is no such file.
    """
    return path.read_text().split("\n", 1)[0].removeprefix("default ")


def run_tool(*words: str, keep: Sequence[int] = ()) -> str:
    """Return the output of a tool of util-linux. keep: descriptors that it inherits.

    Raises:
        UserError: it is missing.
        RunError: it failed.
    """
    try:
        ended = subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": PATH, "LC_ALL": "C"},
            # The Ctrl-C that begins an undo must not end its tools.
            process_group=0,
            pass_fds=keep,
        )
    except FileNotFoundError:
        raise UserError(
            f"{words[0]} is missing", next=install_command(["util-linux", "mount"])
        ) from None
    if ended.returncode:
        raise RunError(ended.stderr.strip() or f"failed with {ended.returncode}", where=words[0])
    return ended.stdout


def attach(file: int) -> str:
    """Make a loop device of an open file, with direct I/O if the file system has it. Returns its
    name.

    Raises:
        UserError: there is no permission, or no free device.
        OSError: another error.
    """
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        control = os.open("/dev/loop-control", flags)
        try:
            for _ in range(_ATTEMPTS):
                number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
                loop = os.open(f"/dev/loop{number}", flags)
                try:
                    fcntl.ioctl(loop, _LOOP_CONFIGURE, _LOOP_CONFIG.pack(file, _LO_FLAGS_DIRECT_IO))
                    return f"loop{number}"
                except OSError as error:
                    # Another program took the free device first.
                    if error.errno != errno.EBUSY:
                        raise
                finally:
                    os.close(loop)
        finally:
            os.close(control)
    except PermissionError:
        raise UserError("no permission to make a loop device", next="run as root") from None
    raise UserError("no loop device stays free", next="check which programs attach loop devices")


def detach(file: Path) -> None:
    """Detach the loop devices of a file.

    Raises:
        RunError: a device could not be detached.
    """
    for place in sorted((SYS / "block").glob("loop*/loop/backing_file")):
        try:
            backing = place.read_text().strip()
        except OSError:
            # Already detached.
            continue
        if backing.removesuffix(" (deleted)") == str(file):
            run_tool("losetup", "--detach", f"/dev/{place.parents[1].name}")


def unmount(disk: str, partition: str, directory: Path) -> None:
    """Unmount a partition of a disk, by the kernel's names, from a directory, if it is mounted
    there.

    Raises:
        RunError: it could not be unmounted.
    """
    try:
        number = (SYS / "block" / disk / partition / "dev").read_text().strip()
    except FileNotFoundError:
        return
    for line in (PROC / "self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] == number and plain(fields[4]) == str(directory):
            run_tool("umount", str(directory))


def plain(text: str) -> str:
    """Decode a path in which the kernel has escaped blanks.

    >>> plain("/mnt/my\\040disk") '/mnt/my disk'
    """
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def remove_partition(disk: str, partition: str) -> None:
    """Remove the first partition of a disk, by the kernel's names, if it exists.

    Raises:
        RunError: it could not be removed.
    """
    if (SYS / "block" / disk / partition).exists():
        run_tool("delpart", f"/dev/{disk}", "1")


def io_hierarchy(proc: Path = PROC) -> tuple[Path, CgroupVersion]:
    """Return the mount point and version of the cgroups with the io controller.

    Raises:
        UserError: there is none.
    """
    # A mount point may contain any bytes except those that the kernel escapes, and a mount may have
    # no source.
    text = (proc / "self/mountinfo").read_text(errors="surrogateescape")
    for line in text.removesuffix("\n").split("\n"):
        before, _, after = line.partition(" - ")
        place = Path(plain(before.split(" ")[4]))
        kind, _, options = after.split(" ")[:3]
        if kind == "cgroup" and "blkio" in options.split(","):
            return place, "v1"
        if kind == "cgroup2" and "io" in _controllers(place):
            return place, "v2"
    raise UserError(
        "no mounted cgroup hierarchy has the io controller",
        next="mount -t cgroup2 cgroup2 /sys/fs/cgroup",
    )


def _controllers(root: Path) -> list[str]:
    try:
        return (root / "cgroup.controllers").read_text().split()
    except OSError:
        return []
