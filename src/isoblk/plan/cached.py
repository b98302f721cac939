# SPDX-License-Identifier: GPL-2.0-only
"""The parts of a plan that concern a cache: the SSD, the cache before and after it is attached, the
placement of tenants' data, unmeasured passes, and counters."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from isoblk.caches.base import SECTOR
from isoblk.metrics.cached import FIGURES
from isoblk.plan import filesystem, processes
from isoblk.plan.stacked import regions, zeros
from isoblk.plan.target import PLACED, SSD, device, of, parts
from isoblk.programs import blkload
from isoblk.run.extent import cached_bytes
from isoblk.run.record import CacheReport
from isoblk.run.seeds import pass_seed
from isoblk.run.setting import Setting, parse_read_back
from isoblk.run.shell import DM_MAJOR, Form, Here, Statement, Syntax, fill, rows, run, write
from isoblk.run.spec import Caching, RunSpec
from isoblk.run.tier import Place

COUNTERS = "cache"
"""File in the run's directory: the counters before and after."""

_STAT = {"reads": 0, "read_bytes": 2, "writes": 4, "write_bytes": 6}
_STATUS = "status"
# Time after which requests in flight have completed and counters are up to date. In virtual time.
_SETTLE_S = 20


_REMOVE_PLACED = run("dmsetup", "remove", PLACED)


class _Line(Form):
    PASS = "# Pass {number} of {passes}"
    COUNTERS = "counters() {\n  {body}\n} >> {file}"
    WHEN = 'echo "$1:"'
    STATUS = f'echo "{_STATUS}:$({{status}})"'


def partitions(caching: Caching, place: Place) -> list[Statement]:
    """Return the commands that make the used partitions of both disks."""
    made = parts(caching, place)
    lines: list[Statement] = [run("addpart", f"/dev/{place.disk}", 1, 0, made.origin_sectors)]
    start = 0
    for number, size in enumerate(made.ssd_bytes, 1):
        lines.append(run("addpart", f"/dev/{SSD}", number, start // SECTOR, size // SECTOR))
        start += size
    return lines


def bare(spec: RunSpec, place: Place) -> list[Statement]:
    """Return the commands that make the device without the SSD, and the files of the run, if these
    must be made before it is attached."""
    caching = spec.caching
    assert caching is not None
    lines, path = of(caching).bare(caching.options, parts(caching, place))
    if caching.files == "read":
        return [*lines, *zeros(spec, path)]
    if spec.filesystem is None or caching.files == "cache":
        return lines
    scattered = caching.placement == "scattered"
    return [
        *lines,
        *(_scatter(spec, path, place) if scattered else []),
        *filesystem.make_on(spec.filesystem, place, f"/dev/mapper/{PLACED}" if scattered else path),
        *processes.prepare(spec, place),
        *([_REMOVE_PLACED] if scattered else []),
    ]


def attach(spec: RunSpec, set_up: Sequence[Statement], place: Place) -> list[Statement]:
    """Return the commands that attach the SSD, configure the cache (set_up), and mount the file
    system with an empty page cache."""
    caching = spec.caching
    assert caching is not None
    made = parts(caching, place)
    cache = of(caching)
    lines = [*cache.attach(caching.options, made), *set_up]
    if caching.placement == "scattered":
        lines += _scatter(spec, cache.device(made), place)
    path = device(spec, place)
    if spec.filesystem is None:
        if caching.files == "origin":
            return lines
        return [*lines, *(zeros if caching.files == "cache" else _read)(spec, path)]
    if caching.files == "cache":
        lines += filesystem.make_on(spec.filesystem, place, path)
        lines += [*processes.prepare(spec, place), filesystem.DROP_CACHES]
    return [*lines, filesystem.mount(spec.filesystem, place, path)]


def _read(spec: RunSpec, path: str) -> list[Statement]:
    """Return the commands that read the tenants' regions sequentially."""
    how = ("iflag=direct,skip_bytes,count_bytes", Syntax.QUIET)
    read = ("dd", f"if={path}", "of=/dev/null", "bs=1M")
    return [run(*read, f"skip={offset}", f"count={size}", *how) for offset, size in regions(spec)]


def settings(caching: Caching, place: Place) -> tuple[Setting, ...]:
    """Return the settings of the cache."""
    return tuple(of(caching).settings(caching.options, parts(caching, place)))


def read_only(caching: Caching, place: Place) -> tuple[Setting, ...]:
    """Return further values of the cache to read back."""
    return tuple(of(caching).tables(caching.options, parts(caching, place)))


def _scatter(spec: RunSpec, path: str, place: Place) -> list[Statement]:
    """Return the commands that make a device of pieces in random places of another: ordered by the
    hashes of their numbers and the run's seed."""
    caching = spec.caching
    assert caching is not None
    piece = caching.piece // SECTOR
    # bcache's device is smaller than its origin by less than a piece.
    places = cached_bytes(caching) // caching.piece - 1
    chosen = sorted(
        range(places), key=lambda n: hashlib.sha256(f"{spec.seed} {n}".encode()).digest()
    )[: caching.working_set // caching.piece]
    table = [f"{i * piece} {piece} linear {path} {n * piece}" for i, n in enumerate(chosen)]
    return [Here(run("dmsetup", "create", PLACED, "--major", DM_MAJOR, "--minor", 1), tuple(table))]


def passes(spec: RunSpec, place: Place) -> Iterator[Statement]:
    """Yield the commands of the unmeasured passes, charged to the root cgroup; with files, also of
    dropping the page cache afterwards."""
    caching = spec.caching
    assert caching is not None
    loads = [t for t in spec.tenants if t.workload.program == "blkload"]
    directories = {t.name: f"{blkload.ROOT}/{t.name}" for t in loads}
    for before in range(caching.passes - 1, 0, -1):
        yield fill(_Line.PASS, number=caching.passes - before, passes=caching.passes)
        seeded = [
            msgspec.structs.replace(
                t,
                workload=msgspec.structs.replace(
                    t.workload, randseed=pass_seed(t.workload.randseed, -before)
                ),
            )
            for t in spec.tenants
        ]
        for tenant in seeded:
            if tenant.name in directories:
                yield write(tenant.workload.randseed, f"{directories[tenant.name]}/randseed")
                if before == caching.passes - 1:
                    yield write("/", f"{directories[tenant.name]}/cgroup")
        if loads:
            yield write(1, f"{blkload.ROOT}/start")
        at_once = list(processes.unmeasured(msgspec.structs.replace(spec, tenants=seeded), place))
        yield from at_once
        if loads:
            yield blkload.wait()
        yield from filesystem.drop_pages(spec, place, device(spec, place))
    if caching.passes > 1:
        for tenant in loads:
            yield write(tenant.workload.randseed, f"{directories[tenant.name]}/randseed")
            yield write(f"/{tenant.cgroup}", f"{directories[tenant.name]}/cgroup")


def count_function(caching: Caching, place: Place) -> Statement:
    """Return a shell function that records the counters after all requests have completed."""
    status = of(caching).status()
    body: list[Statement] = [
        run("sleep", _SETTLE_S),
        _Line.WHEN,
        run("grep", "-H", "", *rows(_counted_files(caching, place), Syntax.DEEP_BREAK)),
        *([fill(_Line.STATUS, status=status)] if status else []),
    ]
    return fill(_Line.COUNTERS, body=body, file=f"{place.run}/{COUNTERS}")


def _counted_files(caching: Caching, place: Place) -> list[str]:
    cache, made = of(caching), parts(caching, place)
    blocks = (cache.block(made), made.origin, *made.ssd)
    return [*map(_stat_file, blocks), *cache.counter_files()]


def _stat_file(block: str) -> str:
    return f"/sys/class/block/{block}/stat"


def detach(spec: RunSpec, place: Place) -> list[Statement]:
    """Return the commands that remove the cache."""
    caching = spec.caching
    assert caching is not None
    made = parts(caching, place)
    return [
        *([_REMOVE_PLACED] if caching.placement == "scattered" else []),
        *of(caching).detach(made),
        run("delpart", f"/dev/{place.disk}", 1),
        *(run("delpart", f"/dev/{SSD}", n + 1) for n in range(len(made.ssd))),
    ]


def report(text: str, caching: Caching, place: Place) -> CacheReport:
    """Parse and check the counters.

    Raises:
        ValueError: the text was not written by count_function().
    """
    before, after = (_counted(part, caching, place) for part in _halves(text))
    change = {name: value - before.get(name, 0) for name, value in after.items()}
    cache = of(caching)
    hits, reads = cache.hits(change)
    figures: dict[str, float] = {
        name: float(value) for name, value in change.items() if name in FIGURES
    }
    figures["read_hit_ratio"] = hits / reads if reads else 0.0
    if (bypassed := cache.bypassed(change)) is not None:
        figures["bypassed_bytes"] = float(bypassed)
    return CacheReport(
        before=before,
        after=after,
        figures=figures,
        identities=cache.identities(change, after, caching.options),
    )


def _halves(text: str) -> tuple[str, str]:
    head, found, rest = text.partition("before:\n")
    before, also, after = rest.partition("after:\n")
    if head or not found or not also:
        raise ValueError("no figures of before and after")
    return before, after


def _counted(text: str, caching: Caching, place: Place) -> dict[str, int]:
    read = parse_read_back(text, [*_counted_files(caching, place), _STATUS])
    cache, made = of(caching), parts(caching, place)
    ssd = [_device_counts(read, block) for block in made.ssd]
    found = {
        **_named("top", _device_counts(read, cache.block(made))),
        **_named("origin", _device_counts(read, made.origin)),
        **_named("ssd", {name: sum(one[name] for one in ssd) for name in _STAT}),
        # Excludes metadata, which are not in data blocks.
        **_named("data", ssd[-1]),
    }
    own = {PurePosixPath(path).name: read.get(path, "") for path in cache.counter_files()}
    return found | cache.counters(own, read.get(_STATUS, ""))


def _named(where: str, counts: Mapping[str, int]) -> dict[str, int]:
    return {f"{where}.{name}": value for name, value in counts.items()}


def _device_counts(read: Mapping[str, str], block: str) -> dict[str, int]:
    words = read.get(_stat_file(block), "").split()
    if len(words) < 11:
        raise ValueError(f"no figures of {block}")
    return {
        name: int(words[place]) * (SECTOR if name.endswith("bytes") else 1)
        for name, place in _STAT.items()
    }
