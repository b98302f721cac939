# SPDX-License-Identifier: GPL-2.0-only
"""An exported trace comes back as far as its format can carry it, and losses are reported."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from isoblk.cli.trace import app
from isoblk.errors import UserError
from isoblk.trace.compact import read_blocks
from isoblk.trace.convert import import_trace
from isoblk.trace.export import TARGETS, export
from isoblk.trace.formats import detect
from tests.examples import at_most

from .isotrace import ASYNC, FLUSH, FUA, PREFLUSH, READ, TRIM, WRITE, Rec, write_trace

SLOW = settings(
    max_examples=at_most(80),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
NAMES = sorted(TARGETS)


@st.composite
def traces(draw: st.DrawFn) -> list[Rec]:
    """Records that a compact trace can hold, the first at time 0."""
    made: list[Rec] = []
    time = 0
    for _ in range(draw(st.integers(1, 20))):
        op = draw(st.sampled_from([READ, WRITE, TRIM, FLUSH]))
        made.append(
            Rec(
                time,
                op=op,
                offset=0 if op == FLUSH else draw(st.integers(0, 1 << 42)),
                bytes=0 if op == FLUSH else draw(st.integers(1, 1 << 31)),
                flags=draw(st.integers(0, 7)) if op == WRITE else 0,
                stream=draw(st.sampled_from([0, 0, 1, 65_535])),
            )
        )
        time += draw(st.sampled_from([0, 1, 999, 1000, 10**9, 10**15 + 1]))
    return made


def carried(name: str, made: list[Rec]) -> list[Rec]:
    """The records that a format preserves, by its definition."""
    found = []
    for one in made:
        time, unit, flags, stream = one.t, 1, one.flags, one.stream
        if name == "disksim" and one.op in (TRIM, FLUSH):
            continue
        if name in ("disksim", "blkparse"):
            unit = 512
        if name == "iolog":
            time = time // 1000 * 1000
        if name in ("disksim", "iolog"):
            flags = 0
        if name != "csv":
            stream = int(name == "blkparse")  # device 8,0 is above what a stream can be
        begin = one.offset // unit * unit
        size = -(-(one.offset + one.bytes - begin) // unit) * unit
        found.append(Rec(time, one.op, begin, size, flags, stream))
    # The first request that is left is at 0.
    return [one._replace(t=one.t - found[0].t) for one in found]


def records(path: Path) -> list[Rec]:
    return [
        Rec(t, op, offset, size, flags, stream)
        for block in read_blocks(path)
        for t, offset, size, op, flags, stream in block.tolist()
    ]


@pytest.mark.parametrize("name", NAMES)
@given(made=traces())
@SLOW
def test_requests_that_a_format_can_carry_come_back(
    name: str, tmp_path: Path, made: list[Rec]
) -> None:
    wanted = carried(name, made)
    source = write_trace(tmp_path / "t.isotrace", made)
    parts: list[str] = []
    if not wanted:
        with pytest.raises(UserError, match="no request that disksim can express"):
            export(source, TARGETS[name], parts.append)
        assert parts == []
        return
    done = export(source, TARGETS[name], parts.append)
    text = "".join(parts).encode()
    (tmp_path / "text").write_bytes(text)
    assert detect(text[:65536], tmp_path / "text").name == name
    import_trace([tmp_path / "text"], tmp_path / "back")
    assert records(tmp_path / "back") == wanted
    assert done.records == len(wanted)
    # Silence means that nothing was lost.
    same = [one._replace(stream=0) for one in made] == [one._replace(stream=0) for one in wanted]
    assert same or done.losses(TARGETS[name])
    assert name != "csv" or not done.losses(TARGETS[name])


MIXED = [
    Rec(0, offset=4096),
    Rec(1500, WRITE, 100, 5, FUA | PREFLUSH | ASYNC, stream=3),
    Rec(2000, TRIM, 8192),
    Rec(3000, FLUSH, bytes=0),
]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "disksim",
            "left out, trim: 1; left out, flush: 1; no longer FUA: 1; no longer flush first: 1;"
            " no longer asynchronous: 1; widened to whole sectors: 1;"
            " streams no longer distinguished: 2",
        ),
        ("blkparse", "widened to whole sectors: 1; streams no longer distinguished: 2"),
        (
            "iolog",
            "no longer FUA: 1; no longer flush first: 1; no longer asynchronous: 1;"
            " times rounded down to 1 µs: 1; streams no longer distinguished: 2",
        ),
        ("csv", ""),
    ],
)
def test_losses_of_an_export_are_reported_in_one_line(tmp_path: Path, name: str, told: str) -> None:
    source = write_trace(tmp_path / "t.isotrace", MIXED)
    result = run("export", source, "--format", name, "-o", tmp_path / "o")
    assert result.exit_code == 0, result.output
    assert result.stderr == (f"note: not in {name}: {told}\n" if told else "")
    printed = run("export", source, "--format", name)
    assert printed.stdout == (tmp_path / "o").read_text()


def test_blkparses_lines_look_like_blkparses(tmp_path: Path) -> None:
    source = write_trace(tmp_path / "t.isotrace", MIXED)
    assert run("export", source, "--format", "blkparse").stdout.splitlines() == [
        "  8,0    0        1     0.000000000     0  Q   R 8 + 8 [stream0]",
        "  8,0    0        2     0.000001500     3  Q FWF 0 + 1 [stream3]",
        "  8,0    0        3     0.000002000     0  Q  DS 16 + 8 [stream0]",
        "  8,0    0        4     0.000003000     0  Q FWS [stream0]",
    ]


def test_no_input_and_no_file_that_is_there_is_overwritten(tmp_path: Path) -> None:
    source = write_trace(tmp_path / "t.isotrace", MIXED)
    before = source.read_bytes()
    result = run("export", source, "--format", "csv", "-o", source, "--force")
    assert "is the input itself" in str(result.exception)
    (tmp_path / "o").write_text("mine")
    assert "exists" in str(run("export", source, "--format", "csv", "-o", tmp_path / "o").exception)
    assert (source.read_bytes(), (tmp_path / "o").read_text()) == (before, "mine")


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    source = write_trace(tmp_path / "t.isotrace", [Rec(0, TRIM)])
    result = run("export", source, "--format", "disksim", "-o", tmp_path / "o")
    assert "no request that disksim can express" in str(result.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.isotrace"]


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_fio_replays_an_exported_trace(tmp_path: Path) -> None:
    made = [Rec(i * 1_000_000, i % 2, (i * 37 % 100) * 4096) for i in range(200)]
    source = write_trace(tmp_path / "t.isotrace", made)
    assert run("export", source, "--format", "iolog", "-o", tmp_path / "t.log").exit_code == 0
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    found = subprocess.run(
        [
            *("fio", "--name=r", "--ioengine=psync", f"--read_iolog={tmp_path / 't.log'}"),
            *(f"--replay_redirect={tmp_path / 'disk'}", "--replay_no_stall=1"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "issued rwts: total=100,100,0,0" in found.stdout
