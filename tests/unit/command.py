# SPDX-License-Identifier: GPL-2.0-only
"""Run the isoblk command inside the test's process, which has its modules loaded already."""

from pathlib import Path

import pytest

from isoblk.cli import main as cli


def isoblk(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> int:
    """Run the command; its exit status."""
    monkeypatch.setattr("sys.argv", ["isoblk", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)
