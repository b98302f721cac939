# SPDX-License-Identifier: GPL-2.0-only
"""Write a result set's report: one self-contained HTML page, and its figures as files.

The page does not depend on the time or place of its making: equal results give equal bytes.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from isoblk.analysis.claims import ClaimResult, judge_all
from isoblk.analysis.metrics import Analysis, PointView, RunView
from isoblk.errors import UserError
from isoblk.files import new_file, write_atomically
from isoblk.metrics.registry import NAMES, split_metric
from isoblk.report import cached, disks, published, rows, sources, text, values
from isoblk.report.answer import answer
from isoblk.report.beside import Beside, beside
from isoblk.report.figures import choice
from isoblk.report.figures.drawing import PALETTE, Figure, slug
from isoblk.report.figures.make import make_figures, silent
from isoblk.report.words import meaning, several
from isoblk.run import numbers
from isoblk.run.record import Knob
from isoblk.run.spec import RunSpec

_MARK = '<meta name="generator" content="isoblk report">'
_UNIT = re.compile(r"(?<=\d) (%|[µumn]?s\b|[KMGT]?B(?:/s)?\b)")  # not separated from its figure
_HEAD = 1024  # bytes of a page in which the mark is searched
_DRAWN = ".figures"  # in a result directory: the file with the names of a report's figures
BESIDE = "beside"  # the figure that is placed at its own table
BESIDE_TABLE = 530  # pixels: a figure up to this width is placed next to the answer's table
MAX_TENANTS = 32  # listed in a run's section
MAX_KNOBS = 40
MAX_SCRIPT = 64 << 10  # bytes of a script that are shown from its start


@dataclass(frozen=True)
class RunSection:
    """A run's part of the page. anchor: its id there."""

    anchor: str
    title: str
    status: str
    why: str
    facts: list[tuple[str, str]]
    tenants: rows.Table | None
    changes: list[str]
    knobs: list[Knob]
    more_knobs: int
    script: str
    script_note: str


@dataclass(frozen=True)
class ClaimRow:
    """A claim on the page. metric: its name in NAMES. expected: the comparison. verdict: as
    text."""

    result: ClaimResult
    metric: str
    expected: str
    verdict: str
    measured: list[tuple[str, str]]
    why: list[str]


@dataclass(frozen=True)
class ClaimGroup:
    """The claims of one source. anchor: its id in the page."""

    anchor: str
    source: str
    own: bool
    tally: str
    rows: list[ClaimRow]


class Words:
    """Explanations of a page's columns and metrics; only used ones are listed."""

    def __init__(self) -> None:
        self._used: dict[str, str] = {}

    def has(self, title: str) -> bool:
        """Return whether a title has an explanation, and list it."""
        text_ = meaning(title) or NAMES.get(title, "")
        if text_:
            self._used.setdefault(title, text_)
        return bool(text_)

    def id(self, title: str) -> str:
        """Return the id of the explanation."""
        return f"word-{list(self._used).index(title)}"

    def used(self) -> list[tuple[str, str, str]]:
        """Return (title, id, explanation), in the order of the page."""
        return [(title, self.id(title), text_) for title, text_ in self._used.items()]


def write_page(
    analysis: Analysis,
    page: Path,
    other: Analysis | None = None,
    say: Callable[[str], None] = silent,
) -> None:
    """Write only the page, to any file name. An earlier report there is replaced.

    Args:
        analysis: the result set.
        page: the file.
        other, say: as of write_report().

    Raises:
        UserError: the page cannot be written, or another file has that name.
    """
    check_page(page)
    found = beside(analysis, other) if other else None
    text_ = render(analysis, make_figures(analysis, found, say), found, beside_files=False)
    with new_file(page, force=is_report(page)) as temporary:
        temporary.write_text(text_, encoding="utf-8")


def check_page(page: Path) -> None:
    """Check that a file does not exist, or is a report.

    Raises:
        UserError: another file has that name.
    """
    if os.path.lexists(page) and not is_report(page):
        what = "is a directory" if page.is_dir() else "exists, and is not a report"
        raise UserError(what, where=str(page), next="choose another name")


def is_report(path: Path) -> bool:
    """Return whether a file is a report's page, which may be replaced."""
    try:
        with path.open("rb") as file:
            return _MARK.encode() in file.read(_HEAD)
    except OSError:
        return False


def write_report(
    analysis: Analysis, other: Analysis | None = None, say: Callable[[str], None] = silent
) -> Path:
    """Write report.html and figures/ into the result directory. Returns the page's path.

    Args:
        analysis: the result set.
        other: a result set whose shares are compared.
        say: called with the name of each figure.

    Raises:
        UserError: the directory cannot be written, or `other` has no common point.
    """
    results = analysis.results.dir
    found = beside(analysis, other) if other else None
    figures = make_figures(analysis, found, say)
    page = render(analysis, figures, found, beside_files=True)
    folder = results / "figures"
    if folder.is_symlink():
        raise UserError("is a symbolic link", where=str(folder), next="remove it")
    try:
        folder.mkdir(exist_ok=True)
        # Remove figures of an earlier report, which may have had others. Files of the user stay.
        former = results / _DRAWN
        before = former.read_text(errors="replace").split() if former.is_file() else []
        for figure in figures:
            write_atomically(folder / f"{figure.name}.svg", figure.svg.encode())
            write_atomically(folder / f"{figure.name}.png", figure.png())
        current = [figure.name for figure in figures]
        for name in set(before) - set(current):
            if Path(name).name == name:
                (folder / f"{name}.svg").unlink(missing_ok=True)
                (folder / f"{name}.png").unlink(missing_ok=True)
        write_atomically(former, "\n".join(current).encode())
        write_atomically(results / "report.html", page.encode())
    except OSError as error:
        raise UserError(
            f"cannot write the report: {error.strerror}", where=str(error.filename or results)
        ) from None
    return results / "report.html"


def render(
    analysis: Analysis,
    figures: list[Figure],
    other: Beside | None,
    *,
    beside_files: bool = True,
) -> str:
    """Return the page as HTML. other: the comparison. beside_files: whether the figures are also
    files next to the page."""
    environment = Environment(
        loader=PackageLoader("isoblk.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    claims = judge_all(analysis)
    study = analysis.results.record.study
    short = text.short_keys(analysis.keys)
    bench = cached.is_bench(analysis)
    drawn = [(figure, Markup(figure.svg)) for figure in figures]
    first = _first_figure(drawn)
    rest = [one for one in drawn if one not in first and one[0].name != BESIDE]
    groups = [_claim_group(group, analysis) for group in sources.by_source(claims)]
    others = _sections(analysis.others, short)
    found_answer = answer(analysis, claims)
    return environment.get_template("report.html.j2").render(
        title=study.title or study.name,
        name=study.name,
        where=_where(analysis),
        made=analysis.results.record.made,
        answer=found_answer,
        answer_text=_UNIT.sub("\u00a0\\1", found_answer.text),
        contents=_contents(rest, groups, bool(others), other),
        words=Words(),
        palette=PALETTE,
        beside_table=BESIDE_TABLE,
        mark=Markup(_MARK),
        beside_files=beside_files,
        description=[part for part in study.description.strip().split("\n\n") if part],
        provenance=text.provenance(analysis),
        tier_note=_TIER_NOTES,
        tiers=sorted({v.run.record.tier for v in analysis.views if v.run is not None}),
        groups=groups,
        single=all(len(point.runs) == 1 for point in analysis.points),
        troubles=rows.troubles(analysis),
        summary=cached.summary(analysis) if bench else rows.summary(analysis),
        counters=cached.counters(analysis) if cached.has_caches(analysis) else None,
        glance=rows.Table((), (), ()) if bench else rows.glance(analysis),
        said=rows.said(analysis),
        compared=published.table(analysis, study.compare) if study.compare else None,
        beside=other,
        figures=drawn,
        first=first,
        rest=rest,
        runs=_sections(analysis.points, short),
        others=others,
    )


_Drawn = tuple[Figure, Markup]


def _first_figure(drawn: list[_Drawn]) -> list[_Drawn]:
    """Return the figure at the top: the choices, else the first one."""
    own = [one for one in drawn if one[0].name != BESIDE]
    return [one for one in own if one[0].name == choice.NAME] or own[:1]


def _where(analysis: Analysis) -> str:
    """Return the study's disk, tenants and day in one line."""
    tenants = sorted({len(view.spec.tenants) for view in analysis.views})
    count = several(tenants[-1], "tenant")
    if len(tenants) > 1:
        count = f"{tenants[0]:,} to {count}"
    return " · ".join(
        filter(None, [disks.few(disks.disks(analysis)), count, analysis.results.record.made])
    )


def _claim_group(group: sources.Group, analysis: Analysis) -> ClaimGroup:
    names = rows.names(analysis)
    found = [
        ClaimRow(
            result,
            split_metric(result.claim.metric, names)[0],
            values.expected(result, analysis),
            group.told(result.verdict),
            rows.measured(result, analysis),
            rows.because(result, analysis),
        )
        for result in group.results
    ]
    anchor = f"claims-{slug(group.source)}"
    return ClaimGroup(anchor, group.source, group.own, sources.tally(group), found)


_Contents = list[tuple[str, str, list[tuple[str, str]]]]


def _contents(
    rest: list[_Drawn], groups: list[ClaimGroup], others: bool, other: Beside | None
) -> _Contents:
    """Return (id, text, subparts) of each part of the page."""
    found: _Contents = [("answer", "Answer", [])]
    if other:
        found.append(("beside-table", f"Beside {other.there}", []))
    if rest:
        # Of figures that differ by a key of the matrix, the first.
        kinds: dict[str, str] = {}
        for one, _ in rest:
            kinds.setdefault(one.title.partition(":")[0], one.name)
        found.append(("figures", "Figures", [(name, title) for title, name in kinds.items()]))
    if groups:
        found.append(("claims", "Claims", [(group.anchor, group.source) for group in groups]))
    runs = [
        ("each", "Every run"),
        *([("others", "The runs that they depend on")] if others else []),
    ]
    found.append(("runs", "Runs", runs))
    found += [("words", "Words", []), ("made", "How it was made", [])]
    return found


_TIER_NOTES = {
    "uml": "uml: the real block layer in virtual time, one CPU. Exact in what a scheduler decides; "
    "what its code costs on a CPU is not modelled.",
    "smp": "smp: several processors of the host, in real time. Machines and runs differ: trust "
    "ratios of runs made in turn, not times.",
    "qemu": "qemu: an emulated multi-processor machine. Its times have no meaning for hardware.",
    "icount": "icount: an emulated machine whose clock counts instructions, 1 ns each. Exact, "
    "processor cost included; without caches and memory stalls. All processors share one clock.",
    "host": "host: this machine's own kernel and devices.",
}


def _sections(points: tuple[PointView, ...], short: dict[str, str]) -> list[RunSection]:
    views = sorted((view for point in points for view in point.runs), key=lambda v: v.index)
    return [_section(view, short) for view in views]


def _section(view: RunView, short: dict[str, str]) -> RunSection:
    facts: list[tuple[str, str]] = []
    knobs: list[Knob] = []
    script, note = "", ""
    if view.run is not None:
        record = view.run.record
        facts = [
            ("tier", text.machine(record)),
            ("kernel", f"Linux {record.provenance.kernel}, {record.provenance.kernel_source}"),
            ("device", text.device(record)),
            *_caching(record.spec),
            ("cgroup", record.spec.cgroup),
            (
                "time",
                f"{record.spec.runtime_ns / 1e9:g} s measured after "
                f"{record.spec.warmup_ns / 1e9:g} s of warm-up",
            ),
            ("seed", str(record.spec.seed)),
            ("directory", f"runs/{record.id}"),
        ]
        knobs = sorted(record.knobs, key=lambda knob: knob.ok)  # settings without effect first
        script, note = _script(view.run.dir / "plan.sh")
    return RunSection(
        anchor=f"run-{view.index}",
        title=text.kind_label(view, short),
        status="suspect" if view.suspicions else view.status,
        why="; ".join(view.suspicions) or rows.why(view),
        facts=facts,
        tenants=rows.tenants(view.metrics, MAX_TENANTS) if view.metrics else None,
        changes=[
            f"{change.at_ms:g} ms: {change.what}: "
            + (
                "shares did not follow"
                if change.converged_ms is None
                else f"shares followed after {change.converged_ms:g} ms"
            )
            for change in (view.metrics.changes if view.metrics else ())
        ],
        knobs=knobs[:MAX_KNOBS],
        more_knobs=max(0, len(knobs) - MAX_KNOBS),
        script=script,
        script_note=note,
    )


def _caching(spec: RunSpec) -> list[tuple[str, str]]:
    """Return the properties of a run that concern its SSD."""
    caching = spec.caching
    if caching is None:
        return []
    size = numbers.figure(caching.ssd_bytes, "B")
    of = numbers.figure(caching.origin_bytes, "B")
    options = " ".join(f"{name}={value}" for name, value in caching.options.items())
    return [
        ("cache", f"{caching.cache}, {size} of SSD in front of {of}"),
        *([("options", options)] if options else []),
        ("passes, files", f"{caching.passes}, {caching.files}"),
    ]


def _script(path: Path) -> tuple[str, str]:
    try:
        data = path.read_bytes()
    except OSError:
        return "", "not kept"
    if len(data) <= MAX_SCRIPT:
        return data.decode(errors="replace"), ""
    start = data[:MAX_SCRIPT].decode(errors="replace").rpartition("\n")[0]
    return start, f"its beginning; all {len(data):,} bytes are in {path.parent.name}/plan.sh"
