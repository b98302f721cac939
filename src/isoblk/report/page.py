# SPDX-License-Identifier: GPL-2.0-only
"""One self-contained HTML page of a result set, and its figures as files beside it.

Nothing in the page depends on when or where it was made: the same results give the same bytes.
"""

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from isoblk.analysis.claims import ClaimResult, judge_all
from isoblk.analysis.metrics import Analysis, PointView, RunView
from isoblk.errors import UserError
from isoblk.files import write_atomically
from isoblk.report import cached, published, rows, text
from isoblk.report.beside import Beside, beside
from isoblk.report.figures.drawing import Figure
from isoblk.report.figures.make import make_figures
from isoblk.run import numbers
from isoblk.run.record import Knob
from isoblk.run.spec import RunSpec

_DRAWN = ".figures"  # in a result directory: the names of a report's figures
MAX_TENANTS = 32  # listed in a run's section
MAX_KNOBS = 40
MAX_SCRIPT = 64 << 10  # bytes of a script shown whole; of a longer one, so many from its start


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
    """A claim as the page prints it."""

    result: ClaimResult
    measured: list[tuple[str, str]]
    why: list[str]


def write_report(analysis: Analysis, other: Analysis | None = None) -> Path:
    """Write report.html and figures/ into the result directory; the page's path.

    Args:
        analysis: what to report.
        other: a result set whose shares are to stand beside these.

    Raises:
        UserError: the directory cannot be written, or `other` has no point in common.
    """
    results = analysis.results.dir
    found = beside(analysis, other) if other else None
    figures = make_figures(analysis, found)
    page = render(analysis, figures, found)
    folder = results / "figures"
    if folder.is_symlink():
        raise UserError("leads elsewhere", where=str(folder), next="remove the link")
    try:
        folder.mkdir(exist_ok=True)
        # Of an earlier report, which may have had others. What the user put there stays.
        former = results / _DRAWN
        before = former.read_text().split() if former.is_file() else []
        for figure in figures:
            write_atomically(folder / f"{figure.name}.svg", figure.svg.encode())
            write_atomically(folder / f"{figure.name}.png", figure.png)
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


def render(analysis: Analysis, figures: list[Figure], other: Beside | None) -> str:
    """The page, as HTML. other: what stands beside."""
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
    return environment.get_template("report.html.j2").render(
        title=study.title or study.name,
        name=study.name,
        description=[part for part in study.description.strip().split("\n\n") if part],
        provenance=text.provenance(analysis),
        tier_note=_TIER_NOTES,
        tiers=sorted({v.run.record.tier for v in analysis.views if v.run is not None}),
        states=_states(analysis),
        claims=[
            ClaimRow(result, rows.measured(result, analysis), rows.because(result, analysis))
            for result in claims
        ],
        tally=rows.tally(claims),
        single=all(len(point.runs) == 1 for point in analysis.points),
        troubles=rows.troubles(analysis),
        bench=bench,
        summary=cached.summary(analysis) if bench else rows.summary(analysis),
        counters=cached.counters(analysis) if cached.has_caches(analysis) else None,
        glance=rows.Table((), (), ()) if bench else rows.glance(analysis),
        said=rows.said(analysis),
        compared=published.table(analysis, study.compare) if study.compare else None,
        beside=other,
        figures=[(figure, Markup(figure.svg)) for figure in figures],
        runs=_sections(analysis.points, short),
        others=_sections(analysis.others, short),
    )


_TIER_NOTES = {
    "uml": "uml: the real block layer in virtual time, one CPU. Exact in what a scheduler decides; "
    "what its code costs on a CPU is not modelled.",
    "smp": "smp: several processors of the host, in real time. Machines and runs differ: trust "
    "ratios of runs made in turn, not times.",
    "qemu": "qemu: an emulated multi-processor machine. Its times say nothing about hardware.",
    "host": "host: this machine's own kernel and devices.",
}


def _states(analysis: Analysis) -> list[tuple[str, int]]:
    states = [view.status for view in analysis.views]
    return [
        (state, states.count(state))
        for state in ("valid", "invalid", "failed", "missing")
        if state in states
    ]


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
            ("tier", record.tier),
            ("kernel", f"Linux {record.provenance.kernel}, {record.provenance.kernel_source}"),
            ("device", text.device(record.spec, record.tier)),
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
        knobs = sorted(record.knobs, key=lambda knob: knob.ok)  # what did not take comes first
        script, note = _script(view.run.dir / "plan.sh")
    return RunSection(
        anchor=f"run-{view.index}",
        title=text.kind_label(view, short),
        status=view.status,
        why=rows.why(view),
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
    """What of a run is about its SSD."""
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
