# SPDX-License-Identifier: GPL-2.0-only
"""Check that a study's cache can be created, and that the tenants fit it."""

from isoblk.caches.registry import CACHES
from isoblk.programs.registry import program_of
from isoblk.run import limits
from isoblk.run.extent import cached_bytes, usable_bytes
from isoblk.run.field import FieldError, suggest
from isoblk.run.options import OptionError
from isoblk.run.spec import Caching, RunSpec, VdiskDevice
from isoblk.run.units import format_size
from isoblk.schedulers.registry import kind_of
from isoblk.study.model import Study
from isoblk.study.point import slots


def check_cache(study: Study, spec: RunSpec) -> None:
    """Check [ssd], [caching] and [caches] at one point of the matrix.

    Raises:
        FieldError: the cause, and the allowed values.
    """
    for name in study.caches:
        if name not in CACHES:
            raise FieldError(("caches", name), "unknown cache", next=suggest(name, CACHES))
    caching = spec.caching
    if caching is None:
        if study.caches:
            raise FieldError(("caches",), "there is no SSD", next="add [ssd]")
        return
    _check_parts(spec, caching)
    try:
        CACHES[caching.cache].check(caching.options, caching.ssd_bytes)
    except OptionError as error:
        field = ("caches", caching.cache, error.option)
        raise FieldError(field, error.cause, next=error.next) from None
    _check_placement(caching)
    _check_tenants(study, spec, caching)
    if kind_of(spec.scheduler).one_disk and caching.scheduler_on != "origin":
        raise FieldError(
            ("caching", "scheduler_on"),
            f"{spec.scheduler.name} is set for one disk",
            next='set "origin"',
        )


def _check_parts(spec: RunSpec, caching: Caching) -> None:
    assert isinstance(spec.device, VdiskDevice)
    for name, device, used in (
        ("device", spec.device, caching.origin_bytes),
        ("ssd", caching.ssd, caching.ssd_bytes),
    ):
        if device.store == "none":
            raise FieldError(
                (name, "store"),
                "a cache's metadata are kept on the disks, and this one keeps nothing",
                next='set store = "memory"',
            )
        part = "origin" if name == "device" else "ssd"
        if used > device.size:
            raise FieldError(
                ("caching", part),
                f"{format_size(used)} are more than the device has",
                next=f"allowed: up to {format_size(device.size)}",
            )
        if used % limits.PHYSICAL_BLOCK:
            raise FieldError(
                ("caching", part), f"{used} is not a multiple of {limits.PHYSICAL_BLOCK}"
            )
    if caching.ssd.hw_queues != spec.device.hw_queues:
        raise FieldError(
            ("ssd", "hw_queues"), "is not that of the device", next="give both as many"
        )
    if caching.files == "read" and (spec.filesystem or caching.placement == "scattered"):
        raise FieldError(
            ("caching", "files"),
            '"read" is for regions of a device as a whole',
            next='set "origin" or "cache"',
        )
    if caching.passes not in limits.PASSES:
        raise FieldError(
            ("caching", "passes"),
            f"{caching.passes} is out of range",
            next=f"allowed: {limits.PASSES}",
        )


def _check_placement(caching: Caching) -> None:
    if caching.placement == "contiguous":
        return
    if not caching.piece or caching.piece % limits.PHYSICAL_BLOCK:
        raise FieldError(
            ("caching", "piece"),
            f"{caching.piece} is not a multiple of {limits.PHYSICAL_BLOCK} above 0",
        )
    if not caching.working_set or caching.working_set % caching.piece:
        raise FieldError(
            ("caching", "working_set"),
            f"{caching.working_set} is not a number of pieces",
            next=f"give a multiple of {format_size(caching.piece)}",
        )
    # The cache needs room for a piece, as for bcache's superblock.
    room = cached_bytes(caching) - caching.piece
    if caching.working_set > room:
        raise FieldError(
            ("caching", "working_set"),
            "does not fit the cached device",
            next=f"allowed: up to {format_size(room)}",
        )


def _check_tenants(study: Study, spec: RunSpec, caching: Caching) -> None:
    usable = usable_bytes(spec.device, caching)
    if study.filesystem is not None and (study.filesystem.offset or study.filesystem.size):
        raise FieldError(
            ("filesystem", "size" if study.filesystem.size else "offset"),
            "with [ssd] the file system takes all of the cached device",
            next="remove it; set caching.origin, or caching.working_set",
        )
    for slot, tenant in zip(slots(study), spec.tenants, strict=True):
        load = tenant.workload
        field = ("tenant", slot.entry)
        if program_of(load) is None and load.offset + load.size > usable:
            raise FieldError(
                (*field, "size"),
                "goes beyond the cached device",
                next=f"it has {format_size(usable)}",
            )
        if program_of(load) is None and spec.filesystem is not None:
            raise FieldError(
                (*field, "workload"),
                f"{load.program} works on the device, which is the file system's",
                next="remove [filesystem], or choose a program",
            )
        if load.program == "fio" and caching.passes > 1:
            raise FieldError(
                ("caching", "passes"), "fio runs once", next='use workload = "blkload"'
            )
