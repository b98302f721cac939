# SPDX-License-Identifier: GPL-2.0-only
"""Which device the tenants of a run use: the disk itself, a cache in front of it, or the uppermost
of the layers on it; and which disks a run has."""

from isoblk.caches.base import Cache, Parts
from isoblk.caches.registry import CACHES
from isoblk.layers.registry import disks_of, layers_of
from isoblk.run.spec import Caching, RunSpec
from isoblk.run.tier import Place

SSD = "disk1"
PLACED = "placed"
"""Of device-mapper: pieces of the cached device, in the order in which the tenants see them."""


def of(caching: Caching) -> Cache:
    """The cache that a study names."""
    return CACHES[caching.cache]


def parts(caching: Caching, place: Place) -> Parts:
    """What the cache is made of."""
    regions = of(caching).regions(caching.options, caching.ssd_bytes)
    return Parts(
        origin=f"{place.disk}p1",
        ssd=tuple(f"{SSD}p{number}" for number in range(1, len(regions) + 1)),
        origin_bytes=caching.origin_bytes,
        ssd_bytes=regions,
        run=place.run,
    )


def disks(spec: RunSpec, place: Place) -> list[str]:
    """The kernel's names of the disks that are of the study's device, and have its scheduler."""
    return [place.disk, *(f"disk{number}" for number in range(1, disks_of(spec.stack)))]


def device(spec: RunSpec, place: Place) -> str:
    """Path of the device that the tenants use."""
    if spec.stack:
        return layers_of(spec.stack)[-1].device
    if spec.caching is None:
        return f"/dev/{place.disk}"
    if spec.caching.placement == "scattered":
        return f"/dev/mapper/{PLACED}"
    return of(spec.caching).device(parts(spec.caching, place))


def number_file(spec: RunSpec, place: Place) -> str:
    """File with the number of the device that the tenants' cgroups are charged for; "" if they
    use no other."""
    if spec.stack:
        return f"/sys/block/{layers_of(spec.stack)[-1].block}/dev"
    if spec.caching is None:
        return "" if place.run.startswith("/") else f"/sys/block/{place.disk}/dev"
    if spec.caching.placement == "scattered":
        return "/sys/block/dm-1/dev"
    block = of(spec.caching).block(parts(spec.caching, place))
    # A partition has no account of its own.
    for disk in (place.disk, SSD):
        if block.startswith(f"{disk}p"):
            return f"/sys/block/{disk}/dev"
    return f"/sys/block/{block}/dev"
