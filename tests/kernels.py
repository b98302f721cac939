# SPDX-License-Identifier: GPL-2.0-only
"""The kernels that tests run on, and which of them a test needs."""

from enum import StrEnum

import pytest


class On(StrEnum):
    """A kernel of the tests: the fixture NAME_bench has it. Fixtures and tests are
    parametrized with it, so that the tests which need a kernel are known before any is run."""

    DEFAULT = "default"
    NEWEST = "newest"
    DEBUG = "debug"
    SMP = "smp"
    STOCK = "stock"
    LEAN = "lean"


# The kernels that `make test` builds.
FEW = frozenset({On.DEFAULT})


def needed(item: pytest.Item) -> frozenset[On]:
    """The kernels that a test asks for: by its fixtures, or by its parameters."""
    fixtures = item.fixturenames if isinstance(item, pytest.Function) else ()
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params.values() if callspec else ()
    return frozenset(
        {kernel for kernel in On if f"{kernel}_bench" in fixtures}
        | {value for value in parameters if isinstance(value, On)}
    )
