# SPDX-License-Identifier: GPL-2.0-only
"""Importing: order, volumes, compression, and that nothing half-written is left."""

import gzip
import lzma
import struct
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.trace import sort
from isoblk.trace.compact import BLOCK, Writer, read_blocks, read_header, scratch
from isoblk.trace.convert import import_trace
from isoblk.trace.record import RECORD, Records
from isoblk.trace.resolve import resolve

from .tracegen import KINDS, alibaba, expected, held, requests, spc


def records(times: list[int]) -> Records:
    made = np.zeros(len(times), RECORD)
    made["t"] = times
    made["offset"] = np.arange(len(times))
    made["bytes"] = 512
    return made


@given(
    batches=st.lists(st.lists(st.integers(0, 50), max_size=30), max_size=12),
    window=st.integers(0, 40),
)
@settings(deadline=None)
def test_sorting_keeps_every_record_in_order(batches: list[list[int]], window: int) -> None:
    """A small window, so that runs are merged."""
    with scratch(Path("/tmp/x")) as file:
        sorter = sort.Sorter(file, window)
        number = 0
        for times in batches:
            block = records(times)
            block["offset"] += number
            number += len(times)
            sorter.add(block)
        merged = list(sort.merge(file, sorter.finish(), at_once=16))
    back = np.concatenate(merged) if merged else records([])
    assert back["t"].tolist() == sorted(time for times in batches for time in times)
    assert sorted(back["offset"].tolist()) == list(range(number))
    given_ = dict(enumerate(t for ts in batches for t in ts))
    assert all(given_[o] == t for o, t in zip(back["offset"].tolist(), back["t"], strict=True))


def test_runs_longer_than_one_read_are_merged() -> None:
    with scratch(Path("/tmp/x")) as file:
        sorter = sort.Sorter(file, 0)
        for start in (0, 1, 2):
            sorter.add(records(list(range(start, 15_000, 3))))
        runs = sorter.finish()
        assert len(runs) == 3
        blocks = list(sort.merge(file, runs, at_once=1))
    assert len(blocks) > 3
    assert np.concatenate(blocks)["t"].tolist() == list(range(15_000))


def test_requests_out_of_order_by_little_make_one_run(tmp_path: Path) -> None:
    made = requests(KINDS["alibaba"], 1000)
    swapped = [made[i ^ 1] for i in range(len(made))]
    (tmp_path / "t").write_bytes(alibaba(swapped))
    result = import_trace([tmp_path / "t"], tmp_path / "o")
    assert result.runs == 1
    assert held(tmp_path / "o") == expected(made)


def test_files_of_one_clock_are_joined_by_time(tmp_path: Path) -> None:
    made = requests(KINDS["alibaba"], 400)
    for number in range(4):
        (tmp_path / f"t{number}").write_bytes(alibaba(made[number::4]))
    import_trace(sorted(tmp_path.glob("t*")), tmp_path / "o")
    assert held(tmp_path / "o") == expected(made)


def test_volumes_lie_after_each_other_and_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("7,0,512,R,0\n3,2048,512,W,1\n7,1,512,R,2\n")
    result = import_trace([tmp_path / "t"], tmp_path / "o")
    assert held(tmp_path / "o") == [
        (0, 2 << 20, 512, 0, 7),
        (1_000_000_000, 1 << 20, 512, 1, 3),
        (2_000_000_000, (2 << 20) + 512, 512, 0, 7),
    ]
    assert {v.number: (v.stream, v.size, v.records) for v in result.volumes} == {
        7: (7, 1024, 2),
        3: (3, (1 << 20) + 512, 1),
    }
    assert read_header(tmp_path / "o") == result.header
    assert result.header.max_end == (2 << 20) + 1024


def test_volume_numbers_that_fit_no_stream_are_counted_from_1(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("70000,0,512,R,0\n5,0,512,W,1\n")
    result = import_trace([tmp_path / "t"], tmp_path / "o")
    assert {v.number: v.stream for v in result.volumes} == {5: 1, 70000: 2}
    assert [request[4] for request in held(tmp_path / "o")] == [2, 1]


def test_more_volumes_than_streams_are_refused(tmp_path: Path) -> None:
    lines = "".join(f"{v},0,512,R,0\n" for v in range((1 << 16) + 1))
    (tmp_path / "t").write_text(lines)
    with pytest.raises(UserError, match="more than 65536 volumes"):
        import_trace([tmp_path / "t"], tmp_path / "o")


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_compressed_files_are_read_whatever_their_name(name: str, tmp_path: Path) -> None:
    made = requests(KINDS["spc"], 3000)
    raw = spc(made)
    packed = COMPRESSIONS[name](raw[:5000]) + COMPRESSIONS[name](raw[5000:])  # as `cat` makes
    (tmp_path / "trace.txt").write_bytes(packed)
    import_trace([tmp_path / "trace.txt"], tmp_path / "o")
    assert held(tmp_path / "o") == expected(made)


@pytest.mark.parametrize("name", COMPRESSIONS)
@pytest.mark.parametrize("damage", ["short", "changed"])
def test_damaged_compression_is_told(name: str, damage: str, tmp_path: Path) -> None:
    packed = bytearray(COMPRESSIONS[name](spc(requests(KINDS["spc"], 3000))))
    if damage == "short":
        packed = packed[: len(packed) * 2 // 3]
    else:
        packed[len(packed) // 2 : len(packed) // 2 + 200] = bytes(200)
    (tmp_path / "t").write_bytes(packed)
    with pytest.raises(UserError) as caught:
        import_trace([tmp_path / "t"], tmp_path / "o", skip_bad=10**6)
    assert caught.value.where.startswith(str(tmp_path / "t"))
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_an_xz_file_with_a_dictionary_of_gigabytes_is_refused(tmp_path: Path) -> None:
    packed = bytearray(lzma.compress(spc(requests(KINDS["spc"], 300))))
    # The header of the first block, behind that of the stream: its length, flags, filter, CRC.
    header = slice(12, 12 + packed[12] * 4)
    packed[packed.index(b"\x21\x01", 12) + 2] = 40  # 4 GiB
    packed[header.stop : header.stop + 4] = zlib.crc32(packed[header]).to_bytes(4, "little")
    (tmp_path / "t").write_bytes(packed)
    with pytest.raises(UserError, match=r"t: damaged.*memory usage limit"):
        import_trace([tmp_path / "t"], tmp_path / "o")


def test_xz_streams_may_have_zeros_between_and_other_bytes_behind_them(tmp_path: Path) -> None:
    made = requests(KINDS["spc"], 300)
    raw = spc(made)
    parts = (lzma.compress(raw[:500]), bytes(8), lzma.compress(raw[500:]), bytes(4), b"more")
    (tmp_path / "t").write_bytes(b"".join(parts))
    import_trace([tmp_path / "t"], tmp_path / "o")
    assert held(tmp_path / "o") == expected(made)


def test_tar_archives_empty_and_missing_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with tarfile.open(tmp_path / "x.tgz", "w:gz") as archive:
        archive.add(tmp_path / "empty", "empty")
    for name, text in (("empty", "is empty"), ("x.tgz", "is a tar archive"), ("no", "cannot read")):
        with pytest.raises(UserError, match=text):
            import_trace([tmp_path / name], tmp_path / "o")


def test_events_without_requests_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("fio version 3 iolog\n10 /dev/sda add\n")
    with pytest.raises(UserError, match="has no requests"):
        import_trace([tmp_path / "t"], tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_a_failed_import_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "o").write_text("old")
    (tmp_path / "t").write_text("0,0,512,R,0\nx\n")
    with pytest.raises(UserError):
        import_trace([tmp_path / "t"], tmp_path / "o", name="spc")
    assert (tmp_path / "o").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_unwritable_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("0,0,512,R,0\n")
    with pytest.raises(UserError, match="cannot write"):
        import_trace([tmp_path / "t"], tmp_path / "none" / "o")


def test_the_compact_layout(tmp_path: Path) -> None:
    """The bytes that blkload reads."""
    (tmp_path / "t").write_text("9,8,4096,W,5.5\n9,0,512,r,5.500001\n")
    import_trace([tmp_path / "t"], tmp_path / "o")
    header = struct.pack("<8sIIQQQ", b"ISOTRACE", 1, 24, 2, 1000, 8192).ljust(64, b"\0")
    body = struct.pack("<QQIBBH", 0, 4096, 4096, 1, 0, 9)
    body += struct.pack("<QQIBBH", 1000, 0, 512, 0, 0, 9)
    assert (tmp_path / "o").read_bytes() == header + body


def test_blocks_are_read_from_any_record_on(tmp_path: Path) -> None:
    count = BLOCK + 1000
    with Writer(tmp_path / "o") as writer:
        writer.write(records(list(range(count))))
    for start, stop in ((0, None), (5, 7), (BLOCK - 1, BLOCK + 1), (count, None), (9, 10**9)):
        found = [int(t) for block in read_blocks(tmp_path / "o", start, stop) for t in block["t"]]
        assert found == list(range(count))[start:stop]


def test_a_compact_file_cut_short_or_of_another_version_is_refused(tmp_path: Path) -> None:
    with Writer(tmp_path / "o") as writer:
        writer.write(records([0, 1]))
    good = (tmp_path / "o").read_bytes()
    for bad, text in (
        (good[:-1], "111 bytes, but 2 records make 112"),
        (good[:40], "not a compact trace"),
        (good[:8] + b"\2" + good[9:], "version 2"),
    ):
        (tmp_path / "o").write_bytes(bad)
        with pytest.raises(UserError, match=text):
            read_header(tmp_path / "o")


def test_a_log_that_fio_wrote_is_imported(tmp_path: Path) -> None:
    log = tmp_path / "log"
    try:
        subprocess.run(
            [
                *("fio", "--name=x", f"--filename={tmp_path / 'f'}", "--size=1m", "--bs=64k"),
                *("--rw=randrw", "--ioengine=sync", f"--write_iolog={log}"),
            ],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("fio is not installed")
    result = import_trace([log], tmp_path / "o")
    moved = sum(request[2] for request in held(tmp_path / "o"))
    assert result.formats == ("iolog",)
    assert moved == 1 << 20


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="no /proc/kmsg")
def test_a_file_of_the_kernels_that_has_no_end_is_no_trace(tmp_path: Path) -> None:
    """Reading it waits for what the kernel says next, and takes it from others."""
    with pytest.raises(UserError, match="is empty"):
        import_trace([Path("/proc/kmsg")], tmp_path / "o")
    with pytest.raises(UserError, match="is empty"):
        resolve("/proc/kmsg")
