# SPDX-License-Identifier: GPL-2.0-only
"""Events of the kernel about writes, where they are incomplete."""

import errno
import os
import struct
from pathlib import Path

import pytest

from isoblk.errors import UserError
from isoblk.weights import disk, follow
from isoblk.weights.events import LostError, Schedulers

EVENT = struct.Struct("=IBBHQii")


@pytest.fixture
def schedulers(monkeypatch: pytest.MonkeyPatch) -> Schedulers:
    """One that hears nothing by itself: to watch sysfs takes root."""
    monkeypatch.setattr(Schedulers, "__init__", lambda self, fd: setattr(self, "fd", fd))
    return Schedulers(-1)  # type: ignore[arg-type]


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    ("number", "lost"), [(errno.EACCES, False), (errno.EINVAL, False), (errno.EMFILE, True)]
)
def test_a_write_to_a_file_that_cannot_be_opened_is_no_end(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch, number: int, lost: bool
) -> None:
    def read(_: int, __: int) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "read", read)
    if lost:
        with pytest.raises(LostError):
            schedulers.chosen()
    else:
        assert not schedulers.chosen()


def test_no_more_events_are_taken_at_a_time_than_files_may_be_open(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = tmp_path / "queue/scheduler"
    chosen.parent.mkdir()
    chosen.write_text("none")
    waiting = 5000

    def read(_: int, size: int) -> bytes:
        nonlocal waiting
        taken = min(waiting, size // EVENT.size)
        waiting -= taken
        files = [os.open(chosen, os.O_RDONLY) for _ in range(taken)]
        return b"".join(EVENT.pack(EVENT.size, 3, 0, EVENT.size, 2, one, 1) for one in files)

    monkeypatch.setattr(os, "read", read)
    before = _open_files()
    while waiting:
        left = waiting
        assert schedulers.chosen()
        assert left - waiting <= 512
    assert _open_files() == before


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.EINVAL, errno.EMFILE])
def test_a_kernel_that_cannot_tell_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(_: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(follow, "Watch", refused)
    monkeypatch.setattr(follow, "LOCK", tmp_path / "run/weights.lock")
    with pytest.raises(UserError, match=str(tmp_path)):
        follow.run(tmp_path, print, print)


def test_a_kernel_without_io_cost_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "ours", lambda: ["8:0"])
    (tmp_path / "io.cost.qos").symlink_to("/nonesuch/io.cost.qos")
    told: list[str] = []
    follower = follow.Follower(tmp_path, told.append)
    for _ in range(3):
        follower.all()
    assert len(told) == 1 and "8:0" in told[0]
