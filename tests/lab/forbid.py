# SPDX-License-Identifier: GPL-2.0-only
"""forbid.py SYSCALL ANSWER COMMAND...: run a command for which a system call (its number) fails
with an error (its number) or, if the answer is `kill`, is the end. As a container's filter does."""

import ctypes
import os
import struct
import sys

_SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def main() -> None:
    """Forbid it, and become the command."""
    call, answer, *command = sys.argv[1:]
    refusal = _KILL if answer == "kill" else _ERRNO | int(answer)
    lines = (
        (_LOAD, 0, 0, 0),
        (_JUMP_EQUAL, 0, 1, int(call)),
        (_RETURN, 0, 0, refusal),
        (_RETURN, 0, 0, _ALLOW),
    )
    text = b"".join(struct.pack("<HBBI", *line) for line in lines)
    program = _Program(len(lines), text)
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) or libc.prctl(
        _SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(program), zero, zero
    ):
        raise OSError(ctypes.get_errno(), "no filter")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
