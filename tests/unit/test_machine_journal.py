# SPDX-License-Identifier: GPL-2.0-only
"""Whatever the host machine changes is written down first and changed back, even if the process
that changed it was killed."""

import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import RunError, UserError
from isoblk.machine import journal as book
from isoblk.machine import system
from isoblk.machine.journal import Cgroups, IoCost, LoopFile, Queue, SubtreeControl
from tests.unit.fakesys import FakeMachine, machine, put

LOOP_FILE = "isoblk-0123456789abcdef.img"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """It is the machine of which `restore` believes journals."""
    monkeypatch.setattr(system, "SYS", tmp_path / "sys")
    monkeypatch.setattr(system, "io_hierarchy", lambda: (tmp_path / "cgroup", "v2"))
    return machine(tmp_path)


@pytest.fixture(autouse=True)
def no_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "detach", lambda file: None)


def _disturb(fake: FakeMachine) -> None:
    """The changes of a run and the kernel to a queue: another scheduler has other tunables."""
    queue = fake.place / "queue"
    (queue / "scheduler").write_text("none mq-deadline kyber [bfq]\n")
    (queue / "nr_requests").write_text("64\n")
    (queue / "iosched/read_expire").write_text("500\n")


def _state(queue: Path) -> dict[str, str]:
    return {
        str(path.relative_to(queue)): system.chosen(path.read_text().strip())
        for path in queue.rglob("*")
        if path.is_file()
    }


def test_a_queue_is_as_it_was_after_a_run(fake: FakeMachine) -> None:
    queue = fake.place / "queue"
    before = _state(queue)
    with book.journal(fake.root / "state") as own, own.undone():
        own.record(book.read_queue(queue))
        _disturb(fake)
    assert _state(queue) == before
    assert list((fake.root / "state").iterdir()) == []


def test_the_scheduler_is_restored_before_the_attributes_it_resets(fake: FakeMachine) -> None:
    names = list(book.read_queue(fake.place / "queue").values)
    assert names[:2] == ["scheduler", "iosched/read_expire"]
    assert "nr_requests" in names
    assert "logical_block_size" not in names


def test_an_unchanged_attribute_is_not_written(fake: FakeMachine) -> None:
    queue = fake.place / "queue"
    change = book.read_queue(queue)
    (queue / "nr_requests").chmod(0o444)
    stamps = {path: path.stat().st_mtime_ns for path in queue.rglob("*")}
    with book.journal(fake.root / "state") as own:
        own.record(change)
    assert {path: path.stat().st_mtime_ns for path in queue.rglob("*")} == stamps


def test_a_run_that_raises_is_undone_and_leaves_no_journal(fake: FakeMachine) -> None:
    group = fake.root / "cgroup/isoblk-sdb"
    with (
        pytest.raises(KeyboardInterrupt),
        book.journal(fake.root / "state") as own,
        own.undone(),
    ):
        own.record(Cgroups(str(group)))
        (group / "a/t1").mkdir(parents=True)
        raise KeyboardInterrupt
    assert not group.exists()
    assert list((fake.root / "state").iterdir()) == []


_KILLED = """
import os, signal, sys
from pathlib import Path
from isoblk.machine import journal as book
root = Path(sys.argv[1])
with book.journal(root / "state") as own:
    own.record(book.LoopFile(str(root / "isoblk-0123456789abcdef.img")))
    (root / "isoblk-0123456789abcdef.img").write_bytes(b"disk")
    own.record(book.read_queue(root / "sys/block/sdb/queue"))
    (root / "sys/block/sdb/queue/scheduler").write_text("none mq-deadline [kyber] bfq")
    own.record(book.Cgroups(str(root / "cgroup/isoblk-sdb")))
    (root / "cgroup/isoblk-sdb/t1").mkdir(parents=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_changes_of_a_killed_process_are_undone_once(fake: FakeMachine) -> None:
    state, before = fake.root / "state", _state(fake.place / "queue")
    subprocess.run([sys.executable, "-c", _KILLED, str(fake.root)], check=False)
    assert (fake.root / LOOP_FILE).exists()
    with pytest.raises(UserError, match=r"an earlier run was killed.*isoblk host restore"):  # noqa: SIM117
        with book.journal(state):
            pass
    told = book.restore(state)
    assert [line.partition(": ")[0] for line in told] == [
        str(fake.root / "cgroup/isoblk-sdb"),
        str(fake.place / "queue"),
        str(fake.root / LOOP_FILE),
    ]
    assert _state(fake.place / "queue") == before
    assert not (fake.root / LOOP_FILE).exists()
    assert not (fake.root / "cgroup/isoblk-sdb").exists()
    assert book.restore(state) == []


def test_after_a_reboot_only_the_loops_file_is_left_to_remove(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(fake.root)], check=False)
    monkeypatch.setattr(system, "boot_id", lambda: "another")
    book.restore(fake.root / "state")
    assert not (fake.root / LOOP_FILE).exists()
    assert "[kyber]" in (fake.place / "queue/scheduler").read_text()


def test_the_journal_of_a_process_that_lives_is_left_alone(fake: FakeMachine) -> None:
    state = fake.root / "state"
    with book.journal(state) as own:
        own.record(book.read_queue(fake.place / "queue"))
        _disturb(fake)
        with pytest.raises(UserError, match="is of a running isoblk"):
            book.restore(state)
        assert "[bfq]" in (fake.place / "queue/scheduler").read_text()


def test_a_change_is_on_the_disk_before_it_is_made(fake: FakeMachine) -> None:
    with book.journal(fake.root / "state") as own:
        own.record(LoopFile(str(fake.root / LOOP_FILE)))
        (path,) = (fake.root / "state").glob("*.journal")
        assert str(fake.root / LOOP_FILE) in path.read_text()


def test_a_name_that_no_journal_can_hold_is_an_error(fake: FakeMachine) -> None:
    state = fake.root / "state"
    with pytest.raises(UserError, match="the name is not UTF-8"), book.journal(state) as own:
        own.record(LoopFile(f"/tmp/\udcff/{LOOP_FILE}"))
    assert not list(state.iterdir())


def test_a_change_that_cannot_be_undone_stays_in_the_journal(fake: FakeMachine) -> None:
    state, group = fake.root / "state", fake.root / "cgroup/isoblk-sdb"
    with (
        pytest.raises(RunError, match=r"some changes.*isoblk-sdb.*isoblk host restore"),
        book.journal(state) as own,
    ):
        own.record(Cgroups(str(group)))
        put(group / "t1/file", "a directory of cgroupfs can be removed with its files, this cannot")
    (group / "t1/file").unlink()
    assert book.restore(state) != []
    assert not group.exists()


def test_no_signal_goes_to_a_process_that_cannot_be_seen(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = fake.root / "cgroup/isoblk-sdb"
    put(group / "t1/cgroup.procs", "0\n")
    monkeypatch.setattr(
        "isoblk.machine.journal.os.kill", lambda *a: pytest.fail("killed its own group")
    )
    with pytest.raises(RunError, match="another PID namespace"):  # noqa: SIM117
        with book.journal(fake.root / "state") as own:
            own.record(Cgroups(str(group)))


@given(st.integers(min_value=0, max_value=400))
def test_a_journal_that_ends_in_a_torn_line_is_read_up_to_it(lost: int) -> None:
    changes = [LoopFile("/a"), Queue("/q", {"scheduler": "none"}), SubtreeControl("/c")]
    body = b"".join(msgspec.json.encode(change) + b"\n" for change in changes)
    kept = body[: max(0, len(body) - lost)]
    data = b'{"boot":"b","pid":1}\n' + kept
    assert book._parse(data, Path("1.journal"))[1] == changes[: kept.count(b"\n")]


@pytest.mark.parametrize("left", [b"", b'{"boot"', b'{"boot":"x","pid":1}'])
def test_a_journal_whose_first_line_was_cut_is_no_obstacle(tmp_path: Path, left: bytes) -> None:
    """As a power cut leaves it: no change was made that it could tell of."""
    tmp_path.chmod(0o700)
    path = tmp_path / "1.journal"
    path.write_bytes(left)
    path.chmod(0o600)
    [told] = book.restore(tmp_path)
    assert "nothing was changed" in told
    assert not path.exists()
    with book.journal(tmp_path):
        pass


def test_a_damaged_journal_is_named_and_does_not_keep_the_others_from_being_undone(
    fake: FakeMachine,
) -> None:
    state = fake.root / "state"
    subprocess.run([sys.executable, "-c", _KILLED, str(fake.root)], check=False)
    put(state / "1.journal", "{}\n")
    with pytest.raises(RunError, match=r"1\.journal: damaged journal"):
        book.restore(state)
    assert not (fake.root / "cgroup/isoblk-sdb").exists()
    assert [path.name for path in state.iterdir()] == ["1.journal"]


def test_while_another_isoblk_is_at_it_none_begins(fake: FakeMachine) -> None:
    state = fake.root / "state"
    with (
        book.journal(state),
        pytest.raises(UserError, match="another isoblk is running"),
        book.journal(state),
    ):
        pass


def test_ctrl_c_while_changes_are_undone_is_not_heard(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = fake.root / "cgroup/isoblk-sdb"
    empty = book._empty

    def pressed(top: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        empty(top)

    monkeypatch.setattr(book, "_empty", pressed)
    with book.journal(fake.root / "state") as own, own.undone():
        own.record(Cgroups(str(group)))
        group.mkdir(parents=True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not group.exists()
    assert list((fake.root / "state").iterdir()) == []


def test_a_state_directory_that_cannot_be_written_names_the_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "file", "")
    with pytest.raises(UserError, match=r"no permission to write the journal.*run as root"):  # noqa: SIM117
        with book.journal(tmp_path / "file/state"):
            pass


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("", "8:16 enable=0 ctrl=auto"),
        ("8:16 enable=1 ctrl=auto rpct=95.00 rlat=100", "8:16 enable=1 ctrl=auto"),
        ("8:16 enable=1 ctrl=user rpct=95.00", "8:16 enable=1 ctrl=user rpct=95.00"),
    ],
)
def test_io_cost_is_set_back_to_the_users_figures_or_the_kernels(
    fake: FakeMachine, line: str, written: str
) -> None:
    qos = fake.root / "cgroup/io.cost.qos"
    put(qos, "8:0 enable=1 ctrl=auto\n8:16 enable=1 ctrl=user min=90\n")
    with book.journal(fake.root / "state") as own:
        own.record(IoCost("8:16", {str(qos): line}))
    assert qos.read_text() == written


def test_io_is_switched_off_only_where_it_is_on(fake: FakeMachine) -> None:
    control = fake.root / "cgroup/cgroup.subtree_control"
    put(control, "cpu io\n")
    with book.journal(fake.root / "state") as own:
        own.record(SubtreeControl(str(control)))
    assert control.read_text() == "-io"


def test_a_journal_is_locked_from_its_first_moment(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    lock = fcntl.flock

    def watch(file: object, how: int) -> None:
        if how == fcntl.LOCK_EX:
            seen.extend(path.name for path in (fake.root / "state").glob("*.journal"))
        lock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr("isoblk.machine.journal.fcntl.flock", watch)
    with book.journal(fake.root / "state"):
        assert seen == []
