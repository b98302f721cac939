# SPDX-License-Identifier: GPL-2.0-only
"""isoblk weights as a command: the destination of its output, and unusual names."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from isoblk.cli import weights as cli
from isoblk.weights import disk, tree
from isoblk.weights.disk import BYTES, Chosen

DISK = Chosen("sda", "8:0", "isoblk", "io.isoblk.weight", 256, BYTES, "bytes")
NAMES = ["new\nline", "\x1b[31mred", "[bold]", "n" * 255, ":smile:", os.fsdecode(b"\xff\xfe")]

# The called program: a machine of which only the cgroups are made up.
CALL = """
import sys
import time
from pathlib import Path
from isoblk.cli import main
from isoblk.weights import disk, hierarchy
from isoblk.weights.disk import BYTES, Chosen
from isoblk.weights import settings
root = Path(sys.argv[1])
hierarchy.unified = lambda: root
class Sda:
    name = "sda"
settings.find = lambda _: Sda
disk.find = lambda *_: Chosen("sda", "8:0", "isoblk", "io.isoblk.weight", 256, BYTES, "bytes")
sys.argv = ["isoblk", "weights", "--disk", "sda", *sys.argv[2:]]
main.main()
"""


def call(root: Path, *words: str) -> list[str]:
    return [sys.executable, "-c", CALL, str(root), *words]


def group(root: Path, name: str, ours: str, elsewhere: str = "default 100") -> None:
    (root / name).mkdir()
    (root / name / "io.isoblk.weight").write_text(f"{ours}\n")
    (root / name / "io.weight").write_text(f"{elsewhere}\n")
    (root / name / "io.stat").write_text("")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    group(tmp_path, "a", "default 400")
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_only_a_name(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    group(tmp_path, name, "default 100", "default 300")
    now = tree.read(tmp_path, DISK)
    top = tree.shares(now, now, 1.0, DISK)
    console = Console(highlight=False, markup=False, emoji=False, width=400)
    console.print(cli._table(DISK, top, everyone=True), *cli._reasons(DISK, top))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert repr(name)[1:-1] in shown
    assert msgspec.json.encode(cli._plain(DISK, top))


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_each_table_of_a_watch_is_written_at_once(root: Path, words: list[str]) -> None:
    with subprocess.Popen(
        call(root, "--watch", "--for", "0.1", *words), stdout=subprocess.PIPE, text=True
    ) as told:
        assert told.stdout
        # It comes before the end.
        lines = [told.stdout.readline() for _ in range(2 if words else 8)]
        told.send_signal(signal.SIGINT)
        told.stdout.read()
        assert told.wait(20) == 0
    assert sum("sda" in line for line in lines) == 2


def test_a_closed_pipe_ends_a_watch_without_a_message(root: Path) -> None:
    with subprocess.Popen(
        call(root, "--watch", "--for", "0.1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as told:
        assert told.stdout and told.stderr
        told.stdout.readline()
        told.stdout.close()
        assert told.stderr.read() == ""
        assert told.wait(20) == 1


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e30", "-1", "0", "86401"])
def test_no_count_without_end(root: Path, seconds: str) -> None:
    done = subprocess.run(
        call(root, "--for", seconds), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "--for" in done.stderr


@pytest.mark.parametrize("address", ["/nonesuch/notify", "@nonesuch", "/" + "n" * 200])
def test_a_systemd_that_does_not_hear_is_no_reason_to_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    cli._notify("READY=1")
    assert capsys.readouterr().err.startswith("cannot notify systemd: ")


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_locale_without_the_character_is_no_end(root: Path, words: list[str]) -> None:
    group(root, "gé→", "default 400")
    done = subprocess.run(
        call(root, "--for", "0.1", *words),
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if words:
        (disk,) = msgspec.json.decode(done.stdout)["disks"]
        assert "/gé→" in [one["path"] for one in disk["cgroups"]]
    else:
        assert b"g\\xe9\\u2192" in done.stdout


def test_the_measured_time_includes_the_time_of_the_reading(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a/io.stat").write_text("8:0 isoblk.wait_us=0\n")
    read = tree.read
    clock = 1000.0

    def slowly(top: Path, on: Chosen) -> tree.Group:
        nonlocal clock
        found = read(top, on)
        clock += 3.0
        (root / "a/io.stat").write_text(f"8:0 isoblk.wait_us={(clock - 1000) * 1e6:.0f}\n")
        return found

    def sleep(seconds: float) -> None:
        nonlocal clock
        clock += seconds
        (root / "a/io.stat").write_text(f"8:0 isoblk.wait_us={(clock - 1000) * 1e6:.0f}\n")

    monkeypatch.setattr(time, "monotonic", lambda: clock)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(tree, "read", slowly)
    monkeypatch.setattr(disk, "find", lambda *_: DISK)
    # One request waits at all times.
    ((_, top),) = cli._measured(root, ["sda"], 1.0)
    assert [child.waiting for child in top.children] == [1.0]
