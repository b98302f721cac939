# SPDX-License-Identifier: GPL-2.0-only
"""Write amplification of greedy garbage collection under random writes, from the spare area.

Source: P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012. In the limit of
large blocks, greedy collection and collection of the oldest block cost the same: the fraction u of
valid pages in a collected block solves (u - 1) / ln u = 1 / (1 + spare).
"""

from math import log

_STEPS = 60  # halvings, below the precision of a float


def write_amplification(spare: float) -> float:
    """Return the flash pages programmed per page that the host writes, uniformly at random, in
    steady state.

    Args:
        spare: flash beyond the size, relative to the size; above 0.
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
    """Return the spare area that gives a write amplification; the inverse of write_amplification().

    Args:
        amplification: above 1.
    """
    return 1 / _used(1 - 1 / amplification) - 1


def _used(valid: float) -> float:
    """Return the fraction of the flash with data when collected blocks have the fraction
    `valid`."""
    return (valid - 1) / log(valid) if 0 < valid < 1 else float(valid >= 1)
