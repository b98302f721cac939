# SPDX-License-Identifier: GPL-2.0-only
"""Cgroups of an attacker: deep, with long names, and removed during a read."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isoblk.cli.weights import _rows
from isoblk.weights import cgroup, tree
from isoblk.weights.disk import BYTES, Chosen
from isoblk.weights.follow import Follower

DISK = Chosen("sda", "8:0", "isoblk", "io.isoblk.weight", 256, BYTES, "bytes")
# More than Python's recursion_limit.
DEEP = 1200
FILES = {
    "io.weight": "default 400\n",
    "io.isoblk.weight": "default 400\n",
    "io.stat": "8:0 rbytes=1\n",
}


@contextmanager
def nested(root: Path, name: str, depth: int, files: dict[str, str]) -> Iterator[None]:
    """Directories, each in the other. Removed again: shutil.rmtree() could not."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    here = os.open(root, flags)
    try:
        for _ in range(depth):
            os.mkdir(name, dir_fd=here)
            below = os.open(name, flags, dir_fd=here)
            os.close(here)
            here = below
            for file, text in files.items():
                made = os.open(file, os.O_WRONLY | os.O_CREAT, dir_fd=here)
                os.write(made, text.encode())
                os.close(made)
        yield
        for _ in range(depth):
            for file in files:
                os.unlink(file, dir_fd=here)
            above = os.open("..", flags, dir_fd=here)
            os.close(here)
            here = above
            os.rmdir(name, dir_fd=here)
    finally:
        os.close(here)


@pytest.fixture
def few_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
@pytest.mark.parametrize(("name", "depth"), [("d", DEEP), ("n" * 250, 20)])
def test_depth_and_length_are_no_end_of_it(tmp_path: Path, name: str, depth: int) -> None:
    told: list[str] = []
    with nested(tmp_path, name, depth, FILES):
        # Of paths longer than this the kernel tells nothing.
        assert depth * (len(name) + 1) > 2000
        assert Follower(tmp_path, told.append).all() == depth
        before = tree.read(tmp_path, DISK)
        assert len(list(before.each())) == depth + 1
        top = tree.shares(before, tree.read(tmp_path, DISK), 1.0, DISK)
        assert [one for one, _ in _rows(top, everyone=True)] == list(range(depth + 1))
    assert told == []


def test_a_cgroup_that_goes_while_those_below_are_looked_at_ends_nothing(tmp_path: Path) -> None:
    for path in ("a/x/y", "a/z", "b"):
        (tmp_path / path).mkdir(parents=True)
    top = os.open(tmp_path, os.O_PATH)
    seen = []
    for _, name, _ in cgroup.walk(top):
        seen.append(name)
        if name == "y":
            (tmp_path / "a/z").rmdir()
            (tmp_path / "a/x/y").rmdir()
            (tmp_path / "a/x").rmdir()
            (tmp_path / "a").rmdir()
            # And one of the same name comes.
            (tmp_path / "a/z").mkdir(parents=True)
    os.close(top)
    assert seen == ["a", "x", "y", "b"]


def test_a_cgroup_that_its_owner_has_closed_hides_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a/x", "b/y", "c/z"):
        (tmp_path / path).mkdir(parents=True)
    find = os.stat

    def closed(path: str, *, dir_fd: int) -> os.stat_result:
        if Path(f"/proc/self/fd/{dir_fd}").readlink().name == "b":
            raise PermissionError(errno.EACCES, "Permission denied")
        return find(path, dir_fd=dir_fd)

    top = os.open(tmp_path, os.O_PATH)
    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", closed)
        seen = [(depth, name) for depth, name, _ in cgroup.walk(top)]
    os.close(top)
    assert seen == [(1, "a"), (2, "x"), (1, "b"), (1, "c"), (2, "z")]


def test_only_those_with_something_to_tell_are_shown_and_those_above_them(tmp_path: Path) -> None:
    for path in ("a/b", "a/c/d", "e/f", "g"):
        (tmp_path / path).mkdir(parents=True)
    for place in (tmp_path, *tmp_path.rglob("*")):
        if place.is_dir():
            (place / "io.isoblk.weight").write_text("default 100\n")
    (tmp_path / "a/c/d/io.isoblk.weight").write_text("default 400\n")
    (tmp_path / "g/io.isoblk.weight").write_text("default 400\n")
    now = tree.read(tmp_path, DISK)
    shown = _rows(tree.shares(now, now, 1.0, DISK), everyone=False)
    assert [(depth, share.group.path) for depth, share in shown] == [
        (0, "/"),
        (1, "/a"),
        (2, "/a/c"),
        (3, "/a/c/d"),
        (1, "/g"),
    ]
