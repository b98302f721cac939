# SPDX-License-Identifier: GPL-2.0-only
"""Read a trace file's bytes, decompressed.

gzip, xz and zstd are detected by their first bytes. One block is read ahead in a thread:
decompression releases the interpreter lock, so it runs in parallel with parsing.
"""

import gzip
import lzma
import stat
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol, cast

from isoblk.errors import UserError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BLOCK = 16 << 20  # bytes per block; a parsed trace takes about four times that
HEAD = 64 << 10  # bytes for the detection of the format

_TAR_MAGIC_AT = 257
_XZ = b"\xfd7zXZ\0"
_XZ_READ = 64 << 10
_XZ_MEMORY = 256 << 20  # xz -9 needs 65 MiB


class _Bytes(Protocol):
    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; b"" at the end."""


def refuse_empty(path: Path) -> None:
    """Check that a regular file has a size. Files of procfs have none; some of them, such as
    /proc/kmsg, have no end either, and reading consumes their data.

    Raises:
        UserError: the size is 0.
        OSError: the file cannot be inspected.
    """
    found = path.stat()
    if stat.S_ISREG(found.st_mode) and not found.st_size:
        raise UserError("is empty", where=str(path))


@contextmanager
def open_trace(path: Path) -> Iterator[tuple[bytes, Iterator[bytes]]]:
    """Yield the first bytes of a trace, at most HEAD, and all bytes in blocks.

    Raises:
        UserError: the file cannot be read, is empty, an archive, or has damaged compression; the
            iterator raises it too.
    """
    with (
        _explained(path),
        path.open("rb") as raw,
        ThreadPoolExecutor(1) as reader,
    ):
        refuse_empty(path)
        file = _decompressed(raw)
        first = _read(file, BLOCK)
        if not first:
            raise UserError("is empty", where=str(path))
        if first.startswith(b"ustar", _TAR_MAGIC_AT):
            raise UserError("is a tar archive", where=str(path), next="unpack it: tar -xf FILE")

        def blocks() -> Iterator[bytes]:
            block = first
            while block:
                ahead = reader.submit(_read, file, BLOCK)
                yield block
                with _explained(path):
                    block = ahead.result()

        yield first[:HEAD], blocks()


def _decompressed(raw: IO[bytes]) -> _Bytes:
    magic = raw.read(6)
    raw.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.open(raw))
    if magic.startswith(_XZ):
        return _Xz(raw)
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        return cast(IO[bytes], zstd.open(raw))
    return raw


class _Xz:
    """As lzma.open(), in bounded memory: a file can demand a dictionary of 4 GiB."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._stream = _xz_stream()

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; b"" at the end. Raises lzma.LZMAError, EOFError."""
        while True:
            if self._stream.eof:
                # Further streams may follow, with zeros between them; all else is not data.
                rest = self._stream.unused_data.lstrip(b"\0")
                while len(rest) < len(_XZ) and (more := self._raw.read(_XZ_READ)):
                    rest = (rest + more).lstrip(b"\0")
                if not rest.startswith(_XZ):
                    return b""
                self._stream = _xz_stream()
                found = self._stream.decompress(rest, size)
            else:
                more = self._raw.read(_XZ_READ) if self._stream.needs_input else b""
                if self._stream.needs_input and not more:
                    raise EOFError(
                        "Compressed file ended before the end-of-stream marker was reached"
                    )
                found = self._stream.decompress(more, size)
            if found:
                return found


def _xz_stream() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)


def _read(file: _Bytes, size: int) -> bytes:
    """Return `size` bytes, fewer only at the end: a decompressor may return less than requested."""
    parts = []
    while size and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError, gzip.BadGzipFile) as error:
        text = str(error)
        raise UserError(
            f"damaged compression: {text[:1].lower()}{text[1:]}", where=str(path)
        ) from None
    except OSError as error:
        raise UserError(f"cannot read: {error.strerror or error}", where=str(path)) from None
