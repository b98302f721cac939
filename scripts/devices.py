# SPDX-License-Identifier: GPL-2.0-only
"""Writes the table of presets against their sources into docs/reference/devices.md.

    isoblk device check --json -j 2 >check.json
    python scripts/devices.py check.json

The first prints all figures even where it fails because one is off by more than it may be.
tests/unit/test_devices_page.py fails if the page lacks a figure of a preset.
"""

import json
import sys
from pathlib import Path
from typing import Any

from isoblk.device.text import figure

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "devices.md"
HEAD = "| preset | figure | source | model | error |\n|---|---|---|---|---|\n"


def row(record: dict[str, Any], preset: str) -> str:
    """A line of the table: the preset's name stands beside its first figure only."""
    state = " (steady)" if record["state"] == "steady" else ""
    mark = " †" if record["source"].endswith("†") else ""
    source = figure(record["expected"], record["metric"])
    model = figure(record["model"], record["metric"])
    error = "0.0 %" if abs(record["error"]) < 0.0005 else f"{100 * record['error']:+.1f} %"
    told = "" if record["fitted"] else ", not fitted"
    return f"| {preset} | {record['what']}{state} | {source}{mark} | {model} | {error}{told} |\n"


def table(records: list[dict[str, Any]]) -> str:
    """The table of all figures, in the order of the records."""
    lines, last = [HEAD], None
    for record in records:
        name = record["preset"]
        lines.append(row(record, "" if name == last else f"`{name}`"))
        last = name
    return "".join(lines).replace("|  |", "| |")


def replaced(page: str, new: str) -> str:
    """The page with the new table in the old one's place.

    Raises:
        SystemExit: the page has no such table.
    """
    before, head, rest = page.partition(HEAD)
    if not head:
        raise SystemExit(f"{PAGE}: has no table that begins with {HEAD.splitlines()[0]!r}")
    lines = rest.splitlines(keepends=True)
    left = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return before + new + "".join(lines[left:])


def main() -> None:
    """Rewrite the page from the file that the command line names."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    records = json.loads(Path(sys.argv[1]).read_text())
    PAGE.write_text(replaced(PAGE.read_text(), table(records)))


if __name__ == "__main__":
    main()
