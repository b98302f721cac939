# SPDX-License-Identifier: GPL-2.0-only
"""Run dmsetup, and find the kernel's reason for a failure."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from isoblk.caches.setcache import TARGET
from isoblk.errors import RunError, UserError
from isoblk.kernel.tools import install_command
from isoblk.machine.process import PATH

_LOG = "/dev/kmsg"
_LOG_LINE = 8192
# A reason of the target, with an error number; or of device-mapper, with its name. Excludes the
# later message that a start failed.
_REASON = re.compile(
    rf"device-mapper: .*?{TARGET}: (?:\d+:\d+: )?(?!preresume failed)(.+?)(?:: -\d+| \(-\w+\))?$"
)


class Mapper(Protocol):
    """Runs dmsetup."""

    def __call__(self, *words: str, table: str = "") -> str:
        """Run dmsetup and return its output.

        Args:
            words: its arguments, which every user of this machine can read while it runs.
            table: its standard input, which may have keys.

        Raises:
            UserError: dmsetup is missing, or may not be run.
            RunError: it failed.
        """


def dmsetup(*words: str, table: str = "") -> str:
    """Run dmsetup; a Mapper."""
    with _kernel_log() as log:
        try:
            ended = subprocess.run(
                ["dmsetup", *words],
                input=table,
                capture_output=True,
                text=True,
                check=False,
                # Variables such as DM_DISABLE_UDEV are kept: the user sets them.
                env={**os.environ, "PATH": PATH, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise UserError("dmsetup is missing", next=install_command(["dmsetup"])) from None
        if not ended.returncode:
            return ended.stdout
        reason = next(filter(None, map(reason_of, reversed(list(log)))), "")
    if "ermission denied" in ended.stderr:
        raise UserError("no permission to use device-mapper", next="run as root")
    if "kernel device-mapper driver" in ended.stderr:
        raise UserError("the kernel has no device-mapper", next="run: modprobe dm-mod")
    said = " ".join(ended.stderr.split("\n")[0].split()) or f"status {ended.returncode}"
    raise RunError(
        reason or said,
        where=f"dmsetup {words[0]}",
        next="" if reason else "see dmesg for the reason",
    )


@contextmanager
def _kernel_log() -> Iterator[Iterator[str]]:
    """Yield an iterator over the kernel's log from now on; None without permission."""
    try:
        file = os.open(_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield iter(())
        return
    try:
        os.lseek(file, 0, os.SEEK_END)
        yield _lines(file)
    finally:
        os.close(file)


def _lines(log: int) -> Iterator[str]:
    # A read returns one entry, and fails at the end.
    with suppress(OSError):
        while True:
            yield os.read(log, _LOG_LINE).decode(errors="replace").split("\n")[0]


def reason_of(line: str) -> str:
    """Return the target's message in a line of the kernel's log; "" for other lines.

    >>> reason_of("3,42,1,-;device-mapper: setcache: 254:0: the SSD holds another cache: -22") 'the
    SSD holds another cache'
    """
    found = _REASON.search(line)
    return found[1] if found else ""
