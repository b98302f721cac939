# SPDX-License-Identifier: GPL-2.0-only
"""The weights of a cgroup, from its own files and those of a container in it."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from isoblk.weights import cgroup, follow, lines
from isoblk.weights.cgroup import By
from isoblk.weights.follow import Follower
from isoblk.weights.lines import Weights


@pytest.mark.parametrize(
    ("name", "own", "inner", "want"),
    [
        ("libpod-1.scope", "default 100\n", "default 400\n", {"default": 400}),
        ("libpod-1.scope", "default 50\n", "default 400\n", {"default": 50}),
        ("libpod-1.scope", "259:0 7\n", "default 400\n", {"default": 400, "259:0": 7}),
        ("web.slice", "default 100\n", "default 400\n", {}),
    ],
)
def test_a_scope_has_the_weight_of_the_container_in_it(
    tmp_path: Path, name: str, own: str, inner: str, want: Weights
) -> None:
    scope = tmp_path / name
    (scope / "container").mkdir(parents=True)
    (scope / "io.weight").write_text(own)
    (scope / "container/io.weight").write_text(inner)
    directory = os.open(scope, os.O_PATH)
    try:
        assert cgroup.wanted(directory) == want
    finally:
        os.close(directory)


@pytest.mark.parametrize(
    ("io_weight", "bfq_weight", "want"),
    [
        ("default 3400\n", "default 400\n", 400),
        # systemctl set-property libpod-1.scope IOWeight=300
        ("default 300\n", "default 118\n", 300),
    ],
)
def test_a_weight_that_crun_converted_for_systemd_is_not_the_weight(
    tmp_path: Path, io_weight: str, bfq_weight: str, want: int
) -> None:
    scope = tmp_path / "libpod-1.scope"
    (scope / "container").mkdir(parents=True)
    (scope / "io.weight").write_text(io_weight)
    (scope / "io.bfq.weight").write_text(bfq_weight)
    (scope / "container/io.bfq.weight").write_text("default 400\n")
    directory = os.open(scope, os.O_PATH)
    try:
        assert cgroup.wanted(directory) == {"default": want}
    finally:
        os.close(directory)


def test_a_scope_without_a_container_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.scope").mkdir()
    (tmp_path / "a.scope/io.weight").write_text("default 300\n")
    directory = os.open(tmp_path / "a.scope", os.O_PATH)
    try:
        assert cgroup.wanted(directory) == {"default": 300}
        with cgroup.scope_of(directory) as scope:
            assert scope is None
    finally:
        os.close(directory)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The recorded weights of each directory; trusted attributes would need root."""
    kept: dict[str, bytes] = {}

    def key(path: str, note: bytes) -> str:
        place = str(Path(path).readlink())
        return place if note == b"trusted.isoblk.weight" else f"{place} {note.decode()}"

    def find(path: str, note: bytes) -> bytes:
        try:
            return kept[key(path, note)]
        except KeyError:
            raise OSError(errno.ENODATA, "") from None

    monkeypatch.setattr(os, "getxattr", find)
    monkeypatch.setattr(
        os, "setxattr", lambda path, note, text: kept.update({key(path, note): text})
    )
    monkeypatch.setattr(os, "removexattr", lambda path, note: kept.pop(key(path, note), None))
    return kept


@pytest.fixture
def place(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "io.weight").write_text("default 100\n")
    (tmp_path / "io.isoblk.weight").write_text("default 100\n")
    directory = os.open(tmp_path, os.O_PATH)
    yield directory
    os.close(directory)


def test_a_weight_lost_with_the_modules_is_not_ours_when_they_return(
    place: int, notes: dict[str, bytes], tmp_path: Path
) -> None:
    notes[str(tmp_path)] = b"default 400"
    (tmp_path / "io.isoblk.weight").unlink()
    assert cgroup.give_back(place) == []
    assert not notes


@pytest.mark.parametrize("note", [b"\xff\xfe", b"default " + b"9" * 5000, b"", b"\0", b"x y z"])
def test_a_note_that_is_none_of_ours_is_passed_over(
    place: int, notes: dict[str, bytes], tmp_path: Path, note: bytes
) -> None:
    notes[str(tmp_path)] = note
    (tmp_path / "io.weight").write_text("default 300\n")
    assert cgroup.follow(place) == []
    assert (tmp_path / "io.isoblk.weight").read_text().startswith("default 300")
    assert notes[str(tmp_path)] == b"default 300"


def test_a_disk_that_is_gone_does_not_keep_the_cgroup_from_its_weight(
    place: int, notes: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "io.weight").write_text("default 300\n8:0 500\n")
    write = os.write

    def without_disk(file: int, data: bytes) -> int:
        if data.startswith(b"8:0"):
            raise OSError(errno.ENODEV, "No such device")
        return write(file, data)

    monkeypatch.setattr(os, "write", without_disk)
    told: list[str] = []
    assert [line.key for line in cgroup.follow(place)] == ["8:0"]
    Follower(tmp_path.parent, told.append).all()
    assert (tmp_path / "io.isoblk.weight").read_text().startswith("default 300")
    assert notes[str(tmp_path)] == b"default 300"
    assert not told


def test_a_line_of_ours_that_could_not_be_replaced_is_still_ours(
    place: int, notes: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes[str(tmp_path)] = b"8:0 500"
    (tmp_path / "io.isoblk.weight").write_text("default 100\n8:0 500\n")
    (tmp_path / "io.weight").write_text("default 100\n8:0 600\n")

    def full(_: int, __: bytes) -> int:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(os, "write", full)
    (left,) = cgroup.follow(place)
    assert left.key == "8:0"
    assert notes[str(tmp_path)] == b"8:0 500"


def test_a_cgroup_that_goes_while_all_is_taken_back_ends_nothing(
    tmp_path: Path, notes: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "io.isoblk.weight").write_text("default 400\n")
        notes[str(tmp_path / name)] = b"default 400"
    write = os.write

    def gone(file: int, data: bytes) -> int:
        if Path(f"/proc/self/fd/{file}").readlink().parent.name == "b":
            raise OSError(errno.ENODEV, "No such device")
        return write(file, data)

    monkeypatch.setattr(os, "write", gone)
    monkeypatch.setattr(follow, "LOCK", tmp_path / "run/weights.lock")
    assert follow.give_back(tmp_path) == 2
    assert (tmp_path / "c/io.isoblk.weight").read_text() == "default 100\n"


def test_taking_all_back_leaves_no_note_where_a_weight_was_set_by_hand(
    tmp_path: Path, notes: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/io.isoblk.weight").write_text("default 777\n")
    notes[f"{tmp_path / 'a'} trusted.isoblk.foreign"] = b"default 400"
    monkeypatch.setattr(follow, "LOCK", tmp_path / "run/weights.lock")
    assert follow.give_back(tmp_path) == 0
    assert not notes
    assert (tmp_path / "a/io.isoblk.weight").read_text() == "default 777\n"


@pytest.mark.parametrize(
    ("scopes", "containers", "want"), [(0, 1000, 100), (1000, 1000, 900), (1000, 0, 900)]
)
def test_a_delegated_container_does_not_set_the_weight_of_its_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scopes: int, containers: int, want: int
) -> None:
    """Only the content of the scope is delegated: cgroup-v2.rst, Delegation Containment."""
    owners = {}
    for path, owner in (("x.scope", scopes), ("x.scope/container", containers)):
        (tmp_path / path).mkdir()
        weight = tmp_path / path / "io.weight"
        weight.write_text("default 900\n")
        owners[weight.stat().st_ino] = owner
    (tmp_path / "x.scope/io.weight").write_text("default 100\n")
    find = os.stat

    def owned(path: str, *, dir_fd: int) -> os.stat_result:
        found = find(path, dir_fd=dir_fd)
        return os.stat_result((*found[:4], owners[found.st_ino], *found[5:10]))

    scope = os.open(tmp_path / "x.scope", os.O_PATH)
    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", owned)
        assert cgroup.wanted(scope).get("default", 100) == want
    os.close(scope)


SYSTEMD, OTHER, UNKNOWN = By.SYSTEMD, By.OTHER, By.UNKNOWN


@pytest.mark.parametrize(
    "steps",
    [
        # io.weight, io.bfq.weight, the last writer, the weight that follows.
        pytest.param([(100, 400, OTHER, 400), (100, 100, SYSTEMD, 400)], id="docker, reload"),
        pytest.param([(100, 400, UNKNOWN, 400), (100, 100, SYSTEMD, 400)], id="seen late, reload"),
        pytest.param([(3940, 0, OTHER, 3940), (100, 0, SYSTEMD, 3940)], id="without bfq, reload"),
        pytest.param(
            [(100, 400, OTHER, 400), (100, 100, SYSTEMD, 400), (100, 100, UNKNOWN, 400)],
            id="reload, agent anew",
        ),
        pytest.param(
            [(100, 400, OTHER, 400), (100, 100, SYSTEMD, 400), (100, 100, OTHER, 100)],
            id="reload, docker update 100",
        ),
        pytest.param([(100, 400, OTHER, 400), (100, 100, OTHER, 100)], id="docker update 100"),
        pytest.param(
            [(100, 400, OTHER, 400), (300, 118, SYSTEMD, 300), (100, 100, SYSTEMD, 100)],
            id="set-property, and taken back",
        ),
        pytest.param([(400, 127, SYSTEMD, 400), (100, 100, SYSTEMD, 100)], id="systemd's own"),
        pytest.param([(400, 127, UNKNOWN, 400), (100, 100, SYSTEMD, 100)], id="not known whose"),
        pytest.param(
            [(3940, 0, OTHER, 3940), (3940, 0, UNKNOWN, 3940), (100, 0, SYSTEMD, 3940)],
            id="agent anew, reload",
        ),
    ],
)
def test_a_weight_that_systemd_did_not_give_it_does_not_take(
    place: int, notes: dict[str, bytes], tmp_path: Path, steps: list[tuple[int, int, By, int]]
) -> None:
    for io, bfq, by, want in steps:
        (tmp_path / "io.weight").write_text(f"default {io}\n")
        if bfq:
            (tmp_path / "io.bfq.weight").write_text(f"default {bfq}\n")
        assert cgroup.follow(place, by) == []
        text = (tmp_path / "io.isoblk.weight").read_text()
        # A real file is truncated to the written text.
        assert lines.parse(text.splitlines()[0][: len(f"default {want}")]) == (
            {"default": want} if want != 100 else {}
        )
        (tmp_path / "io.isoblk.weight").write_text(f"default {want}\n")
    cgroup.give_back(place)
    assert not notes
