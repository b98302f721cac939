# SPDX-License-Identifier: GPL-2.0-only
"""Convert a fio job file to a study. Options that a study does not support are reported.

The format is fio's: HOWTO, "Job file format" and "Parameter types".
"""

import re
from pathlib import Path

from isoblk.errors import UserError, printable
from isoblk.run import limits
from isoblk.run.limits import Range
from isoblk.run.units import format_size, format_time
from isoblk.study.fiofile import Option, read_jobs
from isoblk.study.fiostudy import Extent, FioTenant, write_study

_MODES = frozenset({"read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"})
_DIRECTIONS = {"read": 0, "randread": 0, "write": 1, "randwrite": 1, "trim": 2, "randtrim": 2}

# Options of fio's operation or output, without effect on the measured load.
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
# Options that name the place of the data, which the study's device replaces.
_PLACES = frozenset({"filename", "directory", "filename_format", "nrfiles", "openfiles"})
# Engines that wait for each request: their iodepth is always 1.
_SYNCHRONOUS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})
_TRUE = frozenset({"", "1", "true", "yes"})

_COUNTS = {
    "iodepth": limits.IODEPTH,
    "numjobs": limits.NUMJOBS,
    "number_ios": limits.COUNTER,
    "thinktime_blocks": Range(1, limits.COUNTER.high),
    "fsync": limits.COUNTER,
}

_FACTORS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
# Within what int() and float() accept.
_NUMBER = re.compile(r"(0x[0-9a-f]{1,30}|\d{1,30})(?:([kmgtp]?)(i?)(b?))", re.IGNORECASE)
_TIME = re.compile(r"(\d{1,30}(?:\.\d+)?)\s*(d|h|m|s|ms|msec|us|usec)?", re.IGNORECASE)
_PERCENT = re.compile(r"[0-9]{1,9}")
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


def from_fio(path: Path) -> tuple[str, list[str]]:
    """Return the study of a fio job file.

    Every section except [global] becomes a tenant, under the kernel's schedulers and isoblk's. The
    device is a drive's preset or, if a job verifies, a null_blk that keeps its data.

    Returns:
        The study as TOML, with the warnings as comments on top; and the warnings, one for each
            unsupported option, with its place.

    Raises:
        UserError: the file cannot be read, is malformed, or has no job; names FILE:LINE.
    """
    jobs = read_jobs(path)
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
    return write_study(path, tenants, warnings), [printable(warning) for warning in warnings]


def _unique(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return name


# ---- one job -------------------------------------------------------------------------


class _Import:
    """Consume a job's options; the rest at the end is unsupported."""

    def __init__(self, section: str, options: dict[str, Option], warnings: list[str]) -> None:
        self._section = section
        self._left = dict(options)
        self._warnings = warnings
        self._base = 1024
        self._mean_size: float = 4096  # of a request, bytes
        self._mix: int | None = None  # percentage of reads in the rates

    def tenant(self) -> FioTenant:
        tenant = FioTenant(name=self._safe_name())
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

    def _warn(self, option: Option, text: str, why: str = "not honoured") -> None:
        warning = f"{option.where}: {text}: {why}"
        if warning not in self._warnings:  # an option of [global] recurs in each job
            self._warnings.append(warning)

    def _take(self, name: str) -> Option | None:
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

    def _number(self, name: str, option: Option, text: str | None = None) -> int:
        """Parse a number with fio's suffixes: with kb_base=1024, k is 1024 and ki 1000; with 1000,
        k is 1000 and ki 1024, as in SI and IEC."""
        text = option.value if text is None else text
        match = _NUMBER.fullmatch(text.strip())
        if match is None:
            raise option.bad(name, "a number, or one with k, m, g, t")
        base = (1000 if self._base == 1024 else 1024) if match[3] else self._base
        if not match[2]:
            base = 1
        factor: int = base ** _FACTORS[match[2].lower()]
        digits = match[1].lower()
        # fio reads a leading zero as decimal: 08 is 8.
        return int(digits, 16 if digits.startswith("0x") else 10) * factor

    def _time(self, name: str, option: Option, unit: str) -> int:
        match = _TIME.fullmatch(option.value)
        if match is None:
            raise option.bad(name, "a time, as 30, 500ms or 5m")
        return round(float(match[1]) * _TIME_NS[(match[2] or unit).lower()])

    def _true(self, option: Option) -> bool:
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
            self._warn(option, f"rw={option.value}", "the part after the colon is not supported")
        return mode

    def _block_sizes(self, mode: str, tenant: FioTenant) -> None:
        """Convert the block sizes: fio has one each for reads, writes and trims; a tenant has
        one."""
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
            size = self._number(name, option, chosen)
            self._mean_size = max(size, 1)
            tenant.fields["bs"] = format_size(size)
        elif name == "bsrange":
            low, _, high = chosen.partition("-")
            sizes = [self._number(name, option, text) for text in (low, high)]
            self._mean_size = max(sum(sizes) / 2, 1)
            tenant.fields["bsrange"] = "-".join(format_size(size) for size in sizes)
        else:
            tenant.fields["bssplit"] = self._split(option, chosen)

    def _split(self, option: Option, text: str) -> str:
        """Parse bssplit. Sizes without a percentage divide the remainder, as in fio."""
        sizes: list[tuple[int, int | None]] = []
        for part in text.split(":"):
            size, _, percent = part.partition("/")
            if percent and not _PERCENT.fullmatch(percent):
                raise option.bad("bssplit", "SIZE/PERCENT:SIZE/PERCENT")
            sizes.append((self._number("bssplit", option, size), int(percent) if percent else None))
        left = 100 - sum(percent or 0 for _, percent in sizes)
        blanks = [size for size, percent in sizes if percent is None]
        shares = iter([left // len(blanks) + (i < left % len(blanks)) for i in range(len(blanks))])
        split = [(size, next(shares) if one is None else one) for size, one in sizes]
        self._mean_size = max(sum(size * percent for size, percent in split) / 100, 1)
        return ":".join(f"{format_size(size)}/{percent}" for size, percent in split)

    def _counts(self, mode: str, tenant: FioTenant) -> None:
        for name, allowed in _COUNTS.items():
            if option := self._take(name):
                wanted = self._number(name, option)
                tenant.fields[name] = max(allowed.low, min(wanted, allowed.high))
                if wanted > allowed.high:
                    self._warn(option, f"{name}={option.value}", f"at most {allowed.high}")
        self._rate(mode, tenant)
        reads = self._take("rwmixread")
        writes = self._take("rwmixwrite")
        if reads:
            tenant.fields["rwmixread"] = self._number("rwmixread", reads)
        elif writes:
            tenant.fields["rwmixread"] = 100 - self._number("rwmixwrite", writes)
        if self._mix is not None:
            tenant.fields["rwmixread"] = self._mix
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

    def _priority(self, tenant: FioTenant) -> None:
        """Convert prioclass and prio; the class is best-effort if only prio is given."""
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

    def _rate(self, mode: str, tenant: FioTenant) -> None:
        """Convert rates: fio limits each direction, in bytes or requests per second; a tenant has
        one rate for all requests."""
        given = [(name, one) for name in ("rate", "rate_iops") if (one := self._take(name))]
        for name, option in given[:-1]:
            self._warn(option, f"{name}={option.value}", f"{given[-1][0]} takes its place")
        if given:
            name, option = given[-1]
            text = f"{name}={option.value}"
            if wanted := self._one_rate(mode, option, self._rates(name, option), text):
                size = self._mean_size if name == "rate" else 1
                rate = max(1, min(round(wanted / size), limits.COUNTER.high))
                tenant.fields["rate_iops"] = rate
                if abs(rate * size - wanted) > wanted / 100:
                    self._warn(option, text, f"rate_iops = {rate} is not exactly that")
        if process := self._take("rate_process"):
            if process.value not in ("linear", "poisson"):
                raise process.bad("rate_process", "linear, poisson")
            tenant.fields["rate_process"] = process.value

    def _rates(self, name: str, option: Option) -> tuple[int, int, int]:
        """Return the limits of reads, writes and trims; 0 for no limit."""
        parts = [part.strip() for part in option.value.split(",")]
        if len(parts) > len(_DIRECTIONS) // 2 or not any(parts):
            raise option.bad(name, "a number, or READS,WRITES,TRIMS")
        found = [self._number(name, option, part) if part else 0 for part in parts]
        writes = found[1] if len(found) > 1 else found[0]
        return found[0], writes, found[2] if len(found) > 2 else writes

    def _one_rate(self, mode: str, option: Option, rates: tuple[int, int, int], text: str) -> int:
        """Return the limit of a mode; for mixed reads and writes, the sum."""
        if mode in _DIRECTIONS:
            return rates[_DIRECTIONS[mode]]
        reads, writes, _ = rates
        if not reads or not writes:
            if reads or writes:
                self._warn(option, text, "a limit of reads alone, or of writes, is not honoured")
            return 0
        if reads == writes:
            self._warn(option, text, "twice that for reads and writes together")
        else:
            self._mix = max(1, min(round(100 * reads / (reads + writes)), 99))
            self._warn(
                option, text, f"the sum for reads and writes together, {self._mix} % of them reads"
            )
        return reads + writes

    def _times(self, tenant: FioTenant) -> None:
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

    def _region(self, tenant: FioTenant) -> None:
        based = self._left.get("time_based")
        timed = based is not None and self._true(based)
        for name in ("offset", "size", "io_size"):
            option = self._take(name)
            if option is not None:
                tenant.region[name] = self._extent(name, option)
                if name == "size" and not (timed or "io_size" in self._left):
                    self._warn(
                        option,
                        f"size={option.value}",
                        "without time_based fio would stop after that much; here a job goes on "
                        "to the end of its runtime",
                    )
        tenant.mean_size = self._mean_size
        if timed:  # at the end of the region fio starts again
            tenant.region.pop("io_size", None)

    def _extent(self, name: str, option: Option) -> Extent:
        if not option.value.endswith("%"):
            return Extent(self._number(name, option))
        text = option.value[:-1].strip()
        if not _PERCENT.fullmatch(text) or int(text) not in limits.PERCENT:
            raise option.bad(name, "a size, or 0%..100%")
        return Extent(int(text), percent=True)

    def _cgroup(self, tenant: FioTenant) -> None:
        if option := self._take("cgroup"):
            tenant.cgroup = option.value.strip("/")
        if option := self._take("cgroup_weight"):
            tenant.weight = self._number("cgroup_weight", option)

    def _engine(self, tenant: FioTenant) -> None:
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
                self._warn(place, f"{name}={place.value}", "the study's device is used")
            elif name in _MEANINGLESS:
                del self._left[name]
        for name in ("stonewall", "wait_for_previous"):
            if (option := self._take(name)) and self._true(option):
                self._warn(option, name, "not honoured: all tenants start together")
