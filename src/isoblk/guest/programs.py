# SPDX-License-Identifier: GPL-2.0-only
"""The parts of a plan that are about programs: their file system, their files, their start at
one moment, and what their cgroups were charged with as time goes by."""

from collections.abc import Iterable, Iterator, Sequence
from shlex import quote

from isoblk.guest import target
from isoblk.guest.charges import charge_files
from isoblk.guest.tier import Place
from isoblk.study.model import Filesystem, RunSpec, Tenant
from isoblk.study.point import RUNNING
from isoblk.workload import barrier, fio
from isoblk.workload.barrier import DIRECTORY, NOW, READY, SAMPLES, START, STOP
from isoblk.workload.program import Job, Program
from isoblk.workload.programs import PROGRAMS, program_of

# Nothing about a file system is left to chance, or to be done once it is in use.
_UUID = "69736f62-6c6b-4000-8000-000000000001"
_MKFS = {
    "ext4": f"mkfs.ext4 -q -F -U {_UUID}"
    f" -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,hash_seed={_UUID}",
    "xfs": f"mkfs.xfs -q -f -K -m uuid={_UUID}",
}
_SECTOR = 512


def of_programs(spec: RunSpec) -> list[tuple[Tenant, Program]]:
    """The tenants that run a program on files, with it."""
    return [
        (tenant, PROGRAMS[tenant.workload.program])
        for tenant in spec.tenants
        if tenant.workload.program in PROGRAMS
    ]


def processes(spec: RunSpec) -> bool:
    """Whether tenants are processes that start at a barrier."""
    return any(map(_process, spec.tenants))


def _process(tenant: Tenant) -> bool:
    return tenant.workload.program not in ("blkload", RUNNING)


def sampled(spec: RunSpec) -> list[Tenant]:
    """The tenants of which is known what their cgroups were charged with as time goes by."""
    return [
        tenant
        for tenant in spec.tenants
        if tenant.workload.program in PROGRAMS or tenant.workload.program == RUNNING
    ]


def job(tenant: Tenant, spec: RunSpec, place: Place) -> Job:
    """A tenant's program, and the run's directory as seen from its own."""
    up = place.run if place.run.startswith("/") else "../.."
    return Job(tenant, spec, up)


def mount_point(place: Place) -> str:
    """Where the file system is: not in the run's directory, but on the host machine."""
    return "/run/fs" if place.run.startswith("/") else "fs"


def partition(disk: str) -> str:
    """The kernel's name of a disk's first partition."""
    return f"{disk}p1" if disk[-1].isdigit() else f"{disk}1"


def make_filesystem(filesystem: Filesystem, place: Place) -> list[str]:
    """Commands that make and mount it.

    A partition is a part of the disk's own request queue. It is added without a partition table:
    nothing is written for it.
    """
    start, length = filesystem.offset // _SECTOR, filesystem.size // _SECTOR
    return [
        f"addpart /dev/{place.disk} 1 {start} {length}",
        *make_on(filesystem, place, f"/dev/{partition(place.disk)}"),
    ]


def make_on(filesystem: Filesystem, place: Place, device: str) -> list[str]:
    """Commands that make it on a device, and mount it."""
    arguments = "".join(f" {quote(word)}" for word in filesystem.mkfs)
    return [
        f"{_MKFS[filesystem.type]}{arguments} {device}",
        f"mkdir {mount_point(place)}",
        mount(filesystem, place, device),
    ]


def mount(filesystem: Filesystem, place: Place, device: str) -> str:
    """Command that mounts it from a device."""
    options = f" -o {quote(filesystem.mount)}" if filesystem.mount else ""
    return f"mount -t {filesystem.type}{options} {device} {mount_point(place)}"


def prepare(spec: RunSpec, place: Place) -> list[str]:
    """Commands that make the programs' directories and files. At the end the file system is
    not mounted: nothing is cached, nothing is to be written."""
    tenants = of_programs(spec)
    if spec.filesystem is None:
        return []
    top = mount_point(place)
    lines = ["mkdir " + " ".join(f"{top}/{t.name}" for t, _ in tenants)] if tenants else []
    for tenant, program in tenants:
        if commands := program.prepare(job(tenant, spec, place)):
            lines += [f"(cd {top}/{tenant.name}", *commands, ")"]
    return [*lines, f"umount {top}"]


def unmeasured(spec: RunSpec, place: Place) -> Iterator[str]:
    """Commands that run all programs once, at the same time, and keep nothing of it."""
    top = mount_point(place)
    for index, (tenant, program) in enumerate(of_programs(spec)):
        command = program.command(job(tenant, spec, place))
        yield f"(cd {top}/{tenant.name}; {command}) > /dev/null & warm_{index}=$!"
    yield from (f"wait $warm_{index}" for index, _ in enumerate(of_programs(spec)))


def drop_pages(spec: RunSpec, place: Place, device: str) -> list[str]:
    """Commands after which nothing of the file system is in memory."""
    if spec.filesystem is None:
        return []
    return [
        f"umount {mount_point(place)}",
        "echo 3 > /proc/sys/vm/drop_caches",
        mount(spec.filesystem, place, device),
    ]


def run(
    spec: RunSpec,
    place: Place,
    begin: Sequence[str],
    events: Iterable[str],
    end: Sequence[str],
) -> list[str]:
    """Commands of a run with tenants that are processes.

    Args:
        spec: the run.
        place: of its files.
        begin: what starts the others, whose barrier comes then.
        events: what happens after the barrier.
        end: what waits for the others.
    """
    everyone = [i for i, tenant in enumerate(spec.tenants) if _process(tenant)]
    jobs = sum(
        tenant.workload.numjobs if tenant.workload.program == "fio" else 1
        for tenant in (spec.tenants[i] for i in everyone)
    )
    pids = " ".join(f"${{{barrier.pid_variable(i)}}}" for i in everyone)
    watched = sampled(spec)
    go = barrier.fifo(place)
    let_go = [f"{NOW} > {START}", f"exec 3> {go}"]
    if not everyone:
        # Opening the fifo would wait for a reader.
        let_go.pop()
        last_ns = max((event.at_ns for event in spec.events), default=0)
        end = [*end, f"sleep {max(0, spec.warmup_ns + spec.runtime_ns - last_ns) / 1e9:.9f}"]
    return [
        f"mkdir {place.run}/{DIRECTORY}",
        f"cd {place.run}/{DIRECTORY}",
        f"mkfifo {go}",
        f": > {READY}",
        *(line for i in everyone for line in _start(spec.tenants[i], spec, place)),
        "# Each gets ready, says so, and waits until somebody writes to the fifo, which stays open",
        "# for writing from here on.",
        f"until [ $(grep -c '' {READY}) = {jobs} ]; do kill -0 {pids}; sleep 0.02; done",
        *begin,
        *let_go,
        *(_sample(watched, spec, place) if watched else []),
        *events,
        *end,
        # dash forgets the status of a job that "wait" does not name.
        *(f"wait ${{{barrier.pid_variable(i)}}}" for i in everyone),
        *([f": > {STOP}", "wait $sampler"] if watched else []),
        "cd ..",
    ]


def _start(tenant: Tenant, spec: RunSpec, place: Place) -> list[str]:
    program = program_of(tenant.workload)
    if program is None:
        return [fio.start(tenant, place, target.device(spec, place), spec)]
    own = job(tenant, spec, place)
    here = f"{own.run}/{DIRECTORY}"
    top = mount_point(place)
    directory = top if top.startswith("/") else f"../{top}"
    delay = tenant.workload.startdelay_ns
    index = spec.tenants.index(tenant)
    return [
        f"(echo 0 > {place.cgroup_of(tenant.cgroup)}/cgroup.procs",
        f"exec > {tenant.name}.out 2>&1",
        f"cd {directory}/{tenant.name}",
        barrier.wait(tenant.name, place, f"{here}/"),
        *([f"sleep {delay / 1e9:.9f}"] if delay else []),
        "status=0",
        f"{program.command(own)} || status=$?",
        f'echo "$status $({NOW})" > {here}/{tenant.name}.end',
        f") & {barrier.pid_variable(index)}=$!",
    ]


def _sample(tenants: Sequence[Tenant], spec: RunSpec, place: Place) -> list[str]:
    files = " \\\n  ".join(path for tenant in tenants for path in charge_files(tenant, spec, place))
    return [
        "while :; do",
        f"  {NOW}",
        # A cgroup without I/O has an empty file; grep says so with status 1.
        f"  grep -H '' \\\n  {files} || [ $? = 1 ]",
        f"  [ ! -e {STOP} ] || break",
        f"  sleep {spec.window_ms / 1e3:.3f}",
        f"done > {SAMPLES} & sampler=$!",
    ]


def unmount(spec: RunSpec, place: Place) -> list[str]:
    """Commands that take the file system away again."""
    if spec.filesystem is None:
        return []
    if spec.caching is not None:
        return [f"umount {mount_point(place)}"]
    return [f"umount {mount_point(place)}", f"delpart /dev/{place.disk} 1"]
