# SPDX-License-Identifier: GPL-2.0-only
"""The seeds of a run's generators."""

import hashlib

_PASS_SEED = 1_000_003  # between two passes; any odd number


def tenant_seed(seed: int, index: int) -> int:
    """Return the generator's randseed for the tenant at `index` in a run with `seed`.

    The first 4 bytes of SHA-256 over "SEED INDEX", big-endian, and 1 if they are 0: the same on
    every machine, and uncorrelated between neighbours.
    """
    digest = hashlib.sha256(f"{seed} {index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") or 1


def pass_seed(seed: int, passes: int) -> int:
    """Return a tenant's seed in a pass that is `passes` later than one with `seed`; earlier if
    negative."""
    return (seed + passes * _PASS_SEED) % (1 << 32) or 1
