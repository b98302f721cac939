# SPDX-License-Identifier: GPL-2.0-only
"""How many examples Hypothesis tries: few in `make test`, all of them in `.ci/run`."""

from hypothesis import settings

FEW = "few"
ALL = "all"

# No test asserts on wall time, so neither does Hypothesis.
settings.register_profile(FEW, deadline=None, max_examples=20)
settings.register_profile(ALL, deadline=None, max_examples=100)


def at_most(count: int) -> int:
    """The number of examples of a test where each takes long: `count` of a hundred."""
    return settings().max_examples * count // 100
