# SPDX-License-Identifier: GPL-2.0-only
"""Every trace format: records of its own writer come back, and damage is reported, not a crash."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoblk.errors import UserError
from isoblk.trace import formats
from isoblk.trace.compact import read_blocks
from isoblk.trace.convert import import_trace
from isoblk.trace.record import FLUSH, FUA, PREFLUSH, READ, TRIM, WRITE
from tests.examples import at_most

from . import tracegen
from .tracegen import KIND_NAMES, KINDS, Request, expected, held, requests

SLOW = settings(
    max_examples=at_most(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def imported(data: bytes, directory: Path, **options: object) -> list[Request]:
    source, output = directory / "trace", directory / "out.isotrace"
    source.write_bytes(data)
    import_trace([source], output, **options)  # type: ignore[arg-type]
    return held(output)


def format_name(kind: str) -> str:
    return kind.partition(" ")[0]


@pytest.mark.parametrize("name", KIND_NAMES)
@pytest.mark.parametrize("sorted_", [True, False])
def test_round_trip(name: str, sorted_: bool, tmp_path: Path) -> None:
    kind = KINDS[name]
    if name == "iolog 2":
        sorted_ = True  # it has no times of its own
    made = requests(kind, 500, sorted_=sorted_)
    back = imported(kind.write(made), tmp_path, name=format_name(name))
    assert back == expected(made, kind.ranked)


@pytest.mark.parametrize("name", KIND_NAMES)
def test_the_format_is_told_from_the_content(name: str) -> None:
    head = KINDS[name].write(requests(KINDS[name], 40))
    found = formats.detect(head, Path("x"))
    assert found.name == format_name(name)
    others = [one for one in formats.FORMATS.values() if one is not found]
    assert all(one.matches(head) < found.matches(head) for one in others)


def test_every_format_is_tested() -> None:
    assert {format_name(name) for name in KIND_NAMES} == set(formats.FORMATS)


@SLOW
@pytest.mark.parametrize("name", KIND_NAMES)
@given(data=st.data())
def test_damaged_bytes_never_crash(name: str, tmp_path: Path, data: st.DataObject) -> None:
    """Bytes are overwritten, cut out and put in; the result imports, or is refused."""
    kind = KINDS[name]
    raw = bytearray(kind.write(requests(kind, 30)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 20))] = data.draw(
            st.one_of(st.binary(max_size=20), st.sampled_from([b",", b"\n", b"-1", b"9" * 25]))
        )
    skip = data.draw(st.sampled_from([0, 1000]))
    try:
        back = imported(bytes(raw), tmp_path, name=format_name(name), skip_bad=skip)
    except UserError as error:
        assert str(tmp_path) in str(error)
        assert not list(tmp_path.glob("out*"))
    else:
        times = [request[0] for request in back]
        assert times == sorted(times)
        assert times[0] == 0
        (tmp_path / "out.isotrace").unlink()
    assert not list(tmp_path.glob(".*"))


@SLOW
@pytest.mark.parametrize("name", sorted(formats.FORMATS))
@given(raw=st.binary(min_size=1, max_size=300))
def test_any_bytes_never_crash(name: str, tmp_path: Path, raw: bytes) -> None:
    try:
        imported(raw, tmp_path, name=name, skip_bad=5)
    except UserError as error:
        assert str(tmp_path) in str(error)


TEXT = ["spc", "msr", "systor", "disksim", "mqsim", "iolog", "alibaba", "tencent"]


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize(
    "damage", [b"what is this", b"1,2,3", b"1,2,3,4,5,6,7,8,9,10,x", b"\xff\xfe", b"\0\0\0"]
)
def test_a_damaged_line_is_named_and_may_be_passed_over(
    name: str, damage: bytes, tmp_path: Path
) -> None:
    kind = KINDS[name]
    made = requests(kind, 100)
    lines = kind.write(made).splitlines(keepends=True)
    lines.insert(57, damage + b"\n")
    with pytest.raises(UserError) as caught:
        imported(b"".join(lines), tmp_path)
    assert caught.value.where == f"{tmp_path / 'trace'}:58"
    assert "--skip-bad" in caught.value.next
    assert caught.value.exit_status == 2
    assert imported(b"".join(lines), tmp_path, skip_bad=1) == expected(made)


@pytest.mark.parametrize("name", ["etw", "blkparse"])
def test_an_event_that_is_cut_short_is_named(name: str, tmp_path: Path) -> None:
    made = requests(KINDS[name], 60)
    lines = KINDS[name].write(made).splitlines(keepends=True)
    at = next(
        i for i, line in enumerate(lines) if i > 50 and (b"DiskWrite" in line or b" Q " in line)
    )
    lines[at] = lines[at][:35] + b"\n"
    with pytest.raises(UserError) as caught:
        imported(b"".join(lines), tmp_path)
    assert caught.value.where == f"{tmp_path / 'trace'}:{at + 1}"
    assert len(imported(b"".join(lines), tmp_path, skip_bad=1)) == len(made) - 1


def test_more_damaged_lines_than_allowed_are_an_error(tmp_path: Path) -> None:
    data = tracegen.spc(requests(KINDS["spc"], 20)) + b"x\n" * 3
    with pytest.raises(UserError, match=r":23: the 3rd damaged record"):
        imported(data, tmp_path, skip_bad=2)


def test_blank_lines_and_missing_last_newline_are_no_damage(tmp_path: Path) -> None:
    for name in TEXT:
        made = requests(KINDS[name], 20)
        lines = KINDS[name].write(made).splitlines()
        data = b"\r\n".join([lines[0], b"", *lines[1:9], b"", b"", *lines[9:]])
        assert imported(data, tmp_path) == expected(made), name


def test_negative_and_huge_numbers_are_damage(tmp_path: Path) -> None:
    good = "128166372003061629,hm,1,Read,383496192,32768,1331\n"
    for bad in (
        good.replace("383496192", "-5"),
        good.replace("383496192", str(1 << 63)),
        good.replace(",32768", f",{1 << 32}"),
        good.replace("128166372003061629", str(1 << 62)),
    ):
        with pytest.raises(UserError) as caught:
            imported((good + bad).encode(), tmp_path)
        assert caught.value.where.endswith(":2"), bad


def test_windows_filetime_is_100_ns_since_1601(tmp_path: Path) -> None:
    data = b"116444736000000000,h,0,Read,0,512,1\n116444736000000007,h,0,Write,512,512,1\n"
    assert [request[0] for request in imported(data, tmp_path)] == [0, 700]


def test_etw_requests_start_before_they_end(tmp_path: Path) -> None:
    """The events are written at the end, so their order is not that of the starts."""
    event = "DiskRead, {}, p (1), 2, 0x3, 0x1000, 0x200, {}, 0, 0, 9, 3, 0, 0xf, f\n"
    data = "\n".join(tracegen.ETW_HEADER) + "\n" + event.format(100, 10) + event.format(150, 90)
    assert [request[0] for request in imported(data.encode(), tmp_path)] == [0, 30_000]


def test_systor_lines_without_an_operation_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "t"
    source.write_text(
        "Timestamp,Response,IOType,LUN,Offset,Size\n"
        "1456135200.000000001,0.001,W,0,4096,4096\n"
        "1456135200.000000002,,,0,4096,4096\n"
        "1456135200.000000005,,R,0,8192,512\n"
    )
    result = import_trace([source], tmp_path / "o")
    assert result.left_out == 1
    assert [request[0] for request in held(tmp_path / "o")] == [0, 4]


def test_blkparse_takes_issued_requests_when_none_are_queued(tmp_path: Path) -> None:
    made = requests(KINDS["blkparse"], 20)
    data = tracegen.blkparse(made).replace(b"  Q ", b"  D ")
    assert imported(data, tmp_path) == expected(made, ranked=True)


def test_fua_and_flushes_of_blkparse(tmp_path: Path) -> None:
    rows = [
        ("WFS", "8 + 8"),
        ("FWFS", "16 + 8"),
        ("FF", ""),
        ("FN", ""),
        ("DS", "0 + 64"),
        ("N", ""),
    ]
    lines = "".join(
        f"  8,0 1 {i} 0.{i:09} 7 Q {rwbs} {where} [x]\n" for i, (rwbs, where) in enumerate(rows)
    )
    source = tmp_path / "t"
    source.write_text(lines)
    import_trace([source], tmp_path / "o")
    (block,) = read_blocks(tmp_path / "o")
    found = list(zip(block["op"].tolist(), block["flags"].tolist(), strict=True))
    assert found == [(WRITE, FUA), (WRITE, FUA | PREFLUSH), (FLUSH, 0), (FLUSH, 0), (TRIM, 0)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("pdu", [b"", b"12345678"])
def test_blktrace_of_either_byte_order_with_data_after_records(
    order: str, pdu: bytes, tmp_path: Path
) -> None:
    made = requests(KINDS["blktrace"], 100)
    assert imported(tracegen.blktrace(made, order, pdu), tmp_path) == expected(made, True)


def test_blktrace_goes_on_after_damage(tmp_path: Path) -> None:
    made = requests(KINDS["blktrace"], 30)
    raw = bytearray(tracegen.blktrace(made))
    raw[48 * 3 * 4 + 1] ^= 1  # the magic number of the 5th request's queueing
    with pytest.raises(UserError, match="record 13 at byte 576"):
        imported(bytes(raw), tmp_path)
    assert len(imported(bytes(raw), tmp_path, skip_bad=1)) == 29


def test_a_binary_file_cut_short_is_named(tmp_path: Path) -> None:
    for name in ("blktrace", "vscsi", "vscsi 1", "oracle"):
        data = KINDS[name].write(requests(KINDS[name], 50))[:-5]
        with pytest.raises(UserError, match="is not complete"):
            imported(data, tmp_path)
        assert len(imported(data, tmp_path, skip_bad=1)) >= 49


def test_vscsi_commands_that_move_nothing_are_left_out(tmp_path: Path) -> None:
    data = bytearray(tracegen.vscsi2(requests(KINDS["vscsi"], 10)))
    data[0] = 0x12  # INQUIRY
    assert len(imported(bytes(data), tmp_path)) == 9


def test_fio_logs_of_both_versions_are_the_same_requests(tmp_path: Path) -> None:
    made = requests(KINDS["iolog"], 50)
    assert imported(tracegen.iolog2(made), tmp_path) == imported(tracegen.iolog3(made), tmp_path)


def test_a_fio_log_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="trace:1: not "):
        imported(b"fio version 9 iolog\n1 /dev/sda read 0 512\n", tmp_path, name="iolog")


def test_unknown_content_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown trace format"):
        imported(b"Dear reader,\nthis is a letter.\n" * 9, tmp_path)


def test_reads_of_nothing_are_left_out(tmp_path: Path) -> None:
    assert imported(b"0,1,512,R,0.0\n0,1,0,W,0.1\n", tmp_path) == [(0, 512, 512, READ, 0)]
