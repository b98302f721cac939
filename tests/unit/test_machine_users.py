# SPDX-License-Identifier: GPL-2.0-only
"""Every user of a disk is seen before the kernel has to refuse the disk."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.machine import system, users
from isoblk.machine.blockdev import Disk
from tests.unit.fakesys import FakeMachine, machine, put


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return machine(tmp_path)


def _part(fake: FakeMachine) -> Disk:
    put(fake.place / "sdb1/size", "2048\n")
    put(fake.place / "sdb1/ro", "0\n")
    return Disk("/dev/sdb1", "sdb1", "8:17", fake.place / "sdb1")


def test_an_unused_disk_is_accepted(fake: FakeMachine) -> None:
    users.refuse_in_use(fake.disk(), fake.sys, fake.proc)
    users.refuse_in_use(_part(fake), fake.sys, fake.proc)


def _mount(number: str, source: str, place: str = "/data") -> Callable[[FakeMachine], None]:
    line = f"30 22 {number} / {place} rw - xfs {source} rw\n"
    return lambda fake: put(fake.proc / "self/mountinfo", line)


def _mount_elsewhere(fake: FakeMachine) -> None:
    for process, space in (("self", "mnt:[1]"), ("7", "mnt:[1]"), ("8", "mnt:[2]")):
        put(fake.proc / process / "comm", f"program{process}\n")
        (fake.proc / process / "ns").mkdir(parents=True)
        (fake.proc / process / "ns/mnt").symlink_to(space)
    put(fake.proc / "7/mountinfo", "not looked at: the same namespace as ours\n")
    put(fake.proc / "8/mountinfo", "30 22 8:17 / /in/there rw - xfs /dev/sdb1 rw\n")


def _hold_by_lvm(fake: FakeMachine) -> None:
    put(fake.place / "sdb1/holders/dm-3/x", "")
    put(fake.sys / "block/dm-3/dm/name", "vg-root\n")


WHOLE = [
    (_mount("8:16", "/dev/sdb"), r"/dev/sdb is mounted on /data; unmount it"),
    (lambda fake: put(fake.place / "holders/md0/x", ""), r"/dev/sdb is held by md0"),
    (
        lambda fake: put(fake.sys / "block/loop7/loop/backing_file", "/dev/sdb\n"),
        r"/dev/sdb is the backing of loop7",
    ),
]


@pytest.mark.parametrize(
    ("use", "why"),
    [
        *WHOLE,
        (_mount("8:17", "/dev/sdb1"), r"/dev/sdb1 is mounted on /data"),
        # As btrfs shows it.
        (_mount("0:40", "/dev/sdb1"), r"/dev/sdb1 is mounted on /data"),
        (_mount("8:17", "x", r"/my\040disk"), r"/dev/sdb1 is mounted on /my disk"),
        (
            _mount_elsewhere,
            r"/dev/sdb1 is mounted on /in/there, as process 8 \(program8\) sees it; unmount it",
        ),
        (
            lambda fake: put(fake.proc / "swaps", "Filename Type\n/dev/sdb1 partition 1 0 -2\n"),
            r"/dev/sdb1 is swap; swapoff /dev/sdb1",
        ),
        (_hold_by_lvm, r"/dev/sdb1 is held by dm-3 \(vg-root\)"),
        (
            lambda fake: put(fake.sys / "block/loop7/loop/backing_file", "/dev/sdb1\n"),
            r"/dev/sdb1 is the backing of loop7; losetup --detach /dev/loop7",
        ),
        (lambda fake: put(fake.place / "bcache/x", ""), r"/dev/sdb is held by bcache"),
        (
            lambda fake: put(fake.sys / "fs/btrfs/0c4e/devices/sdb1/x", ""),
            r"/dev/sdb1 is a member of the mounted btrfs 0c4e",
        ),
        (
            lambda fake: put(
                fake.sys / "kernel/config/target/core/iblock_0/lun/udev_path", "/dev/sdb\n"
            ),
            r"/dev/sdb is an export of the SCSI target",
        ),
        (
            lambda fake: put(
                fake.sys / "kernel/config/nvmet/subsystems/nqn.x/namespaces/1/device_path",
                "/dev/sdb1\n",
            ),
            r"/dev/sdb1 is an export of NVMe subsystem nqn.x",
        ),
        (lambda fake: put(fake.place / "ro", "1\n"), r"/dev/sdb: is read-only"),
        (lambda fake: put(fake.place / "size", "0\n"), r"/dev/sdb: has no size"),
    ],
)
def test_a_disk_in_use_is_refused(
    fake: FakeMachine, use: Callable[[FakeMachine], None], why: str
) -> None:
    use(fake)
    with pytest.raises(UserError, match=why):
        users.refuse_in_use(fake.disk(), fake.sys, fake.proc)


@pytest.mark.parametrize(("use", "why"), WHOLE)
def test_a_partition_of_a_disk_in_use_is_refused(
    fake: FakeMachine, use: Callable[[FakeMachine], None], why: str
) -> None:
    use(fake)
    with pytest.raises(UserError, match=rf"^/dev/sdb1: {why}"):
        users.refuse_in_use(_part(fake), fake.sys, fake.proc)


def test_a_use_of_another_partition_is_no_use_of_this(fake: FakeMachine) -> None:
    _mount("8:18", "/dev/sdb2")(fake)
    users.refuse_in_use(_part(fake), fake.sys, fake.proc)


def test_a_disk_that_is_only_read_may_be_read_only(fake: FakeMachine) -> None:
    put(fake.place / "ro", "1\n")
    users.refuse_in_use(fake.disk(), fake.sys, fake.proc, written=False)


@pytest.mark.parametrize(
    ("path", "offset", "refused"),
    [
        ("/images/a b.img", 0, True),
        ("/images/a b.img", (1 << 30) - 512, True),
        ("/images/a b.img", 1 << 30, False),
        ("/images/other.img", 0, False),
    ],
)
def test_a_loop_device_that_shares_its_file_is_refused(
    fake: FakeMachine, path: str, offset: int, *, refused: bool
) -> None:
    for name, file, at in (("sdb", "/images/a b.img", 0), ("loop3", path, offset)):
        put(fake.sys / "block" / name / "loop/backing_file", f"{file}\n")
        put(fake.sys / "block" / name / "loop/offset", f"{at}\n")
    put(fake.sys / "block/loop3/size", "2097152\n")
    # A number that no loop device of this machine has.
    put(fake.sys / "block/loop3/dev", "8:99\n")
    fake.show("sdb", "loop3")
    if refused:
        with pytest.raises(UserError, match=r"sectors with loop3 \(/images/a b.img\)"):
            users.refuse_in_use(fake.disk(), fake.sys, fake.proc)
    else:
        users.refuse_in_use(fake.disk(), fake.sys, fake.proc)


@given(st.text(st.characters(codec="ascii", exclude_characters="\0\\"), min_size=1))
def test_a_path_in_a_line_of_the_kernels_is_read_as_it_was(path: str) -> None:
    # The kernel escapes blanks and backslashes, in octal.
    line = "".join(f"\\{ord(one):03o}" if one in " \t\n" else one for one in path)
    assert system.plain(line) == path
    assert system.plain(line.replace("x", "\\134")) == path.replace("x", "\\")


def test_a_number_is_read_of_block_devices_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in ("/dev/null", str(tmp_path), str(tmp_path / "fifo"), "/no/such", "a\0b", ""):
        assert users.number_at(path) == ""
