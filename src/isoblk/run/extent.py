# SPDX-License-Identifier: GPL-2.0-only
"""How many bytes of a disk the tenants have."""

from isoblk.run.spec import Caching, Device


def usable_bytes(device: Device, caching: Caching | None) -> int:
    """What the tenants have of the device."""
    if caching is None:
        return device.size
    return caching.working_set or cached_bytes(caching)


def cached_bytes(caching: Caching) -> int:
    """Size of the cached device, as good as: bcache's is less by its superblock."""
    return caching.ssd_bytes if caching.cache == "ssd" else caching.origin_bytes
