# SPDX-License-Identifier: GPL-2.0-only
"""What a cache may be read to hold, and device-mapper without its tools.

For programs that run in the guest, with the standard library alone. Every sector that is written
carries its number and that of its write. So a reader knows what it has got, and the model what it
may have got.
"""

import fcntl
import mmap
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Final

SECTOR: Final = 512
MODES: Final = ("writeback", "writethrough", "writearound", "readonly", "writeonly")
POLICIES: Final = ("fifo", "lru", "random")
_BLKDISCARD: Final = 0x1277

# What a discard leaves: anything that was ever there.
ANYTHING: Final = -1

# At most so much is read or written at a time.
MOST: Final = 256  # sectors

_HEAD: Final = struct.Struct("<QQ")
_TIMES: Final = SECTOR // _HEAD.size
_ZERO: Final = bytes(SECTOR)


def numbers(data: bytes, sector: int) -> list[int]:
    """Of each sector, the write that it is of, 0 if of none."""
    found = []
    for at in range(0, len(data), SECTOR):
        piece = data[at : at + SECTOR]
        place, number = _HEAD.unpack_from(piece)
        if piece != _ZERO:
            assert place == sector + at // SECTOR, f"sector {sector + at // SECTOR}: of {place}"
            assert piece == piece[: _HEAD.size] * _TIMES, f"half of sector {place}"
        found.append(number)
    return found


class Direct:
    """A block device, without the page cache. Places and lengths are in sectors."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        # Aligned, and touched once: in the guest a new page is dear.
        self._buffer = memoryview(mmap.mmap(-1, MOST * SECTOR))

    def close(self) -> None:
        os.close(self._fd)

    def read(self, sector: int, count: int) -> bytes:
        room = self._buffer[: count * SECTOR]
        assert os.preadv(self._fd, [room], sector * SECTOR) == len(room)
        return bytes(room)

    def put(self, sector: int, data: bytes, *, fua: bool = False) -> None:
        room = self._buffer[: len(data)]
        room[:] = data
        flags = os.RWF_DSYNC if fua else 0
        assert os.pwritev(self._fd, [room], sector * SECTOR, flags) == len(room)

    def write(self, sector: int, count: int, number: int, *, fua: bool = False) -> None:
        """Sectors that say that they are of the write `number`."""
        data = (_HEAD.pack(s, number) * _TIMES for s in range(sector, sector + count))
        self.put(sector, b"".join(data), fua=fua)

    def flush(self) -> None:
        os.fsync(self._fd)

    def discard(self, sector: int, count: int) -> None:
        fcntl.ioctl(self._fd, _BLKDISCARD, struct.pack("QQ", sector * SECTOR, count * SECTOR))


def everything(path: str, sectors: int) -> list[int]:
    """Of each sector of a device, the write that it is of."""
    device = Direct(path)
    try:
        found = []
        for at in range(0, sectors, MOST):
            found += numbers(device.read(at, min(MOST, sectors - at)), at)
        return found
    finally:
        device.close()


class Content:
    """What sectors may hold: the numbers of their writes, oldest first.

    A read may find the last write that was acknowledged, or one that failed since. After a crash it
    may also find any since the last one that was flushed.
    """

    def __init__(self, sectors: Iterable[int]) -> None:
        self.written: dict[int, list[int]] = {s: [0] for s in sectors}
        # Places in these lists: of the last one acknowledged, and the last one flushed.
        self.acknowledged = dict.fromkeys(self.written, 0)
        self.stable = dict.fromkeys(self.written, 0)
        self.unflushed: set[int] = set()

    def begin(self, sectors: Iterable[int], number: int) -> None:
        """From now on a read may find this write."""
        for s in sectors:
            self.written[s].append(number)

    def end(self, sectors: Iterable[int], *, stable: bool = False) -> None:
        """The write that has begun last there has ended well."""
        for s in sectors:
            self.acknowledged[s] = len(self.written[s]) - 1
        self.unflushed.update(sectors)
        if stable:
            self.flushed(sectors)

    def flushed(self, sectors: Iterable[int] | None = None) -> None:
        """What was acknowledged there, or everywhere, is stable."""
        sectors = list(self.unflushed if sectors is None else sectors)
        for s in sectors:
            self.stable[s] = self.acknowledged[s]
        self.unflushed.difference_update(sectors)

    def crash(self) -> None:
        """What was not flushed may be lost."""
        self.acknowledged.update(self.stable)
        self.unflushed.clear()

    def check(self, found: Sequence[int], first: int = 0) -> None:
        """Sectors from the first on were found to be of these writes."""
        for s, number in enumerate(found, first):
            may = self.written[s][self.acknowledged[s] :]
            assert number in may or ANYTHING in may, (
                f"sector {s} reads {number}, of {self.written[s]} only {may} may be"
            )

    def settle(self, found: Sequence[int], *, stable: bool) -> None:
        """Each sector was read. That is what it holds, and if stable, what another crash leaves."""
        for s, number in enumerate(found):
            self.written[s] = [*self.written[s][self.stable[s] :], number]
            self.stable[s] = 0
            self.acknowledged[s] = len(self.written[s]) - 1
        self.unflushed.update(self.written)
        if stable:
            self.flushed()


_IOCTL: Final = struct.Struct("=3I4I3IQ128s129s7x")
_SPEC: Final = struct.Struct("=QQiI16s")
_ROOM: Final = 16384
_CREATE, _REMOVE, _SUSPEND, _LOAD, _STATUS, _MESSAGE = 3, 4, 6, 9, 12, 14
_SUSPENDED: Final = 1 << 1


class Mapped:
    """A device of device-mapper; every call raises OSError if the kernel says so."""

    _control: int | None = None

    def __init__(self, name: str, table: str | None = None) -> None:
        self.name = name
        device = self._call(_CREATE, uuid=f"lab-{name}")[1]
        self.path = f"/dev/dm-{os.minor(device)}"
        if table is not None:
            try:
                self.load(table)
                self.resume()
            except OSError:
                self.remove()
                raise

    def _call(
        self, command: int, data: bytes = b"", flags: int = 0, uuid: str = ""
    ) -> tuple[bytes, int]:
        if Mapped._control is None:
            Mapped._control = os.open("/dev/mapper/control", os.O_RDWR)
        count = 1 if command == _LOAD else 0
        head = _IOCTL.pack(
            4, 0, 0, _ROOM, _IOCTL.size, count, 0, flags, 0, 0, 0, self.name.encode(), uuid.encode()
        )  # fmt: skip
        room = bytearray((head + data).ljust(_ROOM, b"\0"))
        number = 3 << 30 | _IOCTL.size << 16 | 0xFD << 8 | command
        fcntl.ioctl(Mapped._control, number, room)
        fields = _IOCTL.unpack_from(room)
        return bytes(room[fields[4] : fields[3]]), fields[10]

    def load(self, table: str) -> None:
        """A table of one line, to be used after the next resume."""
        start, length, kind, line = table.split(" ", 3)
        text = line.encode() + b"\0"
        size = (_SPEC.size + len(text) + 7) // 8 * 8
        self._call(_LOAD, _SPEC.pack(int(start), int(length), 0, size, kind.encode()) + text)

    def suspend(self) -> None:
        self._call(_SUSPEND, flags=_SUSPENDED)

    def resume(self) -> None:
        self._call(_SUSPEND)

    def remove(self) -> None:
        self._call(_REMOVE)

    def message(self, text: str) -> None:
        self._call(_MESSAGE, struct.pack("=Q", 0) + text.encode() + b"\0")

    def status(self) -> dict[str, str]:
        """Names and values, if that is how the target says it."""
        data = self._call(_STATUS)[0]
        words = data[_SPEC.size :].split(b"\0", 1)[0].decode().split()
        return dict(zip(words[::2], words[1::2], strict=False))
