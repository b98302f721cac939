# SPDX-License-Identifier: GPL-2.0-only
"""Undoing is done by root, so no journal is believed that another user can have written, and none
with a change that no run makes."""

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import RunError, UserError
from isoblk.machine import blocktrace, system
from isoblk.machine import journal as book
from isoblk.machine.journal import (
    BlockTrace,
    Cgroups,
    Change,
    IoCost,
    LoopFile,
    Mounted,
    Queue,
    SubtreeControl,
    Weights,
)
from isoblk.machine.trusted import make_directory, refuse_shared, refuse_shared_results
from tests.unit.fakesys import FakeMachine, machine, put

STRANGER = 12345
OWN = "isoblk-0123456789abcdef.img"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    monkeypatch.setattr(system, "SYS", tmp_path / "sys")
    monkeypatch.setattr(system, "io_hierarchy", lambda: (tmp_path / "cgroup", "v2"))
    monkeypatch.setattr(system, "boot_id", lambda: "this")
    monkeypatch.setattr(system, "detach", lambda file: None)
    made = machine(tmp_path)
    (tmp_path / "state").mkdir(mode=0o700)
    return made


def _scheduler(fake: FakeMachine) -> str:
    return (fake.place / "queue/scheduler").read_text()


def _write(fake: FakeMachine, *changes: Change) -> Path:
    """The journal of a run that was killed; by default one that a run may leave."""
    told = changes or (Queue(str(fake.place / "queue"), {"scheduler": "kyber"}),)
    path = fake.root / "state/7.journal"
    lines = [b'{"boot":"this","pid":7}', *map(msgspec.json.encode, told), b""]
    path.write_bytes(b"\n".join(lines))
    path.chmod(0o600)
    return path


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Makes a file a stranger's; as an ordinary user: makes a stranger of the tests' own user."""

    def to_stranger(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: STRANGER)

    return to_stranger


def _refused(fake: FakeMachine, why: str, state: Path | None = None) -> None:
    before = _scheduler(fake)
    with pytest.raises((UserError, RunError), match=why) as caught:
        book.restore(state or fake.root / "state")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=why):  # noqa: SIM117
        with book.journal(state or fake.root / "state"):
            pass
    assert _scheduler(fake) == before


def test_a_journal_of_our_own_is_believed(fake: FakeMachine) -> None:
    _write(fake)
    assert book.restore(fake.root / "state") == [f"{fake.place / 'queue'}: as it was"]
    assert _scheduler(fake) == "kyber"


def test_a_strangers_directory_is_not_believed(
    fake: FakeMachine, give: Callable[[Path], None]
) -> None:
    _write(fake)
    give(fake.root / "state")
    _refused(fake, f"belongs to user {STRANGER if os.geteuid() == 0 else ''}")


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_directory_that_others_write_to_is_not_believed(fake: FakeMachine, mode: int) -> None:
    _write(fake)
    (fake.root / "state").chmod(mode)
    following = "set ISOBLK_STATE" if mode & stat.S_ISVTX else "check its contents.*chmod go-w"
    _refused(fake, f"state: other users may write to it .*{following}")


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_one_below_such_a_directory_is_not_believed(fake: FakeMachine, mode: int) -> None:
    above = fake.root / "above"
    above.mkdir()
    above.chmod(mode)
    _write(fake).parent.rename(above / "state")
    _refused(fake, "above: other users may write to it", above / "state")
    _refused_to_make(above / "new/state")
    assert not (above / "new").exists()


def _refused_to_make(state: Path) -> None:
    with pytest.raises(UserError, match=r"other users may write to it|belongs to user"):  # noqa: SIM117
        with book.journal(state):
            pass


def test_root_runs_no_script_where_others_can_change_it(
    tmp_path: Path, give: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except for the user behind sudo, which can become root at any time."""
    runs = tmp_path / "results/runs"
    runs.mkdir(parents=True)
    monkeypatch.delenv("SUDO_UID", raising=False)
    refuse_shared_results(runs)
    runs.parent.chmod(0o777)
    with pytest.raises(UserError, match="results: other users may write to it"):
        refuse_shared_results(runs)
    runs.parent.chmod(0o755)
    give(runs.parent)
    with pytest.raises(UserError, match=r"belongs to user \d+.*; choose -o DIR"):
        refuse_shared_results(runs)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for behind in ("0", "1", "x", "-1", ""):
        monkeypatch.setenv("SUDO_UID", behind)
        with pytest.raises(UserError, match="belongs to user"):
            refuse_shared_results(runs)
    monkeypatch.setenv("SUDO_UID", str(runs.parent.stat().st_uid))
    refuse_shared_results(runs)
    # Journals are not his.
    with pytest.raises(UserError, match="set ISOBLK_STATE"):
        refuse_shared(runs)


def test_one_below_a_directory_like_tmp_is_believed(fake: FakeMachine) -> None:
    above = fake.root / "above"
    above.mkdir()
    above.chmod(0o1777)
    _write(fake).parent.rename(above / "state")
    assert book.restore(above / "state") != []
    with book.journal(above / "new/state"):
        assert stat.S_IMODE((above / "new").stat().st_mode) == 0o700


def test_one_below_a_strangers_directory_is_not_believed(
    fake: FakeMachine, give: Callable[[Path], None]
) -> None:
    above = fake.root / "above"
    above.mkdir()
    _write(fake).parent.rename(above / "state")
    give(above)
    _refused(fake, "belongs to user", above / "state")
    _refused_to_make(above / "new")


@pytest.mark.parametrize("where", ["itself", "above"])
def test_a_link_to_a_directory_of_journals_is_not_believed(
    fake: FakeMachine, give: Callable[[Path], None], where: str
) -> None:
    _write(fake)
    link = fake.root / "link"
    if where == "itself":
        link.symlink_to("state")
        _refused(fake, "link: is a symbolic link", link)
    else:
        link.symlink_to(fake.root)
        give(link)
        _refused(fake, "belongs to user", link / "state")


def test_a_link_of_our_own_on_the_way_is_followed(fake: FakeMachine) -> None:
    _write(fake)
    (fake.root / "link").symlink_to(fake.root)
    assert book.restore(fake.root / "link/state") != []


def _as_link(path: Path) -> None:
    path.symlink_to(path.rename(path.parent.parent / "elsewhere"))


def _as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _as_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_as_link, "is a link or a device, not a file of isoblk"),
        (_as_fifo, "not a file of isoblk"),
        (_as_directory, "not a file of isoblk"),
        (lambda path: path.chmod(0o620), "other users may write to it"),
        (lambda path: path.chmod(0o602), "other users may write to it"),
    ],
)
def test_a_file_that_can_be_another_users_is_not_believed(
    fake: FakeMachine, change: Callable[[Path], None], why: str
) -> None:
    change(_write(fake))
    _refused(fake, why)


def test_a_strangers_file_is_not_believed(fake: FakeMachine, give: Callable[[Path], None]) -> None:
    give(_write(fake))
    _refused(fake, "belongs to user")


def _evil(fake: FakeMachine) -> dict[str, Change]:
    root = fake.root
    queue, group = fake.place / "queue", root / "cgroup"
    return {
        "queue elsewhere": Queue(str(root / "victim"), {"scheduler": "x"}),
        "queue of no disk": Queue(str(root / "sys/block/../../victim/queue"), {"scheduler": "x"}),
        "queue, a file above": Queue(str(queue), {"../../../../victim/queue/scheduler": "x"}),
        "queue, absolute": Queue(str(queue), {str(root / "victim/queue/scheduler"): "x"}),
        "queue, dot": Queue(f"{root}/sys/block/./sdb/queue", {"scheduler": "x"}),
        "loop": LoopFile(str(root / "victim/queue/scheduler")),
        "loop above": LoopFile(f"/tmp/../{root}/victim/{OWN}"),
        "loop relative": LoopFile(OWN),
        "loop nul": LoopFile(f"/a\0/{OWN}"),
        "cgroups": Cgroups(str(group / "system.slice")),
        "cgroups, all": Cgroups(str(group)),
        "cgroups above": Cgroups(str(group / "isoblk-x/../system.slice")),
        "cgroups elsewhere": Cgroups(str(root / "victim")),
        "cgroups below": Cgroups(str(group / "isoblk-x/y")),
        "control": SubtreeControl(str(root / "victim/cgroup.subtree_control")),
        "controllers": SubtreeControl(str(group / "cgroup.subtree_control"), ("io", "pids")),
        "cost": IoCost("8:16", {str(root / "victim/io.cost.qos"): ""}),
        "cost, a line": IoCost("8:16", {str(group / "io.cost.qos"): "8:16 x\n9:9 y"}),
        "cost, another disk": IoCost("8:16", {str(group / "io.cost.qos"): "8:0 enable=0"}),
        "cost, number": IoCost("8:16 x", {}),
        "weights": Weights("8:16", {str(root / "victim/io.weight"): "1"}, []),
        "weights, file": Weights("8:16", {str(group / "a/cgroup.procs"): "1"}, []),
        "weights, value": Weights("8:16", {str(group / "a/io.weight"): "1; x"}, []),
        "limits": Weights("8:16", {}, [str(group / "a/cgroup.freeze")]),
        "mount": Mounted("sdb", "sdb1", "/home"),
        "mount above": Mounted("sdb", "sdb1", "/run/../home/fs"),
        "mount, disk": Mounted("../sda", "../sda1", "/a/fs"),
        "mount, partition": Mounted("sdb", "sdb2", "/a/fs"),
        "trace": BlockTrace("/dev/sdb", "8"),
    }


NAMES = list(_evil(FakeMachine(Path("/x"))))


@pytest.mark.parametrize("name", NAMES)
def test_a_journal_with_a_change_that_no_run_makes_is_refused_as_a_whole(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    put(fake.root / "victim/queue/scheduler", "none\n")
    put(fake.root / f"victim/{OWN}", "")
    put(fake.root / "victim/cgroup.subtree_control", "io\n")
    put(fake.root / "cgroup/system.slice/cgroup.procs", "")
    put(fake.root / "cgroup/isoblk-x/y/cgroup.procs", "")

    def tree() -> dict[str, str]:
        files = [path for path in fake.root.rglob("*") if path.is_file()]
        return {str(path): path.read_text() for path in files} | dict.fromkeys(
            (str(path) for path in fake.root.rglob("*") if path.is_dir()), ""
        )

    monkeypatch.setattr(system, "run_tool", lambda *words: pytest.fail(" ".join(words)))
    monkeypatch.setattr(os, "kill", lambda *words: pytest.fail("ended a process"))
    harmless = Queue(str(fake.place / "queue"), {"scheduler": "kyber"})
    journal = _write(fake, harmless, _evil(fake)[name], harmless)
    before = tree()
    with pytest.raises(RunError, match=r"7.journal: has a change that no run makes") as caught:
        book.restore(fake.root / "state")
    assert "\n" not in str(caught.value)
    assert tree() == before
    assert journal.exists()


@given(st.binary(max_size=300) | st.text(max_size=99).map(lambda text: text.encode() + b"\n"))
def test_whatever_is_in_a_journal_is_read_or_refused_in_a_line(data: bytes) -> None:
    for whole in (data, b'{"boot":"b","pid":1}\n' + data):
        try:
            book._parse(whole, Path("1.journal"))
        except UserError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("data", [b"", b"\n", b"\0" * 99, b"[" * 100_000 + b"\n", b"\xff\xfe\n"])
def test_a_file_that_is_no_journal_is_refused_in_a_line(data: bytes) -> None:
    with pytest.raises(UserError, match="damaged journal"):
        book._parse(data, Path("1.journal"))


def test_state_is_made_for_its_user_alone(fake: FakeMachine) -> None:
    before = os.umask(0)
    try:
        with book.journal(fake.root / "a/b/state"):
            found = sorted((fake.root / "a").rglob("*"))
            modes = {stat.S_IMODE(path.stat().st_mode) for path in (fake.root / "a", *found)}
            assert modes == {0o700, 0o600}
            (file,) = (fake.root / "a/b/state").iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_link_under_the_name_of_a_new_journal_is_not_followed(
    fake: FakeMachine,
) -> None:
    put(fake.root / "victim", "kept")
    (fake.root / f"state/{os.getpid()}.new").symlink_to(fake.root / "victim")
    with book.journal(fake.root / "state"):
        assert (fake.root / "victim").read_text() == "kept"


def test_a_journal_is_restored_by_one_at_a_time(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(fake)
    undo = book._undo
    seen = []

    def meanwhile(change: Change) -> list[str]:
        with pytest.raises(UserError, match="is of a running isoblk"):
            book.restore(fake.root / "state")
        with pytest.raises(UserError, match="another isoblk is running"):  # noqa: SIM117
            with book.journal(fake.root / "state"):
                pass
        seen.append(change)
        return undo(change)

    monkeypatch.setattr(book, "_undo", meanwhile)
    book.restore(fake.root / "state")
    assert len(seen) == 1


def test_a_journal_that_was_restored_meanwhile_is_not_restored_again(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(fake)
    lock = fcntl.flock

    def late(file: object, how: int) -> None:
        path.unlink()
        lock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr("isoblk.machine.journal.fcntl.flock", late)
    before = _scheduler(fake)
    assert book.restore(fake.root / "state") == []
    assert _scheduler(fake) == before


_BEGIN = """
import sys
from pathlib import Path
from isoblk.errors import UserError
from isoblk.machine import journal
input()
try:
    with journal.journal(Path(sys.argv[1])):
        print("began", flush=True)
        input()
except UserError as error:
    print(error.cause, flush=True)
    input()
"""


def test_of_runs_that_begin_at_once_one_begins(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _BEGIN, str(tmp_path / "state")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    told = []
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        assert process.stdout is not None
        told.append(process.stdout.readline().strip())
    for process in started:
        process.communicate("\n")
    assert sorted(told) == ["another isoblk is running on this machine"] * 3 + ["began"]


def _make_first(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    """Another user creates each directory just before, with these rights."""
    make = Path.mkdir

    def second(
        path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False
    ) -> None:
        make(path)
        path.chmod(others)
        make(path, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", second)


def test_a_directory_that_another_run_makes_first_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make_first(monkeypatch, 0o700)
    make_directory(tmp_path / "var" / "state")
    assert (tmp_path / "var" / "state").is_dir()


@pytest.mark.parametrize("others", [0o770, 0o707])
def test_a_directory_that_a_stranger_makes_first_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    _make_first(monkeypatch, others)
    with pytest.raises(UserError):
        make_directory(tmp_path / "var" / "state")


@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
def test_a_path_that_is_not_a_regular_file_is_not_removed_as_a_loop_file(
    fake: FakeMachine, kind: str
) -> None:
    place = fake.root / OWN
    put(fake.root / "victim", "kept")
    if kind == "link":
        place.symlink_to(fake.root / "victim")
    elif kind == "directory":
        place.mkdir()
    else:
        os.mkfifo(place)
    _write(fake, LoopFile(str(place)))
    book.restore(fake.root / "state")
    assert os.path.lexists(place)
    assert (fake.root / "victim").read_text() == "kept"


def test_only_the_runs_own_partition_is_unmounted(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools: list[tuple[str, ...]] = []
    monkeypatch.setattr(system, "run_tool", lambda *words: tools.append(words))
    monkeypatch.setattr(system, "PROC", fake.proc)
    put(
        fake.proc / "self/mountinfo",
        "30 22 8:33 / /run/a\\040b/fs rw - ext4 /dev/sdc1 rw\n"
        "31 22 8:17 / /run/a\\040b/fs rw - ext4 /dev/sdb1 rw\n"
        "32 22 8:33 / /run/c/fs rw - ext4 /dev/sdc1 rw\n",
    )
    for place in ("/run/a b/fs", "/run/c/fs"):
        _write(fake, Mounted("sdb", "sdb1", place))
        book.restore(fake.root / "state")
    delete = ("delpart", "/dev/sdb", "1")
    assert tools == [("umount", "/run/a b/fs"), delete, delete]


def test_the_end_of_a_trace_opens_nothing_but_the_traced_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/null"), tmp_path, tmp_path / "none"):
        blocktrace.tear_down(str(path), "1:3")
