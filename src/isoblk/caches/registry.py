# SPDX-License-Identifier: GPL-2.0-only
"""The caches that a study can put in front of its disk, by name in studies."""

from isoblk.caches.base import Cache, SsdAlone
from isoblk.caches.bcache import Bcache
from isoblk.caches.dm import DmCache, DmWritecache
from isoblk.caches.setcache import PERSONALITIES, Setcache

CACHES: dict[str, Cache] = {
    cache.name: cache
    for cache in (
        *(Cache(), SsdAlone(), Bcache(), DmCache(), DmWritecache()),
        *(Setcache(personality) for personality in PERSONALITIES.values()),
    )
}
