# SPDX-License-Identifier: GPL-2.0-only
"""A fio job file as a study. What a study cannot honour is named, not dropped.

The format is fio's: HOWTO, "Job file format" and "Parameter types".
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isoblk.errors import UserError, printable
from isoblk.files import read_text
from isoblk.run import limits
from isoblk.run.units import format_size, format_time

_DEVICE = "fast"
_SHOWN = 80  # characters of a line
_DEFAULT_RUNTIME_NS = 1_000_000_000
_MODES = frozenset({"read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"})
_DIRECTIONS = {"read": 0, "randread": 0, "write": 1, "randwrite": 1, "trim": 2, "randtrim": 2}

_SYNONYMS = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "fdatasync": "fsync",
}

# They say how fio goes about it, or what it prints, and change nothing that is measured here.
_NO_EFFECT = (
    "name thread time_based group_reporting new_group description eta eta-newline "
    "cgroup_nodelete kb_base unit_base invalidate norandommap randrepeat "
    "allrandrepeat random_generator refill_buffers scramble_buffers zero_buffers "
    "buffer_pattern clocksource gtod_reduce gtod_cpu disable_lat disable_clat "
    "disable_slat disable_bw_measurement clat_percentiles lat_percentiles "
    "slat_percentiles percentile_list significant_figures unified_rw_reporting "
    "write_bw_log write_lat_log write_iops_log write_hist_log log_avg_msec "
    "log_hist_msec log_max_value log_offset log_compression per_job_logs bwavgtime "
    "iopsavgtime status-interval allow_file_create create_on_open create_serialize "
    "fallocate overwrite pre_read iomem mem lockmem"
)
_MEANINGLESS = frozenset(_NO_EFFECT.split())
# They name the place of the data. The study's device takes that place.
_PLACES = frozenset({"filename", "directory", "filename_format", "nrfiles", "openfiles"})
# Engines that wait for each request: their iodepth is 1, whatever the job says.
_SYNCHRONOUS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})
_TRUE = frozenset({"", "1", "true", "yes"})

_FACTORS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_NUMBER = re.compile(r"(0x[0-9a-f]+|\d+)(?:([kmgtp]?)(i?)(b?))", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m|s|ms|msec|us|usec)?", re.IGNORECASE)
_TIME_NS = {
    "d": 86_400 * 10**9,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "msec": 10**6,
    "us": 10**3,
    "usec": 10**3,
}


@dataclass(frozen=True)
class _Option:
    value: str
    where: str  # FILE:LINE

    def bad(self, name: str, allowed: str) -> UserError:
        return UserError(f"{name}={self.value}", where=self.where, next=f"allowed: {allowed}")


_Section = tuple[str, dict[str, _Option]]


def from_fio(path: Path) -> tuple[str, list[str]]:
    """The study that a fio job file describes.

    Every section but [global] becomes a tenant; the device is the preset "fast", or, if a
    job verifies, a null_blk that keeps its data.

    Returns:
        The study as TOML, with the warnings as comments on top, and the warnings: one for
        each option that cannot be honoured, with its place.

    Raises:
        UserError: the file cannot be read, is malformed, or has no job; names FILE:LINE.
    """
    jobs = _jobs(path)
    if not jobs:
        raise UserError("no job", where=str(path), next="a job is a section other than [global]")
    warnings: list[str] = []
    names: set[str] = set()
    cgroups: set[str] = set()
    tenants = []
    for section, options in jobs:
        tenant = _Import(section, options, warnings).tenant()
        tenant.name = _unique(tenant.name, names)
        if tenant.cgroup in cgroups:
            warnings.append(
                f"job {section!r}: cgroup={tenant.cgroup} is taken; {tenant.name!r} has its own"
            )
            tenant.cgroup = ""
        if tenant.cgroup:
            cgroups.add(tenant.cgroup)
        tenants.append(tenant)
    return _write(path, tenants, warnings), [printable(warning) for warning in warnings]


# ---- the file ------------------------------------------------------------------------


def _lines(path: Path, outer: tuple[Path, ...] = ()) -> Iterator[tuple[str, str]]:
    """Lines without comments, and their places; included files in their places."""
    text = read_text(path, "the job file", next="name a fio job file")
    for number, raw in enumerate(text.splitlines(), start=1):
        line, where = raw.strip(), f"{path}:{number}"
        if not line or line[0] in "#;":
            continue
        if line.startswith("include "):
            inner = path.parent / line.removeprefix("include ").strip()
            if inner in (*outer, path):
                raise UserError("includes itself", where=where, next="remove the include")
            # The job is data from others: what it says is shown, and so is what it includes.
            top = (*outer, path)[0].resolve().parent
            strange = inner.exists() and not inner.is_file()
            if strange or not inner.resolve().is_relative_to(top):
                raise UserError(
                    "includes what is no file in the directory of the job, or below",
                    where=where,
                    next="copy it there, or remove the include",
                )
            yield from _lines(inner, (*outer, path))
        else:
            yield line, where


def _jobs(path: Path) -> list[_Section]:
    """The jobs and their options, those of the [global] sections before them included."""
    shared: dict[str, _Option] = {}
    jobs: list[_Section] = []
    current: dict[str, _Option] | None = None
    for line, where in _lines(path):
        if line.startswith("["):
            name, closed, rest = line[1:].partition("]")
            if not closed or not name.strip() or (rest.strip() and rest.strip()[0] not in "#;"):
                raise UserError(
                    f"malformed section {_shown(line)}", where=where, next="allowed: [NAME]"
                )
            if name.strip().lower() == "global":
                current = shared
            else:
                current = dict(shared)
                jobs.append((name.strip(), current))
            continue
        if current is None:
            raise UserError(
                f"{_shown(line)} before any section",
                where=where,
                next="begin with [global] or [NAME]",
            )
        key, _, value = re.split(r"\s[#;]", line, maxsplit=1)[0].partition("=")
        key = key.strip().lower()
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", key):
            raise UserError(
                f"malformed line {_shown(line)}", where=where, next="allowed: OPTION=VALUE"
            )
        current[_SYNONYMS.get(key, key)] = _Option(value.strip(), where)
    return jobs


def _shown(line: str) -> str:
    """A line in an error, or its beginning."""
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")


def _unique(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return name


# ---- one job -------------------------------------------------------------------------


@dataclass
class _Tenant:
    """A job as a tenant. Times are ns. runtime: after startdelay, warm-up excluded."""

    name: str
    cgroup: str = ""
    weight: int = 100
    fields: dict[str, str | int | bool] = field(default_factory=dict)
    runtime_ns: int = 0
    warmup_ns: int = 0
    startdelay_ns: int = 0
    seed: int | None = None


class _Import:
    """Takes a job's options one by one; what is left over at the end is not honoured."""

    def __init__(self, section: str, options: dict[str, _Option], warnings: list[str]) -> None:
        self._section = section
        self._left = dict(options)
        self._warnings = warnings
        self._base = 1024

    def tenant(self) -> _Tenant:
        tenant = _Tenant(name=self._safe_name())
        self._base_of_units()
        mode = self._mode()
        tenant.fields["rw"] = mode
        self._block_sizes(mode, tenant)
        self._counts(mode, tenant)
        self._times(tenant)
        self._region(tenant)
        self._cgroup(tenant)
        self._engine(tenant)
        self._drop_what_means_nothing()
        for name, option in self._left.items():
            self._warn(option, f"{name}={option.value}" if option.value else name)
        return tenant

    def _warn(self, option: _Option, text: str, why: str = "not honoured") -> None:
        warning = f"{option.where}: {text}: {why}"
        if warning not in self._warnings:  # one of [global] is met once a job
            self._warnings.append(warning)

    def _take(self, name: str) -> _Option | None:
        return self._left.pop(name, None)

    def _safe_name(self) -> str:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", self._section).lstrip("-.")[: limits.NAME_MAX]
        name = name or "job"
        if name in limits.TENANT_RESERVED:
            name = f"job-{name}"
        if name != self._section:
            self._warnings.append(f"job {self._section!r}: the tenant is called {name!r}")
        return name

    # -- values

    def _base_of_units(self) -> None:
        if option := self._left.get("kb_base"):
            if option.value not in ("1000", "1024"):
                raise option.bad("kb_base", "1000, 1024")
            self._base = int(option.value)

    def _number(self, name: str, option: _Option, text: str | None = None) -> int:
        """A number with fio's suffixes: with kb_base=1024 k is 1024 and ki 1000; with 1000 the
        other way round, as SI and IEC have it."""
        text = option.value if text is None else text
        match = _NUMBER.fullmatch(text.strip())
        if match is None:
            raise option.bad(name, "a number, or one with k, m, g, t")
        base = (1000 if self._base == 1024 else 1024) if match[3] else self._base
        if not match[2]:
            base = 1
        factor: int = base ** _FACTORS[match[2].lower()]
        digits = match[1].lower()
        # A zero in front is decimal to fio: 08 is 8.
        return int(digits, 16 if digits.startswith("0x") else 10) * factor

    def _time(self, name: str, option: _Option, unit: str) -> int:
        match = _TIME.fullmatch(option.value)
        if match is None:
            raise option.bad(name, "a time, as 30, 500ms or 5m")
        return round(float(match[1]) * _TIME_NS[(match[2] or unit).lower()])

    def _true(self, option: _Option) -> bool:
        return option.value.lower() in _TRUE

    # -- options

    def _mode(self) -> str:
        option = self._take("rw")
        if option is None:
            return "read"
        mode, colon, _ = option.value.partition(":")
        mode = {"readwrite": "rw"}.get(mode, mode)
        if mode not in _MODES:
            raise option.bad("rw", ", ".join(sorted(_MODES)))
        if colon:
            self._warn(option, f"rw={option.value}", "what follows the colon is not honoured")
        return mode

    def _block_sizes(self, mode: str, tenant: _Tenant) -> None:
        """fio gives reads, writes and trims a size each; a tenant has one for all."""
        taken = [(name, self._take(name)) for name in ("bs", "bsrange", "bssplit")]
        given = [(name, option) for name, option in taken if option is not None]
        for name, option in given[:-1]:
            self._warn(option, f"{name}={option.value}", f"{given[-1][0]} takes its place")
        if not given:
            return
        name, option = given[-1]
        parts = option.value.split(",")
        default = "4k" if name == "bs" else ""
        reads = parts[0] or default
        writes = parts[1] or default if len(parts) > 1 else reads
        trims = parts[2] or default if len(parts) > 2 else writes
        chosen = reads
        if mode in _DIRECTIONS:
            chosen = (reads, writes, trims)[_DIRECTIONS[mode]]
        elif reads != writes:
            self._warn(
                option, f"{name}={option.value}", f"{reads} is used for reads and writes alike"
            )
        if not chosen:
            return
        if name == "bs":
            tenant.fields["bs"] = format_size(self._number(name, option, chosen))
        elif name == "bsrange":
            low, _, high = chosen.partition("-")
            sizes = (self._number(name, option, text) for text in (low, high))
            tenant.fields["bsrange"] = "-".join(format_size(size) for size in sizes)
        else:
            tenant.fields["bssplit"] = self._split(option, chosen)

    def _split(self, option: _Option, text: str) -> str:
        """bssplit. Sizes without a percentage divide what the others leave, as fio says."""
        sizes: list[tuple[int, int | None]] = []
        for part in text.split(":"):
            size, _, percent = part.partition("/")
            if percent and not percent.isdecimal():
                raise option.bad("bssplit", "SIZE/PERCENT:SIZE/PERCENT")
            sizes.append((self._number("bssplit", option, size), int(percent) if percent else None))
        left = 100 - sum(percent or 0 for _, percent in sizes)
        blanks = [size for size, percent in sizes if percent is None]
        shares = iter([left // len(blanks) + (i < left % len(blanks)) for i in range(len(blanks))])
        return ":".join(
            f"{format_size(size)}/{next(shares) if percent is None else percent}"
            for size, percent in sizes
        )

    def _counts(self, mode: str, tenant: _Tenant) -> None:
        for name in ("iodepth", "numjobs", "number_ios", "thinktime_blocks", "fsync"):
            if option := self._take(name):
                tenant.fields[name] = self._number(name, option)
        self._rate(mode, tenant)
        reads = self._take("rwmixread")
        writes = self._take("rwmixwrite")
        if reads:
            tenant.fields["rwmixread"] = self._number("rwmixread", reads)
        elif writes:
            tenant.fields["rwmixread"] = 100 - self._number("rwmixwrite", writes)
        if option := self._take("random_distribution"):
            if option.value.split(":")[0] in ("random", "zipf", "pareto"):
                tenant.fields["random_distribution"] = option.value
            else:
                self._warn(option, f"random_distribution={option.value}")
        self._priority(tenant)
        if option := self._take("randseed"):
            tenant.seed = self._number("randseed", option)
        if (option := self._take("verify")) and option.value not in ("0", "null"):
            tenant.fields["verify"] = True
            self._warn(
                option,
                f"verify={option.value}",
                "verify = true checks each block's address and generation instead",
            )

    def _priority(self, tenant: _Tenant) -> None:
        """prioclass and prio; fio's class is best-effort if only prio is given."""
        chosen: dict[str, int] = {}
        for name, most in (("prioclass", 3), ("prio", 7)):
            if option := self._take(name):
                chosen[name] = self._number(name, option)
                if chosen[name] > most:
                    raise option.bad(name, f"0..{most}")
        if chosen:
            kind = ("none", "rt", "be", "idle")[chosen.get("prioclass", 2)]
            level = f"/{chosen.get('prio', 0)}" if kind in ("rt", "be") else ""
            tenant.fields["ioprio"] = kind + level

    def _rate(self, mode: str, tenant: _Tenant) -> None:
        if option := self._take("rate_iops"):
            rates = {self._number("rate_iops", option, t) for t in option.value.split(",") if t}
            if len(rates) != 1:
                self._warn(option, f"rate_iops={option.value}")
            elif mode in _DIRECTIONS:
                tenant.fields["rate_iops"] = rates.pop()
            else:
                # fio's limit is one for each direction.
                both = tenant.fields["rate_iops"] = 2 * rates.pop()
                why = f"{both} for reads and writes together"
                self._warn(option, f"rate_iops={option.value}", why)
        if option := self._take("rate_process"):
            if option.value not in ("linear", "poisson"):
                raise option.bad("rate_process", "linear, poisson")
            tenant.fields["rate_process"] = option.value

    def _times(self, tenant: _Tenant) -> None:
        if option := self._take("thinktime"):
            tenant.fields["thinktime"] = format_time(self._time("thinktime", option, "us"))
        if option := self._take("runtime"):
            tenant.runtime_ns = self._time("runtime", option, "s")
        if option := self._take("ramp_time"):
            tenant.warmup_ns = self._time("ramp_time", option, "s")
        if option := self._take("startdelay"):
            if "-" in option.value:
                self._warn(option, f"startdelay={option.value}", "a range is not honoured")
            else:
                tenant.startdelay_ns = self._time("startdelay", option, "s")

    def _region(self, tenant: _Tenant) -> None:
        based = self._left.get("time_based")
        for name in ("offset", "size"):
            option = self._take(name)
            if option is None:
                continue
            if option.value.endswith("%"):
                if (name, option.value) != ("size", "100%"):
                    self._warn(option, f"{name}={option.value}", "a percentage is not honoured")
            else:
                tenant.fields[name] = format_size(self._number(name, option))
            if name == "size" and not (based and self._true(based)):
                self._warn(
                    option,
                    f"size={option.value}",
                    "without time_based fio would stop after that much; here a job goes on "
                    "to the end of its runtime",
                )

    def _cgroup(self, tenant: _Tenant) -> None:
        if option := self._take("cgroup"):
            tenant.cgroup = option.value.strip("/")
        if option := self._take("cgroup_weight"):
            tenant.weight = self._number("cgroup_weight", option)

    def _engine(self, tenant: _Tenant) -> None:
        engine = self._take("ioengine")
        depth = tenant.fields.get("iodepth", 1)
        if engine and engine.value in _SYNCHRONOUS and depth != 1:
            tenant.fields["iodepth"] = 1
            self._warn(
                engine,
                f"ioengine={engine.value}",
                f"it never has more than one request in flight: iodepth {depth} becomes 1",
            )
        direct, buffered = self._take("direct"), self._take("buffered")
        for option, text, cached in (
            (direct, "direct", direct is not None and not self._true(direct)),
            (buffered, "buffered", buffered is not None and self._true(buffered)),
        ):
            if option and cached:
                self._warn(option, f"{text}={option.value}", "I/O goes to the device directly")

    def _drop_what_means_nothing(self) -> None:
        for name in list(self._left):
            if name in _PLACES:
                place = self._left.pop(name)
                self._warn(
                    place, f"{name}={place.value}", f"the study's device is used ({_DEVICE})"
                )
            elif name in _MEANINGLESS:
                del self._left[name]
        for name in ("stonewall", "wait_for_previous"):
            if (option := self._take(name)) and self._true(option):
                self._warn(option, name, "not honoured: all tenants start together")


# ---- the study -----------------------------------------------------------------------


def _write(path: Path, tenants: list[_Tenant], warnings: list[str]) -> str:
    warmup = max(tenant.warmup_ns for tenant in tenants)
    runtime = max(tenant.startdelay_ns + tenant.runtime_ns for tenant in tenants)
    if any(tenant.runtime_ns == 0 for tenant in tenants):
        if runtime == 0:
            runtime = _DEFAULT_RUNTIME_NS
        warnings.append(f"a job has no runtime: it runs for the run's {format_time(runtime)}")
    if len({tenant.warmup_ns for tenant in tenants}) > 1:
        warnings.append(f"ramp_time differs between jobs: {format_time(warmup)} for all")
    seeds = {tenant.seed for tenant in tenants if tenant.seed is not None}
    if len(seeds) > 1:
        warnings.append(f"randseed differs between jobs: run.seed is {min(seeds)}")
    lines = [f"# Imported from the fio job file {_printable(path.name)}."]
    lines += [f"# {_printable(warning)}" for warning in warnings]
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).lstrip("-.")[: limits.NAME_MAX]
    lines += [
        "",
        f"name = {_value(name or 'fio')}",
        f"title = {_value(f'fio job {path.name}')}",
        _device(tenants),
        "",
        "[run]",
        f"warmup = {_value(format_time(warmup))}",
        f"runtime = {_value(format_time(runtime))}",
    ]
    if window := _window(warmup, runtime):
        lines.append(f"window = {_value(window)}")
    if seeds:
        lines.append(f"seed = {min(seeds)}")
    for tenant in tenants:
        lines += ["", "[[tenant]]", f"name = {_value(tenant.name)}"]
        if tenant.cgroup and tenant.cgroup != tenant.name:
            lines.append(f"cgroup = {_value(tenant.cgroup)}")
        lines.append(f"weight = {tenant.weight}")
        lines += [f"{key} = {_value(value)}" for key, value in tenant.fields.items()]
        if tenant.startdelay_ns:
            lines.append(f"startdelay = {_value(format_time(tenant.startdelay_ns))}")
        if tenant.runtime_ns and tenant.startdelay_ns + tenant.runtime_ns != runtime:
            # A tenant's runtime includes the warm-up, fio's excludes ramp_time.
            own = format_time(warmup + tenant.runtime_ns)
            lines.append(f"runtime = {_value(own)}")
    lines += ["", "[matrix]", 'scheduler = ["none", "mq-deadline", "kyber", "bfq"]', ""]
    return "\n".join(lines)


def _window(warmup: int, runtime: int) -> str:
    """Nothing if the default of 100 ms divides both times, else the first width that does."""
    for ms in (100, 50, 20, 10, 5, 2, 1):
        if warmup % (ms * 1_000_000) == 0 and runtime % (ms * 1_000_000) == 0:
            return "" if ms == 100 else f"{ms}ms"
    return "1ms"


def _printable(text: str) -> str:
    """TOML allows no control characters, in comments neither."""
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))


def _device(tenants: list[_Tenant]) -> str:
    if any("verify" in tenant.fields for tenant in tenants):
        # Only a disk that keeps what is written can be verified.
        return 'device = { driver = "null_blk", memory_backed = true }'
    return f"device = {_value(_DEVICE)}"


def _value(value: str | int | bool) -> str:
    """A TOML value: its strings take the same escapes as JSON's."""
    return json.dumps(_printable(value) if isinstance(value, str) else value, ensure_ascii=False)
