# SPDX-License-Identifier: GPL-2.0-only
"""Writes the tables of presets against their sources into studies/devices/README.md.

    isoblk device check --json -j 2 >check.json
    python scripts/devices.py check.json

The first prints all figures even if it fails because an error exceeds what is allowed.
tests/unit/test_devices_page.py fails if the page lacks a figure of a preset.
"""

import json
import sys
from pathlib import Path
from typing import Any

from isoblk.device.text import figure

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "studies" / "devices" / "README.md"
FITTED = "| preset | figure | source | model | error |\n|---|---|---|---|---|\n"
UNFITTED = "| preset | figure | source | model | error | allowed |\n|---|---|---|---|---|---|\n"


def row(record: dict[str, Any], preset: str) -> str:
    """A line of a table: the preset's name stands beside its first figure only."""
    state = " (steady)" if record["state"] == "steady" else ""
    mark = " †" if record["source"].endswith("†") else ""
    source = figure(record["expected"], record["metric"])
    model = figure(record["model"], record["metric"])
    error = "0.0 %" if abs(record["error"]) < 0.0005 else f"{100 * record['error']:+.1f} %"
    if not record["ok"]:
        error = f"**{error}**"
    line = f"| {preset} | {record['what']}{state} | {source}{mark} | {model} | {error} |"
    if not record["fitted"]:
        least, most = record["allowed"]
        line += f" {100 * least:+.0f} to {100 * most:+.0f} % |"
    return f"{line}\n"


def table(records: list[dict[str, Any]], head: str) -> str:
    """The table of the figures that the models were fitted to, or not, in the order of the
    records."""
    lines, last = [head], None
    for record in records:
        if record["fitted"] != (head == FITTED):
            continue
        name = record["preset"]
        lines.append(row(record, "" if name == last else f"`{name}`"))
        last = name
    return "".join(lines).replace("|  |", "| |")


def replaced(page: str, new: str, head: str) -> str:
    """The page with the new table in the place of the one of this head.

    Raises:
        SystemExit: the page has no such table.
    """
    before, found, rest = page.partition(head)
    if not found:
        raise SystemExit(f"{PAGE}: has no table that begins with {head.splitlines()[0]!r}")
    lines = rest.splitlines(keepends=True)
    left = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return before + new + "".join(lines[left:])


def main() -> None:
    """Rewrite the tables of the page from the file that the command line names."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    records = json.loads(Path(sys.argv[1]).read_text())
    page = PAGE.read_text()
    for head in (FITTED, UNFITTED):
        page = replaced(page, table(records, head), head)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
