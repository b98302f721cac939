# SPDX-License-Identifier: GPL-2.0-only
"""The seeds of a run's generators."""

import hashlib

_PASS_SEED = 1_000_003  # between two passes; any odd number


def tenant_seed(seed: int, index: int) -> int:
    """The generator's randseed for the tenant at `index` in a run with `seed`.

    The first 4 bytes of SHA-256 over "SEED INDEX", big-endian, and 1 if they are 0: the
    same on every machine, and neighbours have nothing in common.
    """
    digest = hashlib.sha256(f"{seed} {index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") or 1


def pass_seed(seed: int, passes: int) -> int:
    """A tenant's seed in a pass that comes `passes` after one with `seed`, or before it."""
    return (seed + passes * _PASS_SEED) % (1 << 32) or 1
