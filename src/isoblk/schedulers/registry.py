# SPDX-License-Identifier: GPL-2.0-only
"""Schedulers."""

# The elevators of kernel/sched: they share one policy, isoblk_share's.
OWN_ELEVATORS = ("isoblk", "kyber-fair", "feedbac", "cfq")
ELEVATORS = ("mq-deadline", "kyber", "bfq", *OWN_ELEVATORS)


def elevator_of(name: str) -> str:
    """What goes to queue/scheduler: a controller works on top of none."""
    return "none" if name.startswith("io.") else name
