# SPDX-License-Identifier: GPL-2.0-only
"""Claim a block device of this machine: for a load, for a cache, or to inspect it.

A path is opened once. Every later step uses the opened device: tools get the descriptor
(/proc/self/fd), device-mapper gets the number, and a path that other programs must open again is
compared with it. A symbolic link or a node that changes later therefore leads to no other disk.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from isoblk.caches.ondisk import contents
from isoblk.caches.ondisk.contents import Dirty
from isoblk.caches.ondisk.ssd import Ssd
from isoblk.errors import UserError
from isoblk.machine import node, system
from isoblk.machine.blockdev import Disk, disk_numbered, node_of
from isoblk.machine.detached import refuse_newer_elsewhere
from isoblk.machine.ground import Ground
from isoblk.machine.mapper import dmsetup
from isoblk.machine.users import number_at, refuse_in_use

_ROOT = "run as root"


@dataclass(frozen=True)
class Purpose:
    """Use of a claimed device.

    Attributes:
        alone: exclusive: no other program may use the device, or begin to.
        written: whether it is written to.
        overwritten: whether its data are lost, which the user must allow.
        cache: whether it is wanted because it has a cache.
    """

    alone: bool = True
    written: bool = True
    overwritten: bool = False
    cache: bool = True


LOAD: Final = Purpose(overwritten=True, cache=False)
"""A load that writes anywhere."""
SCRATCH: Final = Purpose()
"""A load on a device that isoblk has made."""
ORIGIN: Final = Purpose(cache=False)
"""The slow device of a cache, whose data are kept."""
SSD: Final = Purpose(overwritten=True)
"""The SSD of a cache; data other than a cache are lost."""
CHECK: Final = Purpose(written=False)
"""Reading the data of a cache."""
REPAIR: Final = Purpose()
"""Repairing the data of a cache."""
WATCH: Final = Purpose(alone=False, written=False)
"""Observing, or configuring the queue, while other programs use the device."""


@dataclass
class Claim:
    """A claimed device, or, for WATCH, an open one.

    Attributes:
        disk: the device.
        descriptor: of it, for reading.
        purpose: its use.
        signatures: types of its signatures that are lost: file systems, members, a cache.
        cached: whether it is the SSD of a cache that is to be used again.
    """

    disk: Disk
    descriptor: int
    purpose: Purpose
    signatures: tuple[str, ...] = ()
    cached: bool = False
    _held: ExitStack | None = None

    @property
    def path(self) -> str:
        """Return a path of the device, for this process only."""
        return f"/proc/self/fd/{self.descriptor}"

    def open(self, way: int) -> int:
        """Open the same device again. way: flags of open(2).

        Raises:
            UserError: it may not be opened, or another program has claimed it.
        """
        return _open_again(self.descriptor, way, self.disk.path)

    def run_tool(self, *words: str) -> str:
        """Return the output of a tool, with the device as its last argument.

        Raises:
            UserError: the tool is missing.
            RunError: it failed.
        """
        return system.run_tool(*words, self.path, keep=(self.descriptor,))

    def compare(self, path: str) -> None:
        """Check that a path, which other programs will open, is of this device.

        Raises:
            UserError: it is not.
        """
        if number_at(path) != self.disk.number:
            raise UserError(
                f"{path} is not the device {self.disk.number}, which was claimed",
                where=self.disk.path,
                next="check the udev rules, and retry",
            )

    def hold(self) -> None:
        """Open the device, and the devices below it, exclusively, unless they already are.

        Raises:
            UserError: it is in use.
        """
        if self._held is None:
            self._held = _exclusive(self)

    def release(self) -> None:
        """Let device-mapper or a mount claim the device. Its number cannot be reused before the
        end."""
        if self._held is not None:
            self._held.close()
        self._held = None

    def wipe(self) -> None:
        """Remove all signatures.

        Raises:
            UserError: it is in use.
            RunError: it cannot be written.
        """
        self.hold()
        self.run_tool("wipefs", "--all", "--force")
        with self.bytes(os.O_RDWR) as ssd:
            contents.erase(ssd)

    @contextmanager
    def bytes(self, way: int) -> Iterator[Ssd]:
        """Open its contents with direct I/O: the page cache may have data from before a write of
        the kernel. way: O_RDONLY or O_RDWR."""
        descriptor = self.open(way | os.O_DIRECT)
        try:
            yield Ssd(self.disk.path, descriptor, self.disk.size)
        finally:
            os.close(descriptor)


@contextmanager
def claim(disk: Disk, purpose: Purpose, wipe: str | None = None) -> Iterator[Claim]:
    """Claim a device.

    Args:
        disk: the device found at a path.
        purpose: its use.
        wipe: the device whose contents may be lost, as the user named it.

    Raises:
        UserError: it is in use, has changed, may not be opened, or has contents that may not be
            lost.
    """
    with ExitStack() as stack:
        try:
            descriptor = _open(disk)
        except UserError:
            # The error that it is in use is more helpful than that of open().
            if purpose.alone:
                refuse_in_use(disk, written=purpose.written)
            raise
        stack.callback(os.close, descriptor)
        held = Claim(disk, descriptor, purpose)
        stack.callback(held.release)
        if purpose.alone:
            held.hold()
            _look(held, wipe)
        yield held


def _open(disk: Disk) -> int:
    """Open the disk's path, if it still is that disk."""
    try:
        place = node.locate(disk.path, disk.number)
    except OSError as error:
        raise UserError(f"no such device: {error.strerror}", where=disk.path) from None
    except node.ChangedError:
        raise UserError(
            f"became another device during the check: it was {disk.number}",
            where=disk.path,
            next="check the udev rules, and retry",
        ) from None
    try:
        return _open_again(place, os.O_RDONLY | os.O_NONBLOCK, disk.path)
    finally:
        os.close(place)


def _open_again(descriptor: int, way: int, path: str) -> int:
    """Open the device of a descriptor again. path: for messages."""
    try:
        return node.reopen(descriptor, way)
    except OSError as error:
        if isinstance(error, PermissionError):
            raise UserError("no permission to open it", where=path, next=_ROOT) from None
        if error.errno == errno.EBUSY:
            raise UserError(
                f"is in use by the kernel or a program: {error.strerror}",
                where=path,
                next="stop its use",
            ) from None
        raise UserError(f"cannot open it: {error.strerror}", where=path) from None


def _exclusive(held: Claim) -> ExitStack:
    """Open exclusively a device, and the devices below its loop devices, which do not hold them."""
    disk, on = held.disk, Ground()
    with ExitStack() as stack:
        lower = []
        for place in (disk.sys, *sorted(on.below(disk.sys))):
            if found := on.backing_of(place):
                made_of = _numbered((found / "dev").read_text().strip())
                lower.append((made_of, _open(made_of)))
                stack.callback(os.close, lower[-1][1])
        own = [held.descriptor, *(descriptor for _, descriptor in lower)]
        refuse_in_use(disk, written=held.purpose.written, own=own, on=on)
        for made_of, descriptor in lower:
            exclusive = _open_again(descriptor, os.O_RDONLY | os.O_EXCL, made_of.path)
            stack.callback(os.close, exclusive)
        way = os.O_RDWR if held.purpose.written else os.O_RDONLY
        stack.callback(os.close, held.open(way | os.O_EXCL))
        return stack.pop_all()


def _numbered(number: str) -> Disk:
    """Return the device with a number, by the kernel's name."""
    return disk_numbered(number, node_of((system.SYS / "dev/block" / number).resolve()))


def _look(held: Claim, wipe: str | None) -> None:
    """Find the device's contents, and refuse those that may not be lost or are not expected."""
    path, purpose = held.disk.path, held.purpose
    if purpose.overwritten and wipe not in (None, path):
        raise UserError(
            f"--wipe names {wipe}, and the device is {path}",
            next="name the device, or remove --wipe",
        )
    if not purpose.overwritten and purpose.cache:
        return
    if purpose.overwritten:
        for part in held.disk.parts()[1:]:
            _refuse_part(_numbered((part / "dev").read_text().strip()), path)
    again = purpose.cache and wipe is None
    with held.bytes(os.O_RDONLY) as ssd:
        marked = contents.is_marked(ssd)
        if marked and not purpose.overwritten:
            raise UserError(
                "is the SSD of a cache", where=path, next=f"see: isoblk cache check {path}"
            )
        if marked and not again:
            _refuse_dirty(path, contents.dirty_blocks(ssd))
        # A used SSD may have contents without a signature.
        blank = not purpose.cache or contents.is_blank(ssd)
    held.cached = marked and again
    if held.cached or not purpose.overwritten:
        return
    refuse_newer_elsewhere(held.disk, dmsetup)
    held.signatures = (*_signatures(held), *([contents.NAME] if marked else []))
    if wipe is not None:
        return
    if held.signatures:
        cause = f"bears a signature: {', '.join(held.signatures)}"
    elif not blank:
        cause = "was used: it does not hold zeros where a cache begins and ends"
    else:
        return
    raise UserError(cause, where=path, next=f"if its data may be lost: --wipe {path}")


def _refuse_part(part: Disk, path: str) -> None:
    """Check that a partition of a disk to be overwritten is not such an SSD. path: the disk's.

    A partition without a node in /dev is an error, because its contents cannot be checked.
    """
    descriptor = _open(part)
    try:
        with Claim(part, descriptor, CHECK).bytes(os.O_RDONLY) as ssd:
            if contents.is_marked(ssd):
                _refuse_dirty(path, contents.dirty_blocks(ssd), part.path)
    finally:
        os.close(descriptor)


def _refuse_dirty(path: str, dirty: Dirty, part: str = "") -> None:
    """Raise an error if the SSD has dirty blocks. part: the partition concerned."""
    if dirty.count == 0:
        return
    blocks = (
        f"that may have dirty blocks ({dirty.why})"
        if dirty.count is None
        else f"with {dirty.count} dirty blocks"
    )
    which = f"{part} is" if part else "is"
    raise UserError(
        f"{which} the SSD of a cache {blocks}, which --wipe does not erase",
        where=path,
        next=(
            f"see: isoblk cache check {part or path}"
            if dirty.damaged
            else "restore it with isoblk cache create, then clean it with isoblk cache delete"
        )
        + f"; if its blocks may be lost: blkdiscard --zeroout {part or path}",
    )


def _signatures(held: Claim) -> tuple[str, ...]:
    found = json.loads(held.run_tool("wipefs", "--json") or "{}")
    return tuple(str(entry["type"]) for entry in found.get("signatures", []))
