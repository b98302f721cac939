# SPDX-License-Identifier: GPL-2.0-only
"""The library that is preloaded into User Mode Linux, on hosts with registers of any size: the host
takes its whole XSAVE area or nothing, whatever the guest's kernel knows of it."""

import ctypes
import errno
import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.paths import kernel_tree

_KERNEL = Path(__file__).parent / "host_library" / "kernel.c"
_PEEKUSER, _SETREGS, _GETREGSET, _SETREGSET = 3, 13, 0x4204, 0x4205
_XSTATE, _PRSTATUS = 0x202, 1
_PID = 4321
# The size of the area that UML 6.12 keeps.
_UML = 2696
# With AVX, with AVX-512, with protection keys, with AMX, and what may come.
_AREAS = (832, 2440, 2696, 2704, 11_008, 16_384, 65_536)


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("len", ctypes.c_size_t))


class _Host:
    """The library on a host of its own: nothing has been asked of it yet."""

    def __init__(self, path: Path, area: int) -> None:
        self.lib = ctypes.CDLL(str(path), use_errno=True)
        self.lib.ptrace.restype = ctypes.c_long
        ctypes.c_size_t.in_dll(self.lib, "host_area").value = area

    def count(self, name: str) -> int:
        return ctypes.c_int.in_dll(self.lib, f"host_{name}").value

    def refuse(self, error: int) -> None:
        ctypes.c_int.in_dll(self.lib, "host_refuses").value = error

    def ptrace(self, request: int, address: int, data: object) -> int:
        result: int = self.lib.ptrace(
            ctypes.c_int(request), ctypes.c_int(_PID), ctypes.c_void_p(address), data
        )
        return result

    def set_registers(self, registers: bytes, *, type_: int = _XSTATE) -> int:
        buffer = ctypes.create_string_buffer(registers, len(registers))
        given_ = _Iovec(ctypes.cast(buffer, ctypes.c_void_p), len(registers))
        result = self.ptrace(_SETREGSET, type_, ctypes.byref(given_))
        assert buffer.raw == registers
        return result

    @property
    def took(self) -> bytes:
        bytes_ = ctypes.c_size_t.in_dll(self.lib, "host_took_bytes").value
        return bytes((ctypes.c_ubyte * bytes_).in_dll(self.lib, "host_took"))


@pytest.fixture(scope="module")
def built() -> Iterator[Path]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "library.so"
        sources = [kernel_tree() / "uml" / "host.c", _KERNEL]
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,--wrap=syscall"]
        subprocess.run(["gcc", *flags, "-o", path, *sources], check=True)
        yield path


_number = count()


def _host(built: Path, area: int) -> _Host:
    # Loaded under another name its variables are new.
    return _Host(Path(shutil.copy(built, built.with_name(f"{next(_number)}.so"))), area)


def _registers(length: int) -> bytes:
    return bytes(i % 251 + 1 for i in range(length))


@pytest.mark.parametrize("area", _AREAS)
def test_the_host_gets_its_whole_area_with_zeros_after_the_known_part(
    built: Path, area: int
) -> None:
    host = _host(built, area)
    registers = _registers(_UML)
    assert host.set_registers(registers) == 0
    assert host.took == registers[:area] + bytes(max(0, area - _UML))


def test_the_host_is_asked_once_for_its_size(built: Path) -> None:
    host = _host(built, 11_008)
    for value in range(1, 4):
        assert host.set_registers(bytes([value]) * _UML) == 0
        assert host.took == bytes([value]) * _UML + bytes(11_008 - _UML)
    assert (host.count("gets"), host.count("sets")) == (1, 3)


@given(st.integers(72, 8192), st.lists(st.integers(72, 8192), min_size=1, max_size=4))
def test_no_call_sees_registers_of_an_earlier_call(
    built: Path, area: int, lengths: list[int]
) -> None:
    host = _host(built, area * 8)
    for length in lengths:
        registers = _registers(length * 8)
        assert host.set_registers(registers) == 0
        assert host.took == registers[: area * 8] + bytes(max(0, area - length) * 8)


def test_a_kernel_that_knows_the_whole_area_is_left_alone(built: Path) -> None:
    host = _host(built, 11_008)
    assert host.set_registers(_registers(11_008)) == 0
    assert host.took == _registers(11_008)


def test_a_size_that_the_host_takes_for_wrong_stays_wrong(built: Path) -> None:
    host = _host(built, 832)
    assert host.set_registers(_registers(2695)) == -1
    assert ctypes.get_errno() == errno.EINVAL


def test_an_area_beyond_all_bounds_is_refused_as_ever(built: Path) -> None:
    host = _host(built, 1 << 17)
    assert host.set_registers(_registers(_UML)) == -1
    assert ctypes.get_errno() == errno.EFAULT


def test_a_process_that_is_gone_is_told_and_its_size_not_remembered(built: Path) -> None:
    host = _host(built, 11_008)
    host.refuse(errno.ESRCH)
    assert host.set_registers(_registers(_UML)) == -1
    assert ctypes.get_errno() == errno.ESRCH
    host.refuse(0)
    assert host.set_registers(_registers(_UML)) == 0
    assert len(host.took) == 11_008


def test_reading_the_area_is_the_hosts_own_call(built: Path) -> None:
    host = _host(built, 11_008)
    buffer = ctypes.create_string_buffer(_UML)
    wanted = _Iovec(ctypes.cast(buffer, ctypes.c_void_p), _UML)
    assert host.ptrace(_GETREGSET, _XSTATE, ctypes.byref(wanted)) == 0
    assert (wanted.len, buffer.raw) == (_UML, b"\xaa" * _UML)


def test_other_requests_and_their_arguments_reach_the_host(built: Path) -> None:
    host = _host(built, 832)
    saw = (ctypes.c_long * 4).in_dll(host.lib, "host_saw")
    assert host.ptrace(_SETREGS, 5, ctypes.c_void_p(6)) == 0
    assert list(saw) == [_SETREGS, _PID, 5, 6]
    # Another set of registers, and no buffer at all.
    assert host.ptrace(_SETREGSET, _PRSTATUS, ctypes.c_void_p(6)) == 0
    assert list(saw) == [_SETREGSET, _PID, _PRSTATUS, 6]
    assert host.ptrace(_SETREGSET, _XSTATE, None) == 0
    assert list(saw) == [_SETREGSET, _PID, _XSTATE, 0]


def test_a_word_that_is_minus_one_is_no_error(built: Path) -> None:
    host = _host(built, 832)
    ctypes.set_errno(errno.EIO)
    assert host.ptrace(_PEEKUSER, 8, None) == -1
    assert ctypes.get_errno() == 0
    host.refuse(errno.EIO)
    assert host.ptrace(_PEEKUSER, 8, None) == -1
    assert ctypes.get_errno() == errno.EIO


def test_random_numbers_are_the_hosts_or_the_seeds(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def random() -> bytes:
        host = _host(built, 832)
        buffer = ctypes.create_string_buffer(20)
        assert host.lib.getrandom(buffer, ctypes.c_size_t(20), 0) == 20
        return buffer.raw

    monkeypatch.delenv("ISOBLK_SEED", raising=False)
    assert random() == b"\x55" * 20
    monkeypatch.setenv("ISOBLK_SEED", "1")
    first = random()
    assert random() == first
    monkeypatch.setenv("ISOBLK_SEED", "2")
    assert len({first, random(), b"\x55" * 20}) == 3
