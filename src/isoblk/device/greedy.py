# SPDX-License-Identifier: GPL-2.0-only
"""What greedy garbage collection costs under random writes, from the flash's spare area.

The source of both: P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012, in
the limit of large blocks, where greedy collection and that of the oldest block cost the same:
the fraction u of a collected block that is still valid solves (u - 1) / ln u = 1 / (1 + spare).
"""

from math import log

_STEPS = 60  # halvings: below the precision of a float


def write_amplification(spare: float) -> float:
    """Flash pages programmed for each that the host writes, uniformly at random, at steady
    state.

    Args:
        spare: flash beyond the size, relative to it; above 0.
    """
    used = 1 / (1 + spare)
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        valid = (low + high) / 2
        if _used(valid) < used:
            low = valid
        else:
            high = valid
    return 1 / (1 - low)


def spare_for(amplification: float) -> float:
    """The spare area with which writes are amplified so; the inverse of the above.

    Args:
        amplification: above 1.
    """
    return 1 / _used(1 - 1 / amplification) - 1


def _used(valid: float) -> float:
    """The part of the flash that holds data when collected blocks hold `valid` of theirs."""
    return (valid - 1) / log(valid) if 0 < valid < 1 else float(valid >= 1)
