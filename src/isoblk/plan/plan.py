# SPDX-License-Identifier: GPL-2.0-only
"""Turn a run into the shell script that the guest executes.

The script has no path of the host: the machine passes the run's directory as $RUN on the kernel's
command line, and all external inputs are in it. The text, the kernel and the modules therefore
determine the run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from isoblk.errors import UserError
from isoblk.plan import cached, filesystem, processes, stacked, target
from isoblk.plan.charges import charge_files, throttles
from isoblk.programs import blkload
from isoblk.run import shell
from isoblk.run.limits import PHYSICAL_BLOCK
from isoblk.run.setting import Setting
from isoblk.run.shell import ForDevice, Quoted, Statement, Syntax, To, fill, run, write
from isoblk.run.spec import (
    RUNNING,
    CgroupVersion,
    Device,
    DeviceEvent,
    DiskModel,
    Event,
    FlashModel,
    NullBlkDevice,
    RunSpec,
    Scheduler,
    SchedulerEvent,
    VdiskDevice,
    schedulers_of,
)
from isoblk.run.tier import HOST, ICOUNT, UML, Place, Tier, TierName
from isoblk.schedulers.registry import kind_of

# In a guest.
DISK = UML.place.disk
RUN_DIR = UML.place.run
CGROUP = UML.place.cgroup
SCHED = f"/sys/kernel/debug/block/{DISK}/sched"
CONFIGFS = "/sys/kernel/config"
# Busy time of all processors since the boot, in the first line; and the files with its values at
# start and end of a run in real time.
PROCESSORS = "/proc/stat"
BEGIN, END = "processors-begin", "processors-end"
_SCRATCH = run("mount", "-t", "tmpfs", "tmpfs", "/tmp")
ALIGN = run("cat", f"{blkload.ROOT}/align", To("/dev/null"))

# Parameters of modules. Without them null_blk makes a device of its own, and KUnit runs no test.
_PARAMETERS = {"null_blk": ("nr_devices=0",), "kunit": ("enable=1", "autorun=1")}

# Attributes of a vdisk: those that a plan always writes, and those that it writes unless they are
# at the module's default.
_OF_EVERY_MODEL = (
    *("model", "size", "logical_block_size", "queue_depth", "hw_queues"),
    *("read_bps", "write_bps"),
)
_OFTEN_LEFT = ("flush_ns", "write_cache", "store", "jitter", "seed")

# memory.high in eighths of memory.max. Only memory.high throttles a buffered writer: the kernel
# updates a cgroup's count of dirty pages up to two seconds late, so the cgroup reaches memory.max
# before balance_dirty_pages() acts, and is killed if none of its writes completes in 16 rounds of
# reclaim, about 0.2 s.
_HIGH_EIGHTHS = 7

# Bytes per second beyond any disk.
_NO_LIMIT = 1 << 60


class _Heading(shell.Form):
    """Headings of a script's sections."""

    IN_GUEST = """\
#!/bin/sh
# Written by isoblk; run as the guest's init. $RUN is the run's directory on the host."""
    ON_HOST = """\
#!/bin/sh
# Written by isoblk; run as root in the run's directory. isoblk keeps a journal of
# what this changes, and changes it back; if it could not: isoblk host restore"""
    PROCESSORS = "## the processors, beside the first"
    DEVICE = "## the device"
    LAYERS = "## the layers on it"
    SSD = "## the SSD, and the parts of both that are used"
    BARE = "## the files, on the origin alone"
    CACHE = "## the cache, empty"
    FILESYSTEM = "## the file system"
    FILES = "## the programs' files"
    SCHEDULER = "## the scheduler"
    CGROUPS = "## the tenants' cgroups and weights"
    LOADS = "## the tenants' loads"
    READ_BACK = "## what took effect"
    PASSES = "## passes that are not measured"
    COUNT = "## what is counted"
    RUN = "## run"
    COUNTED = "## what was counted"
    END = "## what came of it"


class _Line(shell.Form):
    """Lines that are not single commands."""

    SAFE = "set -eu"
    PATH = "export PATH={path}"
    NUMBER = "dev=$(cat {file})"
    UNCOUNTED = "# On v1 the kernel counts where there is a limit; this one is never reached."
    # grep exits with status 1 for an empty file, which has no line.
    IF_ANY = "{read} || [ $? = 1 ]"


_Section = list[Statement]


@dataclass(frozen=True)
class Plan:
    """A script, its settings (read back after set-up), the modules it loads, the tier of its
    machines, and the place of disk and cgroups there. later: the settings of each change of the
    scheduler, read back then. cpus: of the machine."""

    text: str
    settings: tuple[Setting, ...]
    modules: tuple[str, ...]
    tier: TierName = "uml"
    place: Place = UML.place
    later: tuple[tuple[Setting, ...], ...] = ()
    cpus: int = UML.cpus


def make_plan(spec: RunSpec, tier: Tier = UML) -> Plan:
    """Return the plan of a run whose spec is complete (calibrated, capped), for a kind of
    machine."""
    place = tier.place
    scheduler = tuple(_scheduler_settings(spec, place))
    weights = tuple(_weight_settings(spec, place))
    if tier.name == HOST.name:
        return _host_plan(spec, tier, scheduler, weights)
    disks = target.disks(spec, place)
    device = tuple(s for disk in disks for s in _device_settings(spec.device, disk, tier))
    ssd: tuple[Setting, ...] = ()
    cache: tuple[Setting, ...] = ()
    shown: tuple[Setting, ...] = ()
    if spec.caching is not None:
        ssd = tuple(_device_settings(spec.caching.ssd, target.SSD, tier))
        cache = cached.settings(spec.caching, place)
        shown = cached.read_only(spec.caching, place)
    loads = tuple(
        setting
        for tenant in spec.tenants
        if tenant.workload.program == "blkload"
        for setting in blkload.settings(tenant, target.device(spec, place), RUN_DIR, spec)
    )
    driver = "isoblk_vdisk" if isinstance(spec.device, VdiskDevice) else "null_blk"
    schedulers = schedulers_of(spec)
    of_schedulers = (name for one in schedulers for name in kind_of(one).modules)
    modules = (driver, "blkload", *dict.fromkeys(of_schedulers))
    if spec.caching is not None:
        modules += target.of(spec.caching).modules
    processors = tuple(_processor_settings(tier))
    settings = (*processors, *device, *ssd, *cache, *shown, *scheduler, *weights, *loads)
    # Begin each part at a whole second, if waiting costs no real time.
    align = [ALIGN] if tier.virtual_time else []
    number = fill(_Line.NUMBER, file=Quoted(f"/sys/block/{DISK}/dev"))
    sections: list[_Section] = [
        prologue(modules, spec.cgroup, tier),
        [_Heading.PROCESSORS, *_write(processors)],
        [
            _Heading.DEVICE,
            *align,
            run("mkdir", *(_device_dir(spec.device, disk) for disk in disks)),
            *_write(device),
        ],
        [_Heading.LAYERS, *stacked.make(spec, place)],
        *_cache(spec, tier, ssd, cache),
        *_files(spec, tier),
        [_Heading.SCHEDULER, *align, number, *_write(scheduler)],
        [_Heading.CGROUPS, *align, *_make_cgroups(spec, place), *_write(weights)],
        [_Heading.LOADS, *blkload.make(spec.tenants), *_write(loads)],
        [_Heading.READ_BACK, _read_back(settings, place)],
        *_measured(spec, align, tier),
        [
            _Heading.END,
            *_collect(spec, place),
            *filesystem.unmount(spec, place),
            *(cached.detach(spec, place) if spec.caching else []),
        ],
    ]
    later = tuple(_switch_settings(event, spec, place) for event in _switches(spec))
    return Plan(_text(sections), settings, modules, tier.name, later=later, cpus=tier.cpus)


def _text(sections: Iterable[_Section]) -> str:
    """Return the script. A section with only a heading is omitted."""
    return "\n\n".join(shell.render(lines) for lines in sections if len(lines) > 1) + "\n"


def _files(spec: RunSpec, tier: Tier) -> list[_Section]:
    """Return the sections that make the file system and its initial files."""
    if spec.filesystem is None or spec.caching is not None:
        return []
    # A guest's root is read-only.
    scratch = [] if tier.name == HOST.name else [_SCRATCH]
    place = tier.place
    if spec.stack:
        path = target.device(spec, place)
        made = filesystem.make_on(spec.filesystem, place, path)
    else:
        path = f"/dev/{filesystem.partition(place.disk)}"
        made = filesystem.make_filesystem(spec.filesystem, place)
    return [
        [_Heading.FILESYSTEM, *scratch, *made],
        [
            _Heading.FILES,
            *processes.prepare(spec, place),
            filesystem.mount(spec.filesystem, place, path),
        ],
    ]


def _cache(
    spec: RunSpec, tier: Tier, ssd: tuple[Setting, ...], cache: tuple[Setting, ...]
) -> list[_Section]:
    """Return the sections that make the files of the run, and then the cache."""
    caching, place = spec.caching, tier.place
    if caching is None:
        return []
    return [
        [
            _Heading.SSD,
            run("mkdir", _device_dir(caching.ssd, target.SSD)),
            *_write(ssd),
            *cached.partitions(caching, place),
        ],
        [
            _Heading.BARE,
            *stacked.DEVICE_MAPPER,
            *([_SCRATCH] if spec.filesystem else []),
            *cached.bare(spec, place),
        ],
        [
            _Heading.CACHE,
            *cached.attach(spec, _write(cache), place),
        ],
    ]


def _measured(spec: RunSpec, align: Sequence[Statement], tier: Tier) -> list[_Section]:
    """Return the sections of the run itself."""
    place = tier.place
    load = _run(spec, align, place)
    # In virtual time the processor is never busy.
    itself: _Section = [_Heading.RUN, *(load if tier.virtual_time else _counted(load, place))]
    if spec.caching is None:
        return [itself]
    return [
        [_Heading.PASSES, *cached.passes(spec, place)],
        [_Heading.COUNT, cached.count_function(spec.caching, place), run("counters", "before")],
        itself,
        [_Heading.COUNTED, *([run("sync")] if spec.filesystem else []), run("counters", "after")],
    ]


def _host_plan(
    spec: RunSpec, tier: Tier, scheduler: tuple[Setting, ...], weights: tuple[Setting, ...]
) -> Plan:
    """Return the plan of a run on the machine that isoblk runs on: disk and file systems exist, and
    fio is the load."""
    place = tier.place
    number = fill(_Line.NUMBER, file=f"/sys/block/{place.disk}/dev")
    sections: list[_Section] = [
        [_Heading.ON_HOST, _Line.SAFE, fill(_Line.PATH, path=tier.path), tier.at_end],
        *_files(spec, tier),
        [_Heading.SCHEDULER, number, *_write(scheduler)],
        [_Heading.CGROUPS, *_make_cgroups(spec, place), *_write(weights)],
        [_Heading.READ_BACK, _read_back((*scheduler, *weights), place)],
        [
            _Heading.RUN,
            *_counted(processes.run_together(spec, place, [], _events(spec, place), []), place),
        ],
        [_Heading.END, _charges(spec, place), *filesystem.unmount(spec, place)],
    ]
    settings = (*scheduler, *weights)
    return Plan(_text(sections), settings, (), tier.name, place, cpus=tier.cpus)


def check_queues(specs: Iterable[RunSpec], tier: Tier) -> None:
    """Check that a machine of the tier has a processor for every hardware queue, the caches and the
    layers.

    Raises:
        UserError: it has not.
    """
    for spec in specs:
        if spec.caching is not None and tier.name != UML.name:
            # In Debian's kernel they are modules, and counters settle only in virtual time.
            raise UserError(f"no caches on the {tier.name} machine", next="remove --machine")
        if spec.stack and tier.name != UML.name:
            raise UserError(
                f"no layers on the {tier.name} machine",
                next='remove --machine, or set stack = "none"',
            )
        if isinstance(spec.device, VdiskDevice) and spec.device.hw_queues > tier.cpus:
            raise UserError(
                f"the device has {spec.device.hw_queues} hardware queues, the {tier.name} machine"
                f" {tier.cpus} CPU",
                next=f"set hw_queues to 1, or add --machine icount --cpus {spec.device.hw_queues}",
            )


def check_programs(specs: Iterable[RunSpec], tier: Tier) -> None:
    """Check that a machine of the tier has the programs and file systems of the runs.

    Raises:
        UserError: it has not.
    """
    if tier.name != ICOUNT.name:
        return
    # Programs would be read over 9p in the measured time, at the speed of the host.
    for spec in specs:
        loads = (tenant.workload.program for tenant in spec.tenants)
        lacks: list[str] = [program for program in loads if program != "blkload"]
        lacks += [spec.filesystem.type] if spec.filesystem else []
        if lacks:
            raise UserError(
                f"the icount machine has blkload only, not {lacks[0]}",
                next="choose another --machine",
            )


def predicts(spec: RunSpec) -> bool:
    """Return whether a run records a history of predictions, in RUN_DIR/predictions."""
    # A change of the elevator removes its history.
    predicts_all = kind_of(spec.scheduler).predicts and not spec.scheduler_events
    return predicts_all and any(tenant.workload.program == "blkload" for tenant in spec.tenants)


def prologue(modules: tuple[str, ...], cgroup: CgroupVersion, tier: Tier = UML) -> list[Statement]:
    """Return the first statements of every script: mount file systems, and load the modules."""
    kind = ("cgroup2",) if cgroup == "v2" else ("cgroup", "-o", "blkio")
    return [
        _Heading.IN_GUEST,
        _Line.SAFE,
        fill(_Line.PATH, path=tier.path),
        # -n: until the guest has its own /run, mount would do more if the host has a /run/mount.
        run("mount", "-n", "-t", "proc", "proc", "/proc"),
        tier.at_end,
        run("mount", "-n", "-t", "sysfs", "sysfs", "/sys"),
        run("mount", "-n", "-t", "devtmpfs", "devtmpfs", "/dev"),
        run("mount", "-n", "-t", "tmpfs", "tmpfs", "/run"),
        run("mount", "-t", "configfs", "configfs", "/sys/kernel/config"),
        run("mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"),
        run("mount", "-t", *kind, "cgroup", CGROUP),
        run("mkdir", RUN_DIR),
        *([fill(tier.mount_run, directory=RUN_DIR)] if tier.mount_run else []),
        *(
            run("insmod", f"{RUN_DIR}/modules/{name}.ko", *_PARAMETERS.get(name, ()))
            for name in modules
        ),
    ]


def _processor_settings(tier: Tier) -> Iterator[Setting]:
    """Yield the settings that bring all processors online. They are read back, and the script,
    hence the run's id, depends on their number."""
    for number in range(1, tier.cpus if tier.chosen_cpus else 1):
        yield Setting(f"/sys/devices/system/cpu/cpu{number}/online", "1")


def _device_dir(device: Device, disk: str) -> str:
    kind = "isoblk_vdisk" if isinstance(device, VdiskDevice) else "nullb"
    return f"{CONFIGFS}/{kind}/{disk}"


def _device_settings(device: Device, name: str, tier: Tier) -> Iterator[Setting]:
    values: dict[str, str | int] = {}
    match device:
        case VdiskDevice() as disk:
            values = _vdisk_values(disk)
        case NullBlkDevice() as disk:
            # queue_mode 2 is blk-mq; irqmode 2 completes by timer.
            values = {
                "size": disk.size >> 20,
                "blocksize": disk.blocksize,
                "queue_mode": 2,
                "irqmode": 2,
                "completion_nsec": disk.completion_nsec,
                "hw_queue_depth": disk.hw_queue_depth,
                "submit_queues": tier.cpus,
                "memory_backed": int(disk.memory_backed),
            }
            if disk.zone_size:
                values |= {"zoned": 1, "zone_size": disk.zone_size >> 20}
    values["power"] = 1
    for attribute, value in values.items():
        yield Setting(f"{_device_dir(device, name)}/{attribute}", str(value))


def _vdisk_values(disk: VdiskDevice) -> dict[str, str | int]:
    """Return the values of a vdisk by file: those of every disk and of its model, without rarely
    used ones at their defaults."""
    own: dict[str, Sequence[str]] = {
        "fixed": ("servers", "read_ns", "write_ns", "trim_ns"),
        "flash": (),
        "disk": (),
    }
    values: dict[str, str | int] = {
        name: getattr(disk, name) for name in (*_OF_EVERY_MODEL, *own[disk.model])
    }
    usual = VdiskDevice()
    for name in _OFTEN_LEFT:
        if getattr(disk, name) != getattr(usual, name):
            values[name] = _written(getattr(disk, name))
    if disk.model != "fixed":
        group: FlashModel | DiskModel = getattr(disk, disk.model)
        for name in group.__struct_fields__:
            values[f"{disk.model}/{name}"] = _written(getattr(group, name))
    elif disk.volume != usual.volume:
        for name in disk.volume.__struct_fields__:
            values[f"volume/{name}"] = getattr(disk.volume, name)
    return values


def _written(value: str | int) -> str | int:
    """Return an attribute as the file reads back: 0 and 1 for false and true."""
    return int(value) if isinstance(value, bool) else value


def _scheduler_settings(spec: RunSpec, place: Place) -> Iterator[Setting]:
    scheduler = spec.scheduler
    scheduled, others = _queues(spec, place)
    for queue in others:
        yield Setting(f"{queue}/scheduler", "none", "choice")
    for queue in scheduled:
        yield from _elevator(queue, scheduler, spec.queue)
    yield from kind_of(scheduler).device_settings(scheduler, place)


def _elevator(
    queue: str, scheduler: Scheduler, tunables: Mapping[str, int | str]
) -> Iterator[Setting]:
    """Yield the settings of a request queue's elevator and tunables."""
    yield Setting(f"{queue}/scheduler", scheduler.elevator, "choice")
    for name, value in tunables.items():
        yield Setting(f"{queue}/{name}", str(value))
    for name, value in scheduler.iosched.items():
        form = kind_of(scheduler).tunable_forms.get(name, "plain")
        yield Setting(f"{queue}/iosched/{name}", str(value), form)


def _switches(spec: RunSpec) -> list[SchedulerEvent]:
    """Return the changes of the scheduler, by time."""
    return sorted(spec.scheduler_events, key=lambda event: event.at_ns)


def _switch_settings(event: SchedulerEvent, spec: RunSpec, place: Place) -> tuple[Setting, ...]:
    queues, _ = _queues(spec, place)
    return (
        *(s for queue in queues for s in _elevator(queue, event.scheduler, event.queue)),
        *kind_of(event.scheduler).device_settings(event.scheduler, place),
    )


def switch_file(index: int) -> str:
    """Return the file with the values that were read back after a change of the scheduler."""
    return f"knobs-{index + 1}"


def _queues(spec: RunSpec, place: Place) -> tuple[list[str], list[str]]:
    """Return the request queues with the scheduler, and those without one."""
    if spec.caching is None:
        return [f"/sys/block/{disk}/queue" for disk in target.disks(spec, place)], []
    on = spec.caching.scheduler_on
    queues = {"origin": place.queue, "ssd": f"/sys/block/{target.SSD}/queue"}
    scheduled = [queue for name, queue in queues.items() if on in (name, "both")]
    return scheduled, [queue for queue in queues.values() if queue not in scheduled]


def _make_cgroups(spec: RunSpec, place: Place) -> list[Statement]:
    old = [group.path for group in spec.groups if group.path.startswith("/")]
    own = [group.path for group in spec.groups if group.path not in old]
    inner = [place.cgroup_of(path) for path in own]
    if place.group:
        inner.insert(0, place.cgroup)
    leaves = [
        tenant.cgroup
        for tenant in spec.tenants
        if tenant.cgroup not in own and tenant.workload.program != RUNNING
    ]
    lines: list[Statement] = []
    # Writeback of a file's page is charged to the page's memory cgroup.
    controllers = ("+io", "+memory") if spec.filesystem else ("+io",)
    if spec.cgroup == "v2":
        lines.append(_delegate(place.hierarchy, *controllers))
        lines += [_delegate(place.cgroup_of(path), "+io") for path in old]
    for directory in inner:
        lines.append(run("mkdir", directory))
        if spec.cgroup == "v2":
            lines.append(_delegate(directory, *controllers))
    if leaves:
        lines.append(run("mkdir", *(place.cgroup_of(path) for path in leaves)))
    if uncounted := [tenant for tenant in processes.sampled(spec) if throttles(spec)]:
        lines.append(_Line.UNCOUNTED)
        limits = (f"{place.cgroup_of(t.cgroup)}/blkio.throttle.read_bps_device" for t in uncounted)
        lines += [write(ForDevice(str(_NO_LIMIT)), path) for path in limits]
    return lines


def _delegate(cgroup: str, *controllers: str) -> Statement:
    return run("echo", *controllers, To(f"{cgroup}/cgroup.subtree_control"))


def _weight_settings(spec: RunSpec, place: Place) -> Iterator[Setting]:
    for weight_file in _weight_files(spec):
        weights = {group.path: group.weight for group in spec.groups}
        weights |= {tenant.cgroup: tenant.weight for tenant in spec.tenants}
        for path, weight in weights.items():
            yield Setting(f"{place.cgroup_of(path)}/{weight_file}", str(weight), "weight")
    for tenant in spec.tenants:
        directory = place.cgroup_of(tenant.cgroup)
        if limit := tenant.workload.memory:
            high = limit * _HIGH_EIGHTHS // 8 // PHYSICAL_BLOCK * PHYSICAL_BLOCK
            yield Setting(f"{directory}/memory.high", str(high))
            yield Setting(f"{directory}/memory.max", str(limit))
        of_schedulers = [
            setting
            for scheduler in schedulers_of(spec)
            for setting in kind_of(scheduler).tenant_settings(
                scheduler, tenant.name, directory, spec.cgroup
            )
        ]
        yield from dict.fromkeys(of_schedulers)


def _weight_files(spec: RunSpec) -> list[str]:
    """Return the files for a cgroup's weight, of all schedulers of the run."""
    files = (kind_of(scheduler).weight_files.get(spec.cgroup) for scheduler in schedulers_of(spec))
    return list(dict.fromkeys(file for file in files if file))


def _write(settings: Iterable[Setting]) -> list[Statement]:
    return [write(setting.value, setting.path) for setting in settings]


def _read_back(settings: Iterable[Setting], place: Place, file: str = "knobs") -> Statement:
    # One grep for many files: in the guest a process costs more than a thousand requests.
    files = shell.rows(setting.path for setting in settings)
    return run("grep", "-H", "", *files, Syntax.BREAK, To(f"{place.run}/{file}"))


def _run(spec: RunSpec, align: Sequence[Statement], place: Place) -> list[Statement]:
    start, wait = write(1, f"{blkload.ROOT}/start"), blkload.wait()
    events = list(_events(spec, place))
    if not processes.has_processes(spec):
        return [*align, start, *([*align, *events] if events else []), wait]
    if not any(tenant.workload.program == "blkload" for tenant in spec.tenants):
        return processes.run_together(spec, place, [], events, [])
    # The barrier of blkload's tenants is at a whole second.
    return processes.run_together(spec, place, [*align, start, ALIGN], events, [wait])


def _counted(load: list[Statement], place: Place) -> list[Statement]:
    """Return the load, with records of the processors' busy time before and after it."""
    return [
        run("head", "-n", "1", PROCESSORS, To(f"{place.run}/{BEGIN}")),
        *load,
        run("head", "-n", "1", PROCESSORS, To(f"{place.run}/{END}")),
    ]


def _events(spec: RunSpec, place: Place) -> Iterator[Statement]:
    cgroups = {tenant.name: tenant.cgroup for tenant in spec.tenants}
    files = {id(event): switch_file(i) for i, event in enumerate(_switches(spec))}
    now = 0
    events: list[Event | DeviceEvent | SchedulerEvent] = [*spec.events, *spec.device_events]
    events += spec.scheduler_events
    for event in sorted(events, key=lambda event: event.at_ns):
        yield run("sleep", f"{(event.at_ns - now) / 1e9:.9f}")
        now = event.at_ns
        match event:
            case Event():
                cgroup = place.cgroup_of(cgroups[event.tenant])
                for weight_file in _weight_files(spec):
                    yield write(event.weight, f"{cgroup}/{weight_file}")
            case DeviceEvent():
                for disk in target.disks(spec, place):
                    directory = _device_dir(spec.device, disk)
                    yield from (write(v, f"{directory}/{k}") for k, v in event.attributes.items())
            case SchedulerEvent():
                settings = _switch_settings(event, spec, place)
                yield from _write(settings)
                yield _read_back(settings, place, files[id(event)])


def _collect(spec: RunSpec, place: Place) -> list[Statement]:
    history = run("cat", f"{SCHED}/history", To(f"{RUN_DIR}/predictions"))
    return [
        run("cat", blkload.RESULTS, To(f"{RUN_DIR}/results")),
        *([history] if predicts(spec) else []),
        _charges(spec, place),
    ]


def _charges(spec: RunSpec, place: Place) -> Statement:
    """Return the statement that saves the charges to the tenants' cgroups. On a machine with other
    devices, also the disk's number."""
    files = shell.rows(charged_files(spec, place))
    read = run("grep", "-H", "", *files, Syntax.BREAK, To(f"{place.run}/charged"))
    # A cgroup without I/O has an empty file.
    return fill(_Line.IF_ANY, read=read)


def charged_files(spec: RunSpec, place: Place) -> list[str]:
    """Return the files for the charges: first the file with the device's number, if it is
    needed."""
    number = target.number_file(spec, place)
    charged = [file for tenant in spec.tenants for file in charge_files(tenant, spec, place)]
    return [number, *charged] if number else charged
