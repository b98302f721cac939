# SPDX-License-Identifier: GPL-2.0-only
"""Whole files or none."""

import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Make `path` hold `data`, or leave it as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
