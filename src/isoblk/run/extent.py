# SPDX-License-Identifier: GPL-2.0-only
"""The bytes of a disk that tenants can use."""

from isoblk.run.spec import Caching, Device


def usable_bytes(device: Device, caching: Caching | None) -> int:
    """Return the bytes of the device that tenants can use."""
    if caching is None:
        return device.size
    return caching.working_set or cached_bytes(caching)


def cached_bytes(caching: Caching) -> int:
    """Return the approximate size of the cached device; that of bcache is less by its
    superblock."""
    return caching.ssd_bytes if caching.cache == "ssd" else caching.origin_bytes
