# SPDX-License-Identifier: GPL-2.0-only
"""The tasks of a Dask worker for a campaign: prepare once, then make runs.

Plain `dask worker` imports this module with the first task. The functions take and return bytes,
and do not raise: each result is a Reply.

    $ISOBLK_CACHE/shipped/SHA256/NAME    a file that the campaign sent
    LOCAL/isoblk-TOKEN/runs              runs in progress; LOCAL: Dask's directory of the worker
"""

import errno
import re
import shutil
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from distributed import get_worker

from isoblk.campaign.cluster.order import (
    ANY_NAME,
    Answer,
    Done,
    Failed,
    Item,
    Lacking,
    Order,
    Ready,
    Reply,
    Stopped,
    Unfit,
    difference,
    digest_of,
    encode,
)
from isoblk.campaign.cluster.parcel import pack
from isoblk.campaign.execute import Bench, DiskFullError, execute, make_job
from isoblk.campaign.trial import try_out
from isoblk.errors import IsoblkError, UserError
from isoblk.files import write_atomically
from isoblk.kernel import Kernel
from isoblk.kernel.tools import install_command, missing
from isoblk.machine import Machine, StoppedError
from isoblk.machine.uml import Uml
from isoblk.paths import cache_dir
from isoblk.programs.blkload import trace_file
from isoblk.programs.registry import program_file
from isoblk.result.store import run_dir
from isoblk.run.spec import RunSpec
from isoblk.run.tier import UML

_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"(build/)?\w[\w.-]*")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class _LackingError(Exception):
    """Files are missing on this machine."""

    def __init__(self, items: list[Item]) -> None:
        self.items = items


def prepare(theirs: Mapping[str, str], order: bytes, contents: Mapping[str, bytes]) -> bytes:
    """Get all that the runs of a campaign need, and try out whether a guest runs.

    Args:
        theirs: the campaign's software().
        order: an Order.
        contents: files of it that this worker lacked, compressed, by their SHA-256.
    """
    address, scratch = _place_of_worker()
    return encode(Reply(address, _prepare(theirs, order, contents, scratch)))


def make(theirs: Mapping[str, str], order: bytes, spec: bytes) -> bytes:
    """Make a run.

    Args:
        theirs: the campaign's software().
        order: an Order.
        spec: a RunSpec.
    """
    address, scratch = _place_of_worker()
    return encode(Reply(address, _make(theirs, order, spec, scratch)))


def stop(order: bytes, dask_worker: Any = None) -> None:
    """Stop the runs of a campaign, and refuse new ones. Not a task: Dask calls it concurrently with
    them.

    Args:
        order: an Order.
        dask_worker: set by Dask, which looks for this name.
    """
    # A worker that was never prepared has no bench.
    with suppress(_LackingError, IsoblkError):
        machine = _bench(order, Path(dask_worker.local_directory)).machine
        if isinstance(machine, Uml):
            machine.stop()


def content(data: bytes) -> bytes:
    """Return a file's content. As a task, so that Dask copies it from worker to worker, and runs it
    again if the only worker with the result dies."""
    return data


def _place_of_worker() -> tuple[str, Path]:
    """Return the address of the worker that executes this, and its directory."""
    worker = get_worker()
    return worker.address, Path(worker.local_directory)


def _prepare(
    theirs: Mapping[str, str], order: bytes, contents: Mapping[str, bytes], scratch: Path
) -> Answer:
    if wrong := difference(theirs):
        return _other_software(wrong, theirs)
    decoded = msgspec.msgpack.decode(order, type=Order)
    try:
        for item in decoded.items:
            if item.sha256 in contents:
                _keep(item, contents[item.sha256])
        if absent := _absent_programs(decoded):
            return absent
        bench = _bench(order, scratch)
        directory = _results(scratch, order)
        directory.mkdir(parents=True, exist_ok=True)
        try_out(bench, directory)
    except _LackingError as lacking:
        return Lacking([item.sha256 for item in lacking.items])
    except OSError as error:
        return _of_disk(error, scratch)
    except IsoblkError as error:
        return _disk_full(scratch) if isinstance(error, DiskFullError) else _unfit(error)
    return Ready()


def _make(theirs: Mapping[str, str], order: bytes, spec: bytes, scratch: Path) -> Answer:
    if wrong := difference(theirs):
        return _other_software(wrong, theirs)
    try:
        bench = _bench(order, scratch)
    except _LackingError as lacking:
        return Lacking([item.sha256 for item in lacking.items])
    planned = msgspec.msgpack.decode(spec, type=RunSpec)
    return _made(planned, bench, _results(scratch, order))


def _results(scratch: Path, order: bytes) -> Path:
    return scratch / f"isoblk-{msgspec.msgpack.decode(order, type=Order).token}"


def _made(spec: RunSpec, bench: Bench, results: Path) -> Answer:
    job = make_job(spec, bench.kernel.key, bench.modules_key)
    final = run_dir(results, job.id)
    failed = final.with_name(f"{job.id}.failed")
    try:
        return Done(pack(execute(job, bench, results).dir))
    except StoppedError:
        return Stopped()
    except DiskFullError:
        return _disk_full(results)
    except UserError as error:
        # The machine does not permit runs, as checked before the first one.
        return _unfit(error)
    except IsoblkError as error:
        return _failed(error, results, failed)
    except OSError as error:
        return _of_disk(error, results)
    finally:
        # The result is in the reply, and making the run again gives the same.
        for directory in (final, failed):
            shutil.rmtree(directory, ignore_errors=True)


def _unfit(error: IsoblkError) -> Unfit:
    return Unfit(
        cause=f"{error.where}: {error.cause}" if error.where else error.cause, next=error.next
    )


def _failed(error: IsoblkError, results: Path, left: Path) -> Failed:
    packed = b""
    with suppress(IsoblkError, OSError):
        packed = pack(left)
    # The campaign moves the files.
    cause, where = (text.replace(f"{results}/", "") for text in (error.cause, error.where))
    return Failed(cause=cause, where=where, next=error.next, left=packed)


def _other_software(wrong: str, theirs: Mapping[str, str]) -> Unfit:
    return Unfit(
        cause=f"has {wrong}",
        next=f"install the same version there: isoblk {theirs.get('isoblk', '')}, the same Python",
    )


def _of_disk(error: OSError, scratch: Path) -> Unfit:
    where = Path(error.filename) if error.filename else scratch
    if error.errno in _FULL:
        return _disk_full(where)
    return Unfit(cause=f"{where}: {error.strerror}", mistake=False)


def _disk_full(where: Path) -> Unfit:
    return Unfit(cause=f"its disk is full: {where}", next="free some space there", mistake=False)


def _absent_programs(order: Order) -> Unfit | None:
    if absent := missing(order.tools, UML.path):
        return Unfit(
            cause=f"lacks {', '.join(absent)}", next=install_command(list(absent.values()))
        )
    for program in order.programs:
        found = shutil.which(program.name, path=UML.path)
        if found is None:
            return Unfit(cause=f"lacks {program.name}", next="install there the version of here")
        path = Path(found)
        status = path.stat()
        if digest_of(path, status.st_size, status.st_mtime_ns) != program.sha256:
            return Unfit(
                cause=f"has another {program.name} than the campaign",
                next="install there the version of here",
            )
    return None


# One per campaign, with its machine: stop() ends all of its runs.
@lru_cache(maxsize=16)
def _bench(order: bytes, scratch: Path) -> Bench:
    """Return the bench of an order. Raises _LackingError, UserError."""
    decoded = msgspec.msgpack.decode(order, type=Order)
    found: dict[str, Path] = {}
    lacking: list[Item] = []
    for item in decoded.items:
        if (path := _find(item)) is None:
            lacking.append(item)
        else:
            found[item.sha256] = path
    if lacking:
        raise _LackingError(lacking)
    key, release, source, compiler = decoded.kernel
    kernel = Kernel(
        key=key,
        version=release,
        source=source,
        compiler=compiler,
        debug=decoded.debug,
        dir=found[decoded.image.sha256].parents[1],
    )
    modules = {name: found[item.sha256] for name, item in decoded.modules.items()}

    def files(spec: RunSpec) -> Mapping[str, Path]:
        needed: dict[str, Path] = {}
        for tenant in spec.tenants:
            load = tenant.workload
            if load.trace:
                needed[trace_file(load.trace)] = found[load.trace.sha256]
            for one in load.installed:
                if one.sha256 in found:
                    needed[program_file(one.name)] = found[one.sha256]
        return needed

    machine = _machine(kernel, found[decoded.library.sha256], decoded.time_limit_s)
    return Bench(machine, kernel, modules, decoded.modules_key, files)


def _machine(kernel: Kernel, library: Path, time_limit_s: float) -> Machine:
    return Uml(kernel, library, time_limit_s=time_limit_s)


def _find(item: Item) -> Path | None:
    """Return the file's path: the campaign's own or that of the copy; None if it is in neither."""
    here = Path(item.here)
    named = item.name == ANY_NAME or here.parts[-len(item.name.split("/")) :] == tuple(
        item.name.split("/")
    )
    for path in ([here] if named else []) + [_place(item)]:
        with suppress(OSError):
            status = path.stat()
            if not path.is_file() or status.st_size != item.size:
                continue
            if digest_of(path, item.size, status.st_mtime_ns) == item.sha256:
                return path
    return None


def _place(item: Item) -> Path:
    if not _SHA256.fullmatch(item.sha256) or not _NAME.fullmatch(item.name):
        raise UserError(f"invalid file name from the campaign: {item.name!r}")
    return cache_dir() / "shipped" / item.sha256 / item.name


def _keep(item: Item, compressed: bytes) -> None:
    """Write a file from the campaign, by rename. Raises OSError, UserError."""
    place = _place(item)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(place, zlib.decompress(compressed), executable=True)
