# SPDX-License-Identifier: GPL-2.0-only
"""Only one process at a time changes what belongs to the whole machine."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isoblk.errors import UserError


@contextmanager
def alone(path: Path, what: str, busy: UserError | None = None) -> Iterator[None]:
    """Be the only one that holds a lock.

    Args:
        path: of its file, which is made, with its directory, if it is not there.
        what: is done meanwhile, for the error.
        busy: raised if somebody has it; None: wait for it.

    Raises:
        UserError: that, or this process may not.
    """
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except PermissionError:
        raise UserError(f"no right to {what}", next="run as root") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            assert busy
            raise busy from None
        yield
    finally:
        os.close(file)
