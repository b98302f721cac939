# SPDX-License-Identifier: GPL-2.0-only
"""The agent that mirrors io.weight, written by users and tools, to io.isoblk.weight.

It waits for events: a weight was written, or all weights may be lost because a disk's scheduler was
chosen (events) or the modules were loaded (uevents). Its only state is the set of cgroups with a
line that could not be written; the weights that it wrote are recorded at the cgroup. So it may be
killed at any time, and its successor continues.
"""

import os
import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from isoblk.errors import UserError
from isoblk.machine import system
from isoblk.weights import cgroup, disk, uevents
from isoblk.weights.cgroup import By
from isoblk.weights.events import LostError, Schedulers, Watch, Written
from isoblk.weights.lock import alone

LOCK: Final = Path("/run/isoblk/weights.lock")
_INITSTATE: Final = Path("/sys/module/isoblk_share/initstate")
# A module is announced before its files exist.
_LOADED_SECONDS: Final = 5.0
_STEP_SECONDS: Final = 0.02

_SOURCES: Final = (cgroup.IO_WEIGHT.encode(), cgroup.BFQ_WEIGHT.encode())
_WEIGHTS: Final = (*_SOURCES, cgroup.OUR_WEIGHT.encode())
_IO_COST: Final = "io.cost.qos"
_CHILDREN: Final = cgroup.CHILDREN.encode()


@dataclass
class Follower:
    """The mirror of one hierarchy.

    Attributes:
        root: mount point of the hierarchy.
        say: prints a line for the user.
    """

    root: Path
    say: Callable[[str], None]
    _told: set[str] = field(default_factory=set)

    def all(self) -> int:
        """Mirror the weights of every cgroup; return the number of cgroups."""
        self._open_io_weight()
        top = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        count = 0
        try:
            for directory in cgroup.below(top):
                self._one(directory)
                count += 1
        finally:
            os.close(top)
        return count

    def written(self, watch: Watch, what: Written) -> None:
        """Handle a write to a file of a cgroup."""
        if what.name not in _WEIGHTS and what.name != _CHILDREN:
            return
        try:
            directory = watch.open(what.directory)
        except OSError:
            # The cgroup is gone.
            return
        try:
            # Children may have new files, which are empty: only children that had a weight before
            # matter. Container runtimes write here for each container.
            if what.name == _CHILDREN:
                for _, child in cgroup.named(directory):
                    if cgroup.ours(child):
                        self._one(child)
            else:
                by = _writer(what.pid) if what.name in _SOURCES else By.UNKNOWN
                self._one(directory, by)
                with cgroup.scope_of(directory) as scope:
                    if scope is not None:
                        self._one(scope)
        except FileNotFoundError:
            return
        finally:
            os.close(directory)

    def _open_io_weight(self) -> None:
        """Make io.weight accept weights for disks with a scheduler of isoblk.

        It accepts them for disks that io.cost knows, also if io.cost is disabled there.
        """
        for number in disk.ours():
            if not system.line_of(number, self.root / _IO_COST):
                try:
                    (self.root / _IO_COST).write_text(f"{number} enable=0")
                except OSError as error:
                    self._once(f"io.weight takes no weight for disk {number}: {error.strerror}")

    def _one(self, directory: int, by: By = By.UNKNOWN) -> None:
        try:
            left = cgroup.follow(directory, by)
        except OSError as error:
            if error.errno not in cgroup.GONE:
                self._tell(f"cannot follow: {error.strerror}", directory)
            return
        for line in left:
            if line.why.errno not in cgroup.GONE:
                self._tell(f"{line.key}: {line.why.strerror}", directory)

    def _tell(self, text: str, directory: int) -> None:
        """Report each cause once, with the first cgroup that has it."""
        self._once(text, f"{cgroup.where(directory)}: ")

    def _once(self, text: str, where: str = "") -> None:
        if text not in self._told:
            self._told.add(text)
            self.say(where + text)


def _writer(pid: int) -> By:
    """Return whether a process is systemd, the system's or a user's."""
    if pid == 1:
        return By.SYSTEMD
    try:
        name = Path(f"/proc/{pid}/comm").read_bytes()
    except OSError:
        # The process has ended; systemd would be running.
        return By.OTHER
    return By.SYSTEMD if name == b"systemd\n" else By.OTHER


def run(root: Path, say: Callable[[str], None], ready: Callable[[int], None]) -> None:
    """Follow until a signal ends it (KeyboardInterrupt).

    Args:
        root: mount point of the unified hierarchy.
        say: prints a line for the user.
        ready: called with the number of cgroups after the first pass over all.

    Raises:
        UserError: another process follows already, or this process has no permission.
    """
    follower = Follower(root, say)
    with _alone(), _watches(root) as (cgroups, disks), uevents.listen() as heard:
        ready(follower.all())
        with selectors.DefaultSelector() as waiting:
            for source in (cgroups.fd, disks.fd, heard):
                waiting.register(source, selectors.EVENT_READ)
            while True:
                waiting.select()
                if uevents.loaded(heard):
                    _wait_for_files()
                    follower.all()
                _catch_up(follower, cgroups, disks)


def _catch_up(follower: Follower, cgroups: Watch, disks: Schedulers) -> None:
    try:
        written = cgroups.read()
        chosen = disks.chosen()
    except LostError:
        chosen = True
    if chosen:
        follower.all()
        return
    for what in written:
        follower.written(cgroups, what)


def _wait_for_files() -> None:
    """Wait until an announced module has its files."""
    for _ in range(round(_LOADED_SECONDS / _STEP_SECONDS)):
        try:
            if _INITSTATE.read_text() == "live\n":
                return
        except OSError:
            return
        time.sleep(_STEP_SECONDS)


def give_back(root: Path) -> int:
    """Remove all mirrored weights; return the number of cgroups that had one.

    Raises:
        UserError: another process still follows.
    """
    count = 0
    with _alone():
        top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for directory in cgroup.below(top):
                # This also deletes the record of a cgroup whose weight was set manually since.
                wrote = bool(cgroup.ours(directory))
                try:
                    left = cgroup.give_back(directory)
                except OSError as error:
                    # The cgroup is gone, and its weights with it.
                    if error.errno not in cgroup.GONE:
                        raise
                    continue
                count += wrote and not left
        finally:
            os.close(top)
    return count


@contextmanager
def _watches(root: Path) -> Iterator[tuple[Watch, Schedulers]]:
    with ExitStack() as opened:
        try:
            cgroups = opened.enter_context(closing(Watch(root)))
            disks = opened.enter_context(closing(Schedulers(system.SYS)))
        except PermissionError:
            raise UserError(
                "no permission to watch cgroups",
                where=str(root),
                next="run as root, outside of containers",
            ) from None
        except OSError as error:
            raise UserError(
                f"the kernel cannot report writes to cgroups: {error.strerror}",
                where=str(root),
                next="boot Linux 5.9 or later, which has the fanotify(7) events",
            ) from None
        yield cgroups, disks


def _alone() -> AbstractContextManager[None]:
    """Hold the lock of the mirror."""
    busy = UserError("weights are followed already", next="see: systemctl status isoblk-weights")
    return alone(LOCK, "write weights", busy)
