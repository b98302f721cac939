# SPDX-License-Identifier: GPL-2.0-only
"""Draw the packages of src/isoblk and what each imports: docs/figures/architecture.svg.

`make architecture` runs it. tests/unit/test_architecture.py asserts that no arrow runs upward, and
that the picture is that of today's imports.
"""

import ast
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "isoblk"
PICTURE = ROOT / "docs" / "figures" / "architecture.svg"

# From the top to the ground. A package imports only from those in rows below its own.
ROWS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("hunt", "bisect"),
    ("report", "device", "capture", "cachectl"),
    ("lab",),
    ("analysis", "campaign", "weights"),
    ("result", "machine"),
    ("study", "plan"),
    ("trace", "caches", "layers", "schedulers", "metrics", "programs"),
    ("kernel",),
    ("run",),
)
# Where in its row a package is drawn, of four columns; the others from the left on, or in the
# middle if alone.
_COLUMNS: Mapping[str, float] = {
    **{"hunt": 0.5, "bisect": 2, "result": 0.5, "machine": 2, "study": 0.5, "plan": 2},
    "kernel": 3,
}
# Modules of the package itself, below all others: errors, files, paths, toml.
GROUND = "isoblk"
_WORDS: Mapping[str, str] = {
    "cli": "the commands",
    "hunt": "the worst load, shrunk",
    "bisect": "what changed a metric",
    "report": "tables, figures, the page",
    "device": "presets, fitting a drive",
    "capture": "requests of a disk here",
    "cachectl": "a cache on a disk here",
    "lab": "run a study, read results",
    "analysis": "shares, ideals, verdicts",
    "campaign": "all runs, in order",
    "weights": "weights on this machine",
    "result": "result directories",
    "machine": "uml, smp, qemu, icount, host",
    "study": "a file made into runs",
    "plan": "a run made into a script",
    "programs": "loads: one class each",
    "caches": "SSDs: one class each",
    "layers": "stacks: one class each",
    "schedulers": "one class each",
    "metrics": "figures: one record each",
    "trace": "formats, synthesis",
    "kernel": "kernels and modules, built",
    "run": "what all share: spec, record, options, settings, limits, units",
}


def arrows(source: Path = SOURCE) -> dict[tuple[str, str], list[str]]:
    """What imports what, between packages: (package, imported package) to the modules that do."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        own = parts[0] if len(parts) > 1 else GROUND
        for imported in _imports(path):
            other = imported if (source / imported).is_dir() else GROUND
            if other != own:
                modules = found.setdefault((own, other), [])
                if (name := ".".join(parts)) not in modules:
                    modules.append(name)
    return found


def _imports(path: Path) -> Iterator[str]:
    """The second word of each isoblk.X that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            words = name.split(".")
            if words[0] == "isoblk" and len(words) > 1:
                yield words[1]


def upward(found: Mapping[tuple[str, str], list[str]]) -> list[str]:
    """The imports that do not run downward, a line each."""
    row = {name: number for number, names in enumerate(ROWS) for name in names}
    row[GROUND] = len(ROWS)
    return [
        f"{', '.join(modules)}: {own} imports {other}"
        for (own, other), modules in sorted(found.items())
        # The package's own entry point, isoblk/__main__.py, starts the command.
        if row[own] >= row[other] and not (own == GROUND and modules == ["__main__"])
    ]


def _without_shortcuts(found: Mapping[tuple[str, str], list[str]]) -> set[tuple[str, str]]:
    """The arrows that are not implied by others."""
    below: dict[str, set[str]] = {}
    for own, other in found:
        below.setdefault(own, set()).add(other)

    def reaches(start: str, end: str) -> bool:
        return start == end or any(reaches(one, end) for one in below.get(start, ()))

    return {
        (own, other)
        for own, other in found
        if not any(reaches(one, other) for one in below[own] - {other})
    }


_WIDTH = 980
_ROW = 92
_BOX = 54
_MARGIN = 16
_GAP = 26


def draw(source: Path = SOURCE) -> str:
    """The picture, as SVG."""
    found = {pair: modules for pair, modules in arrows(source).items() if GROUND not in pair}
    places = _places(source)
    height = 2 * _MARGIN + (len(ROWS) - 1) * _ROW + _BOX
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"'
        ' font-family="system-ui, sans-serif" role="img" aria-labelledby="title">',
        "<!-- SPDX-License-Identifier: GPL-2.0-only. Made by make architecture. -->",
        '<title id="title">The packages of src/isoblk; each imports only from those below it'
        "</title>",
        "<style>",
        "rect { fill: #eef2fb; stroke: #3f51b5; } .plug { fill: #e6f4ea; stroke: #2e7d32; }",
        "text { fill: #1a237e; } .plug + text, .plug + text + text { fill: #1b5e20; }",
        ".name { font-size: 16px; font-weight: 600; } .what { font-size: 12px; }",
        "path { stroke: #8c93a8; fill: none; stroke-width: 1.2; } marker path { fill: #8c93a8; }",
        "@media (prefers-color-scheme: dark) {",
        "rect { fill: #1e2433; stroke: #9fa8da; } .plug { fill: #17281c; stroke: #81c784; }",
        "text { fill: #e8eaf6; } .plug + text, .plug + text + text { fill: #c8e6c9; }",
        "}",
        "</style>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    for own, other in sorted(_without_shortcuts(found)):
        lines.append(_arrow(places[own], places[other]))
    for name, (x, y, width) in places.items():
        kind = ' class="plug"' if _WORDS[name].endswith("each") else ""
        middle = x + width / 2
        lines += [
            f'<rect{kind} x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_BOX}" rx="8"/>',
            f'<text class="name" x="{middle:.0f}" y="{y + 23:.0f}" text-anchor="middle">'
            f"{escape(name)}</text>",
            f'<text class="what" x="{middle:.0f}" y="{y + 42:.0f}" text-anchor="middle">'
            f"{escape(_WORDS[name])}</text>",
        ]
    return "\n".join([*lines, "</svg>", ""])


def _places(source: Path) -> dict[str, tuple[float, float, float]]:
    """Left edge, top edge and width of each package's box."""
    places = {}
    for number, names in enumerate(ROWS):
        column = (_WIDTH - 2 * _MARGIN + _GAP) / max(4, len(names))
        for place, name in enumerate(names):
            if not (source / name).is_dir():
                raise SystemExit(f"architecture: there is no package {name}")
            wide = len(names) == 1 and name not in _COLUMNS
            at = 1.0 if wide else _COLUMNS.get(name, place)
            width = (2 * column if wide else column) - _GAP
            places[name] = (_MARGIN + at * column, _MARGIN + number * _ROW, width)
    return places


def _arrow(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    """A curve from the lower edge of a box to the upper edge of another."""
    # Not all from one point: towards where they go.
    x0 = _towards(start, end)
    x1 = _towards(end, start)
    y0, y1 = start[1] + _BOX, end[1] - 1
    bend = max(14.0, (y1 - y0) * 0.45)
    return (
        f'<path marker-end="url(#end)" d="M{x0:.0f} {y0:.0f}'
        f' C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}"/>'
    )


def _towards(box: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    middle, wanted = box[0] + box[2] / 2, other[0] + other[2] / 2
    room = box[2] / 2 - 24
    return middle + max(-room, min(room, (wanted - middle) * 0.5))


if __name__ == "__main__":
    PICTURE.write_text(draw())
    for line in upward(arrows()):
        print(f"upward: {line}")
