# SPDX-License-Identifier: GPL-2.0-only
"""Sources of events: a BPF program at the kernel's tracepoint. It ends with this process, and
changes nothing on the machine."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from isoblk.capture import bpf, events
from isoblk.capture.btf import BtfError, read_types
from isoblk.capture.convert import Decode, decoder
from isoblk.capture.ring import Ring
from isoblk.capture.target import Target
from isoblk.errors import UserError
from isoblk.trace.record import Records

PROGRAM = b"isoblk_capture"
TYPES = Path("/sys/kernel/btf/vmlinux")


class UnavailableError(Exception):
    """This kernel does not support the method; the text is the reason."""


class Source(Protocol):
    """Events of a device, from its creation on. name: for messages."""

    name: str

    @property
    def decode(self) -> Decode:
        """Return the decoder of operations and flags."""

    def take(self) -> Iterator[Records]:
        """Yield pending records of EVENT; a block is valid until the next is requested."""

    def stop(self) -> None:
        """Stop recording; earlier events can still be read."""

    def lost(self) -> int:
        """Return the number of events that were not recorded."""


class BpfSource:
    """Events from the BPF program, through the ring buffer."""

    name = "bpf"

    def __init__(self, ring: Ring, lost: int, program: int, link: int, decode: Decode) -> None:
        self._ring = ring
        self._lost = lost
        self._program = program
        self._link = link
        self.decode = decode

    def take(self) -> Iterator[Records]:
        """See Source."""
        return self._ring.take()

    def stop(self) -> None:
        """See Source."""
        if self._link >= 0:
            os.close(self._link)
            self._link = -1

    def lost(self) -> int:
        """Return the number of events for which the ring had no room, or the program could not
        run."""
        return bpf.read_counter(self._lost) + bpf.misses(self._program)


@contextmanager
def bpf_source(target: Target, buffer: int) -> Iterator[BpfSource]:
    """Capture by BPF.

    Args:
        target: the device.
        buffer: bytes for pending events, a power of two.

    Raises:
        UnavailableError: the kernel has no BPF, no type information, or is too old or too new.
        UserError: a right is missing.
    """
    with ExitStack() as stack:
        try:
            types = read_types(TYPES.read_bytes(), events.STRUCTS, events.ENUMS, events.TYPEDEFS)
            decode = decoder(types)
            maps = []
            for kind, key, value, entries in (
                (bpf.MAP_RINGBUF, 0, 0, buffer),
                (bpf.MAP_ARRAY, 4, 8, 1),
            ):
                maps.append(bpf.create_map(kind, key, value, entries))
                stack.callback(os.close, maps[-1])
            program = bpf.load_program(
                events.program(types, target.range, *maps),
                types.typedef(events.TYPEDEFS[0]),
                PROGRAM,
            )
            stack.callback(os.close, program)
            ring = Ring(maps[0], buffer)
            source = BpfSource(ring, maps[1], program, bpf.attach(program), decode)
        except BtfError as error:
            raise UnavailableError(str(error)) from None
        except OSError as error:
            raise _explained(error) from None
        stack.callback(source.stop)
        yield source


def _explained(error: OSError) -> Exception:
    what = error.what if isinstance(error, bpf.BpfError) else f"read {error.filename}"
    if error.errno in (errno.EPERM, errno.EACCES) and isinstance(error, bpf.BpfError):
        return UserError(
            f"no permission to {what}, which needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN",
            next="run as root; in a container with --privileged",
        )
    if error.errno == errno.ENOMEM:
        return UserError(f"cannot {what}: {error.strerror}", next="choose a smaller --buffer")
    return UnavailableError(f"cannot {what}: {error.strerror}")
