# SPDX-License-Identifier: GPL-2.0-only
"""A lab: a kernel, the machine that boots it, and the modules that its guests load."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from isoblk.campaign.execute import Bench, Submit, here, make_bench
from isoblk.campaign.installed import find_programs
from isoblk.campaign.others import with_modules
from isoblk.campaign.study import run_study
from isoblk.campaign.trial import try_out
from isoblk.errors import RunError, UserError
from isoblk.kernel import DEFAULT_VERSION, Kernel, Progress, find, hold, host_library, stock
from isoblk.kernel.others import find_modules
from isoblk.lab.tables import Results, load
from isoblk.machine import Machine, StoppedError
from isoblk.machine.icount import Icount
from isoblk.machine.qemu import Qemu
from isoblk.machine.smp import Smp
from isoblk.machine.uml import Uml
from isoblk.plan.plan import check_programs, check_queues
from isoblk.result.store import ResultSet, Run
from isoblk.result.study import StudyRecord
from isoblk.run.field import within
from isoblk.run.limits import Range
from isoblk.run.tier import ICOUNT, ICOUNT_CPUS_MAX, QEMU, SMP, UML, Tier
from isoblk.study.expand import expand
from isoblk.study.load import load_study
from isoblk.study.model import Expansion, Study
from isoblk.study.point import runs_already
from isoblk.study.shipped import choose

TIERS: Mapping[str, Tier] = {tier.name: tier for tier in (UML, SMP, QEMU, ICOUNT)}
"""Machines that boot a kernel of their own, by name."""
TIME_LIMIT_S = 600.0
"""Wall-clock time after which a run counts as hung, unless another is given."""


@dataclass(frozen=True)
class Lab:
    """Makes runs in guests. `with Lab.open() as lab`: the guests end with the block.

    Attributes:
        bench: kernel, modules and machine of the runs.
        foreign: modules of schedulers that a study defines, by name.
        executor: its threads make the runs, one each.
        ended: set once no more runs can be made.
    """

    bench: Bench
    foreign: Mapping[str, Path]
    executor: Executor
    ended: threading.Event = field(default_factory=threading.Event)

    @classmethod
    @contextmanager
    def open(
        cls,
        machine: str = UML.name,
        *,
        version: str = DEFAULT_VERSION,
        debug: bool = False,
        cpus: int | None = None,
        jobs: int = 1,
        time_limit_s: float = TIME_LIMIT_S,
        modules: Sequence[str | Path] = (),
        sources: str | Path | None = None,
        progress: Progress | None = None,
        kernel: Kernel | None = None,
    ) -> Iterator["Lab"]:
        """Open a lab on a kernel that is ready (`isoblk kernel build`).

        Args:
            machine: uml, smp, qemu or icount.
            version: of the kernel.
            debug: boot the debug kernel.
            cpus: of the icount machine; None: its default.
            jobs: number of runs in parallel.
            time_limit_s: wall-clock time after which a run counts as hung.
            modules: as of `isoblk run --module`.
            sources: as of `isoblk run --sources`.
            progress: listener for builds of modules.
            kernel: boot this one; None: that of `version` and `debug`.

        Raises:
            UserError: no such kernel or machine is ready, a module is not one, or a number is out
                of range.
            RunError: a module does not build.
        """
        tier = tier_of(machine, cpus)
        for name, number in (("jobs", jobs), ("time_limit_s", time_limit_s)):
            if number < 1:
                raise UserError(f"{name}: {number} is out of range", next="allowed: 1 and more")
        named = [modules] if isinstance(modules, str | Path) else modules
        chosen = kernel or kernel_for(tier, version, debug=debug)
        with hold(chosen):
            boots = _machine(chosen, tier, time_limit_s)
            foreign = find_modules(chosen, [Path(one) for one in named], progress) if named else {}
            kernel_dir = None if sources is None else Path(sources)
            bench = make_bench(boots, chosen, foreign, kernel_dir, progress)
            with cls.of(bench, foreign, jobs=jobs) as lab:
                yield lab

    @classmethod
    @contextmanager
    def of(cls, bench: Bench, foreign: Mapping[str, Path], *, jobs: int) -> Iterator["Lab"]:
        """Open a lab whose machine and modules are there already."""
        lab = cls(bench, foreign, ThreadPoolExecutor(jobs))
        try:
            yield lab
        finally:
            lab.stop()

    def stop(self) -> None:
        """End all guests; no more can be started."""
        self.ended.set()
        self.bench.machine.stop()
        self.executor.shutdown(cancel_futures=True)

    def submit(self, results: Path) -> Submit:
        """Return a function that starts runs whose directories go into results/runs."""
        return here(self.executor, self.bench, results.absolute())

    def prepare(self, directory: Path) -> None:
        """Find out, in a fraction of a second, whether guests run here. directory: as of try_out().

        Raises:
            UserError, RunError: they do not.
        """
        if self.bench.machine.tier.name == UML.name:
            try_out(self.bench, directory)

    def run(
        self,
        study: str | Path,
        results: str | Path,
        on_end: Callable[[int, Run | None], None] = lambda index, run: None,
    ) -> Results:
        """Make the runs of a study that a result directory lacks, and read all.

        Args:
            study: a study file, or the name of a shipped study.
            results: the result directory.
            on_end: called with the index of each run that ended, and the run, None if it failed.

        Raises:
            UserError: the study is wrong, the results cannot be written, or the lab has ended.
            RunError: runs failed or are invalid. The others are kept: load() reads them.
        """
        file, results = choose(Path(study)).path, Path(results)
        parsed, source = load_study(file)
        if runs_already(parsed):
            raise UserError(
                "the study has a running tenant, which is on this machine",
                where=str(file),
                next="run: isoblk run --machine host",
            )
        expansion = expand_for(parsed, self.bench.machine.tier)
        self.make(find_programs(expansion), source, results, on_end)
        found = load(results)
        require_valid(found.analysis.results)
        return found

    def make(
        self,
        expansion: Expansion,
        source: str,
        results: Path,
        on_end: Callable[[int, Run | None], None] = lambda index, run: None,
    ) -> StudyRecord:
        """Make the runs of a checked study; arguments, result and errors of run_study()."""
        if self.ended.is_set():
            raise UserError("the lab has ended", next="run studies inside the block of the lab")
        try:
            return run_study(
                with_modules(expansion, self.foreign)[0],
                source,
                self.bench,
                results.absolute(),
                self.submit(results),
                on_end,
                self.prepare,
            )
        except (CancelledError, RuntimeError):  # the latter: the executor accepts no more
            if not self.ended.is_set():
                raise
            raise StoppedError("the lab ended during the study", where=str(results)) from None


def tier_of(machine: str, cpus: int | None = None) -> Tier:
    """Return the tier of a machine that boots a kernel; arguments and errors of Lab.open()."""
    if machine not in TIERS:
        raise UserError(f"no machine {machine!r}", next=f"choose one of {', '.join(TIERS)}")
    tier = TIERS[machine]
    if cpus is None:
        return tier
    if tier.name != ICOUNT.name:
        raise UserError(f"cpus is not for machine {machine!r}", next="remove it")
    within(("cpus",), cpus, Range(1, ICOUNT_CPUS_MAX))
    return replace(tier, cpus=cpus)


def expand_for(study: Study, tier: Tier) -> Expansion:
    """Return the runs of a checked study, if a machine of the tier can make them.

    Raises:
        UserError: it cannot.
    """
    expansion = expand(study)
    specs = [planned.spec for planned in expansion.runs]
    check_queues(specs, tier)
    check_programs(specs, tier)
    return expansion


def kernel_for(tier: Tier, version: str = DEFAULT_VERSION, *, debug: bool = False) -> Kernel:
    """Return the kernel that a machine of the tier boots.

    qemu and icount boot Debian's kernel, the lab's if there is none, and with debug always the
    lab's.

    Raises:
        UserError: no kernel of this version is ready.
    """
    if tier.name == SMP.name:
        # The default version has no User Mode Linux with several CPUs.
        return find(None if version == DEFAULT_VERSION else version, debug, "um-smp")
    if tier.name == UML.name:
        return find(version, debug)
    if debug:
        return find(version, debug=True, arch="x86_64")
    try:
        return stock.find(version)
    except UserError as missing:
        try:
            return find(version, arch="x86_64")
        except UserError:
            raise missing from None


def require_valid(results: ResultSet) -> None:
    """Raise RunError if a run failed or is invalid."""
    runs = results.record.runs
    if failures := [one.failure for one in runs if one.failure]:
        raise RunError(f"{len(failures)} of {len(runs)} runs failed; the first: {failures[0]}")
    if invalid := [run.record for run in results.runs if run and run.record.status == "invalid"]:
        raise RunError(
            f"{len(invalid)} of {len(runs)} runs are invalid; the first: {invalid[0].reasons[0]}"
        )


def _machine(kernel: Kernel, tier: Tier, time_limit_s: float) -> Machine:
    if tier.name == QEMU.name:
        return Qemu(kernel, time_limit_s=time_limit_s)
    if tier.name == ICOUNT.name:
        return Icount(kernel, time_limit_s=time_limit_s, cpus=tier.cpus)
    if tier.name == SMP.name:
        return Smp(kernel, host_library(kernel), time_limit_s=time_limit_s)
    return Uml(kernel, host_library(kernel), time_limit_s=time_limit_s)
