# SPDX-License-Identifier: GPL-2.0-only
"""The parts of a plan that concern tenants that are processes: their files, their common start, and
samples of the charges to their cgroups."""

from collections.abc import Iterable, Iterator, Sequence

from isoblk.plan import target
from isoblk.plan.charges import charge_files
from isoblk.plan.filesystem import mount_point
from isoblk.programs import barrier, blkload, fio
from isoblk.programs.barrier import DIRECTORY, NOW, READY, SAMPLES, START, STOP
from isoblk.programs.base import Program, Task
from isoblk.programs.registry import PROGRAMS, program_of
from isoblk.run.shell import (
    Form,
    Name,
    Statement,
    Syntax,
    To,
    Variable,
    fill,
    rows,
    run,
    write,
)
from isoblk.run.spec import RUNNING, RunSpec, Tenant
from isoblk.run.tier import Place


class _Line(Form):
    IN_DIRECTORY = "(cd {directory}\n{commands}\n)"
    UNMEASURED = "(cd {directory}; {command}) > /dev/null & {pid}=$!"
    MAKE_EMPTY = ": > {file}"
    LET_GO = "exec 3> {fifo}"
    GET_READY = """\
# Each gets ready, says so, and waits until somebody writes to the fifo, which stays open
# for writing from here on.
until [ $(grep -c '' {ready}) = {jobs} ]; do {alive}; sleep 0.02; done"""
    IN_BACKGROUND = "({body}\n) & {pid}=$!"
    SUCCESS = "status=0"
    OR_STATUS = "{command} || status=$?"
    ENDED = 'echo "$status $({now})" > {file}'
    # A cgroup without I/O has an empty file, for which grep exits with status 1.
    SAMPLE = """\
while :; do
  {now}
  {read} || [ $? = 1 ]
  [ ! -e {stop} ] || break
  sleep {seconds}
done > {samples} & sampler=$!"""


def of_programs(spec: RunSpec) -> list[tuple[Tenant, Program]]:
    """Return the tenants that run a program on files, with the program."""
    return [
        (tenant, PROGRAMS[tenant.workload.program])
        for tenant in spec.tenants
        if tenant.workload.program in PROGRAMS
    ]


def has_processes(spec: RunSpec) -> bool:
    """Return whether tenants are processes that start at a barrier."""
    return any(map(_process, spec.tenants))


def _process(tenant: Tenant) -> bool:
    return tenant.workload.program not in ("blkload", RUNNING)


def sampled(spec: RunSpec) -> list[Tenant]:
    """Return the tenants whose cgroups' charges are sampled."""
    return [
        tenant
        for tenant in spec.tenants
        if tenant.workload.program in PROGRAMS or tenant.workload.program == RUNNING
    ]


def task_of(tenant: Tenant, spec: RunSpec, place: Place) -> Task:
    """Return a tenant's program, and the run's directory as seen from its own."""
    up = place.run if place.run.startswith("/") else "../.."
    return Task(tenant, spec, up)


def prepare(spec: RunSpec, place: Place) -> list[Statement]:
    """Return the commands that make the programs' directories and files. At the end the file system
    is unmounted: no page is cached or dirty."""
    tenants = of_programs(spec)
    if spec.filesystem is None:
        return []
    top = mount_point(place)
    lines: list[Statement] = []
    if tenants:
        lines.append(run("mkdir", *(f"{top}/{t.name}" for t, _ in tenants)))
    for tenant, program in tenants:
        if commands := program.prepare(task_of(tenant, spec, place)):
            directory = f"{top}/{tenant.name}"
            lines.append(fill(_Line.IN_DIRECTORY, directory=directory, commands=commands))
    return [*lines, run("umount", top)]


def unmeasured(spec: RunSpec, place: Place) -> Iterator[Statement]:
    """Yield the commands that run all programs once, at the same time, without results."""
    top = mount_point(place)
    for index, (tenant, program) in enumerate(of_programs(spec)):
        command = program.command(task_of(tenant, spec, place))
        yield fill(
            _Line.UNMEASURED,
            directory=f"{top}/{tenant.name}",
            command=command,
            pid=Name(f"warm_{index}"),
        )
    for index, _ in enumerate(of_programs(spec)):
        yield run("wait", Variable(f"warm_{index}", braces=False))


def run_together(
    spec: RunSpec,
    place: Place,
    begin: Sequence[Statement],
    events: Iterable[Statement],
    end: Sequence[Statement],
) -> list[Statement]:
    """Return the commands of a run with tenants that are processes.

    Args:
        spec: the run.
        place: of its files.
        begin: starts the other tenants, whose barrier is then.
        events: after the barrier.
        end: waits for the other tenants.
    """
    everyone = [i for i, tenant in enumerate(spec.tenants) if _process(tenant)]
    jobs = sum(
        tenant.workload.numjobs if tenant.workload.program == "fio" else 1
        for tenant in (spec.tenants[i] for i in everyone)
    )
    alive = run("kill", "-0", *map(barrier.pid, everyone))
    watched = sampled(spec)
    go = barrier.fifo(place)
    let_go: list[Statement] = [run(*NOW.words, To(START)), fill(_Line.LET_GO, fifo=go)]
    if not everyone:
        # Opening the fifo would wait for a reader.
        let_go.pop()
        last_ns = max((event.at_ns for event in spec.events), default=0)
        left_ns = max(0, spec.warmup_ns + spec.runtime_ns - last_ns)
        end = [*end, run("sleep", f"{left_ns / 1e9:.9f}")]
    if watched and counts_completed(spec, place):
        let_go.insert(0, write(1, blkload.COMPLETED))
    stop: list[Statement] = [
        fill(_Line.MAKE_EMPTY, file=STOP),
        run("wait", Variable("sampler", braces=False)),
    ]
    return [
        run("mkdir", f"{place.run}/{DIRECTORY}"),
        run("cd", f"{place.run}/{DIRECTORY}"),
        run("mkfifo", go),
        fill(_Line.MAKE_EMPTY, file=READY),
        *(_start(spec.tenants[i], spec, place) for i in everyone),
        fill(_Line.GET_READY, ready=READY, jobs=jobs, alive=alive),
        *begin,
        *let_go,
        *([_sample(watched, spec, place)] if watched else []),
        *events,
        *end,
        # dash forgets the status of a job that "wait" does not name.
        *(run("wait", barrier.pid(i)) for i in everyone),
        *(stop if watched else []),
        run("cd", ".."),
    ]


def _start(tenant: Tenant, spec: RunSpec, place: Place) -> Statement:
    program = program_of(tenant.workload)
    if program is None:
        return fio.start(tenant, place, target.device(spec, place), spec)
    own = task_of(tenant, spec, place)
    here = f"{own.run}/{DIRECTORY}"
    top = mount_point(place)
    directory = top if top.startswith("/") else f"../{top}"
    delay = tenant.workload.startdelay_ns
    index = spec.tenants.index(tenant)
    body: list[Statement] = [
        write(0, f"{place.cgroup_of(tenant.cgroup)}/cgroup.procs"),
        run("exec", To(f"{tenant.name}.out"), Syntax.WITH_ERRORS),
        run("cd", f"{directory}/{tenant.name}"),
        barrier.wait(tenant.name, place, f"{here}/"),
        *([run("sleep", f"{delay / 1e9:.9f}")] if delay else []),
        _Line.SUCCESS,
        fill(_Line.OR_STATUS, command=program.command(own)),
        fill(_Line.ENDED, now=NOW, file=f"{here}/{tenant.name}.end"),
    ]
    return fill(_Line.IN_BACKGROUND, body=body, pid=barrier.pid_name(index))


def _sample(tenants: Sequence[Tenant], spec: RunSpec, place: Place) -> Statement:
    return fill(
        _Line.SAMPLE,
        now=NOW,
        read=run("grep", "-H", "", *rows(sampled_files(tenants, spec, place))),
        stop=STOP,
        seconds=f"{spec.window_ms / 1e3:.3f}",
        samples=SAMPLES,
    )


def sampled_files(tenants: Sequence[Tenant], spec: RunSpec, place: Place) -> list[str]:
    """Return the files of each sample."""
    if counts_completed(spec, place):
        return [blkload.COMPLETED]
    return [path for tenant in tenants for path in charge_files(tenant, spec, place)]


def counts_completed(spec: RunSpec, place: Place) -> bool:
    """Return whether the I/O that the disk completed for each cgroup is known, not only its
    charges.

    blkload counts it for the disk itself: not for a cache or layers, whose own I/O also reaches the
    disk.
    """
    return place.run.startswith("/") and spec.caching is None and not spec.stack
