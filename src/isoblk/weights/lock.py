# SPDX-License-Identifier: GPL-2.0-only
"""A lock that lets one process at a time change settings of the whole machine."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isoblk.errors import UserError


@contextmanager
def alone(path: Path, what: str, busy: UserError | None = None) -> Iterator[None]:
    """Hold a lock exclusively.

    Args:
        path: the lock's file, created with its directory if missing.
        what: the action under the lock, for the error.
        busy: raised if another process holds the lock; None: wait.

    Raises:
        UserError: the lock is held, or this process may not open it.
    """
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except PermissionError:
        raise UserError(f"no permission to {what}", next="run as root") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            assert busy
            raise busy from None
        yield
    finally:
        os.close(file)
