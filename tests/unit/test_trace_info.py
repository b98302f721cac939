# SPDX-License-Identifier: GPL-2.0-only
"""isoblk trace info and isoblk trace cut, against traces of known content."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.report.figures.traces import make_figures
from isoblk.trace.compact import Writer
from isoblk.trace.cut import Part, cut
from isoblk.trace.info import describe
from isoblk.trace.record import FLUSH, FUA, READ, RECORD, TRIM, WRITE, Records
from tests.examples import at_most

from .tracegen import held

Row = tuple[int, int, int, int, int, int]  # as RECORD


def write(path: Path, rows: list[Row]) -> Path:
    with Writer(path) as writer:
        writer.write(np.array(rows, RECORD))
    return path


def random_records(count: int, span: int, footprint: int, seed: int = 1) -> Records:
    random = np.random.default_rng(seed)
    made = np.zeros(count, RECORD)
    made["t"] = np.sort(random.integers(0, span, count))
    made["t"] -= made["t"][0]
    made["offset"] = random.integers(0, footprint // 4096, count) * 4096
    made["bytes"] = 4096
    made["op"] = random.integers(0, 2, count)
    return made


def test_mix_sizes_rate_and_streams(tmp_path: Path) -> None:
    found = describe(
        write(
            tmp_path / "o",
            [
                (0, 0, 4096, READ, 0, 1),
                (500_000_000, 4096, 8192, READ, 0, 1),
                (600_000_000, 65536, 4096, WRITE, FUA, 2),
                (700_000_000, 0, 0, FLUSH, 0, 2),
                (2_000_000_000, 1 << 30, 1 << 20, TRIM, 0, 2),
            ],
        )
    )
    assert (found.records, found.span_ns, found.max_end) == (
        5,
        2_000_000_000,
        (1 << 30) + (1 << 20),
    )
    assert found.iops == 2.5
    assert found.bytes_a_second == (4096 + 8192 + 4096) / 2
    assert found.read_write == 2
    assert found.fua == 1
    assert {op.op: (op.records, op.bytes) for op in found.ops} == {
        "read": (2, 12288),
        "write": (1, 4096),
        "trim": (1, 1 << 20),
        "flush": (1, 0),
    }
    assert found.ops[0].sizes == [(4096, 1), (8192, 1)]
    assert [(s.stream, s.records, s.lowest, s.end) for s in found.streams] == [
        (1, 2, 0, 12288),
        (2, 2, 65536, (1 << 30) + (1 << 20)),
    ]
    assert found.footprint == 12288 + 4096 + (1 << 20)
    assert found.written == 4096
    assert found.sequential == 1 / 4


def test_sequential_runs_are_followed_by_stream(tmp_path: Path) -> None:
    rows: list[Row] = []
    for i in range(100):
        rows.append((2 * i, i * 4096, 4096, READ, 0, 1))
        rows.append((2 * i + 1, (1 << 30) + i * 8192, 8192, WRITE, 0, 2))
    found = describe(write(tmp_path / "o", rows))
    assert found.sequential == 198 / 200
    assert found.mean_run_bytes == (100 * 4096 + 100 * 8192) / 2


def test_hot_spots(tmp_path: Path) -> None:
    """One block of 100 takes half of the requests."""
    rows: list[Row] = [
        (i, 0 if i % 2 else (1 + i // 2) * 4096, 512, READ, 0, 0) for i in range(198)
    ]
    found = describe(write(tmp_path / "o", rows))
    assert found.footprint == 100 * 4096
    assert found.hot[0] == (0.01, 0.5)


def test_requests_across_blocks_and_block_borders(tmp_path: Path) -> None:
    rows: list[Row] = [(0, 4095, 2, READ, 0, 0), (1, 1 << 20, 300 << 20, WRITE, 0, 0)]
    found = describe(write(tmp_path / "o", rows))
    assert found.footprint == 2 * 4096 + (300 << 20)
    assert found.written == 300 << 20


def test_a_large_address_space_has_larger_blocks(tmp_path: Path) -> None:
    rows: list[Row] = [(0, 0, 512, READ, 0, 0), (1, (1 << 62) - 512, 512, WRITE, 0, 0)]
    found = describe(write(tmp_path / "o", rows))
    assert found.footprint == 2 * found.block_bytes
    assert found.max_end <= found.block_bytes << 25


def test_poisson_arrivals_have_no_bursts(tmp_path: Path) -> None:
    with Writer(tmp_path / "o") as writer:
        writer.write(random_records(200_000, 100 * 10**9, 1 << 30))
    found = describe(tmp_path / "o")
    assert found.gap_cv == pytest.approx(1, abs=0.02)
    for burst in found.bursts[:3]:
        assert burst.dispersion == pytest.approx(1, abs=0.3)
    median = dict(found.gaps)[50]
    assert median == pytest.approx(found.gap_mean_ns * np.log(2), rel=0.06)


def test_one_record_and_records_at_one_time(tmp_path: Path) -> None:
    rows: list[Row] = [(0, 0, 512, READ, 0, 0)]
    assert describe(write(tmp_path / "o", rows)).gaps == []
    found = describe(write(tmp_path / "o", rows * 3))
    assert (found.gap_mean_ns, found.gap_cv) == (0, 0)
    assert dict(found.gaps)[50] == 0


@settings(max_examples=at_most(30))
@given(rows=st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 1 << 40),
                               st.integers(1, 1 << 20), st.integers(0, 2), st.just(0),
                               st.integers(0, 5)), min_size=1, max_size=60))  # fmt: skip
def test_counts_are_kept(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = sorted(rows)
    rows = [(row[0] - rows[0][0], *row[1:]) for row in rows]
    found = describe(write(tmp_path_factory.mktemp("i") / "o", rows))
    assert sum(op.records for op in found.ops) == len(rows)
    assert sum(found.reads_by_slice) + sum(found.writes_by_slice) == len(rows)
    assert sum(map(sum, found.map)) == len(rows)
    assert sum(stream.bytes for stream in found.streams) == sum(row[2] for row in rows)
    assert 0 <= found.written <= found.footprint


def test_figures_are_drawn(tmp_path: Path) -> None:
    with Writer(tmp_path / "o") as writer:
        writer.write(random_records(2000, 10**9, 1 << 30))
    figures = make_figures(describe(tmp_path / "o"), "t")
    assert [figure.name for figure in figures] == ["rate", "sizes", "addresses", "hot-spots"]
    assert all(figure.svg.startswith("<svg") for figure in figures)


ROWS: list[Row] = [
    (0, 4096, 4096, READ, 0, 1),
    (10, 8192, 4096, WRITE, 0, 2),
    (20, 0, 0, FLUSH, 0, 2),
    (30, 65536, 4096, READ, 0, 1),
    (40, 12288, 4096, WRITE, 0, 3),
]


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        (Part(), [0, 1, 2, 3, 4]),
        (Part(records=(1, 3)), [1, 2]),
        (Part(records=(3, None)), [3, 4]),
        (Part(times=(10, 30)), [1, 2]),
        (Part(times=(None, 11)), [0, 1]),
        (Part(streams=(1, 3)), [0, 3, 4]),
        (Part(addresses=(8192, 16384)), [1, 2, 4]),
        (Part(addresses=(0, 8193)), [0, 2]),
        (Part(times=(10, None), streams=(2,), addresses=(8192, None)), [1, 2]),
    ],
)
def test_cut_keeps_records_that_meet_all_conditions(
    part: Part, kept: list[int], tmp_path: Path
) -> None:
    source = write(tmp_path / "o", ROWS)
    header = cut(source, tmp_path / "c", part)
    begin = ROWS[kept[0]][0]
    assert held(tmp_path / "c") == [(ROWS[i][0] - begin, *ROWS[i][1:4], ROWS[i][5]) for i in kept]
    assert (header.records, header.span_ns) == (len(kept), ROWS[kept[-1]][0] - begin)


def test_cut_moves_addresses_but_not_those_of_flushes(tmp_path: Path) -> None:
    cut(write(tmp_path / "o", ROWS), tmp_path / "c", Part(streams=(2, 3), move=True))
    assert [(row[1], row[3]) for row in held(tmp_path / "c")] == [
        (0, WRITE),
        (0, FLUSH),
        (4096, WRITE),
    ]


def test_cutting_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no request is in that part"):
        cut(write(tmp_path / "o", ROWS), tmp_path / "c", Part(times=(100, None)))
    assert not (tmp_path / "c").exists()
