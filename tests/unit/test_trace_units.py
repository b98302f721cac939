# SPDX-License-Identifier: GPL-2.0-only
"""Times in a unit that is not the format's are reported, and can be corrected."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.trace import formats
from isoblk.trace.batch import TIME_UNITS
from isoblk.trace.compact import Writer
from isoblk.trace.convert import import_trace
from isoblk.trace.info import describe
from isoblk.trace.plausible import doubt
from isoblk.trace.record import RECORD, SECOND, Array
from isoblk.trace.resolve import resolve

from . import tracegen
from .command import isoblk
from .tracegen import KINDS, held, requests

YEAR = 366 * 86_400 * SECOND


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))


def _minute(path: Path) -> Path:
    """A minute of a thousand requests, as MQSim has it."""
    made = requests(KINDS["mqsim"], 1000, gap=120_000_000)
    path.write_bytes(tracegen.mqsim(made))
    return path


def test_mqsims_traces_are_in_nanoseconds(tmp_path: Path) -> None:
    found = describe(resolve(_minute(tmp_path / "t.trace")))
    assert 50 < found.span_ns / SECOND < 70


def test_disksims_with_a_fraction_are_in_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("0.5 0 8 8 1\n1.5 0 16 8 0\n3 0 24 8 1\n")
    assert describe(resolve(tmp_path / "t")).span_ns == 2_500_000


UNITS: dict[str, Callable[[int], str]] = {
    "spc": lambda t: f"0,{t},4096,R,{t}",
    "disksim": lambda t: f"{t} 0 {t} 8 1",
    "mqsim": lambda t: f"{t} 0 {t} 8 1",
    "alibaba": lambda t: f"3,R,{t},4096,{t}",
    "tencent": lambda t: f"{t},{t},8,0,3",
    "iolog": lambda t: f"{t} /dev/sda read {t} 4096",
}


@pytest.mark.parametrize("unit", TIME_UNITS)
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_can_be_named(tmp_path: Path, name: str, unit: str) -> None:
    head = "fio version 3 iolog\n" if name == "iolog" else ""
    lines = [UNITS[name](1_000_000_000 + 7 * i) for i in range(20)]
    (tmp_path / "t").write_text(head + "\n".join(lines) + "\n")
    import_trace([tmp_path / "t"], tmp_path / "o", name=name, time_unit=unit)
    assert [request[0] for request in held(tmp_path / "o")] == [
        7 * i * TIME_UNITS[unit] for i in range(20)
    ]


def test_every_format_either_takes_a_unit_or_refuses_it(tmp_path: Path) -> None:
    assert set(UNITS) == {name for name, one in formats.FORMATS.items() if one.in_unit}
    for name, one in formats.FORMATS.items():
        if not one.in_unit:
            kind = next(kind for key, kind in KINDS.items() if key.split()[0] == name)
            (tmp_path / "t").write_bytes(kind.write(requests(kind, 20)))
            with pytest.raises(UserError, match="fixes the unit of times"):
                import_trace([tmp_path / "t"], tmp_path / "o", time_unit="ms")


def test_unix_nanoseconds_are_exact(tmp_path: Path) -> None:
    begin = 1_700_000_000_123_456_789
    (tmp_path / "t").write_text("".join(f"{begin + i} 0 {8 * i} 8 1\n" for i in range(5)))
    assert [request[0] for request in held(resolve(tmp_path / "t"))] == [0, 1, 2, 3, 4]


def test_info_takes_the_unit_and_does_not_confuse_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _minute(tmp_path / "t.trace")
    spans = {}
    for words in ((), ("--time-unit", "us"), ("--time-unit", "ms"), ()):
        assert isoblk(monkeypatch, "trace", "info", "--json", path, *words) == 0
        spans[words] = json.loads(capsys.readouterr().out)["span_ns"]
    plain = spans[()]
    assert spans == {
        (): plain,
        ("--time-unit", "us"): 1000 * plain,
        ("--time-unit", "ms"): 1_000_000 * plain,
    }
    compact = tmp_path / "t.isotrace"
    import_trace([path], compact)
    assert isoblk(monkeypatch, "trace", "info", compact, "--time-unit", "us") == 2
    assert "the times of a compact trace are in ns" in capsys.readouterr().err


def test_an_implausible_span_is_reported_with_the_likely_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _minute(tmp_path / "t.trace")
    words = ("trace", "import", path, "-o", tmp_path / "o", "--format", "disksim")
    assert isoblk(monkeypatch, *words) == 0
    told = capsys.readouterr().err
    assert told.startswith("note: 1,000 requests in 1.9")
    assert "a million times shorter it would be 1 min; import it with --time-unit" in told
    assert "speed = 1e+06" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("records", "span_ns", "told"),
    [
        (1000, 60 * SECOND, None),
        (10**6, 7 * 86_400 * SECOND, None),
        (9, 40 * YEAR, None),
        (1000, 0, None),
        (10**9, 2 * YEAR, "2 years"),
        (1000, 86_400 * SECOND, "a thousand times shorter"),
        (1000, 1001, "a million times longer it would be 1 s"),
        (10, (1 << 63) - 1, "a billion times shorter"),
    ],
)
def test_a_span_is_doubted_if_implausible_for_its_number_of_records(
    records: int, span_ns: int, told: str | None
) -> None:
    found = doubt(records, span_ns)
    assert (found is None) == (told is None)
    assert told is None or told in (found or "")


@given(st.integers(0, 1 << 63), st.integers(0, 1 << 63))
def test_any_figures_give_a_line_or_none(records: int, span_ns: int) -> None:
    assert "\n" not in (doubt(records, span_ns) or "")


@given(
    st.lists(st.integers(0, (1 << 63) - 1), min_size=1, max_size=6),
    st.integers(0, (1 << 62)),
)
def test_info_describes_any_span_and_any_address(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], offset: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.isotrace"
    records: Array = np.zeros(len(times), RECORD)
    records["t"] = np.array(sorted(times), np.uint64) - np.uint64(min(times))
    records["offset"] = offset
    records["bytes"] = 4096
    with Writer(path) as writer:
        writer.write(records)
    found = describe(path)
    assert found.records == len(times)
    assert sum(map(sum, found.map)) == len(times)
