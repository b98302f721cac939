# SPDX-License-Identifier: GPL-2.0-only
"""Files that are nearly traces: import and info succeed, or report the mistake in one line.

A valid file of each format is changed as editors, transfers, other tools and adversaries change
files: lines and fields are cut out, doubled, swapped, and replaced by values of another kind.
"""

import gzip
import lzma
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoblk.cli import main as cli
from isoblk.errors import UserError
from isoblk.trace.batch import TIME_UNITS
from isoblk.trace.convert import import_trace
from isoblk.trace.cut import Part, cut
from isoblk.trace.info import describe
from tests.examples import at_most

from .isotrace import Rec, packed
from .tracegen import KIND_NAMES, KINDS, requests

SLOW = settings(
    max_examples=at_most(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
BINARY = ("blktrace", "vscsi", "vscsi 1", "oracle")
# Values that a field may come to hold. Texts, for they need not be numbers.
FIELDS = st.one_of(
    st.sampled_from(
        [
            *("", "-1", "-0", "+1", "0", "nan", "NaN", "inf", "-inf", "1e400", "1e-400", "0x10"),
            *("9" * 19, "9" * 30, "9" * 400, str(1 << 31), str(1 << 32), str(1 << 63)),
            *(str((1 << 63) - 1), str(1 << 64), str(-(1 << 63)), "1.5", "1,5", "1_000", "1 000"),
            *("0.0000000001", "R", "W", "read", "\0", "\ufeff", "\u0663", "é", '"', "'", "%s"),
        ]
    ),
    st.integers().map(str),
    st.floats().map(repr),
    st.text(max_size=8),
)
# And a field of a binary record.
WORDS = st.sampled_from(
    [bytes(8), b"\xff" * 8, b"\x00" * 7 + b"\x80", b"\xff" * 7 + b"\x7f", b"\xff" * 4]
)

Change = Callable[[st.DataObject, list[bytes]], list[bytes]]


def _cut_line(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    at = data.draw(st.integers(0, len(lines)))
    return lines[:at] + lines[at + data.draw(st.integers(1, 5)) :]


def _double_line(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    at = data.draw(st.integers(0, len(lines)))
    return lines[:at] + lines[at : at + 1] * data.draw(st.integers(2, 2000)) + lines[at + 1 :]


def _swap_lines(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    return data.draw(st.permutations(lines))


def _empty_line(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    at = data.draw(st.integers(0, len(lines)))
    blank = data.draw(st.sampled_from([b"", b" ", b"\r", b"\t", b"#", b",,,,,,", b"\0"]))
    return [*lines[:at], blank, *lines[at:]]


def _change_field(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    at = data.draw(st.integers(0, len(lines) - 1))
    separator = b"," if b"," in lines[at] else b" "
    fields = lines[at].split(separator)
    which = data.draw(st.integers(0, len(fields) - 1))
    value = data.draw(FIELDS).encode(errors="replace")
    fields[which : which + data.draw(st.integers(0, 2))] = [value]
    return [*lines[:at], separator.join(fields), *lines[at + 1 :]]


def _every_field(data: st.DataObject, lines: list[bytes]) -> list[bytes]:
    """The same field of all lines, as another tool would have it."""
    which, value = data.draw(st.integers(0, 7)), data.draw(FIELDS).encode(errors="replace")
    changed = []
    for line in lines:
        separator = b"," if b"," in line else b" "
        fields = line.split(separator)
        if which < len(fields):
            fields[which] = value
        changed.append(separator.join(fields))
    return changed


LINE_CHANGES: list[Change] = [
    _cut_line,
    _double_line,
    _swap_lines,
    _empty_line,
    _change_field,
    _change_field,
    _every_field,
]


def _mutated(data: st.DataObject, name: str) -> bytes:
    raw = KINDS[name].write(requests(KINDS[name], 25))
    for _ in range(data.draw(st.integers(1, 3))):
        if not raw:
            return raw
        if name in BINARY or data.draw(st.integers(0, 5)) == 0:
            at = data.draw(st.integers(0, len(raw)))
            put = data.draw(st.one_of(WORDS, st.binary(max_size=9), st.just(raw[:100])))
            raw = raw[:at] + put + raw[at + data.draw(st.sampled_from([0, 1, len(put), 48])) :]
        else:
            change = data.draw(st.sampled_from(LINE_CHANGES))
            lines = change(data, raw.split(b"\n")) or [b""]
            raw = b"\n".join(lines)
    end = data.draw(st.one_of(st.none(), st.integers(0, len(raw))))
    return raw if end is None else raw[:end]


@SLOW
@pytest.mark.parametrize("name", KIND_NAMES)
@given(data=st.data())
def test_import_and_info_succeed_or_say_why(name: str, tmp_path: Path, data: st.DataObject) -> None:
    raw = _mutated(data, name)
    squeeze = data.draw(st.sampled_from([None, None, None, gzip.compress, lzma.compress]))
    if squeeze is not None:
        raw = squeeze(raw)
        raw = raw[: data.draw(st.sampled_from([len(raw), len(raw) // 2, max(1, len(raw) - 3)]))]
    (tmp_path / "t").write_bytes(raw)
    output = tmp_path / "o"
    try:
        import_trace(
            [tmp_path / "t"],
            output,
            name=data.draw(st.sampled_from([name.partition(" ")[0], None])),
            skip_bad=data.draw(st.sampled_from([0, 3, 10_000])),
            time_unit=data.draw(st.sampled_from([None, None, *TIME_UNITS])),
        )
        found = describe(output)
    except UserError as error:
        assert "\n" not in str(error)
        assert not output.exists()
    else:
        assert found.records == sum(op.records for op in found.ops) > 0
        assert 0 <= found.span_ns < 1 << 63
        output.unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]


def _compact(data: st.DataObject) -> bytes:
    """A compact trace in which one thing is not what it should be, and the rest fits, or not."""
    made = [Rec(t * 1000, op=t % 4, offset=t * 4096, stream=t % 3) for t in range(20)]
    at = data.draw(st.integers(0, len(made) - 1))
    field, most = data.draw(
        st.sampled_from([("t", 64), ("offset", 64), ("bytes", 32), ("op", 8), ("stream", 16)])
    )
    value = data.draw(st.sampled_from([0, 1, 1 << (most - 1), (1 << most) - 1]))
    if data.draw(st.booleans()):
        made = made[: data.draw(st.integers(0, len(made)))]
    if at < len(made):
        made[at] = made[at]._replace(**{field: value})
    raw = bytearray(
        packed(made, end=data.draw(st.sampled_from([1 << 17, 1 << 17, 0, 1 << 30, 1 << 63])))
    )
    # The header's counts.
    if data.draw(st.integers(0, 3)) == 0:
        place = data.draw(st.sampled_from([16, 24, 32]))
        raw[place : place + 8] = data.draw(WORDS).ljust(8, b"\0")
    return bytes(raw)


@SLOW
@given(data=st.data())
def test_a_compact_trace_of_others_is_described_or_refused(
    tmp_path: Path, data: st.DataObject
) -> None:
    (tmp_path / "t").write_bytes(_compact(data))
    try:
        found = describe(tmp_path / "t")
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert found.records == sum(op.records for op in found.ops) > 0
    with suppress(UserError):
        cut(tmp_path / "t", tmp_path / "o", Part(move=data.draw(st.booleans())))


# The messages of the command line for files that are not traces.
NO_TRACES = {
    "empty": b"",
    "a newline": b"\n",
    "zeros": bytes(1000),
    "one line without an end": b"9" * (3 << 20),
    "a byte order mark": "\ufeff0,0,4096,R,0.5\n".encode(),
    "UTF-16": "0,0,4096,R,0.5\n".encode("utf-16"),
    "a header alone": b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n",
    "gzip of nothing": gzip.compress(b""),
    "half of a gzip": gzip.compress(b"0,0,4096,R,0.5\n" * 1000)[:40],
    "a compact trace's magic": b"ISOTRACE",
    "a compact trace of 2^64 records": b"ISOTRACE\1\0\0\0\x18\0\0\0" + b"\xff" * 8 + bytes(40),
    "a compact trace of nothing": packed([]),
    "a compact trace out of order": packed([Rec(5), Rec(0), Rec(9)]),
    "a compact trace with an unknown operation": packed([Rec(0, op=200)]),
    "a compact trace beyond its end": packed([Rec(0, offset=1 << 40)], end=4096),
}


@pytest.mark.parametrize("what", NO_TRACES)
@pytest.mark.parametrize("command", ["import", "info", "cut"])
def test_the_commands_say_so_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
    command: str,
) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "t").write_bytes(NO_TRACES[what])
    output = () if command == "info" else ("-o", str(tmp_path / "o"))
    monkeypatch.setattr("sys.argv", ["isoblk", "trace", command, str(tmp_path / "t"), *output])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr().err
    assert ended.value.code == 2, told
    assert told.startswith(f"isoblk: {tmp_path / 't'}")
    assert told.count("\n") == 1
    assert not (tmp_path / "o").exists()
