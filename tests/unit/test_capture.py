# SPDX-License-Identifier: GPL-2.0-only
"""Events of the kernel are read correctly by a capture, and damaged ones end in one line; the study
of a capture can run whatever the names of the cgroups."""

import mmap
import os
import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoblk.capture import bpf
from isoblk.capture.bpf import Label
from isoblk.capture.btf import BtfError, Types, read_types
from isoblk.capture.cgroups import Cgroups, weight_of
from isoblk.capture.convert import convert, decoder, processes
from isoblk.capture.events import BUSY, ENUMS, EVENT, STRUCTS, TYPEDEFS, Range, program
from isoblk.capture.ring import Ring
from isoblk.errors import IsoblkError, RunError, UserError
from isoblk.study import fromcapture
from isoblk.study.load import load_study
from isoblk.trace.compact import HEADER_BYTES, read_blocks, read_header
from isoblk.trace.cut import Part, cut
from isoblk.trace.formats.blktrace import records_of
from isoblk.trace.names import (
    VERSION,
    Names,
    Process,
    StreamName,
    keep_names,
    names_file,
    read_names,
    write_names,
)
from isoblk.trace.record import FLUSH, RECORD, TRIM, Records
from tests.examples import at_most

from .isotrace import ASYNC, FUA, PREFLUSH, READ, WRITE, Rec, write_trace

SYNC_BIT, FUA_BIT, PREFLUSH_BIT = 1 << 11, 1 << 17, 1 << 18
OFFSETS = {
    "bio": {"bi_bdev": 8, "bi_opf": 16, "bi_iter": 32, "bi_blkg": 72},
    "bvec_iter": {"bi_sector": 0, "bi_size": 8},
    "block_device": {"bd_disk": 16},
    "gendisk": {"major": 0, "first_minor": 4},
    "blkcg_gq": {"blkcg": 40},
    "blkcg": {"css": 0},
    "cgroup_subsys_state": {"cgroup": 0},
    "cgroup": {"kn": 256},
    "kernfs_node": {"id": 96},
}
NUMBERS = {
    **{"REQ_OP_READ": 0, "REQ_OP_WRITE": 1, "REQ_OP_FLUSH": 2, "REQ_OP_DISCARD": 3},
    **{"__REQ_SYNC": 11, "__REQ_FUA": 17, "__REQ_PREFLUSH": 18},
}
TYPES = Types(OFFSETS, NUMBERS, {})


# ---- type information


def _btf() -> bytes:
    """The kernel's, in small: the structures and enumerators above, and others beside them."""
    strings = bytearray(b"\0")

    def name(text: str) -> int:
        at = strings.find(b"\0" + text.encode() + b"\0")
        if at < 0:
            at = len(strings) - 1
            strings.extend(text.encode() + b"\0")
        return at + 1

    types = struct.pack("<IIII", name("int"), 1 << 24, 4, 32)
    types += struct.pack("<IIIIII", 0, 3 << 24, 0, 1, 1, 7)  # an array
    types = types[:16] + struct.pack("<III", name(TYPEDEFS[0]), 8 << 24, 1) + types[16:]
    for struct_name, members in OFFSETS.items():
        types += struct.pack("<III", name(struct_name), 4 << 24 | len(members), 512)
        for member, offset in members.items():
            types += struct.pack("<III", name(member), 1, offset * 8)
    bits = [(name("bits"), 3 << 24 | 5), (name("whole"), 64)]  # a bit field, and none
    types += struct.pack("<III", name("flagged"), 1 << 31 | 4 << 24 | 2, 16)
    types += b"".join(struct.pack("<III", one, 1, offset) for one, offset in bits)
    types += struct.pack("<III", name("req_op"), 6 << 24 | len(NUMBERS), 4)
    types += b"".join(struct.pack("<II", name(text), value) for text, value in NUMBERS.items())
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings))
    return header + types + bytes(strings)


def test_members_and_enumerators_are_found() -> None:
    types = read_types(_btf(), (*STRUCTS, "flagged"), ENUMS, TYPEDEFS)
    assert types.structs == OFFSETS | {"flagged": {"whole": 8}}
    assert types.enumerators == NUMBERS
    assert types.typedef(TYPEDEFS[0]) == 2
    with pytest.raises(BtfError, match="struct bio has no bi_nothing"):
        types.offset("bio", "bi_nothing")


@given(cut_at=st.integers(0, 2000), at=st.integers(0, 2000), byte=st.integers(0, 255))
@settings(deadline=None)
def test_damaged_type_information_is_found_out_or_harmless(cut_at: int, at: int, byte: int) -> None:
    data = bytearray(_btf())
    data[at % len(data)] = byte
    for damaged in (bytes(data), bytes(data[:cut_at])):
        try:
            program(read_types(damaged, STRUCTS, ENUMS, TYPEDEFS), Range(8, 0), 3, 4)
        except BtfError:
            continue


# ---- the program


def test_instructions_have_the_documented_form_and_jumps_arrive() -> None:
    code = bpf.assemble(
        [
            bpf.load(6, 1, 8),
            bpf.jump_equal(6, 5, "end"),
            bpf.constant(2, 0x1_0000_0002),
            bpf.store(10, -8, 2, 4),
            Label("end"),
            bpf.constant(0, 0),
            bpf.leave(),
        ]
    )
    words = list(struct.iter_unpack("<BBhi", code))
    assert words == [
        (0x79, 0x16, 8, 0),  # r6 = *(u64 *)(r1 + 8)
        (0x15, 0x06, 3, 5),  # if r6 == 5 goto +3
        (0x18, 0x02, 0, 2),  # r2 = ... ll
        (0x00, 0x00, 0, 1),
        (0x63, 0x2A, -8, 0),  # *(u32 *)(r10 - 8) = r2
        (0x18, 0x00, 0, 0),
        (0x00, 0x00, 0, 0),
        (0x95, 0x00, 0, 0),
    ]


def test_every_jump_of_the_program_stays_in_it() -> None:
    for what in (Range(8, 16), Range(259, 0, 2048, 4096)):
        words = list(struct.iter_unpack("<BBhi", program(TYPES, what, 3, 4)))
        wide = {i + 1 for i, word in enumerate(words) if word[0] == 0x18}
        for i, (code, _, off, _) in enumerate(words):
            if i not in wide and code & 7 == 5 and code & 0xF0 not in (0x80, 0x90):
                assert 0 <= i + 1 + off < len(words)
                assert i + 1 + off not in wide
        assert words[-1][0] == 0x95


# ---- the ring


@pytest.fixture
def memory() -> Iterator[int]:
    """The memory that the kernel maps for a ring of 16 events."""
    file = os.memfd_create("ring")
    os.truncate(file, 2 * mmap.PAGESIZE + 2 * 16 * EVENT.itemsize)
    yield file
    os.close(file)


def _put(file: int, first: int, times: list[int], busy: int = -1) -> None:
    """Events from position `first` on, as the kernel writes them; `busy` is not complete."""
    ring = np.zeros(16, EVENT)
    for i, t in enumerate(times, first):
        ring[i % 16]["t"] = t
        ring[i % 16]["length"] = 56 | (BUSY if t == busy else 0)
    for copy in range(2):
        os.pwrite(file, ring.tobytes(), 2 * mmap.PAGESIZE + copy * ring.nbytes)
    os.pwrite(file, struct.pack("<Q", (first + len(times)) * EVENT.itemsize), mmap.PAGESIZE)


def _taken(ring: Ring) -> list[int]:
    return [t for block in ring.take() for t in block["t"].tolist()]


def test_events_are_taken_once_around_the_end_and_not_before_they_are_complete(
    memory: int,
) -> None:
    ring = Ring(memory, 16 * EVENT.itemsize)
    assert _taken(ring) == []
    _put(memory, 0, [1, 2, 3, 4], busy=3)
    assert _taken(ring) == [1, 2]
    assert _taken(ring) == []
    _put(memory, 0, [1, 2, 3, 4])
    assert _taken(ring) == [3, 4]
    assert os.pread(memory, 8, 0) == struct.pack("<Q", 4 * EVENT.itemsize)
    _put(memory, 4, list(range(5, 21)))  # full, and around
    assert _taken(ring) == list(range(5, 21))


# ---- events to records


def _event(t: int, op: int, sector: int = 8, size: int = 4096, **more: int) -> tuple[object, ...]:
    values: dict[str, object] = {"cgroup": 1, "tgid": 7, "comm": b"fio"} | more
    return (*(56, 0, t, sector, values["cgroup"], size, op, values["tgid"], 0, values["comm"]),)


def _converted(events: Records, output: Path, base: int = 0) -> tuple[Records, dict[str, int]]:
    with TemporaryFile() as raw:
        events.tofile(raw)
        _, _, streams = convert(
            raw, decoder(TYPES), output, base=base, path_of=lambda number: f"/g{number}"
        )
    return np.concatenate(list(read_blocks(output))), streams


def test_events_become_records_of_their_operation_flags_and_cgroup(tmp_path: Path) -> None:
    events = np.array(
        [
            _event(105, 0, 16),
            _event(100, 1 | SYNC_BIT, 8, cgroup=5),
            _event(101, 1, 8),
            _event(102, 1 | SYNC_BIT | FUA_BIT | PREFLUSH_BIT, 24, 512),
            _event(103, 1 | SYNC_BIT | PREFLUSH_BIT, 0, 0, cgroup=5),
            _event(104, 3, 8, 1 << 20),
            _event(106, 34, 8),  # a command of a driver
            _event(107, 0, 8, 0),
            _event(108, 0, 3),  # before the partition
        ],
        EVENT,
    )
    records, streams = _converted(events, tmp_path / "t", base=8)
    assert streams == {"/g1": 1, "/g5": 2}
    assert records[["t", "offset", "bytes", "op", "flags", "stream"]].tolist() == [
        (0, 0, 4096, WRITE, 0, 2),
        (1, 0, 4096, WRITE, ASYNC, 1),
        (2, 8192, 512, WRITE, FUA | PREFLUSH, 1),
        (3, 0, 0, FLUSH, 0, 2),
        (4, 0, 1 << 20, TRIM, 0, 1),
        (5, 4096, 4096, READ, 0, 1),
    ]


@given(data=st.binary(max_size=20 * 64))
@settings(deadline=None)
def test_whatever_bytes_events_have_a_valid_trace_is_made_or_none(data: bytes) -> None:
    events = np.frombuffer(data[: len(data) // 64 * 64], EVENT).copy()
    with TemporaryDirectory() as directory:
        output = Path(directory) / "t"
        try:
            records, streams = _converted(events, output)
        except RunError:
            assert not output.exists()
            return
        header = read_header(output)
        assert len(records) <= len(events)
        assert (np.diff(records["t"].astype(np.int64)) >= 0).all()
        assert set(records["stream"].tolist()) == set(streams.values())
        assert header.max_end < 1 << 63


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([b"a", b"b"])),
        min_size=1,
        max_size=50,
    )
)
@settings(deadline=None)
def test_requests_are_counted_for_each_process_and_cgroup(
    who: list[tuple[int, int, bytes]],
) -> None:
    rows = [(56, 0, i, 8, g, 512, 0, p, 0, c) for i, (g, p, c) in enumerate(who)]
    with TemporaryDirectory() as directory, TemporaryFile() as raw:
        np.array(rows, EVENT).tofile(raw)
        _, tally, _ = convert(raw, decoder(TYPES), Path(directory) / "t", base=0, path_of=str)
    for group in {g for g, _, _ in who}:
        mine = [(p, c) for g, p, c in who if g == group]
        assert tally.requests(group) == len(mine)
        assert {
            (one.pid, one.name.encode()): one.requests for one in processes(tally, [group])
        } == {key: mine.count(key) for key in mine}


# ---- the block tracer's records


def _relay(pdus: list[bytes]) -> bytes:
    return b"".join(
        struct.pack("<IIQQIIIIIHH", 0x65617407, i, i, 8, 512, 1, 2, 3, 0, 0, len(pdu)) + pdu
        for i, pdu in enumerate(pdus)
    )


@given(
    pdus=st.lists(st.binary(max_size=24), max_size=20),
    even=st.booleans(),
    pieces=st.lists(st.integers(1, 400), min_size=1, max_size=30),
)
@settings(deadline=None)
def test_the_tracers_records_are_found_however_the_file_is_cut(
    pdus: list[bytes], even: bool, pieces: list[int]
) -> None:
    if even:  # as the kernel writes those of requests
        pdus = [pdu[: len(pdu) // 8 * 8] for pdu in pdus]
    data, rest = BytesIO(_relay(pdus)), b""
    found: list[bytes] = []
    sizes = iter(pieces)
    while piece := data.read(next(sizes, 1 << 20)):
        held = rest + piece
        records, places, rest = records_of(held)
        for record, at in zip(records, places.tolist(), strict=True):
            assert int(record["sequence"]) == len(found)
            found.append(held[at : at + int(record["pdu"])])
    assert rest == b""
    assert found == pdus


@given(data=st.binary(max_size=400), at=st.integers(0, 400))
@settings(deadline=None)
def test_damaged_records_of_the_tracer_are_passed_over(data: bytes, at: int) -> None:
    whole = _relay([b"12345678", b"", b"87654321"])
    records, places, rest = records_of(whole[:at] + data + whole[at:])
    assert len(records) == len(places)
    assert len(rest) <= len(whole) + len(data)


# ---- cgroups


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("100\n", 100),
        ("default 250\n8:0 30\n", 250),
        ("default 5\n8:16 30\n", 30),
        ("7\n8:16 3", 3),
    ],
)
def test_a_weight_is_that_of_the_device_else_the_default(text: str, weight: int) -> None:
    assert weight_of(text, "8:16") == weight


@given(st.text(max_size=40))
def test_text_without_a_number_is_not_a_weight(text: str) -> None:
    try:
        weight_of(text, "8:16")
    except ValueError:
        return
    assert any(char.isdigit() for char in text)


def test_a_cgroup_keeps_its_path_and_weights_when_it_is_gone(tmp_path: Path) -> None:
    (tmp_path / "up/down").mkdir(parents=True)
    (tmp_path / "up/io.weight").write_text("default 300\n")
    (tmp_path / "up/down/io.bfq.weight").write_text("default 7\n")
    number = (tmp_path / "up/down").stat().st_ino
    cgroups = Cgroups(tmp_path, "8:0")
    cgroups.learn(np.array([number, 0, 1 << 40], np.uint64))
    (tmp_path / "up/down/io.bfq.weight").unlink()
    (tmp_path / "up/down").rmdir()
    cgroups.learn(np.array([number], np.uint64))
    assert cgroups.path(number) == "/up/down"
    assert cgroups.path(0) == "/"
    assert cgroups.path(1 << 40) == f"/cgroup-{1 << 40}"
    assert cgroups.weights("/up/down") == {"io.bfq.weight": 7}
    assert cgroups.weights("/up") == {"io.weight": 300}


# ---- names, and the study


def _names(paths: list[str], **more: object) -> Names:
    streams = tuple(
        StreamName(
            stream=i,
            cgroup=path,
            requests=10,
            weights={"io.weight": 100, "io.bfq.weight": 100 * i},
            processes=(Process(pid=1, name="fio\n", requests=10),),
        )
        for i, path in enumerate(paths, 1)
    )
    fields: dict[str, object] = {
        **{"version": VERSION, "device": "/dev/sd\nb", "size": 1 << 30, "logical_block_size": 512},
        **{"scheduler": "bfq", "kernel": "6.12", "backend": "bpf", "begun": "2026-01-02T03:04:05"},
        **{"seconds": 1.0, "first_ns": 5, "lost": 0, "left_out": 0, "cgroups": "v2"},
        **{"streams": streams, "parents": {"/up": {"io.bfq.weight": 250}}},
    }
    return Names(**(fields | more))  # type: ignore[arg-type]


def _captured(directory: Path, paths: list[str]) -> Path:
    records = [Rec(1000 * i, i % 2, 4096 * i, 4096, 0, i) for i in range(1, len(paths) + 1)]
    trace = write_trace(directory / "cap.isotrace", records)
    write_names(trace, _names(paths))
    return trace


def test_a_trace_that_no_study_can_name_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "\udcff"
    directory.mkdir()
    with pytest.raises(UserError, match="name is not UTF-8"):
        fromcapture.from_capture(_captured(directory, ["/a"]))


@given(
    st.lists(
        st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=70)
        .filter(lambda part: part not in ("", ".", ".."))
        .map(lambda part: f"/{part}")
        | st.sampled_from(["/", "/up/a.scope", "/up", "/io.weight", "/tasks", "/start", "/-x"]),
        min_size=1,
        max_size=6,
        unique=True,
    )
)
@settings(max_examples=at_most(50))
def test_a_captures_study_can_run_whatever_its_cgroups_are_called(paths: list[str]) -> None:
    with TemporaryDirectory() as directory:
        os.environ["ISOBLK_CACHE"] = directory
        try:
            text, _ = fromcapture.from_capture(_captured(Path(directory), sorted(paths)))
            study = Path(directory) / "s.toml"
            study.write_text(text)
            parsed, _ = load_study(study)
        finally:
            del os.environ["ISOBLK_CACHE"]
    assert [one.trace_stream for one in parsed.tenant] == list(range(1, len(paths) + 1))


def test_weights_are_those_of_the_scheduler_that_was_in_use(tmp_path: Path) -> None:
    text, warnings = fromcapture.from_capture(_captured(tmp_path, ["/a", "/up/b"]))
    assert [line for line in text.splitlines() if line.startswith("weight")] == [
        "weight = 100",
        "weight = 200",
        "weight = 250",
    ]
    assert warnings == []
    held = {"io.weight": 40, "io.bfq.weight": 100, "io.isoblk.weight": 9}
    assert fromcapture.weight_of(held, "kyber-fair") == 9
    assert fromcapture.weight_of(held, "bfq") == 100
    assert fromcapture.weight_of({"io.weight": 40, "io.bfq.weight": 100}, "none") == 40
    assert fromcapture.weight_of({}, "none") == 100


def test_a_trace_that_was_not_captured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a captured trace"):
        fromcapture.from_capture(write_trace(tmp_path / "t.isotrace", [Rec(0)]))


@given(data=st.binary(max_size=60), at=st.integers(0, 800))
@settings(deadline=None)
def test_damaged_names_are_one_line(data: bytes, at: int) -> None:
    with TemporaryDirectory() as directory:
        trace = _captured(Path(directory), ["/a", "/b"])
        held = names_file(trace).read_bytes()
        for damaged in (data, held[:at], held[:at] + data + held[at:]):
            names_file(trace).write_bytes(damaged)
            try:
                read_names(trace)
                fromcapture.from_capture(trace)
            except IsoblkError as error:
                assert "\n" not in str(error)


def test_a_part_of_a_capture_keeps_its_streams_names_and_times(tmp_path: Path) -> None:
    trace = _captured(tmp_path, ["/a", "/b", "/c"])
    part = tmp_path / "part.isotrace"
    cut(trace, part, Part(streams=(2,), keep_times=True))
    keep_names(trace, part, (2,))
    names = read_names(part)
    assert names is not None
    assert [(one.stream, one.cgroup) for one in names.streams] == [(2, "/b")]
    records = np.fromfile(part, RECORD, offset=HEADER_BYTES)
    assert records["t"].tolist() == [2000]
    assert read_header(part).span_ns == 2000
