# SPDX-License-Identifier: GPL-2.0-only
"""What the shell completes arguments to. It is called at each Tab, so it loads little."""

import json
from pathlib import Path
from typing import Any

_MOST = 200  # entries of a directory that are looked at


def result_directories(incomplete: str) -> list[str]:
    """Directories that hold results, and those on the way to one."""
    return [
        f"{path}/" if not (path / "study.json").is_file() else str(path)
        for path in _below(incomplete)
        if path.is_dir() and path.name not in ("runs", "figures")
    ]


def studies(incomplete: str) -> list[str]:
    """Study files, and directories on the way to one."""
    return [
        f"{path}/" if path.is_dir() else str(path)
        for path in _below(incomplete)
        if path.is_dir() or path.suffix == ".toml"
    ]


def points(args: list[str], incomplete: str) -> list[str]:
    """KEY=VALUE of the points of the result directories that stand before it on the line."""
    found: dict[str, None] = {}
    for word in args:
        try:
            record: Any = json.loads((Path(word) / "study.json").read_bytes())
            specs = [run["planned"]["spec"] for run in record["runs"]]
            for spec in specs:
                if spec["kind"] == "share":
                    found |= dict.fromkeys(f"{key}={value}" for key, value in spec["point"].items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # It is no result directory, which the command itself says better.
            continue
    return [one for one in found if one.startswith(incomplete)]


def _below(incomplete: str) -> list[Path]:
    """What a path that is being typed may become."""
    directory, slash, name = incomplete.rpartition("/")
    parent = Path(directory + slash) if slash else Path()
    hidden = name.startswith(".")
    try:
        entries = sorted(
            path
            for path in parent.iterdir()
            if path.name.startswith(name) and path.name.startswith(".") == hidden
        )
    except OSError:
        return []
    return entries[:_MOST]
