# SPDX-License-Identifier: GPL-2.0-only
"""A disk is described as the kernel reports it, and is not mistaken for another."""

import os
from pathlib import Path

import pytest

from isoblk.errors import UserError
from isoblk.machine import blockdev, system
from isoblk.run.spec import HostDevice
from tests.unit.fakesys import FakeMachine, machine, put


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return machine(tmp_path)


def test_a_disk_is_described_to_a_study(fake: FakeMachine) -> None:
    assert blockdev.describe(fake.disk()) == HostDevice(
        name="sdb", what="FAST SSD", size=1 << 30, queue_depth=127, hw_queues=2
    )


def test_a_partition_is_refused_with_its_disk(fake: FakeMachine) -> None:
    with pytest.raises(UserError, match=r"/dev/sdb1: is a partition.*name /dev/sdb$"):
        blockdev.disk_of("/dev/sdb1", "8:17", fake.sys)


def test_a_device_without_a_queue_is_refused(fake: FakeMachine) -> None:
    put(fake.sys / "block/dm-0/dev", "252:0\n")
    (fake.sys / "dev/block/252:0").symlink_to(fake.sys / "block/dm-0")
    with pytest.raises(UserError, match="has no request queue"):
        blockdev.disk_of("/dev/dm-0", "252:0", fake.sys)


def test_an_nvme_disk_with_multipath_is_refused(fake: FakeMachine) -> None:
    put(fake.sys / "block/nvme0n1/dev", "259:0\n")
    put(fake.sys / "block/nvme0c0n1/mq/0/nr_tags", "1023\n")
    (fake.sys / "dev/block/259:0").symlink_to(fake.sys / "block/nvme0n1")
    with pytest.raises(UserError, match=r"NVMe multipath.*nvme_core.multipath=N"):
        blockdev.disk_of("/dev/nvme0n1", "259:0", fake.sys)


def test_a_number_that_no_device_has_is_refused(fake: FakeMachine) -> None:
    with pytest.raises(UserError, match="the kernel has no such device"):
        blockdev.disk_of("ghost", "8:99", fake.sys)
    with pytest.raises(UserError, match="the kernel has no such device"):
        blockdev.disk_numbered("8:99", "ghost", fake.sys)


@pytest.mark.parametrize(
    ("path", "why"), [("/no/such", "no such device"), ("/dev/null", "is not a block device")]
)
def test_a_path_that_is_not_a_disk_is_refused(path: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        blockdev.find_disk(path)


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ("sys/block/sdb/queue/scheduler", "no permission to write"),
        ("cgroup", "no permission to make cgroups"),
    ],
)
def test_a_missing_right_is_named(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch, missing: str, why: str
) -> None:
    monkeypatch.setattr(
        "isoblk.machine.blockdev.os.access", lambda path, mode: path != fake.root / missing
    )
    with pytest.raises(UserError, match=f"{missing}: {why}.*run as root"):
        blockdev.refuse_without_rights(fake.disk(), fake.root / "cgroup")


def test_elevators_are_those_loaded_and_those_that_can_be(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = fake.root / "modules" / os.uname().release
    put(place / "modules.alias", "alias bfq-iosched bfq\nalias fs-xfs xfs\nalias a-iosched x\n")
    put(place / "modules.dep", "updates/isoblk/kyber-fair-iosched.ko.xz: a.ko\nkernel/xfs.ko:\n")
    found = blockdev.elevators(fake.disk(), fake.root / "modules")
    assert found == {"none", "mq-deadline", "kyber", "bfq", "a", "kyber-fair"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("30 1 0:30 / /cg/blkio rw - cgroup cgroup rw,blkio", ("/cg/blkio", "v1")),
        ("30 1 0:30 / /cg/cpu rw - cgroup cgroup rw,cpu\n{v2}", ("v2", "v2")),
        ("30 1 0:30 / /cg/cpu rw - cgroup cgroup rw,cpu", None),
    ],
)
def test_the_hierarchy_is_the_one_that_has_io(
    tmp_path: Path, lines: str, expected: tuple[str, str] | None
) -> None:
    unified = tmp_path / "v2"
    put(unified / "cgroup.controllers", "cpu io memory\n")
    v2 = f"31 1 0:31 / {unified} rw - cgroup2 cgroup2 rw"
    put(tmp_path / "proc/self/mountinfo", lines.format(v2=v2) + "\n")
    if expected is None:
        with pytest.raises(UserError, match="no mounted cgroup hierarchy has the io controller"):
            system.io_hierarchy(tmp_path / "proc")
    else:
        place, version = expected
        assert system.io_hierarchy(tmp_path / "proc") == (tmp_path / place, version)


@pytest.mark.parametrize(
    "other",
    [
        b"22 1 0:9 / /media/\xff rw - vfat /dev/x rw",
        "22 1 0:9 /a\u3000b /media/a\u2028b\x85 rw - ext4 /dev/x rw".encode(),
        b"22 1 0:9 / /x rw - tmpfs  rw",
    ],
)
def test_a_mount_of_any_name_and_of_no_source_hides_no_cgroups(
    tmp_path: Path, other: bytes
) -> None:
    root = tmp_path / "a cgroup"
    put(root / "cgroup.controllers", "io memory\n")
    where = str(root).replace(" ", "\\040")
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_bytes(
        other + f"\n23 1 0:28 / {where} rw - cgroup2 cgroup2 rw\n".encode()
    )
    assert system.io_hierarchy(tmp_path) == (root, "v2")
