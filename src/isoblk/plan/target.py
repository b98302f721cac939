# SPDX-License-Identifier: GPL-2.0-only
"""The device that the tenants of a run use: the disk itself, a cache in front of it, or the
uppermost layer on it; and the disks of a run."""

from isoblk.caches.base import Cache, Parts
from isoblk.caches.registry import CACHES
from isoblk.layers.registry import disks_of, layers_of
from isoblk.run.spec import Caching, RunSpec
from isoblk.run.tier import Place

SSD = "disk1"
PLACED = "placed"
"""Name of the device-mapper device with the pieces of the cached device, in the tenants' order."""


def of(caching: Caching) -> Cache:
    """Return the cache that a study names."""
    return CACHES[caching.cache]


def parts(caching: Caching, place: Place) -> Parts:
    """Return the devices of the cache."""
    regions = of(caching).regions(caching.options, caching.ssd_bytes)
    return Parts(
        origin=f"{place.disk}p1",
        ssd=tuple(f"{SSD}p{number}" for number in range(1, len(regions) + 1)),
        origin_bytes=caching.origin_bytes,
        ssd_bytes=regions,
        run=place.run,
    )


def disks(spec: RunSpec, place: Place) -> list[str]:
    """Return the kernel's names of the disks of the study's device, which have its scheduler."""
    return [place.disk, *(f"disk{number}" for number in range(1, disks_of(spec.stack)))]


def device(spec: RunSpec, place: Place) -> str:
    """Return the path of the device that the tenants use."""
    if spec.stack:
        return layers_of(spec.stack)[-1].device
    if spec.caching is None:
        return f"/dev/{place.disk}"
    if spec.caching.placement == "scattered":
        return f"/dev/mapper/{PLACED}"
    return of(spec.caching).device(parts(spec.caching, place))


def number_file(spec: RunSpec, place: Place) -> str:
    """Return the file with the number of the device that the tenants' cgroups are charged for; ""
    if they use no other device."""
    if spec.stack:
        return f"/sys/block/{layers_of(spec.stack)[-1].block}/dev"
    if spec.caching is None:
        return "" if place.run.startswith("/") else f"/sys/block/{place.disk}/dev"
    if spec.caching.placement == "scattered":
        return "/sys/block/dm-1/dev"
    block = of(spec.caching).block(parts(spec.caching, place))
    # I/O to a partition is charged for its disk.
    for disk in (place.disk, SSD):
        if block.startswith(f"{disk}p"):
            return f"/sys/block/{disk}/dev"
    return f"/sys/block/{block}/dev"
