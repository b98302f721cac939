# SPDX-License-Identifier: GPL-2.0-only
"""Make one run: from its spec to its directory."""

import errno
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from isoblk import __version__
from isoblk.campaign.collect import collect
from isoblk.errors import IsoblkError, RunError
from isoblk.kernel import Kernel, Progress, build_modules, build_schedulers
from isoblk.layers.registry import disks_of
from isoblk.machine import Machine, StoppedError
from isoblk.machine.host import Session
from isoblk.machine.uml import memory_mib
from isoblk.plan.plan import Plan, make_plan
from isoblk.programs.blkload import trace_file
from isoblk.programs.registry import program_file, program_of
from isoblk.result.store import FORMAT, Run, read_run, run_dir
from isoblk.run.record import Provenance
from isoblk.run.spec import RunSpec, Tenant
from isoblk.run.tier import UML, Tier
from isoblk.schedulers.registry import OWN_MODULES
from isoblk.study.presets import memory_bytes
from isoblk.study.traces import file_of

# Modules of the kernel itself: a device, and those that the tests of modules need.
KERNELS_MODULES = (
    *("null_blk", "kunit"),
    # For the tests of the qemu machine.
    *("crct10dif_common", "crct10dif_generic", "crc_t10dif", "scsi_debug"),
)


# For programs and the page cache.
_PROGRAMS_MIB = 1024
# With less free space than this, a run's files have filled the disk.
_ROOM = 1 << 20


class DiskFullError(RunError):
    """The disk has no space for the run's files."""


def files_of(spec: RunSpec) -> dict[str, Path]:
    """Return the files of traces and programs that a run needs, by their names in the run's
    directory.

    Raises:
        UserError: a file is gone, or has changed.
    """
    found: dict[str, Path] = {}
    for tenant in spec.tenants:
        load = tenant.workload
        if load.trace:
            found[trace_file(load.trace)] = file_of(load.trace)
        elif program := program_of(load):
            files = program.files(load.options)
            found |= {program_file(name): path for name, path in files.items()}
    return found


@dataclass(frozen=True)
class Bench:
    """Where runs are made: a machine, its kernel and modules by name, and a function that finds the
    files of a run."""

    machine: Machine
    kernel: Kernel
    modules: Mapping[str, Path]
    modules_key: str
    files: Callable[[RunSpec], Mapping[str, Path]] = files_of

    def module_files(self, names: Iterable[str]) -> list[Path]:
        """Return the modules of these names.

        Raises:
            RunError: a module is missing, as in an old state of the schedulers.
        """
        wanted = list(names)
        if missing := [name for name in wanted if name not in self.modules]:
            raise RunError(f"the module {missing[0]} was not built")
        return [self.modules[name] for name in wanted]


def make_bench(
    machine: Machine,
    kernel: Kernel,
    others: Mapping[str, Path] | None = None,
    schedulers: Path | None = None,
    progress: Progress | None = None,
) -> Bench:
    """Return a bench with the repository's modules, built if they are not ready, those of the
    kernel, and others.

    Args:
        machine: makes the runs.
        kernel: that it boots.
        others: modules from outside this repository, by name.
        schedulers: a directory kernel/ of another state of this repository, which replaces all
            scheduler modules; None for the current state.
        progress: listener for builds.

    Raises:
        UserError, RunError: as build_modules() and build_schedulers().
    """
    directory = build_modules(kernel, progress)
    modules = {path.stem: path for path in directory.glob("*.ko")}
    key = directory.name
    if schedulers is not None:
        built = build_schedulers(kernel, schedulers, progress)
        # Modules that the other state lacks must not be taken from the current one.
        modules = {name: path for name, path in modules.items() if name not in OWN_MODULES}
        modules |= {path.stem: path for path in built.glob("*.ko")}
        key += built.name.removeprefix(kernel.key)
    # A stock kernel has no KUnit.
    modules |= {name: path for name, path in kernel.modules().items() if name in KERNELS_MODULES}
    return Bench(machine, kernel, modules | dict(others or {}), key)


def make_host_bench(ready: Session) -> Bench:
    """Return a bench of this machine, whose kernel loads the installed modules itself."""
    return Bench(ready.machine, ready.kernel, {}, ready.modules_key)


@dataclass(frozen=True)
class Job:
    """A run to make: its plan, and its id, a hash of all inputs."""

    spec: RunSpec
    plan: Plan
    id: str


Submit = Callable[[Job], Future[Run]]
"""Starts a run, and returns its future."""


def here(executor: Executor, bench: Bench, results: Path) -> Submit:
    """Return a function that makes runs on a bench of this process, in an executor's threads."""
    return lambda job: executor.submit(execute, job, bench, results)


def make_job(spec: RunSpec, kernel_key: str, modules_key: str, tier: Tier = UML) -> Job:
    """Plan a run whose spec is complete, for a machine of that tier.

    The id excludes the run's place in its study (kind, point, repeat) and the names of traces, so
    that equal runs are made once.
    """
    plan = make_plan(spec, tier)
    # The script with the tier's fixed place of disk and cgroups.
    if tier.place == tier.anywhere:
        text = plan.text
    else:
        text = make_plan(spec, replace(tier, place=tier.anywhere)).text
    anywhere = msgspec.structs.replace(
        spec, kind="share", point={}, repeat=0, tenants=tuple(map(_anonymous, spec.tenants))
    )
    memory = _memory_mib(spec)
    inputs = [FORMAT, tier.name, text, anywhere, kernel_key, modules_key, memory]
    digest = hashlib.sha256(msgspec.json.encode(inputs, order="sorted"))
    return Job(spec, plan, digest.hexdigest()[:16])


def _memory_mib(spec: RunSpec) -> int:
    caching = spec.caching
    disks = memory_bytes(spec.device, caching.origin_bytes if caching else 0)
    if spec.stack:
        # A vdisk stores data in at most half of the memory, and layers write all of a disk.
        disks *= 2 * disks_of(spec.stack)
    if caching is not None:
        disks += memory_bytes(caching.ssd, caching.ssd_bytes)
    own = memory_mib(len(spec.tenants), disks)
    return own + _PROGRAMS_MIB if spec.filesystem else own


def _anonymous(tenant: Tenant) -> Tenant:
    """Return the tenant with its trace identified by content only."""
    load = tenant.workload
    if load.trace is None:
        return tenant
    trace = msgspec.structs.replace(load.trace, name="", stand_in=False, stream=None)
    return msgspec.structs.replace(tenant, workload=msgspec.structs.replace(load, trace=trace))


def execute(job: Job, bench: Bench, results: Path) -> Run:
    """Make the run, unless `results` has it.

    The run's directory appears by rename. Files of a failed run are kept next to it in <id>.failed.

    Raises:
        RunError, UserError: the run failed.
    """
    final = run_dir(results, job.id)
    if finished := read_run(final):
        return finished
    working = final.with_name(f".{job.id}")
    failed = final.with_name(f"{job.id}.failed")
    # A directory without a run.json is incomplete.
    for leftover in (working, failed, final):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        working.mkdir(parents=True)
        (working / "plan.sh").write_text(job.plan.text)
        with _laid_out(bench.files(job.spec), working):
            ran = bench.machine.run(
                working,
                bench.module_files(job.plan.modules),
                seed=job.spec.seed,
                memory_mib=_memory_mib(job.spec),
            )
        record = collect(working, job.id, job.spec, job.plan, ran, _provenance(bench))
    except StoppedError:
        shutil.rmtree(working, ignore_errors=True)
        raise
    except IsoblkError as error:
        working.rename(failed)
        if shutil.disk_usage(results).free < _ROOM:
            raise DiskFullError(f"the disk is full: {error}", where=str(results)) from None
        raise
    except OSError as error:
        shutil.rmtree(working, ignore_errors=True)
        kind = DiskFullError if error.errno in (errno.ENOSPC, errno.EDQUOT) else RunError
        raise kind(f"cannot keep the result: {error.strerror}", where=str(final)) from None
    except BaseException:
        shutil.rmtree(working, ignore_errors=True)
        raise
    working.rename(final)
    return Run(record, final)


@contextmanager
def _laid_out(files: Mapping[str, Path], working: Path) -> Iterator[None]:
    """Put the traces and programs of the plan into the run's directory while it runs."""
    places = {working / name: path for name, path in files.items()}
    for place, source in places.items():
        place.parent.mkdir(exist_ok=True)
        try:
            # Link to the target of a symbolic link, which may be relative.
            place.hardlink_to(source.resolve())
        except OSError:
            # Another file system, or one without links.
            shutil.copyfile(source, place)
    try:
        yield
    finally:
        for directory in {place.parent for place in places}:
            shutil.rmtree(directory, ignore_errors=True)


def _provenance(bench: Bench) -> Provenance:
    kernel = bench.kernel
    return Provenance(
        isoblk=__version__,
        kernel=kernel.version,
        kernel_key=kernel.key,
        kernel_source=kernel.source,
        compiler=kernel.compiler,
        modules_key=bench.modules_key,
    )
