# SPDX-License-Identifier: GPL-2.0-only
"""Run the studies of studies/machines on uml, icount, smp and the host machine, and set the shares
beside each other: the table of docs/findings/machines.md.

    python benchmarks/machines.py --loop-dir DIRECTORY-ON-A-DISK     (root, for the host machine)
    python benchmarks/machines.py --table                            what has been run, only

What was run is not run again. The shares are of those tenants that ask without a pause; of one with
a rate the requests a second are compared.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

from isoblk.analysis.metrics import Analysis, PointView, analyse
from isoblk.metrics.facts import RunMetrics
from isoblk.result.store import read_results

ROOT = Path(__file__).resolve().parents[1]
STUDIES = ("weights", "nested", "limit", "reader", "coming")
# With the first all others are compared.
MACHINES = ("uml", "icount", "smp", "host")
PAGE = ROOT / "docs" / "findings" / "machines.md"
BEGIN, END = "<!-- machines: written by make machines -->", "<!-- end of machines -->"
_COLUMNS = (
    *("study", "scheduler", "of", MACHINES[0]),
    *(column for machine in MACHINES[1:] for column in (machine, "off")),
    f"requests/s: {' '.join(MACHINES)}",
)
HEAD = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"


def run(results: Path, loop_dir: Path) -> None:
    """Run every study on every machine; one that cannot be run there is told, and left out."""
    for machine in MACHINES:
        for study in STUDIES:
            words = [f"{ROOT}/studies/machines/{study}.toml", "--machine", machine]
            if machine == "host":
                words += ["--loop", "1g", "--loop-dir", str(loop_dir)]
            output = results / f"{study}-{machine}"
            words += ["-o", str(output)]
            subprocess.run([sys.executable, "-m", "isoblk", "run", *words], check=False)


def rows(found: Mapping[str, Analysis]) -> Iterator[str]:
    """A line for each point of a study, found on the machines by name."""
    for point in found["uml"].points:
        points = {
            machine: next((one for one in analysis.points if one.key == point.key), None)
            for machine, analysis in found.items()
        }
        first = point.valid[0]
        name = first.spec
        study = found["uml"].results.record.study.name.removeprefix("machines-")
        rated = [t.name for t in name.tenants if t.workload.rate_iops]
        busy = [t.name for t in name.tenants if t.name not in rated]
        totals = " ".join(_total(points.get(machine)) for machine in MACHINES)
        yield _row(f"{study} | {point.scheduler} | {' '.join(busy)}", points, busy, totals, False)
        for tenant in rated:
            what = f"{study} | {point.scheduler} | {tenant}, requests/s"
            yield _row(what, points, [tenant], "", True)


def _row(
    what: str, points: Mapping[str, PointView | None], tenants: list[str], totals: str, rate: bool
) -> str:
    cells = [what]
    base: list[float] = []
    for machine in MACHINES:
        point = points.get(machine)
        runs = [_of(metrics, tenants, rate) for metrics in point.valid] if point else []
        if not runs:
            cells += [""] * (1 if machine == MACHINES[0] else 2)
            continue
        mean = [fmean(values) for values in zip(*runs, strict=True)]
        cells.append(" ".join(f"{value:.1f}" for value in mean))
        if machine == MACHINES[0]:
            base = mean
        else:
            worst = max(_off(values, base) for values in runs)
            cells.append(f"{_off(mean, base):.1f} % ({worst:.1f} %)")
    return f"| {' | '.join([*cells, totals])} |"


def _of(metrics: RunMetrics, tenants: list[str], rate: bool) -> list[float]:
    """Shares in per cent among the tenants, or their requests a second."""
    chosen = [metrics.by_name[name] for name in tenants]
    if rate:
        return [one.iops for one in chosen]
    total = sum(one.bps for one in chosen)
    return [100 * one.bps / total for one in chosen]


def _off(values: list[float], base: list[float]) -> float:
    """The largest difference, in per cent of what it is to be."""
    return max(abs(value / was - 1) * 100 for value, was in zip(values, base, strict=True))


def _total(point: PointView | None) -> str:
    found = point.estimate("total_iops") if point else None
    return f"{found.mean:.0f}" if found else "-"


def main() -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "machines")
    parser.add_argument("--loop-dir", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        run(options.results, options.loop_dir)
    lines = []
    for study in STUDIES:
        found = {}
        for machine in MACHINES:
            directory = options.results / f"{study}-{machine}"
            if (directory / "study.json").is_file():
                found[machine] = analyse(read_results(directory))
        lines += rows(found)
    table = "\n".join([BEGIN, "", HEAD, *lines, "", END])
    marked = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    PAGE.write_text(marked.sub(lambda _: table, PAGE.read_text()))


if __name__ == "__main__":
    main()
