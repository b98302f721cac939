# SPDX-License-Identifier: GPL-2.0-only
"""The bpf(2) system call, and the instructions that one small program needs.

Maps, programs and links are file descriptors, so none outlives the process. Source:
Documentation/bpf/standardization/instruction-set.rst, include/uapi/linux/bpf.h.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}

_MAP_CREATE, _MAP_LOOKUP, _PROG_LOAD = 0, 1, 5
_GET_INFO, _RAW_TRACEPOINT_OPEN = 15, 17
_TYPE_TRACING, _TRACE_RAW_TP = 26, 23
_ATTRIBUTES = 128  # bytes: covers all calls in this file; the kernel ignores zeroes
_LOG_BYTES = 1 << 16
# BPF_PROG_LOAD: type, instructions, license; log; version, flags, name; 0, kind of attachment, 0,
# type id of the tracepoint.
_LOAD = struct.Struct("<IIQQIIQII16sII36xI")
_INFO_BYTES = 256
_MISSES_AT = 208  # offset of bpf_prog_info.recursion_misses

MAP_ARRAY, MAP_RINGBUF = 2, 27


class BpfError(OSError):
    """A call failed. what: name of the call, for messages."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(number, os.strerror(number))
        self.what = what


class Helper(IntEnum):
    """Kernel functions that a program may call."""

    MAP_LOOKUP = 1
    KTIME_GET_NS = 5
    GET_CURRENT_PID_TGID = 14
    GET_CURRENT_COMM = 16
    RINGBUF_RESERVE = 131
    RINGBUF_SUBMIT = 132


@dataclass(frozen=True)
class Op:
    """An instruction; `wide` is the second half of a 64-bit constant. to: label of a jump."""

    code: int
    dst: int = 0
    src: int = 0
    off: int = 0
    imm: int = 0
    wide: int | None = None
    to: str = ""


@dataclass(frozen=True)
class Label:
    """Target of jumps."""

    name: str


# Instruction classes.
_LDX, _STX, _ST, _JMP, _ALU64 = 0x01, 0x03, 0x02, 0x05, 0x07
_MEM, _ATOMIC = 0x60, 0xC0
_SIZES = {4: 0x00, 8: 0x18}
_REGISTER = 0x08
_MOV, _ADD, _RSH = 0xB0, 0x00, 0x70
_JEQ, _JGE, _JNE, _CALL, _EXIT = 0x10, 0x30, 0x50, 0x80, 0x90
_LD_IMM64 = 0x18
_MAP_FD = 1


def move(dst: int, src: int) -> Op:
    """Copy a register."""
    return Op(_ALU64 | _REGISTER | _MOV, dst, src)


def constant(dst: int, value: int) -> Op:
    """Load a constant of up to 64 bits."""
    return Op(_LD_IMM64, dst, imm=value & 0xFFFFFFFF, wide=value >> 32)


def map_address(dst: int, descriptor: int) -> Op:
    """Load the address of a map."""
    return Op(_LD_IMM64, dst, _MAP_FD, imm=descriptor, wide=0)


def add(dst: int, value: int) -> Op:
    """Add a small constant to a register."""
    return Op(_ALU64 | _ADD, dst, imm=value)


def shift_right(dst: int, bits: int) -> Op:
    """Shift a register right logically."""
    return Op(_ALU64 | _RSH, dst, imm=bits)


def load(dst: int, src: int, off: int, size: int = 8) -> Op:
    """Load from memory."""
    return Op(_LDX | _MEM | _SIZES[size], dst, src, off)


def store(dst: int, off: int, src: int, size: int = 8) -> Op:
    """Store to memory."""
    return Op(_STX | _MEM | _SIZES[size], dst, src, off)


def store_constant(dst: int, off: int, value: int, size: int = 8) -> Op:
    """Store a small constant to memory."""
    return Op(_ST | _MEM | _SIZES[size], dst, 0, off, value)


def atomic_add(dst: int, off: int, src: int) -> Op:
    """Add atomically to 8 bytes of memory."""
    return Op(_STX | _ATOMIC | _SIZES[8], dst, src, off)


def call(helper: Helper) -> Op:
    """Call a function with arguments in r1 to r5, result in r0; clobbers r1 to r5."""
    return Op(_JMP | _CALL, imm=helper)


def jump_equal(dst: int, value: int, to: str) -> Op:
    """Jump if a register equals a small constant."""
    return Op(_JMP | _JEQ, dst, imm=value, to=to)


def jump_unlike(dst: int, value: int, to: str) -> Op:
    """Jump if a register differs from a small constant."""
    return Op(_JMP | _JNE, dst, imm=value, to=to)


def jump_at_least(dst: int, src: int, to: str) -> Op:
    """Jump if a register is at least another one, unsigned."""
    return Op(_JMP | _REGISTER | _JGE, dst, src, to=to)


def leave() -> Op:
    """End the program; r0 is its result."""
    return Op(_JMP | _EXIT)


def assemble(program: Sequence[Op | Label]) -> bytes:
    """Return the program's bytes: 8 per instruction, 16 for a 64-bit constant."""
    places: dict[str, int] = {}
    at = 0
    for one in program:
        if isinstance(one, Label):
            places[one.name] = at
        else:
            at += 1 if one.wide is None else 2
    code = bytearray()
    for one in program:
        if isinstance(one, Label):
            continue
        off = places[one.to] - len(code) // 8 - 1 if one.to else one.off
        imm = one.imm & 0xFFFFFFFF
        code += struct.pack("<BBhI", one.code, one.src << 4 | one.dst, off, imm)
        if one.wide is not None:
            code += struct.pack("<BBhI", 0, 0, 0, one.wide)
    return bytes(code)


def create_map(kind: int, key: int, value: int, entries: int) -> int:
    """Create a map and return its descriptor. key, value: bytes. Raises BpfError."""
    return _bpf(_MAP_CREATE, struct.pack("<IIII", kind, key, value, entries), "make a BPF map")


def read_counter(descriptor: int) -> int:
    """Return the first entry of an array of u64. Raises BpfError."""
    key, value = ctypes.c_uint32(0), ctypes.c_uint64(0)
    attributes = struct.pack("<IIQQ", descriptor, 0, _address(key), _address(value))
    _bpf(_MAP_LOOKUP, attributes, "read a BPF map")
    return value.value


def load_program(code: bytes, arguments: int, name: bytes) -> int:
    """Load a program for a tracepoint and return its descriptor.

    Args:
        code: the program's bytes.
        arguments: id of the type of the tracepoint's arguments.
        name: shown in lists of programs; at most 15 letters, digits and "_".

    Raises:
        BpfError: the kernel refuses it; strerror has the verifier's reasons, if there are any.
    """
    instructions = ctypes.create_string_buffer(code, len(code))
    license_ = ctypes.create_string_buffer(b"GPL")
    log = ctypes.create_string_buffer(_LOG_BYTES)
    head = (_TYPE_TRACING, len(code) // 8, _address(instructions), _address(license_))
    tail = (0, 0, name, 0, _TRACE_RAW_TP, arguments)
    try:
        return _bpf(_PROG_LOAD, _LOAD.pack(*head, 0, 0, 0, *tail), "load a BPF program")
    except BpfError as error:
        if error.errno == errno.EPERM:
            raise
    # Load again with a log, for the reason.
    try:
        return _bpf(
            _PROG_LOAD,
            _LOAD.pack(*head, 1, _LOG_BYTES, _address(log), *tail),
            "load a BPF program",
        )
    except BpfError as error:
        if said := log.value.decode(errors="replace").strip().splitlines():
            error.strerror = f"{error.strerror}: {' '.join(said[-3:-1])}"
        raise


def attach(program: int) -> int:
    """Attach the program until the returned descriptor is closed. Raises BpfError."""
    attributes = struct.pack("<QI", 0, program)
    return _bpf(_RAW_TRACEPOINT_OPEN, attributes, "attach to a tracepoint")


def misses(program: int) -> int:
    """Return the number of events without a run of the program, because it was already running on
    that CPU. Raises BpfError."""
    info = ctypes.create_string_buffer(_INFO_BYTES)
    attributes = struct.pack("<IIQ", program, _INFO_BYTES, _address(info))
    _bpf(_GET_INFO, attributes, "ask about a BPF program")
    (count,) = struct.unpack_from("<Q", info.raw, _MISSES_AT)
    return int(count)


def _address(buffer: ctypes.Array[ctypes.c_char] | ctypes.c_uint32 | ctypes.c_uint64) -> int:
    return ctypes.addressof(buffer)


def _bpf(command: int, attributes: bytes, what: str) -> int:
    number = _SYSCALL.get(os.uname().machine)
    if number is None:
        raise BpfError(errno.ENOSYS, what)
    buffer = ctypes.create_string_buffer(attributes, _ATTRIBUTES)
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(number, command, buffer, _ATTRIBUTES)
    if result < 0:
        raise BpfError(ctypes.get_errno(), what)
    return int(result)
