# SPDX-License-Identifier: GPL-2.0-only
"""The programs that a tenant can run in addition to blkload and fio, by name in studies."""

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from isoblk.errors import RunError
from isoblk.programs import barrier
from isoblk.programs.base import Program, Task
from isoblk.programs.db_bench import DbBench
from isoblk.programs.dd import Dd
from isoblk.programs.iozone import Iozone
from isoblk.programs.sysbench import Sysbench
from isoblk.programs.ycsb import Ycsb
from isoblk.run.record import ProgramReport
from isoblk.run.spec import RunSpec, Tenant, Workload

PROGRAMS: dict[str, Program] = {
    program.name: program for program in (Dd(), Sysbench(), Iozone(), DbBench(), Ycsb())
}

# A program that is alone for longer than this fraction of its time has figures of a less loaded
# disk.
_ALONE_AT_THE_END = 0.05
_SHOWN = 200  # characters of a line that a message shows
_COMPLAINT = re.compile(r"error|fatal|fail|cannot|invalid|exception|killed", re.IGNORECASE)


def program_of(load: Workload) -> Program | None:
    """Return the program of a load; None for blkload and fio."""
    return PROGRAMS.get(load.program)


def program_file(name: str) -> str:
    """Return the path of a program's file in the run's directory."""
    return f"files/{name}"


@dataclass(frozen=True)
class Said:
    """The report of a tenant's program, and why it is invalid ("" if it is valid)."""

    report: ProgramReport
    trouble: str


def read_report(directory: Path, tenant: Tenant, spec: RunSpec) -> Said:
    """Read the results of a tenant's program.

    Args:
        directory: of its output.
        tenant: the tenant.
        spec: the run.

    Raises:
        RunError: a file is missing.
    """
    text = _read(directory / f"{tenant.name}.out")
    try:
        start_ns = int(_read(directory / barrier.START))
        status, end_ns = map(int, _read(directory / f"{tenant.name}.end").split())
    except ValueError:
        raise RunError("not a status and a time", where=f"{tenant.name}.end") from None
    load = tenant.workload
    report = ProgramReport(
        program=load.program,
        used=[one.name for one in load.installed],
        status=status,
        end_ns=end_ns - start_ns,
        figures=[],
    )
    if status:
        return Said(report, f"{load.program} ended with status {status}: {_complaint(text)}")
    try:
        figures = PROGRAMS[load.program].parse(text, Task(tenant, spec, ""))
    except ValueError as error:
        return Said(report, f"not what {load.program} prints: {error}")
    report = msgspec.structs.replace(report, figures=figures)
    return Said(report, _trouble_at_end(report, tenant, spec))


def _complaint(text: str) -> str:
    """Return the last line of an output that looks like an error message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it printed nothing"]
    return next(filter(_COMPLAINT.search, reversed(lines)), lines[-1])[:_SHOWN]


def _trouble_at_end(report: ProgramReport, tenant: Tenant, spec: RunSpec) -> str:
    """Return what is wrong with the end of the program, relative to tenants with limited time."""
    others = [one.workload for one in spec.tenants if one is not tenant]
    if not any(_timed(load) for load in others):
        return ""
    end_ns = spec.warmup_ns + spec.runtime_ns
    alone_ns = report.end_ns - end_ns
    if alone_ns <= _ALONE_AT_THE_END * (report.end_ns - tenant.workload.startdelay_ns):
        return ""
    return (
        f"{report.program} ended {alone_ns / 1e9:.3g} s after the others:"
        " give it less to do, or a runtime shorter than the run's"
    )


def _timed(load: Workload) -> bool:
    program = program_of(load)
    return program is None or program.timed(load.options)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        raise RunError(f"the guest left no {path.name}") from None
