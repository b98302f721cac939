# SPDX-License-Identifier: GPL-2.0-only
"""Writers of every trace format, for tests: the inverse of the importers, and nothing of them.

A request is a tuple (ns, offset, bytes, op, volume); a writer keeps what its format can hold.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isoblk.trace.compact import read_blocks
from isoblk.trace.record import FLUSH, READ, TRIM, WRITE

Request = tuple[int, int, int, int, int]
RW = (READ, WRITE)


@dataclass(frozen=True)
class Kind:
    """write: a file of the requests. tick: ns to which times are exact. ops, volumes: what the
    format can tell. ranked: volumes have numbers that are too large for streams."""

    write: Callable[[Sequence[Request]], bytes]
    tick: int
    ops: tuple[int, ...] = RW
    volumes: bool = True
    ranked: bool = False


def _lines(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def spc(requests: Sequence[Request]) -> bytes:
    return _lines([f"{v},{o // 512},{s},{'RW'[op]},{t / 1e9:.6f}" for t, o, s, op, v in requests])


def msr(requests: Sequence[Request]) -> bytes:
    filetime = 128_166_372_003_061_629
    return _lines(
        [
            f"{filetime + t // 100},hm,{v},{('Read', 'Write')[op]},{o},{s},{100 + s}"
            for t, o, s, op, v in requests
        ]
    )


ETW_HEADER = [
    "BeginHeader",
    "               DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,"
    "   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,"
    "         FileObject, FileName",
    "              DiskFlush,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,"
    "                           ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri",
    "EndHeader",
]


def etw(requests: Sequence[Request]) -> bytes:
    lines = list(ETW_HEADER)
    for i, (t, o, s, op, v) in enumerate(requests):
        elapsed = 40 + i % 7
        end = t // 1000 + elapsed
        start = f"{end:11},   store.exe (3456),       1234, 0xfffffa8007"
        lines.append(f"   FileIoRead,  {end},  store.exe (3456), 77, 1, 0xfff, 0x0")
        if op == FLUSH:
            lines.append(f"              DiskFlush,{start}, {elapsed}, {v}, 0x060034, 9, 3")
        else:
            lines.append(
                f"              {('DiskRead', 'DiskWrite')[op]},{start}, 0x{o:010x}, 0x{s:08x},"
                f' {elapsed:11}, {v:8}, 0x060034, 9, 3, {v}, 0xfff, "C:\\a, b.edb"'
            )
    return _lines(lines)


def systor(requests: Sequence[Request]) -> bytes:
    epoch = 1_456_135_200
    return _lines(
        [
            "Timestamp,Response,IOType,LUN,Offset,Size",
            *(
                f"{epoch + t // 10**9}.{t % 10**9:09},0.000806,{'RW'[op]},{v},{o},{s}"
                for t, o, s, op, v in requests
            ),
        ]
    )


def disksim(requests: Sequence[Request]) -> bytes:
    return _lines(
        [f"{t / 1e6:.6f} {v} {o // 512} {s // 512} {1 - op}" for t, o, s, op, v in requests]
    )


def mqsim(requests: Sequence[Request]) -> bytes:
    return _lines([f"{t} {v} {o // 512} {s // 512} {1 - op}" for t, o, s, op, v in requests])


def alibaba(requests: Sequence[Request]) -> bytes:
    epoch = 1_577_808_000_000_046
    return _lines([f"{v},{'RW'[op]},{o},{s},{epoch + t // 1000}" for t, o, s, op, v in requests])


def tencent(requests: Sequence[Request]) -> bytes:
    return _lines(
        [
            f"{1_538_323_199 + t // 10**9},{o // 512},{s // 512},{op},{v}"
            for t, o, s, op, v in requests
        ]
    )


def blkparse(requests: Sequence[Request]) -> bytes:
    lines = []
    for i, (t, o, s, op, v) in enumerate(requests):
        rwbs = {READ: "RA", WRITE: "WS", TRIM: "DS", FLUSH: "FWS"}[op]
        head = f"  8,{v:<4} 1 {2 * i + 1:8} {t // 10**9:5}.{t % 10**9:09}  697"
        where = "" if op == FLUSH else f" {o // 512} + {s // 512}"
        lines.append(f"{head}  Q {rwbs:>3}{where} [kworker/0:1]")
        lines.append(f"{head}  C {rwbs:>3}{where} [0]")
        lines.append(f"{head}  m   N cfq197A sl_used=1")
    return _lines(
        [*lines, "CPU0 (sda):", " Reads Queued:           1,        4KiB", "Total (sda):"]
    )


def blktrace(requests: Sequence[Request], order: str = "<", pdu: bytes = b"") -> bytes:
    parts = []
    bits = {READ: 1, WRITE: 2, TRIM: 2 | 1 << 13, FLUSH: 2 | 4}
    for i, (t, o, s, op, v) in enumerate(requests):
        for action in (1 | (bits[op] | 16) << 16, 8 | bits[op] << 16, 1 << 26):
            extra = pdu if i % 3 else b""
            parts.append(
                struct.pack(
                    order + "IIQQIIIIIHH",
                    *(0x65617407, i, t, o // 512, s, action, 697, 8 << 20 | v, 1, 0, len(extra)),
                )
                + extra
            )
    return b"".join(parts)


_WORDS = {READ: "read", WRITE: "write", TRIM: "trim", FLUSH: "sync"}
_OWN_WORDS = {**_WORDS, FLUSH: "flush"}


def iolog2(requests: Sequence[Request]) -> bytes:
    lines, now = ["fio version 2 iolog", "/dev/sd0 add", "/dev/sd0 open"], 0
    for t, o, s, op, v in requests:
        if t // 1000 > now:
            lines.append(f"/dev/sd0 wait {t // 1000 - now} 0")
            now = t // 1000
        lines.append(f"/dev/sd{v} {_WORDS[op]} {o} {s}")
    return _lines([*lines, "/dev/sd0 close"])


def iolog3(requests: Sequence[Request]) -> bytes:
    return _lines(
        [
            "fio version 3 iolog",
            "15 /dev/sd0 add",
            *(f"{t // 1000} /dev/sd{v} {_WORDS[op]} {o} {s}" for t, o, s, op, v in requests),
        ]
    )


def trace_replay(requests: Sequence[Request]) -> bytes:
    return _lines([f"/dev/sd{v} {_WORDS[op]} {o} {s}" for _, o, s, op, v in requests])


def own_csv(requests: Sequence[Request]) -> bytes:
    lines = [f"{t},{_OWN_WORDS[op]},{o},{s},{v}," for t, o, s, op, v in requests]
    return _lines(["time_ns,op,offset,size,stream,flags", *lines])


def vscsi1(requests: Sequence[Request]) -> bytes:
    codes = {READ: 0x28, WRITE: 0x8A, FLUSH: 0x35}
    return b"".join(
        struct.pack("<IIIHHQQ", i, s, 1, codes[op], 1 << 8, o // 512, t // 1000)
        for i, (t, o, s, op, _) in enumerate(requests)
    )


def vscsi2(requests: Sequence[Request]) -> bytes:
    codes = {READ: 0x88, WRITE: 0x2A, FLUSH: 0x91}
    return b"".join(
        struct.pack("<HHIIIQQQ", codes[op], 2 << 8, i, s, 1, o // 512, t // 1000, 5)
        for i, (t, o, s, op, _) in enumerate(requests)
    )


def oracle(requests: Sequence[Request]) -> bytes:
    return b"".join(struct.pack("<IQIq", t // 10**9, o // 512, s, -1) for t, o, s, _, _ in requests)


ALL = (READ, WRITE, TRIM, FLUSH)
KINDS = {
    "spc": Kind(spc, 1000),
    "msr": Kind(msr, 100),
    "etw": Kind(etw, 1000, ops=(READ, WRITE, FLUSH)),
    "systor": Kind(systor, 1),
    "disksim": Kind(disksim, 1),
    "mqsim": Kind(mqsim, 1),
    "blkparse": Kind(blkparse, 1, ops=ALL, ranked=True),
    "blktrace": Kind(blktrace, 1, ops=ALL, ranked=True),
    "iolog": Kind(iolog3, 1000, ops=ALL),
    "iolog 2": Kind(iolog2, 1000, ops=ALL),
    "trace-replay": Kind(trace_replay, 10**18),
    "csv": Kind(own_csv, 1, ops=ALL, volumes=False),
    "alibaba": Kind(alibaba, 1000),
    "tencent": Kind(tencent, 10**9),
    "vscsi": Kind(vscsi2, 1000, ops=(READ, WRITE, FLUSH), volumes=False),
    "vscsi 1": Kind(vscsi1, 1000, ops=(READ, WRITE, FLUSH), volumes=False),
    "oracle": Kind(oracle, 10**9, ops=(READ,), volumes=False),
}
KIND_NAMES = list(KINDS)


def requests(
    kind: Kind, count: int, seed: int = 1, sorted_: bool = True, gap: int = 700_000_000
) -> list[Request]:
    """Random requests that the format can hold, whose times begin at 0; volume 0 comes first,
    as fio's logs number files as they appear."""
    random = np.random.default_rng(seed)
    times = np.cumsum(random.integers(0, gap, count)) // kind.tick * kind.tick
    times -= times[0]
    if not sorted_:
        times = random.permutation(times)
    made: list[Request] = []
    for i, t in enumerate(times.tolist()):
        op = kind.ops[i % len(kind.ops)]
        offset = int(random.integers(0, 1 << 32)) * 512
        size = int(random.integers(1, 256)) * 512
        volume = i % 3 if kind.volumes else 0
        made.append((t, *((0, 0) if op == FLUSH else (offset, size)), op, volume))
    return made


def expected(made: Sequence[Request], ranked: bool = False) -> list[Request]:
    """The requests as a compact trace holds them: by time, volumes after each other."""
    bases: dict[int, int] = {}
    base = 0
    for volume in sorted({request[4] for request in made}):
        bases[volume] = base
        size = max(o + s for _, o, s, _, v in made if v == volume)
        base = -(-(base + size) // 2**20) * 2**20
    begin = min(request[0] for request in made)
    return [
        (t - begin, o + bases[v] * (op != FLUSH), s, op, v + ranked)
        for t, o, s, op, v in sorted(made, key=lambda r: r[0])
    ]


def held(path: Path) -> list[Request]:
    """The requests of a compact trace."""
    return [
        (t, offset, size, op, stream)
        for block in read_blocks(path)
        for t, offset, size, op, _, stream in block.tolist()
    ]
