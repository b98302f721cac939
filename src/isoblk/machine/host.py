# SPDX-License-Identifier: GPL-2.0-only
"""The host machine: this one, as root, in real time, with its own kernel.

Tier "host": real cgroups, a real disk or a loop device, fio as the load. Two runs are never equal.
A run's changes are written to a journal first, and undone after the run (isoblk.machine.journal).
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from isoblk import paths
from isoblk.errors import UserError
from isoblk.kernel import Kernel
from isoblk.kernel.tools import install_command, missing
from isoblk.machine import Ran, blockdev, system
from isoblk.machine import running as running_tenants
from isoblk.machine.blockdev import Disk
from isoblk.machine.claim import LOAD, SCRATCH, WATCH, Claim, claim
from isoblk.machine.journal import (
    Cgroups,
    IoCost,
    Journal,
    LoopFile,
    Mounted,
    SubtreeControl,
    journal,
    read_queue,
)
from isoblk.machine.process import DIE_WITH_PARENT, PATH, Processes
from isoblk.plan.filesystem import mount_point, partition
from isoblk.run.spec import CgroupVersion, HostDevice
from isoblk.run.tier import HOST, Place, Tier
from isoblk.schedulers import io_cost
from isoblk.schedulers.registry import OWN_MODULES

_LOOP = "loop"
_CHUNK = 1 << 20
_PROGRAMS = {"fio": "fio", "setpriv": "util-linux", "wipefs": "util-linux", "losetup": "mount"}


@dataclass(frozen=True)
class Loop:
    """A loop device to make from a new file. size: bytes. directory: of the file."""

    size: int
    directory: Path


class Host:
    """Run scripts on this machine, one at a time.

    Args:
        place: disk and cgroups of the scripts.
        cgroup: version of the hierarchy there.
        held: the claimed disk.
        book: journal of changes.
        mounts: whether the scripts make and mount a file system.
        running: cgroups of running tenants, from the hierarchy's root.
        time_limit_s: wall-clock seconds after which a run counts as hung.
    """

    def __init__(
        self,
        place: Place,
        cgroup: CgroupVersion,
        held: Claim,
        book: Journal,
        *,
        mounts: bool,
        running: Sequence[str],
        time_limit_s: float,
    ) -> None:
        self._place = place
        self._cgroup = cgroup
        self._held = held
        self._journal = book
        self._mounts = mounts
        self._running = running
        self._processes = Processes(time_limit_s)

    @property
    def tier(self) -> Tier:
        """Return the host tier with this disk and cgroup."""
        return replace(HOST, place=self._place)

    def run(self, directory: Path, modules: Sequence[Path], *, seed: int, memory_mib: int) -> Ran:
        """Run `directory`/plan.sh, and undo its changes.

        Args:
            directory: of the run; console.log is written there.
            modules: empty: the kernel loads installed modules.
            seed: unused: two runs are never equal.
            memory_mib: unused.

        Raises:
            RunError: a step of the script failed, it hung, or a change could not be undone.
            UserError: the disk has become another, or another program has claimed it.
        """
        (directory / "plan.sh").chmod(0o755)
        node = f"/dev/{self._place.disk}"
        self._held.compare(node)
        if self._mounts:
            self._make_room()
        with self._journal.undone():
            self._write_down(directory)
            ran = self._processes.run(
                [*DIE_WITH_PARENT, "sh", "plan.sh"], directory, {"LC_ALL": "C"}
            )
        self._held.compare(node)
        if self._mounts:
            self._held.hold()
        return ran

    def stop(self) -> None:
        """Stop the run, and refuse new ones."""
        self._processes.stop()

    def _make_room(self) -> None:
        """Release the disk for the script, which makes a partition and mounts it."""
        self._held.hold()
        blockdev.refuse_partitions(self._held.disk)
        node = f"/dev/{partition(self._place.disk)}"
        if os.path.lexists(node):
            raise UserError("exists, and is not a partition", where=node, next="remove it")
        self._held.release()

    def _write_down(self, directory: Path) -> None:
        """Record the changes that any script makes. directory: of the run."""
        root = Path(self._place.hierarchy)
        if self._cgroup == "v2":
            control = root / "cgroup.subtree_control"
            wanted = ("io", "memory") if self._mounts else ("io",)
            if off := set(wanted) - set(control.read_text().split()):
                self._journal.record(SubtreeControl(str(control), tuple(sorted(off))))
        if self._mounts:
            disk = self._place.disk
            where = directory.resolve() / mount_point(self._place)
            self._journal.record(Mounted(disk, partition(disk), str(where)))
        self._journal.record(read_queue(Path(self._place.queue)))
        if self._cgroup == "v2" and (root / io_cost.FILES[0]).exists():
            number = (Path(self._place.queue).parent / "dev").read_text().strip()
            lines = {
                str(root / name): system.line_of(number, root / name) for name in io_cost.FILES
            }
            self._journal.record(IoCost(number, lines))
        if self._running:
            number = (Path(self._place.queue).parent / "dev").read_text().strip()
            for change in running_tenants.changes(self._running, root, self._cgroup, number):
                self._journal.record(change)
        self._journal.record(Cgroups(self._place.cgroup))


@dataclass(frozen=True)
class Session:
    """The machine, ready for a study: the disk is checked and claimed, and not written yet.

    Attributes:
        held: the disk.
        machine: makes the runs.
        kernel: the running one.
        modules_key: of the installed schedulers' modules; "none" without any.
        device: the disk's attributes for a study.
        cgroup: version of the hierarchy with the io controller.
        elevators: possible schedulers of the disk.
    """

    held: Claim
    machine: Host
    kernel: Kernel
    modules_key: str
    device: HostDevice
    cgroup: CgroupVersion
    elevators: frozenset[str]

    @property
    def signatures(self) -> tuple[str, ...]:
        """Return the signatures on the disk that may be lost; they still exist."""
        return self.held.signatures

    def wipe(self) -> None:
        """Remove the signatures."""
        if self.signatures:
            self.held.wipe()


@contextmanager
def session(
    what: str | Loop,
    wipe: str | None,
    *,
    mounts: bool,
    running: Sequence[str],
    time_limit_s: float,
) -> Iterator[Session]:
    """Prepare this machine, and restore it at the end except for the contents of the disk.

    Args:
        what: the disk's path, or a loop device to make.
        wipe: the disk whose contents may be lost, as the user named it.
        mounts: whether the study has a file system. If so, the disk is not claimed during a run,
            because it could not be mounted.
        running: cgroups of the study's running tenants. If there are any, the disk may be in use by
            them, and is not written.
        time_limit_s: of a run.

    Raises:
        UserError: the disk is in use or has a signature, a permission or a program is missing, or
            an earlier run has left its changes.
        RunError: some changes could not be undone.
    """
    _require_programs()
    hierarchy, cgroup = system.io_hierarchy()

    def ready(held: Claim, book: Journal, device: HostDevice) -> Session:
        disk = held.disk
        held.compare(f"/dev/{disk.name}")
        if mounts:
            blockdev.refuse_partitions(disk)
        place = Place(disk.name, ".", str(hierarchy), f"isoblk-{disk.name}")
        return Session(
            held=held,
            machine=Host(
                place, cgroup, held, book,
                mounts=mounts, running=running, time_limit_s=time_limit_s,
            ),
            kernel=running_kernel(),
            modules_key=_modules_key(),
            device=device,
            cgroup=cgroup,
            elevators=frozenset(blockdev.elevators(disk)),
        )  # fmt: skip

    if isinstance(what, str):
        if running and wipe is not None:
            raise _in_use()
        disk = blockdev.find_disk(what)
        blockdev.refuse_without_rights(disk, hierarchy)
        purpose = WATCH if running else LOAD
        with journal(paths.state_dir()) as book, claim(disk, purpose, wipe) as held:
            yield ready(held, book, blockdev.describe(disk))
    elif running:
        raise _in_use()
    elif wipe is not None:
        raise UserError("--wipe is for --device", next="remove it")
    else:
        _refuse_without_room(what)
        with journal(paths.state_dir()) as book:
            disk = _make_loop(what, book)
            blockdev.refuse_without_rights(disk, hierarchy)
            device = msgspec.structs.replace(
                blockdev.describe(disk), name=_LOOP, what=_loop_name(disk, what.directory)
            )
            with claim(disk, SCRATCH) as held:
                yield ready(held, book, device)


def _in_use() -> UserError:
    return UserError(
        "a running tenant uses the disk",
        next="name it with --device, without --wipe",
    )


def _require_programs() -> None:
    if absent := missing(_PROGRAMS, PATH):
        raise UserError(
            f"missing: {', '.join(absent)}", next=install_command(list(absent.values()))
        )


def _refuse_without_room(loop: Loop) -> None:
    control = Path("/dev/loop-control")
    if not control.exists():
        raise UserError("the kernel has no loop devices", next="run: modprobe loop")
    if not os.access(control, os.W_OK):
        raise UserError(
            "no permission to make loop devices", where=str(control), next="run as root"
        )
    if loop.directory.exists() and not loop.directory.is_dir():
        raise UserError("is not a directory", where=str(loop.directory))
    try:
        free = shutil.disk_usage(loop.directory).free
    except OSError as error:
        raise UserError(
            f"cannot use the directory: {error.strerror}", where=str(loop.directory)
        ) from None
    if free < loop.size + _CHUNK:
        raise UserError(
            f"{free >> 20} MiB free, the loop device's file needs {loop.size >> 20}",
            where=str(loop.directory),
            next="choose a smaller --loop, or --loop-dir",
        )


def _make_loop(loop: Loop, book: Journal) -> Disk:
    # A unique name: undoing removes the file.
    file = loop.directory.resolve() / f"isoblk-{secrets.token_hex(8)}.img"
    book.record(LoopFile(str(file)))
    # Written in full: reading unwritten blocks costs nothing.
    data = os.urandom(_CHUNK)
    try:
        with file.open("x+b") as out:
            for left in range(loop.size, 0, -_CHUNK):
                out.write(data[:left])
            out.flush()
            os.fsync(out.fileno())
            # By descriptor, in case names in that directory change.
            name = system.attach(out.fileno())
    except OSError as error:
        raise UserError(f"cannot make the loop device: {error.strerror}", where=str(file)) from None
    number = (system.SYS / "block" / name / "dev").read_text().strip()
    return blockdev.disk_of(f"/dev/{name}", number)


def _loop_name(disk: Disk, directory: Path) -> str:
    kind = system.run_tool("stat", "--file-system", "--format=%T", str(directory)).strip()
    direct = (disk.sys / "loop/dio").read_text().strip() == "1"
    return f"{'direct' if direct else 'buffered'} on a file in {kind}"


def running_kernel() -> Kernel:
    """Return the kernel of this machine. Its key distinguishes builds and processors."""
    version = (system.PROC / "version").read_text().strip()
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in (system.PROC / "cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        os.uname().machine,
    )
    digest = hashlib.sha256(f"{version} {processor} {os.cpu_count()}".encode()).hexdigest()
    return Kernel(
        key=f"host-{digest[:12]}",
        version=os.uname().release,
        source=f"running, on {os.cpu_count()} x {processor}",
        compiler=_compiler(version),
        debug=False,
        dir=Path(),
        arch="x86_64",
        stock=True,
    )


def _compiler(version: str) -> str:
    """Return the compiler in /proc/version: "Linux version R (WHO) (COMPILER, LINKER) #1 ..."."""
    return version.partition(") (")[2].partition(") #")[0].partition(", ")[0] or "unknown"


def _modules_key() -> str:
    """Hash the schedulers' modules that are installed for the running kernel."""
    root = Path("/lib/modules") / os.uname().release
    found = [path for name in OWN_MODULES for path in sorted(root.rglob(f"{name}.ko*"))]
    if not found:
        return "none"
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in found))
    return f"installed-{digest.hexdigest()[:12]}"
